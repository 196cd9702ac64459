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

/// fold_row - *sum = combine(*sum, x[0], ..., x[n-1]). Floats are folded in lanes, so that few roundings follow one
/// another, and blocks of them in double.
template <Code C, class T>
void fold_row(void* sum, void const* from, index_t n) {
  using A = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  using F = Fold<C, T>;
  auto const* x = static_cast<T const*>(from);
  A total = *static_cast<A*>(sum);
  index_t i = 0;
#if defined(DFDX_RVV)
  if constexpr (std::is_floating_point_v<T>) {
    using L = Lanes<loop_code::four_bytes>;
    constexpr auto how =
        static_cast<index_t>(C) - static_cast<index_t>(Code::reduce_sum) + loop_code::reduce_sum;
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
      total = Fold<C, A>::combine(total, L::template horizontal<how, A>(L::template convert<A, T>(part)));
    }
  }
#elif !defined(__CUDACC__)
  if constexpr (std::is_floating_point_v<T>) {
    constexpr index_t w = lane_size<T>, block = 4096;
    auto const join = [&](lane<T> const& lanes) {
      T v[w];
      lanes.store_unaligned(v);
      A wide[w];
      for (int k = 0; k < w; ++k) wide[k] = static_cast<A>(v[k]);
      for (index_t half = w / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) wide[k] = Fold<C, A>::combine(wide[k], wide[k + half]);
      total = Fold<C, A>::combine(total, wide[0]);
    };
    while (n - i >= 4 * w) {
      lane<T> part[4];
      for (auto& p : part) p = lane<T>(F::identity);
      index_t const end = i + (n - i < block ? n - i : block);
      for (; i + 4 * w <= end; i += 4 * w)
        for (int k = 0; k < 4; ++k) part[k] = F::combine(part[k], lane<T>::load_unaligned(x + i + k * w));
      join(F::combine(F::combine(part[0], part[1]), F::combine(part[2], part[3])));
    }
    if (n - i >= w) {
      lane<T> part = lane<T>::load_unaligned(x + i);
      for (i += w; i + w <= n; i += w) part = F::combine(part, lane<T>::load_unaligned(x + i));
      join(part);
    }
  }
#endif
  for (; i < n; ++i) total = Fold<C, A>::combine(total, static_cast<A>(x[i]));
  *static_cast<A*>(sum) = total;
}

/// fold_rows - sums[i] = combine(sums[i], x[i]).
template <Code C, class T>
void fold_rows(void* sums, void const* from, index_t n) {
  using A = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  auto const* DFDX_RESTRICT x = static_cast<T const*>(from);
  auto* DFDX_RESTRICT y = static_cast<A*>(sums);
  index_t i = 0;
#if defined(DFDX_RVV)
  if constexpr (std::is_floating_point_v<T>) {
    using L = Lanes<loop_code::eight_bytes>;
    constexpr auto how =
        static_cast<index_t>(C) - static_cast<index_t>(Code::reduce_sum) + loop_code::reduce_sum;
    for (index_t const w = L::count(); i < n; i += w) {
      int const count = static_cast<int>(n - i < w ? n - i : w);
      auto const wide = L::template convert<A, T>(L::template load<true>(x + i, 1, count));
      auto const joined = L::template combine<how, A>(L::template load<true>(y + i, 1, count), wide);
      L::template store<true>(y + i, 1, joined, count);
    }
    return;
  }
#elif !defined(__CUDACC__)
  if constexpr (std::is_same_v<T, double>)
    for (constexpr index_t w = lane_size<T>; i + w <= n; i += w)
      Fold<C, T>::combine(lane<T>::load_unaligned(y + i), lane<T>::load_unaligned(x + i))
          .store_unaligned(y + i);
  if constexpr (std::is_same_v<T, float>)
    for (constexpr index_t w = lane_size<T>; i + w <= n; i += w) {
      auto const wide = detail::widened(lane<T>::load_unaligned(x + i));
      for (index_t k = 0; k < 2; ++k) {
        A* const to = y + i + k * (w / 2);
        auto const part = wide[static_cast<std::size_t>(k)];
        Fold<C, A>::combine(lane<A>::load_unaligned(to), part).store_unaligned(to);
      }
    }
#endif
  for (; i < n; ++i) y[i] = Fold<C, A>::combine(y[i], static_cast<A>(x[i]));
}

/// Reduction - the loops of one reduction over numbers computed as f32, f64 or i64.
struct Reduction {
  DType as;
  void (*row)(void* sum, void const* x, index_t n);
  void (*rows)(void* sums, void const* x, index_t n);
  double identity;
  std::int64_t integer_identity;
};
template <Code C, class T>
inline constexpr Reduction reduction{dtype_v<T>, &fold_row<C, T>, &fold_rows<C, T>, Fold<C, double>::identity,
                                     Fold<C, std::int64_t>::identity};

/// reduce - out = the reduction of `in` over the axes on which `out`, dense and of the same rank, has extent 1.
inline void reduce(Reduction const& f, Operand const& in, Operand const& out) {
  index_t const n = out.meta.shape.numel();
  bool const integers = f.as == DType::i64;
  constexpr index_t few = 64;
  alignas(64) std::byte buffer[few * sizeof(double)];
  std::size_t const bytes = static_cast<std::size_t>(n) * sizeof(double);
  void* const sums = n <= few ? buffer : take_block(bytes);
  for (index_t i = 0; i < n; ++i)
    if (integers) static_cast<std::int64_t*>(sums)[i] = f.integer_identity;
    else static_cast<double*>(sums)[i] = f.identity;

  if (n == 1 && in.meta.dtype == f.as && is_contiguous(in.meta.shape, in.strides)) {
    f.row(sums, in.data, in.meta.shape.numel());
    return detail::convert_run(out.meta.dtype, out.data, 1, integers ? DType::i64 : DType::f64, sums, 1, n);
  }
  Shape shape = in.meta.shape;
  Strides strides[2] = {in.strides, contiguous(out.meta.shape)};
  for (int a = 0; a < shape.rank; ++a)
    if (shape[a] != out.meta.shape[a]) strides[1][a] = 0;
  detail::join_axes(shape, strides, 2);
  RowWalk row(shape, strides, 2);
  auto const size = static_cast<index_t>(size_of(in.meta.dtype));
  alignas(64) std::byte converted[detail::buffered * sizeof(double)];
  bool const direct = in.meta.dtype == f.as && row.step[0] == 1;
  index_t const block = direct ? row.size : detail::buffered;
  if (!row.empty()) do {
      for (index_t begin = 0; begin < row.size; begin += block) {
        index_t const count = row.size - begin < block ? row.size - begin : block;
        void const* x = static_cast<std::byte const*>(in.data) + (row.offset[0] + begin * row.step[0]) * size;
        if (!direct) {
          detail::convert_run(f.as, converted, 1, in.meta.dtype, x, row.step[0], count);
          x = converted;
        }
        std::byte* const to = static_cast<std::byte*>(sums) +
                              (row.offset[1] + begin * row.step[1]) * static_cast<index_t>(sizeof(double));
        (row.step[1] == 0 ? f.row : f.rows)(to, x, count);
      }
    } while (row.next());
  detail::convert_run(out.meta.dtype, out.data, 1, integers ? DType::i64 : DType::f64, sums, 1, n);
  if (n > few) give_block(sums, bytes);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
