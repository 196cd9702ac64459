// SPDX-License-Identifier: BSL-1.0
// Files of the other formats: what they give, and what damaged or hostile ones are told.
#include "text/tokenizers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <bit>
#include <limits>

namespace tests::text_files {

using namespace tests;
using namespace dfdx::text;

namespace {

// --- protobuf, written -------------------------------------------------------------------------------------------
std::string number(std::uint64_t n) {
  std::string r;
  for (; n >= 0x80; n >>= 7) r.push_back(static_cast<char>(static_cast<unsigned char>((n & 0x7F) | 0x80)));
  return r + static_cast<char>(n);
}
std::string field(unsigned id, std::string const& text) {
  return number(id << 3 | 2) + number(text.size()) + text;
}
std::string field(unsigned id, std::uint64_t n) { return number(id << 3) + number(n); }
std::string four(std::uint32_t n) {
  std::string r;
  for (int i = 0; i < 4; ++i) r.push_back(static_cast<char>(static_cast<unsigned char>(n >> (8 * i) & 0xFF)));
  return r;
}
std::string four(float x) { return four(std::bit_cast<std::uint32_t>(x)); }
std::string piece(std::string const& text, float score, std::uint64_t type = 1) {
  return field(1, field(1, text) + number(2 << 3 | 5) + four(score) + field(3, type));
}
std::string small_model(std::uint64_t kind, std::string const& normalizer = "") {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\xE2\x96\x81", -1) +
         piece("a", -2) +
         piece(
             "\xE2\x96\x81"
             "a",
             -2.5f) +
         piece("b", -3) + piece("ab", -9) + field(2, field(3, kind)) + field(3, normalizer);
}

std::string model_refusal(std::string const& bytes) {
  return error_of([&] { Tokenizer{parse_sentencepiece(bytes, "m")}; });
}
std::string bin_refusal(std::string const& bytes, std::size_t count = 0) {
  return error_of([&] { Tokenizer{parse_llama2c(bytes, "b", count)}; });
}
std::string tiktoken_refusal(std::string const& text) {
  return error_of([&] { Tokenizer{parse_tiktoken(text, "t", Pattern::gpt2)}; });
}

std::string bin_file() {
  std::string r = four(std::uint32_t{6});
  auto const put = [&](std::string const& token, float score) {
    r += four(score) + four(static_cast<std::uint32_t>(token.size())) + token;
  };
  put("<unk>", 0), put("\n<s>\n", 0), put("\n</s>\n", 0);
  for (int b = 0; b < 256; ++b) {
    constexpr char digits[] = "0123456789ABCDEF";
    put(std::string("<0x") + digits[b / 16] + digits[b % 16] + ">", 0);
  }
  put(" ", -1), put("a", -2), put(" a", -0.5f);
  return r;
}

}  // namespace

TEST_CASE("a SentencePiece model's fields decide how text is read", "[text]") {
  Tokenizer const bpe(parse_sentencepiece(small_model(2), "m"));
  CHECK(bpe.encode("  ab   a ") == Ids{5, 6, 5});  // blanks are squeezed unless the file says otherwise
  CHECK(bpe.encode("zzb") == Ids{3, 0, 6});
  CHECK_FALSE(bpe.adds_bos());
  Tokenizer const unigram(parse_sentencepiece(small_model(1), "m"));
  CHECK(unigram.encode("ab") == Ids{5, 6});
  CHECK(unigram.encode("zzb") == Ids{3, 0, 6});
  CHECK(unigram.encode("").empty());
  Tokenizer const plain(parse_sentencepiece(small_model(1, field(3, 0) + field(4, 0)), "m"));
  CHECK(plain.encode("ab") == Ids{4, 6});
  CHECK(plain.encode("  ") == Ids{3, 3});
  // Ends that there are not are minus one, in ten bytes.
  Tokenizer const none(parse_sentencepiece(small_model(1) + field(2, field(41, ~std::uint64_t{0})), "m"));
  CHECK(none.bos() == -1);
}

TEST_CASE("a table of characters is applied, the longest first", "[text]") {
  // A double array that has "A" for "a" and "AB" for "x", written by hand: the root's children are at 256 ^ byte.
  std::vector<std::uint32_t> units(1024, 0);
  auto const node = [](std::uint32_t offset, bool leaf, std::uint32_t label) {
    return offset << 10 | (leaf ? 1u << 8 : 0u) | label;
  };
  units[0] = node(256, false, 0);
  units[256 ^ 'A'] = node((256 ^ 'A') ^ 512, true, 'A');
  units[512] = 1u << 31 | 0;
  units[512 ^ 'B'] = node((512 ^ 'B') ^ 768, true, 'B');
  units[768] = 1u << 31 | 2;
  std::string bytes = four(static_cast<std::uint32_t>(4 * units.size()));
  for (std::uint32_t u : units) bytes += four(u);
  bytes += std::string("a\0x\0", 4);
  CharacterMap const map("m", bytes);
  CHECK(map.apply("AABzA\xFF") == "axza\xFF");
  std::string const damaged = "tokenizer: m: the table of characters is damaged";
  CHECK(error_of([&] { CharacterMap("m", "abc"); }) == damaged);
  CHECK(error_of([&] { CharacterMap("m", four(std::uint32_t{8}) + "1234"); }) == damaged);
  CHECK(error_of([&] { CharacterMap("m", four(std::uint32_t{4}) + "1234" + "ab"); }) == damaged);
  Tokenizer const t(parse_sentencepiece(small_model(1, field(2, bytes)), "m"));
  CHECK(t.encode("Ab") == Ids{5, 6});
}

TEST_CASE("SentencePiece models that are damaged", "[text]") {
  std::string const is_not = "tokenizer: m: it is no SentencePiece model, or damaged: ";
  CHECK(model_refusal("") == "tokenizer: m: it is no SentencePiece model: it has no pieces");
  CHECK(model_refusal("\x0A\xFF\xFF\xFF\xFF\x0F") ==
        is_not + "it has a field that is longer than what is left");
  CHECK(model_refusal("\x0A\x80") == is_not + "it ends inside a number");
  CHECK(model_refusal("\x0A" + std::string(12, '\xFF')) == is_not + "it has a number of more than ten bytes");
  CHECK(model_refusal("\x0B") == is_not + "it has a field of kind 3");
  CHECK(model_refusal(std::string(1, '\x02') + '\0') == is_not + "it has a field of number 0");
  CHECK(model_refusal(field(1, 7)) == is_not + "its piece has another kind");
  CHECK(model_refusal(field(1, field(2, "abcd"))) == is_not + "its score has another kind");
  CHECK(model_refusal(piece("", 0)) == "tokenizer: m: piece 0 is empty");
  CHECK(model_refusal(piece("a", 0, 9)) == "tokenizer: m: piece 0 has the type 9, which there is not");
  float const infinite = std::numeric_limits<float>::infinity();
  CHECK(model_refusal(small_model(1) + piece("c", infinite)).ends_with("the score of token 8 is not finite"));
  CHECK(model_refusal(small_model(1) + piece("a", 0)).ends_with("token 8 is token 4 again: 'a'"));
  CHECK(model_refusal(small_model(1) + piece("a\xC3", 0)).ends_with("token 8 is not UTF-8: 'a\\xC3'"));
  CHECK(model_refusal(piece("a", 0)) == "tokenizer: m: the first token is 1, there are 1 tokens");
  CHECK(
      model_refusal(small_model(3)).ends_with("a model of words is not supported, only unigram and BPE are"));
  CHECK(model_refusal(small_model(1) + field(2, field(41, 99)))
            .ends_with("the first token is 99, there are 8 tokens"));
  CHECK(model_refusal(small_model(1, field(2, "xyz"))).ends_with("the table of characters is damaged"));
  // Cut anywhere, or with any one bit changed: an error or a tokenizer, and no other end.
  std::string const good = small_model(1) + piece("<0x41>", 0, 6);
  for (std::size_t n = 0; n < good.size(); ++n) model_refusal(good.substr(0, n));
  for (std::size_t i = 0; i < 8 * good.size(); ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << i % 8));
    model_refusal(bad);
  }
}

