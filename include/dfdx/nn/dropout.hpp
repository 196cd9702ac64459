// SPDX-License-Identifier: BSL-1.0
// nn::Dropout, and how keys reach the layers that draw: a layer is called as layer(x) to evaluate and as
// layer.train(x, key) to train. A module of several such layers gives each a key of its own.
#pragma once

#include <dfdx/nn/activation.hpp>
#include <dfdx/vocabulary/random.hpp>

namespace dfdx::nn {

namespace detail {

/// part_key(key, n) - the key of a module's n-th part: unrelated to the others, and to those of other keys.
template <dfdx::detail::random_key K>
constexpr auto part_key(K const& key, std::int64_t n) {
  if constexpr (operand<K>) return fold_in(key, n);
  else return fold_in(key, static_cast<std::uint64_t>(n));
}

/// part_keys<N>(key) - the keys of N equal parts, i64 [N].
template <std::size_t N, dfdx::detail::random_key K>
constexpr auto part_keys(K const& key) {
  if constexpr (operand<K>) {
    auto const places = expand<static_cast<index_t>(N)>(unsqueeze<0>(cast<double>(key)));
    return cast<std::int64_t>(uniform_like(places, key) * 0x1p53);
  } else {
    return part_keys<N>(Tensor<std::int64_t>(static_cast<std::int64_t>(key.seed)));
  }
}

/// trained(module, x, key) - the module's `train` with the key, or without one, or the module itself where it has
/// no other way to train.
template <class M, class X, class K>
constexpr auto trained(M& module, X const& x, K const& key) {
  if constexpr (requires { module.train(x, key); }) return module.train(x, key);
  else if constexpr (requires { module.train(x); }) return module.train(x);
  else {
    using Free = std::remove_const_t<M>;
    static_assert(
        !requires(Free& m) { m.train(x, key); } && !requires(Free& m) { m.train(x); },
        "train: a module with running statistics must not be constant");
    return module(x);
  }
}

}  // namespace detail

/// Dropout - in training each element is 0 with probability P, and the others are divided by 1 - P; else x itself.
///
/// Math      that of dropout
/// Shapes    x: [S...] -> y: [S...]; key: a Key, or in programs an i64 number that differs from step to step
/// Dtypes    floating
/// Errors    those of dropout
/// Source    Srivastava et al., JMLR 15 (2014); torch.nn.Dropout
template <double P = 0.5>
struct Dropout {
  static_assert(P >= 0 && P <= 1, "Dropout: a probability required");
  using hana_accessors_impl = detail::NoFields;
  constexpr auto operator()(operand auto const& x) const { return x; }
  constexpr auto train(operand auto const& x, dfdx::detail::random_key auto const& key) const {
    return dropout(x, P, key);
  }
};

}  // namespace dfdx::nn
