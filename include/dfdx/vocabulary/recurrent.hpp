// SPDX-License-Identifier: BSL-1.0
// Recurrent cells and their layers over time, with PyTorch's layout of weights: gates stacked along the first axis.
#pragma once

#include <tuple>
#include <utility>
#include <vector>

#include <dfdx/vocabulary/linear.hpp>
#include <dfdx/vocabulary/parts.hpp>
#include <dfdx/vocabulary/scan.hpp>

namespace dfdx {

namespace detail {

// One of the parts of an axis of gates.
template <class V>
constexpr V gate(V const& gates, index_t which, index_t size) {
  return slice_axis(gates, gates.shape().rank - 1, which * size, size);
}

// The next states from what the input and the state before give to the gates.
struct LstmMemory {
  static constexpr Meta infer(Meta const* in, Text*) { return in[1]; }
  template <class, class V>
  static constexpr V run(Meta const& y, V const& gates, V const& c) {
    index_t const n = y.shape[y.shape.rank - 1];
    return sigmoid(gate(gates, 1, n)) * c + sigmoid(gate(gates, 0, n)) * tanh(gate(gates, 2, n));
  }
};
struct LstmOutput {
  static constexpr Meta infer(Meta const* in, Text*) { return in[1]; }
  template <class, class V>
  static constexpr V run(Meta const& y, V const& gates, V const& c) {
    return sigmoid(gate(gates, 3, y.shape[y.shape.rank - 1])) * tanh(c);
  }
};
struct GruState {
  static constexpr Meta infer(Meta const* in, Text*) { return in[2]; }
  template <class, class V>
  static constexpr V run(Meta const& y, V const& x, V const& h, V const& before) {
    index_t const n = y.shape[y.shape.rank - 1];
    V const reset = sigmoid(gate(x, 0, n) + gate(h, 0, n)), keep = sigmoid(gate(x, 1, n) + gate(h, 1, n));
    V const fresh = tanh(gate(x, 2, n) + reset * gate(h, 2, n));
    return fresh + keep * (before - fresh);
  }
};

struct TanhCell {
  static constexpr char const* name = "rnn_tanh";
  static constexpr int gates = 1;
  static constexpr auto next(auto const& x, auto const& h, auto const&) { return tanh(x + h); }
  static constexpr auto const& output(auto const& h) { return h; }
};
struct GruCell {
  static constexpr char const* name = "gru";
  static constexpr int gates = 3;
  static constexpr auto next(auto const& x, auto const& h, auto const& before) {
    return call(Fixed<GruState{}>{}, x, h, before);
  }
  static constexpr auto const& output(auto const& h) { return h; }
};
struct LstmCell {
  static constexpr char const* name = "lstm";
  static constexpr int gates = 4;
  static constexpr auto next(auto const& x, auto const& h, auto const& before) {
    auto const all = x + h;
    auto const c = call(Fixed<LstmMemory{}>{}, all, before.second);
    return std::pair(call(Fixed<LstmOutput{}>{}, all, c), c);
  }
  static constexpr auto const& output(auto const& state) { return state.first; }
};

/// RecurrentFit - whether weights and states fit the input, [T, B, I] over time or [B, I]. It says what the outputs
/// are.
template <class Cell>
struct RecurrentFit {
  bool over_time;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const &x = in[0].shape, &h = in[1].shape;
    constexpr char const *name = Cell::name, *operands[] = {"w_ih", "w_hh", "b_ih", "b_hh"};
    if (!is_floating(in[0].dtype)) return refuse(why, name, ": floating dtype required, got ", in[0].dtype);
    for (int k = 1; k < (std::is_same_v<Cell, LstmCell> ? 7 : 6); ++k)
      if (in[k].dtype != in[0].dtype)
        return refuse(why, name, ": one dtype required, got ", in[0].dtype, " and ", in[k].dtype);
    int const batch = over_time ? 1 : 0;
    if (x.rank != batch + 2 || h.rank != 2 || !op::extents_agree(h[0], x[batch]))
      return refuse(why, name, ": states ", h, " do not fit inputs ", x);
    if (std::is_same_v<Cell, LstmCell> && !agree(in[6].shape, h))
      return refuse(why, name, ": states ", in[6].shape, " do not fit inputs ", x);
    if (over_time && x[0] == 0) return refuse(why, name, ": at least one step required, got ", x);
    index_t const n = h[1], gates = extent::mul(Cell::gates, n);
    if (n < 0) return refuse(why, name, ": states of known size required, got ", h);
    Shape const want[] = {make_shape(gates, x[x.rank - 1]), make_shape(gates, n), make_shape(gates),
                          make_shape(gates)};
    for (int k = 0; k < 4; ++k) {
      Shape const& got = in[k + 2].shape;
      if (!agree(got, want[k]))
        return refuse(why, name, ": ", operands[k], " of shape ", want[k], " required, got ", got);
    }
    return Meta{in[0].dtype, over_time ? make_shape(x[0], h[0], n) : h};
  }
  // Never computed: only the shape is asked for.
  template <class, class V, class... Rest>
  static constexpr V run(Meta const&, V const& x, Rest const&...) {
    return x;
  }
};
// Whether they fit: a type, as the compiler knows it of Tensors; of Arrays it throws.
template <class Cell, bool OverTime, class... X>
constexpr auto fit_recurrent(X const&... x) {
  if constexpr (refused<X...>) {
    return std::false_type{};
  } else {
    if constexpr ((typed<X> && ...)) {
      using P = CallRule<Fixed<RecurrentFit<Cell>{OverTime}>, X...>;
      if constexpr (!Inferred<P>::value.valid()) {
        static_assert(told<Refusal<P>>::once);
        return std::false_type{};
      } else {
        if constexpr (!(X::static_shape.is_static() && ...)) inferred(RecurrentFit<Cell>{OverTime}, x...);
        return std::true_type{};
      }
    } else {
      inferred(RecurrentFit<Cell>{OverTime}, x...);
      return std::true_type{};
    }
  }
}

// A loop, for values in memory (where it is on the tape) and for what is recorded when the program runs.
template <class Cell, class V, class State, class W>
constexpr auto over_steps(V const& x, State state, W const& w_hh, W const& b_hh) {
  std::vector<V> out;
  for (index_t t = 0; t < x.shape()[0]; ++t) {
    state = Cell::next(call(Select{0, t}, x), linear(Cell::output(state), w_hh, b_hh), state);
    out.push_back(call(Unsqueeze{0}, Cell::output(state)));
  }
  return std::pair(std::move(state), Concat::joined(out.data(), static_cast<int>(out.size()), Attrs{{0}}));
}

template <class T>
constexpr auto untyped_tree(T const& state) {
  if constexpr (leaf<T>) return untyped(state);
  else return std::pair(untyped(state.first), untyped(state.second));
}
template <class To, class From>
constexpr To wrapped_tree(From const& state) {
  if constexpr (!leaf<To>)
    return To(wrap<typename To::first_type>(state.first), wrap<typename To::second_type>(state.second));
  else if constexpr (typed<To>) return wrap<To>(state);
  else return state;
}

// A state whose batch is the input's: of extents known only at run time a loop needs to see that they are one.
template <class X, class S>
constexpr auto beside_input(X const& inputs, S const& state) {
  if constexpr (!leaf<S>) {
    return std::pair(beside_input(inputs, state.first), beside_input(inputs, state.second));
  } else if constexpr (!S::static_shape.is_static()) {
    Shape const s = with_extent(state.shape(), 0, inputs.shape()[1]);
    auto const zero = full_as(untyped(inputs), Meta{state.dtype(), s}, 0);
    return wrap<S>(zero + untyped(state));
  } else {
    return state;
  }
}

// The pair of the last state and all outputs.
template <class Cell, class X, class State, class WI, class WH, class BI, class BH>
constexpr auto recur(X const& x, State const& state, WI const& w_ih, WH const& w_hh, BI const& b_ih,
                     BH const& b_hh) {
  auto const inputs = linear(x, w_ih, b_ih);  // of all steps by one product
  auto const step = [&](auto const& before, auto const& now) {
    auto next = Cell::next(now, linear(Cell::output(before), w_hh, b_hh), before);
    auto out = Cell::output(next);
    return std::pair(std::move(next), std::move(out));
  };
  using Out = std::remove_cvref_t<decltype(Cell::output(state))>;
  if constexpr (typed<decltype(inputs)> && typed<Out> && typed<WH> && typed<BH>) {
    using Stacked = std::remove_cvref_t<decltype(scan(step, state, inputs).second)>;
    if (graph_of(inputs) != nullptr) return scan(step, beside_input(inputs, state), inputs);
    auto const r = over_steps<Cell>(untyped(inputs), untyped_tree(state), untyped(w_hh), untyped(b_hh));
    return std::pair(wrapped_tree<State>(r.first), wrap<Stacked>(r.second));
  } else {
    return over_steps<Cell>(untyped(inputs), untyped_tree(state), untyped(w_hh), untyped(b_hh));
  }
}

}  // namespace detail

