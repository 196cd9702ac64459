// SPDX-License-Identifier: BSL-1.0
// What including the library costs before anything is used.
#include <dfdx/dfdx.hpp>
