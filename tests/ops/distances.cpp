// SPDX-License-Identifier: BSL-1.0
// Distances of all pairs of points: known values, and what the differences of all points come to.
#include "ops/places.hpp"

#include <limits>

#include <dfdx/dfdx.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_distances {

namespace {

using namespace suite;

constexpr double inf = std::numeric_limits<double>::infinity();

double most(Array const& x) { return x.size() == 0 ? 0 : max(abs(x)).item(); }
Array drawn(Shape const& s, std::uint64_t key, DType d = DType::f64) { return randn(s, Key{key}, d); }
bool close(Array const& x, Array const& y, double t = 1e-12) { return testing::error_ratio(x, y, t, t) <= 1; }

// With an array of all differences.
Array plain(Array const& a, Array const& b, double p) {
  return norm(unsqueeze(a, -2) - unsqueeze(b, -3), p, {-1});
}

}  // namespace

TEST_CASE("distances of all pairs of points", "[ops]") {
  Tensor<double, 2, 2> const a{{0, 0}, {3, 4}};
  Tensor<double, 3, 2> const b{{0, 0}, {3, 0}, {-1, 7}};
  static_assert(std::is_same_v<decltype(cdist(a, b)), Tensor<double, 2, 3>>);
  CHECK(close(cdist(a, b), from<double>({0, 3, std::sqrt(50.0), 5, 4, 5}, {2, 3})));
  CHECK(close(cdist(a, b, 1), from<double>({0, 3, 8, 7, 4, 7}, {2, 3})));
  CHECK(close(cdist(a, b, inf), from<double>({0, 3, 7, 4, 4, 4}, {2, 3})));
  CHECK(close(cdist(a, b, 3),
              from<double>({0, 3, std::cbrt(344.0), std::cbrt(91.0), 4, std::cbrt(91.0)}, {2, 3})));
  for (double const p : {1.0, 2.0, 2.5, inf})
    for (auto const& [s, o] : {std::pair{make_shape(4, 3), make_shape(5, 3)},
                               {make_shape(2, 3, 4), make_shape(2, 4)},
                               {make_shape(2, 1), make_shape(3, 2, 1)}}) {
      Array const x = drawn(s, 1), y = drawn(o, 2);
      Array const d = cdist(x, y, p);
      CHECK(close(d, norm(unsqueeze(x, -2) - unsqueeze(y, -3), p, {-1})));
      CHECK(d.shape()[d.ndim() - 1] == o[o.rank - 2]);
      check_rules([p](V v) { return cdist(v[0], v[1], p); }, {x, y}, DType::f64);
    }
  // At distance 0 the gradient is 0, also to itself; far from 0 nothing is lost.
  for (double const p : {1.0, 2.0, inf}) {
    Array x = ones({3, 2}, DType::f64);
    x.requires_grad(true);
    CHECK(most(gradients(sum(cdist(x, x, p)), {x})[0]) == 0);
  }
  CHECK(array_equal(cdist(Tensor<float, 1, 2>{{1e6f, 1}}, Tensor<float, 1, 2>{{1e6f, 2}}), ones({1, 1})));
  CHECK(cdist(zeros({2, 0}), zeros({3, 0})).shape() == make_shape(2, 3));
  CHECK(cdist(zeros({0, 2}), zeros({3, 2})).shape() == make_shape(0, 3));
  CHECK(cdist(ones({2, 2}, DType::f16), ones({2, 2}, DType::f16)).dtype() == DType::f16);
  CHECK(cdist(ones({2, 2}, DType::i32), ones({2, 2}, DType::f64)).dtype() == DType::f64);
  CHECK_THROWS_WITH(cdist(zeros({3, 2}), zeros({4, 5})), "cdist: points [3, 2] do not fit points [4, 5]");
  CHECK_THROWS_WITH(cdist(zeros({3}), zeros({4, 3})), "cdist: points [3] do not fit points [4, 3]");
  CHECK_THROWS_WITH(cdist(zeros({2, 3, 2}), zeros({3, 4, 2})),
                    "cdist: points [2, 3, 2] do not fit points [3, 4, 2]");
}

TEST_CASE("distances: as many points as fill lanes or do not, apart in memory, with gradients", "[ops]") {
  for (DType const d : {DType::f32, DType::f64})
    for (index_t const n : {1, 3, 4, 9})
      for (index_t const m : {1, 7, 16, 33, 70})
        for (index_t const depth : {1, 4, 6}) {
          double const t = d == DType::f32 ? 2e-5 : 1e-13;
          Array const rows = drawn({depth, 2 * n}, 3, d),
                      every = slice(transpose(rows, 0, 1), 0, 0, 2 * n, 2);
          Array const b = drawn({m, depth}, 4, d), w = drawn({n, m}, 5, d);
          REQUIRE(every.shape() == make_shape(n, depth));
          for (double const p : {1.0, 2.0, inf}) {
            INFO(n << " x " << m << " x " << depth << ", p = " << p);
            CHECK(close(cdist(every, b, p), plain(every, b, p), t));
            Array x = every.detach(), y = b.detach();
            x.requires_grad(true), y.requires_grad(true);
            auto const slopes = [&](Array const& z) { return gradients(sum(z * w), {x, y}); };
            auto const got = slopes(cdist(x, y, p)), want = slopes(plain(x, y, p));
            CHECK(close(got[0], want[0], t));
            CHECK(close(got[1], want[1], t));
          }
        }
}

TEST_CASE("distances: what is no number, and second derivatives", "[ops]") {
  double const none = std::numeric_limits<double>::quiet_NaN();
  for (double const p : {1.0, 2.0, inf}) {
    Array const a = from<double>({0, 0, none, 0, inf, 1, 0, none}, {4, 2}),
                b = from<double>({1, 2, 3, 4}, {2, 2});
    CHECK(array_equal(isnan(cdist(a, b, p)), isnan(plain(a, b, p))));
    CHECK(array_equal(isinf(cdist(a, b, p)), isinf(plain(a, b, p))));
    Array const x = drawn({3, 2}, 6), y = drawn({4, 2}, 7);
    Array u = x.detach(), v = y.detach();
    u.requires_grad(true), v.requires_grad(true);
    auto const twice = [&](Array const& z) {
      auto const g = gradients(sum(z * z * z), {u, v}, {.retain_graph = true, .create_graph = true});
      return gradients(sum(g[0] * g[0]) + sum(g[1]), {u, v});
    };
    auto const got = twice(cdist(u, v, p)), want = twice(plain(u, v, p));
    CHECK(close(got[0], want[0], 1e-10));
    CHECK(close(got[1], want[1], 1e-10));
  }
}

}  // namespace tests::ops_distances
