// SPDX-License-Identifier: BSL-1.0
// Rows of matrices of doubles, or of floats that are made such: what factorisations do with a few of them at a time,
// between the products of matrices that most of their work is. nvcc compiles plain loops.
#pragma once

#include <algorithm>
#include <type_traits>

#include <dfdx/core/config.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/kernels/simd/in_double.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

/// What of a row is taken at once: `size` numbers. Rows are short, and soon read again, and a load would wait for a
/// store by a mask: their ends are taken by shorter vectors and one by one. (Templates, which programs without linear
/// algebra do not compile.)
template <class D>
struct RowNumber {
  static constexpr index_t size = 1;
  D v;
  template <class E>
  static RowNumber at(E const* p) {
    return {static_cast<D>(*p)};
  }
  template <class E>
  void store(E* p) const {
    *p = static_cast<E>(v);
  }
  static RowNumber all(D x) { return {x}; }
  RowNumber less(RowNumber f, RowNumber x) const { return {v - f.v * x.v}; }
  RowNumber plus(RowNumber f, RowNumber x) const { return {v + f.v * x.v}; }
  RowNumber over(RowNumber x) const { return {v / x.v}; }
  D total() const { return v; }
};
#if !defined(__CUDACC__)
template <class B>
struct RowLanes {
  static constexpr index_t size = static_cast<index_t>(B::size);
  B v;
  static RowLanes at(double const* p) { return {B::load_unaligned(p)}; }
  void store(double* p) const { v.store_unaligned(p); }
  static RowLanes all(double x) { return {B(x)}; }
  RowLanes less(RowLanes const& f, RowLanes const& x) const { return {xsimd::fnma(f.v, x.v, v)}; }
  RowLanes plus(RowLanes const& f, RowLanes const& x) const { return {xsimd::fma(f.v, x.v, v)}; }
  RowLanes over(RowLanes const& x) const { return {v / x.v}; }
  double total() const { return xsimd::reduce_add(v); }
};
// As many as a vector of floats holds.
template <class B>
struct RowLanePair {
  static constexpr index_t size = 2 * static_cast<index_t>(B::size);
  B low, high;
  static RowLanePair at(double const* p) { return {B::load_unaligned(p), B::load_unaligned(p + size / 2)}; }
  static RowLanePair at(float const* p) {
    auto const wide = widened(lane<float>::load_unaligned(p));
    return {wide[0], wide[1]};
  }
  void store(double* p) const { low.store_unaligned(p), high.store_unaligned(p + size / 2); }
  void store(float* p) const { narrowed(low, high).store_unaligned(p); }
  static RowLanePair all(double x) { return {B(x), B(x)}; }
  RowLanePair less(RowLanePair const& f, RowLanePair const& x) const {
    return {xsimd::fnma(f.low, x.low, low), xsimd::fnma(f.high, x.high, high)};
  }
  RowLanePair plus(RowLanePair const& f, RowLanePair const& x) const {
    return {xsimd::fma(f.low, x.low, low), xsimd::fma(f.high, x.high, high)};
  }
  RowLanePair over(RowLanePair const& x) const { return {low / x.low, high / x.high}; }
  double total() const { return xsimd::reduce_add(low + high); }
};
using TwoDoubles = RowLanePair<lane<double>>;
using four_doubles = xsimd::make_sized_batch<double, 4>::type;  // void where there are none
#endif

/// f(a vector's type, place) along a row of n numbers, of which some are of type E.
template <class E, class F>
DFDX_INLINE void along_doubles(index_t n, F const& f) {
  index_t i = 0;
  auto const take = [&](auto type) DFDX_INLINE_LAMBDA {
    for (; i + decltype(type)::type::size <= n; i += decltype(type)::type::size) f(type, i);
  };
#if !defined(__CUDACC__)
  take(std::type_identity<TwoDoubles>{});
  if constexpr (std::is_same_v<E, double>) {
    if constexpr (lane_size<double> > 1) take(std::type_identity<RowLanes<lane<double>>>{});
    if constexpr (lane_size<double> > 4 && !std::is_void_v<four_doubles>)
      take(std::type_identity<RowLanes<four_doubles>>{});
  }
#endif
  take(std::type_identity<RowNumber<double>>{});
}

}  // namespace detail

