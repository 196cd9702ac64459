// SPDX-License-Identifier: BSL-1.0
// What can be read off the description of a fused loop group (core/loop_code.hpp): its sizes, its fields, and what
// a backend has to know before it divides the work. All of it is constant.
#pragma once

#include <utility>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/loop_code.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// past_caches - a result of so many bytes is in no cache when it is read, and is stored past them.
inline constexpr index_t past_caches = index_t{1} << 25;

/// LoopFacts - the facts of one description.
template <class Code>
struct LoopFacts {
  static constexpr auto const& code = Code::value;
  static constexpr int dims = static_cast<int>(code[loop_code::dims]);
  static constexpr int split = static_cast<int>(code[loop_code::split]);
  static constexpr int operands = static_cast<int>(code[loop_code::operands]);
  static constexpr int instructions = static_cast<int>(code[loop_code::instructions]);
  static constexpr int phases = static_cast<int>(code[loop_code::phases]);
  static constexpr std::size_t records = loop_code::header_size + dims;
  static constexpr std::size_t record_size = loop_code::operand_size + dims;
  static constexpr std::size_t program = records + record_size * operands;

  static constexpr index_t field(int i, loop_code::InstructionField f) {
    return loop_code::unpack(code + program + loop_code::instruction_size * static_cast<std::size_t>(i), f);
  }
  static constexpr index_t extent_code(int d) {
    return code[loop_code::header_size + static_cast<std::size_t>(d)];
  }
  static constexpr index_t record(int k, loop_code::OperandField f) {
    return code[records + record_size * static_cast<std::size_t>(k) + f];
  }
  static constexpr index_t stride_code(int k, int d) {
    return code[records + record_size * static_cast<std::size_t>(k) + loop_code::operand_size +
                static_cast<std::size_t>(d)];
  }
  static constexpr bool is_reduce(int i) {
    return field(i, loop_code::code) >= loop_code::reduce_sum &&
           field(i, loop_code::code) <= loop_code::reduce_min;
  }
  // Whether instruction i, a cast, rounds floats to the 16 bits of the dtype that they stand for.
  static constexpr bool holds(int i) {
    index_t const of = field(i, loop_code::a), type = field(i, loop_code::type);
    return is_half(static_cast<DType>(type)) && field(static_cast<int>(of), loop_code::type) == type;
  }
  // What one element costs, in additions, reckoned as ops reckon.
  template <int I>
  static constexpr int instruction_cost() {
    constexpr index_t what = field(I, loop_code::code);
    if constexpr (what < loop_code::first_op) return 0;
    else return op::fused<static_cast<int>(what)>::type::cost;
  }
  static constexpr int cost() {
    return []<std::size_t... I>(std::index_sequence<I...>) {
      return (0 + ... + instruction_cost<static_cast<int>(I)>());
    }(std::make_index_sequence<static_cast<std::size_t>(instructions)>{});
  }
  // The same of one phase.
  static constexpr int phase_cost(int p) {
    return [p]<std::size_t... I>(std::index_sequence<I...>) {
      return (0 + ... + (in_phase(static_cast<int>(I), p) ? instruction_cost<static_cast<int>(I)>() : 0));
    }(std::make_index_sequence<static_cast<std::size_t>(instructions)>{});
  }
  static constexpr bool in_phase(int i, int p) { return (field(i, loop_code::mask) >> p & 1) != 0; }

  // Whether instruction i has lane values in phase p, or takes them in.
  static constexpr bool runs(int i, int p) {
    return in_phase(i, p) && (is_reduce(i) || field(i, loop_code::level) == loop_code::element_level) &&
           field(i, loop_code::code) != loop_code::constant;
  }
  // The first that runs in phase p, from instruction i on; `instructions` if none does.
  static constexpr int next_run(int i, int p) {
    while (i < instructions && !runs(i, p)) ++i;
    return i;
  }
  static constexpr int runs_before(int i, int p) {
    int n = 0;
    for (int j = 0; j < i; ++j) n += runs(j, p);
    return n;
  }
  // What is computed once for a row, before phase p: how many instructions, and the n-th of them.
  static constexpr bool is_row_instruction(int i, int p) {
    index_t const what = field(i, loop_code::code);
    return field(i, loop_code::level) == loop_code::row_level && field(i, loop_code::phase) == p &&
           what != loop_code::constant && what != loop_code::carry && !is_reduce(i);
  }
  static constexpr int row_instructions(int p) {
    int n = 0;
    for (int i = 0; i < instructions; ++i) n += is_row_instruction(i, p);
    return n;
  }
  static constexpr int row_instruction(int p, int n) {
    int i = 0;
    while (!is_row_instruction(i, p) || n-- != 0) ++i;
    return i;
  }

