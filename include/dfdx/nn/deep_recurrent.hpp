// SPDX-License-Identifier: BSL-1.0
// What nn::RNN, nn::GRU and nn::LSTM of several layers or of two directions have in common.
#pragma once

#include <dfdx/nn/dropout.hpp>
#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/join.hpp>
#include <dfdx/vocabulary/recurrent.hpp>

namespace dfdx::nn {

/// Recurrent - options of RNN, GRU and LSTM.
///
/// Math      none
/// Shapes    none
/// Dtypes    none
/// Errors    none
/// Source    torch.nn.RNN: num_layers, bidirectional, dropout
struct Recurrent {
  std::size_t layers = 1;
  bool bidirectional = false;
  double dropout = 0;
};

namespace detail {

template <class Layer>
void reset_recurrent(Layer& layer, std::size_t size, Key key) {
  double const bound = 1 / std::sqrt(static_cast<double>(size));
  std::uint64_t k = 0;
  visit(layer, [&](auto& leaf) { init::uniform(leaf, fold_in(key, k++), -bound, bound); });
}

// States of zeros for inputs [T, B, I]: [B, H], or [L, B, H] of L layers.
template <std::size_t H, std::size_t... L>
constexpr auto zero_states(auto const& x) {
  auto const one = expand<-1, static_cast<index_t>(H)>(slice<-1, 0, 1>(select<0, 0>(x)));
  if constexpr (sizeof...(L) == 0) return zeros_like(one);
  else return zeros_like(expand<static_cast<index_t>(L)..., -1, -1>(unsqueeze<0>(one)));
}

struct TanhLayer {
  static constexpr std::size_t gates = 1, states = 1;
  static constexpr auto run(auto const&... a) { return rnn_tanh(a...); }
};
struct GruLayer {
  static constexpr std::size_t gates = 3, states = 1;
  static constexpr auto run(auto const&... a) { return gru(a...); }
};
struct LstmLayer {
  static constexpr std::size_t gates = 4, states = 2;
  static constexpr auto run(auto const&... a) { return lstm(a...); }
};

// PyTorch's name of weight K of a layer in one direction.
struct RecurrentName {
  char text[32] = {};
  std::size_t size = 0;
  constexpr RecurrentName(int k, std::size_t layer, bool reverse) {
    constexpr char const* kinds[] = {"weight_ih_l", "weight_hh_l", "bias_ih_l", "bias_hh_l"};
    for (char const* c = kinds[k]; *c != 0; ++c) text[size++] = *c;
    if (layer >= 10) text[size++] = static_cast<char>('0' + layer / 10);
    text[size++] = static_cast<char>('0' + layer % 10);
    for (char const* c = reverse ? "_reverse" : ""; *c != 0; ++c) text[size++] = *c;
  }
};
template <RecurrentName N, std::size_t... I>
constexpr auto hana_name(std::index_sequence<I...>) {
  return boost::hana::string_c<N.text[I]...>;
}

// Weight K of cell C: that of a layer and a direction.
template <std::size_t C, int K>
struct RecurrentAccessor {
  constexpr decltype(auto) operator()(auto&& self) const {
    return std::get<K>(std::get<C>(static_cast<decltype(self)&&>(self).cells));
  }
};
template <std::size_t C, std::size_t Ways, int K>
constexpr auto recurrent_accessor() {
  constexpr RecurrentName name(K, C / Ways, C % Ways == 1);
  return boost::hana::make_pair(hana_name<name>(std::make_index_sequence<name.size>{}),
                                RecurrentAccessor<C, K>{});
}
template <std::size_t Ways, std::size_t... I>
constexpr auto recurrent_accessors(std::index_sequence<I...>) {
  return boost::hana::make_tuple(recurrent_accessor<I / 4, Ways, static_cast<int>(I % 4)>()...);
}

template <class Layer, std::size_t In, std::size_t Hidden, element T, Recurrent O>
struct DeepRecurrent {
  static_assert(O.layers > 0 && O.layers < 100, "recurrent: 1 to 99 layers");
  static constexpr std::size_t ways = O.bidirectional ? 2 : 1, rows = Layer::gates * Hidden;

