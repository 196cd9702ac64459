// SPDX-License-Identifier: BSL-1.0
// The planner: joins products with the loops after them, and writes down for each
// kernel its description and its arguments (graph/layout.hpp says what a plan consists of).
#pragma once

#include <bit>
#include <cstdint>

#include <dfdx/graph/epilogues.hpp>
#include <dfdx/graph/homes.hpp>
#include <dfdx/graph/layout.hpp>
#include <dfdx/graph/lowerings.hpp>
#include <dfdx/graph/order.hpp>
#include <dfdx/graph/prepare.hpp>
#include <dfdx/graph/roll.hpp>
#include <dfdx/graph/share.hpp>

namespace dfdx::graph {

namespace detail {

class Planner {
 public:
  constexpr Planner(Graph const& g, Aliases const& aliases)
      : g_(g),
        f_(plan_fusion(g)),
        nodes_(g.nodes.data()),
        access_(f_.access.data()),
        place_(f_.place.data()),
        homes_(g, f_),
        alias_(g.nodes.size(), -1),
        stored_(g.nodes.size()),
        epilogues_(g, f_, find_stored(aliases)),
        lowerings_(g, f_, stored_) {
    std::size_t const n = g.nodes.size();
    buffer_.assign(n, -1);
    plan.steps.reserve(n / 3);
    plan.arguments.reserve(3 * n / 2);
    plan.code.reserve(12 * n);
    count_readers();
    Order const order(g, f_, alias_, epilogues_, homes_);
    for (int k : order.groups) add_step(k, order);
    finish(order);
    share_kernels(plan);
  }

  Plan plan;

 private:
  constexpr int group_of(int id) const { return place_[id].group; }

  // A value must be stored if another group reads it or it is an output.
  constexpr Vec<char> const& find_stored(Aliases const& aliases) {
    for (int id = 0, size = g_.size(); id < size; ++id) {
      Node const& n = nodes_[id];
      int const mine = group_of(id);
      if (n.op->code == Code::carry) stored_[access_[n.in[0]].root] = 1;
      if (mine < 0) continue;
      bool const loop = f_.groups[mine].kind == Group::Kind::loop;
      for (int k = 0; k < n.op->arity; ++k) {
        int const root = access_[n.in[k]].root;
        if (!loop || group_of(root) != mine || is_view(nodes_[root])) stored_[root] = 1;
      }
    }
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      stored_[access_[g_.outputs[k]].root] = 1;
      if (k < aliases.size() && aliases[k] >= 0) alias_[g_.outputs[k]] = aliases[k];
    }
    return stored_;
  }

  // The values of other groups that group k reads, each once.
  template <class F>
  constexpr void for_roots_read(int k, F f) const {
    Vec<int> seen;
    for (int id : f_.groups[k].members) {
      Node const& n = nodes_[id];
      for (int i = 0; i < n.op->arity; ++i) {
        int const root = access_[n.in[i]].root;
        if (group_of(root) == k) continue;
        bool again = false;
        for (int s : seen) again = again || s == root;
        if (again) continue;
        seen.push_back(root);
        f(root);
      }
    }
  }

  // How many groups still have to read a value that lies in a buffer of its own; `kept` for others, and for what
  // outlives them.
  constexpr void count_readers() {
    readers_ = Vec<int>(g_.nodes.size());
    int* const readers = readers_.data();
    int const* const alias = alias_.data();
    bool const has_loops = !g_.regions.empty();
    for (std::size_t k = 0, n = f_.groups.size(); k < n; ++k)
      for_roots_read(static_cast<int>(k), [&](int root) { ++readers[root]; });
    homes_.for_parts([&](int part, int of) {
      if (readers[part] > 1) readers[of] = kept;
    });
    for (int id = 0, size = g_.size(); id < size; ++id) {
      Node const& n = nodes_[id];
      int const mine = place_[id].group;
      bool const own = mine >= 0 && (!has_loops || f_.groups[mine].kind != Group::Kind::region);
      if (!own || alias[id] >= 0 || homes_.of(id).owner >= 0) readers[id] = kept;
      if (!has_loops) continue;
      for (int i = 0; i < n.op->arity; ++i) {
        int const root = access_[n.in[i]].root;
        if (nodes_[root].region != n.region || is_exit(n)) readers[root] = kept;
      }
    }
    for (int o : g_.outputs) readers_[access_[o].root] = kept;
  }
  static constexpr int kept = 1 << 30;

