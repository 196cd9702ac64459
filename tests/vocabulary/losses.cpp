// SPDX-License-Identifier: BSL-1.0
// Losses and gated activations beyond what the reference results hold: options in all combinations against plain
// loops, Tensors against Arrays, and what is refused.
#include "ops/compiled.hpp"

#include <dfdx/testing/gradcheck.hpp>
#include <dfdx/vocabulary/indexing.hpp>
#include <dfdx/vocabulary/margin_loss.hpp>
#include <dfdx/vocabulary/methods.hpp>

#include <catch2/matchers/catch_matchers.hpp>

#include <functional>
#include <string>

namespace tests::vocabulary_losses {

using namespace dfdx;

namespace {

double at(Array const& x, index_t i) { return read_real(dfdx::detail::packed(x).operand(), i); }

bool near(Array const& got, double want) {
  return std::fabs(at(got, 0) - want) <= 1e-12 * (1 + std::fabs(want));
}

std::string error_of(std::function<void()> const& f) {
  try {
    f();
  } catch (error const& e) {
    return e.what();
  }
  return "";
}

// Losses of labels by the definition: logits [3, 4, 2], labels [3, 2].
struct Reference {
  Array x = randn({3, 4, 2}, Key{1}, DType::f64);
  Array y = from<std::int64_t>({0, 3, -1, 2, 1, 1});
  Array w = dfdx::from<double>({0.5, 1, 2, 3});

