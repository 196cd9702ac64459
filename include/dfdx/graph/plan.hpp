// SPDX-License-Identifier: BSL-1.0
// The plan of a program: its kernels in order, what memory each operand is, and where in the arena each value lies and
// how long. Offsets follow from sizes alone (`place_buffers`), so a program with dyn dims works them out when called.
#pragma once

#include <dfdx/graph/lower.hpp>
#include <dfdx/graph/prepare.hpp>

namespace dfdx::graph {

/// Argument - one operand of a kernel: a buffer of the arena or an input, from an element on. `none` has no memory.
struct Argument {
  enum class Kind : unsigned char { none, buffer, input } kind = Kind::none;
  int index = -1;
  index_t offset = 0;
  DType dtype = DType::f32;
};

/// Buffer - a value in the arena, alive from step `first` to step `last`.
struct Buffer {
  index_t elements = 0;
  DType dtype = DType::f32;
  int first = -1, last = -1;
};

/// Step - one kernel: what it is, and its parts of the plan's lists of numbers and arguments. A `move` copies a result
/// onto the input whose memory it takes over, where the kernel itself could not write there.
struct Step {
  enum class Kind : unsigned char { loop, matmul, opaque, move } kind = Kind::loop;
  int node = -1;
  int code = 0, code_size = 0;
  int argument = 0, arguments = 0;
};

/// Result - an output of the program: a strided view of an argument.
struct Result {
  Argument memory{};
  Meta meta{};
  Strides strides{};
};

struct Plan {
  std::vector<Step> steps;
  std::vector<index_t> code;
  std::vector<Argument> arguments;
  std::vector<Buffer> buffers;
  std::vector<Result> results;
};

namespace detail {

class Planner {
 public:
  constexpr Planner(Graph const& g, Aliases const& aliases) : g_(g), f_(fuse(g)) {
    find_stored(aliases);
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

  template <class F>
  constexpr void for_inputs_read(int k, F f) const {
    std::vector<int> seen;
    for (int id : f_.groups[at(k)].members)
      for (int i = 0; i < g_[id].arity(); ++i) {
        Access const& a = access(g_[id].in[i]);
        if (g_[a.root].code() != Code::input) continue;
        auto const input = static_cast<int>(g_[a.root].attrs.i[0]);
        bool again = false;
        for (int s : seen) again = again || s == input;
        // Written over safely if each element is read where it will be written.
        bool const in_place = is_contiguous(g_[id].meta.shape, a.strides) && a.offset == 0;
        f(input, in_place, !again);
        seen.push_back(input);
      }
  }

  // Stable order by level. A group that overwrites an input comes after all groups that read it; nothing but outputs
  // may depend on such a group, else (or if two such groups wait for each other) the result is moved there at the end.
  constexpr void order_groups() {
    int levels = 0;
    for (Group const& x : f_.groups) levels = x.level + 1 > levels ? x.level + 1 : levels;
    std::vector<int> start(at(levels) + 1, 0), by_level(f_.groups.size(), 0);
    for (Group const& x : f_.groups) ++start[at(x.level) + 1];
    for (std::size_t l = 1; l < start.size(); ++l) start[l] += start[l - 1];
    for (std::size_t k = 0; k < f_.groups.size(); ++k) by_level[at(start[at(f_.groups[k].level)]++)] = static_cast<int>(k);

    readers_.assign(at(g_.inputs), 0);
    for (std::size_t k = 0; k < f_.groups.size(); ++k)
      for_inputs_read(static_cast<int>(k), [&](int input, bool, bool first) { readers_[at(input)] += first ? 1 : 0; });
    std::vector<int> waiting;
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

  constexpr Argument argument(int id, index_t offset, bool written) {
    Node const& n = g_[id];
    Argument a{Argument::Kind::none, -1, offset, n.meta.dtype};
    if (n.code() == Code::input) a.kind = Argument::Kind::input, a.index = static_cast<int>(n.attrs.i[0]);
    else if (is_generated(n)) return a;
    else if (alias_[at(id)] >= 0) a.kind = Argument::Kind::input, a.index = alias_[at(id)];
    else a.kind = Argument::Kind::buffer, a.index = buffer_of(id);
    static_cast<void>(written);
    return a;
  }

  constexpr void put_walk(Shape const& shape, Strides const& strides) {
    plan.code.push_back(shape.rank);
    for (int i = 0; i < shape.rank; ++i) plan.code.push_back(shape[i]);
    for (int i = 0; i < shape.rank; ++i) plan.code.push_back(strides[i]);
  }

  constexpr void add_step(int k) {
    Group const& x = f_.groups[at(k)];
    Step s;
    s.node = x.members[0];
    s.code = static_cast<int>(plan.code.size());
    s.argument = static_cast<int>(plan.arguments.size());
    if (x.kind == Group::Kind::loop) {
      Lowered const l = lower(g_, f_, x, stored_);
      for (index_t c : l.code) plan.code.push_back(c);
      for (Memory const& m : l.memory) {
        if (m.kind == Memory::Kind::node) {
          plan.arguments.push_back(argument(static_cast<int>(m.what), m.offset, m.written));
        } else {
          int const now = static_cast<int>(plan.steps.size());
          plan.buffers.push_back(Buffer{m.what, m.dtype, now, now});
          plan.arguments.push_back(
              Argument{Argument::Kind::buffer, static_cast<int>(plan.buffers.size()) - 1, 0, m.dtype});
        }
      }
    } else {
      // Operands then the result, each a shape and strides.
      s.kind = x.kind == Group::Kind::matmul ? Step::Kind::matmul : Step::Kind::opaque;
      Node const& n = g_[s.node];
      for (int i = 0; i < n.arity(); ++i) {
        Access const& a = access(n.in[i]);
        put_walk(g_[n.in[i]].meta.shape, a.strides);
        plan.arguments.push_back(argument(a.root, a.offset, false));
      }
      put_walk(n.meta.shape, contiguous(n.meta.shape));
      plan.arguments.push_back(argument(s.node, 0, true));
    }
    end_step(s);
  }

  constexpr void end_step(Step s) {
    s.code_size = static_cast<int>(plan.code.size()) - s.code;
    s.arguments = static_cast<int>(plan.arguments.size()) - s.argument;
    plan.steps.push_back(s);
  }

  constexpr void finish() {
    for (std::size_t i = 0; i < moved_.size(); ++i) {
      Step s{Step::Kind::move, moved_[i], static_cast<int>(plan.code.size()), 0,
             static_cast<int>(plan.arguments.size()), 0};
      Node const& n = g_[moved_[i]];
      plan.code.push_back(n.meta.shape.numel());
      plan.arguments.push_back(argument(moved_[i], 0, false));
      plan.arguments.push_back(Argument{Argument::Kind::input, moved_to_[i], 0, n.meta.dtype});
      end_step(s);
    }
    for (int o : g_.outputs) {
      Access const& a = access(o);
      plan.results.push_back(Result{argument(a.root, a.offset, false), g_[o].meta, a.strides});
    }
  }

  Graph const& g_;
  Fusion f_;
  std::vector<char> stored_;
  std::vector<int> alias_, order_, readers_, buffer_, moved_, moved_to_;
};

}  // namespace detail

/// make_plan - the plan of a graph that `prepare` has been over.
constexpr Plan make_plan(Graph const& g, Aliases const& aliases) { return detail::Planner(g, aliases).plan; }

/// place_buffers - offsets in bytes for buffers that live at overlapping times, first fit, 64-byte aligned; returns the
/// size of the arena. Symbolic sizes are resolved with `symbols`.
template <class Buffers, class Offsets>
constexpr index_t place_buffers(Buffers const& buffers, index_t const* symbols, Offsets& offsets) {
  struct Block {
    index_t begin, end;
    int last;
  };
  std::vector<Block> used;  // sorted by begin
  index_t total = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    auto const& b = buffers[i];
    index_t const bytes = extent::resolve(b.elements, symbols) * static_cast<index_t>(size_of(b.dtype));
    index_t const size = bytes == 0 ? 64 : (bytes + 63) / 64 * 64;
    // Buffers come in the order of their first step: what ended before it is free.
    std::vector<Block> alive;
    index_t at = 0;
    bool placed = false;
    for (Block const& u : used) {
      if (u.last < b.first) continue;
      if (!placed && u.begin - at >= size) {
        alive.push_back(Block{at, at + size, b.last});
        offsets[i] = at;
        placed = true;
      }
      alive.push_back(u);
      if (u.end > at && !placed) at = u.end;
    }
    if (!placed) {
      alive.push_back(Block{at, at + size, b.last});
      offsets[i] = at;
    }
    used = alive;
    if (offsets[i] + size > total) total = offsets[i] + size;
  }
  return total;
}

}  // namespace dfdx::graph
