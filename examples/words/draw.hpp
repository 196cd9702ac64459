// SPDX-License-Identifier: BSL-1.0
// Words made up, by whatever knows how likely each letter is.
#pragma once

#include <dfdx/dfdx.hpp>

#include <string>

#include "data.hpp"

namespace words {

/// A word of at most 30 letters. next(letters [1, Context]) are the probabilities [1, 27] of the letter after them.
template <std::size_t Context, class Next>
std::string draw(Next&& next, Key key) {
  std::string word;
  auto letters = dfdx::zeros<std::int32_t, 1, Context>();
  for (std::uint64_t i = 0; i < 30; ++i) {
    auto const p = next(letters);
    double u = dfdx::uniform_at(key, i);
    int letter = 0;
    while (letter + 1 < static_cast<int>(vocabulary) && (u -= static_cast<double>(p(0, letter))) >= 0)
      ++letter;
    if (letter == 0) break;
    word += letter_of(letter);
    dfdx::index_t const last = static_cast<dfdx::index_t>(Context) - 1;
    for (dfdx::index_t k = 0; k < last; ++k) letters(0, k) = letters(0, k + 1);
    letters(0, last) = letter;
  }
  return word;
}

}  // namespace words
