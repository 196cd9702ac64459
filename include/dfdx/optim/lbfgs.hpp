// SPDX-License-Identifier: BSL-1.0
// L-BFGS with a line search by the strong Wolfe conditions, for functions of all the data.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <dfdx/value/element.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::optim {

/// LBFGSOptions - PyTorch's, with its default values. max_eval 0 stands for 5/4 of max_iter.
///
/// Math      none
/// Shapes    none
/// Dtypes    none
/// Errors    none
/// Source    torch.optim.LBFGS
struct LBFGSOptions {
  double lr = 1;
  int max_iter = 20, max_eval = 0;
  double tolerance_grad = 1e-7, tolerance_change = 1e-9;
  int history_size = 100;
  DFDX_STATE(lr, max_iter, max_eval, tolerance_grad, tolerance_change, history_size)
};

namespace detail {

using Numbers = std::vector<double>;

template <int = 0>
double dot(Numbers const& a, Numbers const& b) {
  double r = 0;
  for (std::size_t i = 0; i < a.size(); ++i) r += a[i] * b[i];
  return r;
}
template <int = 0>
double largest(Numbers const& a) {
  double r = 0;
  for (double e : a) r = std::isnan(e) ? e : std::fmax(r, std::fabs(e));
  return r;
}

/// The directions of the last steps and how the gradient changed over them: an inverse Hessian in few vectors.
template <int = 0>
class Curvature {
 public:
  void clear() { pairs_.clear(); }
  // Pairs that say nothing about the curvature are left out.
  void add(Numbers step, Numbers change, int most) {
    double const along = dot<0>(step, change);
    if (!(along > 1e-10 * dot<0>(step, step))) return;
    if (pairs_.size() >= static_cast<std::size_t>(most)) pairs_.erase(pairs_.begin());
    pairs_.push_back({std::move(step), std::move(change), 1 / along});
  }
  // minus the inverse Hessian times g
  Numbers direction(Numbers const& g) const {
    Numbers d = g, a(pairs_.size());
    for (std::size_t k = pairs_.size(); k-- > 0;) {
      a[k] = pairs_[k].scale * dot<0>(pairs_[k].step, d);
      for (std::size_t i = 0; i < d.size(); ++i) d[i] -= a[k] * pairs_[k].change[i];
    }
    double const size =
        pairs_.empty() ? 1 : 1 / (pairs_.back().scale * dot<0>(pairs_.back().change, pairs_.back().change));
    for (double& e : d) e *= size;
    for (std::size_t k = 0; k < pairs_.size(); ++k) {
      double const b = pairs_[k].scale * dot<0>(pairs_[k].change, d);
      for (std::size_t i = 0; i < d.size(); ++i) d[i] += (a[k] - b) * pairs_[k].step[i];
    }
    for (double& e : d) e = -e;
    return d;
  }
  bool empty() const { return pairs_.empty(); }
  // Whether all of it is of models of n numbers.
  bool fits(std::size_t n) const {
    return std::all_of(pairs_.begin(), pairs_.end(),
                       [n](Pair const& p) { return p.step.size() == n && p.change.size() == n; });
  }
  template <class Self, class F>
  static void visit_checkpoint(Self& self, F const& f) {
    f("pairs", self.pairs_);
  }

 private:
  struct Pair {
    Numbers step, change;
    double scale;
    DFDX_STATE(step, change, scale)
  };
  std::vector<Pair> pairs_;
};

/// A point of a line: how far, the value, the slope, and the gradient there.
struct LinePoint {
  double t = 0, value = 0, slope = 0;
  Numbers gradient{};
};

// Where the cubic through two points has its least value, inside the tenths next to their ends.
template <int = 0>
double cubic_minimum(LinePoint const& a, LinePoint const& b) {
  double const low = std::fmin(a.t, b.t), high = std::fmax(a.t, b.t), margin = 0.1 * (high - low);
  double const d = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t),
               square = d * d - a.slope * b.slope;
  double r = 0.5 * (low + high);
  if (square >= 0) {
    double const root = std::copysign(std::sqrt(square), b.t - a.t);
    double const t = b.t - (b.t - a.t) * (b.slope + root - d) / (b.slope - a.slope + 2 * root);
    if (std::isfinite(t)) r = t;
  }
  return std::fmin(std::fmax(r, low + margin), high - margin);
}

