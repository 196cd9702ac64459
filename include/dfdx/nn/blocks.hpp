// SPDX-License-Identifier: BSL-1.0
// Modules made of modules: nn::Residual, nn::Parallel, and the feed-forward blocks nn::MLP, nn::GEGLU, nn::SwiGLU.
#pragma once

#include <dfdx/nn/dropout.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/nn/sequential.hpp>
#include <dfdx/vocabulary/join.hpp>

namespace dfdx::nn {

/// Residual - a module beside which its input goes on. State: that of the module, below "module".
///
/// Math      y = x + f(x)
/// Shapes    x: [S...] -> y: [S...], as f says
/// Dtypes    as f says
/// Errors    "add: shapes [4, 3] and [4, 2] do not broadcast"; those of the module
/// Source    He et al., CVPR 2016
template <class Module>
struct Residual {
  Module module;
  DFDX_FIELDS(module)

  constexpr auto operator()(auto const& x) const { return x + module(x); }
  constexpr auto train(auto const& x, auto const& key) const { return x + detail::trained(module, x, key); }
  constexpr auto train(auto const& x, auto const& key) { return x + detail::trained(module, x, key); }
};

/// Parallel - the results of several modules for one input, one after another along an axis. State: "0.weight", ...,
/// as for Sequential.
///
/// Math      y = [f_1(x), ..., f_n(x)]
/// Shapes    as the modules say; along Axis the extents add up
/// Dtypes    as the modules say
/// Errors    those of concat and of the modules
/// Source    elementary
template <int Axis, class... Modules>
struct Parallel {
  std::tuple<Modules...> layers;

  struct hana_accessors_impl {
    static constexpr auto apply() { return detail::layer_accessors(std::index_sequence_for<Modules...>{}); }
  };

  constexpr auto operator()(auto const& x) const {
    return std::apply([&](auto const&... f) { return concat<Axis>(f(x)...); }, layers);
  }
  constexpr auto train(auto const& x, auto const& key) const { return train_all(*this, x, key); }
  constexpr auto train(auto const& x, auto const& key) { return train_all(*this, x, key); }

 private:
  template <class Self>
  static constexpr auto train_all(Self& self, auto const& x, auto const& key) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return concat<Axis>(detail::trained(std::get<I>(self.layers), x, detail::part_key(key, I))...);
    }(std::index_sequence_for<Modules...>{});
  }
};

/// MLP - two affine maps and what is between them. State: fc1, fc2.
///
/// Math      y = W2 f(W1 x + b1) + b2
/// Shapes    x: [..., In] -> y: [..., Out]
/// Dtypes    those of matmul; the parameters have element type T
/// Errors    those of Linear
/// Source    elementary
template <std::size_t In, std::size_t Hidden, std::size_t Out = In, class Activation = GELU, bool Bias = true,
          element T = float>
struct MLP {
  Linear<In, Hidden, Bias, T> fc1;
  Linear<Hidden, Out, Bias, T> fc2;
  DFDX_FIELDS(fc1, fc2)

  constexpr auto operator()(operand auto const& x) const { return fc2(Activation{}(fc1(x))); }
};

/// GatedMLP - a feed-forward block whose hidden values are a product, of one map and an activation of another. State:
/// gate_proj, up_proj, down_proj, named as in Llama's files.
///
/// Math      y = W_down (f(W_gate x) * W_up x), with biases if Bias is true
/// Shapes    x: [..., In] -> y: [..., Out]
/// Dtypes    those of matmul; the parameters have element type T
/// Errors    those of Linear
/// Source    Shazeer, "GLU variants improve transformer", 2020
template <class Activation, std::size_t In, std::size_t Hidden, std::size_t Out = In, bool Bias = false,
          element T = float>
struct GatedMLP {
  Linear<In, Hidden, Bias, T> gate_proj;
  Linear<In, Hidden, Bias, T> up_proj;
  Linear<Hidden, Out, Bias, T> down_proj;
  DFDX_FIELDS(gate_proj, up_proj, down_proj)

  constexpr auto operator()(operand auto const& x) const {
    return down_proj(Activation{}(gate_proj(x))*up_proj(x));
  }
};

/// GEGLU<In, Hidden, Out, Bias, T>, SwiGLU - the gated blocks with GELU and with SiLU.
template <std::size_t In, std::size_t Hidden, std::size_t Out = In, bool Bias = false, element T = float>
using GEGLU = GatedMLP<GELU, In, Hidden, Out, Bias, T>;
template <std::size_t In, std::size_t Hidden, std::size_t Out = In, bool Bias = false, element T = float>
using SwiGLU = GatedMLP<SiLU, In, Hidden, Out, Bias, T>;

}  // namespace dfdx::nn
