// SPDX-License-Identifier: BSL-1.0
// What the description of a loop is made of while a group is lowered (graph/lower.hpp), and what follows from that: how
// wide lanes are, and along which axis they run.
#pragma once

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/loop_code.hpp>
#include <dfdx/core/shape.hpp>
#include <dfdx/core/vec.hpp>

namespace dfdx::graph::detail {

/// LoopRecord - an operand: how it is walked, and how memory that a loop adds up in begins.
struct LoopRecord {
  DType dtype;
  index_t fill, combine;
  Strides strides;
};

/// LoopInstruction - one instruction. What it does is found out once.
struct LoopInstruction {
  enum class Role : unsigned char { constant, reads, computes, reduces, stores };
  index_t code;
  DType type;
  index_t a = -1, b = -1, c = -1, immediate = 0;
  index_t level = loop_code::element_level;
  int phase = 0;
  unsigned mask = 0;
  index_t stash = -1;
  int cost = 1;
  Role role = Role::computes;

  static constexpr Role role_of(index_t c) {
    if (c == loop_code::constant) return Role::constant;
    if (c == loop_code::load || c == loop_code::iota) return Role::reads;
    if (c == loop_code::store || c == loop_code::accumulate) return Role::stores;
    return c >= loop_code::reduce_sum && c <= loop_code::reduce_min ? Role::reduces : Role::computes;
  }
};

/// last_long_axis - the last axis of more than one position; 0 if there is none.
constexpr int last_long_axis(Shape const& s) {
  int a = s.rank - 1;
  while (a > 0 && s[a] == 1) --a;
  return a < 0 ? 0 : a;
}

/// lane_width - how wide the lanes of a loop are.
// Bytes are read, written and compared by vectors of wider numbers, but no other bytes are made of them.
constexpr index_t lane_width(Vec<LoopInstruction> const& code, Vec<LoopRecord> const& records) {
  bool four = true, eight = true;
  auto const consider = [&](DType d) {
    bool const any = d == DType::boolean || is_byte(d);
    four = four && (any || d == DType::f32 || is_half(d) || d == DType::i32);
    eight = eight && (any || d == DType::f64 || d == DType::i64);
  };
  for (LoopInstruction const& i : code) {
    consider(i.type);
    bool const moves = i.code == loop_code::load || i.code == loop_code::store || i.code == loop_code::cast ||
                       i.code == loop_code::constant;
    if (is_byte(i.type) && (!moves || i.stash >= 0)) return loop_code::scalar;
  }
  for (LoopRecord const& r : records) consider(r.dtype);
  return four ? loop_code::four_bytes : eight ? loop_code::eight_bytes : loop_code::scalar;
}

/// better_lanes - the axis that lanes of a map run along in place of a short last one, if elements along that are read
/// from far apart: one along which all are near. So channels become the last axis by whole vectors. Else -1.
constexpr int better_lanes(Shape const& space, Vec<LoopInstruction> const& code,
                           Vec<LoopRecord> const& records) {
  constexpr index_t shortest = 16, most_last = 4;
  auto const is_near = [](index_t stride) { return stride >= 0 && stride <= 8; };
  int const last = last_long_axis(space);
  if (last == 0 || space[last] < 2 || space[last] > most_last) return -1;
  bool far = false;
  for (LoopInstruction const& i : code) {
    if (i.role == LoopInstruction::Role::reduces || i.code == loop_code::accumulate) return -1;
    if (i.code == loop_code::load) far = far || !is_near(records[i.a].strides[last]);
  }
  for (int a = last - 1; far && a >= 0; --a) {
    bool ok = space[a] < 0 || space[a] >= shortest;
    for (LoopRecord const& r : records) ok = ok && is_near(r.strides[a]);
    if (ok) return a;
  }
  return -1;
}

}  // namespace dfdx::graph::detail
