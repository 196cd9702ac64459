// SPDX-License-Identifier: BSL-1.0
// How good predictions are: accuracy, also among the k best, confusion matrices with precision, recall and F1,
// perplexity. Of values in memory; all are templates or members of such, so that programs without them compile none.
#pragma once

#include <cmath>
#include <vector>

#include <dfdx/value/device_ops.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/tensor.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::metrics {

namespace detail {

// The label of each row of scores, checked. f(row, label) with row as the offset of the first score.
template <class F>
void for_labels(char const* name, Array const& scores, Array const& labels, F const& f) {
  Shape const &s = scores.shape(), &l = labels.shape();
  if (s.rank != 2 || l.rank != 1 || s[0] != l[0])
    raise(name, ": scores [B, C] and labels [B] required, got ", s, " and ", l);
  if (is_floating(labels.dtype())) raise(name, ": integer labels required, got ", labels.dtype());
  Array const given[] = {dfdx::detail::here(scores), dfdx::detail::here(labels)};
  Operand const x = given[0].operand(), y = given[1].operand();
  for (index_t i = 0; i < l[0]; ++i) {
    index_t const label = read_integer(y, i * y.strides[0]);
    if (label < 0 || label >= s[1])
      raise(name, ": label ", Position{label}, " at ", i, ", there are ", s[1], " classes");
    f(i * x.strides[0], label);
  }
}

}  // namespace detail

/// hits - in how many rows the label is among the k largest scores. Of equal scores the first counts as larger, as
/// argmax has it; so does a NaN, which is above all.
///
/// Math      #{i : fewer than k classes are above labels[i] in row i}
/// Shapes    scores: [B, C], labels: [B]
/// Dtypes    scores: numeric; labels: integers
/// Errors    "hits: label 12 at 5, there are 10 classes"; "hits: scores [B, C] and labels [B] required, got ..."
/// Source    elementary
template <int = 0>
index_t hits(Array const& scores, Array const& labels, index_t k = 1) {
  index_t r = 0;
  Array const given = dfdx::detail::here(scores);
  Operand const x = given.operand();
  detail::for_labels("hits", scores, labels, [&](index_t row, index_t label) {
    auto const at = [&](index_t c) { return read_real(x, row + c * x.strides[1]); };
    double const mine = at(label);
    index_t above = 0;
    for (index_t c = 0; c < scores.shape()[1]; ++c) {
      double const other = at(c);
      bool const equal = other == mine || (other != other && mine != mine);
      above += equal ? c < label : other != other || other > mine;
    }
    r += above < k;
  });
  return r;
}

/// accuracy - the share of rows whose label has the largest score, or one of the k largest; NaN of no rows.
///
/// Math      hits(scores, labels, k) / B
/// Shapes    scores: [B, C], labels: [B]
/// Dtypes    scores: numeric; labels: integers
/// Errors    those of hits
/// Source    scikit-learn's accuracy_score and top_k_accuracy_score but for ties
template <int = 0>
double accuracy(Array const& scores, Array const& labels, index_t k = 1) {
  return static_cast<double>(hits(scores, labels, k)) / static_cast<double>(labels.size());
}

/// perplexity - of a model that gives labels these scores, as how many equally likely classes it is unsure among.
///
/// Math      exp(mean_i (log sum_c exp(scores[i, c]) - scores[i, labels[i]])); NaN of no rows
/// Shapes    scores: [B, C], labels: [B]
/// Dtypes    scores: numeric, computed with in double; labels: integers
/// Errors    those of hits, for perplexity
/// Source    Jelinek et al. 1977
template <int = 0>
double perplexity(Array const& scores, Array const& labels) {
  double sum = 0;
  Array const given = dfdx::detail::here(scores);
  Operand const x = given.operand();
  detail::for_labels("perplexity", scores, labels, [&](index_t row, index_t label) {
    double most = -HUGE_VAL, total = 0;
    for (index_t c = 0; c < scores.shape()[1]; ++c)
      most = std::fmax(most, read_real(x, row + c * x.strides[1]));
    for (index_t c = 0; c < scores.shape()[1]; ++c)
      total += std::exp(read_real(x, row + c * x.strides[1]) - most);
    sum += most + std::log(total) - read_real(x, row + label * x.strides[1]);
  });
  return std::exp(sum / static_cast<double>(labels.size()));
}

/// Scores - of one class, or means over classes. What would be 0 / 0 is 0.
///
/// Math      precision = TP / (TP + FP), recall = TP / (TP + FN), f1 = 2 TP / (2 TP + FP + FN); support = TP + FN
/// Shapes    none: numbers
/// Dtypes    double
/// Errors    none
/// Source    van Rijsbergen, "Information Retrieval", 1979; scikit-learn's precision_recall_fscore_support
struct Scores {
  double precision = 0, recall = 0, f1 = 0, support = 0;
};

