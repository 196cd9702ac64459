// SPDX-License-Identifier: BSL-1.0
#include "linear.hpp"

#include <dfdx/dfdx.hpp>

autoencoder::Baselines autoencoder::compare(dfdx::Array const& training, dfdx::Array const& test,
                                            dfdx::index_t code) {
  using dfdx::Array;
  auto const rows = [](Array const& pictures) {
    return pictures.reshape({pictures.len(), -1}).to(dfdx::DType::f32) / 255.0;
  };
  Array const x = rows(training), middle = x.mean(0), centred = x - middle, rest = rows(test) - middle;
  Array const covariance = matmul(centred.T(), centred) / static_cast<double>(x.len());
  Array q = std::get<0>(qr(dfdx::randn({x.shape()[1], code}, dfdx::Key{1})));
  for (int i = 0; i < 100; ++i) q = std::get<0>(qr(matmul(covariance, q)));
  Array const left = rest - matmul(matmul(rest, q), q.T());
  return {square(rest).mean().item(), square(left).mean().item()};
}
