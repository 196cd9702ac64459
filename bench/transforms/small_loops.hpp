// SPDX-License-Identifier: BSL-1.0
#pragma once

namespace bench {

/// small_loops - times loops over vectors of a few numbers, and their gradients.
void small_loops();

}  // namespace bench
