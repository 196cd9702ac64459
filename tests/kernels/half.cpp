// SPDX-License-Identifier: BSL-1.0
// 16-bit numbers: conversions of many against those of one, and products against the definition.
#include <dfdx/kernels/half_map.hpp>
#include <dfdx/kernels/loop_values.hpp>
#include <dfdx/kernels/matmul.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace tests::kernels_half {

namespace {

using namespace dfdx;

template <class T>
bool same(T a, T b) {
  float const x = a, y = b;
  return std::isnan(x) ? std::isnan(y) : a.bits == b.bits;
}

template <class T>
void check_conversions() {
  std::vector<T> all(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) all[i].bits = static_cast<std::uint16_t>(i);
  std::vector<float> wide(65536);
  kernels::widen(wide.data(), all.data(), 65536);
  std::vector<float> near = wide;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    float const one = all[i];
    REQUIRE((std::isnan(one) ? std::isnan(wide[i])
                             : std::bit_cast<std::uint32_t>(one) == std::bit_cast<std::uint32_t>(wide[i])));
    // What lies between this number and the next, the middle first, and just beside the middle.
    auto const bits = std::bit_cast<std::uint32_t>(one);
    std::uint32_t const middle = std::is_same_v<T, bfloat16> ? 0x8000 : 0x1000;
    for (std::uint32_t more : {middle, middle - 1, middle + 1, middle / 3})
      near.push_back(std::bit_cast<float>(bits + more));
  }
  for (float big : {65504.0f, 65519.9f, 65520.0f, 1e30f, 3.4e38f, INFINITY, 5.9e-8f, 2.9e-8f, 3e-8f, 1e-40f})
    near.push_back(big), near.push_back(-big);
  std::vector<T> back(near.size());
  kernels::narrow(back.data(), near.data(), static_cast<index_t>(near.size()));
  for (std::size_t i = 0; i < near.size(); ++i) REQUIRE(same(back[i], static_cast<T>(near[i])));
#if !defined(DFDX_RVV)
  // The same in lanes, as fused loops have them.
  constexpr std::size_t size = kernels::lane<float>::size;
  for (std::size_t i = 0; i + size <= near.size(); i += size) {
    T narrowed[size];
    float widened[size];
    kernels::detail::store_narrow(narrowed, kernels::lane<float>::load_unaligned(near.data() + i));
    kernels::detail::load_wide<float>(back.data() + i).store_unaligned(widened);
    for (std::size_t k = 0; k < size; ++k) {
      REQUIRE(same(narrowed[k], back[i + k]));
      REQUIRE(same(static_cast<T>(widened[k]), back[i + k]));
    }
  }
#endif
  // And floats that stay floats.
  using L = kernels::Lanes<loop_code::four_bytes>;
  auto const lanes = static_cast<std::size_t>(kernels::detail::lane_size_of<L>());
  for (std::size_t i = 0; i + lanes <= near.size(); i += lanes) {
    auto const count = static_cast<int>(lanes);
    auto const x = L::load<false>(near.data() + i, 1, count);
    std::vector<float> held(lanes);
    L::store<false>(held.data(), 1, kernels::detail::applied<L, kernels::detail::Held<T>, float, float>(x),
                    count);
    for (std::size_t k = 0; k < lanes; ++k) {
      float const want = back[i + k];
      REQUIRE((std::isnan(want)
                   ? std::isnan(held[k])
                   : std::bit_cast<std::uint32_t>(want) == std::bit_cast<std::uint32_t>(held[k])));
    }
  }
}

template <class T>
void check_ends() {
  for (index_t n = 0; n < 50; ++n) {
    std::vector<float> from(static_cast<std::size_t>(n) + 1, 3.25f), to(from.size(), -1.0f);
    std::vector<T> half(from.size(), T(-1.0f));
    kernels::narrow(half.data(), from.data(), n);
    kernels::widen(to.data(), half.data(), n);
    CHECK(std::count(to.begin(), to.end(), 3.25f) == n);
    CHECK(to.back() == -1.0f);
    CHECK(half.back() == T(-1.0f));
  }
}

// The float16 next to x, to the even one of two: by its definition, not by a conversion.
float16 nearest(double x) {
  float16 y;
  auto const sign = static_cast<std::uint16_t>(std::signbit(x) ? 0x8000 : 0);
  if (std::isnan(x)) return y.bits = 0x7e00, y;
  double const size = std::fabs(x);
  if (size >= 65520) return y.bits = sign | 0x7c00, y;  // half a step above the largest
  int const step = std::max(size == 0 ? -14 : std::ilogb(size), -14) - 10;
  // Steps of this size below it, and the 1024 of each power of two before.
  auto const steps = static_cast<int>(std::nearbyint(std::ldexp(size, -step)));
  y.bits = static_cast<std::uint16_t>(sign | ((step + 24) * 1024 + steps));
  return y;
}

// Every float16 with some others, all kinds of them; ends in the middle of vectors.
template <kernels::HalfOperation What, class F>
index_t wrong_results(F const& f) {
  index_t wrong = 0;
  for (std::uint16_t other : {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc01, 0x3555, 0x4248, 0x7bff,
                              0xfc00, 0x7e00, 0x1234, 0xd678}) {
    for (bool turned : {false, true}) {
      std::vector<float16> a(65536), b(a.size()), y(a.size() + 1, float16(3.0f));
      for (std::uint32_t i = 0; i < 65536; ++i) a[i].bits = static_cast<std::uint16_t>(i), b[i].bits = other;
      if (turned) std::swap(a, b);
      void const* const in[] = {a.data(), b.data()};
      index_t const n = 65536 - other % 11;
      kernels::half_block<What>(y.data(), in, n);
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        wrong += !same(y[i], nearest(f(static_cast<float>(a[i]), static_cast<float>(b[i]))));
      wrong += y[static_cast<std::size_t>(n)].bits != float16(3.0f).bits;
    }
  }
  return wrong;
}

