// SPDX-License-Identifier: BSL-1.0
// Functions whose result has a shape that only the elements tell: nonzero, masked_select, unique. They need values in
// memory; compiled programs, whose shapes are known before they run, cannot have them.
#pragma once

#include <algorithm>

#include <dfdx/ops/order.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/vocabulary/index.hpp>

namespace dfdx {

namespace detail {

// The value that looks at the elements of x; refuses what is being recorded.
template <class X>
Array const& with_elements(char const* name, X const& x) {
  static_assert(std::is_base_of_v<Array, X>, "a value in memory required");
  if (x.recorded()) raise(name, ": the shape of the result depends on elements, which a program cannot know");
  return x;
}

// Positions in the flattened value of what is not 0.
template <std::size_t Lazy = 0>
Array flat_nonzero(Array const& x) {
  Array const hits = packed(cast_to(lazy<Lazy>(here(x)), DType::boolean));
  bool const* const hit = hits.data<bool>();
  index_t const n = std::count(hit, hit + hits.size(), true);
  Array r(Meta{DType::i64, make_shape(n)});
  // Each position is written where the next hit goes, and stays if it is one: no branch asks, which would be guessed
  // wrong half of the time.
  auto *to = r.data<std::int64_t>(), *const end = to + n;
  for (index_t i = 0; to != end; ++i) {
    *to = i;
    to += hit[i] ? 1 : 0;
  }
  return r;
}

}  // namespace detail

/// nonzero(x) - the positions of the elements that are not 0, in row-major order: a row of indices for each.
///
/// Shapes    x: [S...] -> [number, rank], i64
/// Dtypes    any; the result i64
/// Errors    "nonzero: the shape of the result depends on elements, which a program cannot know"
/// Source    PyTorch's nonzero
template <class X>
  requires std::is_base_of_v<Array, X>
Array nonzero(X const& x) {
  Array const flat = detail::flat_nonzero(detail::with_elements("nonzero", x));
  index_t const n = flat.size();
  int const rank = x.ndim();
  Array r(Meta{DType::i64, make_shape(n, rank)});
  auto* to = r.data<std::int64_t>();
  index_t place[max_rank] = {}, before = 0;
  for (index_t i = 0; i < n; ++i, to += rank) {
    index_t on =
        flat.data<std::int64_t>()[i] - before;  // from the one before, along the last axis and beyond
    before += on;
    for (int axis = rank - 1; axis >= 0; --axis) {
      index_t const extent = x.shape()[axis];
      place[axis] += on;
      on = 0;
      if (place[axis] >= extent) on = place[axis] / extent, place[axis] %= extent;
    }
    std::copy_n(place, rank, to);
  }
  return detail::beside(x, r);
}

/// masked_select(x, mask) - the elements of x where the mask is not 0, as a list; both broadcast.
///
/// Shapes    x, mask: broadcast against one another -> [number]
/// Dtypes    any
/// Errors    "masked_select: shapes do not broadcast: [2, 3] x [4]"
/// Source    PyTorch's masked_select
template <class X, class M>
  requires(std::is_base_of_v<Array, X> && std::is_base_of_v<Array, M>)
Array masked_select(X const& x, M const& mask) {
  Array const& m = detail::with_elements("masked_select", mask);
  Text why;
  Shape const shape = op::broadcast_shapes("masked_select", x.shape(), m.shape(), &why);
  if (!shape.valid()) raise(why);
  Array const where =
      detail::beside(x, detail::flat_nonzero(broadcast_to(detail::lazy<sizeof(M)>(m), shape)));
  return gather<0>(reshape_to(broadcast_to(detail::lazy<sizeof(X)>(x), shape), make_shape(-1)), where);
}

/// masked_rows(x, mask) - x[mask]: the parts of x at the places of the mask's axes, which are the first of x.
///
/// Shapes    x: [I..., R...], mask: [I...] -> [number, R...]
/// Dtypes    any
/// Errors    "masked_rows: mask [3] does not fit [2, 3]"
/// Source    NumPy's x[mask]
template <class X, class M>
  requires(std::is_base_of_v<Array, X> && std::is_base_of_v<Array, M>)
Array masked_rows(X const& x, M const& mask) {
  Array const& m = detail::with_elements("masked_rows", mask);
  Shape const& s = x.shape();
  bool fits = m.ndim() > 0 && m.ndim() <= s.rank;
  for (int i = 0; fits && i < m.ndim(); ++i) fits = s[i] == m.shape()[i];
  if (!fits) raise("masked_rows: mask ", m.shape(), " does not fit ", s);
  Shape rows = make_shape(m.size());
  for (int i = m.ndim(); i < s.rank; ++i) rows.push_back(s[i]);
  return take(reshape_to(detail::untyped(x), rows), detail::beside(x, detail::flat_nonzero(m)));
}

/// Unique - the different elements of a value in ascending order; where among them each element is, in the value's
/// shape; how often each occurs.
struct Unique {
  Array values, inverse, counts;
};

/// unique(x) - the different elements of x in ascending order, NaN (each of them) at the end. unique_all(x) - and where
/// each element is among them, and how many there are of each, as PyTorch's return_inverse and return_counts.
///
/// Shapes    x: [S...] -> values: [number], inverse: [S...], counts: [number]
/// Dtypes    any; inverse and counts i64
/// Errors    "unique: the shape of the result depends on elements, which a program cannot know"
/// Source    PyTorch's unique
template <class X>
  requires std::is_base_of_v<Array, X>
Unique unique_all(X const& x) {
  Array const flat =
      reshape_to(detail::packed(detail::here(detail::with_elements("unique", x))), make_shape(x.size()));
  Array const order = bind<op::argsort>(Attrs{{0}}, detail::lazy<sizeof(X)>(flat));
  index_t const size = flat.size();
  Unique r{{}, Array(Meta{DType::i64, x.shape()}), {}};
  Array kept(Meta{DType::i64, make_shape(size)}), first(Meta{DType::i64, make_shape(size)});
  auto const* const from = order.data<std::int64_t>();
  auto *const places = r.inverse.template data<std::int64_t>(), *const begins = first.data<std::int64_t>();
  index_t n = 0;
  dispatch(flat.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto const* v = flat.data<T>();
    auto const value = [&](index_t i) { return static_cast<compute_t<T>>(v[from[i]]); };
    for (index_t i = 0; i < size; ++i) {
      if (i == 0 || !(value(i) == value(i - 1))) {
        kept.data<std::int64_t>()[n] = from[i];
        begins[n++] = i;
      }
      places[from[i]] = n - 1;
    }
  });
  r.values = bind<op::take>(Attrs{}, detail::lazy<sizeof(X)>(flat),
                            slice_axis(detail::lazy<sizeof(X)>(kept), 0, 0, n));
  r.counts = Array(Meta{DType::i64, make_shape(n)});
  for (index_t k = 0; k < n; ++k)
    r.counts.data<std::int64_t>()[k] = (k + 1 < n ? begins[k + 1] : size) - begins[k];
  for (Array* made : {&r.values, &r.inverse, &r.counts}) *made = detail::beside(x, *made);
  return r;
}
template <class X>
  requires std::is_base_of_v<Array, X>
Array unique(X const& x) {
  return unique_all(x).values;
}

}  // namespace dfdx
