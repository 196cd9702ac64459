// SPDX-License-Identifier: BSL-1.0
// vmap: a function of one example as a function of many. What was recorded for one is batched as a graph
// (graph/batch.hpp).
#pragma once

#include <limits>

#include <dfdx/graph/batch.hpp>
#include <dfdx/program/transforms.hpp>
#include <dfdx/vocabulary/parts.hpp>
#include <dfdx/vocabulary/scan.hpp>

namespace dfdx {

/// unmapped - in in_axes: this argument is the same for all examples.
inline constexpr int unmapped = std::numeric_limits<int>::min();

/// in_axes<0, unmapped, -1> - for each argument the axis along which its examples lie. Trees have theirs in front.
template <int... Axis>
struct InAxes {};
template <int... Axis>
inline constexpr InAxes<Axis...> in_axes{};

/// out_axes<1> - for each result (one, or the elements of a tuple or pair) where its examples go.
template <int... Axis>
struct OutAxes {};
template <int... Axis>
inline constexpr OutAxes<Axis...> out_axes{};

namespace detail {

// The axis of argument K: the first where none was named.
template <std::size_t K, int... Axis>
constexpr int axis_of_argument(std::integer_sequence<int, Axis...>) {
  if constexpr (sizeof...(Axis) == 0) return 0;
  else {
    constexpr int axes[] = {Axis...};
    return sizeof...(Axis) == 1 ? axes[0] : K < sizeof...(Axis) ? axes[K] : 0;
  }
}

// Looks at the mapped axis of one argument; n is the extent that others have, if known.
template <class A>
constexpr Meta mapped_extent(int axis, index_t& n, Text* why) {
  if (axis == unmapped) return Meta{};
  for (Meta const& m : static_metas<A>()) {
    if (!m.valid()) continue;
    int const at = axis < 0 ? axis + m.shape.rank : axis;
    if (at < 0 || at >= m.shape.rank) return refuse(why, "vmap: axis ", axis, " out of range for ", m.shape);
    index_t const here = m.shape[at];
    if (n >= 0 && here >= 0 && here != n)
      return refuse(why, "vmap: axis ", axis, " of ", m.shape, " must have the extent mapped over, ", n);
    n = here >= 0 ? here : n;
  }
  return Meta{};
}

template <class Axes, class... A>
struct VmapOver;
template <int... Axis, class... A>
struct VmapOver<InAxes<Axis...>, A...> {
  using List = std::integer_sequence<int, Axis...>;
  template <std::size_t K>
  static constexpr int axis = axis_of_argument<K>(List{});

  static constexpr Meta infer(Text* why) {
    index_t n = extent::unknown;
    return look(why, n);
  }
  static constexpr index_t extent_known() {
    index_t n = extent::unknown;
    look(nullptr, n);
    return n;
  }

 private:
  static constexpr Meta look(Text* why, index_t& n) {
    if (sizeof...(Axis) > 1 && sizeof...(Axis) != sizeof...(A))
      return refuse(why, "vmap: in_axes names ", static_cast<index_t>(sizeof...(Axis)), " axes for ",
                    static_cast<index_t>(sizeof...(A)), " arguments");
    Meta r{};
    bool mapped = false;
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      ((r.valid() ? static_cast<void>(r = mapped_extent<A>(axis<K>, n, why)) : static_cast<void>(0),
        mapped = mapped || axis<K> != unmapped),
       ...);
    }(std::index_sequence_for<A...>{});
    return r.valid() && !mapped ? refuse(why, "vmap: no argument is mapped over") : r;
  }
};

// The tree with the mapped axis in front.
template <int Axis, class T>
constexpr auto mapped_in_front(T const& t) {
  if constexpr (Axis == 0 || Axis == unmapped) return t;
  else {
    static_assert(leaf<T>, "vmap: the examples of a tree lie along the first axis");
    if constexpr (typed<T>) return movedim<Axis, 0>(t);
    else return movedim(t, Axis, 0);
  }
}
template <int Axis, class T>
constexpr auto moved_from_front(T const& t) {
  if constexpr (Axis == 0) return t;
  else if constexpr (refused<T>) return t;
  else {
    static_assert(leaf<T>, "vmap: the examples of a tree lie along the first axis");
    if constexpr (typed<T>) return movedim<0, Axis>(t);
    else return movedim(t, 0, Axis);
  }
}
template <int... Axis, class T>
constexpr auto placed(OutAxes<Axis...>, T const& t) {
  if constexpr ((... && (Axis == 0))) return t;
  else if constexpr (sizeof...(Axis) == 1) return moved_from_front<Axis...>(t);
  else {
    static_assert(is_std_tuple<T>, "vmap: several out_axes need a function that returns a tuple or a pair");
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr int axes[] = {Axis...};
      if constexpr (requires { t.first; })
        return std::pair(moved_from_front<axes[0]>(t.first), moved_from_front<axes[1]>(t.second));
      else return std::tuple(moved_from_front<axes[K]>(std::get<K>(t))...);
    }(std::make_index_sequence<sizeof...(Axis)>{});
  }
}

