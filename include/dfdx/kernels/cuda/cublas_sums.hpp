// SPDX-License-Identifier: BSL-1.0
// Which epilogues of matrix products cuBLASLt does by itself: those that add a row to all rows of the product (a bias),
// or a matrix (a residual), or both. Rectifiers are not among them: ours keeps what is no number, and that cuBLASLt's
// does too is not documented.
#pragma once

#include <type_traits>

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/loop_facts.hpp>
#include <dfdx/kernels/matmul.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// Addends - operands of an epilogue's loop that it adds to the sums; -1 for none. If not `found` it does other things.
struct Addends {
  bool found = false;
  int row = -1, matrix = -1;
};

/// addends - of a product's epilogue; T is the element type of the result.
template <class T, class Epilogue>
inline constexpr Addends addends{};

namespace detail {

template <class Code, int Given, int Stored>
class AddendsOf {
  static constexpr LoopFacts facts{Code::value};
  static constexpr int last = facts.dims - 1;

  // What an instruction adds up; `given` is the sum of products.
  struct Parts {
    bool ok = false, given = false;
    int row = -1, matrix = -1;
  };
  static constexpr Parts loaded(int k) {
    if (k == Given) return {true, true};
    if (facts.stride_code(k, last) != 1) return {};
    if (last == 0 || facts.stride_code(k, 0) == 0) return {true, false, k, -1};
    return {true, false, -1, k};
  }
  static constexpr Parts together(Parts const& x, Parts const& y) {
    bool const twice = (x.given && y.given) || (x.row >= 0 && y.row >= 0) || (x.matrix >= 0 && y.matrix >= 0);
    return {x.ok && y.ok && !twice, x.given || y.given, x.row >= 0 ? x.row : y.row,
            x.matrix >= 0 ? x.matrix : y.matrix};
  }
  static constexpr int part(int i, loop_code::InstructionField f) {
    return static_cast<int>(facts.field(i, f));
  }
  static constexpr Parts parts(int i) {
    switch (part(i, loop_code::code)) {
      case loop_code::load: return loaded(part(i, loop_code::a));
      case loop_code::add: return together(parts(part(i, loop_code::a)), parts(part(i, loop_code::b)));
      default: return {};
    }
  }

 public:
  static constexpr Addends find(DType dtype) {
    int stores = 0, from = -1;
    for (int i = 0; i < facts.instructions; ++i) {
      int const what = part(i, loop_code::code);
      if (what == loop_code::store && part(i, loop_code::a) == Stored) ++stores, from = part(i, loop_code::b);
      else if (what != loop_code::load && what != loop_code::add) return {};
    }
    if (stores != 1) return {};
    for (int k = 0; k < facts.operands; ++k)
      if (facts.record(k, loop_code::dtype) != static_cast<index_t>(dtype)) return {};
    Parts const p = parts(from);
    // It adds rows of f32 only.
    if (!p.ok || !p.given || (p.row >= 0 && dtype != DType::f32)) return {};
    return {true, p.row, p.matrix};
  }
};

}  // namespace detail

template <class T, class Code, int Given, int Stored, bool ReadsResult>
inline constexpr Addends addends<T, LoopEpilogue<Code, Given, Stored, ReadsResult>> =
    detail::AddendsOf<Code, Given, Stored>::find(dtype_v<T>);

/// row_step - how far the rows of an epilogue's operand are apart.
template <int Operand, class Code, int Given, int Stored, bool ReadsResult>
index_t row_step(std::type_identity<LoopEpilogue<Code, Given, Stored, ReadsResult>>, index_t const* symbols) {
  return kernels::detail::resolved(LoopFacts(Code::value).stride_code(Operand, 0), symbols);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
