// SPDX-License-Identifier: BSL-1.0
// The planner: orders the groups of a graph, joins products with the loops after them, and writes down for each
// kernel its description and its arguments (graph/layout.hpp says what a plan consists of).
#pragma once

#include <dfdx/graph/layout.hpp>
#include <dfdx/graph/lower.hpp>
#include <dfdx/graph/prepare.hpp>

namespace dfdx::graph {

namespace detail {

class Planner {
 public:
  constexpr Planner(Graph const& g, Aliases const& aliases) : g_(g), f_(fuse(g)) {
    find_stored(aliases);
    find_epilogues();
    order_groups();
    for (int k : order_) add_step(k);
    finish();
  }

  Plan plan;

 private:
  constexpr Access const& access(int id) const { return f_.access[static_cast<std::size_t>(id)]; }
  constexpr int group_of(int id) const { return f_.place[static_cast<std::size_t>(id)].group; }
  constexpr std::size_t at(int i) const { return static_cast<std::size_t>(i); }

  // A value must be stored if another group reads it or it is an output.
  constexpr void find_stored(Aliases const& aliases) {
    stored_.assign(g_.nodes.size(), 0);
    alias_.assign(g_.nodes.size(), -1);
    for (int id = 0; id < g_.size(); ++id) {
      int const mine = group_of(id);
      if (mine < 0) continue;
      bool const loop = f_.groups[at(mine)].kind == Group::Kind::loop;
      for (int k = 0; k < g_[id].arity(); ++k) {
        int const root = access(g_[id].in[k]).root;
        if (group_of(root) != mine || !loop || is_view(g_[root])) stored_[at(root)] = 1;
      }
    }
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      stored_[at(access(g_.outputs[k]).root)] = 1;
      if (k < aliases.size() && aliases[k] >= 0) alias_[at(g_.outputs[k])] = aliases[k];
    }
  }

  // An elementwise group that alone reads a matrix product, element by element, becomes part of the product's
  // kernel.
  constexpr void find_epilogues() {
    Vec<int> reader(g_.nodes.size(), -1);  // the one group that reads a value, -2 for several
    constexpr int several = -2;
    for (int id = 0; id < g_.size(); ++id) {
      if (group_of(id) < 0) continue;
      for (int i = 0; i < g_[id].arity(); ++i) {
        int& r = reader[at(access(g_[id].in[i]).root)];
        r = r == -1 || r == group_of(id) ? group_of(id) : several;
      }
    }
    for (int o : g_.outputs) reader[at(access(o).root)] = several;
    product_.assign(f_.groups.size(), -1);
    joined_.assign(f_.groups.size(), 0);
    for (std::size_t k = 0; k < f_.groups.size(); ++k) {
      if (f_.groups[k].kind != Group::Kind::matmul) continue;
      int const product = f_.groups[k].members[0], user = reader[at(product)];
      if (user < 0 || product_[at(user)] >= 0 || !can_be_epilogue(user, product)) continue;
      product_[at(user)] = static_cast<int>(k);
      joined_[k] = 1;
    }
  }
  constexpr bool can_be_epilogue(int k, int product) const {
    Group const& x = f_.groups[at(k)];
    Meta const& result = g_[product].meta;
    if (x.kind != Group::Kind::loop || x.reductions != 0 || !(x.space == result.shape) || x.space.rank != 2)
      return false;
    if (x.space[0] == 1 || x.space[1] == 1) return false;
    if (result.dtype != DType::f32 && result.dtype != DType::f64) return false;
    bool stores = false;
    for (int id : x.members) {
      Place const& p = f_.place[at(id)];
      for (int i = 0; i < g_[id].arity(); ++i) {
        Access const& a = access(g_[id].in[i]);
        if (a.root != product) continue;
        // Read where it is made: same axes, same places.
        bool const in_place = a.offset == 0 && is_contiguous(g_[g_[id].in[i]].meta.shape, a.strides) &&
                              g_[g_[id].in[i]].meta.shape == result.shape && p.axis[0] == 0 && p.axis[1] == 1;
        if (!in_place) return false;
      }
      stores = stores || is_result(id, product);
    }
    return stores;
  }
  // Whether a member can be what the product's kernel stores.
  constexpr bool is_result(int id, int product) const {
    Place const& p = f_.place[at(id)];
    return stored_[at(id)] != 0 && !is_view(g_[id]) && g_[id].meta == g_[product].meta && p.axis[0] == 0 &&
           p.axis[1] == 1;
  }

