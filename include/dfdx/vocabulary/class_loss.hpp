// SPDX-License-Identifier: BSL-1.0
// Losses of classification: cross_entropy and nll_loss, of labels or of probabilities. The class axis is 1, or 0 where
// there is no batch, as in PyTorch.
#pragma once

#include <limits>

#include <dfdx/vocabulary/composite.hpp>

namespace dfdx {

/// Reduction - what becomes of the losses of elements. `batchmean` divides their sum by the extent of axis 0.
enum class Reduction { mean, sum, none, batchmean };

/// ignored_index - the label that is ignored unless the options name another, as in PyTorch: its losses are 0 and do
/// not count in a mean. no_index - what ignore_index is when no label is ignored, which costs nothing.
inline constexpr std::int64_t ignored_index = -100, no_index = std::numeric_limits<std::int64_t>::min();

/// CrossEntropy - options of cross_entropy: cross_entropy(x, y, {.label_smoothing = 0.1}). Of Tensors the reduction
/// `none` changes the type, so it is a template argument: cross_entropy<Reduction::none>(x, y).
struct CrossEntropy {
  double label_smoothing = 0;
  std::int64_t ignore_index = ignored_index;
  Reduction reduction = Reduction::mean;
};

/// NllLoss - options of nll_loss.
struct NllLoss {
  std::int64_t ignore_index = ignored_index;
  Reduction reduction = Reduction::mean;
};

namespace detail {

/// Losses reduced as the template argument or, without one, as `how` says; `average` makes the mean.
template <Reduction... R, operand X, class Average>
constexpr auto reduced_loss(char const* name, X const& losses, Reduction how, Average const& average) {
  static_assert(sizeof...(R) <= 1);
  auto const batchmean = [&] {
    index_t const n = losses.shape().rank == 0 ? 1 : losses.shape()[0];
    if (n < 0) raise(name, ": batchmean needs a batch of known size, got ", losses.shape());
    return sum(losses) / static_cast<double>(n);
  };
  if constexpr (refused<X>) {
    return Refused{};
  } else if constexpr (sizeof...(R) == 1) {
    constexpr Reduction r = (R, ...);
    if constexpr (r == Reduction::none) return losses;
    else if constexpr (r == Reduction::mean) return average();
    else if constexpr (r == Reduction::sum) return sum(losses);
    else return batchmean();
  } else if constexpr (typed<X>) {
    if constexpr (X::static_rank > 0)
      if (how == Reduction::none)
        raise(name, ": of Tensors reduction none is a template argument: ", name, "<Reduction::none>(...)");
    if (how == Reduction::mean) return average();
    if (how == Reduction::batchmean) return batchmean();
    return sum(losses);
  } else {
    switch (how) {
      case Reduction::none: return losses;
      case Reduction::mean: return average();
      case Reduction::sum: return sum(losses);
      default: return batchmean();
    }
  }
}
template <Reduction... R, operand X>
constexpr auto reduced_loss(char const* name, X const& losses, Reduction how) {
  return reduced_loss<R...>(name, losses, how, [&] { return mean(losses); });
}

template <Reduction... R>
constexpr bool averages(Reduction how) {
  if constexpr (sizeof...(R) == 1) return ((R == Reduction::mean) && ...);
  else return how == Reduction::mean;
}

enum class ClassLoss { cross_entropy, nll_loss, multi_margin_loss };
template <ClassLoss L>
inline constexpr op::Caller class_loss_caller = L == ClassLoss::cross_entropy ? op::Caller::cross_entropy
                                                : L == ClassLoss::nll_loss    ? op::Caller::nll_loss
                                                                              : op::Caller::multi_margin_loss;
template <ClassLoss L>
inline constexpr char const* class_loss_name = L == ClassLoss::cross_entropy ? "cross_entropy"
                                               : L == ClassLoss::nll_loss    ? "nll_loss"
                                                                             : "multi_margin_loss";

// What the losses ask of scores and labels, or scores and probabilities, and of the weights of classes, which are no
// valid Meta if there are none.
template <ClassLoss L>
constexpr Meta labels_rule(Meta const& scores, Meta const& labels, Meta const& weight, Text* why) {
  constexpr char const* name = class_loss_name<L>;
  Shape const &s = scores.shape, &l = labels.shape;
  bool const probabilities =
      L == ClassLoss::cross_entropy && is_floating(labels.dtype) && l.rank == s.rank && l.rank > 0;
  bool fit = probabilities || s.rank == l.rank + 1;
  for (int i = 0; fit && i < l.rank; ++i)
    fit = op::extents_agree(l[i], s[probabilities || i == 0 ? i : i + 1]);
  if (!fit) return refuse(why, name, ": labels ", l, " do not fit scores ", s);
  if (!probabilities && labels.dtype != DType::i32 && labels.dtype != DType::i64)
    return refuse(why, name, ": labels of dtype i32 or i64 required, got ", labels.dtype);
  if (!is_floating(scores.dtype)) return refuse(why, name, ": floating dtype required, got ", scores.dtype);
  index_t const classes = s[s.rank == 1 ? 0 : 1];
  if (weight.valid() && (weight.shape.rank != 1 || !op::extents_agree(weight.shape[0], classes)))
    return refuse(why, name, ": ", classes, " class weights required, got ", weight.shape);
  return scores;
}

/// Unweighted - stands for the weights of classes where there are none.
struct Unweighted {};

template <ClassLoss L, class X, class I, class W>
struct LabelsRule {
  static constexpr Meta infer(Text* why) {
    if constexpr (std::is_same_v<W, Unweighted>)
      return labels_rule<L>(X::static_meta, I::static_meta, refuse(nullptr), why);
    else return labels_rule<L>(X::static_meta, I::static_meta, W::static_meta, why);
  }
};

// f(axis of the classes), if scores, labels and weights fit.
template <ClassLoss L, class X, class I, class W, class F>
constexpr auto over_classes(X const& scores, I const& labels, W const& weight, F f) {
  constexpr bool weighted = !std::is_same_v<W, Unweighted>;
  if constexpr (refused<X, I, W>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<I> && (typed<W> || !weighted)) {
    using R = typename decltype(result_type<LabelsRule<L, X, I, W>>())::type;
    if constexpr (refused<R>) return Refused{};
    else return f(std::integral_constant<int, (X::static_rank > 1)>{});
  } else {
    Text why;
    bool fit = true;
    if constexpr (weighted) {
      fit = labels_rule<L>(scores.meta(), labels.meta(), weight.meta(), &why).valid();
    } else {
      fit = labels_rule<L>(scores.meta(), labels.meta(), refuse(nullptr), &why).valid();
    }
    if (!fit) raise(why);
    if constexpr (typed<X>) return f(std::integral_constant<int, (X::static_rank > 1)>{});
    else
      return scores.shape().rank == 1 ? f(std::integral_constant<int, 0>{})
                                      : f(std::integral_constant<int, 1>{});
  }
}

// The labels, none of which may be anything but a class or the ignored one. A program looks at them whenever it runs;
// not if it does not know the number of classes, and then there is no logit for such a label.
template <ClassLoss L, class I>
constexpr I checked_labels(I const& labels, index_t classes, std::int64_t ignored) {
  if (is_floating(labels.dtype())) return labels;
  if constexpr (std::is_base_of_v<Array, I>)
    if ((labels.recorded() || lies_elsewhere(labels)) && classes >= 0) {
      Attrs const attrs{{classes, ignored, static_cast<index_t>(class_loss_caller<L>)}};
      return wrap<I>(bind<op::check_label>(attrs, untyped(labels)));
    }
  each_in_memory(labels, [&](Operand const& l, index_t at) {
    op::check_label::check(class_loss_name<L>, read_index(l, at), classes, ignored);
  });
  return labels;
}

// Whether a class is the label: labels [N, ...] against the extent of axis A of the scores -> [N, C, ...].
template <int A, class X, class I>
constexpr auto class_hits(X const& scores, I const& labels) {
  auto const wide = unsqueeze<A>(labels);
  return wide == call(Fixed<PositionsIn{A}>{}, wide, scores);
}

// Weights of classes [C] as they broadcast against scores: [C, 1, ...].
template <class X, class W>
struct ClassWeights {
  static constexpr Shape shape(Shape const& x, Shape w) {
    for (int i = 2; i < x.rank; ++i) w.push_back(1);
    return w;
  }
  static constexpr Meta infer(Text*) {
    return Meta{W::static_meta.dtype, shape(X::static_shape, W::static_shape)};
  }
};
template <class X, class W>
constexpr auto class_weights(X const& scores, W const& weight) {
  if constexpr (typed<X> && typed<W>) {
    using R = tensor_for<Inferred<ClassWeights<X, W>>>;
    return wrap<R>(reshape_to(static_cast<Array const&>(weight), R::static_shape));
  } else {
    return reshape_to(untyped(weight), ClassWeights<X, W>::shape(scores.shape(), weight.shape()));
  }
}

// One over the count of labels that are not ignored, in the dtype of the scores. (16 bits cannot count.)
template <class X, class I>
constexpr auto share_of_each(X const& scores, I const& labels, std::int64_t ignored) {
  auto const counted = labels != ignored;
  if constexpr (typed<X> && typed<I>) {
    using T = typename X::value_type;
    return cast<T>(1.0 / sum(cast<std::conditional_t<sizeof(T) == 2, float, T>>(counted)));
  } else {
    DType const d = scores.dtype();
    return cast_to(1.0 / sum(cast_to(untyped(counted), size_of(d) == 2 ? DType::f32 : d)), d);
  }
}

// Whether labels of a dtype can be that one: where not, none is ignored.
constexpr bool has_label(DType d, std::int64_t label) {
  return d != DType::i32 || (label >= std::numeric_limits<std::int32_t>::min() &&
                             label <= std::numeric_limits<std::int32_t>::max());
}

/// The loss of labels. Minus the logarithms of probabilities [N, C, ...] are given as top - bottom, for of most only
/// those of the labels are asked; without top they are -bottom.
template <ClassLoss L, int A, Reduction... R, class Top, class Bottom, class I, class W>
constexpr auto label_loss(Top const& top, Bottom const& bottom, I const& given, W const& weight,
                          CrossEntropy const& o) {
  constexpr bool weighted = !std::is_same_v<W, Unweighted>;
  index_t const n = given.shape().numel();
  std::int64_t const ignored = has_label(given.dtype(), o.ignore_index) ? o.ignore_index : no_index;
  bool const counts = !weighted && ignored != no_index && n != 0 && averages<R...>(o.reduction);
  I const checked = checked_labels<L>(given, bottom.shape()[A], ignored);
  // First, so that it is there when the loop over the rows needs it for the gradient.
  using Share = decltype(share_of_each(bottom, checked, ignored));
  Share const share =
      either(counts, [&] { return share_of_each(bottom, checked, ignored); }, [] { return Share{}; });
  // What waits for the share waits for the labels to be looked at; the mask need not, and that loop stays whole.
  I const labels = either(counts, [&] { return given; }, [&] { return checked; });
  auto const hit = class_hits<A>(bottom, labels);
  auto const picked = [&](auto const& v) { return sum<A>(where(hit, v, zeros_as(v)), keepdim); };
  auto const classes = static_cast<double>(bottom.shape()[A]);
  double const s = o.label_smoothing;
  auto const plain = [&] {
    if constexpr (std::is_same_v<Top, Unweighted>) return -picked(bottom);
    else return top - picked(bottom);
  }();
  auto const wide_labels = unsqueeze<A>(labels);
  auto const kept = [&](auto const& v) {
    if (ignored == no_index) return v;
    return where(wide_labels == ignored, zeros_as(v), v);
  };
  auto const flat = [](auto const& v) { return squeeze<A>(v); };
  if constexpr (weighted) {
    auto const w = class_weights(bottom, weight);
    auto const weights = kept(picked(w + zeros_as(bottom)));
    auto const smooth = [&] {
      if constexpr (std::is_same_v<Top, Unweighted>) return -sum<A>(bottom * w, keepdim);
      else return sum<A>((top - bottom) * w, keepdim);
    };
    auto const own = kept(plain) * weights;
    auto const losses =
        either(s == 0, [&] { return own; }, [&] { return own * (1 - s) + kept(smooth()) * (s / classes); });
    return reduced_loss<R...>(class_loss_name<L>, flat(losses), o.reduction,
                              [&] { return sum(losses) / sum(weights); });
  } else {
    auto const smooth = [&] {
      if constexpr (std::is_same_v<Top, Unweighted>) return -mean<A>(bottom, keepdim);
      else return top - mean<A>(bottom, keepdim);
    };
    auto const losses =
        kept(either(s == 0, [&] { return plain; }, [&] { return plain * (1 - s) + smooth() * s; }));
    return reduced_loss<R...>(class_loss_name<L>, flat(losses), o.reduction, [&] {
      if (!counts) return mean(losses);  // of no labels it is NaN: 0 / 0
      if (n < 0) return sum(losses) * share;
      return sum(losses * share);
    });
  }
}

/// The loss of probabilities of classes.
template <int A, Reduction... R, class X, class Y, class W>
constexpr auto probability_loss(X const& log_p, Y const& target, W const& weight, CrossEntropy const& o) {
  if (o.ignore_index != no_index && o.ignore_index != ignored_index)
    raise("cross_entropy: ignore_index needs labels, not probabilities");
  auto const classes = static_cast<double>(log_p.shape()[A]);
  double const s = o.label_smoothing;
  auto const p = either(s == 0, [&] { return target; }, [&] { return target * (1 - s) + s / classes; });
  auto const losses = [&] {
    if constexpr (std::is_same_v<W, Unweighted>) return -sum<A>(log_p * p);
    else return -sum<A>(log_p * p * class_weights(log_p, weight));
  }();
  return reduced_loss<R...>("cross_entropy", losses, o.reduction);
}

// f(scores, labels, weight) of scores of 16 bits in f32; the weight may be Unweighted.
template <class F, class X, class Y, class W>
constexpr auto classes_in_f32(F const& f, X const& x, Y const& y, W const& weight) {
  if constexpr (operand<W>) return computed_in_f32(f, x, y, weight);
  else return computed_in_f32([&](auto const& v, auto const& labels) { return f(v, labels, weight); }, x, y);
}
template <Reduction... R, class X, class Y, class W>
constexpr auto cross_entropy_of(X const& given, Y const& target, W const& weight, CrossEntropy const& o) {
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    raise("cross_entropy: label_smoothing between 0 and 1 required");
  auto const loss = [&](auto const& logits, auto const& y, auto const& weights) {
    return over_classes<ClassLoss::cross_entropy>(logits, y, weights, [&](auto axis) {
      constexpr int a = decltype(axis)::value;
      auto const z = logits - largest<"cross_entropy">(logits, keeping<a>);
      auto const of_labels = [&](auto const& l) {
        return label_loss<ClassLoss::cross_entropy, a, R...>(log(sum<a>(exp(z), keepdim)), z, l, weights, o);
      };
      auto const of_probabilities = [&](auto const& p) {
        return probability_loss<a, R...>(z - log(sum<a>(exp(z), keepdim)), p, weights, o);
      };
      if constexpr (typed<Y>) {
        if constexpr (is_floating(Y::static_meta.dtype)) return of_probabilities(y);
        else return of_labels(y);
      } else {
        return is_floating(y.dtype()) ? of_probabilities(y) : of_labels(y);
      }
    });
  };
  return classes_in_f32(loss, given, target, weight);
}

template <Reduction... R, class X, class Y, class W>
constexpr auto nll_loss_of(X const& log_p, Y const& labels, W const& weight, NllLoss const& o) {
  auto const loss = [&](auto const& x, auto const& y, auto const& w) {
    return over_classes<ClassLoss::nll_loss>(x, y, w, [&](auto axis) {
      return label_loss<ClassLoss::nll_loss, decltype(axis)::value, R...>(
          Unweighted{}, x, y, w, CrossEntropy{.ignore_index = o.ignore_index, .reduction = o.reduction});
    });
  };
  return classes_in_f32(loss, log_p, labels, weight);
}

}  // namespace detail

/// cross_entropy(logits, labels) - mean of -log softmax(logits) at the labels, or over classes against probabilities; a
/// third operand may be the weights of classes (means are then weighted), and options come last.
///
/// Shapes    logits: [N, C] or [N, C, ...], labels: [N] or [N, ...], or probabilities of the logits' shape; weight: [C]
///           -> []
/// Dtypes    logits: floating, labels: i32 i64, probabilities: floating; 16 bits are computed in f32 and rounded at the
///           end
/// Errors    "cross_entropy: labels [16] do not fit scores [32, 10]"; "cross_entropy: label 10 out of range for 10
///           classes" (not of a program that does not know the number of classes)
/// Source    PyTorch's cross_entropy; label_smoothing: Szegedy et al., CVPR 2016
template <Reduction... R, operand X, operand Y>
constexpr auto cross_entropy(X const& logits, Y const& target, CrossEntropy const& options = {}) {
  return detail::cross_entropy_of<R...>(logits, target, detail::Unweighted{}, options);
}
template <Reduction... R, operand X, operand Y, operand W>
constexpr auto cross_entropy(X const& logits, Y const& target, W const& weight,
                             CrossEntropy const& options = {}) {
  return detail::cross_entropy_of<R...>(logits, target, weight, options);
}

/// nll_loss(log_probabilities, labels) - minus the mean of the entries at the labels; weights and options as above.
///
/// Shapes    log_probabilities: [N, C] or [N, C, ...], labels: [N] or [N, ...], weight: [C] -> []
/// Dtypes    log_probabilities: floating, labels: i32 i64; 16 bits are computed in f32 and rounded at the end
/// Errors    "nll_loss: labels [16] do not fit scores [32, 10]"; for labels out of range as cross_entropy
/// Source    PyTorch's nll_loss
template <Reduction... R, operand X, operand Y>
constexpr auto nll_loss(X const& log_probabilities, Y const& labels, NllLoss const& options = {}) {
  return detail::nll_loss_of<R...>(log_probabilities, labels, detail::Unweighted{}, options);
}
template <Reduction... R, operand X, operand Y, operand W>
constexpr auto nll_loss(X const& log_probabilities, Y const& labels, W const& weight,
                        NllLoss const& options = {}) {
  return detail::nll_loss_of<R...>(log_probabilities, labels, weight, options);
}

}  // namespace dfdx
