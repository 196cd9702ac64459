// SPDX-License-Identifier: BSL-1.0
// Elements laid out anew by functions that are called on their own: pad, flip and concat of what lies in any order, of
// every dtype, element by element; and as on the tape, where each is several ops.
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <dfdx/dfdx.hpp>

namespace tests::ops_moved {

namespace {

using namespace dfdx;

constexpr DType dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16,   DType::i64,
                            DType::i32, DType::i8,  DType::u8,  DType::boolean};

// Numbers that every dtype but bool has, none like its neighbours.
Array numbered(Extents const& shape, DType d) {
  Array const x(Meta{DType::i64, shape.shape});
  for (index_t i = 0; i < x.size(); ++i) x.data<std::int64_t>()[i] = (i * 37 + i / 7) % 101;
  return d == DType::boolean ? x > 50 : cast_to(x, d);
}
double at(Array const& x, Shape const& place) {
  index_t offset = 0;
  for (int a = 0; a < place.rank; ++a) offset += place[a] * x.strides()[a];
  return read_real(x.operand(), offset);
}
// f(place) for all of a shape.
template <class F>
void each_place(Shape const& s, F const& f) {
  Shape place = s;
  for (index_t i = 0, n = s.numel(); i < n; ++i) {
    index_t rest = i;
    for (int a = s.rank - 1; a >= 0; --a) place[a] = rest % s[a], rest /= s[a];
    f(place);
  }
}
// Whether y has, at each place, the element of x at from(place), or `constant` where that is outside.
template <class F>
bool is_made(Array const& y, Array const& x, double constant, F const& from) {
  bool good = true;
  each_place(y.shape(), [&](Shape const& place) {
    Shape const p = from(place);
    bool inside = true;
    for (int a = 0; a < p.rank; ++a) inside = inside && p[a] >= 0 && p[a] < x.shape()[a];
    good = good && at(y, place) == (inside ? at(x, p) : constant);
  });
  return good;
}
// As they lie, transposed, with gaps, repeated.
template <class F>
void each_view(Extents const& shape, DType d, F const& f) {
  Array const x = numbered(shape, d);
  f(x);
  f(transpose(x));
  f(slice(x, -1, 0, x.shape()[x.ndim() - 1], 2));
  f(expand(slice(x, 0, 0, 1), shape));
}

}  // namespace

TEST_CASE("padding called on its own", "[ops]") {
  for (DType const d : dtypes)
    each_view({3, 4, 9}, d, [&](Array const& x) {
      Shape const s = x.shape();
      for (auto const& w : {std::array{2, 1, 0, 0, 0, 0}, std::array{0, 0, 2, 2, 0, 0},
                            std::array{1, 2, 0, 1, 2, 1}, std::array{0, 0, 0, 0, 0, 2}}) {
        auto const before = [&](int a) { return w[static_cast<std::size_t>(2 * (2 - a))]; };
        for (PadMode const mode :
             {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular}) {
          Array const y = pad(x, {w[0], w[1], w[2], w[3], w[4], w[5]}, mode, 1);
          bool const good = is_made(y, x, 1, [&](Shape p) {
            for (int a = 0; a < 3; ++a) {
              index_t const n = s[a], i = p[a] - before(a);
              if (mode == PadMode::constant || (i >= 0 && i < n)) p[a] = i;
              else if (mode == PadMode::reflect) p[a] = i < 0 ? -i : 2 * (n - 1) - i;
              else if (mode == PadMode::replicate) p[a] = i < 0 ? 0 : n - 1;
              else p[a] = i < 0 ? i + n : i - n;
            }
            return p;
          });
          INFO(d << " " << s << " mode " << static_cast<int>(mode) << " widths of the last axis " << w[0]
                 << " " << w[1]);
          CHECK(good);
        }
      }
    });
  CHECK(sum(pad(Array(Meta{DType::f32, make_shape(0, 2)}), {1, 1, 2, 0}, PadMode::constant, 3)).item() == 24);
  CHECK(pad(Array(Meta{DType::f32, make_shape(0, 2)}), {1, 1}).size() == 0);
  CHECK(is_made(pad(numbered({5, 6}, DType::f32), {-1, 2, 3, -2}), numbered({5, 6}, DType::f32), 0,
                [](Shape const& p) {
                  // What was cut off does not come back: places from the third row on and behind the last column.
                  return p[0] < 3 || p[1] + 1 > 5 ? make_shape(-1, -1) : make_shape(p[0] - 3, p[1] + 1);
                }));
}