// A point after `from` that meets the strong Wolfe conditions, or the best within `most` evaluations; look(t) is the
// point at t, the first one tried. Values that differ by less than `noise` count as equal: near a minimum slopes still
// tell apart what values cannot.
template <class Look>
LinePoint strong_wolfe(LinePoint const& from, double t, double noise, int most, Look const& look) {
  constexpr double decrease = 1e-4, flatter = 0.9;
  auto const too_high = [&](LinePoint const& p) {
    return !(p.value <= from.value + decrease * p.t * from.slope + noise);
  };
  auto const flat = [&](LinePoint const& p) { return std::fabs(p.slope) <= -flatter * from.slope; };
  LinePoint low = from, high;
  for (bool bracketed = false; most > 0; --most) {
    LinePoint const p = look(t);
    if (too_high(p) || (low.t > 0 && p.value > low.value + noise)) {
      high = p;
      bracketed = true;
    } else {
      if (flat(p)) return p;
      // The far end is the one the slope at p points to.
      if (p.slope * (bracketed ? high.t - low.t : 1.0) >= 0) {
        high = low;
        bracketed = true;
      }
      low = p;
    }
    if (!bracketed) t *= 2;
    else if (!std::isfinite(high.value) || !std::isfinite(high.slope)) t = 0.5 * (low.t + high.t);
    else t = cubic_minimum(low, high);
    if (bracketed && std::fabs(high.t - low.t) * largest<0>(from.gradient) < 1e-300) break;
  }
  return low;
}

// The floating leaves of a tree, one number after another.
template <class Tree, class F>
void each_number(Tree& tree, F const& f) {
  visit(tree, [&](auto& leaf) {
    if (is_buffer<decltype(leaf)> || !is_floating(leaf.dtype())) return;
    Operand const x = leaf.operand();
    Strides const strides[1] = {x.strides};
    walk<1>(x.meta.shape, strides, [&](index_t const(&at)[1]) { f(x, at[0]); });
  });
}

}  // namespace detail

/// LBFGS - minimizes a function of a model's parameters; few evaluations where it is smooth and not random:
///
///   auto const gradient = value_and_grad(loss);
///   optim::LBFGS lbfgs({.max_iter = 100});
///   double const least = lbfgs.step(model, [&](auto const& m) { return gradient(m, x, y); });
///
/// The function returns a pair of the value and a tree like the model. What it has learnt of the curvature is kept for
/// the next `step`. The first step has the length lr / |g|_1 at most, later ones lr until the line search says
/// otherwise.
///
/// Math      p -= t H g, H the inverse Hessian by the last history_size steps; t by the strong Wolfe conditions:
///           f(t) <= f(0) + 1e-4 t f'(0), |f'(t)| <= 0.9 |f'(0)|
/// Shapes    any
/// Dtypes    floating; the directions are worked out in f64
/// Errors    "lbfgs: the gradient has 3 numbers, the model 4"; "lbfgs: the function is nan at the start"; "lbfgs: what
///           it has learnt is of another model"
/// Source    Liu and Nocedal, Mathematical Programming 45 (1989); Nocedal and Wright, Numerical Optimization, 3.5;
///           torch.optim.LBFGS with line_search_fn="strong_wolfe"
template <int = 0>
class LBFGS {
 public:
  explicit LBFGS(LBFGSOptions const& o = {}) : options_(o) {}

