// SPDX-License-Identifier: BSL-1.0
// What can be read off the description of a fused loop group (core/loop_code.hpp): its sizes, its fields, and what
// a backend has to know before it divides the work. All of it is constant.
#pragma once

#include <array>
#include <utility>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/loop_code.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// past_caches - a result of so many bytes is in no cache when it is read, and is stored past them.
inline constexpr index_t past_caches = index_t{1} << 25;
/// far_away - a result of so many bytes is not in the first cache when it is written.
inline constexpr index_t far_away = index_t{1} << 15;

/// LoopFacts - the facts of one description: a value, not a type of each, since its functions are compiled once then.
class LoopFacts {
 public:
  index_t const* code;
  int dims, split, operands, instructions, phases;

  explicit constexpr LoopFacts(index_t const* c)
      : code(c),
        dims(static_cast<int>(c[loop_code::dims])),
        split(static_cast<int>(c[loop_code::split])),
        operands(static_cast<int>(c[loop_code::operands])),
        instructions(static_cast<int>(c[loop_code::instructions])),
        phases(static_cast<int>(c[loop_code::phases])),
        records_(c + loop_code::header_size + dims),
        record_size_(static_cast<int>(loop_code::operand_size) + dims),
        program_(records_ + record_size_ * operands) {}

  constexpr index_t field(int i, loop_code::InstructionField f) const {
    return loop_code::unpack(program_ + static_cast<int>(loop_code::instruction_size) * i, f);
  }
  constexpr loop_code::Instruction instruction(int i) const {
    return loop_code::unpack(program_ + static_cast<int>(loop_code::instruction_size) * i);
  }
  constexpr index_t extent_code(int d) const { return code[static_cast<int>(loop_code::header_size) + d]; }
  constexpr index_t record(int k, loop_code::OperandField f) const {
    return records_[record_size_ * k + static_cast<int>(f)];
  }
  constexpr index_t stride_code(int k, int d) const {
    return records_[record_size_ * k + static_cast<int>(loop_code::operand_size) + d];
  }
  constexpr bool is_reduce(int i) const {
    return field(i, loop_code::code) >= loop_code::reduce_sum &&
           field(i, loop_code::code) <= loop_code::reduce_min;
  }
  // Whether instruction i, a cast, rounds floats to the 16 bits of the dtype that they stand for.
  constexpr bool holds(int i) const {
    index_t const of = field(i, loop_code::a), type = field(i, loop_code::type);
    return is_half(static_cast<DType>(type)) && field(static_cast<int>(of), loop_code::type) == type;
  }
  constexpr bool in_phase(int i, int p) const { return (field(i, loop_code::mask) >> p & 1) != 0; }

  // Whether instruction i has lane values in phase p, or takes them in.
  constexpr bool runs(int i, int p) const {
    return in_phase(i, p) && (is_reduce(i) || field(i, loop_code::level) == loop_code::element_level) &&
           field(i, loop_code::code) != loop_code::constant;
  }
  // Those that run in phase p, in order. N is the number of instructions.
  template <int N>
  struct Runs {
    int number = 0;
    int at[N + 1] = {};
  };
  template <int N>
  constexpr Runs<N> runs_of(int p) const {
    Runs<N> r;
    for (int i = 0; i < N; ++i)
      if (runs(i, p)) r.at[r.number++] = i;
    return r;
  }
  // Whether instruction i does other things with a part of a vector than with a whole one.
  constexpr bool ends(int i) const {
    index_t const what = field(i, loop_code::code);
    return is_reduce(i) || what == loop_code::load || what == loop_code::store ||
           what == loop_code::accumulate || field(i, loop_code::stash) >= 0;
  }
  constexpr int runs_before(int i, int p) const {
    int n = 0;
    for (int j = 0; j < i; ++j) n += runs(j, p);
    return n;
  }

