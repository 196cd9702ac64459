// SPDX-License-Identifier: BSL-1.0
// Metrics against figures worked out by hand.
#include <dfdx/metrics/classification.hpp>
#include <dfdx/vocabulary/arrange.hpp>
#include <dfdx/vocabulary/create.hpp>
#include <dfdx/vocabulary/methods.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include "support.hpp"

namespace tests::metrics_classification {

using namespace dfdx;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

TEST_CASE("accuracy counts labels among the k largest scores", "[metrics]") {
  auto const scores = Tensor<float, 4, 3>::from({{1, 3, 2}, {5, 4, 3}, {0, 1, 2}, {2, 9, 1}});
  auto const labels = Tensor<std::int32_t, 4>::from({1, 2, 1, 0});
  CHECK(metrics::hits(scores, labels) == 1);
  CHECK(metrics::hits(scores, labels, 2) == 3);
  CHECK(metrics::hits(scores, labels, 3) == 4);
  CHECK(metrics::hits(scores, labels, 0) == 0);
  CHECK(metrics::accuracy(scores, labels) == 0.25);
  CHECK(metrics::accuracy(scores, labels, 2) == 0.75);

  // The same through views whose elements lie elsewhere, and for other dtypes.
  Array const turned = transpose(transpose(scores, 0, 1).contiguous(), 0, 1);
  Array const wide = cast_to(Array(labels), DType::i64);
  CHECK(metrics::hits(turned, wide, 2) == 3);
  Array const pairs = stack({wide, wide + std::int64_t{1}}, 1);
  CHECK(metrics::hits(cast_to(turned, DType::bf16), select(pairs, 1, 0), 2) == 3);
}

TEST_CASE("of equal scores the first is the larger, and a NaN is above all", "[metrics]") {
  auto const equal = Tensor<float, 3, 3>::from({{1, 1, 1}, {1, 1, 1}, {1, 1, 1}});
  auto const each = Tensor<std::int64_t, 3>::from({0, 1, 2});
  CHECK(metrics::hits(equal, each) == 1);
  CHECK(metrics::hits(equal, each, 2) == 2);
  auto const nan = Tensor<double, 3, 3>::from({{NAN, 1, 2}, {3, NAN, NAN}, {3, NAN, NAN}});
  CHECK(metrics::hits(nan, each) == 2);
  CHECK(metrics::hits(nan, each, 2) == 3);
  CHECK(std::isnan(metrics::accuracy(zeros({0, 3}), zeros({0}, DType::i32))));
}

TEST_CASE("perplexity is that of the mean log-likelihood", "[metrics]") {
  // Probabilities 1/2 and 1/8 of the labels: exp((ln 2 + ln 8) / 2) = 4.
  auto const scores =
      Tensor<double, 2, 3>::from({{std::log(2.0), 0, std::log(1.0)},
                                  {std::log(6.0) + 1000, std::log(1.0) + 1000, std::log(1.0) + 1000}});
  CHECK_THAT(metrics::perplexity(scores, Tensor<std::int32_t, 2>::from({0, 2})), WithinRel(4.0, 1e-12));
  CHECK_THAT(metrics::perplexity(zeros({5, 7}), zeros({5}, DType::i32)), WithinRel(7.0, 1e-12));
}

TEST_CASE("confusion counts, and what follows from its counts", "[metrics]") {
  metrics::Confusion c(3);
  auto const truth = Tensor<std::int32_t, 8>::from({0, 0, 0, 0, 1, 1, 1, 2});
  auto const said = Tensor<std::int64_t, 8>::from({0, 0, 1, 1, 1, 1, 0, 0});
  c.add(truth, said);
  // 2 2 0 / 1 2 0 / 1 0 0
  CHECK(c.counts() == std::vector<std::int64_t>{2, 2, 0, 1, 2, 0, 1, 0, 0});
  CHECK(c.total() == 8);
  CHECK(c.accuracy() == 0.5);
  CHECK(c.of(0).precision == 0.5);
  CHECK(c.of(0).recall == 0.5);
  CHECK(c.of(0).f1 == 0.5);
  CHECK(c.of(0).support == 4);
  CHECK(c.of(1).precision == 0.5);
  CHECK_THAT(c.of(1).recall, WithinRel(2.0 / 3, 1e-15));
  CHECK_THAT(c.of(1).f1, WithinRel(4.0 / 7, 1e-15));
  // Never said and never right: 0 for 0 / 0.
  CHECK(c.of(2).precision == 0);
  CHECK(c.of(2).recall == 0);
  CHECK(c.of(2).f1 == 0);
  CHECK(c.of(2).support == 1);
  CHECK_THAT(c.macro().precision, WithinRel(1.0 / 3, 1e-15));
  CHECK_THAT(c.macro().recall, WithinRel((0.5 + 2.0 / 3) / 3, 1e-15));
  CHECK_THAT(c.macro().f1, WithinRel((0.5 + 4.0 / 7) / 3, 1e-15));
  CHECK_THAT(c.weighted().precision, WithinRel((4 * 0.5 + 3 * 0.5) / 8, 1e-15));
  CHECK_THAT(c.weighted().recall, WithinRel(c.accuracy(), 1e-15));
  CHECK_THAT(c.weighted().f1, WithinRel((4 * 0.5 + 3 * 4.0 / 7) / 8, 1e-15));
  CHECK(c.micro().precision == 0.5);
  CHECK(c.micro().recall == 0.5);
  CHECK(c.micro().f1 == 0.5);
  CHECK(c.macro().support == 8);

  metrics::Confusion twice(3);
  twice.add(c);
  twice.add(c);
  twice.add(2, 2, 5);
  CHECK(twice(0, 1) == 4);
  CHECK(twice(2, 2) == 5);
  CHECK(twice.total() == 21);

  metrics::Confusion const none(2);
  CHECK(std::isnan(none.accuracy()));
  CHECK(none.macro().f1 == 0);
}

TEST_CASE("metrics refuse what does not fit, and count nothing of it", "[metrics]") {
  auto const scores = Tensor<float, 2, 3>::from({{1, 2, 3}, {1, 2, 3}});
  auto const of = [](auto... l) { return Tensor<std::int32_t, sizeof...(l)>::from({l...}); };
  CHECK(tests::error_of([&] { (void)metrics::hits(scores, of(0, 3)); }) ==
        "hits: label 3 at 1, there are 3 classes");
  CHECK(tests::error_of([&] { (void)metrics::accuracy(scores, of(0, -1)); }) ==
        "hits: label -1 at 1, there are 3 classes");
  CHECK(tests::error_of([&] { (void)metrics::hits(scores, of(0)); }) ==
        "hits: scores [B, C] and labels [B] required, got [2, 3] and [1]");
  CHECK(tests::error_of([&] { (void)metrics::perplexity(scores, zeros({2})); }) ==
        "perplexity: integer labels required, got f32");
  metrics::Confusion c(3);
  CHECK(tests::error_of([&] { c.add(of(0, 1), of(1, 3)); }) == "confusion: class 3, there are 3");
  CHECK(tests::error_of([&] { c.add(of(0, -1), of(1, 1)); }) == "confusion: class -1, there are 3");
  CHECK(tests::error_of([&] { c.add(of(0, 1), of(1)); }) == "confusion: [2] labels and [1] predictions");
  CHECK(tests::error_of([&] { c.add(zeros({2}), of(1, 1)); }) ==
        "confusion: integer labels required, got f32");
  CHECK(tests::error_of([&] { c.add(metrics::Confusion(2)); }) == "confusion: of 3 and of 2 classes");
  CHECK(c.total() == 0);
}

}  // namespace tests::metrics_classification
