// SPDX-License-Identifier: BSL-1.0
// Published tokenizers on cases whose numbers others found: GPT-2, CLIP, Llama-2; and that text comes back.
#include "text/tokenizers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <sstream>

namespace tests::text_published {

using namespace tests;
using namespace dfdx::text;

namespace {

struct Case {
  std::string text;
  Ids ids;
};

std::vector<Case> json_cases(std::filesystem::path const& path) {
  std::vector<Case> r;
  for (auto const& c : nlohmann::json::parse(content(path)))
    r.push_back({c["text"].get<std::string>(), c["ids"].get<Ids>()});
  return r;
}

// "EncodingName: r50k_base", "Sample: ...", "Encoded: [1, 2]", an empty line; a sample may have several lines.
std::vector<Case> plan_cases(std::filesystem::path const& path, std::string const& encoding) {
  std::vector<Case> r;
  std::string const all = content(path),
                    begin = "EncodingName: " + encoding + "\nSample: ", middle = "\nEncoded: [";
  for (std::size_t at = 0; (at = all.find(begin, at)) != std::string::npos;) {
    at += begin.size();
    std::size_t const end = all.find(middle, at);
    Case c{all.substr(at, end - at), {}};
    std::size_t const close = all.find(']', end);
    std::istringstream numbers(all.substr(end + middle.size(), close - end - middle.size()));
    for (std::string number; std::getline(numbers, number, ',');) c.ids.push_back(std::stoi(number));
    r.push_back(std::move(c));
    at = close;
  }
  return r;
}

// Text comes back, whole or token by token.
void check_return(Tokenizer const& t) {
  std::mt19937 random(1);
  bool whole = true;
  for (int i = 0; i < 500; ++i) {
    std::string const text = random_text(random, 1 + random() % 30);
    Ids const ids = t.encode(text);
    CAPTURE(text);
    CHECK(t.decode(ids) == text);
    CHECK(streamed(t, ids, whole) == text);
  }
  CHECK(whole);
  for (int b = 0; b < 256; ++b)
    for (std::string const around : {"", "a", " "}) {
      std::string const text =
          around + std::string(1, static_cast<char>(static_cast<unsigned char>(b))) + around;
      CHECK(t.decode(t.encode(text)) == text);
    }
}

std::string unpacked(std::filesystem::path const& path) {
  std::string r;
  std::FILE* const pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 65536> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    r.append(buffer.data(), n);
  REQUIRE(pclose(pipe) == 0);
  return r;
}

}  // namespace

TEST_CASE("GPT-2: all cases, and text comes back", "[text]") {
  auto const folder = shared("tokenizers");
  if (folder.empty()) SKIP("no tokenizers: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Tokenizer const t = load_tokenizer(folder / "gpt2");
  CHECK(t.size() == 50257);
  CHECK(t.eos() == 50256);
  auto const cases = plan_cases(folder / "gpt-tokenizer_TestPlans.txt", "r50k_base");
  CHECK(cases.size() == 64);
  for (Case const& c : cases) {
    CAPTURE(c.text);
    CHECK(t.encode(c.text) == c.ids);
    CHECK(t.decode(c.ids) == c.text);
  }
  check_return(t);
  CHECK(t.encode("a<|endoftext|>", {.special = true}) == Ids{64, 50256});
  CHECK(t.encode("a<|endoftext|>") == Ids{64, 27, 91, 437, 1659, 5239, 91, 29});
  CHECK(t.decode({64, 50256}) == "a");
  CHECK(t.decode({64, 50256}, true) == "a<|endoftext|>");
}

TEST_CASE("CLIP: all cases", "[text]") {
  auto const folder = shared("tokenizers");
  if (folder.empty()) SKIP("no tokenizers: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Tokenizer const t(parse_clip(unpacked(folder / "clip_bpe_simple_vocab_16e6.txt.gz"), "clip"));
  CHECK(t.size() == 49408);
  auto const cases = json_cases(folder / "clip_cases.json");
  CHECK(cases.size() == 15);
  for (Case const& c : cases) {
    CAPTURE(c.text);
    CHECK(t.encode(c.text) == c.ids);
  }
  CHECK(t.decode(t.encode("A photo of  a CAT")) == "a photo of a cat");

  // The same in the form of tokenizer.json.
  using nlohmann::json;
  auto const parts = parse_clip(unpacked(folder / "clip_bpe_simple_vocab_16e6.txt.gz"), "clip");
  json j;
  j["model"] = {{"type", "BPE"}, {"unk_token", "<|endoftext|>"}, {"end_of_word_suffix", "</w>"}};
  for (std::size_t i = 0; i < parts.tokens.size(); ++i) j["model"]["vocab"][parts.tokens[i]] = i;
  for (auto const& [left, right] : parts.merges) j["model"]["merges"].push_back(left + " " + right);
  for (int id : {49406, 49407})
    j["added_tokens"].push_back({{"id", id}, {"content", t.token(id)}, {"special", true}});
  j["normalizer"] = {{"type", "Sequence"},
                     {"normalizers",
                      {{{"type", "NFC"}},
                       {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}},
                       {{"type", "Lowercase"}}}}};
  json const split = {
      {"type", "Split"},
      {"pattern", {{"Regex", "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"}}},
      {"behavior", "Removed"},
      {"invert", true}};
  json const bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}};
  j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
  j["post_processor"] = {
      {"type", "RobertaProcessing"}, {"sep", {"<|endoftext|>", 49407}}, {"cls", {"<|startoftext|>", 49406}}};
  Tokenizer const same(parse_tokenizer_json(j.dump(), "clip.json"));
  for (Case const& c : cases) CHECK(same.encode(c.text) == c.ids);
  CHECK(same.decode({49406, 320, 2368, 49407}) == "a cat");
}

