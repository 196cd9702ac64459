// SPDX-License-Identifier: BSL-1.0
// Every op that is not elementwise: a record says in which cases it is tried, what it is called with and what plain
// loops in double make of that. An op of the library without a record does not compile here.
#include "ops/places.hpp"

#include <array>
#include <numeric>

namespace tests::ops_primitives {

namespace {

using namespace suite;

/// Case - one use of an op: its operands in f64 (those that count places in i64), and its value by plain loops.
struct Case {
  Function f;
  std::function<Array(V)> reference;
  std::vector<Array> x;
};
using Cases = std::vector<Case>;

/// Record - specialised for every op that is not elementwise.
template <class Op>
struct Record;

struct RecordBase {
  static constexpr bool integers = true;  // also for integer dtypes
  static constexpr bool twice = true;     // has second derivatives worth testing
  static constexpr bool rules = true;     // has derivatives
  static constexpr bool nothing = true;   // takes operands without elements
};
struct Analytic : RecordBase {
  static constexpr bool integers = false;
};
struct Counting : RecordBase {
  static constexpr bool rules = false;
};

Array places(std::initializer_list<std::int64_t> v, Extents const& shape) {
  return from<std::int64_t>(v, shape);
}
index_t place_at(Array const& x, index_t const* i) { return static_cast<index_t>(value_at(x, i)); }

// A value whose elements are those of operand 0 at the places that `from` gives.
template <class From>
std::function<Array(V)> moved(Shape const& to, From const& from) {
  return [=](V v) {
    Array r = doubles(to);
    for_indices(to, [&](index_t const* i) {
      index_t at_x[max_rank] = {};
      std::copy_n(i, to.rank, at_x);
      from(i, at_x);
      cell(r, i) = value_at(v[0], at_x);
    });
    return r;
  };
}

template <class Op>
Array bound(Attrs const& a, V v) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) {
    return bind<Op>(a, v[K]...);
  }(std::make_index_sequence<Op::arity>{});
}
template <class Op>
Array bound_as(Shape const& to, Attrs const& a, V v) {
  Meta const m{v[0].dtype(), to};
  if constexpr (Op::arity == 1) return bind_as<Op>(m, a, v[0]);
  else return bind_as<Op>(m, a, v[0], v[1]);
}

// --- reductions ---------------------------------------------------------------------------------------------------

template <class Op>
Cases reductions(double identity, double (*join)(double, double), bool of_nothing) {
  Cases r;
  for (Shape const& s : {make_shape(), make_shape(1), make_shape(7), make_shape(3, 5), make_shape(2, 3, 4),
                         make_shape(4, 1), make_shape(2, 1, 3, 2), make_shape(0), make_shape(3, 0, 2)})
    for (index_t mask = 0; mask < (index_t{1} << s.rank); ++mask)
      for (bool keep : {false, true}) {
        if (!of_nothing && s.numel() == 0 && op::reduced_shape(s, mask).numel() != 0) continue;
        r.push_back({[=](V v) { return dfdx::detail::reduce_mask<Op, void>(v[0], mask, keep); },
                     [=](V v) { return reduced(v[0], mask, keep, identity, join); },
                     {draw(s, {-2, 2}, static_cast<std::uint64_t>(11 + s.numel()), DType::f64)}});
      }
  return r;
}
template <>
struct Record<op::sum> : RecordBase {
  static Cases cases() {
    return reductions<op::sum>(0, [](double a, double b) { return a + b; }, true);
  }
};
template <>
struct Record<op::prod> : RecordBase {
  static Cases cases() {
    return reductions<op::prod>(1, [](double a, double b) { return a * b; }, true);
  }
};
template <>
struct Record<op::max> : RecordBase {
  static constexpr bool twice = false;
  static Cases cases() {
    return reductions<op::max>(-HUGE_VAL, [](double a, double b) { return a > b ? a : b; }, false);
  }
};
template <>
struct Record<op::min> : RecordBase {
  static constexpr bool twice = false;
  static Cases cases() {
    return reductions<op::min>(HUGE_VAL, [](double a, double b) { return a < b ? a : b; }, false);
  }
};

// --- views, and what lays elements out anew -----------------------------------------------------------------------

template <>
struct Record<op::cast> : RecordBase {
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(), make_shape(1), make_shape(0, 2), make_shape(3, 5)})
      r.push_back({[](V v) { return cast_to(v[0], DType::f64); },
                   moved(s, [](index_t const*, index_t*) {}),
                   {draw(s, {}, 1, DType::f64)}});
    return r;
  }
};
template <>
struct Record<op::reshape> : RecordBase {
  static Cases cases() {
    struct Pair {
      Shape from, to;
    };
    Cases r;
    for (Pair const& p : {Pair{make_shape(2, 3, 4), make_shape(6, 4)}, Pair{make_shape(1), make_shape()},
                          Pair{make_shape(), make_shape(1, 1)}, Pair{make_shape(0, 3), make_shape(3, 0, 2)},
                          Pair{make_shape(6), make_shape(3, 1, 2)}})
      r.push_back({[=](V v) { return bound_as<op::reshape>(p.to, {}, v); },
                   [=](V v) {
                     Array y = doubles(p.to);
                     index_t n = 0;
                     for_indices(p.from,
                                 [&](index_t const* i) { y.data<double>()[n++] = value_at(v[0], i); });
                     return y;
                   },
                   {draw(p.from, {}, 2, DType::f64)}});
    return r;
  }
};
template <>
struct Record<op::permute> : RecordBase {
  static Case of(std::vector<int> axes, Shape const& from) {
    Shape to = from;
    for (std::size_t i = 0; i < axes.size(); ++i) to[static_cast<int>(i)] = from[axes[i]];
    index_t const packed = op::pack_axes(axes.data(), from.rank);
    return {[=](V v) { return bound<op::permute>(Attrs{{packed}}, v); },
            moved(to,
                  [=](index_t const* i, index_t* j) {
                    for (std::size_t a = 0; a < axes.size(); ++a) j[axes[a]] = i[a];
                  }),
            {draw(from, {}, 3, DType::f64)}};
  }
  static Cases cases() {
    return {of({2, 0, 1}, make_shape(2, 3, 4)), of({1, 0}, make_shape(1, 1)), of({1, 0}, make_shape(3, 0)),
            of({0}, make_shape(5)), of({}, make_shape())};
  }
};
template <>
struct Record<op::expand> : RecordBase {
  static Case of(Shape const& from, Shape const& to) {
    return {[=](V v) { return bound_as<op::expand>(to, {}, v); },
            moved(to,
                  [=](index_t const*, index_t* j) {
                    for (int a = 0; a < from.rank; ++a)
                      if (from[a] == 1) j[a] = 0;
                  }),
            {draw(from, {}, 4, DType::f64)}};
  }
  static Cases cases() {
    return {of(make_shape(1, 2, 1), make_shape(3, 2, 4)), of(make_shape(1), make_shape(5)),
            of(make_shape(1, 3), make_shape(0, 3)), of(make_shape(0, 1), make_shape(0, 4)),
            of(make_shape(), make_shape())};
  }
};
template <>
struct Record<op::slice> : RecordBase {
  static Case of(Shape const& from, int axis, index_t start, index_t count, index_t step) {
    Shape to = from;
    to[axis] = count;
    return {[=](V v) { return bound<op::slice>(Attrs{{axis + 16 * step, start, count}}, v); },
            moved(to, [=](index_t const* i, index_t* j) { j[axis] = start + step * i[axis]; }),
            {draw(from, {}, 5, DType::f64)}};
  }
  static Cases cases() {
    return {of(make_shape(2, 5, 3), 1, 1, 2, 2), of(make_shape(2, 5, 3), 0, 1, 1, 1),
            of(make_shape(7), 0, 2, 0, 1), of(make_shape(0, 3), 1, 1, 2, 1), of(make_shape(1), 0, 0, 1, 3)};
  }
};
template <>
struct Record<op::windows> : RecordBase {
  static Case of(Shape const& from, int axis, index_t size, index_t step) {
    Shape to = from;
    to[axis] = (from[axis] - size) / step + 1;
    to.push_back(size);
    return {[=](V v) { return bound<op::windows>(Attrs{{axis, size, step}}, v); },
            moved(to,
                  [=](index_t const* i, index_t* j) {
                    std::copy_n(i, from.rank, j);
                    j[axis] = step * i[axis] + i[from.rank];
                  }),
            {draw(from, {}, 5, DType::f64)}};
  }
  static Cases cases() {
    return {of(make_shape(2, 7, 3), 1, 4, 2), of(make_shape(2, 7, 3), 1, 3, 2), of(make_shape(7), 0, 2, 3),
            of(make_shape(2, 13), 1, 11, 1),  of(make_shape(2, 13), 1, 5, 9),   of(make_shape(5), 0, 0, 2),
            of(make_shape(0, 4), 1, 2, 2),    of(make_shape(3, 20), 1, 9, 1),   of(make_shape(1), 0, 1, 1)};
  }
};
template <>
struct Record<op::pad> : RecordBase {
  static Case of(Shape const& from, int axis, index_t before, index_t after, index_t gap, double with) {
    Shape to = from;
    to[axis] = before + from[axis] + (from[axis] > 0 ? gap * (from[axis] - 1) : 0) + after;
    return {[=](V v) { return bound<op::pad>(Attrs{{axis + 16 * gap, before, after}, {with}}, v); },
            [=](V v) {
              Array const y = full(to, with, DType::f64);
              for_indices(from, [&](index_t const* i) {
                index_t at_y[max_rank] = {};
                std::copy_n(i, from.rank, at_y);
                at_y[axis] = before + (gap + 1) * i[axis];
                cell(y, at_y) = value_at(v[0], i);
              });
              return y;
            },
            {draw(from, {}, 6, DType::f64)}};
  }
  static Cases cases() {
    return {of(make_shape(2, 3), 1, 2, 1, 0, 7), of(make_shape(2, 3), 0, 1, 0, 2, 0),
            of(make_shape(0), 0, 1, 2, 3, 5), of(make_shape(3, 0), 0, 1, 0, 0, 1),
            of(make_shape(1), 0, 0, 0, 4, 1)};
  }
};
template <>
struct Record<op::concat> : RecordBase {
  static Case of(Shape const& a, Shape const& b, int axis) {
    Shape to = a;
    to[axis] += b[axis];
    return {[=](V v) { return bound<op::concat>(Attrs{{axis}}, v); },
            [=](V v) {
              Array const y = doubles(to);
              for_indices(to, [&](index_t const* i) {
                index_t j[max_rank] = {};
                std::copy_n(i, to.rank, j);
                bool const first = i[axis] < a[axis];
                if (!first) j[axis] -= a[axis];
                cell(y, i) = value_at(v[first ? 0 : 1], j);
              });
              return y;
            },
            {draw(a, {}, 7, DType::f64), draw(b, {}, 8, DType::f64)}};
  }
  static Cases cases() {
    return {of(make_shape(2, 3), make_shape(2, 4), 1), of(make_shape(2, 3), make_shape(1, 3), 0),
            of(make_shape(0), make_shape(1), 0), of(make_shape(2, 0), make_shape(2, 0), 1)};
  }
};
template <>
struct Record<op::flip> : RecordBase {
  static Case of(Shape const& s, index_t mask) {
    return {[=](V v) { return bound<op::flip>(Attrs{{mask}}, v); },
            moved(s,
                  [=](index_t const* i, index_t* j) {
                    for (int a = 0; a < s.rank; ++a) j[a] = (mask >> a & 1) != 0 ? s[a] - 1 - i[a] : i[a];
                  }),
            {draw(s, {}, 9, DType::f64)}};
  }
  static Cases cases() {
    return {of(make_shape(2, 3, 4), 5), of(make_shape(5), 1),    of(make_shape(3, 0), 3),
            of(make_shape(1), 1),       of(make_shape(2, 3), 0), of(make_shape(), 0)};
  }
};

