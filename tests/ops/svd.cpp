// SPDX-License-Identifier: BSL-1.0
// Singular values, and what is made of them: what they are asked to satisfy, in all regimes, and known matrices.
#include "ops/places.hpp"

#include <limits>
#include <numbers>

#include <dfdx/dfdx.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_svd {

namespace {

using namespace suite;

constexpr double inf = std::numeric_limits<double>::infinity();

double most(Array const& x) { return x.size() == 0 ? 0 : max(abs(x)).item(); }
Array drawn(Shape const& s, std::uint64_t key) { return randn(s, Key{key}, DType::f64); }
Array counted(index_t n) { return arange(static_cast<double>(n), DType::f64); }
bool close(Array const& x, Array const& y, double t = 1e-12) { return testing::error_ratio(x, y, t, t) <= 1; }
// What u, s and vt are asked to be, within `near` of the largest.
void check_factors(Array const& a, double near) {
  int const r = a.ndim();
  index_t const m = a.shape()[r - 2], n = a.shape()[r - 1], k = std::min(m, n);
  auto const [u, s, vt] = svd(a);
  REQUIRE(s.dtype() == a.dtype());
  REQUIRE(u.shape()[r - 1] == k);
  REQUIRE(vt.shape()[r - 2] == k);
  double const size = static_cast<double>(std::max(m, n)), all = 1e-300 + most(s);
  CHECK(most(matmul(u * unsqueeze(s, -2), vt) - a) <= near * size * all);
  CHECK(most(matmul(transpose(u), u) - eye(k, a.dtype())) <= near * size);
  CHECK(most(matmul(vt, transpose(vt)) - eye(k, a.dtype())) <= near * size);
  if (k > 0) CHECK(min(s).item() >= 0);
  if (k > 1) CHECK(max(slice(s, -1, 1) - slice(s, -1, 0, k - 1)).item() <= 0);
  CHECK(most(svdvals(a) - s) <= near * all);
}

}  // namespace

TEST_CASE("singular values and vectors of any size", "[ops]") {
  for (auto const& [m, n] : std::vector<std::pair<index_t, index_t>>{{1, 1},
                                                                     {2, 2},
                                                                     {3, 3},
                                                                     {1, 6},
                                                                     {6, 1},
                                                                     {5, 3},
                                                                     {3, 5},
                                                                     {8, 8},
                                                                     {9, 9},
                                                                     {40, 16},
                                                                     {17, 36},
                                                                     {70, 33}}) {
    INFO(m << " x " << n);
    Array const a = drawn({2, m, n}, 1);
    check_factors(a, 2e-15);
    check_factors(cast_to(a, DType::f32), 1e-6);
    check_factors(transpose(a), 2e-15);
    check_factors(a * 1e-200, 2e-15);
    check_factors(a * 1e200, 2e-15);
    // Columns from 1 to 1e-26, of rank 1, none but 0.
    check_factors(a * exp(counted(n) * (-60.0 / static_cast<double>(n))), 2e-15);
    check_factors(ones_like(a), 2e-15);
    check_factors(zeros_like(a), 2e-15);
  }
  for (Shape const& s : {make_shape(0, 3), make_shape(3, 0), make_shape(0, 2, 3)})
    if (Array const a = drawn(s, 1); true)
      CHECK(matmul(std::get<0>(svd(a)) * unsqueeze(svdvals(a), -2), std::get<2>(svd(a))).shape() == s);
  CHECK(std::get<2>(svd(zeros({3, 0}))).shape() == make_shape(0, 0));
  // Powers of two on the diagonal are found as they are, wherever they stand.
  Array const diagonal = from<double>({0, 0.5, 0, 8, 0, 0, 0, 0, -0x1p-100, 0, 0, 0}, {4, 3});
  CHECK(array_equal(svdvals(diagonal), from({8.0, 0.5, 0x1p-100})));
  // The golden ratio and its inverse.
  double const golden = std::numbers::phi;
  CHECK(close(svdvals(from<double>({1, 1, 1, 0}, {2, 2})), from({golden, 1 / golden})));
  auto const [u, s, vt] = svd(Tensor<double, 2, 3>{{3, 0, 0}, {0, 0, -4}});
  static_assert(std::is_same_v<std::remove_const_t<decltype(u)>, Tensor<double, 2, 2>>);
  static_assert(std::is_same_v<std::remove_const_t<decltype(s)>, Tensor<double, 2>>);
  static_assert(std::is_same_v<std::remove_const_t<decltype(vt)>, Tensor<double, 2, 3>>);
  CHECK(close(s, from({4.0, 3.0})));
  CHECK(close(abs(u), from<double>({0, 1, 1, 0}, {2, 2})));
  CHECK(close(abs(vt), from<double>({0, 0, 1, 1, 0, 0}, {2, 3})));
  CHECK_THROWS_WITH(svd(zeros({3})), "svd: matrices required, got [3]");
  CHECK_THROWS_WITH(svd(zeros({2, 2}, DType::i32)), "svd: floating dtype required, got i32");
  CHECK_THROWS_WITH(svdvals(zeros({3})), "svdvals: matrices required, got [3]");
  for (double const bad : {std::numeric_limits<double>::quiet_NaN(), -inf})
    CHECK_THROWS_WITH(svd(full({3, 2}, bad, DType::f64)), "svd: finite elements required");
}

