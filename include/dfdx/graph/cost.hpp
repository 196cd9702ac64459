// SPDX-License-Identifier: BSL-1.0
// What a program costs: arithmetic, and the memory that its kernels read and write. Templates over the lists, so
// that they count in the vectors of a graph that is being built and in the arrays of a finished program alike.
#pragma once

#include <dfdx/graph/plan.hpp>
#include <dfdx/ops/attention.hpp>
#include <dfdx/ops/conv.hpp>
#include <dfdx/ops/index.hpp>

namespace dfdx::graph {

namespace detail {

// Two for each term of a convolution with results y: as many terms for each as a weight w has elements for a channel.
constexpr index_t conv_flops(Shape const& y, Shape const& w, index_t const* symbols) {
  return w[0] == 0 ? 0 : 2 * extent::resolve(y.numel(), symbols) * (w.numel() / w[0]);
}

// Two for each term of the products of attention by blocks, hidden keys included: so many with the size of the keys,
// so many with that of the values.
constexpr index_t attention_flops(Shape const& q, Shape const& v, index_t of_keys, index_t of_values) {
  index_t const pairs = q.numel() / q[q.rank - 1] * v[v.rank - 2];
  return 2 * pairs * (of_keys * q[q.rank - 1] + of_values * v[v.rank - 1]);
}

}  // namespace detail

/// flops - arithmetic operations of one node of `nodes`: one for each result of an elementwise op (exp counts as one),
/// one for each element that a reduction joins, two for each term of a matrix product, convolution or attention; none
/// for views, copies and other ops with kernels of their own.
template <class Nodes>
constexpr index_t flops(Node const& n, Nodes const& nodes, index_t const* symbols = nullptr) {
  auto const shape_of = [&](int k) -> Shape const& { return nodes[n.in[k]].meta.shape; };
  Shape const& operand = shape_of(0);
  if (n.op->code == Code::matmul)
    return 2 * extent::resolve(n.meta.shape.numel(), symbols) *
           extent::resolve(operand[operand.rank - 1], symbols);
  if (is_reduction(n)) return extent::resolve(operand.numel(), symbols);
  if (is_op<op::conv>(*n.op)) return detail::conv_flops(n.meta.shape, shape_of(1), symbols);
  if (is_op<op::conv_input>(*n.op)) return detail::conv_flops(operand, shape_of(1), symbols);
  if (is_op<op::conv_weight>(*n.op)) return detail::conv_flops(shape_of(1), n.meta.shape, symbols);
  if (is_op<op::attend>(*n.op)) return detail::attention_flops(operand, shape_of(2), 1, 1);
  if (is_op<op::attend_back>(*n.op)) return detail::attention_flops(operand, shape_of(2), 3, 2);
  bool const moves = n.op->code == op::copy::code || n.op->code == op::stop_gradient::code;
  return n.op->elementwise && !moves ? extent::resolve(n.meta.shape.numel(), symbols) : 0;
}

/// flops - of all nodes, in all iterations. What kernels compute again rather than store is counted once.
template <class Graph>
constexpr index_t total_flops(Graph const& g, index_t const* symbols = nullptr) {
  index_t r = 0;
  for (Node const& n : g.nodes) {
    if (n.op->arity == 0) continue;
    index_t times = 1;
    for (int k = n.region; k >= 0; k = g.regions[k].parent) times *= g.regions[k].count;
    r += times * flops(n, g.nodes, symbols);
  }
  return r;
}

/// times_run - how often a step runs.
template <class Plan>
constexpr index_t times_run(Plan const& plan, std::size_t step) {
  index_t r = 1;
  for (StepLoop const& l : plan.loops)
    if (static_cast<std::size_t>(l.first) <= step && step < static_cast<std::size_t>(l.last)) r *= l.count;
  return r;
}

/// Walk - how a kernel goes over one operand: an extent and a stride for each axis, in elements.
struct Walk {
  Shape shape{};
  Strides strides{};

