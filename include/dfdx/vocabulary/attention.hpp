// SPDX-License-Identifier: BSL-1.0
// Attention: scaled dot products with masks and shared heads, and the positions that go with it: rope and alibi.
#pragma once

#include <cmath>

#include <dfdx/vocabulary/attention_rules.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/random.hpp>

namespace dfdx {

/// Attention - options of scaled_dot_product_attention. The scale is 1 / sqrt(D) unless given; `causal` hides keys
/// behind the query, of which the first stands at position `offset`; `alibi` adds the bias of that name. With a key,
/// weights are dropped with probability `dropout`, drawn from its stream.
struct Attention {
  bool causal = false, alibi = false;
  double scale = 0;
  index_t offset = 0;
  double dropout = 0;
  std::int64_t stream = 0;
};

/// no_mask - stands for the mask of scaled_dot_product_attention where there is none.
struct NoMask {};
inline constexpr NoMask no_mask{};

/// Llama3 - how Llama 3 stretches the slow frequencies of rope, from contexts of original_context positions.
struct Llama3 {
  double factor = 1, low_frequency_factor = 1, high_frequency_factor = 4, original_context = 8192;
};

/// Rope - options of rope: the position of the first row; pairs of neighbours (`interleaved`) or of elements half a
/// row apart; how many elements are turned, all for 0; a factor other than 1 stretches as Llama 3 does.
struct Rope {
  double base = 10000;
  index_t offset = 0;
  bool interleaved = false;
  index_t dims = 0;
  Llama3 llama3{};
};

namespace detail {

constexpr double ln2 = 0.693147180559945309;

// Bias of each head: key less query position times a slope (a geometric series, two of them if heads are no power of
// 2).
struct Alibi {
  index_t offset = 0;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    if (s.rank < 3 || s[s.rank - 3] < 1) return refuse(why, "alibi: scores of heads required, got ", s);
    if (!is_floating(in->dtype)) return refuse(why, "alibi: floating dtype required, got ", in->dtype);
    return Meta{in->dtype, make_shape(s[s.rank - 3], s[s.rank - 2], s[s.rank - 1])};
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    DType const d = promote(y.dtype, DType::f32);
    index_t const heads = y.shape[0];
    index_t n = 1;
    while (2 * n <= heads) n *= 2;
    auto const each = [&](int axis) {
      return iota_as(x, Meta{d, with_extent(make_shape(1, 1, 1), axis, y.shape[axis])}, axis);
    };
    V const h = each(0);
    auto const step = -8 / static_cast<double>(n) * ln2;
    V const first = exp((h + 1.0) * step);
    V const slope =
        n == heads ? first
                   : where(h < static_cast<double>(n), first, exp((h - static_cast<double>(n) + 0.5) * step));
    return cast_to((each(2) - each(1) - static_cast<double>(offset)) * slope, y.dtype);
  }
};

struct Attend {
  int masks, keys;
  Attention o{};
  constexpr Meta infer(Meta const* in, Text* why) const {
    constexpr char const* name = "scaled_dot_product_attention";
    Shape const &q = in[0].shape, &k = in[1].shape, &v = in[2].shape;
    auto const unfit = [&] { return refuse(why, name, ": ", q, ", ", k, " and ", v, " do not fit"); };
    for (int i = 0; i < 3; ++i)
      if (!is_floating(in[i].dtype) || in[i].dtype != in[0].dtype)
        return refuse(why, name, ": one floating dtype required, got ", in[0].dtype, ", ", in[1].dtype,
                      " and ", in[2].dtype);
    int const r = q.rank;
    if (r < 2 || k.rank != r || v.rank != r) return unfit();
    if (!op::extents_agree(q[r - 1], k[r - 1]) || !op::extents_agree(k[r - 2], v[r - 2])) return unfit();
    for (int i = 0; i + 2 < r; ++i) {
      if (!op::extents_agree(k[i], v[i])) return unfit();
      bool const shared = i == r - 3 && q[i] > 0 && k[i] > 0 && q[i] % k[i] == 0;
      if (!shared && !op::extents_agree(q[i], k[i])) return unfit();
    }
    Shape scores = q;
    scores[r - 1] = k[r - 2];
    if (!(o.dropout >= 0 && o.dropout <= 1))
      return refuse(why, name, ": dropout with a probability required");
    if (o.dropout > 0 && keys == 0) return refuse(why, name, ": dropout needs a key");
    if (masks > 0) {
      if (in[3].dtype != DType::boolean && !is_floating(in[3].dtype))
        return refuse(why, name, ": mask of truths or floating numbers required, got ", in[3].dtype);
      Shape const both = op::broadcast_shapes(name, in[3].shape, scores, nullptr);
      if (!agree(both, scores))
        return refuse(why, name, ": mask ", in[3].shape, " does not fit scores ", scores);
    }
    return Meta{in[0].dtype, with_extent(q, r - 1, v[r - 1])};
  }
  template <class, class V, class... Rest>
  constexpr V run(Meta const& y, V const& given_q, V const& given_k, V const& given_v,
                  Rest const&... rest) const {
    static_cast<void>(inferred(*this, given_q, given_k, given_v, rest...));  // of the options as they are
    V const q = in_f32(given_q), k = in_f32(given_k), v = in_f32(given_v);
    int const r = y.shape.rank;
    // Queries whose heads share keys are rows of one product.
    Shape joint = q.shape(), scores_shape = q.shape();
    index_t const rows = r > 2 && joint[r - 3] != k.shape()[r - 3] ? joint[r - 3] / k.shape()[r - 3] : 1;
    if (rows != 1) {
      joint[r - 3] = k.shape()[r - 3];
      joint[r - 2] = extent::mul(joint[r - 2], rows);
    }
    index_t const places = k.shape()[r - 2];
    scores_shape[r - 1] = places;
    double const size = static_cast<double>(joint[r - 1]);
    double const factor = o.scale != 0 ? o.scale : size > 0 ? 1 / constant_math::sqrt(size) : 1;
    V const scaled =
        either(o.scale != 0 || size >= 0, [&] { return q * factor; }, [&] { return by_root_of_size(q); });
    if (goes_by_blocks(q, k, v)) {
      auto const operand = [&](V const& x) {  // rounded where autocast asks for that
        Graph const* const g = recorder_of(q);
        if (g != nullptr && x.dtype() == DType::f32) return cast_to(x, g->products);
        return x;
      };
      V const all = bind<op::attend>(op::AttentionOptions{o.causal, o.offset, factor}.attrs(),
                                     operand(given_q), operand(given_k), operand(given_v));
      if (all.dtype() == y.dtype) return all;
      return cast_to(all, y.dtype);
    }
    V scores =
        reshape_to(call(Matmul{}, reshape_to(scaled, joint), call(Transpose{-2, -1}, k)), scores_shape);
    if (o.alibi) scores = scores + cast_to(call(Alibi{o.offset}, scores), scores.dtype());
    double const hidden = -std::numeric_limits<double>::infinity();
    if (o.causal)
      scores = where(causal_mask(scores, y.shape[r - 2], places, o.offset), scores, full_as(scores, hidden));
    V const more[] = {rest..., given_q};  // the mask and the key, if there are such
    if (masks > 0 && more[0].dtype() == DType::boolean)
      scores = where(more[0], scores, full_as(scores, hidden));
    else if (masks > 0) scores = scores + cast_to(more[0], scores.dtype());
    V weights = softmax_of(scores, masks > 0 || o.offset < 0);
    if (o.dropout > 0) weights = dropped(weights, call(Draw{o.stream}, weights, more[masks]), o.dropout);
    joint[r - 1] = places;
    weights = reshape_to(weights, joint);
    return rounded_as(reshape_to(call(Matmul{}, weights, v), y.shape), given_q);
  }

