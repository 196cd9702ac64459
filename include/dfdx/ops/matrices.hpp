// SPDX-License-Identifier: BSL-1.0
// Matrices of a batch, in double, and the loops over their rows. (Templates all: programs without linear algebra do not
// compile them.)
#pragma once

#include <algorithm>
#include <type_traits>

#include <dfdx/core/config.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::op::detail {

/// Matrix - one matrix of a batch, in double: in the operand's own memory where it lies as one there, else in memory of
/// its own, the same for one after the other.
template <int = 0>
class MatrixOf {
 public:
  index_t const rows, columns;

  MatrixOf(index_t r, index_t c)
      : rows(r), columns(c), memory_(static_cast<std::size_t>(r * c)), v_(memory_.get()) {}
  /// For one of the matrices x after the other, with `in_place` where they lie.
  explicit MatrixOf(Operand const& x, bool in_place = false)
      : rows(extent(x, 2)),
        columns(extent(x, 1)),
        in_place_(in_place && x.meta.dtype == DType::f64 && step(x, 1) == 1 && step(x, 2) == columns),
        memory_(in_place_ ? 0 : static_cast<std::size_t>(rows * columns)),
        v_(memory_.get()) {}

  double& operator()(index_t i, index_t j) { return v_[i * columns + j]; }
  double operator()(index_t i, index_t j) const { return v_[i * columns + j]; }
  double* row(index_t i) { return v_ + i * columns; }
  double const* row(index_t i) const { return v_ + i * columns; }
  void clear() { std::fill_n(v_, rows * columns, 0.0); }

  /// Is that of the operand it was made for: what it holds, or what is to be written there.
  void be(Operand const& x, index_t offset, bool is_read) {
    if (in_place_) v_ = static_cast<double*>(x.data) + offset;
    else if (is_read) read(x, offset);
  }
  /// Has the rows of x.
  void read(Operand const& x, index_t offset) {
    each(
        x, offset, extent(x, 2), [](double& mine, auto const& its) { mine = static_cast<double>(its); },
        [&](double& mine, index_t at) { mine = read_real(x, at); });
  }
  void write(Operand const& x, index_t offset) { write(x, offset, rows); }
  /// So many rows.
  void write(Operand const& x, index_t offset, index_t n) {
    if (in_place_) return;
    each(
        x, offset, n,
        [](double mine, auto& its) { its = static_cast<std::remove_reference_t<decltype(its)>>(mine); },
        [&](double mine, index_t at) { write_real(x, at, mine); });
  }

 private:
  static index_t extent(Operand const& x, int from_end) { return x.meta.shape[x.meta.shape.rank - from_end]; }
  static index_t step(Operand const& x, int from_end) { return x.strides[x.strides.rank - from_end]; }

  // f(element, that of x), or of dtypes that are seldom slow(element, where that of x is).
  template <class F, class Slow>
  void each(Operand const& x, index_t offset, index_t n, F const& f, Slow const& slow) {
    auto const all = [&](auto const& g) {
      double* mine = v_;
      index_t const down = step(x, 2), across = step(x, 1);
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < columns; ++j) g(*mine++, offset + i * down + j * across);
    };
    auto const in = [&](auto* p) { all([&](double& mine, index_t at) { f(mine, p[at]); }); };
    if (x.meta.dtype == DType::f64) in(static_cast<double*>(x.data));
    else if (x.meta.dtype == DType::f32) in(static_cast<float*>(x.data));
    else all(slow);
  }

  bool in_place_ = false;
  kernels::Scratch<double> const memory_;
  double* v_;
};
using Matrix = MatrixOf<>;

/// subtract_row - y -= f x of n numbers that lie apart from each other.
template <int = 0>
DFDX_INLINE void subtract_row(double* DFDX_RESTRICT y, double const* DFDX_RESTRICT x, double f, index_t n) {
  index_t i = 0;
  for (; i + 4 <= n; i += 4) {
    double const a = y[i] - f * x[i], b = y[i + 1] - f * x[i + 1];
    double const c = y[i + 2] - f * x[i + 2], d = y[i + 3] - f * x[i + 3];
    y[i] = a, y[i + 1] = b, y[i + 2] = c, y[i + 3] = d;
  }
  for (; i < n; ++i) y[i] -= f * x[i];
}
/// subtract_rows - y -= the sum of f x over so many rows x, four of them at once, for which y is read and written once;
/// `row` and `step` apart are rows and factors.
template <int = 0>
void subtract_rows(double* DFDX_RESTRICT y, double const* x, index_t row, double const* f, index_t step,
                   index_t rows, index_t n) {
  for (; rows >= 4; rows -= 4, x += 4 * row, f += 4 * step) {
    double const *const DFDX_RESTRICT p = x, *const DFDX_RESTRICT q = x + row;
    double const *const DFDX_RESTRICT r = x + 2 * row, *const DFDX_RESTRICT s = x + 3 * row;
    double const e = f[0], g = f[step], h = f[2 * step], k = f[3 * step];
    index_t i = 0;
    for (; i + 4 <= n; i += 4) {
      double const a = y[i] - e * p[i] - g * q[i] - h * r[i] - k * s[i];
      double const b = y[i + 1] - e * p[i + 1] - g * q[i + 1] - h * r[i + 1] - k * s[i + 1];
      double const c = y[i + 2] - e * p[i + 2] - g * q[i + 2] - h * r[i + 2] - k * s[i + 2];
      double const d = y[i + 3] - e * p[i + 3] - g * q[i + 3] - h * r[i + 3] - k * s[i + 3];
      y[i] = a, y[i + 1] = b, y[i + 2] = c, y[i + 3] = d;
    }
    for (; i < n; ++i) y[i] = y[i] - e * p[i] - g * q[i] - h * r[i] - k * s[i];
  }
  for (; rows > 0; --rows, x += row, f += step) subtract_row(y, x, *f, n);
}
/// row_product - the sum of x y, in eight sums that do not wait for each other.
template <int = 0>
double row_product(double const* x, double const* y, index_t n) {
  double sum[8] = {};
  index_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int k = 0; k < 8; ++k) sum[k] += x[i + k] * y[i + k];
  for (; i < n; ++i) sum[0] += x[i] * y[i];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

// Calls f(offsets) for each of a batch of matrices; the last two axes of the last operand are not of the batch.
template <int N, class F>
void for_matrices(Operand const* const (&x)[N], F const& f) {
  Shape batch = x[N - 1]->meta.shape;
  batch.rank -= 2;
  Strides strides[N];
  for (int k = 0; k < N; ++k) strides[k] = x[k]->strides, strides[k].rank = batch.rank;
  walk<N>(batch, strides, [&](index_t const(&o)[N]) { f(o); });
}

}  // namespace dfdx::op::detail
