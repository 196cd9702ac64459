// SPDX-License-Identifier: BSL-1.0
// Buffer: a tensor of a model that is part of its state but is not learnt.
#pragma once

#include <dfdx/value/tensor.hpp>

namespace dfdx {

/// Buffer - a Tensor in a model that is no parameter: the running statistics of a normalization, a table of positions.
/// It is saved and initialized with the model; optimizers, weight decay and the tape leave it alone. A training step
/// moves it if the loss returns the model it has changed, `std::pair(loss, model)`.
template <element T, std::size_t... D>
struct Buffer : Tensor<T, D...> {
  using Tensor<T, D...>::Tensor;
  constexpr Buffer() = default;
  constexpr Buffer(Tensor<T, D...> t) : Tensor<T, D...>(std::move(t)) {}
};

namespace detail {

template <class T>
inline constexpr bool is_buffer_type = false;
template <class T, std::size_t... D>
inline constexpr bool is_buffer_type<Buffer<T, D...>> = true;

}  // namespace detail

/// is_buffer - whether a leaf is one.
template <class Leaf>
inline constexpr bool is_buffer = detail::is_buffer_type<std::remove_cvref_t<Leaf>>;

}  // namespace dfdx
