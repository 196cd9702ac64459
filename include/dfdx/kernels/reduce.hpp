// SPDX-License-Identifier: BSL-1.0
// Reductions of strided memory of any dtypes: what runs when sum, prod, max or min is called on its own. As with
// map.hpp, an op brings loops over dense blocks, and the way through memory is here once.
#pragma once

#include <limits>

#include <dfdx/core/pool.hpp>
#include <dfdx/kernels/lanes.hpp>
#include <dfdx/kernels/map.hpp>
#include <dfdx/kernels/simd/in_double.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// Fold - what a reduction combines with, on numbers of type T and lanes of them.
template <Code C, class T>
struct Fold {
  using L = std::numeric_limits<T>;
  static constexpr T identity = C == Code::reduce_sum    ? T(0)
                                : C == Code::reduce_prod ? T(1)
                                : C == Code::reduce_max  ? (L::has_infinity ? -L::infinity() : L::lowest())
                                                         : (L::has_infinity ? L::infinity() : L::max());
  template <class V>
  static V combine(V const& a, V const& b) {
    if constexpr (C == Code::reduce_sum) return math::plus(a, b);
    else if constexpr (C == Code::reduce_prod) return math::times(a, b);
    else if constexpr (C == Code::reduce_max) return math::maximum(a, b);
    else return math::minimum(a, b);
  }
};

/// FoldsIn - what a reduction of numbers of type T keeps its results in: sums and products of floats in double.
template <Code C, class T>
using FoldsIn =
    std::conditional_t<std::is_floating_point_v<T> && (C == Code::reduce_sum || C == Code::reduce_prod),
                       double, T>;

/// Folded - `rows` times n elements, dense in a row: how far apart rows are, and their results.
struct Folded {
  index_t n, rows = 1, from_row = 0, to_row = 0;
};

#if !defined(__CUDACC__)
template <Code C>
inline constexpr index_t fold_code =
    static_cast<index_t>(C) - static_cast<index_t>(Code::reduce_sum) + loop_code::reduce_sum;
#endif

/// fold_line - combine(total, x[0], ..., x[n-1]). Floats are folded in lanes, so that few roundings follow one another,
/// and blocks of them as FoldsIn.
template <Code C, class T>
FoldsIn<C, T> fold_line(FoldsIn<C, T> total, T const* x, index_t n) {
  using A = FoldsIn<C, T>;
  index_t i = 0;
#if defined(DFDX_RVV)
  if constexpr (std::is_floating_point_v<T>) {
    using F = Fold<C, T>;
    using L = Lanes<loop_code::four_bytes>;
    constexpr index_t how = fold_code<C>;
    index_t const w = L::count(), block = 64 * w;
    while (i < n) {
      auto part = L::splat(F::identity);
      index_t const end = i + (n - i < block ? n - i : block);
      for (; i + w <= end; i += w)
        part = L::template combine<how, T>(part, rvv::load_part(x + i, 1, rvv::every));
      if (int const rest = static_cast<int>(end - i); rest > 0) {
        auto const last = L::template load<true>(x + i, 1, rest);
        part = L::template combine<how, T>(part, L::template only_first<T>(last, rest, F::identity));
      }
      i = end;
      if constexpr (std::is_same_v<A, T>)
        total = Fold<C, A>::combine(total, L::template horizontal<how, A>(part));
      else
        total = Fold<C, A>::combine(total, L::template horizontal<how, A>(L::template convert<A, T>(part)));
    }
  }
#elif !defined(__CUDACC__)
  if constexpr (std::is_floating_point_v<T>) {
    using F = Fold<C, T>;
    using Doubles = Lanes<loop_code::eight_bytes>;
    constexpr index_t w = lane_size<T>, block = 4096;
    auto const join = [&](lane<T> const& lanes) {
      if constexpr (std::is_same_v<T, double>) {
        total = F::combine(total, Doubles::template horizontal<fold_code<C>, T>(lanes));
      } else if constexpr (std::is_same_v<A, T>) {
        total = F::combine(total, Lanes<loop_code::four_bytes>::template horizontal<fold_code<C>, T>(lanes));
      } else {
        auto const wide = detail::widened(lanes);
        auto const both = Fold<C, A>::combine(wide[0], wide[1]);
        total = Fold<C, A>::combine(total, Doubles::template horizontal<fold_code<C>, A>(both));
      }
    };
    for (; n >= w && i < n;) {
      index_t const end = i + (n - i < block ? n - i : block);
      lane<T> part[4];
      DFDX_UNROLL for (auto& p : part) p = lane<T>(F::identity);
      // (Whether a number is NaN is asked of the first: what is new does not wait.)
      for (; i + 4 * w <= end; i += 4 * w)
        DFDX_UNROLL for (int k = 0; k < 4; ++k) part[k] =
            F::combine(lane<T>::load_unaligned(x + i + k * w), part[k]);
      for (; i + w <= end; i += w) part[0] = F::combine(lane<T>::load_unaligned(x + i), part[0]);
      if constexpr (C != Code::reduce_prod)
        if (int const rest = static_cast<int>(end - i); rest > 0) {
          // Beside zeros, or again what an extreme has seen.
          if constexpr (C == Code::reduce_sum) part[1] = F::combine(load_n(x + i, rest), part[1]);
          else part[1] = F::combine(lane<T>::load_unaligned(x + end - w), part[1]);
          i = end;
        }
      join(F::combine(F::combine(part[0], part[1]), F::combine(part[2], part[3])));
      if (end - i > 0) break;
    }
  }
#endif
  for (; i < n; ++i) total = Fold<C, A>::combine(total, static_cast<A>(x[i]));
  return total;
}

