// SPDX-License-Identifier: BSL-1.0
// The last rewriting of a graph before it is fused: every output, and every operand of a kernel that reads memory,
// gets memory to stand in. Copies are inserted where a value is only an input, a constant or a view.
#pragma once

#include <dfdx/graph/joins.hpp>
#include <dfdx/ops/join.hpp>
#include <dfdx/ops/onto.hpp>
#include <dfdx/ops/region.hpp>
#include <dfdx/ops/slide.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::graph {

namespace detail {

/// LoopMemory - what goes into a region or leaves it is computed where it will lie: the first value of a carry and
/// what it becomes, and what is stacked. Other values are copied there.
class LoopMemory {
 public:
  constexpr explicit LoopMemory(Graph const& g) : g_(g) {
    if (g.regions.empty()) return;
    uses_.assign(g.nodes.size(), 0);
    becomes_.assign(g.nodes.size(), 0);
    wanted_.assign(g.nodes.size(), -1);
    also_.assign(g.nodes.size(), -1);
    made_.assign(g.nodes.size(), -1);
    for (Node const& n : g.nodes) {
      for (int k = 0; k < n.op->arity; ++k) ++uses_[n.in[k]];
      if (n.op->code == Code::last) ++becomes_[n.in[1]];
    }
    for (int o : g.outputs) ++uses_[o];
    Vec<char> taken(g.nodes.size(), 0);
    for (int id = 0; id < g.size(); ++id) {
      int const x = g[id].op->code == Code::last ? g[id].in[1] : g[id].in[0];
      if (!is_boundary(g[id]) || stays(g[id], g[x], x, taken[x] != 0)) {
        if (g[id].op->code == Code::last) taken[x] = 1;
        continue;
      }
      made_[id] = due;
      if (g[x].region != region_of_copy(g[id])) continue;
      also_[id] = wanted_[x];
      wanted_[x] = id;
    }
  }

  /// Makes the copies of a value that stay in its region; `to` is the value in the new graph. They come right after
  /// it, so that all of a region is there before what it leaves behind is read.
  constexpr void copy_early(Graph& out, int id, int to) {
    if (wanted_.empty()) return;
    for (int user = wanted_[id]; user >= 0; user = also_[user]) made_[user] = copy(out, user, to);
  }
  /// The operand of a node on the edge of a region, or `to` where nothing was copied.
  constexpr int operand(Graph& out, int id, int k, int to) {
    if (made_.empty() || made_[id] == -1 || (g_[id].op->code == Code::last && k == 0)) return to;
    return made_[id] == due ? copy(out, id, to) : made_[id];
  }

 private:
  static constexpr int due = -2;
  static constexpr bool is_boundary(Node const& n) { return n.op->code == Code::carry || is_exit(n); }
  constexpr int region_of_copy(Node const& n) const {
    auto const own = static_cast<int>(n.attrs.i[0]);
    return n.op->code == Code::carry ? g_.regions[own].parent : own;
  }

  constexpr bool stays(Node const& n, Node const& value, int x, bool taken) const {
    if (value.region != region_of_copy(n)) return false;
    if (n.op->code == Code::carry) return is_computed(value) && uses_[x] == 1;
    if (n.op->code == Code::last) return is_computed(value) && !taken;
    return is_computed(value) || value.op->code == Code::carry || has_own_memory(value);
  }
  // A stack of an inner region, unless it lies in the ring of a carry.
  constexpr bool has_own_memory(Node const& n) const {
    if (n.op->code != Code::stack) return false;
    Node const& of = g_[n.in[0]];
    bool const in_ring = of.op->code == Code::carry || becomes_[n.in[0]] != 0;
    return !in_ring && (is_computed(of) || has_own_memory(of));
  }
  static constexpr bool is_computed(Node const& n) {
    return n.op->arity > 0 && !is_view(n) && !is_exit(n) && n.op->code != Code::carry;
  }
  constexpr int copy(Graph& out, int id, int to) const {
    int const c = bind<op::copy>(Attrs{}, Sym{&out, to}).id;
    out[c].region = region_of_copy(g_[id]);
    return c;
  }

