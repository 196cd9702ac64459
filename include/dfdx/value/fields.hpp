// SPDX-License-Identifier: BSL-1.0
// Trees of tensors: a model is a struct with DFDX_FIELDS (a Boost.Hana Struct), an array, tuple or pair of trees,
// or a tensor. Visiting, naming and counting the leaves needs no registration code.
#pragma once

#include <array>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <boost/hana/accessors.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>
#include <boost/preprocessor/seq/enum.hpp>
#include <boost/preprocessor/seq/transform.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>

#include <dfdx/value/buffer.hpp>

/// DFDX_FIELDS(a, b, ...) - in the body of a struct: these members are its parameters (tensors, or trees of them).
/// Members that are not named are configuration, of types that constant expressions can make (train_step also copies
/// them, which g++ 12 cannot do with std::string). A program is made from the type alone: it sees the values that the
/// type gives them, and refuses a model in which numbers, enumerations, strings, lists or structs of these have others
/// (value/unlisted.hpp). What programs are to know is a template argument, static constexpr or a Tensor; what none of
/// them reads is Unread<T>. Not looked at: structs with base classes, private members or more than 16 members.
#define DFDX_FIELDS(...)                                                                                     \
  DFDX_MAYBE_UNUSED_BEGIN                                                                                    \
  struct hana_accessors_impl {                                                                               \
    static constexpr auto apply() {                                                                          \
      return ::boost::hana::make_tuple(                                                                      \
          BOOST_PP_SEQ_ENUM(BOOST_PP_SEQ_TRANSFORM(DFDX_FIELD_, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)))); \
    }                                                                                                        \
    static constexpr auto parts() {                                                                          \
      return [](auto& self, auto const& f) -> decltype(auto) {                                               \
        return f(BOOST_PP_SEQ_ENUM(                                                                          \
            BOOST_PP_SEQ_TRANSFORM(DFDX_MEMBER_, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__))));                \
      };                                                                                                     \
    }                                                                                                        \
    static constexpr char const* name(std::size_t i) {                                                       \
      constexpr char const* names[] = {                                                                      \
          BOOST_PP_SEQ_ENUM(BOOST_PP_SEQ_TRANSFORM(DFDX_NAME_, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)))};  \
      return names[i];                                                                                       \
    }                                                                                                        \
  };                                                                                                         \
  DFDX_MAYBE_UNUSED_END
// (nvcc says of functions that are not called that they are not, whatever attributes they have.)
#if defined(__CUDACC__)
#define DFDX_MAYBE_UNUSED_BEGIN _Pragma("nv_diagnostic push") _Pragma("nv_diag_suppress 177")
#define DFDX_MAYBE_UNUSED_END _Pragma("nv_diagnostic pop")
#else
#define DFDX_MAYBE_UNUSED_BEGIN
#define DFDX_MAYBE_UNUSED_END
#endif
#define DFDX_FIELD_(r, data, field)                                                       \
  ::boost::hana::make_pair(BOOST_HANA_STRING(#field), [](auto&& self) -> decltype(auto) { \
    return (static_cast<decltype(self)&&>(self).field);                                   \
  })

/// DFDX_STATE(a, b, ...) - in the body of a struct that is no model, an optimizer's rule for instance: these members
/// are what a checkpoint holds of it (io/checkpoint.hpp). It costs programs nothing that save none; not for local
/// structs.
#define DFDX_STATE(...)                                                                    \
  template <class Self, class F>                                                           \
  static void visit_checkpoint(Self& self, F const& f) {                                   \
    f.members(#__VA_ARGS__, BOOST_PP_SEQ_ENUM(BOOST_PP_SEQ_TRANSFORM(                      \
                                DFDX_MEMBER_, _, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)))); \
  }
#define DFDX_MEMBER_(r, data, member) self.member
#define DFDX_NAME_(r, data, member) #member

