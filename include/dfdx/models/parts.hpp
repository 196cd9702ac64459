// SPDX-License-Identifier: BSL-1.0
// What models of several families are made of: norms, activations by name, heads, keys and values that are kept.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <dfdx/vocabulary/activation.hpp>
#include <dfdx/vocabulary/in_place.hpp>
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

/// KvCache - keys and values of positions 0, ..., length - 1, so that a position is computed once. One is for one
/// batch of sequences of equal length.
///
/// Shapes    keys, values: a list over the layers, [B..., K, capacity, D] each
struct KvCache {
  std::vector<Array> keys, values;
  index_t length = 0, capacity = 0;

  /// An empty one for sequences of up to `capacity` positions, `batch` of them (none for a single sequence).
  static KvCache of(index_t layers, index_t heads, index_t capacity, index_t head_size,
                    std::optional<index_t> batch, DType dtype) {
    KvCache r;
    r.capacity = capacity;
    Shape const one = make_shape(heads, capacity, head_size);
    Shape const s = batch ? with_first_axis(*batch, one) : one;
    for (index_t i = 0; i < layers; ++i) {
      r.keys.push_back(Array(Meta{dtype, s}));
      r.values.push_back(Array(Meta{dtype, s}));
    }
    return r;
  }

  /// Keeps a layer's keys and values of the positions from `length` on; k and v become those of all positions. When
  /// all layers have done so, the model moves `length`.
  void extend(std::size_t layer, Array& k, Array& v) {
    index_t const n = k.shape()[k.shape().rank - 2];
    auto const kept = [&](Array const& all, Array const& fresh) {
      slice(all, -2, length, length + n).copy_(fresh.to(all.dtype()));
      return slice(all, -2, 0, length + n).to(fresh.dtype());
    };
    k = kept(keys[layer], k);
    v = kept(values[layer], v);
  }
};

}  // namespace dfdx::models
