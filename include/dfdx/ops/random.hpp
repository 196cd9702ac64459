// SPDX-License-Identifier: BSL-1.0
// Random numbers as an op: a function of a key, which is a value, and of the place of each element.
#pragma once

#include <dfdx/core/random.hpp>
#include <dfdx/ops/index.hpp>

namespace dfdx::op {

namespace detail {
// Defined with the vocabulary, which may use kernels.
template <class Op>
void run_draw(Attrs const& a, Operand const& key, Operand const& out);
}  // namespace detail

/// draw - numbers from [0, 1), or with attrs.i[2] from N(0, 1), for each element of x, whose shape alone counts:
/// element i is number i of the key's stream attrs.i[1]. The dtype is attrs.i[0].
///
/// Math      y_i = uniform_at(key, i) or normal_at(key, i); no gradient
/// Shapes    x: [S...], key: [] -> y: [S...]
/// Dtypes    key: i64; y: f32 or f64
/// Errors    "draw: a key, one number of i64, required, got i32 []"
/// Source    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011
struct draw : operation {
  static constexpr char const* name = "draw";
  static constexpr int arity = 2;
  static constexpr int cost = 100;
  static constexpr unsigned reads(int) { return 0; }
  static constexpr Meta infer(Attrs const& a, Meta const* in, Text* why) {
    if (in[1].dtype != DType::i64 || in[1].shape.rank != 0)
      return refuse(why, name, ": a key, one number of i64, required, got ", in[1].dtype, " ", in[1].shape);
    return Meta{static_cast<DType>(a.i[0]), in[0].shape};
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    detail::run_draw<draw>(a, in[1], out);
  }
};

}  // namespace dfdx::op
