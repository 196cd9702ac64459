// SPDX-License-Identifier: BSL-1.0
#include "patterns.hpp"
#include "words.hpp"

#include <dfdx/data/text_lines.hpp>

#include <algorithm>

namespace lstm {

namespace {

std::u32string decoded(std::string const& line, bool latin) {
  if (!latin) return letters_of(line);
  std::u32string r;
  for (char c : line) r += static_cast<unsigned char>(c);
  return r;
}

}  // namespace

Patterns::Patterns(std::string const& path) {
  auto const lines = dfdx::data::read_lines(path);
  std::string const& encoding = lines[0];
  bool const latin = encoding == "ISO8859-1";
  if (!latin && encoding != "UTF-8")
    throw dfdx::error("data: " + path + ": the encoding is " + encoding.substr(0, 40) +
                      ", not UTF-8 or ISO8859-1");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::string const& line = lines[i];
    if (line.empty() || line[0] == '%' || line[0] == '#') continue;
    auto const fail = [&](std::string const& what) {
      throw dfdx::error("data: " + path + ":" + std::to_string(i + 1) + ": '" + line.substr(0, 40) + "' " +
                        what);
    };
    if (line.starts_with("NEXTLEVEL")) fail("begins a level of compounds, which are not known here");
    if (line[0] >= 'A' && line[0] <= 'Z') {  // how far from the ends of a word; others are for compounds
      for (auto const& [name, distance] : {std::pair("LEFTHYPHENMIN ", &left_), {"RIGHTHYPHENMIN ", &right_}})
        if (line.starts_with(name)) {
          int const n = std::atoi(line.c_str() + std::string_view(name).size());
          if (n < 1 || n > 100) fail("is no distance");
          *distance = static_cast<std::size_t>(n);
        }
      continue;
    }
    std::u32string letters;
    std::vector<int> bids{0};
    bool good = true;
    for (char32_t c : decoded(line, latin)) {
      if (c >= U'0' && c <= U'9') {
        bids.back() = static_cast<int>(c - U'0');
      } else {
        good = good && c > U' ' && c != U'/';  // "/" begins a change of spelling
        letters += c;
        bids.push_back(0);
      }
    }
    if (!good || letters.empty()) fail("is no pattern");
    longest_ = std::max(longest_, letters.size());
    bids_[letters] = bids;
  }
  if (bids_.empty()) throw dfdx::error("data: " + path + " has no patterns");
}

std::vector<bool> Patterns::breaks(std::u32string const& word) const {
  std::u32string s(1, U'.');
  s += word;
  s += U'.';
  std::vector<int> highest(s.size() + 1, 0);  // before s[0], ..., behind the last
  for (std::size_t begin = 0; begin < s.size(); ++begin)
    for (std::size_t n = 1; n <= std::min(longest_, s.size() - begin); ++n) {
      auto const found = bids_.find(std::u32string_view(s).substr(begin, n));
      if (found == bids_.end()) continue;
      for (std::size_t k = 0; k <= n; ++k)
        highest[begin + k] = std::max(highest[begin + k], found->second[k]);
    }
  std::vector<bool> r(word.size(), false);
  for (std::size_t i = left_; i + right_ <= word.size(); ++i) r[i - 1] = highest[i + 1] % 2 == 1;
  return r;
}

}  // namespace lstm
