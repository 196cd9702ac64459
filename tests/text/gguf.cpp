// SPDX-License-Identifier: BSL-1.0
// Tokenizers of a GGUF file's keys: those of two files against the tokenizers that they were made of, and small ones of
// each kind.
#include "text/tokenizers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstring>
#include <map>
#include <variant>

namespace tests::text_gguf {

using namespace tests;
using namespace dfdx::text;

namespace {

// Keys as a reader of GGUF gives them.
struct Keys {
  using Value = std::variant<std::int64_t, bool, std::string, std::vector<std::string>, std::vector<float>,
                             std::vector<std::int32_t>, std::vector<std::uint8_t>, std::vector<std::int8_t>>;
  std::map<std::string, Value> values;

  std::string source() const { return "g"; }
  Value const* find(std::string const& key) const {
    auto const found = values.find(key);
    return found == values.end() ? nullptr : &found->second;
  }
  template <class T>
  T const& as(std::string const& key) const {
    auto const* v = std::get_if<T>(find(key));
    if (v == nullptr) throw dfdx::error(key + " has another type");
    return *v;
  }
  std::string const& text(std::string const& key) const { return as<std::string>(key); }
  std::int64_t integer(std::string const& key) const { return as<std::int64_t>(key); }
  bool flag(std::string const& key, bool) const { return as<bool>(key); }
  template <class T>
  std::vector<T> const& list(std::string const& key) const {
    return as<std::vector<T>>(key);
  }
};

// The keys of a file that is known to be good; the reader of the library is not a matter of text.
Keys keys_of(std::filesystem::path const& path) {
  std::string const file = content(path);
  std::size_t at = 8;
  auto const number = [&]<class T>(T) {
    T r;
    std::memcpy(&r, file.data() + at, sizeof r);
    at += sizeof r;
    return r;
  };
  auto const text = [&] {
    auto const size = static_cast<std::size_t>(number(std::uint64_t{}));
    at += size;
    return file.substr(at - size, size);
  };
  constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  Keys r;
  number(std::uint64_t{});
  for (auto keys = number(std::uint64_t{}); keys > 0; --keys) {
    std::string const key = text();
    auto const type = number(std::uint32_t{});
    if (type == 4) {
      r.values[key] = std::int64_t{number(std::uint32_t{})};
    } else if (type == 7) {
      r.values[key] = number(std::uint8_t{}) != 0;
    } else if (type == 8) {
      r.values[key] = text();
    } else if (type == 9) {
      auto const element = number(std::uint32_t{});
      std::vector<std::string> texts;
      std::vector<float> floats;
      std::vector<std::int32_t> integers;
      for (auto n = number(std::uint64_t{}); n > 0; --n)
        if (element == 8) texts.push_back(text());
        else if (element == 6) floats.push_back(number(float{}));
        else if (element == 5) integers.push_back(number(std::int32_t{}));
        else at += sizes[element];
      if (element == 8) r.values[key] = texts;
      if (element == 6) r.values[key] = floats;
      if (element == 5) r.values[key] = integers;
    } else {
      at += sizes[type];
    }
  }
  return r;
}

}  // namespace

TEST_CASE("the vocabularies inside GGUF files are those of their tokenizers", "[text]") {
  auto const llama = shared("llama");
  if (llama.empty()) SKIP("no GGUF files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  std::mt19937 random(3);
  for (auto const& [gguf, other] : {std::pair{"llama-2-tiny-random.gguf", "tokenizer.model"},
                                    std::pair{"stories260K-f32.gguf", "tok512.bin"}}) {
    Tokenizer const a(parse_gguf(gguf_vocabulary(keys_of(llama / gguf)))), b = load_tokenizer(llama / other);
    CAPTURE(gguf);
    CHECK(a.size() == b.size());
    CHECK(a.bos() == 1);
    CHECK(a.eos() == 2);
    for (int i = 0; i < 300; ++i) {
      std::string const text = random_text(random, 1 + random() % 20);
      CAPTURE(text);
      CHECK(a.encode(text) == b.encode(text));
      CHECK(a.decode(a.encode(text)) == text);
    }
  }
}

TEST_CASE("GGUF's kinds of tokenizers", "[text]") {
  GgufVocabulary v;
  v.name = "g";
  v.model = "gpt2";
  v.pre = "gpt-2";
  v.tokens = {"a",
              "b",
              "\xC4\xA0",
              "ab",
              "\xC4\xA0"
              "ab",
              "<|end|>",
              "  "};
  v.merges = {"a b", "\xC4\xA0 ab"};
  v.token_types = {1, 1, 1, 1, 1, 3, 4};
  v.bos = v.eos = 5;
  Tokenizer const bytes{parse_gguf(v)};
  CHECK(bytes.encode("ab ab") == Ids{3, 4});
  CHECK(bytes.encode("ab<|end|>", {.special = true}) == Ids{3, 5});
  CHECK(bytes.encode("ab  a") == Ids{3, 6, 0});  // what a user defined is always found
  CHECK(bytes.encode("b", {.bos = true}) == Ids{5, 1});
  CHECK(error_of([&] { bytes.encode("z"); }) == "tokenizer: g: no token for 'z' and no unknown token");

  v.pre = "what";
  CHECK(error_of([&] { parse_gguf(v); }) == "tokenizer: g: the pre-tokenizer 'what' is not known");
  v.pre = "starcoder";
  CHECK(Tokenizer(parse_gguf(v)).encode("ab ab") == Ids{3, 4});
  v.pre = "llama-bpe";
  CHECK(Tokenizer(parse_gguf(v)).adds_bos());
  v.merges.push_back("ab");
  CHECK(error_of([&] { parse_gguf(v); }) == "tokenizer: g: merge 2 is no pair of tokens: 'ab'");
  v.merges.back() = "b zz";
  CHECK(error_of([&] { Tokenizer{parse_gguf(v)}; }) == "tokenizer: g: merge 2 names no token: 'zz'");
  v.merges.clear();
  CHECK(error_of([&] { parse_gguf(v); }) == "tokenizer: g: there are no merges");
  v.bos = 7;
  CHECK(error_of([&] { parse_gguf(v); }) == "tokenizer: g: it names token 7 and has 7");
  v.model = "rwkv";
  CHECK(error_of([&] { parse_gguf(v); }) == "tokenizer: g: the tokenizer 'rwkv' is not supported");

  GgufVocabulary words;
  words.name = "w";
  words.model = "bert";
  words.tokens = {"[UNK]", "[CLS]", "[SEP]", "\xE2\x96\x81play", "ing", "\xE2\x96\x81!"};
  words.token_types = {2, 3, 3, 1, 1, 1};
  words.cls = 1, words.separator = 2, words.unknown = 0;
  Tokenizer const bert{parse_gguf(words)};
  CHECK(bert.encode("Playing! x") == Ids{1, 3, 4, 5, 0, 2});
  CHECK(bert.decode({1, 3, 4, 5, 2}) == "playing !");

  GgufVocabulary pieces;
  pieces.name = "p";
  pieces.model = "t5";
  pieces.tokens = {"<pad>",
                   "</s>",
                   "<unk>",
                   "\xE2\x96\x81"
                   "a",
                   "b",
                   "ab",
                   "\xE2\x96\x81"};
  pieces.scores = {0, 0, 0, -1, -2, -2.5f, -3};
  pieces.token_types = {3, 3, 2, 1, 1, 1, 1};
  pieces.add_space_prefix = true;
  Tokenizer const t5{parse_gguf(pieces)};
  CHECK(t5.encode("ab") == Ids{3, 4, 1});
  CHECK(t5.encode("zb") == Ids{6, 2, 4, 1});
  CHECK(t5.decode({3, 4, 1}) == "ab");
}

TEST_CASE("GGUF's keys become a vocabulary", "[text]") {
  Keys k;
  CHECK(error_of([&] { gguf_vocabulary(k); }) == "tokenizer: g: there is no tokenizer in it");
  k.values["tokenizer.ggml.model"] = std::string("t5");
  k.values["tokenizer.ggml.tokens"] = std::vector<std::string>{"a", "b"};
  k.values["tokenizer.ggml.eos_token_id"] = std::int64_t{1};
  k.values["tokenizer.ggml.add_eos_token"] = false;
  k.values["tokenizer.ggml.precompiled_charsmap"] = std::vector<std::int8_t>{4, 0, -1};
  GgufVocabulary const v = gguf_vocabulary(k);
  CHECK(v.model == "t5");
  CHECK(v.tokens.size() == 2);
  CHECK(v.eos == 1);
  CHECK(v.add_eos == false);
  CHECK_FALSE(v.bos.has_value());
  CHECK(v.character_map == std::string("\4\0\xFF", 3));
  k.values["tokenizer.ggml.tokens"] = true;
  CHECK_FALSE(error_of([&] { gguf_vocabulary(k); }).empty());
}

}  // namespace tests::text_gguf
