// SPDX-License-Identifier: BSL-1.0
// Random numbers as a function of (key, counter): no state, so that every backend, thread count and order of
// evaluation draws the same numbers. Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011.
#pragma once

#include <cstdint>
#include <type_traits>

#include <dfdx/core/constant_math.hpp>

namespace dfdx {

/// Key - names a stream of random numbers. Copy it freely; derive new ones with fold_in or split.
struct Key {
  std::uint64_t seed = 0;
  constexpr explicit Key(std::uint64_t s = 0) : seed(s) {}
};

/// Bits - four 32-bit words drawn at one counter.
struct Bits {
  std::uint32_t word[4];
};

namespace detail {

// The product of two words.
struct WordProduct {
  std::uint32_t low = 0, high = 0;
  constexpr WordProduct(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
    // From a product of 64 bits nvcc goes on in 64 bits with all that is computed of it, in twice the instructions.
    if (!std::is_constant_evaluated()) {
      asm("{ .reg .u64 x; mul.wide.u32 x, %2, %3; mov.b64 {%0, %1}, x; }"
          : "=r"(low), "=r"(high)
          : "r"(a), "r"(b));
      return;
    }
#endif
    std::uint64_t const x = std::uint64_t{a} * b;
    low = static_cast<std::uint32_t>(x), high = static_cast<std::uint32_t>(x >> 32);
  }
};

}  // namespace detail

/// philox - the random bits of a key at a counter.
constexpr Bits philox(Key key, std::uint64_t counter, std::uint64_t stream = 0) {
  std::uint32_t c[4] = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
                        static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
  auto k0 = static_cast<std::uint32_t>(key.seed), k1 = static_cast<std::uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; ++round) {
    detail::WordProduct const a(0xD2511F53u, c[0]), b(0xCD9E8D57u, c[2]);
    std::uint32_t const n0 = b.high ^ c[1] ^ k0;
    std::uint32_t const n2 = a.high ^ c[3] ^ k1;
    c[1] = b.low;
    c[3] = a.low;
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

/// fold_in - a key that depends on (key, n) and is unrelated to others.
constexpr Key fold_in(Key key, std::uint64_t n) {
  Bits const b = philox(key, n, 0x666f6c645f696eull);
  return Key{(std::uint64_t{b.word[1]} << 32) | b.word[0]};
}

/// uniform_at - the i-th number of one of a key's uniform streams, in [0, 1) with 53 bits.
constexpr double uniform_at(Key key, std::uint64_t i, std::uint64_t stream = 0) {
  Bits const b = philox(key, i, stream);
  std::uint64_t const x = (std::uint64_t{b.word[1]} << 32) | b.word[0];
  return static_cast<double>(x >> 11) * 0x1p-53;
}

/// NormalPair - numbers 2 k and 2 k + 1 of one of a key's standard normal streams: the two that the bits at counter k
/// give (Box and Muller 1958). Computed by constant_math, so that no platform's libm shows in the numbers.
struct NormalPair {
  double radius, angle;
  constexpr NormalPair(Key key, std::uint64_t k, std::uint64_t stream = 0)
      : NormalPair(philox(key, k, stream)) {}
  constexpr explicit NormalPair(Bits const& b) : radius(0), angle(0) {
    std::uint64_t const x = (std::uint64_t{b.word[1]} << 32) | b.word[0];
    std::uint64_t const y = (std::uint64_t{b.word[3]} << 32) | b.word[2];
    double const u = (static_cast<double>(x >> 11) + 0.5) * 0x1p-53;
    radius = constant_math::sqrt(-2 * constant_math::log(u));
    angle = 2 * constant_math::pi * (static_cast<double>(y >> 11) * 0x1p-53);
  }
  constexpr double even() const { return radius * constant_math::cos(angle); }
  constexpr double odd() const { return radius * constant_math::sin(angle); }
};

/// normal_at - the i-th number of one of a key's standard normal streams.
constexpr double normal_at(Key key, std::uint64_t i, std::uint64_t stream = 0) {
  NormalPair const two(key, i / 2, stream);
  return i % 2 == 0 ? two.even() : two.odd();
}

namespace detail {

/// scaled_draw - 64 bits, of which these are the halves, scaled to [0, n); n is at most 2^32.
constexpr std::uint64_t scaled_draw(std::uint64_t high, std::uint64_t low, std::uint64_t n) {
  return (high * n + (low * n >> 32)) >> 32;
}

}  // namespace detail

/// integer_at - the i-th number of a key's stream of integers in [0, n), without modulo bias worth noticing:
/// a 64-bit draw is scaled by n.
constexpr std::int64_t integer_at(Key key, std::uint64_t i, std::int64_t n) {
  Bits const b = philox(key, i);
  return static_cast<std::int64_t>(detail::scaled_draw(b.word[1], b.word[0], static_cast<std::uint64_t>(n)));
}

}  // namespace dfdx
