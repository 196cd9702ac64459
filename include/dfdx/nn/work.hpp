// SPDX-License-Identifier: BSL-1.0
// What a model has to do: the ops of a recorded call, shared out among the tensors they read.
#pragma once

#include <array>

#include <dfdx/graph/cost.hpp>
#include <dfdx/program/trace.hpp>

namespace dfdx::nn {

namespace detail {

constexpr index_t times_run(Graph const& g, Node const& n) {
  index_t r = 1;
  for (int k = n.region; k >= 0; k = g.regions[static_cast<std::size_t>(k)].parent)
    r *= g.regions[static_cast<std::size_t>(k)].count;
  return r;
}

// The work that counts for one tensor of a model, and the last result that is made with it.
struct TensorWork {
  index_t flops = 0;
  Meta output{};
  int node = -1;        // of the output; -1 for none
  bool looped = false;  // whether it is made in a loop, and how often
  index_t times = 1;
};

// That of all N tensors; the last is what counts for none. Unknown if not all shapes are.
template <std::size_t N>
struct Work {
  bool known = false;
  std::array<TensorWork, N + 1> tensors{};
};

// The tensor that each op counts for, or N for none. An op counts for the first tensor it reads. One that reads none
// counts for what reads the op's result, so that the statistics of a normalization are its own (and a relu is the next
// layer's); in the end for what it reads a result of. `made[i]`: the tensor that all of node i is made of, if any.
constexpr Vec<int> owners(Graph const& g, int n_tensors, Vec<int>& made) {
  Vec<int> owner;
  for (Node const& n : g.nodes) {
    int first = -1;
    bool alone = true;
    for (int k = 0; k < n.op->arity; ++k) {
      int const m = made[static_cast<std::size_t>(n.in[k])];
      if (first < 0) first = m;
      alone = alone && (m >= 0 || g[n.in[k]].op->code == Code::constant);
    }
    owner.push_back(first);
    if (n.op->code == Code::input)
      made.push_back(n.attrs.i[0] < n_tensors ? static_cast<int>(n.attrs.i[0]) : -1);
    else made.push_back(alone ? first : -1);
  }
  Vec<int> const direct = owner;
  for (int i = g.size(); i-- > 0;)  // what several read is the first one's
    for (int k = 0; k < g[i].op->arity; ++k) {
      auto const in = static_cast<std::size_t>(g[i].in[k]);
      int const mine = owner[static_cast<std::size_t>(i)];
      if (direct[in] < 0 && mine >= 0 && g[g[i].in[k]].region == g[i].region) owner[in] = mine;
    }
  for (int i = 0; i < g.size(); ++i) {
    int& mine = owner[static_cast<std::size_t>(i)];
    int latest = -1;
    for (int k = 0; k < g[i].op->arity && mine < 0; ++k)
      if (owner[static_cast<std::size_t>(g[i].in[k])] < n_tensors) latest = std::max(latest, g[i].in[k]);
    if (mine < 0)
      mine = latest < 0 || g[i].op->arity == 0 ? n_tensors : owner[static_cast<std::size_t>(latest)];
  }
  return owner;
}

struct CallModel {
  constexpr auto operator()(auto const& model, auto const&... x) const { return model(x...); }
};

// Of a call of a model with arguments X, as simplified. In a constant expression.
template <class M, class... X>
constexpr auto work_of_call() {
  constexpr int n = leaf_count<M>;
  Work<static_cast<std::size_t>(n)> r;
  Graph const g = graph::simplify(trace<CallModel, M, X...>());
  for (Node const& node : g.nodes)
    if (!node.meta.shape.is_static()) return r;
  r.known = true;
  Vec<int> made;
  Vec<int> const owner = owners(g, n, made);
  for (int i = 0; i < g.size(); ++i) {
    Node const& node = g[i];
    if (node.op->arity == 0) continue;
    index_t const times = times_run(g, node);
    TensorWork& t = r.tensors[static_cast<std::size_t>(owner[static_cast<std::size_t>(i)])];
    t.flops += times * graph::flops(node, g.nodes);
    bool reads = false;
    for (int k = 0; k < node.op->arity; ++k) reads = reads || made[static_cast<std::size_t>(node.in[k])] >= 0;
    if (!reads || made[static_cast<std::size_t>(i)] >= 0) continue;
    t.output = node.meta;
    t.node = i;
    t.looped = node.region >= 0;
    t.times = times;
  }
  return r;
}

// Whether a call can be recorded: of Tensors, by a model whose operator() is constexpr.
template <class M, class... X>
concept countable = sizeof...(X) > 0 && (typed<X> && ...) &&
                    requires { typename std::bool_constant<(void(work_of_call<M, X...>()), true)>; };

}  // namespace detail

}  // namespace dfdx::nn
