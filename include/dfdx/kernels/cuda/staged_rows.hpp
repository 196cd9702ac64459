// SPDX-License-Identifier: BSL-1.0
// Rows that phases read again and again: a block brings them into memory of its own, the next while it works on one,
// so that each is read from the device's memory once and its threads never wait for it. What rows add to lies there
// too. Where a block has no room for two rows, those of a cluster (kernels/cuda/clusters.hpp) have a part of each.
// Where they have none either, or a row's extents are not known, kernels/cuda/loop.hpp has the kernels that read from
// where the operands lie.
#pragma once

#include <array>
#include <atomic>

#include <dfdx/kernels/cuda/clusters.hpp>
#include <dfdx/kernels/cuda/loop_memory.hpp>
#include <dfdx/kernels/cuda/runtime.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// StagedPlan - what of a loop's rows a block keeps, and where: stages of the rows that are read, scratch, and what
/// rows add to; or, if Blocks share each row, of its part of them.
template <class Code, int Blocks = 1>
class StagedPlan {
  static constexpr LoopFacts facts{Code::value};
  static constexpr int pack = detail::row_pack<Code>();

 public:
  /// Of 227 KiB that a block of an H100 can have; some is left to what kernels name.
  static constexpr index_t room = index_t{226} << 10;
  static constexpr index_t row_size = detail::row_elements<Code>;
  static constexpr index_t item(int k) { return detail::item_bytes<Code>(k); }

 private:
  // Threads of a block that has a multiprocessor alone; one of a cluster does.
  static constexpr int alone_threads = facts.instructions <= 28 ? 1024 : 512;
  // A row is divided along the first dim that phases walk, in units: in lanes, if it is the only one.
  static constexpr bool is_known = row_size >= 0 && facts.dims > facts.split;
  static constexpr index_t first_extent = is_known ? facts.extent_code(facts.split) : 0;
  static constexpr index_t unit = facts.dims == facts.split + 1 ? index_t{alone_threads} * pack : 1;
  static constexpr index_t units = (first_extent + unit - 1) / unit;

  // Whether the elements that a row has of operand k follow each other; whether rows have others each.
  static constexpr bool lies_in_order(int k) {
    index_t step = 1;
    for (int d = facts.dims; d-- > facts.split;) {
      if (facts.extent_code(d) != 1 && facts.stride_code(k, d) != step) return false;
      step = extent::mul(step, facts.extent_code(d));
    }
    return true;
  }
  static constexpr bool varies(int k) {
    for (int d = 0; d < facts.split; ++d)
      if (facts.stride_code(k, d) != 0) return true;
    return false;
  }
  // Whether instruction i takes operand k for what it is, not for where it is.
  static constexpr bool touches(int i, int k) {
    index_t const what = facts.field(i, loop_code::code);
    return facts.field(i, loop_code::a) == k &&
           (what == loop_code::load || what == loop_code::store || what == loop_code::accumulate ||
            what == loop_code::iota || what == loop_code::carry);
  }
  static constexpr bool of_elements(int i) {
    return facts.field(i, loop_code::level) == loop_code::element_level;
  }

