// SPDX-License-Identifier: BSL-1.0
// Byte pair encoding: symbols of a piece are joined, the best pair first and of equal ones the leftmost, until no pair
// is a token. A heap finds the best pair, so a piece of n characters takes O(n log n) whatever it holds.
#pragma once

#include <functional>
#include <queue>

#include <dfdx/text/vocabulary.hpp>

namespace dfdx::text::detail {

struct Symbol {
  std::int32_t id;  // -1: no token
  std::uint32_t begin, size;
  std::int32_t last, next;  // neighbours, -1 for none; size 0: joined to the one before
};

// What a pair becomes, and how soon.
struct Joined {
  std::uint32_t rank;
  std::int32_t id;
};

// Symbols that follow each other in one text; `find(left, right)` gives std::optional<Joined>.
template <class Find>
void join(std::vector<Symbol>& symbols, Find&& find) {
  struct Candidate {
    std::uint32_t rank;
    std::int32_t left, right, id;
    std::uint32_t size;
    bool operator<(Candidate const& o) const { return rank != o.rank ? rank > o.rank : left > o.left; }
  };
  std::vector<Candidate> storage;
  storage.reserve(symbols.size());
  std::priority_queue<Candidate> heap(std::less<Candidate>{}, std::move(storage));
  auto const consider = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0) return;
    Symbol const &a = symbols[static_cast<std::size_t>(left)], &b = symbols[static_cast<std::size_t>(right)];
    if (auto const j = find(a, b)) heap.push({j->rank, left, right, j->id, a.size + b.size});
  };
  for (std::size_t i = 1; i < symbols.size(); ++i)
    consider(static_cast<std::int32_t>(i - 1), static_cast<std::int32_t>(i));
  while (!heap.empty()) {
    Candidate const c = heap.top();
    heap.pop();
    Symbol &a = symbols[static_cast<std::size_t>(c.left)], &b = symbols[static_cast<std::size_t>(c.right)];
    // Either may have been joined to another since; then it is longer, or gone.
    if (a.size == 0 || b.size == 0 || a.next != c.right || a.size + b.size != c.size) continue;
    a.id = c.id;
    a.size = c.size;
    a.next = b.next;
    b.size = 0;
    if (a.next >= 0) symbols[static_cast<std::size_t>(a.next)].last = c.left;
    consider(a.last, c.left);
    consider(c.left, a.next);
  }
}

inline void link(std::vector<Symbol>& symbols) {
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].last = static_cast<std::int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<std::int32_t>(i + 1) : -1;
  }
}

