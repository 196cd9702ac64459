// SPDX-License-Identifier: BSL-1.0
// The kernel of a fused loop group, generated from its description (core/loop_code.hpp): a nest over the outer
// dims, and for each row its phases, loops over the inner dims in which the instructions of that phase run on lane
// values.
//
// Lane values are arguments and results of the steps, never members: vectors of some targets have no size. Steps are
// inlined into one another: a phase becomes straight code over registers.
#pragma once

#include <bit>
#include <type_traits>
#include <utility>

#include <dfdx/kernels/loop_facts.hpp>
#include <dfdx/kernels/loop_values.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// Loop - the kernel of one description, at the width it asks for or another. Given and Stored are set when it is
/// the epilogue of a matrix product (`at`).
template <class Code, index_t Width = Code::value[loop_code::width], int Given = -1, int Stored = -1>
class Loop : LoopFacts<Code> {
  using Facts = LoopFacts<Code>;
  using Facts::dims, Facts::split, Facts::operands, Facts::instructions, Facts::phases;
  using Facts::field, Facts::record, Facts::extent_code, Facts::stride_code;
  using Facts::is_reduce, Facts::in_phase, Facts::reduction, Facts::ordinal, Facts::touches;
  using L = Lanes<Width>;
  static constexpr std::make_index_sequence<static_cast<std::size_t>(instructions)> all_instructions{};

  template <int K>
  using memory_t = element_t<static_cast<DType>(record(K, loop_code::dtype))>;
  // The type an instruction computes in.
  template <int I>
  using value_t = compute_t<element_t<static_cast<DType>(field(I, loop_code::type))>>;

  template <int D>
  static DFDX_INLINE constexpr index_t extent_of(index_t const* symbols) {
    constexpr index_t e = extent_code(D);
    if constexpr (e >= 0) return e;
    else return extent::resolve(e, symbols);
  }
  template <int K, int D>
  static DFDX_INLINE constexpr index_t stride(index_t const* symbols) {
    constexpr index_t s = stride_code(K, D);
    if constexpr (s >= 0) return s;
    else return extent::resolve(s, symbols);
  }

  struct State {
    void* const* base;
    index_t const* symbols;
    index_t at[operands + 1] = {};
    detail::Cell cells[instructions + 1] = {};
  };

  template <int K>
  static DFDX_INLINE auto* pointer(State const& s) {
    return static_cast<memory_t<K>*>(s.base[K]) + s.at[K];
  }

  template <int D, std::size_t... K>
  static DFDX_INLINE void advance(State& s, index_t times, std::index_sequence<K...>) {
    ((s.at[K] += times * stride<static_cast<int>(K), D>(s.symbols)), ...);
  }
  template <int D>
  static DFDX_INLINE void advance(State& s, index_t times) {
    advance<D>(s, times, std::make_index_sequence<static_cast<std::size_t>(operands)>{});
  }

  // Row level
  // -------------------------------------------------------------------------------------------------------

  template <int I>
  static DFDX_INLINE auto row_value(State const& s) {
    using T = value_t<I>;
    if constexpr (field(I, loop_code::code) == loop_code::constant)
      return static_cast<T>(std::bit_cast<double>(field(I, loop_code::immediate)));
    else return s.cells[I].template get<T>();
  }

  template <int I>
  static DFDX_INLINE void run_row_instruction(State& s) {
    constexpr index_t what = field(I, loop_code::code);
    constexpr int a = static_cast<int>(field(I, loop_code::a)), b = static_cast<int>(field(I, loop_code::b)),
                  c = static_cast<int>(field(I, loop_code::c));
    using T = value_t<I>;
    if constexpr (what == loop_code::constant || what == loop_code::carry || is_reduce(I)) {
    } else if constexpr (what == loop_code::load) {
      s.cells[I].template set<T>(static_cast<T>(*pointer<a>(s)));
    } else if constexpr (what == loop_code::iota) {
      s.cells[I].template set<T>(static_cast<T>(s.at[a]));
    } else if constexpr (what == loop_code::cast) {
      s.cells[I].template set<T>(convert_number<T>(row_value<a>(s)));
    } else if constexpr (what == loop_code::store) {
      L::store_row(pointer<a>(s), row_value<b>(s));
    } else if constexpr (what == loop_code::accumulate) {
      using M = memory_t<a>;
      auto* p = pointer<a>(s);
      *p = static_cast<M>(
          Combination<record(a, loop_code::combine)>::apply(static_cast<T>(*p), row_value<b>(s)));
    } else {
      using Op = typename op::fused<static_cast<int>(what)>::type;
      if constexpr (c >= 0)
        s.cells[I].template set<T>(Op::eval(row_value<a>(s), row_value<b>(s), row_value<c>(s)));
      else if constexpr (b >= 0)
        s.cells[I].template set<T>(static_cast<T>(Op::eval(row_value<a>(s), row_value<b>(s))));
      else s.cells[I].template set<T>(static_cast<T>(Op::eval(row_value<a>(s))));
    }
  }

