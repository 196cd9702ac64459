// SPDX-License-Identifier: BSL-1.0
// The kernel of a fused loop group on several threads: each takes a part of the first dim (kernels/loop.hpp).
#pragma once

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/kernels/loop.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// DividedLoop - a loop whose first dim is divided. Rows that run at once have scratch of their own, and their own
/// copies of memory that rows add to, which are combined in the order of the parts; reductions over everything are
/// combined after each phase. Results depend on the number of parts, not on which thread is first.
template <class Code>
class DividedLoop : Loop<Code, Code::value[loop_code::width], -1, -1, 0> {
  using Base = Loop<Code, Code::value[loop_code::width], -1, -1, 0>;
  using Base::dims, Base::split, Base::operands, Base::instructions, Base::phases, Base::facts;
  using typename Base::Body, typename Base::State;
  template <int K>
  using memory_t = typename Base::template memory_t<K>;
  using Base::all_operands;
  static constexpr std::make_index_sequence<static_cast<std::size_t>(instructions)> all_instructions{};
  // Whether operand k is not the same for all parts. Scratch of a single row is as long as the row.
  template <int K>
  static constexpr bool is_own = facts.is_shared(K) || (split > 0 && facts.is_scratch(K));

  static constexpr index_t work_of(index_t elements) { return elements * (operands + loop_cost<Code>()); }
  // Elements of which no vector reaches into the next part.
  static constexpr index_t unit = dims == 1 ? 64 : 1;

  static index_t pieces(index_t const* symbols) {
    return (Body::template extent_of<0>(symbols) + unit - 1) / unit;
  }

  template <int K>
  static index_t own_bytes(index_t const* symbols) {
    if constexpr (!is_own<K>) return 0;
    else
      return (Base::template own_size<K>(symbols) * static_cast<index_t>(sizeof(memory_t<K>)) + 63) / 64 * 64;
  }
  // Operands as part `part` has them: what is its own follows the table, but the first part has the program's.
  template <std::size_t... K>
  static void own_operands(void** table, void* const* base, std::byte* memory, index_t const* symbols,
                           std::index_sequence<K...>) {
    ((table[K] = is_own<static_cast<int>(K)> ? memory : base[K],
      memory += own_bytes<static_cast<int>(K)>(symbols)),
     ...);
  }
  template <int K>
  static void add_own([[maybe_unused]] void* const* base, [[maybe_unused]] void* const* own,
                      [[maybe_unused]] index_t const* symbols) {
    if constexpr (facts.is_shared(K)) {
      using M = memory_t<K>;
      auto* const to = static_cast<M*>(base[K]);
      auto const* const from = static_cast<M const*>(own[K]);
      index_t const n = Base::template own_size<K>(symbols);
      for (index_t i = 0; i < n; ++i)
        to[i] = static_cast<M>(Combination<facts.record(K, loop_code::combine)>::apply(
            static_cast<compute_t<M>>(to[i]), static_cast<compute_t<M>>(from[i])));
    }
  }

  // The tables of operands of all parts.
  class Tables {
   public:
    Tables(int parts, void* const* base, index_t const* symbols)
        : base_(base),
          each_(has_own ? table + bytes(symbols, all_operands) : 0),
          memory_(static_cast<std::size_t>(each_ * (parts - 1))) {
      if constexpr (has_own)
        for (int i = 1; i < parts; ++i)
          own_operands(own(i), base, reinterpret_cast<std::byte*>(own(i)) + table, symbols, all_operands);
    }
    void* const* of(int part) const { return part == 0 || !has_own ? base_ : own(part); }
    /// What rows have added to in their parts is added to what the first has.
    void join(int parts, index_t const* symbols) const {
      if constexpr (has_own)
        for (int i = 1; i < parts; ++i) join_part(i, symbols, all_operands);
    }

   private:
    static constexpr bool has_own = []<std::size_t... K>(std::index_sequence<K...>) {
      return (false || ... || is_own<static_cast<int>(K)>);
    }(all_operands);
    static constexpr index_t table = (static_cast<index_t>(sizeof(void*)) * operands + 63) / 64 * 64;
    template <std::size_t... K>
    static index_t bytes(index_t const* symbols, std::index_sequence<K...>) {
      return (0 + ... + own_bytes<static_cast<int>(K)>(symbols));
    }
    void** own(int part) const { return reinterpret_cast<void**>(memory_.get() + (part - 1) * each_); }
    template <std::size_t... K>
    void join_part(int part, index_t const* symbols, std::index_sequence<K...>) const {
      (add_own<static_cast<int>(K)>(base_, own(part), symbols), ...);
    }

