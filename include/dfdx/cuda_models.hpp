// SPDX-License-Identifier: BSL-1.0
// Decoders on CUDA devices. To be included in one file of a program that nvcc compiles: then all its files run models
// that `to(cuda(), model)` has moved, with models::Decoder and whatever makes texts by it.
#pragma once

#include <dfdx/cuda.hpp>
#include <dfdx/models/decoder_device.hpp>