  double log_p(int n, int c, int k, bool logits) const {
    double total = 0;
    for (int j = 0; j < 4; ++j) total += std::exp(at(x, (n * 4 + j) * 2 + k));
    double const v = at(x, (n * 4 + c) * 2 + k);
    return logits ? v - std::log(total) : v;
  }
  // The loss of sample (n, k), and what it counts in the mean.
  std::pair<double, double> loss(int n, int k, bool logits, bool weighted, double s) const {
    auto const label = static_cast<int>(at(y, n * 2 + k));
    if (label < 0) return {0, 0};
    double const own = weighted ? at(w, label) : 1;
    double smooth = 0;
    for (int c = 0; c < 4; ++c) smooth -= (weighted ? at(w, c) : 1) * log_p(n, c, k, logits);
    return {-(1 - s) * own * log_p(n, label, k, logits) + s / 4 * smooth, own};
  }
  double reduced(Reduction how, bool logits, bool weighted, double s, int only = -1) const {
    double total = 0, count = 0;
    for (int n = 0; n < 3; ++n)
      for (int k = 0; k < 2; ++k)
        if (only < 0 || only == n * 2 + k) {
          auto const [l, c] = loss(n, k, logits, weighted, s);
          total += l;
          count += c;
        }
    return how == Reduction::mean ? total / count : total;
  }
};

}  // namespace

TEST_CASE("cross_entropy and nll_loss with weights, smoothing and ignored labels", "[vocabulary]") {
  Reference const r;
  Array const labels = reshape(r.y, {3, 2});
  for (double s : {0.0, 0.3})
    for (bool weighted : {false, true})
      for (Reduction how : {Reduction::mean, Reduction::sum, Reduction::none}) {
        CrossEntropy const o{.label_smoothing = s, .ignore_index = -1, .reduction = how};
        NllLoss const n{.ignore_index = -1, .reduction = how};
        Array const a = weighted ? cross_entropy(r.x, labels, r.w, o) : cross_entropy(r.x, labels, o);
        Array const b = weighted ? nll_loss(r.x, labels, r.w, n) : nll_loss(r.x, labels, n);
        CAPTURE(s, weighted, static_cast<int>(how));
        if (how == Reduction::none) {
          REQUIRE(a.shape() == make_shape(3, 2));
          REQUIRE(b.shape() == make_shape(3, 2));
          for (int i = 0; i < 6; ++i) {
            CHECK(std::fabs(at(a, i) - r.reduced(how, true, weighted, s, i)) < 1e-12);
            CHECK(std::fabs(at(b, i) - r.reduced(how, false, weighted, 0, i)) < 1e-12);
          }
        } else {
          CHECK(near(a, r.reduced(how, true, weighted, s)));
          CHECK(near(b, r.reduced(how, false, weighted, 0)));
        }
      }
  // Probabilities that are all at one class are its label; without a batch the class axis is 0.
  Array const x = randn({4}, Key{3}, DType::f64), one = from<double>({0, 0, 1, 0});
  Array const label = reshape(from<std::int64_t>({2}), Shape{});
  for (double s : {0.0, 0.2})
    CHECK(near(cross_entropy(x, one, {.label_smoothing = s}),
               at(cross_entropy(x, label, {.label_smoothing = s}), 0)));
  CHECK(near(cross_entropy(x, one, r.w), 2 * at(cross_entropy(x, label), 0)));
}

TEST_CASE("losses of Tensors are those of Arrays, with the reduction as template argument or option",
          "[vocabulary]") {
  auto const x = randn<double, 3, 4>(Key{1});
  auto const y = Tensor<std::int64_t, 3>::from({1, 3, 0});
  auto const p = softmax(randn<double, 3, 4>(Key{2}));
  auto const w = Tensor<double, 4>::from({1, 2, 3, 4});
  CrossEntropy const o{.label_smoothing = 0.1, .ignore_index = 3};
  Tensor<double, 3> const each = cross_entropy<Reduction::none>(x, y, w, o);
  Tensor<double> const all = cross_entropy<Reduction::sum>(x, y, w, o), mean_loss = cross_entropy(x, y, w, o);
  Tensor<double> const soft = cross_entropy(x, p, {.label_smoothing = 0.1, .reduction = Reduction::sum});
  CHECK(allclose(each,
                 cross_entropy(Array(x), Array(y), Array(w),
                               {.label_smoothing = 0.1, .ignore_index = 3, .reduction = Reduction::none})));
  CHECK(at(each, 1) == 0);
  CHECK(near(sum(each), all.item()));
  CHECK(near(cross_entropy(Array(x), Array(y), Array(w), o), mean_loss.item()));
  CHECK(near(cross_entropy(Array(x), Array(p), {.label_smoothing = 0.1}), soft.item() / 3));
  CHECK(near(mse_loss(x, p, Reduction::sum), at(sum(mse_loss<Reduction::none>(x, p)), 0)));
  CHECK(kl_div<Reduction::none>(x, p).shape() == make_shape(3, 4));
}

TEST_CASE("compiled losses with options", "[vocabulary]") {
  auto const x = randn<float, 3, 4>(Key{1});
  auto const y = Tensor<std::int32_t, 3>::from({1, 3, 0});
  auto const w = Tensor<float, 4>::from({1, 2, 3, 4});
  compiled::check_vjp(
      [](auto const& a, auto const& labels, auto const& weight) {
        CrossEntropy const o{.label_smoothing = 0.1, .ignore_index = 3};
        return std::tuple(cross_entropy(a, labels, weight, o), cross_entropy<Reduction::none>(a, labels, o),
                          cross_entropy(a, softmax(a)), nll_loss(a, labels, {.reduction = Reduction::sum}),
                          glu(a), swiglu<0>(concat<0>(a, a)), softmin(a), softplus(a, 2.0, 1.0));
      },
      x, y, w);
}

TEST_CASE("labels of -100 are ignored unless another is named, in every regime", "[vocabulary]") {
  auto const x = randn<double, 3, 4>(Key{1});
  auto const y = Tensor<std::int64_t, 3>::from({1, -100, 0});
  auto const kept = concat<0>(slice<0, 0, 1>(x), slice<0, 2, 3>(x));
  double const want = cross_entropy(kept, Tensor<std::int64_t, 2>::from({1, 0})).item();
  auto const loss = [](auto const& a, auto const& labels) { return cross_entropy(a, labels); };
  auto const [l, dx] = value_and_grad(loss)(x, y);
  CHECK(near(cross_entropy(x, y), want));
  CHECK(near(l, want));
  for (index_t c = 0; c < 4; ++c) CHECK(dx(1, c) == 0);
  Array watched = x.detach().clone();
  watched.requires_grad(true);
  cross_entropy(watched, Array(y)).backward();
  CHECK(allclose(watched.grad(), dx));
  CHECK(near(nll_loss(log_softmax<1>(x), y), want));
  CHECK(error_of([&] { cross_entropy(x, y, {.ignore_index = no_index}); }) ==
        "cross_entropy: label -100 out of range for 4 classes");
}

TEST_CASE("losses of distributions", "[vocabulary]") {
  Array const x = from<double>({0.5, 2}), t = from<double>({3, 1}), v = from<double>({0.25, 4});
  CHECK(near(poisson_nll_loss(x, t), (std::exp(0.5) - 1.5 + std::exp(2) - 2) / 2));
  CHECK(near(poisson_nll_loss(x, t, {.log_input = false, .eps = 0, .reduction = Reduction::sum}),
             0.5 - 3 * std::log(0.5) + 2 - std::log(2)));
  double const stirling = 3 * std::log(3) - 3 + 0.5 * std::log(6 * 3.14159265358979323846);
  CHECK(near(poisson_nll_loss(x, t, {.full = true, .reduction = Reduction::sum}),
             std::exp(0.5) - 1.5 + stirling + std::exp(2) - 2));
  double const g = 0.5 * (std::log(0.25) + 2.5 * 2.5 / 0.25) + 0.5 * (std::log(4) + 1.0 / 4);
  CHECK(near(gaussian_nll_loss(x, t, v, {.reduction = Reduction::sum}), g));
  CHECK(near(gaussian_nll_loss(x, t, v, {.full = true}), g / 2 + 0.5 * std::log(2 * 3.14159265358979323846)));
  CHECK(near(gaussian_nll_loss(x, t, v, {.eps = 100}), (7.25 / 100 + 2 * std::log(100)) / 4));
  // eps keeps the logarithm of a rate of 0 finite; a target of 1 has no part in Stirling's approximation.
  CHECK(near(poisson_nll_loss(from<double>({0}), from<double>({2}), {.log_input = false, .eps = 0.5}),
             -2 * std::log(0.5)));
  CHECK(near(poisson_nll_loss(from<double>({0}), from<double>({1}), {.full = true}), 1));
  // Below eps the gradient of a variance is that of eps.
  Array narrow = from<double>({0.125, 4});
  narrow.requires_grad(true);
  gaussian_nll_loss(x, t, narrow, {.eps = 0.25, .reduction = Reduction::sum}).backward();
  CHECK(near(narrow.grad(), 0.5 * (1 / 0.25 - 2.5 * 2.5 / (0.25 * 0.25))));
  CHECK(near(narrow.grad()(1), 0.5 * (1 / 4.0 - 1 / 16.0)));
  CHECK(near(kl_div(log(reshape(from<double>({0.5, 0.5, 0.25, 0.75}), {2, 2})),
                    reshape(from<double>({1, 0, 0, 1}), {2, 2}), {.reduction = Reduction::batchmean}),
             (std::log(2) - std::log(0.75)) / 2));
  CHECK(near(bce_loss(from<double>({0.25}), from<double>({1}), from<double>({3})), 3 * std::log(4)));
  CHECK(near(bce_with_logits(from<double>({0}), from<double>({1}), from<double>({2}), from<double>({5})),
             10 * std::log(2)));
}

TEST_CASE("distances and margins", "[vocabulary]") {
  Array const a = reshape(from<double>({3, 4, 1, 0}), {2, 2}),
              b = reshape(from<double>({0, 0, 0, 2}), {2, 2});
  Array const y = from<double>({1, -1});
  auto const distance = [&](double p) { return pairwise_distance(a, b, p, 0); };
  CHECK(near(distance(2), 5));
  CHECK(near(distance(1), 7));
  CHECK(near(distance(HUGE_VAL), 4));
  CHECK(near(distance(3), std::cbrt(91)));
  CHECK(near(cosine_similarity(a, a), 1));
  CHECK(near(cosine_similarity<0>(a, b, 1e-8), 0));
  Array const p = from<double>({1, 5}), q = from<double>({2, 1});
  CHECK(near(margin_ranking_loss(p, q, y, {.margin = 0.5, .reduction = Reduction::sum}), 1.5 + 4.5));
  CHECK(near(hinge_embedding_loss(from<double>({0.25, 0.25}), y), (0.25 + 0.75) / 2));
  CHECK(near(hinge_embedding_loss(from<double>({0.25, 0.25}), y, {.margin = 3}), (0.25 + 2.75) / 2));
  // eps is added to the difference, and so counts with its sign.
  CHECK(near(pairwise_distance(a, b, 1, 0.5), 8));
  CHECK(near(pairwise_distance(b, a, 1, 0.5), 6));
  CHECK(near(pairwise_distance(a, a, 2, 0.5), std::sqrt(0.5)));
  CHECK(near(normalize(a, 2, 1, 10), 0.3));
  CHECK(near(soft_margin_loss(p, y, Reduction::sum), std::log1p(std::exp(-1)) + std::log1p(std::exp(5))));
  Array const c = reshape(from<double>({1, 0, 1, 1}), {2, 2}),
              d = reshape(from<double>({1, 1, 1, 1}), {2, 2});
  CHECK(near(cosine_embedding_loss(c, d, y, {.margin = 0.25, .reduction = Reduction::sum}),
             1 - std::sqrt(0.5) + 0.75));
  TripletMargin const o{.margin = 1, .eps = 0, .reduction = Reduction::none};
  Array const anchor = reshape(from<double>({0, 0}), {1, 2}),
              positive = reshape(from<double>({0, 2}), {1, 2});
  Array const negative = reshape(from<double>({0, 2.5}), {1, 2});
  CHECK(near(triplet_margin_loss(anchor, positive, negative, o), 0.5));
  TripletMargin swapped = o;
  swapped.swap = true;
  CHECK(near(triplet_margin_loss(anchor, positive, negative, swapped), 2.5));
  TripletMargin apart{.margin = 1, .p = 1, .eps = 0.25, .reduction = Reduction::none};
  CHECK(near(triplet_margin_loss(anchor, -positive, negative, apart), 2.5 - 2.5 + 1));
}

TEST_CASE("distances of 16 bits that squares would leave, and gradients at 0", "[vocabulary]") {
  for (DType d : {DType::f16, DType::bf16}) {
    auto const row = [&](double x, double y) { return cast_to(reshape(from<double>({x, y}), {1, 2}), d); };
    auto const is = [&](Array const& x, double y) {
      CHECK(x.dtype() == d);
      return std::fabs(at(x, 0) / y - 1) < (d == DType::f16 ? 1e-3 : 8e-3);
    };
    CHECK(is(cosine_similarity(row(300, 4), row(3, 5)), 920 / std::hypot(300, 4) / std::hypot(3, 5)));
    CHECK(is(cosine_similarity(row(300, 4), row(300, 4)), 1));
    CHECK(is(cosine_similarity(row(1e-4, 1e-4), row(1e-4, 1e-4)), 1));
    CHECK(is(pairwise_distance(row(300, 4), row(3, 5)), std::hypot(297, 1)));
    CHECK(is(pairwise_distance(row(40, 50), row(0, 0), 3), std::cbrt(64000 + 125000)));
  }
  for (double p : {2.0, 3.0, 1.5}) {
    Array a = reshape(from<double>({1, 2}), {1, 2});
    Array const b = a.clone();
    a.requires_grad(true);
    pairwise_distance(a, b, p, 0).backward();
    CHECK(array_equal(a.grad(), zeros({1, 2}, DType::f64)));
  }
  CHECK(near(pairwise_distance(reshape(from<double>({1, 2, 3}), {1, 3}),
                               reshape(from<double>({1, 5, 4}), {1, 3}), 0, 0),
             2));
  Array n = from<double>({0, 2});
  n.requires_grad(true);
  Array const none = norm(n, -2);
  CHECK(near(none, 0));
  none.backward();
  CHECK(array_equal(n.grad(), zeros({2}, DType::f64)));
}

TEST_CASE("what losses compare is not repeated on both sides", "[vocabulary]") {
  Array const column = randn({8, 1}, Key{1}), row = randn({8}, Key{2});
  CHECK_THROWS_WITH(mse_loss(column, row),
                    "mse_loss: [8, 1] and [8] would both be repeated to [8, 8]: reshape one of them");
  CHECK_THROWS_WITH(l1_loss(row, column),
                    "l1_loss: [8] and [8, 1] would both be repeated to [8, 8]: reshape one of them");
  CHECK_THROWS_WITH(bce_with_logits(column, row),
                    "bce_with_logits: [8, 1] and [8] would both be repeated to [8, 8]: reshape one of them");
  CHECK_THROWS_WITH(huber_loss(column, row),
                    "huber_loss: [8, 1] and [8] would both be repeated to [8, 8]: reshape one of them");
  // Other shapes are repeated as by any op.
  CHECK(allclose(mse_loss(column, full({1, 8}, 0.5)), mse_loss(column, full({8, 1}, 0.5))));
  CHECK(allclose(mse_loss(row, full({}, 0.5)), mse_loss(row, full({8}, 0.5))));
  CHECK(allclose(mse_loss(row, full({1, 1}, 0.5)), mse_loss(row, full({8}, 0.5))));
  CHECK(allclose(mse_loss(randn({4, 8}, Key{3}), row), mse_loss(randn({4, 8}, Key{3}), expand(row, {4, 8}))));
}

TEST_CASE("rows whose label is ignored may hold anything", "[vocabulary]") {
  Array const x = reshape(from<double>({1, 2, HUGE_VAL, 0.5, -1, 3, NAN, 0, 0}), {3, 3});
  Array const y = from<std::int64_t>({-100, 2, -100}), w = from<double>({0.2, 0.3, 0.5});
  double const want = at(cross_entropy(slice<0, 1, 2>(x), slice<0, 1, 2>(y)), 0);
  CHECK(near(cross_entropy(x, y), want));
  CHECK(near(cross_entropy(x, y, w), want));
  CHECK(near(cross_entropy(x, y, w, {.label_smoothing = 0.1}),
             at(cross_entropy(slice<0, 1, 2>(x), slice<0, 1, 2>(y), w, {.label_smoothing = 0.1}), 0)));
}

TEST_CASE("NaN stays, and means of large integers do not wrap", "[vocabulary]") {
  CHECK(std::isnan(at(kl_div(from<double>({-1, -2}), from<double>({NAN, 0.5})), 0)));
  CHECK(std::isnan(at(softshrink(from<double>({NAN})), 0)));
  Array const large = full({3}, 0x1p62, DType::i64);
  CHECK(mean(large).dtype() == DType::f32);
  CHECK(at(mean(large), 0) == 0x1p62);
  CHECK(at(mean(Tensor<std::int64_t, 3>(large)), 0) == 0x1p62);
  CHECK(at(compile([](auto const& v) { return mean(v); })(Tensor<std::int64_t, 3>(large)), 0) == 0x1p62);
}

TEST_CASE("losses that ask for a margin to every other class", "[vocabulary]") {
  Array const x = randn({3, 4}, Key{5}, DType::f64), y = from<std::int64_t>({2, 0, 3}),
              w = from<double>({0.5, 1, 2, 3});
  auto const loss = [&](int n, int p, double margin) {
    double total = 0;
    auto const label = static_cast<int>(at(y, n));
    for (int c = 0; c < 4; ++c)
      if (c != label)
        total += std::pow(std::fmax(0, margin - at(x, n * 4 + label) + at(x, n * 4 + c)), p) / 4;
    return total;
  };
  for (int p : {1, 2})
    for (double margin : {1.0, 0.25}) {
      double const each[] = {loss(0, p, margin), loss(1, p, margin), loss(2, p, margin)};
      CHECK(near(multi_margin_loss(x, y, {.p = p, .margin = margin}), (each[0] + each[1] + each[2]) / 3));
      CHECK(near(multi_margin_loss(x, y, w, {.p = p, .margin = margin, .reduction = Reduction::sum}),
                 2 * each[0] + 0.5 * each[1] + 3 * each[2]));
      CHECK(near(multi_margin_loss(x(1), y(1), {.p = p, .margin = margin}), each[1]));
      CHECK(testing::gradcheck(
          [&](std::span<Array const> v) {
            return multi_margin_loss(v[0], y, v[1], {p, margin, Reduction::none});
          },
          {x, w}));
    }
  auto const typed = randn<double, 3, 4>(Key{5});
  CHECK(near(multi_margin_loss(Array(typed), y),
             multi_margin_loss(typed, Tensor<std::int64_t, 3>::from({2, 0, 3})).item()));
  CHECK(error_of([&] { multi_margin_loss(x, from<std::int64_t>({1, 2})); }) ==
        "multi_margin_loss: labels [2] do not fit scores [3, 4]");
  CHECK(error_of([&] { multi_margin_loss(x, y, {.p = 3}); }) == "multi_margin_loss: p must be 1 or 2, got 3");

  // The labels of a sample end at -1; what follows does not count.
  std::vector<std::vector<int>> const of = {{3, 0}, {}, {1}};
  Array const labels = from<std::int64_t>({3, 0, -1, 1, -1, 0, 0, 0, 1, -1, 2, 2}, {3, 4});
  double total = 0;
  for (std::size_t n = 0; n < 3; ++n)
    for (int j : of[n])
      for (int c = 0; c < 4; ++c) {
        bool is_label = false;
        for (int k : of[n]) is_label = is_label || k == c;
        auto const score = [&](int i) { return at(x, static_cast<index_t>(n) * 4 + i); };
        if (!is_label) total += std::fmax(0, 1 - score(j) + score(c)) / 4;
      }
  CHECK(near(multilabel_margin_loss(x, labels), total / 3));
  CHECK(near(multilabel_margin_loss(x, labels, Reduction::sum), total));
  CHECK(testing::gradcheck([&](std::span<Array const> v) { return multilabel_margin_loss(v[0], labels); },
                           {x}));
  Array const truth = from<double>({1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0}, {3, 4});
  CHECK(near(multilabel_soft_margin_loss(x, truth), at(bce_with_logits(x, truth), 0)));
  CHECK(near(multilabel_soft_margin_loss(x, truth, w, Reduction::sum),
             at(sum(bce_with_logits<Reduction::none>(x, truth) * w), 0) / 4));
}

TEST_CASE("gates and softmax along an axis known at run time", "[vocabulary]") {
  auto const x = randn<double, 4, 3, 2>(Key{1});
  Array const a = x;
  CHECK(array_equal(softmax(a, 1), softmax<1>(x)));
  CHECK(array_equal(log_softmax(a, -3), log_softmax<0>(x)));
  CHECK(array_equal(softmin(a, 2), softmax<2>(-x)));
  CHECK(array_equal(softmin(x), softmax(-x)));
  CHECK(array_equal(glu(a, 0), slice<0, 0, 2>(x) * sigmoid(slice<0, 2, 4>(x))));
  CHECK(array_equal(glu<0>(x), glu(a, -3)));
  CHECK(array_equal(geglu(x), slice<2, 0, 1>(x) * gelu(slice<2, 1, 2>(x))));
  CHECK(array_equal(geglu(a, 2), geglu(x)));
  CHECK(array_equal(swiglu(a, 2), silu(slice<2, 0, 1>(x)) * slice<2, 1, 2>(x)));
  CHECK(array_equal(swiglu(a, 2), swiglu(x)));
  auto const whole = Tensor<std::int32_t, 4>::from({1, -2, 3, 4});
  CHECK(array_equal(glu<0>(whole), glu<0>(cast<float>(whole))));
  CHECK(geglu<0>(Array(whole)).dtype() == DType::f32);
  CHECK(array_equal(gelu(x, Approximate::tanh), gelu_tanh(x)));
  CHECK(softmax(zeros({2, 0}), 1).shape() == make_shape(2, 0));
  CHECK(allclose(softplus(x, 2.0), softplus(x * 2.0) / 2.0));
  CHECK(at(softplus(full({1}, 3, DType::f64), 1.0, 2.0), 0) == 3);
}

// As PyTorch's clamp has them; the numbers are its.
TEST_CASE("clamp with bounds that are values, and its gradients", "[vocabulary]") {
  // Bounds that cross, as numbers too, leave the upper one, and NaN.
  Array const crossed = clamp(from<double>({0, 1.25, 7, NAN}), 2, 1.5);
  for (int i = 0; i < 3; ++i) CHECK(at(crossed, i) == 1.5);
  CHECK(std::isnan(at(crossed, 3)));
  auto const leaf = [](std::initializer_list<double> v) {
    Array a = from(v);
    a.requires_grad(true);
    return a;
  };
  Array const x = leaf({1, 2, 3, 4, 2}), low = leaf({2, 2, 2, 5, 3}), high = leaf({3, 3, 3, 3, 2});
  Array const y = clamp(x, low, high);
  CHECK(array_equal(y, from<double>({2, 2, 3, 3, 2})));
  sum(y).backward();
  CHECK(array_equal(x.grad(), from<double>({0, 1, 1, 0, 0})));
  CHECK(array_equal(low.grad(), from<double>({1, 0, 0, 0, 0})));
  CHECK(array_equal(high.grad(), from<double>({0, 0, 0, 1, 1})));
  Array const nan = full({}, NAN, DType::f64);
  for (Array const& each : {clamp_min(x, nan), clamp_max(x, nan), clamp(x, nan, 3), clamp(nan, low, high)})
    CHECK(all(isnan(each)).item() == 1);
  CHECK(array_equal(clamp(x, 2, high), from<double>({2, 2, 3, 3, 2})));
  CHECK(array_equal(clip(x, low, 3), from<double>({2, 2, 3, 3, 3})));
  CHECK(array_equal(clamp_min(x, low), maximum(x, low)));
  CHECK(array_equal(clamp_max(x, high), minimum(x, high)));
  CHECK(clamp(zeros({2, 3}), zeros({3}), ones({2, 1})).shape() == make_shape(2, 3));
  CHECK(error_of([&] { clamp(x, zeros({4}), high); }) == "clamp: shapes do not broadcast: [5] x [4]");
  CHECK(error_of([&] { clamp_max(x, zeros({4})); }) == "clamp_max: shapes do not broadcast: [5] x [4]");
}

TEST_CASE("the mean loss of an empty batch is NaN, in every regime", "[vocabulary]") {
  auto const all = [](auto const& x, auto const& y) {
    return std::tuple(cross_entropy(x, y), cross_entropy(x, y, {.ignore_index = no_index}), nll_loss(x, y),
                      cross_entropy(x, y, ones_like(sum<0>(x))), cross_entropy(x, x));
  };
  auto const check = [](auto const& loss) { CHECK(std::isnan(loss.item())); };
  auto const is_nan = [&](auto const&... losses) { (check(losses), ...); };
  Tensor<double, 0, 3> const x = zeros<double, 0, 3>();
  auto const y = zeros<std::int64_t, 0>();
  std::apply(is_nan, all(x, y));
  std::apply(is_nan, compile(all)(x, y));
  auto const of_any = compile([](Tensor<double, dyn, 3> const& s, Tensor<std::int64_t, dyn> const& l) {
    return cross_entropy(s, l);
  });
  CHECK(std::isnan(of_any(Tensor<double, dyn, 3>(x), Tensor<std::int64_t, dyn>(y)).item()));
  Array const few = randn({2, 3}, Key{1}, DType::f64), labels = from<std::int64_t>({2, -100});
  CHECK(std::fabs(of_any(Tensor<double, dyn, 3>(few), Tensor<std::int64_t, dyn>(labels)).item() -
                  cross_entropy(few, labels).item()) < 1e-12);
  Array leaf = x.detach();
  leaf.requires_grad(true);
  Array const loss = cross_entropy(leaf, Array(y));
  CHECK(std::isnan(loss.item()));
  loss.backward();
  CHECK(leaf.grad().shape() == make_shape(0, 3));
  CHECK(cross_entropy(leaf, Array(y), {.reduction = Reduction::sum}).item() == 0);
}

TEST_CASE("losses refuse what does not fit, in words", "[vocabulary]") {
  Array const x = zeros({3, 4}), y = zeros({2}, DType::i64), three = zeros({3}, DType::i64);
  CHECK(error_of([&] { cross_entropy(x, y); }) == "cross_entropy: labels [2] do not fit scores [3, 4]");
  CHECK(error_of([&] { cross_entropy(x, zeros({3, 5})); }) ==
        "cross_entropy: labels [3, 5] do not fit scores [3, 4]");
  CHECK(error_of([&] { nll_loss(x, zeros({3})); }) ==
        "nll_loss: labels of dtype i32 or i64 required, got f32");
  CHECK(error_of([&] { cross_entropy(x, three, ones({3})); }) ==
        "cross_entropy: 4 class weights required, got [3]");
  CHECK(error_of([&] { cross_entropy(x, ones({3, 4}), {.ignore_index = 1}); }) ==
        "cross_entropy: ignore_index needs labels, not probabilities");
  CHECK(error_of([&] { glu(x, 2); }) == "glu: axis 2 out of range for [3, 4]");
  CHECK(error_of([&] { glu(x, 0); }) == "glu: axis 0 of [3, 4] must be even");
  CHECK(error_of([&] { softmax(x, -3); }) == "softmax: axis -3 out of range for [3, 4]");
  CHECK(error_of([&] { softmax(three, 0); }) == "softmax: floating dtype required, got i64");
  CHECK(error_of([&] { norm(three, 2); }) == "norm: floating dtype required, got i64");
  CHECK(logsumexp(three, 0).dtype() == DType::f32);
  CHECK(error_of([&] { softmin(x, 2); }) == "softmin: axis 2 out of range for [3, 4]");
  CHECK(error_of([&] { cosine_similarity(x, x, 2); }) == "cosine_similarity: axis 2 out of range for [3, 4]");
  // Losses made of elementwise ops speak for themselves.
  Array const five = zeros({5});
  auto const refuses = [&](std::string const& name, auto const& loss) {
    CHECK(error_of([&] { loss(x, five); }) == name + ": shapes do not broadcast: [3, 4] x [5]");
  };
#define REFUSES(name) refuses(#name, [](auto const& a, auto const& b) { name(a, b); })
  REFUSES(l1_loss);
  REFUSES(mse_loss);
  REFUSES(huber_loss);
  REFUSES(smooth_l1_loss);
  REFUSES(bce_loss);
  REFUSES(bce_with_logits);
  REFUSES(kl_div);
  REFUSES(poisson_nll_loss);
  REFUSES(cosine_similarity);
  REFUSES(pairwise_distance);
  REFUSES(hinge_embedding_loss);
  REFUSES(soft_margin_loss);
#undef REFUSES
  refuses("gaussian_nll_loss", [](auto const& a, auto const& b) { gaussian_nll_loss(a, a, b); });
  refuses("triplet_margin_loss", [](auto const& a, auto const& b) { triplet_margin_loss(a, a, b); });
  refuses("margin_ranking_loss", [](auto const& a, auto const& b) { margin_ranking_loss(a, a, b); });
  auto const of_batch =
      compile([](Tensor<float, dyn> const& a, Tensor<float, dyn> const& b) { return mse_loss(a, b); });
  CHECK(error_of([&] { of_batch(Tensor<float, dyn>(zeros({3})), Tensor<float, dyn>(zeros({2}))); }) ==
        "mse_loss: extents differ: 3 x 2");
  auto const t = zeros<float, 3>();
  CHECK(error_of([&] { mse_loss(t, t, Reduction::none); }) ==
        "mse_loss: of Tensors reduction none is a template argument: mse_loss<Reduction::none>(...)");
}

TEST_CASE("losses of labels refuse what is no class, in memory", "[losses]") {
  Array const scores = randn(make_shape(3, 4), Key{1});
  auto const message = [](auto const& f) {
    try {
      f();
    } catch (error const& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  auto const labels = [](std::int64_t last) {
    Array l = zeros(make_shape(3), DType::i64);
    l.data<std::int64_t>()[2] = last;
    return l;
  };
  CHECK(message([&] { cross_entropy(scores, labels(4)); }) ==
        "cross_entropy: label 4 out of range for 4 classes");
  CHECK(message([&] { nll_loss(scores, labels(-1)); }) == "nll_loss: label -1 out of range for 4 classes");
  CHECK(message([&] { multi_margin_loss(scores, labels(9)); }) ==
        "multi_margin_loss: label 9 out of range for 4 classes");
  CHECK(message([&] { cross_entropy(scores, labels(-100), {.ignore_index = -100}); }).empty());
  CHECK(message([&] { cross_entropy(scores, labels(3)); }).empty());
}

TEST_CASE("options and values of losses that make no sense are refused", "[losses]") {
  Array const x = randn({2, 3}, Key{1}), labels = zeros({2}, DType::i64);
  CHECK_THROWS_AS(cross_entropy(x, labels, {.label_smoothing = 1.5}), error);
  CHECK_THROWS_AS(cross_entropy(x, labels, {.label_smoothing = -0.1}), error);
  CHECK_THROWS_AS(huber_loss(x, x, 0), error);
  CHECK_THROWS_AS(smooth_l1_loss(x, x, -1), error);
  CHECK_THROWS_AS(gaussian_nll_loss(x, x, full({2, 3}, -1)), error);
}

TEST_CASE("bce_loss of certain probabilities has a gradient, and of none is refused", "[losses]") {
  for (DType d : {DType::f32, DType::f64, DType::f16}) {
    Array p = from({0.0f, 1.0f, 1.0f, 0.0f}).to(d), t = from({0.0f, 1.0f, 0.0f, 1.0f}).to(d);
    p.requires_grad(true);
    Array const loss = bce_loss(p, t, Reduction::none);
    CHECK(array_equal(loss, from({0.0f, 0.0f, 100.0f, 100.0f}).to(d)));
    sum(loss).backward();
    CHECK(all(isfinite(p.grad())).item() == 1);
    for (float wrong : {-0.1f, 1.1f, NAN})
      CHECK(error_of([&] { bce_loss(full({2}, wrong, d), zeros({2}, d)); }) ==
            "bce_loss: probabilities between 0 and 1 required");
  }
}

TEST_CASE("activations at NaN, at kinks and of integers", "[vocabulary]") {
  Array const nan = full({1}, NAN);
  for (Array const& y : {hardshrink(nan), threshold(nan, 1, 2), clamp(nan, 0, 1), relu6(nan)})
    CHECK(isnan(y).item() == 1);
  Array x = from({3.0f, -3.0f});
  x.requires_grad(true);
  sum(hardswish(x)).backward();
  CHECK(x.grad().at<float>({0}) == 1);
  CHECK(x.grad().at<float>({1}) == 0);
  Array far = from<double>({INFINITY, -INFINITY, 1e300, NAN});
  far.requires_grad(true);
  Array const swish = hardswish(far);
  CHECK(array_equal(isnan(swish), from({false, true, false, true})));
  swish.backward(ones({4}, DType::f64));
  CHECK(array_equal(slice(far.grad(), 0, 0, 3), from<double>({1, 0, 1})));
  Array const i = arange(-3, 9);
  CHECK(clamp(i, -1, 3).dtype() == DType::i64);
  CHECK(array_equal(clamp(i, -1, 3), maximum(minimum(i, 3), -1)));
  CHECK(clamp(i, -0.5, 3).dtype() == DType::f32);
  CHECK(relu6(i).dtype() == DType::i64);
  CHECK(threshold(i, 2, 7).dtype() == DType::i64);
}

TEST_CASE("gradients where a value is no number or infinite", "[vocabulary]") {
  auto const pulled = [](auto const& f, Array x) {
    x.requires_grad(true);
    Array const y = f(x);
    y.backward(arange(5, 5 + x.size()).to(x.dtype()));
    return x.grad();
  };
  // What comes to a NaN is passed on, or a loss that is NaN would leave gradients of zeros.
  for (DType d : {DType::f32, DType::f64, DType::bf16}) {
    Array const x = from<double>({NAN, -2, 0, 2, INFINITY}).to(d);
    CHECK(array_equal(pulled([](auto const& v) { return relu(v); }, x), from<double>({5, 0, 0, 8, 9})));
    CHECK(array_equal(pulled([](auto const& v) { return softshrink(v); }, x), from<double>({5, 6, 0, 8, 9})));
  }
  auto const [value, slope] = value_and_grad([](Tensor<float, 4> const& v) { return sum(relu(v) * 3.0); })(
      Tensor<float, 4>{NAN, -1, 0, 1});
  CHECK(std::isnan(value.item()));
  CHECK(array_equal(slope, from({3.0f, 0.0f, 0.0f, 3.0f})));
  // A weight that an infinite element does not meet.
  Array weight = from({0.5f});
  weight.requires_grad(true);
  Array const y = prelu(from({INFINITY, -2.0f, 3.0f}), weight);
  CHECK(array_equal(y, from({INFINITY, -1.0f, 3.0f})));
  sum(y).backward();
  CHECK(array_equal(weight.grad(), from({-2.0f})));
  // Beside an infinite end the other one, and the weight.
  Array a = from({-INFINITY, 1.0f}), b = from({-1.0f, 3.0f}), w = from({20.0f, 0.25f});
  for (Array* v : {&a, &b, &w}) v->requires_grad(true);
  Array const between = lerp(a, b, w);
  CHECK(array_equal(between, from({INFINITY, 1.5f})));
  sum(between).backward();
  CHECK(array_equal(a.grad(), from({-19.0f, 0.75f})));
  CHECK(array_equal(b.grad(), from({20.0f, 0.25f})));
  CHECK(array_equal(w.grad(), from({INFINITY, 2.0f})));
}

TEST_CASE("what is decided well costs little, but not nothing", "[losses]") {
  auto const logits = Tensor<float, 4>{17.5f, -40.0f, 60.0f, -0.0f};
  auto const truth = Tensor<float, 4>{1, 0, 1, 1}, weights = Tensor<float, 4>{2, 3, 0.5f, 1};
  double const size[] = {17.5, 40, 60, 0}, sign[] = {-1, 1, -1, -1}, weight[] = {2, 1, 0.5, 1};
  auto const near_one = [](Array const& got, index_t i, double want) {
    INFO(i << ": " << at(got, i) << " for " << want);
    return std::fabs(at(got, i) - want) <= 1e-6 * std::fabs(want);
  };
  Array const each = bce_with_logits<Reduction::none>(logits, truth),
              heavy = bce_with_logits<Reduction::none>(logits, truth, weights);
  Array x = Array(logits).clone();
  x.requires_grad(true);
  sum(bce_with_logits(x, Array(truth), Array(weights), Reduction::none)).backward();
  for (index_t i = 0; i < 4; ++i) {
    double const loss = std::log1p(std::exp(-size[i])), slope = sign[i] / (1 + std::exp(size[i]));
    CHECK(near_one(each, i, loss));
    CHECK(near_one(heavy, i, weight[i] * loss));
    CHECK(near_one(x.grad(), i, weight[i] * slope));
  }
}

TEST_CASE("losses of 16 bits are rounded once, and so are their gradients", "[losses]") {
  using F = std::function<Array(Array const&, Array const&)>;
  Array const labels = from<std::int64_t>({1, 0, 4, 4}), weight = from<double>({1, 2, 0.5, 1, 3});
  std::vector<F> const all = {
      [](auto const& x, auto const& t) { return l1_loss(x, t); },
      [](auto const& x, auto const& t) { return mse_loss(x, t, Reduction::none); },
      [](auto const& x, auto const& t) { return huber_loss(x, t, 0.3); },
      [](auto const& x, auto const& t) { return smooth_l1_loss(x, t, 0.3, Reduction::sum); },
      [](auto const& x, auto const& t) { return bce_loss(t, x); },
      [](auto const& x, auto const& t) { return bce_with_logits(x, t, Reduction::none); },
      [](auto const& x, auto const& t) { return bce_with_logits(x, t, t); },
      [](auto const& x, auto const& t) { return kl_div(x, t, {.reduction = Reduction::none}); },
      [](auto const& x, auto const& t) { return poisson_nll_loss(x, t, {.full = true}); },
      [](auto const& x, auto const& t) { return gaussian_nll_loss(x, t, t); },
      [&](auto const& x, auto const&) { return cross_entropy(x, labels, {.label_smoothing = 0.1}); },
      [&](auto const& x, auto const&) {
        return cross_entropy(x, labels, weight.to(x.dtype()), {.reduction = Reduction::none});
      },
      [&](auto const& x, auto const&) { return nll_loss(x, labels, weight.to(x.dtype())); },
      [](auto const& x, auto const& t) { return cross_entropy(x, t); },
      [](auto const& x, auto const& t) { return lerp(x, t, t); },
  };
  for (DType d : {DType::bf16, DType::f16})
    for (std::size_t k = 0; k < all.size(); ++k) {
      INFO(name_of(d) << " loss " << k);
      auto const run = [&](DType as) {
        Array x = (randn({4, 5}, Key{7}) * 4.0).to(d).to(as), t = uniform({4, 5}, Key{8}).to(d).to(as);
        x.requires_grad(true);
        Array const y = all[k](x, t);
        sum(y.to(DType::f32)).backward();
        CHECK(y.dtype() == as);
        return std::array{y.detach(), x.grad()};
      };
      auto const got = run(d), want = run(DType::f32);
      CHECK(array_equal(got[0], want[0].to(d)));
      CHECK(allclose(got[1].to(DType::f32), want[1], d == DType::bf16 ? 0x1p-7 : 0x1p-10, 1e-7));
    }
  // And of Tensors, whose programs give the same.
  auto const x = cast<bfloat16>(randn<float, 4, 5>(Key{7}) * 4.0);
  auto const f = [](auto const& v, auto const& y) { return cross_entropy(v, y); };
  static_assert(std::is_same_v<decltype(f(x, Tensor<int, 4>{})), Tensor<bfloat16>>);
  auto const y = Tensor<int, 4>{1, 0, 4, 4};
  CHECK(array_equal(f(x, y), cast<bfloat16>(f(cast<float>(x), y))));
  CHECK(array_equal(f(x, y), compile(f)(x, y)));
}

}  // namespace tests::vocabulary_losses
