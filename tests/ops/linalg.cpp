// SPDX-License-Identifier: BSL-1.0
// Factorisations and linear systems: what they are asked to satisfy, and their derivatives.
#include "ops/places.hpp"

#include <dfdx/program/transforms.hpp>
#include <dfdx/vocabulary/linalg.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_linalg {

namespace {

using namespace suite;

Array general(Shape const& s, std::uint64_t key = 1) {
  Array const x = draw(s, {-1, 1}, key, DType::f64);
  return x + cast_to(eye(s[s.rank - 2], s[s.rank - 1]), DType::f64) * 2.0;
}
Array definite(Shape const& s) {
  Array const x = draw(s, {-1, 1}, 3, DType::f64);
  return matmul(x, transpose(x)) + cast_to(eye(s[s.rank - 1]), DType::f64);
}
bool close(Array const& x, Array const& y, double t = 1e-12) { return testing::error_ratio(x, y, t, t) <= 1; }

// In all dtypes and layouts: `residual` of the results is zero within rounding. The rules in double.
void check_system(Function const& f, std::function<Array(V, Array const&)> const& residual,
                  std::vector<Array> const& x) {
  for (DType d : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (Layout layout : {Layout::dense, Layout::turned, Layout::sparse}) {
      std::vector<Array> cast, wide;
      for (Array const& a : x)
        cast.push_back(laid_out(cast_to(a, d), layout)), wide.push_back(cast_to(cast.back(), DType::f64));
      Array const y = f(cast);
      REQUIRE(y.dtype() == d);
      REQUIRE(largest(residual(wide, cast_to(y, DType::f64))) < (d == DType::f64   ? 1e-13
                                                                 : d == DType::f32 ? 1e-5
                                                                                   : 6e-2));
    }
  check_rules(f, x, DType::f64);
}

}  // namespace

TEST_CASE("systems of equations", "[ops]") {
  for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 3, 3)}) {
    Shape sides = s;
    sides[s.rank - 1] = 2;
    Array const a = general(s), b = draw(sides, {-1, 1}, 2, DType::f64);
    check_system([](V v) { return solve(v[0], v[1]); },
                 [](V v, Array const& y) { return matmul(v[0], y) - v[1]; }, {a, b});
    for (bool upper : {false, true})
      check_system([&](V v) { return solve_triangular(v[0], v[1], upper); },
                   [&](V v, Array const& y) { return matmul(upper ? triu(v[0]) : tril(v[0]), y) - v[1]; },
                   {a, b});
    check_system(
        [](V v) { return inverse(v[0]); },
        [&](V v, Array const& y) { return matmul(v[0], y) - cast_to(eye(s[s.rank - 1]), DType::f64); }, {a});
  }
  // Row exchanges; vectors; broadcasting.
  Array const swap = from<double>({0, 2, 1, 0}, {2, 2});
  CHECK(array_equal(solve(swap, from<double>({4, 3})), from<double>({3, 2})));
  Array const many = general(make_shape(4, 3, 3)), one = draw(make_shape(3, 2), {-1, 1}, 2, DType::f64);
  CHECK(close(matmul(many, solve(many, one)), expand(one, {4, 3, 2})));
  CHECK(solve(many, zeros({4, 3}, DType::f64)).shape() == make_shape(4, 3));
  CHECK(solve(zeros({0, 0}), zeros({0, 2})).shape() == make_shape(0, 2));
  CHECK_THROWS_WITH(solve(zeros({2, 2}), zeros({2, 1})), "solve: the matrix is singular");
  CHECK_THROWS_WITH(solve(zeros({2, 3}), zeros({2, 1})), "solve: square matrices required, got [2, 3]");
  CHECK_THROWS_WITH(solve(zeros({2, 2}), zeros({3, 1})),
                    "solve: matrices [2, 2] do not fit right sides [3, 1]");
  CHECK_THROWS_WITH(inverse(zeros({2, 2}, DType::i32)), "inverse: floating dtype required, got i32");
  CHECK_THROWS_AS(solve(zeros({2}), zeros({2})), error);
}

