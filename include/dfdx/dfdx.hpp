// SPDX-License-Identifier: BSL-1.0
// dfdx: automatic differentiation and neural networks for C++20. Include this header; <dfdx/io.hpp> adds files (and
// needs a JSON library).
#pragma once

#include <dfdx/nn/activation.hpp>
#include <dfdx/optim/adam.hpp>
#include <dfdx/optim/clip.hpp>
#include <dfdx/optim/sgd.hpp>
#include <dfdx/program/train_step.hpp>
#include <dfdx/program/transforms.hpp>
#include <dfdx/vocabulary/composite.hpp>