  // The row-level instructions that are due before phase P, in order.
  template <int P, std::size_t... I>
  static DFDX_INLINE void run_row(State& s, std::index_sequence<I...>) {
    auto const one = [&](auto i) {
      constexpr int k = decltype(i)::value;
      if constexpr (Facts::field(k, loop_code::level) == loop_code::row_level &&
                    Facts::field(k, loop_code::phase) == P)
        run_row_instruction<k>(s);
    };
    (one(std::integral_constant<int, static_cast<int>(I)>{}), ...);
  }

  // What rows hand to one another, or the first finds. All is read before any is written: carries may change places.
  template <bool First, std::size_t... I>
  static DFDX_INLINE void carry(State& s, std::index_sequence<I...>) {
    detail::Cell next[instructions + 1];
    auto const read = [&](auto i) {
      constexpr int k = decltype(i)::value, from = Facts::carried_from(k, First);
      if constexpr (from >= 0 && First) next[k].template set<value_t<k>>(*pointer<from>(s));
      else if constexpr (from >= 0) next[k].template set<value_t<k>>(row_value<from>(s));
    };
    auto const write = [&](auto i) {
      constexpr int k = decltype(i)::value;
      if constexpr (Facts::carried_from(k, First) >= 0) s.cells[k] = next[k];
    };
    (read(std::integral_constant<int, static_cast<int>(I)>{}), ...);
    (write(std::integral_constant<int, static_cast<int>(I)>{}), ...);
  }

  // Element level
  // ---------------------------------------------------------------------------------------------------

  // The value of instruction I as a lane: computed in this phase, or the same for the whole row.
  template <int I, class... V>
  static DFDX_INLINE auto lane_value(State const& s, V const&... v) {
    if constexpr (field(I, loop_code::code) == loop_code::constant ||
                  field(I, loop_code::level) == loop_code::row_level)
      return L::template splat<value_t<I>>(row_value<I>(s));
    else return detail::pick<I>(v...);
  }

  template <int K, bool Tail>
  static DFDX_INLINE auto load_lane(State const& s, index_t i, int count) {
    index_t const step = stride<K, dims - 1>(s.symbols);
    return L::template load<Tail>(pointer<K>(s) + i * step, step, count);
  }

  template <class Op, class T, int... Of, class... V>
  static DFDX_INLINE auto apply(State const& s, V const&... v) {
    return detail::applied<L, Op, T, value_t<Of>...>(lane_value<Of>(s, v...)...);
  }
  template <int I, int P, bool Tail, class... V>
  static DFDX_INLINE auto evaluate(State& s, index_t i, int count, V const&... v) {
    constexpr index_t what = field(I, loop_code::code);
    constexpr int a = static_cast<int>(field(I, loop_code::a)), b = static_cast<int>(field(I, loop_code::b)),
                  c = static_cast<int>(field(I, loop_code::c));
    constexpr int stash = static_cast<int>(field(I, loop_code::stash));
    using T = value_t<I>;
    if constexpr (stash >= 0 && P > static_cast<int>(field(I, loop_code::phase))) {
      return load_lane<stash, Tail>(s, i, count);
    } else if constexpr (what == loop_code::load) {
      return load_lane<a, Tail>(s, i, count);
    } else if constexpr (what == loop_code::iota) {
      index_t const step = stride<a, dims - 1>(s.symbols);
      return L::template positions<T>(s.at[a] + i * step, step);
    } else if constexpr (what == loop_code::cast) {
      return L::template convert<T, value_t<a>>(lane_value<a>(s, v...));
    } else if constexpr (what == loop_code::store) {
      index_t const step = stride<a, dims - 1>(s.symbols);
      L::template store<Tail>(pointer<a>(s) + i * step, step, lane_value<b>(s, v...), count);
      return detail::Absent{};
    } else if constexpr (what == loop_code::accumulate) {
      accumulate<a, Tail>(s, i, count, lane_value<b>(s, v...));
      return detail::Absent{};
    } else {
      using Op = typename op::fused<static_cast<int>(what)>::type;
      if constexpr (c >= 0) return apply<Op, T, a, b, c>(s, v...);
      else if constexpr (b >= 0) return apply<Op, T, a, b>(s, v...);
      else return apply<Op, T, a>(s, v...);
    }
  }

