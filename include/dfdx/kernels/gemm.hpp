// SPDX-License-Identifier: BSL-1.0
// Matrix products by the processor's own kernel: the packed ones of simd/, or those of rvv/ where vectors have no size.
#pragma once

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/kernels/rvv/gemm_int8.hpp>
#include <dfdx/kernels/simd/gemm.hpp>
#include <dfdx/kernels/simd/gemm_bf16.hpp>
#include <dfdx/kernels/simd/gemm_int8.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// multiply - C = epilogue(A B), as gemm (simd/gemm.hpp), on several threads where there are (core/parallel.hpp).
/// multiply_workspace - the bytes it needs.
template <class Shape, class Epilogue = store_sum>
constexpr std::size_t multiply_workspace(gemm_sizes const& s = {}) {
#if defined(DFDX_RVV)
  using detail::known_or;
  bool const may_read_columns = known_or(Shape::b_col, s.b_col) != 1;
  return rvv::gemm_workspace<typename Shape::type>(known_or(Shape::n, s.n), known_or(Shape::k, s.k),
                                                   may_read_columns);
#else
  return workspace_bytes<Shape, Epilogue>(s);
#endif
}

/// add_scaled_sum - the epilogue C = old + scale * A B.
#if defined(DFDX_RVV)
template <class T>
using add_scaled_sum = rvv::add_scaled<T>;
#else
template <class T>
using add_scaled_sum = add_scaled<T>;
#endif

/// multiply_workspace_up_to - the bytes that suffice for every product of run-time extents up to these.
template <class T, class Epilogue = store_sum>
constexpr std::size_t multiply_workspace_up_to([[maybe_unused]] std::int64_t m, std::int64_t n,
                                               std::int64_t k) {
#if defined(DFDX_RVV)
  return rvv::gemm_workspace<T>(n, k, true);
#else
  return workspace_bytes_up_to<T, Epilogue>(m, n, k);
#endif
}

namespace detail {

template <class Shape, class Epilogue>
void multiply_here(typename Shape::type const* a, typename Shape::type const* b, typename Shape::type* c,
                   void* workspace, Epilogue const& epilogue, gemm_sizes const& s) {
#if defined(DFDX_RVV)
  using T = typename Shape::type;
  using detail::known_or;
  std::int64_t const m = known_or(Shape::m, s.m), n = known_or(Shape::n, s.n), k = known_or(Shape::k, s.k);
  std::int64_t const a_row = known_or(Shape::a_row, s.a_row), a_col = known_or(Shape::a_col, s.a_col);
  std::int64_t const b_row = known_or(Shape::b_row, s.b_row), b_col = known_or(Shape::b_col, s.b_col);
  std::int64_t const c_row = known_or(Shape::c_row, s.c_row);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    rvv::gemm<T>(m, n, k, {a, a_row, a_col}, {b, b_row, b_col}, c, c_row, workspace, epilogue);
  else reference::gemm(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, std::int64_t{1}, epilogue);
#else
  gemm<Shape>(a, b, c, workspace, epilogue, s);
#endif
}

/// Moved - the epilogue of a part of a product that begins at row m, column n of it.
template <class Epilogue>
struct Moved {
  static constexpr bool reads_c = [] {
    if constexpr (requires { Epilogue::reads_c; }) return Epilogue::reads_c;
    else return true;
  }();
  static constexpr bool heavy = [] {
    if constexpr (requires { Epilogue::heavy; }) return Epilogue::heavy;
    else return false;
  }();
  Epilogue const& epilogue;
  std::int64_t m, n;

