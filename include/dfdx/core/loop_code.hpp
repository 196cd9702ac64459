// SPDX-License-Identifier: BSL-1.0
// The language in which a fused group is described to a kernel: a flat list of numbers, so that equal groups are
// equal lists and one kernel serves them all on every backend. Written by graph/lower.hpp, read by kernels/.
//
// A description is: the header; an extent for each dim; for each operand its record and a stride for each dim; the
// instructions. Extents and strides may be symbolic (core/shape.hpp).
#pragma once

#include <cstddef>

#include <dfdx/core/shape.hpp>

namespace dfdx::op {

/// fused - finds an elementwise op by its number: `template <> struct fused<number> { using type = my_op; };`
/// beside each such op lets fused loops name it.
template <int PlainNumber>
struct fused;

}  // namespace dfdx::op

namespace dfdx::loop_code {

/// Positions in the header.
///
/// Iterations of the dims before `split` are rows. With `backward` the first dim is walked from its end.
enum Header : std::size_t { width, dims, split, operands, instructions, phases, backward, header_size };

/// How wide a lane may be: a number at a time, or vectors of elements of 4 or 8 bytes.
enum Width : index_t { scalar = 0, four_bytes = 4, eight_bytes = 8 };

/// Positions in an operand's record; its strides follow. `fill` elements are set to the identity of `combine` first
/// if other iterations add to them (fill is 0 otherwise); `combine` is `scratch` if a row keeps values there from one
/// phase to the next.
enum OperandField : std::size_t { dtype, fill, combine, operand_size };

/// Parts of an instruction. `a`, `b`, `c` are instructions, or an operand's number for loads and stores; -1 for
/// none. `level` says whether the value is one for each row (an iteration of the outer dims) or for each element.
/// An instruction of level element runs in the phases of its mask; in phases after `phase` it is read back from
/// operand `stash` if that is not -1. `immediate` holds the bits of a constant, a double.
enum InstructionField { code, type, level, phase, mask, a, b, c, stash, immediate };

/// An instruction takes three numbers: what and when, operands, the immediate.
inline constexpr std::size_t instruction_size = 3;

struct Instruction {
  index_t code, type, level, phase, mask, a, b, c, stash, immediate;
};

constexpr void pack(Instruction const& i, index_t* out) {
  out[0] = i.code | i.type << 16 | i.level << 20 | i.phase << 24 | i.mask << 32;
  out[1] = (i.a + 1) | (i.b + 1) << 15 | (i.c + 1) << 30 | (i.stash + 1) << 45;
  out[2] = i.immediate;
}

/// unpack - one part of the instruction that begins at p.
constexpr index_t unpack(index_t const* p, InstructionField f) {
  switch (f) {
    case code: return p[0] & 0xffff;
    case type: return p[0] >> 16 & 15;
    case level: return p[0] >> 20 & 15;
    case phase: return p[0] >> 24 & 255;
    case mask: return p[0] >> 32;
    case a: return (p[1] & 0x7fff) - 1;
    case b: return (p[1] >> 15 & 0x7fff) - 1;
    case c: return (p[1] >> 30 & 0x7fff) - 1;
    case stash: return (p[1] >> 45) - 1;
    default: return p[2];
  }
}

constexpr Instruction unpack(index_t const* p) {
  return {unpack(p, code), unpack(p, type), unpack(p, level), unpack(p, phase), unpack(p, mask),
          unpack(p, a),    unpack(p, b),    unpack(p, c),     unpack(p, stash), unpack(p, immediate)};
}

enum Level : index_t { element_level = 0, row_level = 1 };

/// What an instruction does, where that is not an elementwise op (those have the numbers of their Code, from 32
/// on).
inline constexpr index_t first_op = 32;
/// Of these, what a library's product can do after it, so that kernels know it by its number.
inline constexpr int add = 64;
enum Do : index_t {
  load = 1,
  constant,
  iota,  ///< the position that the operand's strides count
  cast,  ///< from a dtype of 16 bits to itself: what computed as a float is rounded
  reduce_sum,
  reduce_prod,
  reduce_max,
  reduce_min,
  store,
  accumulate,  ///< combines into memory; the operand's `combine` says how
  /// In the first row what lies at operand a; then what instruction b, if any, was in the row before.
  carry,
};

inline constexpr index_t scratch = -1;

}  // namespace dfdx::loop_code
