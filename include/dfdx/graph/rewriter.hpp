// SPDX-License-Identifier: BSL-1.0
// Rewriting of single nodes: equal ones are found by hash, constants folded, and the local algebra below applied.
#pragma once

#include <bit>

#include <dfdx/core/convert.hpp>
#include <dfdx/ops/join.hpp>
#include <dfdx/ops/region.hpp>
#include <dfdx/ops/rounding.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::graph {

/// Rewriter - builds a graph in which no two nodes are equal and none can be simplified alone.
class Rewriter {
 public:
  constexpr explicit Rewriter(int expected) {
    std::size_t n = 16;
    while (n < 2 * static_cast<std::size_t>(expected)) n *= 2;
    heads_.assign(n, -1);
  }

  /// add - the node (its operands already of this graph), or one that has the same value. It is rewritten in place: a
  /// constant expression pays for copies.
  constexpr int add(Node&& n) { return add(n); }
  constexpr int add(Node& n) {
    for (int round = 0; round < 8; ++round) {
      int const same = replace(n);
      if (same >= 0) return same;
      if (same == unchanged) break;
    }
    std::size_t const slot = hash(n) & (heads_.size() - 1);
    int& head = heads_[slot];
    for (int i = head; i >= 0; i = next_[i])
      if (equal(graph[i], n)) return i;
    next_.push_back(head);
    head = graph.push(n).id;
    if (n.op->moves == Moves::gather) gathers.push_back(head);
    return head;
  }

  Graph graph;
  /// Its nodes that read elements at places.
  Vec<int> gathers;

 private:
  static constexpr int unchanged = -1, changed = -2;

  constexpr bool is(int i, Code c) const { return graph[i].op->code == c; }
  constexpr bool is_constant(int i) const { return is(i, Code::constant); }
  constexpr double value(int i) const { return graph[i].attrs.f[0]; }
  constexpr bool is_constant(int i, double v) const { return is_constant(i) && value(i) == v; }
  // Whether a zero leaves every number that it is added to as it is: -0.0 + 0.0 is 0.0, so that for floating numbers
  // -0.0 alone does; subtracted, 0.0 alone.
  constexpr bool adds_nothing(int i) const { return is_zero(i, true); }
  constexpr bool takes_nothing(int i) const { return is_zero(i, false); }
  constexpr bool is_zero(int i, bool negative) const {
    bool const has_sign = std::bit_cast<std::int64_t>(value(i)) < 0;
    return is_constant(i, 0) && (!is_floating(graph[i].meta.dtype) || has_sign == negative);
  }

  // Whether a cast has widened a floating number of that dtype: cast back, it is what it was.
  constexpr bool is_widened(int cast, DType from) const {
    DType const to = graph[cast].meta.dtype;
    return graph[graph[cast].in[0]].meta.dtype == from && is_floating(from) && is_floating(to) &&
           size_of(from) < size_of(to);
  }
  static constexpr int become(Node& n, Node const& m) {
    n = m;
    return changed;
  }
  // A constant in another dtype: of the number that memory would hold, and itself one that memory holds.
  static constexpr double cast_value(DType to, DType from, double v) {
    double const held = math::held_by(from, v);
    return is_half(to) ? math::held_by(to, held) : held;
  }
  static constexpr int become_constant(Node& n, double v) {
    return become(n, Node{&info<op::constant>, Attrs{{}, {math::computed_as(n.meta.dtype, v)}}, n.meta, {}});
  }
  // Integers are not folded where they are not what double makes of them: divided by 0, rounded, wrapped.
  static constexpr bool is_folded(Node const& n, double by) {
    Code const c = n.op->code;
    bool const divides = c == op::floor_divide::code || c == op::fmod::code || c == op::remainder::code;
    return is_floating(n.meta.dtype) || (c != op::pow::code && !(divides && by == 0));
  }
  static constexpr bool fits(DType d, double y) {
    if (is_floating(d) || d == DType::boolean) return true;
    double const most = d == DType::u8    ? 255
                        : d == DType::i8  ? 127
                        : d == DType::i32 ? 2147483647
                                          : 9007199254740991;
    return y <= most && y >= (d == DType::u8 ? 0 : -most);
  }