TEST_CASE("cholesky and qr", "[ops]") {
  for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(2, 4, 4)}) {
    Array const a = definite(s);
    check_system([](V v) { return cholesky((v[0] + transpose(v[0])) * 0.5); },
                 [](V v, Array const& y) { return matmul(y, transpose(y)) - (v[0] + transpose(v[0])) * 0.5; },
                 {a});
    Array const l = cholesky(a);
    CHECK(array_equal(l, tril(l)));
  }
  CHECK_THROWS_WITH(cholesky(from<double>({1, 2, 2, 1}, {2, 2})),
                    "cholesky: the matrix is not positive definite");
  for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(5, 2), make_shape(2, 4, 3)}) {
    Array const a = general(s);
    auto const [q, r] = qr(a);
    CHECK(close(matmul(q, r), a));
    CHECK(close(matmul(transpose(q), q), expand(cast_to(eye(s[s.rank - 1]), DType::f64), r.shape())));
    CHECK(array_equal(r, triu(r)));
    check_rules([](V v) { return std::get<0>(qr(v[0])); }, {a}, DType::f64);
    check_rules([](V v) { return std::get<1>(qr(v[0])); }, {a}, DType::f64);
    CHECK(std::get<0>(qr(cast_to(a, DType::f16))).dtype() == DType::f16);
  }
  // Numbers whose squares vanish or overflow.
  for (double const size : {1e-300, 1e-155, 1e160, 1e290})
    for (index_t const n : {3, 20}) {
      Array const a = general(make_shape(n + 2, n)) * size;
      auto const [q, r] = qr(a);
      CHECK(close(matmul(q, r) / size, a / size));
      CHECK(close(matmul(transpose(q), q), cast_to(eye(n), DType::f64)));
    }
  CHECK(std::get<1>(qr(zeros({3, 2}))).shape() == make_shape(2, 2));
  CHECK_THROWS_WITH(qr(zeros({3})), "qr: matrices with at least as many rows as columns required, got [3]");
}

TEST_CASE("qr of wide matrices", "[ops]") {
  // Signs are those of LAPACK.
  CHECK(close(std::get<1>(qr(from<double>({0, 3, 1, 4, 0, 2}, {2, 3}))),
              from<double>({-4, 0, -2, 0, -3, -1}, {2, 3})));
  for (Shape const& s : {make_shape(2, 3), make_shape(1, 4), make_shape(2, 2, 5)}) {
    Array const a = general(s);
    auto const [q, r] = qr(a);
    REQUIRE(q.shape()[s.rank - 1] == s[s.rank - 2]);
    REQUIRE(r.shape() == s);
    CHECK(close(matmul(q, r), a));
    CHECK(close(matmul(transpose(q), q), expand(cast_to(eye(s[s.rank - 2]), DType::f64), q.shape())));
    CHECK(array_equal(r, triu(r)));
    check_rules([](V v) { return std::get<0>(qr(v[0])); }, {a}, DType::f64);
    check_rules([](V v) { return std::get<1>(qr(v[0])); }, {a}, DType::f64);
  }
  auto const typed = qr(Tensor<double, 2, 3>::from({1, 2, 3, 4, 5, 7}));
  static_assert(
      std::is_same_v<std::remove_const_t<std::tuple_element_t<1, decltype(typed)>>, Tensor<double, 2, 3>>);
  CHECK(close(matmul(std::get<0>(typed), std::get<1>(typed)), from<double>({1, 2, 3, 4, 5, 7}, {2, 3})));
}

