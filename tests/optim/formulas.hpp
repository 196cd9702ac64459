// SPDX-License-Identifier: BSL-1.0
// Rules against formulas in double, element by element.
#pragma once

#include "worse.hpp"

#include <dfdx/dfdx.hpp>

#include <cmath>

namespace formulas {

using namespace dfdx;

constexpr std::size_t n = 5;
constexpr int steps = 6;

template <class T>
struct Model {
  Tensor<T, n> w;
  DFDX_FIELDS(w)
};

// Its gradient is g.
constexpr auto pull = [](auto const& m, auto const& g) { return sum(m.w * g); };

inline double start(std::size_t i) { return 1.7 - 0.9 * static_cast<double>(i); }
inline double gradient(int step, std::size_t i) {
  return std::sin(1.3 * static_cast<double>(step) + 0.7 * static_cast<double>(i)) * (i == 3 ? 30 : 1);
}

template <class T>
Tensor<T, n> filled(auto const& f) {
  auto r = Tensor<T, n>::uninitialized();
  for (std::size_t i = 0; i < n; ++i) r(i) = static_cast<T>(f(i));
  return r;
}

// The largest error after each of some steps, relative to numbers of about 1; rule(k, i, p, g) is the new p(i).
template <class O>
double error_of(O const& o, auto rule, double max_norm = INFINITY, double limit = INFINITY) {
  Model<double> model{filled<double>(start)};
  auto step = train_step(pull, o);
  double want[n], worst = 0;
  for (std::size_t i = 0; i < n; ++i) want[i] = start(i);
  for (int k = 1; k <= steps; ++k) {
    auto const g = filled<double>([&](std::size_t i) { return gradient(k, i); });
    step(model, g);
    double norm = 0;
    for (std::size_t i = 0; i < n; ++i) norm += g(i) * g(i);
    double const factor = std::fmin(1.0, max_norm / (std::sqrt(norm) + 1e-6));
    for (std::size_t i = 0; i < n; ++i) {
      want[i] = rule(k, i, want[i], std::fmax(-limit, std::fmin(limit, g(i) * factor)));
      worst = tests::worse(worst, std::fabs(model.w(i) - want[i]));
    }
  }
  return worst;
}

using Slot = std::array<double, n>;

}  // namespace formulas
