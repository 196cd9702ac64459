// SPDX-License-Identifier: BSL-1.0
// Tokenizer: text to token numbers and back, whatever the file it came from (text/load.hpp reads files). It knows
// nothing of models or tensors.
#pragma once

#include <cmath>
#include <initializer_list>
#include <span>
#include <variant>

#include <dfdx/text/bpe.hpp>
#include <dfdx/text/pipeline.hpp>
#include <dfdx/text/unigram.hpp>

namespace dfdx::text {

/// EncodeOptions - what encode adds and what it recognises.
struct EncodeOptions {
  std::optional<bool> bos = {}, eos = {};  // not given: as the tokenizer's file says
  bool special = false;                    // "<s>" in the text is the token, not three characters
};

namespace detail {
// A default argument of its own: of a temporary g++ 12 says, with sanitizers, that it may be uninitialized.
inline constexpr EncodeOptions as_the_file_says;
}  // namespace detail

/// TextPart - a stretch of text and whether control tokens may be written in it: a template's words may, a user's not.
struct TextPart {
  std::string text;
  bool special = false;
};

/// Tokenizer - a value: copies share what was loaded, which no call changes, so threads may use one together.
///
/// Errors    "tokenizer: <name>: ..." for parts that do not fit together, in the constructor, and for text that holds
///           what the tokenizer has no token for
class Tokenizer {
 public:
  explicit Tokenizer(TokenizerParts parts) : state_(std::make_shared<State const>(std::move(parts))) {}

  /// The numbers of a text. Bytes that are no UTF-8 are kept where the tokenizer has tokens for bytes.
  std::vector<std::int32_t> encode(std::string_view text,
                                   EncodeOptions const& options = detail::as_the_file_says) const {
    detail::Ids r;
    TokenizerParts const& p = state_->parts;
    if (options.bos.value_or(p.add_bos)) add(p.before, p.bos, "begins with", r);
    state_->encode(text, [&](std::size_t, std::size_t) { return options.special; }, r);
    if (options.eos.value_or(p.add_eos)) add(p.after, p.eos, "ends with", r);
    return r;
  }

