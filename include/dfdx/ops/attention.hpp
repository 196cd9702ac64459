// SPDX-License-Identifier: BSL-1.0
// Attention block by block: what programs compute in place of two products and a softmax where the matrix of all
// weights would be large. Rules for derivatives are vocabulary/attention_rules.hpp.
#pragma once

#include <dfdx/ops/op.hpp>
#include <dfdx/value/attention_options.hpp>

namespace dfdx::op {

namespace detail {

// Defined with the vocabulary, which knows kernels and functions of several ops.
template <class Op>
void run_attention(Attrs const& a, Operand const* in, Operand const& out);
template <class Op, class T>
void run_attention_as(Attrs const& a, Operand const* in, Operand const& out);
template <class Op, int I, class V>
constexpr V attention_vjp(V const& ct, Site<V> const& s);
template <class Op, int I, class V>
constexpr V attention_jvp(V const& t, Site<V> const& s);
// What attention of operands of dtype d gives: weights computed again from logarithms in 16 bits would be far off.
constexpr DType sums_of(DType d) { return d == DType::f64 ? d : DType::f32; }

}  // namespace detail

/// attend - attention and, behind its elements, for each query the logarithm of the sum that its weights were divided
/// by: enough to compute the weights again, so that none are kept (Dao et al. 2022). All extents are known, none is 0,
/// and with `causal` the offset is not negative: each query sees a key.
///
/// Math      y_i = sum_j p_ij v_j, p_ij = exp(s_ij - l_i), l_i = ln sum_j exp s_ij, s = scale q k^T
/// Shapes    q: [B..., H, T, D], k: [B..., K, S, D], v: [B..., K, S, E], K a divisor of H -> [B H T E + B H T]
/// Dtypes    q, k, v: one, floating; 16 bits are computed in f32, which is the result's. Devices round p to 16 bits
///           before it is multiplied with v, as do Dao et al.
/// Errors    "attend: floating dtype required, got i32"; else scaled_dot_product_attention has asked
/// Source    Vaswani et al. 2017; Milakov and Gimelshein 2018 for sums over blocks; Dao et al. 2022
struct attend : operation {
  static constexpr char const* name = "attend";
  static constexpr int arity = 3;
  static constexpr int cost = 100;
  static constexpr index_t rows(Shape const& q) { return q.numel() / q[q.rank - 1]; }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Shape const &q = in[0].shape, &v = in[2].shape;
    if (!is_floating(in[0].dtype)) return refuse(why, name, ": floating dtype required, got ", in[0].dtype);
    return Meta{detail::sums_of(in[0].dtype), make_shape(rows(q) * (v[v.rank - 1] + 1))};
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return detail::attention_vjp<attend, I>(ct, s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return detail::attention_jvp<attend, I>(t, s);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_attention<attend>(a, in, out);
  }
  template <int = 0>
  static void run_as_floats(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_attention_as<attend, float>(a, in, out);
  }
};

/// attend_back - the gradients of attention with respect to q, k and v, one after another. `given` has the cotangents
/// of the elements of y, then l, then the row sums d = sum ct y, less the cotangent of l.
///
/// Math      d_v = p^T ct, r = p (ct v^T - d), d_q = scale r k, d_k = scale r^T q
/// Shapes    q, k, v: as attend; given: [B H T E + 2 B H T] -> [size of q + size of k + size of v]
/// Dtypes    q, k, v: one, floating; given and the result: f64, or f32. Devices round p, r and ct to the dtype of q
///           before products, if that has 16 bits
/// Errors    "attend_back: floating dtype required, got i32"
/// Source    Dao et al. 2022
struct attend_back : operation {
  static constexpr char const* name = "attend_back";
  static constexpr int arity = 4;
  static constexpr int cost = 100;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    if (!is_floating(in[0].dtype)) return refuse(why, name, ": floating dtype required, got ", in[0].dtype);
    return Meta{detail::sums_of(in[0].dtype),
                make_shape(in[0].shape.numel() + in[1].shape.numel() + in[2].shape.numel())};
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return detail::attention_vjp<attend_back, I>(ct, s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return detail::attention_jvp<attend_back, I>(t, s);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_attention<attend_back>(a, in, out);
  }
  template <int = 0>
  static void run_as_floats(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_attention_as<attend_back, float>(a, in, out);
  }
};

}  // namespace dfdx::op
