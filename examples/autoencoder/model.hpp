// SPDX-License-Identifier: BSL-1.0
// An autoencoder (Hinton and Salakhutdinov 2006) of convolutions: Side x Side points as Code numbers, and back.
#pragma once

#include <dfdx/dfdx.hpp>

namespace autoencoder {

template <std::size_t Side, std::size_t Code>
struct Model {
  static_assert(Side % 4 == 0, "two layers halve the side of a picture");
  static constexpr std::size_t side = Side, code = Code, least = Side / 4;
  static constexpr dfdx::ConvOptions down{.stride = 2, .padding = 1};
  static constexpr dfdx::ConvTransposeOptions up{.stride = 2, .padding = 1, .output_padding = 1};

  dfdx::nn::Conv2d<1, 16, 3, down> conv1;
  dfdx::nn::Conv2d<16, 32, 3, down> conv2;
  dfdx::nn::Linear<32 * least * least, code> encode_fc;
  dfdx::nn::Linear<code, 32 * least * least> decode_fc;
  dfdx::nn::ConvTranspose2d<32, 16, 3, up> deconv1;
  dfdx::nn::ConvTranspose2d<16, 1, 3, up> deconv2;
  DFDX_FIELDS(conv1, conv2, encode_fc, decode_fc, deconv1, deconv2)

  /// [B, Side, Side] -> [B, Code].
  constexpr auto encode(auto const& x) const {
    return encode_fc(dfdx::flatten<1>(relu(conv2(relu(conv1(dfdx::unsqueeze<1>(x)))))));
  }
  /// [B, Code] -> [B, Side, Side], brightness 0 .. 1.
  constexpr auto decode(auto const& z) const {
    auto const h = dfdx::unflatten<1, 32, least, least>(relu(decode_fc(z)));
    return sigmoid(dfdx::squeeze<1>(deconv2(relu(deconv1(h)))));
  }
  constexpr auto operator()(auto const& x) const { return decode(encode(x)); }
};

}  // namespace autoencoder
