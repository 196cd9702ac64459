// SPDX-License-Identifier: BSL-1.0
// Making values: zeros, ones, full, empty, eye, arange, linspace, from, and random ones, in fresh memory, now. Each has
// a typed form, zeros<Tensor<float, 2, 3>>() or zeros<float, 2, 3>(), and an untyped one, zeros({2, 3}).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <dfdx/kernels/map.hpp>
#include <dfdx/kernels/random.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/lists.hpp>
#include <dfdx/value/tensor.hpp>

namespace dfdx {

namespace detail {

template <class T, std::size_t... D>
struct Created;
template <element T, std::size_t... D>
struct Created<T, D...> : std::type_identity<Tensor<T, D...>> {};
template <typed T>
struct Created<T> : std::type_identity<T> {};
template <class T, std::size_t... D>
using created = typename Created<T, D...>::type;

// An extent that a type leaves open is dyn, one that was given is a number.
inline Shape sized(char const* name, Shape const& s, Shape const* type = nullptr) {
  if (s.is_static()) return s;
  Text why = make_text(name, ": every extent must be known and not negative, got ");
  if (type != nullptr && s == *type) raise(why.put(s));
  for (int i = 0; i < s.rank; ++i) why.put(i == 0 ? "[" : ", ").put(Position{s[i]});
  raise(why.put("]"));
}

// Element i is f(i), a number.
template <class F>
Array generate_as(char const* name, Shape const& shape, DType dtype, F const& f) {
  Array r(Meta{dtype, sized(name, shape)});
  Operand const out = r.operand();
  for (index_t i = 0, n = r.size(); i < n; ++i) write_number(out, i, f(i));
  return r;
}

template <class N>
Array filled_with(char const* name, Shape const& shape, N value, DType dtype) {
  Array r(Meta{dtype, sized(name, shape)});
  if (r.size() == 0) return r;
  write_number(r.operand(), 0, value);
  auto* const to = static_cast<std::byte*>(r.operand().data);
  auto const all = static_cast<std::size_t>(r.size()) * size_of(dtype);
  std::size_t done = size_of(dtype);
  // What is there is repeated, twice as much each time as far as the first cache holds it.
  while (done < all) {
    std::size_t const more = std::min({done, all - done, std::size_t{8192}});
    std::memcpy(to + done, to, more);
    done += more;
  }
  return r;
}

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

// A Tensor around what an untyped maker made; its constructor checks the shape.
template <class R, class Make>
R typed_from(char const* name, Extents const& shape, Make make) {
  return R(make(sized(name, shape.shape, &R::static_shape), dtype_v<typename R::value_type>));
}

template <class R, class N>
R typed_full(char const* name, Extents const& shape, N value) {
  return typed_from<R>(name, shape, [&](Shape const& s, DType d) { return filled_with(name, s, value, d); });
}

// What arange counts with: integers if all are.
template <class... N>
using step_number = std::conditional_t<(std::is_integral_v<N> && ...), index_t, double>;
template <class A, class C>
struct Steps {
  using N = step_number<A, C>;
  A start;
  C step;
  N operator()(index_t i) const {
    // Of integers as those without a sign, whose products on the way do not overflow.
    using M = std::conditional_t<std::is_integral_v<N>, std::uint64_t, double>;
    return static_cast<N>(static_cast<M>(start) + static_cast<M>(i) * static_cast<M>(step));
  }
};
inline index_t steps_between(double from, double to, double step) {
  double const n = std::ceil((to - from) / step);
  if (!(n < 0x1p53)) raise("arange: too many elements");
  return n > 0 ? static_cast<index_t>(n) : 0;
}
inline index_t steps_between(index_t from, index_t to, index_t step) {
  if (step > 0 ? from >= to : from <= to) return 0;
  // Differences of those without a sign do not overflow.
  auto const u = [](index_t i) { return static_cast<std::uint64_t>(i); };
  std::uint64_t const apart = step > 0 ? u(to) - u(from) : u(from) - u(to),
                      by = step > 0 ? u(step) : 0 - u(step), n = (apart - 1) / by + 1;
  if (n >= std::uint64_t{1} << 53) raise("arange: too many elements");
  return static_cast<index_t>(n);
}

}  // namespace detail

/// empty - memory that is not initialised. With dyn dims give the shape.
///
/// Shapes    -> [S...], as given
/// Dtypes    any; untyped f32, unless another is named
/// Errors    "empty: every extent must be known and not negative, got [dyn, 3]"; the other makers alike
/// Source    elementary
template <class T, std::size_t... Dims>
detail::created<T, Dims...> empty(Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::created<T, Dims...>::uninitialized(
      detail::sized("empty", shape.shape, &detail::created<T, Dims...>::static_shape));
}
inline Array empty(Extents const& shape, DType dtype = DType::f32) {
  return Array(Meta{dtype, detail::sized("empty", shape.shape)});
}

/// full - every element is `value`.
///
/// Shapes    -> [S...], as given
/// Dtypes    any; untyped f32, unless another is named
/// Source    elementary
template <class N>
  requires std::is_convertible_v<N, double>
Array full(Extents const& shape, N value, DType dtype = DType::f32) {
  return detail::filled_with("full", shape.shape, value, dtype);
}
template <class T, std::size_t... Dims, class N>
  requires std::is_convertible_v<N, double>
auto full(N value, Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_full<detail::created<T, Dims...>>("full", shape, value);
}

/// zeros, ones - every element is 0, or 1.
///
/// Shapes    -> [S...], as given
/// Dtypes    any; untyped f32, unless another is named
/// Source    elementary
template <class T, std::size_t... Dims>
auto zeros(Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_full<detail::created<T, Dims...>>("zeros", shape, 0);
}
inline Array zeros(Extents const& shape, DType dtype = DType::f32) {
  return detail::filled_with("zeros", shape.shape, 0, dtype);
}
template <class T, std::size_t... Dims>
auto ones(Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_full<detail::created<T, Dims...>>("ones", shape, 1);
}
inline Array ones(Extents const& shape, DType dtype = DType::f32) {
  return detail::filled_with("ones", shape.shape, 1, dtype);
}

/// eye - ones on the main diagonal of a matrix, zeros elsewhere.
///
/// Shapes    -> [rows, columns]; eye<float, 3>() -> [3, 3]
/// Dtypes    any; untyped f32, unless another is named
/// Source    elementary
inline Array eye(index_t rows, index_t columns, DType dtype = DType::f32) {
  return detail::generate_as("eye", make_shape(rows, columns), dtype,
                             [columns](index_t i) { return i / columns == i % columns ? 1.0 : 0.0; });
}
inline Array eye(index_t n, DType dtype = DType::f32) { return eye(n, n, dtype); }
template <class T, std::size_t... Dims>
  requires(detail::created<T, Dims...>::static_rank == 2)
auto eye(Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "eye", shape, [](Shape const& s, DType d) { return eye(s[0], s[1], d); });
}
template <element T, std::size_t N>
  requires(N != dyn)