// --- products and convolutions ------------------------------------------------------------------------------------

template <>
struct Record<op::matmul> : RecordBase {
  static Case of(Shape const& batch, index_t m, index_t k, index_t n) {
    auto const matrices = [&](index_t rows, index_t columns) {
      Shape s = batch;
      s.push_back(rows), s.push_back(columns);
      return s;
    };
    int const r = batch.rank;
    Shape const to = matrices(m, n);
    return {[](V v) { return bound<op::matmul>({}, v); },
            [=](V v) {
              Array const y = doubles(to);
              for_indices(to, [&](index_t const* i) {
                index_t a[max_rank] = {}, b[max_rank] = {};
                std::copy_n(i, r + 1, a);
                std::copy_n(i, r + 2, b);
                for (index_t l = 0; l < k; ++l) {
                  a[r + 1] = b[r] = l;
                  cell(y, i) += value_at(v[0], a) * value_at(v[1], b);
                }
              });
              return y;
            },
            {draw(matrices(m, k), {}, 1, DType::f64), draw(matrices(k, n), {}, 2, DType::f64)}};
  }
  static Cases cases() {
    return {of({}, 3, 5, 2),
            of({}, 1, 1, 1),
            of({}, 1, 7, 1),
            of({}, 3, 0, 2),
            of({}, 0, 3, 2),
            of({}, 2, 3, 0),
            of(make_shape(4), 3, 5, 2),
            of(make_shape(2, 1), 1, 2, 3),
            of(make_shape(0), 2, 3, 2)};
  }
};

// The sum of x[n, c, s p + d k - b] w[o, c, k] y[n, o, p], solved for the operand that `result` names.
struct Convolved {
  Shape x, w, y;
  std::vector<Window> windows;  // of axis 2 and following
  Array of(int result, Array const& u, Array const& v) const {
    Array const r = doubles(result == 0 ? x : result == 1 ? w : y);
    index_t const outs = w[0] / (w[1] == 0 ? 1 : x[1] / w[1]);
    for_indices(y, [&](index_t const* p) {
      for_indices(w, [&](index_t const* k) {
        if (k[0] != p[1]) return;
        index_t i[max_rank] = {p[0], k[0] / outs * w[1] + k[1]};
        for (int a = 2; a < x.rank; ++a) {
          Window const& s = windows[static_cast<std::size_t>(a - 2)];
          i[a] = s.stride * p[a] + s.dilation * k[a] - s.before;
          if (i[a] < 0 || i[a] >= x[a]) return;
        }
        if (result == 0) cell(r, i) += value_at(u, p) * value_at(v, k);
        if (result == 1) cell(r, k) += value_at(u, i) * value_at(v, p);
        if (result == 2) cell(r, p) += value_at(u, i) * value_at(v, k);
      });
    });
    return r;
  }
};
template <class Op, int Result>
Cases convolutions() {
  std::vector<Convolved> const all = {
      {make_shape(2, 2, 6), make_shape(3, 2, 3), make_shape(2, 3, 3), {{3, 2, 1, 1}}},
      {make_shape(1, 4, 4, 5), make_shape(4, 2, 2, 3), make_shape(1, 4, 3, 2), {{2, 1, 1, 0}, {3, 2, 2, 1}}},
      {make_shape(1, 1, 1), make_shape(1, 1, 1), make_shape(1, 1, 1), {{1, 1, 1, 0}}},
      {make_shape(0, 2, 3), make_shape(1, 2, 2), make_shape(0, 1, 2), {{2, 1, 1, 0}}},
      {make_shape(1, 1, 3, 2, 2),
       make_shape(2, 1, 2, 1, 2),
       make_shape(1, 2, 2, 2, 1),
       {{2, 1, 1, 0}, {1, 1, 1, 0}, {2, 1, 1, 0}}},
  };
  Cases r;
  for (Convolved const& c : all) {
    Attrs a;
    for (std::size_t i = 0; i < c.windows.size(); ++i) a.i[i] = c.windows[i].packed();
    Shape const operands[] = {Result == 0 ? c.y : c.x, Result == 1 ? c.y : c.w};
    Shape const to = Result == 0 ? c.x : Result == 1 ? c.w : c.y;
    r.push_back({[=](V v) { return bound_as<Op>(to, a, v); },
                 [=](V v) { return c.of(Result, v[0], v[1]); },
                 {draw(operands[0], {}, 3, DType::f64), draw(operands[1], {}, 4, DType::f64)}});
  }
  return r;
}
template <>
struct Record<op::conv> : RecordBase {
  static Cases cases() { return convolutions<op::conv, 2>(); }
};
template <>
struct Record<op::conv_input> : RecordBase {
  static Cases cases() { return convolutions<op::conv_input, 0>(); }
};
template <>
struct Record<op::conv_weight> : RecordBase {
  static Cases cases() { return convolutions<op::conv_weight, 1>(); }
};

// --- elements at computed places ----------------------------------------------------------------------------------

template <>
struct Record<op::take> : RecordBase {
  static Case of(Shape const& table, Array const& index) {
    int const n = index.ndim();
    Shape to = index.shape();
    for (int a = 1; a < table.rank; ++a) to.push_back(table[a]);
    return {[](V v) { return bound<op::take>({}, v); },
            [=](V v) {
              Array const y = doubles(to);
              for_indices(to, [&](index_t const* i) {
                index_t j[max_rank] = {place_at(v[1], i)};
                for (int a = n; a < to.rank; ++a) j[a - n + 1] = i[a];
                cell(y, i) = value_at(v[0], j);
              });
              return y;
            },
            {draw(table, {}, 1, DType::f64), index}};
  }
  static Cases cases() {
    return {of(make_shape(5, 3), places({4, 0, 4, 2}, {2, 2})), of(make_shape(4), places({3}, {})),
            of(make_shape(1), places({0}, {1})), of(make_shape(3, 2), places({}, {0})),
            of(make_shape(2, 0), places({1}, {1}))};
  }
};
template <>
struct Record<op::rows_add> : RecordBase {
  static Case of(index_t rows, Shape const& rest, Array const& index) {
    int const n = index.ndim();
    Shape from = index.shape(), to = make_shape(rows);
    for (int a = 0; a < rest.rank; ++a) from.push_back(rest[a]), to.push_back(rest[a]);
    return {[=](V v) { return bound<op::rows_add>(Attrs{{rows}}, v); },
            [=](V v) {
              Array const y = doubles(to);
              for_indices(from, [&](index_t const* i) {
                index_t j[max_rank] = {place_at(v[1], i)};
                for (int a = n; a < from.rank; ++a) j[a - n + 1] = i[a];
                cell(y, j) += value_at(v[0], i);
              });
              return y;
            },
            {draw(from, {}, 1, DType::f64), index}};
  }
  static Cases cases() {
    return {of(5, make_shape(3), places({4, 0, 4, 2}, {2, 2})), of(3, {}, places({1}, {})),
            of(1, {}, places({0}, {1})), of(2, make_shape(3), places({}, {0}))};
  }
};

