// SPDX-License-Identifier: BSL-1.0
// a[i]: the array at a position of the first axis.
#pragma once

#include <dfdx/vocabulary/shape.hpp>

namespace dfdx {

namespace detail {

// x[i] on the tape: one node, and a gradient that is added to one place.
template <class V>
V vjp_of_at(V const& ct, Site<V> const& s, int) {
  index_t const i = s.attrs.i[0], n = s.x[0].shape()[0];
  Shape one = make_shape(1);
  for (int a = 0; a < ct.shape().rank; ++a) one.push_back(ct.shape()[a]);
  return pad_axis(reshape_to(ct, one), 0, i, n - 1 - i);
}
inline Array part_at(Attrs const& a, Meta const&, Array const& whole) { return whole.part(a.i[0]); }
inline unsigned reads_of_at(int) { return 0; }
template <class V>
inline constinit TapeRule const at_rule{"at", 1, &vjp_of_at<V>, nullptr, &reads_of_at, &part_at};

template <class V>
constexpr V at_position(V const& x, index_t i) {
  if constexpr (std::is_same_v<V, Array>)
    if (!x.recorded()) {
      Array y = x.part(i);
      Array const* const operands[] = {&x};
      if (on_tape(x)) record_on_tape(at_rule<V>, Attrs{{i}}, y, operands, 1);
      return y;
    }
  Shape rest;
  for (int a = 1; a < x.shape().rank; ++a) rest.push_back(x.shape()[a]);
  return bind_as<op::reshape>(Meta{x.dtype(), rest}, Attrs{}, slice_axis(x, 0, i, 1));
}

}  // namespace detail

/// select_first - the array at position i of the first axis, from the end if negative. No copy.
template <class V>
constexpr V select_first(V const& x, index_t i) {
  Shape const s = x.shape();
  index_t const at = s.rank > 0 && i < 0 && s[0] >= 0 ? i + s[0] : i;
  if (s.rank == 0) raise("at: a scalar has no axes, so no index ", Position{i});
  if (at < 0 || (s[0] >= 0 && at >= s[0]))
    raise("at: index ", Position{i}, " out of range for axis 0 of ", s);
  return detail::at_position(x, at);
}

template <int>
constexpr Array Array::operator[](index_t i) const {
  return select_first(*this, i);
}

}  // namespace dfdx
