// SPDX-License-Identifier: BSL-1.0
// Elementwise ops of two and three operands, comparisons, logic, and the change of dtype.
#pragma once

#include <dfdx/ops/elementwise.hpp>

namespace dfdx::op {

/// add - x plus y.
///
/// Math      z = x + y, dz/dx = dz/dy = 1
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "add: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct add : arithmetic<add, 2> {
  static constexpr char const* name = "add";
  static constexpr Code code = numbered(64);
  static constexpr auto eval(auto const& x, auto const& y) { return x + y; }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    return t;
  }
};
template <>
struct fused<64> {
  using type = add;
};

/// sub - x minus y.
///
/// Math      z = x - y, dz/dx = 1, dz/dy = -1
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "sub: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct sub : arithmetic<sub, 2> {
  static constexpr char const* name = "sub";
  static constexpr Code code = numbered(65);
  static constexpr auto eval(auto const& x, auto const& y) { return x - y; }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    if constexpr (I == 0) return t;
    else return -t;
  }
};
template <>
struct fused<65> {
  using type = sub;
};

/// mul - x times y.
///
/// Math      z = x y, dz/dx = y, dz/dy = x
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "mul: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct mul : arithmetic<mul, 2> {
  static constexpr char const* name = "mul";
  static constexpr Code code = numbered(66);
  static constexpr auto eval(auto const& x, auto const& y) { return x * y; }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    return t * s.x[1 - I];
  }
};
template <>
struct fused<66> {
  using type = mul;
};

/// div - x over y; integers truncate.
///
/// Math      z = x / y, dz/dx = 1 / y, dz/dy = -z / y
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "div: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct div : arithmetic<div, 2> {
  static constexpr char const* name = "div";
  static constexpr Code code = numbered(67);
  static constexpr int cost = 2;
  static constexpr auto eval(auto const& x, auto const& y) { return x / y; }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return t / s.x[1];
    else return -(t * s.y) / s.x[1];
  }
};
template <>
struct fused<67> {
  using type = div;
};

/// pow - x to the power y.
///
/// Math      z = x^y, dz/dx = y x^(y-1) (0 where y = 0), dz/dy = z ln x (0 where x = 0 and y >= 0)
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    f32 f64 f16 bf16
/// Errors    "pow: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct pow : analytic<pow, 2> {
  static constexpr char const* name = "pow";
  static constexpr Code code = numbered(68);
  static constexpr auto eval(auto const& x, auto const& y) { return math::pow(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    V const& x = s.x[0];
    V const& y = s.x[1];
    V const zero = zeros_like(t);
    if constexpr (I == 0) return apply<where>(y == zero, zero, t * (y * apply<pow>(x, y - 1.0)));
    else return apply<where>(apply<logical_and>(x == zero, y >= zero), zero, t * (s.y * apply<log>(x)));
  }
};
template <>
struct fused<68> {
  using type = pow;
};

/// maximum - the larger of x and y; NaN if either is NaN.
///
/// Math      z = max(x, y); the gradient goes to the chosen operand, half to each where x = y
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "maximum: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct maximum : arithmetic<maximum, 2> {
  static constexpr char const* name = "maximum";
  static constexpr Code code = numbered(69);
  static constexpr auto eval(auto const& x, auto const& y) { return math::maximum(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    V const& mine = s.x[I];
    V const& other = s.x[1 - I];
    return apply<where>(mine == other, t * 0.5, apply<where>(mine > other, t, zeros_like(t)));
  }
};
template <>
struct fused<69> {
  using type = maximum;
};

/// minimum - the smaller of x and y; NaN if either is NaN.
///
/// Math      z = min(x, y); the gradient goes to the chosen operand, half to each where x = y
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all but bool, promoted
/// Errors    "minimum: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct minimum : arithmetic<minimum, 2> {
  static constexpr char const* name = "minimum";
  static constexpr Code code = numbered(70);
  static constexpr auto eval(auto const& x, auto const& y) { return math::minimum(x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    V const& mine = s.x[I];
    V const& other = s.x[1 - I];
    return apply<where>(mine == other, t * 0.5, apply<where>(mine < other, t, zeros_like(t)));
  }
};
template <>
struct fused<70> {
  using type = minimum;
};

/// equal - whether x = y.
///
/// Math      z = [x = y]; no gradient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all, promoted
/// Errors    "equal: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct equal : comparison<equal> {
  static constexpr char const* name = "equal";
  static constexpr Code code = numbered(71);
  static constexpr auto eval(auto const& x, auto const& y) { return x == y; }
};
template <>
struct fused<71> {
  using type = equal;
};

/// not_equal - whether x != y.
///
/// Math      z = [x != y]; no gradient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all, promoted
/// Errors    "not_equal: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct not_equal : comparison<not_equal> {
  static constexpr char const* name = "not_equal";
  static constexpr Code code = numbered(72);
  static constexpr auto eval(auto const& x, auto const& y) { return x != y; }
};
template <>
struct fused<72> {
  using type = not_equal;
};

/// less - whether x < y.
///
/// Math      z = [x < y]; no gradient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all, promoted
/// Errors    "less: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct less : comparison<less> {
  static constexpr char const* name = "less";
  static constexpr Code code = numbered(73);
  static constexpr auto eval(auto const& x, auto const& y) { return x < y; }
};
template <>
struct fused<73> {
  using type = less;
};

