// SPDX-License-Identifier: BSL-1.0
// Exponentials of matrices: known values, and what they satisfy.
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

}  // namespace tests::ops_matrix_exp