  template <int K, bool Tail, class X>
  static DFDX_INLINE void accumulate(State& s, index_t i, int count, X const& x) {
    using M = memory_t<K>;
    using T = compute_t<M>;
    constexpr index_t how = record(K, loop_code::combine);
    using Join = Combination<how>;
    index_t const step = stride<K, dims - 1>(s.symbols);
    M* p = pointer<K>(s) + i * step;
    if (step != 0) {
      auto const sum = detail::joined<L, how, T>(L::template load<Tail>(p, step, count), x);
      L::template store<Tail>(p, step, sum, count);
    } else {
      auto part = x;
      if constexpr (Tail) part = L::template only_first<T>(x, count, Join::template identity<T>());
      *p = static_cast<M>(Join::apply(static_cast<T>(*p), L::template horizontal<how, T>(part)));
    }
  }

  // Runs instruction I of phase P on the lanes from element i on, then those after it.
  template <int I, int P, bool Tail, class A0, class A1, class A2, class A3, class... V>
  static DFDX_INLINE void step(State& s, index_t i, int count, A0& a0, A1& a1, A2& a2, A3& a3,
                               V const&... v) {
    if constexpr (I < instructions) {
      constexpr bool runs = in_phase(I, P) &&
                            (is_reduce(I) || field(I, loop_code::level) == loop_code::element_level) &&
                            field(I, loop_code::code) != loop_code::constant;
      if constexpr (!runs) {
        step<I + 1, P, Tail>(s, i, count, a0, a1, a2, a3, v..., detail::Absent{});
      } else if constexpr (is_reduce(I)) {
        using T = value_t<I>;
        using Join = Combination<field(I, loop_code::code)>;
        auto x = lane_value<static_cast<int>(field(I, loop_code::a))>(s, v...);
        if constexpr (Tail) x = L::template only_first<T>(x, count, Join::template identity<T>());
        auto& sum = detail::pick_mutable<ordinal(P, I)>(a0, a1, a2, a3);
        sum = detail::joined<L, field(I, loop_code::code), T>(sum, x);
        step<I + 1, P, Tail>(s, i, count, a0, a1, a2, a3, v..., detail::Absent{});
      } else if constexpr (touches(I, loop_code::load, Given)) {
        step<I + 1, P, Tail>(s, i, count, a0, a1, a2, a3, v..., a0);
      } else if constexpr (touches(I, loop_code::store, Stored)) {
        a1 = lane_value<static_cast<int>(field(I, loop_code::b))>(s, v...);
        step<I + 1, P, Tail>(s, i, count, a0, a1, a2, a3, v..., detail::Absent{});
      } else {
        step<I + 1, P, Tail>(s, i, count, a0, a1, a2, a3, v..., evaluate<I, P, Tail>(s, i, count, v...));
      }
    }
  }

  // The inner dims from D on; the last of them in lanes.
  template <int D, int P, class... A>
  static DFDX_INLINE void inner(State& s, A&... sums) {
    index_t const n = extent_of<D>(s.symbols);
    if constexpr (D + 1 < dims) {
      for (index_t k = 0; k < n; ++k) {
        inner<D + 1, P>(s, sums...);
        advance<D>(s, 1);
      }
      advance<D>(s, -n);
    } else {
      constexpr index_t e = extent_code(D), known = detail::known_size<L>;
      index_t const size = detail::lane_size_of<L>();
      index_t i = 0;
      if constexpr (e < 0 || e >= known)
        for (; i + size <= n; i += size) step<0, P, false>(s, i, static_cast<int>(size), sums...);
      if constexpr (known != 1 && (e < 0 || known == 0 || e % known != 0))
        if (i < n) step<0, P, true>(s, i, static_cast<int>(n - i), sums...);
    }
  }

  template <int P, int N>
  static DFDX_INLINE auto identity() {
    constexpr int i = reduction(P, N);
    if constexpr (i < 0) return detail::Absent{};
    else
      return L::template splat<value_t<i>>(
          Combination<field(i, loop_code::code)>::template identity<value_t<i>>());
  }
  template <int P, int N, class A>
  static DFDX_INLINE void finish(State& s, A const& sum) {
    constexpr int i = reduction(P, N);
    if constexpr (i >= 0)
      s.cells[i].template set<value_t<i>>(L::template horizontal<field(i, loop_code::code), value_t<i>>(sum));
  }

  template <int P>
  static DFDX_INLINE void phase(State& s) {
    run_row<P>(s, all_instructions);
    if constexpr (P < phases) {
      auto a0 = identity<P, 0>();
      auto a1 = identity<P, 1>();
      auto a2 = identity<P, 2>();
      auto a3 = identity<P, 3>();
      inner<split, P>(s, a0, a1, a2, a3);
      finish<P, 0>(s, a0);
      finish<P, 1>(s, a1);
      finish<P, 2>(s, a2);
      finish<P, 3>(s, a3);
      phase<P + 1>(s);
    }
  }

