// SPDX-License-Identifier: BSL-1.0
// CUDA kernels of fused loop groups, from the descriptions that the CPU's kernels are made of
// (core/loop_code.hpp). A map takes a thread for each element; other groups take a block for each row, whose threads
// are the lanes that the phases run on (kernels/cuda/lanes.hpp). Where rows add to memory that they share, a block
// has a part of the rows and a copy of that memory; another kernel combines the copies, in order, so that results
// do not depend on which block is first. A loop that hands values from row to row runs in one thread.
//
// There is no interpreter of descriptions here: the body of all is kernels/loop.hpp.
#pragma once

#include <dfdx/kernels/cuda/lanes.hpp>
#include <dfdx/kernels/loop.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// LoopArguments - what a kernel is called with: addresses of the operands on the device, the values of symbolic
/// extents, and the number of copies of shared memory.
template <class Code>
struct LoopArguments {
  void* base[static_cast<std::size_t>(Code::value[loop_code::operands])] = {};
  index_t symbols[max_symbols] = {};
  index_t parts = 1;
};

namespace detail {

using kernels::detail::resolved;

/// row_threads - threads of a block for one row: as many warps as the dim that runs in lanes keeps busy, 8 at most.
template <class Code>
constexpr int row_threads() {
  constexpr int most = 8 * warp_size;
  constexpr index_t n = LoopFacts<Code>::lane_extent();
  if (n < 0 || n >= most) return most;
  return n <= warp_size ? warp_size : static_cast<int>((n + warp_size - 1) / warp_size) * warp_size;
}

template <class Code, class F, std::size_t... K>
DFDX_INLINE constexpr void for_shared(F f, std::index_sequence<K...>) {
  auto const one = [&](auto k) {
    if constexpr (LoopFacts<Code>::is_shared(decltype(k)::value)) f(k);
  };
  (one(std::integral_constant<int, static_cast<int>(K)>{}), ...);
}
/// for_shared - f(k) for each operand k that rows add to.
template <class Code, class F>
DFDX_INLINE constexpr void for_shared(F f) {
  for_shared<Code>(f, std::make_index_sequence<static_cast<std::size_t>(LoopFacts<Code>::operands)>{});
}
template <class Code, int K>
using memory_of = element_t<static_cast<DType>(LoopFacts<Code>::record(K, loop_code::dtype))>;

}  // namespace detail

/// MapKernel - a thread for each element.
template <class Code>
struct MapKernel {
  static constexpr int threads = 256;
  static DFDX_INLINE void run(LoopArguments<Code> const& arguments) {
    using Body = Loop<Code, loop_code::scalar>;
    index_t const n = Body::rows(arguments.symbols) * Body::row_size(arguments.symbols);
    for (index_t i = block() * threads + thread(); i < n; i += blocks() * threads)
      Body::element(arguments.base, arguments.symbols, i);
  }
};

/// RowsKernel - a block for each row.
template <class Code>
struct RowsKernel {
  static constexpr int threads = detail::row_threads<Code>();
  static DFDX_INLINE void run(LoopArguments<Code> const& arguments) {
    using Body = Loop<Code, threads>;
    index_t const n = Body::rows(arguments.symbols);
    for (index_t i = block(); i < n; i += blocks()) Body::row(arguments.base, arguments.symbols, i, block());
  }
};

/// PartsKernel - a block for each of `parts` ranges of rows, which adds to a copy of what rows share.
template <class Code>
struct PartsKernel {
  static constexpr int threads = detail::row_threads<Code>();
  static DFDX_INLINE void run(LoopArguments<Code> const& arguments) {
    using Body = Loop<Code, threads>;
    detail::for_shared<Code>([&](auto k) {
      using M = detail::memory_of<Code, decltype(k)::value>;
      constexpr index_t how = LoopFacts<Code>::record(decltype(k)::value, loop_code::combine);
      index_t const n = Body::template own_size<decltype(k)::value>(arguments.symbols);
      M* const mine = static_cast<M*>(arguments.base[decltype(k)::value]) + block() * n;
      for (index_t i = thread(); i < n; i += threads)
        mine[i] = static_cast<M>(Combination<how>::template identity<compute_t<M>>());
    });
    barrier();
    index_t const n = Body::rows(arguments.symbols), begin = n * block() / blocks(),
                  end = n * (block() + 1) / blocks();
    for (index_t i = begin; i < end; ++i) Body::row(arguments.base, arguments.symbols, i, block());
  }
};

/// CombineArguments - copies of one shared memory, n elements each, to be combined in another.
struct CombineArguments {
  void const* copies;
  void* to;
  index_t n, parts;
};
template <index_t Do, class M>
struct CombineKernel {
  static constexpr int threads = 256;
  static DFDX_INLINE void run(CombineArguments const& arguments) {
    auto const* const copies = static_cast<M const*>(arguments.copies);
    for (index_t i = block() * threads + thread(); i < arguments.n; i += blocks() * threads) {
      auto sum = static_cast<compute_t<M>>(copies[i]);
      for (index_t p = 1; p < arguments.parts; ++p)
        sum = Combination<Do>::apply(sum, static_cast<compute_t<M>>(copies[p * arguments.n + i]));
      static_cast<M*>(arguments.to)[i] = static_cast<M>(sum);
    }
  }
};

/// SequentialKernel - one thread runs the whole nest: what it hands on are single numbers.
template <class Code>
struct SequentialKernel {
  static constexpr int threads = warp_size;
  static DFDX_INLINE void run(LoopArguments<Code> const& arguments) {
    if (thread() == 0) Loop<Code, loop_code::scalar>::run(arguments.base, nullptr, arguments.symbols);
  }
};

