// SPDX-License-Identifier: BSL-1.0
// Vocabularies in files of text: merges (vocab.bpe, merges.txt, CLIP's list) and WordPiece's vocab.txt.
#pragma once

#include <dfdx/text/tiktoken.hpp>

namespace dfdx::text {

namespace detail {

// "left right" on each line; a first line with "#version" is none, nor are empty ones.
inline std::vector<std::pair<std::string, std::string>> parse_merges(std::string_view text,
                                                                     std::string const& name) {
  std::vector<std::pair<std::string, std::string>> r;
  each_line(text, [&](std::string_view line, std::size_t number) {
    if (line.empty() || (number == 1 && line.find("#version") != std::string_view::npos)) return;
    std::size_t const blank = line.find(' ');
    if (blank == 0 || blank == std::string_view::npos || blank + 1 == line.size() ||
        line.find(' ', blank + 1) != std::string_view::npos)
      fail(name, line_name(number) + " is no merge, two tokens and a blank between: " + in_quotes(line));
    r.emplace_back(line.substr(0, blank), line.substr(blank + 1));
  });
  return r;
}

}  // namespace detail

/// parse_clip - CLIP's tokenizer of the text of its bpe_simple_vocab_16e6.txt (unpacked): 256 bytes, the same at the
/// end of a word, 48,894 merges, and two control tokens, which encode puts around a text.
///
/// Errors    "tokenizer: <name>: ..." for a line that is no merge, and those of Tokenizer
/// Source    https://github.com/openai/CLIP, simple_tokenizer.py
inline TokenizerParts parse_clip(std::string_view text, std::string const& name) {
  constexpr std::size_t merges = 49152 - 256 - 2;
  TokenizerParts p;
  p.name = name;
  p.merges = detail::parse_merges(text, name);
  if (p.merges.size() > merges) p.merges.resize(merges);
  p.end_of_word = "</w>";
  std::vector<std::string> bytes(256);
  std::size_t next = 0;
  // In the order of CLIP's table: printable ones first.
  for (int b = 0; b < 256; ++b)
    if (byte_level_char(static_cast<unsigned char>(b)) < 256) bytes[next++] = utf8(static_cast<char32_t>(b));
  for (char32_t c = 256; next < 256; ++c) bytes[next++] = utf8(c);
  for (std::string const& b : bytes) p.tokens.push_back(b);
  for (std::string const& b : bytes) p.tokens.push_back(b + p.end_of_word);
  for (auto const& [left, right] : p.merges) p.tokens.push_back(left + right);
  p.types.assign(p.tokens.size(), TokenType::normal);
  for (char const* token : {"<|startoftext|>", "<|endoftext|>"}) {
    p.tokens.emplace_back(token);
    p.types.push_back(TokenType::control);
  }
  p.bos = static_cast<std::int32_t>(p.tokens.size()) - 2;
  p.eos = p.pad = p.bos + 1;
  p.add_bos = p.add_eos = true;
  p.normal = {{NormalStep::Kind::nfc}, {NormalStep::Kind::one_space}, {NormalStep::Kind::lower}};
  detail::split_by(p, Pattern::clip);
  return p;
}

namespace detail {

inline void normalize_as_bert(TokenizerParts& p, bool lower) {
  using Kind = NormalStep::Kind;
  p.normal = {{Kind::clean}, {Kind::space_han}};
  if (lower) p.normal.insert(p.normal.end(), {{Kind::nfd}, {Kind::strip_accents}, {Kind::lower}});
  p.split = {{SplitStep::Kind::whitespace}, {SplitStep::Kind::punctuation}};
}

}  // namespace detail

/// parse_wordpiece - BERT's tokenizer of the text of its vocab.txt, a token on each line; `lower` for models that were
/// trained on small letters without accents ("uncased").
///
/// Errors    "tokenizer: <name>: there is no token [UNK]"; those of Tokenizer
/// Source    https://github.com/google-research/bert, tokenization.py
inline TokenizerParts parse_wordpiece(std::string_view text, std::string const& name, bool lower = true) {
  TokenizerParts p;
  p.name = name;
  p.model = TokenizerModel::wordpiece;
  detail::each_line(text, [&](std::string_view line, std::size_t) { p.tokens.emplace_back(line); });
  p.unknown = detail::position(p, "[UNK]");
  if (p.unknown < 0) detail::fail(name, "there is no token [UNK]");
  p.types.assign(p.tokens.size(), TokenType::normal);
  for (char const* token : {"[PAD]", "[CLS]", "[SEP]", "[MASK]"})
    if (std::int32_t const id = detail::position(p, token); id >= 0)
      p.types[static_cast<std::size_t>(id)] = TokenType::control;
  p.types[static_cast<std::size_t>(p.unknown)] = TokenType::unknown;
  p.bos = detail::position(p, "[CLS]"), p.eos = detail::position(p, "[SEP]"),
  p.pad = detail::position(p, "[PAD]");
  p.add_bos = p.bos >= 0, p.add_eos = p.eos >= 0;
  detail::normalize_as_bert(p, lower);
  return p;
}

}  // namespace dfdx::text
