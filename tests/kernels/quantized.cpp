// SPDX-License-Identifier: BSL-1.0
// Block formats: every number of random blocks against a second decoder that looks up its bits one by one, how far
// quantized numbers are from theirs, and products with quantized rows.
#include <dfdx/core/random.hpp>
#include <dfdx/kernels/reference/quantize.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

#include "worse.hpp"

namespace tests::kernels_quantized {

using namespace dfdx;

namespace {

constexpr Quant all[] = {Quant::q4_0, Quant::q4_1, Quant::q5_0, Quant::q5_1,
                         Quant::q8_0, Quant::q4_k, Quant::q5_k, Quant::q6_k};

using Bytes = std::vector<std::byte>;

// `count` bits from bit `at` of a block; bit 0 is the lowest of byte 0.
int bits(Bytes const& b, int at, int count) {
  int r = 0;
  for (int i = 0; i < count; ++i)
    r |= (std::to_integer<int>(b[static_cast<std::size_t>((at + i) / 8)]) >> ((at + i) % 8) & 1) << i;
  return r;
}
double half(Bytes const& b, int byte) {
  int const mantissa = bits(b, byte * 8, 10), exponent = bits(b, byte * 8 + 10, 5);
  double const size = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits(b, byte * 8 + 15, 1) != 0 ? -size : size;
}

// Number i of a block, by where its bits stand.
double number(Quant f, Bytes const& b, int i) {
  auto const nibble = [&](int byte, int k) { return bits(b, (byte + k % 16) * 8 + k / 16 * 4, 4); };
  switch (f) {
    case Quant::q4_0: return half(b, 0) * (nibble(2, i) - 8);
    case Quant::q4_1: return half(b, 0) * nibble(4, i) + half(b, 2);
    case Quant::q5_0: return half(b, 0) * (nibble(6, i) + 16 * bits(b, 16 + i, 1) - 16);
    case Quant::q5_1: return half(b, 0) * (nibble(8, i) + 16 * bits(b, 32 + i, 1)) + half(b, 2);
    case Quant::q8_0: {
      int const q = bits(b, (2 + i) * 8, 8);
      return half(b, 0) * (q < 128 ? q : q - 256);
    }
    case Quant::q6_k: {
      int const part = i / 128, j = i % 128;
      int const q = bits(b, (part * 64 + j % 64) * 8 + j / 64 * 4, 4) +
                    16 * bits(b, (128 + part * 32 + j % 32) * 8 + j / 32 * 2, 2);
      int const s = bits(b, (192 + i / 16) * 8, 8);
      return half(b, 208) * (s < 128 ? s : s - 256) * (q - 32);
    }
    default: {
      int const g = i / 32, nibbles = f == Quant::q5_k ? 48 : 16;
      auto const at = [&](int byte, int first, int count) { return bits(b, (4 + byte) * 8 + first, count); };
      int const scale = g < 4 ? at(g, 0, 6) : at(g + 4, 0, 4) + 16 * at(g - 4, 6, 2);
      int const low = g < 4 ? at(g + 4, 0, 6) : at(g + 4, 4, 4) + 16 * at(g, 6, 2);
      int q = bits(b, (nibbles + g / 2 * 32 + i % 32) * 8 + g % 2 * 4, 4);
      if (f == Quant::q5_k) q += 16 * bits(b, (16 + i % 32) * 8 + g, 1);
      return half(b, 0) * scale * q - half(b, 2) * low;
    }
  }
}

Bytes random_block(Quant f, std::uint64_t seed) {
  Bytes b(block_bytes(f));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::byte>(integer_at(Key{seed}, i, 256));
  // Scales that are numbers: the top bit of the exponent off.
  for (std::size_t at : {std::size_t{1}, std::size_t{3}, std::size_t{209}})
    if (at < b.size()) b[at] &= std::byte{0xbf};
  return b;
}

std::vector<float> normals(index_t n, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(normal_at(Key{seed}, i));
  return x;
}
Bytes quantized(Quant f, std::vector<float> const& x) {
  auto const n = static_cast<index_t>(x.size());
  Bytes b(static_cast<std::size_t>(n / block_length(f)) * block_bytes(f));
  REQUIRE(quantize_row(f, x.data(), n, b.data()));
  return b;
}
std::vector<float> dequantized(Quant f, Bytes const& b) {
  std::vector<float> x(b.size() / block_bytes(f) * static_cast<std::size_t>(block_length(f)));
  dequantize_row(f, b.data(), static_cast<index_t>(x.size()), x.data());
  return x;
}

}  // namespace

TEST_CASE("every number of a block is where the format says", "[quantized]") {
  for (Quant f : all)
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      Bytes const b = random_block(f, seed * 8 + static_cast<std::uint64_t>(f));
      auto const x = dequantized(f, b);
      int wrong = 0;
      for (int i = 0; i < block_length(f); ++i) {
        double const expected = number(f, b, i);
        double const size =
            std::abs(expected) + (f >= Quant::q4_k ? 64 * std::abs(half(b, 2)) : std::abs(half(b, 2)));
        wrong += !(std::abs(x[static_cast<std::size_t>(i)] - expected) <= 3e-7 * size);
      }
      CAPTURE(name_of(f), seed);
      CHECK(wrong == 0);
    }
}