TEST_CASE("small singular values beside large ones", "[ops]") {
  // Of b with columns over many orders each value is known as well as those of b: here b is orthogonal.
  for (index_t const n : {3, 8, 20, 40}) {
    Array const q = std::get<0>(qr(drawn({n + 5, n}, 2)));
    Array const want = exp(counted(n) * (-200.0 / static_cast<double>(n)));
    for (Array const& sizes : {want, flip(want, 0)}) {
      Array const s = svdvals(q * sizes);
      CHECK(max(abs(s / want - 1)).item() < 1e-13);
      CHECK(max(abs(svdvals(transpose(q * sizes)) / want - 1)).item() < 1e-13);
    }
  }
}

TEST_CASE("derivatives of singular values and vectors", "[ops]") {
  // Functions that do not depend on signs.
  for (Shape const& shape : {make_shape(3, 3), make_shape(1, 1), make_shape(5, 2), make_shape(2, 5),
                             make_shape(2, 4, 3), make_shape(1, 4), make_shape(4, 1)}) {
    Array const a = drawn(shape, 3);
    check_rules([](V v) { return square(std::get<0>(svd(v[0]))); }, {a}, DType::f64);
    check_rules([](V v) { return std::get<1>(svd(v[0])); }, {a}, DType::f64);
    check_rules([](V v) { return square(std::get<2>(svd(v[0]))); }, {a}, DType::f64);
    check_rules([](V v) { return svdvals(v[0]); }, {a}, DType::f64);
    // u vt, the orthogonal matrix nearest to a, tells nothing of the order of values either.
    check_rules(
        [](V v) {
          auto const [u, s, vt] = svd(v[0]);
          return matmul(u, vt);
        },
        {a}, DType::f64);
  }
  // In programs, and forwards.
  constexpr auto f = [](auto const& x) {
    auto const [u, s, vt] = svd(x);
    return sum(s * s * s) + sum(square(square(u))) + sum(square(square(vt)));
  };
  using M = Tensor<double, 4, 3>;
  Array const a = drawn({4, 3}, 3), w = drawn({4, 3}, 4);
  Array x = a.clone();
  x.requires_grad(true);
  Array const g = gradients(f(x), {x})[0];
  auto const [value, slope] = value_and_grad(f)(M(a));
  CHECK(close(value, f(a)));
  CHECK(close(slope, g));
  CHECK(close(jvp(f)(M(a), M(w)).second, sum(g * w)));
  // Of equal values, and of 0: finite, and right of what does not tell them apart.
  Array one = eye(3, DType::f64) * 2.0;
  one.requires_grad(true);
  CHECK(close(gradients(sum(exp(svdvals(one))), {one})[0], eye(3, DType::f64) * std::exp(2.0)));
  CHECK(close(gradients(sum(exp(std::get<1>(svd(one)))), {one})[0], eye(3, DType::f64) * std::exp(2.0)));
  Array none = zeros({3, 2}, DType::f32);
  none.requires_grad(true);
  CHECK(most(gradients(sum(std::get<0>(svd(none))), {none})[0]) < HUGE_VAL);
}

