// SPDX-License-Identifier: BSL-1.0
// Lowering of one loop group: from nodes to a description of the loop nest (core/loop_code.hpp) and the memory its
// operands are. Dims that every operand walks as one are merged; values that a later phase needs again are either
// computed again or, if that costs more, kept in a row of scratch memory.
#pragma once

#include <bit>

#include <dfdx/core/loop_code.hpp>
#include <dfdx/graph/loop_parts.hpp>
#include <dfdx/graph/lowered.hpp>
#include <dfdx/graph/sink.hpp>

namespace dfdx::graph {

namespace detail {

class LoopBuilder {
  using Record = LoopRecord;
  using Instruction = LoopInstruction;
  using Role = LoopInstruction::Role;

 public:
  constexpr LoopBuilder(Graph const& g, Fusion const& f, Group const& group, Vec<char> const& stored,
                        bool by_rows)
      : nodes_(g.nodes.data()),
        access_(f.access.data()),
        place_(f.place.data()),
        group_(group),
        space_(group.space),
        by_rows_(by_rows) {
    slot_.assign(group.members.size(), -1);
    for (std::size_t m = 0; m < group.members.size(); ++m) add(m, stored);
    bool const may_turn = group_.split < 0 && !by_rows_;
    if (int const a = may_turn ? better_lanes(space_, code_, records_) : -1; a >= 0) move_last(a);
    split_ = group_.split >= 0 ? group_.split : by_rows_ ? last_axis() : first_of_last_walk();
    settle_levels();
    settle_phases();
    keep_values();
    write();
  }

  Lowered result;

 private:
  constexpr int last_axis() const { return last_long_axis(space_); }
  // Makes an axis the last, and those before it that all operands walk as one with it.
  constexpr void move_last(int axis) {
    int first = axis;
    while (first > 0 && one_walk(first - 1, first)) --first;
    for (int moved = first; moved <= axis; ++moved)
      for (int a = first, last = last_axis(); a < last; ++a) {
        std::swap(space_.dims[a], space_.dims[a + 1]);
        for (Record& r : records_) std::swap(r.strides.dims[a], r.strides.dims[a + 1]);
      }
  }
  constexpr int rank() const { return group_.space.rank; }

  // Strides over a node's axes, spread over the axes of the space.
  constexpr Strides spread(Strides const& own, Shape const& shape, Place const& p) const {
    Strides r;
    r.rank = rank();
    for (int x = 0; x < shape.rank; ++x)
      if (p.axis[x] >= 0 && shape.dims[x] != 1) r.dims[static_cast<int>(p.axis[x])] = own.dims[x];
    return r;
  }

  constexpr int push(Instruction const& i) {
    code_.push_back(i);
    code_.back().role = LoopInstruction::role_of(i.code);
    return static_cast<int>(code_.size()) - 1;
  }
  // The same instruction again is the one there is.
  constexpr int once(Instruction const& x) {
    for (std::size_t i = 0; i < code_.size(); ++i)
      if (Instruction const& o = code_[i];
          o.code == x.code && o.type == x.type && o.a == x.a && o.immediate == x.immediate)
        return static_cast<int>(i);
    return push(x);
  }
  constexpr index_t operand(Memory m, Strides const& strides, index_t fill = 0, index_t combine = 0) {
    for (std::size_t k = 0; k < records_.size(); ++k) {
      Memory const& o = result.memory[k];
      if (o.kind == m.kind && o.what == m.what && o.offset == m.offset && o.written == m.written &&
          o.turn == m.turn && records_[k].strides == strides)
        return static_cast<index_t>(k);
    }
    records_.push_back(Record{m.dtype, fill, combine, strides});
    m.member = member_;
    m.operand = operand_;
    result.memory.push_back(m);
    return static_cast<index_t>(records_.size()) - 1;
  }

  constexpr int instruction_of(int member_id) const {
    // Members are in ascending order of id.
    std::size_t low = 0, high = group_.members.size();
    while (high - low > 1) {
      std::size_t const mid = (low + high) / 2;
      if (group_.members[mid] <= member_id) low = mid;
      else high = mid;
    }
    return slot_[low];
  }