  // Of the same bytes; a view between them may have given them another shape.
  constexpr bool as_large(int a, int b) const {
    return nodes_[a].meta.dtype == nodes_[b].meta.dtype && homes_.elements(a) == homes_.elements(b);
  }
  // A loop writes a result over an operand that nobody reads after it, if it reads and writes it element by element,
  // and in no later phase again.
  constexpr void reuse_operands(Lowered const& l) {
    auto const dims = static_cast<std::size_t>(l.code[loop_code::dims]);
    auto const record = [&](std::size_t operand) {
      return l.code.data() + loop_code::header_size + dims + operand * (loop_code::operand_size + dims);
    };
    // Whether each element is stored to operand w when it has been loaded from operand r for the last time.
    auto const comes_later = [&](std::size_t w, std::size_t r) {
      index_t last_phase = 0, load = -1, store_phase = 0, store = -1;
      for (index_t i = 0; i < l.code[loop_code::instructions]; ++i) {
        index_t const* const p =
            record(l.memory.size()) + i * static_cast<index_t>(loop_code::instruction_size);
        auto const operand = static_cast<std::size_t>(loop_code::unpack(p, loop_code::a));
        index_t const what = loop_code::unpack(p, loop_code::code);
        bool const loads = what == loop_code::load && operand == r;
        bool const stores = what == loop_code::store && operand == w && store < 0;
        if (!loads && !stores) continue;
        if (l.code[loop_code::phases] > 1 &&
            loop_code::unpack(p, loop_code::level) != loop_code::element_level)
          return false;
        if (stores) {
          store_phase = loop_code::unpack(p, loop_code::phase);
          store = i;
        } else {
          auto const mask = static_cast<std::uint64_t>(loop_code::unpack(p, loop_code::mask));
          auto const until = mask == 0 ? index_t{0} : static_cast<index_t>(std::bit_width(mask)) - 1;
          last_phase = until > last_phase ? until : last_phase;
          load = i;
        }
      }
      return load >= 0 && store >= 0 &&
             (last_phase < store_phase || (last_phase == store_phase && load < store));
    };
    Vec<char> taken(l.memory.size(), 0);
    for (std::size_t w = 0; w < l.memory.size(); ++w) {
      Memory const& to = l.memory[w];
      auto const id = static_cast<int>(to.what);
      if (!to.written || to.kind != Memory::Kind::node || readers_[id] >= kept) continue;
      for (std::size_t r = 0; r < l.memory.size(); ++r) {
        Memory const& from = l.memory[r];
        if (from.written || from.turn >= 0 || taken[r] != 0 || from.kind != Memory::Kind::node ||
            from.offset != 0)
          continue;
        auto const x = static_cast<int>(from.what);
        if (is_generated(nodes_[x]) || readers_[x] != 1 || !as_large(x, id)) continue;
        bool same = record(w)[loop_code::fill] == 0;
        for (std::size_t i = 0; i < dims; ++i)
          same = same && record(w)[loop_code::operand_size + i] == record(r)[loop_code::operand_size + i];
        for (std::size_t o = 0; o < l.memory.size(); ++o)  // read in another way as well
          same = same && (o == r || l.memory[o].kind != Memory::Kind::node || l.memory[o].what != x);
        if (!same || !comes_later(w, r)) continue;
        taken[r] = 1;
        buffer_[id] = buffer_of(x);
        break;
      }
    }
  }

  constexpr int buffer_of(int id) {
    int& b = buffer_[id];
    int const now = static_cast<int>(plan.steps.size());
    if (b < 0) {
      b = static_cast<int>(plan.buffers.size());
      plan.buffers.push_back(Buffer{homes_.elements(id), nodes_[id].meta.dtype, now, now});
    }
    plan.buffers[b].last = now;
    return b;
  }

  constexpr Argument argument(int id, index_t offset, int turn = -1) {
    Node const& n = nodes_[id];
    Argument a{Argument::Kind::none, -1, offset, n.meta.dtype, turn};
    if (n.op->code == Code::input) a.kind = Argument::Kind::input, a.index = static_cast<int>(n.attrs.i[0]);
    else if (is_generated(n)) return a;
    else if (alias_[id] >= 0) a.kind = Argument::Kind::input, a.index = alias_[id];
    else if (Home const h = homes_.of(id); h.owner >= 0) {
      bool const taken_over = alias_[h.owner] >= 0;
      a = {taken_over ? Argument::Kind::input : Argument::Kind::buffer,
           taken_over ? alias_[h.owner] : buffer_of(h.owner), offset, n.meta.dtype,
           joined_turns(f_.turns, h.turn, turn)};
      move_by(a.offset, a.turn, f_.turns, 1, h.offset);
    } else a.kind = Argument::Kind::buffer, a.index = buffer_of(id);
    return a;
  }

  constexpr void put_walk(Shape const& shape, Strides const& strides) {
    plan.code.push_back(shape.rank);
    plan.code.append(shape.dims, shape.dims + shape.rank);
    plan.code.append(strides.dims, strides.dims + shape.rank);
  }

