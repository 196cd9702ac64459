// SPDX-License-Identifier: BSL-1.0
// Functions made of other ops: activations, softmax and its kin, normalisation. They are stable by
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

// The same, and the sum, along an axis that is a function argument; the axis stays. Of Tensors too: shapes remain.
template <operand X>
constexpr auto sum_over(X const& x, int axis) {
  return reduce_mask<op::sum, void>(untyped(x), index_t{1} << checked_axis("softmax", axis, x.shape()), true);
}
template <operand X>
constexpr auto largest_over(X const& x, int axis) {
  index_t const mask = index_t{1} << checked_axis("softmax", axis, x.shape());
  if (joined(x.shape(), mask) == 0) return sum_over(x, axis);
  return stop_gradient(reduce_mask<op::max, void>(untyped(x), mask, true));
}

}  // namespace detail

/// softmax<Axis>(x) - e^x / sum e^x along an axis, with the largest element subtracted first.
template <int Axis = -1, operand X>
constexpr auto softmax(X const& x) {
  auto const e = exp(x - detail::largest<Axis>(x));
  return e / sum<Axis>(e, keepdim);
}
template <operand X>
constexpr auto softmax(X const& x, int axis) {
  auto const e = exp(x - detail::largest_over(x, axis));
  return e / detail::sum_over(e, axis);
}

/// softmin<Axis>(x) - softmax of -x.
template <int Axis = -1, operand X>
constexpr auto softmin(X const& x) {
  return softmax<Axis>(-x);
}
template <operand X>
constexpr auto softmin(X const& x, int axis) {
  return softmax(-x, axis);
}

/// log_softmax<Axis>(x) - x - log sum e^x along an axis.
template <int Axis = -1, operand X>
constexpr auto log_softmax(X const& x) {
  auto const z = x - detail::largest<Axis>(x);
  return z - log(sum<Axis>(exp(z), keepdim));
}
template <operand X>
constexpr auto log_softmax(X const& x, int axis) {
  auto const z = x - detail::largest_over(x, axis);
  return z - log(detail::sum_over(exp(z), axis));
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

/// Approximate - which gelu: the exact one, or that by tanh.
enum class Approximate { none, tanh };

/// gelu(x, Approximate::tanh) - either, as PyTorch spells it.
template <operand X>
constexpr auto gelu(X const& x, Approximate by) {
  return by == Approximate::tanh ? gelu_tanh(x) : gelu(x);
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
/// softplus(x, beta, threshold) - log(1 + e^(beta x)) / beta; x itself, with derivative 1, where beta x is above the
/// threshold, as PyTorch has it.
template <operand X>
constexpr auto softplus(X const& x, double beta, double threshold = 20) {
  auto const large = x * beta > threshold;
  return where(large, x, softplus(where(large, zeros_like(x), x * beta)) / beta);
}

namespace detail {

// The two halves of an axis; glu and its kin are a product of one and a function of the other.
template <class X, class F>
constexpr auto gated(char const* name, X const& x, int axis, F const& f) {
  int const a = checked_axis(name, axis, x.shape());
  index_t const n = x.shape()[a];
  if (n < 0 || n % 2 != 0) raise(name, ": axis ", a, " of ", x.shape(), " must be even");
  return f(slice_axis(untyped(x), a, 0, n / 2), slice_axis(untyped(x), a, n / 2, n / 2));
}
template <int Axis, class X>
struct GatedRule {
  static constexpr Meta infer(char const* name, Text* why) {
    Meta m = static_meta_or_empty<X>();
    int const a = rule_axis(name, Axis, m.shape, why);
    if (a < 0) return refuse(nullptr);
    if (m.shape[a] < 0 || m.shape[a] % 2 != 0)
      return refuse(why, name, ": axis ", a, " of ", m.shape, " must be even");
    m.shape[a] /= 2;
    return m;
  }
};
struct Glu {
  static constexpr char const* name = "glu";
  static constexpr auto eval(auto const& a, auto const& b) { return a * sigmoid(b); }
};
struct Geglu {
  static constexpr char const* name = "geglu";
  static constexpr auto eval(auto const& a, auto const& b) { return a * gelu(b); }
};
struct Swiglu {
  static constexpr char const* name = "swiglu";
  static constexpr auto eval(auto const& a, auto const& b) { return silu(a) * b; }
};
template <class Gate, int Axis, class X>
constexpr auto gated_by(X const& x) {
  struct Rule {
    static constexpr Meta infer(Text* why) { return GatedRule<Axis, X>::infer(Gate::name, why); }
  };
  return shaped<Rule>(x, [](auto const& v) {
    return gated(Gate::name, v, Axis, [](auto const& a, auto const& b) { return Gate::eval(a, b); });
  });
}
template <class Gate, class X>
constexpr auto gated_by(X const& x, int axis) {
  return gated(Gate::name, x, axis, [](auto const& a, auto const& b) { return Gate::eval(a, b); });
}

}  // namespace detail

/// glu<Axis>(x), geglu<Axis>(x), swiglu<Axis>(x) - of the halves a and b of an axis a sigmoid(b) (Dauphin et al. 2016),
/// a gelu(b) and silu(a) b (Shazeer 2020); in swiglu the gate comes first, as in Llama.
///
/// Errors    "glu: axis 1 of [2, 3] must be even"
template <int Axis = -1, operand X>
constexpr auto glu(X const& x) {
  return detail::gated_by<detail::Glu, Axis>(x);
}
template <operand X>
constexpr auto glu(X const& x, int axis) {
  return detail::gated_by<detail::Glu>(x, axis);
}
template <int Axis = -1, operand X>
constexpr auto geglu(X const& x) {
  return detail::gated_by<detail::Geglu, Axis>(x);
}
template <operand X>
constexpr auto geglu(X const& x, int axis) {
  return detail::gated_by<detail::Geglu>(x, axis);
}
template <int Axis = -1, operand X>
constexpr auto swiglu(X const& x) {
  return detail::gated_by<detail::Swiglu, Axis>(x);
}
template <operand X>
constexpr auto swiglu(X const& x, int axis) {
  return detail::gated_by<detail::Swiglu>(x, axis);
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

}  // namespace dfdx
