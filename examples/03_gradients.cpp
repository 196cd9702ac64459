// SPDX-License-Identifier: BSL-1.0
// Lesson 3: gradients. A transform takes a function and gives a function. What it computes is worked out
// when the file is compiled: at run time there is no graph, only fused loops.
#include <cassert>
#include <cmath>
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

// Functions to differentiate have no captures: what they need comes in as arguments.
constexpr auto cube = [](auto const& x) { return x * x * x; };

// Numbers work too, even in constant expressions, and transforms nest.
static_assert(grad(cube)(3.0) == 27.0);
static_assert(grad(grad(cube))(3.0) == 18.0);

constexpr auto f = [](Tensor<double, 3> const& x) { return sum(x * exp(x)); };

// A function of two arguments, one of them an integer that carries no gradient.
constexpr auto loss = [](Tensor<float, 4, 2> const& table, Tensor<std::int32_t, 3> const& rows) {
  return mean(square(take(table, rows)));
};

int main() {
  Tensor<double, 3> x{0.0, 1.0, 2.0};

  // value_and_grad: the pair of f(x) and df/dx, which has the type of x.
  auto [y, dx] = value_and_grad(f)(x);
  std::printf("f(x) = %.4f, gradient %.4f %.4f %.4f\n", y.item(), dx(0), dx(1), dx(2));
  for (int i = 0; i < 3; ++i) assert(std::fabs(dx(i) - (1 + x(i)) * std::exp(x(i))) < 1e-12);

  // jvp: forward mode, a derivative along a direction.
  Tensor<double, 3> direction{1.0, 0.0, -1.0};
  auto [value, tangent] = jvp(f)(x, direction);
  assert(std::fabs(tangent.item() - (dx(0) - dx(2))) < 1e-12 && value.item() == y.item());

  // vjp: reverse mode for a function whose result is not a scalar: J' ct.
  constexpr auto g = [](Tensor<double, 3> const& v) { return sin(v) * 2.0; };
  auto [gx, pulled] = vjp(g)(x, direction);
  assert(std::fabs(pulled(2) + 2 * std::cos(2.0)) < 1e-12 && std::fabs(gx(1) - 2 * std::sin(1.0)) < 1e-12);

  // wrt chooses the arguments to differentiate with respect to.
  constexpr auto h = [](auto const& a, auto const& b) { return sum(a * b * b); };
  auto [da, db] = grad(h, wrt<0, 1>)(x, direction);
  assert(da(0) == 1 && db(2) == -4);  // b^2 and 2 a b

  // Integer arguments steer, but carry no gradient.
  auto table = ones<float, 4, 2>();
  auto d_table = grad(loss)(table, Tensor<std::int32_t, 3>{0, 2, 2});
  assert(d_table(1, 0) == 0 && std::fabs(d_table(2, 0) - 2 * d_table(0, 0)) < 1e-7f);

  // A function object keeps its memory for the next call: make it once and call it often. Results are views of that
  // memory; while one is held the next call takes other memory.
  auto slope = grad(f);
  double total = 0;
  for (int i = 0; i < 1000; ++i) total += slope(x)(1);
  assert(std::fabs(total - 1000 * 2 * std::exp(1.0)) < 1e-6);
}