/// less_equal - whether x <= y.
///
/// Math      z = [x <= y]; no gradient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all, promoted
/// Errors    "less_equal: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct less_equal : comparison<less_equal> {
  static constexpr char const* name = "less_equal";
  static constexpr Code code = numbered(74);
  static constexpr auto eval(auto const& x, auto const& y) { return x <= y; }
};
template <>
struct fused<74> {
  using type = less_equal;
};

/// greater - whether x > y.
///
/// Math      z = [x > y]; no gradient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all, promoted
/// Errors    "greater: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct greater : comparison<greater> {
  static constexpr char const* name = "greater";
  static constexpr Code code = numbered(75);
  static constexpr auto eval(auto const& x, auto const& y) { return x > y; }
};
template <>
struct fused<75> {
  using type = greater;
};

/// greater_equal - whether x >= y.
///
/// Math      z = [x >= y]; no gradient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    all, promoted
/// Errors    "greater_equal: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct greater_equal : comparison<greater_equal> {
  static constexpr char const* name = "greater_equal";
  static constexpr Code code = numbered(76);
  static constexpr auto eval(auto const& x, auto const& y) { return x >= y; }
};
template <>
struct fused<76> {
  using type = greater_equal;
};

/// logical_and - whether both hold.
///
/// Math      z = x and y; no gradient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    bool
/// Errors    "logical_and: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct logical_and : logical<logical_and, 2> {
  static constexpr char const* name = "logical_and";
  static constexpr Code code = numbered(77);
  static constexpr auto eval(auto const& x, auto const& y) { return x && y; }
};
template <>
struct fused<77> {
  using type = logical_and;
};

/// logical_or - whether one holds.
///
/// Math      z = x or y; no gradient
/// Shapes    x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    bool
/// Errors    "logical_or: shapes do not broadcast: [2, 3] x [4]"
/// Source    elementary calculus
struct logical_or : logical<logical_or, 2> {
  static constexpr char const* name = "logical_or";
  static constexpr Code code = numbered(78);
  static constexpr auto eval(auto const& x, auto const& y) { return x || y; }
};
template <>
struct fused<78> {
  using type = logical_or;
};

/// logical_not - whether x does not hold.
///
/// Math      y = not x; no gradient
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    bool
/// Errors    "logical_not: bool required, got f32"
/// Source    elementary calculus
struct logical_not : logical<logical_not, 1> {
  static constexpr char const* name = "logical_not";
  static constexpr Code code = numbered(80);
  static constexpr auto eval(auto const& x) { return !x; }
};
template <>
struct fused<80> {
  using type = logical_not;
};

/// where - x where c holds, else y.
///
/// Math      z = c ? x : y, dz/dx = [c], dz/dy = [not c]
/// Shapes    c, x, y: broadcast to [S...] -> z: [S...]
/// Dtypes    c: bool; x, y: any one dtype
/// Errors    "where: bool condition required, got f32"
/// Source    elementary calculus
struct where : elementwise_op<where, 3> {
  static constexpr char const* name = "where";
  static constexpr Code code = numbered(81);
  static constexpr DType operand_dtype(int i, DType common) { return i == 0 ? DType::boolean : common; }
  static constexpr Meta common(Meta const* in, Text* why) {
    if (in[0].dtype != DType::boolean)
      return refuse(why, name, ": bool condition required, got ", in[0].dtype);
    Meta const operands[3] = {Meta{in[1].dtype, in[0].shape}, in[1], in[2]};
    return elementwise_op<where, 3>::common(operands, why);
  }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) { return common(in, why); }
  static constexpr auto eval(auto const& c, auto const& x, auto const& y) { return math::select(c, x, y); }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    if constexpr (I == 1) return apply<where>(s.x[0], t, zeros_like(t));
    else if constexpr (I == 2) return apply<where>(s.x[0], zeros_like(t), t);
    else return V{};
  }
};
template <>
struct fused<81> {
  using type = where;
};

/// stop_gradient - x itself, but no derivative flows through it.
///
/// Math      y = x, dy/dx taken as 0
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct stop_gradient : elementwise_op<stop_gradient, 1> {
  static constexpr char const* name = "stop_gradient";
  static constexpr Code code = numbered(82);
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  static constexpr auto eval(auto const& x) { return x; }
};
template <>
struct fused<82> {
  using type = stop_gradient;
};

/// copy - x itself, in memory of its own: what a program's output is when it would else be one of its inputs.
///
/// Math      y = x, dy/dx = 1
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    any
/// Errors    none
/// Source    elementary
struct copy : elementwise_op<copy, 1> {
  static constexpr char const* name = "copy";
  static constexpr Code code = numbered(83);
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[0]; }
  static constexpr auto eval(auto const& x) { return x; }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    return t;
  }
};
template <>
struct fused<83> {
  using type = copy;
};

/// cast - the same numbers in another dtype; to an integer it truncates, to bool it asks "not zero".
///
/// Math      y = x, dy/dx = 1 between floating dtypes
/// Shapes    x: [S...] -> y: [S...]
/// Dtypes    any to any
/// Errors    none
/// Source    elementary
struct cast : operation {
  static constexpr char const* name = "cast";
  static constexpr Code code = Code::cast;
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text*) {
    return Meta{static_cast<DType>(a.i[0]), in[0].shape};
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return is_floating(s.x[0].dtype()) ? bind<cast>(Attrs{{static_cast<index_t>(s.x[0].dtype())}}, ct) : V{};
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return is_floating(s.y.dtype()) ? bind<cast>(s.attrs, t) : V{};
  }
};

}  // namespace dfdx::op