template <>
struct Record<op::check_label> : RecordBase {
  static Case of(index_t classes, Array const& labels) {
    return {[=](V v) { return bound<op::check_label>(Attrs{{classes, -100}}, v); },
            [=](V v) {
              Array const y = doubles(labels.shape());
              for_indices(labels.shape(), [&](index_t const* i) { cell(y, i) = value_at(v[0], i); });
              return y;
            },
            {labels}};
  }
  static Cases cases() {
    return {of(5, places({4, 0, -100, 2}, {2, 2})), of(3, places({2}, {})), of(1, places({0}, {1})),
            of(2, places({}, {0}))};
  }
};

// Element i of a value whose places along one axis an index gives.
struct Along {
  int axis;
  Shape x;
  Array index;
  Array gathered(V v) const {
    Array const y = doubles(index.shape());
    for_indices(index.shape(), [&](index_t const* i) {
      index_t j[max_rank] = {};
      std::copy_n(i, x.rank, j);
      j[axis] = place_at(v[1], i);
      cell(y, i) = value_at(v[0], j);
    });
    return y;
  }
  // Which elements of x are named.
  Array hits(Array const& at) const {
    Array const ones = doubles(index.shape());
    for_indices(index.shape(), [&](index_t const* i) { cell(ones, i) = 1; });
    Array const moved[] = {ones, at};
    return scattered(moved, true);
  }
  Array scattered(V v, bool replace) const {
    Array const y = doubles(x);
    for_indices(index.shape(), [&](index_t const* i) {
      index_t j[max_rank] = {};
      std::copy_n(i, x.rank, j);
      j[axis] = place_at(v[1], i);
      cell(y, j) = value_at(v[0], i) + (replace ? 0 : value_at(y, j));
    });
    return y;
  }
};
std::vector<Along> const& alongs() {
  static std::vector<Along> const all = {{1, make_shape(5, 3), places({0, 2, 2, 1, 1, 0, 0, 0}, {4, 2})},
                                         {0, make_shape(2, 3), places({1, 0, 0, 1, 1, 1}, {3, 2})},
                                         {0, make_shape(1), places({0}, {1})},
                                         {1, make_shape(2, 3), places({}, {2, 0})},
                                         {0, make_shape(2, 2, 3), places({1, 0, 0, 1}, {1, 2, 2})}};
  return all;
}
template <>
struct Record<op::gather> : RecordBase {
  static Cases cases() {
    Cases r;
    for (Along const& a : alongs())
      r.push_back({[=](V v) { return bound<op::gather>(Attrs{{a.axis}}, v); },
                   [=](V v) { return a.gathered(v); },
                   {draw(a.x, {}, 1, DType::f64), a.index}});
    return r;
  }
};
template <>
struct Record<op::scatter> : RecordBase {
  static Cases cases() {
    Cases r;
    auto const add = [&](Along const& a, bool replace) {
      r.push_back({[=](V v) { return bound_as<op::scatter>(a.x, Attrs{{a.axis, replace}}, v); },
                   [=](V v) { return a.scattered(v, replace); },
                   {draw(a.index.shape(), {}, 1, DType::f64), a.index}});
    };
    for (Along const& a : alongs()) add(a, false);
    add({1, make_shape(2, 4), places({3, 0, 1, 2}, {2, 2})}, true);
    return r;
  }
};

template <>
struct Record<op::scatter_onto> : RecordBase {
  static Case of(Along const& a, bool replace) {
    return {[=](V v) { return bound<op::scatter_onto>(Attrs{{a.axis, replace}}, v); },
            [=](V v) {
              Array const moved[] = {v[2], v[1]}, y = a.scattered(moved, replace), hit = a.hits(v[1]);
              for_indices(a.x, [&](index_t const* i) {
                cell(y, i) += replace && value_at(hit, i) != 0 ? 0 : value_at(v[0], i);
              });
              return y;
            },
            {draw(a.x, {}, 1, DType::f64), a.index, draw(a.index.shape(), {}, 2, DType::f64)}};
  }
  static Cases cases() {
    Cases r;
    for (Along const& a : alongs()) r.push_back(of(a, false));
    r.push_back(of({1, make_shape(2, 4), places({3, 0, 1, 2}, {2, 2})}, true));
    r.push_back(of({0, make_shape(3, 4), places({2, 0, 1, 1}, {1, 4})}, true));
    return r;
  }
};
template <>
struct Record<op::rows_onto> : RecordBase {
  static Case of(index_t rows, Shape const& rest, Array const& index) {
    Case const sums = Record<op::rows_add>::of(rows, rest, index);
    Shape x = make_shape(rows);
    for (int a = 0; a < rest.rank; ++a) x.push_back(rest[a]);
    return {[=](V v) { return bound<op::rows_onto>(Attrs{}, v); },
            [=](V v) {
              Array const rows_of[] = {v[2], v[1]}, y = sums.reference(rows_of);
              for_indices(x, [&](index_t const* i) { cell(y, i) += value_at(v[0], i); });
              return y;
            },
            {draw(x, {}, 3, DType::f64), index, sums.x[0]}};
  }
  static Cases cases() {
    return {of(5, make_shape(3), places({4, 0, 4, 2}, {2, 2})), of(3, {}, places({1}, {})),
            of(2, make_shape(3), places({}, {0})), of(4, make_shape(1, 20), places({3, 3, 0}, {3}))};
  }
};
template <>
struct Record<op::scatter_reduce> : RecordBase {
  // The elements of src joined one by one to those of x, or with `alone` to the first that comes to the place.
  static Array joined(Along const& a, V v, int which, bool alone) {
    Array const y = doubles(a.x), met = doubles(a.x);
    for_indices(a.x, [&](index_t const* i) { cell(y, i) = value_at(v[0], i); });
    for_indices(a.index.shape(), [&](index_t const* i) {
      index_t j[max_rank] = {};
      std::copy_n(i, a.x.rank, j);
      j[a.axis] = place_at(v[1], i);
      double const x = value_at(v[2], i), before = cell(y, j);
      bool const first = alone && cell(met, j)++ == 0;
      cell(y, j) = first        ? x
                   : which == 0 ? before * x
                   : which == 1 ? std::max(before, x)
                                : std::min(before, x);
    });
    return y;
  }
  static Cases cases() {
    Cases r;
    for (Along const& a : alongs())
      for (int how : {0, 1, 2, 4, 5, 6})
        r.push_back({[=](V v) { return bound<op::scatter_reduce>(Attrs{{a.axis, how}}, v); },
                     [=](V v) { return joined(a, v, how & 3, how >= 4); },
                     {draw(a.x, {}, 1, DType::f64), a.index, draw(a.index.shape(), {}, 2, DType::f64)}});
    return r;
  }
};

template <>
struct Record<op::index_copy> : RecordBase {
  static Case of(int axis, Shape const& s, Array const& index) {
    Shape parts = s;
    parts[axis] = index.shape()[0];
    return {[=](V v) { return bound<op::index_copy>(Attrs{{axis}}, v); },
            [=](V v) {
              Array const y = doubles(s);
              for_indices(s, [&](index_t const* i) { cell(y, i) = value_at(v[0], i); });
              for_indices(parts, [&](index_t const* i) {
                index_t j[max_rank] = {};
                std::copy_n(i, s.rank, j);
                j[axis] = place_at(v[1], i + axis);
                cell(y, j) = value_at(v[2], i);
              });
              return y;
            },
            {draw(s, {}, 1, DType::f64), index, draw(parts, {}, 2, DType::f64)}};
  }
  static Cases cases() {
    return {of(0, make_shape(5, 3), places({4, 0, 2}, {3})), of(1, make_shape(2, 4, 3), places({3, 1}, {2})),
            of(2, make_shape(2, 1, 3), places({1}, {1})),    of(0, make_shape(1), places({0}, {1})),
            of(0, make_shape(3, 2), places({}, {0})),        of(1, make_shape(0, 2), places({1}, {1}))};
  }
};

// The elements along one axis of a value, and a value of such lines.
template <class F>
std::function<Array(V)> by_lines(Shape const& s, Shape const& to, int axis, F const& line) {
  return [=](V v) {
    Array const y = doubles(to);
    Shape heads = s;
    heads[axis] = 1;
    for_indices(heads, [&](index_t const* i) {
      index_t j[max_rank] = {};
      std::copy_n(i, s.rank, j);
      std::vector<double> x(static_cast<std::size_t>(s[axis]));
      for (j[axis] = 0; j[axis] < s[axis]; ++j[axis])
        x[static_cast<std::size_t>(j[axis])] = value_at(v[0], j);
      std::vector<double> const made = line(x);
      for (j[axis] = 0; j[axis] < to[axis]; ++j[axis]) cell(y, j) = made[static_cast<std::size_t>(j[axis])];
    });
    return y;
  };
}
using Line = std::vector<double>;

