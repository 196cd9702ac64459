// SPDX-License-Identifier: BSL-1.0
#include "words.hpp"
#include "patterns.hpp"

#include <dfdx/data/text_lines.hpp>

#include <set>

namespace lstm {

std::u32string letters_of(std::string const& text) {
  std::u32string r;
  for (std::size_t i = 0; i < text.size();) {
    auto const first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) {
      r += static_cast<char32_t>(first >= 'A' && first <= 'Z' ? first - 'A' + 'a' : first);
      continue;
    }
    int const more = first >= 0xf0 && first < 0xf8 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first >= 0xf8 || text.size() - i < static_cast<std::size_t>(more)) return {};
    char32_t c = first & (0x3fu >> more);
    for (int k = 0; k < more; ++k) {
      auto const next = static_cast<unsigned char>(text[i++]);
      if ((next & 0xc0) != 0x80) return {};
      c = c << 6 | (next & 0x3fu);
    }
    r += c;
  }
  return r;
}

std::string text_of(std::u32string const& letters) {
  std::string r;
  for (char32_t c : letters) {
    int const more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    constexpr unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    r += static_cast<char>(first[more] | (c >> (6 * more)));
    for (int k = more - 1; k >= 0; --k) r += static_cast<char>(0x80 | ((c >> (6 * k)) & 0x3f));
  }
  return r;
}

std::string text_of(Word const& word) {
  std::u32string r;
  for (std::size_t i = 0; i < word.letters.size(); ++i) {
    r += word.letters[i];
    if (word.breaks[i]) r += U'-';
  }
  return text_of(r);
}

namespace {

bool is_letter(char32_t c) { return c >= 0x80 || (c >= U'a' && c <= U'z'); }

void require_enough(std::string const& path, std::size_t words) {
  if (std::size_t const least = 100; words < least)
    throw dfdx::error("data: " + path + " has " + std::to_string(words) + " words; at least " +
                      std::to_string(least) + " are needed to train on some and test on others");
}

}  // namespace

WordList read_hyphenated(std::string const& path) {
  WordList r;
  auto const lines = dfdx::data::read_lines(path);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    auto const fail = [&](std::string const& what) {
      throw dfdx::error("data: " + path + ":" + std::to_string(i + 1) + ": '" + lines[i].substr(0, 60) +
                        "' " + what);
    };
    Word w;
    bool good = true;
    for (char32_t c : letters_of(lines[i])) {
      bool const hyphen = c == U'-' || c == U'\u00ad';  // a soft one is read like a plain one
      good = good && (is_letter(c) || (hyphen && !w.letters.empty() && !w.breaks.back()));
      if (hyphen && good) w.breaks.back() = true;
      if (!hyphen) w.letters += c, w.breaks.push_back(false);
    }
    if (!good || w.letters.empty() || w.breaks.back()) fail("is no word with hyphens between its letters");
    if (w.letters.size() > longest)
      fail("has " + std::to_string(w.letters.size()) + " letters; the model reads " +
           std::to_string(longest));
    r.words.push_back(std::move(w));
  }
  require_enough(path, r.words.size());
  return r;
}

WordList hyphenate_list(std::string const& words, std::string const& patterns) {
  Patterns const rules(patterns);
  WordList r;
  std::set<std::u32string> seen;
  for (std::string const& line : dfdx::data::read_lines(words)) {
    if (line.empty()) continue;
    std::u32string const letters = letters_of(line);
    bool good = letters.size() >= rules.least_letters() && letters.size() <= longest;
    for (char32_t c : letters) good = good && is_letter(c);
    if (good && seen.insert(letters).second) r.words.push_back({letters, rules.breaks(letters)});
    else ++r.skipped;
  }
  require_enough(words, r.words.size());
  return r;
}

Alphabet Alphabet::of(std::vector<Word> const& words) {
  std::set<char32_t> seen;
  for (Word const& w : words) seen.insert(w.letters.begin(), w.letters.end());
  if (seen.size() >= vocabulary)
    throw dfdx::error("data: " + std::to_string(seen.size()) + " different letters; the model knows " +
                      std::to_string(vocabulary - 1));
  return Alphabet(std::u32string(seen.begin(), seen.end()));
}

}  // namespace lstm
