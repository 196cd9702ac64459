// SPDX-License-Identifier: BSL-1.0
// A long short-term memory (Hochreiter and Schmidhuber 1997) that labels each letter of a word; with a second one that
// reads from the end (Graves and Schmidhuber 2005) if Both.
#pragma once

#include <dfdx/dfdx.hpp>

#include "words.hpp"

namespace lstm {

template <bool Both>
struct Tagger {
  // As many numbers for a letter in either case.
  static constexpr std::size_t width = 32, outputs = 128, hidden = Both ? outputs / 2 : outputs;

  dfdx::nn::Embedding<vocabulary, width> embedding;
  dfdx::nn::LSTM<width, hidden, float, dfdx::nn::Recurrent{.bidirectional = Both}> lstm;
  dfdx::nn::Linear<outputs, 2> out;
  DFDX_FIELDS(embedding, lstm, out)

  /// [B, T] letters -> [T, B, 2] scores of no break behind them, and of one. What stands behind a word is read too: it
  /// is how the second direction begins.
  constexpr auto operator()(auto const& letters) const {
    return out(std::get<0>(lstm(embedding(dfdx::transpose(letters)))));
  }
};

}  // namespace lstm
