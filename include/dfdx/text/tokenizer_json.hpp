// SPDX-License-Identifier: BSL-1.0
// Hugging Face's tokenizer.json, and vocabularies in JSON. What a file asks for and is not known here is an error and
// not left out, for the tokens would be others. Truncation, padding and the decoder's steps are not read.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

#include <dfdx/io/json.hpp>
#include <dfdx/text/character_map.hpp>
#include <dfdx/text/vocabulary_files.hpp>

namespace dfdx::text {

namespace detail {

using json = nlohmann::json;

// Refuses a name that occurs twice and nesting deeper than such files have, before it costs memory.
inline json parse_json(std::string_view text, std::string const& name) {
  constexpr int deepest = 24;
  dfdx::detail::CheckedJson r =
      dfdx::detail::parse_json({reinterpret_cast<std::byte const*>(text.data()), text.size()}, deepest);
  if (!r.fault.empty()) fail(name, "it " + r.fault);
  if (!r.value.is_object()) fail(name, "it is not a JSON object");
  return std::move(r.value);
}

// Fields of an object, with messages that name it.
class JsonView {
 public:
  JsonView(json const& value, std::string const& name, std::string what)
      : value_(&value), name_(&name), what_(std::move(what)) {
    if (!value.is_object()) detail::fail(name, what_ + " is not an object");
  }
  [[noreturn]] void fail(std::string const& why) const { detail::fail(*name_, what_ + ": " + why); }

  json const* find(char const* key) const {
    auto const found = value_->find(key);
    return found == value_->end() || found->is_null() ? nullptr : &*found;
  }
  json const& at(char const* key) const {
    if (json const* v = find(key)) return *v;
    fail(std::string("there is no ") + key);
  }
  std::string text(char const* key) const {
    json const& v = at(key);
    if (!v.is_string()) fail(std::string(key) + " is not a string");
    return v.get<std::string>();
  }
  std::string text_or(char const* key, char const* other) const { return find(key) ? text(key) : other; }
  bool flag(char const* key, bool other) const {
    json const* v = find(key);
    if (v && !v->is_boolean()) fail(std::string(key) + " is not true or false");
    return v ? v->get<bool>() : other;
  }
  std::int32_t id(char const* key) const { return id_of(at(key), key); }
  std::int32_t id_of(json const& v, std::string const& what) const {
    if (!v.is_number_unsigned() || v.get<std::uint64_t>() > (1u << 28))
      fail(what + " is not the number of a token");
    return static_cast<std::int32_t>(v.get<std::uint64_t>());
  }
  json const& list(char const* key) const {
    json const& v = at(key);
    if (!v.is_array()) fail(std::string(key) + " is not an array");
    return v;
  }
  JsonView part(char const* key) const { return {at(key), *name_, key}; }
  json const& value() const { return *value_; }
  std::string const& name() const { return *name_; }

