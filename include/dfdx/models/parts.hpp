// SPDX-License-Identifier: BSL-1.0
// What models of several families are made of: norms, activations by name, heads.
#pragma once

#include <optional>
#include <string_view>

#include <dfdx/value/fields.hpp>
#include <dfdx/vocabulary/activation.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/parts.hpp>
#include <dfdx/vocabulary/split.hpp>

namespace dfdx::models {

/// LayerNorm - a norm whose epsilon the model has: layer_norm(x, weight, bias, eps).
struct LayerNorm {
  Array weight, bias;
  DFDX_FIELDS(weight, bias)
};

/// Table - rows to look up, by tokens or by positions.
struct Table {
  Array weight;
  DFDX_FIELDS(weight)
};

/// Activation - between the two matrices of a block, by the names that config.json gives them.
enum class Activation : std::uint8_t { gelu, gelu_tanh, quick_gelu, relu, silu };

/// activation_of_name - nothing for a name that is not known.
inline std::optional<Activation> activation_of_name(std::string_view name) {
  if (name == "gelu" || name == "gelu_python") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh") return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::quick_gelu;
  if (name == "relu") return Activation::relu;
  if (name == "silu" || name == "swish") return Activation::silu;
  return {};
}

/// activate - the function of that name, of each element.
inline Array activate(Activation by, Array const& x) {
  switch (by) {
    case Activation::gelu: return gelu(x);
    case Activation::gelu_tanh: return gelu_tanh(x);
    case Activation::quick_gelu: return quick_gelu(x);
    case Activation::relu: return relu(x);
    default: return silu(x);
  }
}

/// split_heads, join_heads - the last axis as heads, and heads as one axis.
///
/// Shapes    [B..., T, H D] -> [B..., H, T, D] and back
inline Array split_heads(Array const& x, index_t heads, index_t size) {
  return swapaxes(unflatten(x, -1, {heads, size}), -3, -2);
}
template <operand X>
constexpr auto join_heads(X const& x) {
  return flatten<-2, -1>(swapaxes<-3, -2>(x));
}

}  // namespace dfdx::models
