// SPDX-License-Identifier: BSL-1.0
// Texts from a Llama whose sizes the compiler knows: its cache, and a compiled step from tokens to the numbers for what
// comes after them.
#pragma once

#include <dfdx/models/llama.hpp>
#include <dfdx/program/stateful.hpp>
#include <dfdx/vocabulary/index_copy.hpp>

namespace dfdx::models {

/// LlamaCache - keys and values of positions 0, ..., length - 1 of a model of sizes S, and how many they are: what a
/// step reads and adds to. Copies are shallow, as those of tensors.
///
/// Shapes    keys, values: [layers, kv_heads, Capacity, head_size], length: []
template <LlamaSizes S, index_t Capacity, element T = float>
struct LlamaCache {
  static_assert(S.known() && Capacity > 0);
  using Rows = Tensor<T, static_cast<std::size_t>(S.layers), static_cast<std::size_t>(S.kv_heads),
                      static_cast<std::size_t>(Capacity), static_cast<std::size_t>(S.head_size)>;
  static constexpr index_t capacity = Capacity;
  Rows keys, values;
  Tensor<std::int32_t> length;
  DFDX_FIELDS(keys, values, length)

  /// An empty one.
  static LlamaCache empty() {
    LlamaCache r{Rows::uninitialized(), Rows::uninitialized(), Tensor<std::int32_t>::uninitialized()};
    visit(r, [](auto const& leaf) {
      std::memset(leaf.bytes(), 0, static_cast<std::size_t>(leaf.size()) * size_of(leaf.dtype()));
    });
    return r;
  }
};

/// advance - the numbers for what comes after tokens, and a cache with their keys and values: what LlamaStep compiles.
///
/// Shapes    tokens: [T] -> [vocabulary]
struct Advance {
  template <LlamaSizes S, index_t Capacity, element T, operand I>
  constexpr auto operator()(LlamaCache<S, Capacity, T> const& cache, LlamaModel<S, T> const& model,
                            I const& tokens) const {
    static_assert(I::static_rank == 1, "llama: a list of tokens required");
    constexpr index_t n = I::static_shape[0];
    using Block = LlamaBlock<S, T>;
    auto const at = positions<0, n>(cast<std::int32_t>(tokens)) + cache.length;
    auto const angles = detail::llama_angles<S, T>(at);
    auto const h = model.model.embed_tokens(tokens);
    using H = std::remove_const_t<decltype(h)>;
    using Held = part_t<typename LlamaCache<S, Capacity, T>::Rows>;
    auto const layer = [&](H const& x, std::tuple<Block, Held, Held> const& part) {
      std::tuple<LlamaHeads<S, n, T>, LlamaHeads<S, n, T>> added;
      auto const see = [&](auto const& q, auto const& k, auto const& v) {
        auto const turned = rotate(k, angles);
        added = std::tuple(turned, v);
        return detail::seen_beside<S.window>(rotate(q, angles), turned, v, std::get<1>(part),
                                             std::get<2>(part), cache.length);
      };
      H const y = std::get<0>(part)(S, x, see);
      return std::pair(y, added);
    };
    auto const& blocks = static_cast<Stacked<Block, LlamaModel<S, T>::layers> const&>(model.model.layers);
    auto const [last, added] = scan(layer, h, std::tuple(blocks, cache.keys, cache.values));
    auto const logits = model.head(model.normalized(slice<0, n - 1>(last)));
    return std::pair(select<0, 0>(logits),
                     LlamaCache<S, Capacity, T>{index_copy<2>(cache.keys, at, std::get<0>(added)),
                                                index_copy<2>(cache.values, at, std::get<1>(added)),
                                                cache.length + static_cast<std::int32_t>(n)});
  }

 private:
  template <LlamaSizes S, index_t N, element T>
  using LlamaHeads = Tensor<T, static_cast<std::size_t>(S.kv_heads), static_cast<std::size_t>(N),
                            static_cast<std::size_t>(S.head_size)>;
};

/// LlamaStep - runs a model of sizes known to the compiler token after token: step(model, token, cache) gives the
/// numbers for what comes after the token, or tokens, and adds them to the cache, as one program that writes the cache
/// in place: of it no more than the rows of the new positions.
///
///   models::LlamaStep step;
///   auto cache = models::LlamaCache<sizes, 256>::empty();
///   Tensor<float, 32000> logits = step(model, token, cache);
///
/// Cost      no allocation for a token after the first two
/// Errors    "llama: 257 positions, there is room for 256"; "take: index 600 out of range for axis 0 of [512, 64]"
/// Threading one object, one thread
class LlamaStep {
 public:
  /// The program for a model, a cache and so many tokens; its facts are constants.
  template <class Model, class Cache, std::size_t N = 1>
  using program_for = typename Stateful<Advance>::template program_for<Cache, Model, Tensor<std::int32_t, N>>;

  template <LlamaSizes S, index_t Capacity, element T, std::size_t N>
  auto operator()(LlamaModel<S, T> const& model, Tensor<std::int32_t, N> const& tokens,
                  LlamaCache<S, Capacity, T>& cache) {
    index_t const end = cache.length.item() + static_cast<index_t>(N);
    if (end > Capacity) raise("llama: ", end, " positions, there is room for ", Capacity);
    return advance_(cache, model, tokens);
  }
  template <LlamaSizes S, index_t Capacity, element T>
  auto operator()(LlamaModel<S, T> const& model, std::int32_t token, LlamaCache<S, Capacity, T>& cache) {
    token_(0) = token;
    return (*this)(model, token_, cache);
  }

 private:
  Stateful<Advance> advance_;
  Tensor<std::int32_t, 1> token_ = Tensor<std::int32_t, 1>::uninitialized();
};

}  // namespace dfdx::models
