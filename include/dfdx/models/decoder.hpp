// SPDX-License-Identifier: BSL-1.0
// Decoder - tokens through a model in memory: the numbers that Llama or Gpt2 give, without values, shapes and memory
// for each op between. One token at a time, a prompt, or the next tokens of several texts.
#pragma once

#include <dfdx/models/decoder_host.hpp>

namespace dfdx::models {

/// Decoder - runs a model for one token after another, for prompts, and for several texts side by side, each with a
/// cache of its own and of its own length. It takes its memory when it is made, or when more tokens come at once than
/// ever, none for a token, and shares the model's arrays of f32 and 16 bits: what is changed within them it sees,
/// arrays put in their place it does not. It computes in f32, whatever the dtype of the model's numbers.
///
///   Decoder decode(model, cache.capacity);
///   std::span<float const> logits = decode(token, cache);  // valid until the next call
///   logits = decode(tokens, cache);                        // of what comes after the last of them
///   logits = decode(tokens, caches);                       // a row for each text
///
/// A model that `to(cuda(), model)` has moved is run on its device, by a program that has <dfdx/cuda_models.hpp> in one
/// of its files. From the third token on a token is one launch; the results come back.
///
/// Numerics  those of the model: equal to rounding, and for any number of threads to the last bit. Of 5 texts or more
///           together, and of prompts so long, the last bits may be others than one by one; on devices of any number
class Decoder {
 public:
  /// supports - whether the cache is one of a single sequence, of f32, of 16 bits or of blocks.
  static bool supports(KvCache const& c) {
    return !c.keys.empty() && c.keys[0].ndim() == 3 && detail::MatrixRows::supports(c.encoding);
  }

  /// Of a Llama or a Gpt2. `threads` is the most that take part: 0 for as many as OpenMP has, 1 without it.
  ///
  /// Errors    those of DecoderModel; "decoder: the model lies on cuda:0, and no file of this program includes
  ///           <dfdx/cuda_models.hpp>"; "decoder: heads of 258 on cuda:0, at most 256 are supported"; of a call
  ///           "decoder: 400000 tokens at once on cuda:0, at most 349525 are supported"
  template <class M>
    requires requires(M const& m) { decoder_model(m); }
  explicit Decoder(M const& m, index_t capacity, int threads = 0)
      : Decoder(decoder_model(m), capacity, threads) {}
  explicit Decoder(DecoderModel m, index_t capacity, int threads = 0)
      : model_(std::make_unique<DecoderModel const>(std::move(m))), capacity_(capacity) {
#if defined(_OPENMP)
    if (threads <= 0) threads = omp_get_max_threads();
#else
    threads = 1;
#endif
    DecoderModel const& c = *model_;
    if (c.rotary()) frequencies_ = frequencies(1);
    if (c.device.is_cpu()) runner_ = std::make_unique<detail::HostRunner>(c, capacity, threads);
    else if (detail::make_device_runner != nullptr) runner_ = detail::make_device_runner(c, capacity);
    else
      raise("decoder: the model lies on ", c.device,
            ", and no file of this program includes <dfdx/cuda_models.hpp>");
    reserve(1, 1);
  }

  /// The numbers for what comes after `token`, which is added to the cache.
  ///
  /// Errors    "llama: 65 positions, there is room for 64"; "llama: token 600, there are 512"
  std::span<float const> operator()(std::int32_t token, KvCache& cache) {
    return (*this)(std::span(&token, 1), cache);
  }

  /// The numbers for what comes after the last of some tokens, which are added to the cache.
  ///
  /// Errors    as for one
  std::span<float const> operator()(std::span<std::int32_t const> tokens, KvCache& cache) {
    return of_one(tokens, cache, 1);
  }
  /// rows - the numbers for what comes after each of some tokens of one text: [tokens, vocabulary].
  ///
  /// Errors    as for one
  std::span<float const> rows(std::span<std::int32_t const> tokens, KvCache& cache) {
    return of_one(tokens, cache, static_cast<index_t>(tokens.size()));
  }

