// SPDX-License-Identifier: BSL-1.0
// Normalisation: to mean 0 and variance 1 over some axes, then scaled and shifted. Statistics of 16-bit values are
// worked out in f32 and the result is rounded once. Programs have norms as the ops that they are made of, and fuse
// these; of values in memory a norm is one op (standardize.hpp).
#pragma once

#include <dfdx/vocabulary/composite.hpp>
#include <dfdx/vocabulary/standardize.hpp>

namespace dfdx {

namespace detail {

/// Axes from..rank-1 of a shape, or all but the second.
constexpr Axes axes_from(int from, int rank) {
  Axes a;
  for (int i = from; i < rank; ++i) a.push(i);
  return a;
}
constexpr Axes all_but_channels(int rank) {
  Axes a = axes_from(2, rank);
  a.push(0);
  return a;
}
// Over those of x that `which` of its rank says, keeping them.
template <operand X, class Which>
constexpr auto kept_over(X const& x, Which) {
  if constexpr (typed<X>) return Fixed<Over{Which{}(X::static_rank), true}>{};
  else return Over{Which{}(x.shape().rank), true};
}

// y, or y weight, or y weight + bias, where weights have been brought to the shape of y by `lift`.
template <class Lift, class Y, class... P>
constexpr auto scaled(Lift const& lift, Y const& y, P const&... p) {
  static_assert(sizeof...(P) <= 2);
  if constexpr (sizeof...(P) == 0) return y;
  else {
    return [&](auto const& w, auto const&... b) {
      if constexpr (sizeof...(b) == 0) return y * lift(w);
      else return ((y * lift(w)) + ... + lift(b));
    }(p...);
  }
}

/// TrailingFit - whether parameters have the shape of the last axes of x: what layer_norm and rms_norm ask. It
/// passes x on.
struct TrailingFit {
  bool rms;
  int count;                    // of operands
  Shape shape = make_shape(0);  // of the last axes where there are no parameters
  constexpr Meta infer(Meta const* in, Text* why) const {
    char const* const name = rms ? "rms_norm" : "layer_norm";
    Shape const& x = in->shape;
    if (!is_floating(in->dtype)) return refuse(why, name, ": floating dtype required, got ", in->dtype);
    for (int k = 1; k <= count; ++k) {
      Shape const& last = k < count ? in[k].shape : count == 1 ? shape : in[1].shape;
      bool fits = last.rank > 0 && last.rank <= x.rank && (k != 2 || last.rank == in[1].shape.rank);
      for (int i = 0; fits && i < last.rank; ++i) {
        index_t const own = x[x.rank - last.rank + i];
        fits = op::extents_agree(last[i], own) &&
               (count != 1 || (op::is_extent(last[i]) && (last[i] != extent::unknown || own < 0)));
      }
      if (!fits) return refuse(why, name, ": ", last, " are not the last axes of ", x);
    }
    return *in;
  }
  template <class, class V, class... P>
  static constexpr V run(Meta const&, V const& x, P const&...) {
    return x;
  }
};

template <bool Rms, class P, operand X, class... W>
constexpr auto over_trailing_by_ops(X const& x, P const& over, double eps, W const&... w) {
  auto const v = in_f32(x);
  auto const same = [](auto const& p) -> auto const& { return p; };
  if constexpr (Rms)
    return rounded_as(scaled(same, v * rsqrt(mean_of(square(v), over) + eps), in_f32(w)...), x);
  else return rounded_as(scaled(same, standard_over(v, over, eps).z, in_f32(w)...), x);
}
template <bool Rms, class P, operand X, class... W>
constexpr auto over_trailing(X const& x, P const& over, double eps, W const&... w) {
  using R = decltype(over_trailing_by_ops<Rms>(x, over, eps, w...));
  int const axes = value_of(over).axes.n;
  if constexpr (!refused<R>)
    if (int const axis = x.shape().rank - axes; is_one_step(x, axis, w...))
      return wrap<R>(
          in_one_step({.axis = axis, .axes = axes, .centred = !Rms, .eps = eps}, untyped(x), w...));
  return over_trailing_by_ops<Rms>(x, over, eps, w...);
}
template <bool Rms, operand X, operand W, operand... B>
constexpr auto trailing_norm(X const& given, double eps, W const& weight, B const&... bias) {
  auto const x = call(Fixed<TrailingFit{Rms, 2 + sizeof...(B)}>{}, given, weight, bias...);
  if constexpr (refused<decltype(x)>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<W>) {
    constexpr int rank = X::static_rank;
    return over_trailing<Rms>(x, Fixed<Over{axes_from(rank - W::static_rank, rank), true}>{}, eps, weight,
                              bias...);
  } else {
    int const rank = x.shape().rank;
    return over_trailing<Rms>(x, Over{axes_from(rank - weight.shape().rank, rank), true}, eps, weight,
                              bias...);
  }
}
template <bool Rms, index_t... Last, operand X>
constexpr auto fixed_trailing_norm(X const& given, double eps) {
  auto const x = call(Fixed<TrailingFit{Rms, 1, make_shape(Last...)}>{}, given);
  if constexpr (refused<decltype(x)>) return Refused{};
  else if constexpr (typed<X>)
    return over_trailing<Rms>(
        x, Fixed<Over{axes_from(X::static_rank - static_cast<int>(sizeof...(Last)), X::static_rank), true}>{},
        eps);
  else {
    int const rank = x.shape().rank;
    return over_trailing<Rms>(x, Over{axes_from(rank - static_cast<int>(sizeof...(Last)), rank), true}, eps);
  }
}
template <bool Rms, operand X, class... W>
constexpr auto shaped_trailing_norm(X const& given, Shape const& last, double eps, W const&... w) {
  auto const x = call(TrailingFit{Rms, 1, last}, given);
  [[maybe_unused]] auto const of_shape = [&](auto const& p) {
    if (!(p.shape() == last))
      raise(Rms ? "rms_norm" : "layer_norm", ": parameters of shape ", last, " required, got ", p.shape());
    return untyped(p);
  };
  int const rank = x.shape().rank;
  return over_trailing<Rms>(x, Over{axes_from(rank - last.rank, rank), true}, eps, of_shape(w)...);
}

}  // namespace detail

/// layer_norm(x, weight, bias, eps) - brought to mean 0 and variance 1 over the last axes, those of the parameters,
/// then scaled and shifted (Ba et al. 2016). Without parameters the extents of these axes are given, layer_norm<3,
/// 4>(x); layer_norm(x, {3, 4}, weight, bias, eps) is PyTorch's order of arguments.
///
/// Math      y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, var the mean of the squares
/// Shapes    x: [B..., S...], weight, bias: [S...] -> [B..., S...]
/// Dtypes    x: floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "layer_norm: [6] are not the last axes of [4, 5]"
/// Source    Ba et al. 2016; PyTorch's layer_norm
template <operand X, operand W>
constexpr auto layer_norm(X const& x, W const& weight, double eps = 1e-5) {
  return detail::trailing_norm<false>(x, eps, weight);
}
template <operand X, operand W, operand B>
constexpr auto layer_norm(X const& x, W const& weight, B const& bias, double eps = 1e-5) {
  return detail::trailing_norm<false>(x, eps, weight, bias);
}
template <index_t First, index_t... Last, operand X>
constexpr auto layer_norm(X const& x, double eps = 1e-5) {
  return detail::fixed_trailing_norm<false, First, Last...>(x, eps);
}
template <operand X, operand... W>
  requires(sizeof...(W) <= 2)
constexpr auto layer_norm(X const& x, Extents const& shape, W const&... parameters) {
  return detail::shaped_trailing_norm<false>(x, shape.shape, 1e-5, parameters...);
}
template <operand X>
constexpr auto layer_norm(X const& x, Extents const& shape, double eps) {
  return detail::shaped_trailing_norm<false>(x, shape.shape, eps);
}
template <operand X, operand W>
constexpr auto layer_norm(X const& x, Extents const& shape, W const& weight, double eps) {
  return detail::shaped_trailing_norm<false>(x, shape.shape, eps, weight);
}
template <operand X, operand W, operand B>
constexpr auto layer_norm(X const& x, Extents const& shape, W const& weight, B const& bias, double eps) {
  return detail::shaped_trailing_norm<false>(x, shape.shape, eps, weight, bias);
}

/// rms_norm(x, weight, eps) - divided by the root of the mean of its squares over the last axes, those of the
/// weight, then scaled (Zhang and Sennrich 2019); rms_norm<3, 4>(x) and rms_norm(x, {3, 4}, weight, eps) as
/// layer_norm.
///
/// Math      y = x / sqrt(mean(x^2) + eps) * weight
/// Shapes    x: [B..., S...], weight: [S...] -> [B..., S...]
/// Dtypes    x: floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "rms_norm: [6] are not the last axes of [4, 5]"
/// Source    Zhang and Sennrich 2019; PyTorch's rms_norm
template <operand X, operand W>
constexpr auto rms_norm(X const& x, W const& weight, double eps = 1e-5) {
  return detail::trailing_norm<true>(x, eps, weight);
}
template <index_t First, index_t... Last, operand X>
constexpr auto rms_norm(X const& x, double eps = 1e-5) {
  return detail::fixed_trailing_norm<true, First, Last...>(x, eps);
}
template <operand X>
constexpr auto rms_norm(X const& x, Extents const& shape, double eps = 1e-5) {
  return detail::shaped_trailing_norm<true>(x, shape.shape, eps);
}
template <operand X, operand W>
constexpr auto rms_norm(X const& x, Extents const& shape, W const& weight, double eps = 1e-5) {
  return detail::shaped_trailing_norm<true>(x, shape.shape, eps, weight);
}

}  // namespace dfdx
