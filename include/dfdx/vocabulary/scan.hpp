// SPDX-License-Identifier: BSL-1.0
// scan: a loop with a carry over the first axis of its arguments. In memory it is a loop; recorded it is a region of
// the graph, so that neither the program nor the time to compile it grows with the number of iterations.
#pragma once

#include <vector>

#include <dfdx/ops/region.hpp>
#include <dfdx/value/stacked.hpp>
#include <dfdx/vocabulary/apply.hpp>
#include <dfdx/vocabulary/create.hpp>
#include <dfdx/vocabulary/join.hpp>

namespace dfdx {

/// Order - the direction of a scan: from the first position to the last, or back.
enum class Order { forward, backward };

namespace detail {

// What f returns in a scan: the next carry, or a pair of it and what is stacked.
template <class C, class R>
struct ScanResult {
  using Next = R;
  using Stack = std::tuple<>;
  static constexpr bool stacks = false;
};
template <class C, class N, class Y>
  requires(!std::is_same_v<C, std::pair<N, Y>> && (std::is_same_v<C, N> || leaf<C>))
struct ScanResult<C, std::pair<N, Y>> {
  using Next = N;
  using Stack = Y;
  static constexpr bool stacks = true;
};

// The leaves of a tree as its type knows them; one that is no Tensor has no shape.
template <class T>
constexpr Vec<Meta> static_metas() {
  Vec<Meta> r;
  T const t{};
  visit(t, [&](auto const& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (typed<Leaf>) r.push_back(Leaf::static_meta);
    else r.push_back(refuse(nullptr));
  });
  return r;
}

// What a scan may go over.
template <class X>
struct ScanOver {
  static constexpr Meta infer(Text* why) {
    Vec<Meta> const all = static_metas<X>();
    if (all.empty()) return refuse(why, "scan: nothing to go over");
    index_t n = extent::unknown;
    for (Meta const& m : all) {
      if (!m.valid()) continue;
      if (m.shape.rank == 0) return refuse(why, "scan: an axis to go over is required, got ", m.shape);
      if (n >= 0 && m.shape[0] >= 0 && m.shape[0] != n)
        return refuse(why, "scan: axis 0 of ", m.shape, " must have the extent of the loop, ", n);
      n = m.shape[0] >= 0 ? m.shape[0] : n;
    }
    return Meta{};
  }
};

// Of which types the next carry and what is stacked may be.
template <class C, class Result>
struct ScanNext {
  using Next = typename Result::Next;
  static constexpr Meta infer(Text* why) {
    if constexpr (!tree<typename Result::Stack>)
      return refuse(why, "scan: what is stacked must be a Tensor or a tree of Tensors");
    if constexpr (std::is_same_v<C, Next>) return Meta{};
    else if constexpr (tree<Next>) {
      Vec<Meta> const was = static_metas<C>(), is = static_metas<Next>();
      for (std::size_t k = 0; was.size() == is.size() && k < is.size(); ++k)
        if (was[k].valid() && is[k].valid() && !(was[k] == is[k])) return changed(why, was[k], is[k]);
    }
    return refuse(why,
                  "scan: the function must return the next carry, of the type of the first, or a pair of it "
                  "and a value to stack");
  }
  static constexpr Meta changed(Text* why, Meta const& was, Meta const& is) {
    return refuse(why, "scan: the carry becomes ", is.dtype, " ", is.shape, ", it was ", was.dtype, " ",
                  was.shape);
  }
};

template <class F, class C, class X>
using scan_result_t = std::remove_cvref_t<decltype(std::declval<F const&>()(
    std::declval<C const&>(), std::declval<part_t<X> const&>()))>;

// Whether the types of a scan fit; says so if not. The answer is void, or what stands for the result.
template <class F, class C, class X>
constexpr auto scan_refusal() {
  if constexpr (refused<typename decltype(result_type<ScanOver<X>>())::type>)
    return std::type_identity<Refused>{};
  else {
    using R = ScanResult<C, scan_result_t<F, C, X>>;
    using Instead = std::conditional_t<R::stacks, std::pair<Refused, Refused>, Refused>;
    if constexpr (refused<scan_result_t<F, C, X>>) return std::type_identity<Instead>{};
    else if constexpr (refused<typename decltype(result_type<ScanNext<C, R>>())::type>)
      return std::type_identity<Instead>{};
    else return std::type_identity<void>{};
  }
}

// The extent of the loop: that of the first axis of every leaf.
template <class X>
constexpr index_t scan_count(X const& xs) {
  index_t n = -1;
  bool any = false;
  visit(xs, [&](auto const& leaf) {
    if (leaf.ndim() == 0) raise("scan: an axis to go over is required, got ", leaf.shape());
    if (any && leaf.shape()[0] != n)
      raise("scan: axis 0 of ", leaf.shape(), " must have the extent of the loop, ", n);
    n = leaf.shape()[0];
    any = true;
  });
  if (!any) raise("scan: nothing to go over");
  return n;
}

// The extent as the types know it, or dyn.
template <class X>
inline constexpr std::size_t static_scan_count = [] {
  std::size_t n = dyn;
  for (Meta const& m : static_metas<X>())
    if (m.shape.rank > 0 && m.shape[0] >= 0) n = static_cast<std::size_t>(m.shape[0]);
  return n;
}();

// Where a loop is recorded, null if it is not. One over literals alone belongs where what its body reads does, which
// only a round of it tells.
template <class F, class C, class X>
constexpr Graph* graph_of_loop(F const& f, C const& init, X const& xs) {
  Graph* g = graph_of(init, xs);
  if (is_literal(g) && scan_count(xs) > 0) {
    Vec<Array> const all = leaves_of(xs);
    std::size_t k = 0;
    auto const y = f(init, filled(part_t<X>{}, [&] { return at_position(lazy<sizeof(F)>(all[k++]), 0); }));
    if constexpr (ScanResult<C, scan_result_t<F, C, X>>::stacks) meet(g, graph_of(y.first, y.second));
    else meet(g, graph_of(y));
  }
  return g;
}

// A tree of init's type whose leaves are next(). It is assigned, for g++ 12 destroys, in a constant expression, what it
// has copied an array with once too often, and literals in it would be gone.
template <class C, class Next>
constexpr C filled_as(C const& init, Next const& next) {
  if constexpr (std::is_default_constructible_v<C> && requires(C& t) { t = init; }) {
    C t{};
    t = init;
    fill_leaves(t, next);
    return t;
  } else {
    return filled(init, next);
  }
}

// While it lives, loops that are recorded are inside of a region.
class Inside {
 public:
  constexpr Inside(Graph& g, int region) : graph_(g), around_(std::exchange(g.inside, region)) {}
  Inside(Inside const&) = delete;
  Inside& operator=(Inside const&) = delete;
  constexpr ~Inside() { graph_.inside = around_; }