TEST_CASE("least squares and pseudoinverses", "[ops]") {
  for (Shape const& s : {make_shape(3, 3), make_shape(1, 1), make_shape(5, 2), make_shape(2, 5),
                         make_shape(2, 4, 3), make_shape(2, 3, 4)}) {
    Shape sides = s;
    sides[s.rank - 1] = 2;
    bool const tall = s[s.rank - 2] >= s[s.rank - 1];
    Array const a = general(s), b = draw(sides, {-1, 1}, 2, DType::f64);
    // What is left is orthogonal to all columns; of wide matrices nothing is, and x is in the space of their rows.
    check_system([](V v) { return lstsq(v[0], v[1]); },
                 [&](V v, Array const& x) {
                   Array const rest = matmul(v[0], x) - v[1];
                   return tall ? matmul(transpose(v[0]), rest) : rest;
                 },
                 {a, b});
    Array const p = pinv(a), x = lstsq(a, b);
    CHECK(close(matmul(p, b), x));
    CHECK(close(matmul(matmul(a, p), a), a));
    CHECK(close(matmul(matmul(p, a), p), p));
    CHECK(close(matmul(a, p), transpose(matmul(a, p))));
    CHECK(close(matmul(p, a), transpose(matmul(p, a))));
    check_rules([](V v) { return pinv(v[0]); }, {a}, DType::f64);
    // Vectors are columns.
    CHECK(close(lstsq(a, select(b, -1, 1)), select(x, -1, 1)));
  }
  Tensor<double, 3, 2> const points{{1, 0}, {1, 1}, {1, 2}};
  auto const line = lstsq(points, Tensor<double, 3>{1, 3, 5});
  static_assert(std::is_same_v<std::remove_const_t<decltype(line)>, Tensor<double, 2>>);
  CHECK(close(line, from({1.0, 2.0})));
  static_assert(std::is_same_v<decltype(pinv(points)), Tensor<double, 2, 3>>);
  auto const fit =
      compile([](Tensor<double, 3, 2> const& m, Tensor<double, 3, 1> const& y) { return lstsq(m, y); });
  CHECK(close(fit(points, Tensor<double, 3, 1>{{1}, {3}, {5}}), from<double>({1, 2}, {2, 1})));
  CHECK(lstsq(ones({2, 1}, DType::f16), ones({2, 1}, DType::f16)).dtype() == DType::f16);
  CHECK_THROWS_WITH(lstsq(ones({3, 2}), ones({2, 1})),
                    "lstsq: matrices [3, 2] do not fit right sides [2, 1]");
  CHECK_THROWS_WITH(lstsq(ones({2}), ones({2})), "lstsq: matrices required, got [2]");
  CHECK_THROWS_WITH(pinv(ones({2})), "pinv: matrices required, got [2]");
  CHECK_THROWS_WITH(pinv(ones({2, 2}, DType::i32)), "pinv: floating dtype required, got i32");
}

TEST_CASE("determinants", "[ops]") {
  Array const a = from<double>({0, 2, 1, 3, 1, 0, 1, 1, 4}, {3, 3});
  CHECK(std::fabs(at(det(a), 0) - -22) < 1e-13);
  auto const [sign, value] = slogdet(a);
  CHECK(at(sign, 0) == -1);
  CHECK(std::fabs(at(value, 0) - std::log(22.0)) < 1e-14);
  CHECK(std::isnan(at(logdet(a), 0)));
  check_rules([](V v) { return det(v[0]); }, {a}, DType::f64);
  check_rules([](V v) { return std::get<1>(slogdet(v[0])); }, {general(make_shape(2, 3, 3))}, DType::f64);
  check_rules([](V v) { return logdet(v[0]); }, {definite(make_shape(3, 3))}, DType::f64);
  Array const singular = from<float>({1, 2, 2, 4}, {2, 2});
  CHECK(at(det(singular), 0) == 0);
  CHECK(at(std::get<0>(slogdet(singular)), 0) == 0);
  CHECK(det(zeros({0, 0})).item<float>() == 1);
  CHECK(det(general(make_shape(2, 2, 3, 3))).shape() == make_shape(2, 2));
  CHECK_THROWS_WITH(inverse(zeros({2, 2})), "inverse: the matrix is singular");
  CHECK_THROWS_WITH(inv(zeros({3})), "inv: square matrices required, got [3]");
  CHECK_THROWS_WITH(slogdet(zeros({2, 3})), "slogdet: square matrices required, got [2, 3]");
  CHECK_THROWS_WITH(det(zeros({2, 3})), "det: square matrices required, got [2, 3]");
}

TEST_CASE("matrices of several panels", "[ops]") {
  // Larger than what elimination takes at once, with rows that have to be exchanged.
  for (index_t const n : {31, 32, 33, 70, 97}) {
    Array const a = randn({2, n, n}, Key{static_cast<std::uint64_t>(n)}, DType::f64),
                at = transpose(a, -2, -1);
    Array const b = randn({2, n, 3}, Key{5}, DType::f64);
    CHECK(allclose(matmul(a, solve(a, b)), b, 1e-9, 1e-9));
    Array const positive = matmul(a, at) + eye(n, DType::f64) * 0.1;
    Array const l = cholesky(positive);
    CHECK(allclose(matmul(l, transpose(l, -2, -1)), positive, 1e-10, 1e-10));
    CHECK(array_equal(l, tril(l)));
    Array const x = solve_triangular(l, b, false);
    CHECK(allclose(matmul(l, x), b, 1e-8, 1e-8));
    Array const diagonal = sum(log(sum(l * eye(n, DType::f64), -1)), -1);
    CHECK(allclose(std::get<1>(slogdet(positive)), 2 * diagonal, 1e-10, 1e-10));
  }
}

}  // namespace tests::ops_linalg
