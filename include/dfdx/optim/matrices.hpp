// SPDX-License-Identifier: BSL-1.0
// Rules that look at a parameter as a whole: LAMB at its norm, Muon at it as a matrix.
#pragma once

#include <dfdx/core/constant_math.hpp>
#include <dfdx/optim/adam.hpp>
#include <dfdx/vocabulary/contract.hpp>

namespace dfdx::optim {

namespace detail {

template <class V>
constexpr V norm_of(V const& x) {
  return apply<op::sqrt>(V(sum(apply<op::mul>(x, x))));
}

}  // namespace detail

/// LAMB - Adam whose steps are in proportion to the norm of each parameter, for large batches. The parts of an
/// nn::Repeat count as one parameter.
///
/// Math      m, v as Adam;  r = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps) + decay p;  p -= lr |p| / |r| r, without
///           the quotient where a norm is 0
/// Shapes    any
/// Dtypes    floating
/// Errors    none
/// Source    You et al., ICLR 2020
struct LAMB {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0;
  DFDX_STATE(lr, beta1, beta2, eps, weight_decay)

  static constexpr int slots = 2;
  static constexpr int scalars = 9;
  std::array<double, 9> scalars_at(std::int64_t step) const {
    auto const inner = detail::adam_scalars({1, beta1, beta2, eps, weight_decay}, step);
    std::array<double, 9> r{};
    for (std::size_t i = 0; i < inner.size(); ++i) r[i] = inner[i];
    r[8] = lr;
    return r;
  }
  template <class V>
  static constexpr void update(V& p, V const& g, V* slot, V const* s) {
    V const r = detail::adam_move<false>(p, g, slot, s) + p * detail::beside(s[7], p);
    V const size = detail::norm_of(p), length = detail::norm_of(r);
    V const trust = apply<op::where>(apply<op::minimum>(size, length) > 0, size / length, 1.0);
    p = p - r * (detail::beside(s[8], p) * trust);
  }
};

/// Muon - momentum of matrices, brought near to the orthogonal matrix that is nearest to it: all directions move alike.
/// Parameters of other ranks follow another rule, AdamW unless said otherwise; embeddings and the last layer should as
/// well (optim::group). With .stacks = true parameters of three axes are stacks of matrices, as those of nn::Repeat
/// are.
///
/// Math      m = momentum m + (1 - momentum) g;  x = (1 - momentum) g + momentum m, over its Frobenius norm;  5 times
///           a = x x^T, x = 3.4445 x + (2.0315 a a - 4.775 a) x;  p -= lr decay p;  p -= lr f x, f = sqrt(max(1, rows /
///           columns)), with .like_adam = true 0.2 sqrt(max(rows, columns)), which suits rates of AdamW
/// Shapes    matrices; others by `other`
/// Dtypes    floating; in the dtype of the parameter, where PyTorch rounds to bf16
/// Errors    "muon: a matrix of known sizes required, got [dyn, 3]"
/// Source    Jordan et al., "Muon: an optimizer for hidden layers", 2024; torch.optim.Muon
template <class Other = AdamW<>, class Stacks = Off, class LikeAdam = Off>
struct Muon {
  double lr = 1e-3, weight_decay = 0.1, momentum = 0.95, eps = 1e-7;
  Other other{};
  [[no_unique_address]] Stacks stacks{};
  [[no_unique_address]] LikeAdam like_adam{};
  DFDX_STATE(lr, weight_decay, momentum, eps, other, stacks, like_adam)

  static constexpr int slots = Other::slots > 1 ? Other::slots : 1;
  static constexpr int own = 5;
  static constexpr int scalars = own + Other::scalars;
  std::array<double, static_cast<std::size_t>(scalars)> scalars_at(std::int64_t step) const {
    std::array<double, static_cast<std::size_t>(scalars)> r{lr, lr * weight_decay, momentum, 1 - momentum,
                                                            eps};
    auto const others = other.scalars_at(step);
    for (std::size_t i = 0; i < others.size(); ++i) r[i + own] = others[i];
    return r;
  }
  template <class V>
  static constexpr void update(V& p, V const& g, V* slot, V const* s) {
    Shape const shape = p.shape();
    if (shape.rank != 2 && !(detail::is_on<Stacks> && shape.rank == 3))
      return Other::update(p, g, slot, s + own);
    index_t const rows = shape[shape.rank - 2], columns = shape[shape.rank - 1];
    if (rows < 0 || columns < 0) raise("muon: a matrix of known sizes required, got ", shape);
    V const mu = detail::beside(s[2], p), rest = detail::beside(s[3], p);
    slot[0] = slot[0] * mu + g * rest;
    V const x = orthogonal(V(g * rest + slot[0] * mu), rows > columns, detail::beside(s[4], p));
    auto const ratio = static_cast<double>(rows) / static_cast<double>(columns);
    auto const larger = static_cast<double>(rows > columns ? rows : columns);
    double const factor = detail::is_on<LikeAdam> ? 0.2 * constant_math::sqrt(larger)
                                                  : constant_math::sqrt(ratio > 1 ? ratio : 1.0);
    p = p - p * detail::beside(s[1], p) - x * (detail::beside(s[0], p) * factor);
  }

 private:
  // The shorter side first, so that products are small.
  template <class V>
  static constexpr V orthogonal(V x, bool tall, V const& eps) {
    if (tall) x = transpose(x);
    V const norm = apply<op::sqrt>(V(sum(apply<op::mul>(x, x), Axes{-2, -1}, true)));
    x = x / apply<op::maximum>(norm, eps);
    for (int i = 0; i < 5; ++i) {
      V const a = matmul(x, transpose(x));
      x = x * 3.4445 + matmul(matmul(a, a) * 2.0315 - a * 4.775, x);
    }
    if (tall) x = transpose(x);
    return x;
  }
};

}  // namespace dfdx::optim