 public:
  /// part - which iterations of the first dim that phases walk are a block's; elements - of a row.
  static constexpr Part part(int rank) {
    if constexpr (Blocks == 1) return {0, first_extent};
    else return part_of(first_extent, rank, Blocks, unit);
  }
  static constexpr Part elements(int rank) {
    index_t const each = first_extent == 0 ? 0 : row_size / first_extent;
    Part const p = part(rank);
    return {p.begin * each, p.end * each};
  }
  /// The most elements that a block has of a row.
  static constexpr index_t part_size = [] {
    index_t most = 0;
    for (int r = 0; r < Blocks; ++r) {
      Part const p = elements(r);
      most = p.end - p.begin > most ? p.end - p.begin : most;
    }
    return most;
  }();
  /// is_staged - operand k is read alone, element by element, and its rows differ and lie in one piece each.
  static constexpr bool is_staged(int k) {
    if (facts.is_shared(k) || facts.is_scratch(k)) return false;
    bool reads = false;
    for (int i = 0; i < facts.instructions; ++i) {
      if (!touches(i, k)) continue;
      if (facts.field(i, loop_code::code) != loop_code::load || !of_elements(i)) return false;
      reads = true;
    }
    return reads && lies_in_order(k) && varies(k);
  }
  /// is_divided - a block has of operand k, which is its own, those elements that it has of a row.
  static constexpr bool is_divided(int k) {
    bool by_element = facts.is_scratch(k);
    for (int i = 0; i < facts.instructions; ++i)
      by_element = by_element || (facts.touches(i, loop_code::accumulate, k) && of_elements(i));
    return Blocks > 1 && by_element;
  }
  /// own_size - elements of operand k that a block has of its own, -1 if that is not known.
  static constexpr index_t own_size(int k) {
    if (facts.is_scratch(k)) return part_size;
    if (!facts.is_shared(k)) return 0;
    index_t const n = facts.record(k, loop_code::fill);
    return is_divided(k) ? part_size : n < 0 ? -1 : n;
  }
  static constexpr index_t bytes_of(int k) { return detail::whole_words(own_size(k) * item(k)); }

  /// A row of each staged operand; what lies before operand k of a stage, and of what a block has of its own. A row
  /// begins as many bytes behind a word of 16 as it does in the device's memory.
  static constexpr index_t staged_before(int end) {
    index_t n = 0;
    for (int k = 0; k < end; ++k) n += is_staged(k) ? detail::whole_words(part_size * item(k)) + 16 : 0;
    return n;
  }
  static constexpr index_t own_before(int end) {
    index_t n = 0;
    for (int k = 0; k < end; ++k) n = n < 0 || own_size(k) < 0 ? -1 : n + bytes_of(k);
    return n;
  }
  static constexpr index_t stage_bytes = row_size < 0 ? 0 : staged_before(facts.operands);
  static constexpr index_t own_bytes = row_size < 0 ? -1 : own_before(facts.operands);
  /// can_divide - blocks can have parts of a row: what is a row's lies at one place for all of them, and what is a
  /// block's own, element by element, is laid out like the row.
  static constexpr bool can_divide = [] {
    bool r = units >= Blocks && facts.phases > 1;
    for (int k = 0; k < facts.operands; ++k) {
      bool const is_row = lies_in_order(k) && !varies(k) &&
                          (facts.is_scratch(k) || facts.record(k, loop_code::fill) == row_size);
      r = r && (is_row || !is_divided(k));
      for (int i = 0; i < facts.instructions; ++i)
        r = r && (!touches(i, k) || of_elements(i) || facts.stride_code(k, facts.split) == 0);
    }
    return r || Blocks == 1;
  }();
  static constexpr int stages = [] {
    if (own_bytes < 0 || facts.split == 0 || facts.is_sequential() || facts.is_map()) return 0;
    if (stage_bytes < 2048 || !can_divide) return 0;
    return own_bytes + 2 * stage_bytes <= room ? 2 : own_bytes + stage_bytes <= room ? 1 : 0;
  }();
  static constexpr bool pays = stages > 0;
  static constexpr int bytes = static_cast<int>(pays ? own_bytes + stages * stage_bytes : 0);
  /// is_alone - a multiprocessor has memory for one block.
  static constexpr bool is_alone = Blocks > 1 || bytes > 113 << 10;
  /// Threads: enough to keep a multiprocessor busy, with as many registers as the loop may need.
  static constexpr int threads = [] {
    int const most = is_alone ? alone_threads : bytes > 76 << 10 ? 512 : 256;
    return facts.lane_extent() / pack >= most ? most : detail::row_threads<Code>();
  }();
  /// Blocks, or clusters, among which rows are divided if they add to what they share; the same for each device, as
  /// results have to be. (Two blocks for each multiprocessor of an H100, or four; of clusters as many as make eight, as
  /// not each device runs them everywhere at once.)
  static constexpr index_t parts = Blocks > 1 ? 1024 / Blocks : is_alone ? 264 : 528;
};

