// SPDX-License-Identifier: BSL-1.0
// Making values: zeros, ones, full, empty, eye, arange, linspace, from, in fresh memory, now; or, where a function is
// recorded, as literals of it. Each has a typed form, zeros<Tensor<float, 2, 3>>() or zeros<float, 2, 3>(), and an
// untyped one, zeros({2, 3}). Random ones are in vocabulary/draw.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <dfdx/kernels/map.hpp>
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
constexpr Shape sized(char const* name, Shape const& s, Shape const* type = nullptr) {
  if (s.is_static()) return s;
  Text why = make_text(name, ": every extent must be known and not negative, got ");
  if (type != nullptr && s == *type) raise(why.put(s));
  for (int i = 0; i < s.rank; ++i) why.put(i == 0 ? "[" : ", ").put(Position{s[i]});
  raise(why.put("]"));
}

// Element i is f(i), a number.
template <class F>
constexpr Array generate_as(char const* name, Shape const& shape, DType dtype, F const& f) {
  Meta const meta{dtype, sized(name, shape)};
  if (DFDX_IN_CONSTANT_EXPRESSION) {
    Vec<std::uint64_t> words(static_cast<std::size_t>(shape.numel()));
    for (index_t i = 0; i < shape.numel(); ++i) words[i] = word_as(dtype, f(i));
    return Array::literal(meta, std::move(words));
  }
  Array r(meta);
  Operand const out = r.operand();
  for (index_t i = 0, n = r.size(); i < n; ++i) write_number(out, i, f(i));
  return r;
}

template <class N>
constexpr Array filled_with(char const* name, Shape const& shape, N value, DType dtype) {
  Meta const meta{dtype, sized(name, shape)};
  if (DFDX_IN_CONSTANT_EXPRESSION) return Array::literal(meta, {word_as(dtype, value)});
  Array r(meta);
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

// A Tensor around what an untyped maker made; its constructor checks the shape.
template <class R, class Make>
constexpr R typed_from(char const* name, Extents const& shape, Make make) {
  return R(make(sized(name, shape.shape, &R::static_shape), dtype_v<typename R::value_type>));
}

template <class R, class N>
constexpr R typed_full(char const* name, Extents const& shape, N value) {
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
  constexpr N operator()(index_t i) const {
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
constexpr auto full(N value, Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_full<detail::created<T, Dims...>>("full", shape, value);
}

/// zeros, ones - every element is 0, or 1.
///
/// Shapes    -> [S...], as given
/// Dtypes    any; untyped f32, unless another is named
/// Source    elementary
template <class T, std::size_t... Dims>
constexpr auto zeros(Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_full<detail::created<T, Dims...>>("zeros", shape, 0);
}
inline Array zeros(Extents const& shape, DType dtype = DType::f32) {
  return detail::filled_with("zeros", shape.shape, 0, dtype);
}
template <class T, std::size_t... Dims>
constexpr auto ones(Extents const& shape = detail::created<T, Dims...>::static_shape) {
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
constexpr Array eye(index_t rows, index_t columns, DType dtype = DType::f32) {
  return detail::generate_as("eye", make_shape(rows, columns), dtype,
                             [columns](index_t i) { return i / columns == i % columns ? 1.0 : 0.0; });
}
inline Array eye(index_t n, DType dtype = DType::f32) { return eye(n, n, dtype); }
template <class T, std::size_t... Dims>
  requires(detail::created<T, Dims...>::static_rank == 2)
constexpr auto eye(Extents const& shape = detail::created<T, Dims...>::static_shape) {
  return detail::typed_from<detail::created<T, Dims...>>(
      "eye", shape, [](Shape const& s, DType d) { return eye(s[0], s[1], d); });
}
template <element T, std::size_t N>
  requires(N != dyn)
constexpr auto eye() {
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
constexpr auto arange(A start = 0, C step = 1,
                      Extents const& shape = detail::created<T, Dims...>::static_shape) {
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
constexpr Array linspace(double start, double stop, index_t n, DType dtype = DType::f32) {
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
constexpr auto linspace(double start, double stop,
                        Extents const& shape = detail::created<T, Dims...>::static_shape) {
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

}  // namespace dfdx
