// SPDX-License-Identifier: BSL-1.0
// The CUDA backend, for files that nvcc compiles (-std=c++20 --expt-relaxed-constexpr --extended-lambda): programs run
// on the device that their arguments lie on, `to(cuda(), model)`. xsimd cannot be read by nvcc's front end: such a file
// gets dfdx without the CPU's vector kernels, so run programs on the CPU from other files. To be included before other
// headers of dfdx.
//
// All threads of a program share one stream for each device, and a program that runs for the second time is captured
// from it: let one thread at a time run programs on a device, and none copy to it, from it or free what lies on it
// meanwhile.
#pragma once

#if defined(DFDX_VERSION_MAJOR) && !defined(DFDX_WITH_CUDA)
#error "dfdx: include <dfdx/cuda.hpp> before other headers of dfdx"
#endif
#ifndef DFDX_WITH_CUDA
#define DFDX_WITH_CUDA 1
#endif

#include <dfdx/dfdx.hpp>
#include <dfdx/kernels/cuda/loop.hpp>
#include <dfdx/kernels/cuda/matmul.hpp>
#include <dfdx/kernels/cuda/runtime.hpp>
#include <dfdx/program/on_device.hpp>
#include <dfdx/vocabulary/to_device.hpp>
