// SPDX-License-Identifier: BSL-1.0
// SentencePiece's tokenizer.model: the few fields of its protobuf message that encoding needs. Numbers in it come from
// outside, so each length is checked against what is left.
#pragma once

#include <bit>
#include <cstring>
#include <optional>

#include <dfdx/text/character_map.hpp>
#include <dfdx/text/parts.hpp>

namespace dfdx::text {

namespace detail {

// The fields of one protobuf message, one after another.
class ProtobufReader {
 public:
  ProtobufReader(std::string_view bytes, std::string const& name) : bytes_(bytes), name_(&name) {}

  struct Field {
    std::uint64_t number = 0;
    unsigned kind = 0;           // 0 a number, 1 eight bytes, 2 a string or message, 5 four bytes
    std::uint64_t value = 0;     // of kinds 0, 1 and 5
    std::string_view text = {};  // of kind 2
  };

  std::optional<Field> next() {
    if (at_ == bytes_.size()) return {};
    std::uint64_t const head = number();
    Field f{head >> 3, static_cast<unsigned>(head & 7)};
    if (f.number == 0) broken("has a field of number 0");
    switch (f.kind) {
      case 0: f.value = number(); break;
      case 1: f.value = fixed(8); break;
      case 2: {
        std::uint64_t const size = number();
        if (size > bytes_.size() - at_) broken("has a field that is longer than what is left");
        f.text = bytes_.substr(at_, static_cast<std::size_t>(size));
        at_ += static_cast<std::size_t>(size);
        break;
      }
      case 5: f.value = fixed(4); break;
      default: broken("has a field of kind " + std::to_string(f.kind));
    }
    return f;
  }

 private:
  [[noreturn]] void broken(std::string const& why) const {
    fail(*name_, "it is no SentencePiece model, or damaged: it " + why);
  }
  std::uint64_t number() {
    std::uint64_t r = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) broken("ends inside a number");
      auto const b = static_cast<unsigned char>(bytes_[at_++]);
      r |= std::uint64_t{b & 0x7Fu} << shift;
      if (b < 0x80) return r;
    }
    broken("has a number of more than ten bytes");
  }
  std::uint64_t fixed(std::size_t size) {
    if (size > bytes_.size() - at_) broken("ends inside a number");
    std::uint64_t r = 0;
    std::memcpy(&r, bytes_.data() + at_, size);
    at_ += size;
    return r;
  }

  std::string_view bytes_;
  std::string const* name_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// parse_sentencepiece - a tokenizer of the bytes of a tokenizer.model; `name` is for messages.
///
/// Errors    "tokenizer: <name>: ...": no protobuf of that kind, a model of words or characters, a piece without text;
///           and those of Tokenizer
/// Source    https://github.com/google/sentencepiece, sentencepiece_model.proto
inline TokenizerParts parse_sentencepiece(std::string_view bytes, std::string const& name) {
  static_assert(std::endian::native == std::endian::little, "protobuf is little-endian");
  using detail::ProtobufReader;
  TokenizerParts p;
  p.name = name;
  p.unknown = 0, p.bos = 1, p.eos = 2;
  std::uint64_t model = 1;
  bool prefix = true, squeeze = true, escape = true, suffix = false;
  std::string_view map;

  auto const need = [&](bool ok, char const* what) {
    if (!ok)
      detail::fail(
          name, std::string("it is no SentencePiece model, or damaged: its ") + what + " has another kind");
  };
  auto const read_piece = [&](std::string_view text) {
    ProtobufReader fields(text, name);
    std::string token;
    float score = 0;
    std::uint64_t type = 1;
    while (auto const f = fields.next()) {
      if (f->number == 1) need(f->kind == 2, "piece"), token = f->text;
      if (f->number == 2)
        need(f->kind == 5, "score"), score = std::bit_cast<float>(static_cast<std::uint32_t>(f->value));
      if (f->number == 3) need(f->kind == 0, "type"), type = f->value;
    }
    if (token.empty()) detail::fail(name, "piece " + std::to_string(p.tokens.size()) + " is empty");
    if (type < 1 || type > 6)
      detail::fail(name, "piece " + std::to_string(p.tokens.size()) + " has the type " +
                             std::to_string(type) + ", which there is not");
    p.tokens.push_back(std::move(token));
    p.scores.push_back(score);
    p.types.push_back(static_cast<TokenType>(type));
    if (type == 6) p.byte_fallback = true;
  };
  auto const read_trainer = [&](std::string_view text) {
    ProtobufReader fields(text, name);
    while (auto const f = fields.next()) {
      auto const id = static_cast<std::int32_t>(f->value);  // -1 is ten bytes
      if (f->number == 3) need(f->kind == 0, "model"), model = f->value;
      if (f->number == 24) suffix = f->value != 0;
      if (f->number == 40) p.unknown = id;
      if (f->number == 41) p.bos = id;
      if (f->number == 42) p.eos = id;
      if (f->number == 43) p.pad = id;
    }
  };
  auto const read_normalizer = [&](std::string_view text) {
    ProtobufReader fields(text, name);
    while (auto const f = fields.next()) {
      if (f->number == 2) need(f->kind == 2, "table of characters"), map = f->text;
      if (f->number == 3) prefix = f->value != 0;
      if (f->number == 4) squeeze = f->value != 0;
      if (f->number == 5) escape = f->value != 0;
    }
  };

  ProtobufReader fields(bytes, name);
  while (auto const f = fields.next()) {
    if (f->number > 3) continue;
    need(f->kind == 2, f->number == 1 ? "piece" : f->number == 2 ? "training" : "normalizer");
    if (f->number == 1) read_piece(f->text);
    else if (f->number == 2) read_trainer(f->text);
    else read_normalizer(f->text);
  }
  if (p.tokens.empty()) detail::fail(name, "it is no SentencePiece model: it has no pieces");
  if (model != 1 && model != 2)
    detail::fail(name, std::string("a model of ") +
                           (model == 3   ? "words"
                            : model == 4 ? "characters"
                                         : "another kind") +
                           " is not supported, only unigram and BPE are");
  if (suffix) detail::fail(name, "blanks behind words (treat_whitespace_as_suffix) are not supported");
  p.model = model == 1 ? TokenizerModel::unigram : TokenizerModel::sentencepiece;
  if (!map.empty())
    p.normal.push_back({NormalStep::Kind::map, "", "", std::make_shared<CharacterMap const>(name, map)});
  if (squeeze) p.normal.push_back({NormalStep::Kind::squeeze});
  if (prefix) p.space_prefix = SpacePrefix::after_control;
  p.escape_spaces = escape;
  // The file does not say what a model wants in front; those with bytes in their vocabulary (Llama's) want <s>.
  p.add_bos = p.byte_fallback && p.bos >= 0;
  return p;
}

}  // namespace dfdx::text
