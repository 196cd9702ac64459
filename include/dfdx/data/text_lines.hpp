// SPDX-License-Identifier: BSL-1.0
// A text file as a whole, or as lines, for data sets of one item per line. What is no such file is refused with a
// sentence that can be shown to a user. No knowledge of alphabets or encodings beyond telling text from binary.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <dfdx/core/error.hpp>

namespace dfdx::data {

namespace detail {

// Bytes that no text holds: control characters other than those that space it.
inline bool is_binary(unsigned char c) {
  return c < 32 && c != '\t' && c != '\n' && c != '\v' && c != '\f' && c != '\r';
}

template <class S>
void trim(S& line) {
  auto const blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; };
  while (!line.empty() && blank(line.back())) line.pop_back();
  std::size_t n = 0;
  while (n < line.size() && blank(line[n])) ++n;
  line.erase(0, n);
}

}  // namespace detail

/// read_text - a text file as it is.
///
/// Errors    "data: cannot read words.txt: No such file or directory"; "data: words.txt is empty"; "data:
///           words.txt is not a text file (byte 0x00 in line 1)"
template <class S = std::string>  // so that programs that read no text do not compile it
S read_text(std::type_identity_t<S> const& path) {
  auto const fail = [&](S const& what) { raise("data: " + what); };
  auto const fail_to_read = [&] {
    fail("cannot read " + path + ": " + (errno != 0 ? std::strerror(errno) : "unknown reason"));
  };
  errno = 0;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (file == nullptr) fail_to_read();

  S text;
  std::size_t line = 1;
  char buffer[1 << 14];
  while (std::size_t const got = std::fread(buffer, 1, sizeof buffer, file.get())) {
    for (std::size_t i = 0; i < got; ++i) {
      auto const c = static_cast<unsigned char>(buffer[i]);
      if (detail::is_binary(c)) {
        char const* const hex = "0123456789abcdef";
        fail(path + " is not a text file (byte 0x" + hex[c >> 4] + hex[c & 15] + " in line " +
             std::to_string(line) + ")");
      }
      if (c == '\n') ++line;
    }
    text.append(buffer, got);
  }
  if (std::ferror(file.get()) != 0) fail_to_read();
  if (text.empty()) fail(path + " is empty");
  return text;
}

/// read_lines - the lines of a text file, without blanks at their ends; line i of the result is line i + 1 of the
/// file, so that messages can name it, and may be empty. Line ends of Unix and Windows.
///
/// Errors    those of read_text; "data: words.txt has fewer than 2 lines with text"
template <class S = std::string>
std::vector<S> read_lines(std::type_identity_t<S> const& path, std::size_t min_lines = 2) {
  S const text = read_text<S>(path);
  std::vector<S> lines;
  std::size_t with_text = 0;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t const found = text.find('\n', at), end = found < text.size() ? found : text.size();
    S line = text.substr(at, end - at);
    detail::trim(line);
    with_text += line.empty() ? 0 : 1;
    lines.push_back(std::move(line));
    at = end + 1;
  }
  if (with_text < min_lines)
    raise("data: " + path + " has fewer than " + std::to_string(min_lines) + " lines with text");
  return lines;
}

}  // namespace dfdx::data
