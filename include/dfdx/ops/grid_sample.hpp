// SPDX-License-Identifier: BSL-1.0
// Images at places that a grid gives, and the gradients of that: not fused, each with a kernel of its own
// (kernels/grid.hpp). Rules for derivatives are vocabulary/grid_rules.hpp.
#pragma once

#include <dfdx/core/grid.hpp>
#include <dfdx/ops/op.hpp>

namespace dfdx::op {

namespace detail {

// Defined with the vocabulary, which knows kernels and functions of several ops.
template <class Op>
void run_grid(Attrs const& a, Operand const* in, Operand const& out);
template <class Op, int I, class V>
constexpr V grid_vjp(V const& ct, Site<V> const& s);
template <class Op, int I, class V>
constexpr V grid_jvp(V const& t, Site<V> const& s);

// What the three ops have in common.
template <class Op>
struct grid_operation : operation {
  static constexpr int cost = 100;
  template <int I, class V>
  static constexpr V vjp(V const& ct, Site<V> const& s) {
    return grid_vjp<Op, I>(ct, s);
  }
  template <int I, class V>
  static constexpr V jvp(V const& t, Site<V> const& s) {
    return grid_jvp<Op, I>(t, s);
  }
  template <int = 0>
  static void run(Attrs const& a, Operand const* in, Operand const& out) {
    run_grid<Op>(a, in, out);
  }
};

}  // namespace detail

/// grid_sample - images at places. attrs.i[0] has the options (core/grid.hpp).
///
/// Math      y[n, c, p] = sum_ij a_i(row of p) b_j(column of p) x[n, c, i, j]
/// Shapes    x: [N, C, Y, X], grid: [N, P, Q, 2] -> [N, C, P, Q]
/// Dtypes    one, floating; 16 bits in f32
/// Errors    those of the function grid_sample
/// Source    Jaderberg et al. 2015; Keys 1981 for cubics
struct grid_sample : detail::grid_operation<grid_sample> {
  static constexpr char const* name = "grid_sample";
  static constexpr int arity = 2;
  static constexpr unsigned reads(int k) { return k == 0 ? 2 : 3; }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) {
    Shape const &x = in[0].shape, &grid = in[1].shape;
    return Meta{in[0].dtype, make_shape(x[0], x[1], grid[1], grid[2])};
  }
};

/// grid_sample_images - its transpose: what comes to the images from what comes to the places. The result's shape is
/// given with bind_as.
///
/// Math      d_x[n, c, i, j] = sum_p a_i(row of p) b_j(column of p) ct[n, c, p]
/// Shapes    ct: [N, C, P, Q], grid: [N, P, Q, 2] -> [N, C, Y, X]
/// Dtypes    one, floating; 16 bits in f32
/// Errors    those of the function grid_sample
/// Source    Jaderberg et al. 2015
struct grid_sample_images : detail::grid_operation<grid_sample_images> {
  static constexpr char const* name = "grid_sample_images";
  static constexpr int arity = 2;
  static constexpr unsigned reads(int k) { return k == 0 ? 2 : 3; }
  static constexpr Meta infer(Attrs const&, Meta const*, Text* why) { return refuse(why, name); }
};

/// grid_sample_places - what comes to the grid: by how much the sampled images, times ct, change with each place.
///
/// Math      d_grid[n, p] = sum_c ct[n, c, p] d(y[n, c, p]) / d(grid[n, p])
/// Shapes    x: [N, C, Y, X], grid: [N, P, Q, 2], ct: [N, C, P, Q] -> [N, P, Q, 2]
/// Dtypes    one, floating; 16 bits in f32
/// Errors    those of the function grid_sample
/// Source    Jaderberg et al. 2015
struct grid_sample_places : detail::grid_operation<grid_sample_places> {
  static constexpr char const* name = "grid_sample_places";
  static constexpr int arity = 3;
  static constexpr unsigned reads(int) { return 7; }
  static constexpr Meta infer(Attrs const&, Meta const* in, Text*) { return in[1]; }
};

}  // namespace dfdx::op
