// SPDX-License-Identifier: BSL-1.0
// Words and where they may be broken at the end of a line.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace lstm {

inline constexpr std::size_t longest = 24, vocabulary = 128;  // letters of a word; different letters, and 0

/// Letters, and of each whether a break may follow.
struct Word {
  std::u32string letters;
  std::vector<bool> breaks;
};

/// How probable a break is behind each letter.
using Probabilities = std::array<float, longest>;

/// UTF-8 as letters, those of ASCII in lower case; empty if it is none.
std::u32string letters_of(std::string const& text);
/// The same back.
std::string text_of(std::u32string const& letters);
/// A word with its breaks as hyphens.
std::string text_of(Word const& word);

struct WordList {
  std::vector<Word> words;
  std::size_t skipped = 0;
};

/// A file of words with hyphens, one on each line.
///
/// Errors    those of read_lines; "data: x:12: '-word' is no word with hyphens between its letters"; "data: x:12:
///           'word' has 31 letters; the model reads 24"
WordList read_hyphenated(std::string const& path);

/// The words of a list, each once, hyphenated by patterns. Lines that hold more than letters, words too long for the
/// model or too short to be broken are skipped.
///
/// Errors    those of read_lines and Patterns
WordList hyphenate_list(std::string const& words, std::string const& patterns);

/// The letters of words as numbers from 1 up, in the order of Unicode; 0 stands behind a word.
class Alphabet {
 public:
  /// Errors    "data: 140 different letters; the model knows 127"
  static Alphabet of(std::vector<Word> const& words);
  /// What letters() gave; empty if it is none.
  static Alphabet from(std::string const& letters) { return Alphabet(letters_of(letters)); }
  std::string letters() const { return text_of(letters_); }

  std::size_t size() const { return letters_.size(); }
  /// The number of a letter, 0 if there is none.
  int number(char32_t letter) const { return static_cast<int>(letters_.find(letter) + 1); }

 private:
  explicit Alphabet(std::u32string letters) : letters_(std::move(letters)) {}
  std::u32string letters_;
};

}  // namespace lstm
