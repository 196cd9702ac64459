// SPDX-License-Identifier: BSL-1.0
// Into pieces that tokens do not cross: what the regular expressions of known tokenizers match, found by hand-written
// scanners, each linear in the text. They give what a backtracking engine gives; where one would step back, a comment
// says how far. Characters are classed by Unicode; a byte that is no UTF-8 counts as a symbol.
#pragma once

#include <optional>
#include <span>

#include <dfdx/text/unicode.hpp>

namespace dfdx::text {

/// Pattern - the regular expressions that are known, each by one of its names.
enum class Pattern : std::uint8_t { gpt2, llama3, qwen2, o200k, clip };

namespace detail {

struct PatternName {
  char const* name;
  Pattern pattern;
};

// Names as in GGUF's tokenizer.ggml.pre and tiktoken.
inline constexpr PatternName pattern_names[] = {{"gpt-2", Pattern::gpt2},
                                                {"gpt2", Pattern::gpt2},
                                                {"r50k_base", Pattern::gpt2},
                                                {"p50k_base", Pattern::gpt2},
                                                {"phi-2", Pattern::gpt2},
                                                {"mpt", Pattern::gpt2},
                                                {"olmo", Pattern::gpt2},
                                                {"jais", Pattern::gpt2},
                                                {"roberta-bpe", Pattern::gpt2},
                                                {"llama-bpe", Pattern::llama3},
                                                {"llama3", Pattern::llama3},
                                                {"llama-v3", Pattern::llama3},
                                                {"dbrx", Pattern::llama3},
                                                {"smaug-bpe", Pattern::llama3},
                                                {"cl100k", Pattern::llama3},
                                                {"cl100k_base", Pattern::llama3},
                                                {"qwen2", Pattern::qwen2},
                                                {"stablelm2", Pattern::qwen2},
                                                {"deepseek-r1-qwen", Pattern::qwen2},
                                                {"gpt-4o", Pattern::o200k},
                                                {"o200k_base", Pattern::o200k},
                                                {"clip", Pattern::clip}};

// The same as they stand in files, in the spellings that are about.
// clang-format off
inline constexpr PatternName pattern_regexes[] = {
    {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Pattern::gpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", Pattern::gpt2},
    {R"('(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s)", Pattern::gpt2},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", Pattern::llama3},
    {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", Pattern::llama3},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})"
     R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)", Pattern::qwen2},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)"
     R"([\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
     R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)", Pattern::o200k},
    {R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)", Pattern::clip},
    {R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)",
     Pattern::clip}};
// clang-format on

inline std::optional<Pattern> find_pattern(std::span<PatternName const> among, std::string_view text) {
  for (PatternName const& n : among)
    if (text == n.name) return n.pattern;
  return {};
}

// The characters of a text and what the patterns ask of them.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {
    for (std::size_t at = 0; at < text.size();) {
      Character const c = decode_at(text, at);
      code_.push_back(c.code);
      kind_.push_back(kind_of(c));
      begin_.push_back(at);
      at += c.size;
    }
    begin_.push_back(text.size());
  }

  void split(Pattern pattern, std::vector<std::string_view>& out) const {
    for (std::size_t i = 0; i < kind_.size();) {
      std::size_t const end = next(pattern, i);
      bool const kept = pattern != Pattern::clip || !has(i, space);
      if (kept) out.push_back(text_.substr(begin_[i], begin_[end] - begin_[i]));
      i = end;
    }
  }

 private:
  enum : std::uint8_t { letter = 1, number = 2, space = 4, line = 8, upper = 16, lower = 32, invalid = 64 };
  static constexpr unsigned word = letter | number, no_symbol = letter | number | space;

  static std::uint8_t kind_of(Character const& c) {
    if (!c.valid) return invalid;
    if (c.code == '\r' || c.code == '\n') return space | line;
    if (is_space(c.code)) return space;
    Category const k = category(c.code);
    // What may stand in the two halves of a word of o200k; letters without case and marks in both.
    if (k == Category::Lu || k == Category::Lt) return letter | upper;
    if (k == Category::Ll) return letter | lower;
    if (is_letter(k)) return letter | upper | lower;
    if (is_mark(k)) return upper | lower;
    return is_number(k) ? number : 0;
  }

  bool has(std::size_t i, unsigned kinds) const { return i < kind_.size() && (kind_[i] & kinds) != 0; }
  bool lacks(std::size_t i, unsigned kinds) const { return i < kind_.size() && (kind_[i] & kinds) == 0; }
  bool is(std::size_t i, char32_t c) const { return i < code_.size() && code_[i] == c && !has(i, invalid); }
  std::size_t while_has(std::size_t i, unsigned kinds) const {
    while (has(i, kinds)) ++i;
    return i;
  }
  std::size_t while_lacks(std::size_t i, unsigned kinds) const {
    while (lacks(i, kinds)) ++i;
    return i;
  }

  std::size_t next(Pattern pattern, std::size_t i) const {
    switch (pattern) {
      case Pattern::gpt2: return next_gpt2(i);
      case Pattern::llama3: return next_cl100k(i, 3);
      case Pattern::qwen2: return next_cl100k(i, 1);
      case Pattern::o200k: return next_o200k(i);
      case Pattern::clip: return next_clip(i);
    }
    return kind_.size();
  }

  // The end of 's 't 're 've 'm 'll 'd; i if there is none. Without regard to case, U+017F is an s too.
  std::size_t contraction(std::size_t i, bool any_case) const {
    if (!is(i, '\'')) return i;
    auto const at = [&](std::size_t k) -> char32_t {
      if (k >= code_.size() || has(k, invalid)) return 0;
      char32_t const c = code_[k];
      if (any_case && c == 0x17F) return 's';
      return any_case && c >= 'A' && c <= 'Z' ? c + 32 : c;
    };
    char32_t const a = at(i + 1), b = at(i + 2);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
    if (((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l')) return i + 3;
    return i;
  }

  // \s+(?!\S)|\s+ at white space: a run that something follows gives its last character away, if it has two.
  std::size_t spaces(std::size_t i) const {
    std::size_t const end = while_has(i, space);
    return end == kind_.size() || end == i + 1 ? end : end - 1;
  }

  std::size_t next_gpt2(std::size_t i) const {
    if (std::size_t const end = contraction(i, false); end != i) return end;
    std::size_t const first = is(i, ' ') ? i + 1 : i;
    if (has(first, letter)) return while_has(first, letter);
    if (has(first, number)) return while_has(first, number);
    if (lacks(first, no_symbol)) return while_lacks(first, no_symbol);
    return spaces(i);
  }

  //  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+, where what stands before did not match
  std::size_t symbols_or_spaces(std::size_t i, bool slash) const {
    std::size_t const first = is(i, ' ') ? i + 1 : i;
    if (lacks(first, no_symbol)) {
      std::size_t end = while_lacks(first, no_symbol);
      while (has(end, line) || (slash && is(end, '/'))) ++end;
      return end;
    }
    // \s* takes the run and steps back to its last end of a line.
    std::size_t const end = while_has(i, space);
    for (std::size_t k = end; k > i; --k)
      if (has(k - 1, line)) return k;
    return spaces(i);
  }

  std::size_t numbers(std::size_t i, std::size_t most) const {
    std::size_t end = i;
    while (end < i + most && has(end, number)) ++end;
    return end;
  }

  std::size_t next_cl100k(std::size_t i, std::size_t digits) const {
    if (std::size_t const end = contraction(i, true); end != i) return end;
    if (has(i, letter)) return while_has(i, letter);
    if (lacks(i, word | line) && has(i + 1, letter)) return while_has(i + 1, letter);
    if (has(i, number)) return numbers(i, digits);
    return symbols_or_spaces(i, false);
  }

  // upper*lower+ from i; i if it does not match. Where no small letter follows the run of upper, it steps back to
  // the last one that counts as both, which then ends the word.
  std::size_t word_with_end(std::size_t i) const {
    std::size_t const end = while_has(i, upper);
    if (has(end, lower)) return while_has(end, lower);
    for (std::size_t k = end; k > i; --k)
      if (has(k - 1, lower)) return k;
    return i;
  }
  std::size_t word_with_start(std::size_t i) const {
    std::size_t const end = while_has(i, upper);
    return end == i ? i : while_has(end, lower);
  }

  std::size_t next_o200k(std::size_t i) const {
    bool const prefix = lacks(i, word | line);
    for (bool const with_end : {true, false})
      for (std::size_t const from : {prefix ? i + 1 : i, i}) {
        std::size_t const end = with_end ? word_with_end(from) : word_with_start(from);
        if (end != from) return contraction(end, true);
      }
    if (has(i, number)) return numbers(i, 3);
    return symbols_or_spaces(i, true);
  }

  // Without regard to case; white space is dropped.
  std::size_t next_clip(std::size_t i) const {
    if (has(i, space)) return while_has(i, space);
    if (std::size_t const end = contraction(i, true); end != i) return end;
    if (has(i, letter)) return while_has(i, letter);
    if (has(i, number)) return i + 1;
    return while_lacks(i, no_symbol);
  }

  std::string_view text_;
  std::vector<char32_t> code_;
  std::vector<std::uint8_t> kind_;
  std::vector<std::size_t> begin_;  // where each character begins, and the end of the text
};

}  // namespace detail

/// pattern_named - the pattern of a name ("llama-bpe", "cl100k_base"); none if it is not known.
inline std::optional<Pattern> pattern_named(std::string_view name) {
  return detail::find_pattern(detail::pattern_names, name);
}

/// pattern_of_regex - the pattern of a regular expression as it stands in tokenizer.json; none if it is not known.
inline std::optional<Pattern> pattern_of_regex(std::string_view regex) {
  return detail::find_pattern(detail::pattern_regexes, regex);
}

/// pieces - what the pattern matches, one after another; together they are the text, but for clip's white space.
inline std::vector<std::string_view> pieces(Pattern pattern, std::string_view text) {
  std::vector<std::string_view> r;
  detail::Scanner(text).split(pattern, r);
  return r;
}

}  // namespace dfdx::text