  /// Elements that the walk meets, each counted once: an axis of stride 0 repeats what it met.
  constexpr index_t elements(index_t const* symbols = nullptr) const {
    index_t n = 1;
    for (int i = 0; i < shape.rank; ++i)
      if (strides[i] != 0 || shape[i] == 0) n *= extent::resolve(shape[i], symbols);
    return n;
  }
};

/// walk_of - the walk of a step over its k-th argument.
template <class Plan>
constexpr Walk walk_of(Plan const& plan, Step const& s, int k) {
  auto const read = [&](int shape, int strides, index_t rank) {
    Walk w;
    for (int d = 0; d < rank; ++d) {
      w.shape.push_back(plan.code[shape + d]);
      w.strides.push_back(plan.code[strides + d]);
    }
    return w;
  };
  if (s.kind == Step::Kind::move) return Walk{make_shape(plan.code[s.code]), make_shape(1)};
  bool const in_epilogue = s.epilogue >= 0 && k >= 3;
  if (s.kind == Step::Kind::loop || in_epilogue) {
    int const loop = in_epilogue ? s.epilogue : s.code, operand = in_epilogue ? k - 3 : k;
    auto const dims = static_cast<int>(plan.code[static_cast<std::size_t>(loop) + loop_code::dims]);
    int const extents = loop + static_cast<int>(loop_code::header_size), fields = loop_code::operand_size;
    return read(extents, extents + dims + operand * (fields + dims) + fields, dims);
  }
  auto const rank_at = [&](int at) { return static_cast<int>(plan.code[at]); };
  int begin = s.code;
  for (; k > 0; --k) begin += 1 + 2 * rank_at(begin);
  return read(begin + 1, begin + 1 + rank_at(begin), rank_at(begin));
}

/// is_scratch - whether an argument is a row of scratch memory of its kernel, which stays in cache.
template <class Plan>
constexpr bool is_scratch(Plan const& plan, Argument const& a) {
  if (a.kind != Argument::Kind::buffer) return false;
  Buffer const& b = plan.buffers[a.index];
  return b.first == b.last;
}

/// bytes_moved - memory that one step reads and writes, every element of an operand once.
template <class Plan, class Nodes>
constexpr index_t bytes_moved(Plan const& plan, Nodes const& nodes, Step const& s,
                              index_t const* symbols = nullptr) {
  index_t r = 0;
  OpInfo const* const op = nodes[s.node].op;
  bool const looks_up = s.kind == Step::Kind::opaque && (is_op<op::take>(*op) || is_op<op::gather>(*op));
  for (int k = 0; k < s.arguments; ++k) {
    Argument const& a = plan.arguments[s.argument + k];
    if (a.kind == Argument::Kind::none || is_scratch(plan, a)) continue;
    if (s.epilogue >= 0 && k == 3 + s.stored) continue;  // the result again
    // Of a table only the rows that are asked for are read: as much as is written.
    int const like = looks_up && k == 0 ? s.arguments - 1 : k;
    r += walk_of(plan, s, like).elements(symbols) * static_cast<index_t>(size_of(a.dtype));
  }
  return r;
}

/// bytes_moved - of all steps, as often as they run: what a program reads from and writes to memory if kernels keep
/// nothing in cache for one another.
template <class Plan, class Nodes>
constexpr index_t total_bytes_moved(Plan const& plan, Nodes const& nodes, index_t const* symbols = nullptr) {
  index_t r = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    r += times_run(plan, s) * bytes_moved(plan, nodes, plan.steps[s], symbols);
  return r;
}

/// same_kernel - whether two steps run one kernel: equal descriptions, or the same op.
template <class Nodes>
constexpr bool same_kernel(Nodes const& nodes, Step const& a, Step const& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Step::Kind::move) return true;
  if (a.kind == Step::Kind::opaque) return same_op(*nodes[a.node].op, *nodes[b.node].op);
  return a.kernel == b.kernel;
}

/// first_with_kernel - the first step that runs the same kernel as step k; k itself if no earlier one does.
template <class Plan, class Nodes>
constexpr std::size_t first_with_kernel(Plan const& plan, Nodes const& nodes, std::size_t k) {
  std::size_t i = 0;
  while (!same_kernel(nodes, plan.steps[i], plan.steps[k])) ++i;
  return i;
}

/// distinct_kernels - kernels that a plan needs compiled: steps with equal descriptions share one.
template <class Plan, class Nodes>
constexpr int distinct_kernels(Plan const& plan, Nodes const& nodes) {
  int r = 0;
  for (std::size_t k = 0; k < plan.steps.size(); ++k) r += first_with_kernel(plan, nodes, k) == k ? 1 : 0;
  return r;
}

}  // namespace dfdx::graph
