// SPDX-License-Identifier: BSL-1.0
// The table by which SentencePiece normalizes (its "precompiled_charsmap"): a double-array tree from byte strings to
// places in a list of replacements. It comes from a file, so every step through it is checked.
#pragma once

#include <cstring>

#include <dfdx/text/parts.hpp>

namespace dfdx::text {

/// CharacterMap - replacements of characters, the longest first.
///
/// Errors    "tokenizer: x: the table of characters is damaged"
/// Source    https://github.com/google/sentencepiece, normalizer.cc; https://github.com/s-yata/darts-clone
class CharacterMap {
 public:
  CharacterMap(std::string const& name, std::string_view bytes) {
    std::uint32_t size = 0;
    bool ok = bytes.size() >= 4;
    if (ok) std::memcpy(&size, bytes.data(), 4);
    ok = ok && size % 4 == 0 && size >= 4 && size <= bytes.size() - 4;
    if (!ok) detail::fail(name, "the table of characters is damaged");
    units_.resize(size / 4);
    std::memcpy(units_.data(), bytes.data() + 4, size);
    texts_ = std::string(bytes.substr(4 + size));
    // Each replacement ends with a zero byte, so the last byte must be one.
    if (!texts_.empty() && texts_.back() != '\0') detail::fail(name, "the table of characters is damaged");
  }

  std::string apply(std::string_view text) const {
    std::string r;
    r.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
      std::size_t length = 0;
      std::uint32_t place = 0;
      longest(text.substr(at), length, place);
      if (length != 0 && place < texts_.size()) {
        r += texts_.c_str() + place;
        at += length;
      } else {  // one character as it is
        std::size_t const size = decode_at(text, at).size;
        r.append(text.substr(at, size));
        at += size;
      }
    }
    return r;
  }

 private:
  // A unit: bit 31 a value; bit 10..30 (shifted by bit 9) where children are, bit 8 whether a value is there, and the
  // byte that leads to it.
  static std::uint32_t offset(std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
  static std::uint32_t label(std::uint32_t unit) { return unit & ((1u << 31) | 0xFFu); }

  void longest(std::string_view text, std::size_t& length, std::uint32_t& place) const {
    std::uint32_t node = offset(units_[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
      auto const byte = static_cast<unsigned char>(text[i]);
      node ^= byte;
      if (node >= units_.size() || label(units_[node]) != byte) return;
      std::uint32_t const unit = units_[node];
      node ^= offset(unit);
      if ((unit >> 8 & 1u) == 0) continue;
      if (node >= units_.size()) return;
      length = i + 1;
      place = units_[node] & 0x7FFFFFFFu;
    }
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace dfdx::text
