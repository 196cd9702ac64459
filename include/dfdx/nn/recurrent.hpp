// SPDX-License-Identifier: BSL-1.0
// nn::RNN, nn::GRU, nn::LSTM: one recurrent layer over time each, or several; nn::RNNCell, nn::GRUCell, nn::LSTMCell:
// one step of these.
#pragma once

#include <dfdx/nn/deep_recurrent.hpp>

namespace dfdx::nn {

/// RNN - a recurrent layer with tanh. State: weight_ih_l0 [H, I], weight_hh_l0 [H, H], bias_ih_l0 [H], bias_hh_l0
/// [H]. Several layers, in both directions: RNN<I, H, float, Recurrent{.layers = 2, .bidirectional = true}>, with
/// L = 4 states h [L, B, H], outputs [T, B, 2 H] and the names weight_ih_l1, weight_ih_l1_reverse, ...;
/// layer.train(key, x, h) drops values between the layers. Without h the states begin with zeros: layer(x).
///
/// Math      h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)
/// Shapes    x: [T, B, I], h: [B, H] -> the tuple of [T, B, H] and [B, H]
/// Dtypes    floating
/// Errors    "rnn_tanh: states [2, 5] do not fit inputs [4, 3, 6]"
/// Source    Elman 1990; torch.nn.RNN, also for the initial values: U(-1/sqrt(H), 1/sqrt(H)) for all
template <std::size_t In, std::size_t Hidden, element T = float, Recurrent O = Recurrent{}>
struct RNN : detail::DeepRecurrent<detail::TanhLayer, In, Hidden, T, O> {};
template <std::size_t In, std::size_t Hidden, element T>
struct RNN<In, Hidden, T, Recurrent{}> {
  Tensor<T, Hidden, In> weight_ih_l0;
  Tensor<T, Hidden, Hidden> weight_hh_l0;
  Tensor<T, Hidden> bias_ih_l0, bias_hh_l0;
  DFDX_FIELDS(weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0)

