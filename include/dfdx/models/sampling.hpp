// SPDX-License-Identifier: BSL-1.0
// The choice of the next token: from numbers for each possible one to one of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <dfdx/core/error.hpp>
#include <dfdx/core/random.hpp>

namespace dfdx::models {

/// SamplingOptions - how to choose. What is off by its default changes nothing: with the defaults and a temperature of
/// 1 tokens are drawn from softmax(logits), with 0 the likeliest is taken.
struct SamplingOptions {
  double temperature = 1;
  /// Only the k likeliest; 0 for all.
  std::int64_t top_k = 0;
  /// Only the likeliest whose probabilities reach p together (Holtzman et al. 2020).
  double top_p = 1;
  /// Only those at least this share as likely as the likeliest (Nguyen et al. 2024).
  double min_p = 0;
  /// Only those whose surprise is closest to the expected one, up to this probability (Meister et al. 2023).
  double typical_p = 1;
  /// Logits of tokens among the last `last_n` are divided by `repeat` if positive, else multiplied (Keskar et al.
  /// 2019), lowered by `frequency` for each time and by `presence` once.
  double repeat = 1, frequency = 0, presence = 0;
  std::int64_t last_n = 64;
  /// Added to the logits of these tokens; -infinity forbids one.
  std::vector<std::pair<std::int32_t, float>> bias{};
  std::uint64_t seed = 1;
};

/// Sampler - chooses tokens and remembers them. The same seed, logits and history give the same token.
///
/// Math      bias, penalties, then of what is left top_k, typical_p, top_p, min_p, each by the probabilities at
///           temperature 1; at last a draw from softmax(logits / temperature)
/// Errors    "sampling: a temperature of less than 0", and so for the other options; "sampling: no token is possible"
class Sampler {
 public:
  explicit Sampler(SamplingOptions options = {}) : o_(std::move(options)) {
    auto const check = [](bool ok, char const* why) {
      if (!ok) raise("sampling: ", why);
    };
    check(o_.temperature >= 0 && std::isfinite(o_.temperature), "a temperature of less than 0");
    check(o_.top_k >= 0, "a negative top_k");
    check(o_.top_p > 0 && o_.top_p <= 1, "top_p must be above 0, and not above 1");
    check(o_.min_p >= 0 && o_.min_p <= 1, "min_p must be between 0 and 1");
    check(o_.typical_p > 0 && o_.typical_p <= 1, "typical_p must be above 0, and not above 1");
    check(o_.repeat > 0 && std::isfinite(o_.repeat), "a penalty of repetition that is not above 0");
    check(std::isfinite(o_.frequency) && std::isfinite(o_.presence), "a penalty that is not finite");
    check(o_.last_n >= 0, "a negative last_n");
  }

  /// Notes a token of the text so far.
  void accept(std::int32_t token) {
    if (o_.last_n == 0) return;
    if (last_.empty()) last_.reserve(static_cast<std::size_t>(std::min<std::int64_t>(o_.last_n, 1024)));
    if (static_cast<std::int64_t>(last_.size()) < o_.last_n) last_.push_back(token);
    else last_[oldest_++ % last_.size()] = token;
  }

  /// The next token; it is noted.
  std::int32_t operator()(std::span<float const> logits) {
    std::int32_t const r = choose(logits);
    accept(r);
    return r;
  }

 private:
  struct Candidate {
    std::int32_t id;
    float logit;
    double p = 0;
  };

  std::int32_t choose(std::span<float const> logits) {
    if (logits.empty()) raise("sampling: no token is possible");
    candidates_.resize(logits.size());
    for (std::size_t i = 0; i < logits.size(); ++i)
      candidates_[i] = {static_cast<std::int32_t>(i), std::isnan(logits[i]) ? lowest : logits[i]};
    for (auto const& [id, by] : o_.bias)
      if (id >= 0 && static_cast<std::size_t>(id) < logits.size())
        candidates_[static_cast<std::size_t>(id)].logit += by;
    penalize();
    if (o_.temperature == 0) return likeliest();
    // The likeliest first; of equal ones the first.
    auto const before = [](Candidate const& a, Candidate const& b) {
      return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    };
    if (o_.top_k > 0 && static_cast<std::size_t>(o_.top_k) < candidates_.size()) {
      auto const end = candidates_.begin() + static_cast<std::ptrdiff_t>(o_.top_k);
      std::partial_sort(candidates_.begin(), end, candidates_.end(), before);
      candidates_.erase(end, candidates_.end());
    } else if (o_.top_p < 1 || o_.typical_p < 1) {
      std::sort(candidates_.begin(), candidates_.end(), before);
    }
    if (o_.typical_p < 1) keep_typical(before);
    if (o_.top_p < 1) {
      set_probabilities(1);
      keep_until(o_.top_p);
    }
    if (o_.min_p > 0) {
      set_probabilities(1);
      double most = 0;
      for (Candidate const& c : candidates_) most = std::max(most, c.p);
      std::erase_if(candidates_, [&](Candidate const& c) { return c.p < o_.min_p * most; });
    }
    return draw();
  }

