// SPDX-License-Identifier: BSL-1.0
// Distances, and the losses that ask for a margin between them; by PyTorch's names and defaults.
#pragma once

#include <limits>

#include <dfdx/vocabulary/loss.hpp>

namespace dfdx {

namespace detail {
template <class P, class A, class B>
constexpr auto cosine_over(A const& a, B const& b, double eps, P const& over) {
  auto const length = [&](auto const& v) {
    auto const s = reduce<op::sum>(square(v), over);
    return sqrt(where(s < eps * eps, eps * eps, s));
  };
  return reduce<op::sum>(a * b, over) / (length(a) * length(b));
}
}  // namespace detail

/// cosine_similarity<Axis>(a, b, eps), cosine_similarity(a, b, axis, eps) - a . b / (|a| |b|) along an axis, lengths at
/// least eps.
template <int Axis = 1, operand A, operand B>
constexpr auto cosine_similarity(A const& a, B const& b, double eps = 1e-8) {
  return detail::cosine_over(a, b, eps, detail::Fixed<detail::Over{Axis, false}>{});
}
template <operand A, operand B>
constexpr auto cosine_similarity(A const& a, B const& b, int axis, double eps = 1e-8) {
  return detail::cosine_over(a, b, eps, detail::Over{axis, false});
}

/// pairwise_distance(a, b, p, eps) - the p-norm of a - b + eps over the last axis; p may be infinity.
template <operand A, operand B>
constexpr auto pairwise_distance(A const& a, B const& b, double p = 2, double eps = 1e-6) {
  auto const d = a - b + eps;
  if (p == 2) return sqrt(sum<-1>(square(d)));
  if (p == 1) return sum<-1>(abs(d));
  if (p == std::numeric_limits<double>::infinity()) return max<-1>(abs(d));
  return pow(sum<-1>(pow(abs(d), p)), 1 / p);
}

/// Margin - options of the losses below.
struct Margin {
  double margin = 0;
  Reduction reduction = Reduction::mean;
};

/// margin_ranking_loss(a, b, y, {.margin = m}) - max(0, -y (a - b) + m); y is 1 where a should be the larger, else -1.
template <Reduction... R, operand A, operand B, operand Y>
constexpr auto margin_ranking_loss(A const& a, B const& b, Y const& y, Margin const& options = {}) {
  return detail::reduced_loss<R...>("margin_ranking_loss", relu(options.margin - y * (a - b)),
                                    options.reduction);
}

/// hinge_embedding_loss(x, y, {.margin = m}) - x where y is 1, max(0, m - x) where it is -1; m is 1 by default.
template <Reduction... R, operand X, operand Y>
constexpr auto hinge_embedding_loss(X const& x, Y const& y, Margin const& options = {.margin = 1}) {
  return detail::reduced_loss<R...>(
      "hinge_embedding_loss",
      where(y == 1, x, zeros_like(x)) + where(y == -1, relu(options.margin - x), zeros_like(x)),
      options.reduction);
}

/// soft_margin_loss(x, y) - log(1 + e^(-y x)).
template <Reduction... R, operand X, operand Y>
constexpr auto soft_margin_loss(X const& x, Y const& y, Reduction how = Reduction::mean) {
  return detail::reduced_loss<R...>("soft_margin_loss", softplus(-(y * x)), how);
}

/// cosine_embedding_loss(a, b, y, {.margin = m}) - 1 - cos where y is 1, max(0, cos - m) where it is -1.
///
/// Shapes    a, b: [N, D], y: [N] -> []
template <Reduction... R, operand A, operand B, operand Y>
constexpr auto cosine_embedding_loss(A const& a, B const& b, Y const& y, Margin const& options = {}) {
  constexpr double tiny = 1e-12;
  auto const cosine = sum<-1>(a * b) / sqrt((sum<-1>(square(a)) + tiny) * (sum<-1>(square(b)) + tiny));
  auto const zero = zeros_like(cosine);
  return detail::reduced_loss<R...>(
      "cosine_embedding_loss",
      where(y == 1, 1.0 - cosine, zero) + where(y == -1, relu(cosine - options.margin), zero),
      options.reduction);
}

/// TripletMargin - options of triplet_margin_loss; with `swap` the distance of the positive from the negative counts if
/// it is the smaller one.
struct TripletMargin {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::mean;
};

/// triplet_margin_loss(anchor, positive, negative, options) - max(0, d(anchor, positive) - d(anchor, negative)
/// + margin), d the pairwise distance (Balntas et al. 2016).
template <Reduction... R, operand A, operand P, operand N>
constexpr auto triplet_margin_loss(A const& anchor, P const& positive, N const& negative,
                                   TripletMargin const& options = {}) {
  auto const distance = [&](auto const& a, auto const& b) {
    return pairwise_distance(a, b, options.p, options.eps);
  };
  auto const far = distance(anchor, negative);
  auto const used = options.swap ? minimum(far, distance(positive, negative)) : far;
  return detail::reduced_loss<R...>(
      "triplet_margin_loss", relu(distance(anchor, positive) - used + options.margin), options.reduction);
}

}  // namespace dfdx