  constexpr auto operator()(operand auto const& x, operand auto const& h) const {
    return rnn_tanh(x, h, weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0);
  }
  constexpr auto operator()(operand auto const& x) const {
    return (*this)(x, detail::zero_states<Hidden>(x));
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
template <std::size_t In, std::size_t Hidden, element T = float, Recurrent O = Recurrent{}>
struct GRU : detail::DeepRecurrent<detail::GruLayer, In, Hidden, T, O> {};
template <std::size_t In, std::size_t Hidden, element T>
struct GRU<In, Hidden, T, Recurrent{}> {
  Tensor<T, 3 * Hidden, In> weight_ih_l0;
  Tensor<T, 3 * Hidden, Hidden> weight_hh_l0;
  Tensor<T, 3 * Hidden> bias_ih_l0, bias_hh_l0;
  DFDX_FIELDS(weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0)

  constexpr auto operator()(operand auto const& x, operand auto const& h) const {
    return gru(x, h, weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0);
  }
  constexpr auto operator()(operand auto const& x) const {
    return (*this)(x, detail::zero_states<Hidden>(x));
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
template <std::size_t In, std::size_t Hidden, element T = float, Recurrent O = Recurrent{}>
struct LSTM : detail::DeepRecurrent<detail::LstmLayer, In, Hidden, T, O> {};
template <std::size_t In, std::size_t Hidden, element T>
struct LSTM<In, Hidden, T, Recurrent{}> {
  Tensor<T, 4 * Hidden, In> weight_ih_l0;
  Tensor<T, 4 * Hidden, Hidden> weight_hh_l0;
  Tensor<T, 4 * Hidden> bias_ih_l0, bias_hh_l0;
  DFDX_FIELDS(weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0)

  constexpr auto operator()(operand auto const& x, operand auto const& h, operand auto const& c) const {
    return lstm(x, h, c, weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0);
  }
  constexpr auto operator()(operand auto const& x) const {
    auto const none = detail::zero_states<Hidden>(x);
    return (*this)(x, none, none);
  }

  void reset(Key key) { detail::reset_recurrent(*this, Hidden, key); }
};

/// RNNCell - one step of RNN, for loops of one's own: decoders that read what they wrote, one sample after another.
/// State: weight_ih [H, I], weight_hh [H, H], bias_ih [H], bias_hh [H]. Without h it begins with zeros.
///
/// Math      tanh(W_ih x + b_ih + W_hh h + b_hh)
/// Shapes    x: [B, I], h: [B, H] -> [B, H]
/// Dtypes    floating
/// Errors    those of rnn_tanh_cell
/// Source    Elman 1990; torch.nn.RNNCell, also for the initial values
template <std::size_t In, std::size_t Hidden, element T = float>
struct RNNCell {
  Tensor<T, Hidden, In> weight_ih;
  Tensor<T, Hidden, Hidden> weight_hh;
  Tensor<T, Hidden> bias_ih, bias_hh;
  DFDX_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)

  constexpr auto operator()(operand auto const& x, operand auto const& h) const {
    return rnn_tanh_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh);
  }
  constexpr auto operator()(operand auto const& x) const {
    auto const none = detail::zero_states<Hidden>(unsqueeze<0>(x));
    return (*this)(x, none);
  }

  void reset(Key key) { detail::reset_recurrent(*this, Hidden, key); }
};

/// GRUCell - one step of GRU. State: as RNNCell, with 3 H rows for the gates r, z, n.
///
/// Math      that of gru_cell
/// Shapes    x: [B, I], h: [B, H] -> [B, H]
/// Dtypes    floating
/// Errors    those of gru_cell
/// Source    Cho et al., EMNLP 2014; torch.nn.GRUCell, also for the initial values
template <std::size_t In, std::size_t Hidden, element T = float>
struct GRUCell {
  Tensor<T, 3 * Hidden, In> weight_ih;
  Tensor<T, 3 * Hidden, Hidden> weight_hh;
  Tensor<T, 3 * Hidden> bias_ih, bias_hh;
  DFDX_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)

  constexpr auto operator()(operand auto const& x, operand auto const& h) const {
    return gru_cell(x, h, weight_ih, weight_hh, bias_ih, bias_hh);
  }
  constexpr auto operator()(operand auto const& x) const {
    auto const none = detail::zero_states<Hidden>(unsqueeze<0>(x));
    return (*this)(x, none);
  }

  void reset(Key key) { detail::reset_recurrent(*this, Hidden, key); }
};

/// LSTMCell - one step of LSTM. State: as RNNCell, with 4 H rows for the gates i, f, g, o.
///
/// Math      that of lstm_cell
/// Shapes    x: [B, I], h, c: [B, H] -> the tuple of [B, H] and [B, H]
/// Dtypes    floating
/// Errors    those of lstm_cell
/// Source    Hochreiter and Schmidhuber 1997; torch.nn.LSTMCell, also for the initial values
template <std::size_t In, std::size_t Hidden, element T = float>
struct LSTMCell {
  Tensor<T, 4 * Hidden, In> weight_ih;
  Tensor<T, 4 * Hidden, Hidden> weight_hh;
  Tensor<T, 4 * Hidden> bias_ih, bias_hh;
  DFDX_FIELDS(weight_ih, weight_hh, bias_ih, bias_hh)

  constexpr auto operator()(operand auto const& x, operand auto const& h, operand auto const& c) const {
    return lstm_cell(x, h, c, weight_ih, weight_hh, bias_ih, bias_hh);
  }
  constexpr auto operator()(operand auto const& x) const {
    auto const none = detail::zero_states<Hidden>(unsqueeze<0>(x));
    return (*this)(x, none, none);
  }

  void reset(Key key) { detail::reset_recurrent(*this, Hidden, key); }
};

}  // namespace dfdx::nn
