// SPDX-License-Identifier: BSL-1.0
// Integers of 64 bits whose values are known to be small, as positions are, as numbers of f32, which has them all:
// beside floats they take lanes of one width then, and a loop of two widths has none.
#pragma once

#include <dfdx/graph/rewriter.hpp>

namespace dfdx::graph {

namespace detail {

/// Narrow - asks what values a node can have, and makes the node that has them in f32.
class Narrow {
 public:
  struct Range {
    double low = 0, high = -1;

    constexpr bool known() const { return low <= high; }
  };

  /// Literals of the program are those of the graph as it was recorded.
  constexpr Narrow(Rewriter& r, Graph const& recorded) : r_(r), recorded_(recorded) {}

  /// Of integers of 64 bits, or what were truths or bytes. Not known where that takes a long look, nor where f32 would
  /// have -0.
  constexpr Range of(int id) {
    if (--looks_left_ < 0) return {};
    Node const& n = r_.graph[id];
    Code const code = n.op->code;
    if (code == Code::constant) return within(n.attrs.f[0], n.attrs.f[0]);
    if (code == Code::iota) {
      index_t const extent = n.meta.shape[static_cast<int>(n.attrs.i[0])];
      return extent > 0 ? within(0, static_cast<double>(extent - 1)) : Range{};
    }
    if (passes_on(code)) return of(n.in[0]);
    if (code == Code::input) return of_literal(static_cast<int>(n.attrs.i[0]));
    if (code == Code::cast) return of_dtype(r_.graph[n.in[0]].meta.dtype);
    if (code != op::add::code && code != op::sub::code && code != op::mul::code) return {};
    Range const a = of(n.in[0]), b = a.known() ? of(n.in[1]) : Range{};
    if (!b.known()) return b;
    if (code == op::add::code) return within(a.low + b.low, a.high + b.high);
    if (code == op::sub::code) return within(a.low - b.high, a.high - b.low);
    return a.low < 0 || b.low < 0 ? Range{} : within(a.low * b.low, a.high * b.high);
  }

  /// The node of f32, if the range is known.
  constexpr int in_f32(int id) {
    Node n = r_.graph[id];
    if (n.meta.dtype != DType::i64) return id;
    n.meta.dtype = DType::f32;
    if (n.op->code == Code::input)
      return r_.add(Node{&info<op::cast>, Attrs{{static_cast<index_t>(DType::f32)}}, n.meta, {id}});
    if (n.op->code == Code::cast) n.attrs.i[0] = static_cast<index_t>(DType::f32);
    else
      for (int k = 0; k < n.op->arity; ++k) n.in[k] = in_f32(n.in[k]);
    return r_.add(n);
  }

 private:
  static constexpr double most = (1 << 24) - 1;  // of which the next one is another number too
  static constexpr Range within(double low, double high) {
    bool const small = low >= -most && high <= most;
    if (small) return {low, high};
    return {};
  }
  static constexpr Range of_dtype(DType from) {
    if (from == DType::boolean) return {0, 1};
    if (from == DType::u8) return {0, 255};
    if (from == DType::i8) return {-128, 127};
    return {};
  }
  // Of an input, if it is a literal of not too many integers.
  constexpr Range of_literal(int input) const {
    int const k = input - recorded_.inputs + recorded_.literal_inputs.count;
    if (k < 0 || static_cast<std::size_t>(k) >= recorded_.literals.size()) return {};
    Node const& l = recorded_.literals[k];
    index_t const n = l.meta.shape.numel();
    if (n < 1 || n > 4096 || l.meta.dtype != DType::i64) return {};
    auto const number = [&](index_t i) {
      return static_cast<std::int64_t>(recorded_.words[l.attrs.i[0] + i]);
    };
    std::int64_t low = number(0), high = low;
    for (index_t i = 1; i < n; ++i) {
      if (number(i) < low) low = number(i);
      if (number(i) > high) high = number(i);
    }
    return within(static_cast<double>(low), static_cast<double>(high));
  }
  static constexpr bool passes_on(Code c) {
    return c == Code::reshape || c == Code::expand || c == Code::permute || c == Code::slice;
  }

  Rewriter& r_;
  Graph const& recorded_;
  int looks_left_ = 64;
};

constexpr bool is_comparison(Code c) {
  return c == op::equal::code || c == op::not_equal::code || c == op::less::code ||
         c == op::less_equal::code || c == op::greater::code || c == op::greater_equal::code;
}

// A comparison of positions, or literals, with one another, or with a number for each row; or of them what becomes
// floats. -1 for other nodes. A number that is beyond all positions is so in f32, however it is rounded.
constexpr int narrowed(Rewriter& r, Graph const& recorded, Node const& n) {
  if (Node const& left = r.graph[n.in[0]]; left.meta.dtype != DType::i64 || left.op->code == Code::constant)
    return -1;
  Narrow narrow(r, recorded);
  Narrow::Range const a = narrow.of(n.in[0]);
  if (n.op->code == Code::cast) {
    if (!a.known() || size_of(n.meta.dtype) > 4) return -1;
    return r.add(Node{n.op, n.attrs, n.meta, {narrow.in_f32(n.in[0])}});
  }
  Narrow::Range const b = narrow.of(n.in[1]);
  int in[2] = {n.in[0], n.in[1]};
  for (int k = 0; k < 2; ++k) {
    Narrow::Range const own = k == 0 ? a : b, other = k == 0 ? b : a;
    if (!own.known() && !other.known()) return -1;
    if (own.known()) {
      in[k] = narrow.in_f32(in[k]);
      continue;
    }
    Node row = r.graph[in[k]];
    Shape const of = r.graph[row.in[0]].meta.shape;
    if (row.op->code != Code::expand || of.rank == 0 || of[of.rank - 1] != 1) return -1;
    Attrs const to_f32{{static_cast<index_t>(DType::f32)}};
    row.in[0] = r.add(Node{&info<op::cast>, to_f32, Meta{DType::f32, of}, {row.in[0]}});
    row.meta.dtype = DType::f32;
    in[k] = r.add(row);
  }
  return r.add(Node{n.op, n.attrs, n.meta, {in[0], in[1]}});
}

}  // namespace detail

}  // namespace dfdx::graph