  /// The value at the end.
  template <tree Model, class F>
  double step(Model& model, F const& f) {
    detail::Numbers p;
    detail::each_number(model, [&](Operand const& x, index_t at) { p.push_back(read_real(x, at)); });
    if (!curvature_.fits(p.size())) raise("lbfgs: what it has learnt is of another model");
    double noise = 0;
    detail::Numbers place = p, d;
    auto const look = [&](double t) {
      detail::LinePoint r{t};
      for (std::size_t i = 0; i < p.size() && !d.empty(); ++i) place[i] = p[i] + t * d[i];
      std::size_t k = 0;
      detail::each_number(model, [&](Operand const& x, index_t at) {
        write_real(x, at, place[k]);
        place[k] = read_real(x, at), ++k;
      });
      auto const [value, gradient] = f(std::as_const(model));
      ++evaluations_;
      detail::each_number(gradient,
                          [&](Operand const& x, index_t at) { r.gradient.push_back(read_real(x, at)); });
      if (r.gradient.size() != p.size())
        raise("lbfgs: the gradient has ", static_cast<index_t>(r.gradient.size()), " numbers, the model ",
              static_cast<index_t>(p.size()));
      r.value = value.item();
      bool const wide = value.dtype() == DType::f64;
      noise = std::fabs(r.value) * (wide ? 4 * std::numeric_limits<double>::epsilon() : 1e-6);
      if (!d.empty()) r.slope = detail::dot<0>(r.gradient, d);
      return r;
    };

    int const start = evaluations_,
              most = options_.max_eval > 0 ? options_.max_eval : options_.max_iter * 5 / 4;
    detail::LinePoint now = look(0);
    if (!std::isfinite(now.value))
      raise("lbfgs: the function is ", std::isnan(now.value) ? "nan" : "infinite", " at the start");
    for (int k = 0; k < options_.max_iter && detail::largest<0>(now.gradient) > options_.tolerance_grad &&
                    evaluations_ - start < most;
         ++k) {
      d = curvature_.direction(now.gradient);
      now.t = 0;
      now.slope = detail::dot<0>(now.gradient, d);
      if (!(now.slope < 0)) {  // rounding has spoilt what was learnt
        curvature_.clear();
        d = curvature_.direction(now.gradient);
        now.slope = -detail::dot<0>(now.gradient, now.gradient);
      }
      double norm = 0;
      for (double e : now.gradient) norm += std::fabs(e);
      double const first = curvature_.empty() ? std::fmin(1, 1 / norm) * options_.lr : options_.lr;
      detail::LinePoint const next =
          detail::strong_wolfe(now, first, noise, std::min(25, most - evaluations_ + start), look);
      detail::Numbers moved(p.size()), change(p.size());
      for (std::size_t i = 0; i < p.size(); ++i) {
        moved[i] = next.t * d[i];
        change[i] = next.gradient[i] - now.gradient[i];
        p[i] += moved[i];
      }
      double const gain = std::fabs(now.value - next.value);
      bool const still = next.t == 0 || (detail::largest<0>(moved) <= options_.tolerance_change &&
                                         gain <= options_.tolerance_change);
      now = next;
      if (still) break;
      curvature_.add(std::move(moved), std::move(change), options_.history_size);
    }
    std::size_t k = 0;
    detail::each_number(model, [&](Operand const& x, index_t at) { write_real(x, at, p[k++]); });
    gradient_norm_ = std::sqrt(detail::dot<0>(now.gradient, now.gradient));
    return now.value;
  }

  LBFGSOptions& options() { return options_; }
  /// Evaluations of the function so far.
  int evaluations() const { return evaluations_; }
  /// The 2-norm of the gradient where the last step ended.
  double gradient_norm() const { return gradient_norm_; }

  /// What a checkpoint holds (io/checkpoint.hpp).
  template <class Self, class F>
  static void visit_checkpoint(Self& self, F const& f) {
    f("options", self.options_);
    f("curvature", self.curvature_);
    f("evaluations", self.evaluations_);
    f("gradient_norm", self.gradient_norm_);
  }

 private:
  LBFGSOptions options_;
  detail::Curvature<> curvature_;
  int evaluations_ = 0;
  double gradient_norm_ = 0;
};

}  // namespace dfdx::optim
