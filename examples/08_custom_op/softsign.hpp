// SPDX-License-Identifier: BSL-1.0
// Lesson 8, first file: an op of one's own. Its value on a lane (a number, or a vector of them), its
// derivative in terms of other ops, and a number from 1024 on by which fused loops find it: that is all.
// Gradients, forward mode, fusion, vectorisation and error messages follow.
#pragma once

#include <dfdx/dfdx.hpp>

// [readme:op]
namespace my {

/// softsign - a sigmoid that approaches its limits slowly.
///
/// Math      y = x / (1 + |x|), dy/dx = 1 / (1 + |x|)^2
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Errors    none
/// Source    Bergstra et al., "Quadratic polynomials learn better image features", 2009
struct softsign_op : dfdx::op::analytic<softsign_op, 1> {
  static constexpr char const* name = "softsign";
  static constexpr dfdx::Code code = dfdx::op::numbered(1024);

  static constexpr auto eval(auto const& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    return x / (X(1) + dfdx::math::abs(x));
  }

  /// t times the derivative. One formula is both the VJP and the JVP, since the Jacobian is diagonal.
  template <int I, class V>
  static constexpr V scale(V const& t, dfdx::Site<V> const& s) {
    V const d = 1.0 + abs(s.x[0]);
    return t / (d * d);
  }
};

template <dfdx::operand X>
constexpr auto softsign(X const& x) {
  return dfdx::apply<softsign_op>(x);
}

}  // namespace my

template <>
struct dfdx::op::fused<1024> {
  using type = my::softsign_op;
};
// [/readme:op]
