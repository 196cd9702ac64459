// SPDX-License-Identifier: BSL-1.0
// nn::RNN, nn::GRU, nn::LSTM: one recurrent layer over time each.
#pragma once

#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/recurrent.hpp>

namespace dfdx::nn {

namespace detail {

template <class Layer>
void reset_recurrent(Layer& layer, std::size_t size, Key key) {
  double const bound = 1 / std::sqrt(static_cast<double>(size));
  std::uint64_t k = 0;
  visit(layer, [&](auto& leaf) { init::uniform(leaf, fold_in(key, k++), -bound, bound); });
}

}  // namespace detail

/// RNN - a recurrent layer with tanh. State: weight_ih_l0 [H, I], weight_hh_l0 [H, H], bias_ih_l0 [H], bias_hh_l0
/// [H].
///
/// Math      h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)
/// Shapes    x: [T, B, I], h: [B, H] -> the tuple of [T, B, H] and [B, H]
/// Dtypes    floating
/// Errors    "rnn_tanh: states [2, 5] do not fit inputs [4, 3, 6]"
/// Source    Elman 1990; torch.nn.RNN, also for the initial values: U(-1/sqrt(H), 1/sqrt(H)) for all
template <std::size_t In, std::size_t Hidden, element T = float>
struct RNN {
  Tensor<T, Hidden, In> weight_ih_l0;
  Tensor<T, Hidden, Hidden> weight_hh_l0;
  Tensor<T, Hidden> bias_ih_l0, bias_hh_l0;
  DFDX_FIELDS(weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0)

  constexpr auto operator()(operand auto const& x, operand auto const& h) const {
    return rnn_tanh(x, h, weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0);
  }

  void reset(Key key) { detail::reset_recurrent(*this, Hidden, key); }
};

/// GRU - a layer of gated recurrent units. State: as RNN, with 3 H rows for the gates r, z, n.
///
/// Math      that of gru_cell
/// Shapes    x: [T, B, I], h: [B, H] -> the tuple of [T, B, H] and [B, H]
/// Dtypes    floating
/// Errors    "gru: states [2, 5] do not fit inputs [4, 3, 6]"
/// Source    Cho et al., EMNLP 2014; torch.nn.GRU, also for the initial values
template <std::size_t In, std::size_t Hidden, element T = float>
struct GRU {
  Tensor<T, 3 * Hidden, In> weight_ih_l0;
  Tensor<T, 3 * Hidden, Hidden> weight_hh_l0;
  Tensor<T, 3 * Hidden> bias_ih_l0, bias_hh_l0;
  DFDX_FIELDS(weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0)

  constexpr auto operator()(operand auto const& x, operand auto const& h) const {
    return gru(x, h, weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0);
  }

  void reset(Key key) { detail::reset_recurrent(*this, Hidden, key); }
};

/// LSTM - a layer of long short-term memory. State: as RNN, with 4 H rows for the gates i, f, g, o.
///
/// Math      that of lstm_cell
/// Shapes    x: [T, B, I], h, c: [B, H] -> the tuple of [T, B, H], [B, H] and [B, H]
/// Dtypes    floating
/// Errors    "lstm: states [2, 5] do not fit inputs [4, 3, 6]"
/// Source    Hochreiter and Schmidhuber 1997; torch.nn.LSTM, also for the initial values
template <std::size_t In, std::size_t Hidden, element T = float>
struct LSTM {
  Tensor<T, 4 * Hidden, In> weight_ih_l0;
  Tensor<T, 4 * Hidden, Hidden> weight_hh_l0;
  Tensor<T, 4 * Hidden> bias_ih_l0, bias_hh_l0;
  DFDX_FIELDS(weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0)

  constexpr auto operator()(operand auto const& x, operand auto const& h, operand auto const& c) const {
    return lstm(x, h, c, weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0);
  }

  void reset(Key key) { detail::reset_recurrent(*this, Hidden, key); }
};

}  // namespace dfdx::nn