  // The nodes whose operands a step for group k reads.
  constexpr Vec<int> readers_in(int k) const {
    Vec<int> r = f_.groups[at(k)].members;
    if (product_[at(k)] >= 0) r.push_back(f_.groups[at(product_[at(k)])].members[0]);
    return r;
  }

  template <class F>
  constexpr void for_inputs_read(int k, F f) const {
    Vec<int> seen;
    for (int id : readers_in(k))
      for (int i = 0; i < g_[id].arity(); ++i) {
        Access const& a = access(g_[id].in[i]);
        if (g_[a.root].code() != Code::input) continue;
        auto const input = static_cast<int>(g_[a.root].attrs.i[0]);
        bool again = false;
        for (int s : seen) again = again || s == input;
        // Written over safely if each element is read where it will be written.
        bool const in_place =
            group_of(id) == k && is_contiguous(g_[id].meta.shape, a.strides) && a.offset == 0;
        f(input, in_place, !again);
        seen.push_back(input);
      }
  }

  // Stable order by level. A group that overwrites an input comes after all groups that read it; nothing but
  // outputs may depend on such a group, else (or if two such groups wait for each other) the result is moved there
  // at the end.
  constexpr void order_groups() {
    int levels = 0;
    for (Group const& x : f_.groups) levels = x.level + 1 > levels ? x.level + 1 : levels;
    Vec<int> start(at(levels) + 1, 0), by_level(f_.groups.size(), 0);
    for (Group const& x : f_.groups) ++start[at(x.level) + 1];
    for (std::size_t l = 1; l < start.size(); ++l) start[l] += start[l - 1];
    for (std::size_t k = 0; k < f_.groups.size(); ++k)
      by_level[at(start[at(f_.groups[k].level)]++)] = static_cast<int>(k);

    readers_.assign(at(g_.inputs), 0);
    for (std::size_t k = 0; k < f_.groups.size(); ++k)
      if (joined_[k] == 0)
        for_inputs_read(static_cast<int>(k),
                        [&](int input, bool, bool first) { readers_[at(input)] += first ? 1 : 0; });
    Vec<int> waiting;
    auto const take = [&](int k) {
      order_.push_back(k);
      for_inputs_read(k, [&](int input, bool, bool first) { readers_[at(input)] -= first ? 1 : 0; });
    };
    auto const take_ready = [&] {
      for (bool again = true; again;) {
        again = false;
        for (int& k : waiting) {
          if (k < 0 || !may_overwrite(k)) continue;
          take(k);
          k = -1;
          again = true;
        }
      }
    };
    for (int k : by_level) {
      if (joined_[at(k)] != 0) continue;
      if (overwrites(k) && !f_.groups[at(k)].read_by_others && !may_overwrite(k)) {
        waiting.push_back(k);
        continue;
      }
      if (overwrites(k) && !may_overwrite(k)) move_results(k);
      take(k);
      // Groups wait for the last reader of an input; only a group that read one can have released any.
      if (!waiting.empty() && reads_inputs(k)) take_ready();
    }
    for (int k : waiting) {
      if (k < 0) continue;
      if (!may_overwrite(k)) move_results(k);
      take(k);
    }
  }

