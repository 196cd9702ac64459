// SPDX-License-Identifier: BSL-1.0
// Matrix products on vectors of any length. Lanes run over the columns of C: a tile is some rows times one or two
// vectors, its sums stay in registers, and each number of A is multiplied with vectors of B. Where B is read by columns
// it is transposed into a workspace first, or, for few rows of A, lanes run over k.
#pragma once

#include <bit>
#include <utility>

#include <dfdx/kernels/reference/gemm.hpp>
#include <dfdx/kernels/rvv/transpose.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// Operand - of a matrix product: where it starts, and its strides in elements.
template <class T>
struct Operand {
  T const* at;
  index_t row, col;
};

/// add_scaled - the epilogue C = old + scale * A B; old may be C.
template <class T>
struct add_scaled {
  T scale;
  T const* old;
  index_t old_row;

  DFDX_INLINE vector_t<T> operator()(vector_t<T> sum, index_t m, index_t n) const {
    return __riscv_vfmacc(load_part(old + m * old_row + n, 1, every), scale, sum, every);
  }
  DFDX_INLINE vector_t<T> operator()(vector_t<T> sum, index_t m, index_t n, int count) const {
    auto const part = static_cast<std::size_t>(count);
    return __riscv_vfmacc(load_part(old + m * old_row + n, 1, part), scale, sum, part);
  }
  DFDX_INLINE T operator()(T sum, index_t m, index_t n) const { return old[m * old_row + n] + scale * sum; }
};

namespace detail {

/// sum_t - what products of T are summed in; those of numbers of 16 bits in float. number_t is a T as instructions take
/// it.
template <class T>
using sum_t = std::conditional_t<sizeof(T) == 2, float, T>;
#if defined(__riscv_zvfh)
template <class T>
using number_t = std::conditional_t<std::is_same_v<T, float16>, _Float16, sum_t<T>>;
#else
template <class T>
using number_t = sum_t<T>;
#endif

/// Vectors of factors, and what they add to sums.
template <class T>
DFDX_INLINE auto load_factors(T const* p, index_t step, std::size_t n) {
#if defined(__riscv_zvfh)
  if constexpr (std::is_same_v<T, float16>) return load_halves(p, step, n);
  else
#endif
      if constexpr (sizeof(T) == 2)
    return load_half(p, step, n);
  else return load_part(p, step, n);
}
template <class A, class B, class S>
DFDX_INLINE S add_product(S const& sum, A const& a, B const& b) {
#if defined(__riscv_zvfh)
  if constexpr (std::is_same_v<B, Halves>) return __riscv_vfwmacc(sum, a, b, every);
  else
#endif
    return __riscv_vfmacc(sum, a, b, every);
}
/// The same in the first n lanes; the others stay.
template <class A, class B, class S>
DFDX_INLINE S add_part(S const& sum, A const& a, B const& b, std::size_t n) {
#if defined(__riscv_zvfh)
  if constexpr (std::is_same_v<B, Halves>) return __riscv_vfwmacc_tu(sum, a, b, n);
  else
#endif
    return __riscv_vfmacc_tu(sum, a, b, n);
}

template <class Epilogue, class V>
DFDX_INLINE auto finished(Epilogue const& epilogue, V const& sum, index_t m, index_t n, std::size_t count,
                          bool whole) {
  if constexpr (requires { epilogue(sum, m, n, 0); }) {
    if (!whole) return epilogue(sum, m, n, static_cast<int>(count));
  }
  return epilogue(sum, m, n);
}

/// Tile - `Rows` rows of C, `Vectors` vectors wide, of which the last holds `last` columns (all if Whole). Along says
/// that rows of A are contiguous; else its columns are.
template <class T, int Rows, int Vectors, bool Whole, bool Along>
struct Tile {
  template <class Epilogue>
  static void run(index_t k, T const* a, index_t a_step, T const* b, index_t b_row, T* c, index_t c_row,
                  index_t m, index_t n, std::size_t last, Epilogue const& epilogue) {
    with_sums<0>([&](auto&... sums) DFDX_INLINE_LAMBDA {
      add(k, a, a_step, b, b_row, last, sums...);
      std::size_t const w = static_cast<std::size_t>(lanes());
      [&]<std::size_t... I>(std::index_sequence<I...>) DFDX_INLINE_LAMBDA {
        (store<static_cast<int>(I)>(c, c_row, m, n, w, last, epilogue, sums...), ...);
      }(std::make_index_sequence<Rows * Vectors>{});
    });
  }

