// SPDX-License-Identifier: BSL-1.0
// Normalisation of channels: batch_norm, group_norm, instance_norm, local_response_norm.
#pragma once

#include <tuple>

#include <dfdx/vocabulary/arrange.hpp>
#include <dfdx/vocabulary/class_loss.hpp>
#include <dfdx/vocabulary/norm.hpp>

namespace dfdx {

/// BatchNorm - options of batch_norm. The momentum is the weight of the batch in the running statistics.
struct BatchNorm {
  bool training = false;
  double momentum = 0.1, eps = 1e-5;
};

/// LocalResponse - options of local_response_norm.
struct LocalResponse {
  double alpha = 1e-4, beta = 0.75, k = 1;
};

namespace detail {

/// ChannelsFit - whether parameters have an element for each channel, axis 1 of x. It passes x on.
struct ChannelsFit {
  enum Name { batch, group, instance } name;
  int count;
  int lowest = 2, highest = max_rank;  // ranks of x
  index_t groups = 1;
  static constexpr char const* text(Name n) {
    return n == batch ? "batch_norm" : n == group ? "group_norm" : "instance_norm";
  }
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& x = in->shape;
    char const* const n = text(name);
    if (!is_floating(in->dtype)) return refuse(why, n, ": floating dtype required, got ", in->dtype);
    if (x.rank < lowest || x.rank > highest)
      return refuse(why, n, ": a batch of channels", lowest > 2 ? " with more axes" : "", " required, got ",
                    x);
    for (int k = 1; k < count; ++k)
      if (in[k].shape.rank != 1 || !op::extents_agree(in[k].shape[0], x[1]))
        return refuse(why, n, ": a parameter of shape ", in[k].shape, " does not fit the channels of ", x);
    if (groups < 1 || (groups > 1 && (x[1] < 0 || x[1] % groups != 0)))
      return refuse(why, n, ": the channels of ", x, " do not make ", Position{groups}, " groups");
    return *in;
  }
  template <class, class V, class... P>
  static constexpr V run(Meta const&, V const& x, P const&...) {
    return x;
  }
};

/// ChannelsTrain - whether a batch has values enough to train on.
struct ChannelsTrain {
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& x = in->shape;
    if (x.rank < 2 || joined(x, all_but_channels(x.rank).mask(x.rank)) != 1) return *in;
    return refuse(why, "batch_norm: more than one value for each channel required to train, got ", x);
  }
  template <class, class V>
  static constexpr V run(Meta const&, V const& x) {
    return x;
  }
};

// Parameters of channels against x.
template <operand Y, operand X, class... P>
constexpr auto scaled_channels(Y const& y, X const& x, P const&... p) {
  auto const lift = [&](auto const& v) { return class_weights(x, in_f32(v)); };
  return rounded_as(scaled(lift, y, p...), x);
}

// by_ops(), or where that can be one step the same.
template <class F, operand X, class... W>
constexpr auto channels_in_one_step(F const& by_ops, op::NormOptions o, X const& x, W const&... w) {
  using R = decltype(by_ops());
  if constexpr (!refused<R>)
    if (is_one_step(x, 1, w...)) {
      o.axis = 1;
      return wrap<R>(in_one_step(o, untyped(x), w...));
    }
  return by_ops();
}

template <class P>
constexpr auto without(P const& kept_axes) {
  if constexpr (is_fixed<P>) return Fixed<Over{P::value.axes, false}>{};
  else return Over{kept_axes.axes, false};
}
struct AllButChannels {
  constexpr Axes operator()(int rank) const { return all_but_channels(rank); }
};
struct BehindChannels {
  constexpr Axes operator()(int rank) const { return axes_from(2, rank); }
};

// r (1 - momentum) + batch momentum, without a gradient.
template <operand R, operand S>
constexpr auto moved_towards(R const& running, S const& batch, double momentum) {
  auto const r = in_f32(stop_gradient(running));
  auto const moved = rounded_as(r * (1 - momentum) + stop_gradient(batch) * momentum, running);
  if constexpr (typed<R> && !typed<decltype(moved)>) return wrap<R>(moved);
  else return moved;
}

