// SPDX-License-Identifier: BSL-1.0
// Linear algebra called on its own, of matrices of sizes around those of its loops and in any order in memory: what is
// solved is put in again, determinants are beside those of a plain elimination.
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <dfdx/dfdx.hpp>

namespace tests::ops_elimination {

namespace {

using namespace dfdx;

// Rows in an order that asks for exchanges.
Array matrices(index_t batch, index_t m, index_t n, DType d, std::uint64_t key) {
  return cast_to(randn({batch, m, n}, Key{key}), d);
}
double largest(Array const& x) { return x.size() == 0 ? 0 : max(abs(x)).item(); }
double at(Array const& x, index_t b, index_t i, index_t j) {
  return read_real(x.operand(), b * x.strides()[0] + i * x.strides()[1] + j * x.strides()[2]);
}
// The sign of a determinant and the logarithm of its absolute value.
std::pair<double, double> determinant(Array const& x, index_t batch) {
  index_t const n = x.shape()[1];
  std::vector<std::vector<double>> a;
  for (index_t i = 0; i < n; ++i) {
    a.emplace_back();
    for (index_t j = 0; j < n; ++j) a.back().push_back(at(x, batch, i, j));
  }
  double sign = 1, log = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    std::size_t best = k;
    for (std::size_t i = k; i < a.size(); ++i)
      if (std::abs(a[i][k]) > std::abs(a[best][k])) best = i;
    if (best != k) std::swap(a[k], a[best]), sign = -sign;
    if (a[k][k] < 0) sign = -sign;
    log += std::log(std::abs(a[k][k]));
    for (std::size_t i = k + 1; i < a.size(); ++i)
      for (std::size_t j = a.size(); j-- > k;) a[i][j] -= a[i][k] / a[k][k] * a[k][j];
  }
  return {sign, log};
}

}  // namespace

TEST_CASE("systems and determinants of any size", "[ops]") {
  for (DType const d : {DType::f64, DType::f32})
    for (index_t n : {1, 2, 3, 4, 5, 8, 16, 17, 31, 32, 33, 36, 64, 65, 70}) {
      double const near = (d == DType::f64 ? 1e-10 : 2e-3) * static_cast<double>(n);
      Array const x = matrices(3, n, n, d, static_cast<std::uint64_t>(n));
      for (Array const& a : {x, transpose(x), slice(matrices(3, 2 * n, n, d, 5), 1, 0, 2 * n, 2)}) {
        INFO(d << " " << a.shape());
        for (index_t k : {1, 3, 4, 9}) {
          Array const b = transpose(matrices(3, k, n, d, 99));
          CHECK(largest(matmul(a, solve(a, b)) - b) < near * (1 + largest(solve(a, b))));
          Array const low = tril(a, -1) * 0.1 + tril(triu(ones_like(a))) * 2.0;
          CHECK(largest(matmul(low, solve_triangular(low, b)) - b) < near);
          Array const high = triu(a, 1) * 0.1 + tril(triu(ones_like(a))) * 2.0;
          CHECK(largest(matmul(high, solve_triangular(high, b, true)) - b) < near);
        }
        CHECK(largest(matmul(a, inverse(a)) - tril(triu(ones_like(a)))) < near * (1 + largest(inverse(a))));
        auto const [sign, log] = slogdet(a);
        for (index_t i = 0; i < 3; ++i) {
          auto const [s, l] = determinant(a, i);
          CHECK(read_real(sign.operand(), i) == s);
          CHECK(std::abs(read_real(log.operand(), i) - l) <
                (d == DType::f64 ? 1e-9 : 1e-5) * (1 + std::abs(l)));
        }
      }
    }
}

TEST_CASE("orthogonal and triangular factors of any size", "[ops]") {
  for (DType const d : {DType::f64, DType::f32})
    for (auto const& [m, n] : {std::pair{1, 1}, std::pair{3, 2}, std::pair{4, 4}, std::pair{9, 5},
                               std::pair{17, 16}, std::pair{40, 33}, std::pair{70, 7}, std::pair{5, 8}}) {
      Array const x = matrices(2, m, n, d, 3), y = transpose(matrices(2, n, m, d, 4));
      for (Array const& a : {x, y}) {
        std::tuple<Array, Array> const both = qr(a);
        auto const& [q, r] = both;
        double const near = d == DType::f64 ? 1e-12 : 1e-4;
        INFO(d << " " << a.shape());
        CHECK(largest(matmul(q, r) - a) < near);
        CHECK(largest(matmul(transpose(q), q) - tril(triu(ones_like(matmul(transpose(q), q))))) < near);
        CHECK(largest(tril(r, -1)) == 0);
      }
    }
}

