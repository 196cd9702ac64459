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
/// The results of attend and of attend_sums in one go, either of which may be missing.
template <int = 0>
void run_attend(Attrs const& a, Operand const* in, Operand const* y, Operand const* log_sums);
template <class T>
void run_attend_as(Attrs const& a, Operand const* in, Operand const* y, Operand const* log_sums);
template <class Op, int I, class V>
constexpr V attention_vjp(V const& ct, Site<V> const& s);
template <class Op, int I, class V>
constexpr V attention_jvp(V const& t, Site<V> const& s);
// What attention of operands of dtype d sums in: weights computed again from logarithms in 16 bits would be far off.
constexpr DType sums_of(DType d) { return d == DType::f64 ? d : DType::f32; }
// A result of attention by blocks of q, k and v.
constexpr Meta attention_result(char const* name, Meta const* in, Text* why, Meta const& result) {
  for (int i = 0; i < 3; ++i) {
    if (!is_floating(in[i].dtype)) return refuse(why, name, ": floating dtype required, got ", in[i].dtype);
    if (in[i].shape.numel() == 0) return refuse(why, name, ": no numbers in ", in[i].shape);
  }
  return result;
}
// What the three ops have in common.
template <class Op>
struct attention : operation {
  static constexpr int cost = 100;
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return attention_vjp<Op, I>(ct, s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return attention_jvp<Op, I>(t, s);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    run_attention<Op>(a, in, out);
  }
  template <int = 0>
  static void run_as_floats(Attrs const& a, Operand const* in, Operand const& out) {
    run_attention_as<Op, float>(a, in, out);
  }
};

}  // namespace detail

/// attend - attention by blocks: the matrix of weights is never in memory. All extents are known, none is 0, and with
/// `causal` the offset is not negative: each query sees a key.
///
/// Math      y_i = sum_j p_ij v_j, p_ij = exp(s_ij - l_i), l_i = ln sum_j exp s_ij, s = scale q k^T
/// Shapes    q: [B..., H, T, D], k: [B..., K, S, D], v: [B..., K, S, E], K a divisor of H -> [B..., H, T, E]
/// Dtypes    q, k, v: one, floating, and the result's; 16 bits are computed in f32. Devices round p to 16 bits before
///           it is multiplied with v, as do Dao et al.
/// Errors    "attend: floating dtype required, got i32"; "attend: no numbers in [2, 0, 4]"; else
///           scaled_dot_product_attention has asked
/// Source    Vaswani et al. 2017; Milakov and Gimelshein 2018 for sums over blocks; Dao et al. 2022
struct attend : detail::attention<attend> {
  static constexpr char const* name = "attend";
  static constexpr int arity = 3;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Shape s = in[0].shape;
    s[s.rank - 1] = in[2].shape[s.rank - 1];
    return detail::attention_result(name, in, why, Meta{in[0].dtype, s});
  }
};

/// attend_sums - for each query the logarithm l of the sum that attend's weights were divided by: enough to compute
/// the weights again, so that none are kept (Dao et al. 2022). The kernel that makes attend's result y makes both.
///
/// Math      l_i = ln sum_j exp s_ij, s = scale q k^T
/// Shapes    q, k, v: as attend; y: attend's result [B..., H, T, E] -> [B..., H, T]
/// Dtypes    q, k, v, y: one, floating -> f64, or f32
/// Errors    "attend_sums: floating dtype required, got i32"; "attend_sums: no numbers in [2, 0, 4]"
/// Source    Dao et al. 2022
struct attend_sums : detail::attention<attend_sums> {
  static constexpr char const* name = "attend_sums";
  static constexpr int arity = 4;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Shape s = in[3].shape;
    --s.rank;
    return detail::attention_result(name, in, why, Meta{detail::sums_of(in[0].dtype), s});
  }
  template <int = 0>
  static void run_both(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_attend(a, in, &in[3], &out);
  }
  template <int = 0>
  static void run_both_as_floats(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_attend_as<float>(a, in, &in[3], &out);
  }
};

/// attend_back - the gradients of attention with respect to q, k and v, one after another. `sums` has l of each query,
/// then d, the sum of ct y over its row less the cotangent of l.
///
/// Math      d_v = p^T ct, r = p (ct v^T - d), d_q = scale r k, d_k = scale r^T q
/// Shapes    q, k, v: as attend; ct: [B..., H, T, E]; sums: [2 B H T] -> [size of q + size of k + size of v]
/// Dtypes    q, k, v, ct: one, floating, and the result's; sums: f64, or f32. Devices round p and r to the dtype of q
///           before products, if that has 16 bits
/// Errors    "attend_back: floating dtype required, got i32"; "attend_back: no numbers in [2, 0, 4]"
/// Source    Dao et al. 2022
struct attend_back : detail::attention<attend_back> {
  static constexpr char const* name = "attend_back";
  static constexpr int arity = 5;
  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Shape const s = make_shape(in[0].shape.numel() + in[1].shape.numel() + in[2].shape.numel());
    return detail::attention_result(name, in, why, Meta{in[0].dtype, s});
  }
};

}  // namespace dfdx::op
