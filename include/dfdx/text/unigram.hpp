// SPDX-License-Identifier: BSL-1.0
// The two models that are no byte pair encoding: unigram (the best sequence of tokens, by dynamic programming) and
// WordPiece (the longest token, again and again).
#pragma once

#include <dfdx/text/vocabulary.hpp>

namespace dfdx::text::detail {

/// Unigram - the tokens whose scores (logarithms of probabilities) have the highest sum.
///
/// Source    https://arxiv.org/abs/1804.10959; that an unknown character costs 10 more than the rarest token, and that
///           a token of the user costs next to nothing, is SentencePiece's
class Unigram {
 public:
  Unigram(TokenizerParts const& parts, TokenIndex const& index) : fallback_(parts), name_(parts.name) {
    float lowest = 0, highest = 0;
    bool any = false;
    for (auto const& [text, id] : index) {
      float const score = parts.scores[static_cast<std::size_t>(id)];
      if (parts.type(static_cast<std::size_t>(id)) != TokenType::normal) continue;
      lowest = any ? std::min(lowest, score) : score;
      highest = any ? std::max(highest, score) : score;
      any = true;
    }
    unknown_score_ = double{lowest} - 10;
    scores_.assign(parts.scores.begin(), parts.scores.end());
    for (auto const& [text, id] : index) {
      auto const i = static_cast<std::size_t>(id);
      if (parts.type(i) == TokenType::unused) continue;
      if (parts.type(i) == TokenType::user_defined)
        scores_[i] = static_cast<double>(text.size()) * double{highest} - 0.1;
      tree_.add(text, id);
    }
  }

  void encode(std::string_view piece, Ids& out) const {
    struct Best {
      double score = -std::numeric_limits<double>::infinity();
      std::size_t from = 0;
      std::int32_t id = -1;
      bool reached = false;
    };
    std::vector<Best> best(piece.size() + 1);  // of what ends there
    best[0] = {0, 0, -1, true};
    for (std::size_t at = 0; at < piece.size();) {
      std::size_t const size = decode_at(piece, at).size;
      bool single = false;
      auto const offer = [&](std::size_t length, std::int32_t id, double score) {
        Best& b = best[at + length];
        double const sum = best[at].score + score;
        if (!b.reached || sum > b.score) b = {sum, at, id, true};
      };
      tree_.matches(piece, at, [&](std::size_t length, std::int32_t id) {
        single = single || length == size;
        offer(length, id, scores_[static_cast<std::size_t>(id)]);
      });
      if (!single) offer(size, -1, unknown_score_);
      at += size;
    }
    std::vector<std::size_t> ends;
    for (std::size_t end = piece.size(); end > 0; end = best[end].from) ends.push_back(end);
    std::size_t const first = out.size();
    for (std::size_t i = ends.size(); i-- > 0;) {
      Best const& b = best[ends[i]];
      if (b.id >= 0) out.push_back(b.id);
      else fallback_.append(piece.substr(b.from, ends[i] - b.from), first, out);
    }
  }

 private:
  Fallback fallback_;
  std::string name_;
  ByteTree tree_;
  std::vector<double> scores_;
  double unknown_score_ = 0;
};

/// WordPiece - the longest token that a word begins with, then the longest "##" token, and so on; a word of which a
/// part is no token is unknown as a whole.
///
/// Source    https://arxiv.org/abs/1810.04805; the code of BERT (max_input_chars_per_word)
class WordPiece {
 public:
  WordPiece(TokenizerParts const& parts, TokenIndex const& index)
      : name_(parts.name), unknown_(parts.unknown), longest_(parts.longest_word) {
    if (unknown_ < 0) fail(name_, "WordPiece needs an unknown token, and there is none");
    for (auto const& [text, id] : index) {
      bool const inside = text.starts_with(parts.inside_word) && text.size() > parts.inside_word.size();
      if (inside) inside_.add(text.substr(parts.inside_word.size()), id);
      begin_.add(text, id);
    }
  }

  void encode(std::string_view word, Ids& out) const {
    std::size_t const first = out.size();
    std::size_t count = 0;
    for (std::size_t at = 0; at < word.size() && count <= longest_; ++count) at += decode_at(word, at).size;
    bool known = count <= longest_;
    for (std::size_t at = 0; known && at < word.size();) {
      std::size_t length = 0;
      std::int32_t id = -1;
      (at == 0 ? begin_ : inside_).matches(word, at, [&](std::size_t n, std::int32_t i) {
        length = n, id = i;
      });
      known = length != 0;
      if (known) out.push_back(id);
      at += length;
    }
    if (known) return;
    out.resize(first);
    out.push_back(unknown_);
  }

 private:
  std::string name_;
  std::int32_t unknown_;
  std::size_t longest_;
  ByteTree begin_, inside_;
};

}  // namespace dfdx::text::detail