TEST_CASE("llama2.c's files, whole and damaged", "[text]") {
  std::string const good = bin_file();
  Tokenizer const t(parse_llama2c(good, "b"));
  CHECK(t.size() == 262);
  CHECK(t.encode("a a\n") == Ids{1, 261, 261, 3 + 10});
  CHECK(t.encode("").size() == 1);
  CHECK(bin_refusal("ab") == "tokenizer: b: it is shorter than its first number");
  CHECK(bin_refusal(four(0x7FFFFFFFu)).ends_with("the longest token would have 2147483647 bytes"));
  CHECK(bin_refusal(four(7u)) == "tokenizer: b: it has 0 tokens, fewer than the 259 that all have");
  CHECK(bin_refusal(four(7u) + four(0.f) + four(2000000000u)) ==
        "tokenizer: b: token 0 is 2000000000 bytes long, the longest 7");
  CHECK(bin_refusal(four(7u) + four(0.f) + four(0xFFFFFFFFu)) ==
        "tokenizer: b: token 0 is -1 bytes long, the longest 7");
  CHECK(bin_refusal(good.substr(0, good.size() - 1)) == "tokenizer: b: it ends inside token 261");
  CHECK(bin_refusal(good, 1000000000000) == "tokenizer: b: it ends inside token 262");
  CHECK(bin_refusal(good, 261) == "tokenizer: b: it has more than 261 tokens");
  std::string other = good;
  other[other.find("<0x41>") + 3] = '5';
  CHECK(bin_refusal(other) == "tokenizer: b: token 68 is not that of a byte: '<0x51>'");
  for (std::size_t n = 0; n < good.size() - 40; n += 7) CHECK_FALSE(bin_refusal(good.substr(0, n)).empty());
}

