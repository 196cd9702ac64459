// SPDX-License-Identifier: BSL-1.0
// What nvcc compiles of `llama` for GPUs: all other files are those of the CPU's program.
#include <dfdx/cuda_models.hpp>
