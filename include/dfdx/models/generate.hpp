// SPDX-License-Identifier: BSL-1.0
// Texts from a model of language, token by token, and what a model makes of a given text.
#pragma once

#include <algorithm>
#include <concepts>
#include <functional>
#include <span>

#include <dfdx/models/decoder.hpp>
#include <dfdx/models/parts.hpp>
#include <dfdx/models/sampling.hpp>
#include <dfdx/vocabulary/class_loss.hpp>

namespace dfdx::models {

/// language_model - what texts are made with: Llama, Gpt2. hidden(tokens, cache) is what head(h) makes the logits of,
/// cache(...) an empty KvCache, and config.positions() how many there are.
template <class M>
concept language_model = requires(M const& m, Array const& x, KvCache* cache, index_t n, Encoding e) {
  { m(x) } -> std::same_as<Array>;
  { m.hidden(x, cache) } -> std::same_as<Array>;
  { m.head(x) } -> std::same_as<Array>;
  { m.cache(n, std::optional<index_t>(), e) } -> std::same_as<KvCache>;
  { m.config.positions() } -> std::convertible_to<index_t>;
};

/// GenerateOptions - how many tokens at most, where to stop, how many positions there is room for (0: the model's), how
/// many of a prompt are computed at once, and how many of the first stay when there is no room.
struct GenerateOptions {
  index_t tokens = 256;
  std::vector<std::int32_t> stop{};
  index_t capacity = 0, block = 256, keep = 1;
  Encoding cache = DType::f32;
};

namespace detail {

inline Array token_row(std::span<std::int32_t const> tokens) {
  Array r(Meta{DType::i32, make_shape(static_cast<index_t>(tokens.size()))});
  std::copy(tokens.begin(), tokens.end(), r.data<std::int32_t>());
  return r;
}

}  // namespace detail

/// Context - a text so far, as a model has computed it: its tokens and their keys and values.
template <language_model M>
class Context {
 public:
  Context(M const& model, index_t capacity, Encoding cache = DType::f32, index_t block = 256)
      : model_(&model), cache_(model.cache(capacity, {}, cache)), block_(block) {
    tokens_.reserve(static_cast<std::size_t>(capacity));
    if (capacity < 2 || block < 1)
      raise("generate: ", capacity, " positions in blocks of ", block, " are too few");
  }

  /// Adds tokens and gives the numbers for what comes after the last: [vocabulary].
  Array add(std::span<std::int32_t const> tokens) {
    if (tokens.empty()) raise("generate: no tokens to add");
    cache_.ahead = cache_.length + static_cast<index_t>(tokens.size());
    if (can_step()) {
      std::span<float const> const logits = run(tokens);
      Array r(Meta{DType::f32, make_shape(static_cast<index_t>(logits.size()))});
      std::copy(logits.begin(), logits.end(), r.data<float>());
      return r;
    }
    no_grad const mode;
    Array h;
    for (std::size_t i = 0; i < tokens.size(); i += static_cast<std::size_t>(block_)) {
      auto const some = tokens.subspan(i, std::min(tokens.size() - i, static_cast<std::size_t>(block_)));
      h = model_->hidden(detail::token_row(some), &cache_);
      tokens_.insert(tokens_.end(), some.begin(), some.end());
    }
    return model_->head(slice(h, 0, h.shape()[0] - 1)).to(DType::f32)[0].contiguous();
  }

  /// step - adds one token, and takes no memory for it where a Decoder can run the model. The numbers are there until
  /// the next call.
  std::span<float const> step(std::int32_t token) {
    if (can_step()) return run(std::span(&token, 1));
    logits_ = add(std::span(&token, 1));
    return {logits_.data<float>(), static_cast<std::size_t>(logits_.size())};
  }

  /// Makes room: of what stands after the first `keep` tokens the first half is forgotten, the rest computed anew, for
  /// keys know their positions.
  void shift(index_t keep) {
    auto const n = static_cast<index_t>(tokens_.size()), kept = std::max(index_t{0}, std::min(keep, n - 1));
    std::vector<std::int32_t> rest(tokens_.begin(), tokens_.begin() + kept);
    rest.insert(rest.end(), tokens_.begin() + kept + (n - kept + 1) / 2, tokens_.end());
    cache_.length = cache_.ahead = 0;
    tokens_.clear();
    if (!rest.empty()) add(rest);
  }

  /// How many of the first tokens of another text are here, and would be computed alike: not the last, for what comes
  /// after it is asked for, and none where rotary frequencies depend on how long the text is (Kind::dynamic).
  std::size_t common(std::span<std::int32_t const> text) const {
    if constexpr (requires { model_->config.rope; }) {
      auto const& rope = model_->config.rope;
      auto const longest = static_cast<double>(std::max(tokens_.size(), text.size()));
      if (rope.kind == RopeFrequencies::Kind::dynamic && longest > rope.original_context) return 0;
    }
    std::size_t same = 0;
    while (same < tokens_.size() && same + 1 < text.size() && tokens_[same] == text[same]) ++same;
    return same;
  }

  /// Forgets all but the first n tokens.
  ///
  /// Errors    "generate: 7 tokens cannot be kept of 5"
  void rewind(index_t n) {
    if (n < 0 || n > static_cast<index_t>(tokens_.size()))
      raise("generate: ", n, " tokens cannot be kept of ", static_cast<index_t>(tokens_.size()));
    tokens_.resize(static_cast<std::size_t>(n));
    cache_.length = cache_.ahead = n;
  }

