// SPDX-License-Identifier: BSL-1.0
// CUDA kernels of fused loop groups, from the descriptions that the CPU's kernels are made of (core/loop_code.hpp). A
// map takes a thread for some elements that lie side by side; other groups take a block for each row, whose threads are
// the lanes that the phases run on (kernels/cuda/lanes.hpp, packs.hpp). What phases keep of a row is in shared memory
// where it fits, and what they read again (kernels/cuda/staged_rows.hpp). Where rows add to memory that they share, a
// block has a part of the rows and a copy of that memory; another kernel combines the copies, in order, so that results
// do not depend on which block is first. A loop that hands values from row to row runs in one thread.
//
// There is no interpreter of descriptions here: the body of all is kernels/loop.hpp.
#pragma once

#include <dfdx/kernels/cuda/staged_rows.hpp>
#include <dfdx/kernels/cuda/whole_loop.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// MapKernel - a thread for some elements that lie side by side; for one where there are few, or lines cannot be
/// divided.
template <class Code>
struct MapKernel {
  static constexpr int threads = 256;
  static constexpr index_t few = 1 << 15;
  static constexpr int pack = [] {
    constexpr LoopFacts facts(Code::value);
    index_t all = 1;
    for (int d = 0; d < facts.dims; ++d)
      all = facts.extent_code(d) < 0 || all < 0 ? -1 : all * facts.extent_code(d);
    int n = all >= 0 && all < few ? 1 : pack_size<Code>();
    index_t const e = facts.lane_extent();
    while (n > 1 && facts.dims > 1 && (e < 0 || e % n != 0)) n /= 2;
    return n;
  }();
  static constexpr index_t work(index_t const* symbols) {
    using Body = Loop<Code, loop_code::scalar>;
    return (Body::rows(symbols) * Body::row_size(symbols) + pack - 1) / pack;
  }
  static DFDX_INLINE void run(LoopArguments<Code> const& arguments) {
    using Body = Loop<Code, pack == 1 ? index_t{loop_code::scalar} : packed_width(1, pack)>;
    index_t const n = Body::rows(arguments.symbols) * Body::row_size(arguments.symbols),
                  all = work(arguments.symbols);
    for (index_t i = block() * threads + thread(); i < all; i += blocks() * threads)
      Body::elements(arguments.base, arguments.symbols, i * pack,
                     static_cast<int>(n - i * pack < pack ? n - i * pack : pack));
  }
};

/// RowsKernel - a block for each row.
template <class Code>
struct RowsKernel {
  static constexpr int threads = detail::row_threads<Code>();
  static DFDX_INLINE void run(LoopArguments<Code> const& arguments) {
    using Body = detail::RowBody<Code>;
    LoopArguments<Code> const here = detail::OwnMemory<Code>::here(arguments);
    index_t const n = Body::rows(here.symbols);
    for (index_t i = block(); i < n; i += blocks()) Body::row(here.base, here.symbols, i, 0);
  }
};

