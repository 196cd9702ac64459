// SPDX-License-Identifier: BSL-1.0
// Eigenvalues and eigenvectors of symmetric matrices: what they are asked to satisfy, in all regimes.
#include <cmath>
#include <limits>
#include <tuple>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>

namespace tests::ops_eigh {

namespace {

using namespace dfdx;

double largest(Array const& x) { return x.size() == 0 ? 0 : max(abs(x)).item(); }
Array drawn(Shape const& s, std::uint64_t key) { return randn(s, Key{key}, DType::f64); }
bool close(Array const& x, Array const& y) { return testing::error_ratio(x, y, 1e-11, 1e-11) <= 1; }
void check_factors(Array const& a, double near) {
  index_t const n = a.shape()[a.ndim() - 1];
  std::tuple<Array, Array> const both = eigh(a);
  auto const& [l, q] = both;
  REQUIRE(l.dtype() == a.dtype());
  REQUIRE(l.size() * n == a.size());
  double const scale = 1e-300 + largest(a) * static_cast<double>(n);
  CHECK(largest(matmul(a, q) - q * unsqueeze(l, -2)) <= near * scale);
  CHECK(largest(matmul(transpose(q), q) - eye(n, a.dtype())) <= near * static_cast<double>(n));
  if (n > 1) CHECK(min(slice(l, -1, 1) - slice(l, -1, 0, n - 1)).item() >= 0);
  CHECK(array_equal(eigvalsh(a), l));
}

}  // namespace

TEST_CASE("eigenvalues and eigenvectors of any size", "[ops]") {
  for (index_t const n : {1, 2, 3, 4, 7, 16, 17, 33, 70}) {
    INFO(n);
    Array const x = drawn({2, n, n}, 1), a = x + transpose(x);
    check_factors(a, 2e-15);
    check_factors(cast_to(a, DType::f32), 1e-6);
    check_factors(transpose(a), 2e-15);
    check_factors(a * 1e-200, 2e-15);
    check_factors(a * 1e200, 2e-15);
    // Values from 1 to 1e-13, equal ones, and none but 0.
    Array const q = std::get<0>(qr(x));
    Array const spread =
        matmul(q * exp(arange(static_cast<double>(n)) * (-30.0 / static_cast<double>(n))), transpose(q));
    check_factors((spread + transpose(spread)) * 0.5, 2e-15);
    check_factors(ones_like(a), 2e-15);
    check_factors(zeros_like(a), 2e-15);
    check_factors(tril(triu(ones_like(a))) * -3.0, 2e-15);
    // The lower triangle is looked at.
    CHECK(array_equal(eigvalsh(tril(a)), eigvalsh(a)));
  }
  // Rows apart from others, of which one is next to nothing.
  Array apart = zeros({40, 40}, DType::f64);
  for (index_t const i : {0, 2, 20, 33}) apart[i][i + 1].copy_(full({}, 1.0, DType::f64));
  check_factors(apart + transpose(apart), 2e-15);
  check_factors(apart + transpose(apart) + drawn({40, 40}, 2) * 0 + eye(40, DType::f64) * 1e-170, 2e-15);
  CHECK(eigvalsh(zeros({0, 0})).shape() == make_shape(0));
  CHECK_THROWS_WITH(eigh(zeros({2, 3})), "eigh: square matrices required, got [2, 3]");
  CHECK_THROWS_WITH(eigh(zeros({2, 2}, DType::i32)), "eigh: floating dtype required, got i32");
  for (double const bad : {std::numeric_limits<double>::quiet_NaN(), HUGE_VAL})
    CHECK_THROWS_WITH(eigh(full({3, 3}, bad, DType::f64)),
                      "eigh: no eigenvalues were found: is there a NaN?");
  // By hand: 2 +- 1.
  auto const [l, q] = eigh(Tensor<double, 2, 2>{{2, 1}, {1, 2}});
  static_assert(std::is_same_v<std::remove_const_t<decltype(l)>, Tensor<double, 2>>);
  static_assert(std::is_same_v<std::remove_const_t<decltype(q)>, Tensor<double, 2, 2>>);
  CHECK(close(l, from<double>({1, 3})));
  CHECK(close(square(Array(q)), full({2, 2}, 0.5, DType::f64)));
}

TEST_CASE("eigenvalues of matrices of low rank", "[ops]") {
  // Most values are rounding, in which there is nothing to find.
  for (index_t const n : {20, 43, 77})
    for (index_t rank = 1; rank < 16; ++rank) {
      INFO(n << " rows of rank " << rank);
      Array const a = drawn({n, rank}, static_cast<std::uint64_t>(n + rank));
      check_factors(matmul(a, transpose(a)), 2e-15);
    }
}

TEST_CASE("derivatives of eigenvalues and eigenvectors", "[ops]") {
  auto const f = [](auto const& x) {
    auto const [l, q] = eigh(x + transpose(x));
    return sum(l * l * l) + sum(square(square(q)));
  };
  using M = Tensor<double, 5, 5>;
  Array const a = drawn({5, 5}, 3), w = drawn({5, 5}, 4);
  auto const gradient = [&](Array const& at) {
    Array x = at.clone();
    x.requires_grad(true);
    return gradients(f(x), {x})[0];
  };
  double const step = 1e-5;
  Array const g = gradient(a);
  double const along = (f(a + w * step).item() - f(a - w * step).item()) * (0.5 / step);
  CHECK(std::fabs(sum(g * w).item() - along) < 1e-6 * (1 + std::fabs(along)));
  Array x = a.clone();
  x.requires_grad(true);
  Array const second = gradients(sum(gradients(f(x), {x}, {.create_graph = true})[0] * w), {x})[0];
  Array const by_steps = (gradient(a + w * step) - gradient(a - w * step)) * (0.5 / step);
  CHECK(largest(second - by_steps) < 1e-6 * (1 + largest(second)));
  // In programs, and forwards.
  auto const [value, slope] = value_and_grad(f)(M(a));
  CHECK(close(value, f(a)));
  CHECK(close(slope, g));
  CHECK(close(jvp(f)(M(a), M(w)).second, sum(g * w)));
  // Of the values alone, all the same.
  auto const of_values = [](auto const& v) { return sum(exp(eigvalsh(v + transpose(v)) * 0.1)); };
  auto const of_all = [](auto const& v) { return sum(exp(std::get<0>(eigh(v + transpose(v))) * 0.1)); };
  CHECK(close(gradients(of_values(x), {x})[0], gradients(of_all(x), {x})[0]));
  CHECK(close(jvp(of_values)(M(a), M(w)).second, jvp(of_all)(M(a), M(w)).second));
  // Of equal values: what does not tell them apart has its derivative, and vectors of one value none to each other.
  Array one = eye(3, DType::f64) * 2.0;
  one.requires_grad(true);
  CHECK(close(gradients(sum(exp(eigvalsh(one))), {one})[0], eye(3, DType::f64) * std::exp(2.0)));
  CHECK(largest(gradients(sum(std::get<1>(eigh(one)) * drawn({3, 3}, 5)), {one})[0]) == 0);
  Array none = zeros({3, 3}, DType::f32);
  none.requires_grad(true);
  CHECK(largest(gradients(sum(std::get<1>(eigh(none))), {none})[0]) == 0);
}

}  // namespace tests::ops_eigh
