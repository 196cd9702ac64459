// SPDX-License-Identifier: BSL-1.0
// A training step in the precision that was asked for.
#pragma once

#include <dfdx/dfdx.hpp>

#include "precision.hpp"

namespace common {

/// f(step, optimizer), the optimizer the step's own. The range of f16 is short, so there the loss is scaled.
template <class Loss, class O, class F>
void with_step(Precision precision, Loss const& loss, O const& optimizer, F const& f) {
  if (precision == Precision::bf16) {
    auto step = dfdx::train_step(dfdx::autocast<dfdx::bfloat16>(loss), optimizer);
    f(step, step.optimizer());
  } else if (precision == Precision::f16) {
    auto step = dfdx::train_step(dfdx::autocast<dfdx::float16>(loss), dfdx::optim::LossScale<O>{optimizer});
    f(step, step.optimizer().inner);
  } else {
    auto step = dfdx::train_step(loss, optimizer);
    f(step, step.optimizer());
  }
}

}  // namespace common
