// SPDX-License-Identifier: BSL-1.0
// A graph recorded at run time and evaluated node by node with the reference kernels: what the passes over graphs and
// the rules of ops are tested with, for any shapes and dtypes and without compiling a program.
#pragma once

#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include <dfdx/graph/differentiate.hpp>
#include <dfdx/graph/simplify.hpp>
#include <dfdx/ops/each_op.hpp>
#include <dfdx/testing/reference.hpp>
#include <dfdx/vocabulary/attention_rules.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/grid_rules.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/linalg.hpp>
#include <dfdx/vocabulary/loss.hpp>
#include <dfdx/vocabulary/mathematics.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/order.hpp>
#include <dfdx/vocabulary/pool.hpp>
#include <dfdx/vocabulary/random.hpp>
#include <dfdx/vocabulary/scan.hpp>
#include <dfdx/vocabulary/scatter_reduce.hpp>
#include <dfdx/vocabulary/split.hpp>
#include <dfdx/vocabulary/svd.hpp>

namespace dfdx::testing {

/// KnownOps - the ops of a list, found by their names.
template <class... Op>
struct KnownOps {
  static OpInfo const* find(char const* name) {
    OpInfo const* r = nullptr;
    ((r = std::strcmp(Op::name, name) == 0 ? &info<Op> : r), ...);
    return r;
  }
  template <class F>
  static void for_each(F const& f) {
    (f(std::type_identity<Op>{}), ...);
  }
};

/// LibraryOps - all that run eagerly. Each has a record in tests/ops: those that are not elementwise in primitives.cpp.
#define DFDX_OP(name) op::name
#define DFDX_NEXT_OP(name) , op::name
using LibraryOps = KnownOps<DFDX_EACH_OP(DFDX_OP, DFDX_NEXT_OP)>;
#undef DFDX_OP
#undef DFDX_NEXT_OP

namespace detail {
// Not inline, so that one source file may compile it for many (see the end of this header).
template <class Ops>
struct Finder {
  static OpInfo const* find(char const* name);
};
template <class Ops>
OpInfo const* Finder<Ops>::find(char const* name) {
  using namespace dfdx::detail;
  using Rules =
      KnownOps<op::with_rule<CentredRule, 2>, op::with_rule<ScaleRule, 1>, op::with_rule<StandardRule, 2>>;
  OpInfo const* const known = Ops::find(name);
  return known != nullptr ? known : Rules::find(name);
}
}  // namespace detail

/// new_graph - an empty graph in which ops can be recorded at run time.
inline Graph new_graph() {
  Graph g;
  g.find_op = &detail::Finder<LibraryOps>::find;
  return g;
}

/// add_input - a new input of a graph that is being recorded.
inline Array add_input(Graph& g, Meta const& meta) {
  Sym const s = g.push(Node{&info<op::input>, Attrs{{g.inputs++}}, meta, {}});
  return Array(s.graph, s.id, meta);
}

namespace detail {

using Runner = Array (*)(Node const&, Array const* x);

template <class Op>
Array run_node(Node const& n, Array const* x) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return reference::run<Op>(n.meta, n.attrs, x[K]...);
  }(std::make_index_sequence<Op::arity>{});
}

/// The reference version of an op of the list, null for others.
template <class Ops>
struct Runners {
  static Runner find(OpInfo const* i);
};
template <class Ops>
Runner Runners<Ops>::find(OpInfo const* i) {
  Runner r = nullptr;
  Ops::for_each([&](auto type) {
    using Op = typename decltype(type)::type;
    if (i == &info<Op>) r = &run_node<Op>;
  });
  return r;
}

inline Array run_generated(Node const& n) {
  Array r(n.meta);
  Operand const out = r.operand();
  index_t inner = 1;
  auto const axis = static_cast<int>(n.attrs.i[0]);
  for (int a = axis + 1; a < n.meta.shape.rank; ++a) inner *= n.meta.shape[a];
  for (index_t i = 0, size = r.size(); i < size; ++i)
    write_real(
        out, i,
        n.op->code == Code::constant ? n.attrs.f[0] : static_cast<double>(i / inner % n.meta.shape[axis]));
  return r;
}

