// SPDX-License-Identifier: BSL-1.0
// What convolutions of single channels (kernels/depthwise_conv.hpp) do to lines of a plane, on vectors of any length.
#pragma once

#include <dfdx/kernels/rvv/vectors.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// copy_row - to[i] = from[i * step] for i < n.
template <class E>
void copy_row(E const* from, index_t step, index_t n, E* to) {
  index_t const w = lanes();
  for (index_t i = 0; i < n; i += w) {
    auto const count = static_cast<std::size_t>(n - i < w ? n - i : w);
    store_part(to + i, 1, load_part(from + i * step, step, count), count);
  }
}

namespace detail {

/// R lines of n numbers seen through windows of three lines of three, S lines apart: lines that several see are read
/// once.
template <int S, int R, class E>
void three_lines(E const* from, index_t step, index_t const* at, E const* w, E* to, index_t to_row,
                 index_t n) {
  index_t const width = lanes();
  E factors[9];  // in registers, though `to` might be where they come from
  for (int k = 0; k < 9; ++k) factors[k] = w[k];
  for (index_t q = 0; q < n; q += width) {
    auto const count = static_cast<std::size_t>(n - q < width ? n - q : width);
    E const* places[] = {from + at[0] + q, from + at[1] + q, from + at[2] + q};
    with_vectors<E, R>([&](auto&... sums) DFDX_INLINE_LAMBDA {
      each_constant<(S * (R - 1) + 3) * 3>([&]<int I>() DFDX_INLINE_LAMBDA {
        constexpr int line = I / 3, k = I % 3;
        vector_t<E> const v = load_part(places[k], 1, count);
        places[k] += step;
        each_constant<R>([&]<int Row>() DFDX_INLINE_LAMBDA {
          if constexpr (line >= S * Row && line < S * Row + 3) {
            auto& sum = nth<Row>(sums...);
            sum = __riscv_vfmacc(sum, factors[(line - S * Row) * 3 + k], v, count);
          }
        });
      });
      each_constant<R>([&]<int Row>() DFDX_INLINE_LAMBDA {
        store_part(to + Row * to_row + q, 1, nth<Row>(sums...), count);
      });
    });
  }
}

/// The same of windows with any `taps` elements, which lie `at` places from the window's own.
template <int R, class E>
void some_lines(E const* from, index_t step, index_t const* at, index_t taps, E const* w, E* to,
                index_t to_row, index_t n) {
  index_t const width = lanes();
  for (index_t q = 0; q < n; q += width) {
    auto const count = static_cast<std::size_t>(n - q < width ? n - q : width);
    with_vectors<E, R>([&](auto&... sums) DFDX_INLINE_LAMBDA {
      for (index_t k = 0; k < taps; ++k) {
        E const* const here = from + at[k] + q;
        each_constant<R>([&]<int Row>() DFDX_INLINE_LAMBDA {
          auto& sum = nth<Row>(sums...);
          sum = __riscv_vfmacc(sum, w[k], load_part(here + Row * step, 1, count), count);
        });
      }
      each_constant<R>([&]<int Row>() DFDX_INLINE_LAMBDA {
        store_part(to + Row * to_row + q, 1, nth<Row>(sums...), count);
      });
    });
  }
}

}  // namespace detail

/// convolve_lines - `lines` lines of n numbers of a result, dense; those of the frame they see are `step` apart. Three:
/// whether windows are of three by three elements whose lines are neighbours, for a step of 1 or 2 of them (0: not).
template <class E>
void convolve_lines(E const* from, index_t step, index_t stride, index_t const* at, index_t taps, bool three,
                    E const* w, E* to, index_t lines, index_t n) {
  constexpr int together = 4;
  auto const run = [&]<int R>() {
    if (three && stride == 1) detail::three_lines<1, R>(from, step, at, w, to, n, n);
    else if (three && stride == 2) detail::three_lines<2, R>(from, step, at, w, to, n, n);
    else detail::some_lines<R>(from, stride * step, at, taps, w, to, n, n);
    from += R * stride * step, to += R * n, lines -= R;
  };
  while (lines >= together) run.template operator()<together>();
  while (lines > 0) run.template operator()<1>();
}

/// add_line_products - sums[k] += the sum over the same lines of y times what element k of their windows is.
template <class E>
void add_line_products(E const* from, index_t step, index_t const* at, index_t taps, E const* y,
                       index_t lines, index_t n, E* sums) {
  constexpr int together = sizeof(E) == 4 ? 9 : 5;  // as registers hold
  index_t const width = lanes();
  for (index_t first = 0; first < taps; first += together) {
    index_t const some = taps - first < together ? taps - first : together;
    E const* places[together];
    for (index_t k = 0; k < together; ++k) places[k] = from + at[first + (k < some ? k : 0)];
    detail::with_vectors<E, together>([&](auto&... sum) DFDX_INLINE_LAMBDA {
      for (index_t j = 0; j < lines; ++j)
        for (index_t q = 0; q < n; q += width) {
          auto const count = static_cast<std::size_t>(n - q < width ? n - q : width);
          vector_t<E> const v = load_part(y + j * n + q, 1, count);
          index_t const here = j * step + q;
          detail::each_constant<together>([&]<int K>() DFDX_INLINE_LAMBDA {
            auto& s = nth<K>(sum...);
            s = __riscv_vfmacc_tu(s, v, load_part(places[K] + here, 1, count), count);
          });
        }
      detail::each_constant<together>([&]<int K>() DFDX_INLINE_LAMBDA {
        if (K < some) sums[first + K] += sum_of<E>(nth<K>(sum...));
      });
    });
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
