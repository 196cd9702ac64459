// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace fuzz {

/// How many files a reader took: all that the driver begins with must be among them.
inline long accepted = 0;

}  // namespace fuzz