// For both directions of an op along an axis: attrs.i = {axis, which}.
template <class Op, class F>
Cases along_axes(F const& line, bool of_nothing = true, bool reduces = false) {
  struct Part {
    Shape s;
    int axis;
  };
  Cases r;
  for (Part const& p : {Part{make_shape(7), 0}, Part{make_shape(3, 5), 0}, Part{make_shape(3, 5), 1},
                        Part{make_shape(2, 3, 4), 1}, Part{make_shape(1), 0}, Part{make_shape(0, 2), 1},
                        Part{make_shape(2, 0), 1}})
    for (index_t which : {0, 1}) {
      if (!of_nothing && p.s[p.axis] == 0) continue;
      Shape to = p.s;
      if (reduces) to[p.axis] = 1;
      // Also ties.
      Array const x = floor(draw(p.s, {-3, 3}, 5, DType::f64) * 2.0) / 2.0;
      r.push_back({[=](V v) { return bound<Op>(Attrs{{p.axis, which}}, v); },
                   by_lines(p.s, to, p.axis, [=](Line const& v) { return line(v, which != 0); }),
                   {x}});
    }
  return r;
}
template <>
struct Record<op::cumsum> : RecordBase {
  static Cases cases() {
    return along_axes<op::cumsum>([](Line x, bool back) {
      if (back) std::partial_sum(x.rbegin(), x.rend(), x.rbegin());
      else std::partial_sum(x.begin(), x.end(), x.begin());
      return x;
    });
  }
};
template <>
struct Record<op::recurrence> : Analytic {
  static Cases cases() {
    Cases r;
    for (auto const& [s, axis] :
         {std::pair{make_shape(7), 0}, std::pair{make_shape(1), 0}, std::pair{make_shape(3, 5), 0},
          std::pair{make_shape(2, 3, 4), 1}, std::pair{make_shape(1, 6), 1}, std::pair{make_shape(0, 2), 1},
          std::pair{make_shape(2, 0), 1}})
      for (index_t which : {0, 1, 2, 3}) {
        auto const count = [s = s, axis = axis, which](V v) {
          Array const y = doubles(s);
          bool const back = (which & 1) != 0;
          for_indices(s, [&](index_t const* i) {
            // From the place where the line begins to this one.
            index_t j[max_rank] = {};
            std::copy_n(i, s.rank, j);
            double sum = 0;
            for (index_t k = 0, n = back ? s[axis] - i[axis] : i[axis] + 1; k < n; ++k) {
              index_t const place = back ? s[axis] - 1 - k : k;
              j[axis] = which < 2 ? place : back ? place + 1 : place - 1;
              double const a = k == 0 ? 0 : value_at(v[0], j);
              j[axis] = place;
              sum = a * sum + value_at(v[1], j);
            }
            cell(y, i) = sum;
          });
          return y;
        };
        // Some a are 0.
        r.push_back({[axis = axis, which](V v) { return bound<op::recurrence>(Attrs{{axis, which}}, v); },
                     count,
                     {floor(draw(s, {-2, 3}, 7, DType::f64)) * 0.5, draw(s, {-3, 3}, 8, DType::f64)}});
      }
    return r;
  }
};
template <>
struct Record<op::argmax> : Counting {
  static Cases cases() {
    return along_axes<op::argmax>(
        [](Line const& x, bool least) {
          auto const at_best =
              least ? std::min_element(x.begin(), x.end()) : std::max_element(x.begin(), x.end());
          return Line{static_cast<double>(at_best - x.begin())};
        },
        false, true);
  }
};
template <>
struct Record<op::argcummax> : Counting {
  static Cases cases() {
    return along_axes<op::argcummax>([](Line const& x, bool least) {
      Line y;
      std::size_t best = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (least ? x[i] <= x[best] : x[i] >= x[best]) best = i;
        y.push_back(static_cast<double>(best));
      }
      return y;
    });
  }
};
template <>
struct Record<op::argsort> : Counting {
  static Cases cases() {
    return along_axes<op::argsort>([](Line const& x, bool descending) {
      Line y(x.size());
      std::iota(y.begin(), y.end(), 0.0);
      std::sort(y.begin(), y.end(), [&](double i, double j) {
        double const a = x[static_cast<std::size_t>(i)], b = x[static_cast<std::size_t>(j)];
        return a == b ? i < j : descending ? a > b : a < b;
      });
      return y;
    });
  }
};
template <>
struct Record<op::searchsorted> : Counting {
  static Case of(Array const& lists, Array const& x, index_t right) {
    return {[=](V v) { return bound<op::searchsorted>(Attrs{{right}}, v); },
            [=](V v) {
              Array const y = doubles(v[1].shape());
              int const last = v[0].ndim() - 1;
              for_indices(y.shape(), [&](index_t const* i) {
                index_t j[max_rank] = {};
                std::copy_n(i, last, j);
                for (j[last] = 0; j[last] < v[0].shape()[last]; ++j[last]) {
                  double const a = value_at(v[0], j), b = value_at(v[1], i);
                  cell(y, i) += right != 0 ? a <= b : a < b;
                }
              });
              return y;
            },
            {lists, x}};
  }
  static Cases cases() {
    Array const list = from<double>({0.5, 1, 1, 1, 2.5, 3}), lists = from<double>({0, 1, 2, 1, 1, 3}, {2, 3});
    Cases r;
    for (index_t right : {0, 1}) {
      r.push_back(of(list, from<double>({0, 1, 3, 9, 2.5, 0.75}, {2, 3}), right));
      r.push_back(of(list, full({}, 1, DType::f64), right));
      r.push_back(of(lists, from<double>({0, 1, 1, 4}, {2, 2}), right));
      r.push_back(of(zeros({0}, DType::f64), ones({2}, DType::f64), right));
      r.push_back(of(ones({1}, DType::f64), ones({1}, DType::f64), right));
    }
    return r;
  }
};
template <>
struct Record<op::window_argmax> : Counting {
  static Case of(Shape const& x, Shape const& to, std::vector<Window> const& w) {
    Attrs a;
    for (std::size_t i = 0; i < w.size(); ++i) a.i[i] = w[i].packed();
    DType const place = w.size() == 1 ? DType::i64 : w.size() == 2 ? DType::i32 : DType::u8;
    return {[=](V v) { return bind_as<op::window_argmax>(Meta{place, to}, a, v[0]); },
            [=](V v) {
              Array const y = full(to, -1, DType::f64);
              for_indices(to, [&](index_t const* p) {
                double best = -HUGE_VAL;
                index_t place = 0;
                for_indices(x, [&](index_t const* i) {
                  bool inside = i[0] == p[0];
                  for (int d = 1; d < x.rank; ++d) {
                    Window const& s = w[static_cast<std::size_t>(d - 1)];
                    index_t const k = i[d] - s.stride * p[d] + s.before;
                    inside = inside && k >= 0 && k % s.dilation == 0 && k / s.dilation < s.size;
                  }
                  double const value = value_at(v[0], i);
                  if (inside && value > best) {
                    best = value;
                    cell(y, p) = static_cast<double>(place);
                  }
                  if (i[0] == p[0]) ++place;
                });
              });
              return y;
            },
            {draw(x, {-9, 9}, 3, DType::f64)}};
  }
  static Cases cases() {
    return {of(make_shape(2, 7), make_shape(2, 3), {{3, 2, 1, 0}}),
            of(make_shape(2, 4, 5), make_shape(2, 3, 3), {{2, 2, 1, 1}, {2, 1, 2, 0}}),
            of(make_shape(1, 1), make_shape(1, 1), {{1, 1, 1, 0}}),
            of(make_shape(0, 4), make_shape(0, 2), {{2, 2, 1, 0}}),
            of(make_shape(1, 2, 3, 4), make_shape(1, 1, 2, 3), {{2, 1, 1, 0}, {2, 1, 1, 0}, {2, 1, 1, 0}})};
  }
};
template <>
struct Record<op::resample> : Analytic {
  using Sampling = op::Sampling;
  // The means of pairs of elements, and positions between two elements of which the nearer counts more.
  static Case of(Shape const& from, int axis, index_t to, Sampling how, bool transposed) {
    index_t const n = from[axis];
    auto const coefficient = [=](index_t p, index_t i) {  // of element i in position p
      if (how == Sampling::mean) return i / 2 == p ? 0.5 : 0.0;
      double const at_x = to > 1 ? static_cast<double>(p * (n - 1)) / static_cast<double>(to - 1) : 0;
      return std::fmax(0, 1 - std::fabs(at_x - static_cast<double>(i)));
    };
    Shape made = from;
    made[axis] = to;
    Shape const in = transposed ? made : from, out = transposed ? from : made;
    Attrs const a{{axis + 16 * transposed, static_cast<index_t>(how),
                   how == Sampling::mean ? Window{2, 2, 1, 0}.packed() : 0}};
    return {[=](V v) { return bound_as<op::resample>(out, a, v); },
            by_lines(in, out, axis,
                     [=](Line const& x) {
                       Line y(static_cast<std::size_t>(out[axis]));
                       for (std::size_t j = 0; j < y.size(); ++j)
                         for (std::size_t i = 0; i < x.size(); ++i) {
                           auto const from_x = static_cast<index_t>(i), to_y = static_cast<index_t>(j);
                           y[j] +=
                               x[i] * (transposed ? coefficient(from_x, to_y) : coefficient(to_y, from_x));
                         }
                       return y;
                     }),
            {draw(in, {}, 3, DType::f64)}};
  }
  static Cases cases() {
    Cases r;
    for (bool transposed : {false, true})
      for (Sampling how : {Sampling::mean, Sampling::linear_aligned}) {
        bool const pairs = how == Sampling::mean;
        r.push_back(of(make_shape(2, 6), 1, pairs ? 3 : 4, how, transposed));
        r.push_back(of(make_shape(4, 3), 0, pairs ? 2 : 7, how, transposed));
        r.push_back(of(make_shape(0, 4), 1, pairs ? 2 : 5, how, transposed));
        if (!pairs) r.push_back(of(make_shape(1), 0, 1, how, transposed));
        else r.push_back(of(make_shape(2), 0, 1, how, transposed));
      }
    return r;
  }
};
// Images between elements, of which the nearer counts more; nothing beyond the ends.
struct GridCase {
  Shape x, grid, y;
  GridCase(index_t count, index_t channels, index_t rows, index_t columns, index_t n)
      : x(make_shape(count, channels, rows, columns)),
        grid(make_shape(count, 1, n, 2)),
        y(make_shape(count, channels, 1, n)) {}
  static std::vector<GridCase> all() {
    return {{2, 2, 3, 4, 5}, {1, 1, 1, 1, 1}, {0, 2, 3, 4, 5}, {1, 0, 2, 2, 3}, {1, 2, 2, 5, 0}};
  }
  static constexpr double at(double u, index_t n) { return ((u + 1) * static_cast<double>(n) - 1) / 2; }
  // The weight of element i, and how that changes with u.
  static double weight(double u, index_t i, index_t n) {
    return std::fmax(0, 1 - std::fabs(at(u, n) - static_cast<double>(i)));
  }
  static double slope(double u, index_t i, index_t n) {
    double const apart = at(u, n) - static_cast<double>(i);
    return std::fabs(apart) >= 1 ? 0 : (apart < 0 ? 0.5 : -0.5) * static_cast<double>(n);
  }
  // f(place in y, in x, its column and row in the grid) for all pairs of a place and an element of one image.
  template <class F>
  void for_pairs(Array const& places, F const& f) const {
    for_indices(y, [&](index_t const* i) {
      index_t const column[max_rank] = {i[0], i[2], i[3], 0}, row[max_rank] = {i[0], i[2], i[3], 1};
      for (index_t a = 0; a < x[2]; ++a)
        for (index_t b = 0; b < x[3]; ++b) {
          index_t const j[max_rank] = {i[0], i[1], a, b};
          f(i, j, value_at(places, column), value_at(places, row));
        }
    });
  }
  double both(double u, double v, index_t const* j) const {
    return weight(u, j[3], x[3]) * weight(v, j[2], x[2]);
  }
  Array places() const { return draw(grid, {-1.4, 1.4}, 9, DType::f64); }
};
template <>
struct Record<op::grid_sample> : Analytic {
  static Cases cases() {
    Cases all;
    for (GridCase const& g : GridCase::all())
      all.push_back({[](V v) { return bound<op::grid_sample>({}, v); },
                     [=](V v) {
                       Array const r = doubles(g.y);
                       g.for_pairs(v[1], [&](index_t const* i, index_t const* j, double column, double row) {
                         cell(r, i) += g.both(column, row, j) * value_at(v[0], j);
                       });
                       return r;
                     },
                     {draw(g.x, {}, 3, DType::f64), g.places()}});
    return all;
  }
};
template <>
struct Record<op::grid_sample_images> : Analytic {
  static Cases cases() {
    Cases all;
    for (GridCase const& g : GridCase::all())
      all.push_back({[=](V v) { return bound_as<op::grid_sample_images>(g.x, {}, v); },
                     [=](V v) {
                       Array const r = doubles(g.x);
                       g.for_pairs(v[1], [&](index_t const* i, index_t const* j, double column, double row) {
                         cell(r, j) += g.both(column, row, j) * value_at(v[0], i);
                       });
                       return r;
                     },
                     {draw(g.y, {}, 3, DType::f64), g.places()}});
    return all;
  }
};
template <>
struct Record<op::grid_sample_places> : Analytic {
  static Cases cases() {
    Cases all;
    for (GridCase const& g : GridCase::all())
      all.push_back({[](V v) { return bound<op::grid_sample_places>({}, v); },
                     [=](V v) {
                       Array const r = doubles(g.grid);
                       g.for_pairs(v[1], [&](index_t const* i, index_t const* j, double column, double row) {
                         index_t to[max_rank] = {i[0], i[2], i[3], 0};
                         double const all = value_at(v[2], i) * value_at(v[0], j);
                         cell(r, to) += all * g.slope(column, j[3], g.x[3]) * g.weight(row, j[2], g.x[2]);
                         to[3] = 1;
                         cell(r, to) += all * g.weight(column, j[3], g.x[3]) * g.slope(row, j[2], g.x[2]);
                       });
                       return r;
                     },
                     {draw(g.x, {}, 3, DType::f64), g.places(), draw(g.y, {}, 4, DType::f64)}});
    return all;
  }
};
template <>
struct Record<op::draw> : Counting {
  static constexpr bool integers = true;
  static Case of(Shape const& s, DType d, index_t stream, bool normal = false) {
    return {[=](V v) { return bound<op::draw>(Attrs{{static_cast<index_t>(d), stream, normal}}, v); },
            [=](V v) {
              Array const y = doubles(s);
              Key const key(static_cast<std::uint64_t>(v[1].item<std::int64_t>()));
              for (index_t i = 0; i < y.size(); ++i) {
                auto const at = static_cast<std::uint64_t>(i), of = static_cast<std::uint64_t>(stream);
                y.data<double>()[i] = normal ? normal_at(key, at, of) : uniform_at(key, at, of);
              }
              return y;
            },
            {dfdx::zeros(s, DType::f64), places({42}, {})}};
  }
  static Cases cases() {
    return {of(make_shape(3, 5), DType::f64, 0), of(make_shape(7), DType::f64, 3),
            of(make_shape(), DType::f64, 0),     of(make_shape(1), DType::f64, 1),
            of(make_shape(0, 2), DType::f64, 0), of(make_shape(3, 5), DType::f64, 2, true)};
  }
};

