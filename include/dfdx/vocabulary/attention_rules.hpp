// SPDX-License-Identifier: BSL-1.0
// Derivatives and kernels of attention block by block (ops/attention.hpp). First gradients are computed by blocks too;
// forward mode and gradients of gradients by products with all weights.
#pragma once

#include <algorithm>

#include <dfdx/core/parallel.hpp>
#include <dfdx/kernels/attention.hpp>
#include <dfdx/ops/attention.hpp>
#include <dfdx/vocabulary/contract.hpp>
#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/index.hpp>
#include <dfdx/vocabulary/join.hpp>

namespace dfdx {

namespace detail {

// Keys at or before the query's position, queries in front.
template <class V>
constexpr V causal_mask(V const& like, index_t queries, index_t keys, index_t offset) {
  Meta const i{DType::i64, make_shape(queries, keys)};
  V const row = iota_as(like, i, 0), column = iota_as(like, i, 1);
  return column <= row + static_cast<double>(offset);
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

template <class V>
struct AttendRules : HeadMatrices<V> {
  using M = HeadMatrices<V>;
  V y, log_sums;
  constexpr AttendRules(Site<V> const& s) : M(s) {
    y = this->part(s.y, 0, this->width);
    log_sums = this->part(s.y, this->rows() * this->width, 1);
  }
  template <int I>
  constexpr V vjp(V const& ct, Site<V> const& s) const {
    V const of_y = this->part(ct, 0, this->width), of_sums = this->part(ct, this->rows() * this->width, 1);
    V const given = M::list(of_y, log_sums, M::row_sum(of_y * y) - of_sums);
    V const all = bind<op::attend_back>(s.attrs, s.x[0], s.x[1], s.x[2], given);
    index_t first = 0;
    for (int i = 0; i < I; ++i) first += s.x[i].shape().numel();
    return rounded_as(reshape_to(slice_axis(all, 0, first, s.x[I].shape().numel()), s.x[I].shape()), s.x[I]);
  }
  template <int I>
  constexpr V jvp(V const& given) const {
    V const t = in_f32(given);
    V const p = this->weights(log_sums);
    if constexpr (I == 2) {
      V const t_v = reshape_to(t, this->v.shape());
      return M::list(M::times(p, t_v), full_as(p, log_sums.meta(), 0));
    } else {
      V const t_s = (I == 0 ? M::times(this->as_rows(t, this->size), M::turned(this->k))
                            : M::times(this->q, M::turned(reshape_to(t, this->k.shape())))) *
                    this->o.scale;
      V const moved = p * t_s, t_sums = M::row_sum(moved);
      return M::list(M::times(moved, this->v) - t_sums * y, t_sums);
    }
  }
};

template <class V>
struct AttendBackRules : HeadMatrices<V> {
  using M = HeadMatrices<V>;
  V ct, log_sums, d, p, dp, r;
  constexpr AttendBackRules(Site<V> const& s) : M(s) {
    index_t const n = this->rows();
    ct = this->part(s.x[3], 0, this->width);
    log_sums = this->part(s.x[3], n * this->width, 1);
    d = this->part(s.x[3], n * (this->width + 1), 1);
    p = this->weights(log_sums);
    dp = M::times(ct, M::turned(this->v)) - d;
    r = p * dp;
  }
  template <int I>
  constexpr V vjp(V const& all, Site<V> const& s) const {
    return rounded_as(pulled<I>(all, s), s.x[I]);
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
    else return M::list(M::times(ct_dp, this->v) + M::times(p, c), -M::row_sum(ct_s), -M::row_sum(ct_dp));
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
    } else {
      index_t const n = this->rows();
      t_ct = this->part(t, 0, this->width);
      t_p = -(p * this->part(t, n * this->width, 1));
      t_r = t_p * dp + p * (M::times(t_ct, M::turned(this->v)) - this->part(t, n * (this->width + 1), 1));
    }
    V d_q = M::times(t_r, this->k), d_k = M::times(M::turned(t_r), this->q), d_v{};
    if constexpr (I == 1) d_q = d_q + M::times(r, t_k);
    if constexpr (I == 0) d_k = d_k + M::times(M::turned(r), t_q);
    if constexpr (I != 2) d_v = M::times(M::turned(t_p), ct);
    else d_v = full_as(p, this->v.meta(), 0);
    if constexpr (I == 3) d_v = d_v + M::times(M::turned(p), t_ct);
    return M::list(d_q * this->o.scale, d_k * this->o.scale, d_v);
  }
};

template <class Op, class V>
using AttentionRules = std::conditional_t<std::is_same_v<Op, op::attend>, AttendRules<V>, AttendBackRules<V>>;

// The rows of matrix `index` of an operand whose rows are contiguous.
template <class T>
constexpr kernels::MatrixRows<T> matrix_at(Operand const& x, index_t index) {
  int const r = x.meta.shape.rank;
  auto* at = static_cast<T*>(x.data);
  for (int i = r - 3; i >= 0; --i) {
    at += index % x.meta.shape[i] * x.strides[i];
    index /= x.meta.shape[i];
  }
  return {at, x.strides[r - 2]};
}

}  // namespace detail

namespace op::detail {

template <class Op, int I, class V>
constexpr V attention_vjp(V const& ct, Site<V> const& s) {
  return dfdx::detail::AttentionRules<Op, V>(s).template vjp<I>(ct, s);
}
template <class Op, int I, class V>
constexpr V attention_jvp(V const& t, Site<V> const& s) {
  return dfdx::detail::AttentionRules<Op, V>(s).template jvp<I>(t);
}

template <class Op, class T>
void run_attention_as(Attrs const& a, Operand const* in, Operand const& out) {
#if defined(__CUDACC__)
  using Kernel = kernels::reference::Attention<T>;
#else
  using Kernel = kernels::BlockedAttention<T>;
#endif
  using kernels::MatrixRows;
  Operand x[3] = {in[0], in[1], in[2]};
  Array copies[3];
  for (int i = 0; i < 3; ++i)
    if (int const last = x[i].meta.shape.rank - 1;
        x[i].meta.dtype != dtype_v<T> || (x[i].strides[last] != 1 && x[i].meta.shape[last] != 1)) {
      copies[i] = dense_as<T>(x[i]);
      x[i] = copies[i].operand();
    }
  Shape const &qs = x[0].meta.shape, &ks = x[1].meta.shape, &vs = x[2].meta.shape;
  int const r = qs.rank;
  AttentionOptions const o = AttentionOptions::of(a);
  kernels::AttentionHead const head{qs[r - 2], ks[r - 2], qs[r - 1], vs[r - 1], o.scale, o.causal, o.offset};
  index_t const all = qs.numel() / (head.queries * head.size), keyed = ks.numel() / (head.keys * head.size);
  Array const made = out.meta.dtype == dtype_v<T> ? Array() : Array(Meta{dtype_v<T>, out.meta.shape});
  T* const y = made.empty() ? static_cast<T*>(out.data) : made.template data<T>();
  auto const given = [&](int k, index_t i) { return dfdx::detail::matrix_at<T const>(x[k], i); };
  index_t const rows = all * head.queries;
  // Heads that share keys and values stay together: their gradients are added.
  index_t const sharing = keyed == 0 ? 0 : all / keyed,
                work = kernels::work_of_products(rows * head.keys * (head.size + head.width));
  int const parts = kernels::parts_of(std::is_same_v<Op, attend> ? work : 3 * work, keyed);
  auto const each = [&](auto const& f) {
    kernels::in_parallel(parts, [&](int part) {
      Kernel const kernel(head);
      auto const [begin, end] = kernels::part_of(keyed, part, parts);
      for (index_t i = begin * sharing; i < end * sharing; ++i) f(kernel, i);
    });
  };
  if constexpr (std::is_same_v<Op, attend>) {
    each([&](auto const& kernel, index_t i) {
      kernel.forward(given(0, i), given(1, i / sharing), given(2, i / sharing),
                     {y + i * head.queries * head.width, head.width},
                     y + rows * head.width + i * head.queries);
    });
  } else {
    Array const packed = dense_as<T>(in[3]);
    T const* const ct = packed.empty() ? static_cast<T const*>(in[3].data) : packed.template data<T>();
    std::fill_n(y, out.meta.shape.numel(), T(0));
    T *const dk = y + qs.numel(), *const dv = dk + ks.numel();
    each([&](auto const& kernel, index_t i) {
      index_t const j = i / sharing, first = i * head.queries;
      kernel.backward(given(0, i), given(1, j), given(2, j), {ct + first * head.width, head.width},
                      ct + rows * head.width + first, ct + rows * (head.width + 1) + first,
                      {y + first * head.size, head.size}, {dk + j * head.keys * head.size, head.size},
                      {dv + j * head.keys * head.width, head.width});
    });
  }
  if (!made.empty()) kernels::convert(made.operand(), out);
}

template <class Op>
void run_attention(Attrs const& a, Operand const* in, Operand const& out) {
  if (out.meta.dtype == DType::f64) run_attention_as<Op, double>(a, in, out);
  else run_attention_as<Op, float>(a, in, out);
}

}  // namespace op::detail

}  // namespace dfdx