template <int Lowest, int Highest, operand X, operand M, operand V, class... P>
constexpr auto batch_norm_in(X const& given, M const& running_mean, V const& running_var, BatchNorm const& o,
                             P const&... p) {
  auto const fit = call(Fixed<ChannelsFit{ChannelsFit::batch, 3 + sizeof...(P), Lowest, Highest}>{}, given,
                        running_mean, running_var, p...);
  if constexpr (refused<decltype(fit)>) {
    return std::tuple(Refused{}, Refused{}, Refused{});
  } else {
    auto const x = in_f32(fit);
    auto const lift = [&](auto const& v) { return class_weights(x, in_f32(stop_gradient(v))); };
    if (!o.training) {
      auto const y = (x - lift(running_mean)) * rsqrt(lift(running_var) + o.eps);
      return std::tuple(scaled_channels(y, fit, p...), running_mean, running_var);
    }
    auto const over = kept_over(x, AllButChannels{});
    index_t const values = joined(x.shape(), value_of(over).mask(x.shape().rank));
    static_cast<void>(inferred(ChannelsTrain{}, x));
    if (Graph* const g = recorder_of(x); g != nullptr && values < 0 && values != extent::unknown)
      g->requirements.push_back(SameExtent{"batch_norm", values, 2, true});
    auto const by_ops = [&] {
      auto const s = standard_over(x, over, o.eps);
      auto const flat = [&](auto const& v) { return reduce<op::sum>(v, without(over)); };
      return std::tuple(
          scaled_channels(s.z, fit, p...), moved_towards(running_mean, flat(s.mean), o.momentum),
          moved_towards(running_var, flat(over_count<"batch_norm">(x, s.total, over, 1)), o.momentum));
    };
    using R = decltype(by_ops());
    using Y = std::tuple_element_t<0, R>;
    if constexpr (!refused<Y>)
      if (is_one_step(fit, 1, running_mean, running_var, p...)) {
        op::NormOptions const options{
            .axis = 1, .groups = x.shape()[1], .across = true, .centred = true, .eps = o.eps};
        auto const count = static_cast<double>(values);
        NormMoments m;
        Array const y = in_one_step(options, &m, untyped(fit), p...);
        auto const variance = lazy<sizeof...(P)>(m.variance) * (count / (count - 1));
        return R(wrap<Y>(y), moved_towards(running_mean, m.mean, o.momentum),
                 moved_towards(running_var, variance, o.momentum));
      }
    return by_ops();
  }
}

// The channels of x in groups: [N, C, S...] -> [N, G, C / G * S...].
struct Grouped {
  index_t groups;
  constexpr Meta infer(Meta const* in, Text*) const {
    Shape const& s = in->shape;
    return Meta{in->dtype, make_shape(s[0], groups, extent::mul(s[1] / groups, product(s, 2, s.rank)))};
  }
  template <class, class V>
  static constexpr V run(Meta const& y, V const& x) {
    return reshape_to(x, y.shape);
  }
};
struct GroupFit : ChannelsFit {
  constexpr GroupFit(index_t number, int operands) : ChannelsFit{group, operands, 2, max_rank, number} {}
};
template <class Groups, operand X, class... W>
constexpr auto group_norm_in(X const& given, Groups const& groups, double eps, W const&... w) {
  auto const fit = [&] {
    if constexpr (is_fixed<Groups>)
      return call(Fixed<GroupFit{Groups::value, 1 + sizeof...(W)}>{}, given, w...);
    else return call(GroupFit{groups, 1 + sizeof...(W)}, given, w...);
  }();
  if constexpr (refused<decltype(fit)>) {
    return Refused{};
  } else {
    return channels_in_one_step(
        [&] {
          auto const y = standard_over(call(made<Grouped>(groups), in_f32(fit)), keeping<-1>, eps).z;
          auto const shaped = [&] {
            if constexpr (typed<decltype(y)> && typed<X>) return call(Fixed<Reshape{X::static_shape}>{}, y);
            else return reshape_to(untyped(y), fit.shape());
          }();
          return scaled_channels(shaped, fit, w...);
        },
        {.groups = value_of(groups), .eps = eps}, fit, w...);
  }
}