auto eye() {
  return eye<T, N, N>();
}

/// arange - start, start + step, ...: as many as the Tensor has elements, or, untyped, those below `stop`.
///
/// Shapes    -> [N]; untyped N = (stop - start) / step, rounded up
/// Dtypes    untyped: i64 if all numbers are integers, else f32, unless another is named
/// Errors    "arange: step is zero"
/// Source    NumPy's arange
template <class T, std::size_t... Dims, class A = int, class C = int>
  requires(detail::created<T, Dims...>::static_rank == 1 && std::is_convertible_v<A, double> &&
           std::is_convertible_v<C, double>)
auto arange(A start = 0, C step = 1, Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>("arange", shape, [&](Shape const& s, DType d) {
    return detail::generate_as("arange", s, d, detail::Steps<A, C>{start, step});
  });
}
template <class A, class B, class C = int>
  requires std::is_arithmetic_v<A> && std::is_arithmetic_v<B> && std::is_arithmetic_v<C>
Array arange(A start, B stop, C step = 1,
             DType dtype = std::is_integral_v<A> && std::is_integral_v<B> && std::is_integral_v<C>
                               ? DType::i64
                               : DType::f32) {
  using N = detail::step_number<A, B, C>;
  N const a = static_cast<N>(start), b = static_cast<N>(stop), s = static_cast<N>(step);
  if (s == N(0)) raise("arange: step is zero");
  return detail::generate_as("arange", make_shape(detail::steps_between(a, b, s)), dtype,
                             detail::Steps<N, N>{a, s});
}
template <class B>
  requires std::is_arithmetic_v<B>
Array arange(B stop, DType dtype = std::is_integral_v<B> ? DType::i64 : DType::f32) {
  return arange(0, stop, 1, dtype);
}

/// linspace - numbers at equal distances, the first and the last given: as many as the Tensor has elements, or,
/// untyped, n.
///
/// Math      y_i = start + (stop - start) i / (n - 1), of one element start
/// Shapes    -> [N]
/// Dtypes    any; untyped f32, unless another is named
/// Errors    "linspace: a number of elements that is not negative required, got -1"
/// Source    NumPy's linspace
inline Array linspace(double start, double stop, index_t n, DType dtype = DType::f32) {
  if (n < 0) raise("linspace: a number of elements that is not negative required, got ", Position{n});
  // From the nearer end, so that both are exact.
  return detail::generate_as("linspace", make_shape(n), dtype, [=](index_t i) {
    if (n == 1) return start;
    double const step = (stop - start) / static_cast<double>(n - 1);
    return i < n / 2 ? start + step * static_cast<double>(i) : stop - step * static_cast<double>(n - 1 - i);
  });
}
template <class T, std::size_t... Dims>
  requires(detail::created<T, Dims...>::static_rank == 1)
auto linspace(double start, double stop, Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "linspace", shape, [&](Shape const& s, DType d) { return linspace(start, stop, s[0], d); });
}

/// from - an Array of the given elements in row-major order: from({1.0f, 2.0f}, {2}). A Tensor has its own from.
///
/// Shapes    as many values as the shape has elements -> [S...], as given
/// Dtypes    that of the values
/// Errors    "from: 3 elements for shape [2]"
/// Source    elementary
template <element T>
Array from(std::span<T const> values, Extents const& shape) {
  if (static_cast<index_t>(values.size()) != shape.shape.numel())
    raise("from: ", static_cast<index_t>(values.size()), " elements for shape ", shape.shape);
  Array r(Meta{dtype_v<T>, detail::sized("from", shape.shape)});
  std::copy(values.begin(), values.end(), r.template data<T>());
  return r;
}
template <element T>
Array from(std::initializer_list<T> values, Extents const& shape) {
  return from(std::span<T const>(values.begin(), values.size()), shape);
}
template <element T>
Array from(std::initializer_list<T> values) {
  return from(values, values.size());
}

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
