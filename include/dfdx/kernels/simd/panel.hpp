// SPDX-License-Identifier: BSL-1.0
//
// panel - products of many rows with a matrix whose rows are numbers or blocks of GGUF files: a prompt, or several
// texts at once. Rows of the matrix are packed side by side, a panel of them at a time, so that lanes lie along them:
// sums need not be added up across lanes, and blocks are unpacked once for all rows of the other factor.
//
// Not part of <dfdx/dfdx.hpp>.
#pragma once

#include <vector>

#include <dfdx/core/config.hpp>
#include <dfdx/kernels/simd/gemm_micro.hpp>
#include <dfdx/kernels/simd/quantized.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// From so many rows on, packing is cheaper than what it saves.
inline constexpr index_t panel_rows_from = 8;

namespace detail {

// Memory of a thread for what it packs.
template <class T>
T* packing_room(std::size_t n) {
  static DFDX_THREAD_LOCAL std::vector<T> room;
  if (room.size() < n) room.resize(n);
  return room.data();
}

inline constexpr int panel_lanes = 2, panel_width = panel_lanes * lane_size<float>;

// Lanes of a tile into rows of y, in the first part of a long row or added to what earlier parts have left there.
struct into_panel {
  static constexpr bool heavy = false;
  float* y;
  index_t y_row;
  int columns;
  bool more;
  DFDX_INLINE lane<float> finish(lane<float> sum, int, int) const { return sum; }
  DFDX_INLINE void store(lane<float> sum, int r, int c) const {
    constexpr int W = lane_size<float>;
    int const count = columns - c * W < W ? columns - c * W : W;
    if (count <= 0) return;
    float* const to = y + r * y_row + c * W;
    store_n(to, more ? sum + load_n(to, count) : sum, count);
  }
};

template <int R>
void float_rows(index_t m, index_t k, float const* x, index_t x_row, float const* packed, into_panel to) {
  for (; m >= R; m -= R, x += R * x_row, to.y += R * to.y_row)
    gemm_tile<float, R, panel_lanes, lane_size<float>, -1, 1, panel_width>(x, packed, k, to, x_row);
  if constexpr (R > 1)
    if (m > 0) float_rows<R / 2>(m, k, x, x_row, packed, to);
}

}  // namespace detail

/// panel_product - y[i, j] = x[i] . row(j) for m rows of x and n rows of k floats: `row(j, first, count, to)` gives an
/// address of so many numbers of row j, which may be `to`, with room for them.
///
/// Numerics  sums in the order of k, by parts of 1024: a sum depends neither on m nor on n
/// Threading any number of calls at once
template <class Row>
void panel_product(index_t m, index_t n, index_t k, float const* x, index_t x_row, Row const& row, float* y,
                   index_t y_row) {
  constexpr index_t most = 1024, P = detail::panel_width;
  constexpr int W = lane_size<float>;
  float* const packed = detail::packing_room<float>(static_cast<std::size_t>(most) * (P + W) + 16);
  float* const plain = packed + most * P;
  for (index_t j = 0; j < n; j += P)
    for (index_t p = 0; p < k; p += most) {
      index_t const depth = k - p < most ? k - p : most;
      for (index_t r = 0; r < P; r += W) {
        float const* rows[W];
        for (int i = 0; i < W; ++i) {
          index_t const which = j + r + i < n ? j + r + i : n - 1;
          rows[i] = row(which, p, depth, plain + i * most);
        }
        index_t c = 0;
        for (; c + W <= depth; c += W) {
          lane<float> v[W];
          DFDX_UNROLL for (int i = 0; i < W; ++i) v[i] = lane<float>::load_unaligned(rows[i] + c);
          detail::transpose_tile(v);
          DFDX_UNROLL for (int i = 0; i < W; ++i) v[i].store_unaligned(packed + (c + i) * P + r);
        }
        for (; c < depth; ++c)
          for (int i = 0; i < W; ++i) packed[c * P + r + i] = rows[i][c];
      }
      int const columns = static_cast<int>(n - j < P ? n - j : P);
      detail::float_rows<detail::tile_sums / detail::panel_lanes>(m, depth, x + p, x_row, packed,
                                                                  {y + j, y_row, columns, p > 0});
    }
}

#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__F16C__)
namespace detail {

inline constexpr bool has_quantized_panels = true;

// Panels of 32 rows: of each four numbers the bytes of 16 rows make a register, two of which make the panel. Blocks of
// 256 numbers are eight of 32, each with the block's scale times its own.
template <Quant F>
struct QuantizedPanel {
  static constexpr int rows = 32, steps = 8;
  static constexpr bool large = block_length(F) == 256;
  static constexpr bool low = F == Quant::q4_1 || F == Quant::q5_1 || F == Quant::q4_k || F == Quant::q5_k;
  /// Scales of 32 numbers, and how many blocks of 32 are one of the format.
  static constexpr int parts = F == Quant::q6_k ? 2 : 1, in_block = large ? 8 : 1;
  using Block = BlockProducts<F, 1, 1>;
  using X = Q8Block<q8_length(F)>;
  static constexpr int offset = F == Quant::q6_k ? 32 : Block::offset;