  void penalize() {
    if (o_.repeat == 1 && o_.frequency == 0 && o_.presence == 0) return;
    sorted_.reserve(last_.capacity());
    sorted_ = last_;
    std::sort(sorted_.begin(), sorted_.end());
    for (auto end = sorted_.begin(), at = end; at != sorted_.end(); at = end) {
      std::int32_t const id = *at;
      end = std::upper_bound(at, sorted_.end(), id);
      if (id < 0 || static_cast<std::size_t>(id) >= candidates_.size()) continue;
      float& x = candidates_[static_cast<std::size_t>(id)].logit;
      double const by = x > 0 ? 1 / o_.repeat : o_.repeat;
      x = static_cast<float>(static_cast<double>(x) * by - static_cast<double>(end - at) * o_.frequency -
                             o_.presence);
    }
  }

  std::int32_t likeliest() const {
    Candidate const* best = &candidates_[0];
    for (Candidate const& c : candidates_)
      if (c.logit > best->logit) best = &c;
    if (best->logit == lowest) raise("sampling: no token is possible");
    return best->id;
  }

  void set_probabilities(double temperature) {
    float most = lowest;
    for (Candidate const& c : candidates_) most = std::max(most, c.logit);
    if (most == lowest) raise("sampling: no token is possible");
    double sum = 0;
    for (Candidate& c : candidates_) {
      bool const first = c.logit == most;  // infinity less infinity is none
      double const x = (static_cast<double>(c.logit) - static_cast<double>(most)) / temperature;
      sum += c.p = first ? 1 : std::exp(x);
    }
    for (Candidate& c : candidates_) c.p /= sum;
  }

  // The first whose probabilities reach p, and so at least one.
  void keep_until(double p) {
    double sum = 0;
    std::size_t n = 0;
    while (n < candidates_.size() && sum < p) sum += candidates_[n++].p;
    candidates_.resize(std::max<std::size_t>(n, 1));
  }

  template <class Before>
  void keep_typical(Before const& before) {
    set_probabilities(1);
    double entropy = 0;
    for (Candidate const& c : candidates_) entropy -= c.p > 0 ? c.p * std::log(c.p) : 0;
    auto const distance = [&](Candidate const& c) {
      return c.p > 0 ? std::abs(-std::log(c.p) - entropy) : std::numeric_limits<double>::infinity();
    };
    // No stable_sort: that of libstdc++ 12 is made of what clang warns of.
    std::sort(candidates_.begin(), candidates_.end(), [&](Candidate const& a, Candidate const& b) {
      double const x = distance(a), y = distance(b);
      return x != y ? x < y : before(a, b);
    });
    keep_until(o_.typical_p);
    std::sort(candidates_.begin(), candidates_.end(), before);
  }

  std::int32_t draw() {
    set_probabilities(o_.temperature);
    double const u = uniform_at(Key(o_.seed), drawn_++);
    double sum = 0;
    for (Candidate const& c : candidates_)
      if (u < (sum += c.p)) return c.id;
    for (std::size_t i = candidates_.size(); i-- > 0;)  // u was above a sum that rounding left below 1
      if (candidates_[i].p > 0) return candidates_[i].id;
    raise("sampling: no token is possible");
  }

  static constexpr float lowest = -std::numeric_limits<float>::infinity();

  SamplingOptions o_;
  std::vector<std::int32_t> last_, sorted_;  // the last tokens from one of them on around; in order
  std::size_t oldest_ = 0;
  std::vector<Candidate> candidates_;
  std::uint64_t drawn_ = 0;
};

}  // namespace dfdx::models
