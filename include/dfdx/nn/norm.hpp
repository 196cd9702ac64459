// SPDX-License-Identifier: BSL-1.0
// nn::BatchNorm1d to BatchNorm3d, nn::GroupNorm, nn::InstanceNorm, nn::RMSNorm. Programs take eps and momentum from
// their types; models that run eagerly or on the tape may set the members.
#pragma once

#include <dfdx/nn/activation.hpp>
#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/channel_norm.hpp>

namespace dfdx::nn {

/// BatchNorm - each channel brought to mean 0 and variance 1, then scaled and shifted; BatchNorm1d, BatchNorm2d and
/// BatchNorm3d say how many axes x may have. A call uses the running statistics; `train` uses those of the batch, and
/// moves the running ones of this layer, a model of the program's, towards them. State: weight, bias and the buffers
/// running_mean, running_var, all [C]; no gradient flows to the buffers.
///
/// Math      y = (x - mean) / sqrt(var + eps) * weight + bias
/// Shapes    x: [N, C, S...] -> y: [N, C, S...]
/// Dtypes    floating
/// Errors    "batch_norm: a parameter of shape [4] does not fit the channels of [8, 3]"; "batch_norm: more than one
///           value for each channel required to train, got [1, 3]"
/// Source    Ioffe and Szegedy, ICML 2015; torch.nn.BatchNorm2d, initially weight 1, bias 0, mean 0, variance 1
template <std::size_t C, int Lowest = 2, int Highest = max_rank, element T = float, double Eps = 1e-5,
          double Momentum = 0.1>
struct BatchNorm {
  Tensor<T, C> weight;
  Tensor<T, C> bias;
  Buffer<T, C> running_mean;
  Buffer<T, C> running_var;
  DFDX_FIELDS(weight, bias, running_mean, running_var)
  double momentum = Momentum, eps = Eps;

  constexpr auto operator()(operand auto const& x) const { return std::get<0>(normalized(x, false)); }

  constexpr auto train(operand auto const& x) {
    auto const all =
        normalized(dfdx::detail::call(dfdx::detail::Fixed<dfdx::detail::ChannelsTrain{}>{}, x), true);
    if constexpr (!refused<decltype(all)>) {
      running_mean = std::get<1>(all);
      running_var = std::get<2>(all);
    }
    return std::get<0>(all);
  }

  void reset(Key) {
    init::ones(weight);
    init::zeros(bias);
    init::zeros(running_mean);
    init::ones(running_var);
  }

 private:
  constexpr auto normalized(operand auto const& x, bool training) const {
    Tensor<T, C> const &mean = running_mean, &var = running_var;
    return dfdx::detail::batch_norm_in<Lowest, Highest>(
        x, mean, var, dfdx::BatchNorm{.training = training, .momentum = momentum, .eps = eps}, weight, bias);
  }
};
template <std::size_t C, element T = float, double Eps = 1e-5, double Momentum = 0.1>
using BatchNorm1d = BatchNorm<C, 2, 3, T, Eps, Momentum>;
template <std::size_t C, element T = float, double Eps = 1e-5, double Momentum = 0.1>
using BatchNorm2d = BatchNorm<C, 4, 4, T, Eps, Momentum>;
template <std::size_t C, element T = float, double Eps = 1e-5, double Momentum = 0.1>
using BatchNorm3d = BatchNorm<C, 5, 5, T, Eps, Momentum>;

/// GroupNorm - groups of channels of each sample brought to mean 0 and variance 1, then channels scaled and shifted.
/// State: weight [C], bias [C].
///
/// Math      y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias, mean and var over the group
/// Shapes    x: [N, C, S...] -> y: [N, C, S...]
/// Dtypes    floating
/// Errors    "group_norm: the channels of [2, 5, 3] do not make 2 groups"
/// Source    Wu and He, "Group normalization", ECCV 2018; torch.nn.GroupNorm, initially weight 1 and bias 0
template <std::size_t Groups, std::size_t C, element T = float, double Eps = 1e-5>
struct GroupNorm {
  static_assert(Groups > 0 && C % Groups == 0, "GroupNorm: the channels do not make so many groups");
  Tensor<T, C> weight;
  Tensor<T, C> bias;
  DFDX_FIELDS(weight, bias)
  double eps = Eps;

  constexpr auto operator()(operand auto const& x) const {
    return group_norm<static_cast<index_t>(Groups)>(x, weight, bias, eps);
  }

  void reset(Key) {
    init::ones(weight);
    init::zeros(bias);
  }
};

/// InstanceNorm - each channel of each sample brought to mean 0 and variance 1; if Affine, then scaled and shifted.
/// InstanceNorm1d, 2d and 3d are the same. State: none, or weight [C], bias [C].
///
/// Math      y = (x - mean(x)) / sqrt(var(x) + eps) [* weight + bias], mean and var over the channel
/// Shapes    x: [N, C, S...] -> y: [N, C, S...]
/// Dtypes    floating
/// Errors    those of instance_norm
/// Source    Ulyanov et al. 2016; torch.nn.InstanceNorm2d, which has no parameters unless asked for
template <std::size_t C, bool Affine = false, element T = float, double Eps = 1e-5>
struct InstanceNorm {
  using hana_accessors_impl = detail::NoFields;
  double eps = Eps;

  constexpr auto operator()(operand auto const& x) const { return instance_norm(x, eps); }
};
template <std::size_t C, element T, double Eps>
struct InstanceNorm<C, true, T, Eps> {
  Tensor<T, C> weight;
  Tensor<T, C> bias;
  DFDX_FIELDS(weight, bias)
  double eps = Eps;

  constexpr auto operator()(operand auto const& x) const { return instance_norm(x, weight, bias, eps); }

  void reset(Key) {
    init::ones(weight);
    init::zeros(bias);
  }
};
template <std::size_t C, bool Affine = false, element T = float, double Eps = 1e-5>
using InstanceNorm1d = InstanceNorm<C, Affine, T, Eps>;
template <std::size_t C, bool Affine = false, element T = float, double Eps = 1e-5>
using InstanceNorm2d = InstanceNorm<C, Affine, T, Eps>;
template <std::size_t C, bool Affine = false, element T = float, double Eps = 1e-5>
using InstanceNorm3d = InstanceNorm<C, Affine, T, Eps>;

/// RMSNorm - each row divided by the root of the mean of its squares, then scaled. State: weight [D].
///
/// Math      y = x / sqrt(mean(x^2) + eps) * weight
/// Shapes    x: [..., D] -> y: [..., D]
/// Dtypes    floating
/// Errors    "rms_norm: [6] are not the last axes of [4, 5]"
/// Source    Zhang and Sennrich, "Root mean square layer normalization", 2019; torch.nn.RMSNorm, initially weight 1
template <std::size_t D, element T = float, double Eps = 1e-5>
struct RMSNorm {
  Tensor<T, D> weight;
  DFDX_FIELDS(weight)
  double eps = Eps;

  constexpr auto operator()(operand auto const& x) const { return rms_norm(x, weight, eps); }

  void reset(Key) { init::ones(weight); }
};

}  // namespace dfdx::nn
