// SPDX-License-Identifier: BSL-1.0
// gradcheck and gradgradcheck: gradients of the tape against differences of the function, for users' own functions
// and ops.
#pragma once

#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <dfdx/tape/backward.hpp>
#include <dfdx/value/print.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::testing {

/// GradcheckOptions - step of the differences (times the size of a number, if that is above 1), relative and absolute
/// tolerance. 0 stands for a step of 1e-4 and for the tolerances of the gradient's dtype: 1e-2 and 1e-4 in 16 bits,
/// 1e-4
/// and 1e-7 in f32, 1e-7 and 1e-10 in f64. Differences are always taken of the function in f64.
struct GradcheckOptions {
  double step = 0, rtol = 0, atol = 0;
};

/// GradcheckReport - whether all gradients agree and, if not, a line for each of the first few that do not: the
/// operand, the element, both numbers, both errors.
struct GradcheckReport {
  bool ok = true;
  index_t checked = 0, failed = 0;
  std::string text;
  explicit operator bool() const { return ok; }
};

namespace detail {

struct GradcheckScale {
  double step, rtol, atol;
};
inline GradcheckScale gradcheck_scale(DType d, GradcheckOptions const& o) {
  GradcheckScale s = d == DType::f64   ? GradcheckScale{1e-4, 1e-7, 1e-10}
                     : d == DType::f32 ? GradcheckScale{1e-4, 1e-4, 1e-7}
                                       : GradcheckScale{1e-4, 1e-2, 1e-4};
  if (o.step != 0) s.step = o.step;
  if (o.rtol != 0) s.rtol = o.rtol;
  if (o.atol != 0) s.atol = o.atol;
  return s;
}

inline std::string position_text(index_t flat, Shape const& s) {
  std::string r = "]";
  for (int a = s.rank - 1; a >= 0; --a) {
    r = std::to_string(flat % s[a]) + (a + 1 < s.rank ? ", " : "") + r;
    flat /= s[a];
  }
  return "[" + r;
}

inline Array fresh_copy(Array const& x, DType d) {
  Array y(Meta{d, x.shape()});
  kernels::convert(x.operand(), y.operand());
  return y;
}

// What f's results count in a weighted sum: fixed numbers, unlike one another.
inline Array weights_for(Array const& y) { return uniform(y.shape(), Key{77}, 0.5, 1.5, y.dtype()); }

template <class F>
Array weighted(F const& f, std::span<Array const> x) {
  Array const y = f(x);
  if (!is_floating(y.dtype())) raise("gradcheck: floating result required, got ", y.dtype());
  return sum(y * weights_for(y));
}

}  // namespace detail

/// gradcheck - compares gradients of f, a function of a span of Arrays that returns an Array, with differences of
/// fourth order at the given inputs. Inputs of integer dtype are passed on as they are. f is called at shifted
/// inputs, so it must not have a jump or a kink within 4 steps of them.
///
/// Math      |g - d| <= atol + rtol |d| for each element, where d = (8 (f(+h) - f(-h)) - (f(+2h) - f(-2h))) / 12 h
/// Errors    "gradcheck: floating result required, got i64"; those of f
template <class F>
GradcheckReport gradcheck(F const& f, std::span<Array const> inputs, GradcheckOptions const& options = {}) {
  GradcheckReport report;
  std::vector<Array> x, exact;
  for (Array const& a : inputs) {
    bool const counts = is_floating(a.dtype());
    x.push_back(detail::fresh_copy(a, a.dtype()));
    exact.push_back(detail::fresh_copy(a, counts ? DType::f64 : a.dtype()));
    if (counts) x.back().requires_grad(true);
  }
  Array const total = detail::weighted(f, x);
  std::vector<Array> gradient;
  if (total.requires_grad()) gradient = gradients(total, x);
  else
    for (Array const& a : x) gradient.push_back(detail::fresh_copy(full(a.shape(), 0), a.dtype()));
  no_grad const guard;
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (!is_floating(x[k].dtype())) continue;
    detail::GradcheckScale const scale = detail::gradcheck_scale(x[k].dtype(), options);
    Array const g = detail::fresh_copy(gradient[k], DType::f64);
    double* const at = exact[k].template data<double>();
    for (index_t i = 0; i < x[k].size(); ++i) {
      double const here = at[i], h = scale.step * std::fmax(1, std::fabs(here));
      auto const value = [&](double to) {
        at[i] = to;
        return detail::weighted(f, exact).item();
      };
      double const near = value(here + h) - value(here - h), far = value(here + 2 * h) - value(here - 2 * h);
      at[i] = here;
      double const want = (8 * near - far) / (12 * h), got = g.template data<double>()[i];
      double const error = std::fabs(got - want);
      ++report.checked;
      if (error <= scale.atol + scale.rtol * std::fabs(want) || got == want) continue;
      report.ok = false;
      if (++report.failed > 5) continue;
      char line[200];
      std::snprintf(line, sizeof line,
                    ": gradient %.9g, difference %.9g, error %.3g absolute, %.3g relative\n", got, want,
                    error, error / std::fmax(std::fabs(want), 1e-300));
      report.text += "operand " + std::to_string(k) + " " + detail::position_text(i, x[k].shape()) + line;
    }
  }
  return report;
}
template <class F>
GradcheckReport gradcheck(F const& f, std::initializer_list<Array> inputs,
                          GradcheckOptions const& options = {}) {
  return gradcheck(f, std::span<Array const>(inputs.begin(), inputs.size()), options);
}

/// gradgradcheck - the same for the gradients themselves: their gradients against differences of them.
template <class F>
GradcheckReport gradgradcheck(F const& f, std::span<Array const> inputs,
                              GradcheckOptions const& options = {}) {
  auto const gradient = [&](std::span<Array const> x) {
    enable_grad const mode;
    std::vector<Array> leaves(x.begin(), x.end());
    for (Array& a : leaves)
      if (is_floating(a.dtype()) && !a.requires_grad())
        a = detail::fresh_copy(a, a.dtype()).requires_grad(true);
    Array total = full({}, 0, DType::f64);
    Array const y = detail::weighted(f, leaves);
    if (!y.requires_grad()) return total;
    std::vector<Array> const g = gradients(y, leaves, {.create_graph = true});
    for (Array const& d : g)
      if (is_floating(d.dtype()))
        total = total + sum(cast_to(d, DType::f64) * detail::weights_for(cast_to(d, DType::f64)));
    return total;
  };
  return gradcheck(gradient, inputs, options);
}
template <class F>
GradcheckReport gradgradcheck(F const& f, std::initializer_list<Array> inputs,
                              GradcheckOptions const& options = {}) {
  return gradgradcheck(f, std::span<Array const>(inputs.begin(), inputs.size()), options);
}

}  // namespace dfdx::testing