// a [m, k] times b [k, n], each by rows or by columns, the rows (or columns) of all three `pad` longer than they must
// be. With Symbols the extents are known when it runs.
template <class T, index_t M, index_t N, index_t K, bool ByRowsA, bool ByRowsB, index_t Pad, bool Symbols>
void check_product() {
  constexpr index_t a_row = ByRowsA ? K + Pad : 1, a_col = ByRowsA ? 1 : M + Pad;
  constexpr index_t b_row = ByRowsB ? N + Pad : 1, b_col = ByRowsB ? 1 : K + Pad, c_row = N + Pad;
  constexpr index_t m = Symbols ? extent::symbol(0) : M, n = Symbols ? extent::symbol(1) : N;
  using Code = kernels::Numbers<2, m, K, a_row, a_col, 2, K, n, b_row, b_col, 2, m, n, c_row, 1>;
  using Product = kernels::Matmul<T, Code, kernels::store_sum>;
  index_t const symbols[] = {M, N};
  std::vector<T> a(static_cast<std::size_t>((M + Pad) * (K + Pad))),
      b(static_cast<std::size_t>((N + Pad) * (K + Pad))), c(static_cast<std::size_t>(M * c_row), T(9.0f));
  std::uint32_t seed = 7;
  auto const fill = [&](std::vector<T>& v) {
    for (T& x : v) x = static_cast<float>((seed = seed * 1664525u + 1013904223u) >> 8) / 8388608.0f - 1.0f;
  };
  fill(a), fill(b);
  // The operands have room as f32: this is not the plain loop, of which the numbers alone would not tell. (They need
  // none where they are multiplied as they are.)
#if defined(DFDX_RVV)
  constexpr bool as_they_are =
      (std::is_same_v<T, float16> && kernels::rvv::multiplies_halves) || (m == 1 && b_row == 1);
#else
  constexpr bool as_they_are = std::is_same_v<T, bfloat16> && kernels::uses_bf16_products(M, N, K);
#endif
  std::size_t const as_floats =
      as_they_are ? 0 : static_cast<std::size_t>(M * K + K * N + M * N) * sizeof(float);
  CHECK(Product::workspace(symbols) >= as_floats);
  std::vector<float> work(Product::workspace(symbols) / sizeof(float) + 16);
  auto const address = (reinterpret_cast<std::uintptr_t>(work.data()) + 63) / 64 * 64;
  void* const base[] = {a.data(), b.data(), c.data()};
  Product::run(base, reinterpret_cast<void*>(address), symbols);
  double const eps = std::is_same_v<T, bfloat16> ? 1.0 / 256 : 1.0 / 2048;
  for (index_t i = 0; i < M; ++i)
    for (index_t j = 0; j < c_row; ++j) {
      double const got = static_cast<double>(static_cast<float>(c[static_cast<std::size_t>(i * c_row + j)]));
      if (j >= N) {
        CHECK(got == 9.0);
        continue;
      }
      double want = 0;
      for (index_t k = 0; k < K; ++k)
        want += static_cast<double>(static_cast<float>(a[static_cast<std::size_t>(i * a_row + k * a_col)])) *
                static_cast<double>(static_cast<float>(b[static_cast<std::size_t>(k * b_row + j * b_col)]));
      CHECK(std::fabs(got - want) <= eps * std::fabs(want) + 1e-5);
    }
}

template <class T, index_t M, index_t N, index_t K, index_t Pad, bool Symbols>
void check_layouts() {
  check_product<T, M, N, K, true, true, Pad, Symbols>();
  check_product<T, M, N, K, true, false, Pad, Symbols>();
  check_product<T, M, N, K, false, true, Pad, Symbols>();
  check_product<T, M, N, K, false, false, Pad, Symbols>();
}

}  // namespace

TEST_CASE("many 16-bit numbers are converted as one is", "[kernels]") {
  check_conversions<float16>();
  check_conversions<bfloat16>();
  check_ends<float16>();
  check_ends<bfloat16>();
}

TEST_CASE("arithmetic of 16-bit numbers is exact, rounded once", "[kernels]") {
  using enum kernels::HalfOperation;
  CHECK(wrong_results<add>([](double x, double y) { return x + y; }) == 0);
  CHECK(wrong_results<sub>([](double x, double y) { return x - y; }) == 0);
  CHECK(wrong_results<mul>([](double x, double y) { return x * y; }) == 0);
  CHECK(wrong_results<div>([](double x, double y) { return x / y; }) == 0);
}

TEST_CASE("products of 16-bit numbers are those of f32, rounded once", "[kernels]") {
  check_layouts<bfloat16, 17, 33, 21, 0, false>();
  check_layouts<bfloat16, 5, 3, 64, 2, false>();
  check_layouts<float16, 32, 20, 9, 3, false>();
  check_layouts<float16, 13, 18, 40, 1, true>();
  check_layouts<float16, 3, 21, 45, 1, false>();
  check_layouts<float16, 15, 150, 7, 0, false>();
  check_layouts<bfloat16, 1, 1, 1, 0, true>();
  check_layouts<bfloat16, 1, 37, 70, 2, false>();
  check_layouts<float16, 1, 19, 133, 0, false>();
}

}  // namespace tests::kernels_half