 private:
  template <int Declared, class F, class... V>
  static DFDX_INLINE void with_sums(F const& f, V&... sums) {
    if constexpr (Declared == Rows * Vectors) {
      f(sums...);
    } else {
      vector_t<sum_t<T>> next = splat(sum_t<T>(0));
      with_sums<Declared + 1>(f, sums..., next);
    }
  }

  template <int V>
  static DFDX_INLINE auto load(T const* b, index_t w, std::size_t last) {
    if constexpr (Whole || V + 1 < Vectors) return load_factors(b + V * w, 1, every);
    else return load_factors(b + V * w, 1, last);
  }
  template <int R>
  static DFDX_INLINE number_t<T> number(T const* a, index_t a_step) {
    T const x = a[Along ? R * a_step : R];
    if constexpr (std::is_same_v<number_t<T>, sum_t<T>>) return static_cast<sum_t<T>>(x);
    else return std::bit_cast<number_t<T>>(x);
  }

  template <class... V>
  static DFDX_INLINE void add(index_t k, T const* a, index_t a_step, T const* b, index_t b_row,
                              std::size_t last, V&... sums) {
    index_t const w = lanes();
#pragma clang loop unroll_count(4)
    for (index_t p = 0; p < k; ++p, b += b_row, a += Along ? 1 : a_step) {
      auto const b0 = load<0>(b, w, last);
      auto b1 = b0;
      if constexpr (Vectors > 1) b1 = load<1>(b, w, last);
      [&]<std::size_t... I>(std::index_sequence<I...>) DFDX_INLINE_LAMBDA {
        (multiply_add<static_cast<int>(I)>(number<static_cast<int>(I) / Vectors>(a, a_step), b0, b1, sums...),
         ...);
      }(std::make_index_sequence<Rows * Vectors>{});
    }
  }
  template <int I, class B, class... V>
  static DFDX_INLINE void multiply_add(number_t<T> x, B const& b0, B const& b1, V&... sums) {
    auto& sum = nth<I>(sums...);
    if constexpr (I % Vectors == 0) sum = add_product(sum, x, b0);
    else sum = add_product(sum, x, b1);
  }

  template <int I, class Epilogue, class... V>
  static DFDX_INLINE void store(T* c, index_t c_row, index_t m, index_t n, std::size_t w, std::size_t last,
                                Epilogue const& epilogue, V&... sums) {
    constexpr int r = I / Vectors, v = I % Vectors;
    constexpr bool whole = Whole || v + 1 < Vectors;
    std::size_t const count = whole ? w : last;
    index_t const first = v * static_cast<index_t>(w);
    auto const y = finished(epilogue, nth<I>(sums...), m + r, n + first, count, whole);
    if constexpr (sizeof(T) == 2) store_half(c + r * c_row + first, 1, y, count);
    else store_part(c + r * c_row + first, 1, y, count);
  }
};

/// Rows in a tile: with two vectors of floats, or one of doubles, 16 or 8 groups of registers are full.
template <class T>
inline constexpr int tile_rows = sizeof(T) <= 4 ? 7 : 6;
template <class T>
inline constexpr int tile_vectors = sizeof(T) <= 4 ? 2 : 1;

/// All rows of a panel of columns.
template <class T, int Vectors, bool Whole, bool Along, class Epilogue>
void panel(index_t m, index_t k, T const* a, index_t a_row, index_t a_step, T const* b, index_t b_row, T* c,
           index_t c_row, index_t n, std::size_t last, Epilogue const& epilogue) {
  index_t i = 0;
  auto const tiles = [&]<int Rows>() {
    for (; i + Rows <= m; i += Rows)
      Tile<T, Rows, Vectors, Whole, Along>::run(k, a + i * a_row, a_step, b, b_row, c + i * c_row, c_row, i,
                                                n, last, epilogue);
  };
  tiles.template operator()<tile_rows<T>>();
  tiles.template operator()<3>();
  tiles.template operator()<1>();
}

/// Columns first .. first + n of C, of which b and c are the first.
template <class T, bool Along, class Epilogue>
void panels(index_t m, index_t n, index_t k, Operand<T> a, T const* b, index_t b_row, T* c, index_t c_row,
            index_t first, Epilogue const& epilogue) {
  constexpr int wide = tile_vectors<T>;
  index_t const w = lanes();
  index_t const a_step = Along ? a.row : a.col;
  index_t j = 0;
  for (; j + wide * w <= n; j += wide * w)
    panel<T, wide, true, Along>(m, k, a.at, a.row, a_step, b + j, b_row, c + j, c_row, first + j,
                                static_cast<std::size_t>(w), epilogue);
  for (; j < n; j += w) {
    auto const last = static_cast<std::size_t>(n - j < w ? n - j : w);
    panel<T, 1, false, Along>(m, k, a.at, a.row, a_step, b + j, b_row, c + j, c_row, first + j, last,
                              epilogue);
  }
}

/// The sum of products of two rows of numbers, some steps apart.
template <class T>
DFDX_INLINE sum_t<T> dot(index_t k, T const* x, index_t x_step, T const* y, index_t y_step) {
  vector_t<sum_t<T>> sum = splat(sum_t<T>(0));
  index_t const w = lanes();
  index_t p = 0;
  for (; p + w <= k; p += w)
    sum = add_product(sum, load_factors(x + p * x_step, x_step, every),
                      load_factors(y + p * y_step, y_step, every));
  if (p < k) {
    auto const rest = static_cast<std::size_t>(k - p);
    sum = add_part(sum, load_factors(x + p * x_step, x_step, rest),
                   load_factors(y + p * y_step, y_step, rest), rest);
  }
  return sum_of<sum_t<T>>(sum);
}

template <class T, class Epilogue>
void dots(index_t m, index_t n, index_t k, Operand<T> a, Operand<T> b, T* c, index_t c_row,
          Epilogue const& epilogue) {
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j)
      c[i * c_row + j] =
          static_cast<T>(epilogue(dot(k, a.at + i * a.row, a.col, b.at + j * b.col, b.row), i, j));
}

}  // namespace detail

