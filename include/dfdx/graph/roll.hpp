// SPDX-License-Identifier: BSL-1.0
// Rolling: a loop whose kernels compute single numbers becomes one kernel that goes through all iterations by itself,
// with what one iteration hands to the next in registers. A call for each iteration would cost more than its
// arithmetic.
#pragma once

#include <dfdx/core/loop_code.hpp>
#include <dfdx/graph/layout.hpp>

namespace dfdx::graph {

namespace detail {

/// Roller - joins the steps of one loop where that can be done: `rolled` says whether, `code` and `arguments` are the
/// kernel's. Its nest is the loop, a row an iteration. A number that is stored and loaded again in the same iteration
/// or the next stays in a register; what is loaded and never stored there is loaded once.
///
/// Buffers from `temporary` on hold nothing after the loop.
class Roller {
 public:
  constexpr Roller(Plan const& plan, Vec<Turn>& turns, StepLoop const& loop, std::size_t temporary)
      : plan_(plan), turns_(turns), loop_(loop), temporary_(temporary) {
    rolled = loop.count > 0;
    for (int k = loop.first; rolled && k < loop.last; ++k) rolled = add(plan.steps[k]);
    for (std::size_t k = 0; rolled && k < stores_.size(); ++k) rolled = settle_store(k);
    for (std::size_t k = 0; rolled && k < loads_.size(); ++k) rolled = settle_load(loads_[k]);
    rolled = rolled && code_.size() <= most_instructions;
    if (rolled) write();
  }

  bool rolled = false;
  Vec<index_t> code;
  Vec<Argument> arguments;

 private:
  using Instruction = loop_code::Instruction;
  static constexpr std::size_t most_instructions = 640;

  /// Spot - where a number lies: from `base` on `step` elements further with each position of the loop; in a ring in
  /// one of two places by turns.
  struct Spot {
    Argument base{};
    index_t step = 0, shift = 0;
    bool ring = false;
  };
  /// Access - an instruction that loads a number, or the value that is stored.
  struct Access {
    Spot spot{};
    index_t value = -1;
  };

  constexpr Instruction& at(index_t i) { return code_[i]; }
  constexpr index_t forward() const { return loop_.reversed ? -1 : 1; }
  constexpr index_t first() const { return loop_.reversed ? loop_.count - 1 : 0; }
  constexpr index_t last() const { return loop_.count - 1 - first(); }

  // --- instructions of all steps, one after another ---

  constexpr bool add(Step const& s) {
    if (s.kind != Step::Kind::loop || s.rolled >= 0) return false;
    index_t const* const from = plan_.code.data() + s.code;
    if (from[loop_code::dims] != 1 || from[loop_code::header_size] != 1) return false;
    index_t const* const program =
        from + loop_code::header_size + 1 + from[loop_code::operands] * index_t{loop_code::operand_size + 1};
    Vec<index_t> values;  // where the step's instructions are here
    for (index_t i = 0; i < from[loop_code::instructions]; ++i) {
      index_t const* const p = program + i * static_cast<index_t>(loop_code::instruction_size);
      auto const field = [&](loop_code::InstructionField f) { return loop_code::unpack(p, f); };
      auto const value = [&](loop_code::InstructionField f) {
        return field(f) < 0 ? field(f) : values[field(f)];
      };
      index_t const what = field(loop_code::code);
      bool const whole = what == loop_code::constant || field(loop_code::level) == loop_code::row_level;
      bool const joins = what >= loop_code::reduce_sum && what <= loop_code::reduce_min;
      if (!whole || joins || what == loop_code::accumulate || field(loop_code::phase) != 0) return false;
      Instruction now{what, field(loop_code::type),     loop_code::row_level, 0, 0, -1, -1, -1,
                      -1,   field(loop_code::immediate)};
      bool const touches = what == loop_code::load || what == loop_code::store || what == loop_code::iota;
      if (!touches) {
        if (what != loop_code::constant)
          now.a = value(loop_code::a), now.b = value(loop_code::b), now.c = value(loop_code::c);
        values.push_back(push(now));
        continue;
      }
      Argument const& memory = plan_.arguments[s.argument + field(loop_code::a)];
      Spot spot;
      if (!find_spot(memory, spot)) return false;
      if (what == loop_code::iota) {
        now.a = operand(memory, 0);
        values.push_back(push(now));
      } else if (what == loop_code::load) {
        index_t const known = loaded(spot);
        values.push_back(known >= 0 ? known : push(now));
        if (known < 0) loads_.push_back(Access{spot, values.back()});
      } else {
        now.b = value(loop_code::b);
        stores_.push_back(Access{spot, now.b});
        stored_by_.push_back(push(now));
        values.push_back(-1);
      }
    }
    return true;
  }
  constexpr index_t push(Instruction const& i) {
    code_.push_back(i);
    return static_cast<index_t>(code_.size()) - 1;
  }

  // --- memory ---

  constexpr bool find_spot(Argument const& a, Spot& spot) {
    spot.base = a;
    spot.base.turn = -1;
    if (a.kind == Argument::Kind::none) return true;
    // What is rounded as it is stored would not be what is loaded.
    if (size_of(a.dtype) == 2) return false;
    bool found = false;
    for (int t = a.turn; t >= 0;) {
      Turn turn = turns_[t];
      t = turn.next;
      if (turn.region != loop_.region) {
        turn.next = spot.base.turn;
        spot.base.turn = add_turn(turns_, turn);
        continue;
      }
      if (found || turn.step < 0 || a.offset < 0) return false;
      found = true;
      spot.step = turn.step;
      if (turn.wrap == 0 || loop_.count - 1 + turn.shift < turn.wrap)
        spot.base.offset += turn.shift * turn.step;
      else if (turn.wrap == 2) spot.ring = true, spot.shift = turn.shift & 1;
      else return false;
    }
    return true;
  }

