// SPDX-License-Identifier: BSL-1.0
// The family of elementwise ops. An author writes `eval` over lane values and `scale<I>(t, site)`, t times the
// partial derivative with respect to operand I; since the Jacobian is diagonal that one formula is both VJP and
// JVP. Operands have equal shapes here: the vocabulary broadcasts, and the transpose of its `expand` reduces
// gradients.
#pragma once

#include <dfdx/ops/rules.hpp>

namespace dfdx::op {

// Named by the rules of ops that are defined before them.
struct exp;
struct log;
struct sin;
struct cos;
struct cosh;
struct sign;
struct digamma;
struct polygamma;
struct pow;
struct equal;
struct where;
struct logical_and;
struct neg;
struct mul;

/// elementwise_op - what every elementwise op shares.
template <class Self, int Arity>
struct elementwise_op : operation {
  static constexpr int arity = Arity;
  static constexpr bool elementwise = true;

  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return Self::template scale<I>(ct, s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return Self::template scale<I>(t, s);
  }
  template <int I, class V>
  static constexpr V scale(V const&, Site<V> const&) {
    return V{};
  }

  /// The dtype that operand i is brought to, given the common one.
  static constexpr DType operand_dtype(int, DType common) { return common; }

  /// The broadcast shape and promoted dtype of any operands; the vocabulary brings them there before it binds.
  static constexpr Meta common(Meta const* in, Text* why) {
    Meta r = in[0];
    for (int i = 1; i < Arity; ++i) {
      r.shape = broadcast_shapes(Self::name, r.shape, in[i].shape, why);
      if (!r.valid()) return r;
      r.dtype = promote(r.dtype, in[i].dtype);
    }
    return r;
  }
};

/// real - integers and truths as f32, what functions with fractions take them for (PyTorch's rule).
constexpr Meta real(Meta m) {
  if (m.valid() && !is_floating(m.dtype)) m.dtype = DType::f32;
  return m;
}

/// guarded - x + eps, where the op has such an attribute: what rules divide by, so that a pole is finite.
template <class V>
constexpr V guarded(V const& x, Attrs const& attrs) {
  return attrs.f[0] == 0 ? x : x + attrs.f[0];
}

/// arithmetic - numbers in, numbers of the same dtype out.
template <class Self, int Arity>
struct arithmetic : elementwise_op<Self, Arity> {
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta const r = elementwise_op<Self, Arity>::common(in, why);
    if (r.valid() && r.dtype == DType::boolean)
      return refuse(why, Self::name, ": numeric dtype required, got bool");
    return r;
  }
};

/// stepped - an arithmetic op that is constant but for its steps: its derivative is 0. In graphs nothing flows back, so
/// that nothing is computed. On the tape zeros do, as in PyTorch: a value that was made of one with a gradient has one,
/// and `backward` can be called of it.
template <class Self, int Arity>
struct stepped : arithmetic<Self, Arity> {
  template <int I, class V>
  static constexpr V scale(V const& t, Site<V> const&) {
    if constexpr (std::is_same_v<V, Sym>) return V{};
    else if constexpr (std::is_same_v<V, PlainNumber>) return PlainNumber{0, 0};
    else return full_as(t, t.meta(), 0);
  }
};

/// analytic - floating dtypes only; the vocabulary brings integers and truths to f32 before it binds.
template <class Self, int Arity>
struct analytic : elementwise_op<Self, Arity> {
  static constexpr int cost = 8;
  static constexpr Meta common(Meta const* in, Text* why) {
    return real(elementwise_op<Self, Arity>::common(in, why));
  }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta const r = elementwise_op<Self, Arity>::common(in, why);
    if (r.valid() && !is_floating(r.dtype))
      return refuse(why, Self::name, ": floating dtype required, got ", r.dtype);
    return r;
  }
};

/// comparison - two operands of one dtype in, bool out; carries no gradient.
template <class Self>
struct comparison : elementwise_op<Self, 2> {
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta r = elementwise_op<Self, 2>::common(in, why);
    r.dtype = DType::boolean;
    return r;
  }
};

/// ordering - a comparison by size; of truths as of the numbers 0 and 1, for vectors of truths have no order.
template <class Self>
struct ordering : comparison<Self> {
  static constexpr DType operand_dtype(int, DType common) {
    return common == DType::boolean ? DType::u8 : common;
  }
};

/// logical - bool in, bool out; carries no gradient.
template <class Self, int Arity>
struct logical : elementwise_op<Self, Arity> {
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Meta const r = elementwise_op<Self, Arity>::common(in, why);
    if (r.valid() && r.dtype != DType::boolean)
      return refuse(why, Self::name, ": bool required, got ", r.dtype);
    return r;
  }
};

}  // namespace dfdx::op