  constexpr bool reads_inputs(int k) const {
    bool any = false;
    for_inputs_read(k, [&](int, bool, bool) { any = true; });
    return any;
  }
  constexpr bool overwrites(int k) const {
    for (int id : f_.groups[at(k)].members)
      if (alias_[at(id)] >= 0) return true;
    return false;
  }
  // Whether group k may write its results onto the inputs now: it is their only reader left, element by element.
  constexpr bool may_overwrite(int k) const {
    Group const& x = f_.groups[at(k)];
    if (x.kind != Group::Kind::loop || x.split >= 0) return false;
    bool ok = true;
    for (int id : x.members) {
      int const input = alias_[at(id)];
      if (input < 0) continue;
      int own = 0;
      for_inputs_read(k, [&](int i, bool in_place, bool) {
        if (i != input) return;
        own = 1;
        ok = ok && in_place;
      });
      ok = ok && readers_[at(input)] == own && g_[id].meta.shape == x.space;
    }
    return ok;
  }
  constexpr void move_results(int k) {
    for (int id : f_.groups[at(k)].members)
      if (alias_[at(id)] >= 0) {
        moved_.push_back(id);
        moved_to_.push_back(alias_[at(id)]);
        alias_[at(id)] = -1;
      }
  }

  constexpr int buffer_of(int id) {
    if (buffer_.empty()) buffer_.assign(g_.nodes.size(), -1);
    int& b = buffer_[at(id)];
    int const now = static_cast<int>(plan.steps.size());
    if (b < 0) {
      b = static_cast<int>(plan.buffers.size());
      plan.buffers.push_back(Buffer{g_[id].meta.shape.numel(), g_[id].meta.dtype, now, now});
    }
    plan.buffers[at(b)].last = now;
    return b;
  }

  constexpr Argument argument(int id, index_t offset) {
    Node const& n = g_[id];
    Argument a{Argument::Kind::none, -1, offset, n.meta.dtype};
    if (n.code() == Code::input) a.kind = Argument::Kind::input, a.index = static_cast<int>(n.attrs.i[0]);
    else if (is_generated(n)) return a;
    else if (alias_[at(id)] >= 0) a.kind = Argument::Kind::input, a.index = alias_[at(id)];
    else a.kind = Argument::Kind::buffer, a.index = buffer_of(id);
    return a;
  }

  constexpr void put_walk(Shape const& shape, Strides const& strides) {
    plan.code.push_back(shape.rank);
    for (int i = 0; i < shape.rank; ++i) plan.code.push_back(shape[i]);
    for (int i = 0; i < shape.rank; ++i) plan.code.push_back(strides[i]);
  }

  constexpr Step begin_step(Step::Kind kind, int node) const {
    return Step{kind,
                node,
                g_[node].meta.dtype,
                static_cast<int>(plan.code.size()),
                0,
                static_cast<int>(plan.arguments.size()),
                0};
  }

  constexpr void add_step(int k) {
    Group const& x = f_.groups[at(k)];
    if (x.kind != Group::Kind::loop) return add_kernel(x);
    if (product_[at(k)] >= 0) {
      Group const& product = f_.groups[at(product_[at(k)])];
      Lowered const l = lower(g_, f_, x, stored_, true);
      index_t const width =
          g_[product.members[0]].meta.dtype == DType::f32 ? loop_code::four_bytes : loop_code::eight_bytes;
      if (l.code[loop_code::width] == width) return add_product(product, x, l);
      add_kernel(product);
    }
    Step s = begin_step(Step::Kind::loop, x.members[0]);
    Lowered const l = lower(g_, f_, x, stored_);
    for (index_t c : l.code) plan.code.push_back(c);
    for (Memory const& m : l.memory) plan.arguments.push_back(argument(m));
    end_step(s);
  }

  constexpr Argument argument(Memory const& m) {
    if (m.kind == Memory::Kind::node) return argument(static_cast<int>(m.what), m.offset);
    int const now = static_cast<int>(plan.steps.size());
    plan.buffers.push_back(Buffer{m.what, m.dtype, now, now});
    return Argument{Argument::Kind::buffer, static_cast<int>(plan.buffers.size()) - 1, 0, m.dtype};
  }

