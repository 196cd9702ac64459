// SPDX-License-Identifier: BSL-1.0
// Rotary embeddings as models have them: the frequencies, stretched in one of the ways in use, and tables of sines and
// cosines. vocabulary/attention.hpp has the function for a single layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <dfdx/vocabulary/join.hpp>
#include <dfdx/vocabulary/methods.hpp>
#include <dfdx/vocabulary/split.hpp>

namespace dfdx::models {

/// RopeDivisors - what divides rotary frequencies one by one, if anything does. Of longrope the first are for texts
/// within the original context, the others for those that are longer.
struct RopeDivisors {
  std::vector<double> within{}, beyond{};
  bool empty() const { return within.empty() && beyond.empty(); }
};

/// RopeFrequencies - how fast each pair of a head's elements turns from position to position.
///
/// Math      f_i = base^(-2 i / D); linear: f_i / factor; dynamic: base grows with the length once that exceeds the
///           original context; llama3: slow frequencies are divided by factor, those between blended; yarn: those that
///           turn more than `fast` times in the original context stay, those that turn less than `slow` times are
///           divided, with a ramp in i between; longrope: f_i / divisor_i, with other divisors beyond the original
///           context. Sines and cosines are multiplied by the amplitude
/// Source    Su et al. 2021; kaiokendev and bloc97 2023 for linear and dynamic; the reference code of Llama 3.1; Peng
///           et al., "YaRN", 2023 (arXiv 2309.00071), sections 3.2 to 3.4; Ding et al., "LongRoPE", 2024 (arXiv
///           2402.13753)
struct RopeFrequencies {
  enum class Kind : std::uint8_t { plain, linear, dynamic, llama3, yarn, longrope } kind = Kind::plain;
  double base = 10000, factor = 1;
  double low_factor = 1, high_factor = 4, original_context = 8192;
  double fast = 32, slow = 1, amplitude = 1;
  /// Whether yarn's ramp begins and ends at whole i.
  bool whole = true;
  bool operator==(RopeFrequencies const&) const = default;

  /// Errors    "rope: a base that is no positive number", "rope: llama3 with a high factor not above the low one";
  ///           "rope: yarn with a fast number of turns not above the slow one, or a base that is not above 1"
  void check() const {
    auto const positive = [](char const* what, double x) {
      if (!(x > 0 && std::isfinite(x))) raise("rope: ", what, " that is no positive number");
    };
    positive("a base", base);
    positive("a factor", factor);
    positive("an original context", original_context);
    positive("an amplitude", amplitude);
    if (kind == Kind::llama3 && !(high_factor > low_factor))
      raise("rope: llama3 with a high factor not above the low one");
    if (kind == Kind::yarn && !(fast > slow && slow > 0 && std::isfinite(fast) && base > 1))
      raise("rope: yarn with a fast number of turns not above the slow one, or a base that is not above 1");
  }

  /// Whether the frequencies of a text of that length are other than those of a short one.
  bool stretched_by(index_t length) const {
    return (kind == Kind::dynamic || kind == Kind::longrope) &&
           static_cast<double>(length) > original_context;
  }

  /// of_head - in radians for a head of `size` elements, half as many, when `length` positions are in use.
  std::vector<double> of_head(index_t size, index_t length, RopeDivisors const& divisors = {}) const {
    double b = base;
    double const d = static_cast<double>(size), n = static_cast<double>(length);
    if (kind == Kind::dynamic && n > original_context)
      b *= std::pow(factor * n / original_context - (factor - 1), d / (d - 2));
    auto const& by = kind == Kind::longrope && stretched_by(length) ? divisors.beyond : divisors.within;
    auto const [first, last] = ramp(d);
    std::vector<double> r(static_cast<std::size_t>(size / 2));
    for (std::size_t i = 0; i < r.size(); ++i) {
      double f = std::pow(b, -2 * static_cast<double>(i) / d);
      if (kind == Kind::linear) f /= factor;
      if (kind == Kind::llama3) {
        double const turns = original_context * f / (2 * std::numbers::pi);
        double const kept = (turns - low_factor) / (high_factor - low_factor);
        f *= std::clamp(kept, 0.0, 1.0) * (1 - 1 / factor) + 1 / factor;
      }
      if (kind == Kind::yarn) {
        double const divided = std::clamp((static_cast<double>(i) - first) / (last - first), 0.0, 1.0);
        f *= divided / factor + (1 - divided);
      }
      r[i] = i < by.size() ? f / by[i] : f;
    }
    return r;
  }

  /// The amplitude that yarn has if nothing else is said, and the one of longrope.
  ///
  /// Math      0.1 m log(factor) + 1; sqrt(1 + log(factor) / log(original context)); 1 where factor <= 1
  static double yarn_amplitude(double factor, double m = 1) {
    return factor > 1 ? 0.1 * m * std::log(factor) + 1 : 1;
  }
  static double longrope_amplitude(double factor, double original) {
    return factor > 1 && original > 1 ? std::sqrt(1 + std::log(factor) / std::log(original)) : 1;
  }

 private:
  // Between which i yarn's frequencies turn `fast` and `slow` times in the original context.
  std::pair<double, double> ramp(double d) const {
    if (kind != Kind::yarn) return {0, 1};
    auto const at = [&](double turns) {
      return d * std::log(original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
    };
    double first = at(fast), last = at(slow);
    if (whole) first = std::floor(first), last = std::ceil(last);
    first = std::max(first, 0.0), last = std::min(last, d - 1);
    return {first, last == first ? last + 0.001 : last};
  }
};

/// Angles - cosines and sines for positions first, ..., first + n - 1: [n, size / 2] each. Angles are rounded to f32,
/// as in the programs that train and publish such models: theirs are what the weights have learnt.
struct Angles {
  Array cos, sin;

  Angles(std::vector<double> const& f, index_t first, index_t n, DType dtype, double amplitude = 1) {
    auto const size = 2 * static_cast<index_t>(f.size());
    Array c(Meta{DType::f64, make_shape(n, size / 2)}), s(Meta{DType::f64, make_shape(n, size / 2)});
    double *pc = c.data<double>(), *ps = s.data<double>();
    for (index_t t = 0; t < n; ++t)
      for (double x : f) {
        auto const angle = static_cast<float>(first + t) * static_cast<float>(x);
        *pc++ = static_cast<float>(std::cos(static_cast<double>(angle)) * amplitude);
        *ps++ = static_cast<float>(std::sin(static_cast<double>(angle)) * amplitude);
      }
    cos = c.to(dtype);
    sin = s.to(dtype);
  }
};

/// rotate - heads turned by angles: element i of a head with element i + D / 2, as Hugging Face's files have them.
///
/// Math      (a, b) -> (a cos - b sin, b cos + a sin)
/// Shapes    x: [B..., T, D], cos, sin: [T, D / 2] -> [B..., T, D]
inline Array rotate(Array const& x, Angles const& by) {
  index_t const half = x.shape()[x.shape().rank - 1] / 2;
  Array const a = slice(x, -1, 0, half), b = slice(x, -1, half);
  return concat({a * by.cos - b * by.sin, b * by.cos + a * by.sin}, -1);
}

}  // namespace dfdx::models
