// SPDX-License-Identifier: BSL-1.0
//
// gemm - C (M,N) = epilogue(A (M,K) B (K,N)) on the CPU: the one entry point, and the choice of a kernel.
//
//   operands                                          kernel
//   extents and strides known, panels fit the cache   gemm_small: exact tiles, packs only what runs wrong
//   anything else in float or double                  gemm_blocked: packed, blocked; vectors read in place
//   any other element type                            reference::gemm
//
// A and B are read through two strides each, so no caller transposes; the rows of C are contiguous. It knows
// no graph, allocates nothing and starts no threads. A product of batches is a loop around it.
#pragma once

#include <dfdx/kernels/reference/gemm.hpp>
#include <dfdx/kernels/simd/gemm_blocked.hpp>
#include <dfdx/kernels/simd/gemm_small.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// run_time - an extent or stride that is only known when the kernel is called: gemm_sizes gives it.
inline constexpr std::int64_t run_time = -1;

/// gemm_shape - what the compiler knows of a product: element type, extents, strides in elements.
///
/// Defaults are dense row-major operands (NN). Any struct with these members will do as well.
template <class T, std::int64_t M, std::int64_t N, std::int64_t K, std::int64_t ARow = K,
          std::int64_t ACol = 1, std::int64_t BRow = N, std::int64_t BCol = 1, std::int64_t CRow = N>
struct gemm_shape {
  using type = T;
  static constexpr std::int64_t m = M, n = N, k = K;
  static constexpr std::int64_t a_row = ARow, a_col = ACol, b_row = BRow, b_col = BCol, c_row = CRow;
};

/// Dense operands, t where one is stored transposed: gemm_nt takes B as (N,K), gemm_tn takes A as (K,M).
template <class T, std::int64_t M, std::int64_t N, std::int64_t K>
using gemm_nn = gemm_shape<T, M, N, K>;
template <class T, std::int64_t M, std::int64_t N, std::int64_t K>
using gemm_nt = gemm_shape<T, M, N, K, K, 1, 1, K>;
template <class T, std::int64_t M, std::int64_t N, std::int64_t K>
using gemm_tn = gemm_shape<T, M, N, K, 1, M, N, 1>;
template <class T, std::int64_t M, std::int64_t N, std::int64_t K>
using gemm_tt = gemm_shape<T, M, N, K, 1, M, 1, K>;

/// gemm_sizes - the values of what is run_time in the shape; a value that the shape knows is ignored.
struct gemm_sizes {
  std::int64_t m = run_time, n = run_time, k = run_time;
  std::int64_t a_row = run_time, a_col = run_time, b_row = run_time, b_col = run_time, c_row = run_time;
};

namespace detail {

enum class gemm_kernel { reference, direct, direct_packed, swapped, swapped_packed, dot, column, blocked };

template <class Shape>
struct gemm_choice {
  using T = typename Shape::type;
  static constexpr bool simd = std::is_same_v<T, float> || std::is_same_v<T, double>;

  static constexpr bool known = Shape::m > 0 && Shape::n > 0 && Shape::k > 0 && Shape::a_row >= 0 &&
                                Shape::a_col >= 0 && Shape::b_row >= 0 && Shape::b_col >= 0;

  // Costs in half cycles of a core that does one multiply-add of a lane per cycle, from instruction counts.
  static constexpr Index W = [] {
    if constexpr (simd) return lane_size<T>;
    else return 1;
  }();
  static constexpr Index lanes(Index n) {
    Index const rest = n % W;
    bool half = false;
    if constexpr (simd) half = rest > 0 && rest <= half_size<T>;
    return 2 * ceil_div(n, W) - half;
  }
  static constexpr Index transposing(Index r, Index c) { return ceil_div(r, W) * ceil_div(c, W) * 10 * W; }

  /// Of a sum in each of n lanes: sum_each.
  static constexpr Index summing(Index n) { return ceil_div(n, W) * 4 * W; }

  /// Whether an exact kernel runs from the caches. It takes a panel of the operand with the lanes (three
  /// lanes of `extent`, all of depth) and goes through all of the other one, then takes the next panel. The
  /// panel should stay in the second cache, and so should the other operand, unless it is gone through once
  /// or twice at most.
  static constexpr bool fits(Index depth, Index extent, Index other) {
    Index const size = static_cast<Index>(sizeof(T)), wide = 3 * W;
    return depth * (extent < wide ? extent : wide) * size <= 512 * 1024 &&
           (other * depth * size <= 1024 * 1024 || extent <= 2 * wide);
  }

