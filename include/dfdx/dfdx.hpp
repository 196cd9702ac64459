// SPDX-License-Identifier: BSL-1.0
// dfdx: automatic differentiation and neural networks for C++20. Include this header; <dfdx/io.hpp> adds files (and
// needs a JSON library), <dfdx/explain.hpp> the reports about programs.
#pragma once

// First, so that the compiler needs few lines to say where a message of the library comes from.
#include <dfdx/core/error.hpp>

#include <dfdx/data/loader.hpp>
#include <dfdx/data/text_lines.hpp>
#include <dfdx/graph/verify.hpp>
#include <dfdx/nn/activation.hpp>
#include <dfdx/nn/conv.hpp>
#include <dfdx/nn/embedding.hpp>
#include <dfdx/nn/init.hpp>
#include <dfdx/nn/init_more.hpp>
#include <dfdx/nn/layer_norm.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/nn/norm.hpp>
#include <dfdx/nn/pool.hpp>
#include <dfdx/nn/recurrent.hpp>
#include <dfdx/nn/repeat.hpp>
#include <dfdx/nn/sequential.hpp>
#include <dfdx/optim/adagrad.hpp>
#include <dfdx/optim/adam.hpp>
#include <dfdx/optim/adamax.hpp>
#include <dfdx/optim/average.hpp>
#include <dfdx/optim/clip.hpp>
#include <dfdx/optim/groups.hpp>
#include <dfdx/optim/lbfgs.hpp>
#include <dfdx/optim/matrices.hpp>
#include <dfdx/optim/optimizer.hpp>
#include <dfdx/optim/rprop.hpp>
#include <dfdx/optim/schedule.hpp>
#include <dfdx/optim/sgd.hpp>
#include <dfdx/program/derivatives.hpp>
#include <dfdx/program/train_step.hpp>
#include <dfdx/program/transforms.hpp>
#include <dfdx/tape/backward.hpp>
#include <dfdx/transforms/eager.hpp>
#include <dfdx/value/print.hpp>
#include <dfdx/vocabulary/activation.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/channel_norm.hpp>
#include <dfdx/vocabulary/choose.hpp>
#include <dfdx/vocabulary/class_loss.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/composite.hpp>
#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/create.hpp>
#include <dfdx/vocabulary/ctc_loss.hpp>
#include <dfdx/vocabulary/custom_vjp.hpp>
#include <dfdx/vocabulary/embedding.hpp>
#include <dfdx/vocabulary/in_place.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/linalg.hpp>
#include <dfdx/vocabulary/loss.hpp>
#include <dfdx/vocabulary/margin_loss.hpp>
#include <dfdx/vocabulary/mathematics.hpp>
#include <dfdx/vocabulary/measure.hpp>
#include <dfdx/vocabulary/methods.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/order.hpp>
#include <dfdx/vocabulary/pool.hpp>
#include <dfdx/vocabulary/random.hpp>
#include <dfdx/vocabulary/recurrent.hpp>
#include <dfdx/vocabulary/scan.hpp>
#include <dfdx/vocabulary/split.hpp>
