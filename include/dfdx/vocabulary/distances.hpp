// SPDX-License-Identifier: BSL-1.0
// Distances between all points of two lists where no program is compiled: by kernels, also on the tape.
#pragma once

#include <dfdx/kernels/distances.hpp>
#include <dfdx/vocabulary/arrange.hpp>
#include <dfdx/vocabulary/custom_vjp.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx {

namespace detail {

// f(where the lists of operands begin...) at each of their leading axes, for floats and doubles.
template <class F, class... V>
void for_point_lists(F const& f, Array const& first, V const&... rest) {
  constexpr int count = 1 + static_cast<int>(sizeof...(V));
  Array const* const all[count] = {&first, &rest...};
  Shape leading = first.shape();
  leading.rank -= 2;
  Strides strides[count];
  for (int k = 0; k < count; ++k) strides[k] = all[k]->strides(), strides[k].rank -= 2;
  dispatch(first.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<T>)
      walk<count>(leading, strides, [&](index_t const(&o)[count]) {
        [&]<std::size_t... K>(std::index_sequence<K...>) {
          f((static_cast<T*>(all[K]->operand().data) + o[K])...);
        }(std::make_index_sequence<static_cast<std::size_t>(count)>{});
      });
  });
}
template <class T>
kernels::PointList<T> points_at(T const* at, Array const& x) {
  return {at, x.strides()[x.ndim() - 2], x.strides()[x.ndim() - 1]};
}

template <int P, class V>
V differences_in_memory(V const& w, V const& a, V const& b) {
  V const z(a.meta()), weights(w.meta());
  copy_elements(w.operand(), weights.operand());
  for_point_lists(
      [&](auto* to, auto const* by, auto const* from, auto const* less) {
        kernels::difference_sums(P, by, points_at(from, a), a.shape()[a.ndim() - 2], points_at(less, b),
                                 b.shape()[b.ndim() - 2], b.shape()[b.ndim() - 1], to);
      },
      z, weights, a, b);
  return z;
}
// For points a: [B..., N, D], b: [B..., M, D] their sums of differences, which w: [B..., N, M] weighs.
template <int P, class V>
V weighed_differences(V const& w, V const& a, V const& b) {
  if constexpr (std::is_same_v<V, Array>)
    if (wants_values(w, a, b)) return differences_in_memory<P>(w, a, b);
  V const apart = unsqueeze(a, -2) - unsqueeze(b, -3);
  if constexpr (P == 1) return sum(unsqueeze(w, -1) * sign(apart), {-2});
  else return sum(unsqueeze(w, -1) * apart, {-2});
}

// The gradient of p-norms, of no distance 0.
template <int P>
struct DistanceRule {
  static constexpr char const* name = "cdist";
  template <class V>
  auto operator()(V const& ct, V const& y, V const& a, V const& b) const {
    V w = ct;
    if constexpr (P == 2) {
      V const zero = y == 0.0;
      w = where(zero, zeros_as(ct), ct / where(zero, ones_as(y), y));
    }
    return std::tuple{weighed_differences<P>(w, a, b), weighed_differences<P>(transpose(w, -2, -1), b, a)};
  }
};

// Whether a kernel makes the distances: of floats or doubles in memory.
template <class A, class B>
constexpr bool has_distances(A const& a, B const& b, double p) {
  if (DFDX_IN_CONSTANT_EXPRESSION || a.recorded() || b.recorded() || is_elsewhere(a) || is_elsewhere(b))
    return false;
  return kernels::has_distances(p) && (p <= 2 || !on_tape(a, b)) && a.dtype() == b.dtype() &&
         (a.dtype() == DType::f32 || a.dtype() == DType::f64) && a.size() > 0 && b.size() > 0;
}
template <class V>
V distances_by_kernel(V const& a, V const& b, double p) {
  Shape leading = a.shape(), others = b.shape();
  leading.rank -= 2, others.rank -= 2;
  index_t const n = a.shape()[leading.rank], m = b.shape()[others.rank], depth = b.shape()[others.rank + 1];
  leading = op::broadcast_shapes("cdist", leading, others, nullptr);
  auto const with = [&](index_t rows, index_t columns) {
    Shape s = leading;
    s.push_back(rows), s.push_back(columns);
    return s;
  };
  V const from = broadcast_to(a, with(n, depth)), to = broadcast_to(b, with(m, depth));
  V const y(Meta{a.dtype(), with(n, m)});
  for_point_lists(
      [&](auto* distances, auto const* first, auto const* second) {
        kernels::distances(p, points_at(first, from), n, points_at(second, to), m, depth, distances);
      },
      y, from, to);
  if (!on_tape(a, b)) return y;
  return p == 2 ? ruled<DistanceRule<2>>(y, from, to) : ruled<DistanceRule<1>>(y, from, to);
}

}  // namespace detail

}  // namespace dfdx
