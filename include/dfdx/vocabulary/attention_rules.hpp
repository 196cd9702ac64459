// SPDX-License-Identifier: BSL-1.0
// Derivatives of attention block by block (ops/attention.hpp). First gradients are computed by blocks too; forward mode
// and gradients of gradients by products with all weights.
#pragma once

#include <dfdx/ops/attention.hpp>
#include <dfdx/vocabulary/contract.hpp>
#include <dfdx/vocabulary/index.hpp>
#include <dfdx/vocabulary/join.hpp>
#include <dfdx/vocabulary/run_attention.hpp>

namespace dfdx {

namespace detail {

// Keys at or before the query's position, queries in front.
template <class V>
constexpr V causal_mask(V const& like, index_t queries, index_t keys, index_t offset) {
  Meta const i{DType::i64, make_shape(queries, keys)};
  V const row = iota_as(like, i, 0), column = iota_as(like, i, 1);
  return column <= (offset == 0 ? row : row + static_cast<double>(offset));
}

/// HeadMatrices - operands of attend as matrices, a batch of them: queries whose heads share keys are rows of one.
template <class V>
struct HeadMatrices {
  op::AttentionOptions o;
  index_t heads, shared, queries, keys, size, width;
  V q, k, v;

  constexpr HeadMatrices(Site<V> const& s) : o(op::AttentionOptions::of(s.attrs)) {
    Shape const a = s.x[0].shape(), b = s.x[1].shape(), c = s.x[2].shape();
    int const r = a.rank;
    queries = a[r - 2], keys = b[r - 2], size = a[r - 1], width = c[r - 1];
    heads = b.numel() / (keys * size), shared = a.numel() / (queries * size) / heads;
    q = as_rows(in_f32(s.x[0]), size), v = reshape_to(in_f32(s.x[2]), make_shape(heads, keys, width));
    k = reshape_to(in_f32(s.x[1]), make_shape(heads, keys, size));
  }
  constexpr index_t rows() const { return heads * shared * queries; }
  constexpr V as_rows(V const& x, index_t n) const {
    return reshape_to(x, make_shape(heads, shared * queries, n));
  }
  /// Part of a list of numbers, as rows of n.
  constexpr V part(V const& list, index_t first, index_t n) const {
    return as_rows(slice_axis(list, 0, first, rows() * n), n);
  }
  constexpr V keys_part(V const& list, index_t first, index_t n) const {
    return reshape_to(slice_axis(list, 0, first, heads * keys * n), make_shape(heads, keys, n));
  }
  /// exp(s - l) where a key counts, else 0.
  constexpr V weights(V const& log_sums) const {
    V const p = exp(times(q, turned(k)) * o.scale - log_sums);
    if (!o.causal) return p;
    Shape const apart = make_shape(heads, shared, queries, keys);
    V const by_heads = reshape_to(p, apart);
    return reshape_to(
        where(causal_mask(p, queries, keys, o.offset), by_heads, full_as(p, Meta{p.dtype(), apart}, 0)),
        p.shape());
  }
  static constexpr V times(V const& a, V const& b) { return call(Matmul{}, a, b); }
  static constexpr V turned(V const& x) { return call(Transpose{-2, -1}, x); }
  static constexpr V row_sum(V const& x) { return reduce<op::sum>(x, Over{-1, true}); }
  template <class... X>
  static constexpr V list(V const& x, X const&... rest) {
    V const flat = reshape_to(x, make_shape(x.shape().numel()));
    if constexpr (sizeof...(X) == 0) return flat;
    else return bind<op::concat>(Attrs{{0}}, flat, list(rest...));
  }
};

// Part I of a list of three arrays like q, k and v, in its shape.
template <int I, class V>
constexpr V third(V const& list, Site<V> const& s) {
  index_t first = 0;
  for (int i = 0; i < I; ++i) first += s.x[i].shape().numel();
  return reshape_to(slice_axis(list, 0, first, s.x[I].shape().numel()), s.x[I].shape());
}

// Of attend and attend_sums. The rows of y are there for the first; the weights only where they are asked for.
template <class V>
struct AttendRules : HeadMatrices<V> {
  using M = HeadMatrices<V>;
  V y, log_sums;
  constexpr AttendRules(Site<V> const& s, V const& result, V const& sums)
      : M(s), y(this->as_rows(in_f32(result), this->width)), log_sums(this->as_rows(sums, 1)) {}

  // The cotangents of q, k and v in a list.
  constexpr V vjp(V const& ct, Site<V> const& s) const {
    V const less = M::row_sum(this->as_rows(in_f32(ct), this->width) * y);
    return bind<op::attend_back>(s.attrs, s.x[0], s.x[1], s.x[2], ct, M::list(log_sums, less));
  }
  template <int I>
  constexpr V vjp_of_sums(V const& ct, Site<V> const& s) const {
    static_assert(I < 2);
    V const back = this->as_rows(ct, 1) * this->weights(log_sums) * this->o.scale;
    V const all = I == 0 ? M::times(back, this->k) : M::times(M::turned(back), this->q);
    return rounded_as(reshape_to(all, s.x[I].shape()), s.x[I]);
  }
  template <int I>
  constexpr V jvp(V const& t) const {
    V const p = this->weights(log_sums);
    if constexpr (I == 2) {
      return M::times(p, reshape_to(in_f32(t), this->v.shape()));
    } else {
      V const moved = p * moved_scores<I>(t);
      return M::times(moved, this->v) - M::row_sum(moved) * y;
    }
  }
  template <int I>
  constexpr V jvp_of_sums(V const& t) const {
    return M::row_sum(this->weights(log_sums) * moved_scores<I>(t));
  }

