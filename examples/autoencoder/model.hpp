// SPDX-License-Identifier: BSL-1.0
// An autoencoder (Hinton and Salakhutdinov 2006) of convolutions: 784 points as 32 numbers, and back.
#pragma once

#include <dfdx/dfdx.hpp>

namespace autoencoder {

inline constexpr std::size_t code = 32;

struct Model {
  static constexpr dfdx::ConvOptions down{.stride = 2, .padding = 1};
  static constexpr dfdx::ConvTransposeOptions up{.stride = 2, .padding = 1, .output_padding = 1};

  dfdx::nn::Conv2d<1, 16, 3, down> conv1;
  dfdx::nn::Conv2d<16, 32, 3, down> conv2;
  dfdx::nn::Linear<32 * 7 * 7, code> encode_fc;
  dfdx::nn::Linear<code, 32 * 7 * 7> decode_fc;
  dfdx::nn::ConvTranspose2d<32, 16, 3, up> deconv1;
  dfdx::nn::ConvTranspose2d<16, 1, 3, up> deconv2;
  DFDX_FIELDS(conv1, conv2, encode_fc, decode_fc, deconv1, deconv2)

  /// [B, 28, 28] -> [B, 32].
  constexpr auto encode(auto const& x) const {
    return encode_fc(dfdx::flatten<1>(relu(conv2(relu(conv1(dfdx::unsqueeze<1>(x)))))));
  }
  /// [B, 32] -> [B, 28, 28], brightness 0 .. 1.
  constexpr auto decode(auto const& z) const {
    auto const h = dfdx::unflatten<1, 32, 7, 7>(relu(decode_fc(z)));
    return sigmoid(dfdx::squeeze<1>(deconv2(relu(deconv1(h)))));
  }
  constexpr auto operator()(auto const& x) const { return decode(encode(x)); }
};

}  // namespace autoencoder
