// SPDX-License-Identifier: BSL-1.0
// Hugging Face's tokenizer.json: files of each kind written here, published vocabularies in that form, and what is
// refused.
#include "text/tokenizers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>

namespace tests::text_tokenizer_json {

using namespace tests;
using namespace dfdx::text;
using nlohmann::json;

namespace {

Tokenizer of(json const& j) { return Tokenizer(parse_tokenizer_json(j.dump(), "t.json")); }
std::string refusal(std::string const& text) {
  return error_of([&] { Tokenizer{parse_tokenizer_json(text, "t.json")}; });
}

// {"a": 0, "b": 1, ...}
json numbered(std::vector<std::string> const& tokens) {
  json r = json::object();
  for (std::size_t i = 0; i < tokens.size(); ++i) r[tokens[i]] = i;
  return r;
}

json added(int id, std::string const& text, bool special) {
  return {{"id", id},        {"content", text},      {"special", special}, {"lstrip", false},
          {"rstrip", false}, {"single_word", false}, {"normalized", false}};
}

}  // namespace

TEST_CASE("GPT-2's vocabulary as tokenizer.json gives the same numbers", "[text]") {
  auto const folder = shared("tokenizers");
  if (folder.empty()) SKIP("no tokenizers: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Tokenizer const gpt2 = load_tokenizer(folder / "gpt2");
  json j;
  j["model"] = {{"type", "BPE"}, {"vocab", json::parse(content(folder / "gpt2/encoder.json"))}};
  std::string const merges = content(folder / "gpt2/vocab.bpe");
  for (auto const& [left, right] : detail::parse_merges(merges, "m"))
    if (j["model"]["merges"].size() % 2 == 0) j["model"]["merges"].push_back(left + " " + right);
    else j["model"]["merges"].push_back({left, right});
  j["added_tokens"] = json::array({added(50256, "<|endoftext|>", true)});
  j["pre_tokenizer"] = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}};
  j["post_processor"] = {{"type", "ByteLevel"}};
  Tokenizer const t = of(j);
  CHECK(t.size() == 50257);
  CHECK_FALSE(t.adds_bos());
  CHECK(t.type(50256) == TokenType::control);
  std::mt19937 random(21);
  for (int i = 0; i < 500; ++i) {
    std::string const text = random_text(random, 20);
    CHECK(t.encode(text) == gpt2.encode(text));
  }
}

TEST_CASE("Llama-2's vocabulary as tokenizer.json gives the same numbers", "[text]") {
  auto const llama = shared("llama");
  if (llama.empty()) SKIP("no tokenizers: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Tokenizer const model = load_tokenizer(llama / "tokenizer.model");
  auto const parts = parse_sentencepiece(content(llama / "tokenizer.model"), "m");
  // Merges as Hugging Face's conversion makes them: each way to put a token together, tokens in the order of their
  // scores, and for one token by the numbers of the parts.
  struct Merge {
    float score;
    std::int32_t left, right;
  };
  std::vector<Merge> merges;
  for (std::size_t i = 0; i < parts.tokens.size(); ++i) {
    std::string const& token = parts.tokens[i];
    if (parts.types[i] != TokenType::normal) continue;
    for (std::size_t cut = 1; cut < token.size(); ++cut)
      if (auto const a = model.find(token.substr(0, cut)), b = model.find(token.substr(cut)); a && b)
        merges.push_back({parts.scores[i], *a, *b});
  }
  std::sort(merges.begin(), merges.end(), [](Merge const& a, Merge const& b) {
    return a.score != b.score ? a.score > b.score : std::pair{a.left, a.right} < std::pair{b.left, b.right};
  });
  json j;
  json& m = j["model"];
  m = {{"type", "BPE"},
       {"unk_token", "<unk>"},
       {"fuse_unk", true},
       {"byte_fallback", true},
       {"vocab", numbered(parts.tokens)}};
  for (Merge const& merge : merges)
    m["merges"].push_back(model.token(merge.left) + " " + model.token(merge.right));
  j["added_tokens"] = {added(0, "<unk>", true), added(1, "<s>", true), added(2, "</s>", true)};
  j["normalizer"] = {{"type", "Sequence"},
                     {"normalizers",
                      {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                       {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}};
  j["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single",
       {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}}, {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}},
      {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {1}}, {"tokens", {"<s>"}}}}}}};
  Tokenizer const t = of(j);
  CHECK(t.adds_bos());
  CHECK(t.bos() == 1);
  CHECK(t.eos() == 2);
  CHECK(t.unknown() == 0);
  std::mt19937 random(22);
  for (int i = 0; i < 500; ++i) {
    std::string const text = random_text(random, 20);
    CHECK(t.encode(text) == model.encode(text));
    CHECK(t.decode(t.encode(text)) == text);
  }
  CHECK(t.encode("one</s>two", {.special = true}) == Ids{1, 697, 2, 1023});
}