 private:
  template <int I>
  constexpr V moved_scores(V const& given) const {
    V const t = in_f32(given);
    return (I == 0 ? M::times(this->as_rows(t, this->size), M::turned(this->k))
                   : M::times(this->q, M::turned(reshape_to(t, this->k.shape())))) *
           this->o.scale;
  }
};

template <class V>
struct AttendBackRules : HeadMatrices<V> {
  using M = HeadMatrices<V>;
  V ct, log_sums, d, p, dp, r;
  constexpr AttendBackRules(Site<V> const& s) : M(s) {
    ct = this->as_rows(in_f32(s.x[3]), this->width);
    log_sums = this->part(s.x[4], 0, 1);
    d = this->part(s.x[4], this->rows(), 1);
    p = this->weights(log_sums);
    dp = M::times(ct, M::turned(this->v)) - d;
    r = p * dp;
  }
  template <int I>
  constexpr V vjp(V const& all, Site<V> const& s) const {
    return rounded_as(pulled<I>(in_f32(all), s), s.x[I]);
  }
  // a, b and c are the cotangents of d_q, d_k and d_v.
  template <int I>
  constexpr V pulled(V const& all, Site<V> const& s) const {
    index_t const of_q = s.x[0].shape().numel(), of_k = s.x[1].shape().numel();
    V const a = this->part(all, 0, this->size) * this->o.scale,
            b = this->keys_part(all, of_q, this->size) * this->o.scale,
            c = this->keys_part(all, of_q + of_k, this->width);
    V const ct_r = M::times(a, M::turned(this->k)) + M::times(this->q, M::turned(b)), ct_dp = ct_r * p;
    V const ct_s = (ct_r * dp + M::times(ct, M::turned(c))) * p;
    if constexpr (I == 0)
      return reshape_to(M::times(ct_s * this->o.scale, this->k) + M::times(r, b), s.x[0].shape());
    else if constexpr (I == 1)
      return reshape_to(M::times(M::turned(ct_s * this->o.scale), this->q) + M::times(M::turned(r), a),
                        s.x[1].shape());
    else if constexpr (I == 2) return reshape_to(M::times(M::turned(ct_dp), ct), s.x[2].shape());
    else if constexpr (I == 3) return reshape_to(M::times(ct_dp, this->v) + M::times(p, c), s.x[3].shape());
    else return M::list(-M::row_sum(ct_s), -M::row_sum(ct_dp));
  }
  template <int I>
  constexpr V jvp(V const& given) const {
    V const t = in_f32(given);
    V t_p{}, t_r{}, t_q{}, t_k{}, t_ct{};
    if constexpr (I < 2) {
      if constexpr (I == 0) t_q = this->as_rows(t, this->size);
      else t_k = reshape_to(t, this->k.shape());
      t_p = p * ((I == 0 ? M::times(t_q, M::turned(this->k)) : M::times(this->q, M::turned(t_k))) *
                 this->o.scale);
      t_r = t_p * dp;
    } else if constexpr (I == 2) {
      t_r = p * M::times(ct, M::turned(reshape_to(t, this->v.shape())));
    } else if constexpr (I == 3) {
      t_ct = this->as_rows(t, this->width);
      t_r = p * M::times(t_ct, M::turned(this->v));
    } else {
      t_p = -(p * this->part(t, 0, 1));
      t_r = t_p * dp - p * this->part(t, this->rows(), 1);
    }
    V d_q = M::times(t_r, this->k), d_k = M::times(M::turned(t_r), this->q), d_v{};
    if constexpr (I == 1) d_q = d_q + M::times(r, t_k);
    if constexpr (I == 0) d_k = d_k + M::times(M::turned(r), t_q);
    if constexpr (I < 2 || I == 4) d_v = M::times(M::turned(t_p), ct);
    else if constexpr (I == 2) d_v = full_as(p, this->v.meta(), 0);
    else d_v = M::times(M::turned(p), t_ct);
    return M::list(d_q * this->o.scale, d_k * this->o.scale, d_v);
  }
};

}  // namespace detail

namespace op::detail {

template <class Op, int I, class V>
constexpr V attention_vjp(V const& ct, Site<V> const& s) {
  using namespace dfdx::detail;
  if constexpr (std::is_same_v<Op, attend_back>) return AttendBackRules<V>(s).template vjp<I>(ct, s);
  else if constexpr (std::is_same_v<Op, attend>)
    return third<I>(once(s,
                         [&] {
                           V const sums = bind<attend_sums>(s.attrs, s.x[0], s.x[1], s.x[2], s.y);
                           return AttendRules<V>(s, s.y, sums).vjp(ct, s);
                         }),
                    s);
  else if constexpr (I < 2) return AttendRules<V>(s, s.x[3], s.y).template vjp_of_sums<I>(ct, s);
  else return V{};
}
template <class Op, int I, class V>
constexpr V attention_jvp(V const& t, Site<V> const& s) {
  using namespace dfdx::detail;
  if constexpr (std::is_same_v<Op, attend_back>)
    return rounded_as(AttendBackRules<V>(s).template jvp<I>(t), s.x[0]);
  else if constexpr (std::is_same_v<Op, attend>)
    return rounded_as(
        reshape_to(AttendRules<V>(s, s.y, bind<attend_sums>(s.attrs, s.x[0], s.x[1], s.x[2], s.y))
                       .template jvp<I>(t),
                   s.y.shape()),
        s.x[0]);
  else if constexpr (I < 2)
    return reshape_to(AttendRules<V>(s, s.x[3], s.y).template jvp_of_sums<I>(t), s.y.shape());
  else return V{};
}

}  // namespace op::detail

}  // namespace dfdx
