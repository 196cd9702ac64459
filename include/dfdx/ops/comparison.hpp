// SPDX-License-Identifier: BSL-1.0
// Comparisons, logic, and selection by a condition.
#pragma once

#include <dfdx/ops/elementwise.hpp>

namespace dfdx::op {

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
struct less : ordering<less> {
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
struct less_equal : ordering<less_equal> {
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
struct greater : ordering<greater> {
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
struct greater_equal : ordering<greater_equal> {
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
  static constexpr auto eval(auto const& x, auto const& y) {
    // Of numbers without a branch, which chance would mispredict.
    if constexpr (std::is_same_v<decltype(x), bool const&>) return static_cast<bool>(x & y);
    else return x && y;
  }
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
  static constexpr auto eval(auto const& x, auto const& y) {
    // Of numbers without a branch, which chance would mispredict.
    if constexpr (std::is_same_v<decltype(x), bool const&>) return static_cast<bool>(x | y);
    else return x || y;
  }
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
  template <class C, class X, class Y>
  static constexpr auto eval(C const& c, X const& x, Y const& y) {
    // Of integers without a branch, which compilers make of the other form.
    if constexpr (std::is_same_v<C, bool> && std::is_integral_v<X> && !std::is_same_v<X, bool>)
      return static_cast<X>(y ^ ((x ^ y) & -static_cast<X>(c)));
    else return math::select(c, x, y);
  }
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const& s) {
    if constexpr (I == 1) return apply<where>(s.x[0], t, zeros_as(t));
    else if constexpr (I == 2) return apply<where>(s.x[0], zeros_as(t), t);
    else return V{};
  }
};
template <>
struct fused<81> {
  using type = where;
};

}  // namespace dfdx::op
