// SPDX-License-Identifier: BSL-1.0
// Keys and values that are kept, so that a position is computed once: in f32, in 16 bits, or in blocks of 8 bits.
#pragma once

#include <optional>
#include <vector>

#include <dfdx/io/weights.hpp>
#include <dfdx/kernels/reference/quantize.hpp>
#include <dfdx/vocabulary/in_place.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx::models {

/// KvCache - keys and values of positions 0, ..., length - 1, so that a position is computed once. One is for one
/// batch of sequences of equal length. Of Q8_0 each row of a head is blocks of 32 numbers, 34 bytes each.
///
/// Shapes    keys, values: a list over the layers, [B..., K, capacity, D] each; of Q8_0 D / 32 * 34 bytes in place of D
/// Errors    "llama: a cache of Q8_0 needs heads of a multiple of 32, got 48"; "llama: a cache of Q4_0 is not
///           supported"; "llama: a number too large for a cache of Q8_0, or none"; "llama: a cache of Q8_0 on cuda:0 is
///           of use to a Decoder only"
struct KvCache {
  std::vector<Array> keys, values;
  index_t length = 0, capacity = 0;
  /// Positions that there will be when all blocks of a prompt are there: dynamic frequencies are for as many.
  index_t ahead = 0;
  Encoding encoding = DType::f32;

  bool quantized() const { return std::holds_alternative<Quant>(encoding); }
  /// Where the keys and values lie.
  Device device() const { return keys.empty() ? Device{} : keys[0].device(); }

  /// An empty one for sequences of up to `capacity` positions, `batch` of them (none for a single sequence).
  static KvCache of(index_t layers, index_t heads, index_t capacity, index_t head_size,
                    std::optional<index_t> batch, Encoding encoding, Device device = {}) {
    KvCache r;
    r.capacity = capacity;
    r.encoding = encoding;
    index_t row = head_size;
    DType dtype = DType::u8;
    if (Quant const* const q = std::get_if<Quant>(&encoding)) {
      if (*q != Quant::q8_0) raise("llama: a cache of ", name_of(*q), " is not supported");
      if (head_size % 32 != 0)
        raise("llama: a cache of Q8_0 needs heads of a multiple of 32, got ", head_size);
      row = head_size / 32 * static_cast<index_t>(block_bytes(*q));
    } else {
      dtype = std::get<DType>(encoding);
    }
    Shape const one = make_shape(heads, capacity, row);
    Shape const s = batch ? with_first_axis(*batch, one) : one;
    for (index_t i = 0; i < layers; ++i) {
      r.keys.push_back(Array(Meta{dtype, s}, device));
      r.values.push_back(Array(Meta{dtype, s}, device));
    }
    return r;
  }

  /// Keeps a layer's keys and values of the positions from `length` on; k and v become those of all positions. When
  /// all layers have done so, the model moves `length`.
  void extend(std::size_t layer, Array& k, Array& v) {
    index_t const n = k.shape()[k.shape().rank - 2];
    auto const kept = [&](Array const& all, Array const& fresh) {
      if (quantized()) return kept_in_blocks(all, fresh);
      slice(all, -2, length, length + n).copy_(fresh.to(all.dtype()));
      return slice(all, -2, 0, length + n).to(fresh.dtype());
    };
    k = kept(keys[layer], k);
    v = kept(values[layer], v);
  }

  /// Calls f(keys, values) with where head g of a layer begins in a cache of one sequence: numbers, or bytes of blocks.
  template <class F>
  void with_head(std::size_t layer, index_t g, F const& f) const {
    Array const &k = keys[layer], &v = values[layer];
    index_t const at = g * capacity * k.shape()[2];
    if (quantized()) f(k.bytes() + at, v.bytes() + at);
    else if (k.dtype() == DType::f32) f(k.data<float>() + at, v.data<float>() + at);
    else if (k.dtype() == DType::f16) f(k.data<float16>() + at, v.data<float16>() + at);
    else f(k.data<bfloat16>() + at, v.data<bfloat16>() + at);
  }

  /// keep_row - a row of a head in blocks.
  static void keep_row(float const* x, index_t n, std::byte* to) {
    if (!quantize_row(Quant::q8_0, x, n, to)) raise("llama: a number too large for a cache of Q8_0, or none");
  }

 private:
  Array kept_in_blocks(Array const& all, Array const& fresh) const {
    if (fresh.requires_grad() && is_grad_enabled())
      raise("llama: what is kept in a cache of Q8_0 cannot be trained");
    if (!device().is_cpu()) raise("llama: a cache of Q8_0 on ", device(), " is of use to a Decoder only");
    Array const x = fresh.detach().to(DType::f32).contiguous();
    Shape s = x.shape();
    index_t const n = s[s.rank - 2], d = s[s.rank - 1], heads = n * d == 0 ? 0 : x.size() / (n * d);
    s[s.rank - 2] = length + n;
    Array r(Meta{DType::f32, s});
    index_t const row = all.shape()[s.rank - 1];
    for (index_t h = 0; h < heads; ++h) {
      std::byte* const rows = all.bytes() + h * capacity * row;
      for (index_t t = 0; t < n; ++t)
        keep_row(x.data<float>() + (h * n + t) * d, d, rows + (length + t) * row);
      dequantize_row(Quant::q8_0, rows, (length + n) * d, r.data<float>() + h * (length + n) * d);
    }
    return r.to(fresh.dtype());
  }
};

}  // namespace dfdx::models
