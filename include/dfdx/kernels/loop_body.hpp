// SPDX-License-Identifier: BSL-1.0
// The body of a fused loop: what runs for one row of the nest, phase by phase, generated from its description
// (core/loop_code.hpp). In a phase, loops over the inner dims run its instructions on lane values.
//
// The steps are inlined, so that a phase becomes straight code over registers.
#pragma once

#include <bit>
#include <type_traits>
#include <utility>

#include <dfdx/kernels/loop_operands.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// LoopBody - the phases of one row of a description, in lanes of a width. Given and Stored are operands that are
/// handed over in registers (kernels/loop.hpp). Of the dim Divided, if there is one, there are as many iterations as
/// the state says.
template <class Code, index_t Width, int Given, int Stored, int Divided = -1>
class LoopBody : protected LoopOperands<Code, Width, Stored> {
 protected:
  using Operands = LoopOperands<Code, Width, Stored>;
  using typename Operands::State;
  static constexpr LoopFacts facts{Code::value};
  static constexpr int dims = facts.dims, split = facts.split, operands = facts.operands,
                       instructions = facts.instructions, phases = facts.phases;
  using L = Lanes<Width>;
  static constexpr std::make_index_sequence<static_cast<std::size_t>(instructions)> all_instructions{};

  template <int K>
  using memory_t = typename Operands::template memory_t<K>;
  template <int P>
  static constexpr auto runs_in = facts.runs_of<instructions>(P);
  template <int P, std::size_t N>
  static constexpr int run = runs_in<P>.at[N];
  template <int P>
  static constexpr std::make_index_sequence<static_cast<std::size_t>(runs_in<P>.number)> all_runs{};
  // Whether that is another where a row ends within a vector.
  template <int P, std::size_t N>
  static constexpr bool ends = facts.ends(run<P, N>);
  // The type an instruction computes in.
  template <int I>
  using type_t = element_t<static_cast<DType>(facts.field(I, loop_code::type))>;
  template <int I>
  using value_t = compute_t<type_t<I>>;

  using Values = detail::LaneValues<L, Code>;
  template <int I>
  using row_t = typename Values::template row_t<I, value_t<I>>;

  // Variables, since a compiler has less work with them than with functions.
  static constexpr bool long_rows = facts.extent_code(dims - 1) < 0 || facts.extent_code(dims - 1) >= 512;
  template <int K, int D>
  static constexpr index_t stride = facts.stride_code(K, D);
  template <int K>
  static constexpr index_t lane_stride = Operands::template lane_stride<K>;

  template <int D>
  static DFDX_INLINE index_t iterations(State const& s) {
    constexpr index_t e = facts.extent_code(D);
    if constexpr (D == Divided) return s.part;
    else return detail::resolved(e, s.symbols);
  }

  template <int D, std::size_t... K>
  static DFDX_INLINE void advance(State& s, index_t times, std::index_sequence<K...>) {
    ((s.at[K] += times * detail::resolved(stride<static_cast<int>(K), D>, s.symbols)), ...);
  }
  template <int D>
  static DFDX_INLINE void advance(State& s, index_t times) {
    advance<D>(s, times, std::make_index_sequence<static_cast<std::size_t>(operands)>{});
  }

  // Row level

  template <int I>
  static DFDX_INLINE auto row_value(State const& s) {
    using T = value_t<I>;
    if constexpr (facts.field(I, loop_code::code) == loop_code::constant)
      return math::convert_number<T>(std::bit_cast<double>(facts.field(I, loop_code::immediate)));
    else return s.cells[I].template get<T>();
  }

