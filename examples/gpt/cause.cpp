// SPDX-License-Identifier: BSL-1.0
#include "cause.hpp"

namespace gpt {

std::string cause(Model const& model, Tokens const& tokens, Tokens const& next) {
  return dfdx::first_nan(loss, model, tokens, next);
}

}  // namespace gpt