/// few_rows - up to so many of A are multiplied along k with a B that is read by columns.
inline constexpr index_t few_rows = 4;

/// columns_together - up to so many columns of a B that is read by columns are transposed at a time: two vectors of
/// floats at VLEN 1024.
inline constexpr index_t columns_together = 128;

/// gemm_workspace - bytes that gemm needs for a B of k rows and n columns, if it may be read by columns.
template <class T>
constexpr std::size_t gemm_workspace(index_t n, index_t k, bool may_read_columns) {
  index_t const together = n < columns_together ? n : columns_together;
  return may_read_columns ? static_cast<std::size_t>(together * k) * sizeof(T) : 0;
}

/// gemm - C[m, n] = epilogue(sum_k A[m, k] B[k, n], m, n); C's rows are contiguous. T is float or double; numbers of 16
/// bits are widened each time that they are read, but for float16 where multiplies_halves says so.
///
/// The epilogue is called with a vector of sums for columns n, n+1, ..., or with one number. Where there are fewer
/// columns than a vector holds their number is a fourth argument.
///
/// Numerics  sums in the element type, of 16 bits in float and rounded once, with fused multiply-adds:
///           |error| <= K eps / (1 - K eps) * sum |a| |b|
/// Cost      2 M N K flops; gemm_workspace bytes, where B's rows are not contiguous
template <class T, class Epilogue>
void gemm(index_t m, index_t n, index_t k, Operand<T> a, Operand<T> b, T* c, index_t c_row, void* workspace,
          Epilogue const& epilogue) {
  if (n == 1 || (b.col != 1 && m <= few_rows)) return detail::dots(m, n, k, a, b, c, c_row, epilogue);
  if (a.col != 1 && a.row != 1 && m != 1)
    return reference::gemm(m, n, k, a.at, a.row, a.col, b.at, b.row, b.col, c, c_row, index_t{1}, epilogue);
  auto const multiply = [&](index_t first, index_t columns, T const* from, index_t step) {
    if (a.col == 1) detail::panels<T, true>(m, columns, k, a, from, step, c + first, c_row, first, epilogue);
    else detail::panels<T, false>(m, columns, k, a, from, step, c + first, c_row, first, epilogue);
  };
  if (b.col == 1) return multiply(0, n, b.at, b.row);
  auto* const rows = static_cast<T*>(workspace);
  for (index_t j = 0; j < n; j += columns_together) {
    index_t const columns = n - j < columns_together ? n - j : columns_together;
    transpose(b.at + j * b.col, b.row, b.col, k, columns, rows, columns);
    multiply(j, columns, rows, columns);
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