/// fold_along - to[r] = combine(to[r], all of row r).
template <Code C, class T>
void fold_along(void* to, void const* from, Folded const& f) {
  auto const* x = static_cast<T const*>(from);
  auto* y = static_cast<FoldsIn<C, T>*>(to);
  index_t r = 0;
#if !defined(__CUDACC__) && !defined(DFDX_RVV)
  // Of short rows a lane at once: which element is larger is hard to predict.
  if constexpr (std::is_floating_point_v<T> && (C == Code::reduce_max || C == Code::reduce_min)) {
    using I = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    constexpr index_t w = lane_size<T>;
    if (f.n < w && f.to_row == 1 && f.from_row >= 0 && f.from_row < INT32_MAX / w) {
      alignas(64) I first[w];
      for (index_t i = 0; i < w; ++i) first[i] = static_cast<I>(i * f.from_row);
      auto const at = lane<I>::load_aligned(first);
      for (; r + w <= f.rows; r += w, x += w * f.from_row, y += w) {
        auto best = lane<T>::load_unaligned(y);
        for (index_t i = 0; i < f.n; ++i) best = Fold<C, T>::combine(best, lane<T>::gather(x + i, at));
        best.store_unaligned(y);
      }
    }
  }
#endif
  for (; r < f.rows; ++r, x += f.from_row, y += f.to_row) *y = fold_line<C, T>(*y, x, f.n);
}

namespace detail {

// to[i] = combine(to[i], x[i]), x[i] that of so many rows.
template <Code C, int Rows, class T, class A>
void fold_rows(A* DFDX_RESTRICT y, T const* DFDX_RESTRICT x, index_t row, index_t n) {
  index_t i = 0;
#if defined(DFDX_RVV)
  if constexpr (std::is_floating_point_v<T>) {
    using L = Lanes<loop_code::eight_bytes>;
    for (index_t const w = L::count(); i < n; i += w) {
      int const count = static_cast<int>(n - i < w ? n - i : w);
      auto all = L::template load<true>(y + i, 1, count);
      for (int k = 0; k < Rows; ++k) {
        auto const more = L::template load<true>(x + k * row + i, 1, count);
        if constexpr (std::is_same_v<A, T>) all = L::template combine<fold_code<C>, A>(all, more);
        else all = L::template combine<fold_code<C>, A>(all, L::template convert<A, T>(more));
      }
      L::template store<true>(y + i, 1, all, count);
    }
    return;
  }
#elif !defined(__CUDACC__)
  if constexpr (std::is_floating_point_v<T>)
    for (constexpr index_t w = lane_size<T>; i + w <= n; i += w) {
      if constexpr (std::is_same_v<A, T>) {
        auto all = lane<T>::load_unaligned(y + i);
        DFDX_UNROLL for (int k = 0; k < Rows; ++k) all =
            Fold<C, A>::combine(lane<T>::load_unaligned(x + k * row + i), all);
        all.store_unaligned(y + i);
      } else {
        auto low = lane<A>::load_unaligned(y + i), high = lane<A>::load_unaligned(y + i + w / 2);
        DFDX_UNROLL for (int k = 0; k < Rows; ++k) {
          auto const wide = widened(lane<T>::load_unaligned(x + k * row + i));
          low = Fold<C, A>::combine(low, wide[0]), high = Fold<C, A>::combine(high, wide[1]);
        }
        low.store_unaligned(y + i), high.store_unaligned(y + i + w / 2);
      }
    }
#endif
  for (; i < n; ++i) {
    A all = y[i];
    for (int k = 0; k < Rows; ++k) all = Fold<C, A>::combine(all, static_cast<A>(x[k * row + i]));
    y[i] = all;
  }
}

}  // namespace detail

/// fold_across - to[i] = combine(to[i], element i of every row), or with to_row each row into results of its own. Rows
/// with the same results are taken several at once, for which those are read and written once.
template <Code C, class T>
void fold_across(void* to, void const* from, Folded const& f) {
  auto const* x = static_cast<T const*>(from);
  auto* y = static_cast<FoldsIn<C, T>*>(to);
  index_t r = 0;
  if (f.to_row == 0)
    for (; r + 4 <= f.rows; r += 4) detail::fold_rows<C, 4>(y, x + r * f.from_row, f.from_row, f.n);
  for (; r < f.rows; ++r) detail::fold_rows<C, 1>(y + r * f.to_row, x + r * f.from_row, 0, f.n);
}

