// SPDX-License-Identifier: BSL-1.0
// Gradient clipping as a wrapper of an optimizer, inside the compiled step.
#pragma once

#include <dfdx/optim/sgd.hpp>
#include <dfdx/program/rule.hpp>
#include <dfdx/vocabulary/reduce.hpp>

namespace dfdx::optim {

/// ClipNorm - scales all gradients by one factor so that their joint 2-norm is at most max_norm, then does as O.
/// optim::ClipNorm{optim::Adam{.lr = 1e-3}, 1.0}.
///
/// Math      g *= min(1, max_norm / (|g| + 1e-6))
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    Pascanu et al., ICML 2013; the 1e-6 is PyTorch's
template <class O>
struct ClipNorm {
  O inner{};
  double max_norm = 1;
  DFDX_STATE(inner, max_norm)

  using inner_type = O;
  static constexpr int slots = O::slots;
  static constexpr int scalars = O::scalars + 1;
  auto scalars_at(std::int64_t step, std::int64_t update = 0) const {
    return detail::with_scalars(inner, step, update, std::array<double, 1>{max_norm});
  }
  template <class V>
  static constexpr void prepare(V* g, std::size_t n, V* slot, std::size_t stride, V* s) {
    if (n == 0) return;
    V total{};
    for (std::size_t i = 0; i < n; ++i) {
      V const squares = cast_to(sum(apply<op::mul>(g[i], g[i])), s[O::scalars].dtype());
      total = i > 0 ? total + squares : squares;
    }
    V const factor = apply<op::minimum>(s[O::scalars] / (apply<op::sqrt>(total) + 1e-6), 1.0);
    for (std::size_t i = 0; i < n; ++i) g[i] = g[i] * detail::beside(factor, g[i]);
    detail::prepare<O>(g, n, slot, stride, s);
  }
  template <class V>
  static constexpr void update(std::string_view name, V& p, V const& g, V* slot, V const* s) {
    detail::update<O>(name, p, g, slot, s);
  }
};
template <class O>
ClipNorm(O, double) -> ClipNorm<O>;

/// ClipValue - clamps each element of the gradients to [-limit, limit], then does as O.
///
/// Math      g = max(-limit, min(limit, g))
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    PyTorch's clip_grad_value_
template <class O>
struct ClipValue {
  O inner{};
  double limit = 1;
  DFDX_STATE(inner, limit)

  using inner_type = O;
  static constexpr int slots = O::slots;
  static constexpr int scalars = O::scalars + 1;
  auto scalars_at(std::int64_t step, std::int64_t update = 0) const {
    return detail::with_scalars(inner, step, update, std::array<double, 1>{limit});
  }
  template <class V>
  static constexpr void prepare(V* g, std::size_t n, V* slot, std::size_t stride, V* s) {
    for (std::size_t i = 0; i < n; ++i) {
      V const here = detail::beside(s[O::scalars], g[i]);
      g[i] = apply<op::maximum>(apply<op::minimum>(g[i], here), -here);
    }
    detail::prepare<O>(g, n, slot, stride, s);
  }
  template <class V>
  static constexpr void update(std::string_view name, V& p, V const& g, V* slot, V const* s) {
    detail::update<O>(name, p, g, slot, s);
  }
};
template <class O>
ClipValue(O, double) -> ClipValue<O>;

}  // namespace dfdx::optim