  template <int I, bool Stores>
  static DFDX_INLINE void run_row_instruction(State& s) {
    constexpr index_t what = facts.field(I, loop_code::code);
    constexpr int a = static_cast<int>(facts.field(I, loop_code::a)),
                  b = static_cast<int>(facts.field(I, loop_code::b)),
                  c = static_cast<int>(facts.field(I, loop_code::c));
    using T = value_t<I>;
    if constexpr (what == loop_code::load) {
      s.cells[I].template set<T>(static_cast<T>(*detail::element_at<memory_t<a>>(s.base[a], s.at[a])));
    } else if constexpr (what == loop_code::iota) {
      s.cells[I].template set<T>(static_cast<T>(s.at[a]));
    } else if constexpr (what == loop_code::cast) {
      if constexpr (facts.holds(I))
        s.cells[I].template set<T>(detail::Held<type_t<I>>::eval(row_value<a>(s)));
      else s.cells[I].template set<T>(math::computed_number<type_t<I>>(row_value<a>(s)));
    } else if constexpr (what == loop_code::store) {
      if constexpr (Stores)
        L::store_row(detail::element_at<memory_t<a>>(s.base[a], s.at[a]), row_value<b>(s));
    } else if constexpr (what == loop_code::accumulate && !Stores) {
    } else if constexpr (what == loop_code::accumulate) {
      using M = memory_t<a>;
      constexpr index_t how = facts.record(a, loop_code::combine);
      auto* p = detail::element_at<M>(s.base[a], s.at[a]);
      if constexpr (detail::blockwise<L>) L::template combine_row<how>(p, row_value<b>(s));
      else *p = static_cast<M>(Combination<how>::apply(static_cast<T>(*p), row_value<b>(s)));
    } else {
      using Op = typename op::fused<static_cast<int>(what)>::type;
      if constexpr (c >= 0)
        s.cells[I].template set<T>(Op::eval(row_value<a>(s), row_value<b>(s), row_value<c>(s)));
      else if constexpr (b >= 0)
        s.cells[I].template set<T>(
            detail::applied_once<L, Op, T, long_rows>(row_value<a>(s), row_value<b>(s)));
      else s.cells[I].template set<T>(detail::applied_once<L, Op, T, long_rows>(row_value<a>(s)));
    }
  }

  // The row-level instructions that are due before phase P, in order; those that write may be left out.
  template <int P, bool Stores = true, std::size_t... N>
  static DFDX_INLINE void run_row(State& s, std::index_sequence<N...>) {
    (run_row_instruction<facts.row_instruction(P, static_cast<int>(N)), Stores>(s), ...);
  }
  template <int P>
  static constexpr std::make_index_sequence<static_cast<std::size_t>(facts.row_instructions(P))> of_row{};

  // Element level

  // The value of instruction I as a lane: computed in this phase, or the same for the whole row.
  template <int I, int P, class... V>
  static DFDX_INLINE auto lane_value(State const& s, V const&... v) {
    if constexpr (facts.field(I, loop_code::code) == loop_code::constant ||
                  facts.field(I, loop_code::level) == loop_code::row_level)
      return L::template splat<value_t<I>>(row_value<I>(s));
    else if constexpr (detail::sizeless<L>) return detail::pick<facts.runs_before(I, P)>(v...);
    else return (..., static_cast<row_t<I> const&>(v).values[Values::template place<I>]);
  }

  template <int K, bool Tail, class X>
  static DFDX_INLINE void accumulate(State& s, index_t i, int count, X const& x) {
    using M = memory_t<K>;
    using T = compute_t<M>;
    constexpr index_t how = facts.record(K, loop_code::combine);
    using Join = Combination<how>;
    index_t const step = detail::resolved(lane_stride<K>, s.symbols);
    M* p = detail::element_at<M>(s.base[K], s.at[K]) + i * step;
    if (step != 0) {
      auto const sum = detail::joined<L, how, T>(L::template load<Tail>(p, step, count), x);
      L::template store<Tail>(p, step, sum, count);
    } else {
      auto part = x;
      if constexpr (Tail) part = L::template only_first<T>(x, count, Join::template identity<T>());
      if constexpr (detail::blockwise<L>)
        L::template combine_row<how>(p, L::template horizontal<how, T>(part));
      else *p = static_cast<M>(Join::apply(static_cast<T>(*p), L::template horizontal<how, T>(part)));
    }
  }