/// subtract_rows - y -= the sum of f x over so many rows x, four of them at once, for which y is read and written once;
/// `row` and `step` apart are rows and factors. y has n numbers, apart from those of x.
template <class E, class F>
void subtract_rows(double* y, E const* x, index_t row, F const* f, index_t step, index_t rows, index_t n) {
  auto const factor = [&](index_t k) { return static_cast<double>(f[k * step]); };
#if !defined(__CUDACC__)
  if (n <= detail::TwoDoubles::size) {  // y in registers, as two sums
    detail::along_doubles<E>(n, [&]<class V>(std::type_identity<V>, index_t i) DFDX_INLINE_LAMBDA {
      V one = V::at(y + i), other = V::all(0);
      index_t k = 0;
      for (; k + 2 <= rows; k += 2) {
        one = one.less(V::all(factor(k)), V::at(x + k * row + i));
        other = other.less(V::all(factor(k + 1)), V::at(x + (k + 1) * row + i));
      }
      if (k < rows) one = one.less(V::all(factor(k)), V::at(x + k * row + i));
      one.plus(V::all(1), other).store(y + i);
    });
    return;
  }
#endif
  for (; rows >= 4; rows -= 4, x += 4 * row, f += 4 * step) {
    double const a = factor(0), b = factor(1), c = factor(2), d = factor(3);
    detail::along_doubles<E>(n, [&]<class V>(std::type_identity<V>, index_t i) DFDX_INLINE_LAMBDA {
      V const once = V::at(y + i).less(V::all(a), V::at(x + i)).less(V::all(b), V::at(x + row + i));
      V const all = once.less(V::all(c), V::at(x + 2 * row + i)).less(V::all(d), V::at(x + 3 * row + i));
      all.store(y + i);
    });
  }
  for (; rows > 0; --rows, x += row, f += step) {
    double const a = factor(0);
    detail::along_doubles<E>(n, [&]<class V>(std::type_identity<V>, index_t i) DFDX_INLINE_LAMBDA {
      V::at(y + i).less(V::all(a), V::at(x + i)).store(y + i);
    });
  }
}

/// subtract_from_rows - x -= f y for so many rows x of n numbers; `row` and `step` apart are rows and factors.
template <int = 0>
void subtract_from_rows(double* x, index_t row, double const* f, index_t step, double const* y, index_t rows,
                        index_t n) {
  for (; rows > 0; --rows, x += row, f += step) {
    double const a = *f;
    detail::along_doubles<double>(n, [&]<class V>(std::type_identity<V>, index_t i) DFDX_INLINE_LAMBDA {
      V::at(x + i).less(V::all(a), V::at(y + i)).store(x + i);
    });
  }
}