 private:
  // The weights of long sequences are never in memory at once.
  template <class V>
  constexpr bool goes_by_blocks(V const& q, V const& k, V const& v) const {
    Shape const &a = q.shape(), &b = k.shape(), &c = v.shape();
    bool const plain = masks == 0 && keys == 0 && !o.alibi && o.offset >= 0;
    return plain && a.is_static() && b.is_static() && c.is_static() && a.numel() > 0 && c.numel() > 0 &&
           a[a.rank - 2] * b[b.rank - 2] >= least_weights &&
           (!lies_elsewhere(q) || is_called_on_device(q, k, v));
  }
  // Few queries have few weights, and would leave most rows of a device's tiles empty.
  template <class V>
  static constexpr bool is_called_on_device(V const& q, V const& k, V const& v) {
    index_t const most = op::AttentionOptions::most_called(op::detail::sums_of(q.dtype()));
    int const last = q.shape().rank - 1;
    return lies_elsewhere(q) && lies_elsewhere(k) && lies_elsewhere(v) && device_ops != nullptr &&
           q.shape()[last - 1] >= 32 && q.shape()[last] <= most && v.shape()[last] <= most;
  }
  static constexpr index_t least_weights = 64 * 64;

  // A program that learns the size of vectors when it is called counts their elements.
  template <class V>
  static constexpr V by_root_of_size(V const& q) {
    return q * rsqrt(reduce<op::sum, "scaled_dot_product_attention">(ones_as(q), Over{-1, true}));
  }

