// SPDX-License-Identifier: BSL-1.0
// UTF-8 and what tokenizers ask of characters: categories, white space, small letters. Not a Unicode library: no
// collation, no compatibility forms, no grapheme clusters. Composed and decomposed forms: text/normal_form.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <dfdx/core/utf8.hpp>
#include <dfdx/text/unicode_tables.hpp>

namespace dfdx::text {

/// Category - the general category of a code point.
enum class Category : std::uint8_t {
  Cn,
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co
};

/// Character - a code point, or one byte that is no part of UTF-8, which is kept as it is.
struct Character {
  char32_t code = 0;
  std::uint8_t size = 0;  // in bytes
  bool valid = false;
};

/// decode_at - the character at `at`, which must be inside the text.
///
/// Source    Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF
inline Character decode_at(std::string_view text, std::size_t at) {
  auto const byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  auto const tail = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  unsigned const b = byte(0);
  if (b < 0x80) return {b, 1, true};
  if (b >= 0xC2 && b <= 0xDF && tail(1)) return {(b & 0x1Fu) << 6 | (byte(1) & 0x3Fu), 2, true};
  if (b >= 0xE0 && b <= 0xEF && tail(1) && tail(2)) {
    char32_t const c = (b & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    if (c >= 0x800 && (c < 0xD800 || c > 0xDFFF)) return {c, 3, true};
  }
  if (b >= 0xF0 && b <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    char32_t const c =
        (b & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3Fu);
    if (c >= 0x10000 && c <= 0x10FFFF) return {c, 4, true};
  }
  return {b, 1, false};
}

/// append_utf8 - a code point, which must be one (no surrogate, at most U+10FFFF), behind a text.
inline void append_utf8(std::string& out, char32_t c) {
  auto const put = [&](char32_t byte) { out.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xE0 | c >> 12);
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
    }
    put(0x80 | (c >> 6 & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

inline std::string utf8(char32_t c) {
  std::string r;
  append_utf8(r, c);
  return r;
}

/// incomplete_tail - how many bytes at the end of a text begin a character that further bytes could complete.
inline std::size_t incomplete_tail(std::string_view text) {
  for (std::size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    auto const b = static_cast<unsigned char>(text[text.size() - n]);
    if ((b & 0xC0u) == 0x80u) continue;
    std::size_t const needed = b >= 0xF0 && b <= 0xF4  ? 4
                               : b >= 0xE0 && b < 0xF0 ? 3
                               : b >= 0xC2 && b < 0xE0 ? 2
                                                       : 1;
    if (needed <= n) return 0;
    if (n == 1) return 1;
    auto const second =
        static_cast<unsigned char>(text[text.size() - n + 1]);  // it may already rule the rest out
    bool const possible = (b != 0xE0 || second >= 0xA0) && (b != 0xED || second < 0xA0) &&
                          (b != 0xF0 || second >= 0x90) && (b != 0xF4 || second < 0x90);
    return possible ? n : 0;
  }
  return 0;
}

/// with_replacements - the text with U+FFFD for each byte that is no UTF-8.
inline std::string with_replacements(std::string_view text) {
  std::string r;
  for (std::size_t at = 0; at < text.size();) {
    Character const c = decode_at(text, at);
    append_utf8(r, c.valid ? c.code : char32_t{0xFFFD});
    at += c.size;
  }
  return r;
}

inline Category category(char32_t c) {
  using detail::category_runs;
  auto const next = std::upper_bound(std::begin(category_runs), std::end(category_runs),
                                     static_cast<std::uint32_t>(c) * 32 + 31);
  std::uint32_t const run = *std::prev(next);
  constexpr std::uint32_t alternating = 30;
  if (run % 32 != alternating) return static_cast<Category>(run % 32);
  return (c - run / 32) % 2 == 0 ? Category::Lu : Category::Ll;
}

inline bool is_letter(Category c) { return c >= Category::Lu && c <= Category::Lo; }
inline bool is_mark(Category c) { return c >= Category::Mn && c <= Category::Me; }
inline bool is_number(Category c) { return c >= Category::Nd && c <= Category::No; }
inline bool is_punctuation(Category c) { return c >= Category::Pc && c <= Category::Po; }
inline bool is_other(Category c) { return c == Category::Cn || c >= Category::Cc; }

/// is_space - the property White_Space, what `\s` means in the patterns of tokenizers.
inline bool is_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

/// append_lower - the small letter of c, or c. The one letter that has two is U+0130: i and a dot above.
inline void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {
    out += "i\xCC\x87";
    return;
  }
  constexpr std::size_t count = std::size(detail::lower_ranges) / 4;
  auto const x = static_cast<std::int32_t>(c);
  std::size_t low = 0, high = count;  // the first range that ends at x or behind it
  while (low < high) {
    std::size_t const middle = (low + high) / 2;
    if (detail::lower_ranges[4 * middle + 1] < x) low = middle + 1;
    else high = middle;
  }
  if (low < count) {
    auto const* r = detail::lower_ranges + 4 * low;
    if (x >= r[0] && (x - r[0]) % r[2] == 0) return append_utf8(out, static_cast<char32_t>(x + r[3]));
  }
  append_utf8(out, c);
}

/// mapped - the text with `f(out, code point)` for each character; bytes that are no UTF-8 stay.
template <class F>
std::string mapped(std::string_view text, F&& f) {
  std::string r;
  r.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    Character const c = decode_at(text, at);
    if (c.valid) f(r, c.code);
    else r.push_back(text[at]);
    at += c.size;
  }
  return r;
}

inline std::string lower(std::string_view text) { return mapped(text, append_lower); }

}  // namespace dfdx::text