/// row_products - sums[k] = the sum of x y for so many rows x of n numbers, four of them at once.
template <class E>
void row_products(double* sums, E const* x, index_t row, double const* y, index_t rows, index_t n) {
  auto const of = [&](auto several) DFDX_INLINE_LAMBDA {
    constexpr index_t count = decltype(several)::value;
    double ends[count] = {};
    index_t i = 0;
#if !defined(__CUDACC__)
    if (n >= detail::TwoDoubles::size) {
      using V = detail::TwoDoubles;
      V all[count];
      DFDX_UNROLL for (V& v : all) v = V::all(0);
      for (; i + V::size <= n; i += V::size) {
        V const z = V::at(y + i);
        DFDX_UNROLL for (index_t k = 0; k < count; ++k) all[k] = all[k].plus(z, V::at(x + k * row + i));
      }
      DFDX_UNROLL for (index_t k = 0; k < count; ++k) ends[k] = all[k].total();
    }
    if constexpr (std::is_same_v<E, double>) {
      using V = detail::RowLanes<lane<double>>;
      if (V::size > 1 && i + V::size <= n) {
        DFDX_UNROLL for (index_t k = 0; k < count; ++k) ends[k] +=
            V::all(0).plus(V::at(y + i), V::at(x + k * row + i)).total();
        i += V::size;
      }
    }
#endif
    for (; i < n; ++i)
      DFDX_UNROLL for (index_t k = 0; k < count; ++k) ends[k] += static_cast<double>(x[k * row + i]) * y[i];
    DFDX_UNROLL for (index_t k = 0; k < count; ++k) sums[k] = ends[k];
  };
  for (; rows >= 4; rows -= 4, x += 4 * row, sums += 4) of(std::integral_constant<index_t, 4>{});
  for (; rows > 0; --rows, x += row, ++sums) of(std::integral_constant<index_t, 1>{});
}

/// rotate_rows - x, y = c x - s y, s x + c y, of n numbers that lie apart.
template <int = 0>
void rotate_rows(double* x, double* y, double c, double s, index_t n) {
  detail::along_doubles<double>(n, [&]<class V>(std::type_identity<V>, index_t i) DFDX_INLINE_LAMBDA {
    V const u = V::at(x + i), v = V::at(y + i), none = V::all(0);
    none.plus(V::all(c), u).less(V::all(s), v).store(x + i);
    none.plus(V::all(s), u).plus(V::all(c), v).store(y + i);
  });
}

/// rotate_neighbours - rotations of each of `count` rows of n numbers and the next, the last row first, by c and s of
/// that row, and after them a second lot, by what is `next` behind c and s; so many such pairs, 2 next apart. A few
/// numbers of all rows at a time, which stay in the first cache.
template <int = 0>
void rotate_neighbours(double* x, index_t row, double const* c, double const* s, index_t next, index_t pairs,
                       index_t count, index_t n) {
  detail::along_doubles<double>(n, [&]<class V>(std::type_identity<V>, index_t i) DFDX_INLINE_LAMBDA {
    double* const p = x + i;
    auto const up = [](V const& high, V const& low, double const* cs, double const* ss) DFDX_INLINE_LAMBDA {
      return V::all(0).plus(V::all(*ss), high).plus(V::all(*cs), low);
    };
    auto const down = [](V const& high, V const& low, double const* cs, double const* ss) DFDX_INLINE_LAMBDA {
      return V::all(0).plus(V::all(*cs), high).less(V::all(*ss), low);
    };
    for (index_t pair = 0; pair < pairs; ++pair) {
      double const *const c1 = c + 2 * pair * next, *const s1 = s + 2 * pair * next;
      double const *const c2 = c1 + next, *const s2 = s1 + next;
      index_t k = count - 1;
      V const last = V::at(p + count * row), before = V::at(p + k * row);
      V one = down(before, last, c1 + k, s1 + k), other = up(before, last, c1 + k, s1 + k);
      for (--k; k >= 0; --k) {
        V const high = V::at(p + k * row), middle = up(high, one, c1 + k, s1 + k);
        one = down(high, one, c1 + k, s1 + k);
        up(middle, other, c2 + k + 1, s2 + k + 1).store(p + (k + 2) * row);
        other = down(middle, other, c2 + k + 1, s2 + k + 1);
      }
      up(one, other, c2, s2).store(p + row);
      down(one, other, c2, s2).store(p);
    }
  });
}

