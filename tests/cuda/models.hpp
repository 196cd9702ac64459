// SPDX-License-Identifier: BSL-1.0
// Models that tests of devices train: compiled by nvcc (*.cu here), run on an emulated device (tests/cuda_emulated).
#pragma once

#include <dfdx/cuda.hpp>

#include <cstdio>

namespace device_models {

using namespace dfdx;

struct Block {
  nn::LayerNorm<24> norm;
  nn::Linear<24, 192> a;  // large enough that the loop over blocks updates its weights itself
  nn::Linear<192, 24> b;
  DFDX_FIELDS(norm, a, b)
  constexpr auto operator()(auto const& x) const { return x + b(gelu(a(norm(x)))); }
};
struct Deep {
  nn::Embedding<17, 24> tokens;
  nn::Repeat<Block, 3> blocks;
  nn::Linear<24, 17> out;
  DFDX_FIELDS(tokens, blocks, out)
  constexpr auto operator()(auto const& x) const { return out(blocks(tokens(x))); }
};
struct Attend {
  nn::Linear<16, 48> qkv;
  nn::Linear<16, 16> out;
  DFDX_FIELDS(qkv, out)
  constexpr auto operator()(auto const& x) const {  // [B, T, 16], two heads
    auto const all = permute<2, 0, 3, 1, 4>(reshape<2, 9, 3, 2, 8>(qkv(x)));
    auto const q = reshape<2, 2, 9, 8>(slice<0, 0, 1>(all)), k = reshape<2, 2, 9, 8>(slice<0, 1, 2>(all)),
               v = reshape<2, 2, 9, 8>(slice<0, 2, 3>(all));
    auto const weights = softmax(matmul(q, permute<0, 1, 3, 2>(k)) * 0.35f);
    return out(reshape<2, 9, 16>(permute<0, 2, 1, 3>(matmul(weights, v))));
  }
};
/// Whether there is no device to compare the CPU with, which is said.
inline bool no_device() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) == cudaSuccess && devices != 0) return false;
  std::printf("SKIPPED: no CUDA device\n");
  return true;
}

constexpr auto entropy = [](auto const& model, auto const& x, auto const& labels) {
  return cross_entropy(model(x), labels);
};
constexpr auto squares = [](auto const& model, auto const& x) { return mean(square(model(x) - 0.5f)); };

}  // namespace device_models