// An op that the library does not know: through its own kernel, or number by number.
inline Array run_foreign(Node const& n, Array const* x) {
  Array r(n.meta);
  Operand in[max_arity];
  Array dense[max_arity];
  for (int k = 0; k < n.op->arity; ++k) in[k] = (dense[k] = dfdx::detail::packed(x[k])).operand();
  if (n.op->run != nullptr) {
    n.op->run(n.attrs, in, r.operand());
  } else {
    if (n.op->fold == nullptr) raise(n.op->name, ": has neither a kernel nor numbers to be interpreted with");
    for (index_t i = 0, size = r.size(); i < size; ++i) {
      double v[max_arity] = {};
      for (int k = 0; k < n.op->arity; ++k) v[k] = read_real(in[k], i);
      write_real(r.operand(), i, n.op->fold(v));
    }
  }
  return r;
}

/// Evaluation - the values of a graph's nodes; of those of a region what they are in its last iteration.
class Evaluation {
 public:
  Evaluation(Graph const& g, std::span<Array const> inputs)
      : values(g.nodes.size()),
        graph_(g),
        inputs_(inputs),
        position_(g.regions.size()),
        done_(g.nodes.size()) {
    run(-1);
  }

  std::vector<Array> values;

 private:
  Array& value(int id) { return values[static_cast<std::size_t>(id)]; }

  void run(int region) {
    for (int id = 0; id < graph_.size(); ++id)
      if (graph_[id].region == region) compute(id);
  }

  void compute(int id) {
    Node const& n = graph_[id];
    auto const own = static_cast<std::size_t>(n.attrs.i[0]);
    Array x[max_arity];
    if (n.op->code != Code::carry && !is_exit(n))
      for (int k = 0; k < n.op->arity; ++k) x[k] = value(n.in[k]);
    if (n.op->code == Code::carry) {  // made by the loop
    } else if (is_exit(n)) {
      if (!done_[static_cast<std::size_t>(id)]) loop(static_cast<int>(own));
      done_[static_cast<std::size_t>(id)] = false;
    } else if (n.op->code == Code::each) value(id) = x[0].part(position_[own]);
    else if (n.op->code == Code::input) value(id) = inputs_[own];
    else if (n.op->arity == 0) value(id) = run_generated(n);
    else if (n.op->code == Code::custom_vjp) value(id) = x[0];
    else if (Runner const known = Runners<LibraryOps>::find(n.op)) value(id) = known(n, x);
    else value(id) = run_foreign(n, x);
    Meta const& m = value(id).meta();
    if (!(m == n.meta))
      raise("interpret: ", n.op->name, " gives ", m.dtype, " ", m.shape, ", its node says ", n.meta.dtype,
            " ", n.meta.shape);
  }

  void loop(int region) {
    Region const& r = graph_.regions[static_cast<std::size_t>(region)];
    std::vector<int> exits;
    for (int id = 0; id < graph_.size(); ++id) {
      Node const& n = graph_[id];
      if (!is_exit(n) || region_behind(n) != region) continue;
      exits.push_back(id);
      done_[static_cast<std::size_t>(id)] = true;
      if (n.op->code == Code::last) value(n.in[0]) = value(graph_[n.in[0]].in[0]);
      else value(id) = Array(n.meta);
    }
    for (index_t i = 0; i < r.count; ++i) {
      index_t const at = r.reversed ? r.count - 1 - i : i;
      position_[static_cast<std::size_t>(region)] = at;
      run(region);
      std::vector<Array> next;
      for (int id : exits) {
        Node const& n = graph_[id];
        if (n.op->code == Code::last) next.push_back(value(n.in[1]));
        else copy_elements(value(n.in[0]).operand(), value(id).part(at).operand());
      }
      std::size_t k = 0;
      for (int id : exits)
        if (graph_[id].op->code == Code::last) value(graph_[id].in[0]) = next[k++];
    }
    for (int id : exits)
      if (graph_[id].op->code == Code::last) value(id) = value(graph_[id].in[0]);
  }