  // A matrix product or an op with its own kernel: operands then the result, each a shape and strides.
  constexpr void put_operands(Node const& n) {
    for (int i = 0; i < n.arity(); ++i) {
      Access const& a = access(n.in[i]);
      put_walk(g_[n.in[i]].meta.shape, a.strides);
      plan.arguments.push_back(argument(a.root, a.offset));
    }
    put_walk(n.meta.shape, contiguous(n.meta.shape));
  }
  constexpr void add_kernel(Group const& x) {
    int const id = x.members[0];
    Step s = begin_step(x.kind == Group::Kind::matmul ? Step::Kind::matmul : Step::Kind::opaque, id);
    put_operands(g_[id]);
    plan.arguments.push_back(argument(id, 0));
    if (s.kind == Step::Kind::opaque) {
      s.own_kernel = static_cast<int>(plan.own_kernels.size());
      plan.own_kernels.push_back(OwnKernel{g_[id].op->run, g_[id].attrs});
    }
    end_step(s);
  }
  constexpr void add_product(Group const& product, Group const& x, Lowered const& l) {
    int const id = product.members[0];
    Step s = begin_step(Step::Kind::matmul, id);
    put_operands(g_[id]);
    s.epilogue = static_cast<int>(plan.code.size());
    s.epilogue_node = x.members[0];
    for (index_t c : l.code) plan.code.push_back(c);
    int result = -1;
    for (int m : x.members)
      if (is_result(m, id)) result = m;
    Argument const to = argument(result, 0);
    plan.arguments.push_back(to);
    for (std::size_t i = 0; i < l.memory.size(); ++i) {
      Memory const& m = l.memory[i];
      bool const of_node = m.kind == Memory::Kind::node;
      if (of_node && m.what == id) {
        s.given = static_cast<int>(i);
        plan.arguments.push_back(Argument{Argument::Kind::none, -1, 0, m.dtype});
        continue;
      }
      if (of_node && m.what == result && m.written) s.stored = static_cast<int>(i);
      plan.arguments.push_back(argument(m));
      Argument const& now = plan.arguments.back();
      if (!m.written && now.kind == to.kind && now.index == to.index) s.epilogue_reads_result = true;
    }
    end_step(s);
  }

  constexpr void end_step(Step s) {
    s.code_size = static_cast<int>(plan.code.size()) - s.code;
    s.arguments = static_cast<int>(plan.arguments.size()) - s.argument;
    plan.steps.push_back(s);
  }

  constexpr void finish() {
    plan.requirements = g_.requirements;
    plan.inputs = g_.inputs;
    plan.nodes = g_.size();
    for (Node const& n : g_.nodes)
      if (n.code() == Code::input && !n.meta.shape.is_static()) plan.is_static = false;
    for (std::size_t i = 0; i < moved_.size(); ++i) {
      Step s = begin_step(Step::Kind::move, moved_[i]);
      Node const& n = g_[moved_[i]];
      plan.code.push_back(n.meta.shape.numel());
      plan.arguments.push_back(argument(moved_[i], 0));
      plan.arguments.push_back(Argument{Argument::Kind::input, moved_to_[i], 0, n.meta.dtype});
      end_step(s);
    }
    for (int o : g_.outputs) {
      Access const& a = access(o);
      plan.results.push_back(Result{argument(a.root, a.offset), g_[o].meta, a.strides});
    }
  }

  Graph const& g_;
  Fusion f_;
  Vec<char> stored_, joined_;  // joined_: products that are computed with the group after them
  Vec<int> product_;           // for each group the product it is the epilogue of, or -1
  Vec<int> alias_, order_, readers_, buffer_, moved_, moved_to_;
};

}  // namespace detail

/// make_plan - the plan of a graph that `prepare` has been over.
constexpr Plan make_plan(Graph const& g, Aliases const& aliases) { return detail::Planner(g, aliases).plan; }

}  // namespace dfdx::graph