  // Where parts of a phase begin, among what runs in it: no function of a part waits for another of that part.
  // `is_function` tells of each instruction whether it takes long.
  template <int N>
  struct Parts {
    int number = 0;
    int begin[N + 2] = {};
  };
  template <int N>
  constexpr Parts<N> parts_of(int p, Runs<N> const& runs, bool const* is_function) const {
    Parts<N> r;
    int last[N + 1] = {};  // the part of the last function that a value waits for, from 1 on
    r.number = 1;
    for (int at = 0; at < runs.number; ++at) {
      int const i = runs.at[at];
      loop_code::Instruction const x = instruction(i);
      bool const reads = x.code == loop_code::load || x.code == loop_code::iota ||
                         (x.stash >= 0 && p > static_cast<int>(x.phase));
      if (reads) continue;
      bool const stores = x.code == loop_code::store || x.code == loop_code::accumulate;
      for (index_t v : {stores ? index_t{-1} : x.a, x.b, x.c})
        if (v >= 0 && last[v] > last[i]) last[i] = last[v];
      if (!is_function[i]) continue;
      if (last[i] == r.number) r.begin[r.number++] = at;
      last[i] = r.number;
    }
    r.begin[r.number] = runs.number;
    return r;
  }

  constexpr bool has_lanes(int i) const {
    index_t const what = field(i, loop_code::code);
    return !is_reduce(i) && field(i, loop_code::level) == loop_code::element_level &&
           what != loop_code::constant && what != loop_code::store && what != loop_code::accumulate;
  }
  // Elements of 16 bits are computed as floats.
  constexpr DType computed_in(int i) const {
    auto const type = static_cast<DType>(field(i, loop_code::type));
    return is_half(type) ? DType::f32 : type;
  }
  // Lane values of one dtype lie side by side: how many there are, and which place is that of instruction i.
  template <int N>
  struct Places {
    int counts[dtype_count] = {};
    int of[N + 1] = {};
  };
  template <int N>
  constexpr Places<N> find_places() const {
    Places<N> r;
    for (int i = 0; i < N; ++i)
      if (has_lanes(i)) r.of[i] = r.counts[static_cast<int>(computed_in(i))]++;
    return r;
  }

  // What is computed once for a row, before phase p: how many instructions, and the n-th of them.
  constexpr bool is_row_instruction(int i, int p) const {
    index_t const what = field(i, loop_code::code);
    return field(i, loop_code::level) == loop_code::row_level && field(i, loop_code::phase) == p &&
           what != loop_code::constant && what != loop_code::carry && !is_reduce(i);
  }
  constexpr int row_instructions(int p) const {
    int n = 0;
    for (int i = 0; i < instructions; ++i) n += is_row_instruction(i, p);
    return n;
  }
  constexpr int row_instruction(int p, int n) const {
    int i = 0;
    while (!is_row_instruction(i, p) || n-- != 0) ++i;
    return i;
  }

  // The n-th reduction of a phase, -1 if there are fewer.
  constexpr int reduction(int p, int n) const {
    for (int i = 0; i < instructions; ++i)
      if (is_reduce(i) && in_phase(i, p) && n-- == 0) return i;
    return -1;
  }
  constexpr int ordinal(int p, int i) const {
    int n = 0;
    for (int j = 0; j < i; ++j) n += is_reduce(j) && in_phase(j, p);
    return n;
  }

  constexpr bool touches(int i, index_t what, int operand) const {
    return operand >= 0 && field(i, loop_code::code) == what && field(i, loop_code::a) == operand;
  }

  // Whether memory is to be filled before the loop runs, that of operands which it accumulates in.
  constexpr bool fills() const {
    for (int k = 0; k < operands; ++k)
      if (record(k, loop_code::fill) != 0) return true;
    return false;
  }

  /// is_small - positions fit 32 bits, as far as one knows now.
  constexpr bool is_small() const {
    index_t n = 1;
    for (int d = 0; d < dims; ++d) n = extent::mul(n, extent_code(d));
    return n >= 0 && n < (index_t{1} << 31);
  }
  /// The extent of the dim that runs in lanes; may be symbolic.
  constexpr index_t lane_extent() const { return extent_code(dims - 1); }