  constexpr Step begin_step(Step::Kind kind, int node) const {
    auto const code = static_cast<int>(plan.code.size()), argument = static_cast<int>(plan.arguments.size());
    return Step{kind, node, nodes_[node].meta.dtype, code, 0, argument, 0};
  }

  constexpr void add_step(int k, Order const& order) {
    Group const& x = f_.groups[k];
    if (x.kind == Group::Kind::loop && x.members.empty()) return;  // all of it sank elsewhere
    if (x.kind == Group::Kind::opaque && Homes::is_joined(nodes_[x.members[0]])) return;
    if (x.kind == Group::Kind::region) return add_loop(x.behind, order);
    if (x.kind != Group::Kind::loop) return add_kernel(x);
    if (epilogues_.product[k] >= 0) {
      Group const& product = f_.groups[epilogues_.product[k]];
      Lowered const& l = lowerings_.of(x, true);
      if (suits(l, nodes_[product.members[0]].meta.dtype)) return add_product(product, x, l);
      add_kernel(product);
    }
    Step s = begin_step(Step::Kind::loop, x.members[0]);
    Lowered const& l = lowerings_.of(x);
    reuse_operands(l);
    plan.code.append(l.code.begin(), l.code.end());
    for (Memory const& m : l.memory) plan.arguments.push_back(argument(m));
    end_step(s);
  }

  // Whether the kernel of a product can run a loop: lanes as wide as its own, rows and columns.
  static constexpr bool suits(Lowered const& l, DType product) {
    index_t const width = product == DType::f32 ? loop_code::four_bytes : loop_code::eight_bytes;
    index_t const split = l.code[loop_code::split];
    return l.code[loop_code::width] == width && split <= 1 && l.code[loop_code::dims] == split + 1;
  }

  // The steps of a region. What lasts longer than one iteration lasts as long as the loop.
  constexpr void add_loop(int r, Order const& order) {
    auto const begin = static_cast<int>(plan.steps.size());
    std::size_t const loop = plan.loops.size();
    for (int id = 0, size = g_.size(); id < size; ++id) {
      Node const& n = nodes_[id];
      if (n.op->code == Code::last && region_behind(n) == r) static_cast<void>(argument(id, 0));
      if (n.op->code == Code::stack && region_behind(n) == r) static_cast<void>(argument(id, 0));
    }
    std::size_t const lasting = plan.buffers.size();
    plan.loops.push_back(StepLoop{begin, begin, r, g_.regions[r].count, g_.regions[r].reversed});
    for (int k : order.by_level)
      if (epilogues_.joined[k] == 0 && f_.groups[k].region == r) add_step(k, order);
    auto const end = static_cast<int>(plan.steps.size());
    if (end == begin) return plan.loops.resize(loop);
    plan.loops[loop].last = end;
    for (std::size_t b = 0; b < lasting; ++b)
      if (plan.buffers[b].last >= begin) plan.buffers[b].last = end - 1;
    roll(loop, lasting);
  }

  // One step in place of those of a loop over single numbers, if nothing else is in it.
  constexpr void roll(std::size_t loop, std::size_t lasting) {
    if (plan.loops.size() != loop + 1) return;
    StepLoop const l = plan.loops[loop];
    Roller const r(plan, f_.turns, l, lasting);
    if (!r.rolled) return;
    Step s = plan.steps[l.first];
    plan.loops.resize(loop);
    plan.steps.resize(static_cast<std::size_t>(l.first));
    plan.code.resize(static_cast<std::size_t>(s.code));
    plan.arguments.resize(static_cast<std::size_t>(s.argument));
    plan.code.append(r.code.begin(), r.code.end());
    for (Argument const& a : r.arguments) plan.arguments.push_back(a);
    for (Buffer& b : plan.buffers) {
      b.first = b.first > l.first ? l.first : b.first;
      b.last = b.last > l.first ? l.first : b.last;
    }
    s.rolled = l.region;
    end_step(s);
  }

  constexpr Argument argument(Memory const& m) {
    if (m.kind == Memory::Kind::node) return argument(static_cast<int>(m.what), m.offset, m.turn);
    int const now = static_cast<int>(plan.steps.size());
    plan.buffers.push_back(Buffer{m.what, m.dtype, now, now});
    return Argument{Argument::Kind::buffer, static_cast<int>(plan.buffers.size()) - 1, 0, m.dtype, -1};
  }

