// SPDX-License-Identifier: BSL-1.0
// The canonical forms of Unicode: NFD (decomposed) and NFC (composed). The compatibility forms are not here: models
// that need them bring a table of their own (text/character_map.hpp).
#pragma once

#include <dfdx/text/unicode.hpp>
#include <dfdx/text/unicode_normal_tables.hpp>

#include <utility>

namespace dfdx::text {

namespace detail {

// Hangul syllables are arithmetic: Unicode 15, section 3.12.
inline constexpr char32_t hangul_first = 0xAC00, leads = 0x1100, vowels = 0x1161, trails = 0x11A7;
inline constexpr char32_t lead_count = 19, vowel_count = 21, trail_count = 28;

inline std::uint32_t combining_class(char32_t c) {
  auto const next = std::upper_bound(std::begin(combining_runs), std::end(combining_runs),
                                     static_cast<std::uint32_t>(c) * 256 + 255);
  return next == std::begin(combining_runs) ? 0 : *std::prev(next) % 256;
}

inline void decompose(char32_t c, std::u32string& out) {
  if (c >= hangul_first && c < hangul_first + lead_count * vowel_count * trail_count) {
    char32_t const s = c - hangul_first;
    out.push_back(leads + s / (vowel_count * trail_count));
    out.push_back(vowels + s % (vowel_count * trail_count) / trail_count);
    if (s % trail_count != 0) out.push_back(trails + s % trail_count);
    return;
  }
  std::size_t low = 0, high = std::size(decompositions) / 3;
  while (low < high) {
    std::size_t const middle = (low + high) / 2;
    if (decompositions[3 * middle] < c) low = middle + 1;
    else high = middle;
  }
  if (c >= 0xC0 && 3 * low < std::size(decompositions) && decompositions[3 * low] == c) {
    decompose(decompositions[3 * low + 1], out);
    if (decompositions[3 * low + 2] != 0) decompose(decompositions[3 * low + 2], out);
  } else {
    out.push_back(c);
  }
}

// What two code points make together; 0 for nothing.
inline char32_t composed(char32_t a, char32_t b) {
  if (a >= leads && a < leads + lead_count && b >= vowels && b < vowels + vowel_count)
    return hangul_first + ((a - leads) * vowel_count + (b - vowels)) * trail_count;
  if (a >= hangul_first && a < hangul_first + lead_count * vowel_count * trail_count &&
      (a - hangul_first) % trail_count == 0 && b > trails && b < trails + trail_count)
    return a + (b - trails);
  static std::vector<std::pair<std::uint64_t, char32_t>> const pairs = [] {
    std::vector<std::pair<std::uint64_t, char32_t>> r;
    for (std::size_t i = 0; i < std::size(decompositions); i += 3) {
      auto const* d = decompositions + i;
      if (d[2] != 0 &&
          !std::binary_search(std::begin(composition_exclusions), std::end(composition_exclusions), d[0]))
        r.emplace_back(std::uint64_t{d[1]} << 32 | d[2], static_cast<char32_t>(d[0]));
    }
    std::sort(r.begin(), r.end());
    return r;
  }();
  std::uint64_t const key = std::uint64_t{a} << 32 | b;
  auto const found = std::lower_bound(pairs.begin(), pairs.end(), std::pair{key, char32_t{0}});
  return found != pairs.end() && found->first == key ? found->second : char32_t{0};
}

// Decomposed, and marks in the order of their classes.
inline std::u32string decomposed(std::u32string const& text) {
  std::u32string r;
  for (char32_t c : text) decompose(c, r);
  std::vector<std::uint64_t> marks;  // class, place, code point: sorted, equal classes keep their order
  for (std::size_t i = 0; i < r.size(); ++i) {
    std::size_t const begin = i;
    marks.clear();
    for (; i < r.size() && combining_class(r[i]) != 0; ++i)
      marks.push_back(std::uint64_t{combining_class(r[i])} << 56 | std::uint64_t{i - begin} << 21 | r[i]);
    std::sort(marks.begin(), marks.end());
    for (std::size_t k = 0; k < marks.size(); ++k) r[begin + k] = static_cast<char32_t>(marks[k] & 0x1FFFFF);
  }
  return r;
}

inline std::u32string recomposed(std::u32string const& text) {
  std::u32string r;
  std::size_t starter = 0;
  bool has_starter = false;
  std::uint32_t last = 0;  // the class of what was kept behind the starter
  for (char32_t c : text) {
    std::uint32_t const now = combining_class(c);
    bool const near = has_starter && r.size() == starter + 1;
    if (has_starter && (near || (last < now && last != 0)))
      if (char32_t const both = composed(r[starter], c); both != 0) {
        r[starter] = both;
        continue;
      }
    if (now == 0) {
      starter = r.size();
      has_starter = true;
    }
    last = now;
    r.push_back(c);
  }
  return r;
}

// f on each stretch of UTF-8; bytes between them stay.
template <class F>
std::string on_characters(std::string_view text, F&& f) {
  std::string r;
  std::u32string stretch;
  auto const flush = [&] {
    for (char32_t c : f(stretch)) append_utf8(r, c);
    stretch.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    Character const c = decode_at(text, at);
    if (c.valid) {
      stretch.push_back(c.code);
    } else {
      flush();
      r.push_back(text[at]);
    }
    at += c.size;
  }
  flush();
  return r;
}

// Below U+0300 nothing combines, and below U+00C0 nothing decomposes: most texts are what they were.
inline bool all_below(std::string_view text, unsigned char lead) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return static_cast<unsigned char>(c) < lead; });
}

}  // namespace detail

/// nfd - canonical decomposition. Source: Unicode Standard Annex 15.
inline std::string nfd(std::string_view text) {
  if (detail::all_below(text, 0xC3)) return std::string(text);
  return detail::on_characters(text, detail::decomposed);
}

/// nfc - canonical decomposition, then composition. Source: Unicode Standard Annex 15.
inline std::string nfc(std::string_view text) {
  if (detail::all_below(text, 0xCC)) return std::string(text);
  return detail::on_characters(
      text, [](std::u32string const& s) { return detail::recomposed(detail::decomposed(s)); });
}

}  // namespace dfdx::text
