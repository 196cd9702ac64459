// SPDX-License-Identifier: BSL-1.0
// ctc_loss against the sum over all paths.
#include "ops/suite.hpp"

#include <dfdx/vocabulary/ctc_loss.hpp>
#include <dfdx/vocabulary/indexing.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::vocabulary_ctc_loss {

using namespace dfdx;

namespace {

constexpr int classes = 3, length = 4, batch = 4;

// Frames and targets of four sequences, among them a repeated label, a short one, an empty one.
int const frames[batch] = {4, 4, 2, 4};
std::vector<int> const targets[batch] = {{1, 2}, {1, 1}, {2}, {}};

// Minus the logarithm of the probability of all paths that read as the target: repetitions joined, then blanks gone.
double by_paths(Array const& log_p, int n) {
  double total = 0;
  int paths = 1;
  for (int t = 0; t < frames[n]; ++t) paths *= classes;
  for (int path = 0; path < paths; ++path) {
    std::vector<int> read;
    double log_path = 0;
    for (int t = 0, rest = path, last = -1; t < frames[n]; ++t, rest /= classes) {
      int const c = rest % classes;
      log_path += suite::at(log_p, (t * batch + n) * classes + c);
      if (c != last && c != 0) read.push_back(c);
      last = c;
    }
    if (read == targets[n]) total += std::exp(log_path);
  }
  return -std::log(total);
}

}  // namespace

TEST_CASE("ctc_loss is the sum over all paths", "[vocabulary]") {
  auto const scores = randn<double, length, batch, classes>(Key{1});
  auto const y = Tensor<std::int64_t, batch, 2>::from({{1, 2}, {1, 1}, {2, 0}, {0, 0}});
  auto const t = Tensor<std::int64_t, batch>::from({4, 4, 2, 4}),
             s = Tensor<std::int64_t, batch>::from({2, 2, 1, 0});
  auto const log_p = log_softmax(scores);
  Tensor<double, batch> const each = ctc_loss<Reduction::none>(log_p, y, t, s);
  double total = 0, mean_loss = 0;
  for (int n = 0; n < batch; ++n) {
    double const want = by_paths(log_p, n);
    CHECK(std::fabs(each(n) - want) < 1e-12);
    total += want;
    mean_loss += want / (targets[n].empty() ? 1.0 : double(targets[n].size())) / batch;
  }
  CHECK(std::fabs(ctc_loss(log_p, y, t, s, {.reduction = Reduction::sum}).item() - total) < 1e-12);
  CHECK(std::fabs(ctc_loss(log_p, y, t, s).item() - mean_loss) < 1e-12);
  CHECK(std::fabs(suite::at(ctc_loss(Array(log_p), Array(y), Array(t), Array(s)), 0) - mean_loss) < 1e-12);
  // Another blank: the classes turned round.
  auto const turned = concat<2>(slice<2, 1, 3>(log_p), slice<2, 0, 1>(log_p));
  auto const labels = Tensor<std::int64_t, batch, 2>::from({{0, 1}, {0, 0}, {1, 2}, {2, 2}});
  CHECK(std::fabs(ctc_loss(turned, labels, t, s, {.blank = 2}).item() - mean_loss) < 1e-12);
}

TEST_CASE("targets of ctc_loss one after another", "[vocabulary]") {
  auto const log_p = log_softmax(randn<double, length, batch, classes>(Key{1}));
  auto const t = Tensor<std::int64_t, batch>::from({4, 4, 2, 4}),
             s = Tensor<std::int64_t, batch>::from({2, 2, 1, 0});
  auto const rows = Tensor<std::int64_t, batch, 2>::from({{1, 2}, {1, 1}, {2, 0}, {0, 0}});
  auto const line = Tensor<std::int64_t, 5>::from({1, 2, 1, 1, 2});
  CHECK(allclose(ctc_loss<Reduction::none>(log_p, line, t, s), ctc_loss<Reduction::none>(log_p, rows, t, s)));
  CHECK(allclose(ctc_loss(Array(log_p), Array(line), Array(t), Array(s)), ctc_loss(log_p, rows, t, s)));
  Array const none = full({batch}, 0, DType::i64);
  CHECK(allclose(ctc_loss(Array(log_p), zeros({0}, DType::i64), Array(t), none),
                 ctc_loss(Array(log_p), zeros({batch, 1}, DType::i64), Array(t), none)));
  suite::check_rules(
      [](std::span<Array const> v) { return ctc_loss(log_softmax(v[0], -1), v[1], v[2], v[3]); },
      {Array(log_p), Array(line), Array(t), Array(s)}, DType::f64);
  CHECK_THROWS_WITH(ctc_loss(log_p, zeros<std::int64_t, 6>(), t, s),
                    "ctc_loss: 6 labels for sizes that sum to 5");
  CHECK_THROWS_WITH(ctc_loss(log_p, line * 9, t, s), "ctc_loss: index 9 out of range for axis 1 of [4, 3]");
}