  template <std::size_t C>
  using Cell = std::tuple<Tensor<T, rows, (C < ways ? In : ways * Hidden)>, Tensor<T, rows, Hidden>,
                          Tensor<T, rows>, Tensor<T, rows>>;
  template <std::size_t... C>
  static auto cells_of(std::index_sequence<C...>) -> std::tuple<Cell<C>...>;
  decltype(cells_of(std::make_index_sequence<O.layers * ways>{})) cells;

  struct hana_accessors_impl {
    static constexpr auto apply() {
      return recurrent_accessors<ways>(std::make_index_sequence<4 * O.layers * ways>{});
    }
  };

  /// The tuple of outputs [T, B, ways H] and, stacked, the last states [layers ways, B, H]: h, and c of an LSTM. States
  /// to begin with are zeros if there are none.
  template <operand X, operand... S>
    requires(sizeof...(S) == Layer::states)
  constexpr auto operator()(X const& x, S const&... states) const {
    return from<0>(x, std::tuple<>{}, Evaluate{}, states...);
  }
  template <dfdx::detail::random_key K, operand X, operand... S>
    requires(sizeof...(S) == Layer::states)
  constexpr auto train(K const& key, X const& x, S const&... states) const {
    return from<0>(x, std::tuple<>{}, key, states...);
  }

  template <operand X>
  constexpr auto operator()(X const& x) const {
    return from_zeros(x, Evaluate{});
  }
  template <dfdx::detail::random_key K, operand X>
  constexpr auto train(K const& key, X const& x) const {
    return from_zeros(x, key);
  }

  void reset(Key key) { reset_recurrent(*this, Hidden, key); }

 private:
  struct Evaluate {};

  constexpr auto from_zeros(auto const& x, auto const& key) const {
    auto const none = zero_states<Hidden, O.layers * ways>(x);
    if constexpr (Layer::states == 1) return from<0>(x, std::tuple<>{}, key, none);
    else return from<0>(x, std::tuple<>{}, key, none, none);
  }

  template <std::size_t C>
  constexpr auto run(auto const& x, auto const&... states) const {
    return std::apply(
        [&](auto const&... w) { return Layer::run(x, select<0, static_cast<index_t>(C)>(states)..., w...); },
        std::get<C>(cells));
  }

  template <std::size_t L, class X, class Done, class K>
  constexpr auto from(X const& x, Done const& done, K const& key, auto const&... states) const {
    if constexpr (L == O.layers) {
      auto const stacked = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
        return std::apply([](auto const&... r) { return stack<0>(std::get<I>(r)...); }, done);
      };
      std::integral_constant<std::size_t, 1> const h{};
      if constexpr (Layer::states == 1) return std::tuple(x, stacked(h));
      else return std::tuple(x, stacked(h), stacked(std::integral_constant<std::size_t, 2>{}));
    } else {
      auto const ahead = run<L * ways>(x, states...);
      if constexpr (ways == 1) {
        return next<L>(std::get<0>(ahead), std::tuple_cat(done, std::make_tuple(ahead)), key, states...);
      } else {
        auto const back = run<L * ways + 1>(flip<0>(x), states...);
        return next<L>(concat<-1>(std::get<0>(ahead), flip<0>(std::get<0>(back))),
                       std::tuple_cat(done, std::make_tuple(ahead, back)), key, states...);
      }
    }
  }
  template <std::size_t L, class Y, class Done, class K>
  constexpr auto next(Y const& y, Done const& done, K const& key, auto const&... states) const {
    if constexpr (std::is_same_v<K, Evaluate> || O.dropout == 0 || L + 1 == O.layers)
      return from<L + 1>(y, done, key, states...);
    else
      return from<L + 1>(dropout(y, O.dropout, part_key(key, static_cast<std::int64_t>(L))), done, key,
                         states...);
  }
};

}  // namespace detail

}  // namespace dfdx::nn