  bool full() const { return cache_.length == cache_.capacity; }
  std::vector<std::int32_t> const& tokens() const { return tokens_; }
  KvCache& cache() { return cache_; }
  KvCache const& cache() const { return cache_; }
  /// resume - the cache holds what has been computed of these tokens (models/session.hpp).
  void resume(std::span<std::int32_t const> tokens) {
    if (static_cast<index_t>(tokens.size()) > cache_.capacity)
      raise("generate: ", static_cast<index_t>(tokens.size()), " tokens, there is room for ",
            cache_.capacity);
    tokens_.assign(tokens.begin(), tokens.end());
    cache_.length = static_cast<index_t>(tokens.size());
  }

 private:
  // With the decoder, block by block.
  std::span<float const> run(std::span<std::int32_t const> tokens) {
    std::span<float const> logits;
    if constexpr (std::same_as<M, Llama>) {
      if (!decoder_) decoder_.emplace(*model_, cache_.capacity);
      for (std::size_t i = 0; i < tokens.size(); i += static_cast<std::size_t>(block_)) {
        auto const some = tokens.subspan(i, std::min(tokens.size() - i, static_cast<std::size_t>(block_)));
        logits = (*decoder_)(some, cache_);
        tokens_.insert(tokens_.end(), some.begin(), some.end());
      }
    }
    return logits;
  }
  bool can_step() const {
    if constexpr (std::same_as<M, Llama>)
      return decoder_ || (Decoder::supports(*model_) && Decoder::supports(cache_));
    else return false;
  }

  M const* model_;
  KvCache cache_;
  std::optional<Decoder> decoder_;
  Array logits_;
  index_t block_;
  std::vector<std::int32_t> tokens_;
};

/// generate - tokens after a prompt, in a context that may hold other texts: of what it and the prompt begin with alike
/// nothing is computed again. Then it holds the prompt and what came after it but the last token. Each token is handed
/// to `take` when it is there, which returns whether to go on; tokens of `stop` end the text and are not handed out.
/// The result is all that were.
///
/// Errors    "generate: a prompt of 5000 tokens, there is room for 4096", "generate: the prompt is empty"
template <language_model M>
std::vector<std::int32_t> generate(Context<M>& context, std::span<std::int32_t const> prompt, Sampler sampler,
                                   GenerateOptions const& o = {},
                                   std::function<bool(std::int32_t)> const& take = {}) {
  index_t const capacity = context.cache().capacity;
  if (prompt.empty()) raise("generate: the prompt is empty");
  if (static_cast<index_t>(prompt.size()) > capacity)
    raise("generate: a prompt of ", static_cast<index_t>(prompt.size()), " tokens, there is room for ",
          capacity);
  for (std::int32_t t : prompt) sampler.accept(t);
  std::vector<std::int32_t> r;
  std::size_t const same = context.common(prompt);
  context.rewind(static_cast<index_t>(same));
  Array const first = context.add(prompt.subspan(same));
  std::span<float const> logits(first.data<float>(), static_cast<std::size_t>(first.size()));
  for (index_t i = 0; i < o.tokens; ++i) {
    std::int32_t const next = sampler(logits);
    if (std::find(o.stop.begin(), o.stop.end(), next) != o.stop.end()) break;
    r.push_back(next);
    if (take && !take(next)) break;
    if (i + 1 == o.tokens) break;
    if (context.full()) context.shift(o.keep);
    logits = context.step(next);
  }
  return r;
}

/// generate - the same in a context of its own.
///
/// Errors    the same
template <language_model M>
std::vector<std::int32_t> generate(M const& model, std::span<std::int32_t const> prompt, Sampler sampler,
                                   GenerateOptions const& o = {},
                                   std::function<bool(std::int32_t)> const& take = {}) {
  Context<M> context(model, o.capacity > 0 ? o.capacity : model.config.positions(), o.cache, o.block);
  return generate(context, prompt, std::move(sampler), o, take);
}

/// Score - how well a model foresees a text: the mean of -log p over its tokens but the first.
struct Score {
  double loss = 0;
  index_t tokens = 0;
  double perplexity() const { return std::exp(loss); }
};

/// score - of a text in pieces of `length` tokens (0: the model's context), each by itself.
///
/// Errors    "score: at least two tokens required, got 1"
template <language_model M>
Score score(M const& model, std::span<std::int32_t const> tokens, index_t length = 0) {
  if (length <= 0) length = model.config.context;
  if (tokens.size() < 2)
    raise("score: at least two tokens required, got ", static_cast<index_t>(tokens.size()));
  no_grad const mode;
  Score r;
  for (std::size_t i = 0; i + 1 < tokens.size(); i += static_cast<std::size_t>(length)) {
    auto const piece = tokens.subspan(i, std::min(tokens.size() - i, static_cast<std::size_t>(length) + 1));
    auto const n = static_cast<index_t>(piece.size()) - 1;
    Array const logits = model(detail::token_row(piece.first(piece.size() - 1)));
    Array const loss = cross_entropy(logits.to(DType::f32), detail::token_row(piece.subspan(1)));
    r.loss += static_cast<double>(loss.item<float>()) * static_cast<double>(n);
    r.tokens += n;
  }
  r.loss /= static_cast<double>(r.tokens);
  return r;
}

}  // namespace dfdx::models
