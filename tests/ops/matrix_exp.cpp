// SPDX-License-Identifier: BSL-1.0
// Exponentials of matrices, and distances of all pairs of points: known values, and what they satisfy.
#include "ops/places.hpp"

#include <limits>
#include <numbers>

#include <dfdx/dfdx.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_matrix_exp {

namespace {

using namespace suite;

constexpr double inf = std::numeric_limits<double>::infinity();

double most(Array const& x) { return x.size() == 0 ? 0 : max(abs(x)).item(); }
Array drawn(Shape const& s, std::uint64_t key) { return randn(s, Key{key}, DType::f64); }
bool close(Array const& x, Array const& y, double t = 1e-12) { return testing::error_ratio(x, y, t, t) <= 1; }

}  // namespace

TEST_CASE("exponentials of matrices", "[ops]") {
  // Turns by an angle, small ones and of many rounds; growth of a nilpotent matrix; diagonals.
  for (double const angle : {0.0, 1e-9, 0.01, 0.6, 2.0, 4.0, 100 * std::numbers::pi + 1}) {
    double const c = std::cos(angle), s = std::sin(angle);
    Tensor<double, 2, 2> const turn{{0, -angle}, {angle, 0}};
    static_assert(std::is_same_v<decltype(matrix_exp(turn)), Tensor<double, 2, 2>>);
    CHECK(close(matrix_exp(turn), from<double>({c, -s, s, c}, {2, 2}), 1e-15 * (10 + angle)));
    CHECK(close(cast<double>(matrix_exp(cast<float>(turn))), from<double>({c, -s, s, c}, {2, 2}),
                1e-7 * (10 + angle)));
  }
  CHECK(close(matrix_exp(from<double>({0, 1, 2, 0, 0, 3, 0, 0, 0}, {3, 3})),
              from<double>({1, 1, 3.5, 0, 1, 3, 0, 0, 1}, {3, 3})));
  CHECK(close(matrix_exp(from<double>({-700, 0, 0, 700}, {2, 2})),
              from<double>({std::exp(-700.0), 0, 0, std::exp(700.0)}, {2, 2}), 1e-12));
  for (index_t const n : {1, 5, 16, 17, 40})
    for (double const size : {1e-3, 0.02, 0.3, 2.0, 20.0}) {
      INFO(n << " rows of " << size);
      Array const a = drawn({2, n, n}, 1) * (size / static_cast<double>(n)), y = matrix_exp(a);
      Array const half = matrix_exp(a * 0.5);
      CHECK(most(matmul(half, half) - y) < 1e-13 * most(y));
      // Of what is symmetric, by its eigenvalues.
      Array const b = a + transpose(a);
      auto const [l, q] = eigh(b);
      Array const want = matmul(q * unsqueeze(exp(l), -2), transpose(q));
      CHECK(most(matrix_exp(b) - want) < 1e-13 * most(want));
      CHECK(most(cast_to(matrix_exp(cast_to(b, DType::f32)), DType::f64) - want) < 1e-5 * most(want));
    }
  CHECK(matrix_exp(zeros({0, 0})).shape() == make_shape(0, 0));
  for (double const bad : {inf, -inf, std::numeric_limits<double>::quiet_NaN()})
    CHECK(std::isnan(sum(matrix_exp(full({2, 2}, bad, DType::f64))).item()));
  CHECK_THROWS_WITH(matrix_exp(zeros({2, 3})), "matrix_exp: square matrices required, got [2, 3]");
  CHECK_THROWS_WITH(matrix_exp(zeros({2, 2}, DType::i32)), "matrix_exp: floating dtype required, got i32");
}

TEST_CASE("derivatives of exponentials of matrices", "[ops]") {
  for (Shape const& s : {make_shape(1, 1), make_shape(3, 3), make_shape(2, 2, 2)})
    check_rules([](V v) { return matrix_exp(v[0] * 2.0); }, {drawn(s, 2)}, DType::f64, true);
  // d trace(e^a) = e^a^T.
  Array a = drawn({4, 4}, 3);
  a.requires_grad(true);
  CHECK(close(gradients(sum(matrix_exp(a) * eye(4, DType::f64)), {a})[0], transpose(matrix_exp(a.detach()))));
  // A linear differential equation: at time t it has moved by a e^(a t) x.
  auto const at = [](Tensor<double, 2, 2> const& m) {
    return [m](auto const& t) { return matmul(matrix_exp(m * t), Tensor<double, 2>{1, 2}); };
  };
  Tensor<double, 2, 2> const m{{0, 1}, {-2, -0.3}};
  Array t = full({}, 0.7, DType::f64);
  t.requires_grad(true);
  Array const y = at(m)(t);
  CHECK(close(gradients(select(y, 0, 0), {t})[0], select(matmul(m, y.detach()), 0, 0)));
}

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

}  // namespace tests::ops_matrix_exp
