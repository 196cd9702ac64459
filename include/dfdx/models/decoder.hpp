// SPDX-License-Identifier: BSL-1.0
// Decoder - tokens through a model in memory: the numbers that Llama or Gpt2 give, without values, shapes and memory
// for each op between. One token at a time, a prompt, or the next tokens of several texts. With OpenMP, where the
// including project enables it, threads share the rows of matrices and the heads.
#pragma once

#include <dfdx/models/cache.hpp>
#include <dfdx/models/decoder_kernels.hpp>
#include <dfdx/models/decoder_model.hpp>

#if defined(_OPENMP)
#include <omp.h>
#endif

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
/// Numerics  those of the model: equal to rounding, and for any number of threads to the last bit. Of 5 texts or more
///           together, and of prompts so long, the last bits may be others than one by one
class Decoder {
 public:
  /// supports - whether the cache is one of a single sequence, of f32, of 16 bits or of blocks.
  static bool supports(KvCache const& c) {
    return !c.keys.empty() && c.keys[0].ndim() == 3 && detail::MatrixRows::supports(c.encoding);
  }

  /// Of a Llama or a Gpt2. `threads` is the most that take part: 0 for as many as OpenMP has, 1 without it.
  ///
  /// Errors    those of DecoderModel
  template <class M>
    requires requires(M const& m) { decoder_model(m); }
  explicit Decoder(M const& m, index_t capacity, int threads = 0)
      : Decoder(decoder_model(m), capacity, threads) {}
  explicit Decoder(DecoderModel m, index_t capacity, int threads = 0)
      : model_(std::move(m)), capacity_(capacity) {
#if defined(_OPENMP)
    threads_ = threads > 0 ? threads : omp_get_max_threads();
#else
    static_cast<void>(threads);
#endif
    DecoderModel const& c = model_;
    longest_ = std::max({c.width, c.hidden, c.heads * c.head_size});
    detail::for_factors(c, [&](detail::BoundMatrix const& w) {
      rank_ = std::max(rank_, w.inner.rows);
      change_ = std::max(change_, w.outer.rows);
    });
    if (c.rotary()) frequencies_ = frequencies(1);
    scratch_.resize(static_cast<std::size_t>(threads_));
    for (Scratch& s : scratch_) {
      s.scores.resize(static_cast<std::size_t>(c.heads / c.kv_heads * capacity));
      s.x.resize(static_cast<std::size_t>(c.width)), s.y.resize(static_cast<std::size_t>(c.width));
      s.factor.reserve(longest_);
    }
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
    finish();
    for (Row const& r : rows_) ++r.cache->length;
    return {logits_.data(), static_cast<std::size_t>(n * model_.vocabulary)};
  }

 private:
  using Layer = detail::BoundLayer;
  // What each thread has for itself; x, y and factor for a single token.
  struct Scratch {
    std::vector<float> x, y, scores;
    detail::Factor factor;
    std::vector<float> keys, values;  // of a head of a cache of blocks
    std::vector<float> low, change;   // what factors of a change make of rows
  };
  // A token that is computed: the cache of its text and its place there.
  struct Row {
    KvCache* cache;
    index_t position;
  };

  std::span<float const> of_one(std::span<std::int32_t const> tokens, KvCache& cache, index_t results) {
    auto const n = static_cast<index_t>(tokens.size());
    if (n == 0) raise("decoder: no tokens");
    begin(n, results);
    for (index_t i = 0; i < n; ++i) add(tokens[static_cast<std::size_t>(i)], cache, cache.length + i, n - i);
    finish();
    cache.length += n;
    return {logits_.data(), static_cast<std::size_t>(results * model_.vocabulary)};
  }

