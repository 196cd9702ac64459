// SPDX-License-Identifier: BSL-1.0
// What the models of tokenizers share: checked tokens with their bytes, numbers by text, and what becomes of a
// character that no token has.
#pragma once

#include <limits>
#include <optional>
#include <unordered_map>

#include <dfdx/text/flat_map.hpp>
#include <dfdx/text/parts.hpp>

namespace dfdx::text::detail {

using Ids = std::vector<std::int32_t>;
using TokenIndex = std::unordered_map<std::string_view, std::int32_t>;

inline std::int32_t found_in(TokenIndex const& index, std::string_view text) {
  auto const found = index.find(text);
  return found == index.end() ? -1 : found->second;
}

// Unknown characters: bytes if there are tokens for them, else the unknown token.
class Fallback {
 public:
  Fallback() = default;
  explicit Fallback(TokenizerParts const& parts)
      : name_(parts.name), unknown_(parts.unknown), fuse_(parts.fuse_unknown) {
    for (std::int32_t& id : bytes_) id = -1;
    if (!parts.byte_fallback) return;
    for (std::size_t i = 0; i < parts.tokens.size(); ++i) {
      int const byte = byte_of_token(parts.tokens[i]);
      if (byte >= 0 && (parts.types.empty() || parts.type(i) == TokenType::byte))
        bytes_[byte] = static_cast<std::int32_t>(i);
    }
    for (int b = 0; b < 256; ++b)
      if (bytes_[b] < 0 && unknown_ < 0)
        fail(name_, "there is no token for byte " + std::to_string(b) + " and no unknown token");
  }

  // `first` is where in `out` the piece began: unknown tokens are not fused beyond it.
  void append(std::string_view text, std::size_t first, Ids& out) const {
    bool all = true;
    for (char c : text) all = all && bytes_[static_cast<unsigned char>(c)] >= 0;
    if (all) {
      for (char c : text) out.push_back(bytes_[static_cast<unsigned char>(c)]);
      return;
    }
    if (unknown_ < 0) fail(name_, "no token for " + in_quotes(text) + " and no unknown token");
    if (!fuse_ || out.size() == first || out.back() != unknown_) out.push_back(unknown_);
  }

 private:
  std::string name_;
  std::int32_t unknown_ = -1;
  std::int32_t bytes_[256] = {};
  bool fuse_ = true;
};

}  // namespace dfdx::text::detail