/// rnn_tanh_cell(x, h, w_ih, w_hh, b_ih, b_hh), gru_cell - the next state; lstm_cell(x, h, c, w_ih, w_hh, b_ih, b_hh) -
/// the tuple of the next h and c.
///
/// Math      rnn_tanh: h' = tanh(W_ih x + b_ih + W_hh h + b_hh)
///           gru: r, z = sigmoid(...), n = tanh(W_in x + b_in + r (W_hn h + b_hn)), h' = (1 - z) n + z h
///           lstm: i, f, o = sigmoid(...), g = tanh(...), c' = f c + i g, h' = o tanh(c')
/// Shapes    x: [B, I], h, c: [B, H], w_ih: [G H, I], w_hh: [G H, H], b_ih, b_hh: [G H] -> [B, H], with the gates r,
///           z, n or i, f, g, o in this order
/// Dtypes    one, floating
/// Errors    "lstm: w_ih of shape [12, 4] required, got [9, 4]"
/// Source    Elman 1990; Cho et al. 2014; Hochreiter and Schmidhuber 1997; torch.nn.RNNCell and its kin
template <operand X, operand H, operand WI, operand WH, operand BI, operand BH>
constexpr auto rnn_tanh_cell(X const& x, H const& h, WI const& w_ih, WH const& w_hh, BI const& b_ih,
                             BH const& b_hh) {
  auto const fit = detail::fit_recurrent<detail::TanhCell, false>(x, h, w_ih, w_hh, b_ih, b_hh);
  if constexpr (!decltype(fit)::value) {
    return Refused{};
  } else {
    return detail::TanhCell::next(linear(x, w_ih, b_ih), linear(h, w_hh, b_hh), h);
  }
}
template <operand X, operand H, operand WI, operand WH, operand BI, operand BH>
constexpr auto gru_cell(X const& x, H const& h, WI const& w_ih, WH const& w_hh, BI const& b_ih,
                        BH const& b_hh) {
  auto const fit = detail::fit_recurrent<detail::GruCell, false>(x, h, w_ih, w_hh, b_ih, b_hh);
  if constexpr (!decltype(fit)::value) {
    return Refused{};
  } else {
    return detail::GruCell::next(linear(x, w_ih, b_ih), linear(h, w_hh, b_hh), h);
  }
}
template <operand X, operand H, operand C, operand WI, operand WH, operand BI, operand BH>
constexpr auto lstm_cell(X const& x, H const& h, C const& c, WI const& w_ih, WH const& w_hh, BI const& b_ih,
                         BH const& b_hh) {
  auto const fit = detail::fit_recurrent<detail::LstmCell, false>(x, h, w_ih, w_hh, b_ih, b_hh, c);
  if constexpr (!decltype(fit)::value) {
    return std::tuple(Refused{}, Refused{});
  } else {
    auto const state = detail::LstmCell::next(linear(x, w_ih, b_ih), linear(h, w_hh, b_hh), std::pair(h, c));
    return std::tuple(state.first, state.second);
  }
}