  // A matrix product or an op with its own kernel: operands then the result, each a shape and strides.
  constexpr void put_operands(Node const& n) {
    for (int i = 0; i < n.op->arity; ++i) {
      Access const& a = access_[n.in[i]];
      put_walk(nodes_[n.in[i]].meta.shape, a.strides);
      plan.arguments.push_back(argument(a.root, a.offset, a.turn));
    }
    put_result(n);
  }
  constexpr void put_result(Node const& n) { put_walk(n.meta.shape, contiguous(n.meta.shape)); }
  constexpr void add_kernel(Group const& x) {
    int const id = x.members[0];
    Step s = begin_step(x.kind == Group::Kind::matmul ? Step::Kind::matmul : Step::Kind::opaque, id);
    put_operands(nodes_[id]);
    plan.arguments.push_back(argument(id, 0));
    if (s.kind == Step::Kind::opaque) {
      s.own_kernel = static_cast<int>(plan.own_kernels.size());
      bool const has_second = x.members.size() > 1;
      if (has_second) put_result(nodes_[x.members[1]]), plan.arguments.push_back(argument(x.members[1], 0));
      plan.own_kernels.push_back(has_second ? OwnKernel(nodes_[id], *nodes_[x.members[1]].op)
                                            : OwnKernel(nodes_[id], nodes_));
    }
    end_step(s);
  }
  constexpr void add_product(Group const& product, Group const& x, Lowered const& l) {
    int const id = product.members[0];
    Step s = begin_step(Step::Kind::matmul, id);
    put_operands(nodes_[id]);
    s.epilogue = static_cast<int>(plan.code.size());
    s.epilogue_node = x.members[0];
    plan.code.append(l.code.begin(), l.code.end());
    int result = -1;
    for (int m : x.members)
      if (epilogues_.is_result(m, id)) result = m;
    Argument const to = argument(result, 0);
    plan.arguments.push_back(to);
    for (std::size_t i = 0; i < l.memory.size(); ++i) {
      Memory const& m = l.memory[i];
      bool const of_node = m.kind == Memory::Kind::node;
      if (of_node && m.what == id) {
        s.given = static_cast<int>(i);
        plan.arguments.push_back(Argument{Argument::Kind::none, -1, 0, m.dtype, -1});
        continue;
      }
      if (of_node && m.what == result && m.written) s.stored = static_cast<int>(i);
      plan.arguments.push_back(argument(m));
      Argument const& now = plan.arguments.back();
      if (!m.written && may_overlap(now, to)) s.epilogue_reads_result = true;
    }
    end_step(s);
  }

  // Two places of one ring are two memories.
  constexpr bool may_overlap(Argument const& a, Argument const& b) const {
    if (a.kind != b.kind || a.index != b.index) return false;
    if (a.turn < 0 || b.turn < 0 || a.offset != b.offset) return true;
    Turn const &s = f_.turns[a.turn], &t = f_.turns[b.turn];
    return !(s.region == t.region && s.step == t.step && s.wrap == t.wrap && s.next == t.next && s.wrap > 1 &&
             s.shift != t.shift);
  }

  constexpr void end_step(Step s) {
    s.code_size = static_cast<int>(plan.code.size()) - s.code;
    s.arguments = static_cast<int>(plan.arguments.size()) - s.argument;
    plan.steps.push_back(s);
  }

  constexpr void finish(Order const& order) {
    plan.requirements = g_.requirements;
    plan.inputs = g_.inputs, plan.literal_inputs = g_.literal_inputs;
    plan.nodes = g_.size();
    for (Node const& n : g_.nodes)  // all: an input whose numbers nobody reads is no node
      if (!n.meta.shape.is_static()) plan.is_static = false;
    for (std::size_t i = 0; i < order.moved.size(); ++i) {
      Step s = begin_step(Step::Kind::move, order.moved[i]);
      Node const& n = nodes_[order.moved[i]];
      plan.code.push_back(n.meta.shape.numel());
      plan.arguments.push_back(argument(order.moved[i], 0));
      plan.arguments.push_back(Argument{Argument::Kind::input, order.moved_to[i], 0, n.meta.dtype, -1});
      end_step(s);
    }
    for (int o : g_.outputs) {
      Access const& a = access_[o];
      plan.results.push_back(Result{argument(a.root, a.offset, a.turn), nodes_[o].meta, a.strides});
    }
    plan.turns = f_.turns;
  }

  Graph const& g_;
  Fusion f_;
  Node const* nodes_;
  Access const* access_;
  Place const* place_;
  Homes homes_;
  Vec<int> alias_;
  Vec<char> stored_;
  Epilogues epilogues_;
  Lowerings lowerings_;
  Vec<int> buffer_, readers_;
};

}  // namespace detail

/// make_plan - the plan of a graph that `prepare` has been over.
constexpr Plan make_plan(Graph const& g, Aliases const& aliases) { return detail::Planner(g, aliases).plan; }

}  // namespace dfdx::graph
