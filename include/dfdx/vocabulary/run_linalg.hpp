// SPDX-License-Identifier: BSL-1.0
// What linear algebra (ops/matrices.hpp) takes from kernels: products of matrices and loops over their rows.
#pragma once

#include <cstddef>

#include <dfdx/core/scratch.hpp>
#include <dfdx/kernels/gemm.hpp>
#include <dfdx/kernels/matrix_rows.hpp>
#include <dfdx/ops/matrices.hpp>

namespace dfdx::op::detail {

template <int>
void subtract_product(index_t m, index_t n, index_t k, Factor const& a, Factor const& b, double* c,
                      index_t c_row) {
  if (m <= 0 || n <= 0 || k <= 0) return;
#if !defined(__CUDACC__)
  using Any = kernels::gemm_shape<double, -1, -1, -1, -1, -1, -1, -1, -1>;
  kernels::gemm_sizes const sizes{m, n, k, a.row, a.column, b.row, b.column, c_row};
  using Less = kernels::add_scaled_sum<double>;
  kernels::Scratch<std::byte> const room(kernels::multiply_workspace<Any, Less>(sizes));
  kernels::multiply<Any>(a.at, b.at, c, room.get(), Less{-1, c, c_row}, sizes);
#else
  for (index_t i = 0; i < m; ++i)
    for (index_t l = 0; l < k; ++l)
      for (index_t j = 0; j < n; ++j)
        c[i * c_row + j] -= a.at[i * a.row + l * a.column] * b.at[l * b.row + j * b.column];
#endif
}
template <class E, class F>
void subtract_rows(double* y, E const* x, index_t row, F const* f, index_t step, index_t rows, index_t n) {
  kernels::subtract_rows(y, x, row, f, step, rows, n);
}
template <int>
void subtract_from_rows(double* x, index_t row, double const* f, index_t step, double const* y, index_t rows,
                        index_t n) {
  kernels::subtract_from_rows(x, row, f, step, y, rows, n);
}
template <class E>
void row_products(double* sums, E const* x, index_t row, double const* y, index_t rows, index_t n) {
  kernels::row_products(sums, x, row, y, rows, n);
}
template <int>
void rotate_rows(double* x, double* y, double c, double s, index_t n) {
  kernels::rotate_rows(x, y, c, s, n);
}
template <int>
void rotate_neighbours(double* x, index_t row, double const* c, double const* s, index_t next, index_t pairs,
                       index_t count, index_t n) {
  kernels::rotate_neighbours(x, row, c, s, next, pairs, count, n);
}
template <int>
void subtract_two_rows(double* sums, double* x, index_t row, double const* f, double const* v,
                       double const* g, double const* w, double const* y, index_t rows, index_t n) {
  kernels::subtract_two_rows(sums, x, row, f, v, g, w, y, rows, n);
}
template <int>
void divide_row(double* y, double by, index_t n) {
  kernels::divide_row(y, by, n);
}
template <class To, class From>
void convert_row(To* y, From const* x, index_t n) {
  kernels::convert_row(y, x, n);
}
template <class To, class From>
void turn_rows(To* y, index_t y_row, From const* x, index_t x_row, index_t rows, index_t columns) {
  kernels::turn_rows(y, y_row, x, x_row, rows, columns);
}

}  // namespace dfdx::op::detail
