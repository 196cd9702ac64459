// SPDX-License-Identifier: BSL-1.0
#include "cause.hpp"

namespace vae {

std::string cause(Model const& model, dfdx::Tensor<std::uint8_t, common::batch, 28, 28> const& pictures,
                  dfdx::Tensor<std::int64_t> const& key) {
  return dfdx::first_nan(loss, model, pictures, key);
}

}  // namespace vae