// --- systems of equations -----------------------------------------------------------------------------------------

// Matrices far from singular ones, and f(matrix) for each of a batch.
Array well_behaved(Shape const& s, std::uint64_t key) {
  Array const x = draw(s, {-1, 1}, key, DType::f64);
  return x + cast_to(eye(s[s.rank - 2], s[s.rank - 1]), DType::f64) * 3.0;
}
using Rows = std::vector<Line>;
Rows rows_of(Array const& x, index_t const* batch) {
  int const r = x.ndim();
  index_t i[max_rank] = {};
  std::copy_n(batch, r - 2, i);
  Rows m(static_cast<std::size_t>(x.shape()[r - 2]), Line(static_cast<std::size_t>(x.shape()[r - 1])));
  for (std::size_t a = 0; a < m.size(); ++a)
    for (std::size_t b = 0; b < m[a].size(); ++b) {
      i[r - 2] = static_cast<index_t>(a), i[r - 1] = static_cast<index_t>(b);
      m[a][b] = value_at(x, i);
    }
  return m;
}
template <class F>
std::function<Array(V)> by_matrices(Shape const& to, F const& f) {
  return [=](V v) {
    Array const y = doubles(to);
    Shape batch = to;
    batch.rank -= 2;
    for_indices(batch, [&](index_t const* i) {
      Rows const made = f(rows_of(v[0], i), v.size() > 1 ? rows_of(v[1], i) : Rows());
      index_t j[max_rank] = {};
      std::copy_n(i, batch.rank, j);
      for (std::size_t a = 0; a < made.size(); ++a)
        for (std::size_t b = 0; b < made[a].size(); ++b) {
          j[batch.rank] = static_cast<index_t>(a), j[batch.rank + 1] = static_cast<index_t>(b);
          cell(y, j) = made[a][b];
        }
    });
    return y;
  };
}
// By Gauss and Jordan without exchanges, of those elements that `counts` says.
template <class Counts>
Rows solved(Rows a, Rows b, Counts const& counts) {
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a.size(); ++j)
      if (!counts(i, j)) a[i][j] = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (i == k) continue;
      double const f = a[i][k] / a[k][k];
      for (std::size_t j = 0; j < a.size(); ++j) a[i][j] -= f * a[k][j];
      for (std::size_t j = 0; j < b[i].size(); ++j) b[i][j] -= f * b[k][j];
    }
  for (std::size_t i = 0; i < a.size(); ++i)
    for (double& x : b[i]) x /= a[i][i];
  return b;
}
double determinant(Rows const& a) {
  if (a.empty()) return 1;
  double r = 0;
  for (std::size_t j = 0; j < a.size(); ++j) {
    Rows minor(a.begin() + 1, a.end());
    for (Line& row : minor) row.erase(row.begin() + static_cast<std::ptrdiff_t>(j));
    r += (j % 2 == 0 ? 1 : -1) * a[0][j] * determinant(minor);
  }
  return r;
}

