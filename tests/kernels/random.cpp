// SPDX-License-Identifier: BSL-1.0
// Numbers drawn many at once are those of core/random.hpp, one by one, to the last bit.
#include <catch2/catch_test_macros.hpp>

#include <vector>

#include <dfdx/kernels/random.hpp>

#include "worse.hpp"

namespace tests::kernels_random {

using namespace dfdx;

namespace {

template <class T, class Fill, class One>
void require_same(index_t n, Fill const& fill, One const& one) {
  std::vector<T> y(static_cast<std::size_t>(n) + 1, T(7));
  fill(y.data());
  index_t different = 0;
  for (index_t i = 0; i < n; ++i)
    different += y[static_cast<std::size_t>(i)] != one(static_cast<std::uint64_t>(i));
  CHECK(different == 0);
  CHECK(y.back() == T(7));
}

}  // namespace

TEST_CASE("uniform numbers in lanes are those of the stream", "[kernels][random]") {
  for (std::uint64_t const seed : {0ull, 42ull, 0xfedcba9876543210ull})
    for (std::uint64_t const stream : {0ull, 3ull, 0x123456789abcdefull}) {
      Key const key(seed);
      for (index_t const n : {0, 1, 63, 64, 65, 1000})
        require_same<double>(
            n, [&](double* y) { kernels::draw_uniform(key, stream, y, n); },
            [&](std::uint64_t i) { return uniform_at(key, i, stream); });
      // No f32 is rounded to 1.
      double const most = 1 - 0x1p-24;
      require_same<float>(
          5000, [&](float* y) { kernels::draw_uniform(key, stream, y, 5000, most); },
          [&](std::uint64_t i) {
            double const u = uniform_at(key, i, stream);
            return static_cast<float>(u < most ? u : most);
          });
    }
}

TEST_CASE("normal numbers in lanes are rounded as normal_at is", "[kernels][random]") {
  for (std::uint64_t const seed : {0ull, 7ull, 0xffffffffffffffffull})
    for (index_t const n : {0, 1, 2, 63, 64, 65, 100'000}) {
      std::uint64_t const stream = seed % 5;
      require_same<float>(
          n, [&](float* y) { kernels::draw_normal(Key(seed), stream, y, n); },
          [&](std::uint64_t i) { return static_cast<float>(normal_at(Key(seed), i, stream)); });
      require_same<double>(
          n % 1000, [&](double* y) { kernels::draw_normal(Key(seed), stream, y, n % 1000); },
          [&](std::uint64_t i) { return normal_at(Key(seed), i, stream); });
    }
}

#if !defined(__CUDACC__)
TEST_CASE("normal numbers are within their bound before they are rounded", "[kernels][random]") {
  Key const key(11);
  kernels::detail::PhiloxLanes const philox(key, 0);
  alignas(64) double block[kernels::detail::drawn_at_once];
  double worst = 0;
  for (std::uint64_t i = 0; i < 64 * 2000; i += 64) {
    kernels::detail::normal_block(philox, i, block);
    for (std::uint64_t k = 0; k < 64; ++k)
      worst = worse(worst, constant_math::abs(block[k] - normal_at(key, i + k)));
  }
  CHECK(worst < kernels::detail::normal_bound / 2);
}
#endif

}  // namespace tests::kernels_random