  // The n-th reduction of a phase, -1 if there are fewer.
  static constexpr int reduction(int p, int n) {
    for (int i = 0; i < instructions; ++i)
      if (is_reduce(i) && in_phase(i, p) && n-- == 0) return i;
    return -1;
  }
  static constexpr int ordinal(int p, int i) {
    int n = 0;
    for (int j = 0; j < i; ++j) n += is_reduce(j) && in_phase(j, p);
    return n;
  }

  static constexpr bool touches(int i, index_t what, int operand) {
    return operand >= 0 && field(i, loop_code::code) == what && field(i, loop_code::a) == operand;
  }

  // Whether memory is to be filled before the loop runs, that of operands which it accumulates in.
  static constexpr bool fills() {
    for (int k = 0; k < operands; ++k)
      if (record(k, loop_code::fill) != 0) return true;
    return false;
  }

  /// is_small - positions fit 32 bits, as far as one knows now.
  static constexpr bool is_small() {
    index_t n = 1;
    for (int d = 0; d < dims; ++d) n = extent::mul(n, extent_code(d));
    return n >= 0 && n < (index_t{1} << 31);
  }
  /// The extent of the dim that runs in lanes; may be symbolic.
  static constexpr index_t lane_extent() { return extent_code(dims - 1); }

  /// carried_from - if instruction i is a carry, the operand of its first value or the instruction of the next, or -1.
  static constexpr int carried_from(int i, bool first) {
    if (field(i, loop_code::code) != loop_code::carry) return -1;
    return static_cast<int>(first ? field(i, loop_code::a) : field(i, loop_code::b));
  }
  /// is_backward - the first dim is walked from its end.
  static constexpr bool is_backward() { return code[loop_code::backward] != 0; }
  /// is_sequential - a row needs values of the row before: rows have to run in order, in one thread.
  static constexpr bool is_sequential() {
    for (int i = 0; i < instructions; ++i)
      if (field(i, loop_code::code) == loop_code::carry) return true;
    return is_backward();
  }

  static constexpr bool stores_elements(int i) {
    return field(i, loop_code::code) == loop_code::store &&
           field(i, loop_code::level) == loop_code::element_level;
  }
  /// loads_lanes - elements of operand k are read that lie side by side.
  static constexpr bool loads_lanes(int k) {
    for (int i = 0; i < instructions; ++i)
      if (field(i, loop_code::code) == loop_code::load && field(i, loop_code::a) == k &&
          field(i, loop_code::level) == loop_code::element_level)
        return stride_code(k, dims - 1) == 1;
    return false;
  }
  /// loads - the loop reads operand k.
  static constexpr bool loads(int k) {
    for (int i = 0; i < instructions; ++i)
      if ((field(i, loop_code::code) == loop_code::load && field(i, loop_code::a) == k) ||
          field(i, loop_code::stash) == k)
        return true;
    return false;
  }
  /// is_written_once - operand k is written once, side by side, and so large that nothing of it will be in a cache when
  /// it is read: a line of it need not be fetched to be written.
  static constexpr bool is_written_once(int k) {
    index_t n = static_cast<index_t>(size_of(static_cast<DType>(record(k, loop_code::dtype))));
    for (int d = 0; d < dims; ++d) {
      if (stride_code(k, d) == 0 && extent_code(d) != 1) return false;
      n = extent::mul(n, extent_code(d));
    }
    return n >= past_caches && stride_code(k, dims - 1) == 1 && !loads(k) && !is_scratch(k) && !is_shared(k);
  }
  /// is_map - every element stands alone: no reduction, and no value that is stored once for a row.
  static constexpr bool is_map() {
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
  static constexpr int crossing() {
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
  static constexpr bool lies_across(int k, int d) {
    index_t const step = stride_code(k, dims - 1);
    return step != 0 && step != 1 && stride_code(k, d) == 1;
  }
  /// crosses - operand k lies along the crossing dim.
  static constexpr bool crosses(int k) { return crossing() >= 0 && lies_across(k, crossing()); }
  /// only_crosses - so does everything that a crossing map reads a lane of.
  static constexpr bool only_crosses() {
    for (int i = 0; i < instructions; ++i)
      if (field(i, loop_code::code) == loop_code::load) {
        int const k = static_cast<int>(field(i, loop_code::a));
        if (stride_code(k, dims - 1) != 0 && !crosses(k)) return false;
      }
    return true;
  }

  /// accumulates - iterations add to memory of others: they have to run in order.
  static constexpr bool accumulates() {
    for (int i = 0; i < instructions; ++i)
      if (field(i, loop_code::code) == loop_code::accumulate) return true;
    return false;
  }
  /// is_scratch - operand k is memory in which a row keeps values from one phase to the next. Rows that run at once
  /// need one such row each.
  static constexpr bool is_scratch(int k) { return record(k, loop_code::combine) == loop_code::scratch; }
  /// is_shared - rows add to operand k. Rows that run at once need one such memory each, which are combined then.
  static constexpr bool is_shared(int k) { return record(k, loop_code::fill) != 0; }
  /// is_divisible - parts of the first dim write to places of their own.
  static constexpr bool is_divisible() {
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
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
