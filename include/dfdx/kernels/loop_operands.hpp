// SPDX-License-Identifier: BSL-1.0
// How lanes of a fused loop read and write each of its operands, as far as the loop's description tells: side by side,
// by whole vectors though elements lie apart, in tiles that lie across the rows, past the caches.
#pragma once

#include <type_traits>
#include <utility>

#include <dfdx/kernels/loop_facts.hpp>
#include <dfdx/kernels/loop_values.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// LoopOperands - of one description, in lanes of a width. Stored is the operand that is handed over in registers
/// (kernels/loop.hpp), or -1.
template <class Code, index_t Width, int Stored>
class LoopOperands {
 protected:
  static constexpr LoopFacts facts{Code::value};
  static constexpr int dims = facts.dims, operands = facts.operands, instructions = facts.instructions;
  using L = Lanes<Width>;

  template <int K>
  using memory_t = element_t<static_cast<DType>(facts.record(K, loop_code::dtype))>;
  // A variable, since a compiler has less work with it than with a function.
  template <int K>
  static constexpr index_t lane_stride = facts.stride_code(K, dims - 1);

  template <int D>
  static DFDX_INLINE constexpr index_t extent_of(index_t const* symbols) {
    constexpr index_t e = facts.extent_code(D);
    return detail::resolved(e, symbols);
  }

  struct State {
    void* const* base;
    index_t const* symbols;
    index_t at[operands + 1] = {};
    detail::Cell cells[instructions + 1] = {};
    index_t part = 0;
    bool streams = false;
    // Where a tile of each operand that lies across the rows begins, transposed, and which of its rows is due.
    std::byte const* tiles = nullptr;
    index_t tile_row = 0;
  };

  // Whether operand k lies across the rows, of elements that lanes are made of: it is read in square tiles.
  template <int K>
  static constexpr bool in_tiles() {
    using M = memory_t<K>;
    return facts.crosses(K) && detail::known_size<L> > 1 && std::is_same_v<M, compute_t<M>> &&
           sizeof(M) == Width;
  }
  template <std::size_t... K>
  static constexpr int count_tiles(int end, std::index_sequence<K...>) {
    return (0 + ... + (static_cast<int>(K) < end && in_tiles<static_cast<int>(K)>()));
  }
  static constexpr int tiles_before(int end) {
    return count_tiles(end, std::make_index_sequence<static_cast<std::size_t>(operands)>{});
  }
  static constexpr index_t tile_bytes = detail::known_size<L> * detail::known_size<L> * Width;

  // What is so large that it is stored past the caches, if the loop's state says so.
  template <int K>
  static constexpr bool may_stream() {
    if constexpr (K != Stored && facts.written_once(K) >= past_caches &&
                  requires { L::template can_stream<memory_t<K>>; })
      return L::template can_stream<memory_t<K>>;
    else return false;
  }
  // What is asked for before it is written.
  template <int K>
  static constexpr bool asks_ahead() {
    return K != Stored && facts.is_only_result(K) && requires(memory_t<K>* p) { L::ask_ahead(p); };
  }
  // What is read, or written, by whole vectors though its elements lie apart.
  template <int K>
  static constexpr bool loads_every() {
    if constexpr (requires { L::template loads_every<memory_t<K>>(0); })
      return L::template loads_every<memory_t<K>>(lane_stride<K>);
    else return false;
  }
  template <int K>
  static constexpr bool stores_every() {
    if constexpr (requires { L::template stores_every<memory_t<K>>(0); })
      return L::template stores_every<memory_t<K>>(lane_stride<K>);
    else return false;
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
