// SPDX-License-Identifier: BSL-1.0
// Matrices of a batch, in double, and the loops over their rows. (Templates all: programs without linear algebra do not
// compile them.)
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include <dfdx/core/config.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::op::detail {

// What is defined with the vocabulary, which knows kernels (kernels/matrix_rows.hpp).

/// Factor - of a product: where it begins, and how far its rows and columns are apart.
struct Factor {
  double const* at;
  index_t row, column;
};
/// subtract_product - c -= a b, of m x k and k x n numbers, c apart from them.
template <int = 0>
void subtract_product(index_t m, index_t n, index_t k, Factor const& a, Factor const& b, double* c,
                      index_t c_row);
/// subtract_rows - y -= the sum of f x over so many rows x of n numbers; they and factors are `row` and `step` apart.
template <class E, class F>
void subtract_rows(double* y, E const* x, index_t row, F const* f, index_t step, index_t rows, index_t n);
/// subtract_from_rows - x -= f y for so many rows x.
template <int = 0>
void subtract_from_rows(double* x, index_t row, double const* f, index_t step, double const* y, index_t rows,
                        index_t n);
/// row_products - sums[k] = the sum of x y, for so many rows x.
template <class E>
void row_products(double* sums, E const* x, index_t row, double const* y, index_t rows, index_t n);
/// rotate_rows - x, y = c x - s y, s x + c y.
template <int = 0>
void rotate_rows(double* x, double* y, double c, double s, index_t n);
/// rotate_neighbours - rotations of each of `count` rows and the next, the last row first, by c and s of that row, and
/// after them a second lot, by what is `next` behind c and s; so many such pairs, 2 next apart.
template <int = 0>
void rotate_neighbours(double* x, index_t row, double const* c, double const* s, index_t next, index_t pairs,
                       index_t count, index_t n);
/// subtract_two_rows - x -= f v + g w for so many rows x, a factor f and g for each; sums = what they make with y then.
template <int = 0>
void subtract_two_rows(double* sums, double* x, index_t row, double const* f, double const* v,
                       double const* g, double const* w, double const* y, index_t rows, index_t n);
/// divide_row - y /= by.
template <int = 0>
void divide_row(double* y, double by, index_t n);
/// convert_row - y = x, floats or doubles; turn_rows - y = x^T, of rows x columns numbers in y.
template <class To, class From>
void convert_row(To* y, From const* x, index_t n);
template <class To, class From>
void turn_rows(To* y, index_t y_row, From const* x, index_t x_row, index_t rows, index_t columns);

/// turned - the transposes of an operand's matrices.
template <int = 0>
Operand turned(Operand x) {
  int const r = x.meta.shape.rank;
  std::swap(x.meta.shape[r - 2], x.meta.shape[r - 1]);
  std::swap(x.strides[r - 2], x.strides[r - 1]);
  return x;
}
/// is_turned - whether an operand's matrices lie column by column.
template <int = 0>
bool is_turned(Operand const& x) {
  int const r = x.meta.shape.rank;
  return x.strides[r - 2] == 1 && x.strides[r - 1] > 1 && x.strides[r - 1] >= x.meta.shape[r - 2];
}

/// whole - numbers of whole vectors; whole_before - where the vector begins in which the k-th is.
template <int = 0>
index_t whole(index_t n) {
  return (n + 15) / 16 * 16;
}
template <int = 0>
index_t whole_before(index_t k) {
  return k / 16 * 16;
}

/// Matrix - one matrix of a batch, in double: in the operand's own memory where its rows lie as such there, else in
/// memory of its own, the same for one after the other.
template <int = 0>
class MatrixOf {
 public:
  index_t const rows, columns, pitch;  ///< rows are `pitch` numbers apart

  MatrixOf(index_t r, index_t c)
      : rows(r), columns(c), pitch(c), memory_(static_cast<std::size_t>(r * c)), v_(memory_.get()) {}
  /// Of whole vectors, 0 behind its columns: loops along its rows may begin and end where those do.
  struct Whole {};
  MatrixOf(index_t r, index_t c, Whole)
      : rows(r),
        columns(c),
        pitch(whole(c)),
        memory_(static_cast<std::size_t>(r * pitch)),
        v_(memory_.get()) {
    std::fill_n(v_, r * pitch, 0.0);
  }
  MatrixOf(Operand const& x, Whole) : MatrixOf(extent(x, 2), extent(x, 1), Whole{}) {}
  /// For one of the matrices x after the other, with `in_place` where they lie.
  explicit MatrixOf(Operand const& x, bool in_place = false) : MatrixOf(x, Place{}, in_place && lies(x)) {}

  double& operator()(index_t i, index_t j) { return v_[i * pitch + j]; }
  double operator()(index_t i, index_t j) const { return v_[i * pitch + j]; }
  double* row(index_t i) { return v_ + i * pitch; }
  double const* row(index_t i) const { return v_ + i * pitch; }
  void clear() {
    for (index_t i = 0; i < rows; ++i) std::fill_n(row(i), columns, 0.0);
  }

  /// Is that of the operand it was made for: what it holds, or what is to be written there.
  void be(Operand const& x, index_t offset, bool is_read) {
    if (in_place_) v_ = static_cast<double*>(x.data) + offset;
    else if (is_read) read(x, offset);
  }
  /// Has the rows of x.
  void read(Operand const& x, index_t offset) {
    index_t const down = step(x, 2), across = step(x, 1), n = extent(x, 2);
    auto const all = [&](auto const* p) {
      if (across == 1 && down == columns && pitch == columns) return convert_row(v_, p, n * columns);
      if (down == 1 && across != 1) return turn_rows(v_, pitch, p, across, n, columns);
      for (index_t i = 0; i < n; ++i, p += down)
        if (across == 1) convert_row(row(i), p, columns);
        else
          for (index_t j = 0; j < columns; ++j) (*this)(i, j) = static_cast<double>(p[j * across]);
    };
    if (x.meta.dtype == DType::f64) all(static_cast<double const*>(x.data) + offset);
    else if (x.meta.dtype == DType::f32) all(static_cast<float const*>(x.data) + offset);
    else
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < columns; ++j) (*this)(i, j) = read_real(x, offset + i * down + j * across);
  }
  void write(Operand const& x, index_t offset) const { write(x, offset, rows); }
  /// So many rows.
  void write(Operand const& x, index_t offset, index_t n) const {
    if (in_place_) return;
    index_t const down = step(x, 2), across = step(x, 1);
    auto const all = [&](auto* p) {
      using T = std::remove_pointer_t<decltype(p)>;
      if (across == 1 && down == columns && pitch == columns)
        return convert_row(p, static_cast<double const*>(v_), n * columns);
      if (down == 1 && across != 1) return turn_rows(p, across, row(0), pitch, columns, n);
      for (index_t i = 0; i < n; ++i, p += down)
        if (across == 1) convert_row(p, row(i), columns);
        else
          for (index_t j = 0; j < columns; ++j) p[j * across] = static_cast<T>((*this)(i, j));
    };
    if (x.meta.dtype == DType::f64) all(static_cast<double*>(x.data) + offset);
    else if (x.meta.dtype == DType::f32) all(static_cast<float*>(x.data) + offset);
    else
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < columns; ++j) write_real(x, offset + i * down + j * across, (*this)(i, j));
  }

 private:
  struct Place {};
  MatrixOf(Operand const& x, Place, bool in_place)
      : rows(extent(x, 2)),
        columns(extent(x, 1)),
        pitch(in_place ? step(x, 2) : columns),
        in_place_(in_place),
        memory_(in_place ? 0 : static_cast<std::size_t>(rows * columns)),
        v_(memory_.get()) {}
  static index_t extent(Operand const& x, int from_end) { return x.meta.shape[x.meta.shape.rank - from_end]; }
  static index_t step(Operand const& x, int from_end) { return x.strides[x.strides.rank - from_end]; }
  static bool lies(Operand const& x) {
    return x.meta.dtype == DType::f64 && step(x, 1) == 1 && step(x, 2) >= extent(x, 1);
  }

  bool const in_place_ = false;
  kernels::Scratch<double> const memory_;
  double* v_;
};
using Matrix = MatrixOf<>;

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
