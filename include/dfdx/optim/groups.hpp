// SPDX-License-Identifier: BSL-1.0
// Some parameters unlike others: groups by name, and freezing.
#pragma once

#include <tuple>

#include <dfdx/optim/sgd.hpp>
#include <dfdx/program/rule.hpp>

namespace dfdx::optim {

namespace detail {

// Patterns as one text.
template <Pattern... P>
std::string joined() {
  std::string r;
  ((r += r.empty() ? "" : " ", r += P.text), ...);
  return r;
}

// Whether one of the patterns is like one of the names.
template <Pattern... P, class Names>
constexpr bool one_matches(char const* name, Names const& names, Text* why) {
  for (auto const& n : names)
    if ((P.matches(std::string_view(n.data(), n.size())) || ...)) return true;
  if (why != nullptr) {
    *why = make_text(name, ": no parameter is called");
    (why->put(" ").put(P.text), ...);
  }
  return false;
}

}  // namespace detail

/// Group - how the parameters whose names match one of some patterns are treated: factors of the rate and of the weight
/// decay.
///
/// Math      lr *= lr factor;  weight_decay *= weight_decay factor
/// Shapes    any
/// Dtypes    any
/// Errors    none
/// Source    torch.optim's param_groups
template <Pattern... P>
struct Group {
  double lr = 1, weight_decay = 1;

  static constexpr bool matches(std::string_view name) { return (P.matches(name) || ...); }
  template <class Names>
  static constexpr bool one_matches(Names const& names, Text* why) {
    return detail::one_matches<P...>("group", names, why);
  }

  /// What a checkpoint holds (io/checkpoint.hpp).
  template <class Self, class F>
  static void visit_checkpoint(Self& self, F const& f) {
    f("lr", self.lr);
    f("weight_decay", self.weight_decay);
    f.must_equal("patterns", detail::joined<P...>());
  }
};

/// Factors - those of a group.
///
/// Math      none
/// Shapes    none
/// Dtypes    none
/// Errors    none
/// Source    torch.optim's param_groups
struct Factors {
  double lr = 1, weight_decay = 1;
};

/// group<"*.bias", "norm*">({.weight_decay = 0}) - a Group.
template <Pattern... P>
constexpr Group<P...> group(Factors const& f) {
  return {f.lr, f.weight_decay};
}

namespace detail {

// A rule with its rate and decay multiplied, and those of the rule that it hands some parameters to.
template <class O>
void multiply(O& o, Factors const& f) {
  o.lr *= f.lr;
  if constexpr (requires { o.weight_decay *= f.weight_decay; }) {
    static_assert(std::is_floating_point_v<decltype(o.weight_decay)>,
                  "group: a floating weight_decay required");
    o.weight_decay *= f.weight_decay;
  }
  if constexpr (requires { o.other; }) multiply(o.other, f);
}

}  // namespace detail

/// Groups - does as O, with other numbers for some parameters:
///
///   optim::Groups{optim::AdamW{.lr = 1e-3}, optim::group<"*.bias", "norm*">({.weight_decay = 0}),
///                 optim::group<"embed.*">({.lr = 0.1})}
///
/// The first group that matches counts. Names are those of `visit_named` ("layers.0.weight"; those of stacked layers,
/// nn::Repeat, have a * in place of the number).
///
/// Math      O's
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    torch.optim's param_groups
template <class O, class... G>
struct Groups {
  O inner{};
  std::tuple<G...> groups{};
  DFDX_STATE(inner, groups)

  using inner_type = O;
  static constexpr bool by_name = true;
  static constexpr int slots = O::slots;
  static constexpr int scalars = O::scalars * (1 + static_cast<int>(sizeof...(G)));

  constexpr Groups(O const& o, G const&... g) : inner(o), groups(g...) {}

  std::array<double, static_cast<std::size_t>(scalars)> scalars_at(std::int64_t step,
                                                                   std::int64_t update = 0) const {
    std::array<double, static_cast<std::size_t>(scalars)> r{};
    std::size_t k = 0;
    auto const add = [&](Factors const& f) {
      O mine = inner;
      detail::multiply(detail::base(mine), f);
      for (double v : detail::scalars_at(mine, step, update)) r[k++] = v;
    };
    add({});
    std::apply([&](auto const&... g) { (add({g.lr, g.weight_decay}), ...); }, groups);
    return r;
  }
  template <class V>
  static constexpr void prepare(V* g, std::size_t n, V* slot, std::size_t stride, V* s) {
    detail::prepare<O>(g, n, slot, stride, s);
  }
  template <class Names>
  static constexpr bool all_match(Names const& names, Text* why) {
    return (G::one_matches(names, why) && ...);
  }
  template <class V>
  static constexpr void update(std::string_view name, V& p, V const& g, V* slot, V const* s) {
    int row = 0, mine = 0;
    ((++row, mine = mine == 0 && G::matches(name) ? row : mine), ...);
    detail::update<O>(name, p, g, slot, s + mine * O::scalars);
  }
};

/// Frozen - does as O, but leaves parameters whose names match one of the patterns as they are: their gradients are not
/// computed by train_step.
///
/// Math      O's
/// Shapes    any
/// Dtypes    any
/// Errors    none
/// Source    requires_grad_(False) of PyTorch
template <class O, Pattern... P>
struct Frozen {
  O inner{};

  using inner_type = O;
  static constexpr bool by_name = true;
  static constexpr int slots = O::slots;
  static constexpr int scalars = O::scalars;
  auto scalars_at(std::int64_t step, std::int64_t update = 0) const {
    return detail::scalars_at(inner, step, update);
  }
  template <class Names>
  static constexpr bool all_match(Names const& names, Text* why) {
    return detail::one_matches<P...>("freeze", names, why);
  }
  static constexpr bool moves(std::string_view name) {
    return !(P.matches(name) || ...) && detail::moves<O>(name);
  }
  /// What a checkpoint holds (io/checkpoint.hpp).
  template <class Self, class F>
  static void visit_checkpoint(Self& self, F const& f) {
    f("inner", self.inner);
    f.must_equal("patterns", detail::joined<P...>());
  }
  template <class V>
  static constexpr void prepare(V* g, std::size_t n, V* slot, std::size_t stride, V* s) {
    detail::prepare<O>(g, n, slot, stride, s);
  }
  template <class V>
  static constexpr void update(std::string_view name, V& p, V const& g, V* slot, V const* s) {
    detail::update<O>(name, p, g, slot, s);
  }
};

/// freeze<"embed.*">(rule) - a Frozen rule.
template <Pattern... P, class O>
constexpr Frozen<O, P...> freeze(O const& rule) {
  return {rule};
}

}  // namespace dfdx::optim