  // Room for so many tokens at once, and for so many rows of results.
  void reserve(index_t rows, index_t results) {
    DecoderModel const& c = model_;
    auto const take = [](auto& v, index_t n) { v.resize(std::max(v.size(), static_cast<std::size_t>(n))); };
    take(logits_, results * c.vocabulary);
    if (rows <= room_) return;
    room_ = rows;
    rows_.reserve(static_cast<std::size_t>(rows));
    if (c.rotary()) take(cos_, rows * c.head_size / 2), take(sin_, rows * c.head_size / 2);
    if (rank_ > 0)
      for (Scratch& s : scratch_) take(s.low, rows * rank_), take(s.change, rows * change_);
    take(h_, rows * c.width);
    take(qkv_, rows * (c.heads + 2 * c.kv_heads) * c.head_size);
    take(seen_, rows * c.heads * c.head_size);
    take(gate_, rows * c.hidden);
    if (c.gated) take(up_, rows * c.hidden);
    if (rows == 1) return;
    take(x_, rows * c.width), take(y_, rows * c.width);
    factor_.reserve(rows * longest_);
  }
  void begin(index_t rows, index_t results) {
    reserve(rows, results);
    results_ = results;
    rows_.clear();
  }
  // A token at a place of a text of which so many are computed from there on.
  void add(std::int32_t token, KvCache& cache, index_t position, index_t more) {
    if (!supports(cache))
      raise("decoder: the cache is not one of a single sequence in f32, 16 bits or blocks");
    index_t room = std::min(cache.capacity, capacity_), end = position + more;
    if (!model_.rotary()) room = std::min(room, model_.learnt.rows);
    DecoderModel const& c = model_;
    if (end > room) raise(c.family, ": ", end, " positions, there is room for ", room);
    if (token < 0 || token >= c.table.rows)
      raise(c.family, ": token ", Position{token}, ", there are ", c.table.rows);
    if (cache.quantized())
      for (Scratch& m : scratch_) {
        m.keys.resize(static_cast<std::size_t>(capacity_ * c.head_size));
        m.values.resize(m.keys.size());
      }
    auto const i = static_cast<index_t>(rows_.size());
    float* const h = h_.data() + i * c.width;
    detail::row_as_floats(c.table, token, h);
    if (c.rotary()) {
      set_angles(position, std::max(end, cache.ahead), i * c.head_size / 2);
    } else {
      float* const x = scratch_[0].x.data();
      detail::row_as_floats(c.learnt, position, x);
      detail::add_to(h, x, c.width);
    }
    rows_.push_back({&cache, position});
  }
  void finish() {
#if defined(_OPENMP)
    if (threads_ > 1) {
      auto const mode = dfdx::detail::float_mode();
#pragma omp parallel num_threads(threads_)
      {
        dfdx::detail::FloatMode const same(mode);
        run(omp_get_thread_num(), omp_get_num_threads());
      }
      return;
    }
#endif
    run(0, 1);
  }

  std::vector<double> frequencies(index_t length) const {
    return model_.rope.of_head(model_.head_size, length, model_.divisors);
  }
  void set_angles(index_t position, index_t length, index_t at) {
    // Some frequencies depend on the length beyond the original context; there alone a token takes memory.
    bool const stretch = model_.rope.stretched_by(length);
    if (stretch || stretched_) frequencies_ = frequencies(length);
    stretched_ = stretch;
    float *c = cos_.data() + at, *s = sin_.data() + at;
    for (double f : frequencies_) {
      auto const angle = static_cast<double>(static_cast<float>(position) * static_cast<float>(f));
      *c++ = static_cast<float>(std::cos(angle) * model_.rope.amplitude);
      *s++ = static_cast<float>(std::sin(angle) * model_.rope.amplitude);
    }
  }

  // Only in a team of its own: the barrier of another's would wait for threads that do not come.
  static void wait([[maybe_unused]] int threads) {
#if defined(_OPENMP)
    if (threads <= 1) return;
#pragma omp barrier
#endif
  }

  // Rows `first` to `last` of w of each x, and the bias, into rows of y.
  static void project(detail::BoundMatrix const& w, detail::Factor& x, index_t first, index_t last, float* y,
                      index_t y_row, Scratch& mine) {
    if (first >= last) return;
    if (x.rows() == 1) x.prepare(w.rows.encoding);
    detail::multiply_rows(w.rows, x, first, last, y, y_row);
    if (w.bias != nullptr)
      for (index_t i = 0; i < x.rows(); ++i)
        detail::add_to(y + i * y_row + first, w.bias + first, last - first);
    if (!w.has_factors()) return;
    // Every thread makes the few inner numbers for itself: cheaper than to wait for another.
    float *const low = mine.low.data(), *const change = mine.change.data();
    detail::multiply_rows(w.inner, x, 0, w.inner.rows, low, w.inner.rows);
    detail::Factor inner;
    inner.set(low, x.rows(), w.inner.rows);
    detail::multiply_rows(w.outer, inner, first, last, change - first, last - first);
    for (index_t i = 0; i < x.rows(); ++i)
      detail::add_to(y + i * y_row + first, change + i * (last - first), last - first, w.scale);
  }

