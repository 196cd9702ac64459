// SPDX-License-Identifier: BSL-1.0
// The CUDA backend, for files that nvcc compiles (-std=c++20 --expt-relaxed-constexpr --extended-lambda). xsimd
// cannot be read by its front end: such a file gets dfdx without the CPU's vector kernels, so run programs on the
// CPU from other files.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/kernels/cuda/loop.hpp>