  __m512i* bytes;         // [blocks][steps][2]
  __m512 *scales, *lows;  // [blocks][parts][2], [blocks][2]

  static std::size_t registers(index_t blocks) {
    return static_cast<std::size_t>((blocks + 1) * (2 * steps + 2 * parts + 2 * low));
  }
  QuantizedPanel(__m512i* room, index_t blocks)
      : bytes(room),
        scales(reinterpret_cast<__m512*>(room + (blocks + 1) * 2 * steps)),
        lows(scales + (blocks + 1) * 2 * parts) {}

  static DFDX_INLINE __m256i unpacked(std::byte const* row, index_t b) {
    if constexpr (large)
      return Block::group(row + b / 8 * static_cast<index_t>(block_bytes(F)), static_cast<int>(b % 8));
    else return Block::unpacked(row + b * static_cast<index_t>(block_bytes(F)));
  }

  void pack(index_t blocks, std::byte const* w, std::size_t w_row, index_t count) {
    for (int half = 0; half < 2; ++half) {
      std::byte const* from[16];
      for (int r = 0; r < 16; ++r)
        from[r] = w + static_cast<std::size_t>(half * 16 + r < count ? half * 16 + r : count - 1) * w_row;
      for (index_t b = 0; b < blocks; b += 2) {
        lane<float> v[16];
        DFDX_UNROLL for (int r = 0; r < 16; ++r) {
          __m256i const first = unpacked(from[r], b);
          __m256i const second = b + 1 < blocks ? unpacked(from[r], b + 1) : first;
          v[r] =
              lane<float>(_mm512_castsi512_ps(_mm512_inserti64x4(_mm512_castsi256_si512(first), second, 1)));
        }
        transpose_tile(v);
        DFDX_UNROLL for (int s = 0; s < 16; ++s) bytes[(b * steps + s) * 2 + half] =
            _mm512_castps_si512(static_cast<__m512>(v[s]));
      }
      for (index_t b = 0; b < blocks; b += in_block) {
        if constexpr (large) large_scales(from, b, half);
        else small_scales(from, b, half);
      }
    }
  }
  void small_scales(std::byte const* const (&from)[16], index_t b, int half) {
    alignas(32) std::uint16_t scale[16], least[16];
    for (int r = 0; r < 16; ++r) {
      std::byte const* const p = from[r] + b * static_cast<index_t>(block_bytes(F));
      std::memcpy(scale + r, p, 2);
      if constexpr (low) std::memcpy(least + r, p + 2, 2);
    }
    auto const floats = [](std::uint16_t const* h) { return _mm512_cvtph_ps(load_256(h)); };
    scales[b * 2 + half] = floats(scale);
    if constexpr (low) lows[b * 2 + half] = floats(least);
  }
  void large_scales(std::byte const* const (&from)[16], index_t b, int half) {
    alignas(64) float scale[8 * parts][16], least[8][16];
    for (int r = 0; r < 16; ++r) {
      std::byte const* const p = from[r] + b / 8 * static_cast<index_t>(block_bytes(F));
      auto const half_at = [&](int at) {
        std::uint16_t bits;
        std::memcpy(&bits, p + at, 2);
        return _cvtsh_ss(bits);
      };
      float const d = half_at(F == Quant::q6_k ? 208 : 0);
      if constexpr (F == Quant::q6_k) {
        for (int g = 0; g < 16; ++g)
          scale[g][r] = d * static_cast<float>(std::to_integer<std::int8_t>(p[192 + g]));
      } else {
        float const dmin = half_at(2);
        std::uint8_t packed[12];
        std::memcpy(packed, p + 4, 12);
        for (int g = 0; g < 8; ++g) {
          scale[g][r] = d * static_cast<float>(dfdx::detail::k_scale(packed, g));
          least[g][r] = -(dmin * static_cast<float>(dfdx::detail::k_minimum(packed, g)));
        }
      }
    }
    for (int g = 0; g < 8 * parts; ++g) scales[(b * parts + g) * 2 + half] = _mm512_load_ps(scale[g]);
    if constexpr (low)
      for (int g = 0; g < 8; ++g) lows[(b + g) * 2 + half] = _mm512_load_ps(least[g]);
  }

