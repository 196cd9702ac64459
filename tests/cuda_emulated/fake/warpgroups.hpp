// SPDX-License-Identifier: BSL-1.0
// What Hopper GPUs add, on the CPU: barriers that count bytes, the bulk copy engine, and products of warpgroups, whose
// factors are read when they are waited for: as late as may be. Copies are made at once, or where threads are not in
// order as late as may be, when no thread can go on without. Until then what they read and write may be overwritten by
// those who do not wait.
#pragma once

#include <algorithm>
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

/// How many products of 64 x Columns x 16 have been asked for, and copies of bytes that follow each other.
inline std::uint64_t warpgroup_products = 0, line_copies = 0;

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

inline void bulk_copy(void* to, CUtensorMap const& map, std::array<std::int64_t, 5> begin,
                      std::uint64_t& done) {
  if (reinterpret_cast<std::uintptr_t>(&map) % 64 != 0 || shared_address(to) % 1024 != 0)
    throw std::logic_error("emulated: a bulk copy of what is not aligned");
  MapOfMatrices m;
  std::memcpy(&m, &map, sizeof m);
  std::uint32_t const first = shared_address(to);
  fibers().do_later([=, &done] {
    std::uint32_t const numbers = m.box[0] * m.box[1];  // of one matrix
    for (std::uint32_t i = 0; i < numbers; ++i) {
      auto place = begin;
      place[0] += i % m.box[0], place[1] += i / m.box[0];
      std::uint16_t number = 0;
      bool inside = true;
      std::int64_t from = 0;
      for (std::size_t d = 0; d < place.size(); ++d) {
        inside = inside && place[d] >= 0 && place[d] < static_cast<std::int64_t>(m.extents[d]);
        from += place[d] * static_cast<std::int64_t>(m.steps[d]);
      }
      if (inside) std::memcpy(&number, m.first + from, 2);
      std::memcpy(shared_pointer(swapped(first + i * 2)), &number, 2);
    }
    change(done, 0, -static_cast<std::int32_t>(numbers * 2));
  });
}

inline void bulk_copy(void* to, void const* from, int bytes, std::uint64_t& done) {
  if (shared_address(to) % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0 || bytes % 16 != 0)
    throw std::logic_error("emulated: a bulk copy of what is not aligned");
  ++line_copies;
  fibers().do_later([=, &done] {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    change(done, 0, -bytes);
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

/// What a thread has asked for and not waited for. Of a left factor in registers it has its two rows.
struct LateProduct {
  using Rows = std::array<std::array<float, 16>, 2>;
  void (*make)(LateProduct const&, unsigned thread);
  float* sums;
  int blocks;
  std::uint64_t a, b;
  bool adds;
  Rows left;
};
struct LateProducts {
  std::vector<std::vector<LateProduct>> groups;
  std::vector<LateProduct> open;
  bool may_begin = false;
};
inline std::array<LateProducts, Fibers::most> late_products;
inline LateProducts& my_products() { return late_products[fibers().current]; }

template <class T>
float number(std::uint16_t bits) {
  return static_cast<float>(std::bit_cast<T>(bits));
}
template <class T, bool AcrossB>
void make_products(LateProduct const& p, LateProduct::Rows const& left, unsigned thread) {
  unsigned const column = 2 * (thread % 4);
  if (!p.adds) std::fill_n(p.sums, p.blocks * 4, 0.f);
  for (unsigned j = 0; j < static_cast<unsigned>(p.blocks); ++j)
    for (unsigned e = 0; e < 2; ++e)
      for (unsigned k = 0; k < 16; ++k) {
        float const right = number<T>(factor_at(p.b, AcrossB, 8 * j + column + e, k));
        for (unsigned h = 0; h < 2; ++h) p.sums[4 * j + 2 * h + e] += left[h][k] * right;
      }
}
template <class T, bool AcrossA, bool AcrossB>
void make_products_in_memory(LateProduct const& p, unsigned thread) {
  LateProduct::Rows left;
  for (unsigned k = 0; k < 16; ++k)
    for (unsigned h = 0; h < 2; ++h)
      left[h][k] = number<T>(factor_at(p.a, AcrossA, thread / 32 * 16 + thread % 32 / 4 + 8 * h, k));
  make_products<T, AcrossB>(p, left, thread);
}
inline void products_begin() { my_products().may_begin = true; }
inline void ask_for_product(LateProduct const& p) {
  if (!my_products().may_begin) throw std::logic_error("emulated: products that were not begun");
  if (fibers().current % 128 == 0) ++warpgroup_products;
  my_products().open.push_back(p);
}
template <class T, bool AcrossA, bool AcrossB>
void multiply_add_later(float* c, int blocks, std::uint64_t a, std::uint64_t b, bool adds) {
  ask_for_product({&make_products_in_memory<T, AcrossA, AcrossB>, c, blocks, a, b, adds, {}});
}
template <class T, bool AcrossB>
void multiply_add_later(float* c, int blocks, std::uint32_t const (&a)[4], std::uint64_t b, bool adds) {
  struct Registers {
    std::uint32_t x[4];
  };
  Registers const mine{{a[0], a[1], a[2], a[3]}};
  Registers of[Fibers::warp];
  fibers().all(mine, of);
  LateProduct p{[](LateProduct const& q, unsigned thread) { make_products<T, AcrossB>(q, q.left, thread); },
                c,
                blocks,
                0,
                b,
                adds,
                {}};
  unsigned const row = fibers().current % Fibers::warp / 4;
  for (unsigned k = 0; k < 16; ++k)
    for (unsigned h = 0; h < 2; ++h) {
      std::uint32_t const pair = of[row * 4 + k % 8 / 2].x[k / 8 * 2 + h];
      p.left[h][k] = number<T>(static_cast<std::uint16_t>(pair >> (16 * (k % 2))));
    }
  ask_for_product(p);
}
inline void products_asked() { my_products().groups.push_back(std::exchange(my_products().open, {})); }
inline void products_made(int but) {
  auto& mine = my_products();
  mine.may_begin = false;
  while (mine.groups.size() > static_cast<std::size_t>(but)) {
    for (LateProduct const& p : mine.groups.front()) p.make(p, fibers().current % 128);
    mine.groups.erase(mine.groups.begin());
  }
}

}  // namespace cuda_fake