TEST_CASE("Llama-2: all cases by SentencePiece's file and by llama2.c's, and text comes back", "[text]") {
  auto const llama = shared("llama"), folder = shared("tokenizers");
  if (llama.empty()) SKIP("no tokenizers: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  auto const cases = json_cases(folder / "llama2_cases.json");
  CHECK(cases.size() == 5);
  Tokenizer const model = load_tokenizer(llama / "tokenizer.model"),
                  bin = load_tokenizer(llama / "tokenizer.bin");
  for (Tokenizer const& t : {model, bin}) {
    CHECK(t.size() == 32000);
    for (Case const& c : cases) {
      CAPTURE(c.text);
      CHECK(t.encode(c.text) == c.ids);
      CHECK(t.decode(c.ids) == c.text);
    }
    check_return(t);
    CHECK(t.encode("</s>", {.bos = false}) != Ids{2});
    CHECK(t.encode("a</s>b", {.bos = false, .special = true}) == Ids{263, 2, 289});
    CHECK(t.decode({263, 2, 289}) == "ab");
  }
  CHECK(model.encode("Hello \xF0\x9F\xA6\x99") == Ids{1, 15043, 29871, 243, 162, 169, 156});
  std::mt19937 random(2);
  for (int i = 0; i < 500; ++i) {
    std::string const text = random_text(random, 20);
    CHECK(model.encode(text) == bin.encode(text));
  }
}

TEST_CASE("stories260K's vocabulary of 512", "[text]") {
  auto const llama = shared("llama");
  if (llama.empty()) SKIP("no tokenizers: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Tokenizer const t = load_tokenizer(llama / "tok512.bin", {.count = 512});
  CHECK(t.size() == 512);
  check_return(t);
  CHECK(error_of([&] {
          load_tokenizer(llama / "tok512.bin", {.count = 511});
        }).ends_with("it has more than 511 tokens"));
  CHECK(error_of([&] {
          load_tokenizer(llama / "tok512.bin", {.count = 513});
        }).ends_with("it ends inside token 512"));
}

TEST_CASE("a word of a megabyte takes seconds at most", "[text]") {
  auto const llama = shared("llama"), folder = shared("tokenizers");
  if (llama.empty()) SKIP("no tokenizers: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  auto const start = std::chrono::steady_clock::now();
  for (Tokenizer const& t : {load_tokenizer(llama / "tokenizer.model"), load_tokenizer(folder / "gpt2")})
    for (std::string const unit : {"a", " ", "\xE4\xB8\xAD", "\xFF", "aaaaaaab"}) {
      std::string text;
      while (text.size() < 1'000'000) text += unit;
      CHECK(t.decode(t.encode(text)) == text);
    }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(120));
}

}  // namespace tests::text_published