TEST_CASE("padding is the same on the tape, and its gradient what was asked for", "[ops]") {
  for (PadMode const mode : {PadMode::constant, PadMode::reflect, PadMode::replicate, PadMode::circular}) {
    Array const x = numbered({3, 4, 6}, DType::f64), value = pad(x, {2, 3, 1, 0, 0, 2}, mode, 5);
    Array leaf = x.detach() * 1.0;
    leaf.requires_grad(true);
    Array const recorded = pad(leaf, {2, 3, 1, 0, 0, 2}, mode, 5);
    CHECK(is_made(recorded, value, 0, [](Shape const& p) { return p; }));
    // Of sum(y w): for each element of x the w of all that it became.
    Array const w = numbered({5, 5, 11}, DType::f64), g = gradients(sum(recorded * w), {leaf})[0];
    for (index_t i = 0; i < x.size(); ++i) {
      Array const one = x * 0.0;
      one.data<double>()[i] = 1;
      CHECK(at(g, make_shape(i / 24, i / 6 % 4, i % 6)) ==
            sum(pad(one, {2, 3, 1, 0, 0, 2}, mode, 0) * w).item());
    }
  }
}

TEST_CASE("flips of rows of any length", "[ops]") {
  for (DType const d : dtypes)
    for (index_t n : {1, 2, 7, 8, 9, 16, 31, 64}) {
      each_view({3, n}, d, [&](Array const& x) {
        Shape const s = x.shape();
        INFO(d << " " << s);
        CHECK(is_made(flip(x, 1), x, 0, [&](Shape const& p) { return make_shape(p[0], s[1] - 1 - p[1]); }));
        CHECK(is_made(flip(x, 0), x, 0, [&](Shape const& p) { return make_shape(s[0] - 1 - p[0], p[1]); }));
        CHECK(is_made(flip(x, {0, 1}), x, 0,
                      [&](Shape const& p) { return make_shape(s[0] - 1 - p[0], s[1] - 1 - p[1]); }));
      });
    }
}

TEST_CASE("lists joined at once", "[ops]") {
  for (DType const d : dtypes)
    for (int axis : {0, 1, 2}) {
      std::vector<Array> parts;
      for (index_t k = 0; k < 5; ++k) {
        Shape s = make_shape(2, 3, 4);
        s[axis] = k == 2 ? 0 : k + 1;
        Array const x = k == 2 ? Array(Meta{d, s}) : numbered({s[2], s[1], s[0]}, d);
        parts.push_back(k == 2 ? x : permute(x, {2, 1, 0}));
      }
      Array const y = concat(parts, axis);
      index_t first = 0;
      for (Array const& x : parts) {
        CHECK(
            is_made(slice(y, axis, first, first + x.shape()[axis]), x, 0, [](Shape const& p) { return p; }));
        first += x.shape()[axis];
      }
      CHECK(y.shape()[axis] == first);
    }
  Array x = numbered({2, 3}, DType::f64);
  x.requires_grad(true);
  Array const w = numbered({6, 3}, DType::f64);
  Array const g = gradients(sum(concat({x, x * 2.0, x}, 0) * w), {x})[0];
  CHECK(is_made(g, slice(w, 0, 0, 2) + 2.0 * slice(w, 0, 2, 4) + slice(w, 0, 4, 6), 0,
                [](Shape const& p) { return p; }));
}

TEST_CASE("triangles of what lies in any order", "[ops]") {
  for (DType const d : dtypes)
    for (auto const& [m, n] : {std::pair{1, 1}, std::pair{4, 9}, std::pair{40, 5}, std::pair{7, 70}})
      each_view({2, m, n}, d, [&](Array const& x) {
        for (index_t k : {index_t{0}, index_t{1}, index_t{-2}, index_t{6}, index_t{-100}, index_t{100},
                          std::numeric_limits<index_t>::max(), std::numeric_limits<index_t>::min()}) {
          auto const is_below = [&](Shape const& p) { return k > 1000 || (k > -1000 && p[2] - p[1] <= k); };
          auto const is_above = [&](Shape const& p) { return k < -1000 || (k < 1000 && p[2] - p[1] >= k); };
          auto const or_none = [](bool is, Shape const& p) { return is ? p : make_shape(-1, -1, -1); };
          INFO(d << " " << x.shape() << " diagonal " << k);
          CHECK(is_made(tril(x, k), x, 0, [&](Shape const& p) { return or_none(is_below(p), p); }));
          CHECK(is_made(triu(x, k), x, 0, [&](Shape const& p) { return or_none(is_above(p), p); }));
        }
      });
  CHECK(tril(Array(Meta{DType::f32, make_shape(3, 0)})).size() == 0);
  CHECK(triu(Array(Meta{DType::f32, make_shape(0, 3)})).size() == 0);
  Array const nothing = triu(full({3, 3}, std::numeric_limits<double>::quiet_NaN(), DType::f64), 5);
  CHECK(sum(nothing).item() == 0);
}

}  // namespace tests::ops_moved
