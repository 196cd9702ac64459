// SPDX-License-Identifier: BSL-1.0
// Activation functions made of other ops, by PyTorch's names and with its derivatives at the kinks. Branches that are
// not taken compute something finite, so that no derivative becomes 0 * infinity.
#pragma once

#include <dfdx/vocabulary/composite.hpp>

namespace dfdx {

namespace detail {
template <class N>
concept number = std::is_arithmetic_v<N>;
// Two bounds of which one at least is no number.
template <class L, class H>
concept bounds = (operand<L> && (operand<H> || number<H>)) || (number<L> && operand<H>);

// Where a bound is NaN, so is the result.
template <operand X, class L>
constexpr auto at_least(X const& x, L const& low) {
  if constexpr (operand<L>) return where(logical_or(x < low, low != low), low, x);
  else return where(either(low != low, [&] { return x == x; }, [&] { return x < low; }), low, x);
}
template <operand X, class H>
constexpr auto at_most(X const& x, H const& high) {
  if constexpr (operand<H>) return where(logical_or(x > high, high != high), high, x);
  else return where(either(high != high, [&] { return x == x; }, [&] { return x > high; }), high, x);
}
template <Literal Name, operand X, class L, class H>
constexpr auto bounded(X const& x, L const& low, H const& high) {
  if constexpr (number<L>) return beside<Name>(x, high);
  else if constexpr (number<H>) return beside<Name>(x, low);
  else return beside<Name>(x, low, high);
}
}  // namespace detail

/// clamp(x, low, high) - x between two bounds, or the upper one where they cross; the gradient passes on the closed
/// interval. NaN stays NaN, and a bound that is NaN makes all so. Between whole bounds integers stay what they are.
///
/// Math      min(max(x, low), high)
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any, promoted with the bounds
/// Source    PyTorch's clamp
template <operand X, detail::number L, detail::number H>
constexpr auto clamp(X const& x, L low, H high) {
  return detail::at_most(detail::at_least(x, low), high);
}
/// clamp(x, low, high) of bounds that broadcast with x, one of which may be a number: where they cross it is the upper
/// one, and NaN where one is NaN. The gradient goes to x on the closed interval, beyond it to the bound.
///
/// Math      min(max(x, low), high)
/// Shapes    x, low, high: broadcast to [S...] -> [S...]
/// Dtypes    any, promoted
/// Errors    "clamp: shapes do not broadcast: [2, 3] x [4]"
/// Source    PyTorch's clamp
template <operand X, class L, class H>
  requires detail::bounds<L, H>
constexpr auto clamp(X const& x, L const& low, H const& high) {
  return detail::at_most(detail::at_least(detail::bounded<"clamp">(x, low, high), low), high);
}
/// clip(x, low, high) - clamp, as NumPy names it.
///
/// Shapes    x, low, high: broadcast to [S...] -> [S...]
/// Dtypes    any, promoted
/// Errors    those of clamp
/// Source    NumPy's clip
template <operand X, class L, class H>
  requires(detail::bounds<L, H> || (detail::number<L> && detail::number<H>))
constexpr auto clip(X const& x, L const& low, H const& high) {
  return clamp(x, low, high);
}
/// clamp_min(x, low), clamp_max(x, high) - one bound.
///
/// Math      max(x, low), min(x, high)
/// Shapes    x and the bound: broadcast to [S...] -> [S...]
/// Dtypes    any, promoted
/// Source    PyTorch's clamp_min and clamp_max
template <operand X, detail::number L>
constexpr auto clamp_min(X const& x, L low) {
  return detail::at_least(x, low);
}
template <operand X, operand L>
constexpr auto clamp_min(X const& x, L const& low) {
  return detail::at_least(detail::beside<"clamp_min">(x, low), low);
}
template <operand X, detail::number H>
constexpr auto clamp_max(X const& x, H high) {
  return detail::at_most(x, high);
}
template <operand X, operand H>
constexpr auto clamp_max(X const& x, H const& high) {
  return detail::at_most(detail::beside<"clamp_max">(x, high), high);
}

/// hardtanh(x, low, high) - as clamp, without a gradient at the bounds.
///
/// Math      min(max(x, low), high)
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any, promoted with the bounds
/// Source    PyTorch's hardtanh
template <operand X, detail::number L = int, detail::number H = int>
constexpr auto hardtanh(X const& x, L low = -1, H high = 1) {
  return where(x <= low, low, where(x >= high, high, x));
}
/// relu6(x) - min(max(x, 0), 6).
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    all; bool in i64
/// Source    PyTorch's relu6
template <operand X>
constexpr auto relu6(X const& x) {
  return hardtanh(x, 0, 6);
}

/// leaky_relu(x, slope) - x where positive, else slope x.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Source    Maas et al., ICML 2013
template <operand X>
constexpr auto leaky_relu(X const& x, double slope = 0.01) {
  return where(x > 0, x, x * slope);
}
/// threshold(x, t, value) - x where it is larger than t, else a value. NaN stays NaN.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any, promoted with the value
/// Source    PyTorch's threshold
template <operand X, detail::number T, detail::number N>
constexpr auto threshold(X const& x, T t, N value) {
  return where(x <= t, value, x);
}

/// elu(x, alpha) - x where positive, else alpha (e^x - 1).
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Clevert et al., ICLR 2016
template <operand X>
constexpr auto elu(X const& x, double alpha = 1) {
  return detail::computed_in_f32(x, [&](auto const& v) {
    auto const positive = v > 0;
    return where(positive, v, expm1(where(positive, 0.0, v)) * alpha);
  });
}
/// celu(x, alpha) - x where positive, else alpha (e^(x / alpha) - 1).
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Barron 2017
template <operand X>
constexpr auto celu(X const& x, double alpha = 1) {
  return detail::computed_in_f32(x, [&](auto const& v) {
    auto const positive = v > 0;
    return where(positive, v, expm1(where(positive, 0.0, v / alpha)) * alpha);
  });
}
/// selu(x) - elu, scaled so that normal inputs stay normal through many layers.
///
/// Math      1.0507 elu(x, 1.6733)
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Klambauer et al., NeurIPS 2017
template <operand X>
constexpr auto selu(X const& x) {
  return detail::computed_in_f32(
      x, [](auto const& v) { return elu(v, 1.6732632423543772) * 1.0507009873554805; });
}

/// log_sigmoid(x) - log(1 / (1 + e^-x)).
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    elementary calculus
template <operand X>
constexpr auto log_sigmoid(X const& x) {
  return -softplus(-detail::real(x));
}
/// logit(p, eps) - the inverse of sigmoid; with eps of p clamped to eps .. 1 - eps.
///
/// Math      log(p / (1 - p))
/// Shapes    p: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's logit
template <operand P>
constexpr auto logit(P const& p) {
  return detail::computed_in_f32(p, [](auto const& x) { return log(x) - log1p(-x); });
}
template <operand P>
constexpr auto logit(P const& p, double eps) {
  return detail::computed_in_f32(p, [&](auto const& x) { return logit(clamp(x, eps, 1 - eps)); });
}
/// mish(x) - x tanh(softplus(x)).
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Misra 2019
template <operand X>
constexpr auto mish(X const& x) {
  return detail::computed_in_f32(x, [](auto const& v) { return v * tanh(softplus(v)); });
}
/// quick_gelu(x) - x sigmoid(1.702 x), an approximation of gelu.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Hendrycks and Gimpel 2016
template <operand X>
constexpr auto quick_gelu(X const& x) {
  return detail::computed_in_f32(x, [](auto const& v) { return v * sigmoid(v * 1.702); });
}
/// softsign(x) - x / (1 + |x|).
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's softsign
template <operand X>
constexpr auto softsign(X const& x) {
  return detail::computed_in_f32(x, [](auto const& v) { return v / (abs(v) + 1.0); });
}
/// tanhshrink(x) - x - tanh(x), in double, for the difference cancels near 0.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; computed in double
/// Source    PyTorch's tanhshrink
template <operand X>
constexpr auto tanhshrink(X const& given) {
  auto const x = detail::real(given);
  if constexpr (typed<X>) {
    auto const wide = cast<double>(x);
    return cast<typename std::remove_const_t<decltype(x)>::value_type>(wide - tanh(wide));
  } else {
    X const wide = cast_to(x, DType::f64);
    return cast_to<X>(wide - tanh(wide), x.dtype());
  }
}
/// hardsigmoid(x) - x / 6 + 1/2 between -3 and 3, beyond 0 and 1.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's hardsigmoid
template <operand X>
constexpr auto hardsigmoid(X const& x) {
  return detail::computed_in_f32(x, [](auto const& v) { return hardtanh(v / 6.0 + 0.5, 0, 1); });
}
/// hardswish(x) - x hardsigmoid(x).
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Howard et al., ICCV 2019
template <operand X>
constexpr auto hardswish(X const& x) {
  return detail::computed_in_f32(x, [](auto const& v) {
    auto const middle = where(logical_or(v <= -3.0, v >= 3.0), 0.0, v);  // at infinity 0 * x is NaN
    return where(v >= 3.0, v, where(v <= -3.0, v * 0.0, middle * (middle + 3.0) / 6.0));
  });
}
/// softshrink(x, lambda) - x moved towards 0 by lambda, 0 between -lambda and lambda.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Source    PyTorch's softshrink
template <operand X>
constexpr auto softshrink(X const& x, double lambda = 0.5) {
  auto const beyond = where(x > lambda, x - lambda, x + lambda);  // NaN among it, which a gradient passes
  return where(logical_and(x >= -lambda, x <= lambda), 0.0, beyond);
}
/// hardshrink(x, lambda) - x, 0 between -lambda and lambda.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32
/// Source    PyTorch's hardshrink
template <operand X>
constexpr auto hardshrink(X const& x, double lambda = 0.5) {
  return where(logical_and(x >= -lambda, x <= lambda), 0.0, x);
}

/// prelu(x, weight) - x where positive, else weight x; one weight, or one for each channel, axis 1 of x.
///
/// Shapes    x: [B, C, S...], weight: [1] or [C] -> [B, C, S...]
/// Dtypes    all but bool, promoted
/// Errors    "prelu: 1 or 3 weights required for [2, 3, 5], got [4]"
/// Source    He et al., ICCV 2015
template <operand X, operand W>
constexpr auto prelu(X const& x, W const& weight);

namespace detail {

// Weights of channels as they broadcast against x: [C, 1, ...].
struct PreluRule {
  static constexpr Shape target(Shape const& x, Shape const& w, Text* why) {
    index_t const channels = x.rank > 1 ? x[1] : 1;
    if (w.rank != 1 || (w[0] != 1 && w[0] != channels))
      return refuse(why, "prelu: 1 or ", channels, " weights required for ", x, ", got ", w).shape;
    Shape r = w;
    for (int i = 2; i < x.rank; ++i) r.push_back(1);
    return r;
  }
};
// The weight is chosen, not the product: where it is not the weight's, an infinite x must not come to its gradient.
template <class X, class W>
constexpr auto prelu_of(X const& x, W const& weight) {
  return where(x > 0, ones_as(x), weight) * x;
}
template <class X, class W>
struct TypedPrelu {
  static constexpr Meta infer(Text* why) {
    return Meta{W::static_meta.dtype, PreluRule::target(X::static_shape, W::static_shape, why)};
  }
};

}  // namespace detail

template <operand X, operand W>
constexpr auto prelu(X const& x, W const& weight) {
  if constexpr (refused<X, W>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<W>) {
    using R = typename decltype(detail::result_type<detail::TypedPrelu<X, W>>())::type;
    if constexpr (refused<R>) return Refused{};
    else return detail::prelu_of(x, detail::wrap<R>(reshape_to(Array(weight), R::static_shape)));
  } else {
    Text why;
    Shape const to = detail::PreluRule::target(x.shape(), weight.shape(), &why);
    if (!to.valid()) raise(why);
    return detail::prelu_of(x, reshape_to(weight, to));
  }
}

}  // namespace dfdx