  /// The numbers of a text in parts, as if they stood in one string; nothing is put around them.
  std::vector<std::int32_t> encode(std::span<TextPart const> text) const {
    std::string all;
    std::vector<std::size_t> ends;
    for (TextPart const& part : text) ends.push_back((all += part.text).size());
    auto const part_of = [&](std::size_t at) {
      return static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), at) - ends.begin());
    };
    detail::Ids r;
    state_->encode(
        all,
        [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = part_of(begin); i <= part_of(end - 1); ++i)
            if (!text[i].special && !text[i].text.empty()) return false;
          return true;
        },
        r);
    return r;
  }

  /// The text of numbers: bytes, which are UTF-8 if the numbers came from such. Control tokens are left out, or written
  /// as they are called.
  ///
  /// Errors    "tokenizer: <name>: there is no token 32000, the last is 31999"
  std::string decode(std::span<std::int32_t const> ids, bool special = false) const;
  std::string decode(std::initializer_list<std::int32_t> ids, bool special = false) const {
    return decode(std::span<std::int32_t const>(ids.begin(), ids.size()), special);
  }

  std::size_t size() const { return state_->parts.tokens.size(); }
  /// Of tokens that encode does not know of there is -1: no beginning, no end, no padding.
  std::int32_t bos() const { return state_->parts.bos; }
  std::int32_t eos() const { return state_->parts.eos; }
  std::int32_t unknown() const { return state_->parts.unknown; }
  std::int32_t pad() const { return state_->parts.pad; }
  bool adds_bos() const { return state_->parts.add_bos; }
  bool adds_eos() const { return state_->parts.add_eos; }

  /// A token as its file spells it.
  std::string const& token(std::int32_t id) const { return state_->parts.tokens[index(id)]; }
  /// What a token stands for inside a text: bytes, perhaps a part of a character.
  std::string const& bytes(std::int32_t id) const { return state_->surfaces[index(id)]; }
  TokenType type(std::int32_t id) const { return state_->parts.type(index(id)); }
  /// The number of a token as its file spells it.
  std::optional<std::int32_t> find(std::string_view token) const {
    std::int32_t const id = detail::found_in(state_->by_text, token);
    return id < 0 ? std::nullopt : std::optional(id);
  }

 private:
  friend class StreamDecoder;
  using Model =
      std::variant<std::monostate, detail::RankedBpe, detail::ScoredBpe, detail::Unigram, detail::WordPiece>;

  struct State {
    explicit State(TokenizerParts given) : parts(std::move(given)) {
      check();
      for (std::size_t i = 0; i < parts.tokens.size(); ++i) add_token(i);
      for (TokenFlags const& f : parts.flags) flags.insert_or_assign(f.id, f);
      switch (parts.model) {
        case TokenizerModel::byte_bpe:
        case TokenizerModel::bpe: model.emplace<detail::RankedBpe>(parts, pieces); break;
        case TokenizerModel::sentencepiece: model.emplace<detail::ScoredBpe>(parts, pieces); break;
        case TokenizerModel::unigram: model.emplace<detail::Unigram>(parts, pieces); break;
        case TokenizerModel::wordpiece: model.emplace<detail::WordPiece>(parts, pieces); break;
      }
      parts.merges = {};
    }
    State(State const&) = delete;

    void check() const;
    void add_token(std::size_t i);

    // `control(begin, end)` says whether a control token may stand there.
    template <class Control>
    void encode(std::string_view text, Control&& control, detail::Ids& out) const {
      std::size_t begin = 0;
      auto before = detail::Before::start;
      for (std::size_t at = 0; at < text.size();) {
        std::size_t length = 0;
        std::int32_t id = -1;
        if (specials.begins(text[at]))
          specials.matches(text, at, [&](std::size_t n, std::int32_t i) {
            bool const allowed = is_user(i) || control(at, at + n);
            if (allowed && stands_alone(i, text, at, n)) length = n, id = i;
          });
        if (id < 0) {
          ++at;
          continue;
        }
        std::size_t left = at, right = at + length;
        widen(id, text, begin, left, right);
        encode_stretch(text.substr(begin, left - begin), before, out);
        out.push_back(id);
        before = is_user(id) ? detail::Before::user_defined : detail::Before::control;
        begin = at = right;
      }
      encode_stretch(text.substr(begin), before, out);
    }

    void encode_stretch(std::string_view text, detail::Before before, detail::Ids& out) const {
      if (text.empty()) return;
      std::string const normal = detail::normalized(parts, text, before);
      for (std::string_view piece : detail::split(parts, normal))
        std::visit(
            [&](auto const& m) {
              if constexpr (!std::is_same_v<decltype(m), std::monostate const&>) m.encode(piece, out);
            },
            model);
    }

    bool is_user(std::int32_t id) const {
      return parts.type(static_cast<std::size_t>(id)) == TokenType::user_defined;
    }
    bool stands_alone(std::int32_t id, std::string_view text, std::size_t at, std::size_t length) const;
    void widen(std::int32_t id, std::string_view text, std::size_t least, std::size_t& left,
               std::size_t& right) const;

    TokenizerParts parts;
    std::vector<std::string> surfaces;   // what each token stands for
    detail::TokenIndex by_text, pieces;  // all tokens as spelled; those that the model makes, as it sees them
    std::vector<std::string> piece_texts;  // where `pieces` are not as spelled
    detail::ByteTree specials;
    std::unordered_map<std::int32_t, TokenFlags> flags;
    Model model;
  };

  void add(std::vector<std::int32_t> const& ids, std::int32_t one, char const* what, detail::Ids& out) const {
    if (ids.empty() && one < 0)
      detail::fail(state_->parts.name, std::string("there is no token that a text ") + what);
    if (ids.empty()) out.push_back(one);
    out.insert(out.end(), ids.begin(), ids.end());
  }

  std::size_t index(std::int32_t id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= size())
      detail::fail(state_->parts.name, "there is no token " + std::to_string(id) + ", the last is " +
                                           std::to_string(static_cast<long long>(size()) - 1));
    return static_cast<std::size_t>(id);
  }

  std::shared_ptr<State const> state_;
};

