// SPDX-License-Identifier: BSL-1.0
// The matrix product as a bilinear op on operands that the vocabulary has already given equal batch axes.
#pragma once

#include <dfdx/ops/views.hpp>

namespace dfdx::op {

/// matmul - matrix product over the last two axes, batched over the others.
///
/// Math      z_ij = sum_k x_ik y_kj; dx = dz y^T, dy = x^T dz
/// Shapes    x: [B..., M, K], y: [B..., K, N] -> z: [B..., M, N]; the vocabulary adds vectors and broadcasting of B
/// Dtypes    one, all but bool; f16 and bf16 accumulate in f32. Of u8 and i8, also of one with the other: i32, modulo
///           2^32
/// Errors    "matmul: inner dimensions differ: [32, 784] x [128, 10]"
/// Source    elementary linear algebra
struct matmul : operation {
  static constexpr char const* name = "matmul";
  static constexpr Examples examples = Examples::same;
  static constexpr unsigned reads(int which) { return which == 0 ? 2 : 1; }
  static constexpr Code code = Code::matmul;
  static constexpr bool is_product = true, keeps_dtype = true;
  static constexpr int arity = 2;
  static constexpr int cost = 1000;

  static constexpr Meta infer(Attrs const&, Meta const* in, Text* why) {
    Shape const &a = in[0].shape, &b = in[1].shape;
    if (a.rank < 2 || a.rank != b.rank) return refuse(why, name, ": matrices required, got ", a, " x ", b);
    if (!extents_agree(a[a.rank - 1], b[b.rank - 2]))
      return refuse(why, name, ": inner dimensions differ: ", a, " x ", b);
    bool const bytes = is_byte(in[0].dtype) && is_byte(in[1].dtype);
    if (!bytes && (in[0].dtype != in[1].dtype || in[0].dtype == DType::boolean))
      return refuse(why, name, ": one numeric dtype required, got ", in[0].dtype, " x ", in[1].dtype);
    Meta r{product_dtype(in[0].dtype, in[1].dtype), a};
    for (int i = 0; i + 2 < a.rank; ++i) {
      if (!extents_agree(a[i], b[i])) return refuse(why, name, ": batch dimensions differ: ", a, " x ", b);
      r.shape[i] = merged(a[i], b[i]);
    }
    r.shape[a.rank - 1] = b[a.rank - 1];
    return r;
  }
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    if constexpr (I == 0) return bind<matmul>(Attrs{}, ct, swap_last(s.x[1]));
    else return bind<matmul>(Attrs{}, swap_last(s.x[0]), ct);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    if constexpr (I == 0) return bind<matmul>(Attrs{}, t, s.x[1]);
    else return bind<matmul>(Attrs{}, s.x[0], t);
  }
  template <class V>
  static constexpr V swap_last(V const& x) {
    int const r = x.shape().rank;
    int axes[max_rank] = {};
    for (int i = 0; i < r; ++i) axes[i] = i;
    axes[r - 1] = r - 2;
    axes[r - 2] = r - 1;
    return bind<permute>(Attrs{{pack_axes(axes, r)}}, x);
  }
};

}  // namespace dfdx::op