 private:
  json const* value_;
  std::string const* name_;
  std::string what_;
};

// Gives a number to a token; the numbers may have a few holes, but the highest is no reason to take memory.
inline void place_token(TokenizerParts& p, std::string text, std::int32_t id, std::size_t known) {
  auto const i = static_cast<std::size_t>(id);
  if (i > known + 100000)
    fail(p.name, "token " + in_quotes(text) + " has the number " + std::to_string(id) + ", there are " +
                     std::to_string(known) + " tokens");
  if (p.tokens.size() <= i) p.tokens.resize(i + 1);
  if (!p.tokens[i].empty() && p.tokens[i] != text)
    fail(p.name,
         "token " + std::to_string(id) + " is both " + in_quotes(p.tokens[i]) + " and " + in_quotes(text));
  p.tokens[i] = std::move(text);
}

// {"text": number, ...}
inline void read_vocabulary(TokenizerParts& p, JsonView const& view) {
  for (auto const& [text, id] : view.value().items())
    place_token(p, text, view.id_of(id, in_quotes(text)), view.value().size());
}

// Everything that is no token becomes unused, so that it is never found.
inline void settle_types(TokenizerParts& p) {
  p.types.resize(p.tokens.size(), TokenType::normal);
  for (std::size_t i = 0; i < p.tokens.size(); ++i) {
    if (p.tokens[i].empty()) p.types[i] = TokenType::unused;
    if (p.byte_fallback && byte_of_token(p.tokens[i]) >= 0) p.types[i] = TokenType::byte;
  }
}

inline void read_merges(TokenizerParts& p, JsonView const& model) {
  for (json const& merge : model.list("merges")) {
    std::string const number = "merge " + std::to_string(p.merges.size());
    if (merge.is_string()) {
      auto const& text = merge.get_ref<std::string const&>();
      std::size_t const blank = text.find(' ');
      if (blank == std::string::npos) model.fail(number + " is no pair of tokens: " + in_quotes(text));
      p.merges.emplace_back(text.substr(0, blank), text.substr(blank + 1));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      p.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      model.fail(number + " is no pair of tokens");
    }
  }
}

inline void read_scored_pieces(TokenizerParts& p, JsonView const& model) {
  for (json const& piece : model.list("vocab")) {
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number())
      model.fail("piece " + std::to_string(p.tokens.size()) + " is no text with a score");
    p.tokens.push_back(piece[0].get<std::string>());
    auto const score = piece[1].get<double>();
    bool const fits = std::abs(score) <= double{std::numeric_limits<float>::max()};
    p.scores.push_back(fits ? static_cast<float>(score) : std::numeric_limits<float>::infinity());
  }
  if (model.find("unk_id")) p.unknown = model.id("unk_id");
}

inline void read_model(TokenizerParts& p, JsonView const& model) {
  std::string type = model.text_or("type", "");
  if (type.empty())
    type = model.find("merges") ? "BPE" : model.at("vocab").is_array() ? "Unigram" : "WordPiece";
  p.byte_fallback = model.flag("byte_fallback", false);
  if (type == "Unigram") {
    p.model = TokenizerModel::unigram;
    return read_scored_pieces(p, model);
  }
  read_vocabulary(p, model.part("vocab"));
  if (model.find("unk_token")) {
    std::string const unknown = model.text("unk_token");
    p.unknown = position(p, unknown);
    if (p.unknown < 0 && type == "WordPiece") model.fail("its unk_token is no token: " + in_quotes(unknown));
  }
  if (type == "BPE") {
    p.model = TokenizerModel::bpe;
    p.fuse_unknown = model.flag("fuse_unk", false);
    p.whole_pieces_first = model.flag("ignore_merges", false);
    p.end_of_word = model.text_or("end_of_word_suffix", "");
    if (!model.text_or("continuing_subword_prefix", "").empty())
      model.fail("continuing_subword_prefix is not supported with BPE");
    return read_merges(p, model);
  }
  if (type != "WordPiece") model.fail("the type " + in_quotes(type) + " is not supported");
  p.model = TokenizerModel::wordpiece;
  p.inside_word = model.text_or("continuing_subword_prefix", "##");
  if (model.find("max_input_chars_per_word"))
    p.longest_word = static_cast<std::size_t>(model.id("max_input_chars_per_word"));
}

inline void read_normalizer(TokenizerParts& p, JsonView const& step) {
  using Kind = NormalStep::Kind;
  std::string const type = step.text("type");
  if (type == "Sequence") {
    for (json const& one : step.list("normalizers")) read_normalizer(p, {one, step.name(), "normalizer"});
  } else if (type == "Prepend") {
    std::string const text = step.text("prepend");
    if (text != escaped_space && text != " ")
      step.fail("to prepend " + in_quotes(text) + " is not supported");
    p.space_prefix = SpacePrefix::always;
  } else if (type == "Replace") {
    JsonView const pattern = step.part("pattern");
    std::string const to = step.text("content");
    if (pattern.find("String")) {
      std::string const from = pattern.text("String");
      if (from == " " && to == escaped_space) p.escape_spaces = true;
      else p.normal.push_back({Kind::replace, from, to});
    } else {
      std::string const regex = pattern.text("Regex");
      if (regex == "\\s+" && to == " ") p.normal.push_back({Kind::one_space});
      else if (regex == " {2,}") p.normal.push_back({Kind::blanks, "", to});
      else step.fail("the regular expression " + in_quotes(regex) + " is not known");
    }
  } else if (type == "BertNormalizer") {
    bool const small = step.flag("lowercase", true), accents = step.flag("strip_accents", small);
    if (step.flag("clean_text", true)) p.normal.push_back({Kind::clean});
    if (step.flag("handle_chinese_chars", true)) p.normal.push_back({Kind::space_han});
    if (accents) p.normal.insert(p.normal.end(), {{Kind::nfd}, {Kind::strip_accents}});
    if (small) p.normal.push_back({Kind::lower});
  } else if (type == "Precompiled") {
    std::string bytes;
    if (!from_base64(step.text("precompiled_charsmap"), bytes))
      step.fail("precompiled_charsmap is not base64");
    p.normal.push_back({Kind::map, "", "", std::make_shared<CharacterMap const>(p.name, bytes)});
  } else if (type == "Strip") {
    if (step.flag("strip_left", true)) p.normal.push_back({Kind::trim_left});
    if (step.flag("strip_right", true)) p.normal.push_back({Kind::trim_right});
  } else if (type == "NFC" || type == "NFD" || type == "Lowercase" || type == "StripAccents") {
    p.normal.push_back({type == "NFC"         ? Kind::nfc
                        : type == "NFD"       ? Kind::nfd
                        : type == "Lowercase" ? Kind::lower
                                              : Kind::strip_accents});
  } else {
    step.fail("the type " + in_quotes(type) + " is not supported");
  }
}

inline void read_metaspace(TokenizerParts& p, JsonView const& step) {
  if (step.text_or("replacement", "\xE2\x96\x81") != escaped_space)
    step.fail("only U+2581 as a replacement is supported");
  std::string const scheme =
      step.text_or("prepend_scheme", step.flag("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never")
    step.fail("the prepend_scheme " + in_quotes(scheme) + " is not known");
  p.space_prefix = scheme == "always"  ? SpacePrefix::always
                   : scheme == "first" ? SpacePrefix::at_start
                                       : SpacePrefix::never;
  p.prefix_unless_space = true;
  p.escape_spaces = true;
  // Words that were cut at white space each get their prefix: as if one blank stood between them.
  if (!p.split.empty() && p.split.back().kind == SplitStep::Kind::whitespace) {
    using Kind = NormalStep::Kind;
    p.split.pop_back();
    p.normal.insert(p.normal.end(), {{Kind::one_space}, {Kind::trim_left}, {Kind::trim_right}});
  }
  if (step.flag("split", true)) p.split.push_back({SplitStep::Kind::before_space});
}

inline void read_split(TokenizerParts& p, JsonView const& step) {
  JsonView const pattern = step.part("pattern");
  std::string const behavior = step.text("behavior");
  if (pattern.find("String") && pattern.text("String") == " " && behavior == "MergedWithPrevious")
    return;  // Gemma's, behind a normalizer that leaves no blank
  std::string const regex = pattern.text("Regex");
  auto const known = pattern_of_regex(regex);
  if (!known) {
    bool const digit = regex == "\\p{N}" || regex == "\\d" || regex == "[0-9]";
    if (!digit || behavior != "Isolated")
      step.fail("the regular expression " + in_quotes(regex) + " is not known");
    return p.split.push_back({SplitStep::Kind::digits});
  }
  if (behavior != "Isolated" && !(behavior == "Removed" && step.flag("invert", false)))
    step.fail("the behavior " + in_quotes(behavior) + " is not supported");
  p.split.push_back({SplitStep::Kind::pattern, *known});
}

inline void read_pre_tokenizer(TokenizerParts& p, JsonView const& step) {
  using Kind = SplitStep::Kind;
  std::string const type = step.text("type");
  if (type == "Sequence") {
    for (json const& one : step.list("pretokenizers"))
      read_pre_tokenizer(p, {one, step.name(), "pre_tokenizer"});
  } else if (type == "ByteLevel") {
    if (p.model != TokenizerModel::bpe) step.fail("ByteLevel is supported with BPE only");
    p.model = TokenizerModel::byte_bpe;
    if (step.flag("add_prefix_space", true))
      p.space_prefix = SpacePrefix::always, p.prefix_unless_space = true;
    if (step.flag("use_regex", true)) p.split.push_back({Kind::pattern, Pattern::gpt2});
  } else if (type == "Split") {
    read_split(p, step);
  } else if (type == "Metaspace") {
    read_metaspace(p, step);
  } else if (type == "Digits") {
    p.split.push_back({step.flag("individual_digits", false) ? Kind::digits : Kind::digit_runs});
  } else if (type == "BertPreTokenizer") {
    p.split.insert(p.split.end(), {{Kind::whitespace}, {Kind::punctuation}});
  } else if (type == "WhitespaceSplit" || type == "Whitespace") {
    p.split.push_back({type == "Whitespace" ? Kind::words : Kind::whitespace});
  } else if (type == "Punctuation" && step.text_or("behavior", "Isolated") == "Isolated") {
    p.split.push_back({Kind::punctuation});
  } else {
    step.fail("the type " + in_quotes(type) + " is not supported");
  }
}

}  // namespace detail

}  // namespace dfdx::text
