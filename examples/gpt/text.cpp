// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"

#include <algorithm>
#include <cmath>

namespace gpt {

double evaluate(Model const& model, std::vector<std::int32_t> const& text) {
  // The program knows batches of one size only, so the last one is filled up with pieces that are not counted.
  auto sums = dfdx::compile([](auto const& m, auto const& tokens, auto const& next, auto const& counted) {
    auto const each = dfdx::cross_entropy<dfdx::Reduction::none>(dfdx::reshape<-1, vocabulary>(m(tokens)),
                                                                 dfdx::reshape<-1>(next));
    return sum(dfdx::reshape<-1, context>(each) * counted);
  });
  std::size_t const pieces = (text.size() - 1) / context;
  Batch b;
  auto counted = dfdx::ones<float, batch, 1>();
  double total = 0;
  for (std::size_t begin = 0; begin < pieces; begin += batch) {
    for (std::size_t row = 0; row < batch; ++row) {
      bool const inside = begin + row < pieces;
      counted.data()[row] = inside ? 1.0f : 0.0f;
      b.set(row, text, inside ? (begin + row) * context : 0);
    }
    total += static_cast<double>(sums(model, b.tokens, b.next, counted).item());
  }
  return total / static_cast<double>(pieces * context);
}

std::string sample(Model const& model, Alphabet const& alphabet, std::string const& beginning,
                   std::int64_t length, double temperature, Key key) {
  auto scores_of = dfdx::compile([](auto const& m, auto const& tokens) { return m(tokens); });
  std::vector<std::int32_t> tokens;
  for (char c : beginning) tokens.push_back(alphabet.number(c));
  auto window = dfdx::zeros<std::int32_t, 1, context>();
  std::string text;
  for (std::int64_t i = 0; i < length; ++i) {
    // The last characters; what stands behind them does not change what they say.
    std::size_t const n = std::min(tokens.size(), context);
    std::copy(tokens.end() - static_cast<std::ptrdiff_t>(n), tokens.end(), window.data());
    auto const scores = scores_of(model, window);
    std::vector<double> p(alphabet.size());
    auto const* const row = scores.data() + (n - 1) * vocabulary;
    double const most = static_cast<double>(*std::max_element(row, row + p.size()));
    double sum = 0;
    for (std::size_t k = 0; k < p.size(); ++k)
      sum += p[k] = std::exp((static_cast<double>(row[k]) - most) / temperature);
    double u = dfdx::uniform_at(key, static_cast<std::uint64_t>(i)) * sum;
    std::int32_t next = 0;
    while (next + 1 < static_cast<std::int32_t>(p.size()) && (u -= p[static_cast<std::size_t>(next)]) >= 0)
      ++next;
    tokens.push_back(next);
    text += alphabet.character(next);
  }
  return text;
}

}  // namespace gpt