/// LoopStep - how a loop group is started. Everything follows from its extents alone, so that results are the same
/// on each device.
template <class Code>
class LoopStep {
  using Facts = LoopFacts<Code>;
  using Body = Loop<Code, loop_code::scalar>;
  static constexpr index_t most_blocks = 2048, most_parts = 512;
  static constexpr index_t most_bytes = index_t{64} << 20;  // of copies and of scratch

  struct Own {
    index_t elements[static_cast<std::size_t>(Facts::operands) + 1] = {};
    constexpr index_t bytes(int k, index_t n) const {
      return n * elements[k] *
             static_cast<index_t>(size_of(static_cast<DType>(Facts::record(k, loop_code::dtype))));
    }
    constexpr index_t bytes() const {
      index_t r = 0;
      for (int k = 0; k < Facts::operands; ++k) r += bytes(k, 1);
      return r;
    }
  };
  // What each block has of its own.
  static constexpr Own own(index_t const* symbols) {
    return [symbols]<std::size_t... K>(std::index_sequence<K...>) {
      return Own{{Body::template own_size<static_cast<int>(K)>(symbols)..., 0}};
    }(std::make_index_sequence<static_cast<std::size_t>(Facts::operands)>{});
  }
  // Copies of shared memory: no more than rows, and no more elements than the loop walks.
  static constexpr index_t parts(index_t const* symbols) {
    Own const mine = own(symbols);
    index_t const rows = Body::rows(symbols);
    index_t most = rows < most_parts ? rows : most_parts;
    for (int k = 0; k < Facts::operands; ++k) {
      index_t const n = Facts::is_shared(k) ? mine.elements[k] : 0;
      if (n == 0) continue;
      index_t const walked = rows * Body::row_size(symbols) / n;
      most = walked < most ? walked : most;
    }
    index_t const bytes = mine.bytes();
    if (bytes != 0 && most_bytes / bytes < most) most = most_bytes / bytes;
    return most > 1 ? most : 1;
  }
  static constexpr index_t blocks(index_t const* symbols) {
    index_t const rows = Body::rows(symbols);
    if constexpr (Facts::is_sequential()) {
      return 1;
    } else if constexpr (Facts::fills()) {
      return parts(symbols);
    } else if constexpr (Facts::is_map()) {
      index_t const n =
          (rows * Body::row_size(symbols) + MapKernel<Code>::threads - 1) / MapKernel<Code>::threads;
      return n < most_blocks ? n : most_blocks;
    } else {
      index_t n = rows < most_blocks ? rows : most_blocks;
      index_t const bytes = own(symbols).bytes();
      if (bytes != 0 && n > 256 && most_bytes / bytes < n)
        n = most_bytes / bytes < 256 ? 256 : most_bytes / bytes;
      return n;
    }
  }
  static constexpr index_t aligned(index_t bytes) { return (bytes + 255) / 256 * 256; }
  static constexpr index_t copies_of(int k, index_t blocks) {
    return Facts::is_scratch(k) || (Facts::is_shared(k) && blocks > 1) ? blocks : 0;
  }
  static constexpr index_t bytes_of(Own const& mine, int k, index_t blocks) {
    return aligned(mine.bytes(k, copies_of(k, blocks)));
  }

 public:
  /// Bytes that it needs besides the operands.
  static constexpr index_t workspace(index_t const* symbols) {
    index_t n = 0;
    if constexpr (!Facts::is_sequential())
      for (int k = 0; k < Facts::operands; ++k) n += bytes_of(own(symbols), k, blocks(symbols));
    return n;
  }

  /// run - starts it on `stream`; returns what the runtime says.
  static cudaError_t run(void* const* base, void* workspace, index_t const* symbols, Device,
                         cudaStream_t stream) {
    LoopArguments<Code> arguments;
    for (int k = 0; k < Facts::operands; ++k) arguments.base[k] = base[k];
    if (symbols != nullptr)
      for (int i = 0; i < max_symbols; ++i) arguments.symbols[i] = symbols[i];
    index_t const n = blocks(symbols);
    if constexpr (Facts::is_sequential()) {
      return start<SequentialKernel<Code>>(arguments, n, stream);
    } else {
      auto* at = static_cast<std::byte*>(workspace);
      Own const mine = own(symbols);
      for (int k = 0; k < Facts::operands; ++k)
        if (index_t const bytes = bytes_of(mine, k, n); bytes != 0) {
          arguments.base[k] = at;
          at += bytes;
        }
      if constexpr (Facts::fills()) return run_parts(arguments, base, n, stream);
      else if constexpr (Facts::is_map()) return start<MapKernel<Code>>(arguments, n, stream);
      else return start<RowsKernel<Code>>(arguments, n, stream);
    }
  }

 private:
  static cudaError_t run_parts(LoopArguments<Code> const& arguments, void* const* base, index_t parts,
                               cudaStream_t stream) {
    cudaError_t said = start<PartsKernel<Code>>(arguments, parts, stream);
    if (parts == 1) return said;
    detail::for_shared<Code>([&](auto k) {
      if (said != cudaSuccess) return;
      constexpr int K = decltype(k)::value;
      using Kernel = CombineKernel<Facts::record(K, loop_code::combine), detail::memory_of<Code, K>>;
      index_t const n = Body::template own_size<K>(arguments.symbols),
                    full = (n + Kernel::threads - 1) / Kernel::threads;
      said = start<Kernel>(CombineArguments{arguments.base[K], base[K], n, parts},
                           full < most_blocks ? full : most_blocks, stream);
    });
    return said;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
