// SPDX-License-Identifier: BSL-1.0
// What the kernels of fused loops are called with on a device, how many threads run a row, and what memory blocks have
// of their own.
#pragma once

#include <dfdx/core/parallel.hpp>
#include <dfdx/kernels/cuda/packs.hpp>
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

/// row_pack - elements that each thread has of a row: several if all rows can be divided so, and each warp has some.
template <class Code>
constexpr int row_pack() {
  constexpr index_t n = LoopFacts(Code::value).lane_extent();
  int pack = pack_size<Code>();
  while (pack > 1 && (n < 0 || n % pack != 0 || n < pack * 4 * warp_size)) pack /= 2;
  return pack;
}
/// row_threads - threads of a block for one row: as many warps as the dim that runs in lanes keeps busy, 8 at most.
template <class Code>
constexpr int row_threads() {
  constexpr int most = 8 * warp_size;
  constexpr index_t e = LoopFacts(Code::value).lane_extent(), n = e < 0 ? e : e / row_pack<Code>();
  if (n < 0 || n >= most) return most;
  return n <= warp_size ? warp_size : static_cast<int>((n + warp_size - 1) / warp_size) * warp_size;
}
template <class Code>
using RowBody = Loop<Code, packed_width(row_threads<Code>(), row_pack<Code>())>;

template <class Code, bool (LoopFacts::*Is)(int) const, class F, std::size_t... K>
DFDX_INLINE constexpr void for_those(F f, std::index_sequence<K...>) {
  auto const one = [&](auto k) {
    if constexpr ((LoopFacts(Code::value).*Is)(decltype(k)::value)) f(k);
  };
  (one(std::integral_constant<int, static_cast<int>(K)>{}), ...);
}
/// for_shared, for_scratch - f(k) for each operand k that rows add to, or keep values in between phases.
template <class Code, class F>
DFDX_INLINE constexpr void for_shared(F f) {
  for_those<Code, &LoopFacts::is_shared>(
      f, std::make_index_sequence<static_cast<std::size_t>(LoopFacts(Code::value).operands)>{});
}
template <class Code, class F>
DFDX_INLINE constexpr void for_scratch(F f) {
  for_those<Code, &LoopFacts::is_scratch>(
      f, std::make_index_sequence<static_cast<std::size_t>(LoopFacts(Code::value).operands)>{});
}
template <class Code, int K>
using memory_of = element_t<static_cast<DType>(LoopFacts(Code::value).record(K, loop_code::dtype))>;

/// fill_shared - what rows add to begins as the identity of how they do, in the copy of this block: elements `mine(k)`
/// of operand k, or all.
template <int Threads, class Code, class Mine>
DFDX_INLINE void fill_shared(LoopArguments<Code> const& here, Mine const& mine) {
  for_shared<Code>([&](auto k) {
    constexpr int K = decltype(k)::value;
    using M = memory_of<Code, K>;
    constexpr index_t how = LoopFacts(Code::value).record(K, loop_code::combine);
    auto* const to = static_cast<M*>(here.base[K]);
    Part const part = mine(k);
    for (index_t i = part.begin + thread(); i < part.end; i += Threads)
      to[i] = static_cast<M>(Combination<how>::template identity<compute_t<M>>());
  });
  barrier();
}
template <class Body, int Threads, class Code>
DFDX_INLINE void fill_shared(LoopArguments<Code> const& here) {
  fill_shared<Threads>(
      here, [&](auto k) { return Part{0, Body::template own_size<decltype(k)::value>(here.symbols)}; });
}

/// row_elements - of a row, over all dims that phases walk; -1 if that is not known.
template <class Code>
inline constexpr index_t row_elements = [] {
  constexpr LoopFacts facts(Code::value);
  index_t n = 1;
  for (int d = facts.split; d < facts.dims; ++d)
    n = n < 0 || facts.extent_code(d) < 0 ? -1 : n * facts.extent_code(d);
  return n;
}();
/// item_bytes - of one element of operand k.
template <class Code>
constexpr index_t item_bytes(int k) {
  return static_cast<index_t>(
      size_of(static_cast<DType>(LoopFacts(Code::value).record(k, loop_code::dtype))));
}
/// whole_words - so many bytes and what is missing to 16.
constexpr index_t whole_words(index_t bytes) { return (bytes + 15) / 16 * 16; }

/// OwnMemory - what a block has of its own: copies of what rows add to, in the device's memory, and rows of scratch, in
/// shared memory if all of them are known to fit there.
template <class Code>
struct OwnMemory {
  static constexpr LoopFacts facts{Code::value};
  using Body = RowBody<Code>;
  static constexpr index_t most_bytes = index_t{40} << 10;
  /// Bytes of scratch before operand `end`, each operand's 16 bytes from the next; -1 if a size is not known.
  static constexpr index_t before(int end) {
    if (row_elements<Code> < 0) return -1;
    index_t bytes = 0;
    for (int k = 0; k < end; ++k)
      if (facts.is_scratch(k)) bytes += whole_words(row_elements<Code> * item_bytes<Code>(k));
    return bytes;
  }
  static constexpr index_t bytes = before(facts.operands);
  static constexpr bool in_shared_memory = bytes > 0 && bytes <= most_bytes;

  /// here - the arguments with the addresses of this block's own memory.
  static DFDX_INLINE LoopArguments<Code> here(LoopArguments<Code> const& given) {
    LoopArguments<Code> r = given;
    auto const own = [&](auto k) {
      constexpr int K = decltype(k)::value;
      r.base[K] =
          static_cast<memory_of<Code, K>*>(r.base[K]) + block() * Body::template own_size<K>(r.symbols);
    };
    for_shared<Code>(own);
    if constexpr (in_shared_memory) {
      auto* const room =
          reinterpret_cast<std::byte*>(shared<OwnMemory, uint4, static_cast<int>(bytes / sizeof(uint4))>());
      for_scratch<Code>([&](auto k) { r.base[decltype(k)::value] = room + before(decltype(k)::value); });
    } else {
      for_scratch<Code>(own);
    }
    return r;
  }
};

}  // namespace detail

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
