// SPDX-License-Identifier: BSL-1.0
// nn::Sequential, modules applied one after another. For layers of one type, std::array<Layer, N> as a field does
// too.
#pragma once

#include <array>
#include <tuple>

#include <dfdx/nn/dropout.hpp>
#include <dfdx/value/fields.hpp>

namespace dfdx::nn {

namespace detail {

template <std::size_t N>
inline constexpr std::size_t digit_count = N < 10 ? 1 : 1 + digit_count<N / 10>;

template <std::size_t N, std::size_t... K>
constexpr auto number_name(std::index_sequence<K...>) {
  constexpr auto digit = [](std::size_t from_left) {
    std::size_t n = N;
    for (std::size_t k = from_left + 1; k < sizeof...(K); ++k) n /= 10;
    return static_cast<char>('0' + n % 10);
  };
  return boost::hana::string_c<digit(K)...>;
}

// The I-th of the layers. A struct, since nvcc refuses a lambda that names the pack it is expanded with.
template <std::size_t I>
struct LayerAccessor {
  constexpr decltype(auto) operator()(auto&& self) const {
    return std::get<I>(static_cast<decltype(self)&&>(self).layers);
  }
};

// The accessors of a Hana Struct whose fields are the elements of `layers`, named "0", "1", ...
template <std::size_t... I>
constexpr auto layer_accessors(std::index_sequence<I...>) {
  return boost::hana::make_tuple(boost::hana::make_pair(
      number_name<I>(std::make_index_sequence<digit_count<I>>{}), LayerAccessor<I>{})...);
}

}  // namespace detail

/// Sequential - the composition of modules, which may be any callables that are trees. State: "0.weight", "0.bias",
/// "2.weight", ...: the fields of the modules, by position.
///
/// Math      y = f_n(... f_1(x))
/// Shapes    as the modules say
/// Dtypes    as the modules say
/// Errors    those of the modules
/// Source    torch.nn.Sequential
template <class... Modules>
struct Sequential {
  std::tuple<Modules...> layers;

  struct hana_accessors_impl {
    static constexpr auto apply() { return detail::layer_accessors(std::index_sequence_for<Modules...>{}); }
  };

  constexpr auto operator()(auto const& x) const { return from<0>(x); }

  /// In training: modules that draw get a key each, those with running statistics move them.
  constexpr auto train(auto const& x, auto const& key) const { return train_from<0>(*this, x, key); }
  constexpr auto train(auto const& x, auto const& key) { return train_from<0>(*this, x, key); }

 private:
  template <std::size_t I>
  constexpr auto from(auto const& x) const {
    if constexpr (I == sizeof...(Modules)) return x;
    else return from<I + 1>(std::get<I>(layers)(x));
  }
  template <std::size_t I, class Self>
  static constexpr auto train_from(Self& self, auto const& x, auto const& key) {
    if constexpr (I == sizeof...(Modules)) return x;
    else
      return train_from<I + 1>(self, detail::trained(std::get<I>(self.layers), x, detail::part_key(key, I)),
                               key);
  }
};

}  // namespace dfdx::nn
