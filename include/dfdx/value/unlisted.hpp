// SPDX-License-Identifier: BSL-1.0
// Members of a model that DFDX_FIELDS does not name. A program is made from the type of a model alone and sees the
// values that the type gives them; here is told whether those of a model in memory are the same.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include <boost/preprocessor/arithmetic/inc.hpp>
#include <boost/preprocessor/punctuation/comma_if.hpp>
#include <boost/preprocessor/repetition/enum.hpp>
#include <boost/preprocessor/repetition/enum_params.hpp>
#include <boost/preprocessor/repetition/repeat.hpp>
#include <boost/preprocessor/repetition/repeat_from_to.hpp>

#include <dfdx/core/type_name.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx {

/// Unread - a member of a model that no program reads, though it is a number or a string: the epochs done, a name. It
/// may have any value, where others that DFDX_FIELDS does not name must have the one that the type gives them.
template <class T>
struct Unread {
  T value{};
};

namespace detail {

template <class T>
inline constexpr bool is_unread = false;
template <class T>
inline constexpr bool is_unread<Unread<T>> = true;

inline constexpr int unknown_members = -1;

// What a base class of T can be made of, and nothing else.
template <class T>
struct BaseOf {
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
  operator U() const;
};
struct Anything {
  template <class U>
  operator U() const;
};

// The number of members of a struct that structured bindings can take apart, else unknown_members. Each is initialised
// by {}: arrays count as one then, and types that anything converts to are not ambiguous. A member that {} does not
// make would look like the end; Anything tells it from that.
template <class T>
consteval int member_count() {
  // clang-format off
#define DFDX_BRACES_(z, n, data) {}
#define DFDX_MADE_OF_(z, n, data) requires { T{BOOST_PP_ENUM(n, DFDX_BRACES_, _)}; },
#define DFDX_ODD_AFTER_(z, n, data) \
  requires { T{BOOST_PP_ENUM(n, DFDX_BRACES_, _) BOOST_PP_COMMA_IF(n) Anything{}}; },
  // clang-format on
  constexpr int most = 16;
  constexpr bool made_of[] = {BOOST_PP_REPEAT(18, DFDX_MADE_OF_, _)};
  constexpr bool odd_after[] = {BOOST_PP_REPEAT(18, DFDX_ODD_AFTER_, _)};
#undef DFDX_ODD_AFTER_
#undef DFDX_MADE_OF_
#undef DFDX_BRACES_
  if (!std::is_aggregate_v<T> || requires { T{BaseOf<T>{}}; } || !made_of[0]) return unknown_members;
  int n = 0;
  while (n <= most && made_of[n + 1]) ++n;
  return n > most || odd_after[n] ? unknown_members : n;
}

// Calls f with all members of a struct.
template <class T, class F>
constexpr void with_members(T const& t, F const& f) {
  constexpr int n = member_count<T>();
  static_assert(n >= 0);
  if constexpr (n == 0) f();
#define DFDX_BIND_(z, n_, data)                    \
  else if constexpr (n == n_) {                    \
    auto const& [BOOST_PP_ENUM_PARAMS(n_, m)] = t; \
    f(BOOST_PP_ENUM_PARAMS(n_, m));                \
  }
  BOOST_PP_REPEAT_FROM_TO(1, 17, DFDX_BIND_, _)
#undef DFDX_BIND_
}

template <class T>
concept holds_tensors = leaf<T> || has_fields<T> || keeps_leaves<T>;

// Whether two members that are no parameters say the same. What cannot be compared, a pointer or a class that keeps its
// state to itself, is taken to.
template <class T>
bool same_value(T const& a, T const& b) {
  if constexpr (holds_tensors<T> || is_unread<T> || std::is_pointer_v<T>) return true;
  else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) return a == b || (a != a && b != b);
  else if constexpr (is_optional<T>) return a.has_value() == b.has_value() && (!a || same_value(*a, *b));
  else if constexpr (std::is_array_v<T> || is_std_array<T> || is_list<T>)
    return std::equal(std::begin(a), std::end(a), std::begin(b), std::end(b),
                      [](auto const& x, auto const& y) { return same_value(x, y); });
  else if constexpr (member_count<T>() > 0) {
    bool same = true;
    with_members(a, [&](auto const&... x) {
      with_members(b, [&](auto const&... y) { same = (same_value(x, y) && ...); });
    });
    return same;
  } else if constexpr (std::is_trivially_copyable_v<T> && std::equality_comparable<T>) return a == b;
  else return true;
}

