// SPDX-License-Identifier: BSL-1.0
// Random numbers in fresh memory, now: uniform, randn, randint, permutation. The same key gives the same numbers for
// every backend and thread count. Those that a program draws are in vocabulary/random.hpp.
#pragma once

#include <cmath>

#include <dfdx/kernels/random.hpp>
#include <dfdx/vocabulary/create.hpp>

namespace dfdx {

namespace detail {

inline void require_floating(char const* name, DType d) {
  if (!is_floating(d)) raise(name, ": floating dtype required, got ", d);
}
inline void require_range(std::int64_t low, std::int64_t high) {
  if (low >= high) raise("randint: low must be below high");
  if (low < -(std::int64_t{1} << 53) || high > (std::int64_t{1} << 53)) raise("randint: beyond 2^53");
  // integer_at scales 32 bits twice; a wider range would need 128-bit products.
  if (static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) > (std::uint64_t{1} << 32))
    raise("randint: more than 2^32 different values");
}

// In [low, high) also after rounding to the dtype, which a draw close to 1 might not be.
template <int = 0>
Array uniform_array(char const* name, Shape const& shape, DType dtype, Key key, double low, double high) {
  require_floating(name, dtype);
  if (!(low <= high)) raise(name, ": low must not be above high");
  if (!std::isfinite(high - low)) raise(name, ": finite bounds required");
  Array wide(Meta{DType::f64, sized(name, shape)});
  auto* const u = wide.data<double>();
  index_t const n = wide.size();
  kernels::draw_uniform(key, 0, u, n);
  auto const scale = [&]<class T>(T* y) {
    for (index_t i = 0; i < n; ++i) {
      y[i] = static_cast<T>(static_cast<compute_t<T>>(low + (high - low) * u[i]));
      if (low < high && !(static_cast<double>(y[i]) < high))
        y[i] = static_cast<T>(static_cast<compute_t<T>>(low));
    }
  };
  if (dtype == DType::f64) return scale(u), wide;
  Array r(Meta{dtype, shape});
  if (dtype == DType::f32) scale(r.data<float>());
  else if (dtype == DType::f16) scale(r.data<float16>());
  else scale(r.data<bfloat16>());
  return r;
}
template <int = 0>
Array normal_array(char const* name, Shape const& shape, DType dtype, Key key) {
  require_floating(name, dtype);
  if (dtype == DType::f32) {
    Array r(Meta{dtype, sized(name, shape)});
    kernels::draw_normal(key, 0, r.data<float>(), r.size());
    return r;
  }
  return generate_as(name, shape, dtype,
                     [key](index_t i) { return normal_at(key, static_cast<std::uint64_t>(i)); });
}
template <int = 0>
Array integers_array(Shape const& shape, DType dtype, Key key, std::int64_t low, std::int64_t high) {
  require_range(low, high);
  constexpr std::int64_t beyond_i32 = std::int64_t{1} << 31;
  std::int64_t const least = dtype == DType::i32 ? -beyond_i32 : dtype == DType::i8 ? -128 : 0;
  std::int64_t const most = dtype == DType::i32  ? beyond_i32
                            : dtype == DType::u8 ? 256
                            : dtype == DType::i8 ? 128
                                                 : 2;
  bool const is_narrow = dtype == DType::i32 || is_byte(dtype) || dtype == DType::boolean;
  if (is_narrow && (low < least || high > most))
    raise("randint: ", dtype, " does not hold all of [", Position{low}, ", ", Position{high}, ")");
  if (dtype == DType::f16 && (low < -65504 || high > 65505))
    raise("randint: f16 does not hold all of [", Position{low}, ", ", Position{high}, ")");
  Array const wide(Meta{DType::i64, sized("randint", shape)});
  kernels::draw_integers(key, low, high - low, wide.data<std::int64_t>(), wide.size());
  if (dtype == DType::i64) return wide;
  Array r(Meta{dtype, shape});
  kernels::convert(wide.operand(), r.operand());
  return r;
}

}  // namespace detail

/// uniform - independent draws from [low, high). Element i is drawn at counter i of the key, here and in all that
/// follows: the same numbers for every backend and thread count.
///
/// Shapes    -> [S...], as given
/// Dtypes    floating; untyped f32, unless another is named
/// Errors    "uniform: floating dtype required, got i32"
/// Source    Salmon et al., SC 2011 (Philox)
template <int = 0>
Array uniform(Extents const& shape, Key key, double low = 0, double high = 1, DType dtype = DType::f32) {
  return detail::uniform_array("uniform", shape.shape, dtype, key, low, high);
}
template <class T, std::size_t... Dims>
auto uniform(Key key, double low = 0, double high = 1,
             Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "uniform", shape, [&](Shape const& s, DType d) { return uniform(s, key, low, high, d); });
}

/// randn - independent draws from the standard normal distribution.
///
/// Shapes    -> [S...], as given
/// Dtypes    floating; untyped f32, unless another is named
/// Errors    those of uniform
/// Source    Box and Muller 1958
template <int = 0>
Array randn(Extents const& shape, Key key, DType dtype = DType::f32) {
  return detail::normal_array("randn", shape.shape, dtype, key);
}
template <class T, std::size_t... Dims>
auto randn(Key key, Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "randn", shape, [&](Shape const& s, DType d) { return randn(s, key, d); });
}

/// randint - independent integers from [low, high).
///
/// Shapes    -> [S...], as given
/// Dtypes    any; untyped i64, unless another is named
/// Errors    "randint: low must be below high"; "randint: more than 2^32 different values"; "randint: u8 does not hold
///           all of [0, 300)"
/// Source    Salmon et al., SC 2011 (Philox)
template <int = 0>
Array randint(Extents const& shape, Key key, std::int64_t low, std::int64_t high, DType dtype = DType::i64) {
  return detail::integers_array(shape.shape, dtype, key, low, high);
}
template <class T, std::size_t... Dims>
auto randint(Key key, std::int64_t low, std::int64_t high,
             Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "randint", shape, [&](Shape const& s, DType d) { return randint(s, key, low, high, d); });
}

/// permutation - the integers 0 ... n-1 in random order, all orders equally likely.
///
/// Shapes    -> [N]
/// Dtypes    untyped i64, typed integers
/// Source    Fisher and Yates 1938
template <class T, std::size_t... Dims>
  requires(detail::created<T, Dims...>::static_rank == 1 &&
           std::is_integral_v<typename detail::created<T, Dims...>::value_type>)
auto permutation(Key key, Extents const& shape = detail::created<T, Dims...>::static_shape) {
  auto r = arange<T, Dims...>(0, 1, shape);
  kernels::permute_in_place(r.data(), r.size(), key);
  return r;
}
template <int = 0>
Array permutation(index_t n, Key key) {
  if (n < 0 || n > index_t{1} << 53) raise("permutation: of ", Position{n}, " numbers");
  Array r = arange(n);
  kernels::permute_in_place(r.data<std::int64_t>(), n, key);
  return r;
}

}  // namespace dfdx
