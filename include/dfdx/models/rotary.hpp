// SPDX-License-Identifier: BSL-1.0
// Rotary embeddings as models have them: the frequencies, stretched in one of the ways in use, and tables of sines and
// cosines. vocabulary/attention.hpp has the function for a single layer.
#pragma once

#include <cmath>
#include <numbers>
#include <vector>

#include <dfdx/vocabulary/join.hpp>
#include <dfdx/vocabulary/methods.hpp>
#include <dfdx/vocabulary/split.hpp>

namespace dfdx::models {

/// RopeFrequencies - how fast each pair of a head's elements turns from position to position.
///
/// Math      f_i = base^(-2 i / D); linear: f_i / factor; dynamic: base grows with the length once that exceeds the
///           original context; llama3: slow frequencies are divided by factor, those between blended
/// Source    Su et al. 2021; kaiokendev and bloc97 2023 for linear and dynamic; the reference code of Llama 3.1
struct RopeFrequencies {
  enum class Kind : std::uint8_t { plain, linear, dynamic, llama3 } kind = Kind::plain;
  double base = 10000, factor = 1;
  double low_factor = 1, high_factor = 4, original_context = 8192;
  bool operator==(RopeFrequencies const&) const = default;

  /// Errors    "rope: a base that is no positive number", "rope: llama3 with a high factor not above the low one"
  void check() const {
    auto const positive = [](char const* what, double x) {
      if (!(x > 0 && std::isfinite(x))) raise("rope: ", what, " that is no positive number");
    };
    positive("a base", base);
    positive("a factor", factor);
    positive("an original context", original_context);
    if (kind == Kind::llama3 && !(high_factor > low_factor))
      raise("rope: llama3 with a high factor not above the low one");
  }

  /// of_head - in radians for a head of `size` elements, half as many, when `length` positions are in use; divisors, if
  /// there are any, divide them one by one.
  std::vector<double> of_head(index_t size, index_t length, std::vector<double> const& divisors = {}) const {
    double b = base;
    double const d = static_cast<double>(size), n = static_cast<double>(length);
    if (kind == Kind::dynamic && n > original_context)
      b *= std::pow(factor * n / original_context - (factor - 1), d / (d - 2));
    std::vector<double> r(static_cast<std::size_t>(size / 2));
    for (std::size_t i = 0; i < r.size(); ++i) {
      double f = std::pow(b, -2 * static_cast<double>(i) / d);
      if (kind == Kind::linear) f /= factor;
      if (kind == Kind::llama3) {
        double const turns = original_context * f / (2 * std::numbers::pi);
        double const kept = (turns - low_factor) / (high_factor - low_factor);
        f *= std::clamp(kept, 0.0, 1.0) * (1 - 1 / factor) + 1 / factor;
      }
      r[i] = i < divisors.size() ? f / divisors[i] : f;
    }
    return r;
  }
};

/// Angles - cosines and sines for positions first, ..., first + n - 1: [n, size / 2] each. Angles are rounded to f32,
/// as in the programs that train and publish such models: theirs are what the weights have learnt.
struct Angles {
  Array cos, sin;

  Angles(std::vector<double> const& f, index_t first, index_t n, DType dtype) {
    auto const size = 2 * static_cast<index_t>(f.size());
    Array c(Meta{DType::f64, make_shape(n, size / 2)}), s(Meta{DType::f64, make_shape(n, size / 2)});
    double *pc = c.data<double>(), *ps = s.data<double>();
    for (index_t t = 0; t < n; ++t)
      for (double x : f) {
        auto const angle = static_cast<float>(first + t) * static_cast<float>(x);
        *pc++ = static_cast<float>(std::cos(static_cast<double>(angle)));
        *ps++ = static_cast<float>(std::sin(static_cast<double>(angle)));
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