  DFDX_INLINE void prefetch(std::int64_t i, std::int64_t j, int rows, int columns) const {
    if constexpr (requires { epilogue.prefetch(i, j, rows, columns); })
      epilogue.prefetch(m + i, n + j, rows, columns);
  }
  template <class V>
  DFDX_INLINE V operator()(V const& sum, std::int64_t i, std::int64_t j) const {
    return epilogue(sum, m + i, n + j);
  }
  template <class V>
    requires requires(Epilogue const& e, V const& v) { e(v, std::int64_t{}, std::int64_t{}, 0); }
  DFDX_INLINE V operator()(V const& sum, std::int64_t i, std::int64_t j, int count) const {
    return epilogue(sum, m + i, n + j, count);
  }
};
template <class Epilogue>
constexpr auto moved(Epilogue const& epilogue, std::int64_t m, std::int64_t n) {
  if constexpr (std::is_same_v<Epilogue, store_sum>) return epilogue;
  else return Moved<Epilogue>{epilogue, m, n};
}

/// Parts are rectangles of whole tiles.
inline constexpr std::int64_t part_rows = 16, part_columns = 64;

/// Grid - how a product is divided: so that the parts' edges, which they pack and read, are short.
struct Grid {
  int rows = 1, columns = 1;
};
constexpr Grid grid_of(std::int64_t m, std::int64_t n, int parts) {
  Grid best;
  std::int64_t least = 0;
  for (; parts > 1 && least == 0; --parts)
    for (int rows = 1; rows <= parts; ++rows) {
      int const columns = parts / rows;
      if (rows * columns != parts || rows * part_rows >= m + part_rows ||
          columns * part_columns >= n + part_columns)
        continue;
      std::int64_t const edges = m / rows + n / columns;
      if (least == 0 || edges < least) least = edges, best = {rows, columns};
    }
  return best;
}

template <class Shape>
constexpr bool is_divided() {
  if (!has_threads) return false;
  return Shape::m < 0 || Shape::n < 0 || Shape::k < 0 ||
         work_of_products(Shape::m * Shape::n * Shape::k) >= 2 * part_work;
}

// f(rows, columns) for each part of a product, by a thread each.
template <class F>
void over_grid(Grid const& grid, std::int64_t m, std::int64_t n, F const& f) {
  in_parallel(grid.rows * grid.columns, [&](int i) {
    Part const rows = part_of(m, i / grid.columns, grid.rows, part_rows);
    Part const columns = part_of(n, i % grid.columns, grid.columns, part_columns);
    if (rows.end > rows.begin && columns.end > columns.begin) f(rows, columns);
  });
}

// The parts of a product, each with memory of its own.
template <class Shape, class Epilogue>
void multiply_parts(Grid const& grid, typename Shape::type const* a, typename Shape::type const* b,
                    typename Shape::type* c, Epilogue const& epilogue, gemm_sizes const& all) {
  using Any = gemm_shape<typename Shape::type, run_time, run_time, Shape::k, Shape::a_row, Shape::a_col,
                         Shape::b_row, Shape::b_col, Shape::c_row>;
  over_grid(grid, known_or(Shape::m, all.m), known_or(Shape::n, all.n), [&](Part rows, Part columns) {
    gemm_sizes s = all;
    s.m = rows.end - rows.begin, s.n = columns.end - columns.begin;
    auto const part = moved(epilogue, rows.begin, columns.begin);
    Scratch<std::byte> const room(multiply_workspace<Any, std::remove_const_t<decltype(part)>>(s));
    multiply_here<Any>(a + rows.begin * known_or(Shape::a_row, s.a_row),
                       b + columns.begin * known_or(Shape::b_col, s.b_col),
                       c + rows.begin * known_or(Shape::c_row, s.c_row) + columns.begin, room.get(), part, s);
  });
}

}  // namespace detail

template <class Shape, class Epilogue = store_sum>
void multiply(typename Shape::type const* a, typename Shape::type const* b, typename Shape::type* c,
              void* workspace = nullptr, Epilogue const& epilogue = {}, gemm_sizes const& s = {}) {
  if constexpr (detail::is_divided<Shape>()) {
    std::int64_t const m = detail::known_or(Shape::m, s.m), n = detail::known_or(Shape::n, s.n),
                       k = detail::known_or(Shape::k, s.k);
    auto const grid = detail::grid_of(m, n, parts_of(work_of_products(m * n * k), m * n));
    if (grid.rows * grid.columns > 1) return detail::multiply_parts<Shape>(grid, a, b, c, epilogue, s);
  }
  detail::multiply_here<Shape>(a, b, c, workspace, epilogue, s);
}

