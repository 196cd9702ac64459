// SPDX-License-Identifier: BSL-1.0
// Logistic and softmax regression, and two ways to their optimum. Shapes are those of the data, known at run time, so
// all is done with Arrays.
#pragma once

#include <dfdx/dfdx.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace logistic {

using dfdx::Array;
using dfdx::index_t;

/// Two classes: w [D], rows of x: [N, D], y: [N] 0 or 1 in f64, penalty [D].
constexpr auto binary_loss = [](auto const& w, auto const& x, auto const& y, auto const& penalty) {
  return bce_with_logits(matmul(x, w), y) + 0.5 * sum(penalty * square(w));
};
/// K classes: w [D, K], y: [N] classes, penalty [D, 1].
constexpr auto softmax_loss = [](auto const& w, auto const& x, auto const& y, auto const& penalty) {
  return cross_entropy(matmul(x, w), y) + 0.5 * sum(penalty * square(w));
};

/// A problem: the last column of x is 1, its weights, the intercepts, are not penalised.
struct Problem {
  Array x, y, penalty, start;
  double tolerance = 1e-8;
  int max_steps = 100;
};

struct Fit {
  Array w;
  double loss = 0, gradient = 0;  // the norm
  int steps = 0, evaluations = 0;
};

inline double norm(Array const& g) { return std::sqrt(square(g).sum().item()); }

/// What the loss is free of: adding a number to the weights of all classes for a feature without penalty, in any case
/// to the intercepts. A row for each such direction, [M, D K].
inline Array free_directions(Problem const& p, Array const& w) {
  std::vector<Array> rows;
  for (index_t d = 0; d < w.shape()[0] && w.ndim() == 2; ++d) {
    if (p.penalty.at<double>({d, 0}) != 0) continue;
    Array v = zeros_like(w).clone();
    v.part(d).fill_(1);
    rows.push_back(v.reshape({-1}));
  }
  return rows.empty() ? dfdx::zeros({0, w.size()}, dfdx::DType::f64) : stack(rows, 0);
}

/// H^-1 g by the Hessian itself. V^T V makes it regular where it has free directions V, and changes nothing else, for g
/// is orthogonal to them.
///
/// Errors    "newton: the data leaves weights open (solve: the matrix is singular); a larger --l2 settles them"
template <class Loss>
Array direction_by_hessian(Loss const& loss, Problem const& p, Array const& w, Array const& g) {
  Array const v = free_directions(p, w);
  Array const h = dfdx::hessian(loss)(w, p.x, p.y, p.penalty).reshape({w.size(), w.size()});
  try {
    return solve(h + matmul(v.T(), v), g.reshape({-1})).reshape(dfdx::Extents(w.shape()));
  } catch (dfdx::error const& e) {
    throw dfdx::error("newton: the data leaves weights open (" + std::string(e.what()) +
                      "); a larger --l2 settles them");
  }
}

/// The same by products with H alone, conjugate gradients, for problems whose Hessian is too large to be written down.
///
/// Source    Hestenes and Stiefel 1952; Nocedal and Wright, Numerical Optimization, 7.1
template <class Loss>
Array direction_by_products(Loss const& loss, Problem const& p, Array const& w, Array const& g) {
  auto const product = dfdx::hvp(loss);
  Array x = zeros_like(w), r = g, d = g;
  double rr = square(r).sum().item();
  // As exact as is of use so far from the optimum: quadratic convergence in the end.
  double const enough = rr * std::fmin(0.01, rr);
  for (index_t k = 0; k < 2 * w.size() && rr > enough && rr > 1e-60; ++k) {
    Array const hd = product(w, p.x, p.y, p.penalty, d);
    double const curvature = (d * hd).sum().item();
    if (!(curvature > 0)) break;
    double const step = rr / curvature;
    x = x + step * d;
    r = r - step * hd;
    double const next = square(r).sum().item();
    d = r + (next / rr) * d;
    rr = next;
  }
  return x;
}

/// Newton's method: w -= t H^-1 g, with the first t of 1, 1/2, 1/4, ... that lowers the loss enough (Armijo).
template <class Loss>
Fit newton(Loss const& loss, Problem const& p, bool by_products) {
  auto const gradient = dfdx::value_and_grad(loss);
  Fit r{p.start.clone()};
  auto [value, g] = gradient(r.w, p.x, p.y, p.penalty);
  for (r.evaluations = 1;; ++r.steps) {
    r.loss = value.item();
    r.gradient = norm(g);
    if (!(r.gradient > p.tolerance) || r.steps == p.max_steps) return r;
    Array const d =
        by_products ? direction_by_products(loss, p, r.w, g) : direction_by_hessian(loss, p, r.w, g);
    double const slope = (d * g).sum().item(), noise = 4e-16 * std::fabs(r.loss);
    for (double t = 1;; t /= 2) {
      if (t < 1e-10) return r;
      Array const w = r.w - t * d;
      auto [next, next_g] = gradient(w, p.x, p.y, p.penalty);
      ++r.evaluations;
      if (!(next.item() <= r.loss - 1e-4 * t * slope + noise)) continue;
      r.w = w;
      value = next;
      g = next_g;
      break;
    }
  }
}

template <class Loss>
Fit lbfgs(Loss const& loss, Problem const& p) {
  auto const gradient = dfdx::value_and_grad(loss);
  Fit r{p.start.clone()};
  // The tolerance is one of each number of the gradient.
  double const each = p.tolerance / std::sqrt(static_cast<double>(r.w.size()));
  dfdx::optim::LBFGS solver({.max_iter = 100 * p.max_steps, .tolerance_grad = each, .tolerance_change = 0});
  r.loss = solver.step(r.w, [&](Array const& w) { return gradient(w, p.x, p.y, p.penalty); });
  r.gradient = solver.gradient_norm();
  r.evaluations = solver.evaluations();
  return r;
}

}  // namespace logistic
