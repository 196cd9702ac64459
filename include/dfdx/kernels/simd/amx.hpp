// SPDX-License-Identifier: BSL-1.0
//
// amx - the matrix tiles of newer Intel processors (AMX): registers of 16 rows of 64 bytes. One instruction multiplies
// 16 rows of 16 words of A with 16 rows of 16 words of B, where a word is two numbers of bf16 or four bytes that follow
// each other along k, and adds to 16 rows of 16 sums of 32 bits.
//
// Linux gives a process tiles when it asks for them, once: amx_is_permitted() does. It cannot where the system or a
// virtual machine withholds them, or where a signal stack (sigaltstack) is too small for what they add to a frame, some
// 8 KiB; then products go the way of processors without.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18; Linux kernel,
// Documentation/arch/x86/xstate.rst.
#pragma once

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/simd/batch.hpp>

#if defined(DFDX_AMX)
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace dfdx::kernels::inline DFDX_TARGET {

/// amx_is_permitted - whether this process may use tiles; asks the system the first time.
inline bool amx_is_permitted() {
  // ARCH_REQ_XCOMP_PERM for the state component of tiles' data.
  static bool const is = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
  return is;
}

namespace detail {

/// Rows of a tile, and words of a row.
inline constexpr std::int64_t tile_side = 16, tile_bytes = 1024;

/// What words are made of: two numbers of bf16, or four bytes, those of A before those of B.
enum class TileWords { bf16, i8_i8, i8_u8, u8_i8, u8_u8 };
template <byte_number A, byte_number B>
inline constexpr TileWords tile_words_of =
    std::is_signed_v<A> ? (std::is_signed_v<B> ? TileWords::i8_i8 : TileWords::i8_u8)
                        : (std::is_signed_v<B> ? TileWords::u8_i8 : TileWords::u8_u8);

/// How tiles are set up: all whole. Constant memory, because g++ 12 believes that only its first bytes are read.
struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start = 0, unused[14] = {};
  std::uint16_t bytes_of_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileConfiguration whole_tiles{};

/// Tiles - those of this thread, as long as it lives: 70 ns.
class Tiles {
 public:
  Tiles() { _tile_loadconfig(&whole_tiles); }
  Tiles(Tiles const&) = delete;
  Tiles& operator=(Tiles const&) = delete;
  ~Tiles() { _tile_release(); }
};

// Numbers of tiles are part of an instruction: intrinsics want them as literals. Sums are in 0 to 3, rows of A in 4 and
// 5, of B in 6 and 7.
#define DFDX_TILE_PRODUCT(sum, a, b)                                     \
  if constexpr (Words == TileWords::bf16) _tile_dpbf16ps(sum, a, b);     \
  else if constexpr (Words == TileWords::i8_i8) _tile_dpbssd(sum, a, b); \
  else if constexpr (Words == TileWords::i8_u8) _tile_dpbsud(sum, a, b); \
  else if constexpr (Words == TileWords::u8_i8) _tile_dpbusd(sum, a, b); \
  else _tile_dpbuud(sum, a, b)

/// Bytes of a row of two tiles of sums.
inline constexpr std::int64_t sums_row = 128;

/// Tiles of A: rows so many bytes apart, so many bytes on the next along k, and those of the rows below.
struct TileRows {
  std::byte const* at;
  std::int64_t row, step, below;
};

/// R by C tiles of sums, of `steps` tiles along k, those of B as rows of C tiles' words. B stays in the first cache,
/// past which A is read: its rows are read again only after all others. The sums, in rows so many bytes apart, are
/// added to those that lie there if it `adds`. meanwhile() is called in every step: what it does costs little while
/// tiles are multiplied.
template <TileWords Words, int R, int C, class Meanwhile>
DFDX_INLINE void tile_products(std::int64_t steps, TileRows const a, std::byte const* b, std::byte* sums,
                               bool adds, Meanwhile& meanwhile, std::int64_t row = sums_row) {
  std::int64_t const below = tile_side * row;
  // What was packed has been stored; compilers do not know that tiles read it.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (adds) {
    _tile_loadd(0, sums, row);
    if constexpr (C == 2) _tile_loadd(1, sums + 64, row);
    if constexpr (R == 2) _tile_loadd(2, sums + below, row);
    if constexpr (R == 2 && C == 2) _tile_loadd(3, sums + below + 64, row);
  } else {
    _tile_zero(0);
    if constexpr (C == 2) _tile_zero(1);
    if constexpr (R == 2) _tile_zero(2);
    if constexpr (R == 2 && C == 2) _tile_zero(3);
  }
  std::byte const* rows = a.at;
  for (std::int64_t s = 0; s < steps; ++s, rows += a.step, b += C * tile_bytes) {
    _tile_loadd(6, b, C * 64);
    if constexpr (C == 2) _tile_loadd(7, b + 64, C * 64);
    _tile_stream_loadd(4, rows, a.row);
    DFDX_TILE_PRODUCT(0, 4, 6);
    if constexpr (C == 2) {
      DFDX_TILE_PRODUCT(1, 4, 7);
    }
    if constexpr (R == 2) {
      _tile_stream_loadd(5, rows + a.below, a.row);
      DFDX_TILE_PRODUCT(2, 5, 6);
      if constexpr (C == 2) {
        DFDX_TILE_PRODUCT(3, 5, 7);
      }
    }
    meanwhile();
  }
  _tile_stored(0, sums, row);
  if constexpr (C == 2) _tile_stored(1, sums + 64, row);
  if constexpr (R == 2) _tile_stored(2, sums + below, row);
  if constexpr (R == 2 && C == 2) _tile_stored(3, sums + below + 64, row);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

#undef DFDX_TILE_PRODUCT

}  // namespace detail

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_AMX