/// fold_nothing - to[i] = what changes nothing.
template <Code C, class T>
void fold_nothing(void* to, index_t n) {
  using A = FoldsIn<C, T>;
  std::fill_n(static_cast<A*>(to), n, Fold<C, A>::identity);
}

/// Reduction - the loops of one reduction over numbers computed as f32, f64 or i64, and the dtype of its results.
struct Reduction {
  DType as, results;
  void (*along)(void* to, void const* from, Folded const& f);
  void (*across)(void* to, void const* from, Folded const& f);
  void (*nothing)(void* to, index_t n);
};
template <Code C, class T>
inline constexpr Reduction reduction{dtype_v<T>, dtype_v<FoldsIn<C, T>>, &fold_along<C, T>,
                                     &fold_across<C, T>, &fold_nothing<C, T>};

namespace detail {

// Whether axis a of an operand is walked in steps at least as long as axis b: those in which nothing moves are the
// longest.
constexpr bool is_outside(Strides const& t, int a, int b) { return t[a] == 0 || (t[b] != 0 && t[a] >= t[b]); }

// The axes of a reduction in the order in which its operand lies in memory. Results, of extent 1 where axes are
// reduced, are given the places that follow one another in that order.
inline Strides order_by_memory(Shape& shape, Shape results, Strides (&strides)[2]) {
  int order[max_rank];
  for (int a = 0; a < shape.rank; ++a) {
    int at = a;
    for (; at > 0 && !is_outside(strides[0], order[at - 1], a); --at) order[at] = order[at - 1];
    order[at] = a;
  }
  Shape const s = shape;
  Strides const t = strides[0];
  Strides places = results;
  strides[1] = places;
  index_t next = 1;
  for (int k = s.rank - 1; k >= 0; --k) {
    int const a = order[k];
    places[a] = next;
    shape[k] = s[a];
    strides[0][k] = t[a];
    strides[1][k] = s[a] == results[a] ? next : 0;
    next *= results[a];
  }
  return places;
}

}  // namespace detail

/// reduce - out = the reduction of `in` over the axes on which `out`, dense and of the same rank, has extent 1.
template <int = 0>
void reduce(Reduction const& f, Operand const& in, Operand const& out) {
  index_t const n = out.meta.shape.numel();
  constexpr index_t few = 64;
  alignas(64) std::byte buffer[few * sizeof(double)];
  std::size_t const bytes = static_cast<std::size_t>(n) * size_of(f.results);
  void* const results = n <= few ? buffer : take_block(bytes);
  f.nothing(results, n);

  Shape shape = in.meta.shape;
  Strides strides[2] = {in.strides, in.strides};
  Strides const places = detail::order_by_memory(shape, out.meta.shape, strides);
  detail::join_axes(shape, strides, 2);
  index_t size = 1, step[2] = {1, 0};
  if (shape.rank > 0) {
    size = shape[--shape.rank];
    for (int k = 0; k < 2; ++k) step[k] = strides[k][--strides[k].rank];
  }
  auto const fold = step[1] == 0 ? f.along : f.across;
  auto const from_size = static_cast<index_t>(size_of(in.meta.dtype)),
             to_size = static_cast<index_t>(size_of(f.results));
  bool const direct = in.meta.dtype == f.as && (step[0] == 1 || size == 1);
  RowWalk rows(shape, strides, 2);
  if (!rows.empty() && size > 0) do {
      auto const* x = static_cast<std::byte const*>(in.data) + rows.offset[0] * from_size;
      auto* y = static_cast<std::byte*>(results) + rows.offset[1] * to_size;
      if (direct) {
        fold(y, x, {size, rows.size, rows.step[0], rows.step[1]});
        continue;
      }
      // Parts of rows, or several rows, in the dtype that is computed with.
      alignas(64) std::byte converted[detail::buffered * sizeof(double)];
      index_t const part = size < detail::buffered ? size : detail::buffered,
                    at_once = detail::buffered / part;
      for (index_t r = 0; r < rows.size; r += at_once)
        for (index_t i = 0; i < size; i += part) {
          index_t const count = rows.size - r < at_once ? rows.size - r : at_once,
                        n_part = size - i < part ? size - i : part;
          detail::convert_rows(f.as, converted, in.meta.dtype,
                               x + (r * rows.step[0] + i * step[0]) * from_size,
                               {n_part, 1, step[0], count, n_part, rows.step[0]});
          fold(y + (r * rows.step[1] + i * step[1]) * to_size, converted,
               {n_part, count, n_part, rows.step[1]});
        }
    } while (rows.next());
  convert(Operand{results, Meta{f.results, out.meta.shape}, places}, out);
  if (n > few) give_block(results, bytes);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