  // A query that sees no keys has weights of zero.
  template <class V>
  static constexpr V softmax_of(V const& x, bool may_be_empty) {
    Over const last{-1, true};
    if (!may_be_empty) return softmax_over(x, last);
    V const m = largest<"scaled_dot_product_attention">(x, last);
    V const e = exp(x - where(m == -std::numeric_limits<double>::infinity(), zeros_as(m), m));
    V const total = reduce<op::sum>(e, last);
    return e * (1.0 / where(total == 0, ones_as(total), total));
  }
};

template <bool Positions>
struct Rotate {
  Rope o{};
  constexpr index_t turned(Shape const& s) const { return o.dims != 0 ? o.dims : s[s.rank - 1]; }
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    if (!is_floating(in->dtype)) return refuse(why, "rope: floating dtype required, got ", in->dtype);
    if (s.rank < 2) return refuse(why, "rope: rows at positions required, got ", s);
    index_t const n = turned(s);
    if (n < 0 || n % 2 != 0 || n > s[s.rank - 1])
      return refuse(why, "rope: an even number of the elements of ", s, " required, got ", Position{n});
    if (!(o.base > 0 && o.llama3.factor > 0))
      return refuse(why, "rope: a positive base and a positive factor required");
    if (o.interleaved && s.rank == max_rank) return refuse(why, "rope: at most 7 axes, got ", s);
    if constexpr (Positions) {
      Shape rows = s;
      --rows.rank;
      Shape const both = op::broadcast_shapes("rope", in[1].shape, rows, nullptr);
      if (!op::detail::is_index(in[1].dtype) || !agree(both, rows))
        return refuse(why, "rope: positions ", in[1].dtype, " ", in[1].shape, " do not fit ", s);
    }
    return *in;
  }
  template <class, class V, class... P>
  constexpr V run(Meta const& y, V const& given, P const&... at) const {
    static_cast<void>(inferred(*this, given, at...));  // of the options as they are
    V const x = in_f32(given);
    int const last = y.shape.rank - 1;
    index_t const n = turned(y.shape), pairs = n / 2;
    // Angles in double: those of late positions are large.
    V const row = [&]() -> V {
      if constexpr (sizeof...(P) > 0) return call(Unsqueeze{-1}, cast_to(at, DType::f64)...);
      else return iota_as(x, Meta{DType::f64, make_shape(y.shape[last - 1], 1)}, 0);
    }();
    V const place =
        either(o.offset == 0, [&] { return row; }, [&] { return row + static_cast<double>(o.offset); });
    V const angle = place * frequencies(x, n);
    V const c = cast_to(cos(angle), x.dtype()), s = cast_to(sin(angle), x.dtype());
    V const used = either(n == y.shape[last], [&] { return x; }, [&] { return slice_axis(x, last, 0, n); });
    auto const part = [&](index_t which) {
      return slice_axis(used, last, o.interleaved ? which : which * pairs, pairs, o.interleaved ? 2 : 1);
    };
    V const a = part(0), b = part(1), first = a * c - b * s, second = a * s + b * c;
    V r = x;
    if (!o.interleaved) {
      r = bind<op::concat>(Attrs{{last}}, first, second);
    } else {
      Shape apart = a.shape();
      apart.push_back(1);
      r = reshape_to(bind<op::concat>(Attrs{{last + 1}}, reshape_to(first, apart), reshape_to(second, apart)),
                     used.shape());
    }
    if (n != y.shape[last]) r = bind<op::concat>(Attrs{{last}}, r, slice_axis(x, last, n, y.shape[last] - n));
    return rounded_as(r, given);
  }

 private:
  template <class V>
  constexpr V frequencies(V const& x, index_t n) const {
    double const step = n == 0 ? 0 : -2 * constant_math::log(o.base) / static_cast<double>(n);
    V const f = exp(iota_as(x, Meta{DType::f64, make_shape(n / 2)}, 0) * step);
    Llama3 const& l = o.llama3;
    if (l.factor == 1) return f;
    // 1 for frequencies that turn often in the original context, 0 for the slow ones, which are divided.
    double const turns = l.original_context / (2 * constant_math::pi);
    V const kept = minimum(maximum((f * turns - l.low_frequency_factor) *
                                       (1 / (l.high_frequency_factor - l.low_frequency_factor)),
                                   0.0),
                           1.0);
    return f * (kept + (1.0 - kept) * (1 / l.factor));
  }
};

}  // namespace detail

