// SPDX-License-Identifier: BSL-1.0
// The models against plain algorithms on random vocabularies, special tokens, streaming, and what parts may not be.
#include "text/tokenizers.hpp"

#include <catch2/catch_test_macros.hpp>

#include <limits>
#include <map>
#include <set>
#include <thread>

namespace tests::text_models {

using namespace tests;
using namespace dfdx::text;

namespace {

std::string word_of(std::mt19937& random, std::size_t longest, int letters) {
  std::string r;
  std::size_t const n = 1 + random() % longest;
  for (std::size_t i = 0; i < n; ++i)
    r.push_back(static_cast<char>('a' + random() % static_cast<unsigned>(letters)));
  return r;
}

// A vocabulary of some letters and of words of them.
TokenizerParts random_vocabulary(std::mt19937& random, TokenizerModel model, std::size_t words) {
  TokenizerParts p;
  p.model = model;
  std::set<std::string> all = {"a", "b", "c"};
  while (all.size() < words) all.insert(word_of(random, 5, 3));
  p.tokens.assign(all.begin(), all.end());
  std::shuffle(p.tokens.begin(), p.tokens.end(), random);
  for (std::size_t i = 0; i < p.tokens.size(); ++i)
    p.scores.push_back(-static_cast<float>(random() % 64) / 8);
  return p;
}

// Joins the best pair, the leftmost of equal ones, until there is none: what `rank` says to be less is better.
template <class Rank>
Ids join_plainly(std::vector<std::string> symbols, TokenizerParts const& p, Rank&& rank) {
  for (;;) {
    std::size_t best = symbols.size();
    double best_rank = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
      if (auto const r = rank(symbols[i], symbols[i + 1]); r && (best == symbols.size() || *r < best_rank))
        best = i, best_rank = *r;
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids r;
  for (std::string const& s : symbols)
    r.push_back(static_cast<std::int32_t>(std::find(p.tokens.begin(), p.tokens.end(), s) - p.tokens.begin()));
  return r;
}

std::vector<std::string> letters_of(std::string const& text) {
  std::vector<std::string> r;
  for (char c : text) r.emplace_back(1, c);
  return r;
}

}  // namespace

TEST_CASE("merges by rank, by token and by score are what joining one pair after another gives", "[text]") {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    auto const model = round % 3 == 2 ? TokenizerModel::sentencepiece : TokenizerModel::byte_bpe;
    TokenizerParts p = random_vocabulary(random, model, 20);
    p.tokens_are_bytes = true;
    auto const token = [&](std::string const& s) {
      return std::find(p.tokens.begin(), p.tokens.end(), s) - p.tokens.begin();
    };
    auto const size = static_cast<std::ptrdiff_t>(p.tokens.size());
    std::map<std::pair<std::string, std::string>, double> ranks;
    if (round % 3 == 0) {
      for (std::string const& t : p.tokens)
        for (std::size_t i = 1; i < t.size(); ++i)
          if (token(t.substr(0, i)) < size && token(t.substr(i)) < size)
            p.merges.emplace_back(t.substr(0, i), t.substr(i));
      std::shuffle(p.merges.begin(), p.merges.end(), random);
      for (std::size_t i = 0; i < p.merges.size(); ++i) ranks[p.merges[i]] = static_cast<double>(i);
      if (p.merges.empty()) continue;
    }
    Tokenizer const t(p);
    for (int i = 0; i < 50; ++i) {
      std::string const text = word_of(random, 40, 3);
      Ids const expected = join_plainly(
          letters_of(text), p, [&](std::string const& a, std::string const& b) -> std::optional<double> {
            if (round % 3 == 0) {
              auto const found = ranks.find({a, b});
              return found == ranks.end() ? std::nullopt : std::optional(found->second);
            }
            auto const id = token(a + b);
            if (id == size) return {};
            return round % 3 == 1 ? static_cast<double>(id) : -double{p.scores[static_cast<std::size_t>(id)]};
          });
      CAPTURE(round, text);
      CHECK(t.encode(text) == expected);
    }
  }
}

TEST_CASE("unigram finds the highest sum there is", "[text]") {
  std::mt19937 random(12);
  for (int round = 0; round < 20; ++round) {
    TokenizerParts const p = random_vocabulary(random, TokenizerModel::unigram, 25);
    Tokenizer const t(p);
    for (int i = 0; i < 30; ++i) {
      std::string const text = word_of(random, 12, 3);
      double best = -std::numeric_limits<double>::infinity();
      for (unsigned cuts = 0; cuts < 1u << (text.size() - 1); ++cuts) {  // every way to cut it
        double sum = 0;
        std::size_t begin = 0;
        for (std::size_t end = 1; end <= text.size(); ++end) {
          if (end < text.size() && (cuts >> (end - 1) & 1u) == 0) continue;
          auto const found = std::find(p.tokens.begin(), p.tokens.end(), text.substr(begin, end - begin));
          if (found == p.tokens.end()) sum = -std::numeric_limits<double>::infinity();
          else sum += double{p.scores[static_cast<std::size_t>(found - p.tokens.begin())]};
          begin = end;
        }
        best = std::max(best, sum);
      }
      double sum = 0;
      Ids const ids = t.encode(text);
      for (std::int32_t id : ids) sum += double{p.scores[static_cast<std::size_t>(id)]};
      CHECK(std::abs(sum - best) < 1e-9);
      CHECK(t.decode(ids) == text);
    }
  }
}

TEST_CASE("WordPiece takes the longest token, and an unknown word as a whole", "[text]") {
  std::string const vocabulary =
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\naffable\nna\n##ive\n,\n!\n\xE4\xB8\xAD\n";
  Tokenizer const t(parse_wordpiece(vocabulary, "v"));
  CHECK(t.encode("Unaffable, NA\xC3\x8FVE!") == Ids{2, 4, 5, 6, 10, 8, 9, 11, 3});
  CHECK(t.encode("unz affable\xE4\xB8\xAD") == Ids{2, 1, 7, 12, 3});
  CHECK(t.decode({2, 4, 5, 6, 10, 7, 3}) == "unaffable , affable");
  CHECK(t.encode(std::string(101, 'a'), {.bos = false, .eos = false}) == Ids{1});
  CHECK(error_of([] { parse_wordpiece("a\nb\n", "v"); }) == "tokenizer: v: there is no token [UNK]");
}

TEST_CASE("an unused piece falls apart into what it was made of", "[text]") {
  TokenizerParts p;
  p.model = TokenizerModel::sentencepiece;
  p.tokens = {"<unk>", "a", "b", "ab", "abab"};
  p.scores = {0, -3, -3, -1, -2};
  p.types = {TokenType::unknown, TokenType::normal, TokenType::normal, TokenType::normal, TokenType::unused};
  p.unknown = 0;
  Tokenizer const t(p);
  CHECK(t.encode("ababab") == Ids{3, 3, 3});
  CHECK(t.encode("azzb") == Ids{1, 0, 2});  // unknown characters in a row are one
}

TEST_CASE("control tokens are found where they may be, with the white space they take", "[text]") {
  TokenizerParts p;
  p.tokens_are_bytes = true;
  for (int b = 0; b < 256; ++b) p.tokens.emplace_back(1, static_cast<char>(static_cast<unsigned char>(b)));
  p.tokens.insert(p.tokens.end(), {"<x>", "<x>y", "<user>", "word"});
  p.types.assign(260, TokenType::normal);
  p.types[256] = p.types[257] = TokenType::control;
  p.types[258] = p.types[259] = TokenType::user_defined;
  p.flags = {{256, true, true, false}, {259, false, false, true}};
  Tokenizer const t(p);
  CHECK(t.encode("<x>") == Ids{'<', 'x', '>'});
  CHECK(t.encode("a \n<x>\t b", {.special = true}) == Ids{'a', 256, 'b'});
  CHECK(t.encode("<x>y<x>", {.special = true}) == Ids{257, 256});  // the longest
  CHECK(t.encode("a<user>") == Ids{'a', 258});
  CHECK(t.encode("a word") == Ids{'a', ' ', 259});
  CHECK(t.encode("words").size() == 5);
  CHECK(t.encode("\xC3\xA9word").size() == 6);
  std::vector<TextPart> const parts = {{"<x>", true}, {"<x>", false}, {"<", true},
                                       {"x>", false}, {"<", true},    {"x>", true}};
  CHECK(t.encode(parts) == Ids{256, '<', 'x', '>', '<', 'x', '>', 256});
  CHECK(t.find("<x>") == 256);
  CHECK_FALSE(t.find("none").has_value());
  CHECK(t.type(258) == TokenType::user_defined);
  CHECK(t.bos() == -1);
  CHECK(error_of([&] { t.encode("a", {.bos = true}); }) ==
        "tokenizer: memory: there is no token that a text begins with");
  CHECK(error_of([&] { t.decode({260}); }) == "tokenizer: memory: there is no token 260, the last is 259");
  CHECK(error_of([&] { t.decode({-1}); }) == "tokenizer: memory: there is no token -1, the last is 259");
}

TEST_CASE("streaming holds back bytes until they are a character", "[text]") {
  TokenizerParts p;
  p.tokens_are_bytes = true;
  for (int b = 0; b < 256; ++b) p.tokens.emplace_back(1, static_cast<char>(static_cast<unsigned char>(b)));
  StreamDecoder d{Tokenizer(p)};
  CHECK(d.push('a') == "a");
  CHECK(d.push(0xF0).empty());
  CHECK(d.push(0x9F).empty());
  CHECK(d.push(0xA6).empty());
  CHECK(d.push(0x99) == "\xF0\x9F\xA6\x99");
  CHECK(d.push(0xE2).empty());
  CHECK(d.push('b') ==
        "\xEF\xBF\xBD"
        "b");  // it will not come
  CHECK(d.push(0xFF) == "\xEF\xBF\xBD");
  CHECK(d.push(0xC3).empty());
  CHECK(d.finish() == "\xEF\xBF\xBD");
  CHECK(d.finish().empty());
}

TEST_CASE("threads share a tokenizer", "[text]") {
  std::mt19937 random(13);
  Tokenizer const t(random_vocabulary(random, TokenizerModel::sentencepiece, 20));
  std::string const text = word_of(random, 1000, 3);
  Ids const expected = t.encode(text);
  std::vector<std::thread> threads;
  std::vector<char> equal(4, 0);
  for (std::size_t i = 0; i < equal.size(); ++i)
    threads.emplace_back([&, i, copy = t] { equal[i] = copy.encode(text) == expected; });
  for (std::thread& thread : threads) thread.join();
  CHECK(equal == std::vector<char>(4, 1));
}

TEST_CASE("parts that do not fit together are refused", "[text]") {
  auto const refusal = [](auto&& change) {
    TokenizerParts p;
    p.name = "p";
    p.model = TokenizerModel::sentencepiece;
    p.tokens = {"a", "b", "ab"};
    p.scores = {-1, -2, -3};
    change(p);
    return error_of([&] { Tokenizer{p}; });
  };
  CHECK(refusal([](auto&) {}).empty());
  CHECK(refusal([](auto& p) { p.tokens = {}; }) == "tokenizer: p: there are no tokens");
  CHECK(refusal([](auto& p) { p.scores.pop_back(); }) == "tokenizer: p: there are 3 tokens and 2 scores");
  CHECK(refusal([](auto& p) { p.types = {TokenType::normal}; }) ==
        "tokenizer: p: there are 3 tokens and 1 types");
  CHECK(refusal([](auto& p) { p.types.assign(3, static_cast<TokenType>(9)); }) ==
        "tokenizer: p: token 0 has the type 9, which there is not");
  CHECK(refusal([](auto& p) { p.scores[1] = std::numeric_limits<float>::quiet_NaN(); }) ==
        "tokenizer: p: the score of token 1 is not finite");
  CHECK(refusal([](auto& p) { p.tokens[2] = "a"; }) == "tokenizer: p: token 2 is token 0 again: 'a'");
  CHECK(refusal([](auto& p) { p.tokens[2] = "a\xFF"; }) == "tokenizer: p: token 2 is not UTF-8: 'a\\xFF'");
  CHECK(refusal([](auto& p) { p.bos = 3; }) == "tokenizer: p: the first token is 3, there are 3 tokens");
  CHECK(refusal([](auto& p) { p.eos = -2; }) == "tokenizer: p: the last token is -2, there are 3 tokens");
  CHECK(refusal([](auto& p) { p.flags = {{7}}; }) ==
        "tokenizer: p: the added token is 7, there are 3 tokens");
  CHECK(refusal([](auto& p) { p.after = {-1}; }) ==
        "tokenizer: p: the first or last token is -2, there are 3 tokens");
  CHECK(refusal([](auto& p) { p.byte_fallback = true; }) ==
        "tokenizer: p: there is no token for byte 0 and no unknown token");
  CHECK(refusal([](auto& p) {
          p.model = TokenizerModel::byte_bpe;
          p.merges = {{"a", "b"}, {"b", "c"}};
        }) == "tokenizer: p: merge 1 names no token: 'c'");
  CHECK(refusal([](auto& p) { p.model = TokenizerModel::wordpiece; }) ==
        "tokenizer: p: WordPiece needs an unknown token, and there is none");
}

}  // namespace tests::text_models