  template <int D>
  static DFDX_INLINE void outer(State& s) {
    if constexpr (D == split) {
      phase<0>(s);
    } else {
      constexpr bool backward = D == 0 && Facts::is_backward();
      index_t const n = extent_of<D>(s.symbols);
      if constexpr (backward) advance<D>(s, n - 1);
      for (index_t k = 0; k < n; ++k) {
        outer<D + 1>(s);
        if constexpr (Facts::is_sequential()) carry<false>(s, all_instructions);
        advance<D>(s, backward ? -1 : 1);
      }
      advance<D>(s, backward ? 1 : -n);
    }
  }

  template <int K>
  static DFDX_INLINE void fill(State const& s) {
    constexpr index_t elements = record(K, loop_code::fill);
    if constexpr (elements != 0)
      detail::fill_with_identity<record(K, loop_code::combine), memory_t<K>>(
          s.base[K], extent::resolve(elements, s.symbols));
  }

  // For backends that divide the nest: goes to position `index` of the dims [First, Last), counted row by row.
  template <int First, int Last, class Index>
  static DFDX_INLINE void seek(State& s, Index index) {
    if constexpr (Last - First == 1) {
      advance<First>(s, static_cast<index_t>(index));
    } else if constexpr (Last > First) {
      auto const n = static_cast<Index>(extent_of<Last - 1>(s.symbols));
      advance<Last - 1>(s, static_cast<index_t>(index % n));
      seek<First, Last - 1>(s, static_cast<Index>(index / n));
    }
  }
  template <int First, int Last>
  static DFDX_INLINE constexpr index_t count(index_t const* symbols) {
    if constexpr (First == Last) return 1;
    else return extent_of<First>(symbols) * count<First + 1, Last>(symbols);
  }
  // Divisions in 32 bits are several times faster on GPUs.
  using position_t = std::conditional_t<Facts::is_small(), std::uint32_t, index_t>;

  template <std::size_t... K>
  static DFDX_INLINE void go_to_scratch(State& s, index_t elements, std::index_sequence<K...>) {
    ((s.at[K] += Facts::is_scratch(static_cast<int>(K)) ? elements : 0), ...);
  }

 public:
  /// rows, row_size - iterations of the outer dims, and of the inner ones.
  static DFDX_INLINE constexpr index_t rows(index_t const* symbols) { return count<0, split>(symbols); }
  static DFDX_INLINE constexpr index_t row_size(index_t const* symbols) {
    return count<split, dims>(symbols);
  }
  /// scratch_size - elements of scratch operand k for that many rows at once; 0 if k is no scratch.
  static constexpr index_t scratch_size(int k, index_t rows_at_once, index_t const* symbols) {
    return Facts::is_scratch(k) ? rows_at_once * row_size(symbols) : 0;
  }

  /// row - all phases of one row. Rows are independent of one another unless the loop accumulates; those of one
  /// `worker` share scratch and must follow one another.
  static DFDX_INLINE void row(void* const* base, index_t const* symbols, index_t index, index_t worker) {
    State s{base, symbols};
    seek<0, split>(s, static_cast<position_t>(index));
    go_to_scratch(s, worker * row_size(symbols),
                  std::make_index_sequence<static_cast<std::size_t>(operands)>{});
    phase<0>(s);
  }

  /// element - one element of a map, counted over all dims row by row.
  static DFDX_INLINE void element(void* const* base, index_t const* symbols, index_t index) {
    static_assert(Facts::is_map() && L::size == 1,
                  "loop: only the elements of a map can be computed one by one");
    State s{base, symbols};
    auto const n = static_cast<position_t>(extent_of<dims - 1>(symbols));
    auto const at = static_cast<position_t>(index);
    seek<0, dims - 1>(s, static_cast<position_t>(at / n));
    run_row<0>(s, all_instructions);
    detail::Absent none;
    step<0, 0, false>(s, static_cast<index_t>(at % n), 1, none, none, none, none);
  }

  /// at - the loop's body at row m from column n on, for a sum of a matrix product; returns what to store.
  template <bool Tail, class V>
  static DFDX_INLINE V at(void* const* base, index_t const* symbols, V sum, index_t m, index_t n, int count) {
    static_assert(dims == 2 && split == 1 && phases == 1);
    State s{base, symbols};
    advance<0>(s, m);
    run_row<0>(s, all_instructions);
    V result = sum;
    detail::Absent none, none_either;
    step<0, 0, Tail>(s, n, count, sum, result, none, none_either);
    return result;
  }

  /// run - the whole nest. base[k] is where operand k starts; symbols are the values of symbolic extents.
  static void run(void* const* base, void*, index_t const* symbols) {
    State s{base, symbols};
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      (fill<static_cast<int>(K)>(s), ...);
    }(std::make_index_sequence<static_cast<std::size_t>(operands)>{});
    if constexpr (Facts::is_sequential()) carry<true>(s, all_instructions);
    outer<0>(s);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
