// SPDX-License-Identifier: BSL-1.0
// StopTexts - where a text that comes piece by piece ends.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <dfdx/core/error.hpp>

namespace dfdx::text {

/// StopTexts - watches a text that comes piece by piece for words that end it, wherever tokens divide them. What may be
/// the beginning of one waits; the word itself, and what stands behind it, is never given out. (Where one such word
/// stands within another, the one that is complete first counts.)
///
///   StopTexts stop({"\nUser:"});
///   models::generate(model, prompt, sampler, {}, [&](std::int32_t token) {
///     std::cout << stop.push(words.push(token));  // words: a StreamDecoder
///     return !stop.ended();
///   });
///   std::cout << stop.push(words.finish()) << stop.finish();
///
/// Errors    "text: a text to stop at is empty"
class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts = {}) : texts_(std::move(texts)) {
    for (std::string const& t : texts_)
      if (t.empty()) raise("text: a text to stop at is empty");
  }

  /// What may be shown now that this came too.
  std::string push(std::string const& piece) {
    if (ended_) return {};
    waiting_ += piece;
    std::size_t end = std::string::npos, shown = waiting_.size();
    for (std::string const& t : texts_) {
      end = std::min(end, waiting_.find(t));
      for (std::size_t n = std::min(t.size() - 1, waiting_.size()); n > 0; --n)
        if (waiting_.compare(waiting_.size() - n, n, t, 0, n) == 0) {
          shown = std::min(shown, waiting_.size() - n);
          break;
        }
    }
    ended_ = end != std::string::npos;
    std::string r = waiting_.substr(0, ended_ ? end : shown);
    waiting_.erase(0, r.size());
    if (ended_) waiting_.clear();
    return r;
  }
  /// What was still waiting when the text ended without such a word. Another text may follow.
  std::string finish() {
    ended_ = false;
    std::string r;
    r.swap(waiting_);
    return r;
  }
  bool ended() const { return ended_; }

 private:
  std::vector<std::string> texts_;
  std::string waiting_;
  bool ended_ = false;
};

}  // namespace dfdx::text