  // An existing node with n's value, or `changed` (n was rewritten: look again), or `unchanged`.
  constexpr int replace(Node& n) const {
    if (n.op->arity == 0) {
      if (n.op->code == Code::constant && !is_floating(n.meta.dtype))
        n.attrs.f[0] = math::held_by(n.meta.dtype, n.attrs.f[0]);
      return unchanged;
    }
    int const a = n.in[0];
    switch (n.op->code) {
      case Code::reshape:
        if (graph[a].meta.shape == n.meta.shape) return a;
        if (is_constant(a)) return become_constant(n, value(a));
        if (is(a, Code::reshape)) return n.in[0] = graph[a].in[0], changed;
        return unchanged;
      case Code::expand:
        if (graph[a].meta.shape == n.meta.shape) return a;
        if (is_constant(a)) return become_constant(n, value(a));
        if (is(a, Code::expand)) return n.in[0] = graph[a].in[0], changed;
        return unchanged;
      case Code::custom_vjp: return a;
      case Code::permute: return replace_permute(n, a);
      case Code::slice:
        if (graph[a].meta.shape == n.meta.shape && op::slice::step(n.attrs) == 1) return a;
        return is_constant(a) ? become_constant(n, value(a)) : replace_slice(n, graph[a]);
      case Code::each: return is_constant(a) ? become_constant(n, value(a)) : unchanged;
      case Code::stack:
        if (is(a, Code::each) && graph[a].attrs.i[0] == n.attrs.i[0]) return graph[a].in[0];
        return is_constant(a) ? become_constant(n, value(a)) : unchanged;
      case Code::cast:
        if (graph[a].meta.dtype == n.meta.dtype) return a;
        if (is(a, Code::cast) && is_widened(a, n.meta.dtype)) return graph[a].in[0];
        if (!is_constant(a)) return unchanged;
        return become_constant(n, cast_value(n.meta.dtype, graph[a].meta.dtype, value(a)));
      case Code::reduce_sum: return replace_sum(n, a);
      case Code::reduce_prod:
      case Code::reduce_max:
      case Code::reduce_min: return graph[a].meta.shape == n.meta.shape ? a : unchanged;
      default: return n.op->elementwise ? replace_elementwise(n, a) : unchanged;
    }
  }

  constexpr int replace_permute(Node& n, int a) const {
    Shape const& from = graph[a].meta.shape;
    if (is_constant(a)) return become_constant(n, value(a));
    if (is(a, Code::permute)) {
      int axes[max_rank] = {};
      for (int i = 0; i < from.rank; ++i)
        axes[i] = op::axis_of(graph[a].attrs.i[0], op::axis_of(n.attrs.i[0], i));
      n.attrs.i[0] = op::pack_axes(axes, from.rank);
      n.in[0] = graph[a].in[0];
      return changed;
    }
    // Axes of extent 1 may go anywhere: if the others keep their order, this is a reshape.
    int previous = -1;
    for (int i = 0; i < from.rank; ++i) {
      int const axis = op::axis_of(n.attrs.i[0], i);
      if (from[axis] == 1) continue;
      if (axis < previous) return unchanged;
      previous = axis;
    }
    return become(n, Node{&info<op::reshape>, Attrs{}, n.meta, {a}});
  }

  // A part of what was joined or padded is a part of what it was made of, or is the padding.
  constexpr int replace_slice(Node& n, Node const& of) const {
    int const axis = op::slice::axis(n.attrs);
    index_t const count = n.attrs.i[2], first = n.attrs.i[1];
    if (op::slice::step(n.attrs) != 1 || of.op->code != Code::opaque || count <= 0) return unchanged;
    index_t const end = first + count;
    if (is_op<op::pad>(*of.op) && of.attrs.i[0] == axis) {  // without gaps
      index_t const n_inside = graph[of.in[0]].meta.shape[axis];
      if (n_inside < 0) return unchanged;
      index_t const begins = of.attrs.i[1], ends = begins + n_inside;
      if (end <= begins || first >= ends) return become_constant(n, of.attrs.f[0]);
      if (first < begins || end > ends) return unchanged;
      n.attrs.i[1] -= begins;
      n.in[0] = of.in[0];
      return changed;
    }
    if (!is_op<op::concat>(*of.op) || of.attrs.i[0] != axis) return unchanged;
    index_t const second = graph[of.in[0]].meta.shape[axis];
    if (first < second && end > second) return unchanged;
    n.attrs.i[1] -= first < second ? 0 : second;
    n.in[0] = of.in[first < second ? 0 : 1];
    return changed;
  }

