// SPDX-License-Identifier: BSL-1.0
// Models as values: a function of the leaves of trees, zeros like a model, and the parameters of one as a vector.
#pragma once

#include <dfdx/value/stacked.hpp>
#include <dfdx/vocabulary/elementwise.hpp>
#include <dfdx/vocabulary/join.hpp>

namespace dfdx {

namespace detail {

// Makes f of the leaves of `from`, which stand at the same place, the leaves of `to`.
template <class F, class T, class... From>
constexpr void map_leaves(F const& f, T& to, From const&... from) {
  if constexpr (leaf<T>) {
    using Y = std::remove_cvref_t<decltype(f(from...))>;
    static_assert(std::is_convertible_v<Y, T>,
                  "tree_map: the function must return a value of the dtype and shape of the leaf");
    if constexpr (std::is_convertible_v<Y, T>) to = f(from...);
  } else if constexpr (keeps_leaves<T>) {
    map_leaves(f, to.leaves, from.leaves...);
  } else if constexpr (is_std_array<T> || is_list<T>) {
    if (((from.size() != to.size()) || ...)) raise("tree_map: lists of one length required");
    for (std::size_t i = 0; i < to.size(); ++i) map_leaves(f, to[i], from[i]...);
  } else if constexpr (is_optional<T>) {
    if (((from.has_value() != to.has_value()) || ...)) raise("tree_map: a part that not all trees have");
    if (to.has_value()) map_leaves(f, *to, *from...);
  } else if constexpr (is_std_tuple<T>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      auto const at = [&](auto place) {
        constexpr std::size_t i = decltype(place)::value;
        map_leaves(f, std::get<i>(to), std::get<i>(from)...);
      };
      (at(std::integral_constant<std::size_t, I>{}), ...);
    }(part_indices<T>);
  } else {
    auto const at = [&](auto const& part) { map_leaves(f, part(to), part(from)...); };
    boost::hana::unpack(boost::hana::accessors<T>(),
                        [&](auto const&... part) { (at(boost::hana::second(part)), ...); });
  }
}

// What a tree has several of, T of Stacked<T, N>, and is then; of others the tree itself, and nothing.
template <class T>
struct Parts {
  using one = T;
  using all = void;
};
template <class T, std::size_t N>
struct Parts<Stacked<T, N>> {
  using one = T;
  using all = Stacked<T, N>;
};
// The first that is not void.
template <class T, class... Rest>
struct first_type : std::conditional_t<std::is_void_v<T>, first_type<Rest...>, std::type_identity<T>> {};
template <class T>
struct first_type<T> : std::type_identity<T> {};

struct LeafInTuple {
  template <class Leaf>
  constexpr auto operator()(Leaf const& leaf) const {
    return std::tuple<Leaf>(leaf);
  }
};
template <class T>
using leaf_tuple = decltype(tuple_of_leaves(std::declval<T const&>(), LeafInTuple{}));

// f of the leaves of trees, some of which have an axis for their parts: a tree R.
template <class R, class F, class... T>
constexpr R map_parts(F const& f, T const&... trees) {
  std::tuple<leaf_tuple<T>...> const leaves(tuple_of_leaves(trees, LeafInTuple{})...);
  Vec<Array> made;
  auto const map = [&](auto place) {
    constexpr std::size_t i = decltype(place)::value;
    using To = std::tuple_element_t<i, leaf_tuple<R>>;
    std::apply(
        [&](auto const&... of_tree) {
          constexpr bool fits = std::is_convertible_v<decltype(f(std::get<i>(of_tree)...)), To>;
          static_assert(
              fits,
              "tree_map: the function must return a value of the dtype and shape of the leaf, with or "
              "for all leaves without the axis of the parts");
          if constexpr (fits) made.push_back(To(f(std::get<i>(of_tree)...)));
        },
        leaves);
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (map(std::integral_constant<std::size_t, I>{}), ...);
  }(part_indices<leaf_tuple<R>>);
  std::size_t k = 0;
  return filled(R{}, [&] { return made[k++]; });
}

template <class T>
concept tree_of_leaves = tree<T> && !leaf<T>;

// The type of all parameters of a tree in a row: an Array where the compiler does not know how many they are.
template <class T>
constexpr auto row_type() {
  if constexpr (leaf_count<T> == 0) return std::type_identity<Array>{};
  else {
    constexpr auto common = [] {
      Meta r = refuse(nullptr);
      bool known = true;
      index_t n = 0;
      T const t{};
      visit(t, [&](auto const& leaf) {
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (!typed<Leaf>) known = false;
        else if constexpr (!is_buffer<Leaf>) {
          Meta const m = Leaf::static_meta;
          known = known && m.shape.is_static() && (n == 0 || r.dtype == m.dtype);
          r.dtype = m.dtype;
          n += m.shape.is_static() ? m.shape.numel() : 0;
        }
      });
      r.shape = make_shape(n);
      return known && n > 0 ? r : refuse(nullptr);
    }();
    if constexpr (!common.valid()) return std::type_identity<Array>{};
    else
      return std::type_identity<Tensor<element_t<common.dtype>, static_cast<std::size_t>(common.shape[0])>>{};
  }
}

}  // namespace detail

