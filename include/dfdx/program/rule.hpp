// SPDX-License-Identifier: BSL-1.0
// What a rule may say besides its update, and how those who apply rules ask for it. Rules that wrap others (clipping,
// groups, averages) are written with these, so that they wrap each other in any order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <dfdx/core/error.hpp>

namespace dfdx::optim {

namespace detail {

// Applies O to one parameter; a rule may ask for its name as well.
template <class O, class V>
constexpr void update(std::string_view name, V& p, V const& g, V* slot, V const* s) {
  if constexpr (requires { O::update(name, p, g, slot, s); }) O::update(name, p, g, slot, s);
  else O::update(p, g, slot, s);
}

// Shows O all gradients first, if it wants that; the slots of the i-th start at slots + i * stride.
template <class O, class V>
constexpr void prepare(V* g, std::size_t n, V* slots, std::size_t stride, V* s) {
  if constexpr (requires { O::prepare(g, n, slots, stride, s); }) O::prepare(g, n, slots, stride, s);
  else if constexpr (requires { O::prepare(g, n, s); }) O::prepare(g, n, s);
}

// Whether O scales the loss, and skips steps whose gradients are not finite.
template <class O>
concept scales_loss = requires { O::scale_at; };

// Whether O moves a parameter at all.
template <class O>
constexpr bool moves(std::string_view name) {
  if constexpr (requires { O::moves(name); }) return O::moves(name);
  else if constexpr (requires { typename O::inner_type; }) return moves<typename O::inner_type>(name);
  else return true;
}

// Whether O asks for names.
template <class O>
constexpr bool by_name() {
  if constexpr (requires { O::by_name; }) return O::by_name;
  else if constexpr (requires { typename O::inner_type; }) return by_name<typename O::inner_type>();
  else return false;
}

// Whether each choice of parameters that a rule makes by patterns finds one among the names; says so if not.
template <class O, class Names>
constexpr bool all_match(Names const& names, Text* why) {
  if constexpr (requires { O::all_match(names, why); })
    if (!O::all_match(names, why)) return false;
  if constexpr (requires { typename O::inner_type; }) return all_match<typename O::inner_type>(names, why);
  else return true;
}

// Whether O's `prepare` writes slots.
template <class O>
constexpr bool prepares_slots() {
  if constexpr (requires { O::prepares_slots; }) return O::prepares_slots;
  else if constexpr (requires { typename O::inner_type; }) return prepares_slots<typename O::inner_type>();
  else return false;
}

// The numbers of a step for a parameter that has its `update`-th update in it, counted from 1; 0 for one that every
// step before has moved. What wraps a rule goes by the steps of all and hands both on; the rule inside goes by the
// updates of the parameter.
template <class O>
auto scalars_at(O const& o, std::int64_t step, std::int64_t update) {
  if constexpr (requires { o.scalars_at(step, update); }) return o.scalars_at(step, update);
  else return o.scalars_at(update > 0 ? update : step);
}

// How many updates the rule that all others wrap makes in a number of steps, of a parameter that each of these moves.
template <class O>
std::int64_t updates_in(O const& o, std::int64_t steps) {
  if constexpr (requires { o.updates_in(steps); }) return o.updates_in(steps);
  else if constexpr (requires { o.inner; }) return updates_in(o.inner, steps);
  else return steps;
}

// The numbers of O and some more.
template <class O, std::size_t N>
auto with_scalars(O const& o, std::int64_t step, std::int64_t update, std::array<double, N> const& extra) {
  constexpr auto own = static_cast<std::size_t>(O::scalars);
  std::array<double, own + N> r{};
  auto const inner = scalars_at(o, step, update);
  for (std::size_t i = 0; i < own; ++i) r[i] = inner[i];
  for (std::size_t i = 0; i < N; ++i) r[own + i] = extra[i];
  return r;
}

// The rule that all others wrap.
template <class O>
constexpr auto& base(O& o) {
  if constexpr (requires { o.inner; }) return base(o.inner);
  else return o;
}

}  // namespace detail

/// name_matches - whether a name is like a pattern, in which * stands for any characters: "*.bias", "blocks.*.norm.*".
constexpr bool name_matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0, n = 0, star = pattern.size(), from = 0;
  while (n < name.size()) {
    // A * first: names of stacked layers have one themselves.
    if (p < pattern.size() && pattern[p] == '*') star = p++, from = n;
    else if (p < pattern.size() && pattern[p] == name[n]) ++p, ++n;
    else if (star < pattern.size()) p = star + 1, n = ++from;
    else return false;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Pattern - a pattern as a template argument.
template <std::size_t N>
struct Pattern {
  char text[N]{};
  constexpr Pattern(char const (&s)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = s[i];
  }
  constexpr bool matches(std::string_view name) const { return name_matches({text, N - 1}, name); }
};

}  // namespace dfdx::optim