  constexpr int operand_value(int id, Place const& user) {
    Node const& v = nodes_[id];
    Access const& a = access_[id];
    Node const& root = nodes_[a.root];
    if (root.op->code == Code::constant)
      return once({loop_code::constant, v.meta.dtype, -1, -1, -1, std::bit_cast<index_t>(root.attrs.f[0])});
    if (place_[a.root].group == user.group && !is_view(root)) return held(instruction_of(a.root), root);
    Strides const over = spread(a.strides, v.meta.shape, user);
    if (root.op->code == Code::iota) {
      // The strides of the root count its positions along one axis only.
      Strides steps = a.strides;
      for (int x = 0; x < v.meta.shape.rank; ++x) steps[x] = 0;
      for (int x = 0; x < root.meta.shape.rank; ++x)
        if (x == static_cast<int>(root.attrs.i[0]) && a.driver[x] >= 0) steps[a.driver[x]] = 1;
      index_t const k = operand(Memory{Memory::Kind::node, a.root, 0, v.meta.dtype, false},
                                spread(steps, v.meta.shape, user));
      return push({loop_code::iota, v.meta.dtype, k});
    }
    index_t const k =
        operand(Memory{Memory::Kind::node, a.root, a.offset, v.meta.dtype, false, a.turn}, over);
    return once({loop_code::load, v.meta.dtype, k});
  }

  // What others in the group read of a value: what a cast to 16 bits gives is rounded, by another cast to the same.
  constexpr int held(int value, Node const& n) {
    bool const rounds = n.op->code == Code::cast && is_half(n.meta.dtype);
    return rounds ? once({loop_code::cast, n.meta.dtype, value}) : value;
  }

  static constexpr index_t reduction_code(Code c) {
    return loop_code::reduce_sum + (static_cast<index_t>(c) - static_cast<index_t>(Code::reduce_sum));
  }

  constexpr void add(std::size_t m, Vec<char> const& stored) {
    int const id = group_.members[m];
    Node const& n = nodes_[id];
    Place const& p = place_[id];
    index_t x[3] = {-1, -1, -1};
    member_ = static_cast<int>(m);
    for (int k = 0; k < n.op->arity; ++k) {
      operand_ = k;
      x[k] = operand_value(n.in[k], p);
    }
    operand_ = -1;
    bool const reduces = is_reduction(n);
    if (reduces && p.accumulated) return add_accumulated(id, static_cast<int>(x[0]));
    int mine = static_cast<int>(x[0]);  // a copied reshape is its operand, stored
    if (reduces) mine = push({reduction_code(n.op->code), n.meta.dtype, x[0]});
    else if (n.op->code == Code::cast) mine = push({loop_code::cast, n.meta.dtype, x[0]});
    else if (!is_view(n)) {
      mine = push({static_cast<index_t>(n.op->code), n.meta.dtype, x[0], x[1], x[2]});
      code_.back().cost = n.op->cost;
    }
    slot_[m] = mine;
    if (stored[id] == 0) return;
    Shape const& walked = is_view(n) ? nodes_[n.in[0]].meta.shape : n.meta.shape;
    index_t const k = operand(Memory{Memory::Kind::node, id, 0, n.meta.dtype, true},
                              spread(p.strides_of(walked), walked, p));
    push({loop_code::store, n.meta.dtype, k, mine});
  }

  // Inner axes that the reduction covers are reduced in registers first; the rest adds up in memory.
  constexpr void add_accumulated(int id, int value) {
    Node const& n = nodes_[id];
    Place const& p = place_[id];
    index_t const combine = reduction_code(n.op->code);
    int const first_inner = group_.split < 0 ? last_axis() : group_.split;
    bool covers = true;
    for (int a = first_inner; a < rank(); ++a)
      covers = covers && (group_.space[a] == 1 || reduces_axis(n, p, a));
    if (covers && group_.space.rank > 0) value = push({combine, n.meta.dtype, value});
    index_t const k =
        operand(Memory{Memory::Kind::node, id, 0, n.meta.dtype, true},
                spread(contiguous(n.meta.shape), n.meta.shape, p), n.meta.shape.numel(), combine);
    push({loop_code::accumulate, n.meta.dtype, k, value});
  }
  constexpr bool reduces_axis(Node const& n, Place const& p, int space_axis) const {
    for (int x = 0; x < max_rank; ++x)
      if ((n.attrs.i[0] >> x & 1) != 0 && p.axis[x] == space_axis) return true;
    return false;
  }

