// SPDX-License-Identifier: BSL-1.0
// Stacked<Tree, N>: N trees of one type whose corresponding leaves lie one after another, so that a loop can go over
// them; and the types of trees with a first axis more or less.
#pragma once

#include <vector>

#include <dfdx/value/device_ops.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx {

template <class Tree, std::size_t N>
struct Stacked;

namespace detail {

template <class T, std::size_t N>
struct stacked_type {
  using type = Stacked<T, N>;
};

template <class T>
struct with_axis;
template <class T, std::size_t... D>
struct with_axis<Tensor<T, D...>> {
  template <std::size_t N>
  using more = Tensor<T, N, D...>;
};
template <class T, std::size_t... D>
struct with_axis<Buffer<T, D...>> {
  template <std::size_t N>
  using more = Buffer<T, N, D...>;
};

// What f makes of each leaf of a tree, tuples, as one tuple.
template <class T, class F>
constexpr auto tuple_of_leaves(T const& t, F const& f) {
  if constexpr (leaf<T>) return f(t);
  else if constexpr (keeps_leaves<T>) return tuple_of_leaves(t.leaves, f);
  else if constexpr (is_std_array<T> || is_std_tuple<T>)
    return std::apply([&](auto const&... e) { return std::tuple_cat(tuple_of_leaves(e, f)...); }, t);
  else return with_parts(t, [&](auto const&... part) { return std::tuple_cat(tuple_of_leaves(part, f)...); });
}

// The leaf types of a tree, as the type of a tuple.
struct LeafType {
  template <class Leaf>
  auto operator()(Leaf const&) const {
    static_assert(typed<Leaf> && Leaf::static_shape.is_static(),
                  "stacked: leaves must be Tensors of static shapes");
    return std::tuple<std::conditional_t<is_buffer<Leaf>, Leaf, typename tensor_base<Leaf>::type>>{};
  }
};
template <class T>
using leaf_types = decltype(tuple_of_leaves(std::declval<T const&>(), LeafType{}));

// The buffers of a tree, as a tuple of Tensors.
struct BufferLeaf {
  template <class Leaf>
  constexpr auto operator()(Leaf const& leaf) const {
    if constexpr (is_buffer<Leaf>) return std::tuple<typename tensor_base<Leaf>::type>(leaf);
    else return std::tuple<>();
  }
};
template <class T>
constexpr auto buffers_of(T const& t) {
  return tuple_of_leaves(t, BufferLeaf{});
}
template <class T>
inline constexpr bool has_buffers = std::tuple_size_v<decltype(buffers_of(std::declval<T const&>()))> > 0;

// Puts a tuple of Tensors into the buffers of a tuple of leaves.
template <std::size_t I = 0, std::size_t From = 0, class Leaves, class Values>
constexpr void set_buffers(Leaves& leaves, Values const& values) {
  if constexpr (I < std::tuple_size_v<Leaves>) {
    constexpr bool here = is_buffer<std::tuple_element_t<I, Leaves>>;
    if constexpr (here) std::get<I>(leaves) = std::get<From>(values);
    set_buffers<I + 1, From + here>(leaves, values);
  }
}

template <std::size_t N, class... T>
auto stacked_leaves(std::tuple<T...> const&) -> std::tuple<typename with_axis<T>::template more<N>...>;

template <class T>
constexpr Vec<Array> leaves_of(T const& t) {
  Vec<Array> r;
  visit(t, [&](auto const& leaf) { r.push_back(leaf); });
  return r;
}

}  // namespace detail

/// Stacked - N trees, leaf by leaf in one memory: a leaf [S...] of the parts is a leaf [N, S...] here. With N = dyn it
/// is what vmap of Arrays gives.
///
/// Copies are shallow, as those of tensors: they view the same memory, and `set` changes the part in all of them.
///
/// Errors    "stacked: leaves must be Tensors of static shapes" at compile time; "stacked: part 3 of 3"; "stacked: the
///           member is none of the fields"
template <class Tree, std::size_t N>
struct Stacked {
  using part_type = Tree;
  using leaves_type = decltype(detail::stacked_leaves<N>(detail::leaf_types<Tree>{}));
  static constexpr std::size_t count = N;

  leaves_type leaves;

  /// N, or what it was found to be when the program ran.
  constexpr std::size_t size() const {
    if constexpr (N != dyn) return N;
    else return empty() ? 0 : static_cast<std::size_t>(detail::leaves_of(leaves)[0].shape()[0]);
  }
  bool empty() const {
    bool none = false;
    visit(leaves, [&](auto const& leaf) { none = none || leaf.empty(); });
    return none;
  }
  /// allocate - memory for the leaves that have none.
  void allocate() {
    visit(leaves, [](auto& leaf) {
      using Leaf = std::remove_cvref_t<decltype(leaf)>;
      if (leaf.empty()) leaf = Leaf::uninitialized();
    });
  }

