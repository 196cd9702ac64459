// SPDX-License-Identifier: BSL-1.0
// Rows brought to mean 0 and variance 1, as norms are made of: how that is computed so that nothing but 0 is left of
// numbers that are all alike, and derivatives, which are those of what it stands for.
#pragma once

#include <dfdx/vocabulary/custom_vjp.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx {

namespace detail {

// Of numbers of rows, which have extent 1 along them, the axes of a row.
constexpr Over along_rows(Shape const& s) {
  Axes a;
  for (int i = 0; i < s.rank; ++i)
    if (s[i] == 1) a.push(i);
  return Over{a, true};
}
/// across_row - what of h is neither constant in a row nor along z; z has mean 0 and is scaled to a variance of 1.
template <class V>
constexpr V across_row(V const& h, V const& z, Over const& row) {
  // First what asks for z: with the loop that makes it go sums of h then, too.
  V const along = z * mean_of(h * z, row);
  return h - mean_of(h, row) - along;
}

/// CentredRule - c = x - mean(x): its derivative, and the adjoint of that, are the same.
struct CentredRule {
  static constexpr char const* name = "norm: centred";
  static constexpr bool has_tangent = true;
  static constexpr int through = 1;
  template <int I, class V>
  static constexpr V cotangent(V const& ct, V const&, V const&, V const& mean) {
    return ct - mean_of(ct, along_rows(mean.shape()));
  }
  template <class V>
  static constexpr V tangent(V const&, V const&, V const& mean, V const& t, V const&) {
    return t - mean_of(t, along_rows(mean.shape()));
  }
};
/// ScaleRule - s = 1 / sqrt(mean(c^2) + eps): ds = -s^3 mean(c dc).
struct ScaleRule {
  static constexpr char const* name = "norm: scale";
  static constexpr bool has_tangent = true;
  template <int I, class V>
  static constexpr V cotangent(V const& ct, V const& s, V const& c) {
    return c * over_count<"norm">(c, -ct * s * square(s), along_rows(s.shape()), 0);
  }
  template <class V>
  static constexpr V tangent(V const& s, V const& c, V const& t) {
    return mean_of(c * t, along_rows(s.shape())) * -s * square(s);
  }
};
/// StandardRule - z = (x - mean(x)) s of x: dz = s (dx - mean(dx) - z mean(z dx)), its own adjoint.
struct StandardRule {
  static constexpr char const* name = "norm";
  static constexpr bool has_tangent = true;
  static constexpr int through = 1;
  template <int I, class V>
  static constexpr V cotangent(V const& ct, V const& z, V const&, V const& s) {
    return moved(ct, z, s);
  }
  template <class V>
  static constexpr V tangent(V const& z, V const&, V const& s, V const& t, V const&) {
    return moved(t, z, s);
  }

 private:
  template <class V>
  static constexpr V moved(V const& h, V const& z, V const& s) {
    // Of one number, which z is 0 of, products that are added, not rounded, would leave something.
    if (z.shape() == s.shape()) return h * z;
    return across_row(h, z, along_rows(s.shape())) * s;
  }
};

/// Standard - rows over axes that stay: their mean and the sum of the squares around it, which derivatives do not flow
/// through, what they are scaled by and what they come to.
template <class M, class T, class S, class Z>
struct Standard {
  M mean;
  T total;
  S scale;
  Z z;
};

/// standard_over(x, over, eps) - rows of x brought to mean 0 and variance 1. A sum is rounded, and so is a first mean;
/// the mean of what the row is apart from that is what it is off by. Of numbers that are all alike it brings the mean
/// to that number, whatever it is. The squares, of distances from the first mean, are as many times the square of that
/// too large. So rows are walked as often as for a mean and the squares around it.
///
/// Math      a = x - m, r = mean(a): mean = m + r, total = sum a^2 - r sum a, for any m; z = (x - mean) s,
///           s = 1 / sqrt(mean(total) + eps)
/// Shapes    x: [S...] -> mean, total, scale: [S..., reduced axes 1], z: [S...]
/// Dtypes    f32 f64
/// Source    Chan, Golub and LeVeque 1983, the corrected two-pass algorithm
template <class P, operand X>
constexpr auto standard_over(X const& x, P const& over, double eps) {
  auto const near = mean_of(x, over);
  auto const apart = x - near;
  auto const sum = reduce<op::sum>(apart, over), squares = reduce<op::sum>(square(apart), over);
  auto const rest = over_count<"norm">(x, sum, over, 0);
  auto const mean = near + rest;
  auto const excess = sum * rest;
  // (Rounding may leave nothing of the difference or less. Of infinite squares it takes nothing.)
  auto const total = where(excess < squares, squares - excess, squares * 0x1p-23);
  auto const centred = ruled<CentredRule>(x - mean, x, mean);
  auto const scale = ruled<ScaleRule>(rsqrt(over_count<"norm">(x, total, over, 0) + eps), centred);
  auto const z = ruled<StandardRule>(centred * scale, x, scale);
  return Standard{stop_gradient(mean), stop_gradient(total), scale, z};
}

}  // namespace detail

}  // namespace dfdx
