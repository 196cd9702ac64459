// SPDX-License-Identifier: BSL-1.0
// A whole tokenizer.json: model, steps, added tokens and what is put around a text; and GPT-2's encoder.json with
// vocab.bpe. The parts are read in text/tokenizer_json.hpp.
#pragma once

#include <dfdx/text/tokenizer_json.hpp>

namespace dfdx::text {

namespace detail {

inline void read_added_tokens(TokenizerParts& p, json const& list) {
  if (!list.is_array()) fail(p.name, "added_tokens is not an array");
  std::size_t const known = p.tokens.size() + list.size();
  for (json const& one : list) {
    JsonView const token(one, p.name, "added token");
    std::string const text = token.text("content");
    std::int32_t const id = token.id("id");
    if (text.empty()) token.fail("its content is empty");
    place_token(p, text, id, known);
    p.types.resize(std::max(p.types.size(), p.tokens.size()), TokenType::normal);
    p.types[static_cast<std::size_t>(id)] =
        token.flag("special", false) ? TokenType::control : TokenType::user_defined;
    TokenFlags const flags{id, token.flag("lstrip", false), token.flag("rstrip", false),
                           token.flag("single_word", false)};
    if (flags.takes_left || flags.takes_right || flags.whole_word) p.flags.push_back(flags);
  }
}

inline std::int32_t pair_id(JsonView const& step, char const* key) {
  json const& pair = step.list(key);
  if (pair.size() != 2) step.fail(std::string(key) + " is not a text with a number");
  return step.id_of(pair[1], key);
}

inline void read_template(TokenizerParts& p, JsonView const& step) {
  bool behind = false;
  for (json const& one : step.list("single")) {
    JsonView const piece(one, p.name, "post_processor");
    if (piece.find("Sequence")) {
      behind = true;
      continue;
    }
    std::string const id = piece.part("SpecialToken").text("id");
    JsonView const tokens = step.part("special_tokens");
    json const& ids = JsonView(tokens.at(id.c_str()), p.name, "special_tokens").list("ids");
    for (json const& number : ids)
      (behind ? p.after : p.before).push_back(step.id_of(number, "a number of " + in_quotes(id)));
  }
}

inline void read_post_processor(TokenizerParts& p, JsonView const& step) {
  std::string const type = step.text("type");
  if (type == "Sequence") {
    for (json const& one : step.list("processors")) read_post_processor(p, {one, p.name, "post_processor"});
  } else if (type == "TemplateProcessing") {
    read_template(p, step);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    p.before = {pair_id(step, "cls")};
    p.after = {pair_id(step, "sep")};
  } else if (type != "ByteLevel") {
    step.fail("the type " + in_quotes(type) + " is not supported");
  }
}

// "<s>" or {"content": "<s>"}, as tokenizer_config.json has it; -1 if there is none.
inline std::int32_t configured(TokenizerParts const& p, JsonView const& config, char const* key) {
  json const* v = config.find(key);
  if (v && v->is_object()) v = JsonView(*v, config.name(), key).find("content");
  return v && v->is_string() ? position(p, v->get_ref<std::string const&>()) : -1;
}

}  // namespace detail

/// parse_tokenizer_json - a tokenizer of the text of a tokenizer.json and, if there is one, of the
/// tokenizer_config.json beside it, which names the tokens that begin and end a text.
///
/// Errors    "tokenizer: <name>: pre_tokenizer: the regular expression '...' is not known", and so on for all that is
///           missing, of the wrong kind or not supported; those of Tokenizer
/// Source    https://huggingface.co/docs/tokenizers
inline TokenizerParts parse_tokenizer_json(std::string_view text, std::string const& name,
                                           std::string_view config_text = {},
                                           std::string const& config_name = {}) {
  detail::json const all = detail::parse_json(text, name);
  detail::JsonView const file(all, name, "the file");
  TokenizerParts p;
  p.name = name;
  detail::read_model(p, file.part("model"));
  if (auto const* v = file.find("normalizer")) detail::read_normalizer(p, {*v, name, "normalizer"});
  if (auto const* v = file.find("pre_tokenizer")) detail::read_pre_tokenizer(p, {*v, name, "pre_tokenizer"});
  if (auto const* v = file.find("added_tokens")) detail::read_added_tokens(p, *v);
  if (auto const* v = file.find("post_processor"))
    detail::read_post_processor(p, {*v, name, "post_processor"});
  detail::settle_types(p);
  if (p.model == TokenizerModel::unigram) p.scores.resize(p.tokens.size(), 0.0f);
  p.add_bos = !p.before.empty();
  p.add_eos = !p.after.empty();
  if (p.add_bos) p.bos = p.before.front();
  if (p.add_eos) p.eos = p.after.back();
  if (!config_text.empty()) {
    detail::json const config = detail::parse_json(config_text, config_name);
    detail::JsonView const view(config, config_name, "the file");
    if (p.bos < 0) p.bos = detail::configured(p, view, "bos_token");
    if (p.eos < 0) p.eos = detail::configured(p, view, "eos_token");
    p.pad = detail::configured(p, view, "pad_token");
  }
  detail::guess_ends(p);
  // Where the unknown token is also the last one, as CLIP's, it is that first of all.
  if (p.unknown >= 0 && static_cast<std::size_t>(p.unknown) < p.types.size() && p.unknown != p.bos &&
      p.unknown != p.eos)
    p.types[static_cast<std::size_t>(p.unknown)] = TokenType::unknown;
  return p;
}

/// parse_gpt2 - GPT-2's tokenizer of the texts of encoder.json (vocab.json) and vocab.bpe (merges.txt).
///
/// Errors    "tokenizer: <name>: merge 12 names no token: 'ab c'", and those of parse_tokenizer_json
/// Source    https://github.com/openai/gpt-2, encoder.py
inline TokenizerParts parse_gpt2(std::string_view vocabulary, std::string_view merges,
                                 std::string const& name, std::string const& merges_name) {
  detail::json const all = detail::parse_json(vocabulary, name);
  TokenizerParts p;
  p.name = name;
  detail::read_vocabulary(p, {all, name, "the vocabulary"});
  p.merges = detail::parse_merges(merges, merges_name);
  detail::settle_types(p);
  for (std::size_t i = 0; i < p.tokens.size(); ++i)
    if (p.tokens[i].starts_with("<|") && p.tokens[i].ends_with("|>") && p.tokens[i].size() > 4)
      p.types[i] = TokenType::control;
  if (detail::position(p, "a</w>") >= 0 && detail::position(p, "<|startoftext|>") >= 0) {  // CLIP's
    p.end_of_word = "</w>";
    p.normal = {{NormalStep::Kind::nfc}, {NormalStep::Kind::one_space}, {NormalStep::Kind::lower}};
    p.add_bos = p.add_eos = true;
    detail::split_by(p, Pattern::clip);
  } else {
    detail::split_by(p, detail::known_pattern(p.tokens.size()).value_or(Pattern::gpt2));
  }
  detail::guess_ends(p);
  return p;
}

}  // namespace dfdx::text