TEST_CASE("pseudoinverses of any rank", "[ops]") {
  for (Shape const& s :
       {make_shape(3, 3), make_shape(1, 1), make_shape(5, 2), make_shape(2, 5), make_shape(2, 4, 3),
        make_shape(2, 3, 4), make_shape(12, 10), make_shape(0, 2), make_shape(2, 0)})
    for (bool const full : {true, false}) {
      Array a = drawn(s, 1);
      if (!full && a.size() > 0) a = matmul(slice(a, -1, 0, 1), slice(a, -2, 0, 1));  // of rank 1
      Array const p = pinv(a);
      CHECK(close(matmul(matmul(a, p), a), a));
      CHECK(close(matmul(matmul(p, a), p), p));
      CHECK(close(matmul(a, p), transpose(matmul(a, p))));
      CHECK(close(matmul(p, a), transpose(matmul(p, a))));
      if (full && a.size() > 0) check_rules([](V v) { return pinv(v[0]); }, {a}, DType::f64);
    }
  // Along matrices of rank 1: the derivatives of what is made of two vectors.
  check_rules([](V v) { return pinv(matmul(v[0], v[1])); }, {drawn({4, 1}, 5), drawn({1, 3}, 6)}, DType::f64);
  // Values up to rtol times the largest count as 0.
  Array const a = from<double>({4, 0, 0, 1}, {2, 2});
  CHECK(close(pinv(a), from<double>({0.25, 0, 0, 1}, {2, 2})));
  CHECK(close(pinv(a, 0.25), from<double>({0.25, 0, 0, 0}, {2, 2})));
  CHECK(most(pinv(zeros({2, 3}))) == 0);
  CHECK(most(pinv(Tensor<float, 2, 3>{{1, 2, 3}, {2, 4, 6}}) * 70.0f -
             Tensor<float, 3, 2>{{1, 2}, {2, 4}, {3, 6}}) < 1e-5);
  CHECK_THROWS_WITH(pinv(full({2, 2}, inf)), "pinv: finite elements required");
  CHECK_THROWS_WITH(pinv(ones({2})), "pinv: matrices required, got [2]");
}

TEST_CASE("ranks, norms and condition of matrices", "[ops]") {
  Array const a = drawn({2, 4, 2}, 1), b = drawn({2, 2, 5}, 2);
  CHECK(array_equal(matrix_rank(matmul(a, b)), from<std::int64_t>({2, 2})));
  CHECK(array_equal(matrix_rank(cast_to(matmul(a, b), DType::f32)), from<std::int64_t>({2, 2})));
  CHECK(matrix_rank(zeros({3, 3})).item() == 0);
  CHECK(matrix_rank(zeros({3, 0})).item() == 0);
  CHECK(matrix_rank(Tensor<float, 2, 0>{}).item() == 0);
  CHECK(matrix_rank(Tensor<float, 2, 2>{{4, 0}, {0, 1}}).item() == 2);
  CHECK(matrix_rank(Tensor<float, 2, 2>{{4, 0}, {0, 1}}, 0.25).item() == 1);
  // Hilbert's of 12 rows has condition 1.8e16.
  Array const hilbert = 1.0 / (unsqueeze(counted(12), -1) + counted(12) + 1.0);
  CHECK(matrix_rank(hilbert).item() == 11);
  Tensor<double, 2, 3> const m{{1, -2, 3}, {0, 4, -3}};
  auto const is = [](auto const& x, double want) { return std::fabs(x.item() - want) < 1e-12; };
  CHECK(is(matrix_norm(m), std::sqrt(39.0)));
  CHECK(is(matrix_norm(m, 1), 6));
  CHECK(is(matrix_norm(m, -1), 1));
  CHECK(is(matrix_norm(m, inf), 7));
  CHECK(is(matrix_norm(m, -inf), 6));
  // Values of m m^T: of trace 39 and determinant 14 * 25 - 17 * 17 = 61.
  double const root = std::sqrt(39.0 * 39 - 4 * 61), high = std::sqrt((39 + root) / 2),
               low = std::sqrt((39 - root) / 2);
  CHECK(is(matrix_norm(m, 2), high));
  CHECK(is(matrix_norm(m, -2), low));
  CHECK(is(matrix_norm(m, "nuc"), high + low));
  CHECK(is(cond(m), high / low));
  CHECK(matrix_norm(a, 2).shape() == make_shape(2));
  check_rules([](V v) { return matrix_norm(v[0], "nuc"); }, {drawn({2, 3, 3}, 7)}, DType::f64);
  check_rules([](V v) { return cond(v[0]); }, {drawn({3, 3}, 7)}, DType::f64);
  CHECK_THROWS_WITH(matrix_norm(a, 3), "matrix_norm: fro, nuc, 1, -1, 2, -2 or an infinity required");
  CHECK_THROWS_WITH(matrix_norm(ones({3})), "matrix_norm: matrices required, got [3]");
  CHECK_THROWS_WITH(matrix_rank(ones({3})), "matrix_rank: matrices required, got [3]");
  CHECK_THROWS_WITH(cond(ones({3})), "cond: matrices required, got [3]");
}

}  // namespace tests::ops_svd
