// SPDX-License-Identifier: BSL-1.0
// Products with quantized rows: every format against the plain reference, the other factor's numbers bit by bit.
#include <dfdx/core/random.hpp>
#include <dfdx/kernels/simd/quantized.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace tests::kernels_quantized_product {

using namespace dfdx;

namespace {

constexpr Quant all[] = {Quant::q4_0, Quant::q4_1, Quant::q5_0, Quant::q5_1,
                         Quant::q8_0, Quant::q4_k, Quant::q5_k, Quant::q6_k};

// Blocks of any bits whose scales are numbers.
std::vector<std::byte> random_rows(Quant f, index_t blocks, std::uint64_t seed) {
  std::size_t const size = block_bytes(f);
  std::vector<std::byte> b(static_cast<std::size_t>(blocks) * size);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::byte>(integer_at(Key{seed}, i, 256));
  for (std::size_t i = 0; i < b.size(); i += size)
    for (std::size_t at : {std::size_t{1}, std::size_t{3}, std::size_t{209}})
      if (at < size) b[i + at] &= std::byte{0x3f};
  return b;
}

std::vector<float> normals(index_t n, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(normal_at(Key{seed}, i));
  return x;
}

template <int N>
std::vector<Q8Block<N>> q8(std::vector<float> const& x) {
  std::vector<Q8Block<N>> r(x.size() / N);
  kernels::to_q8<N>(x.data(), static_cast<index_t>(x.size()), r.data());
  return r;
}

template <int N>
void check_q8() {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto x = normals(N * 5, seed);
    for (std::size_t i = 0; i < N; ++i) x[i] = 0;
    for (std::size_t i = N; i < 2 * N; ++i) x[i] *= 1e-42f;
    for (std::size_t i = 2 * N; i < 3 * N; ++i) x[i] = static_cast<float>(i % 255) - 127 + 0.5f;  // ties
    auto const got = q8<N>(x);
    std::vector<Q8Block<N>> want(got.size());
    quantize_q8<N>(x.data(), static_cast<index_t>(x.size()), want.data());
    int wrong = 0;
    for (std::size_t b = 0; b < got.size(); ++b) {
      wrong += got[b].scale != want[b].scale;
      for (int i = 0; i < N; ++i) wrong += got[b].q[i] != want[b].q[i];
      for (int i = 0; i < N / 16; ++i) wrong += got[b].sums[i] != want[b].sums[i];
    }
    CHECK(wrong == 0);
  }
}

template <Quant F>
void check(index_t m, index_t n, index_t k) {
  constexpr int N = q8_length(F);
  CAPTURE(name_of(F), m, n, k);
  index_t const blocks = k / block_length(F);
  auto const w = random_rows(F, n * blocks, static_cast<std::uint64_t>(n + k));
  // At an odd address.
  std::vector<std::byte> moved(w.size() + 1);
  std::copy(w.begin(), w.end(), moved.begin() + 1);
  auto xs = normals(m * k, 3);
  for (std::size_t i = 0; i < xs.size(); i += 7) xs[i] = i % 2 == 0 ? 4.0f : -4.0f;  // many of +-127
  auto const x = q8<N>(xs);
  index_t const y_row = n + 3;
  std::vector<float> y(static_cast<std::size_t>(m * y_row), -7.0f);
  std::size_t const row = static_cast<std::size_t>(blocks) * block_bytes(F);
  kernels::quantized_product<F>(m, n, k, x.data(), moved.data() + 1, row, y.data(), y_row);
  int wrong = 0;
  double const eps = 6e-8 * static_cast<double>(k / 32 + 8);
  std::vector<float> numbers(static_cast<std::size_t>(k));
  for (index_t j = 0; j < n; ++j) {
    dequantize_row(F, w.data() + static_cast<std::size_t>(j) * row, k, numbers.data());
    for (index_t i = 0; i < m; ++i) {
      float const got = y[static_cast<std::size_t>(i * y_row + j)];
      float const want =
          quantized_dot<F>(w.data() + static_cast<std::size_t>(j) * row, x.data() + i * blocks, k);
      // Sums of blocks cancel: a bound by the largest that there could be, minimum and range apart.
      double size = 0;
      for (index_t b = 0; b < blocks; ++b) {
        UnpackedBlock<F> const u(w.data() + static_cast<std::size_t>(j) * row +
                                 static_cast<std::size_t>(b) * block_bytes(F));
        Q8Block<N> const& q = x[static_cast<std::size_t>(i * blocks + b)];
        for (int p = 0; p < u.length; ++p)
          size += std::abs(double{q.scale} * q.q[p]) *
                  (std::abs(double{u.scale[p / u.group]} * 64) + std::abs(double{u.low[p / u.group]}));
      }
      wrong += !(std::abs(double{got} - want) <= eps * size);
    }
  }
  CHECK(wrong == 0);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = n; j < y_row; ++j) wrong += y[static_cast<std::size_t>(i * y_row + j)] != -7.0f;
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("rows become q8 as by the reference", "[kernels]") {
  check_q8<32>();
  check_q8<256>();
  for (float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    auto x = normals(64, 1);
    x[35] = odd;
    auto const q = q8<32>(x);
    CHECK(std::isfinite(q[0].scale));
    if (std::isinf(odd)) CHECK(std::isinf(q[1].scale));
  }
}

