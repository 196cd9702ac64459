// SPDX-License-Identifier: BSL-1.0
// Derivatives of images at places that a grid gives (ops/grid_sample.hpp). The first ones are ops; what is left of
// forward mode and of higher orders is made of the elements of images, which are gathered, and of their weights.
#pragma once

#include <dfdx/kernels/convert.hpp>
#include <dfdx/kernels/grid.hpp>
#include <dfdx/ops/grid_sample.hpp>
#include <dfdx/ops/rounding.hpp>
#include <dfdx/vocabulary/index.hpp>
#include <dfdx/vocabulary/join.hpp>

namespace dfdx {

namespace detail {

/// GridTerm - an element along an axis that places are made of: its place, and its weight with two derivatives.
template <class V>
struct GridTerm {
  V at, weight[3];
};

/// GridRules - images x: [N, C, Y X] at places [N, 1, P], in f32 at least.
template <class V>
class GridRules {
 public:
  GridSampleOptions o;
  Shape x, grid;
  DType dtype;

  constexpr GridRules(Attrs const& a, Shape const& of_x, Shape const& of_grid, DType d)
      : o(op::detail::grid_options(a.i[0])),
        x(of_x),
        grid(of_grid),
        dtype(d == DType::f64 ? d : DType::f32) {}

  /// How sampled images change with the grid: J t.
  constexpr V pushed(V const& images, V const& places, V const& t) const {
    V const image = flat(images);
    Sum total;
    for_terms(places, [&](GridTerm<V> const& r, GridTerm<V> const& c, V const& slope_r, V const& slope_c) {
      V const part = gathered(image, r, c, moved(r, c, slope_r, slope_c, t));
      total.add(part);
    });
    return finished(total.value, make_shape(x[0], x[1], grid[1], grid[2]), images);
  }
  /// Its transpose with respect to images, of a cotangent of what is sampled.
  constexpr V pulled(V const& ct, V const& places, V const& t) const {
    Sum total;
    for_terms(places, [&](GridTerm<V> const& r, GridTerm<V> const& c, V const& slope_r, V const& slope_c) {
      V const weight = moved(r, c, slope_r, slope_c, t);
      V const terms = by_place(ct) * where(inside(r, c), weight, 0.0);
      V const part = bind_as<op::scatter>(Meta{dtype, make_shape(x[0], x[1], x[2] * x[3])}, Attrs{{2}}, terms,
                                          from(r, c));
      total.add(part);
    });
    return finished(total.value, x, ct);
  }
  /// How the gradient with respect to the grid changes with it.
  constexpr V curved(V const& images, V const& places, V const& ct, V const& t) const {
    V const image = flat(images);
    Sum rows, columns;
    for_terms(places, [&](GridTerm<V> const& r, GridTerm<V> const& c, V const& slope_r, V const& slope_c) {
      V const all =
          reduce<op::sum>(gathered(image, r, c, full_as(r.at, r.at.meta(), 1)) * by_place(ct), Over{1, true});
      V const both = r.weight[1] * c.weight[1] * slope_r * slope_c;
      V const row =
          all * (r.weight[2] * c.weight[0] * slope_r * slope_r * part_of(t, 1) + both * part_of(t, 0));
      V const column =
          all * (r.weight[0] * c.weight[2] * slope_c * slope_c * part_of(t, 0) + both * part_of(t, 1));
      rows.add(row);
      columns.add(column);
    });
    Shape const one = make_shape(grid[0], grid[1], grid[2], 1);
    return rounded_as(
        bind<op::concat>(Attrs{{3}}, reshape_to(columns.value, one), reshape_to(rows.value, one)), places);
  }