/// multiply_bf16 - gemm_bf16 on several threads where there are.
template <int Lazy = 0>
void multiply_bf16([[maybe_unused]] std::int64_t m, [[maybe_unused]] std::int64_t n,
                   [[maybe_unused]] std::int64_t k, [[maybe_unused]] detail::strided<bfloat16> a,
                   [[maybe_unused]] detail::strided<bfloat16> b, [[maybe_unused]] bfloat16* c,
                   [[maybe_unused]] std::int64_t c_row, [[maybe_unused]] void* workspace) {
#if defined(__AVX512BF16__) && defined(__AVX512F__)
  // Half the time of as many products of f32.
  auto const grid = detail::grid_of(m, n, parts_of(work_of_products(m * n * k) / 2, m * n));
  if (grid.rows * grid.columns == 1) return gemm_bf16<Lazy>(m, n, k, a, b, c, c_row, workspace);
  detail::over_grid(grid, m, n, [&](Part rows, Part columns) {
    std::int64_t const height = rows.end - rows.begin, width = columns.end - columns.begin;
    Scratch<std::byte> const room(gemm_bf16_workspace(height, width, k));
    gemm_bf16<Lazy>(height, width, k, {a.at + rows.begin * a.row, a.row, a.col},
                    {b.at + columns.begin * b.col, b.row, b.col}, c + rows.begin * c_row + columns.begin,
                    c_row, room.get());
  });
#endif
}

/// multiply_int8 - gemm_int8 on several threads where there are; C's rows are contiguous. multiply_int8_workspace - the
/// bytes it needs.
constexpr std::size_t multiply_int8_workspace(std::int64_t m, std::int64_t n, std::int64_t k) {
#if defined(DFDX_RVV)
  return static_cast<void>(m), rvv::gemm_int8_workspace(n, k);
#else
  return gemm_int8_workspace(m, n, k);
#endif
}

namespace detail {

template <byte_number A, byte_number B>
void multiply_int8_here(std::int64_t m, std::int64_t n, std::int64_t k, strided<A> a, strided<B> b,
                        std::int32_t* c, std::int64_t c_row, void* workspace) {
#if defined(DFDX_RVV)
  rvv::gemm_int8<A, B>(m, n, k, {a.at, a.row, a.col}, {b.at, b.row, b.col}, c, c_row, workspace);
#else
  gemm_int8(m, n, k, a, b, c, c_row, workspace);
#endif
}

}  // namespace detail

template <byte_number A, byte_number B>
void multiply_int8(std::int64_t m, std::int64_t n, std::int64_t k, detail::strided<A> a, detail::strided<B> b,
                   std::int32_t* c, std::int64_t c_row, void* workspace) {
  // As many as four products of f32 in the time of one.
  auto const grid = detail::grid_of(m, n, parts_of(work_of_products(m * n * k) / 4, m * n));
  if (grid.rows * grid.columns == 1) return detail::multiply_int8_here(m, n, k, a, b, c, c_row, workspace);
  detail::over_grid(grid, m, n, [&](Part rows, Part columns) {
    std::int64_t const height = rows.end - rows.begin, width = columns.end - columns.begin;
    Scratch<std::byte> const room(multiply_int8_workspace(height, width, k));
    detail::multiply_int8_here(height, width, k, detail::strided<A>{a.at + rows.begin * a.row, a.row, a.col},
                               detail::strided<B>{b.at + columns.begin * b.col, b.row, b.col},
                               c + rows.begin * c_row + columns.begin, c_row, room.get());
  });
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
