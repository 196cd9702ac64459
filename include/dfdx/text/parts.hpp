// SPDX-License-Identifier: BSL-1.0
// What a tokenizer is made of, as any file format gives it: readers fill it in, Tokenizer (text/tokenizer.hpp) checks
// it and works with it. Nothing here has been checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dfdx/core/error.hpp>
#include <dfdx/text/pretokenize.hpp>

namespace dfdx::text {

class CharacterMap;

/// TokenType - what a token is for, numbered as in SentencePiece and in GGUF.
enum class TokenType : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

/// TokenizerModel - how a piece of text becomes tokens.
enum class TokenizerModel : std::uint8_t {
  byte_bpe,  // merges of bytes, by the order of the merges (or of the tokens, if there are none: tiktoken)
  bpe,       // merges of characters, by the order of the merges
  sentencepiece,  // merges of characters, by the scores of the tokens that they make
  unigram,        // the sequence of tokens with the highest sum of scores
  wordpiece       // the longest token, again and again
};

/// NormalStep - a change of the text before it is split.
struct NormalStep {
  enum class Kind : std::uint8_t {
    replace,  // `from` by `to`
    lower,    // small letters
    nfc,
    nfd,            // canonical forms
    strip_accents,  // without marks that take no room
    clean,          // BERT's: no control characters, any white space is a blank
    space_han,      // BERT's: blanks around Chinese characters
    map,            // SentencePiece's table
    squeeze,        // of several blanks one, and none at either end
    one_space,      // a run of white space is one blank
    blanks,         // two or more blanks in a row are `to`
    trim_left,
    trim_right
  };
  Kind kind = Kind::replace;
  std::string from = {}, to = {};
  std::shared_ptr<CharacterMap const> map = nullptr;
};

/// SplitStep - a cut of the text into pieces that tokens do not cross; each step cuts the pieces of the one before.
struct SplitStep {
  enum class Kind : std::uint8_t {
    pattern,      // a known regular expression
    digits,       // each number character alone
    digit_runs,   // runs of number characters
    punctuation,  // each punctuation character alone
    whitespace,   // at white space, which is dropped
    words,        // at white space, and between words and what is neither
    before_space  // before each blank
  };
  Kind kind = Kind::pattern;
  Pattern pattern = Pattern::gpt2;
};

/// SpacePrefix - in front of which text a blank is put, so that a word has one form wherever it stands.
enum class SpacePrefix : std::uint8_t { never, at_start, after_control, always };

/// TokenFlags - what is special about finding an added token in a text.
struct TokenFlags {
  std::int32_t id = 0;
  bool takes_left = false, takes_right = false;  // the white space on that side
  bool whole_word = false;                       // not inside a word
};

/// TokenizerParts - a tokenizer as a file gives it.
struct TokenizerParts {
  std::string name = "memory";  // for messages
  TokenizerModel model = TokenizerModel::byte_bpe;

  std::vector<std::string> tokens;
  std::vector<float> scores;     // sentencepiece and unigram: one for each token
  std::vector<TokenType> types;  // one for each token, or empty: all are normal
  std::vector<std::pair<std::string, std::string>> merges;
  std::vector<TokenFlags> flags;

  bool tokens_are_bytes = false;    // byte_bpe: tokens are bytes, not GPT-2's printable stand-ins for them
  bool whole_pieces_first = false;  // a piece that is a token is not merged ("ignore_merges")
  bool byte_fallback = false;       // what no token is becomes tokens <0x00>...<0xFF>
  bool fuse_unknown = true;         // unknown characters in a row are one unknown token
  std::string end_of_word;          // what the last token of a piece ends with, CLIP's "</w>"
  std::string inside_word = "##";   // wordpiece: what all but the first token of a word begin with
  std::size_t longest_word = 100;   // wordpiece: a word of more characters is unknown

  std::vector<NormalStep> normal;
  std::vector<SplitStep> split;
  SpacePrefix space_prefix = SpacePrefix::never;
  bool prefix_unless_space = false;  // not in front of what begins with one
  bool escape_spaces = false;        // blanks are U+2581 in tokens

  std::int32_t bos = -1, eos = -1, unknown = -1, pad = -1;  // -1: there is none
  std::vector<std::int32_t> before, after;                  // what bos and eos put there; empty: bos, eos
  bool add_bos = false, add_eos = false;                    // what encode does when it is not told

  TokenType type(std::size_t id) const { return id < types.size() ? types[id] : TokenType::normal; }
};

namespace detail {

[[noreturn]] inline void fail(std::string const& name, std::string const& why) {
  raise("tokenizer: " + name + ": " + why);
}

// A text in a message: short, and printable whatever is in it.
inline std::string in_quotes(std::string_view text) {
  std::string r = "'";
  for (std::size_t at = 0; at < text.size();) {
    if (r.size() > 40) {
      r += "...";
      break;
    }
    Character const c = decode_at(text, at);
    if (c.valid && c.code >= 32 && c.code != 127) {
      r.append(text.substr(at, c.size));
    } else {
      constexpr char digits[] = "0123456789ABCDEF";
      auto const byte = static_cast<unsigned char>(text[at]);
      r += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
    }
    at += c.size;
  }
  return r + "'";
}

inline constexpr std::string_view escaped_space = "\xE2\x96\x81";  // U+2581

// 0...255 for "<0x00>"..."<0xFF>", -1 for anything else.
inline int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int r = 0;
  for (char c : token.substr(3, 2)) {
    if (c >= '0' && c <= '9') r = 16 * r + (c - '0');
    else if (c >= 'A' && c <= 'F') r = 16 * r + (c - 'A' + 10);
    else if (c >= 'a' && c <= 'f') r = 16 * r + (c - 'a' + 10);
    else return -1;
  }
  return r;
}

inline std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string r;
  std::size_t at = 0;
  for (std::size_t found; !from.empty() && (found = text.find(from, at)) != std::string_view::npos;) {
    r.append(text.substr(at, found - at)).append(to);
    at = found + from.size();
  }
  return r.append(text.substr(at));
}

}  // namespace detail

/// byte_level_char - the printable character that stands for a byte in GPT-2's files: itself where it is printable in
/// Latin-1, else one of U+0100 and above, in order.
inline char32_t byte_level_char(unsigned char byte) {
  auto const printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 255 && b != 173); };
  if (printable(byte)) return byte;
  char32_t next = 256;
  for (int b = 0; b < byte; ++b) next += printable(b) ? 0 : 1;
  return next;
}

/// byte_level_bytes - the bytes that a token of GPT-2's files stands for; false if it holds another character.
inline bool byte_level_bytes(std::string_view token, std::string& out) {
  struct Inverse {
    std::int16_t of[324];
    Inverse() {
      for (auto& x : of) x = -1;
      for (int b = 0; b < 256; ++b)
        of[byte_level_char(static_cast<unsigned char>(b))] = static_cast<std::int16_t>(b);
    }
  };
  static Inverse const inverse;
  out.clear();
  for (std::size_t at = 0; at < token.size();) {
    Character const c = decode_at(token, at);
    if (!c.valid || c.code >= 324 || inverse.of[c.code] < 0) return false;
    out.push_back(static_cast<char>(static_cast<unsigned char>(inverse.of[c.code])));
    at += c.size;
  }
  return true;
}

}  // namespace dfdx::text