  // Runs phase P on the lanes from element i on. What one instruction costs a compiler must not grow with the number of
  // those before it: values lie in `Values`, or, where they have no size, are handed from step to step.
  template <int P, bool Tail, class A0, class A1, class A2, class A3, std::size_t... N>
  static DFDX_INLINE void lanes(State& s, index_t i, int count, A0& a0, A1& a1, A2& a2, A3& a3,
                                std::index_sequence<N...>) {
    if constexpr (detail::sizeless<L>) {
      in_turn<0, P, Tail>(s, i, count, a0, a1, a2, a3);
    } else {
#if defined(__OPTIMIZE__)
      Values all;
#else
      Values all{};  // g++ -O0 warns where they are handed on before they have values
#endif
      run_on<P, Tail>(s, i, count, a0, a1, a2, a3, all, std::index_sequence<N...>{});
    }
  }
  template <int P, bool Tail, class A0, class A1, class A2, class A3, std::size_t... N>
  static DFDX_INLINE void run_on([[maybe_unused]] State& s, [[maybe_unused]] index_t i,
                                 [[maybe_unused]] int count, A0& a0, A1& a1, A2& a2, A3& a3, Values& all,
                                 std::index_sequence<N...>) {
    ((static_cast<row_t<run<P, N>>&>(all).values[Values::template place<run<P, N>>] =
          step<run<P, N>, P, (Tail && ends<P, N>)>(s, i, count, a0, a1, a2, a3, all)),
     ...);
  }
  template <int N, int P, bool Tail, class A0, class A1, class A2, class A3, class... V>
  static DFDX_INLINE void in_turn(State& s, index_t i, int count, A0& a0, A1& a1, A2& a2, A3& a3,
                                  V const&... v) {
    if constexpr (N < runs_in<P>.number)
      in_turn<N + 1, P, Tail>(s, i, count, a0, a1, a2, a3, v...,
                              step<run<P, N>, P, (Tail && ends<P, N>)>(s, i, count, a0, a1, a2, a3, v...));
  }

  // Runs instruction I of phase P and returns its value. `v` are those of the instructions before it.
  template <int I, int P, bool Tail, class A0, class A1, class A2, class A3, class... V>
  static DFDX_INLINE auto step([[maybe_unused]] State& s, [[maybe_unused]] index_t i,
                               [[maybe_unused]] int count, A0& a0, A1& a1, A2& a2, A3& a3, V const&... v) {
    constexpr loop_code::Instruction what = facts.instruction(I);
    constexpr int x = static_cast<int>(what.a), y = static_cast<int>(what.b), z = static_cast<int>(what.c);
    // A value of an earlier phase, which lies in memory.
    constexpr bool is_kept = what.stash >= 0 && P > static_cast<int>(what.phase);
    using T = value_t<I>;
    if constexpr (facts.is_reduce(I)) {
      auto part = lane_value<x, P>(s, v...);
      if constexpr (Tail)
        part = L::template only_first<T>(part, count, Combination<what.code>::template identity<T>());
      auto& sum = nth<facts.ordinal(P, I)>(a0, a1, a2, a3);
      sum = detail::joined<L, what.code, T>(sum, part);
      return detail::Absent{};
    } else if constexpr (facts.touches(I, loop_code::load, Given)) {
      return a0;
    } else if constexpr (facts.touches(I, loop_code::store, Stored)) {
      a1 = lane_value<y, P>(s, v...);
      return detail::Absent{};
    } else if constexpr (what.code == loop_code::load || is_kept) {
      constexpr int from = is_kept ? static_cast<int>(what.stash) : x;
      using M = memory_t<from>;
      if constexpr (!Tail && Operands::template in_tiles<from>())
        if (s.tiles != nullptr) {
          std::byte const* const place = s.tiles + Operands::tiles_before(from) * Operands::tile_bytes;
          auto const* const tile = reinterpret_cast<M const*>(place);
          return L::template load<false>(tile + s.tile_row * detail::known_size<L>, 1, count);
        }
      index_t const by = detail::resolved(lane_stride<from>, s.symbols);
      auto const* const at = detail::element_at<M>(s.base[from], s.at[from]) + i * by;
      if constexpr (!Tail && Operands::template loads_every<from>())
        return L::template load_every<lane_stride<from>>(at);
      else return L::template load<Tail>(at, by, count);
    } else if constexpr (what.code == loop_code::iota) {
      index_t const by = detail::resolved(lane_stride<x>, s.symbols);
      return L::template positions<T>(s.at[x] + i * by, by);
    } else if constexpr (what.code == loop_code::cast) {
      if constexpr (facts.holds(I))
        return detail::applied<L, detail::Held<type_t<I>>, T, T>(lane_value<x, P>(s, v...));
      else return L::template convert<type_t<I>, value_t<x>>(lane_value<x, P>(s, v...));
    } else if constexpr (what.code == loop_code::store) {
      index_t const by = detail::resolved(lane_stride<x>, s.symbols);
      auto* const to = detail::element_at<memory_t<x>>(s.base[x], s.at[x]) + i * by;
      if constexpr (!Tail && Operands::template may_stream<x>()) {
        if (s.streams) L::stream(to, lane_value<y, P>(s, v...));
        else L::template store<false>(to, by, lane_value<y, P>(s, v...), count);
      } else if constexpr (!Tail && Operands::template stores_every<x>()) {
        L::template store_every<lane_stride<x>>(to, lane_value<y, P>(s, v...));
      } else {
        if constexpr (!Tail && Operands::template asks_ahead<x>()) L::ask_ahead(to);
        L::template store<Tail>(to, by, lane_value<y, P>(s, v...), count);
      }
      return detail::Absent{};
    } else if constexpr (what.code == loop_code::accumulate) {
      accumulate<x, Tail>(s, i, count, lane_value<y, P>(s, v...));
      return detail::Absent{};
    } else {
      using Op = typename op::fused<static_cast<int>(what.code)>::type;
      if constexpr (z >= 0)
        return detail::applied<L, Op, T, value_t<x>, value_t<y>, value_t<z>>(
            lane_value<x, P>(s, v...), lane_value<y, P>(s, v...), lane_value<z, P>(s, v...));
      else if constexpr (y >= 0)
        return detail::applied<L, Op, T, value_t<x>, value_t<y>>(lane_value<x, P>(s, v...),
                                                                 lane_value<y, P>(s, v...));
      else return detail::applied<L, Op, T, value_t<x>>(lane_value<x, P>(s, v...));
    }
  }