// Call<Op>(attrs, v) uses the op on a matrix and a right side.
template <class Op, class Call, class Counts>
void systems(Cases& r, Attrs const& a, Call const& call, Counts const& counts) {
  struct Pair {
    Shape matrix, right;
  };
  for (Pair const& p :
       {Pair{make_shape(3, 3), make_shape(3, 2)}, Pair{make_shape(1, 1), make_shape(1, 1)},
        Pair{make_shape(2, 2, 2), make_shape(2, 2, 3)}, Pair{make_shape(0, 2, 2), make_shape(0, 2, 1)},
        Pair{make_shape(2, 2), make_shape(2, 0)}})
    r.push_back({[=](V v) { return call(a, v); },
                 by_matrices(p.right, [=](Rows const& m, Rows const& b) { return solved(m, b, counts); }),
                 {well_behaved(p.matrix, 1), draw(p.right, {}, 2, DType::f64)}});
}
// The factors of a, of which none has a derivative by itself.
Array factors(Array const& a) { return bind<op::lu>(Attrs{}, a); }
template <>
struct Record<op::lu> : Counting {
  static constexpr bool integers = false;
  // Where no rows are exchanged nothing but the first ones has a meaning.
  static Array call(V v) {
    int const axis = v[0].ndim() - 2;
    return slice(factors(v[0]), axis, 0, v[0].shape()[axis] + 1);
  }
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 2, 2), make_shape(0, 2, 2)}) {
      Shape to = s;
      ++to[s.rank - 2];
      r.push_back({call,
                   by_matrices(to,
                               [](Rows a, Rows const&) {
                                 std::size_t const n = a.size();
                                 for (std::size_t k = 0; k < n; ++k)
                                   for (std::size_t i = k + 1; i < n; ++i) {
                                     a[i][k] /= a[k][k];
                                     for (std::size_t j = k + 1; j < n; ++j) a[i][j] -= a[i][k] * a[k][j];
                                   }
                                 a.emplace_back();
                                 for (std::size_t k = 0; k < n; ++k) a[n].push_back(static_cast<double>(k));
                                 return a;
                               }),
                   {well_behaved(s, 1)}});
    }
    return r;
  }
};
template <>
struct Record<op::solve> : Analytic {
  static Array call(Attrs const& a, V v) { return bind<op::solve>(a, v[0], factors(v[0]), v[1]); }
  static Cases cases() {
    Cases r;
    auto const all = [](std::size_t, std::size_t) { return true; };
    systems<op::solve>(r, {}, call, all);
    systems<op::solve>(
        r, Attrs{{1}},
        [](Attrs const& at, V v) {
          std::array const turned = {transpose(v[0]), v[1]};
          return call(at, turned);
        },
        all);
    return r;
  }
};
template <>
struct Record<op::inverse> : Analytic {
  static Array call(V v) { return bind<op::inverse>(Attrs{}, v[0], factors(v[0])); }
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 2, 2), make_shape(0, 2, 2)})
      r.push_back({call,
                   by_matrices(s,
                               [](Rows const& a, Rows const&) {
                                 Rows one(a.size(), Line(a.size()));
                                 for (std::size_t i = 0; i < a.size(); ++i) one[i][i] = 1;
                                 return solved(a, one, [](std::size_t, std::size_t) { return true; });
                               }),
                   {well_behaved(s, 1)}});
    return r;
  }
};
template <>
struct Record<op::solve_triangular> : Analytic {
  static Cases cases() {
    Cases r;
    systems<op::solve_triangular>(r, {}, bound<op::solve_triangular>,
                                  [](std::size_t i, std::size_t j) { return j <= i; });
    systems<op::solve_triangular>(r, Attrs{{1}}, bound<op::solve_triangular>,
                                  [](std::size_t i, std::size_t j) { return j >= i; });
    return r;
  }
};
template <>
struct Record<op::determinant> : Analytic {
  using op_type = op::determinant;
  static Array call(index_t what, Array const& a) { return bind<op_type>(Attrs{{what}}, a, factors(a)); }
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 2, 2), make_shape(0, 2, 2)}) {
      Shape to = s;
      to[s.rank - 2] = to[s.rank - 1] = 1;
      Array const x = well_behaved(s, 3) * (s.rank == 2 ? -1.0 : 1.0);
      r.push_back({[](V v) { return call(op_type::value, v[0]); },
                   by_matrices(to, [](Rows const& a, Rows const&) { return Rows{{determinant(a)}}; }),
                   {x}});
      r.push_back({[](V v) { return call(op_type::logarithm, v[0]); },
                   by_matrices(to, [](Rows const& a,
                                      Rows const&) { return Rows{{std::log(std::fabs(determinant(a)))}}; }),
                   {x}});
      r.push_back({[](V v) { return call(op_type::sign, v[0]) * v[0]; },
                   by_matrices(s,
                               [](Rows a, Rows const&) {
                                 double const sign = determinant(a) < 0 ? -1 : 1;
                                 for (Line& row : a)
                                   for (double& x : row) x *= sign;
                                 return a;
                               }),
                   {x}});
    }
    return r;
  }
};
// By the determinants of what is left without a row and a column.
double cofactor(Rows a, std::size_t i, std::size_t j) {
  a.erase(a.begin() + static_cast<std::ptrdiff_t>(i));
  for (Line& row : a) row.erase(row.begin() + static_cast<std::ptrdiff_t>(j));
  return ((i + j) % 2 == 0 ? 1 : -1) * determinant(a);
}
template <>
struct Record<op::cofactors> : Analytic {
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 2, 2), make_shape(0, 2, 2)})
      for (bool by_factors : {true, false})
        r.push_back(
            {[=](V v) { return bind<op::cofactors>(Attrs{}, v[0], by_factors ? factors(v[0]) : v[0]); },
             by_matrices(s,
                         [](Rows const& a, Rows const&) {
                           Rows y = a;
                           for (std::size_t i = 0; i < a.size(); ++i)
                             for (std::size_t j = 0; j < a.size(); ++j) y[i][j] = cofactor(a, i, j);
                           return y;
                         }),
             {well_behaved(s, 1)}});
    return r;
  }
};
template <>
struct Record<op::cofactors_slope> : Analytic {
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 2, 2), make_shape(0, 2, 2)})
      for (bool by_factors : {true, false})
        r.push_back({[=](V v) {
                       return bind<op::cofactors_slope>(Attrs{}, v[0], by_factors ? factors(v[0]) : v[0],
                                                        v[1]);
                     },
                     // A cofactor is linear in each element: its slope is what a step of 1 adds.
                     by_matrices(s,
                                 [](Rows const& a, Rows const& g) {
                                   Rows y = a;
                                   for (std::size_t k = 0; k < a.size() * a.size(); ++k) {
                                     std::size_t const row = k / a.size(), column = k % a.size();
                                     Rows b = a;
                                     b[row][column] += 1;
                                     double sum = 0;
                                     for (std::size_t i = 0; i < a.size(); ++i)
                                       for (std::size_t j = 0; j < a.size(); ++j)
                                         sum += g[i][j] * (cofactor(b, i, j) - cofactor(a, i, j));
                                     y[row][column] = sum;
                                   }
                                   return y;
                                 }),
                     {well_behaved(s, 4), draw(s, {}, 2, DType::f64)}});
    return r;
  }
};
template <>
struct Record<op::cholesky> : Analytic {
  // Of symmetric matrices, as which differences are taken.
  static Array call(V v) { return bind<op::cholesky>(Attrs{}, (v[0] + transpose(v[0])) * 0.5); }
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 2, 2), make_shape(0, 2, 2)})
      r.push_back({call,
                   by_matrices(s,
                               [](Rows const& a, Rows const&) {
                                 std::size_t const n = a.size();
                                 Rows l(n, Line(n));
                                 for (std::size_t i = 0; i < n; ++i)
                                   for (std::size_t j = 0; j <= i; ++j) {
                                     double rest = (a[i][j] + a[j][i]) / 2;
                                     for (std::size_t k = 0; k < j; ++k) rest -= l[i][k] * l[j][k];
                                     l[i][j] = i == j ? std::sqrt(rest) : rest / l[j][j];
                                   }
                                 return l;
                               }),
                   {well_behaved(s, 4)}});
    return r;
  }
};
template <>
struct Record<op::qr> : Analytic {
  // Squared, for the signs of columns are a matter of convention.
  static Array call(bool alone, V v) { return square(bind<op::qr>(Attrs{{alone}}, v[0])); }
  static Cases cases() {
    Cases r;
    for (Shape const& s :
         {make_shape(4, 3), make_shape(3, 3), make_shape(1, 1), make_shape(2, 3, 2), make_shape(0, 2, 2)}) {
      for (bool alone : {false, true}) {
        Shape to = s;
        if (!alone) to[s.rank - 2] += s[s.rank - 1];
        r.push_back({[=](V v) { return call(alone, v); },
                     by_matrices(to,
                                 [=](Rows a, Rows const&) {
                                   std::size_t const m = a.size(), n = a[0].size();
                                   Rows y(m + n, Line(n));
                                   for (std::size_t k = 0; k < n; ++k) {
                                     double length = 0;
                                     for (std::size_t i = 0; i < m; ++i) length += a[i][k] * a[i][k];
                                     y[m + k][k] = length;
                                     for (std::size_t i = 0; i < m; ++i) {
                                       a[i][k] /= std::sqrt(length);
                                       y[i][k] = a[i][k] * a[i][k];
                                     }
                                     for (std::size_t j = k + 1; j < n; ++j) {
                                       double along = 0;
                                       for (std::size_t i = 0; i < m; ++i) along += a[i][k] * a[i][j];
                                       for (std::size_t i = 0; i < m; ++i) a[i][j] -= along * a[i][k];
                                       y[m + k][j] = along * along;
                                     }
                                   }
                                   if (alone) y.resize(m);
                                   return y;
                                 }),
                     {well_behaved(s, 5)}});
      }
    }
    return r;
  }
};
template <>
struct Record<op::eigh> : Analytic {
  // Of symmetric matrices, and squared, for the signs of vectors are any.
  static Array call(bool alone, V v) {
    return square(bind<op::eigh>(Attrs{{alone}}, (v[0] + transpose(v[0])) * 0.5));
  }
  // By rotations of two rows and columns after another, each of which makes one element 0 (Jacobi).
  static Rows squares(Rows const& given, Rows const&) {
    std::size_t const n = given.size();
    Rows a = given, vectors(n, Line(n));
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) a[i][j] = (given[i][j] + given[j][i]) / 2, vectors[i][j] = i == j;
    for (int sweep = 0; sweep < 30; ++sweep)
      for (std::size_t p = 0; p < n; ++p)
        for (std::size_t q = p + 1; q < n; ++q) {
          double const angle = std::atan2(2 * a[p][q], a[q][q] - a[p][p]) / 2;
          double const c = std::cos(angle), s = std::sin(angle);
          auto const rotate = [&](double& x, double& y) {
            double const u = x;
            x = c * u - s * y, y = s * u + c * y;
          };
          for (std::size_t k = 0; k < n; ++k) rotate(a[p][k], a[q][k]), rotate(vectors[p][k], vectors[q][k]);
          for (std::size_t k = 0; k < n; ++k) rotate(a[k][p], a[k][q]);
        }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < n; ++i) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return a[i][i] < a[j][j]; });
    Rows y(n + 1, Line(n));
    for (std::size_t j = 0; j < n; ++j) {
      std::size_t const from = order[j];
      for (std::size_t i = 0; i < n; ++i) y[i][j] = vectors[from][i] * vectors[from][i];
      y[n][j] = a[from][from] * a[from][from];
    }
    return y;
  }
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 2, 2), make_shape(0, 2, 2)}) {
      for (bool const alone : {false, true}) {
        Shape to = s;
        index_t const n = s[s.rank - 2];
        to[s.rank - 2] = alone ? 1 : n + 1;
        r.push_back({[=](V v) { return call(alone, v); },
                     by_matrices(to,
                                 [=](Rows const& a, Rows const&) {
                                   Rows const y = squares(a, {});
                                   return alone ? Rows{y.back()} : y;
                                 }),
                     {well_behaved(s, 4)}});
      }
    }
    return r;
  }
};