inline void check_length(std::string const& name, std::string_view piece) {
  if (piece.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    fail(name, "a piece of text is longer than 2 GiB");
}

inline std::vector<Symbol> characters(TokenIndex const& index, std::string_view piece) {
  std::vector<Symbol> r;
  for (std::size_t at = 0; at < piece.size();) {
    std::size_t const size = decode_at(piece, at).size;
    r.push_back({found_in(index, piece.substr(at, size)), static_cast<std::uint32_t>(at),
                 static_cast<std::uint32_t>(size), -1, -1});
    at += size;
  }
  link(r);
  return r;
}

/// RankedBpe - pairs by a list of merges; symbols are bytes (GPT-2, CLIP, Llama-3) or characters.
class RankedBpe {
 public:
  /// `index` has the normal tokens, as bytes if `parts` is of bytes.
  RankedBpe(TokenizerParts const& parts, TokenIndex const& index)
      : index_(&index),
        fallback_(parts),
        name_(parts.name),
        whole_first_(parts.whole_pieces_first),
        of_bytes_(parts.model == TokenizerModel::byte_bpe),
        end_(parts.end_of_word) {
    for (int b = 0; b < 256; ++b) {
      std::string const byte(1, static_cast<char>(static_cast<unsigned char>(b)));
      bytes_[b] = found_in(index, byte);
      last_bytes_[b] = end_.empty() ? bytes_[b] : found_in(index, byte + end_);
    }
    by_token_ = parts.merges.empty();
    for (std::size_t i = 0; i < parts.tokens.size(); ++i)
      longest_ = std::max(longest_, parts.tokens[i].size());
    std::string left, right;
    for (std::size_t i = 0; i < parts.merges.size(); ++i) {
      auto const& merge = parts.merges[i];
      left = merge.first, right = merge.second;
      if (of_bytes_ && !parts.tokens_are_bytes) {
        std::string bytes;
        if (byte_level_bytes(left, bytes)) left = bytes;
        if (byte_level_bytes(right, bytes)) right = bytes;
      }
      std::int32_t const a = found_in(index, left), b = found_in(index, right),
                         ab = found_in(index, left + right);
      if (a < 0 || b < 0 || ab < 0)
        fail(name_, "merge " + std::to_string(i) + " names no token: " +
                        in_quotes(a < 0   ? merge.first
                                  : b < 0 ? merge.second
                                          : merge.first + merge.second));
      pairs_.insert(key(a, b), std::uint64_t{i} << 32 | static_cast<std::uint32_t>(ab));
    }
  }

  void encode(std::string_view piece, Ids& out) const {
    check_length(name_, piece);
    if (whole_first_)
      if (std::int32_t const id = found_in(*index_, piece); id >= 0) return out.push_back(id);
    std::vector<Symbol> symbols = of_bytes_ ? bytes(piece) : characters(*index_, piece);
    if (by_token_)
      join(symbols, [&](Symbol const& a, Symbol const& b) -> std::optional<Joined> {
        if (std::size_t{a.size} + b.size > longest_) return {};
        std::int32_t const id = found_in(*index_, piece.substr(a.begin, a.size + b.size));
        if (id < 0) return {};
        return Joined{static_cast<std::uint32_t>(id), id};
      });
    else
      join(symbols, [&](Symbol const& a, Symbol const& b) -> std::optional<Joined> {
        if (a.id < 0 || b.id < 0) return {};
        std::uint64_t const found = pairs_.find(key(a.id, b.id));
        if (found == FlatMap::none) return {};
        return Joined{static_cast<std::uint32_t>(found >> 32),
                      static_cast<std::int32_t>(found & 0xFFFFFFFFu)};
      });
    std::size_t const first = out.size();
    for (Symbol const& s : symbols) {
      if (s.size == 0) continue;
      if (s.id >= 0) out.push_back(s.id);
      else fallback_.append(piece.substr(s.begin, s.size), first, out);
    }
  }

 private:
  static std::uint64_t key(std::int32_t a, std::int32_t b) {
    return std::uint64_t{static_cast<std::uint32_t>(a)} << 32 | static_cast<std::uint32_t>(b);
  }
  std::vector<Symbol> bytes(std::string_view piece) const {
    std::vector<Symbol> r(piece.size());
    for (std::size_t i = 0; i < piece.size(); ++i) {
      auto const byte = static_cast<unsigned char>(piece[i]);
      r[i] = {i + 1 < piece.size() ? bytes_[byte] : last_bytes_[byte], static_cast<std::uint32_t>(i), 1, -1,
              -1};
    }
    link(r);
    return r;
  }

  TokenIndex const* index_;
  Fallback fallback_;
  std::string name_;
  bool whole_first_, of_bytes_, by_token_ = false;
  std::string end_;
  std::size_t longest_ = 0;
  FlatMap pairs_;
  std::int32_t bytes_[256], last_bytes_[256];
};

/// ScoredBpe - SentencePiece's: two symbols are joined if their text is a token, that of the highest score first.
class ScoredBpe {
 public:
  ScoredBpe(TokenizerParts const& parts, TokenIndex const& index)
      : parts_(&parts), index_(&index), fallback_(parts) {
    std::vector<float> order(parts.scores);
    std::sort(order.begin(), order.end(), std::greater<>{});
    order.erase(std::unique(order.begin(), order.end()), order.end());
    ranks_.reserve(parts.scores.size());
    for (float score : parts.scores) {
      auto const at = std::lower_bound(order.begin(), order.end(), score, std::greater<>{});
      ranks_.push_back(static_cast<std::uint32_t>(at - order.begin()));
    }
    for (auto const& [text, id] : index) longest_ = std::max(longest_, text.size());
    has_unused_ = std::find(parts.types.begin(), parts.types.end(), TokenType::unused) != parts.types.end();
  }

  void encode(std::string_view piece, Ids& out) const {
    check_length(parts_->name, piece);
    std::vector<Symbol> symbols = characters(*index_, piece);
    // An unused token takes part in merges and falls apart again into what it was made of.
    std::unordered_map<std::int32_t, std::uint32_t> made_of;  // the size of its left part
    join(symbols, [&](Symbol const& a, Symbol const& b) -> std::optional<Joined> {
      if (std::size_t{a.size} + b.size > longest_) return {};
      std::int32_t const id = found_in(*index_, piece.substr(a.begin, a.size + b.size));
      if (id < 0) return {};
      if (has_unused_ && unused(id)) made_of.insert_or_assign(id, a.size);
      return Joined{ranks_[static_cast<std::size_t>(id)], id};
    });
    std::size_t const first = out.size();
    for (Symbol const& s : symbols)
      if (s.size != 0) append(piece.substr(s.begin, s.size), s.id, made_of, first, out);
  }

 private:
  bool unused(std::int32_t id) const {
    return parts_->type(static_cast<std::size_t>(id)) == TokenType::unused;
  }

  // Parts are shorter than what they make, so this ends.
  void append(std::string_view text, std::int32_t id,
              std::unordered_map<std::int32_t, std::uint32_t> const& made_of, std::size_t first,
              Ids& out) const {
    std::vector<std::string_view> waiting = {text};
    for (bool outer = true; !waiting.empty(); outer = false) {
      std::string_view const part = waiting.back();
      waiting.pop_back();
      std::int32_t const now = outer ? id : found_in(*index_, part);
      auto const made = now >= 0 && has_unused_ && unused(now) ? made_of.find(now) : made_of.end();
      if (made != made_of.end()) {
        waiting.push_back(part.substr(made->second));
        waiting.push_back(part.substr(0, made->second));
      } else if (now >= 0) {
        out.push_back(now);
      } else {
        fallback_.append(part, first, out);
      }
    }
  }

  TokenizerParts const* parts_;
  TokenIndex const* index_;
  Fallback fallback_;
  std::vector<std::uint32_t> ranks_;
  std::size_t longest_ = 0;
  bool has_unused_ = false;
};

}  // namespace dfdx::text::detail
