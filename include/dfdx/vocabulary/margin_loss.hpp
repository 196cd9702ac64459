// SPDX-License-Identifier: BSL-1.0
// Distances, and the losses that ask for a margin between them; by PyTorch's names and defaults.
#pragma once

#include <limits>

#include <dfdx/vocabulary/distances.hpp>
#include <dfdx/vocabulary/loss.hpp>
#include <dfdx/vocabulary/measure.hpp>
#include <dfdx/vocabulary/order.hpp>

namespace dfdx {

namespace detail {
template <class P, class A, class B>
constexpr auto cosine_over(A const& x, B const& b, double eps, P const& over) {
  auto const a = beside<"cosine_similarity">(x, b);
  auto const left = in_f32(a);
  auto const right = in_f32(b);
  auto const length = [&](auto const& v) {
    auto const s = reduce<op::sum, "cosine_similarity">(square(v), over);
    return sqrt(where(s < eps * eps, eps * eps, s));
  };
  auto const product = reduce<op::sum, "cosine_similarity">(left * right, over);
  return rounded_as(product / (length(left) * length(right)), a, b);
}
// (The axis is a parameter since nvcc writes out constants that depend on none, in a way that g++ does not read.)
template <Literal Name, int Axis = -1, operand A, operand B>
constexpr auto distance(A const& a, B const& b, double p, double eps) {
  constexpr Fixed<Over{Axis, false}> over{};
  auto const x = having<Name>(beside<Name>(a, b), Fixed<Over{Axis, true}>{});
  return rounded_as(norm_over<Name>(real(in_f32(x) - in_f32(b) + eps), p, over), x, b);
}
}  // namespace detail

/// cosine_similarity<Axis>(a, b, eps), cosine_similarity(a, b, axis, eps) - a . b / (|a| |b|) along an axis, lengths at
/// least eps.
///
/// Shapes    a, b: of equal rank, broadcast to [S...] -> [S... without the axis]
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Errors    "cosine_similarity: axis 2 out of range for [2, 3]"
/// Source    PyTorch's cosine_similarity
template <int Axis = 1, operand A, operand B>
constexpr auto cosine_similarity(A const& a, B const& b, double eps = 1e-8) {
  return detail::cosine_over(a, b, eps, detail::Fixed<detail::Over{Axis, false}>{});
}
template <operand A, operand B>
constexpr auto cosine_similarity(A const& a, B const& b, int axis, double eps = 1e-8) {
  return detail::cosine_over(a, b, eps, detail::Over{axis, false});
}

/// pairwise_distance(a, b, p, eps) - the p-norm of a - b + eps over the last axis; p may be infinity.
///
/// Shapes    a, b: broadcast to [B..., D] -> [B...]
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Source    PyTorch's pairwise_distance
template <operand A, operand B>
constexpr auto pairwise_distance(A const& a, B const& b, double p = 2, double eps = 1e-6) {
  return detail::distance<"pairwise_distance">(a, b, p, eps);
}

namespace detail {
// The points a, if there are distances from them to points b.
struct PointsBeside {
  static constexpr Meta infer(Meta const* in, Text* why) {
    Shape a = in[0].shape, b = in[1].shape;
    bool fits = a.rank >= 2 && b.rank >= 2 && op::extents_agree(a[a.rank - 1], b[b.rank - 1]);
    a.rank = a.rank < 2 ? 0 : a.rank - 2, b.rank = b.rank < 2 ? 0 : b.rank - 2;
    fits = fits && op::broadcast_shapes("cdist", a, b, nullptr).valid();
    if (!fits) return refuse(why, "cdist: points ", in[0].shape, " do not fit points ", in[1].shape);
    return in[0];
  }
  template <class, class V>
  static constexpr V run(Meta const&, V const& a, V const&) {
    return a;
  }
};
template <operand A, operand B>
constexpr auto distances_of_all(A const& a, B const& b, double p) {
  auto const apart = real(unsqueeze<-2>(in_f32(a)) - unsqueeze<-3>(in_f32(b)));
  return rounded_as(norm_over<"cdist">(apart, p, Fixed<Over{-1, false}>{}), a, b);
}
}  // namespace detail

/// cdist(a, b, p) - the distances from all points a to all points b: the p-norm of their differences, p may be
/// infinity. The gradient of points at distance 0 is 0. Programs store no array of all differences, nor do calls
/// of other functions for p of 1, 2 and infinity, and their gradients for 1 and 2.
///
/// Math      y_ij = |a_i - b_j|_p
/// Shapes    a: [B..., N, D], b: [B..., M, D], leading axes broadcast -> [B..., N, M]
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Errors    "cdist: points [3, 2] do not fit points [4, 5]"
/// Source    PyTorch's cdist
template <operand A, operand B>
constexpr auto cdist(A const& a, B const& b, double p = 2) {
  auto const checked = detail::call(detail::Fixed<detail::PointsBeside{}>{}, a, b);
  if constexpr (refused<decltype(checked)>) {
    return Refused{};
  } else {
    if constexpr (std::is_base_of_v<Array, A> && std::is_base_of_v<Array, B>)
      if (detail::has_distances(a, b, p))
        return detail::wrap<decltype(detail::distances_of_all(a, b, p))>(
            detail::distances_by_kernel<Array>(a, b, p));
    return detail::distances_of_all(a, b, p);
  }
}

/// Margin - options of the losses below.
struct Margin {
  double margin = 0;
  Reduction reduction = Reduction::mean;
};

/// margin_ranking_loss(a, b, y, {.margin = m}) - max(0, -y (a - b) + m); y is 1 where a should be the larger, else -1.
///
/// Shapes    a, b, y: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Source    PyTorch's margin_ranking_loss
template <Reduction... R, operand A, operand B, operand Y>
constexpr auto margin_ranking_loss(A const& a, B const& b, Y const& y, Margin const& options = {}) {
  return detail::reduced_loss<R...>(
      "margin_ranking_loss", relu(options.margin - y * (detail::beside<"margin_ranking_loss">(a, b, y) - b)),
      options.reduction);
}

/// hinge_embedding_loss(x, y, {.margin = m}) - x where y is 1, max(0, m - x) where it is -1; m is 1 by default.
///
/// Shapes    x, y: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Source    PyTorch's hinge_embedding_loss
template <Reduction... R, operand X, operand Y>
constexpr auto hinge_embedding_loss(X const& scores, Y const& y, Margin const& options = {.margin = 1}) {
  auto const x = detail::beside<"hinge_embedding_loss">(scores, y);
  return detail::reduced_loss<R...>(
      "hinge_embedding_loss",
      where(y == 1, x, zeros_as(x)) + where(y == -1, relu(options.margin - x), zeros_as(x)),
      options.reduction);
}

/// soft_margin_loss(x, y) - log(1 + e^(-y x)).
///
/// Shapes    x, y: broadcast to [S...] -> [], or [S...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Source    PyTorch's soft_margin_loss
template <Reduction... R, operand X, operand Y>
constexpr auto soft_margin_loss(X const& x, Y const& y, Reduction how = Reduction::mean) {
  return detail::reduced_loss<R...>("soft_margin_loss",
                                    softplus(-(y * detail::beside<"soft_margin_loss">(x, y))), how);
}

/// cosine_embedding_loss(a, b, y, {.margin = m}) - 1 - cos where y is 1, max(0, cos - m) where it is -1.
///
/// Shapes    a, b: [N, D], y: [N] -> []
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Source    PyTorch's cosine_embedding_loss
template <Reduction... R, operand A, operand B, operand Y>
constexpr auto cosine_embedding_loss(A const& a, B const& b, Y const& y, Margin const& options = {}) {
  constexpr double tiny = 1e-12;
  auto const x = detail::beside<"cosine_embedding_loss">(a, b);
  auto const cosine = sum<-1>(x * b) / sqrt((sum<-1>(square(x)) + tiny) * (sum<-1>(square(b)) + tiny));
  auto const zero = zeros_as(detail::beside<"cosine_embedding_loss">(cosine, y));
  return detail::reduced_loss<R...>(
      "cosine_embedding_loss",
      where(y == 1, 1.0 - cosine, zero) + where(y == -1, relu(cosine - options.margin), zero),
      options.reduction);
}

/// MultiMargin - options of multi_margin_loss.
struct MultiMargin {
  int p = 1;
  double margin = 1;
  Reduction reduction = Reduction::mean;
};

namespace detail {
template <Reduction... R, class X, class Y, class W>
constexpr auto multi_margin(X const& x, Y const& given, W const& weight, MultiMargin const& o) {
  if (o.p != 1 && o.p != 2) raise("multi_margin_loss: p must be 1 or 2, got ", o.p);
  return over_classes<ClassLoss::multi_margin_loss>(x, given, weight, [&](auto axis) {
    constexpr int a = decltype(axis)::value;
    Y const labels = checked_labels<ClassLoss::multi_margin_loss>(given, x.shape()[a], no_index);
    auto const hit = class_hits<a>(x, labels);
    auto const own = sum<a>(where(hit, x, zeros_as(x)), keepdim);
    auto const over = where(hit, zeros_as(x), relu(x - own + o.margin));
    auto const losses = mean<a>(either(o.p == 2, [&] { return square(over); }, [&] { return over; }));
    if constexpr (std::is_same_v<W, Unweighted>)
      return reduced_loss<R...>("multi_margin_loss", losses, o.reduction);
    else
      return reduced_loss<R...>(
          "multi_margin_loss",
          losses * sum<a>(where(hit, class_weights(x, weight) + zeros_as(x), zeros_as(x))), o.reduction);
  });
}
}  // namespace detail

/// multi_margin_loss(x, labels, {.p, .margin}) - the mean over classes of max(0, margin - x_label + x_i)^p, p 1 or 2,
/// without the label itself; a third operand may be the weights of classes.
///
/// Shapes    x: [N, C] or [C], labels: [N] or [], weight: [C] -> []
/// Dtypes    x: floating, labels: i32 i64
/// Errors    "multi_margin_loss: labels [2] do not fit scores [3, 4]"
/// Source    PyTorch's multi_margin_loss
template <Reduction... R, operand X, operand Y>
constexpr auto multi_margin_loss(X const& x, Y const& labels, MultiMargin const& options = {}) {
  return detail::multi_margin<R...>(x, labels, detail::Unweighted{}, options);
}
template <Reduction... R, operand X, operand Y, operand W>
constexpr auto multi_margin_loss(X const& x, Y const& labels, W const& weight,
                                 MultiMargin const& options = {}) {
  return detail::multi_margin<R...>(x, labels, weight, options);
}

namespace detail {
// The scores, if there is a label or a negative number for each.
struct MultilabelRule {
  static constexpr Meta infer(Meta const* in, Text* why) {
    Shape const &x = in[0].shape, &labels = in[1].shape;
    if ((x.rank != 1 && x.rank != 2) || !agree(x, labels))
      return refuse(why, "multilabel_margin_loss: labels ", labels, " do not fit scores ", x);
    if (in[1].dtype != DType::i32 && in[1].dtype != DType::i64)
      return refuse(why, "multilabel_margin_loss: labels of dtype i32 or i64 required, got ", in[1].dtype);
    if (!is_floating(in[0].dtype))
      return refuse(why, "multilabel_margin_loss: floating dtype required, got ", in[0].dtype);
    return in[0];
  }
  template <class, class V>
  static constexpr V run(Meta const&, V const& x, V const&) {
    return x;
  }
};
// Labels in memory that are no classes are refused, up to the first negative one.
template <class Y>
constexpr void require_labels(Y const& labels) {
  if constexpr (!refused<Y>) {
    index_t const classes = labels.shape().rank == 0 ? 0 : labels.shape()[labels.shape().rank - 1];
    index_t seen = 0;
    bool ended = false;
    each_in_memory(labels, [&](Operand const& o, index_t at) {
      index_t const label = read_index(o, at);
      if (seen++ % classes == 0) ended = false;
      ended = ended || label < 0;
      if (!ended && label >= classes)
        raise("multilabel_margin_loss: label ", label, " out of range for ", classes, " classes");
    });
  }
}
}  // namespace detail

/// multilabel_margin_loss(x, labels) - the sum over labels j and classes i that are none of max(0, 1 - x_j + x_i), over
/// the number of classes. The labels of a sample end at its first negative number.
///
/// Shapes    x, labels: [N, C] or [C] -> []
/// Dtypes    x: floating, labels: i32 i64
/// Errors    "multilabel_margin_loss: labels [2] do not fit scores [4, 3]"; of labels in memory
///           "multilabel_margin_loss: label 7 out of range for 3 classes"
/// Source    PyTorch's multilabel_margin_loss
template <Reduction... R, operand X, operand Y>
constexpr auto multilabel_margin_loss(X const& given, Y const& labels, Reduction how = Reduction::mean) {
  auto const x = detail::call(detail::Fixed<detail::MultilabelRule{}>{}, given, labels);
  detail::require_labels(labels);
  auto const counts = cumprod<-1>(cast<std::int64_t>(labels >= 0)) != 0;
  auto const label = unsqueeze<-1>(where(counts, labels, -1));  // [.., j, 1]
  auto const scores = unsqueeze<-2>(x);                         // [.., 1, i]
  auto const hit = label == detail::call(detail::Fixed<detail::PositionsIn{-1}>{}, label, scores);
  auto const own = sum<-1>(where(hit, scores, zeros_as(scores)), keepdim);  // [.., j, 1]
  auto const none = unsqueeze<-2>(!any<-2>(hit));
  auto const over = relu(scores - own + 1.0);
  auto const losses = sum<-2>(where(logical_and(unsqueeze<-1>(counts), none), over, zeros_as(over)));
  return detail::reduced_loss<R...>("multilabel_margin_loss", mean<-1>(losses), how);
}

/// multilabel_soft_margin_loss(x, target) - bce_with_logits, its mean over classes for each sample; a third operand may
/// be the weights of classes.
///
/// Shapes    x, target: [N, C] or [C], weight: [C] -> []
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Source    PyTorch's multilabel_soft_margin_loss
template <Reduction... R, operand X, operand Y>
constexpr auto multilabel_soft_margin_loss(X const& x, Y const& target, Reduction how = Reduction::mean) {
  return detail::reduced_loss<R...>("multilabel_soft_margin_loss",
                                    mean<-1>(bce_with_logits<Reduction::none>(
                                        detail::beside<"multilabel_soft_margin_loss">(x, target), target)),
                                    how);
}
template <Reduction... R, operand X, operand Y, operand W>
constexpr auto multilabel_soft_margin_loss(X const& x, Y const& target, W const& weight,
                                           Reduction how = Reduction::mean) {
  return detail::reduced_loss<R...>(
      "multilabel_soft_margin_loss",
      mean<-1>(bce_with_logits<Reduction::none>(
                   detail::beside<"multilabel_soft_margin_loss">(x, target, weight), target) *
               weight),
      how);
}

/// TripletMargin - options of triplet_margin_loss; with `swap` the distance of the positive from the negative counts if
/// it is the smaller one.
struct TripletMargin {
  double margin = 1, p = 2, eps = 1e-6;
  bool swap = false;
  Reduction reduction = Reduction::mean;
};

/// triplet_margin_loss(anchor, positive, negative, options) - max(0, d(anchor, positive) - d(anchor, negative) +
/// margin), d the pairwise distance.
///
/// Shapes    anchor, positive, negative: broadcast to [B..., D] -> [], or [B...] without a reduction
/// Dtypes    f32 f64 f16 bf16, promoted; integers in f32
/// Source    Balntas et al., BMVC 2016
template <Reduction... R, operand A, operand P, operand N>
constexpr auto triplet_margin_loss(A const& anchor, P const& positive, N const& negative,
                                   TripletMargin const& options = {}) {
  auto const distance = [&](auto const& a, auto const& b) {
    return detail::distance<"triplet_margin_loss">(a, b, options.p, options.eps);
  };
  auto const far = distance(anchor, negative);
  auto const used = detail::either(
      options.swap, [&] { return minimum(far, distance(positive, negative)); }, [&] { return far; });
  return detail::reduced_loss<R...>(
      "triplet_margin_loss", relu(distance(anchor, positive) - used + options.margin), options.reduction);
}

}  // namespace dfdx