  /// s[i] - part i: a tree that views the memory of this one; a tree without memory if there is none. Constant, so
  /// that `s[i].weight = w`, which would change the view alone, does not compile: its numbers can be written, and
  /// `set` replaces a part.
  Tree const operator[](index_t i) const {
    if (auto const n = static_cast<index_t>(size()); i < 0 || i >= n)
      raise("stacked: part ", Position{i}, " of ", n);
    if (empty()) return Tree{};
    Vec<Array> const all = detail::leaves_of(leaves);
    std::size_t k = 0;
    return detail::filled(Tree{}, [&] { return detail::at_first<detail::lazily<Tree>>(all[k++], i); });
  }
  /// s[&Net::weight] - what all parts have for one member, a Tensor or a tree, stacked in the same way: a view of this
  /// memory, in programs too.
  template <class M, class Owner>
    requires std::is_base_of_v<Owner, Tree>
  constexpr auto operator[](M Owner::* member) const {
    Tree const part{};
    void const* first = nullptr;
    visit(part.*member, [&](auto const& leaf) { first = first == nullptr ? &leaf : first; });
    std::size_t i = 0, at = 0;
    bool found = false;
    visit(part, [&](auto const& leaf) {
      void const* const here = &leaf;
      if (here == first) at = i, found = true;
      ++i;
    });
    if (!found) raise("stacked: the member is none of the fields");
    Vec<Array> const all = detail::leaves_of(leaves);
    return detail::filled(typename detail::stacked_type<M, N>::type{}, [&] { return all[at++]; });
  }
  /// set - copies a tree into part i.
  void set(index_t i, Tree const& tree) {
    if constexpr (N != dyn) allocate();
    Vec<Array> const from = detail::leaves_of(tree), to = detail::leaves_of((*this)[i]);
    for (std::size_t k = 0; k < to.size(); ++k)
      if (from[k].bytes() != to[k].bytes()) detail::copy_values(from[k], to[k]);
  }

  /// The leaves "*.weight", ... as they are.
  template <class F, class Path>
  constexpr void visit_named(F const& f, Path const& path) const {
    named(*this, f, path);
  }
  template <class F, class Path>
  constexpr void visit_named(F const& f, Path const& path) {
    named(*this, f, path);
  }
  /// The leaves of each part, "0.weight", ...
  template <class F>
  void visit_state(F const& f, std::string const& path) const {
    for (std::size_t i = 0; i < size(); ++i) {
      Tree const part = (*this)[static_cast<index_t>(i)];
      dfdx::visit_state(part, f, detail::path_below(path, i));
    }
  }
  template <class F>
  void visit_state(F const& f, std::string const& path) {
    if constexpr (N != dyn) allocate();
    for (std::size_t i = 0; i < size(); ++i) {
      Tree part = (*this)[static_cast<index_t>(i)];
      dfdx::visit_state(part, f, detail::path_below(path, i));
    }
  }

 private:
  template <class Self, class F, class Path>
  static constexpr void named(Self& self, F const& f, Path const& path) {
    Vec<Path> names;
    Tree const part{};
    detail::visit_paths<detail::SameLeaves>(
        part, [&](Path const& name, auto const&) { names.push_back(name); }, detail::path_below(path, "*"));
    std::size_t k = 0;
    visit(self.leaves, [&](auto& leaf) { f(names[k++], leaf); });
  }
};

namespace detail {

// Whether a tree has no leaves but Arrays, which any number of axes fits.
template <class T>
constexpr bool is_of_arrays() {
  if constexpr (leaf<T>) return !typed<T>;
  else if constexpr (!has_fields<T>) return false;
  else
    return boost::hana::unpack(boost::hana::accessors<T>(), []<class... A>(A...) {
      return (is_of_arrays<std::remove_cvref_t<decltype(boost::hana::second(std::declval<A const&>())(
                  std::declval<T const&>()))>>() &&
              ...);
    });
}
template <class T>
concept of_arrays = is_of_arrays<T>();

template <of_arrays T, std::size_t N>
struct stacked_type<T, N> {
  using type = T;
};
template <class T, std::size_t... D, std::size_t N>
struct stacked_type<Tensor<T, D...>, N> {
  using type = Tensor<T, N, D...>;
};
template <std::size_t N>
struct stacked_type<Array, N> {
  using type = Array;
};
template <class... T, std::size_t N>
struct stacked_type<std::tuple<T...>, N> {
  using type = std::tuple<typename stacked_type<T, N>::type...>;
};
template <class A, class B, std::size_t N>
struct stacked_type<std::pair<A, B>, N> {
  using type = std::pair<typename stacked_type<A, N>::type, typename stacked_type<B, N>::type>;
};
template <class T, std::size_t M, std::size_t N>
struct stacked_type<std::array<T, M>, N> {
  using type = std::array<typename stacked_type<T, N>::type, M>;
};

template <class T>
struct part_type {
  using type = typename T::part_type;
};
template <of_arrays T>
struct part_type<T> {
  using type = T;
};
template <class T, std::size_t N, std::size_t... D>
struct part_type<Tensor<T, N, D...>> {
  using type = Tensor<T, D...>;
};
template <>
struct part_type<Array> {
  using type = Array;
};
template <class... T>
struct part_type<std::tuple<T...>> {
  using type = std::tuple<typename part_type<T>::type...>;
};
template <class A, class B>
struct part_type<std::pair<A, B>> {
  using type = std::pair<typename part_type<A>::type, typename part_type<B>::type>;
};
template <class T, std::size_t M>
struct part_type<std::array<T, M>> {
  using type = std::array<typename part_type<T>::type, M>;
};

}  // namespace detail

/// stacked_t, part_t - a tree with a first axis of extent N for each leaf, and one without the first axis.
template <class T, std::size_t N>
using stacked_t = typename detail::stacked_type<T, N>::type;
template <class T>
using part_t = typename detail::part_type<T>::type;

}  // namespace dfdx
