// SPDX-License-Identifier: BSL-1.0
// What the tests of tokenizers share: where their data is, and texts of all kinds.
#pragma once

#include "support.hpp"

#include <dfdx/io/file.hpp>
#include <dfdx/text.hpp>

#include <random>
#include <string>
#include <vector>

#ifndef DFDX_SHARED_DIR
#define DFDX_SHARED_DIR ""
#endif
#ifndef DFDX_TEST_DIR
#define DFDX_TEST_DIR "."
#endif

namespace tests {

using Ids = std::vector<std::int32_t>;

/// A folder or file of the shared data; empty if it is not there.
inline std::filesystem::path shared(std::string const& name) {
  std::filesystem::path const path = std::filesystem::path(DFDX_SHARED_DIR) / "data" / name;
  return std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(path) ? std::filesystem::path{}
                                                                                : path;
}

inline std::string content(std::filesystem::path const& path) {
  auto const bytes = dfdx::read_file(path, "test");
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// Texts of random characters of many scripts, with much white space and many apostrophes.
inline std::string random_text(std::mt19937& random, std::size_t length) {
  static std::u32string const often =
      U" \n\t\r'aestAST019.,!?-\u00e9\u4e2d\u6587\u17d2\u1781\u0301\U0001F600\u00a0\u3000";
  std::string r;
  for (std::size_t i = 0; i < length; ++i) {
    char32_t c = often[random() % often.size()];
    if (random() % 4 == 0) {
      do c = random() % (random() % 2 == 0 ? 0x3000u : 0x110000u);
      while ((c >= 0xD800 && c < 0xE000) || c == 0x2581);  // U+2581 is SentencePiece's blank
    }
    dfdx::text::append_utf8(r, c);
  }
  return r;
}

/// Decoding as tokens come, each result of which must be whole characters.
inline std::string streamed(dfdx::text::Tokenizer const& t, Ids const& ids, bool& whole) {
  dfdx::text::StreamDecoder decoder(t);
  std::string r;
  for (std::int32_t id : ids) {
    std::string const now = decoder.push(id);
    whole = whole && dfdx::is_utf8(now);
    r += now;
  }
  std::string const rest = decoder.finish();
  whole = whole && dfdx::is_utf8(rest);
  return r + rest;
}

}  // namespace tests
