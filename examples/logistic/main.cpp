// SPDX-License-Identifier: BSL-1.0
// logistic: a regression on a table, fitted twice: by Newton's method with second derivatives that dfdx makes, and by
// L-BFGS with gradients alone. Both must reach the one optimum that a convex loss has.
#include "fit.hpp"
#include "options.hpp"

#include <chrono>
#include <cstdio>

namespace logistic {

namespace {

double accuracy(Array const& w, Matrix const& x, Classes const& y) {
  Array const scores = matmul(x, w);
  index_t right = 0;
  for (index_t i = 0; i < y.size(); ++i) {
    index_t best = scores.ndim() == 1 && scores.at<double>({i}) > 0 ? 1 : 0;
    if (scores.ndim() == 2) best = static_cast<index_t>(scores.part(i).argmax().item());
    right += best == y(i) ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(y.size());
}

std::string short_text(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", x);
  return text;
}

template <class F>
Fit timed(char const* name, Options const& o, F const& fit) {
  auto const start = std::chrono::steady_clock::now();
  Fit const r = fit();
  double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::string const steps = r.steps > 0 ? std::to_string(r.steps) + " steps, " : "";
  std::printf("%-8s %s%d gradients, %.2f s: loss %.12f, gradient %.1e\n", name, steps.c_str(), r.evaluations,
              seconds, r.loss, r.gradient);
  std::fflush(stdout);
  if (!(r.gradient <= o.tolerance))
    throw dfdx::error(std::string(name) + ": the gradient is " + short_text(r.gradient) + ", not below " +
                      short_text(o.tolerance) + "; a larger --l2 or --max-steps may help");
  return r;
}

template <class Loss>
void fit_and_compare(Loss const& loss, Problem const& p, Data const& data, Options const& o) {
  Fit const a = timed("newton", o, [&] { return newton(loss, p, o.by_products); });
  Fit const b = timed("lbfgs", o, [&] { return lbfgs(loss, p); });
  double const apart = abs(a.w - b.w).max().item(), size = abs(a.w).max().item();
  std::printf(
      "weights  apart by %.1e at most, the largest is %.4f%s\n", apart, size,
      apart > 1e-3 * std::fmax(size, 1) ? "; the data leaves them open, a larger --l2 settles them" : "");
  std::printf("accuracy %.4f on the rows to train on, %.4f on those to test on (%.4f by L-BFGS)\n",
              accuracy(a.w, data.train_x, data.train_y), accuracy(a.w, data.test_x, data.test_y),
              accuracy(b.w, data.test_x, data.test_y));
}

void run(Options const& o) {
  common::Table const source = common::find_table(o.data, o.how);
  Data const data = read_data(source, o.target, o.test, dfdx::Key{o.seed});
  index_t const width = data.train_x.shape()[1], classes = static_cast<index_t>(data.classes.size());
  std::printf("data     %s: %lld features, %lld classes; %lld rows to train on, %lld to test on\n",
              source.path.c_str(), static_cast<long long>(width - 1), static_cast<long long>(classes),
              static_cast<long long>(data.train_y.size()), static_cast<long long>(data.test_y.size()));
  Array penalty = dfdx::full({width}, o.l2, dfdx::DType::f64).clone();
  penalty.at<double>({width - 1}) = 0;
  Problem p{data.train_x, data.train_y, penalty, dfdx::zeros({width}, dfdx::DType::f64),
            o.tolerance,  o.max_steps};
  if (classes == 2) {
    p.y = data.train_y.to(dfdx::DType::f64);
    return fit_and_compare(binary_loss, p, data, o);
  }
  p.penalty = penalty.reshape({-1, 1});
  p.start = dfdx::zeros({width, classes}, dfdx::DType::f64);
  fit_and_compare(softmax_loss, p, data, o);
}

}  // namespace

}  // namespace logistic

int main(int argc, char** argv) {
  try {
    if (auto const options = logistic::parse_options(argc, argv)) logistic::run(*options);
    return 0;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "logistic: %s\n", e.what());
    return 1;
  }
}