  template <class F>
  constexpr void for_values(Instruction const& i, F f) const {
    if (i.role <= Role::reads) return;
    if (i.role == Role::stores) return f(i.b);
    f(i.a);
    if (i.b >= 0) f(i.b);
    if (i.c >= 0) f(i.c);
  }

  constexpr bool varies_inside(Strides const& s) const {
    for (int a = split_; a < s.rank; ++a)
      if (s.dims[a] != 0 && space_.dims[a] != 1) return true;
    return false;
  }

  constexpr void settle_levels() {
    Instruction* const code = code_.data();
    Record const* const records = records_.data();
    for (Instruction& i : code_) {
      if (i.role == Role::constant) continue;
      bool row = true;
      if (i.role == Role::reads) row = !varies_inside(records[i.a].strides);
      else if (i.role != Role::reduces)
        for_values(i, [&](index_t v) {
          if (code[v].role != Role::constant && code[v].level != loop_code::row_level) row = false;
        });
      // A value that is the same along a row is stored once for each row only if the memory has one place for it.
      if (row && i.role == Role::stores && varies_inside(records[i.a].strides)) row = false;
      i.level = row ? loop_code::row_level : loop_code::element_level;
    }
  }

  constexpr void settle_phases() {
    Instruction* const code = code_.data();
    for (Instruction& i : code_) {
      for_values(i, [&](index_t v) {
        Instruction const& o = code[v];
        if (o.phase > i.phase) i.phase = o.phase;
        if (i.level == loop_code::element_level && o.level == loop_code::element_level &&
            o.role != Role::constant)
          i.cost += o.cost;
      });
      if (i.role == Role::reduces) ++i.phase;
    }
  }

  // From the last instruction back: the phases each is needed in, and which values to keep.
  constexpr void keep_values() {
    std::size_t const n = code_.size();
    Instruction* const code = code_.data();
    Vec<char> keep;
    for (std::size_t k = n; k-- > 0;) {
      Instruction& i = code[k];
      bool const reduces = i.role == Role::reduces;
      if (i.role == Role::stores && i.level == loop_code::element_level) i.mask |= 1u << i.phase;
      if (reduces) i.mask = 1u << (i.phase - 1);
      unsigned needed = reduces ? i.mask : i.level == loop_code::element_level ? i.mask : 0;
      unsigned const later = needed & ~(1u << i.phase);
      if (!reduces && later != 0 && i.cost >= worth_keeping) {
        if (keep.empty()) keep.assign(n, 0);
        keep[k] = 1;
        i.mask |= 1u << i.phase;
        needed = 1u << i.phase;
      }
      for_values(i, [&](index_t v) {
        Instruction& o = code[v];
        if (o.level == loop_code::element_level && o.role != Role::constant) o.mask |= needed;
      });
    }
    for (std::size_t k = 0; k < keep.size(); ++k)
      if (keep[k] != 0) code_[k].stash = kept(static_cast<index_t>(k));
  }

  // Memory in which a value survives its phase: where it is stored anyway, else a row of scratch.
  constexpr index_t kept(index_t value) {
    for (Instruction const& i : code_)
      if (i.code == loop_code::store && i.b == value && i.level == loop_code::element_level) return i.a;
    Instruction const of = code_[value];
    Shape row = space_;
    for (int a = 0; a < split_; ++a) row[a] = 1;
    Strides s = contiguous(row);
    for (int a = 0; a < split_; ++a) s[a] = 0;
    Memory const scratch{Memory::Kind::scratch, row.numel(), static_cast<index_t>(result.memory.size()),
                         of.type, true};
    records_.push_back(Record{of.type, 0, loop_code::scratch, s});
    result.memory.push_back(scratch);
    result.memory.back().offset = 0;
    auto const k = static_cast<index_t>(records_.size()) - 1;
    Instruction store{loop_code::store, of.type, k, value};
    store.phase = of.phase;
    store.mask = 1u << of.phase;
    push(store);
    return k;
  }