  /// carried_from - if instruction i is a carry, the operand of its first value or the instruction of the next, or -1.
  constexpr int carried_from(int i, bool first) const {
    if (field(i, loop_code::code) != loop_code::carry) return -1;
    return static_cast<int>(first ? field(i, loop_code::a) : field(i, loop_code::b));
  }
  /// is_backward - the first dim is walked from its end.
  constexpr bool is_backward() const { return code[loop_code::backward] != 0; }
  /// is_sequential - a row needs values of the row before: rows have to run in order, in one thread.
  constexpr bool is_sequential() const {
    for (int i = 0; i < instructions; ++i)
      if (field(i, loop_code::code) == loop_code::carry) return true;
    return is_backward();
  }

  constexpr bool stores_elements(int i) const {
    return field(i, loop_code::code) == loop_code::store &&
           field(i, loop_code::level) == loop_code::element_level;
  }
  /// loads_lanes - elements of operand k are read that lie side by side.
  constexpr bool loads_lanes(int k) const {
    for (int i = 0; i < instructions; ++i)
      if (field(i, loop_code::code) == loop_code::load && field(i, loop_code::a) == k &&
          field(i, loop_code::level) == loop_code::element_level)
        return stride_code(k, dims - 1) == 1;
    return false;
  }
  /// loads - the loop reads operand k.
  constexpr bool loads(int k) const {
    for (int i = 0; i < instructions; ++i)
      if ((field(i, loop_code::code) == loop_code::load && field(i, loop_code::a) == k) ||
          field(i, loop_code::stash) == k)
        return true;
    return false;
  }
  /// written_once - the bytes of operand k if it is written once, side by side, and not read; else 0, as where only the
  /// running program knows.
  constexpr index_t written_once(int k) const {
    index_t n = static_cast<index_t>(size_of(static_cast<DType>(record(k, loop_code::dtype))));
    for (int d = 0; d < dims; ++d) {
      if (stride_code(k, d) == 0 && extent_code(d) != 1) return 0;
      n = extent::mul(n, extent_code(d));
    }
    bool const here = n > 0 && stride_code(k, dims - 1) == 1 && !loads(k) && !is_scratch(k) && !is_shared(k);
    return here ? n : 0;
  }
  /// writes_large - there is such an operand, of which nothing will be in a cache when it is read.
  constexpr bool writes_large() const {
    for (int k = 0; k < operands; ++k)
      if (written_once(k) >= past_caches) return true;
    return false;
  }
  /// is_only_result - operand k is the one result of a map, and beyond the first cache. Maps with several are most
  /// often updates in place, whose lines have been read; rows that are stored in phases have time enough.
  constexpr bool is_only_result(int k) const {
    for (int other = 0; other < operands; ++other)
      if (other != k && written_once(other) > 0) return false;
    return is_map() && written_once(k) >= far_away;
  }
  /// is_map - every element stands alone: no reduction, and no value that is stored once for a row.
  constexpr bool is_map() const {
    for (int i = 0; i < instructions; ++i) {
      index_t const what = field(i, loop_code::code);
      if (is_reduce(i) || what == loop_code::accumulate || (what == loop_code::store && !stores_elements(i)))
        return false;
    }
    return phases == 1;
  }
  /// crossing - the dim along which an operand of a map lies in memory where that is not the one which runs in lanes;
  /// else, or if little is read, -1. Row by row such a map would come back to a line of memory only after it has read
  /// one of every other place of a row, and caches have few places for lines that are a power of two apart.
  constexpr int crossing() const {
    index_t n = 1;
    for (int d = 0; d < dims; ++d) n = extent::mul(n, extent_code(d));
    bool const in_rows = split == dims - 1 || row_instructions(0) + row_instructions(1) == 0;
    bool const pays = dims > 1 && is_map() && !is_sequential() && in_rows && (n < 0 || n >= 8192);
    for (int i = 0; pays && i < instructions; ++i) {
      if (field(i, loop_code::code) != loop_code::load) continue;
      int const k = static_cast<int>(field(i, loop_code::a));
      for (int d = 0; d < dims - 1; ++d)
        if (lies_across(k, d) && extent_code(d) != 1) return d;
    }
    return -1;
  }
  constexpr bool lies_across(int k, int d) const {
    index_t const step = stride_code(k, dims - 1);
    return step != 0 && step != 1 && stride_code(k, d) == 1;
  }
  /// crosses - operand k lies along the crossing dim.
  constexpr bool crosses(int k) const { return crossing() >= 0 && lies_across(k, crossing()); }
  /// only_crosses - so does everything that a crossing map reads a lane of.
  constexpr bool only_crosses() const {
    for (int i = 0; i < instructions; ++i)
      if (field(i, loop_code::code) == loop_code::load) {
        int const k = static_cast<int>(field(i, loop_code::a));
        if (stride_code(k, dims - 1) != 0 && !crosses(k)) return false;
      }
    return true;
  }