  static constexpr gemm_kernel choose() {
    if (!simd) return gemm_kernel::reference;
    if (!known) return gemm_kernel::blocked;
    Index const m = Shape::m, n = Shape::n, k = Shape::k;
    bool const rows_of_b = Shape::b_col == 1 || n == 1, columns_of_a = Shape::a_row == 1 || m == 1;
    Index const direct = m * k * lanes(n) + (rows_of_b ? 0 : transposing(k, n));
    Index const swapped = n * k * lanes(m) + (columns_of_a ? 0 : transposing(m, k)) + transposing(m, n);
    Index const never = direct + swapped;
    bool const along_k = Shape::a_col == 1 && Shape::b_row == 1;
    // Sums along k load as much as they add: half as much again as their arithmetic, measured.
    Index const dot = along_k ? m * (n * lanes(k) * 3 / 2 + summing(n)) : never;
    Index const column = along_k && n == 1 ? m * lanes(k) + summing(m) : never;
    if (column < direct && column < swapped) return gemm_kernel::column;
    if (dot < direct && dot < swapped) return gemm_kernel::dot;
    bool const by_rows = swapped < direct;
    Index const packed = (by_rows ? (columns_of_a ? 0 : m) : (rows_of_b ? 0 : n)) * k;
    // Rows that are pages apart compete for a few lines of the caches: many, or often read, are better packed.
    Index const apart = (by_rows ? Shape::a_col : Shape::b_row) * static_cast<Index>(sizeof(T));
    Index const times = by_rows ? n : m;
    bool const crowded = apart % 4096 == 0 && ((k > 256 && times > 12) || k * times > 12 * 1024);
    bool const packable = by_rows ? columns_of_a || Shape::a_col == 1 : rows_of_b || Shape::b_row == 1;
    if (!packable || (packed == 0 && crowded) || !(by_rows ? fits(k, m, n) : fits(k, n, m)) ||
        packed * static_cast<Index>(sizeof(T)) > 4 * 1024 * 1024)
      return gemm_kernel::blocked;
    if (by_rows) return columns_of_a ? gemm_kernel::swapped : gemm_kernel::swapped_packed;
    return rows_of_b ? gemm_kernel::direct : gemm_kernel::direct_packed;
  }
  static constexpr gemm_kernel value = choose();
};

/// Whether rows of a matrix that a vector is multiplied with are taken side by side: those of small ones, which stay
/// in a cache from one use to the next (1.5 to 1.8 times as fast), and long ones, of which each is a stream of its own.
/// Short rows of matrices that may come from memory are read in order: side by side they took up to 2.5 times as long,
/// and 1.2 times where what comes next is asked for, as in matrices somewhat above what is small.
template <class T>
constexpr bool is_small_matrix(Index rows, Index columns) {
  Index const row = columns * static_cast<Index>(sizeof(T)), all = rows * row;
  return all <= 2 * in_first_caches || (row >= 8 * 1024 && all <= 2048 * 1024);
}

constexpr Index known_or(Index fixed, Index given) { return fixed >= 0 ? fixed : given; }

template <class Shape, class Epilogue>
void gemm_any(typename Shape::type const* a, typename Shape::type const* b, typename Shape::type* c,
              void* workspace, Epilogue const& epilogue, gemm_sizes const& s) {
  using T = typename Shape::type;
  Index const m = known_or(Shape::m, s.m), n = known_or(Shape::n, s.n), k = known_or(Shape::k, s.k);
  Index const a_row = known_or(Shape::a_row, s.a_row), a_col = known_or(Shape::a_col, s.a_col);
  Index const b_row = known_or(Shape::b_row, s.b_row), b_col = known_or(Shape::b_col, s.b_col);
  Index const c_row = known_or(Shape::c_row, s.c_row);
  if constexpr (gemm_choice<Shape>::simd)
    gemm_run_time(m, n, k, strided<T>{a, a_row, a_col}, strided<T>{b, b_row, b_col}, c, c_row,
                  static_cast<T*>(workspace), epilogue);
  else reference::gemm(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, Index(1), epilogue);
}

}  // namespace detail

/// workspace_bytes - aligned memory that gemm<Shape> needs for this epilogue; a constant if extents are.
///
/// Extents that are run_time may stay so (the answer is then an upper bound for all sizes), except that m
/// must be given when the epilogue may read C: partial sums of a deep product then need a place of their own.
template <class Shape, class Epilogue = store_sum>
constexpr std::size_t workspace_bytes(gemm_sizes const& s = {}) {
  using T = typename Shape::type;
  using Choice = detail::gemm_choice<Shape>;
  std::int64_t elements = 0;
  if constexpr (Choice::value == detail::gemm_kernel::direct_packed)
    elements = Shape::k * detail::round_up(Shape::n, Choice::W);
  else if constexpr (Choice::value == detail::gemm_kernel::swapped_packed)
    elements = Shape::k * detail::round_up(Shape::m, Choice::W);
  else if constexpr (Choice::value == detail::gemm_kernel::blocked)
    elements = detail::blocked_workspace<T, Epilogue>(
        detail::known_or(Shape::m, s.m), detail::known_or(Shape::n, s.n), detail::known_or(Shape::k, s.k));
  return static_cast<std::size_t>(elements) * sizeof(T);
}