  // A function of a function waits for it, and the instructions of both are as many as a processor looks ahead: it
  // would do little meanwhile. So a phase with such functions runs part by part, each on some vectors.
  template <int P>
  static constexpr auto parts = facts.parts_of(P, runs_in<P>, functions_of<Code>(all_instructions).data());
  template <int P>
  static constexpr bool in_parts() {
    if constexpr (detail::known_size<L> > 1 && !detail::self_applying<L>) return parts<P>.number > 1;
    else return false;
  }
  template <int P, int Part, class A0, class A1, class A2, class A3>
  static DFDX_INLINE void run_parts(State& s, index_t i, index_t vectors, Values* all, A0& a0, A1& a1, A2& a2,
                                    A3& a3) {
    constexpr int begin = parts<P>.begin[Part], end = parts<P>.begin[Part + 1];
    [&]<std::size_t... N>(std::index_sequence<N...>) DFDX_INLINE_LAMBDA {
      for (index_t v = 0; v < vectors; ++v)
        run_on<P, false>(s, i + v * L::size, L::size, a0, a1, a2, a3, all[v],
                         std::index_sequence<begin + N...>{});
    }(std::make_index_sequence<static_cast<std::size_t>(end - begin)>{});
    if constexpr (Part + 1 < parts<P>.number) run_parts<P, Part + 1>(s, i, vectors, all, a0, a1, a2, a3);
  }

  // The inner dims from D on; the last of them in lanes. Several chains of sums take turns, a0 to a3 being those of the
  // first.
  template <int D, int P, class A0, class A1, class A2, class A3, class... More>
  static DFDX_INLINE void inner(State& s, A0& a0, A1& a1, A2& a2, A3& a3, More&... more) {
    index_t const n = iterations<D>(s);
    if constexpr (D + 1 < dims) {
      for (index_t k = 0; k < n; ++k) {
        inner<D + 1, P>(s, a0, a1, a2, a3, more...);
        advance<D>(s, 1);
      }
      advance<D>(s, -n);
    } else {
      constexpr index_t e = facts.extent_code(dims - 1), known = detail::known_size<L>;
      index_t const size = detail::lane_size_of<L>();
      index_t i = 0;
      if constexpr (sizeof...(More) > 0)
        for (index_t const at_once = (1 + static_cast<index_t>(sizeof...(More)) / 4) * size; i + at_once <= n;
             i += at_once)
          chains<P>(s, i, a0, a1, a2, a3, more...);
      if constexpr ((e < 0 || e >= 8 * known) && in_parts<P>()) {
        // As many as hide that each part begins by waiting; their values lie in the first cache.
        constexpr index_t room = index_t{1} << 14, each = static_cast<index_t>(sizeof(Values)),
                          most = each * 16 <= room  ? 16
                                 : each * 4 >= room ? 4
                                                    : room / each;
        Values all[most];
        for (index_t vectors = 0; i + size <= n; i += vectors * size) {
          vectors = (n - i) / size < most ? (n - i) / size : most;
          run_parts<P, 0>(s, i, vectors, all, a0, a1, a2, a3);
        }
      } else if constexpr (e < 0 || e >= known)
        for (; i + size <= n; i += size)
          lanes<P, false>(s, i, static_cast<int>(size), a0, a1, a2, a3, all_runs<P>);
      if constexpr (known == 0 || (known != 1 && (e < 0 || e % (known == 0 ? 1 : known) != 0)))
        if (i < n) lanes<P, true>(s, i, static_cast<int>(n - i), a0, a1, a2, a3, all_runs<P>);
    }
  }
  template <int P, class A0, class A1, class A2, class A3, class... More>
  static DFDX_INLINE void chains(State& s, index_t i, A0& a0, A1& a1, A2& a2, A3& a3, More&... more) {
    index_t const size = detail::lane_size_of<L>();
    lanes<P, false>(s, i, static_cast<int>(size), a0, a1, a2, a3, all_runs<P>);
    if constexpr (sizeof...(More) > 0) chains<P>(s, i + size, more...);
  }