/// PartsKernel - a block for each of `parts` ranges of rows, which adds to a copy of what rows share.
template <class Code>
struct PartsKernel {
  static constexpr int threads = detail::row_threads<Code>();
  static DFDX_INLINE void run(LoopArguments<Code> const& arguments) {
    using Body = detail::RowBody<Code>;
    LoopArguments<Code> const here = detail::OwnMemory<Code>::here(arguments);
    detail::fill_shared<Body, threads>(here);
    index_t const n = Body::rows(here.symbols), begin = n * block() / blocks(),
                  end = n * (block() + 1) / blocks();
    for (index_t i = begin; i < end; ++i) Body::row(here.base, here.symbols, i, 0);
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
  // A warp has elements side by side of some of the copies.
  static constexpr int threads = 256, each = warp_size, slices = threads / each;
  static DFDX_INLINE void run(CombineArguments const& arguments) {
    using T = compute_t<M>;
    auto const* const copies = static_cast<M const*>(arguments.copies);
    T* const of_slices = shared<CombineKernel, T, threads>();
    int const slice = thread() / each, lane = thread() % each;
    for (index_t first = block() * each; first < arguments.n; first += blocks() * each) {
      index_t const i = first + lane;
      T sum = Combination<Do>::template identity<T>();
      if (i < arguments.n)
        for (index_t p = slice; p < arguments.parts; p += slices)
          sum = Combination<Do>::apply(sum, static_cast<T>(copies[p * arguments.n + i]));
      barrier();  // until all have read what the last elements left
      of_slices[thread()] = sum;
      barrier();
      if (slice != 0 || i >= arguments.n) continue;
      for (int s = 1; s < slices; ++s) sum = Combination<Do>::apply(sum, of_slices[s * each + lane]);
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
  static constexpr LoopFacts facts{Code::value};
  using Body = Loop<Code, loop_code::scalar>;
  using Plan = StagedPlan<Code>;
  // Several blocks have each row, where they can.
  static constexpr int sharers = blocks_of_row<Code>;
  using SharedPlan = StagedPlan<Code, sharers>;
  static constexpr index_t most_blocks = 2048, most_parts = 512, little = 4096;
  static constexpr index_t most_bytes = index_t{64} << 20;  // of copies and of scratch

  // Whether blocks have operand k of their own in the device's memory.
  static constexpr bool in_memory(int k) {
    return facts.is_shared(k) || (facts.is_scratch(k) && !detail::OwnMemory<Code>::in_shared_memory);
  }
  struct Own {
    index_t elements[static_cast<std::size_t>(facts.operands) + 1] = {};
    constexpr index_t bytes(int k, index_t n) const { return n * elements[k] * detail::item_bytes<Code>(k); }
    constexpr index_t bytes() const {
      index_t r = 0;
      for (int k = 0; k < facts.operands; ++k) r += in_memory(k) ? bytes(k, 1) : 0;
      return r;
    }
  };
  // What each block has of its own.
  static constexpr Own own(index_t const* symbols) {
    return [symbols]<std::size_t... K>(std::index_sequence<K...>) {
      return Own{{Body::template own_size<static_cast<int>(K)>(symbols)..., 0}};
    }(std::make_index_sequence<static_cast<std::size_t>(facts.operands)>{});
  }
  // Copies of shared memory: no more than rows, and no more elements than the loop walks.
  static constexpr index_t parts(index_t const* symbols) {
    index_t const bytes = own(symbols).bytes();
    return parts(symbols, Plan::pays ? Plan::parts : bytes <= little ? most_blocks : most_parts, bytes);
  }
  static constexpr index_t parts(index_t const* symbols, index_t wanted, index_t bytes) {
    Own const mine = own(symbols);
    index_t const rows = Body::rows(symbols);
    index_t most = rows < wanted ? rows : wanted;
    for (int k = 0; k < facts.operands; ++k) {
      index_t const n = facts.is_shared(k) ? mine.elements[k] : 0;
      if (n == 0) continue;
      index_t const walked = rows * Body::row_size(symbols) / n;
      most = walked < most ? walked : most;
    }
    if (bytes != 0 && most_bytes / bytes < most) most = most_bytes / bytes;
    return most > 1 ? most : 1;
  }
  // Those of clusters, which have no scratch in the device's memory.
  static constexpr index_t shared_parts(index_t const* symbols) {
    Own const mine = own(symbols);
    index_t bytes = 0;
    for (int k = 0; k < facts.operands; ++k) bytes += facts.is_shared(k) ? mine.bytes(k, 1) : 0;
    return parts(symbols, SharedPlan::parts, bytes);
  }
  static constexpr index_t blocks(index_t const* symbols) {
    index_t const rows = Body::rows(symbols);
    if constexpr (facts.is_sequential()) {
      return 1;
    } else if constexpr (facts.fills()) {
      return parts(symbols);
    } else if constexpr (facts.is_map()) {
      index_t const n =
          (MapKernel<Code>::work(symbols) + MapKernel<Code>::threads - 1) / MapKernel<Code>::threads;
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
    return (facts.is_scratch(k) || blocks > 1) && in_memory(k) ? blocks : 0;
  }
  static constexpr index_t shared_copies(int k, index_t parts) {
    return facts.is_shared(k) && parts > 1 ? parts : 0;
  }
  // Bytes of as many copies of each operand as `copies(k)` says; and operands that lie there.
  template <class Copies>
  static constexpr index_t bytes_of(Own const& mine, Copies const& copies) {
    index_t n = 0;
    for (int k = 0; k < facts.operands; ++k) n += aligned(mine.bytes(k, copies(k)));
    return n;
  }
  template <class Copies>
  static std::byte* place(LoopArguments<Code>& arguments, void* workspace, Copies const& copies) {
    auto* at = static_cast<std::byte*>(workspace);
    Own const mine = own(arguments.symbols);
    for (int k = 0; k < facts.operands; ++k)
      if (index_t const bytes = mine.bytes(k, copies(k)); bytes != 0) {
        arguments.base[k] = at;
        at += aligned(bytes);
      }
    return at;
  }

  // Blocks share a single row that is long.
  using Whole = WholeLoop<Code>;
  static constexpr index_t whole_parts([[maybe_unused]] index_t const* symbols) {
    if constexpr (Whole::pays()) return Whole::parts(symbols);
    else return 1;
  }
  static constexpr index_t whole_copies(int k, index_t parts) {
    return facts.is_shared(k) ? parts : facts.is_scratch(k) ? 1 : 0;
  }

 public:
  /// Bytes that it needs besides the operands.
  static constexpr index_t workspace(index_t const* symbols) {
    Own const mine = own(symbols);
    if (index_t const shares = whole_parts(symbols); shares > 1)
      return bytes_of(mine, [&](int k) { return whole_copies(k, shares); }) + Whole::partial_bytes(shares);
    index_t n = 0;
    if constexpr (!facts.is_sequential())
      n = bytes_of(mine, [&](int k) { return copies_of(k, blocks(symbols)); });
    if constexpr (sharers > 1) {
      index_t const of_clusters =
          bytes_of(mine, [&](int k) { return shared_copies(k, shared_parts(symbols)); });
      n = of_clusters > n ? of_clusters : n;
    }
    return n;
  }

  /// run - starts it on `stream`; returns what the runtime says.
  static cudaError_t run(void* const* base, void* workspace, index_t const* symbols,
                         [[maybe_unused]] Device device, cudaStream_t stream) {
    LoopArguments<Code> arguments;
    for (int k = 0; k < facts.operands; ++k) arguments.base[k] = base[k];
    if (symbols != nullptr)
      for (int i = 0; i < max_symbols; ++i) arguments.symbols[i] = symbols[i];
    if constexpr (Whole::pays())
      if (index_t const shares = whole_parts(symbols); shares > 1)
        return run_whole(arguments, base, workspace, shares, stream);
    if constexpr (sharers > 1)
      if (index_t const at_once = clusters_at_once<StagedKernel<Code, sharers>, LoopArguments<Code>>(device);
          at_once > 0) {
        index_t const n = facts.fills() ? shared_parts(symbols) : at_once;
        place(arguments, workspace, [&](int k) { return shared_copies(k, n); });
        return run_staged<sharers>(arguments, base, n, stream);
      }
    index_t const n = blocks(symbols);
    if constexpr (facts.is_sequential()) {
      return start<SequentialKernel<Code>>(arguments, n, stream);
    } else {
      place(arguments, workspace, [&](int k) { return copies_of(k, n); });
      if constexpr (Plan::pays)
        if (index_t const at_once = blocks_at_once<StagedKernel<Code>, LoopArguments<Code>>(device);
            at_once > 0)
          return run_staged<1>(arguments, base, facts.fills() ? n : at_once, stream);
      if constexpr (facts.fills()) return run_parts(arguments, base, n, stream);
      else if constexpr (facts.is_map()) return start<MapKernel<Code>>(arguments, n, stream);
      else return start<RowsKernel<Code>>(arguments, n, stream);
    }
  }

 private:
  static cudaError_t run_parts(LoopArguments<Code> const& arguments, void* const* base, index_t parts,
                               cudaStream_t stream) {
    cudaError_t const said = start<PartsKernel<Code>>(arguments, parts, stream);
    return parts == 1 || said != cudaSuccess ? said : combine(arguments, base, parts, stream);
  }
  // In ranges of rows; what rows add to is to be filled where there are no rows, too.
  template <int Blocks>
  static cudaError_t run_staged(LoopArguments<Code> const& arguments, void* const* base, index_t parts,
                                cudaStream_t stream) {
    using Kernel = StagedKernel<Code, Blocks>;
    index_t const rows = Body::rows(arguments.symbols), n = facts.fills() || parts < rows ? parts : rows;
    cudaError_t said = cudaSuccess;
    if constexpr (Blocks > 1) said = start_clusters<Kernel>(arguments, n, stream);
    else said = start<Kernel>(arguments, n, stream);
    return !facts.fills() || parts == 1 || said != cudaSuccess ? said
                                                               : combine(arguments, base, parts, stream);
  }
  static cudaError_t run_whole(LoopArguments<Code> arguments, void* const* base, void* workspace,
                               index_t parts, cudaStream_t stream) {
    std::byte* const at = place(arguments, workspace, [&](int k) { return whole_copies(k, parts); });
    typename Whole::Arguments const x{arguments, reinterpret_cast<kernels::detail::Cell*>(at), parts};
    cudaError_t const said = Whole::run(x, stream);
    return said != cudaSuccess ? said : combine(arguments, base, parts, stream);
  }
  // What rows have added to, in copies, to where it belongs.
  static cudaError_t combine(LoopArguments<Code> const& arguments, void* const* base, index_t parts,
                             cudaStream_t stream) {
    cudaError_t said = cudaSuccess;
    detail::for_shared<Code>([&](auto k) {
      if (said != cudaSuccess) return;
      constexpr int K = decltype(k)::value;
      using Kernel = CombineKernel<facts.record(K, loop_code::combine), detail::memory_of<Code, K>>;
      index_t const n = Body::template own_size<K>(arguments.symbols),
                    full = (n + Kernel::each - 1) / Kernel::each;
      said = start<Kernel>(CombineArguments{arguments.base[K], base[K], n, parts},
                           full < most_blocks ? full : most_blocks, stream);
    });
    return said;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