/// scaled_dot_product_attention(q, k, v, mask, options) - softmax(q k^T scale + mask) v over the last two axes. The
/// mask is optional: truths, where true keeps, or numbers to add. Fewer heads of keys and values than of queries are
/// shared by neighbours. A query that a mask leaves no keys has result 0, and so has each where there are none; with
/// vectors of no elements all scores are 0.
///
/// Shapes    q: [B..., H, T, D], k: [B..., K, S, D], v: [B..., K, S, E], K a divisor of H; mask: broadcasts to
///           [B..., H, T, S] -> [B..., H, T, E]
/// Dtypes    q, k, v: one, floating; 16 bits are computed in f32 and rounded at the end. autocast rounds f32 operands,
///           the result and the gradients, all of which stay f32
/// Errors    "scaled_dot_product_attention: [2, 4, 8, 8], [2, 3, 6, 8] and [2, 3, 6, 8] do not fit"
/// Cost      programs whose sizes are known, and calls on devices that have 32 queries, compute attention without
///           masks, dropout and alibi by blocks where a head has 2^12 weights or more, which are then never in memory,
///           neither forwards nor backwards (op::attend)
/// Source    Vaswani et al., NeurIPS 2017; shared heads: Ainslie et al., EMNLP 2023; PyTorch's function of that name
template <operand Q, operand K, operand V>
constexpr auto scaled_dot_product_attention(Q const& q, K const& k, V const& v,
                                            Attention const& options = {}) {
  return detail::call(detail::FixedType<detail::Attend{0, 0, {.scale = 1}}>{{}, {0, 0, options}}, q, k, v);
}
template <operand Q, operand K, operand V, operand M>
constexpr auto scaled_dot_product_attention(Q const& q, K const& k, V const& v, M const& mask,
                                            Attention const& options = {}) {
  return detail::call(detail::FixedType<detail::Attend{1, 0, {.scale = 1}}>{{}, {1, 0, options}}, q, k, v,
                      mask);
}

/// scaled_dot_product_attention(q, k, v, mask, key, {.dropout = p}) - the same with dropout of the weights, in
/// training; the mask may be no_mask. The key is one of dropout's.
template <operand Q, operand K, operand V, operand M, detail::random_key R>
constexpr auto scaled_dot_product_attention(Q const& q, K const& k, V const& v, M const& mask, R const& key,
                                            Attention const& options) {
  return detail::call(detail::FixedType<detail::Attend{1, 1, {.scale = 1}}>{{}, {1, 1, options}}, q, k, v,
                      mask, detail::key_beside("scaled_dot_product_attention", q, key));
}
template <operand Q, operand K, operand V, detail::random_key R>
constexpr auto scaled_dot_product_attention(Q const& q, K const& k, V const& v, NoMask, R const& key,
                                            Attention const& options) {
  return detail::call(detail::FixedType<detail::Attend{0, 1, {.scale = 1}}>{{}, {0, 1, options}}, q, k, v,
                      detail::key_beside("scaled_dot_product_attention", q, key));
}

/// alibi_bias(scores, offset) - what attention with linear biases adds to scores of heads: the key's position less the
/// query's, times the slope of the head.
///
/// Math      y[h, t, s] = 2^(-8 (h + 1) / H) (s - t - offset) for H a power of 2
/// Shapes    scores: [B..., H, T, S] -> [H, T, S]
/// Dtypes    floating; computed in f32 or f64
/// Errors    "alibi: scores of heads required, got [2, 3]"
/// Source    Press et al., ICLR 2022
template <operand X>
constexpr auto alibi_bias(X const& scores, index_t offset = 0) {
  return detail::call(detail::FixedType<detail::Alibi{}>{{}, {offset}}, scores);
}

/// rope(x, options), rope(x, positions, options) - rotary embedding of positions: pairs of elements turned by an angle
/// that grows with the position of their row, which is its number unless positions are given.
///
/// Math      (a, b) -> (a cos t - b sin t, a sin t + b cos t), t = position base^(-2 i / D) for pair i
/// Shapes    x: [B..., T, D], positions: broadcasts to [B..., T] -> [B..., T, D]
/// Dtypes    x: floating; positions: i32, i64, u8
/// Errors    "rope: an even number of the elements of [2, 5] required, got 5"
/// Source    Su et al. 2021
template <operand X>
constexpr auto rope(X const& x, Rope const& options = {}) {
  return detail::call(detail::FixedType<detail::Rotate<false>{}>{{}, {options}}, x);
}
template <operand X, operand P>
constexpr auto rope(X const& x, P const& positions, Rope const& options = {}) {
  return detail::call(detail::FixedType<detail::Rotate<true>{}>{{}, {options}}, x, positions);
}

}  // namespace dfdx
