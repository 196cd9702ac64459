// SPDX-License-Identifier: BSL-1.0
// Norms in one step, and their gradients: what layer_norm and its kin are where they are called on values in memory.
// Programs have the ops that they are made of, and fuse those. Rules for derivatives are vocabulary/standardize.hpp.
#pragma once

#include <dfdx/ops/op.hpp>
#include <dfdx/value/norm_options.hpp>

namespace dfdx::op {

namespace detail {

// Defined with the vocabulary, which knows kernels and functions of several ops. Means and variances of rows are left
// in memory that is given, in the dtype of `out`.
template <class Op>
void run_norm(Attrs const& a, Operand const* in, Operand const& out, void* means = nullptr,
              void* variances = nullptr);
template <class Op, int I, class V>
constexpr V norm_vjp(V const& ct, Site<V> const& s);
template <class Op, int I, class V>
constexpr V norm_jvp(V const& t, Site<V> const& s);

// What both ops have in common.
template <class Op>
struct norm_op : operation {
  static constexpr int arity = 3;
  static constexpr int cost = 100;
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return norm_vjp<Op, I>(ct, s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return norm_jvp<Op, I>(t, s);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    run_norm<Op>(a, in, out);
  }
  static constexpr Meta checked(Meta const* in, Text* why, Meta const& result) {
    if (!is_floating(in->dtype)) return refuse(why, Op::name, ": floating dtype required, got ", in->dtype);
    return result;
  }
};

}  // namespace detail

/// standardize - rows brought to mean 0 and variance 1, then scaled and shifted: all of a norm. Attributes are
/// NormOptions. `bias`, or both it and `weight`, may be without elements: then rows are not shifted, or not scaled.
///
/// Math      y = (x - mean(x)) r weight + bias, r = 1 / sqrt(var(x) + eps), var the mean of (x - mean(x))^2; not
///           `centred`, mean(x) counts as 0
/// Shapes    x: [.., S..., ..], weight, bias: [S...], S... the axes of channels -> as x
/// Dtypes    one, floating, and the result's; 16 bits are computed in f32
/// Errors    "standardize: floating dtype required, got i32"; "standardize: a bias without weights"; else what
///           layer_norm and its kin say
/// Source    Ba et al. 2016
struct standardize : detail::norm_op<standardize> {
  static constexpr char const* name = "standardize";
  static constexpr unsigned reads(int) { return 3; }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    if (in[1].shape.numel() == 0 && in[2].shape.numel() != 0)
      return refuse(why, name, ": a bias without weights");
    return checked(in, why, *in);
  }
};

/// standardize_back - the gradients of standardize with respect to x, weight and bias, one after another, as far as
/// there are weights, and, `biased`, a bias. What a row is divided by is computed again.
///
/// Math      z = (x - mean(x)) r, h = ct weight: d_x = r (h - mean(h) - z mean(h z)), d_weight = sum ct z over all but
///           channels, d_bias = sum ct; not `centred`, mean(x) and mean(h) count as 0
/// Shapes    x, ct: [.., S..., ..], weight: [S...] -> [size of x + size of weight + size of bias]
/// Dtypes    one, floating, and the result's; 16 bits are computed in f32
/// Errors    "standardize_back: floating dtype required, got i32"
/// Source    elementary calculus
struct standardize_back : detail::norm_op<standardize_back> {
  static constexpr char const* name = "standardize_back";
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    index_t const n = in[0].shape.numel(), weights = in[1].shape.numel();
    return checked(in, why, Meta{in->dtype, make_shape(n + (NormOptions::of(a).biased ? 2 : 1) * weights)});
  }
};

}  // namespace dfdx::op
