// SPDX-License-Identifier: BSL-1.0
// The scanners against what a regular expression engine found (text/data/pieces.tsv), and on texts of one kind.
#include <catch2/catch_test_macros.hpp>

#include <dfdx/text/pretokenize.hpp>

#include <chrono>
#include <fstream>
#include <sstream>

namespace tests::text_pretokenize {

#ifndef DFDX_TEST_DIR
#define DFDX_TEST_DIR "."
#endif

using namespace dfdx::text;

namespace {

std::string from_hex(std::string const& digits) {
  std::string r;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    r.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return r;
}

// Sizes of pieces, and of what is left out between them with a minus.
std::string sizes(Pattern pattern, std::string const& text) {
  std::string r;
  std::size_t at = 0;
  auto const put = [&](std::string const& size) { r += (r.empty() ? "" : ",") + size; };
  for (std::string_view piece : pieces(pattern, text)) {
    auto const begin = static_cast<std::size_t>(piece.data() - text.data());
    if (begin != at) put("-" + std::to_string(begin - at));
    put(std::to_string(piece.size()));
    at = begin + piece.size();
  }
  if (at != text.size()) put("-" + std::to_string(text.size() - at));
  return r;
}

constexpr Pattern all[] = {Pattern::gpt2, Pattern::llama3, Pattern::qwen2, Pattern::o200k, Pattern::clip};

}  // namespace

TEST_CASE("scanners give the pieces of the regular expressions", "[text]") {
  std::ifstream file(DFDX_TEST_DIR "/text/data/pieces.tsv");
  REQUIRE(file);
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    std::string digits, expected;
    std::getline(fields, digits, '\t');
    for (Pattern pattern : all) {
      expected.clear();
      std::getline(fields, expected, '\t');
      CAPTURE(digits, static_cast<int>(pattern));
      CHECK(sizes(pattern, from_hex(digits)) == expected);
    }
    ++cases;
  }
  CHECK(cases == 400);
}

TEST_CASE("any bytes are split without a loss", "[text]") {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  for (unsigned seed = 1; seed < 2000; ++seed) bytes.push_back(static_cast<char>((seed * 2654435761u) >> 24));
  for (Pattern pattern : all) {
    std::string together;
    for (std::string_view piece : pieces(pattern, bytes)) together += piece;
    if (pattern != Pattern::clip) CHECK(together == bytes);
  }
}

TEST_CASE("a megabyte of one kind of character is split in linear time", "[text]") {
  auto const start = std::chrono::steady_clock::now();
  for (std::string const unit :
       {"a", " ", "\n", "1", "'", "A", "\xCC\x81", "\xFF", " \n", "A\xCC\x81", "/\n"}) {
    std::string text;
    while (text.size() < 1'000'000) text += unit;
    for (Pattern pattern : all) CHECK(pieces(pattern, text).size() <= text.size());
  }
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));  // a square would take hours
}

TEST_CASE("patterns are known by name and by their text", "[text]") {
  CHECK(pattern_named("llama-bpe") == Pattern::llama3);
  CHECK(pattern_named("cl100k_base") == Pattern::llama3);
  CHECK_FALSE(pattern_named("llama").has_value());
  CHECK(pattern_of_regex(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)") ==
        Pattern::gpt2);
  CHECK_FALSE(pattern_of_regex(".*").has_value());
}

}  // namespace tests::text_pretokenize
