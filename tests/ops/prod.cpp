// SPDX-License-Identifier: BSL-1.0
// First and second derivatives of products with any number of zeros, against the products themselves.
#include "ops/compiled.hpp"

#include <dfdx/value/print.hpp>

namespace tests::ops_prod {

namespace {

using namespace compiled;

constexpr index_t rows = 8, columns = 4;
using Matrix = Tensor<double, rows, columns>;
using Weights = Tensor<double, rows>;

// Rows with 0, 1, 2, 3 and 4 zeros.
Matrix numbers() {
  return Matrix::from({{2, -3, 5, 0.5},
                       {0, 3, -2, 4},
                       {1.5, 2, 0, -4},
                       {0, 0, 3, -2},
                       {5, 0, -3, 0},
                       {0, 2, 0, 0},
                       {-0.0, 0, 0, 7},
                       {0, 0, 0, 0}});
}
Weights weights() { return Weights::from({1, 2, -1, 0.5, 3, 1, -2, 1}); }

// Of row r, the product of the elements that are not skipped.
double product(Matrix const& x, index_t r, index_t skip, index_t skip_too) {
  double p = 1;
  for (index_t j = 0; j < columns; ++j)
    if (j != skip && j != skip_too) p *= x(r, j);
  return p;
}
Matrix gradient() {
  auto r = Matrix::uninitialized();
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) r(i, j) = weights()(i) * product(numbers(), i, j, j);
  return r;
}
// Column k of each row's Hessian.
Matrix hessian_column(index_t k) {
  auto r = Matrix::uninitialized();
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < columns; ++j) r(i, j) = j == k ? 0 : weights()(i) * product(numbers(), i, j, k);
  return r;
}
Matrix unit(index_t k) {
  auto r = zeros<Matrix>();
  for (index_t i = 0; i < rows; ++i) r(i, k) = 1;
  return r;
}

constexpr auto weighted = [](auto const& x, auto const& w) { return sum(prod<1>(x) * w); };
constexpr auto slope = [](auto const& x, auto const& w, auto const& v) {
  return sum(grad(weighted)(x, w) * v);
};

void check_close(Array const& got, Array const& want) {
  INFO(to_string(got) << " should be " << to_string(want));
  CHECK(testing::error_ratio(got, want, 1e-14, 1e-14) <= 1);
}

}  // namespace

TEST_CASE("second derivatives of products with zeros, compiled", "[ops]") {
  check_close(grad(weighted)(numbers(), weights()), gradient());
  for (index_t k = 0; k < columns; ++k) {
    check_close(grad(slope)(numbers(), weights(), unit(k)), hessian_column(k));
    // Forward over reverse, and reverse over forward.
    auto const [d, tangent] = jvp(grad(weighted))(numbers(), weights(), unit(k), zeros<Weights>());
    check_close(d, gradient());
    check_close(tangent, hessian_column(k));
  }
}

TEST_CASE("second derivatives of products with zeros, node by node", "[ops]") {
  for (index_t k = 0; k < columns; ++k) {
    Meta const metas[] = {numbers().meta()};
    Graph g = testing::record([](std::span<Array const> x) { return std::vector{prod<1>(x[0])}; }, metas);
    int const wrt[] = {0};
    testing::add_vjp(g, wrt);
    Graph forward = g;
    testing::add_vjp(g, wrt);
    check_close(testing::interpret(g, std::vector<Array>{numbers(), weights(), unit(k)})[0],
                hessian_column(k));
    testing::add_jvp(forward, wrt);
    check_close(testing::interpret(forward, std::vector<Array>{numbers(), weights(), unit(k)})[0],
                hessian_column(k));
  }
}

TEST_CASE("gradients of products beside two zeros stay finite where the other factors overflow", "[ops]") {
  constexpr auto all = [](auto const& x) { return prod(x); };
  auto const d = grad(all)(Tensor<float, 4>::from({0, 1e30f, 1e30f, 0}));
  for (index_t i = 0; i < 4; ++i) CHECK(d(i) == 0.0f);
}

}  // namespace tests::ops_prod
