// SPDX-License-Identifier: BSL-1.0
// Whether bytes from a file are text, and names from files in messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dfdx {

/// is_utf8 - whether bytes are UTF-8: no longer forms than needed, no surrogates, nothing above U+10FFFF.
///
/// Source    RFC 3629
inline bool is_utf8(std::string_view s) {
  for (std::size_t i = 0; i < s.size();) {
    auto const first = static_cast<unsigned char>(s[i]);
    int const more = first < 0x80       ? 0
                     : first >> 5 == 6  ? 1
                     : first >> 4 == 14 ? 2
                     : first >> 3 == 30 ? 3
                                        : -1;
    if (more < 0 || s.size() - i <= static_cast<std::size_t>(more)) return false;
    std::uint32_t code = more == 0 ? first : first & (0x3fu >> more);
    for (int k = 1; k <= more; ++k) {
      auto const next = static_cast<unsigned char>(s[i + static_cast<std::size_t>(k)]);
      if (next >> 6 != 2) return false;
      code = code << 6 | (next & 0x3fu);
    }
    constexpr std::uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

namespace detail {

// A name from a file in a message: of bounded length, no control characters, and text whatever was in it.
inline std::string shown_name(std::string_view name) {
  constexpr std::size_t most = 100;
  std::string r;
  bool const text = is_utf8(name);
  for (char c : name.substr(0, most)) {
    bool const odd = static_cast<unsigned char>(c) < 0x20 || c == 0x7f || (!text && (c & 0x80) != 0);
    r.push_back(odd ? '?' : c);
  }
  while (text && name.size() > most && !is_utf8(r)) r.pop_back();
  return name.size() > most ? r + "..." : r;
}

}  // namespace detail

}  // namespace dfdx