/// blocks_of_row - how many blocks are to have a part of each row: as few as have room for two rows, or eight if they
/// have room for one; 1 if a block has room for two itself, or none have.
template <class Code>
inline constexpr int blocks_of_row = [] {
  using Alone = StagedPlan<Code>;
  if constexpr (Alone::row_size < 0 || LoopFacts(Code::value).phases == 1 ||
                Alone::own_bytes + 2 * Alone::stage_bytes <= Alone::room)
    return 1;
  else
    return StagedPlan<Code, 2>::stages == 2   ? 2
           : StagedPlan<Code, 4>::stages == 2 ? 4
           : StagedPlan<Code, 8>::stages > 0  ? 8
                                              : 1;
}();

/// StagedKernel - blocks, or clusters of them, that have a range of rows each, so that one follows the other in memory
/// too.
template <class Code, int Blocks = 1>
struct StagedKernel {
  using Plan = StagedPlan<Code, Blocks>;
  static constexpr LoopFacts facts{Code::value};
  static constexpr int blocks_of_cluster = Blocks, threads = Plan::threads, dynamic_bytes = Plan::bytes;
  static constexpr int least_blocks = Plan::is_alone ? 1 : 0;

  static DFDX_INLINE void run(LoopArguments<Code> const& given) {
    if constexpr (Blocks == 1 || has_clusters) run_rows(given);
  }

 private:
  static constexpr int pack = detail::row_pack<Code>();
  using Body = std::conditional_t<Blocks == 1, Loop<Code, packed_width(threads, pack)>,
                                  Loop<Code, clustered_width(Blocks, threads, pack), -1, -1, facts.split>>;

  static DFDX_INLINE int rank() { return static_cast<int>(block() % Blocks); }
  // What of a row this block has; and of operand k, which rows add to: single numbers are the first block's.
  static DFDX_INLINE Part elements() { return Plan::elements(rank()); }
  static DFDX_INLINE Part added_to(int k) {
    if (Plan::is_divided(k)) return elements();
    return {0, rank() == 0 ? Plan::own_size(k) : 0};
  }

  static DFDX_INLINE void run_rows(LoopArguments<Code> const& given) {
    std::byte* const memory = dynamic_memory();
    LoopArguments<Code> here = given;
    auto const own = [&](auto k) {
      constexpr int K = decltype(k)::value;
      index_t const first = Plan::is_divided(K) ? elements().begin : 0;
      here.base[K] = memory + Plan::own_before(K) - first * Plan::item(K);
    };
    detail::for_shared<Code>(own);
    detail::for_scratch<Code>(own);
    if constexpr (facts.fills())
      detail::fill_shared<threads>(here, [](auto k) { return added_to(decltype(k)::value); });
    std::byte* const stages = memory + Plan::own_bytes;
    index_t const n = Body::rows(here.symbols), part = block() / Blocks, parts = blocks() / Blocks,
                  begin = n * part / parts, end = n * (part + 1) / parts;
    if (Plan::stages == 2 && begin < end) bring(given, begin, stages);
    if constexpr (Blocks > 1) ClusterTurn::begin();
    for (index_t i = begin; i < end; ++i) {
      std::byte* const stage = stages + (Plan::stages == 2 && (i - begin) % 2 != 0 ? Plan::stage_bytes : 0);
      if (Plan::stages == 1) {
        barrier();  // until all have used the row before
        bring(given, i, stage);
      }
      copies_made();
      barrier();
      if (Plan::stages == 2 && i + 1 < end)
        bring(given, i + 1, stages + ((i - begin) % 2 != 0 ? 0 : Plan::stage_bytes));
      auto const at = Body::offsets(given.base, here.symbols, i);
      for_staged([&](auto k) {
        constexpr int K = decltype(k)::value;
        using M = detail::memory_of<Code, K>;
        auto const* const from = static_cast<M const*>(given.base[K]) + at.at[K] + elements().begin;
        here.base[K] = reinterpret_cast<M*>(stage + Plan::staged_before(K) + past_word(from)) - at.at[K] -
                       elements().begin;
      });
      if constexpr (Blocks == 1) Body::row(here.base, here.symbols, i, 0);
      else Body::row_part(here.base, here.symbols, i, Plan::part(rank()).begin, Plan::part(rank()).end);
    }
    if constexpr (facts.fills()) {
      barrier();
      detail::for_shared<Code>([&](auto k) {
        constexpr int K = decltype(k)::value;
        using M = detail::memory_of<Code, K>;
        auto const* const mine = static_cast<M const*>(here.base[K]);
        auto* const to = static_cast<M*>(given.base[K]) + part * Body::template own_size<K>(here.symbols);
        Part const added = added_to(K);
        for (index_t e = added.begin + thread(); e < added.end; e += threads) to[e] = mine[e];
      });
    }
  }