  Graph const& g_;
  Vec<int> uses_, becomes_;
  // For each value the first node that wants a copy of it, for that node the next; and its copy.
  Vec<int> wanted_, also_, made_;
};

/// remaining_window - of an output that is the input whose memory it takes over, a window, moved on: which operand of
/// the concat is what remains of the window, 0 or 1; -1 for other outputs.
constexpr int remaining_window(Graph const& g, Aliases const& aliases, std::size_t k) {
  Node const& joined = g[g.outputs[k]];
  if (k >= aliases.size() || aliases[k] < 0 || !is_op<op::concat>(*joined.op) || joined.region >= 0)
    return -1;
  auto const axis = static_cast<int>(joined.attrs.i[0]);
  for (int i = 0; i < 2; ++i) {
    Node const& rest = g[joined.in[i]];
    if (rest.op->code != Code::slice || op::slice::axis(rest.attrs) != axis ||
        op::slice::step(rest.attrs) != 1)
      continue;
    Node const& window = g[rest.in[0]];
    index_t const end = i == 0 ? window.meta.shape[axis] : rest.attrs.i[2];
    if (window.op->code == Code::input && window.attrs.i[0] == aliases[k] && window.meta == joined.meta &&
        rest.attrs.i[1] + rest.attrs.i[2] == end)
      return i;
  }
  return -1;
}

// A sum or product in 16 bits, to be made in f32 and rounded once: it may add up in memory, and in bf16 256 + 1 is 256.
constexpr bool is_narrow_sum(Node const& n) {
  if (!is_floating(n.meta.dtype) || size_of(n.meta.dtype) != 2) return false;
  if (is_op<op::scatter>(*n.op) || is_op<op::scatter_onto>(*n.op))
    return n.attrs.i[1] == 0;  // else nothing is added
  return n.op->code == Code::reduce_sum || n.op->code == Code::reduce_prod || is_op<op::rows_add>(*n.op) ||
         is_op<op::rows_onto>(*n.op);
}
constexpr int push_widened(Graph& out, Node n, int const* in) {
  auto const cast = [&](int x, DType to) {
    int const c = cast_to(Sym{&out, x}, to).id;
    out[c].region = n.region;
    return c;
  };
  DType const narrow = n.meta.dtype;
  n.meta.dtype = DType::f32;
  for (int k = 0; k < n.op->arity; ++k)
    n.in[k] = k != 1 ? cast(in[k], n.meta.dtype) : in[k];  // but the index, if there is one
  return cast(out.push(n).id, narrow);
}

// A node with other operands. Of those before it, so that its region is theirs.
constexpr int push(Graph& out, Node const& n, int const* in) {
  if (is_narrow_sum(n)) return push_widened(out, n, in);
  if (out.regions.empty()) {
    int const id = out.push(n).id;
    for (int k = 0; k < n.op->arity; ++k) out[id].in[k] = in[k];
    return id;
  }
  Node moved = n;
  for (int k = 0; k < n.op->arity; ++k) moved.in[k] = in[k];
  return out.push(moved).id;
}

/// TakenMemory - which elements of values results have taken to lie in.
class TakenMemory {
 public:
  constexpr explicit TakenMemory(std::size_t values) : any_(values) {}

  /// take - those of `owner` that a result of this shape is seen as; with `whole` all. False if one is taken.
  constexpr bool take(int owner, Access const& seen, Shape const& shape, bool whole) {
    Span const mine = whole ? Span{owner, 0, -1} : span_of(owner, seen, shape);
    if (any_[owner] != 0)
      for (Span const& s : spans_)
        if (s.owner == owner &&
            (is_whole(s) || is_whole(mine) || (s.first <= mine.last && mine.first <= s.last)))
          return false;
    any_[owner] = 1;
    spans_.push_back(mine);
    return true;
  }

 private:
  struct Span {
    int owner = -1;
    index_t first = 0, last = -1;
  };
  static constexpr bool is_whole(Span const& s) { return s.last < s.first; }
  // From the first to the last; all where extents are symbolic or places move in a loop.
  static constexpr Span span_of(int owner, Access const& a, Shape const& shape) {
    Span all{owner, 0, -1}, r{owner, a.offset, a.offset};
    if (!extent::is_static(a.offset) || a.turn >= 0) return all;
    for (int d = 0; d < shape.rank; ++d) {
      if (!extent::is_static(shape[d]) || shape[d] == 0 || !extent::is_static(a.strides[d])) return all;
      r.last += (shape[d] - 1) * a.strides[d];
    }
    return r;
  }

  Vec<char> any_;
  Vec<Span> spans_;
};

}  // namespace detail