inline void Tokenizer::State::check() const {
  auto const& p = parts;
  std::size_t const n = p.tokens.size();
  auto const require = [&](bool ok, std::string const& why) {
    if (!ok) detail::fail(p.name, why);
  };
  require(n > 0, "there are no tokens");
  require(n <= (std::size_t{1} << 28), "there are " + std::to_string(n) + " tokens, more than 2^28");
  bool const scored = p.model == TokenizerModel::sentencepiece || p.model == TokenizerModel::unigram;
  require(!scored || p.scores.size() == n,
          "there are " + std::to_string(n) + " tokens and " + std::to_string(p.scores.size()) + " scores");
  require(p.types.empty() || p.types.size() == n,
          "there are " + std::to_string(n) + " tokens and " + std::to_string(p.types.size()) + " types");
  for (std::size_t i = 0; i < p.types.size(); ++i)
    require(p.types[i] >= TokenType::normal && p.types[i] <= TokenType::byte,
            "token " + std::to_string(i) + " has the type " + std::to_string(static_cast<int>(p.types[i])) +
                ", which there is not");
  if (scored)
    for (std::size_t i = 0; i < n; ++i)
      if (!std::isfinite(p.scores[i]))
        detail::fail(p.name, "the score of token " + std::to_string(i) + " is not finite");
  auto const in_range = [&](std::int32_t id, char const* what) {
    if (id < -1 || id >= static_cast<std::int32_t>(n))
      detail::fail(p.name, std::string("the ") + what + " token is " + std::to_string(id) + ", there are " +
                               std::to_string(n) + " tokens");
  };
  in_range(p.bos, "first"), in_range(p.eos, "last"), in_range(p.unknown, "unknown"),
      in_range(p.pad, "padding");
  for (auto const* ids : {&p.before, &p.after})
    for (std::int32_t id : *ids) in_range(id < 0 ? -2 : id, "first or last");
  for (TokenFlags const& f : p.flags) in_range(f.id < 0 ? -2 : f.id, "added");
}

inline void Tokenizer::State::add_token(std::size_t i) {
  if (i == 0) {
    surfaces.reserve(parts.tokens.size());  // views of them are kept
    by_text.reserve(parts.tokens.size());
    pieces.reserve(parts.tokens.size());
    piece_texts.resize(parts.model == TokenizerModel::byte_bpe ? parts.tokens.size() : 0);
  }
  std::string const& token = parts.tokens[i];
  auto const id = static_cast<std::int32_t>(i);
  TokenType const type = parts.type(i);
  bool const of_bytes = parts.model == TokenizerModel::byte_bpe;
  if (!parts.tokens_are_bytes && !is_utf8(token))
    detail::fail(parts.name, "token " + std::to_string(i) + " is not UTF-8: " + detail::in_quotes(token));
  if (!token.empty())
    if (auto const [other, is_new] = by_text.emplace(token, id); !is_new)
      detail::fail(parts.name, "token " + std::to_string(i) + " is token " + std::to_string(other->second) +
                                   " again: " + detail::in_quotes(token));

  std::string surface = token;
  bool piece =
      !token.empty() && type != TokenType::control && type != TokenType::unknown && type != TokenType::byte;
  if (of_bytes && piece) {
    bool const user = type == TokenType::user_defined;  // spelled as it is, but merges may make it too
    std::string bytes = token;
    piece = (user || type == TokenType::normal) && (parts.tokens_are_bytes || byte_level_bytes(token, bytes));
    if (piece && !user) surface = bytes;
    if (piece) {
      piece_texts[i] = std::move(bytes);
      pieces.emplace(piece_texts[i], id);
    }
  } else if (piece) {
    pieces.emplace(token, id);
  }
  if (type == TokenType::byte) {
    if (int const byte = detail::byte_of_token(token); byte >= 0)
      surface.assign(1, static_cast<char>(static_cast<unsigned char>(byte)));
  } else if (parts.escape_spaces && type != TokenType::control) {
    surface = detail::replaced(token, detail::escaped_space, " ");
  }
  if (piece && !parts.end_of_word.empty() && surface.ends_with(parts.end_of_word))
    surface.resize(surface.size() - parts.end_of_word.size());
  if (piece && parts.model == TokenizerModel::wordpiece && surface.starts_with(parts.inside_word) &&
      surface.size() > parts.inside_word.size())
    surface.erase(0, parts.inside_word.size());
  surfaces.push_back(std::move(surface));
  if (type == TokenType::control || type == TokenType::unknown || type == TokenType::user_defined)
    specials.add(token, id);
}

