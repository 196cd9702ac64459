// SPDX-License-Identifier: BSL-1.0
// A variational autoencoder (Kingma and Welling 2014) with one hidden layer on either side, as in the paper.
#pragma once

#include <dfdx/dfdx.hpp>

namespace vae {

inline constexpr std::size_t points = 28 * 28, hidden = 400, latent = 20;

struct Model {
  dfdx::nn::Linear<points, hidden> encode_fc;
  dfdx::nn::Linear<hidden, latent> mean, log_variance;
  dfdx::nn::Linear<latent, hidden> decode_fc;
  dfdx::nn::Linear<hidden, points> out;
  DFDX_FIELDS(encode_fc, mean, log_variance, decode_fc, out)

  /// [B, 784] -> mean and logarithm of the variance of the codes, [B, 20] each.
  constexpr auto encode(auto const& x) const {
    auto const h = relu(encode_fc(x));
    return std::pair(mean(h), log_variance(h));
  }
  /// [B, 20] -> log-odds of each point being white, [B, 784].
  constexpr auto decode(auto const& z) const { return out(relu(decode_fc(z))); }
};

}  // namespace vae
