// SPDX-License-Identifier: BSL-1.0
// Texts from a model of language, token by token, and what a model makes of a given text.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>
#include <functional>
#include <memory>
#include <span>

#include <dfdx/models/decoder.hpp>
#include <dfdx/models/sampling.hpp>

namespace dfdx::models {

/// language_model - what texts are made with: Llama, LlamaModel of static sizes, Gpt2. A Decoder runs them, so that a
/// program which trains nothing has nothing in it of the ops of their models; cache(...) is an empty KvCache,
/// config.positions() how many there are.
template <class M>
concept language_model = requires(M const& m, index_t n, Encoding e) {
  { decoder_model(m) } -> std::same_as<DecoderModel>;
  { m.cache(n, std::optional<index_t>(), e) } -> std::same_as<KvCache>;
  { m.config.positions() } -> std::convertible_to<index_t>;
};

/// GenerateOptions - how many tokens at most, where to stop, how many positions there is room for (0: the model's), how
/// many of a prompt are computed at once, and how many of the first stay when there is no room. Where `read` points to
/// is added how many tokens of prompts were computed, and not there already.
struct GenerateOptions {
  index_t tokens = 256;
  std::vector<std::int32_t> stop{};
  index_t capacity = 0, block = 256, keep = 1;
  Encoding cache = DType::f32;
  index_t* read = nullptr;
};

namespace detail {

inline Array token_row(std::span<std::int32_t const> tokens) {
  Array r(Meta{DType::i32, make_shape(static_cast<index_t>(tokens.size()))});
  std::copy(tokens.begin(), tokens.end(), r.data<std::int32_t>());
  return r;
}

// The first n positions of what a layer keeps, [heads, positions, size], for others with room for them. Those of a head
// lie beside each other: a device copies them by itself.
template <int = 0>
void copy_positions(Array const& from, Array const& to, index_t n) {
  for (index_t h = 0; h < from.shape()[0]; ++h) {
    auto const first = [&](Array const& all) { return slice(slice(all, 0, h, h + 1), 1, 0, n); };
    dfdx::detail::copy_values(first(from), first(to));
  }
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
    std::span<float const> const logits = run(tokens);
    Array r(Meta{DType::f32, make_shape(static_cast<index_t>(logits.size()))});
    std::copy(logits.begin(), logits.end(), r.data<float>());
    return r;
  }

