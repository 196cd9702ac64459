// SPDX-License-Identifier: BSL-1.0
// What the model is compared with: a letter is labelled as it was most often between the same neighbours.
#pragma once

#include "words.hpp"

#include <span>
#include <unordered_map>

namespace lstm {

/// Counts breaks for each letter with the one before it and the two behind it: two on each side of the break. Where
/// these four were not seen there is none.
class Baseline {
 public:
  explicit Baseline(std::span<Word const> words) {
    for (Word const& w : words)
      for (std::size_t t = 0; t < w.letters.size(); ++t) votes_[around(w, t)] += w.breaks[t] ? 1 : -1;
  }
  Word broken(Word const& word) const {
    Word r = word;
    for (std::size_t t = 0; t < word.letters.size(); ++t) {
      auto const found = votes_.find(around(word, t));
      r.breaks[t] = found != votes_.end() && found->second > 0;
    }
    return r;
  }

 private:
  static std::u32string around(Word const& w, std::size_t t) {
    auto const at = [&](std::size_t k) { return k < w.letters.size() ? w.letters[k] : U'.'; };
    return {t > 0 ? w.letters[t - 1] : U'.', w.letters[t], at(t + 1), at(t + 2)};
  }
  std::unordered_map<std::u32string, int> votes_;
};

}  // namespace lstm