TEST_CASE("tiktoken's files, whole and damaged", "[text]") {
  // a, b, ab, the two bytes of a letter, and aba.
  std::string const good = "YQ== 0\nYg== 1\nYWI= 2\nww== 3\nqQ== 4\nYWJh 5\n";
  Tokenizer const t(parse_tiktoken(good, "t", Pattern::llama3, {{"<|end|>", 8}}));
  CHECK(t.encode("aba\xC3\xA9") == Ids{5, 3, 4});
  CHECK(t.encode("ababa") == Ids{2, 5});
  CHECK(t.encode("ab<|end|>", {.special = true}) == Ids{2, 8});
  CHECK(t.size() == 9);
  CHECK(tiktoken_refusal(good).empty());
  CHECK(tiktoken_refusal("") == "tokenizer: t: there are no tokens");
  CHECK(tiktoken_refusal("YQ== 0\nYg==\n") == "tokenizer: t: line 2 is not base64, a blank and a number");
  for (char const* line : {"YQ= 0\n", "Y*== 0\n", "YQ== 99999999999999\n", "YQ== -1\n", "YQ== 0 \n", " 0\n"})
    CHECK(tiktoken_refusal(line) == "tokenizer: t: line 1 is not base64, a blank and a number");
  CHECK(tiktoken_refusal("YQ== 0\nYg== 4000000000\n") ==
        "tokenizer: t: line 2: token 4000000000 where 1 is next");
  CHECK(tiktoken_refusal("YQ== 0\nYQ== 1\n") == "tokenizer: t: token 1 is token 0 again: 'a'");
  CHECK(error_of([&] { parse_tiktoken(good, "t"); }) ==
        "tokenizer: t: it has 6 tokens, which is no vocabulary that is known by its size: give a pattern");
  CHECK(error_of([&] { parse_tiktoken(good, "t", Pattern::gpt2, {{"<x>", 2000000000}}); }) ==
        "tokenizer: t: the control token '<x>' has the number 2000000000, the file has 6 tokens");
  CHECK(error_of([&] { parse_tiktoken(good, "t", Pattern::gpt2, {{"<x>", 3}}); }) ==
        "tokenizer: t: the control token '<x>' has the number 3, the file has 6 tokens");
}

TEST_CASE("files are known by what is in them, and refused by name", "[text]") {
  TemporaryFolder const folder;
  auto const refusal = [&](std::string const& name) {
    return error_of([&] { load_tokenizer(folder / name); });
  };
  auto const path = [&](std::string const& name) { return "tokenizer: " + (folder / name).string() + ": "; };
  CHECK(refusal("none") ==
        "tokenizer: cannot read " + (folder / "none").string() + ": No such file or directory");
  CHECK(refusal(".").find("there is none of tokenizer.json") != std::string::npos);
  folder.write("empty", "");
  CHECK(refusal("empty") == path("empty") + "it is empty");
  folder.write("packed", "\x1F\x8B\x08");
  CHECK(refusal("packed") == path("packed") + "it is packed by gzip: unpack it first");
  folder.write("x.gguf", "GGUF1234");
  CHECK(refusal("x.gguf").find("x.gguf") != std::string::npos);
  folder.write("vocab.bpe", "#version: 0.2\na b\n");
  CHECK(refusal("vocab.bpe").find("a vocabulary needs its merges") != std::string::npos);
  folder.write("encoder.json", R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})");
  CHECK(load_tokenizer(folder / "vocab.bpe").encode("ab") == Ids{2});
  CHECK(load_tokenizer(folder / "encoder.json").eos() == 3);
  CHECK(load_tokenizer(folder / ".").size() == 4);
  folder.write("vocab.bpe", "#version: 0.2\na b\nb a\n");
  CHECK(refusal("encoder.json") == path("encoder.json") + "merge 1 names no token: 'ba'");
  folder.write("vocab.bpe", "a b c\n");
  CHECK(refusal("vocab.bpe") ==
        path("vocab.bpe") + "line 1 is no merge, two tokens and a blank between: 'a b c'");
  folder.write("encoder.json", R"({"a": 0, "b": 1, "ab": )");
  CHECK(refusal("encoder.json") == path("encoder.json") + "it is not valid JSON in UTF-8");
  folder.write("tokenizer.model", small_model(2));
  CHECK(load_tokenizer(folder / ".").size() == 8);
  folder.write("tokenizer.bin", bin_file());
  CHECK(load_tokenizer(folder / "tokenizer.bin").size() == 262);
  folder.write("llama3.model", "YQ== 0\nYg== 1\n");
  CHECK(load_tokenizer(folder / "llama3.model", {.pattern = Pattern::llama3}).encode("ab") == Ids{0, 1});
  folder.write("vocab.txt", "[UNK]\nab\n");
  CHECK(load_tokenizer(folder / "vocab.txt").encode("AB") == Ids{1});
  folder.write("tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK(load_tokenizer(folder / "vocab.txt").encode("AB") == Ids{0});
}

}  // namespace tests::text_files
