// SPDX-License-Identifier: BSL-1.0
// tiktoken's files, also Llama 3's tokenizer.model: on each line the bytes of a token in base64 and its number, which
// is also its rank.
#pragma once

#include <charconv>
#include <system_error>

#include <dfdx/text/known.hpp>

namespace dfdx::text {

namespace detail {

// False for what is no base64.
inline bool from_base64(std::string_view text, std::string& out) {
  auto const digit = [](char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  out.clear();
  if (text.size() % 4 != 0) return false;
  for (std::size_t i = 0; i < text.size(); i += 4) {
    bool const last = i + 4 == text.size();
    int const padding = last ? (text[i + 3] == '=') + (text[i + 3] == '=' && text[i + 2] == '=') : 0;
    unsigned bits = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      int const d = static_cast<int>(k) >= 4 - padding ? 0 : digit(text[i + k]);
      if (d < 0) return false;
      bits = bits << 6 | static_cast<unsigned>(d);
    }
    for (int k = 0; k < 3 - padding; ++k)
      out.push_back(static_cast<char>(static_cast<unsigned char>(bits >> (16 - 8 * k))));
  }
  return true;
}

// f(line, number from 1) for each line, without its end.
template <class F>
void each_line(std::string_view text, F&& f) {
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    std::size_t const end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    f(line, number);
    at = end + 1;
  }
}

inline std::string line_name(std::size_t number) { return "line " + std::to_string(number); }

}  // namespace detail

/// parse_tiktoken - a tokenizer of the text of a .tiktoken file. Its pattern and control tokens are not in the file:
/// those of the published vocabularies (Llama 3, cl100k, o200k, r50k, Qwen) are known by their size, others
/// are given.
///
/// Errors    "tokenizer: <name>: line 3 is not base64, a blank and a number"; "... line 3: token 9 where 2 is next";
///           "... has 7 tokens, which is no vocabulary that is known by its size: give a pattern"; those of Tokenizer
/// Source    https://github.com/openai/tiktoken, load.py
inline TokenizerParts parse_tiktoken(std::string_view text, std::string const& name,
                                     std::optional<Pattern> pattern = {},
                                     std::vector<SpecialToken> specials = {}) {
  TokenizerParts p;
  p.name = name;
  p.tokens_are_bytes = true;
  p.whole_pieces_first = true;
  detail::each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.empty()) return;
    std::size_t const blank = line.find(' ');
    std::string bytes;
    std::uint32_t id = 0;
    bool ok =
        blank != std::string_view::npos && blank > 0 && detail::from_base64(line.substr(0, blank), bytes);
    if (ok) {
      std::string_view const digits = line.substr(blank + 1);
      auto const [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
      ok = failed == std::errc{} && end == digits.data() + digits.size();
    }
    if (!ok) detail::fail(name, detail::line_name(number) + " is not base64, a blank and a number");
    if (id != p.tokens.size())
      detail::fail(name, detail::line_name(number) + ": token " + std::to_string(id) + " where " +
                             std::to_string(p.tokens.size()) + " is next");
    p.tokens.push_back(std::move(bytes));
  });
  std::size_t const count = p.tokens.size();
  if (!pattern) pattern = detail::known_pattern(count);
  if (!pattern)
    detail::fail(name, "it has " + std::to_string(count) +
                           " tokens, which is no vocabulary that is known by its size: give a pattern");
  detail::split_by(p, *pattern);
  p.types.assign(count, TokenType::normal);
  if (specials.empty()) specials = detail::known_specials(count);
  for (SpecialToken& s : specials) {
    if (s.id < 0 || static_cast<std::size_t>(s.id) < count || static_cast<std::size_t>(s.id) > count + 100000)
      detail::fail(name, "the control token " + detail::in_quotes(s.text) + " has the number " +
                             std::to_string(s.id) + ", the file has " + std::to_string(count) + " tokens");
    auto const id = static_cast<std::size_t>(s.id);
    if (p.tokens.size() <= id) {
      p.tokens.resize(id + 1);  // numbers that no token has are empty
      p.types.resize(id + 1, TokenType::unused);
    }
    p.tokens[id] = std::move(s.text);
    p.types[id] = TokenType::control;
  }
  detail::guess_ends(p);
  p.add_bos = count == 128000;
  return p;
}

}  // namespace dfdx::text