template <operand X, class... W>
constexpr auto instance_norm_in(X const& given, double eps, W const&... w) {
  auto const fit =
      call(Fixed<ChannelsFit{ChannelsFit::instance, 1 + sizeof...(W), 3, max_rank}>{}, given, w...);
  if constexpr (refused<decltype(fit)>) return Refused{};
  else
    return channels_in_one_step(
        [&] {
          return scaled_channels(standard_over(in_f32(fit), kept_over(fit, BehindChannels{}), eps).z, fit,
                                 w...);
        },
        {.groups = fit.shape()[1], .eps = eps}, fit, w...);
}

// Over a window of channels: the sum of so many slices of the squares.
struct ResponseNorm {
  index_t size;
  LocalResponse o;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    if (!is_floating(in->dtype))
      return refuse(why, "local_response_norm: floating dtype required, got ", in->dtype);
    if (s.rank < 2 || s[1] < 0)
      return refuse(why, "local_response_norm: a batch of channels required, got ", s);
    if (size < 1 || size > 1 << 16)
      return refuse(why, "local_response_norm: a window of ", Position{size}, " channels");
    return *in;
  }
  template <class, class V>
  constexpr V run(Meta const& y, V const& given) const {
    static_cast<void>(inferred(*this, given));  // of the window as it is
    V const x = in_f32(given), squares = pad_axis(square(x), 1, size / 2, (size - 1) / 2);
    V total = slice_axis(squares, 1, 0, y.shape[1]);
    for (index_t i = 1; i < size; ++i) total = total + slice_axis(squares, 1, i, y.shape[1]);
    return rounded_as(x * pow(total * (o.alpha / static_cast<double>(size)) + o.k, -o.beta), given);
  }
};

}  // namespace detail

/// batch_norm(x, running_mean, running_var, weight, bias, options) - a tuple of the normalised x and the running
/// statistics. In training each channel is brought to mean 0 and variance 1 over the batch and the statistics move
/// towards the batch's; else the running ones are used and stay. No gradient flows to them. Parameters are optional.
///
/// Math      y = (x - mean) / sqrt(var + eps) * weight + bias; in training var is the mean of the squares, and
///           r' = (1 - momentum) r + momentum batch with the unbiased variance
/// Shapes    x: [N, C, S...], the others: [C] -> [N, C, S...], [C], [C]
/// Dtypes    x: floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "batch_norm: a parameter of shape [4] does not fit the channels of [8, 3]"; "batch_norm: more than one
///           value for each channel required to train, got [1, 3]"
/// Source    Ioffe and Szegedy, ICML 2015; PyTorch's batch_norm
template <operand X, operand M, operand V>
constexpr auto batch_norm(X const& x, M const& running_mean, V const& running_var, BatchNorm const& o = {}) {
  return detail::batch_norm_in<2, max_rank>(x, running_mean, running_var, o);
}
template <operand X, operand M, operand V, operand W>
constexpr auto batch_norm(X const& x, M const& running_mean, V const& running_var, W const& weight,
                          BatchNorm const& o = {}) {
  return detail::batch_norm_in<2, max_rank>(x, running_mean, running_var, o, weight);
}
template <operand X, operand M, operand V, operand W, operand B>
constexpr auto batch_norm(X const& x, M const& running_mean, V const& running_var, W const& weight,
                          B const& bias, BatchNorm const& o = {}) {
  return detail::batch_norm_in<2, max_rank>(x, running_mean, running_var, o, weight, bias);
}

