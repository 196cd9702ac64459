// SPDX-License-Identifier: BSL-1.0
// Tokenizers of a GGUF file's keys: those of two files against the tokenizers that they were made of, and small ones of
// each kind.
#include "text/tokenizers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstring>

using namespace tests;
using namespace dfdx::text;

namespace {

// The keys of a file that is known to be good; the reader of the library is not a matter of text.
GgufVocabulary keys_of(std::filesystem::path const& path) {
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
  GgufVocabulary v;
  v.name = path.string();
  number(std::uint64_t{});
  for (auto keys = number(std::uint64_t{}); keys > 0; --keys) {
    std::string const key = text();
    auto const type = number(std::uint32_t{});
    auto const is = [&](char const* name) { return key == std::string("tokenizer.ggml.") + name; };
    if (type == 8) {
      std::string const value = text();
      if (is("model")) v.model = value;
      if (is("pre")) v.pre = value;
    } else if (type == 9) {
      auto const element = number(std::uint32_t{});
      for (auto n = number(std::uint64_t{}); n > 0; --n)
        if (element == 8) (is("merges") ? v.merges : v.tokens).push_back(text());
        else if (is("scores")) v.scores.push_back(number(float{}));
        else if (is("token_type")) v.token_types.push_back(number(std::int32_t{}));
        else at += sizes[element];
    } else if (is("bos_token_id")) {
      v.bos = number(std::uint32_t{});
    } else if (is("eos_token_id")) {
      v.eos = number(std::uint32_t{});
    } else if (is("unknown_token_id")) {
      v.unknown = number(std::uint32_t{});
    } else {
      at += sizes[type];
    }
  }
  return v;
}

}  // namespace

TEST_CASE("the vocabularies inside GGUF files are those of their tokenizers", "[text]") {
  auto const llama = shared("llama");
  if (llama.empty()) SKIP("no GGUF files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  std::mt19937 random(3);
  for (auto const& [gguf, other] : {std::pair{"llama-2-tiny-random.gguf", "tokenizer.model"},
                                    std::pair{"stories260K-f32.gguf", "tok512.bin"}}) {
    Tokenizer const a(parse_gguf(keys_of(llama / gguf))), b = load_tokenizer(llama / other);
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