  /// step - adds one token, and takes no memory for it. The numbers are there until the next call.
  std::span<float const> step(std::int32_t token) { return run(std::span(&token, 1)); }

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
  /// after it is asked for, and none where rotary frequencies depend on how long the text is (dynamic, longrope).
  std::size_t common(std::span<std::int32_t const> text) const {
    if constexpr (requires { model_->config.rope; }) {
      if (model_->config.rope.stretched_by(static_cast<index_t>(std::max(tokens_.size(), text.size()))))
        return 0;
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

  /// begin_as - takes the first n tokens of another context of the model, which are not computed again: of a text to
  /// come at most other.common(text).
  ///
  /// Errors    "generate: 7 tokens cannot be taken of 5 by a context of 64", "generate: contexts that keep other
  /// numbers", "generate: a context cannot begin as itself"
  void begin_as(Context const& other, index_t n) {
    if (&other == this) raise("generate: a context cannot begin as itself");
    if (n < 0 || n > static_cast<index_t>(other.tokens_.size()) || n > cache_.capacity)
      raise("generate: ", n, " tokens cannot be taken of ", static_cast<index_t>(other.tokens_.size()),
            " by a context of ", cache_.capacity);
    if (cache_.encoding != other.cache_.encoding) raise("generate: contexts that keep other numbers");
    for (std::size_t i = 0; i < cache_.keys.size(); ++i) {
      detail::copy_positions(other.cache_.keys[i], cache_.keys[i], n);
      detail::copy_positions(other.cache_.values[i], cache_.values[i], n);
    }
    tokens_.assign(other.tokens_.begin(), other.tokens_.begin() + n);
    cache_.length = cache_.ahead = n;
  }

  /// share - computes with a decoder that other contexts of the model have too, one at a time.
  void share(std::shared_ptr<Decoder> decoder) { decoder_ = std::move(decoder); }

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

  /// step_together - adds one token to each of some texts that share a decoder: [texts, vocabulary], until the next
  /// call. The matrices are read once for all, and no memory is taken.
  ///
  /// Errors    "generate: texts that share no decoder"; those of Decoder
  template <language_model N>
  friend std::span<float const> step_together(std::span<Context<N>* const> texts,
                                              std::span<std::int32_t const> tokens);

 private:
  // Block by block.
  std::span<float const> run(std::span<std::int32_t const> tokens) {
    cache_.ahead = cache_.length + static_cast<index_t>(tokens.size());
    if (!decoder_) decoder_ = std::make_shared<Decoder>(*model_, cache_.capacity);
    std::span<float const> logits;
    for (std::size_t i = 0; i < tokens.size(); i += static_cast<std::size_t>(block_)) {
      auto const some = tokens.subspan(i, std::min(tokens.size() - i, static_cast<std::size_t>(block_)));
      logits = (*decoder_)(some, cache_);
      tokens_.insert(tokens_.end(), some.begin(), some.end());
    }
    return logits;
  }

  M const* model_;
  KvCache cache_;
  std::shared_ptr<Decoder> decoder_;
  index_t block_;
  std::vector<std::int32_t> tokens_;
};

namespace detail {

// The caches of some texts, in no memory of their own.
template <class Text>
struct CachesOf {
  std::span<Text* const> texts;
  std::size_t size() const { return texts.size(); }
  KvCache* operator[](std::size_t i) const { return &texts[i]->cache(); }
};

}  // namespace detail

template <language_model N>
std::span<float const> step_together(std::span<Context<N>* const> texts,
                                     std::span<std::int32_t const> tokens) {
  for (Context<N>* c : texts) {
    if (!c->decoder_ || c->decoder_ != texts[0]->decoder_) raise("generate: texts that share no decoder");
    c->cache_.ahead = c->cache_.length + 1;
  }
  if (texts.empty()) return {};
  std::span<float const> const rows = (*texts[0]->decoder_)(tokens, detail::CachesOf<Context<N>>{texts});
  for (std::size_t i = 0; i < texts.size(); ++i) texts[i]->tokens_.push_back(tokens[i]);
  return rows;
}

namespace detail {

template <int = 0>
void check_prompt(std::span<std::int32_t const> prompt, index_t room) {
  if (prompt.empty()) raise("generate: the prompt is empty");
  if (static_cast<index_t>(prompt.size()) > room)
    raise("generate: a prompt of ", static_cast<index_t>(prompt.size()), " tokens, there is room for ", room);
}

}  // namespace detail

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
  detail::check_prompt(prompt, context.cache().capacity);
  for (std::int32_t t : prompt) sampler.accept(t);
  std::vector<std::int32_t> r;
  std::size_t const same = context.common(prompt);
  context.rewind(static_cast<index_t>(same));
  Array const first = context.add(prompt.subspan(same));
  if (o.read != nullptr) *o.read += static_cast<index_t>(prompt.size() - same);
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
/// Errors    "score: at least two tokens required, got 1"; "score: token 600, there are 512"; those of Decoder
template <language_model M>
Score score(M const& model, std::span<std::int32_t const> tokens, index_t length = 0) {
  if (length <= 0) length = model.config.context;
  if (tokens.size() < 2)
    raise("score: at least two tokens required, got ", static_cast<index_t>(tokens.size()));
  // Numbers for all tokens of a block are there at once: a few of a large vocabulary are enough for the products.
  constexpr std::size_t block = 64;
  index_t const most = std::min(length, static_cast<index_t>(tokens.size()) - 1);
  KvCache cache = model.cache(std::min(most, model.config.positions()));
  Decoder decode(model, cache.capacity);
  Score r;
  for (std::size_t i = 0; i + 1 < tokens.size(); i += static_cast<std::size_t>(length)) {
    auto const piece = tokens.subspan(i, std::min(tokens.size() - i, static_cast<std::size_t>(length) + 1));
    std::size_t const n = piece.size() - 1;
    cache.length = 0, cache.ahead = static_cast<index_t>(n);
    for (std::size_t first = 0; first < n; first += block) {
      auto const some = piece.subspan(first, std::min(block, n - first));
      std::span<float const> const logits = decode.rows(some, cache);
      std::size_t const row = logits.size() / some.size();
      for (std::size_t k = 0; k < some.size(); ++k) {
        std::int32_t const next = piece[first + k + 1];
        if (next < 0 || static_cast<std::size_t>(next) >= row)
          raise("score: token ", Position{next}, ", there are ", static_cast<index_t>(row));
        float const* const x = logits.data() + k * row;
        r.loss += detail::log_sum_exp(x, static_cast<index_t>(row)) - static_cast<double>(x[next]);
      }
    }
    r.tokens += static_cast<index_t>(n);
  }
  r.loss /= static_cast<double>(r.tokens);
  return r;
}

}  // namespace dfdx::models
