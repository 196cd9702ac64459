// SPDX-License-Identifier: BSL-1.0
// llama2.c's tokenizer.bin: the pieces of a SentencePiece model with their scores, blanks as blanks, and nothing else.
#pragma once

#include <cstring>
#include <limits>

#include <dfdx/text/parts.hpp>

namespace dfdx::text {

/// parse_llama2c - a tokenizer of the bytes of a tokenizer.bin. The file does not say how many tokens it has: `count`
/// is that of the model, 0 for all there are.
///
/// Errors    "tokenizer: <name>: token 7 is 2000000000 bytes long, the longest 27"; "... ends inside token 7"; "... has
///           more than 512 tokens"; and those of Tokenizer
/// Source    https://github.com/karpathy/llama2.c, tokenizer.py and run.c
inline TokenizerParts parse_llama2c(std::string_view bytes, std::string const& name, std::size_t count = 0) {
  TokenizerParts p;
  p.name = name;
  p.model = TokenizerModel::sentencepiece;
  std::size_t at = 0;
  auto const read = [&](auto& to) {
    if (bytes.size() - at < sizeof to)
      detail::fail(name, at == 0 ? "it is shorter than its first number"
                                 : "it ends inside token " + std::to_string(p.tokens.size()));
    std::memcpy(&to, bytes.data() + at, sizeof to);
    at += sizeof to;
  };
  std::int32_t longest = 0;
  read(longest);
  if (longest < 1 || longest > 1 << 20)
    detail::fail(name, "it is no tokenizer of llama2.c: the longest token would have " +
                           std::to_string(longest) + " bytes");
  while (count == 0 ? at < bytes.size() : p.tokens.size() < count) {
    auto const i = p.tokens.size();
    float score = 0;
    std::int32_t size = 0;
    read(score);
    read(size);
    // What comes before the pieces of text is wrapped in line ends, which the longest does not count.
    if (size < 0 || size > longest + 16)
      detail::fail(name, "token " + std::to_string(i) + " is " + std::to_string(size) +
                             " bytes long, the longest " + std::to_string(longest));
    if (static_cast<std::size_t>(size) > bytes.size() - at)
      detail::fail(name, "it ends inside token " + std::to_string(i));
    p.tokens.emplace_back(bytes.substr(at, static_cast<std::size_t>(size)));
    at += static_cast<std::size_t>(size);
    p.scores.push_back(score);
  }
  if (at != bytes.size()) detail::fail(name, "it has more than " + std::to_string(count) + " tokens");
  if (p.tokens.size() < 259)
    detail::fail(name,
                 "it has " + std::to_string(p.tokens.size()) + " tokens, fewer than the 259 that all have");
  p.types.assign(p.tokens.size(), TokenType::normal);
  p.types[0] = TokenType::unknown;
  p.types[1] = p.types[2] = TokenType::control;
  p.tokens[1] = "<s>";  // in the file between line ends
  p.tokens[2] = "</s>";
  for (std::size_t i = 3; i < 259; ++i) {
    if (detail::byte_of_token(p.tokens[i]) != static_cast<int>(i) - 3)
      detail::fail(
          name, "token " + std::to_string(i) + " is not that of a byte: " + detail::in_quotes(p.tokens[i]));
    p.types[i] = TokenType::byte;
  }
  p.byte_fallback = true;
  p.space_prefix = SpacePrefix::after_control;
  p.unknown = 0, p.bos = 1, p.eos = 2;
  p.add_bos = true;
  return p;
}

}  // namespace dfdx::text