    void* const* base_;
    index_t const each_;
    Scratch<std::byte> const memory_;
  };

  // Rows
  // ----------------------------------------------------------------------------------------------------------

  [[gnu::noinline]] static void run_rows(void* const* base, index_t const* symbols, Part part) {
    State s{base, symbols};
    s.part = part.end - part.begin;
    Body::template advance<0>(s, part.begin);
    if constexpr (facts.fills()) Base::fill(s, all_operands);
    Base::nest(s);
  }

  // One row
  // ----------------------------------------------------------------------------------------------------------

  template <int P>
  [[gnu::noinline]] static void run_phase(State& s, Part part) {
    s.part = part.end - part.begin;
    Body::template advance<0>(s, part.begin);
    if constexpr (facts.reduction(P, 0) < 0) {
      detail::Absent none;
      Body::template inner<0, P>(s, none, none, none, none);
    } else {
      Body::template reduce<P>(s);
    }
    if constexpr (facts.writes_large()) Base::end_stores(s);
    Body::template advance<0>(s, -part.begin);
  }
  template <int I, int P>
  static void combine(State& s, State const& part) {
    if constexpr (facts.is_reduce(I) && facts.in_phase(I, P)) {
      using T = typename Body::template value_t<I>;
      s.cells[I].template set<T>(Combination<facts.field(I, loop_code::code)>::apply(
          s.cells[I].template get<T>(), part.cells[I].template get<T>()));
    }
  }
  template <int P, std::size_t... I>
  static void phase(State& s, State* parts, int n, Tables const& tables, std::index_sequence<I...> all) {
    if constexpr (facts.row_instructions(P) != 0) Body::template run_row<P>(s, Body::template of_row<P>);
    if constexpr (P < phases) {
      index_t const elements = Body::template extent_of<0>(s.symbols);
      for (int i = 0; i < n; ++i) {
        parts[i] = s;
        parts[i].base = tables.of(i);
      }
      in_parallel(n, [&](int i) { run_phase<P>(parts[i], part_of(elements, i, n, unit)); });
      s = parts[0];
      for (int i = 1; i < n; ++i) (combine<static_cast<int>(I), P>(s, parts[i]), ...);
      phase<P + 1>(s, parts, n, tables, all);
    }
  }

 public:
  /// pays - whether the loop can be divided, and has enough to do for it as far as the compiler knows.
  static constexpr bool pays() {
    if (dims == 0 || !facts.is_divisible()) return false;
    index_t n = 1;
    for (int d = 0; d < dims; ++d) n = extent::mul(n, facts.extent_code(d));
    return n < 0 || work_of(n) >= 2 * part_work;
  }

  static void run(void* const* base, void*, index_t const* symbols) {
    index_t const elements = Base::rows(symbols) * Base::row_size(symbols);
    int const parts = parts_of(work_of(elements), pieces(symbols));
    index_t const n = Body::template extent_of<0>(symbols);
    Tables const tables(parts, base, symbols);
    if constexpr (split > 0) {
      in_parallel(parts, [&](int i) { run_rows(tables.of(i), symbols, part_of(n, i, parts)); });
    } else {
      Scratch<State> const states(static_cast<std::size_t>(parts));
      State s{base, symbols};
      if constexpr (facts.writes_large()) Base::choose_stores(s, all_operands);
      if constexpr (facts.fills())
        for (int i = 0; i < parts; ++i) Base::fill(State{tables.of(i), symbols}, all_operands);
      phase<0>(s, states.get(), parts, tables, all_instructions);
    }
    tables.join(parts, symbols);
  }
};

/// loop_kernel - what runs the loop of a description: divided where there are threads and it pays.
template <class Code>
constexpr auto loop_kernel() -> void (*)(void* const*, void*, index_t const*) {
  if constexpr (has_threads)
    if constexpr (DividedLoop<Code>::pays()) return &DividedLoop<Code>::run;
  return &Loop<Code>::run;
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