  // An addition takes as long as several that do not wait for each other: a phase that does little else runs in
  // four chains.
  template <int P>
  static constexpr bool in_chains() {
    constexpr index_t e = facts.extent_code(dims - 1), known = detail::known_size<L>;
    if constexpr (known > 1 && facts.reduction(P, 0) >= 0 && (e < 0 || e >= 8 * known))
      return loop_cost<Code, P>() <= 6;
    else return false;
  }
  // A sum by the instruction that finds it, -1 if there is none.
  template <int I, class A>
  static DFDX_INLINE void join(A& a, A const& b, A const& c, A const& d) {
    if constexpr (I >= 0) {
      constexpr index_t how = facts.field(I, loop_code::code);
      using T = value_t<I>;
      a = detail::joined<L, how, T>(detail::joined<L, how, T>(a, b), detail::joined<L, how, T>(c, d));
    }
  }

  template <int I>
  static DFDX_INLINE auto identity() {
    if constexpr (I < 0) return detail::Absent{};
    else
      return L::template splat<value_t<I>>(
          Combination<facts.field(I, loop_code::code)>::template identity<value_t<I>>());
  }
  template <int I, class A>
  static DFDX_INLINE void finish(State& s, A const& sum) {
    if constexpr (I >= 0)
      s.cells[I].template set<value_t<I>>(
          L::template horizontal<facts.field(I, loop_code::code), value_t<I>>(sum));
  }

  template <int P>
  static DFDX_INLINE void phase(State& s) {
    if constexpr (facts.row_instructions(P) != 0) run_row<P>(s, of_row<P>);
    if constexpr (P < phases) {
      if constexpr (facts.reduction(P, 0) < 0) {
        detail::Absent none;
        inner<split, P>(s, none, none, none, none);
      } else {
        reduce<P>(s);
      }
      if constexpr (P + 1 < phases || facts.row_instructions(P + 1) != 0) phase<P + 1>(s);
    }
  }
  template <int P>
  static DFDX_INLINE void reduce(State& s) {
    auto a0 = identity<facts.reduction(P, 0)>();
    auto a1 = identity<facts.reduction(P, 1)>();
    auto a2 = identity<facts.reduction(P, 2)>();
    auto a3 = identity<facts.reduction(P, 3)>();
    if constexpr (in_chains<P>()) {
      auto b0 = a0, c0 = a0, d0 = a0;
      auto b1 = a1, c1 = a1, d1 = a1;
      auto b2 = a2, c2 = a2, d2 = a2;
      auto b3 = a3, c3 = a3, d3 = a3;
      inner<split, P>(s, a0, a1, a2, a3, b0, b1, b2, b3, c0, c1, c2, c3, d0, d1, d2, d3);
      join<facts.reduction(P, 0)>(a0, b0, c0, d0);
      join<facts.reduction(P, 1)>(a1, b1, c1, d1);
      join<facts.reduction(P, 2)>(a2, b2, c2, d2);
      join<facts.reduction(P, 3)>(a3, b3, c3, d3);
    } else {
      inner<split, P>(s, a0, a1, a2, a3);
    }
    finish<facts.reduction(P, 0)>(s, a0);
    finish<facts.reduction(P, 1)>(s, a1);
    finish<facts.reduction(P, 2)>(s, a2);
    finish<facts.reduction(P, 3)>(s, a3);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