  constexpr int replace_sum(Node& n, int a) const {
    Shape const& from = graph[a].meta.shape;
    if (from == n.meta.shape) return a;
    if (is(a, Code::reduce_sum)) {
      n.attrs.i[0] |= graph[a].attrs.i[0];
      n.in[0] = graph[a].in[0];
      return changed;
    }
    if (!is_constant(a)) return unchanged;
    double count = 1;
    for (int i = 0; i < from.rank; ++i) {
      if (from[i] < 0 && n.meta.shape[i] != from[i]) return unchanged;
      if (n.meta.shape[i] != from[i]) count *= static_cast<double>(from[i]);
    }
    double const y = count == 0 ? 0 : value(a) * count;
    return fits(n.meta.dtype, y) ? become_constant(n, y) : unchanged;
  }

  constexpr int replace_elementwise(Node& n, int a) const {
    int const b = n.op->arity > 1 ? n.in[1] : a;
    int const c = n.op->arity > 2 ? n.in[2] : a;
    if (n.op->code == op::stop_gradient::code) return a;
    if (n.op->code == op::vanishing::code) return become_constant(n, -0.0);
    if (n.op->code == op::copy::code) return unchanged;
    if (is_constant(a) && is_constant(b) && is_constant(c) && is_folded(n, value(b))) {
      double const x[3] = {value(a), value(b), value(c)}, y = n.op->fold(x);
      if (fits(n.meta.dtype, y)) return become_constant(n, y);
    }
    if (n.op->code == op::add::code) {
      if (adds_nothing(b)) return a;
      if (adds_nothing(a)) return b;
    } else if (n.op->code == op::sub::code) {
      if (takes_nothing(b)) return a;
    } else if (n.op->code == op::mul::code) {
      if (is_constant(b, 1)) return a;
      if (is_constant(a, 1)) return b;
      if (is_constant(a)) {  // the constant last, so that equal products are found equal
        n.in[0] = b;
        n.in[1] = a;
        return changed;
      }
    } else if (n.op->code == op::div::code) {
      if (is_constant(b, 1)) return a;
    } else if (n.op->code == op::neg::code) {
      if (is(a, op::neg::code)) return graph[a].in[0];
    } else if (n.op->code == op::where::code) {
      if (b == c) return b;
      if (is_constant(a)) return value(a) != 0 ? b : c;
    }
    return unchanged;
  }

  static constexpr std::size_t hash(Node const& n) {
    std::uint64_t h = static_cast<std::uint64_t>(n.op->code) * 31 + static_cast<std::uint64_t>(n.meta.dtype);
    for (char const* s = n.op->name; n.op->code == Code::opaque && *s != 0; ++s)
      h = h * 131 + static_cast<unsigned char>(*s);
    constexpr std::uint64_t odd = 0x9E3779B97F4A7C15ull;
    for (int k = 0; k < n.op->arity; ++k) h = (h ^ static_cast<std::uint64_t>(n.in[k])) * odd;
    for (index_t i : n.attrs.i) h = (h ^ static_cast<std::uint64_t>(i)) * odd;
    auto const number = std::bit_cast<std::uint64_t>(n.attrs.f[0]);
    h = (h ^ number ^ (number >> 43)) * odd;  // small whole numbers have high bits only
    for (int i = 0; i < n.meta.shape.rank; ++i)
      h = (h ^ static_cast<std::uint64_t>(n.meta.shape.dims[i])) * odd;
    return static_cast<std::size_t>(h ^ (h >> 32));
  }
  static constexpr bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  }
  static constexpr bool equal(Node const& a, Node const& b) {
    if (!same_op(*a.op, *b.op) || !(a.meta == b.meta)) return false;
    for (int k = 0; k < a.op->arity; ++k)
      if (a.in[k] != b.in[k]) return false;
    for (int k = 0; k < 3; ++k)
      if (a.attrs.i[k] != b.attrs.i[k]) return false;
    return same_bits(a.attrs.f[0], b.attrs.f[0]) && same_bits(a.attrs.f[1], b.attrs.f[1]);
  }

  Vec<int> heads_, next_;
};

}  // namespace dfdx::graph