/// workspace_bytes_up_to - what suffices for every product of run-time extents up to these, all of which are given.
template <class T, class Epilogue = store_sum>
constexpr std::size_t workspace_bytes_up_to(std::int64_t m, std::int64_t n, std::int64_t k) {
  return static_cast<std::size_t>(detail::blocked_workspace_up_to<T, Epilogue>(m, n, k)) * sizeof(T);
}

/// gemm - C[m, n] = epilogue(sum_k A[m, k] B[k, n], m, n) for all m, n; C overlaps neither A nor B.
///
/// The epilogue is called with a lane of sums for columns n .. n+W-1, or with one scalar sum, and returns
/// what to store; it may read C at exactly those places. Where it can also be called with (lane, m, n,
/// count), the last columns of a row go through that form: only `count` lanes exist, so it must load with
/// load_n. `reads_c = false` as a static member promises that it does not look at C, and saves workspace for
/// deep products. Each element of C passes once.
///
/// Numerics  sums in the element type, fused multiply-add where the target has it, order of k fixed per shape
///           and target: |error| <= K eps / (1 - K eps) * sum |a| |b|
/// Cost      2 M N K flops; workspace_bytes<Shape, Epilogue>() bytes at `workspace`, aligned to 64
/// Threading any number of calls at once, each with its own workspace
template <class Shape, class Epilogue = store_sum>
void gemm(typename Shape::type const* a, typename Shape::type const* b, typename Shape::type* c,
          void* workspace = nullptr, Epilogue const& epilogue = {}, gemm_sizes const& sizes = {}) {
  using namespace detail;
  using T = typename Shape::type;
  using Choice = gemm_choice<Shape>;
  constexpr gemm_kernel kernel = Choice::value;
  Index const c_row = known_or(Shape::c_row, sizes.c_row);
  [[maybe_unused]] T* const packed = static_cast<T*>(workspace);
  if constexpr (kernel == gemm_kernel::direct && Shape::m == 1) {
    gemv_columns<Shape::n, Shape::k, Shape::a_col, Shape::b_row>(a, b,
                                                                 along_row<T, Epilogue>{c, c_row, epilogue});
  } else if constexpr (kernel == gemm_kernel::direct) {
    gemm_direct<T, Shape::m, Shape::n, Shape::a_row, Shape::a_col, Shape::b_row, Shape::c_row, false>(
        Shape::k, a, b, c, c_row, epilogue);
  } else if constexpr (kernel == gemm_kernel::direct_packed) {
    constexpr Index pitch = round_up(Shape::n, Choice::W);
    transpose<true>(b, Shape::b_col, Shape::n, Shape::k, packed, pitch);
    gemm_direct<T, Shape::m, Shape::n, Shape::a_row, Shape::a_col, pitch, Shape::c_row, true>(
        Shape::k, a, packed, c, c_row, epilogue);
  } else if constexpr (kernel == gemm_kernel::swapped && Shape::n == 1) {
    gemv_columns<Shape::m, Shape::k, Shape::b_row, Shape::a_col>(
        b, a, down_column<T, Epilogue>{c, c_row, epilogue});
  } else if constexpr (kernel == gemm_kernel::swapped) {
    gemm_swapped<T, Shape::m, Shape::n, Shape::b_row, Shape::b_col, Shape::a_col, false>(Shape::k, a, b, c,
                                                                                         c_row, epilogue);
  } else if constexpr (kernel == gemm_kernel::swapped_packed) {
    constexpr Index pitch = round_up(Shape::m, Choice::W);
    transpose<true>(a, Shape::a_row, Shape::m, Shape::k, packed, pitch);
    gemm_swapped<T, Shape::m, Shape::n, Shape::b_row, Shape::b_col, pitch, true>(Shape::k, packed, b, c,
                                                                                 c_row, epilogue);
  } else if constexpr (kernel == gemm_kernel::dot && Shape::m == 1 &&
                       is_small_matrix<T>(Shape::n, Shape::k)) {
    gemv_static<Shape::n, Shape::k, Shape::b_col>(a, b, along_row<T, Epilogue>{c, c_row, epilogue});
  } else if constexpr (kernel == gemm_kernel::dot) {
    gemm_dot(Shape::m, Shape::n, Shape::k, a, Shape::a_row, b, Shape::b_col,
             along_row<T, Epilogue>{c, c_row, epilogue});
  } else if constexpr (kernel == gemm_kernel::column && is_small_matrix<T>(Shape::m, Shape::k)) {
    gemv_static<Shape::m, Shape::k, Shape::a_row>(b, a, down_column<T, Epilogue>{c, c_row, epilogue});
  } else if constexpr (kernel == gemm_kernel::column) {
    gemm_dot(Index(1), Shape::m, Shape::k, b, Index(0), a, Shape::a_row,
             down_column<T, Epilogue>{c, c_row, epilogue});
  } else {
    gemm_any<Shape>(a, b, c, workspace, epilogue, sizes);
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
