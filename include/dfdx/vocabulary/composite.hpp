// SPDX-License-Identifier: BSL-1.0
// Functions made of other ops: activations, softmax and its kin. They are stable by construction (shifted
// exponentials, log1p forms); the fuser makes each a pass or two over rows, forward and backward.
#pragma once

#include <dfdx/vocabulary/contract.hpp>
#include <dfdx/vocabulary/index.hpp>

namespace dfdx {

namespace detail {

// What exponentials are shifted by so that none overflows: the largest element over axes, without a gradient. Of no
// elements it is 0.
template <Literal Name, class P, operand X>
constexpr auto largest(X const& x, P const& over) {
  auto const is_empty = [](Shape const& s, index_t mask) { return joined(s, mask) == 0; };
  constexpr bool known = [] {
    if constexpr (is_fixed<P> && typed<X>) return joined(X::static_shape, P::value.mask(X::static_rank)) >= 0;
    else return false;
  }();
  if constexpr (known) {
    if constexpr (is_empty(X::static_shape, P::value.mask(X::static_rank)))
      return stop_gradient(reduce<op::sum, Name>(x, kept(over)));
    else return stop_gradient(reduce<op::max, Name>(x, kept(over)));
  } else {
    bool const empty = is_empty(x.shape(), value_of(over).mask(x.shape().rank));
    return stop_gradient(either(
        empty, [&] { return reduce<op::sum, Name>(x, kept(over)); },
        [&] { return reduce<op::max, Name>(x, kept(over)); }));
  }
}

template <int... A>
inline constexpr Fixed<Over{Axes{A...}, true}> keeping{};

// Differences from the largest element, rounded to 16 bits, would leave their exponentials five units off. The sum is
// at least 1, so that its reciprocal may take the place of a division for each element.
template <Literal Name = "softmax", class P, operand X>
constexpr auto softmax_over(X const& x, P const& over) {
  auto const e = exp(in_f32(floating<Name>(x)) - largest<Name>(x, over));
  return rounded_as(e * (1.0 / reduce<op::sum>(e, over)), x);
}
template <class P, operand X>
constexpr auto log_softmax_over(X const& x, P const& over) {
  auto const z = in_f32(floating<"log_softmax">(x)) - largest<"log_softmax">(x, over);
  return rounded_as(z - log(reduce<op::sum>(exp(z), over)), x);
}
template <class P, operand X>
constexpr auto logsumexp_over(X const& given, P const& over) {
  auto const x = in_f32(real(given));
  auto const m = largest<"logsumexp">(x, over);
  // Beside an infinity numbers count for nothing; of minus infinities alone there is no sum to take the logarithm of.
  double const most = largest_finite(x.dtype());
  auto const shift = minimum(maximum(m, -most), most);
  auto const sum = reduce<op::sum>(exp(x - shift), kept(over));
  auto const none = m == -std::numeric_limits<double>::infinity();
  auto const y = log(where(none, ones_as(sum), sum)) + where(none, m, shift);
  // The sum over axes of extent 1 drops them, in any regime.
  return rounded_as(reduce<op::sum>(y, over), given);
}

}  // namespace detail

/// softmax<Axis>(x), softmax(x, axis) - e^x / sum e^x along an axis, with the largest element subtracted first.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "softmax: floating dtype required, got i32"
/// Source    elementary
template <int Axis = -1, operand X>
constexpr auto softmax(X const& x) {
  return detail::softmax_over(x, detail::keeping<Axis>);
}
template <operand X>
constexpr auto softmax(X const& x, int axis) {
  return detail::softmax_over(x, detail::Over{axis, true});
}

/// softmin<Axis>(x) - softmax of -x.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    floating; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's softmin
template <int Axis = -1, operand X>
constexpr auto softmin(X const& x) {
  return detail::softmax_over<"softmin">(-x, detail::keeping<Axis>);
}
template <operand X>
constexpr auto softmin(X const& x, int axis) {
  return detail::softmax_over<"softmin">(-x, detail::Over{axis, true});
}

/// log_softmax<Axis>(x), log_softmax(x, axis) - x - log sum e^x along an axis.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    floating; 16 bits are computed in f32 and rounded at the end
/// Source    elementary
template <int Axis = -1, operand X>
constexpr auto log_softmax(X const& x) {
  return detail::log_softmax_over(x, detail::keeping<Axis>);
}
template <operand X>
constexpr auto log_softmax(X const& x, int axis) {
  return detail::log_softmax_over(x, detail::Over{axis, true});
}

/// logsumexp - log sum e^x over axes; of infinities alone it is that infinity, and of negative ones the gradient is 0.
///
/// Shapes    x: [S...] -> [S... without the axes], or with 1 in their place
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    elementary
template <int... A, operand X>
constexpr auto logsumexp(X const& x) {
  return detail::logsumexp_over(x, detail::Fixed<detail::Over{Axes{A...}, false}>{});
}
template <int... A, operand X>
constexpr auto logsumexp(X const& x, Keepdim) {
  return detail::logsumexp_over(x, detail::Fixed<detail::Over{Axes{A...}, true}>{});
}
template <operand X>
constexpr auto logsumexp(X const& x, Axes const& axes, bool keep = false) {
  return detail::logsumexp_over(x, detail::Over{axes, keep});
}

/// gelu(x) - x Phi(x), with the error function.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Hendrycks and Gimpel 2016
template <operand X>
constexpr auto gelu(X const& x) {
  return detail::computed_in_f32(
      x, [](auto const& v) { return v * 0.5 * (1.0 + erf(v * 0.70710678118654752)); });
}

/// gelu_tanh(x) - the tanh approximation of gelu.
///
/// Math      x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Hendrycks and Gimpel 2016
template <operand X>
constexpr auto gelu_tanh(X const& x) {
  return detail::computed_in_f32(x, [](auto const& v) {
    return v * 0.5 * (1.0 + tanh((v + v * v * v * 0.044715) * 0.79788456080286536));
  });
}

/// Approximate - which gelu: the exact one, or that by tanh.
enum class Approximate { none, tanh };

/// gelu(x, Approximate::tanh) - either.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's gelu
template <operand X>
constexpr auto gelu(X const& x, Approximate by) {
  if (by == Approximate::tanh) return gelu_tanh(x);
  return gelu(x);
}

/// silu(x) - x sigmoid(x), also called swish.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    Elfwing et al. 2017
template <operand X>
constexpr auto silu(X const& x) {
  return detail::computed_in_f32(x, [](auto const& v) { return v * sigmoid(v); });
}

/// softplus(x) - log(1 + e^x), computed as max(x, 0) + log1p(e^-|x|).
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    elementary calculus
template <operand X>
constexpr auto softplus(X const& x) {
  return detail::computed_in_f32(x, [](auto const& v) {
    auto const positive = v > 0;
    // |x| by selection, so that the derivative at 0 is 1/2 as it should be.
    return where(positive, v, zeros_as(v)) + log1p(exp(where(positive, -v, v)));
  });
}
/// softplus(x, beta, threshold) - log(1 + e^(beta x)) / beta; x itself, with derivative 1, where beta x is above the
/// threshold.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Source    PyTorch's softplus
template <operand X>
constexpr auto softplus(X const& x, double beta, double threshold = 20) {
  return detail::computed_in_f32(x, [&](auto const& v) {
    auto const large = v * beta > threshold;
    return where(large, v, softplus(where(large, zeros_as(v), v * beta)) / beta);
  });
}

namespace detail {

// The two halves of an axis; glu and its kin are a product of one and a function of the other.
template <class Gate>
struct Gated {
  int axis;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Meta m = op::real(*in);
    int const a = rule_axis(Gate::name, axis, m.shape, why);
    if (a < 0) return refuse(nullptr);
    if (m.shape[a] < 0 || m.shape[a] % 2 != 0)
      return refuse(why, Gate::name, ": axis ", a, " of ", m.shape, " must be even");
    m.shape[a] /= 2;
    return m;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& x) const {
    int const a = normalize_axis(axis, y.shape.rank);
    index_t const n = y.shape[a];
    return computed_in_f32(
        x, [&](V const& v) { return Gate::eval(slice_axis(v, a, 0, n), slice_axis(v, a, n, n)); });
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
}  // namespace detail

/// glu<Axis>(x), geglu<Axis>(x), swiglu<Axis>(x) - of the halves a and b of an axis: a sigmoid(b), a gelu(b), silu(a)
/// b; in swiglu the gate comes first, as in Llama.
///
/// Shapes    x: [.., 2 N, ..] -> [.., N, ..]
/// Dtypes    f32 f64 f16 bf16; integers and bool in f32; 16 bits are computed in f32 and rounded at the end
/// Errors    "glu: axis 1 of [2, 3] must be even"
/// Source    Dauphin et al. 2016; Shazeer 2020
template <int Axis = -1, operand X>
constexpr auto glu(X const& x) {
  return detail::call(detail::Fixed<detail::Gated<detail::Glu>{Axis}>{}, x);
}
template <operand X>
constexpr auto glu(X const& x, int axis) {
  return detail::call(detail::Gated<detail::Glu>{axis}, x);
}
template <int Axis = -1, operand X>
constexpr auto geglu(X const& x) {
  return detail::call(detail::Fixed<detail::Gated<detail::Geglu>{Axis}>{}, x);
}
template <operand X>
constexpr auto geglu(X const& x, int axis) {
  return detail::call(detail::Gated<detail::Geglu>{axis}, x);
}
template <int Axis = -1, operand X>
constexpr auto swiglu(X const& x) {
  return detail::call(detail::Fixed<detail::Gated<detail::Swiglu>{Axis}>{}, x);
}
template <operand X>
constexpr auto swiglu(X const& x, int axis) {
  return detail::call(detail::Gated<detail::Swiglu>{axis}, x);
}

}  // namespace dfdx