TEST_CASE("Llama-3's and Qwen's steps in tokenizer.json", "[text]") {
  json j;
  j["model"] = {{"type", "BPE"},
                {"ignore_merges", true},
                {"vocab", numbered({"a", "b", "\u0120", "ab", "1", "2", "12", "aba", "\u00C3", "\u00A9",
                                    "\u00C3\u00A9"})},
                {"merges", {"a b", "1 2", "\u00C3 \u00A9"}}};
  j["added_tokens"] = {added(11, "<|begin_of_text|>", true), added(12, "<tool>", false)};
  json const split = {{"type", "Split"},
                      {"pattern",
                       {{"Regex",
                         "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
                         "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                         "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  json const bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  j["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
  j["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}},
        {{"type", "TemplateProcessing"},
         {"single", {{{"SpecialToken", {{"id", "<|begin_of_text|>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
         {"special_tokens", {{"<|begin_of_text|>", {{"ids", {11}}}}}}}}}};
  Tokenizer const t = of(j);
  CHECK(t.encode("aba abab1212") == Ids{11, 7, 2, 3, 3, 6, 4, 5});  // aba is a token that no merge makes
  CHECK(t.encode("a<tool>b") == Ids{11, 0, 12, 1});
  j["normalizer"] = {{"type", "NFC"}};
  CHECK(of(j).encode("e\u0301") == Ids{11, 10});
  j["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = "[a-z]+";
  CHECK(refusal(j.dump()) ==
        "tokenizer: t.json: pre_tokenizer: the regular expression '[a-z]+' is not known");
}

TEST_CASE("unigram, WordPiece and other steps in tokenizer.json", "[text]") {
  json j;
  j["model"] = {{"type", "Unigram"},
                {"unk_id", 0},
                {"vocab", json::array({json::array({"<unk>", 0.0}), json::array({"\u2581", -2.0}),
                                       json::array({"\u2581a", -1.0}), json::array({"b", -3.0}),
                                       json::array({"\u2581ab", -3.5})})}};
  j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}};
  Tokenizer const t = of(j);
  CHECK(t.encode("ab a") == Ids{4, 2});
  CHECK(t.encode("azz") == Ids{2, 0});
  CHECK(t.decode({4, 2}) == "ab a");
  j["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", {{{"type", "WhitespaceSplit"}}, {{"type", "Metaspace"}, {"replacement", "\u2581"}}}}};
  CHECK(of(j).encode(" ab \t a ") == Ids{4, 2});

  json w;
  w["model"] = {{"type", "WordPiece"},
                {"unk_token", "[UNK]"},
                {"vocab", numbered({"[UNK]", "[CLS]", "[SEP]", "play", "##ing", "!"})}};
  w["normalizer"] = {{"type", "BertNormalizer"},
                     {"clean_text", true},
                     {"handle_chinese_chars", true},
                     {"strip_accents", nullptr},
                     {"lowercase", true}};
  w["pre_tokenizer"] = {{"type", "BertPreTokenizer"}};
  w["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"[SEP]", 2}}, {"cls", {"[CLS]", 1}}};
  w["added_tokens"] = {added(1, "[CLS]", true), added(2, "[SEP]", true)};
  CHECK(of(w).encode("Pl\u00E1ying!") == Ids{1, 3, 4, 5, 2});
  CHECK(of(w).decode({1, 3, 4, 5, 2}) == "playing !");
}

TEST_CASE("tokenizer_config.json names the ends of a text", "[text]") {
  TemporaryFolder const folder;
  folder.write("tokenizer.json", R"({"model": {"vocab": {"a": 0, "<x>": 1, "<y>": 2}, "merges": []}})");
  folder.write("tokenizer_config.json", R"({"bos_token": "<x>", "eos_token": {"content": "<y>"}})");
  Tokenizer const t = load_tokenizer(folder / ".");
  CHECK(t.bos() == 1);
  CHECK(t.eos() == 2);
  CHECK_FALSE(t.adds_bos());
}

TEST_CASE("a tokenizer.json that is wrong is refused with one sentence", "[text]") {
  auto const file = [](std::string const& model) { return "{\"model\": " + model + "}"; };
  CHECK(refusal("") == "tokenizer: t.json: it is not valid JSON in UTF-8");
  CHECK(refusal("[1]") == "tokenizer: t.json: it is not a JSON object");
  CHECK(refusal("{\"model\": {\"vocab\": {\"a\xFF\": 0}, \"merges\": []}}") ==
        "tokenizer: t.json: it is not valid JSON in UTF-8");
  CHECK(refusal("{}") == "tokenizer: t.json: the file: there is no model");
  CHECK(refusal(file("7")) == "tokenizer: t.json: model is not an object");
  CHECK(refusal(file(R"({"type": "Magic", "vocab": {"a": 0}})")) ==
        "tokenizer: t.json: model: the type 'Magic' is not supported");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": [1], "merges": []})")) ==
        "tokenizer: t.json: vocab is not an object");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {"a": -1}, "merges": []})")) ==
        "tokenizer: t.json: vocab: 'a' is not the number of a token");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {"a": 200000000}, "merges": []})")) ==
        "tokenizer: t.json: token 'a' has the number 200000000, there are 1 tokens");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {"a": 99999999999999}, "merges": []})")) ==
        "tokenizer: t.json: vocab: 'a' is not the number of a token");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []})")) ==
        "tokenizer: t.json: token 0 is both 'a' and 'b'");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {"a": 0, "a": 1}, "merges": []})")) ==
        "tokenizer: t.json: it has 'a' twice in one object");
  CHECK(refusal(R"({"b": {"": 0, "": 1}, "c": {"a": 0, "a": 1}})") ==
        "tokenizer: t.json: it has '' twice in one object");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {}, "merges": []})")) ==
        "tokenizer: t.json: there are no tokens");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a"]})")) ==
        "tokenizer: t.json: model: merge 0 is no pair of tokens: 'a'");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {"a": 0}, "merges": [["a"]]})")) ==
        "tokenizer: t.json: model: merge 0 is no pair of tokens");
  CHECK(refusal(file(R"({"type": "BPE", "vocab": {"a": 0}, "merges": ["a a"]})")) ==
        "tokenizer: t.json: merge 0 names no token: 'aa'");
  CHECK(refusal(file(R"({"type": "Unigram", "vocab": [["a"]]})")) ==
        "tokenizer: t.json: model: piece 0 is no text with a score");
  CHECK(refusal(file(R"({"type": "Unigram", "vocab": [["a", 1e300]]})")) ==
        "tokenizer: t.json: the score of token 0 is not finite");
  CHECK(refusal(file(R"({"type": "Unigram", "unk_id": 5, "vocab": [["a", 0]]})")) ==
        "tokenizer: t.json: the unknown token is 5, there are 1 tokens");
  CHECK(refusal(file(R"({"type": "Unigram", "vocab": [["a", 0], ["a", 1]]})")) ==
        "tokenizer: t.json: token 1 is token 0 again: 'a'");
  std::string const good = R"("model": {"vocab": {"a": 0}, "merges": []})";
  CHECK(refusal("{" + good + "}").empty());
  CHECK(refusal("{" + good + R"(, "normalizer": {"type": "NFKC"}})") ==
        "tokenizer: t.json: normalizer: the type 'NFKC' is not supported");
  CHECK(refusal("{" + good + R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAA="}})") ==
        "tokenizer: t.json: the table of characters is damaged");
  CHECK(refusal("{" + good + R"(, "pre_tokenizer": {"type": 7}})") ==
        "tokenizer: t.json: pre_tokenizer: type is not a string");
  CHECK(refusal("{" + good + R"(, "added_tokens": [{"id": 900000, "content": "x"}]})") ==
        "tokenizer: t.json: token 'x' has the number 900000, there are 2 tokens");
  CHECK(refusal("{" + good + R"(, "added_tokens": [{"id": 0, "content": "x"}]})") ==
        "tokenizer: t.json: token 0 is both 'a' and 'x'");
  CHECK(refusal(
            "{" + good +
            R"(, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "q"}}],)"
            R"( "special_tokens": {}}})") == "tokenizer: t.json: special_tokens: there is no q");
  std::string const deep(100000, '[');
  CHECK(refusal("{\"x\": " + deep) == "tokenizer: t.json: it is nested too deep");
}

}  // namespace tests::text_tokenizer_json