 private:
  struct Sum {
    V value{};
    bool any = false;
    constexpr void add(V const& part) {
      value = any ? value + part : part;
      any = true;
    }
  };
  constexpr index_t places() const { return extent::mul(grid[1], grid[2]); }
  constexpr V flat(V const& images) const {
    return reshape_to(cast_to(images, dtype), make_shape(x[0], x[1], x[2] * x[3]));
  }
  constexpr V by_place(V const& y) const {
    return reshape_to(cast_to(y, dtype), make_shape(x[0], x[1], places()));
  }
  // Coordinates of places, 0 the column.
  constexpr V part_of(V const& grid_like, int which) const {
    return reshape_to(cast_to(slice_axis(grid_like, 3, which, 1), dtype), make_shape(grid[0], 1, places()));
  }
  static constexpr V finished(V const& r, Shape const& shape, V const& like) {
    return rounded_as(reshape_to(r, shape), like);
  }
  constexpr V inside(GridTerm<V> const& r, GridTerm<V> const& c) const {
    auto const within = [](V const& at, index_t n) {
      return apply<op::logical_and>(at >= 0.0, at <= static_cast<double>(n - 1));
    };
    return apply<op::logical_and>(within(r.at, x[2]), within(c.at, x[3]));
  }
  constexpr V from(GridTerm<V> const& r, GridTerm<V> const& c) const {
    V const is = inside(r, c);
    auto const index = [&](V const& at) { return cast_to(where(is, at, 0.0), DType::i64); };
    return broadcast_to(index(r.at) * x[3] + index(c.at), make_shape(x[0], x[1], places()));
  }
  // Elements times a weight; 0 where there are none.
  constexpr V gathered(V const& image, GridTerm<V> const& r, GridTerm<V> const& c, V const& weight) const {
    return bind<op::gather>(Attrs{{2}}, image, from(r, c)) * where(inside(r, c), weight, 0.0);
  }
  // How the weight of an element changes where the grid changes by t.
  constexpr V moved(GridTerm<V> const& r, GridTerm<V> const& c, V const& slope_r, V const& slope_c,
                    V const& t) const {
    return r.weight[1] * c.weight[0] * slope_r * part_of(t, 1) +
           r.weight[0] * c.weight[1] * slope_c * part_of(t, 0);
  }