namespace dfdx {

namespace detail {

template <class T>
inline constexpr bool is_std_array = false;
template <class T, std::size_t N>
inline constexpr bool is_std_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_std_tuple = false;
template <class... T>
inline constexpr bool is_std_tuple<std::tuple<T...>> = true;
template <class A, class B>
inline constexpr bool is_std_tuple<std::pair<A, B>> = true;

template <class T>
concept has_fields = requires { typename T::hana_accessors_impl; };
// Parts whose number only the running program knows: std::vector and its like, std::optional.
template <class T>
concept is_list = !std::is_base_of_v<Array, T> && requires(T& t, typename T::value_type part) {
  t.push_back(part);
  t.begin();
};
template <class T>
concept is_optional = !std::is_base_of_v<Array, T> && requires(T& t, typename T::value_type part) {
  t.has_value();
  t.emplace(part);
};
// A tree that keeps its leaves in another form than its fields (value/stacked.hpp).
template <class T>
concept keeps_leaves = requires { typename T::leaves_type; };

// f(part...) of the fields of a struct. Those that DFDX_FIELDS names it hands over itself: Boost.Hana's way to them,
// which all others go, takes as long to compile as what is done with them.
template <class T, class F>
constexpr decltype(auto) with_parts(T& t, F const& f) {
  using U = std::remove_cv_t<T>;
  if constexpr (requires { U::hana_accessors_impl::parts(); }) return U::hana_accessors_impl::parts()(t, f);
  else
    return boost::hana::unpack(boost::hana::accessors<U>(), [&](auto const&... a) -> decltype(auto) {
      return f(boost::hana::second(a)(t)...);
    });
}
// The name of field i.
template <class T>
constexpr char const* part_name(std::size_t i) {
  if constexpr (requires { T::hana_accessors_impl::name(i); }) return T::hana_accessors_impl::name(i);
  else
    return boost::hana::unpack(boost::hana::accessors<T>(), [&](auto const&... a) {
      char const* r = nullptr;
      static_cast<void>(((i-- == 0 && (r = boost::hana::first(a).c_str(), true)) || ...));
      return r;
    });
}
// The types of the fields of a struct.
template <class... T>
struct Types {};
struct ToTypes {
  template <class... T>
  constexpr auto operator()(T const&...) const {
    return Types<T...>{};
  }
};
template <class T>
using part_types = decltype(with_parts(std::declval<T const&>(), ToTypes{}));

// The places of a tuple's or pair's parts. Not std::apply: for each function it asks besides whether that may throw,
// which takes longer to compile than the call.
template <class T>
inline constexpr std::make_index_sequence<std::tuple_size_v<T>> part_indices{};

}  // namespace detail

/// leaf - a node of a tree that holds numbers itself: a Tensor or an Array.
template <class T>
concept leaf = std::is_base_of_v<Array, std::remove_cvref_t<T>>;

/// tree - a leaf, a struct with DFDX_FIELDS, or an array, tuple or pair (of trees). On the tape and in memory also a
/// std::vector, whose parts are those it has, and a std::optional: programs know the number of their inputs.
template <class T>
concept tree =
    leaf<T> || detail::has_fields<std::remove_cvref_t<T>> || detail::keeps_leaves<std::remove_cvref_t<T>> ||
    detail::is_std_array<std::remove_cvref_t<T>> || detail::is_std_tuple<std::remove_cvref_t<T>> ||
    detail::is_list<std::remove_cvref_t<T>> || detail::is_optional<std::remove_cvref_t<T>>;

/// visit - calls f with each leaf of a tree, in declaration order. An f that asks about types has `any_number`, which
/// is called for a list in place of the parts that it has.
template <class T, class F>
constexpr void visit(T& t, F const& f) {
  using U = std::remove_cv_t<T>;
  static_assert(
      tree<U>,
      "visit: a field must be a Tensor, a struct with DFDX_FIELDS, or an array, tuple or pair of these");
  if constexpr (leaf<U>) f(t);
  else if constexpr (detail::keeps_leaves<U>) visit(t.leaves, f);
  else if constexpr (detail::is_list<U> && requires { f.any_number(); }) f.any_number();
  else if constexpr (detail::is_std_array<U> || detail::is_list<U>) {
    for (auto& e : t) visit(e, f);
  } else if constexpr (detail::is_optional<U>) {
    if (t.has_value()) visit(*t, f);
  } else if constexpr (detail::is_std_tuple<U>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit(std::get<I>(t), f), ...);
    }(detail::part_indices<U>);
  } else if constexpr (detail::has_fields<U>) {
    detail::with_parts(t, [&](auto&... part) { (visit(part, f), ...); });
  }
}

