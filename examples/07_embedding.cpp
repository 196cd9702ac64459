// SPDX-License-Identifier: BSL-1.0
// Lesson 7: inside another project. An ordinary class wraps a compiled function: no globals, nothing
// printed, errors are exceptions, and copies are independent, so that each thread can have its own. The
// class could live in a .cpp file of its own, so that only that file is compiled with dfdx; one header is
// enough (cmake --build ... -t dfdx_single_header).
#include <cassert>
#include <cmath>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

#include <dfdx/dfdx.hpp>

// --- what would be curve_fit.hpp: plain C++ for the rest of the project
// --------------------------------------------

/// CurveFit - fits y = a exp(-b x) + c to points by gradient descent.
class CurveFit {
 public:
  struct Curve {
    double a, b, c;
  };
  Curve fit(std::span<double const> x, std::span<double const> y, int steps = 4000);
  double error() const { return error_; }

 private:
  struct Parameters {
    dfdx::Tensor<double> a, b, c;
    DFDX_FIELDS(a, b, c)
  };
  static constexpr auto squared_error = [](Parameters const& p, dfdx::Tensor<double, dfdx::dyn> const& x,
                                           dfdx::Tensor<double, dfdx::dyn> const& y) {
    return mean(square(p.a * exp(-(p.b * x)) + p.c - y));
  };

  // The compiled gradient, with its memory. Its size follows the number of points.
  decltype(dfdx::value_and_grad(squared_error)) gradient_;
  double error_ = 0;
};

// --- what would be curve_fit.cpp
// -----------------------------------------------------------------------------------

CurveFit::Curve CurveFit::fit(std::span<double const> x, std::span<double const> y, int steps) {
  using Points = dfdx::Tensor<double, dfdx::dyn>;
  auto const n = dfdx::make_shape(x.size());
  Points const px = Points::from(x, n), py = Points::from(y, dfdx::make_shape(y.size()));
  Parameters p{1.0, 1.0, 0.0};
  Parameters momentum{0.0, 0.0, 0.0};
  for (int i = 0; i < steps; ++i) {
    auto [value, d] = gradient_(p, px, py);  // dfdx::error if x and y differ in length
    error_ = value.item();
    auto const move = [](auto& parameter, auto& m, auto const& slope) {
      m(/*scalar*/) = 0.9 * m.item() - 0.05 * slope.item();
      parameter() += m.item();
    };
    move(p.a, momentum.a, d.a);
    move(p.b, momentum.b, d.b);
    move(p.c, momentum.c, d.c);
  }
  return {p.a.item(), p.b.item(), p.c.item()};
}

// --- the rest of the project
// -----------------------------------------------------------------------------------------

int main() {
  std::vector<double> x, y;
  for (int i = 0; i < 50; ++i) {
    x.push_back(0.1 * i);
    y.push_back(2.5 * std::exp(-1.3 * x.back()) + 0.5);
  }
  CurveFit one;
  auto const curve = one.fit(x, y);
  std::printf("y = %.3f exp(-%.3f x) + %.3f, error %.2g\n", curve.a, curve.b, curve.c, one.error());
  assert(std::fabs(curve.a - 2.5) < 1e-3 && std::fabs(curve.b - 1.3) < 1e-3 &&
         std::fabs(curve.c - 0.5) < 1e-3);

  // A copy for each thread.
  double found[2] = {};
  {
    CurveFit other = one;
    std::thread a([&] { found[0] = one.fit(x, y).b; }), b([&] { found[1] = other.fit(x, y).b; });
    a.join();
    b.join();
  }
  assert(found[0] == curve.b && found[1] == curve.b);

  bool refused = false;
  try {
    y.pop_back();
    one.fit(x, y, 1);
  } catch (dfdx::error const& e) {
    std::printf("%s\n", e.what());
    refused = true;
  }
  assert(refused);
}