  // f(term of a row, of a column, slopes of both) for all that a place is made of.
  template <class F>
  constexpr void for_terms(V const& places_at, F const& f) const {
    int const n = op::detail::grid_terms(o.mode);
    Point const row = point(part_of(places_at, 1), x[2]), column = point(part_of(places_at, 0), x[3]);
    for (int r = 0; r < n; ++r)
      for (int c = 0; c < n; ++c) f(term(row, r, x[2]), term(column, c, x[3]), row.slope, column.slope);
  }
  struct Point {
    V at, slope;
  };
  constexpr double scale(index_t n) const { return static_cast<double>(o.align_corners ? n - 1 : n) / 2; }
  // Where a place is on an axis of n elements: as op::detail::GridAxis has it.
  constexpr Point point(V const& u, index_t n) const {
    V const at = (u + 1.0) * scale(n) - (o.align_corners ? 0.0 : 0.5);
    Point const p{at, full_as(at, at.meta(), scale(n))};
    return o.mode == GridMode::bicubic ? p : padded(p, n);
  }
  constexpr Point padded(Point const& p, index_t n) const {
    auto const last = static_cast<double>(n - 1);
    auto const clipped = [&](Point const& q) {
      V const low = q.at > 0.0, high = q.at < last;
      return Point{where(low, where(high, q.at, last), 0.0),
                   where(apply<op::logical_and>(low, high), q.slope, 0.0)};
    };
    if (o.padding_mode == GridPadding::zeros) return p;
    double const low = o.align_corners ? 0 : -0.5, span = 2 * scale(n);
    if (o.padding_mode == GridPadding::border || span == 0) return clipped(p);
    V const distance_from = p.at - low, before = distance_from < 0.0;
    V const distance = where(before, -distance_from, distance_from);
    V const turns = apply<op::floor>(distance * (1 / span)), rest = distance - turns * span;
    V const half = turns * 0.5, is_even = apply<op::floor>(half) == half;
    return clipped({where(is_even, rest, span - rest) + low, where(before == is_even, -p.slope, p.slope)});
  }
  constexpr GridTerm<V> term(Point const& p, int k, index_t n) const {
    V const first = apply<op::floor>(p.at), t = p.at - first;
    V const one = full_as(t, t.meta(), 1), zero = full_as(t, t.meta(), 0);
    if (o.mode == GridMode::bilinear)
      return k == 0 ? GridTerm<V>{first, {1.0 - t, -one, zero}} : GridTerm<V>{first + 1.0, {t, one, zero}};
    // Of the cubic, element k - 1 counts t behind element 0.
    constexpr double a = -0.75;
    V const d = k == 0 ? t + 1.0 : k == 1 ? t : k == 2 ? 1.0 - t : 2.0 - t;
    double const sign = k < 2 ? 1 : -1;
    V const at = padded({first + (k - 1.0), one}, n).at;
    if (k == 1 || k == 2)
      return {at,
              {(d * (a + 2) - (a + 3)) * d * d + 1.0, (d * (3 * (a + 2)) - 2 * (a + 3)) * d * sign,
               d * (6 * (a + 2)) - 2 * (a + 3)}};
    return {at,
            {((d * a - 5 * a) * d + 8 * a) * d - 4 * a, ((d * (3 * a) - 10 * a) * d + 8 * a) * sign,
             d * (6 * a) - 10 * a}};
  }
};

}  // namespace detail

namespace op::detail {

// On dense numbers of T: others are brought there, and back.
template <class Op, class T>
void run_grid_as(kernels::GridImages const& g, Operand const* in, Operand const& out) {
  Array dense[Op::arity + 1];
  T* at[Op::arity + 1];
  for (int k = 0; k <= Op::arity; ++k) {
    Operand const& x = k < Op::arity ? in[k] : out;
    at[k] = static_cast<T*>(x.data);
    if (x.meta.dtype == dtype_v<T> && is_contiguous(x.meta.shape, x.strides)) continue;
    dense[k] = Array(Meta{dtype_v<T>, x.meta.shape});
    at[k] = reinterpret_cast<T*>(dense[k].bytes());
    if (k < Op::arity) kernels::convert(x, dense[k].operand());
  }
  T* const y = at[Op::arity];
  if constexpr (std::is_same_v<Op, grid_sample>) {
    kernels::grid_sample(g, at[0], at[1], y);
  } else {
    std::fill_n(y, out.meta.shape.numel(), T(0));
    if constexpr (std::is_same_v<Op, grid_sample_images>) kernels::grid_sample_images(g, at[0], at[1], y);
    else kernels::grid_sample_places(g, at[0], at[1], at[2], y);
  }
  if (!dense[Op::arity].empty()) kernels::convert(dense[Op::arity].operand(), out);
}
template <class Op>
void run_grid(Attrs const& a, Operand const* in, Operand const& out) {
  if (out.meta.shape.numel() == 0) return;
  Shape const& x = std::is_same_v<Op, grid_sample_images> ? out.meta.shape : in[0].meta.shape;
  kernels::GridImages const g(a.i[0], x, in[1].meta.shape);
  if (out.meta.dtype != DType::f64 && g.fits_floats()) run_grid_as<Op, float>(g, in, out);
  else run_grid_as<Op, double>(g, in, out);
}

// Of y = sample(x, grid), with <ct, y> linear in x and in ct: each is the transpose of another, or moves with the grid.
template <class Op, int I, class V>
constexpr V grid_vjp(V const& ct, Site<V> const& s) {
  constexpr bool of_images = std::is_same_v<Op, grid_sample_images>;
  using Rules = dfdx::detail::GridRules<V>;
  if constexpr (std::is_same_v<Op, grid_sample_places>) {
    if (grid_options(s.attrs.i[0]).mode == GridMode::nearest) return V{};
    Rules const rules(s.attrs, s.x[0].shape(), s.x[1].shape(), ct.dtype());
    if constexpr (I == 0) return rules.pulled(s.x[2], s.x[1], ct);
    else if constexpr (I == 1) return rules.curved(s.x[0], s.x[1], s.x[2], ct);
    else return rules.pushed(s.x[0], s.x[1], ct);
  } else if constexpr (I == 0) {
    if constexpr (of_images) return bind_as<grid_sample>(s.x[0].meta(), s.attrs, ct, s.x[1]);
    else return bind_as<grid_sample_images>(s.x[0].meta(), s.attrs, ct, s.x[1]);
  } else {
    if (grid_options(s.attrs.i[0]).mode == GridMode::nearest) return V{};
    if constexpr (of_images) return bind<grid_sample_places>(s.attrs, ct, s.x[1], s.x[0]);
    else return bind<grid_sample_places>(s.attrs, s.x[0], s.x[1], ct);
  }
}
template <class Op, int I, class V>
constexpr V grid_jvp(V const& t, Site<V> const& s) {
  using Rules = dfdx::detail::GridRules<V>;
  if constexpr (I == 1) {
    if (grid_options(s.attrs.i[0]).mode == GridMode::nearest) return V{};
    if constexpr (std::is_same_v<Op, grid_sample>)
      return Rules(s.attrs, s.x[0].shape(), s.x[1].shape(), t.dtype()).pushed(s.x[0], s.x[1], t);
    else if constexpr (std::is_same_v<Op, grid_sample_images>)
      return Rules(s.attrs, s.y.shape(), s.x[1].shape(), t.dtype()).pulled(s.x[0], s.x[1], t);
    else return Rules(s.attrs, s.x[0].shape(), s.x[1].shape(), t.dtype()).curved(s.x[0], s.x[1], s.x[2], t);
  } else if constexpr (std::is_same_v<Op, grid_sample_places>) {
    if constexpr (I == 0) return bind<grid_sample_places>(s.attrs, t, s.x[1], s.x[2]);
    else return bind<grid_sample_places>(s.attrs, s.x[0], s.x[1], t);
  } else {
    return bind_as<Op>(s.y.meta(), s.attrs, t, s.x[1]);
  }
}

}  // namespace op::detail

}  // namespace dfdx