inline bool Tokenizer::State::stands_alone(std::int32_t id, std::string_view text, std::size_t at,
                                           std::size_t length) const {
  auto const found = flags.find(id);
  if (found == flags.end() || !found->second.whole_word) return true;
  auto const word = [&](std::size_t i) {
    Character const c = decode_at(text, i);
    return c.valid && detail::is_word(c.code);
  };
  std::size_t before = at;  // where the character before begins
  while (before > 0 && at - before < 4) {
    --before;
    if ((static_cast<unsigned char>(text[before]) & 0xC0u) != 0x80u) break;
  }
  return (at == 0 || !word(before)) && (at + length == text.size() || !word(at + length));
}

inline void Tokenizer::State::widen(std::int32_t id, std::string_view text, std::size_t least,
                                    std::size_t& left, std::size_t& right) const {
  auto const found = flags.find(id);
  if (found == flags.end()) return;
  if (found->second.takes_left)
    left = least + detail::trimmed(text.substr(least, left - least), false, true).size();
  while (found->second.takes_right && right < text.size()) {
    Character const c = decode_at(text, right);
    if (!c.valid || !is_space(c.code)) break;
    right += c.size;
  }
}

/// StreamDecoder - decodes tokens as they come; what it gives is always whole characters.
///
/// Bytes that turn out to be no UTF-8 become U+FFFD, as soon as that is known.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool special = false)
      : tokenizer_(std::move(tokenizer)), special_(special) {
    after(detail::Before::start);
  }

  /// The characters that this token completes; often none.
  std::string push(std::int32_t id) {
    append(id, waiting_);
    std::size_t const whole = waiting_.size() - incomplete_tail(waiting_);
    std::string r = with_replacements(std::string_view(waiting_).substr(0, whole));
    waiting_.erase(0, whole);
    return r;
  }
  /// What is left at the end: nothing, or U+FFFD for a character that was never completed. A new text may follow.
  std::string finish() {
    std::string r = waiting_.empty() ? "" : "\xEF\xBF\xBD";
    waiting_.clear();
    blank_ = false;
    after(detail::Before::start);
    return r;
  }

 private:
  friend class Tokenizer;

  void append(std::int32_t id, std::string& out) {
    TokenizerParts const& p = tokenizer_.state_->parts;
    TokenType const type = tokenizer_.type(id);
    if (type == TokenType::control) {
      if (special_) out += tokenizer_.token(id);
      return after(detail::Before::control);
    }
    if (type == TokenType::user_defined) {
      out += tokenizer_.bytes(id);
      return after(detail::Before::user_defined);
    }
    std::string_view text = tokenizer_.bytes(id);
    bool const pieces = p.model == TokenizerModel::wordpiece;
    if (pieces && begun_ && text.size() == tokenizer_.token(id).size()) blank_ = true;
    if (blank_) out.push_back(' ');
    blank_ = !pieces && !p.end_of_word.empty() && text.size() < tokenizer_.token(id).size() &&
             tokenizer_.token(id).ends_with(p.end_of_word);
    begun_ = true;
    if (strip_ && text.starts_with(' ')) text.remove_prefix(1);
    strip_ = strip_ && text.empty() && tokenizer_.bytes(id).empty();
    out += text;
  }
  // The blank that encode put in front of what follows is taken away again.
  void after(detail::Before before) {
    strip_ = detail::has_prefix(tokenizer_.state_->parts.space_prefix, before);
    begun_ = false;
    blank_ = false;
  }

  Tokenizer tokenizer_;
  std::string waiting_;
  bool special_, strip_ = false, begun_ = false, blank_ = false;
};

inline std::string Tokenizer::decode(std::span<std::int32_t const> ids, bool special) const {
  StreamDecoder decoder(*this, special);
  std::string r;
  for (std::int32_t id : ids) decoder.append(id, r);
  return r;
}

}  // namespace dfdx::text
