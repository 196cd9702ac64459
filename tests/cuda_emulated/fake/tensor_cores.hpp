// SPDX-License-Identifier: BSL-1.0
// mma.m16n8k16 on the CPU: the threads of a warp hand each other what they have of both factors.
#pragma once

#include <bit>
#include <cstdint>

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

}  // namespace cuda_fake
