// SPDX-License-Identifier: BSL-1.0
// Random numbers as an op: a function of a key, which is a value, and of the place of each element.
#pragma once

#include <dfdx/core/random.hpp>
#include <dfdx/ops/index.hpp>

namespace dfdx::op {

/// draw - numbers from [0, 1) for each element of x, whose shape alone counts: element i is drawn at counter i of the
/// key, in stream attrs.i[1]. The dtype is attrs.i[0].
///
/// Math      y_i = uniform(key, i); no gradient
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
    Key const key(static_cast<std::uint64_t>(*static_cast<std::int64_t const*>(in[1].data)));
    auto const stream = static_cast<std::uint64_t>(a.i[1]);
    Strides const strides[1] = {out.strides};
    std::uint64_t i = 0;
    auto const fill = [&](auto* y, double highest) {
      walk<1>(out.meta.shape, strides, [&](index_t const(&o)[1]) {
        double const u = uniform_at(key, i++, stream);
        y[o[0]] = static_cast<std::remove_reference_t<decltype(*y)>>(u < highest ? u : highest);
      });
    };
    if (out.meta.dtype == DType::f64) fill(static_cast<double*>(out.data), 1);
    else fill(static_cast<float*>(out.data), 1 - 0x1p-24);  // the last that does not round to 1
  }
};

}  // namespace dfdx::op