TEST_CASE("backward errors of large matrices that are nearly singular", "[ops]") {
  // Far beyond what is halved; singular values from 1 to 1e-12, of which no residual may show anything.
  for (index_t const n : {129, 150}) {
    double const near = 1e-15 * static_cast<double>(n);
    Array const u = std::get<0>(qr(matrices(1, n, n, DType::f64, 1))),
                v = std::get<0>(qr(matrices(1, n, n, DType::f64, 2)));
    Array const unit = tril(triu(ones_like(u)));
    CHECK(largest(matmul(transpose(u), u) - unit) < near);
    Array const sizes = exp(arange(static_cast<double>(n)) * (-27.6 / static_cast<double>(n)));
    Array const a = matmul(u * sizes, transpose(v)), definite = matmul(u * sizes, transpose(u));
    std::tuple<Array, Array> const both = qr(a);
    CHECK(largest(matmul(std::get<0>(both), std::get<1>(both)) - a) < near);
    CHECK(largest(matmul(transpose(std::get<0>(both)), std::get<0>(both)) - unit) < near);
    Array const symmetric = (definite + transpose(definite)) * 0.5 + unit * 1e-13, l = cholesky(symmetric);
    CHECK(largest(matmul(l, transpose(l)) - symmetric) < near);
    Array const b = matrices(1, n, 3, DType::f64, 3), one = slice(b, 2, 0, 1);
    for (Array const& right : {b, one}) {
      Array const x = solve(a, right);
      CHECK(largest(matmul(a, x) - right) < near * (1 + largest(x)));
      Array const y = solve_triangular(l, right), z = solve_triangular(transpose(l), right, true);
      CHECK(largest(matmul(l, y) - right) < near * (1 + largest(y)));
      CHECK(largest(matmul(transpose(l), z) - right) < near * (1 + largest(z)));
    }
  }
  // The first pivot that is not positive may be far down.
  Array const c = tril(triu(ones({140, 140}, DType::f64)));
  CHECK_NOTHROW(cholesky(c));
  for (index_t const at : {3, 40, 139}) {
    Array spoilt = c.clone();
    spoilt(at, at).copy_(full({}, -1, DType::f64));
    CHECK_THROWS_AS(cholesky(spoilt), error);
    spoilt(at, at).copy_(full({}, std::numeric_limits<double>::quiet_NaN(), DType::f64));
    CHECK_THROWS_AS(cholesky(spoilt), error);
  }
}

TEST_CASE("determinants on the tape, of singular matrices and of NaN", "[ops]") {
  Array x = matrices(2, 5, 5, DType::f64, 8);
  x.requires_grad(true);
  std::tuple<Array, Array> const both = slogdet(x), plain = slogdet(x.detach());
  auto const& [sign, log] = both;
  CHECK(largest(log.detach() - std::get<1>(plain)) == 0);
  CHECK(largest(sign.detach() - std::get<0>(plain)) == 0);
  Array const g = gradients(sum(log) + sum(sign), {x}, {.create_graph = true})[0];
  CHECK(largest(g.detach() - transpose(inverse(x.detach()))) < 1e-10);
  // Along w that of a^-T is -a^-T w^T a^-T.
  Array const w = matrices(2, 5, 5, DType::f64, 9), gg = gradients(sum(g * w), {x})[0];
  Array const t = transpose(inverse(x.detach()));
  CHECK(largest(gg + matmul(matmul(t, transpose(w)), t)) < 1e-8 * (1 + largest(gg)));
  auto const [no_sign, no_log] = slogdet(ones_like(x.detach()));
  CHECK(largest(no_sign) == 0);
  CHECK(max(no_log).item() == -std::numeric_limits<double>::infinity());
  Array const nan = full({3, 3}, std::numeric_limits<double>::quiet_NaN(), DType::f64);
  CHECK(std::isnan(std::get<1>(slogdet(nan)).item()));
  CHECK(std::get<1>(slogdet(Array(Meta{DType::f32, make_shape(2, 0, 0)}))).shape() == make_shape(2));
  CHECK_THROWS_AS(solve(nan * 0.0 != nan, nan), error);
  CHECK_THROWS_AS(solve(full({3, 3}, 2, DType::f64), nan), error);
}

}  // namespace tests::ops_elimination