namespace detail {

// Makes next() the leaves of a tree, in order.
template <class T, class Next>
constexpr void fill_leaves(T& t, Next&& next) {
  visit(t, [&](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (typed<Leaf>) leaf = Leaf(typename Leaf::Unchecked{}, next());
    else leaf = next();
  });
}
// A tree of type T whose leaves, in order, are next().
template <class T, class Next>
constexpr T filled(T t, Next&& next) {
  fill_leaves(t, next);
  return t;
}

// The path of a part. Paths are strings, or Texts in constant expressions.
template <class Path>
constexpr Path path_below(Path path, char const* name) {
  auto const add = [&](char const* s) {
    if constexpr (std::is_same_v<Path, Text>) path.put(s);
    else path += s;
  };
  if (path.size() != 0) add(".");
  add(name);
  return path;
}
template <class Path>
constexpr Path path_below(Path const& path, std::size_t i) {
  return path_below(path, Text().put(static_cast<index_t>(i)).c_str());
}

struct SameLeaves;
struct StateLeaves;

// Leaves with their paths. How is SameLeaves for those of `visit`, StateLeaves for those of `visit_state`.
template <class How, class T, class F, class Path>
constexpr void visit_paths(T& t, F const& f, Path const& path) {
  using U = std::remove_cv_t<T>;
  static_assert(
      tree<U>,
      "visit: a field must be a Tensor, a struct with DFDX_FIELDS, or an array, tuple or pair of these");
  if constexpr (leaf<U>) f(path, t);
  else if constexpr (keeps_leaves<U>) {
    if constexpr (std::is_same_v<How, SameLeaves>) t.visit_named(f, path);
    else t.visit_state(f, path);
  } else if constexpr (is_std_array<U> || is_list<U>) {
    std::size_t i = 0;
    for (auto& e : t) visit_paths<How>(e, f, path_below(path, i++));
  } else if constexpr (is_optional<U>) {
    if (t.has_value()) visit_paths<How>(*t, f, path);
  } else if constexpr (is_std_tuple<U>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (visit_paths<How>(std::get<I>(t), f, path_below(path, I)), ...);
    }(part_indices<U>);
  } else if constexpr (has_fields<U>) {
    std::size_t i = 0;
    with_parts(t,
               [&](auto&... part) { (visit_paths<How>(part, f, path_below(path, part_name<U>(i++))), ...); });
  }
}

// As visit_named, with Texts.
template <class T, class F>
constexpr void visit_texts(T& t, F const& f) {
  visit_paths<SameLeaves>(t, f, Text{});
}

}  // namespace detail

/// visit_named - as visit, with the path of each leaf: f("layers.0.weight", leaf).
template <class T, class F>
void visit_named(T& t, F const& f, std::string const& path = {}) {
  detail::visit_paths<detail::SameLeaves>(t, f, path);
}

/// visit_state - as visit_named, but with the tensors that files hold: of a stacked tree each part has its own, as
/// if it were an array. Of one that is not constant these are given memory first.
template <class T, class F>
void visit_state(T& t, F const& f, std::string const& path = {}) {
  detail::visit_paths<detail::StateLeaves>(t, f, path);
}

namespace detail {
// (A function: nvcc 13 fails at a lambda in its place where a class template asks for it.)
template <class T>
constexpr int count_leaves() {
  int n = 0;
  T t{};
  visit(t, [&](auto const&) { ++n; });
  return n;
}
}  // namespace detail

/// leaf_count - number of leaves of a tree type. The type must be default constructible in a constant expression.
template <class T>
inline constexpr int leaf_count = detail::count_leaves<T>();

/// parameter_count - number of elements of a tree whose leaves have static shapes, without those of buffers.
template <class T>
inline constexpr index_t parameter_count = [] {
  index_t n = 0;
  T t{};
  visit(t, [&](auto const& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (!is_buffer<Leaf>) n += Leaf::static_shape.numel();
  });
  return n;
}();

}  // namespace dfdx