template <>
struct Record<op::svd> : Analytic {
  // Squared, for the signs of vectors are any.
  static Array call(bool alone, V v) { return square(bind<op::svd>(Attrs{{alone}}, v[0])); }
  static Rows product_of(Rows const& a, bool of_columns) {
    Rows const t = of_columns ? turned(a) : a;
    Rows r(t.size(), Line(t.size()));
    for (std::size_t i = 0; i < t.size(); ++i)
      for (std::size_t j = 0; j < t.size(); ++j)
        for (std::size_t k = 0; k < t[i].size(); ++k) r[i][j] += t[i][k] * t[j][k];
    return r;
  }
  static Rows turned(Rows const& a) {
    Rows r(a.empty() ? 0 : a[0].size(), Line(a.size()));
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < a[i].size(); ++j) r[j][i] = a[i][j];
    return r;
  }
  // Eigenvalues and vectors of a a^T and a^T a.
  static Rows squares(Rows const& a, bool alone) {
    std::size_t const k = std::min(a.size(), a[0].size());
    Rows const left = Record<op::eigh>::squares(product_of(a, false), {}),
               right = Record<op::eigh>::squares(product_of(a, true), {});
    Rows y;
    auto const add = [&](Line line, bool is_value) {
      std::reverse(line.begin(), line.end());
      line.resize(k);
      for (double& x : line) x = is_value ? std::sqrt(x) : x;
      y.push_back(line);
    };
    for (std::size_t i = 0; !alone && i < a.size(); ++i) add(left[i], false);
    add(left[a.size()], true);
    for (std::size_t i = 0; !alone && i < a[0].size(); ++i) add(right[i], false);
    return y;
  }
  static Cases cases() {
    Cases r;
    for (Shape const& s :
         {make_shape(3, 3), make_shape(1, 1), make_shape(4, 2), make_shape(2, 2, 3), make_shape(0, 2, 2)})
      for (bool alone : {false, true}) {
        Shape to = s;
        index_t const m = s[s.rank - 2], n = s[s.rank - 1];
        to[s.rank - 2] = alone ? 1 : m + 1 + n, to[s.rank - 1] = std::min(m, n);
        r.push_back({[=](V v) { return call(alone, v); },
                     by_matrices(to, [=](Rows const& a, Rows const&) { return squares(a, alone); }),
                     {well_behaved(s, 4)}});
      }
    return r;
  }
};
template <>
struct Record<op::pinv> : Analytic {
  static Array call(V v) { return bind<op::pinv>(Attrs{{}, {-1}}, v[0]); }
  // (a^T a)^-1 a^T, or a^T (a a^T)^-1.
  static Rows inverse(Rows const& a, Rows const&) {
    bool const tall = a.size() >= a[0].size();
    Rows const b = tall ? Record<op::svd>::turned(a) : a;
    Rows const x = solved(Record<op::svd>::product_of(a, tall), b, [](auto, auto) { return true; });
    return tall ? x : Record<op::svd>::turned(x);
  }
  static Cases cases() {
    Cases r;
    for (Shape const& s :
         {make_shape(3, 3), make_shape(1, 1), make_shape(4, 2), make_shape(2, 2, 3), make_shape(0, 2, 2)}) {
      Shape to = s;
      std::swap(to[s.rank - 2], to[s.rank - 1]);
      r.push_back({call, by_matrices(to, inverse), {well_behaved(s, 4)}});
    }
    return r;
  }
};
template <>
struct Record<op::matrix_exp> : Analytic {
  static Array call(V v) { return bind<op::matrix_exp>(Attrs{}, v[0]); }
  // The series.
  static Rows series(Rows const& a, Rows const&) {
    std::size_t const n = a.size();
    Rows y(n, Line(n)), term = y;
    for (std::size_t i = 0; i < n; ++i) y[i][i] = term[i][i] = 1;
    for (int step = 1; step < 80; ++step) {
      Rows next(n, Line(n));
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < n; ++k)
          for (std::size_t j = 0; j < n; ++j) next[i][j] += term[i][k] * a[k][j] / step;
      term = next;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) y[i][j] += term[i][j];
    }
    return y;
  }
  static Cases cases() {
    Cases r;
    for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 2, 2), make_shape(0, 2, 2)})
      r.push_back({call, by_matrices(s, series), {draw(s, {-1, 1}, 4, DType::f64)}});
    return r;
  }
};

// --- attention by blocks -------------------------------------------------------------------------------------------

// What both ops compute, one number at a time. f(head of the queries, query, head of the keys, key, score).
struct Heads {
  index_t batch, heads, shared, queries, keys, size, width;
  op::AttentionOptions o;