 private:
  Graph& graph_;
  int around_;
};

template <class F, class C, class X>
constexpr auto record_scan(Graph& g, F const& f, C const& init, X const& xs, Order order) {
  using R = ScanResult<C, scan_result_t<F, C, X>>;
  index_t const count = scan_count(xs);
  if (count < 0) raise("scan: the number of iterations must be known when the program is compiled");
  int const region = g.open(g.inside, count, order == Order::backward);
  Vec<Sym> carries, slices;
  auto const enter = [&](auto const& leaf) {
    require_recorded("scan", leaf.recorded());
    return in_graph(&g, "scan", leaf.sym());
  };
  visit(init, [&](auto const& leaf) { carries.push_back(carry_in(region, enter(leaf))); });
  visit(xs, [&](auto const& leaf) { slices.push_back(each_of(region, enter(leaf))); });
  std::size_t c = 0, x = 0;
  auto const result = [&] {
    Inside const body(g, region);
    return f(filled_as(init, [&] { return Array(carries[c++]); }),
             filled(part_t<X>{}, [&] { return Array(slices[x++]); }));
  }();

  Vec<Sym> next, stacked;
  auto const put_next = [&](auto const& leaf) { next.push_back(enter(leaf)); };
  if constexpr (R::stacks) {
    visit(result.first, put_next);
    visit(result.second, [&](auto const& leaf) { stacked.push_back(enter(leaf)); });
  } else {
    visit(result, put_next);
  }
  for (Vec<Sym> const* all : {&next, &stacked})
    for (Sym const& s : *all)
      if (!g.encloses(g[s.id].region, region)) raise("scan: a value of a loop is used outside of it");
  for (std::size_t k = 0; k < next.size(); ++k) next[k] = last_of(region, carries[k], next[k]);
  for (Sym& s : stacked) s = stack_of(region, s);
  std::size_t n = 0, y = 0;
  C last = filled_as(init, [&] { return Array(next[n++]); });
  if constexpr (R::stacks)
    return std::pair(std::move(last), filled(stacked_t<typename R::Stack, static_scan_count<X>>{},
                                             [&] { return Array(stacked[y++]); }));
  else return last;
}

template <class F, class C, class X>
auto run_scan(F const& f, C const& init, X const& xs, Order order) {
  using R = ScanResult<C, scan_result_t<F, C, X>>;
  using Stacked = stacked_t<typename R::Stack, static_scan_count<X>>;
  index_t const count = scan_count(xs);
  Vec<Array> const all = leaves_of(xs);
  Vec<Array> stacked;
  std::vector<std::vector<Array>> rows;
  C carry = init;
  for (index_t i = 0; i < count; ++i) {
    index_t const at = order == Order::forward ? i : count - 1 - i;
    std::size_t k = 0;
    auto const part = filled(part_t<X>{}, [&] { return at_position(lazy<sizeof(F)>(all[k++]), at); });
    if constexpr (R::stacks) {
      auto [next, y] = f(std::as_const(carry), part);
      carry = std::move(next);
      std::size_t m = 0;
      visit(y, [&](auto const& leaf) {
        if (i == 0) {
          stacked.push_back(Array(Meta{leaf.dtype(), with_first_axis(count, leaf.shape())}, leaf.device()));
          rows.emplace_back();
        }
        // What is on the tape is joined there in the end.
        if (leaf.requires_grad() && is_grad_enabled()) rows[m].resize(static_cast<std::size_t>(count));
        if (rows[m].empty()) copy_values(leaf, stacked[m].part(at));
        else rows[m][static_cast<std::size_t>(at)] = leaf;
        ++m;
      });
    } else {
      carry = f(std::as_const(carry), part);
    }
  }
  if constexpr (R::stacks) {
    Stacked const none{};
    if (count == 0)  // nothing has said what is stacked, but for its type
      visit(none, [&](auto const& leaf) {
        Meta m = leaf.meta();
        if (m.shape.rank > 0) m.shape[0] = 0;
        if (!typed<decltype(leaf)> || !m.shape.is_static())
          raise("scan: no iterations, and nothing known of what is stacked but ", m.shape);
        stacked.push_back(Array(m));
      });
    for (std::size_t m = 0; m < rows.size(); ++m) {
      if (rows[m].empty()) continue;
      // The first rows may have been made before a derivative flowed, and are in memory.
      for (std::size_t i = 0; i < rows[m].size(); ++i)
        if (rows[m][i].empty()) rows[m][i] = stacked[m].part(static_cast<index_t>(i));
      stacked[m] = stack(std::span<Array const>(rows[m]), 0);
    }
    std::size_t m = 0;
    return std::pair(std::move(carry), filled(Stacked{}, [&] { return stacked[m++]; }));
  } else {
    return carry;
  }
}

}  // namespace detail

/// scan(f, init, xs) - runs f(carry, x) for the parts x of xs along the first axis of its leaves; the first carry is
/// init, later f's result is. If f returns a pair, of the next carry and a value, the result is the pair of the last
/// carry and the values stacked; else the last carry. Differentiable in all it reads, to any order.
/// scan<N>(f, init) - N rounds of f(carry).
///
/// Math      c_0 = init, (c_{i + 1}, y_i) = f(c_i, x_i); the result is (c_N, y)
/// Shapes    xs: leaves [N, S...], or Stacked<Tree, N>; y: leaves [S...] -> [N, S...], of a struct Stacked<Struct, N>:
///           all[&Struct::field] is that field of all
/// Dtypes    any; the carry keeps its own
/// Cost      recorded: one copy of f, whatever N. Compiled, a loop of some hundred operations on numbers (those of
///           short vectors and small products counted one by one) is one kernel that has them in registers, and so is
///           its gradient
/// Errors    "scan: axis 0 of [3, 2] must have the extent of the loop, 4"; "scan: the carry becomes f32 [3], it was
///           f32 [2]"; "scan: the number of iterations must be known when the program is compiled"
/// Source    jax.lax.scan
template <class F, tree C, tree X>
constexpr auto scan(F const& f, C const& init, X const& xs, Order order = Order::forward) {
  if constexpr (refused<C, X>) return Refused{};
  else if constexpr (!std::is_void_v<typename decltype(detail::scan_refusal<F, C, X>())::type>)
    return typename decltype(detail::scan_refusal<F, C, X>())::type{};
  else {
    if (Graph* const g = detail::graph_of_loop(f, init, xs))
      return detail::record_scan(*g, f, init, xs, order);
    return detail::run_scan(f, init, xs, order);
  }
}
/// The same from a number on, which has the dtype of the array beside it.
template <class F, number N, operand X>
constexpr auto scan(F const& f, N init, X const& xs, Order order = Order::forward) {
  Meta const first{xs.dtype(), {}};
  if constexpr (typed<X>)
    return scan(f,
                detail::wrap<Tensor<typename X::value_type>>(detail::full_of<Array>(xs, first, init, "scan")),
                xs, order);
  else return scan(f, detail::full_of<Array>(xs, first, init, "scan"), xs, order);
}
template <std::size_t N, class F, tree C>
constexpr auto scan(F const& f, C const& init) {
  constexpr bool takes_carry = std::is_invocable_v<F const&, C const&>;
  static_assert(
      takes_carry || refused<C>,
      "scan<N>(f, init): a function of the carry alone required; scan(f, init, arange<float, N>()) gives "
      "it the number of the round too");
  if constexpr (refused<C> || !takes_carry) return Refused{};
  else return scan([&](auto const& carry, auto const&) { return f(carry); }, init, zeros<bool, N>());
}

}  // namespace dfdx
