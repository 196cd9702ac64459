// SPDX-License-Identifier: BSL-1.0
// The tokenizer inside a GGUF file. Reading GGUF is not done here: whoever has read the file's keys hands them over.
#pragma once

#include <dfdx/text/character_map.hpp>
#include <dfdx/text/known.hpp>

namespace dfdx::text {

/// GgufVocabulary - the keys of a GGUF file that make a tokenizer; those that are not in the file stay as they are.
struct GgufVocabulary {
  std::string name = "GGUF";                   // of the file, for messages
  std::string model;                           // tokenizer.ggml.model: llama, gpt2, bert, t5
  std::string pre;                             // tokenizer.ggml.pre; old files lack it
  std::vector<std::string> tokens;             // tokenizer.ggml.tokens
  std::vector<float> scores;                   // tokenizer.ggml.scores
  std::vector<std::int32_t> token_types;       // tokenizer.ggml.token_type
  std::vector<std::string> merges;             // tokenizer.ggml.merges, "left right"
  std::optional<std::int64_t> bos, eos;        // tokenizer.ggml.bos_token_id, eos_token_id
  std::optional<std::int64_t> unknown, pad;    // tokenizer.ggml.unknown_token_id, padding_token_id
  std::optional<std::int64_t> separator, cls;  // tokenizer.ggml.seperator_token_id (so spelled), cls_token_id
  std::optional<bool> add_bos, add_eos;        // tokenizer.ggml.add_bos_token, add_eos_token
  std::optional<bool> add_space_prefix;        // tokenizer.ggml.add_space_prefix
  std::optional<bool> remove_extra_whitespaces;  // tokenizer.ggml.remove_extra_whitespaces
  std::string character_map;                     // tokenizer.ggml.precompiled_charsmap, its bytes
};

namespace detail {

inline std::int32_t checked_id(GgufVocabulary const& v, std::optional<std::int64_t> id, std::int32_t other) {
  if (!id || *id == 0xFFFFFFFF || *id == -1)
    return other < static_cast<std::int32_t>(v.tokens.size()) ? other : -1;
  if (*id < 0 || static_cast<std::uint64_t>(*id) >= v.tokens.size())
    fail(v.name, "it names token " + std::to_string(*id) + " and has " + std::to_string(v.tokens.size()));
  return static_cast<std::int32_t>(*id);
}

inline void read_gguf_types(TokenizerParts& p, GgufVocabulary const& v) {
  for (std::int32_t t : v.token_types)
    p.types.push_back(t >= 0 && t <= 6 ? static_cast<TokenType>(t == 0 ? 1 : t)
                                       : static_cast<TokenType>(255));
  if (!v.token_types.empty()) return;
  p.types.assign(p.tokens.size(), TokenType::normal);
  for (std::size_t i = 0; i < p.tokens.size(); ++i)
    if (p.byte_fallback && byte_of_token(p.tokens[i]) >= 0) p.types[i] = TokenType::byte;
  for (std::int32_t id : {p.bos, p.eos})
    if (id >= 0) p.types[static_cast<std::size_t>(id)] = TokenType::control;
  if (p.unknown >= 0 && p.model != TokenizerModel::byte_bpe)
    p.types[static_cast<std::size_t>(p.unknown)] = TokenType::unknown;
}

inline void set_gguf_pattern(TokenizerParts& p, GgufVocabulary const& v) {
  for (std::size_t i = 0; i < v.merges.size(); ++i) {
    std::string const& merge = v.merges[i];
    std::size_t const blank = merge.find(' ', 1);
    if (merge.empty() || blank == std::string::npos)
      fail(v.name, "merge " + std::to_string(i) + " is no pair of tokens: " + in_quotes(merge));
    p.merges.emplace_back(merge.substr(0, blank), merge.substr(blank + 1));
  }
  if (p.merges.empty()) fail(v.name, "there are no merges");
  p.add_bos = v.add_bos.value_or(false);
  // Digits alone, then as GPT-2.
  for (char const* name : {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"})
    if (v.pre == name) p.split = {{SplitStep::Kind::digits}};
  if (!p.split.empty()) {
    p.split.push_back({SplitStep::Kind::pattern, Pattern::gpt2});
    return;
  }
  bool const told = !v.pre.empty() && v.pre != "default";
  std::optional<Pattern> const pattern =
      told ? pattern_named(v.pre) : known_pattern(v.tokens.size()).value_or(Pattern::gpt2);
  if (!pattern) fail(v.name, "the pre-tokenizer " + in_quotes(v.pre) + " is not known");
  split_by(p, *pattern);
  bool const llama3 = *pattern == Pattern::llama3 && v.pre != "dbrx" && v.pre != "smaug-bpe";
  p.whole_pieces_first = llama3;
  p.add_bos = v.add_bos.value_or(llama3);
}

// In GGUF a word begins with U+2581, and what is inside one with nothing.
inline void set_gguf_wordpiece(TokenizerParts& p, GgufVocabulary const& v) {
  p.bos = checked_id(v, v.cls ? v.cls : v.bos, 101);
  p.eos = checked_id(v, v.separator ? v.separator : v.eos, 102);
  p.unknown = checked_id(v, v.unknown, 100);
  for (std::size_t i = 0; i < p.tokens.size(); ++i) {
    std::string& token = p.tokens[i];
    if (token.starts_with(escaped_space)) token.erase(0, escaped_space.size());
    else if (v.token_types.size() == p.tokens.size() && v.token_types[i] == 1 &&
             !(token.starts_with('[') && token.ends_with(']') && token.size() > 2))
      token.insert(0, p.inside_word);
  }
  using Kind = NormalStep::Kind;
  p.normal = {{Kind::clean}, {Kind::space_han}, {Kind::nfd}, {Kind::strip_accents}, {Kind::lower}};
  p.split = {{SplitStep::Kind::whitespace}, {SplitStep::Kind::punctuation}};
  p.add_bos = v.add_bos.value_or(true), p.add_eos = v.add_eos.value_or(true);
}

inline void set_gguf_unigram(TokenizerParts& p, GgufVocabulary const& v) {
  p.bos = checked_id(v, v.bos, -1), p.eos = checked_id(v, v.eos, 1), p.unknown = checked_id(v, v.unknown, 2);
  if (!v.character_map.empty())
    p.normal.push_back(
        {NormalStep::Kind::map, "", "", std::make_shared<CharacterMap const>(v.name, v.character_map)});
  if (v.remove_extra_whitespaces.value_or(false)) p.normal.push_back({NormalStep::Kind::squeeze});
  if (v.add_space_prefix.value_or(false)) p.space_prefix = SpacePrefix::always;
  p.escape_spaces = true;
  p.add_bos = v.add_bos.value_or(false), p.add_eos = v.add_eos.value_or(true);
}

}  // namespace detail

/// parse_gguf - a tokenizer of the keys of a GGUF file, with llama.cpp's defaults for what it does not say.
///
/// Errors    "tokenizer: <name>: the pre-tokenizer 'x' is not known"; "... the tokenizer 'x' is not supported"; "...
///           merge 3 is no pair of tokens: 'x'"; and those of Tokenizer
/// Source    https://github.com/ggml-org/ggml, docs/gguf.md; https://github.com/ggml-org/llama.cpp, src/llama-vocab.cpp
inline TokenizerParts parse_gguf(GgufVocabulary const& v) {
  TokenizerParts p;
  p.name = v.name;
  p.tokens = v.tokens;
  p.scores = v.scores;
  if (v.model == "llama") {
    p.model = TokenizerModel::sentencepiece;
    p.byte_fallback = true;
    p.bos = detail::checked_id(v, v.bos, 1), p.eos = detail::checked_id(v, v.eos, 2);
    p.unknown = detail::checked_id(v, v.unknown, 0);
    if (v.add_space_prefix.value_or(true)) p.space_prefix = SpacePrefix::always;
    p.escape_spaces = true;
    p.add_bos = v.add_bos.value_or(true), p.add_eos = v.add_eos.value_or(false);
  } else if (v.model == "gpt2") {
    p.model = TokenizerModel::byte_bpe;
    p.bos = detail::checked_id(v, v.bos, -1), p.eos = detail::checked_id(v, v.eos, -1);
    p.unknown = detail::checked_id(v, v.unknown, -1);
    detail::set_gguf_pattern(p, v);
    p.add_bos = p.add_bos && p.bos >= 0;
    p.add_eos = v.add_eos.value_or(false);
  } else if (v.model == "t5") {
    p.model = TokenizerModel::unigram;
    detail::set_gguf_unigram(p, v);
  } else if (v.model == "bert") {
    p.model = TokenizerModel::wordpiece;
    detail::set_gguf_wordpiece(p, v);
  } else {
    detail::fail(v.name, "the tokenizer " + detail::in_quotes(v.model) + " is not supported");
  }
  p.pad = detail::checked_id(v, v.pad, -1);
  detail::read_gguf_types(p, v);
  return p;
}

/// gguf_vocabulary - what the keys of a GGUF file say of its tokenizer. `Keys` has source(), and by key find() (null if
/// there is none), text(), integer(), flag() and list<T>(), which throw dfdx::error for a value of another kind.
template <class Keys>
GgufVocabulary gguf_vocabulary(Keys const& keys) {
  auto const key = [](char const* name) { return std::string("tokenizer.ggml.") + name; };
  auto const has = [&](char const* name) { return keys.find(key(name)) != nullptr; };
  auto const id = [&](char const* name, std::optional<std::int64_t>& to) {
    if (has(name)) to = keys.integer(key(name));
  };
  auto const flag = [&](char const* name, std::optional<bool>& to) {
    if (has(name)) to = keys.flag(key(name), false);
  };
  auto const list = [&]<class T>(char const* name, std::vector<T>& to) {
    if (!has(name)) return;
    auto const& from = keys.template list<T>(key(name));
    to.assign(from.begin(), from.end());
  };
  GgufVocabulary v;
  v.name = keys.source();
  if (!has("model")) detail::fail(v.name, "there is no tokenizer in it");
  v.model = keys.text(key("model"));
  if (has("pre")) v.pre = keys.text(key("pre"));
  list("tokens", v.tokens), list("scores", v.scores), list("token_type", v.token_types),
      list("merges", v.merges);
  id("bos_token_id", v.bos), id("eos_token_id", v.eos), id("unknown_token_id", v.unknown);
  id("padding_token_id", v.pad), id("seperator_token_id", v.separator), id("cls_token_id", v.cls);
  flag("add_bos_token", v.add_bos), flag("add_eos_token", v.add_eos);
  flag("add_space_prefix", v.add_space_prefix), flag("remove_extra_whitespaces", v.remove_extra_whitespaces);
  if (has("precompiled_charsmap")) {
    auto const bytes = [&](auto const& from) {
      for (auto b : from) v.character_map.push_back(static_cast<char>(b));
    };
    dfdx::detail::caught<error>(  // both are about
        [&] { bytes(keys.template list<std::uint8_t>(key("precompiled_charsmap"))); },
        [&](error const&) { bytes(keys.template list<std::int8_t>(key("precompiled_charsmap"))); });
  }
  return v;
}

}  // namespace dfdx::text