  Graph const& graph_;
  std::span<Array const> inputs_;
  std::vector<index_t> position_;
  std::vector<bool> done_;
};

}  // namespace detail

/// evaluate - the value of every node; inputs in order of their positions.
///
/// Errors    "interpret: add gives f32 [2], its node says f32 [3]", and those of the ops
inline std::vector<Array> evaluate(Graph const& g, std::span<Array const> inputs) {
  return detail::Evaluation(g, inputs).values;
}

/// interpret - the outputs of a graph.
inline std::vector<Array> interpret(Graph const& g, std::span<Array const> inputs) {
  std::vector<Array> const v = evaluate(g, inputs);
  std::vector<Array> r;
  for (int o : g.outputs) r.push_back(v[static_cast<std::size_t>(o)]);
  return r;
}

/// record - the graph of f, a function of a list of Arrays that returns such a list; inputs have the given metas.
template <class F>
Graph record(F const& f, std::span<Meta const> inputs) {
  Graph g = new_graph();
  std::vector<Array> x;
  for (Meta const& m : inputs) x.push_back(add_input(g, m));
  for (Array const& y : f(std::span<Array const>(x))) g.outputs.push_back(y.id());
  return g;
}

/// add_vjp - makes the outputs of a graph the gradients of its present outputs with respect to some inputs (given
/// as node ids); a new input for each output is its cotangent.
inline void add_vjp(Graph& g, std::span<int const> wrt) {
  std::vector<Sym> ends, cts;
  for (int o : g.outputs) {
    if (!is_floating(g[o].meta.dtype)) continue;
    ends.push_back(Sym{&g, o});
    cts.push_back(add_input(g, Meta(g[o].meta)).sym());
  }
  g.outputs = {};
  for (Sym const& s : graph::pull_back(g, ends, cts, wrt)) g.outputs.push_back(s.id);
}

/// add_jvp - makes the outputs of a graph their tangents; a new input for each of `wrt` is its tangent.
inline void add_jvp(Graph& g, std::span<int const> wrt) {
  std::vector<Sym> ends, tangents;
  for (int o : g.outputs) ends.push_back(Sym{&g, o});
  for (int w : wrt) tangents.push_back(add_input(g, Meta(g[w].meta)).sym());
  g.outputs = {};
  for (Sym const& s : graph::push_forward(g, wrt, tangents, ends)) g.outputs.push_back(s.id);
}

/// error_ratio - the largest |got - want| / (atol + rtol |want|) over all elements; equal values (also infinities
/// and NaN) count as 0, a missing or spurious NaN or another shape as infinite.
inline double error_ratio(Array const& got, Array const& want, double rtol, double atol) {
  if (!(got.shape() == want.shape())) return HUGE_VAL;
  double worst = 0;
  Operand const x = got.operand(), y = want.operand();
  Strides const strides[2] = {x.strides, y.strides};
  walk<2>(x.meta.shape, strides, [&](index_t const(&o)[2]) {
    double const a = read_real(x, o[0]), b = read_real(y, o[1]);
    if (a == b || (std::isnan(a) && std::isnan(b))) return;
    double const e = std::fabs(a - b) / (atol + rtol * std::fabs(b));
    if (!(e <= worst)) worst = std::isnan(e) ? HUGE_VAL : e;
  });
  return worst;
}

/// dot - sum of the products of corresponding elements, in double.
inline double dot(Array const& a, Array const& b) {
  double r = 0;
  Operand const x = a.operand(), y = b.operand();
  Strides const strides[2] = {x.strides, y.strides};
  walk<2>(x.meta.shape, strides, [&](index_t const(&o)[2]) { r += read_real(x, o[0]) * read_real(y, o[1]); });
  return r;
}

#if defined(DFDX_SEPARATE)
// As tape/separate.hpp: a program of several source files instantiates these in one of them.
extern template struct detail::Finder<LibraryOps>;
extern template struct detail::Runners<LibraryOps>;
#endif

}  // namespace dfdx::testing
