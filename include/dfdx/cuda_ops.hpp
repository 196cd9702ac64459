// SPDX-License-Identifier: BSL-1.0
// Kernels for ops that are called one by one on values of a device, and so for the tape there. To be included, not
// <dfdx/cuda.hpp>, in one file of a program that nvcc compiles: it brings the kernels of all ops, and all files of the
// program have them then. Without it such ops run on the CPU, on copies.
#pragma once

#include <dfdx/cuda.hpp>
#include <dfdx/program/called_on_device.hpp>
