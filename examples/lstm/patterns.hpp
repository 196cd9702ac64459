// SPDX-License-Identifier: BSL-1.0
// Hyphenation by patterns, as TeX does it, from the files that Debian's packages hyphen-* install.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lstm {

/// Patterns - pieces of words with digits between their letters; "." is an end of a word. Where a word has the letters
/// of a pattern, its digits bid for the places between them; the highest bid at each place counts, and an odd one is a
/// break.
///
/// Errors    "data: x:12: 'a1b c' is no pattern"; "data: x:12: 'NEXTLEVEL' begins a level of compounds, which are not
///           known here"; "data: x: the encoding is KOI8-R, not UTF-8 or ISO8859-1"; "data: x has no patterns"
/// Source    Liang, "Word Hy-phen-a-tion by Com-put-er", 1983; the file format of libhyphen, README.hyphen
class Patterns {
 public:
  explicit Patterns(std::string const& path);

  /// Of each letter whether a break may follow.
  std::vector<bool> breaks(std::u32string const& word) const;
  /// The shortest word that can be broken.
  std::size_t least_letters() const { return left_ + right_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::u32string_view s) const { return std::hash<std::u32string_view>{}(s); }
  };
  // The bids of a pattern: before its first letter, ..., behind its last.
  std::unordered_map<std::u32string, std::vector<int>, Hash, std::equal_to<>> bids_;
  std::size_t longest_ = 0, left_ = 2, right_ = 2;
};

}  // namespace lstm
