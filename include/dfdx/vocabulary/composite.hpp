// SPDX-License-Identifier: BSL-1.0
// Functions made of other ops: activations, softmax and its kin, normalisation, losses. They are stable by
// construction (shifted exponentials, log1p forms); the fuser makes each a pass or two over rows, forward and
// backward.
#pragma once

#include <dfdx/vocabulary/contract.hpp>

namespace dfdx {

namespace detail {

// What exponentials are shifted by so that none overflows: the largest element over axes, without a gradient. Of no
// elements it is 0.
template <int... Axes, operand X>
constexpr auto largest(X const& x) {
  using List = AxisList<Axes...>;
  auto const is_empty = [](Shape const& s) {
    return joined(s, axes_mask(List::values, List::n, s.rank)) == 0;
  };
  if constexpr (typed<X>) {
    if constexpr (is_empty(X::static_shape)) return stop_gradient(sum<Axes...>(x, keepdim));
    else return stop_gradient(max<Axes...>(x, keepdim));
  } else {
    return stop_gradient(is_empty(x.shape()) ? sum<Axes...>(x, keepdim) : max<Axes...>(x, keepdim));
  }
}

}  // namespace detail

/// softmax<Axis>(x) - e^x / sum e^x along an axis, with the largest element subtracted first.
template <int Axis = -1, operand X>
constexpr auto softmax(X const& x) {
  auto const e = exp(x - detail::largest<Axis>(x));
  return e / sum<Axis>(e, keepdim);
}
inline Array softmax(Array const& x, int axis) {
  return transpose_axes(softmax<-1>(transpose_axes(x, axis, -1)), axis, -1);
}

/// log_softmax<Axis>(x) - x - log sum e^x along an axis.
template <int Axis = -1, operand X>
constexpr auto log_softmax(X const& x) {
  auto const z = x - detail::largest<Axis>(x);
  return z - log(sum<Axis>(exp(z), keepdim));
}
inline Array log_softmax(Array const& x, int axis) {
  return transpose_axes(log_softmax<-1>(transpose_axes(x, axis, -1)), axis, -1);
}

/// logsumexp<Axes...>(x) - log sum e^x over axes; of infinities alone it is that infinity.
template <int... Axes, operand X>
constexpr auto logsumexp(X const& x, Keepdim) {
  auto const m = detail::largest<Axes...>(x);
  auto const shift = where(abs(m) == std::numeric_limits<double>::infinity(), zeros_like(m), m);
  return log(sum<Axes...>(exp(x - shift), keepdim)) + shift;
}
template <int... Axes, operand X>
constexpr auto logsumexp(X const& x) {
  auto const y = logsumexp<Axes...>(x, keepdim);
  // The sum over axes of extent 1 drops them, in any regime.
  return sum<Axes...>(y);
}

/// gelu(x) - x Phi(x), with the error function (Hendrycks and Gimpel 2016).
template <operand X>
constexpr auto gelu(X const& x) {
  return x * 0.5 * (1.0 + erf(x * 0.70710678118654752));
}

/// gelu_tanh(x) - the tanh approximation of gelu of the same paper.
template <operand X>
constexpr auto gelu_tanh(X const& x) {
  return x * 0.5 * (1.0 + tanh((x + x * x * x * 0.044715) * 0.79788456080286536));
}

/// silu(x) - x sigmoid(x) (Elfwing et al. 2017), also called swish.
template <operand X>
constexpr auto silu(X const& x) {
  return x * sigmoid(x);
}

/// softplus(x) - log(1 + e^x), computed as max(x, 0) + log1p(e^-|x|).
template <operand X>
constexpr auto softplus(X const& x) {
  auto const positive = x > 0;
  // |x| by selection, so that the derivative at 0 is 1/2 as it should be.
  return where(positive, x, zeros_like(x)) + log1p(exp(where(positive, -x, x)));
}

/// layer_norm(x, weight, bias, eps) - normalised over the last axis, then scaled and shifted (Ba et al. 2016).
///
/// Shapes    x: [B..., D], weight: [D], bias: [D] -> [B..., D]
template <operand X, operand W, operand B>
constexpr auto layer_norm(X const& x, W const& weight, B const& bias, double eps = 1e-5) {
  auto const centred = x - mean<-1>(x, keepdim);
  auto const scale = rsqrt(mean<-1>(square(centred), keepdim) + eps);
  return centred * scale * weight + bias;
}

namespace detail {

// What cross_entropy and nll_loss ask of their operands.
template <bool Nll>
constexpr Meta labels_rule(Meta const& scores, Meta const& labels, Text* why) {
  constexpr char const* name = Nll ? "nll_loss" : "cross_entropy";
  Shape const &s = scores.shape, &l = labels.shape;
  bool fit = s.rank == l.rank + 1;
  for (int i = 0; fit && i < l.rank; ++i) fit = op::extents_agree(l[i], s[i == 0 ? 0 : i + 1]);
  if (!fit) return refuse(why, name, ": labels ", l, " do not fit scores ", s);
  if (labels.dtype != DType::i32 && labels.dtype != DType::i64)
    return refuse(why, name, ": labels of dtype i32 or i64 required, got ", labels.dtype);
  return scores;
}
template <bool Nll, class X, class I>
struct LabelsRule {
  static constexpr Meta infer(Text* why) { return labels_rule<Nll>(X::static_meta, I::static_meta, why); }
};

// Class scores at their labels: scores [N, C, ...], labels [N, ...] -> [N, 1, ...] (or [C], [] -> [1]).
template <class X, class I>
constexpr auto at_labels(X const& scores, I const& labels) {
  if constexpr (typed<X> && typed<I>) {
    constexpr int axis = X::static_rank == 1 ? 0 : 1;
    auto const wide = unsqueeze<axis>(labels);
    auto const hit = wide == positions<axis, X::static_shape[axis]>(wide);
    return sum<axis>(where(hit, scores, zeros_like(scores)), keepdim);
  } else {
    int const axis = scores.shape().rank == 1 ? 0 : 1;
    Shape s = labels.shape();
    for (int i = s.rank++; i > axis; --i) s[i] = s[i - 1];
    s[axis] = 1;
    auto const wide = reshape_to(labels, s);
    s = make_shape();
    for (int i = 0; i < wide.shape().rank; ++i) s.push_back(i == axis ? scores.shape()[axis] : 1);
    auto const hit = wide == iota_as(wide, Meta{labels.dtype(), s}, axis);
    return sum_axes(where(hit, scores, zeros_like(scores)), index_t{1} << axis);
  }
}

// f(axis of the classes), if scores and labels fit.
template <bool Nll, class X, class I, class F>
constexpr auto over_classes(X const& scores, I const& labels, F f) {
  if constexpr (refused<X, I>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<I>) {
    using R = typename decltype(result_type<LabelsRule<Nll, X, I>>())::type;
    if constexpr (refused<R>) return Refused{};
    else return f(std::integral_constant < int, X::static_rank == 1 ? 0 : 1 > {});
  } else {
    Text why;
    if (!labels_rule<Nll>(scores.meta(), labels.meta(), &why).valid()) raise(why);
    return scores.shape().rank == 1 ? f(std::integral_constant<int, 0>{})
                                    : f(std::integral_constant<int, 1>{});
  }
}

}  // namespace detail

/// cross_entropy(logits, labels) - mean of -log softmax(logits) at the labels; the class axis is 1, as in PyTorch.
///
/// Shapes    logits: [N, C] or [N, C, ...], labels: [N] or [N, ...] -> []
/// Dtypes    logits: floating, labels: i32 i64
/// Errors    "cross_entropy: labels [16] do not fit scores [32, 10]"
template <operand X, operand I>
constexpr auto cross_entropy(X const& logits, I const& labels) {
  return detail::over_classes<false>(logits, labels, [&](auto axis) {
    constexpr int a = decltype(axis)::value;
    auto const z = logits - detail::largest<a>(logits);
    return mean(log(sum<a>(exp(z), keepdim)) - detail::at_labels(z, labels));
  });
}

/// nll_loss(log_probabilities, labels) - minus the mean of the entries at the labels.
template <operand X, operand I>
constexpr auto nll_loss(X const& log_probabilities, I const& labels) {
  return detail::over_classes<true>(
      log_probabilities, labels, [&](auto) { return -mean(detail::at_labels(log_probabilities, labels)); });
}

}  // namespace dfdx