  /// M rows of x.
  template <int M>
  void rows_of(index_t blocks, X const* x, float* y, index_t y_row, int count) const {
    __m512 sum[M][2];
    DFDX_UNROLL for (int m = 0; m < M; ++m) sum[m][0] = sum[m][1] = _mm512_setzero_ps();
    index_t const x_row = blocks / in_block;
    for (index_t b = 0; b < blocks; ++b) {
      int const at = static_cast<int>(b % in_block);
      X const* const xs = x + b / in_block;
      float total[M];
      if constexpr (low)
        for (int m = 0; m < M; ++m) {
          X const& xb = xs[m * x_row];
          total[m] = xb.scale * static_cast<float>(xb.sums[2 * at] + xb.sums[2 * at + 1]);
        }
      DFDX_UNROLL for (int part = 0; part < parts; ++part) {
        __m512i dot[M][2];
        DFDX_UNROLL for (int m = 0; m < M; ++m) {
          std::int16_t const* const sums = xs[m * x_row].sums + 2 * at;
          int const all = parts == 2 ? sums[part] : sums[0] + sums[1];
          dot[m][0] = dot[m][1] = low ? _mm512_setzero_si512() : _mm512_set1_epi32(-offset * all);
        }
        __m512i const* const w = bytes + b * 2 * steps;
        DFDX_UNROLL for (int s = part * steps / parts; s < (part + 1) * steps / parts; ++s) {
          __m512i const first = w[2 * s], second = w[2 * s + 1];
          DFDX_UNROLL for (int m = 0; m < M; ++m) {
            int four;
            std::memcpy(&four, xs[m * x_row].q + 32 * at + 4 * s, 4);
            __m512i const v = _mm512_set1_epi32(four);
            dot[m][0] = _mm512_dpbusd_epi32(dot[m][0], first, v);
            dot[m][1] = _mm512_dpbusd_epi32(dot[m][1], second, v);
          }
        }
        DFDX_UNROLL for (int h = 0; h < 2; ++h) {
          __m512 const scale = scales[(b * parts + part) * 2 + h];
          DFDX_UNROLL for (int m = 0; m < M; ++m) {
            __m512 const by = _mm512_mul_ps(scale, _mm512_set1_ps(xs[m * x_row].scale));
            sum[m][h] = _mm512_fmadd_ps(by, _mm512_cvtepi32_ps(dot[m][h]), sum[m][h]);
          }
        }
      }
      if constexpr (low) DFDX_UNROLL for (int h = 0; h < 2; ++h) {
          DFDX_UNROLL for (int m = 0; m < M; ++m) sum[m][h] =
              _mm512_fmadd_ps(lows[b * 2 + h], _mm512_set1_ps(total[m]), sum[m][h]);
        }
    }
    auto const there = static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
    DFDX_UNROLL for (int m = 0; m < M; ++m) {
      _mm512_mask_storeu_ps(y + m * y_row, static_cast<__mmask16>(there), sum[m][0]);
      _mm512_mask_storeu_ps(y + m * y_row + 16, static_cast<__mmask16>(there >> 16), sum[m][1]);
    }
  }
};

}  // namespace detail
#else
namespace detail {
inline constexpr bool has_quantized_panels = false;
}
#endif

/// quantized_panels - quantized_product for many rows of x, where the target has panels: with AVX-512 VNNI. Whether it
/// has, and the product is done.
///
/// Numerics  as quantized_product, floats summed block by block; a sum depends neither on m nor on n
template <Quant F>
bool quantized_panels([[maybe_unused]] index_t m, [[maybe_unused]] index_t n, [[maybe_unused]] index_t k,
                      [[maybe_unused]] Q8Block<q8_length(F)> const* x, [[maybe_unused]] std::byte const* w,
                      [[maybe_unused]] std::size_t w_row, [[maybe_unused]] float* y,
                      [[maybe_unused]] index_t y_row) {
  if constexpr (detail::has_quantized_panels) {
#if defined(__AVX512VNNI__) && defined(__AVX512BW__) && defined(__AVX512VL__) && defined(__F16C__)
    using Panel = detail::QuantizedPanel<F>;
    index_t const blocks = k / 32;
    std::size_t const registers = Panel::registers(blocks) + 1;
    auto const room = reinterpret_cast<std::uintptr_t>(detail::packing_room<float>(registers * 16));
    Panel panel(reinterpret_cast<__m512i*>((room + 63) / 64 * 64), blocks);
    for (index_t j = 0; j < n; j += Panel::rows) {
      index_t const count = n - j < Panel::rows ? n - j : Panel::rows;
      panel.pack(blocks, w + static_cast<std::size_t>(j) * w_row, w_row, count);
      index_t i = 0;
      auto const go = [&]<int M>() {
        for (; i + M <= m; i += M)
          panel.template rows_of<M>(blocks, x + i * (blocks / Panel::in_block), y + i * y_row + j, y_row,
                                    static_cast<int>(count));
      };
      go.template operator()<6>();
      go.template operator()<2>();
      go.template operator()<1>();
    }
#endif
    return true;
  }
  return false;
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