TEST_CASE("ctc_loss of no frames", "[vocabulary]") {
  Array const log_p = log_softmax(randn({4, 2, 3}, Key{1}, DType::f64), -1);
  Array const y = zeros({2, 2}, DType::i64) + 1, none = zeros({2}, DType::i64);
  Array const some = from<std::int64_t>({0, 2});
  Array const losses = ctc_loss(log_p, y, none, some, {.reduction = Reduction::none});
  CHECK(losses(0).item() == 0);
  CHECK(losses(1).item() == HUGE_VAL);
  Array const finite = ctc_loss(log_p, y, none, some, {.zero_infinity = true, .reduction = Reduction::none});
  CHECK(array_equal(finite, zeros({2})));
  // Of targets without labels the mean divides by 1.
  Array const all = full({2}, 4, DType::i64);
  CHECK(allclose(ctc_loss(log_p, y, all, none), mean(-sum(slice(log_p, 2, 0, 1), {0, 2}))));
  CHECK(allclose(ctc_loss(log_p, y, all, some),
                 mean(ctc_loss(log_p, y, all, some, {.reduction = Reduction::none}) / from<double>({1, 2}))));
}

TEST_CASE("gradients of ctc_loss, first and second", "[vocabulary]") {
  Array const scores = randn({length, batch, classes}, Key{1}, DType::f64);
  Array const y = reshape(from<std::int64_t>({1, 2, 1, 1, 2, 0, 0, 0}), {batch, 2});
  Array const t = from<std::int64_t>({4, 4, 2, 4}), s = from<std::int64_t>({2, 2, 1, 0});
  suite::check_rules(
      [](std::span<Array const> v) { return ctc_loss(log_softmax(v[0], -1), v[1], v[2], v[3]); },
      {scores, y, t, s}, DType::f64);
}

TEST_CASE("ctc_loss of 16 bits stays in 16 bits", "[vocabulary]") {
  Array const log_p = log_softmax(randn({4, 2, 3}, Key{1}), -1);
  Array const y = reshape(from<std::int64_t>({1, 2, 2, 1}), {2, 2}), four = from<std::int64_t>({4, 4}),
              two = from<std::int64_t>({2, 1});
  for (DType d : {DType::f16, DType::bf16}) {
    Array const loss = ctc_loss<Reduction::none>(cast_to(log_p, d), y, four, two);
    CHECK(loss.dtype() == d);
    CHECK(allclose(cast_to(loss, DType::f32), ctc_loss<Reduction::none>(log_p, y, four, two), 0.05, 0.05));
  }
}

TEST_CASE("ctc_loss of what the frames are too few for is infinite, or nothing", "[vocabulary]") {
  Array const log_p = log_softmax(randn({2, 1, 3}, Key{1}, DType::f64), -1);
  Array const y = reshape(from<std::int64_t>({1, 1}), {1, 2}), two = from<std::int64_t>({2});
  CHECK(suite::at(ctc_loss(log_p, y, two, two), 0) == HUGE_VAL);
  CHECK(suite::at(ctc_loss(log_p, y, two, two, {.zero_infinity = true}), 0) == 0);
  // One target of three of the batch cannot be read: its scores have no gradient, those of the others theirs.
  Array scores = randn({4, 3, 3}, Key{2}, DType::f64);
  scores.requires_grad(true);
  Array const many = reshape(from<std::int64_t>({1, 1, 1, 2, 1, 2, 1, 2, 1}), {3, 3}),
              four = full({3}, 4, DType::i64), sizes = from<std::int64_t>({3, 2, 3});
  ctc_loss<Reduction::sum>(log_softmax(scores, -1), many, four, sizes, {.zero_infinity = true}).backward();
  Array alone = scores.detach().clone();
  alone.requires_grad(true);
  ctc_loss<Reduction::sum>(slice<1, 1, 3>(log_softmax(alone, -1)), slice<0, 1, 3>(many), slice<0, 1, 3>(four),
                           slice<0, 1, 3>(sizes))
      .backward();
  CHECK(allclose(scores.grad(), alone.grad(), 1e-13, 1e-13));
  CHECK_THROWS_WITH(ctc_loss(log_p, y, two, from<std::int64_t>({1, 2})),
                    "ctc_loss: targets [1, 2] with lengths [1] and [2] do not fit scores [2, 1, 3]");
  Array const three = from<std::int64_t>({3}), below = from<std::int64_t>({-1});
  CHECK_THROWS_WITH(ctc_loss(log_p, y, three, two), "ctc_loss: a length of 3, from 0 to 2 required");
  CHECK_THROWS_WITH(ctc_loss(log_p, y, two, three), "ctc_loss: a target of size 3, from 0 to 2 required");
  CHECK_THROWS_WITH(ctc_loss(log_p, y, two, below), "ctc_loss: a target of size -1, from 0 to 2 required");
  CHECK_THROWS_WITH(ctc_loss(log_p, y, two, two, {.blank = 3}),
                    "ctc_loss: blank 3 out of range for 3 labels");
}

}  // namespace tests::vocabulary_ctc_loss
