// SPDX-License-Identifier: BSL-1.0
// A text as numbers: each of its bytes has one, in the order of the bytes.
#pragma once

#include "model.hpp"

#include <dfdx/data/text_lines.hpp>

#include <array>
#include <string>
#include <vector>

namespace gpt {

using dfdx::Key;

/// The characters a model knows.
class Alphabet {
 public:
  /// All bytes of a text.
  static Alphabet of(std::string const& text) {
    std::array<bool, 256> seen{};
    for (char c : text) seen[static_cast<unsigned char>(c)] = true;
    Alphabet a;
    for (std::size_t c = 0; c < seen.size(); ++c)
      if (seen[c]) a.add(static_cast<unsigned char>(c));
    return a;
  }
  /// What `text` made of one.
  static Alphabet from_hex(std::string const& hex) {
    Alphabet a;
    auto const digit = [](char c) {
      return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= '0' && c <= '9' ? c - '0' : -1;
    };
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      int const high = digit(hex[i]), low = digit(hex[i + 1]);
      if (high < 0 || low < 0 || a.numbers_[static_cast<std::size_t>(16 * high + low)] >= 0) return {};
      a.add(static_cast<unsigned char>(16 * high + low));
    }
    return a;
  }
  std::string hex() const {
    std::string r;
    for (char c : characters_)
      for (int shift : {4, 0}) r += "0123456789abcdef"[(static_cast<unsigned char>(c) >> shift) & 15];
    return r;
  }

  std::size_t size() const { return characters_.size(); }
  char character(std::int32_t number) const { return characters_[static_cast<std::size_t>(number)]; }
  /// The number of a character, -1 if there is none.
  std::int32_t number(char c) const { return numbers_[static_cast<unsigned char>(c)]; }

 private:
  Alphabet() { numbers_.fill(-1); }
  void add(unsigned char c) {
    numbers_[c] = static_cast<std::int32_t>(characters_.size());
    characters_ += static_cast<char>(c);
  }

  std::string characters_;
  std::array<std::int32_t, 256> numbers_{};
};

struct Text {
  Alphabet alphabet;
  std::vector<std::int32_t> train, val;  // the first nine tenths, and the rest
};

inline Text read_text(std::string const& path) {
  std::string const text = dfdx::data::read_text(path);
  auto const fail = [&](std::string const& what) { throw dfdx::error("data: " + path + what); };
  if (std::size_t const least = 20 * (context + 1); text.size() < least)
    fail(" has " + std::to_string(text.size()) + " characters; at least " + std::to_string(least) +
         " are needed to train on some and test on others");
  Text r{Alphabet::of(text), {}, {}};
  if (r.alphabet.size() > vocabulary)
    fail(" has " + std::to_string(r.alphabet.size()) + " different characters; the model knows " +
         std::to_string(vocabulary));
  std::size_t const end = text.size() / 10 * 9;
  for (std::size_t i = 0; i < text.size(); ++i)
    (i < end ? r.train : r.val).push_back(r.alphabet.number(text[i]));
  return r;
}

/// A batch: pieces of a text, and the characters that follow each of theirs.
struct Batch {
  Tokens tokens = dfdx::zeros<std::int32_t, batch, context>(),
         next = dfdx::zeros<std::int32_t, batch, context>();

  void set(std::size_t row, std::vector<std::int32_t> const& text, std::size_t begin) {
    for (std::size_t i = 0; i < context; ++i) {
      tokens.data()[row * context + i] = text[begin + i];
      next.data()[row * context + i] = text[begin + i + 1];
    }
  }
};

}  // namespace gpt