/// BasicConfusion, Confusion - how often what is one class was said to be another. Rows are what is true.
///
///     metrics::Confusion confusion(10);
///     confusion.add(labels, argmax<1>(model(x)));
///     confusion.macro().f1
///
/// Math      (t, p) = #{i : truth[i] = t, predicted[i] = p}
/// Shapes    truth, predicted: [S...], of one shape
/// Dtypes    integers; counts are i64
/// Errors    "confusion: class 12, there are 10"; "confusion: [4] labels and [3] predictions". Nothing is counted then
/// Source    scikit-learn's confusion_matrix with labels 0 .. n - 1: means over classes count those that do not occur
template <int = 0>
class BasicConfusion {
 public:
  explicit BasicConfusion(index_t classes) : classes_(classes < 0 ? 0 : classes) {
    counts_.resize(static_cast<std::size_t>(classes_ * classes_));
  }

  index_t classes() const { return classes_; }
  /// Row-major.
  std::vector<std::int64_t> const& counts() const { return counts_; }
  std::int64_t operator()(index_t truth, index_t predicted) const { return counts_[place(truth, predicted)]; }

  void add(index_t truth, index_t predicted, std::int64_t times = 1) {
    counts_[place(truth, predicted)] += times;
  }
  void add(Array const& truth, Array const& predicted) {
    if (truth.shape() != predicted.shape())
      raise("confusion: ", truth.shape(), " labels and ", predicted.shape(), " predictions");
    std::vector<std::size_t> places;
    std::vector<index_t> said;
    each("labels", truth, [&](index_t t) { said.push_back(t); });
    auto const* t = said.data();
    each("predictions", predicted, [&](index_t p) { places.push_back(place(*t++, p)); });
    for (std::size_t p : places) ++counts_[p];
  }
  /// Counts of another of as many classes.
  void add(BasicConfusion const& o) {
    if (o.classes_ != classes_) raise("confusion: of ", classes_, " and of ", o.classes_, " classes");
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += o.counts_[i];
  }

  std::int64_t total() const {
    std::int64_t r = 0;
    for (std::int64_t n : counts_) r += n;
    return r;
  }
  /// The share on the diagonal; NaN of nothing.
  double accuracy() const {
    double right = 0;
    for (index_t c = 0; c < classes_; ++c) right += static_cast<double>((*this)(c, c));
    return right / static_cast<double>(total());
  }
  /// One class against all others.
  Scores of(index_t c) const {
    std::int64_t said = 0, is = 0;
    for (index_t i = 0; i < classes_; ++i) said += (*this)(i, c), is += (*this)(c, i);
    return scores((*this)(c, c), said, is);
  }
  /// Means over classes, each counting the same; of F1 the mean, not the F1 of the means.
  Scores macro() const {
    return mean([](Scores const&) { return 1.0; });
  }
  /// Means over classes, each counting as often as it occurs.
  Scores weighted() const {
    return mean([](Scores const& s) { return s.support; });
  }
  /// Of the sums over classes: as each prediction is of one class, all three are the accuracy.
  Scores micro() const {
    std::int64_t right = 0;
    for (index_t c = 0; c < classes_; ++c) right += (*this)(c, c);
    return scores(right, total(), total());
  }

 private:
  std::size_t place(index_t truth, index_t predicted) const {
    for (index_t c : {truth, predicted})
      if (c < 0 || c >= classes_) raise("confusion: class ", Position{c}, ", there are ", classes_);
    return static_cast<std::size_t>(truth * classes_ + predicted);
  }
  template <class F>
  static void each(char const* what, Array const& a, F const& f) {
    if (is_floating(a.dtype())) raise("confusion: integer ", what, " required, got ", a.dtype());
    Array const given = dfdx::detail::here(a);
    Operand const x = given.operand();
    Strides const strides[1] = {x.strides};
    walk<1>(given.shape(), strides, [&](index_t const(&o)[1]) { f(read_integer(x, o[0])); });
  }
  static Scores scores(std::int64_t right, std::int64_t said, std::int64_t is) {
    auto const ratio = [](double a, double b) { return b == 0 ? 0 : a / b; };
    auto const r = static_cast<double>(right), p = static_cast<double>(said), t = static_cast<double>(is);
    return {ratio(r, p), ratio(r, t), ratio(2 * r, p + t), t};
  }
  template <class F>
  Scores mean(F const& weight) const {
    Scores r;
    double all = 0;
    for (index_t c = 0; c < classes_; ++c) {
      Scores const s = of(c);
      double const w = weight(s);
      r.precision += w * s.precision;
      r.recall += w * s.recall;
      r.f1 += w * s.f1;
      r.support += s.support;
      all += w;
    }
    if (all == 0) return {};
    r.precision /= all;
    r.recall /= all;
    r.f1 /= all;
    return r;
  }

  index_t classes_;
  std::vector<std::int64_t> counts_;
};
using Confusion = BasicConfusion<>;

}  // namespace dfdx::metrics
