// SPDX-License-Identifier: BSL-1.0
// nn::Conv1d, Conv2d, Conv3d and their transposes.
#pragma once

#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/conv.hpp>

namespace dfdx::nn {

namespace detail {

template <int N, bool Transposed, std::size_t In, std::size_t Out, Extents Kernel, auto Options, element T>
struct ConvWeight {
  static_assert(In % Options.groups == 0 && Out % Options.groups == 0,
                "groups must divide the numbers of channels");
  static constexpr Meta value = [] {
    auto const a = static_cast<index_t>(Transposed ? In : Out),
               b = static_cast<index_t>(Transposed ? Out : In);
    Meta m{dtype_v<T>, make_shape(a, b / Options.groups)};
    for (int i = 0; i < N; ++i) m.shape.push_back(dfdx::detail::for_axis(Kernel, i));
    return m;
  }();
  // What the initial values lie within.
  static double bound() {
    double n = 1;
    for (int i = 1; i < N + 2; ++i) n *= static_cast<double>(value.shape[i]);
    return 1 / std::sqrt(n);
  }
};

}  // namespace detail

/// Convolution - what Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d and ConvTranspose3d are. State:
/// weight and, unless Bias is false, bias [Out].
///
/// Math      that of conv2d or conv_transpose2d
/// Shapes    x: [B, In, Y, X] -> y: [B, Out, P, Q]; weight [Out, In / groups, K, L], transposed [In, Out / groups,
///           K, L]
/// Dtypes    one numeric dtype; the parameters have element type T
/// Errors    "conv2d: input [2, 4, 9, 9] does not fit weight [8, 3, 3, 3], groups = 1"
/// Source    torch.nn.Conv2d, also for the initial values: U(-b, b) for both, b = 1 / sqrt(weights of a channel)
template <int N, bool Transposed, std::size_t In, std::size_t Out, Extents Kernel, auto Options, bool Bias,
          element T>
struct Convolution {
  using Weight = detail::ConvWeight<N, Transposed, In, Out, Kernel, Options, T>;
  tensor_for<Weight> weight;
  Tensor<T, Out> bias;
  DFDX_FIELDS(weight, bias)

  constexpr auto operator()(operand auto const& x) const {
    return dfdx::detail::convolve<N, Transposed, Options>(x, weight, bias);
  }

  void reset(Key key) {
    init::uniform(weight, fold_in(key, 0), -Weight::bound(), Weight::bound());
    init::uniform(bias, fold_in(key, 1), -Weight::bound(), Weight::bound());
  }
};

template <int N, bool Transposed, std::size_t In, std::size_t Out, Extents Kernel, auto Options, element T>
struct Convolution<N, Transposed, In, Out, Kernel, Options, false, T> {
  using Weight = detail::ConvWeight<N, Transposed, In, Out, Kernel, Options, T>;
  tensor_for<Weight> weight;
  DFDX_FIELDS(weight)

  constexpr auto operator()(operand auto const& x) const {
    return dfdx::detail::convolve<N, Transposed, Options>(x, weight);
  }

  void reset(Key key) { init::uniform(weight, fold_in(key, 0), -Weight::bound(), Weight::bound()); }
};

/// Conv2d<In, Out, Kernel, Options, Bias, T> - conv2d with a weight and a bias of its own: Conv2d<3, 16, 5>,
/// Conv2d<3, 16, Extents{3, 5}, ConvOptions{.padding = "same"}>. Conv1d and Conv3d likewise.
template <std::size_t In, std::size_t Out, Extents Kernel, ConvOptions Options = ConvOptions{},
          bool Bias = true, element T = float>
using Conv1d = Convolution<1, false, In, Out, Kernel, Options, Bias, T>;
template <std::size_t In, std::size_t Out, Extents Kernel, ConvOptions Options = ConvOptions{},
          bool Bias = true, element T = float>
using Conv2d = Convolution<2, false, In, Out, Kernel, Options, Bias, T>;
template <std::size_t In, std::size_t Out, Extents Kernel, ConvOptions Options = ConvOptions{},
          bool Bias = true, element T = float>
using Conv3d = Convolution<3, false, In, Out, Kernel, Options, Bias, T>;

/// ConvTranspose2d<In, Out, Kernel, Options, Bias, T> - conv_transpose2d with a weight and a bias of its own;
/// ConvTranspose1d and ConvTranspose3d likewise.
template <std::size_t In, std::size_t Out, Extents Kernel,
          ConvTransposeOptions Options = ConvTransposeOptions{}, bool Bias = true, element T = float>
using ConvTranspose1d = Convolution<1, true, In, Out, Kernel, Options, Bias, T>;
template <std::size_t In, std::size_t Out, Extents Kernel,
          ConvTransposeOptions Options = ConvTransposeOptions{}, bool Bias = true, element T = float>
using ConvTranspose2d = Convolution<2, true, In, Out, Kernel, Options, Bias, T>;
template <std::size_t In, std::size_t Out, Extents Kernel,
          ConvTransposeOptions Options = ConvTransposeOptions{}, bool Bias = true, element T = float>
using ConvTranspose3d = Convolution<3, true, In, Out, Kernel, Options, Bias, T>;

}  // namespace dfdx::nn