  /// accumulates - iterations add to memory of others: they have to run in order.
  constexpr bool accumulates() const {
    for (int i = 0; i < instructions; ++i)
      if (field(i, loop_code::code) == loop_code::accumulate) return true;
    return false;
  }
  /// is_scratch - operand k is memory in which a row keeps values from one phase to the next. Rows that run at once
  /// need one such row each.
  constexpr bool is_scratch(int k) const { return record(k, loop_code::combine) == loop_code::scratch; }
  /// is_shared - rows add to operand k. Rows that run at once need one such memory each, which are combined then.
  constexpr bool is_shared(int k) const { return record(k, loop_code::fill) != 0; }
  /// is_divisible - parts of the first dim write to places of their own.
  constexpr bool is_divisible() const {
    bool r = !is_sequential();
    for (int i = 0; i < instructions; ++i) {
      index_t const what = field(i, loop_code::code);
      int const k = static_cast<int>(field(i, loop_code::a));
      if (what != loop_code::accumulate && what != loop_code::store) continue;
      bool const once = split == 0 && field(i, loop_code::level) == loop_code::row_level;
      bool const own = is_shared(k) || (split > 0 && is_scratch(k));
      r = r && (once || own || stride_code(k, 0) != 0);
    }
    return r;
  }

 private:
  index_t const* records_;
  int record_size_;
  index_t const* program_;
};

/// cost_of - what an instruction costs for one element, in additions, reckoned as ops reckon.
template <index_t What>
inline constexpr int cost_of = op::fused<static_cast<int>(What)>::type::cost;
template <index_t What>
  requires(What < loop_code::first_op)
inline constexpr int cost_of<What> = 0;

/// costly - what an op costs that is a function of the C library where it is computed of one number.
inline constexpr int costly = 8;

/// functions_of - which instructions of a description are such functions. (And one place more, for there may be none.)
template <class Code, std::size_t... I>
constexpr auto functions_of(std::index_sequence<I...>) {
  constexpr LoopFacts facts(Code::value);
  return std::array<bool, sizeof...(I) + 1>{
      (cost_of<facts.field(static_cast<int>(I), loop_code::code)> >= costly)...};
}

/// loop_cost - that of all instructions of a description; of those of one phase.
template <class Code, int Phase = -1, std::size_t... I>
constexpr int loop_cost(std::index_sequence<I...>) {
  constexpr LoopFacts facts(Code::value);
  return (0 + ... +
          (Phase < 0 || facts.in_phase(static_cast<int>(I), Phase)
               ? cost_of<facts.field(static_cast<int>(I), loop_code::code)>
               : 0));
}
template <class Code, int Phase = -1>
constexpr int loop_cost() {
  return loop_cost<Code, Phase>(
      std::make_index_sequence<static_cast<std::size_t>(LoopFacts(Code::value).instructions)>{});
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