  void run(int thread, int threads) {
    DecoderModel const& c = model_;
    auto const n = static_cast<index_t>(rows_.size());
    bool const many = n > 1;
    Scratch& mine = scratch_[static_cast<std::size_t>(thread)];
    detail::Factor& factor = many ? factor_ : mine.factor;
    float* const h = h_.data();
    auto const share = [&](index_t rows) { return detail::share_of(rows, thread, threads, many ? 32 : 16); };
    auto const [from_row, to_row] = detail::share_of(n, thread, threads, 1);
    // Rows as a factor of some matrices. Of many each thread prepares its share; what is short every thread computes
    // for itself: that is cheaper than to wait for another.
    auto const prepared = [&](float const* x, index_t columns, auto const&... matrices) {
      if (!many) return factor.set(x, 1, columns);
      if (thread == 0) factor.set(x, n, columns);
      wait(threads);
      if (!(std::holds_alternative<DType>(matrices.rows.encoding) && ...)) {
        (factor.prepare_rows(matrices.rows.encoding, from_row, to_row), ...);
        wait(threads);
      }
    };
    auto const normalized = [&](detail::BoundNorm const& by, auto const&... matrices) {
      float* const x = many ? x_.data() : mine.x.data();
      for (index_t i = many ? from_row : 0; i < (many ? to_row : 1); ++i)
        detail::normalize(c, by, h + i * c.width, x + i * c.width);
      prepared(x, c.width, matrices...);
    };
    // h += w (of the vectors at `from`)
    auto const add_projected = [&](detail::BoundMatrix const& w, float const* from) {
      prepared(from, w.rows.columns, w);
      float* const y = many ? y_.data() : mine.y.data();
      auto const [first, last] = share(c.width);
      project(w, factor, first, last, y, c.width, mine);
      for (index_t i = 0; i < n; ++i)
        detail::add_to(h + i * c.width + first, y + i * c.width + first, last - first);
      wait(threads);
    };
    index_t const q_rows = c.heads * c.head_size, kv_rows = c.kv_heads * c.head_size;
    index_t const all_rows = q_rows + 2 * kv_rows;
    float* const qkv = qkv_.data();
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      Layer const& l = c.layers[i];
      normalized(l.input, l.q, l.k, l.v);
      auto const [first, last] = share(all_rows);
      auto const part = [&](detail::BoundMatrix const& w, index_t before) {
        project(w, factor, std::clamp(first - before, index_t{0}, w.rows.rows),
                std::clamp(last - before, index_t{0}, w.rows.rows), qkv + before, all_rows, mine);
      };
      part(l.q, 0), part(l.k, q_rows), part(l.v, q_rows + kv_rows);
      wait(threads);
      for (index_t g = c.kv_heads * thread / threads; g < c.kv_heads * (thread + 1) / threads; ++g) {
        for (index_t r = 0; r < n; ++r) keep(l, r, i, g);
        for (index_t r = 0; r < n; ++r) attend(l, r, i, g, mine);
      }
      wait(threads);
      add_projected(l.o, seen_.data());
      if (c.gated) normalized(l.middle, l.gate, l.up);
      else normalized(l.middle, l.gate);
      auto const [from, to] = share(c.hidden);
      project(l.gate, factor, from, to, gate_.data(), c.hidden, mine);
      if (c.gated) project(l.up, factor, from, to, up_.data(), c.hidden, mine);
      for (index_t r = 0; r < n; ++r) {
        index_t const at = r * c.hidden + from;
        if (c.gated) detail::silu_times(gate_.data() + at, up_.data() + at, to - from);
        else detail::activate_all(c.activation, gate_.data() + at, to - from);
      }
      wait(threads);
      add_projected(l.down, gate_.data());
    }
    if (results_ == n) {
      normalized(c.norm, c.head);
    } else {  // of the last alone
      detail::normalize(c, c.norm, h + (n - 1) * c.width, mine.x.data());
      mine.factor.set(mine.x.data(), 1, c.width);
    }
    auto const [from, to] = share(c.vocabulary);
    project(c.head, results_ == n ? factor : mine.factor, from, to, logits_.data(), c.vocabulary, mine);
  }

  // Where the queries of row r begin that share keys and values g, these and those.
  float* queries(index_t r, index_t g) {
    index_t const d = model_.head_size;
    return qkv_.data() +
           (r * (model_.heads + 2 * model_.kv_heads) + g * (model_.heads / model_.kv_heads)) * d;
  }
  float* key(index_t r, index_t g) {
    index_t const d = model_.head_size;
    return qkv_.data() + (r * (model_.heads + 2 * model_.kv_heads) + model_.heads + g) * d;
  }
  // Row r, the heads that share keys and values g: all turned, the new ones into the cache.
  void keep(Layer const& l, index_t r, std::size_t layer, index_t g) {
    DecoderModel const& c = model_;
    index_t const d = c.head_size, at = rows_[static_cast<std::size_t>(r)].position;
    float *const q = queries(r, g), *const k = key(r, g), *const v = k + c.kv_heads * d;
    float const *const cos = cos_.data() + r * d / 2, *const sin = sin_.data() + r * d / 2;
    auto const placed = [&](float* x, float const* norm) {
      if (norm != nullptr) detail::normalize(x, norm, d, c.norm_eps, x);
      if (c.rotary()) detail::turn(x, cos, sin, d);
    };
    for (index_t i = 0; i < c.heads / c.kv_heads; ++i) placed(q + i * d, l.q_norm);
    placed(k, l.k_norm);
    rows_[static_cast<std::size_t>(r)].cache->with_head(layer, g, [&]<class E>(E* keys, E* values) {
      if constexpr (std::is_same_v<E, float>) {
        std::copy(k, k + d, keys + at * d);
        std::copy(v, v + d, values + at * d);
      } else if constexpr (std::is_same_v<E, std::byte>) {
        index_t const row = d / 32 * static_cast<index_t>(block_bytes(Quant::q8_0));
        KvCache::keep_row(k, d, keys + at * row);
        KvCache::keep_row(v, d, values + at * row);
      } else {
        kernels::narrow(keys + at * d, k, d);
        kernels::narrow(values + at * d, v, d);
      }
    });
  }
  // What they see.
  void attend(Layer const& l, index_t r, std::size_t layer, index_t g, Scratch& mine) {
    DecoderModel const& c = model_;
    Row const& row = rows_[static_cast<std::size_t>(r)];
    index_t const d = c.head_size, group = c.heads / c.kv_heads;
    index_t const first = l.window > 0 ? std::max<index_t>(0, row.position + 1 - l.window) : 0;
    auto const with = [&](auto const* keys, auto const* values) {
      detail::attend_one(queries(r, g), keys + first * d, values + first * d, group, row.position + 1 - first,
                         d, l.scale, mine.scores.data(), seen_.data() + (r * c.heads + g * group) * d);
    };
    row.cache->with_head(layer, g, [&]<class E>(E* keys, E* values) {
      if constexpr (std::is_same_v<E, std::byte>) {
        // As floats, once for the tokens of a text that come together.
        bool const again = r > 0 && rows_[static_cast<std::size_t>(r) - 1].cache == row.cache;
        index_t last = row.position;
        for (std::size_t i = static_cast<std::size_t>(r); i < rows_.size() && rows_[i].cache == row.cache;
             ++i)
          last = rows_[i].position;
        if (!again) {
          dequantize_row(Quant::q8_0, keys, (last + 1) * d, mine.keys.data());
          dequantize_row(Quant::q8_0, values, (last + 1) * d, mine.values.data());
        }
        with(mine.keys.data(), mine.values.data());
      } else {
        with(keys, values);
      }
    });
  }

  DecoderModel model_;
  index_t capacity_ = 0, longest_ = 0, rank_ = 0,
          change_ = 0;  // longest row; most of inner and outer factors
  int threads_ = 1;
  bool stretched_ = false;
  std::vector<double> frequencies_;
  std::vector<float> cos_, sin_, h_, qkv_, seen_, gate_, up_, logits_;
  index_t room_ = 0, results_ = 0;  // tokens at once; rows of logits
  std::vector<Row> rows_;
  std::vector<float> x_, y_;  // of many tokens
  detail::Factor factor_;
  std::vector<Scratch> scratch_;
};

}  // namespace dfdx::models