/// rnn_tanh(x, h, w_ih, w_hh, b_ih, b_hh), gru - a layer over time: the tuple of its outputs and the last state;
/// lstm(x, h, c, w_ih, w_hh, b_ih, b_hh) - of its outputs, the last h and the last c. Programs hold one copy of the
/// step.
///
/// Shapes    x: [T, B, I], the rest as for the cells -> [T, B, H], [B, H]
/// Dtypes    one, floating
/// Errors    "lstm: at least one step required, got [0, 2, 3]"; those of the cells
/// Source    torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM
template <operand X, operand H, operand WI, operand WH, operand BI, operand BH>
constexpr auto rnn_tanh(X const& x, H const& h, WI const& w_ih, WH const& w_hh, BI const& b_ih,
                        BH const& b_hh) {
  auto const fit = detail::fit_recurrent<detail::TanhCell, true>(x, h, w_ih, w_hh, b_ih, b_hh);
  if constexpr (!decltype(fit)::value) {
    return std::tuple(Refused{}, Refused{});
  } else {
    auto const r = detail::recur<detail::TanhCell>(x, h, w_ih, w_hh, b_ih, b_hh);
    return std::tuple(r.second, r.first);
  }
}
template <operand X, operand H, operand WI, operand WH, operand BI, operand BH>
constexpr auto gru(X const& x, H const& h, WI const& w_ih, WH const& w_hh, BI const& b_ih, BH const& b_hh) {
  auto const fit = detail::fit_recurrent<detail::GruCell, true>(x, h, w_ih, w_hh, b_ih, b_hh);
  if constexpr (!decltype(fit)::value) {
    return std::tuple(Refused{}, Refused{});
  } else {
    auto const r = detail::recur<detail::GruCell>(x, h, w_ih, w_hh, b_ih, b_hh);
    return std::tuple(r.second, r.first);
  }
}
template <operand X, operand H, operand C, operand WI, operand WH, operand BI, operand BH>
constexpr auto lstm(X const& x, H const& h, C const& c, WI const& w_ih, WH const& w_hh, BI const& b_ih,
                    BH const& b_hh) {
  auto const fit = detail::fit_recurrent<detail::LstmCell, true>(x, h, w_ih, w_hh, b_ih, b_hh, c);
  if constexpr (!decltype(fit)::value) {
    return std::tuple(Refused{}, Refused{}, Refused{});
  } else {
    auto const r = detail::recur<detail::LstmCell>(x, std::pair(h, c), w_ih, w_hh, b_ih, b_hh);
    return std::tuple(r.second, r.first.first, r.first.second);
  }
}

}  // namespace dfdx