/// group_norm<Groups>(x, weight, bias, eps), group_norm(x, groups, weight, bias, eps) - each sample brought to mean
/// 0 and variance 1 over groups of its channels, then channels scaled and shifted (Wu and He 2018). Parameters are
/// optional.
///
/// Math      y = (x - mean) / sqrt(var + eps) * weight + bias, var the mean of the squares, both over a group
/// Shapes    x: [N, C, S...], weight, bias: [C] -> [N, C, S...]
/// Dtypes    x: floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "group_norm: the channels of [2, 5, 3] do not make 2 groups"
/// Source    Wu and He, ECCV 2018; PyTorch's group_norm
template <index_t Groups, operand X, operand... W>
  requires(sizeof...(W) <= 2)
constexpr auto group_norm(X const& x, W const&... parameters) {
  return detail::group_norm_in(x, detail::Fixed<Groups>{}, 1e-5, parameters...);
}
template <index_t Groups, operand X>
constexpr auto group_norm(X const& x, double eps) {
  return detail::group_norm_in(x, detail::Fixed<Groups>{}, eps);
}
template <index_t Groups, operand X, operand W>
constexpr auto group_norm(X const& x, W const& weight, double eps) {
  return detail::group_norm_in(x, detail::Fixed<Groups>{}, eps, weight);
}
template <index_t Groups, operand X, operand W, operand B>
constexpr auto group_norm(X const& x, W const& weight, B const& bias, double eps) {
  return detail::group_norm_in(x, detail::Fixed<Groups>{}, eps, weight, bias);
}
template <operand X>
constexpr auto group_norm(X const& x, index_t groups, double eps = 1e-5) {
  return detail::group_norm_in(x, groups, eps);
}
template <operand X, operand W>
constexpr auto group_norm(X const& x, index_t groups, W const& weight, double eps = 1e-5) {
  return detail::group_norm_in(x, groups, eps, weight);
}
template <operand X, operand W, operand B>
constexpr auto group_norm(X const& x, index_t groups, W const& weight, B const& bias, double eps = 1e-5) {
  return detail::group_norm_in(x, groups, eps, weight, bias);
}

/// instance_norm(x, weight, bias, eps) - each channel of each sample brought to mean 0 and variance 1, then scaled
/// and shifted (Ulyanov et al. 2016). Parameters are optional.
///
/// Math      y = (x - mean) / sqrt(var + eps) * weight + bias, both over a channel of a sample
/// Shapes    x: [N, C, S...], weight, bias: [C] -> [N, C, S...]
/// Dtypes    x: floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "instance_norm: a batch of channels with more axes required, got [2, 3]"
/// Source    Ulyanov et al. 2016; PyTorch's instance_norm
template <operand X>
constexpr auto instance_norm(X const& x, double eps = 1e-5) {
  return detail::instance_norm_in(x, eps);
}
template <operand X, operand W>
constexpr auto instance_norm(X const& x, W const& weight, double eps = 1e-5) {
  return detail::instance_norm_in(x, eps, weight);
}
template <operand X, operand W, operand B>
constexpr auto instance_norm(X const& x, W const& weight, B const& bias, double eps = 1e-5) {
  return detail::instance_norm_in(x, eps, weight, bias);
}

/// local_response_norm(x, size, options) - x / (k + alpha / size * sum of squares)^beta, the sum over the `size`
/// channels around each (Krizhevsky et al. 2012).
///
/// Shapes    x: [N, C, S...] -> [N, C, S...]
/// Dtypes    x: floating; 16 bits are computed in f32 and rounded at the end
/// Errors    "local_response_norm: a batch of channels required, got [3]"
/// Source    Krizhevsky et al., NeurIPS 2012; PyTorch's local_response_norm
template <operand X>
constexpr auto local_response_norm(X const& x, index_t size, LocalResponse const& options = {}) {
  return detail::call(detail::FixedType<detail::ResponseNorm{1, {}}>{{}, {size, options}}, x);
}

}  // namespace dfdx