TEST_CASE("products with quantized rows are those of the reference", "[kernels]") {
  for (Quant f : all)
    dispatch(f, [](auto format) {
      constexpr Quant F = decltype(format)::value;
      index_t const one = block_length(F);
      for (index_t m : {1, 2, 3, 5})
        for (index_t n : {1, 3, 4, 9})
          for (index_t blocks : {1, 2, 7}) check<F>(m, n, blocks * one);
      check<F>(1, 33, 36 * one);
      check<F>(0, 5, one);
      check<F>(3, 0, one);
    });
}

TEST_CASE("the largest numbers of a format do not overflow", "[kernels]") {
  for (Quant f : all)
    dispatch(f, [](auto format) {
      constexpr Quant F = decltype(format)::value;
      index_t const k = block_length(F) * 2;
      for (unsigned fill : {0xffu, 0x7fu, 0x80u, 0x00u}) {
        std::vector<std::byte> w(2 * block_bytes(F), static_cast<std::byte>(fill));
        for (std::size_t at = 0; at < w.size(); at += block_bytes(F)) {  // scales of 1
          if (F == Quant::q6_k) w[at + 208] = std::byte{0}, w[at + 209] = std::byte{0x3c};
          else w[at] = std::byte{0}, w[at + 1] = std::byte{0x3c};
          if (F == Quant::q4_1 || F == Quant::q5_1 || F == Quant::q4_k || F == Quant::q5_k)
            w[at + 2] = std::byte{0}, w[at + 3] = std::byte{0x3c};
        }
        for (float sign : {1.0f, -1.0f}) {
          auto const x = q8<q8_length(F)>(std::vector<float>(static_cast<std::size_t>(k), sign));
          float y = 0;
          kernels::quantized_product<F>(1, 1, k, x.data(), w.data(), w.size(), &y, 1);
          float const want = quantized_dot<F>(w.data(), x.data(), k);
          CAPTURE(name_of(F), fill, sign);
          CHECK(std::abs(y - want) <= 1e-5f * std::abs(want) + 1e-2f);
        }
      }
    });
}

TEST_CASE("a row's product depends on no other row", "[kernels]") {
  for (Quant f : all)
    dispatch(f, [](auto format) {
      constexpr Quant F = decltype(format)::value;
      index_t const k = block_length(F) * 5, n = 11;
      auto const w = random_rows(F, n * 5, 5);
      auto const x = q8<q8_length(F)>(normals(3 * k, 9));
      std::size_t const row = w.size() / static_cast<std::size_t>(n);
      std::vector<float> y(static_cast<std::size_t>(3 * n));
      kernels::quantized_product<F>(3, n, k, x.data(), w.data(), row, y.data(), n);
      int wrong = 0;
      for (index_t i = 0; i < 3; ++i)
        for (index_t j = 0; j < n; ++j) {
          float one = 0;
          kernels::quantized_product<F>(1, 1, k, x.data() + i * 5,
                                        w.data() + static_cast<std::size_t>(j) * row, row, &one, 1);
          wrong += one != y[static_cast<std::size_t>(i * n + j)];
        }
      CAPTURE(name_of(F));
      CHECK(wrong == 0);
    });
}

}  // namespace tests::kernels_quantized_product