// One example of an argument: a tree without the first axis.
template <bool Mapped, class T>
constexpr auto one_example(graph::Batch<>& batch, T const& all) {
  if constexpr (!Mapped) return all;
  else {
    Vec<Sym> ones;
    visit(all, [&](auto const& leaf) { ones.push_back(batch.one(leaf.sym())); });
    std::size_t k = 0;
    return filled(part_t<T>{}, [&] { return Array(ones[k++]); });
  }
}

}  // namespace detail
}  // namespace dfdx

namespace dfdx::inline DFDX_TARGET {

/// Vmap - what vmap(f) compiles.
template <class F, class In, class Out>
struct Vmap {
  template <class... A>
  static constexpr auto record(A const&... args) {
    using Over = detail::VmapOver<In, A...>;
    if constexpr (refused<typename decltype(detail::result_type<Over>())::type>) return Refused{};
    else return map<Over>(std::index_sequence_for<A...>{}, args...);
  }

 private:
  template <class Over, std::size_t... K, class... A>
  static constexpr auto map(std::index_sequence<K...>, A const&... args) {
    return with_mapped_in_front<Over>(std::index_sequence<K...>{},
                                      detail::mapped_in_front<Over::template axis<K>>(args)...);
  }
  template <class Over, std::size_t... K, class... A>
  static constexpr auto with_mapped_in_front(std::index_sequence<K...>, A const&... args) {
    constexpr index_t known = Over::extent_known();
    Graph* g = nullptr;
    index_t count = known;
    auto const look = [&](bool mapped, auto const& arg) {
      visit(arg, [&](auto const& leaf) {
        g = leaf.graph();
        if (!mapped) return;
        index_t const n = leaf.shape()[0];
        if (count < 0) count = n;
        if (n != count) g->requirements.push_back(SameExtent{"vmap", n, count});
      });
    };
    (look(Over::template axis<K> != unmapped, args), ...);
    graph::Batch<detail::lazily<A...>> batch(*g, count);
    auto const run = [&](auto const&... one) { return detail::record_call<F>(one...); };
    auto const y = std::apply(
        run, std::tuple{detail::one_example < Over::template axis<K> != unmapped > (batch, args)...});
    using Y = std::remove_cvref_t<decltype(y)>;
    if constexpr (refused<Y>) return y;
    else {
      Vec<Sym> ends;
      visit(y, [&](auto const& leaf) {
        if (!leaf.recorded()) raise("program: a result does not depend on the arguments");
        ends.push_back(leaf.sym());
      });
      Vec<Sym> const all = batch.all(ends);
      std::size_t k = 0;
      constexpr std::size_t n = known < 0 ? dyn : static_cast<std::size_t>(known);
      return detail::placed(Out{}, detail::filled(stacked_t<Y, n>{}, [&] { return Array(all[k++]); }));
    }
  }
};

/// vmap(f)(args...) - f, written for one example, for many: the examples lie along the first axis of each argument,
/// or as in_axes says; their results along the first axis of the results, or as out_axes says. Nests, and composes
/// with the other transforms: vmap(grad(f)) are the gradients of each example. Random draws of f are the same for
/// all examples unless it takes their keys as arguments.
///
/// Math      y[b] = f(x[b], w) for all b, with x mapped and w unmapped
/// Shapes    x: leaves [B, S...] -> y: leaves [B, R...], where f: [S...] -> [R...]
/// Cost      that of the same ops on larger operands; ops without a rule for it run in a loop over the examples
/// Errors    "vmap: axis 0 of [3, 2] must have the extent mapped over, 4"; "vmap: axis 2 out of range for [3, 2]";
///           "vmap: no argument is mapped over"
/// Source    jax.vmap
template <class F, int... I, int... O>
constexpr auto vmap(F const&, InAxes<I...> = {}, OutAxes<O...> = {}) {
  static_assert(detail::captures_nothing<F>,
                "vmap: a lambda or function object without captures required; pass values as arguments");
  return detail::transformed<F, Vmap<F, InAxes<I...>, OutAxes<O...>>, Refused>();
}

}  // namespace dfdx::inline DFDX_TARGET