// Whether a struct has members besides its fields. Where these fill it there is no need to count.
template <class T>
consteval bool has_unlisted() {
  constexpr auto fields = []<class... X>(Types<X...>) {
    return std::pair<std::size_t, int>((sizeof(X) + ... + 0), static_cast<int>(sizeof...(X)));
  }(part_types<T>{});
  if constexpr (std::is_empty_v<T> || fields.first == sizeof(T)) return false;
  else return member_count<T>() > fields.second;
}

// Whether a tree has such members anywhere.
template <class T>
consteval bool may_differ() {
  if constexpr (leaf<T> || keeps_leaves<T> || is_list<T> || is_optional<T>) return false;
  else if constexpr (is_std_array<T>) return may_differ<typename T::value_type>();
  else if constexpr (is_std_tuple<T>)
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (may_differ<std::tuple_element_t<I, T>>() || ...);
    }(part_indices<T>);
  else if constexpr (has_fields<T>) {
    return has_unlisted<T>() ||
           []<class... X>(Types<X...>) { return (may_differ<X>() || ...); }(part_types<T>{});
  } else return false;
}

[[noreturn, gnu::noinline]] inline void raise_differs(std::string const& type, int member, bool is_tensor) {
  raise("program: member ", member, " of ", type.c_str(),
        ", not in DFDX_FIELDS, differs from what its type says, which is what programs see: ",
        is_tensor ? "name it there" : "make it a template argument or a Tensor; or Unread");
}

// Whether an array has the numbers that a type gives it, to the bit. One without any is read by no program.
[[gnu::noinline]] inline bool same_numbers(Array const& a, Array const& of_type) {
  if (of_type.bytes() == nullptr || !a.device().is_cpu()) return true;
  if (a.bytes() == nullptr || !(a.meta() == of_type.meta())) return false;
  bool same = true;
  Strides const strides[2] = {a.strides(), of_type.strides()};
  auto const size = static_cast<index_t>(size_of(a.dtype()));
  walk<2>(a.shape(), strides, [&](index_t const(&at)[2]) {
    same = same && std::memcmp(a.bytes() + at[0] * size, of_type.bytes() + at[1] * size,
                               static_cast<std::size_t>(size)) == 0;
  });
  return same;
}
template <holds_tensors T>
bool same_numbers(T const& a, T const& of_type) {
  Vec<Array> given;
  visit(of_type, [&](auto const& leaf) { given.push_back(leaf); });
  bool same = true;
  std::size_t k = 0;
  visit(a, [&](auto const& leaf) {
    same = same && k < given.size() && same_numbers(static_cast<Array const&>(leaf), given[k]);
    ++k;
  });
  return same && k == given.size();
}

template <class T>
void require_same(T const& t, T const& of_type) {
  if constexpr (!may_differ<T>()) return;
  else if constexpr (is_std_array<T>) {
    for (std::size_t i = 0; i < t.size(); ++i) require_same(t[i], of_type[i]);
  } else if constexpr (is_std_tuple<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (require_same(std::get<I>(t), std::get<I>(of_type)), ...);
    }(part_indices<T>);
  } else {
    with_parts(t, [&](auto const&... a) {
      with_parts(of_type, [&](auto const&... b) { (require_same(a, b), ...); });
    });
    if constexpr (has_unlisted<T>()) {
      int i = 0;
      auto const compare = [&]<class M>(M const& a, M const& b) {
        ++i;
        if constexpr (!holds_tensors<M>) {
          if (!same_value(a, b)) raise_differs(short_type_name<T>(), i, false);
        } else {  // fields are among the members
          auto const is_a = [&](auto const&... f) { return ((static_cast<void const*>(&f) == &a) || ...); };
          if (!with_parts(t, is_a) && !same_numbers(a, b)) raise_differs(short_type_name<T>(), i, true);
        }
      };
      with_members(t, [&](auto const&... a) {
        with_members(of_type, [&](auto const&... b) { (compare(a, b), ...); });
      });
    }
  }
}

/// require_values_of_type - refuses a tree of which a member that DFDX_FIELDS does not name has another value than its
/// type gives it. Costs nothing for trees without such members.
///
/// Errors    "program: member 3 of LayerNorm, not in DFDX_FIELDS, differs from what its type says, which is what
///           programs see: make it a template argument or a Tensor; or Unread"; of a Tensor "...: name it there"
template <class T>
void require_values_of_type(T const& t) {
  if constexpr (may_differ<T>()) {
    static T const of_type{};
    require_same(t, of_type);
  }
}

}  // namespace detail

}  // namespace dfdx