/// tree_map(f, tree, trees...) - a tree with f(leaf, leaves...) in place of each leaf: f gets the leaves that stand at
/// the same place of trees of one type. `tree_map([](auto const& p, auto const& g) { return p - 0.1f * g; }, model,
/// gradient)` is a step of gradient descent. Stacked trees may be among them, whose leaves have an axis more; if f
/// leaves that out, the result is a tree without it: `tree_map([](auto const& g) { return mean<0>(g); }, each)`, with
/// the gradients of each example from vmap, is their mean. Eager, recorded and on the tape.
///
/// Math      y_i = f(a_i, b_i, ...) for each leaf i
/// Shapes    leaves: as f takes them; a result has dtype and shape of its leaf
/// Dtypes    those that f takes
/// Errors    "tree_map: the function must return a value of the dtype and shape of the leaf", "tree_map: trees of one
///           type required, or Stacked ones of it" at compile time; "tree_map: lists of one length required"
/// Source    jax.tree.map
template <class F, tree T, tree... U>
constexpr auto tree_map(F const& f, T const& first, U const&... rest) {
  using One = typename detail::Parts<T>::one;
  using All =
      typename detail::first_type<typename detail::Parts<T>::all, typename detail::Parts<U>::all...>::type;
  constexpr bool alike = (std::is_same_v<One, typename detail::Parts<U>::one> && ...);
  static_assert(alike, "tree_map: trees of one type required, or Stacked ones of it");
  if constexpr (!alike) return first;
  else if constexpr (std::is_void_v<All>) {
    T r = first;
    detail::map_leaves(f, r, first, rest...);
    return r;
  } else {
    using Y = decltype(f(std::get<0>(std::declval<detail::leaf_tuple<T> const&>()),
                         std::get<0>(std::declval<detail::leaf_tuple<U> const&>())...));
    constexpr bool joins = std::is_convertible_v<Y, std::tuple_element_t<0, detail::leaf_tuple<One>>>;
    return detail::map_parts<std::conditional_t<joins, One, All>>(f, first, rest...);
  }
}

/// zeros_like, ones_like - the same of a model: a tree whose leaves are zeros, or ones. The first state of momenta, of
/// sums of gradients.
///
/// Shapes    leaves: [S...] -> [S...]
/// Dtypes    any
/// Source    elementary
template <detail::tree_of_leaves T>
constexpr T zeros_like(T const& tree) {
  return tree_map([](auto const& leaf) { return zeros_like(leaf); }, tree);
}
template <detail::tree_of_leaves T>
constexpr T ones_like(T const& tree) {
  return tree_map([](auto const& leaf) { return ones_like(leaf); }, tree);
}

/// parameters_to_vector(tree) - the numbers of all leaves but Buffers, one after another; vector_to_parameters(v, like)
/// - a tree like another one, with the numbers of such a vector (and the Buffers of `like`). With both, what takes
/// Tensors takes models: `hessian([](auto const& v, auto const& model, auto const& x) { return
/// loss(vector_to_parameters(v, model), x); })(parameters_to_vector(model), model, x)`.
///
/// Shapes    leaves: [S...] -> [N], N the number of all elements: a Tensor where types know it, else an Array
/// Dtypes    one of all leaves
/// Errors    those of concat; "vector_to_parameters: 7 numbers for a tree of 8"
/// Source    torch.nn.utils.parameters_to_vector
template <tree T>
constexpr auto parameters_to_vector(T const& tree) {
  Vec<Array> parts;
  visit(tree, [&](auto const& leaf) {
    if constexpr (!is_buffer<decltype(leaf)>)
      parts.push_back(reshape_to(detail::untyped(leaf), make_shape(leaf.shape().numel())));
  });
  if (parts.empty()) raise("parameters_to_vector: a tree without parameters");
  using R = typename decltype(detail::row_type<T>())::type;
  Array const row = detail::Concat::joined(parts.data(), static_cast<int>(parts.size()), Attrs{{0}});
  if constexpr (typed<R>) return R(typename R::Unchecked{}, row);
  else return row;
}
template <operand V, tree T>
constexpr T vector_to_parameters(V const& v, T const& like) {
  index_t at = 0, all = 0;
  visit(like, [&](auto const& leaf) {
    if constexpr (!is_buffer<decltype(leaf)>) all += leaf.shape().numel();
  });
  if (v.shape().rank != 1 || v.shape()[0] != all)
    raise("vector_to_parameters: ", v.shape(), " numbers for a tree of ", all);
  return tree_map(
      [&](auto const& leaf) {
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        if constexpr (is_buffer<Leaf>) return leaf;
        else {
          Array const part =
              reshape_to(slice_axis(detail::untyped(v), 0, at, leaf.shape().numel()), leaf.shape());
          at += leaf.shape().numel();
          if constexpr (typed<Leaf>) return Leaf(part);
          else return part;
        }
      },
      like);
}

}  // namespace dfdx
