// SPDX-License-Identifier: BSL-1.0
// Pictures to learn from: noise about one for each of ten classes.
#pragma once

#include <deque>

#include <dfdx/dfdx.hpp>

namespace bench {

/// 16 batches of B pictures of the given dims with 784 points, and their labels.
template <std::size_t B, std::size_t... Dims>
auto pictures() {
  using namespace dfdx;
  std::deque<std::pair<Tensor<float, B, Dims...>, Tensor<std::int32_t, B>>> all;
  auto const classes = randn<float, 10, 784>(Key{2});
  std::uint64_t n = 0;
  for (std::uint64_t k = 0; k < 16; ++k) {
    auto x = empty<float, B, Dims...>();
    auto y = empty<std::int32_t, B>();
    auto const noise = randn<float, B, 784>(Key{100 + n});
    for (std::size_t i = 0; i < B; ++i, ++n) {
      auto const label = static_cast<std::size_t>(integer_at(Key{3}, n, 10));
      y.data()[i] = static_cast<std::int32_t>(label);
      for (std::size_t p = 0; p < 784; ++p)
        x.data()[i * 784 + p] = noise.data()[i * 784 + p] + 0.3f * classes.data()[label * 784 + p];
    }
    all.emplace_back(x, y);
  }
  return all;
}

/// Mean negative log-likelihood of the labels.
constexpr auto loss = [](auto const& m, auto const& x, auto const& y) { return cross_entropy(m(x), y); };

}  // namespace bench