/// subtract_two_rows - x -= f v + g w for so many rows x of n numbers, a factor f and g for each, and sums = what they
/// make with y then.
template <int = 0>
void subtract_two_rows(double* sums, double* x, index_t row, double const* f, double const* v,
                       double const* g, double const* w, double const* y, index_t rows, index_t n) {
  auto const of = [&](auto several) DFDX_INLINE_LAMBDA {
    constexpr index_t count = decltype(several)::value;
    double ends[count] = {};
    index_t i = 0;
    auto const take = [&]<class V>(std::type_identity<V>) DFDX_INLINE_LAMBDA {
      if (i + V::size > n) return;
      V all[count];
      DFDX_UNROLL for (V& z : all) z = V::all(0);
      for (; i + V::size <= n; i += V::size) {
        V const a = V::at(v + i), b = V::at(w + i), z = V::at(y + i);
        DFDX_UNROLL for (index_t k = 0; k < count; ++k) {
          V const r = V::at(x + k * row + i).less(V::all(f[k]), a).less(V::all(g[k]), b);
          r.store(x + k * row + i);
          all[k] = all[k].plus(z, r);
        }
      }
      DFDX_UNROLL for (index_t k = 0; k < count; ++k) ends[k] += all[k].total();
    };
#if !defined(__CUDACC__)
    if constexpr (lane_size<double> > 1) take(std::type_identity<detail::RowLanes<lane<double>>>{});
    if constexpr (lane_size<double> > 4 && !std::is_void_v<detail::four_doubles>)
      take(std::type_identity<detail::RowLanes<detail::four_doubles>>{});
#endif
    take(std::type_identity<detail::RowNumber<double>>{});
    DFDX_UNROLL for (index_t k = 0; k < count; ++k) sums[k] = ends[k];
  };
  for (; rows >= 4; rows -= 4, x += 4 * row, f += 4, g += 4, sums += 4)
    of(std::integral_constant<index_t, 4>{});
  for (; rows > 0; --rows, x += row, ++f, ++g, ++sums) of(std::integral_constant<index_t, 1>{});
}

/// divide_row - y /= by, of n numbers.
template <int = 0>
void divide_row(double* y, double by, index_t n) {
  detail::along_doubles<double>(n, [&]<class V>(std::type_identity<V>, index_t i)
                                       DFDX_INLINE_LAMBDA { V::at(y + i).over(V::all(by)).store(y + i); });
}

/// convert_row - y = x of n numbers, floats or doubles.
template <class To, class From>
void convert_row(To* y, From const* x, index_t n) {
  using E = std::conditional_t<std::is_same_v<To, From>, double, float>;
  detail::along_doubles<E>(
      n, [&]<class V>(std::type_identity<V>, index_t i) DFDX_INLINE_LAMBDA { V::at(x + i).store(y + i); });
}

/// turn_rows - y = x^T, of rows x columns numbers in y, floats or doubles; `y_row` and `x_row` apart are the rows.
template <class To, class From>
void turn_rows(To* y, index_t y_row, From const* x, index_t x_row, index_t rows, index_t columns) {
#if defined(__CUDACC__)
  bool const few = true;
#else
  bool const few = rows < 8 || columns < 8;
#endif
  if (few) {
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) y[i * y_row + j] = static_cast<To>(x[j * x_row + i]);
    return;
  }
#if !defined(__CUDACC__)
  if constexpr (std::is_same_v<To, From>) {
    transpose(x, x_row, columns, rows, y, y_row);
  } else {
    // In squares that stay in the first cache, turned as floats.
    constexpr index_t side = 32;
    alignas(64) float square[side * side];
    for (index_t i = 0; i < rows; i += side)
      for (index_t j = 0; j < columns; j += side) {
        index_t const height = std::min(side, rows - i), width = std::min(side, columns - j);
        To* const to = y + i * y_row + j;
        From const* const from = x + j * x_row + i;
        if constexpr (std::is_same_v<From, float>) {
          transpose<true>(from, x_row, width, height, square, side);
          for (index_t k = 0; k < height; ++k) convert_row(to + k * y_row, square + k * side, width);
        } else {
          for (index_t k = 0; k < width; ++k) convert_row(square + k * side, from + k * x_row, height);
          transpose(square, side, width, height, to, y_row);
        }
      }
  }
#endif
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
