// SPDX-License-Identifier: BSL-1.0
// Products of many rows by panels: against sums in double, and the same bits for any number of rows beside.
#include <dfdx/core/random.hpp>
#include <dfdx/kernels/reference/quantize.hpp>
#include <dfdx/kernels/simd/panel.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstring>

namespace tests::kernels_panel {

using namespace dfdx;

namespace {

std::vector<float> normals(index_t n, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(normal_at(Key{seed}, i));
  return x;
}

// y[i, j] = x[i] . w[j], and how large its terms are.
void check_sums(index_t m, index_t n, index_t k, std::vector<float> const& x, std::vector<float> const& w,
                std::vector<float> const& y, index_t y_row, double eps) {
  int wrong = 0;
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < y_row; ++j) {
      float const got = y[static_cast<std::size_t>(i * y_row + j)];
      if (j >= n) {
        wrong += got != -7.0f;
        continue;
      }
      double want = 0, size = 0;
      for (index_t p = 0; p < k; ++p) {
        double const term =
            double{x[static_cast<std::size_t>(i * k + p)]} * w[static_cast<std::size_t>(j * k + p)];
        want += term, size += std::abs(term);
      }
      wrong += !(std::abs(got - want) <= eps * size);
    }
  CHECK(wrong == 0);
}

std::vector<float> float_product(index_t m, index_t n, index_t k, std::vector<float> const& x,
                                 std::vector<float> const& w, index_t y_row) {
  std::vector<float> y(static_cast<std::size_t>(m * y_row), -7.0f);
  auto const row = [&](index_t j, index_t from, index_t count, float* to) {
    float const* const p = w.data() + j * k + from;
    if (j % 2 == 0) return p;
    std::copy(p, p + count, to);
    return static_cast<float const*>(to);
  };
  kernels::panel_product(m, n, k, x.data(), k, row, y.data(), y_row);
  return y;
}

template <Quant F>
void check_quantized(index_t m, index_t n, index_t k) {
  CAPTURE(name_of(F), m, n, k);
  auto const numbers = normals(n * k, 5), xs = normals(m * k, 6);
  std::size_t const row = static_cast<std::size_t>(k / block_length(F)) * block_bytes(F);
  std::vector<std::byte> w(static_cast<std::size_t>(n) * row + 1);  // at an odd address
  std::vector<float> rounded(numbers.size()), x_rounded(xs.size());
  for (index_t j = 0; j < n; ++j) {
    std::byte* const to = w.data() + 1 + static_cast<std::size_t>(j) * row;
    REQUIRE(quantize_row(F, numbers.data() + j * k, k, to));
    dequantize_row(F, to, k, rounded.data() + j * k);
  }
  constexpr int length = q8_length(F);
  std::vector<Q8Block<length>> q(xs.size() / length);
  kernels::to_q8<length>(xs.data(), m * k, q.data());
  for (std::size_t i = 0; i < xs.size(); ++i)
    x_rounded[i] = q[i / length].scale * static_cast<float>(q[i / length].q[i % length]);
  index_t const y_row = n + 3;
  std::vector<float> y(static_cast<std::size_t>(m * y_row), -7.0f);
  if (!kernels::quantized_panels<F>(m, n, k, q.data(), w.data() + 1, row, y.data(), y_row)) return;
  // Formats with a minimum and those whose numbers are made positive have larger terms than the products.
  check_sums(m, n, k, x_rounded, rounded, y, y_row, 2e-5);
  // A part of the rows of either gives the same bits.
  index_t const first = m / 2, from = n / 3;
  std::vector<float> part(static_cast<std::size_t>((m - first) * y_row), -7.0f);
  kernels::quantized_panels<F>(m - first, n - from, k, q.data() + first * (k / length),
                               w.data() + 1 + static_cast<std::size_t>(from) * row, row, part.data(), y_row);
  for (index_t i = first; i < m; ++i)
    CHECK(std::memcmp(part.data() + (i - first) * y_row, y.data() + i * y_row + from,
                      static_cast<std::size_t>(n - from) * 4) == 0);
}

}  // namespace

TEST_CASE("panels of floats", "[kernels]") {
  for (index_t m : {1, 2, 5, 8, 13, 40})
    for (index_t n : {1, 7, 16, 33, 70})
      for (index_t k : {1, 15, 48, 100, 1030}) {
        CAPTURE(m, n, k);
        auto const x = normals(m * k, 1), w = normals(n * k, 2);
        auto const y = float_product(m, n, k, x, w, n + 3);
        check_sums(m, n, k, x, w, y, n + 3, 1e-5);
        std::vector<float> const one(x.end() - k, x.end());
        auto const last = float_product(1, n, k, one, w, n + 3);
        CHECK(std::memcmp(last.data(), y.data() + (m - 1) * (n + 3), static_cast<std::size_t>(n) * 4) == 0);
      }
}

TEST_CASE("panels of blocks", "[kernels]") {
  for (index_t m : {1, 5, 8, 20})
    for (index_t n : {1, 16, 33, 70})
      for (index_t k : {32, 96, 288}) {
        check_quantized<Quant::q8_0>(m, n, k);
        check_quantized<Quant::q4_0>(m, n, k);
        check_quantized<Quant::q4_1>(m, n, k);
        check_quantized<Quant::q5_0>(m, n, k);
        check_quantized<Quant::q5_1>(m, n, k);
        if (k == 96) continue;
        index_t const large = k == 32 ? 256 : 768;
        check_quantized<Quant::q4_k>(m, n, large);
        check_quantized<Quant::q5_k>(m, n, large);
        check_quantized<Quant::q6_k>(m, n, large);
      }
}

}  // namespace tests::kernels_panel
