// SPDX-License-Identifier: BSL-1.0
// What Hopper GPUs add, on the CPU: barriers that count bytes, the bulk copy engine, and products of warpgroups, whose
// factors are read when they are waited for: as late as may be. Copies are made at once, or where threads are not in
// order as late as may be, when no thread can go on without. Until then what they read and write may be overwritten by
// those who do not wait.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cuda.h"
#include "machine.hpp"

namespace cuda_fake {

/// How many copies have been made, and products of 64 x Columns x 16.
inline std::uint64_t bulk_copies = 0, warpgroup_products = 0;

inline std::uint32_t shared_address(void const* p) {
  auto const* const memory = machine().dynamic_memory();
  auto const* const at = static_cast<std::byte const*>(p);
  if (at < memory || at > memory + Machine::most_dynamic)
    throw std::logic_error("emulated: not in the block's dynamic memory");
  return static_cast<std::uint32_t>(at - memory) + 16;  // not aligned any better than it has to be
}
inline std::byte* shared_pointer(std::uint32_t address) { return machine().dynamic_memory() + address - 16; }
/// Where the hardware finds what lies at an address: pieces of 16 bytes are swapped within each eight lines of 128.
inline std::uint32_t swapped(std::uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

// Barriers
// -----------------------------------------------------------------------------------------------------------

struct BarrierState {
  std::int32_t bytes;
  std::uint16_t arrivals;
  std::uint8_t count, phase;
};
inline void change(std::uint64_t& state, int arrivals, std::int32_t bytes) {
  auto b = std::bit_cast<BarrierState>(state);
  if (arrivals > b.arrivals) throw std::logic_error("emulated: more arrivals than a barrier waits for");
  b.arrivals = static_cast<std::uint16_t>(b.arrivals - arrivals);
  b.bytes += bytes;
  if (b.arrivals == 0 && b.bytes == 0) {
    b.arrivals = b.count;
    b.phase ^= 1;
    fibers().news();
  }
  state = std::bit_cast<std::uint64_t>(b);
}
inline void begin(std::uint64_t& state, int arrivals) {
  auto const n = static_cast<std::uint8_t>(arrivals);
  state = std::bit_cast<std::uint64_t>(BarrierState{0, n, n, 0});
}
inline void arrive(std::uint64_t& state, int bytes) {
  // What is expected counts before the arrival does.
  auto b = std::bit_cast<BarrierState>(state);
  b.bytes += bytes;
  state = std::bit_cast<std::uint64_t>(b);
  change(state, 1, 0);
}
inline bool has_ended(std::uint64_t state, std::uint32_t parity) {
  return std::bit_cast<BarrierState>(state).phase != parity;
}

// Copies
// -------------------------------------------------------------------------------------------------------------

inline void bulk_copy(void* to, CUtensorMap const& map, int inner, int outer, int matrix,
                      std::uint64_t& done) {
  if (reinterpret_cast<std::uintptr_t>(&map) % 64 != 0 || shared_address(to) % 1024 != 0)
    throw std::logic_error("emulated: a bulk copy of what is not aligned");
  ++bulk_copies;
  MapOfMatrices m;
  std::memcpy(&m, &map, sizeof m);
  std::uint32_t const first = shared_address(to);
  fibers().do_later([=, &done] {
    std::uint32_t at = first;
    for (cuuint32_t z = 0; z < m.box[2]; ++z)
      for (cuuint32_t y = 0; y < m.box[1]; ++y)
        for (cuuint32_t x = 0; x < m.box[0]; ++x, at += 2) {
          std::int64_t const place[] = {inner + std::int64_t{x}, outer + std::int64_t{y},
                                        matrix + std::int64_t{z}};
          std::uint16_t number = 0;
          bool inside = true;
          std::int64_t from = 0;
          for (int d = 0; d < 3; ++d) {
            inside = inside && place[d] >= 0 && place[d] < static_cast<std::int64_t>(m.extents[d]);
            from += place[d] * static_cast<std::int64_t>(m.steps[d]);
          }
          if (inside) std::memcpy(&number, m.first + from, 2);
          std::memcpy(shared_pointer(swapped(at)), &number, 2);
        }
    change(done, 0, -static_cast<std::int32_t>(m.box[0] * m.box[1] * m.box[2] * 2));
  });
}

// Products
// -----------------------------------------------------------------------------------------------------------

/// Element (across, k) of a factor that a descriptor describes, k below 16.
inline std::uint16_t factor_at(std::uint64_t what, bool goes_across, std::uint32_t across, std::uint32_t k) {
  auto const bytes = [&](int bit) { return static_cast<std::uint32_t>(what >> bit & 0x3fff) << 4; };
  std::uint32_t const first = bytes(0), leading = bytes(16), stride = bytes(32);
  if (what >> 62 != 1 || (what >> 49 & 7) != 0)
    throw std::logic_error("emulated: a descriptor of another kind");
  std::uint32_t const at =
      goes_across ? first + across / 64 * leading + across % 64 * 2 + k / 8 * stride + k % 8 * 128
                  : first + across / 8 * stride + across % 8 * 128 + k * 2;
  std::uint16_t r;
  std::memcpy(&r, shared_pointer(swapped(at)), 2);
  return r;
}

/// What a thread has asked for and not waited for; one that is closed ends a group.
struct LateProduct {
  void (*make)(float*, int, std::uint64_t, std::uint64_t, unsigned thread);
  float* sums;
  int count;
  std::uint64_t a, b;
};
struct LateProducts {
  std::vector<std::vector<LateProduct>> groups;
  std::vector<LateProduct> open;
  bool may_begin = false;
};
inline std::array<LateProducts, Fibers::most> late_products;
inline LateProducts& my_products() { return late_products[fibers().current]; }

template <class T, bool AcrossA, bool AcrossB>
void make_products(float* c, int count, std::uint64_t a, std::uint64_t b, unsigned thread) {
  auto const number = [](std::uint16_t bits) { return static_cast<float>(std::bit_cast<T>(bits)); };
  unsigned const row = thread / 32 * 16 + thread % 32 / 4, column = 2 * (thread % 4);
  float left[2][16];
  for (unsigned k = 0; k < 16; ++k)
    for (unsigned h = 0; h < 2; ++h) left[h][k] = number(factor_at(a, AcrossA, row + 8 * h, k));
  for (unsigned j = 0; j < static_cast<unsigned>(count) / 4; ++j)
    for (unsigned e = 0; e < 2; ++e)
      for (unsigned k = 0; k < 16; ++k) {
        float const right = number(factor_at(b, AcrossB, 8 * j + column + e, k));
        for (unsigned h = 0; h < 2; ++h) c[4 * j + 2 * h + e] += left[h][k] * right;
      }
}
inline void products_begin() { my_products().may_begin = true; }
template <class T, bool AcrossA, bool AcrossB>
void multiply_add_later(float* c, int count, std::uint64_t a, std::uint64_t b) {
  if (!my_products().may_begin) throw std::logic_error("emulated: products that were not begun");
  if (fibers().current % 128 == 0) ++warpgroup_products;
  my_products().open.push_back({&make_products<T, AcrossA, AcrossB>, c, count, a, b});
}
inline void products_asked() { my_products().groups.push_back(std::exchange(my_products().open, {})); }
inline void products_made(int but) {
  auto& mine = my_products();
  mine.may_begin = false;
  while (mine.groups.size() > static_cast<std::size_t>(but)) {
    for (LateProduct const& p : mine.groups.front())
      p.make(p.sums, p.count, p.a, p.b, fibers().current % 128);
    mine.groups.erase(mine.groups.begin());
  }
}

}  // namespace cuda_fake
