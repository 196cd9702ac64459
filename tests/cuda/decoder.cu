// SPDX-License-Identifier: BSL-1.0
// The kernels of decoders: every format of matrices and caches.
#include <dfdx/cuda_models.hpp>
