// SPDX-License-Identifier: BSL-1.0
// A loop that is one row, and long: sums over everything. Blocks share it: each phase is a kernel of its own, in which
// a block has a part of the first dim and leaves what it has reduced; blocks of later phases put that together, all in
// the same order.
#pragma once

#include <dfdx/core/parallel.hpp>
#include <dfdx/kernels/cuda/loop_memory.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// WholeLoop - the kernels of one.
template <class Code>
class WholeLoop {
  static constexpr int most_threads = 256;
  // Elements of a thread; if there is but one dim, the last thread has fewer.
  static constexpr int pack = [] {
    constexpr LoopFacts facts(Code::value);
    int n = pack_size<Code>();
    index_t const e = facts.lane_extent();
    while (n > 1 && facts.dims > 1 && (e < 0 || e % n != 0)) n /= 2;
    return n;
  }();

 public:
  static constexpr int threads = most_threads;

  struct Arguments {
    LoopArguments<Code> loop;
    kernels::detail::Cell* partial = nullptr;
    index_t parts = 1;
  };

 private:
  using Nest = Loop<Code, packed_width(threads, pack), -1, -1, 0>;

  class Phases : Nest {
    static constexpr LoopFacts facts{Code::value};  // g++ 12 does not find that of the base in a lambda
    using Nest::dims, Nest::split, Nest::phases;
    using typename Nest::Body, typename Nest::State;
    template <int I>
    using value_t = typename Body::template value_t<I>;
    static constexpr index_t unit = dims == 1 ? index_t{threads} * pack : 1;
    static constexpr int most_reductions = 4;

   public:
    static constexpr int count = phases;

    static constexpr bool pays() {
      if (dims == 0 || split != 0 || facts.is_map() || !facts.is_divisible()) return false;
      index_t n = 1;
      for (int d = 0; d < dims; ++d) n = n < 0 || facts.extent_code(d) < 0 ? -1 : n * facts.extent_code(d);
      return n < 0 || n >= 2 * least_work;
    }
    static constexpr index_t parts(index_t const* symbols) {
      index_t const units = (Body::template extent_of<0>(symbols) + unit - 1) / unit,
                    worth = Nest::row_size(symbols) / least_work;
      index_t const n = units < worth ? units : worth;
      return n > most_parts ? most_parts : n < 1 ? 1 : n;
    }
    static constexpr index_t partial_bytes(index_t n) {
      return n * phases * most_reductions * static_cast<index_t>(sizeof(kernels::detail::Cell));
    }
    /// run - phase P; after the last there is a kernel of one block that stores what the row has in common.
    template <int P>
    static DFDX_INLINE void run(Arguments const& x) {
      LoopArguments<Code> here = x.loop;
      if (x.parts > 1)
        detail::for_shared<Code>([&](auto k) {
          constexpr int K = decltype(k)::value;
          here.base[K] = static_cast<detail::memory_of<Code, K>*>(here.base[K]) +
                         block() * Nest::template own_size<K>(here.symbols);
        });
      State s{here.base, here.symbols};
      before<P, P == phases>(s, x);
      if constexpr (P < phases) {
        if constexpr (P == 0 && facts.fills()) detail::fill_shared<Nest, threads>(here);
        Part const part = part_of(Body::template extent_of<0>(s.symbols), block(), x.parts, unit);
        s.part = part.end - part.begin;
        Body::template advance<0>(s, part.begin);
        if constexpr (facts.reduction(P, 0) < 0) {
          kernels::detail::Absent none;
          Body::template inner<0, P>(s, none, none, none, none);
        } else {
          Body::template reduce<P>(s);
          leave<P>(s, x, std::make_integer_sequence<int, most_reductions>{});
        }
      }
    }

   private:
    static constexpr index_t least_work = index_t{1} << 13, most_parts = 1024;

    // What single values are before phase P.
    template <int P, bool Stores>
    static DFDX_INLINE void before(State& s, Arguments const& x) {
      if constexpr (P > 0) {
        before<P - 1, Stores>(s, x);
        find<P - 1>(s, x, std::make_integer_sequence<int, most_reductions>{});
      }
      Body::template run_row<P, Stores>(s, Body::template of_row<P>);
    }
    template <int P, int... R>
    static DFDX_INLINE void leave(State const& s, Arguments const& x, std::integer_sequence<int, R...>) {
      auto const one = [&](auto r) {
        constexpr int i = facts.reduction(P, decltype(r)::value);
        if constexpr (i >= 0)
          if (thread() == 0)
            x.partial[(P * most_reductions + decltype(r)::value) * x.parts + block()] = s.cells[i];
      };
      (one(std::integral_constant<int, R>{}), ...);
    }
    template <int P, int... R>
    static DFDX_INLINE void find(State& s, Arguments const& x, std::integer_sequence<int, R...>) {
      auto const one = [&](auto r) {
        constexpr int i = facts.reduction(P, decltype(r)::value);
        if constexpr (i >= 0) {
          constexpr index_t how = facts.field(i, loop_code::code);
          using T = value_t<i>;
          T sum = Combination<how>::template identity<T>();
          for (index_t p = thread(); p < x.parts; p += threads)
            sum = Combination<how>::apply(
                sum, x.partial[(P * most_reductions + decltype(r)::value) * x.parts + p].template get<T>());
          s.cells[i].template set<T>(block_reduce<how, threads>(sum));
        }
      };
      (one(std::integral_constant<int, R>{}), ...);
    }
  };

 public:
  static constexpr bool pays() { return Phases::pays(); }
  static constexpr index_t parts(index_t const* symbols) { return Phases::parts(symbols); }
  static constexpr index_t partial_bytes(index_t n) { return Phases::partial_bytes(n); }

  template <int P>
  struct Kernel {
    static constexpr int threads = WholeLoop::threads;
    static DFDX_INLINE void run(Arguments const& x) { Phases::template run<P>(x); }
  };

  /// run - starts the phases one after another; returns what the runtime says.
  template <int P = 0>
  static cudaError_t run(Arguments const& x, cudaStream_t stream) {
    cudaError_t const said = start<Kernel<P>>(x, P < Phases::count ? x.parts : 1, stream);
    if constexpr (P == Phases::count) return said;
    else return said == cudaSuccess ? run<P + 1>(x, stream) : said;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
