// SPDX-License-Identifier: BSL-1.0
// scatter_reduce and index_reduce against plain loops, in memory and on the tape; compiled_rest.cpp has their programs.
#include "ops/places.hpp"

#include <dfdx/program/vmap.hpp>
#include <dfdx/vocabulary/scatter_reduce.hpp>

#include <catch2/matchers/catch_matchers.hpp>

#include <cmath>
#include <limits>

namespace tests::ops_scatter_reduce {

namespace {

using namespace suite;

double joined(Reduce how, double a, double b) {
  switch (how) {
    case Reduce::prod: return a * b;
    case Reduce::amax: return std::max(a, b);
    case Reduce::amin: return std::min(a, b);
    default: return a + b;
  }
}
// x with the elements of src joined along an axis, one by one.
Array reference(V v, int axis, Reduce how, bool include_self) {
  Array const y = doubles(v[0].shape()), n = doubles(v[0].shape());
  for_indices(y.shape(), [&](index_t const* i) {
    cell(y, i) = value_at(v[0], i);
    cell(n, i) = include_self;
  });
  for_indices(v[1].shape(), [&](index_t const* i) {
    index_t to[max_rank] = {};
    std::copy_n(i, y.ndim(), to);
    to[axis] = static_cast<index_t>(value_at(v[1], i));
    double const x = value_at(v[2], i);
    cell(y, to) = cell(n, to) == 0 ? x : joined(how, cell(y, to), x);
    cell(n, to) += 1;
  });
  if (how == Reduce::mean)
    for_indices(y.shape(), [&](index_t const* i) {
      double const of = std::max(cell(n, i), 1.0);
      cell(y, i) = is_floating(v[0].dtype()) ? cell(y, i) / of : std::floor(cell(y, i) / of);
    });
  return y;
}
constexpr Reduce all[] = {Reduce::sum, Reduce::prod, Reduce::mean, Reduce::amax, Reduce::amin};

Array const x = draw(make_shape(4, 3), {}, 1, DType::f64);
Array const src = draw(make_shape(4, 3), {}, 2, DType::f64);
Array const places = reshape(from<std::int64_t>({2, 0, 2, 1, 1, 1, 0, 0}), {4, 2});  // not all columns

}  // namespace

TEST_CASE("scatter_reduce", "[ops]") {
  for (Reduce const how : all)
    for (bool const self : {true, false}) {
      INFO("how " << static_cast<int>(how) << ", " << self);
      check_op(
          "scatter_reduce", [=](V v) { return scatter_reduce(v[0], 1, v[1], v[2], how, self); },
          [=](V v) { return reference(v, 1, how, self); }, {x, places, src}, true, true);
      check_op(
          "index_reduce", [=](V v) { return index_reduce(v[0], -2, v[1], v[2], how, self); },
          [=](V v) {
            Array const wide = expand(unsqueeze(v[1], 1), {4, 3}), operands[] = {v[0], wide, v[2]};
            return reference(operands, 0, how, self);
          },
          {x, from<std::int64_t>({2, 0, 2, 3}), src}, true, true);
    }
}

TEST_CASE("ties of scatter_reduce share its gradient, and zeros have those of products", "[ops]") {
  Array const at = from<std::int32_t>({0, 0, 1});
  auto const is = [&](Reduce how, bool self, Array a, Array b, Array const& of_a, Array const& of_b) {
    a.requires_grad(true), b.requires_grad(true);
    sum(scatter_reduce(a, 0, at, b, how, self)).backward();
    CHECK(array_equal(a.grad(), of_a));
    CHECK(array_equal(b.grad(), of_b));
  };
  auto const list = [](float u, float v, float w) { return from<float>({u, v, w}); };
  float const third = 1.0f / 3;
  is(Reduce::amax, true, list(2, 1, 3), list(2, 2, 1), list(third, 0.5f, 1), list(third, third, 0.5f));
  is(Reduce::amax, false, list(2, 1, 3), list(2, 2, 1), list(0, 0, 1), list(0.5f, 0.5f, 1));
  is(Reduce::prod, true, list(2, 0, 3), list(0, 5, 0), list(0, 0, 1), list(10, 0, 0));
  is(Reduce::prod, false, list(2, 0, 3), list(0, 5, 4), list(0, 0, 1), list(5, 0, 1));
  float const nan = std::numeric_limits<float>::quiet_NaN();
  Array const y =
      scatter_reduce(from<float>({1, 2}), 0, from<std::int32_t>({0, 0}), from<float>({nan, 3}), Reduce::amax);
  CHECK(std::isnan(y.data<float>()[0]));
  CHECK(y.data<float>()[1] == 2);
}

TEST_CASE("scatter_reduce of few bits is rounded once", "[ops]") {
  Array const ones_of = full({300}, 1, DType::bf16), to = zeros({300}, DType::i32);
  CHECK(scatter_reduce(full({1}, 300, DType::bf16), 0, to, ones_of * 300.0, Reduce::mean).item() == 300);
  CHECK(scatter_reduce(zeros({1}, DType::u8), 0, to, full({300}, 200, DType::u8), Reduce::mean).item() ==
        199);
}

TEST_CASE("vmap of scatter_reduce", "[ops]") {
  auto const f = vmap(
      [](auto const& a, auto const& at, auto const& b) { return scatter_reduce<0, Reduce::amax>(a, at, b); });
  auto const a = uniform<float, 2, 3>(Key{1});
  auto const b = uniform<float, 2, 4>(Key{2});
  Tensor<std::int64_t, 2, 4> const at{{0, 1, 1, 0}, {2, 2, 2, 1}};
  CHECK(array_equal(f(a, at, b), scatter_reduce<1, Reduce::amax>(a, at, b)));
}

TEST_CASE("scatter_reduce refuses", "[ops]") {
  Array const two = from<std::int64_t>({2, 0});
  CHECK_THROWS_WITH(scatter_reduce(x, 1, places, ones({4, 1}, DType::f64), Reduce::amax),
                    "scatter_reduce: index [4, 2] does not fit source [4, 1]");
  CHECK_THROWS_WITH(scatter_reduce(x, 2, places, src, Reduce::sum),
                    "scatter_reduce: axis 2 out of range for [4, 3]");
  CHECK_THROWS_WITH(scatter_reduce(x, 1, places, ones({4, 3}), Reduce::sum),
                    "scatter_reduce: one dtype required, got f64 and f32");
  CHECK_THROWS_WITH(scatter_reduce(x, 1, places + 1, src, Reduce::prod),
                    "scatter_reduce: index 3 out of range for axis 1 of [4, 3]");
  CHECK_THROWS_WITH(scatter_reduce(x, 1, places + 1, src, Reduce::mean),
                    "scatter_reduce: index 3 out of range for axis 1 of [4, 3]");
  CHECK_THROWS_WITH(scatter_reduce(x > 0, 1, places, src > 0, Reduce::amax),
                    "scatter_reduce: numeric dtype required, got bool");
  CHECK_THROWS_WITH(index_reduce(x, 0, two, src, Reduce::amin),
                    "index_reduce: source [4, 3] does not fit [4, 3] at index [2]");
  CHECK_THROWS_WITH(index_reduce(x, 0, two + 2, slice(src, 0, 0, 2), Reduce::amin),
                    "index_reduce: index 4 out of range for axis 0 of [4, 3]");
}

}  // namespace tests::ops_scatter_reduce
