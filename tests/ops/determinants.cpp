// SPDX-License-Identifier: BSL-1.0
// Derivatives of determinants, of matrices of any rank: the first two are there where there is no inverse.
#include <algorithm>
#include <cmath>
#include <tuple>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>

namespace tests::ops_determinants {

namespace {

using namespace dfdx;

double largest(Array const& x) { return max(abs(x)).item(); }
bool close(Array const& x, Array const& y, double t = 1e-12) { return testing::error_ratio(x, y, t, t) <= 1; }
Array drawn(Shape const& s, std::uint64_t key) { return randn(s, Key{key}, DType::f64); }
// A matrix of n rows and that rank, with rows and columns of very different lengths.
Array of_rank(index_t n, index_t rank, std::uint64_t key) {
  Array const u = drawn({n, rank}, key), v = drawn({rank, n}, key + 1);
  return matmul(u * exp(3.0 * drawn({n, 1}, key + 2)), v);
}
// The matrix without a row and a column.
Array without(Array const& a, index_t row, index_t column) {
  auto const drop = [](Array const& x, int axis, index_t k) {
    return concat(std::vector<Array>{slice(x, axis, 0, k), slice(x, axis, k + 1)}, axis);
  };
  return drop(drop(a, 0, row), 1, column);
}
Array cofactors_of(Array const& a) {
  index_t const n = a.shape()[0];
  Array const r = zeros({n, n}, DType::f64);
  for (index_t i = 0; i < n; ++i)
    for (index_t j = 0; j < n; ++j) r(i, j).copy_(det(without(a, i, j)) * ((i + j) % 2 == 0 ? 1.0 : -1.0));
  return r;
}

}  // namespace

TEST_CASE("derivatives of determinants of singular matrices", "[ops]") {
  for (index_t const n : {1, 2, 3, 4, 5, 7, 18})
    for (index_t rank = std::max<index_t>(0, n - 4); rank <= n; ++rank) {
      INFO(n << " rows, rank " << rank);
      Array const a = rank == 0 ? zeros({n, n}, DType::f64) : of_rank(n, rank, 7);
      Array x = a.clone();
      x.requires_grad(true);
      Array const g = gradients(det(x), {x}, {.create_graph = true})[0];
      Array const wanted = n == 1 ? ones({1, 1}, DType::f64) : cofactors_of(a);
      // Times the length of its row none is larger than the product of all lengths.
      Array const lengths = sqrt(unsqueeze(sum(square(a), -1), -1)) + (rank == 0 ? 1.0 : 0.0);
      double const size = prod(lengths).item();
      CHECK(largest((g.detach() - wanted) * lengths) < 1e-13 * size);
      if (rank + 1 == n && n > 1) CHECK(largest(g.detach() * lengths) > 1e-9 * size);
      // Of the gradient along w, beside differences of fourth order.
      Array const w = drawn({n, n}, 5) * lengths, second = gradients(sum(g * w), {x})[0];
      double const step = 1e-3;
      auto const at = [&](double t) { return n == 1 ? wanted : cofactors_of(a + w * (t * step)); };
      Array const near = (at(1) - at(-1)) * (0.5 / step), far = (at(2) - at(-2)) * (0.25 / step);
      CHECK(largest((second - (near * 4.0 - far) * (1.0 / 3)) * lengths) < 1e-7 * size);
    }
  // Tensors of few and of many rows, in programs too.
  auto const both = [](auto const& m) {
    return value_and_grad(
        [](auto const& x) { return sum(square(grad([](auto const& y) { return det(y); })(x))); })(m);
  };
  auto const agrees = [&]<class M>(M const& m) {
    Array x = Array(m).clone();
    x.requires_grad(true);
    Array const g = gradients(det(x), {x}, {.create_graph = true})[0];
    auto const [value, slope] = both(m);
    CHECK(close(value, sum(square(g.detach()))));
    CHECK(close(slope, gradients(sum(square(g)), {x})[0], 1e-11));
  };
  agrees(Tensor<double, 2, 2>{{1, 2}, {2, 4}});
  agrees(Tensor<double, 3, 3>{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  agrees(Tensor<double, 4, 4>(of_rank(4, 2, 1)));
  agrees(Tensor<double, 6, 6>(of_rank(6, 5, 1)));
  agrees(Tensor<double, 6, 6>(of_rank(6, 4, 1)));
  agrees(Tensor<double, 17, 17>(of_rank(17, 16, 1)));
}

TEST_CASE("third derivatives of determinants need an inverse", "[ops]") {
  auto const third = [](Array x) {
    x.requires_grad(true);
    Array const w = drawn({5, 5}, 3), g = gradients(det(x), {x}, {.create_graph = true})[0];
    Array const h = gradients(sum(g * w), {x}, {.create_graph = true})[0];
    return std::pair(h.detach(), gradients(sum(h * w), {x})[0]);
  };
  Array const a = drawn({5, 5}, 4), w = drawn({5, 5}, 3);
  // Beside differences of the second ones, along w.
  auto const [second, exact] = third(a.clone());
  double const step = 1e-4;
  Array const by_steps = (third(a + w * step).first - third(a - w * step).first) * (0.5 / step);
  CHECK(largest(exact - by_steps) < 1e-5 * (1 + largest(exact)));
  CHECK_THROWS_WITH(third(ones({5, 5}, DType::f64)), "inverse: the matrix is singular");
}

TEST_CASE("determinants: factors and matrices that lie in wider rows") {
  auto const in_wider_rows = [](Array const& x) {
    Array const wide = zeros({x.shape()[0], x.shape()[1] + 3}, x.dtype());
    Array part = slice(wide, 1, 0, x.shape()[1]);
    part.copy_(x);
    return part;
  };
  Array const a = drawn({6, 6}, 1), g = drawn({6, 6}, 2);
  Array const b = drawn({6, 2}, 3), f = bind<op::lu>(Attrs{}, a);
  Array const a2 = in_wider_rows(a), g2 = in_wider_rows(g), b2 = in_wider_rows(b), f2 = in_wider_rows(f);
  CHECK(close(bind<op::lu>(Attrs{}, a2), f));
  for (index_t what : {op::determinant::value, op::determinant::logarithm, op::determinant::sign})
    CHECK(close(bind<op::determinant>(Attrs{{what}}, a2, f2), bind<op::determinant>(Attrs{{what}}, a, f)));
  CHECK(close(bind<op::inverse>(Attrs{}, a2, f2), bind<op::inverse>(Attrs{}, a, f)));
  CHECK(close(bind<op::solve>(Attrs{}, a2, f2, b2), bind<op::solve>(Attrs{}, a, f, b)));
  CHECK(close(bind<op::cofactors>(Attrs{}, a2, f2), bind<op::cofactors>(Attrs{}, a, f)));
  CHECK(close(bind<op::cofactors_slope>(Attrs{}, a2, f2, g2), bind<op::cofactors_slope>(Attrs{}, a, f, g)));
}

}  // namespace tests::ops_determinants
