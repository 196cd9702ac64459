// SPDX-License-Identifier: BSL-1.0
#include "cause.hpp"

namespace autoencoder {

template <std::size_t Side, std::size_t Code>
std::string cause(Model<Side, Code> const& model,
                  dfdx::Tensor<std::uint8_t, common::batch, Side, Side> const& pictures,
                  dfdx::Tensor<std::int64_t> const& key) {
  return dfdx::first_nan(loss, model, pictures, key);
}

template std::string cause(Model<8, 2> const&, dfdx::Tensor<std::uint8_t, common::batch, 8, 8> const&,
                           dfdx::Tensor<std::int64_t> const&);
template std::string cause(Model<28, 32> const&, dfdx::Tensor<std::uint8_t, common::batch, 28, 28> const&,
                           dfdx::Tensor<std::int64_t> const&);

}  // namespace autoencoder