/// prepare - the same graph with copies where memory is needed, and with its sums in f32 at least.
constexpr Graph prepare(Graph const& g, Aliases const& aliases) {
  Vec<Turn> turns;
  Vec<Access> const access = accesses(g, turns);
  Vec<int> moved(g.nodes.size(), -1), copied(g.nodes.size(), -1), reshaped(g.nodes.size(), -1),
      numbers(g.nodes.size(), -1);
  Node const* const nodes = g.nodes.data();
  Access const* const accessed = access.data();
  int* const to = moved.data();
  Graph out;
  out.nodes.reserve(g.nodes.size() + g.nodes.size() / 8);
  out.take_frame(g);
  detail::LoopMemory loops(g);
  detail::Joins const joins(g, accessed, aliases);
  Vec<signed char> slides(g.nodes.size(), -1);
  for (std::size_t k = 0; k < aliases.size(); ++k)
    slides[g.outputs[k]] = static_cast<signed char>(detail::remaining_window(g, aliases, k));
  auto const copy_of = [&](int id) {
    int& c = copied[id];
    if (c < 0) c = bind<op::copy>(Attrs{}, Sym{&out, to[id]}).id;
    return c;
  };
  // A number that stands for many elements is one in memory.
  auto const number_of = [&](int id) {
    int& c = numbers[id];
    if (c >= 0) return c;
    Meta const &all = nodes[id].meta, one{all.dtype, op::reduced_shape(all.shape, -1)};
    double const value = nodes[accessed[id].root].attrs.f[0];
    Sym const number = bind<op::copy>(Attrs{}, full_as(Sym{&out, to[id]}, one, value));
    return c = out.push(Node{&info<op::expand>, Attrs{}, all, {number.id}}).id;
  };
  // Whose memory a value is in: that of the first of two reshapes that share their copy.
  Vec<int> copied_by(g.nodes.size(), -1);
  auto const owner_of = [&](int id) {
    int const root = accessed[id].root;
    return copied_by[root] >= 0 ? copied_by[root] : root;
  };
  auto const code_under = [&](int id) { return nodes[accessed[id].root].op->code; };
  for (int id = 0, size = g.size(); id < size; ++id) {
    Node const& n = nodes[id];
    int in[max_arity] = {-1, -1, -1, -1, -1};
    bool const opaque = n.op->code == Code::opaque && !joins.joined(id);
    bool const reads_memory = n.op->code == Code::each || opaque || n.op->code == Code::matmul;
    // A loop knows positions along axes of its own; parts of them, and axes that were merged, are read from memory.
    bool const is_part = is_view(n) && !accessed[id].aligned && accessed[n.in[0]].aligned;
    for (int k = 0; k < n.op->arity; ++k) {
      int const x = n.in[k];
      Code const under = code_under(x);
      if (opaque && under == Code::constant && slides[id] < 0) in[k] = number_of(x);
      else if ((reads_memory && under == Code::constant) ||
               ((reads_memory || is_part) && under == Code::iota))
        in[k] = copy_of(x);
      else in[k] = g.regions.empty() ? to[x] : loops.operand(out, id, k, to[x]);
    }
    if (n.op->code == Code::reshape && accessed[id].root == id) {
      // Two reshapes of one value that both have to copy it: one copies, the other is a view of that.
      int& first = reshaped[n.in[0]];
      if (first < 0) first = id;
      else in[0] = to[first], copied_by[id] = first;
    }
    if (int const rest = slides[id]; rest >= 0) {
      int const fresh = n.in[1 - rest];
      int x = in[1 - rest];
      if (x == to[fresh] && !is_contiguous(nodes[fresh].meta.shape, accessed[fresh].strides))
        x = bind<op::copy>(Attrs{}, Sym{&out, x}).id;
      Node const slide{
          &info<op::slide>, Attrs{{n.attrs.i[0], rest}}, n.meta, {to[nodes[n.in[rest]].in[0]], x}};
      to[id] = out.push(slide).id;
    } else if (joins.joined(id)) {
      Node both{&info<op::side_by_side>, n.attrs, n.meta, {in[0], in[1]}};
      for (int k = 0; k < 2; ++k) {
        if (!joins.copies(id, k)) continue;
        both.in[k] = bind<op::copy>(Attrs{}, Sym{&out, in[k]}).id;
        out[both.in[k]].region = n.region;
      }
      to[id] = out.push(both).id;
    } else {
      to[id] = detail::push(out, n, in);
    }
    loops.copy_early(out, id, to[id]);
  }
  // No two results have an element in common, but they may be parts of one value. Those that take over memory choose
  // first, then the others in their order; who finds it taken gets a copy.
  detail::TakenMemory taken(g.nodes.size());
  Vec<char> keeps(g.outputs.size());
  auto const is_aliased = [&](std::size_t k) { return k < aliases.size() && aliases[k] >= 0; };
  auto const has_memory = [&](int id) {
    Code const under = code_under(id);
    return under != Code::input && under != Code::constant && under != Code::iota && !accessed[id].overlaps;
  };
  for (bool const aliased : {true, false})
    for (std::size_t k = 0; k < g.outputs.size(); ++k) {
      int const id = g.outputs[k];
      if (is_aliased(k) != aliased || !has_memory(id)) continue;
      // What is stacked may be made where the result is wanted (graph/order.hpp).
      bool const stacked = nodes[id].op->code == Code::stack && nodes[id].region < 0;
      if (aliased && (is_view(nodes[id]) || (is_exit(nodes[id]) && !stacked))) continue;
      int const owner = owner_of(id);
      bool const whole = aliased || owner != accessed[id].root;
      keeps[k] = taken.take(owner, accessed[id], nodes[id].meta.shape, whole);
    }
  for (std::size_t k = 0; k < g.outputs.size(); ++k) {
    int const id = g.outputs[k];
    out.outputs.push_back(keeps[k] != 0 ? to[id] : bind<op::copy>(Attrs{}, Sym{&out, to[id]}).id);
  }
  return out;
}

}  // namespace dfdx::graph