  // Without phases a row is as long as all operands walk it in one: the axes that will merge with the last.
  constexpr int first_of_last_walk() const {
    int first = last_axis();
    for (int a = first - 1; a >= 0; --a) {
      if (space_[a] == 1) continue;
      if (!one_walk(a, first)) break;
      first = a;
    }
    return first;
  }
  constexpr bool one_walk(int outer, int inner) const {
    for (Record const& r : records_)
      if (r.strides.dims[outer] != extent::mul(r.strides.dims[inner], space_.dims[inner])) return false;
    return true;
  }

  // Whether axes d and d+1 are one walk for every operand.
  constexpr bool mergeable(int outer, int inner) const {
    return !(outer < split_ && inner >= split_) && one_walk(outer, inner);
  }

  constexpr void write() {
    int merged[max_rank] = {}, count = 0, split = 0;
    index_t extents[max_rank] = {};
    for (int a = 0; a < rank(); ++a) {
      if (space_[a] == 1) continue;
      if (count > 0 && mergeable(merged[count - 1], a)) {
        extents[count - 1] = extent::mul(extents[count - 1], space_[a]);
        merged[count - 1] = a;
      } else {
        extents[count] = space_[a];
        merged[count++] = a;
      }
      if (a < split_) split = count;
    }
    if (count == split) {  // nothing varies inside a row: a row of one element
      merged[count] = -1;
      extents[count++] = 1;
    }
    int phases = 1;
    for (Instruction const& i : code_)
      if (i.role == Role::reduces) phases = i.phase > phases ? i.phase : phases;
      else if (i.level == loop_code::element_level && i.phase + 1 > phases && i.role != Role::constant)
        phases = i.phase + 1;
    auto const n = static_cast<std::size_t>(count);
    result.code.resize(loop_code::header_size + n + records_.size() * (loop_code::operand_size + n) +
                       code_.size() * loop_code::instruction_size);
    index_t* out = result.code.data();
    for (index_t x :
         {lane_width(code_, records_), index_t{count}, index_t{split}, static_cast<index_t>(records_.size()),
          static_cast<index_t>(code_.size()), index_t{phases}, index_t{0}})
      *out++ = x;
    for (int d = 0; d < count; ++d) *out++ = extents[d];
    for (Record const& r : records_) {
      *out++ = static_cast<index_t>(r.dtype);
      *out++ = r.fill;
      *out++ = r.combine;
      for (int d = 0; d < count; ++d) *out++ = merged[d] < 0 ? 0 : r.strides.dims[merged[d]];
    }
    for (Instruction const& i : code_) {
      loop_code::pack({i.code, static_cast<index_t>(i.type), i.level, i.phase, i.mask, i.a, i.b, i.c, i.stash,
                       i.immediate},
                      out);
      out += loop_code::instruction_size;
    }
  }

  Node const* nodes_;
  Access const* access_;
  Place const* place_;
  Group const& group_;
  Shape space_;  // its dims, in the order of the nest
  bool by_rows_;
  int split_ = 0;
  int member_ = -1, operand_ = -1;  // what is being added
  Vec<Instruction> code_;
  Vec<Record> records_;
  Vec<int> slot_;
};

}  // namespace detail

/// lower - the description of a loop group. `stored` says which nodes must be in memory afterwards. With
/// `by_rows` a row is along the last axis, as the epilogue of a matrix product needs it.
constexpr Lowered lower(Graph const& g, Fusion const& f, Group const& group, Vec<char> const& stored,
                        bool by_rows = false) {
  return detail::LoopBuilder(g, f, group, stored, by_rows).result;
}

}  // namespace dfdx::graph
