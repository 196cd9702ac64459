// SPDX-License-Identifier: BSL-1.0
// mma.m16n8k16 on the CPU: the threads of a warp hand each other what they have of both factors. ldmatrix likewise, and
// cp.async, which copies as late as it may.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "fibers.hpp"

namespace cuda_fake {

/// How many of them threads have asked for.
inline std::uint64_t tensor_products = 0;

Fibers& fibers();

template <class T>
void multiply_add(float (&c)[4], std::uint32_t const (&a)[4], std::uint32_t const (&b)[2]) {
  struct Parts {
    std::uint32_t a[4], b[2];
  };
  ++tensor_products;
  unsigned const lane = fibers().current % Fibers::warp;
  Parts const mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  Parts of[Fibers::warp];
  fibers().all(mine, of);
  auto const half = [](std::uint32_t word, unsigned k) {
    return static_cast<float>(std::bit_cast<T>(static_cast<std::uint16_t>(word >> (16 * (k % 2)))));
  };
  // Element (row, k) of a, and (k, column) of b.
  auto const left = [&](unsigned row, unsigned k) {
    return half(of[row % 8 * 4 + k % 8 / 2].a[k / 8 * 2 + row / 8], k);
  };
  auto const right = [&](unsigned k, unsigned column) {
    return half(of[column * 4 + k % 8 / 2].b[k / 8], k);
  };
  for (unsigned i = 0; i < 4; ++i) {
    float sum = c[i];
    for (unsigned k = 0; k < 16; ++k) sum += left(lane / 4 + i / 2 * 8, k) * right(k, 2 * (lane % 4) + i % 2);
    c[i] = sum;
  }
}

inline void load_matrices(std::uint32_t (&to)[4], void const* row, bool turned) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0)
    throw std::logic_error("emulated: a row that is not aligned");
  void const* rows[Fibers::warp];
  fibers().all(row, rows);
  unsigned const lane = fibers().current % Fibers::warp, g = lane / 4, t = 2 * (lane % 4);
  for (unsigned m = 0; m < 4; ++m) {
    auto const at = [&](unsigned r, unsigned c) {
      return std::uint32_t{static_cast<std::uint16_t const*>(rows[m * 8 + r])[c]};
    };
    to[m] = turned ? at(t, g) | at(t + 1, g) << 16 : at(g, t) | at(g, t + 1) << 16;
  }
}

struct LateCopy {
  void* to;
  void const* from;
  std::size_t bytes;
};
inline std::vector<LateCopy> late_copies[Fibers::most * Fibers::most_blocks];
/// How many of 16 bytes threads have asked for.
inline std::uint64_t wide_copies = 0;

inline void copy_later(void* to, void const* from, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
    throw std::logic_error("emulated: a copy of what is not aligned");
  if (bytes == 16) ++wide_copies;
  late_copies[fibers().current].push_back({to, from, bytes});
}
inline void copies_made() {
  auto& mine = late_copies[fibers().current];
  for (LateCopy const& c : mine) std::memcpy(c.to, c.from, c.bytes);
  mine.clear();
}
inline void forget_copies() {
  for (auto& of : late_copies) of.clear();
}

}  // namespace cuda_fake
