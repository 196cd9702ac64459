// SPDX-License-Identifier: BSL-1.0
// How a value is read through views: the memory a chain of reshape, permute, expand, slice and windows comes down to,
// and which axis of the view drives which axis of the value under it. One forward pass each; nothing is copied by
// either.
#pragma once

#include <dfdx/ops/views.hpp>

namespace dfdx::graph {

constexpr bool is_view(Node const& n) {
  Code const c = n.op->code;
  return c >= Code::reshape && c <= Code::each;
}

constexpr bool is_reduction(Node const& n) {
  return n.op->code >= Code::reduce_sum && n.op->code <= Code::reduce_min;
}
/// Whether the node has neither memory nor a kernel: kernels make its elements where they need them.
constexpr bool is_generated(Node const& n) {
  return n.op->code == Code::constant || n.op->code == Code::iota;
}

/// Turn - how a value moves through memory as a region goes through its iterations: at position p it lies
/// `(p + shift) mod wrap` times `step` elements further on (wrap 0 for no mod). `next` is another turn, of a region
/// around it, or -1: turns are kept in lists. With region -1 it is `shift` times `step` throughout: what an offset
/// cannot hold, one number of elements, when extents are symbolic.
struct Turn {
  int region = -1;
  index_t step = 0, shift = 0, wrap = 0;
  int next = -1;
  constexpr bool operator==(Turn const&) const = default;
};

/// add_turn - where a list holds a turn; appended if it is new.
constexpr int add_turn(Vec<Turn>& turns, Turn const& t) {
  for (std::size_t i = 0; i < turns.size(); ++i)
    if (turns[i] == t) return static_cast<int>(i);
  turns.push_back(t);
  return static_cast<int>(turns.size()) - 1;
}

/// Access - a value as a strided walk over the memory of `root`, which is row-major.
struct Access {
  int root = -1;
  index_t offset = 0;
  Strides strides{};
  /// For each axis of the root, the axis of the view that moves along it; -1 for none.
  signed char driver[max_rank] = {0, 1, 2, 3, 4, 5, 6, 7};
  /// Whether `driver` tells all: false once a slice or a merging reshape lies between.
  bool aligned = true;
  /// Whether an element is seen in several windows.
  bool overlaps = false;
  /// How it moves with the regions that it is read in, -1 if it does not.
  int turn = -1;
};

namespace detail {

constexpr void become_root(Access& a, int id, Shape const& shape) {
  a = Access{};
  a.root = id;
  a.strides = contiguous(shape);
}

// Moves a place by `times` steps: its offset, or if that is no sum that an extent can express, by a turn.
constexpr void move_by(index_t& offset, int& turn, Vec<Turn>& turns, index_t times, index_t step) {
  index_t const by = extent::mul(times, step);
  if (by == 0) return;
  if (offset == 0 || (offset > 0 && by > 0)) offset += by;
  else turn = add_turn(turns, Turn{-1, step, times, 0, turn});
}

// A reshape that only drops and adds axes of extent 1 moves drivers; others lose them.
constexpr void align_reshape(Access& a, Shape const& from, Shape const& to) {
  signed char moved[max_rank] = {};
  int j = 0;
  for (int i = 0; i < from.rank; ++i) {
    moved[i] = -1;
    if (from.dims[i] == 1) continue;
    while (j < to.rank && to.dims[j] == 1) ++j;
    if (j == to.rank || to.dims[j] != from.dims[i]) {
      a.aligned = false;
      return;
    }
    moved[i] = static_cast<signed char>(j++);
  }
  for (signed char& d : a.driver)
    if (d >= 0 && d < from.rank) d = moved[static_cast<int>(d)];
}

}  // namespace detail

/// accesses - for every node how it is read. A reshape that strides cannot express is its own root: it will be
/// copied.
constexpr Vec<Access> accesses(Graph const& g, Vec<Turn>& turns) {
  Vec<Access> all(g.nodes.size());
  Node const* const nodes = g.nodes.data();
  for (int id = 0, size = g.size(); id < size; ++id) {
    Node const& n = nodes[id];
    Access& a = all[id];
    if (!is_view(n)) {
      a.root = id;
      a.strides = contiguous(n.meta.shape);
      continue;
    }
    a = all[n.in[0]];
    Shape const &from = nodes[n.in[0]].meta.shape, &to = n.meta.shape;
    Strides const old = a.strides;
    if (n.op->code == Code::permute) {
      int place[max_rank] = {};
      for (int i = 0; i < to.rank; ++i) {
        int const axis = op::axis_of(n.attrs.i[0], i);
        a.strides.dims[i] = old.dims[axis];
        place[axis] = i;
      }
      for (signed char& d : a.driver)
        if (d >= 0 && d < to.rank) d = static_cast<signed char>(place[static_cast<int>(d)]);
    } else if (n.op->code == Code::expand) {
      for (int i = 0; i < to.rank; ++i)
        if (from.dims[i] == 1 && to.dims[i] != 1) a.strides.dims[i] = 0;
    } else if (n.op->code == Code::slice) {
      int const axis = op::slice::axis(n.attrs);
      detail::move_by(a.offset, a.turn, turns, n.attrs.i[1], old[axis]);
      a.strides[axis] = extent::mul(op::slice::step(n.attrs), old[axis]);
      a.aligned = false;
    } else if (n.op->code == Code::windows) {
      int const axis = op::windows::axis(n.attrs);
      a.strides.push_back(old[axis]);
      a.strides[axis] = extent::mul(op::windows::step(n.attrs), old[axis]);
      a.aligned = false;
      a.overlaps = a.overlaps || op::windows::step(n.attrs) < n.attrs.i[1];
    } else if (n.op->code == Code::each) {
      a.turn = add_turn(turns, Turn{n.region, old[0], 0, 0, a.turn});
      a.strides.rank = to.rank;
      for (int i = 0; i < to.rank; ++i) a.strides[i] = old[i + 1];
      a.aligned = false;
    } else {
      a.strides = reshape_strides(from, old, to);
      if (a.strides.rank < 0) detail::become_root(a, id, to);
      else detail::align_reshape(a, from, to);
    }
  }
  return all;
}

}  // namespace dfdx::graph
