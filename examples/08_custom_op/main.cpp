// SPDX-License-Identifier: BSL-1.0
// Lesson 8, second file: what a test of an op looks like, and the op at work. The library's own ops are
// tested in the same way: a record (tests/ops/elementwise.cpp) holds the function, plain code in double, and
// where to draw operands from.
#include <cassert>
#include <cmath>
#include <iostream>

#include <dfdx/testing/gradcheck.hpp>

#include "softsign.hpp"

using namespace dfdx;

// --- the record --------------------------------------------------------------------------------------------------

constexpr auto function = [](auto const& x) { return my::softsign(x); };
double reference(double x) { return x / (1 + std::fabs(x)); }
double derivative(double x) {
  double const h = 1e-6;
  return (reference(x + h) - reference(x - h)) / (2 * h);
}

// --- what is asked of it -----------------------------------------------------------------------------------------

template <class T>
void check(double tolerance) {
  constexpr std::size_t n = 37;  // more than a vector, and not a multiple of one
  auto const x = uniform<T, n>(Key{5}, -3, 3);
  auto const ct = randn<T, n>(Key{6});
  auto const eager = my::softsign(x);         // the reference kernel
  auto const fused = compile(function)(x);    // a vectorised loop
  auto const [y, dx] = vjp(function)(x, ct);  // reverse mode
  auto const [z, dy] = jvp(function)(x, ct);  // forward mode
  for (std::size_t k = 0; k < n; ++k) {
    auto const i = static_cast<index_t>(k);
    double const at = static_cast<double>(x(i)), slope = derivative(at) * static_cast<double>(ct(i));
    assert(std::fabs(static_cast<double>(eager(i)) - reference(at)) < tolerance);
    assert(std::fabs(static_cast<double>(fused(i)) - reference(at)) < tolerance);
    assert(std::fabs(static_cast<double>(dx(i)) - slope) < 4 * tolerance);
    assert(std::fabs(static_cast<double>(dy(i)) - slope) < 4 * tolerance);
  }
}

// The same on the run-time tape, for shapes that only the running program knows: first and second derivatives
// against differences.
void check_tape() {
  auto const on_arrays = [](std::span<Array const> x) { return my::softsign(x[0] * x[1]); };
  Array const rows = uniform({4, 5}, Key{7}, 0.5, 3, DType::f64),
              scale = uniform({5}, Key{8}, 0.5, 2, DType::f64);
  testing::GradcheckReport const once = testing::gradcheck(on_arrays, {rows, scale}),
                                 twice = testing::gradgradcheck(on_arrays, {rows, scale});
  std::cout << once.text << twice.text;  // which elements differ, if any
  assert(once && once.checked == 25 && twice);
  assert(testing::gradcheck(on_arrays, {cast_to(rows, DType::f16), cast_to(scale, DType::f16)}));

  Array x = full({3}, 1.0);
  x.requires_grad(true);
  sum(my::softsign(x)).backward();
  assert(array_equal(x.grad(), full({3}, 0.25)));
}

// Constant expressions, higher derivatives: nothing had to be said for them.
constexpr auto cubed = [](auto const& x) { return my::softsign(x) * x * x; };
static_assert(grad(function)(1.0) == 0.25);
static_assert(grad(grad(cubed))(1.0) == 1.75);  // (x^3 / (1 + x))'' at 1

struct Net {
  nn::Linear<8, 16> fc1;
  nn::Linear<16, 1> fc2;
  DFDX_FIELDS(fc1, fc2)

  constexpr auto operator()(auto const& x) const { return fc2(my::softsign(fc1(x))); }
};
constexpr auto loss = [](auto const& net, auto const& x, auto const& y) { return mse_loss(net(x), y); };

int main() {
  check<float>(1e-6);
  check<double>(1e-9);
  check_tape();

  // In a model it fuses like any other op: here into the product before it.
  auto net = init<Net>(/*seed*/ 3);
  auto const x = randn<float, 32, 8>(Key{1});
  auto const y = sum<1>(my::softsign(x), keepdim);
  auto step = train_step(loss, optim::Adam{.lr = 1e-2f});
  float const first = step(net, x, y);
  float last = first;
  for (int i = 0; i < 200; ++i) last = step(net, x, y);
  std::cout << "softsign works: loss " << first << " -> " << last << "\n";
  assert(last < 0.1f * first);
}
