// SPDX-License-Identifier: BSL-1.0
// Rows that phases read again and again: a block brings them into memory of its own, the next while it works on one,
// so that each is read from the device's memory once and its threads never wait for it. What rows add to lies there
// too. Where a block has no room for all that, or a row's extents are not known, kernels/cuda/loop.hpp has the kernels
// that read from where the operands lie.
#pragma once

#include <array>
#include <atomic>

#include <dfdx/kernels/cuda/loop_memory.hpp>
#include <dfdx/kernels/cuda/runtime.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// StagedPlan - what of a loop's rows a block keeps, and where: stages of the rows that are read, scratch, and what
/// rows add to.
template <class Code>
class StagedPlan {
  static constexpr LoopFacts facts{Code::value};

 public:
  /// Of 227 KiB that a block of an H100 can have; some is left to what kernels name.
  static constexpr index_t room = index_t{226} << 10;
  static constexpr index_t row_size = detail::row_elements<Code>;
  static constexpr index_t item(int k) { return detail::item_bytes<Code>(k); }
  /// is_staged - operand k is read alone, element by element, and its rows differ and lie in one piece each.
  static constexpr bool is_staged(int k) {
    if (facts.is_shared(k) || facts.is_scratch(k)) return false;
    bool reads = false, varies = false;
    for (int i = 0; i < facts.instructions; ++i) {
      index_t const what = facts.field(i, loop_code::code);
      bool const touches = what == loop_code::load || what == loop_code::store ||
                           what == loop_code::accumulate || what == loop_code::iota ||
                           what == loop_code::carry;
      if (!touches || facts.field(i, loop_code::a) != k) continue;
      if (what != loop_code::load || facts.field(i, loop_code::level) != loop_code::element_level)
        return false;
      reads = true;
    }
    index_t step = 1;
    for (int d = facts.dims; d-- > facts.split;) {
      if (facts.extent_code(d) != 1 && facts.stride_code(k, d) != step) return false;
      step *= facts.extent_code(d);
    }
    for (int d = 0; d < facts.split; ++d) varies = varies || facts.stride_code(k, d) != 0;
    return reads && varies;
  }
  /// own_size - elements of operand k that a block has of its own, -1 if that is not known.
  static constexpr index_t own_size(int k) {
    if (facts.is_scratch(k)) return row_size;
    if (!facts.is_shared(k)) return 0;
    index_t const n = facts.record(k, loop_code::fill);
    return n < 0 ? -1 : n;
  }
  static constexpr index_t bytes_of(int k) { return detail::whole_words(own_size(k) * item(k)); }

  /// A row of each staged operand; what lies before operand k of a stage, and of what a block has of its own. A row
  /// begins as many bytes behind a word of 16 as it does in the device's memory.
  static constexpr index_t staged_before(int end) {
    index_t n = 0;
    for (int k = 0; k < end; ++k) n += is_staged(k) ? detail::whole_words(row_size * item(k)) + 16 : 0;
    return n;
  }
  static constexpr index_t own_before(int end) {
    index_t n = 0;
    for (int k = 0; k < end; ++k) n = n < 0 || own_size(k) < 0 ? -1 : n + bytes_of(k);
    return n;
  }
  static constexpr index_t stage_bytes = row_size < 0 ? 0 : staged_before(facts.operands);
  static constexpr index_t own_bytes = row_size < 0 ? -1 : own_before(facts.operands);
  static constexpr int stages = [] {
    if (own_bytes < 0 || facts.split == 0 || facts.is_sequential() || facts.is_map()) return 0;
    if (stage_bytes < 2048) return 0;
    return own_bytes + 2 * stage_bytes <= room ? 2 : own_bytes + stage_bytes <= room ? 1 : 0;
  }();
  static constexpr bool pays = stages > 0;
  static constexpr int bytes = static_cast<int>(pays ? own_bytes + stages * stage_bytes : 0);
  /// Threads: enough to keep a multiprocessor busy, with as many registers as the loop may need.
  static constexpr int threads = [] {
    int const most = bytes > 76 << 10 ? bytes > 113 << 10 && facts.instructions <= 28 ? 1024 : 512 : 256;
    index_t const n = row_size / detail::row_pack<Code>();
    return n >= most ? most : detail::row_threads<Code>();
  }();
  /// Blocks among which rows are divided if they add to what they share; the same for each device, as results have to
  /// be. (Two for each multiprocessor of an H100, or four.)
  static constexpr index_t parts = bytes > 113 << 10 ? 264 : 528;
};

/// StagedKernel - blocks that have a range of rows each, so that one follows the other in memory too.
template <class Code>
struct StagedKernel {
  using Plan = StagedPlan<Code>;
  static constexpr LoopFacts facts{Code::value};
  static constexpr int threads = Plan::threads, dynamic_bytes = Plan::bytes;
  using Body = Loop<Code, packed_width(threads, detail::row_pack<Code>())>;

  static DFDX_INLINE void run(LoopArguments<Code> const& given) {
    std::byte* const memory = dynamic_memory();
    LoopArguments<Code> here = given;
    auto const own = [&](auto k) {
      here.base[decltype(k)::value] = memory + Plan::own_before(decltype(k)::value);
    };
    detail::for_shared<Code>(own);
    detail::for_scratch<Code>(own);
    if constexpr (facts.fills()) detail::fill_shared<Body, threads>(here);
    std::byte* const stages = memory + Plan::own_bytes;
    index_t const n = Body::rows(here.symbols), begin = n * block() / blocks(),
                  end = n * (block() + 1) / blocks();
    if (Plan::stages == 2 && begin < end) bring(given, begin, stages);
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
        auto const* const from = static_cast<M const*>(given.base[K]) + at.at[K];
        here.base[K] = reinterpret_cast<M*>(stage + Plan::staged_before(K) + past_word(from)) - at.at[K];
      });
      Body::row(here.base, here.symbols, i, 0);
    }
    if constexpr (facts.fills()) {
      barrier();
      detail::for_shared<Code>([&](auto k) {
        constexpr int K = decltype(k)::value;
        using M = detail::memory_of<Code, K>;
        constexpr index_t size = Plan::own_size(K);
        auto const* const mine = static_cast<M const*>(here.base[K]);
        auto* const to = static_cast<M*>(given.base[K]) + block() * size;
        for (index_t e = thread(); e < size; e += threads) to[e] = mine[e];
      });
    }
  }

 private:
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
  // Row i of each staged operand: words of 16 bytes, of which the first may begin before the row, and what is left of
  // the last.
  static DFDX_INLINE void bring(LoopArguments<Code> const& given, index_t i, std::byte* stage) {
    auto const at = Body::offsets(given.base, given.symbols, i);
    for_staged([&](auto k) {
      constexpr int K = decltype(k)::value;
      using M = detail::memory_of<Code, K>;
      constexpr int bytes = static_cast<int>(Plan::row_size * Plan::item(K)), item = Plan::item(K);
      auto const* const row = static_cast<M const*>(given.base[K]) + at.at[K];
      int const end = past_word(row) + bytes;
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