  /// The numbers for what comes after each of some tokens, of as many texts: [texts, vocabulary]; a KvCache* for each.
  ///
  /// Errors    as for one; "decoder: 2 tokens for 3 caches"; "decoder: a cache is given twice"
  template <class Caches>
    requires requires(Caches const& c) { std::size(c), static_cast<KvCache*>(c[0]); }
  std::span<float const> operator()(std::span<std::int32_t const> tokens, Caches const& caches) {
    auto const n = static_cast<index_t>(tokens.size());
    if (tokens.size() != std::size(caches))
      raise("decoder: ", n, " tokens for ", static_cast<index_t>(std::size(caches)), " caches");
    if (n == 0) raise("decoder: no tokens");
    for (std::size_t i = 0; i < std::size(caches); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (caches[i] == caches[j]) raise("decoder: a cache is given twice");
    begin(n, n);
    for (std::size_t i = 0; i < tokens.size(); ++i) add(tokens[i], *caches[i], caches[i]->length, 1);
    runner_->run(step_);
    for (detail::DecoderRow const& r : step_.rows) ++r.cache->length;
    return {step_.logits.data(), static_cast<std::size_t>(n * model_->vocabulary)};
  }

 private:
  std::span<float const> of_one(std::span<std::int32_t const> tokens, KvCache& cache, index_t results) {
    auto const n = static_cast<index_t>(tokens.size());
    if (n == 0) raise("decoder: no tokens");
    begin(n, results);
    for (index_t i = 0; i < n; ++i) add(tokens[static_cast<std::size_t>(i)], cache, cache.length + i, n - i);
    runner_->run(step_);
    cache.length += n;
    return {step_.logits.data(), static_cast<std::size_t>(results * model_->vocabulary)};
  }

  // Room for so many tokens at once, and for so many rows of results.
  void reserve(index_t rows, index_t results) {
    DecoderModel const& c = *model_;
    auto const take = [](auto& v, index_t n) { v.resize(std::max(v.size(), static_cast<std::size_t>(n))); };
    take(step_.logits, results * c.vocabulary);
    step_.rows.reserve(static_cast<std::size_t>(rows));
    if (c.rotary()) take(step_.cos, rows * c.head_size / 2), take(step_.sin, rows * c.head_size / 2);
    runner_->reserve(rows, results);
  }
  void begin(index_t rows, index_t results) {
    reserve(rows, results);
    step_.results = results;
    step_.rows.clear();
  }
  // A token at a place of a text of which so many are computed from there on.
  void add(std::int32_t token, KvCache& cache, index_t position, index_t more) {
    DecoderModel const& c = *model_;
    if (!supports(cache))
      raise("decoder: the cache is not one of a single sequence in f32, 16 bits or blocks");
    if (cache.device() != c.device)
      raise("decoder: the cache lies on ", cache.device(), ", the model on ", c.device);
    index_t room = std::min(cache.capacity, capacity_), end = position + more;
    if (!c.rotary()) room = std::min(room, c.learnt.rows);
    if (end > room) raise(c.family, ": ", end, " positions, there is room for ", room);
    if (token < 0 || token >= c.table.rows)
      raise(c.family, ": token ", Position{token}, ", there are ", c.table.rows);
    if (c.rotary())
      set_angles(position, std::max(end, cache.ahead),
                 static_cast<index_t>(step_.rows.size()) * c.head_size / 2);
    step_.rows.push_back({token, &cache, position});
  }
  std::vector<double> frequencies(index_t length) const {
    return model_->rope.of_head(model_->head_size, length, model_->divisors);
  }
  void set_angles(index_t position, index_t length, index_t at) {
    // Some frequencies depend on the length beyond the original context; there alone a token takes memory.
    bool const stretch = model_->rope.stretched_by(length);
    if (stretch || stretched_) frequencies_ = frequencies(length);
    stretched_ = stretch;
    float *c = step_.cos.data() + at, *s = step_.sin.data() + at;
    for (double f : frequencies_) {
      auto const angle = static_cast<double>(static_cast<float>(position) * static_cast<float>(f));
      *c++ = static_cast<float>(std::cos(angle) * model_->rope.amplitude);
      *s++ = static_cast<float>(std::sin(angle) * model_->rope.amplitude);
    }
  }

  std::unique_ptr<DecoderModel const> model_;
  index_t capacity_ = 0;
  bool stretched_ = false;
  std::vector<double> frequencies_;
  detail::DecoderStep step_;
  std::unique_ptr<detail::DecoderRunner> runner_;
};

}  // namespace dfdx::models