  Shape q() const { return make_shape(batch, heads * shared, queries, size); }
  Shape k() const { return make_shape(batch, heads, keys, size); }
  Shape v() const { return make_shape(batch, heads, keys, width); }
  index_t rows() const { return batch * heads * shared * queries; }
  static double at(Array const& x, index_t row, index_t column) {
    return read_real(x.operand(), row * x.shape()[x.ndim() - 1] + column);
  }
  // Row of the queries, row of the keys, score.
  template <class F>
  void each_seen(V v, index_t row, F const& f) const {
    for (index_t j = 0; j < keys; ++j) {
      if (o.causal && j > row % queries + o.offset) continue;
      index_t const key = row / queries / shared * keys + j;
      double s = 0;
      for (index_t d = 0; d < size; ++d) s += at(v[0], row, d) * at(v[1], key, d);
      f(key, s * o.scale);
    }
  }
  // The sum of the weights that a query's are divided by.
  double total(V v, index_t row) const {
    double r = 0;
    each_seen(v, row, [&](index_t, double s) { r += std::exp(s); });
    return r;
  }
  Array forward(V v) const {
    Array const out = doubles(make_shape(batch, heads * shared, queries, width));
    double* const y = out.data<double>();
    for (index_t row = 0; row < rows(); ++row)
      each_seen(v, row, [&](index_t key, double s) {
        for (index_t e = 0; e < width; ++e)
          y[row * width + e] += std::exp(s) / total(v, row) * at(v[2], key, e);
      });
    return out;
  }
  Array sums(V v) const {
    Array const out = doubles(make_shape(batch, heads * shared, queries));
    for (index_t row = 0; row < rows(); ++row) out.data<double>()[row] = std::log(total(v, row));
    return out;
  }
  Array backward(V v) const {
    Array const out = doubles(make_shape(q().numel() + k().numel() + this->v().numel()));
    double *const dq = out.data<double>(), *const dk = dq + q().numel(), *const dv = dk + k().numel();
    auto const of_row = [&](index_t i) { return read_real(v[4].operand(), i); };
    for (index_t row = 0; row < rows(); ++row)
      each_seen(v, row, [&](index_t key, double s) {
        double const p = std::exp(s - of_row(row));
        double dp = 0;
        for (index_t e = 0; e < width; ++e) {
          dp += at(v[3], row, e) * at(v[2], key, e);
          dv[key * width + e] += p * at(v[3], row, e);
        }
        for (index_t i = 0; i < size; ++i) {
          dq[row * size + i] += o.scale * p * (dp - of_row(rows() + row)) * at(v[1], key, i);
          dk[key * size + i] += o.scale * p * (dp - of_row(rows() + row)) * at(v[0], row, i);
        }
      });
    return out;
  }
  // The operands of an op with so many.
  std::vector<Array> operands(int arity) const {
    Shape const y = make_shape(batch, heads * shared, queries, width);
    std::vector<Array> x{draw(q(), {-1, 1}, 1, DType::f64), draw(k(), {-1, 1}, 2, DType::f64),
                         draw(v(), {-1, 1}, 3, DType::f64)};
    if (arity > 3) x.push_back(draw(y, {-1, 1}, 4, DType::f64));
    if (arity > 4) x.push_back(draw(make_shape(2 * rows()), {-1, 1}, 5, DType::f64));
    return x;
  }
  template <class Op>
  static Cases cases(Array (Heads::*value)(V) const) {
    Cases r;
    for (Heads const& h :
         {Heads{1, 1, 1, 1, 1, 1, 1, {}}, Heads{2, 1, 1, 3, 4, 2, 3, {false, 0, 0.7}},
          Heads{1, 2, 2, 3, 5, 2, 1, {true, 2, 1}}, Heads{1, 1, 1, 4, 3, 1, 2, {true, 0, -0.5}}})
      r.push_back({[=](V v) { return bound<Op>(h.o.attrs(), v); }, [=](V v) { return (h.*value)(v); },
                   h.operands(Op::arity)});
    return r;
  }
};
struct Attending : Analytic {
  static constexpr bool nothing = false;
};
template <>
struct Record<op::attend> : Attending {
  static Cases cases() { return Heads::cases<op::attend>(&Heads::forward); }
};
template <>
struct Record<op::attend_sums> : Attending {
  static Cases cases() { return Heads::cases<op::attend_sums>(&Heads::sums); }
};
template <>
struct Record<op::attend_back> : Attending {
  static Cases cases() { return Heads::cases<op::attend_back>(&Heads::backward); }
};

// --- norms ---------------------------------------------------------------------------------------------------------

// What both ops compute, one number at a time.
struct Norms {
  Shape x;
  op::NormOptions o;
  int parameters = 2;

  op::NormRows rows() const { return o.rows(x); }
  // f(place, row, parameter) of each element.
  template <class F>
  void each(F const& f) const {
    op::NormRows const r = rows();
    for (index_t i = 0; i < x.numel(); ++i) {
      index_t const channel = i / r.inner % (r.groups * r.channels),
                    sample = i / r.inner / (r.groups * r.channels);
      f(static_cast<std::size_t>(i),
        static_cast<std::size_t>(channel / r.channels + (o.across ? 0 : sample * r.groups)),
        static_cast<std::size_t>(channel));
    }
  }
  Line row_means(Line const& v) const {
    Line r(static_cast<std::size_t>(rows().number()));
    each([&](std::size_t i, std::size_t row, std::size_t) {
      r[row] += v[i] / static_cast<double>(rows().length());
    });
    return r;
  }
  static Line numbers(Array const& a) {
    Line r(static_cast<std::size_t>(a.size()));
    for (std::size_t i = 0; i < r.size(); ++i) r[i] = at(a, static_cast<index_t>(i));
    return r;
  }
  // (x - mean) r and r of rows.
  std::pair<Line, Line> standard(V v) const {
    Line z = numbers(v[0]), squares = z;
    Line const means = row_means(z);
    each([&](std::size_t i, std::size_t row, std::size_t) {
      if (o.centred) z[i] -= means[row];
      squares[i] = z[i] * z[i];
    });
    Line r = row_means(squares);
    for (double& s : r) s = 1 / std::sqrt(s + o.eps);
    each([&](std::size_t i, std::size_t row, std::size_t) { z[i] *= r[row]; });
    return {z, r};
  }
  static Array array(Line const& y, Shape const& s) {
    Array const r = doubles(s);
    std::copy(y.begin(), y.end(), r.data<double>());
    return r;
  }
  Array forward(V v) const {
    Line y = standard(v).first;
    Line const w = numbers(v[1]), b = numbers(v[2]);
    each([&](std::size_t i, std::size_t, std::size_t c) {
      if (!w.empty()) y[i] *= w[c];
      if (!b.empty()) y[i] += b[c];
    });
    return array(y, x);
  }
  Array backward(V v) const {
    auto const [z, r] = standard(v);
    Line const w = numbers(v[1]), ct = numbers(v[2]);
    Line h = ct, h_z = ct, sums(2 * w.size());
    each([&](std::size_t i, std::size_t, std::size_t c) {
      if (!w.empty()) h[i] *= w[c], sums[c] += ct[i] * z[i], sums[w.size() + c] += ct[i];
      h_z[i] = h[i] * z[i];
    });
    Line const mean = row_means(h), along = row_means(h_z);
    each([&](std::size_t i, std::size_t row, std::size_t) {
      h[i] = r[row] * (h[i] - (o.centred ? mean[row] : 0) - z[i] * along[row]);
    });
    if (!o.biased) sums.resize(w.size());
    h.insert(h.end(), sums.begin(), sums.end());
    return array(h, make_shape(static_cast<index_t>(h.size())));
  }
  template <class Op>
  static Cases cases(Array (Norms::*value)(V) const) {
    Cases r;
    for (Norms const& n :
         {Norms{make_shape(3, 5), {.axis = 1}}, Norms{make_shape(1), {.axis = 0, .centred = false, .eps = 1}},
          Norms{make_shape(6, 2, 3), {.axis = 1, .axes = 2, .centred = false}, 1},
          Norms{make_shape(2, 6, 3), {.axis = 1, .groups = 3, .biased = true}},
          Norms{make_shape(2, 4, 1, 40), {.axis = 1, .groups = 2, .biased = true}},
          Norms{make_shape(3, 2, 33), {.axis = 1, .groups = 2, .across = true, .biased = true}},
          Norms{make_shape(5, 3, 2), {.axis = 1, .groups = 3, .across = true, .biased = true}},
          Norms{make_shape(5, 4), {.axis = 1}, 0}, Norms{make_shape(0, 4), {.axis = 1}}}) {
      Shape s;
      for (int a = 0; a < n.o.axes; ++a) s[s.rank++] = n.x[n.o.axis + a];
      Shape const none = make_shape(0);
      bool const back = std::is_same_v<Op, op::standardize_back>;
      r.push_back(
          {[=](V v) { return bound<Op>(n.o.attrs(), v); },
           [=](V v) { return (n.*value)(v); },
           {draw(n.x, {-2, 2}, 1, DType::f64), draw(n.parameters > 0 ? s : none, {-1, 1}, 2, DType::f64),
            draw(back               ? n.x
                 : n.parameters > 1 ? s
                                    : none,
                 {-1, 1}, 3, DType::f64)}});
    }
    return r;
  }
};
template <>
struct Record<op::standardize> : Analytic {
  static Cases cases() { return Norms::cases<op::standardize>(&Norms::forward); }
};
template <>
struct Record<op::standardize_back> : Analytic {
  static Cases cases() { return Norms::cases<op::standardize_back>(&Norms::backward); }
};

// --- all of them --------------------------------------------------------------------------------------------------

template <class Op>
concept recorded = requires { Record<Op>::cases(); };

template <class Op>
struct RecordOf {
  static_assert(Op::elementwise || recorded<Op>, "this op of LibraryOps has no record");
};
template <class... Op>
constexpr bool complete(std::type_identity<testing::KnownOps<Op...>>) {
  return ((sizeof(RecordOf<Op>) > 0) && ...);
}
static_assert(complete(std::type_identity<testing::LibraryOps>{}));

// Whether the op itself, and nothing that does the same, is what a case records.
template <class Op>
bool uses(Case const& c) {
  Graph const g = suite::detail::recorded(c.f, c.x, DType::f32);
  for (int i = 0; i < g.size(); ++i)
    if (g[i].op == &info<Op>) return true;
  return false;
}

template <class Op>
void check_record() {
  using R = Record<Op>;
  bool one = false, none = false;
  for (Case const& c : R::cases()) {
    INFO(Op::name << " rank " << c.x[0].ndim());
    REQUIRE(uses<Op>(c));
    for (Array const& a : c.x) one = one || a.size() == 1, none = none || a.size() == 0;
    check_op(Op::name, c.f, c.reference, c.x, R::integers, R::twice, R::rules);
  }
  INFO(Op::name << ": cases of one and of no elements");
  CHECK(one);
  CHECK((none || !R::nothing));
}

}  // namespace

TEST_CASE("every op that is not elementwise", "[ops]") {
  testing::LibraryOps::for_each([](auto type) {
    using Op = typename decltype(type)::type;
    if constexpr (recorded<Op>) check_record<Op>();
  });
}

}  // namespace tests::ops_primitives
