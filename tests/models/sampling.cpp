// SPDX-License-Identifier: BSL-1.0
// Which tokens the options of sampling leave, and how often each is drawn.
#include "support.hpp"

#include <dfdx/models/sampling.hpp>

#include <catch2/catch_test_macros.hpp>

#include <set>

namespace tests::models_sampling {

using namespace dfdx::models;
using tests::error_of;

namespace {

std::vector<float> const logits = {1.0f, 3.0f, 2.0f, -1.0f, 2.5f};

std::vector<double> probabilities(double temperature = 1) {
  std::vector<double> p;
  double sum = 0;
  for (float x : logits) sum += p.emplace_back(std::exp(static_cast<double>(x) / temperature));
  for (double& x : p) x /= sum;
  return p;
}

std::vector<double> shares(SamplingOptions o, int n = 20000) {
  o.last_n = 0;
  Sampler draw(o);
  std::vector<double> r(logits.size(), 0);
  for (int i = 0; i < n; ++i) r[static_cast<std::size_t>(draw(logits))] += 1.0 / n;
  return r;
}

std::set<int> possible(SamplingOptions const& o) {
  std::set<int> r;
  std::vector<double> const s = shares(o, 4000);
  for (std::size_t i = 0; i < s.size(); ++i)
    if (s[i] > 0) r.insert(static_cast<int>(i));
  return r;
}

}  // namespace

TEST_CASE("tokens are drawn as often as they are likely", "[models]") {
  for (double temperature : {1.0, 0.5, 2.0}) {
    std::vector<double> const p = probabilities(temperature), s = shares({.temperature = temperature});
    for (std::size_t i = 0; i < p.size(); ++i) CHECK(std::abs(s[i] - p[i]) < 0.02);
  }
  CHECK(possible({.temperature = 0}) == std::set<int>{1});
  Sampler a({.seed = 5}), b({.seed = 5}), c({.seed = 6});
  std::vector<int> x, y, z;
  for (int i = 0; i < 50; ++i) x.push_back(a(logits)), y.push_back(b(logits)), z.push_back(c(logits));
  CHECK(x == y);
  CHECK(x != z);
}

TEST_CASE("options leave the tokens they should", "[models]") {
  // Likely first: 1, 4, 2, 0, 3 with probabilities of about 0.47, 0.29, 0.17, 0.06, 0.01.
  CHECK(possible({.top_k = 2}) == std::set<int>{1, 4});
  CHECK(possible({.top_k = 1}) == std::set<int>{1});
  CHECK(possible({.top_k = 99}).size() == 5);
  CHECK(possible({.top_p = 0.4}) == std::set<int>{1});
  CHECK(possible({.top_p = 0.5}) == std::set<int>{1, 4});
  CHECK(possible({.top_p = 0.8}) == std::set<int>{1, 2, 4});
  CHECK(possible({.min_p = 0.5}) == std::set<int>{1, 4});
  CHECK(possible({.min_p = 0.3}) == std::set<int>{1, 2, 4});
  CHECK(possible({.top_k = 3, .top_p = 0.6}) == std::set<int>{1, 4});
  // The entropy is about 1.24; of the surprises 0.75, 1.25, 1.75, ... the second is the closest to it.
  CHECK(possible({.typical_p = 0.2}) == std::set<int>{4});
  CHECK(possible({.bias = {{1, -100.0f}}, .seed = 2}).count(1) == 0);
  CHECK(possible({.temperature = 0, .bias = {{3, 10.0f}}}) == std::set<int>{3});
  CHECK(possible({.temperature = 0, .bias = {{99, 10.0f}, {-1, 10.0f}}}) == std::set<int>{1});
}

TEST_CASE("penalties lower what was said", "[models]") {
  auto const next = [](SamplingOptions o, std::vector<int> const& said) {
    o.temperature = 0;
    Sampler s(o);
    for (int t : said) s.accept(t);
    return s(logits);
  };
  CHECK(next({}, {1, 1, 1}) == 1);
  CHECK(next({.repeat = 1.5}, {1}) == 4);  // 3 / 1.5 is below 2.5
  CHECK(next({.repeat = 1.5}, {1, 4}) == 1);
  CHECK(next({.frequency = 0.2}, {1, 1}) == 1);
  CHECK(next({.frequency = 0.2}, {1, 1, 1}) == 4);
  CHECK(next({.presence = 0.6}, {1, 1, 1}) == 4);
  CHECK(next({.presence = 0.4}, {1, 1, 1}) == 1);
  CHECK(next({.presence = 0.6, .last_n = 2}, {1, 0, 0}) == 1);  // forgotten
  // A negative one is multiplied.
  Sampler s({.temperature = 0, .repeat = 2});
  s.accept(0);
  CHECK(s(std::vector<float>{-1.0f, -1.5f}) == 1);
}

TEST_CASE("sampling what cannot be is refused", "[models]") {
  float const none = -std::numeric_limits<float>::infinity();
  CHECK(Sampler()(std::vector<float>{none, 0.0f, none}) == 1);
  CHECK(Sampler({.temperature = 0})(std::vector<float>{std::nanf(""), none, -5.0f}) == 2);
  for (double t : {0.0, 1.0})
    CHECK(error_of([&] { Sampler({.temperature = t})(std::vector<float>{none, none}); }) ==
          "sampling: no token is possible");
  CHECK(error_of([] { Sampler()(std::vector<float>{}); }) == "sampling: no token is possible");
  CHECK(error_of([] { Sampler({.temperature = -1}); }) == "sampling: a temperature of less than 0");
  CHECK(error_of([] { Sampler({.top_p = 0}); }) == "sampling: top_p must be above 0, and not above 1");
  CHECK(!error_of([] { Sampler({.repeat = 0}); }).empty());
  CHECK(!error_of([] { Sampler({.min_p = 2}); }).empty());
}

}  // namespace tests::models_sampling