TEST_CASE("quantized numbers are as near as their format lets them be", "[quantized]") {
  // The root mean square of the error of normal numbers, steps of the range of 32 numbers over the root of 12.
  double const bounds[] = {0.095, 0.080, 0.046, 0.039, 0.0062, 0.072, 0.037, 0.018};
  for (Quant f : all) {
    auto const x = normals(256 * 64, 7);
    auto const y = dequantized(f, quantized(f, x));
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += (double{x[i]} - y[i]) * (double{x[i]} - y[i]);
    double const error = std::sqrt(sum / static_cast<double>(x.size()));
    CAPTURE(name_of(f), error);
    CHECK(error < bounds[static_cast<int>(f)]);
    CHECK(error > bounds[static_cast<int>(f)] / 2);
  }
}

TEST_CASE("what a block can hold comes back the same", "[quantized]") {
  for (Quant f : all) {
    // Small integers with a scale of a power of two: 0..top or -(top+1)..top, every group using its whole range.
    int const top = f == Quant::q8_0                                             ? 127
                    : f == Quant::q6_k                                           ? 31
                    : (f == Quant::q4_0 || f == Quant::q4_1 || f == Quant::q4_k) ? 15
                                                                                 : 31;
    bool const sign = f == Quant::q4_0 || f == Quant::q5_0;
    std::vector<float> x(256);
    for (int i = 0; i < 256; ++i) {
      int const k = i % static_cast<int>(group_length(f));
      int q = k * (top + 1) / static_cast<int>(group_length(f));
      if (k == static_cast<int>(group_length(f)) - 1) q = top;
      if (sign) q -= (top + 1) / 2;
      if (f == Quant::q8_0 && k == 1) q = -127;
      if (f == Quant::q6_k) q = k % 2 == 0 ? -q - 1 : q;
      if (f == Quant::q6_k && k == 0) q = -32;
      x[static_cast<std::size_t>(i)] = static_cast<float>(q) * (f >= Quant::q4_k ? 63.0f / 16 : 0.25f);
    }
    auto const y = dequantized(f, quantized(f, x));
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) worst = worse(worst, std::abs(double{x[i]} - y[i]));
    CAPTURE(name_of(f), worst);
    CHECK(worst <= (f >= Quant::q4_k ? 0.1 : 0));
  }
}

TEST_CASE("zeros, tiny and huge numbers", "[quantized]") {
  for (Quant f : all) {
    CAPTURE(name_of(f));
    std::vector<float> x(256, 0.0f);
    for (float y : dequantized(f, quantized(f, x))) CHECK(y == 0);
    x.assign(256, 1e-41f);
    for (float y : dequantized(f, quantized(f, x))) CHECK(std::abs(y) < 1e-7f);
    x.assign(256, 60000.0f);
    for (float y : dequantized(f, quantized(f, x))) CHECK(std::abs(y / 60000.0f - 1) < 0.01f);
    x.assign(256, -3.0f);
    for (float y : dequantized(f, quantized(f, x))) CHECK(std::abs(y / -3.0f - 1) < 0.01f);
    Bytes b(block_bytes(f) * 256 / static_cast<std::size_t>(block_length(f)));
    for (float bad : {std::nanf(""), HUGE_VALF, -1e6f}) {
      x[5] = bad;
      CHECK(!quantize_row(f, x.data(), 256, b.data()));
    }
  }
}

TEST_CASE("products of quantized rows are those of their numbers", "[quantized]") {
  for (Quant f : all)
    dispatch(f, [&](auto format) {
      constexpr Quant F = decltype(format)::value;
      constexpr int N = q8_length(F);
      auto const w = normals(1024, 3), x = normals(1024, 4);
      Bytes const row = quantized(F, w);
      std::vector<Q8Block<N>> other(1024 / N);
      quantize_q8<N>(x.data(), 1024, other.data());
      double exact = 0, sizes = 0;
      auto const numbers = dequantized(F, row);
      for (int i = 0; i < 1024; ++i) {
        auto const& b = other[static_cast<std::size_t>(i / N)];
        double const y = double{b.scale} * b.q[i % N];
        CHECK(std::abs(y - x[static_cast<std::size_t>(i)]) <= b.scale * 0.50001);
        exact += numbers[static_cast<std::size_t>(i)] * y;
        sizes += std::abs(numbers[static_cast<std::size_t>(i)] * y);
      }
      CAPTURE(name_of(F));
      CHECK(std::abs(quantized_dot<F>(row.data(), other.data(), 1024) - exact) < 2e-6 * sizes);
    });
}

TEST_CASE("llama2.c's groups of int8", "[quantized]") {
  auto const x = normals(128, 5);
  Bytes q(128), scales(8);
  REQUIRE(quantize_groups(x.data(), 128, 64, q.data(), scales.data()));
  std::vector<float> y(128);
  dequantize_groups(q.data(), scales.data(), 64, 128, y.data());
  for (std::size_t g = 0; g < 2; ++g) {
    float scale;
    std::memcpy(&scale, scales.data() + 4 * g, 4);
    for (std::size_t i = g * 64; i < g * 64 + 64; ++i) CHECK(std::abs(x[i] - y[i]) <= scale * 0.50001f);
  }
  auto const w = normals(100, 6);
  double exact = 0;
  for (std::size_t i = 0; i < 100; ++i) exact += double{y[i + 20]} * w[i];
  CHECK(std::abs(groups_dot(q.data(), scales.data(), 64, 20, 100, w.data()) - exact) < 1e-5);
  std::vector<float> const bad(64, HUGE_VALF);
  CHECK(!quantize_groups(bad.data(), 64, 64, q.data(), scales.data()));
}

}  // namespace tests::kernels_quantized
