// SPDX-License-Identifier: BSL-1.0
// Plain loops over index tuples, for the reference values of ops that are not elementwise.
#pragma once

#include "ops/suite.hpp"

namespace suite {

using V = std::span<Array const>;

// All index tuples of a shape, in row-major order.
template <class F>
void for_indices(Shape const& s, F const& f) {
  index_t index[max_rank] = {};
  for (index_t n = 0, size = s.numel(); n < size; ++n) {
    f(index);
    for (int a = s.rank - 1; a >= 0 && ++index[a] == s[a]; --a) index[a] = 0;
  }
}
inline double value_at(Array const& x, index_t const* index) {
  index_t o = 0;
  for (int a = 0; a < x.ndim(); ++a) o += index[a] * x.strides()[a];
  return read_real(x.operand(), o);
}

inline Array doubles(Shape const& s) { return full(s, 0, DType::f64); }
inline double& cell(Array const& x, index_t const* index) {
  index_t o = 0;
  for (int a = 0; a < x.ndim(); ++a) o += index[a] * x.strides()[a];
  return x.data<double>()[o];
}

// The results of reducing x over a mask of axes: join is folded over the elements of each place, in order.
template <class Join>
Array reduced(Array const& x, index_t mask, bool keep, double identity, Join const& join) {
  Array r = full(op::reduced_shape(x.shape(), mask), identity, DType::f64);
  for_indices(x.shape(), [&](index_t const* i) {
    index_t to[max_rank] = {};
    for (int a = 0; a < x.ndim(); ++a) to[a] = (mask >> a & 1) != 0 ? 0 : i[a];
    double& y = cell(r, to);
    y = join(y, value_at(x, i));
  });
  return keep ? r : reshape(r, dfdx::detail::dropped(x.shape(), mask));
}

// Values in all layouts and dtypes against `want`, worked out by the caller; rules for the floating ones.
inline void check_op(char const* name, Function const& f, std::function<Array(V)> const& reference,
                     std::vector<Array> const& x, bool integers, bool twice, bool rules = true) {
  for (DType d :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8, DType::i8}) {
    if (!is_floating(d) && !integers) continue;
    std::vector<Array> cast = x;
    for (Array& a : cast)
      if (is_floating(a.dtype())) a = cast_to(is_floating(d) ? a : abs(a), d);
    INFO(name << " " << name_of(d));
    Array const want = reference(cast);
    Tolerance const t = is_floating(d) ? tolerance(d) : Tolerance{0, 0};
    for (Layout layout : {Layout::dense, Layout::turned, Layout::sparse}) {
      std::vector<Array> laid = cast;
      for (Array& a : laid) a = laid_out(a, layout);
      Array const got = f(laid);
      REQUIRE(got.shape() == want.shape());
      require_close(got, want, {t.rtol, t.atol + 1e-300}, largest(want));
      check_regimes(f, laid, got);
    }
    if (rules && is_floating(d)) check_rules(f, cast, d, twice && d == DType::f64);
  }
}

}  // namespace suite
