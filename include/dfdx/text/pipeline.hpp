// SPDX-License-Identifier: BSL-1.0
// The steps between a text and the pieces that become tokens: changes of the text, then cuts.
#pragma once

#include <dfdx/text/character_map.hpp>
#include <dfdx/text/normal_form.hpp>
#include <dfdx/text/parts.hpp>

namespace dfdx::text::detail {

// The blocks that BERT takes for Chinese characters.
inline bool is_han(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

// Signs of ASCII count as punctuation, as they do for BERT.
inline bool is_cut_mark(char32_t c) {
  return (c > 32 && c < 127 && !(c >= '0' && c <= '9') && !(c >= 'A' && c <= 'Z') &&
          !(c >= 'a' && c <= 'z')) ||
         is_punctuation(category(c));
}

// The \w of regular expressions.
inline bool is_word(char32_t c) {
  Category const k = category(c);
  return is_letter(k) || is_number(k) || is_mark(k) || k == Category::Pc;
}

inline std::string cleaned(std::string_view text) {
  return mapped(text, [](std::string& out, char32_t c) {
    if (c == '\t' || c == '\n' || c == '\r' || is_space(c)) out.push_back(' ');
    else if (c != 0 && c != 0xFFFD && !is_other(category(c))) append_utf8(out, c);
  });
}

inline std::string squeezed(std::string_view text) {
  std::string r;
  for (char c : text)
    if (c != ' ' || (!r.empty() && r.back() != ' ')) r.push_back(c);
  if (!r.empty() && r.back() == ' ') r.pop_back();
  return r;
}

inline std::string one_space(std::string_view text) {
  bool inside = false;
  return mapped(text, [&](std::string& out, char32_t c) {
    if (!is_space(c)) append_utf8(out, c);
    else if (!inside) out.push_back(' ');
    inside = is_space(c);
  });
}

inline std::string fewer_blanks(std::string_view text, std::string_view to) {
  std::string r;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const end = std::min(text.find_first_not_of(' ', at), text.size());
    if (end >= at + 2) r += to;
    else r += text.substr(at, std::max(end, at + 1) - at);
    at = std::max(end, at + 1);
  }
  return r;
}

inline std::string trimmed(std::string_view text, bool left, bool right) {
  std::size_t begin = 0, end = 0;  // behind the last character that is kept
  bool leading = true;
  for (std::size_t at = 0; at < text.size();) {
    Character const c = decode_at(text, at);
    bool const space = c.valid && is_space(c.code);
    at += c.size;
    if (leading && space && left) begin = at;
    if (!space) leading = false;
    if (!space || !right) end = at;
  }
  return std::string(end > begin ? text.substr(begin, end - begin) : std::string_view{});
}

inline std::string changed(NormalStep const& step, std::string const& text) {
  using Kind = NormalStep::Kind;
  switch (step.kind) {
    case Kind::replace: return replaced(text, step.from, step.to);
    case Kind::lower: return lower(text);
    case Kind::nfc: return nfc(text);
    case Kind::nfd: return nfd(text);
    case Kind::strip_accents:
      return mapped(text, [](std::string& out, char32_t c) {
        if (category(c) != Category::Mn) append_utf8(out, c);
      });
    case Kind::clean: return cleaned(text);
    case Kind::space_han:
      return mapped(text, [](std::string& out, char32_t c) {
        if (is_han(c)) out.push_back(' ');
        append_utf8(out, c);
        if (is_han(c)) out.push_back(' ');
      });
    case Kind::map: return step.map ? step.map->apply(text) : text;
    case Kind::squeeze: return squeezed(text);
    case Kind::one_space: return one_space(text);
    case Kind::blanks: return fewer_blanks(text, step.to);
    case Kind::trim_left: return trimmed(text, true, false);
    case Kind::trim_right: return trimmed(text, false, true);
  }
  return text;
}

// What stands before a stretch of text.
enum class Before : std::uint8_t { start, control, user_defined };

inline bool has_prefix(SpacePrefix when, Before before) {
  switch (when) {
    case SpacePrefix::never: return false;
    case SpacePrefix::at_start: return before == Before::start;
    case SpacePrefix::after_control: return before != Before::user_defined;
    case SpacePrefix::always: return true;
  }
  return false;
}

inline std::string normalized(TokenizerParts const& parts, std::string_view text, Before before) {
  std::string r(text);
  for (NormalStep const& step : parts.normal) r = changed(step, r);
  if (r.empty()) return r;
  bool const has_one = r[0] == ' ' || (parts.escape_spaces && std::string_view(r).starts_with(escaped_space));
  if (has_prefix(parts.space_prefix, before) && !(parts.prefix_unless_space && has_one)) r.insert(0, 1, ' ');
  if (parts.escape_spaces) r = replaced(r, " ", escaped_space);
  return r;
}

// Cuts where the class of characters changes, and around each character of a class that stands alone; -1 is dropped.
template <class ClassOf>
void cut(std::string_view text, ClassOf&& class_of, int alone, std::vector<std::string_view>& out) {
  std::size_t begin = 0;
  int last = -1;
  for (std::size_t at = 0; at <= text.size();) {
    Character const c = at < text.size() ? decode_at(text, at) : Character{};
    int const now = at == text.size() ? -1 : c.valid ? class_of(c.code) : 0;
    if (now != last || now == alone || at == text.size()) {
      if (last >= 0 && at > begin) out.push_back(text.substr(begin, at - begin));
      begin = at;
    }
    last = now;
    if (at == text.size()) break;
    at += c.size;
  }
}

inline void cut_before_space(std::string_view text, std::vector<std::string_view>& out) {
  std::size_t begin = 0;
  for (std::size_t at = 1; at < text.size(); ++at)
    if (text[at] == ' ' || text.substr(at).starts_with(escaped_space)) {
      out.push_back(text.substr(begin, at - begin));
      begin = at;
    }
  out.push_back(text.substr(begin));
}

inline void split_one(SplitStep const& step, std::string_view text, std::vector<std::string_view>& out) {
  using Kind = SplitStep::Kind;
  auto const number = [](char32_t c) { return is_number(category(c)) ? 1 : 0; };
  switch (step.kind) {
    case Kind::pattern: return Scanner(text).split(step.pattern, out);
    case Kind::digits: return cut(text, number, 1, out);
    case Kind::digit_runs: return cut(text, number, -2, out);
    case Kind::punctuation: return cut(text, [](char32_t c) { return is_cut_mark(c) ? 1 : 0; }, 1, out);
    case Kind::whitespace: return cut(text, [](char32_t c) { return is_space(c) ? -1 : 0; }, -2, out);
    case Kind::words:
      return cut(text, [](char32_t c) { return is_space(c) ? -1 : is_word(c) ? 1 : 0; }, -2, out);
    case Kind::before_space: return cut_before_space(text, out);
  }
}

inline std::vector<std::string_view> split(TokenizerParts const& parts, std::string_view text) {
  std::vector<std::string_view> r, next;
  if (!text.empty()) r.push_back(text);
  for (SplitStep const& step : parts.split) {
    next.clear();
    for (std::string_view piece : r) split_one(step, piece, next);
    r.swap(next);
  }
  return r;
}

}  // namespace dfdx::text::detail