  static constexpr bool same_memory(Spot const& a, Spot const& b) {
    return a.base.kind == b.base.kind && a.base.index == b.base.index;
  }
  static constexpr bool alike(Spot const& a, Spot const& b) {
    return same_memory(a, b) && a.base.turn == b.base.turn && a.step == b.step && a.ring == b.ring;
  }
  // Whether both are one place in each iteration.
  static constexpr bool same(Spot const& a, Spot const& b) {
    return alike(a, b) && a.base.offset == b.base.offset && a.shift == b.shift;
  }
  // Whether what is stored at one is at the other in the next iteration.
  constexpr bool next(Spot const& stored, Spot const& loaded) const {
    if (!alike(stored, loaded)) return false;
    if (stored.ring) return stored.base.offset == loaded.base.offset && stored.shift != loaded.shift;
    return stored.base.offset == loaded.base.offset + forward() * loaded.step;
  }
  // Whether they never meet.
  constexpr bool apart(Spot const& a, Spot const& b) const {
    if (!same_memory(a, b)) return true;
    if (a.base.turn != b.base.turn || a.base.offset < 0 || b.base.offset < 0) return false;
    index_t const between = b.base.offset - a.base.offset;
    if (a.ring == b.ring && a.step == b.step && a.step != 0 && between % a.step != 0) return true;
    auto const span = [&](Spot const& s) { return s.ring ? s.step : s.step * (loop_.count - 1); };
    return between > span(a) || -between > span(b);
  }

  // A number that is in a register already.
  constexpr index_t loaded(Spot const& spot) const {
    for (std::size_t k = stores_.size(); k-- > 0;)
      if (same(stores_[k].spot, spot)) return stores_[k].value;
    for (Access const& l : loads_)
      if (same(l.spot, spot)) return l.value;
    return -1;
  }

  constexpr bool settle_store(std::size_t k) {
    Spot const& s = stores_[k].spot;
    for (std::size_t i = 0; i < k; ++i)
      if (!alike(stores_[i].spot, s) && !apart(stores_[i].spot, s)) return false;
    Instruction& store = at(stored_by_[k]);
    Argument to = s.base;
    if (s.ring) to.offset += ((last() + s.shift) & 1) * s.step;
    bool const lasts = to.kind == Argument::Kind::input || static_cast<std::size_t>(to.index) < temporary_;
    store.a = lasts ? operand(to, s.ring ? 0 : s.step) : -1;
    return true;
  }

  constexpr bool settle_load(Access const& l) {
    Instruction& load = at(l.value);
    index_t value = -1;
    for (Access const& s : stores_) {
      if (next(s.spot, l.spot)) value = s.value;
      else if (!same(s.spot, l.spot) && !apart(s.spot, l.spot)) return false;
    }
    Argument from = l.spot.base;
    if (value < 0 && l.spot.ring) return false;
    if (value < 0 && l.spot.step != 0) {
      load.a = operand(from, l.spot.step);
      return true;
    }
    from.offset += (l.spot.ring ? (first() + l.spot.shift) & 1 : first()) * l.spot.step;
    load.code = loop_code::carry;
    load.a = operand(from, 0);
    load.b = value;
    return true;
  }

  constexpr index_t operand(Argument const& a, index_t stride) {
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      Argument const& o = arguments[k];
      if (o.kind == a.kind && o.index == a.index && o.offset == a.offset && o.dtype == a.dtype &&
          o.turn == a.turn && strides_[k] == stride)
        return static_cast<index_t>(k);
    }
    arguments.push_back(a);
    strides_.push_back(stride);
    return static_cast<index_t>(arguments.size()) - 1;
  }

  constexpr void write() {
    Vec<index_t> place;  // without the stores that nobody needs
    index_t count = 0;
    for (Instruction const& i : code_) place.push_back(i.code == loop_code::store && i.a < 0 ? -1 : count++);
    auto const placed = [&](index_t i) { return i < 0 ? i : place[i]; };
    code = {loop_code::scalar,
            1,
            1,
            static_cast<index_t>(arguments.size()),
            count,
            0,
            loop_.reversed ? index_t{1} : index_t{0},
            loop_.count};
    for (std::size_t k = 0; k < arguments.size(); ++k)
      for (index_t x : {static_cast<index_t>(arguments[k].dtype), index_t{0}, index_t{0}, strides_[k]})
        code.push_back(x);
    for (std::size_t k = 0; k < code_.size(); ++k) {
      if (place[k] < 0) continue;
      Instruction i = code_[k];
      bool const touches = i.code == loop_code::load || i.code == loop_code::store ||
                           i.code == loop_code::iota || i.code == loop_code::carry;
      if (!touches) i.a = placed(i.a);
      i.b = placed(i.b), i.c = placed(i.c);
      index_t packed[loop_code::instruction_size] = {};
      loop_code::pack(i, packed);
      for (index_t x : packed) code.push_back(x);
    }
  }

  Plan const& plan_;
  Vec<Turn>& turns_;
  StepLoop loop_;
  std::size_t temporary_;
  Vec<Instruction> code_;
  Vec<Access> loads_, stores_;
  Vec<index_t> stored_by_, strides_;
};

}  // namespace detail

}  // namespace dfdx::graph