  template <class F>
  static DFDX_INLINE void for_staged(F const& f) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto const one = [&](auto k) {
        if constexpr (Plan::is_staged(decltype(k)::value)) f(k);
      };
      (one(std::integral_constant<int, static_cast<int>(K)>{}), ...);
    }(std::make_index_sequence<static_cast<std::size_t>(facts.operands)>{});
  }
  // How many bytes of a word of 16 lie before p.
  static DFDX_INLINE int past_word(void const* p) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(p) % 16);
  }
  // What this block has of row i of each staged operand: words of 16 bytes, of which the first may begin before it, and
  // what is left of the last.
  static DFDX_INLINE void bring(LoopArguments<Code> const& given, index_t i, std::byte* stage) {
    auto const at = Body::offsets(given.base, given.symbols, i);
    for_staged([&](auto k) {
      constexpr int K = decltype(k)::value, item = static_cast<int>(Plan::item(K));
      using M = detail::memory_of<Code, K>;
      Part const mine = elements();
      auto const* const row = static_cast<M const*>(given.base[K]) + at.at[K] + mine.begin;
      int const end = past_word(row) + static_cast<int>(mine.end - mine.begin) * item;
      auto const* const from = reinterpret_cast<std::byte const*>(row) - past_word(row);
      std::byte* const to = stage + Plan::staged_before(K);
      for (int b = thread() * 16; b + 16 <= end; b += threads * 16) copy_later<16>(to + b, from + b);
      if (int const b = end / 16 * 16 + thread() * 4; b + 4 <= end) copy_later<4>(to + b, from + b);
      if constexpr (item < 4)
        if (int const b = end / 4 * 4 + thread() * item; b < end)
          *reinterpret_cast<M*>(to + b) = *reinterpret_cast<M const*>(from + b);
    });
  }
};

/// blocks_at_once - how many blocks of a kernel with dynamic memory a device runs at once; 0 if it has too little
/// memory for one.
template <class K, class Arguments>
index_t blocks_at_once(Device device) {
  static std::array<std::atomic<int>, 64> known{};  // and one more
  auto& n = known[static_cast<std::size_t>(device.index)];
  if (n == 0) {
    cuda_runtime::Current const current(device);
    auto const kernel = reinterpret_cast<void const*>(entry_of<K, Arguments>());
    int of_each = 0;
    cudaError_t said =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, K::dynamic_bytes);
    if (said == cudaSuccess)
      said = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, K::threads, K::dynamic_bytes);
    if (said != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      if (said != cudaErrorInvalidValue) return 0;  // of earlier work: says nothing of the kernel
      of_each = 0;
    }
    n = 1 + of_each * cuda_runtime::multiprocessors(device);
  }
  return n - 1;
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
