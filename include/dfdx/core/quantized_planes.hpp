// SPDX-License-Identifier: BSL-1.0
// How blocks (core/quantized.hpp) lie in memory of devices. Not part of <dfdx/dfdx.hpp>.
#pragma once

#include <cstring>

#include <dfdx/core/quantized.hpp>

namespace dfdx {

/// BlockParts - the parts of a format's blocks, in the order of their bytes. On devices the same parts of all blocks
/// lie together, one plane after another: most blocks have a size at which no word of theirs is aligned, and a device
/// reads words.
struct BlockParts {
  int count = 0;
  int bytes[4] = {};
};
constexpr BlockParts block_parts(Quant f) {
  constexpr BlockParts all[quant_count] = {{2, {2, 16}},       {2, {4, 16}},         {3, {2, 4, 16}},
                                           {3, {4, 4, 16}},    {2, {2, 32}},         {2, {16, 128}},
                                           {3, {16, 32, 128}}, {4, {128, 64, 16, 2}}};
  return all[static_cast<int>(f)];
}

/// plane_at - where the plane of a part begins, of so many blocks; of the part after the last, the bytes of all.
constexpr index_t plane_at(Quant f, int part, index_t blocks) {
  BlockParts const parts = block_parts(f);
  index_t at = 0;
  for (int i = 0; i < part; ++i) at += (parts.bytes[i] * blocks + 255) / 256 * 256;
  return at;
}
constexpr index_t planes_bytes(Quant f, index_t blocks) { return plane_at(f, block_parts(f).count, blocks); }

/// to_planes - blocks as planes, which have planes_bytes of room.
inline void to_planes(Quant f, std::byte const* from, index_t blocks, std::byte* to) {
  BlockParts const parts = block_parts(f);
  auto const block = static_cast<index_t>(block_bytes(f));
  for (index_t at = 0, part = 0; part < parts.count; at += parts.bytes[part++]) {
    auto const n = static_cast<index_t>(parts.bytes[part]);
    std::byte* const plane = to + plane_at(f, static_cast<int>(part), blocks);
    for (index_t i = 0; i < blocks; ++i)
      std::memcpy(plane + i * n, from + i * block + at, static_cast<std::size_t>(n));
  }
}

}  // namespace dfdx
