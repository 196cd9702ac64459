// SPDX-License-Identifier: BSL-1.0
// The steps of a decoder on the CPU. With OpenMP, where the including project enables it, threads share the rows of
// matrices and the heads.
#pragma once

#include <dfdx/models/decoder_kernels.hpp>
#include <dfdx/models/decoder_step.hpp>
#include <dfdx/models/stored.hpp>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace dfdx::models::detail {

/// HostRunner - runs a model in memory of the CPU, on `threads` threads, with caches of up to `capacity` positions.
class HostRunner final : public DecoderRunner {
 public:
  HostRunner(DecoderModel const& c, index_t capacity, int threads)
      : model_(c), capacity_(capacity), threads_(threads) {
    longest_ = std::max({c.width, c.hidden, c.heads * c.head_size});
    for_factors(c, [&](BoundMatrix const& w) {
      rank_ = std::max(rank_, w.inner.rows);
      change_ = std::max(change_, w.outer.rows);
    });
    scratch_.resize(static_cast<std::size_t>(threads_));
    for (Scratch& s : scratch_) {
      s.scores.resize(static_cast<std::size_t>(c.heads / c.kv_heads * capacity));
      s.x.resize(static_cast<std::size_t>(c.width)), s.y.resize(static_cast<std::size_t>(c.width));
      s.factor.reserve(longest_);
    }
  }

  void reserve(index_t rows, index_t) override {
    DecoderModel const& c = model_;
    auto const take = [](auto& v, index_t n) { v.resize(std::max(v.size(), static_cast<std::size_t>(n))); };
    if (rows <= room_) return;
    room_ = rows;
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

  void run(DecoderStep& step) override {
    step_ = &step;
    for (std::size_t i = 0; i < step.rows.size(); ++i)
      embed(step.rows[i], h_.data() + static_cast<index_t>(i) * model_.width);
#if defined(_OPENMP)
    if (threads_ > 1) {
      auto const mode = dfdx::detail::float_mode();
#pragma omp parallel num_threads(threads_)
      {
        dfdx::detail::FloatMode const same(mode);
        work(omp_get_thread_num(), omp_get_num_threads());
      }
      return;
    }
#endif
    work(0, 1);
  }

 private:
  using Layer = BoundLayer;
  // What each thread has for itself; x, y and factor for a single token.
  struct Scratch {
    std::vector<float> x, y, scores;
    Factor factor;
    std::vector<float> keys, values;  // of a head of a cache of blocks
    std::vector<float> low, change;   // what factors of a change make of rows
  };

  // y = the norm of a row of the model's width; y may be x.
  void normalized_row(BoundNorm const& by, float const* x, float* y) const {
    DecoderModel const& c = model_;
    if (by.bias != nullptr) normalize_around(x, by.weight, by.bias, c.width, c.norm_eps, y);
    else normalize(x, by.weight, c.width, c.norm_eps, y);
  }
  // What goes into the first layer.
  void embed(DecoderRow const& row, float* h) {
    DecoderModel const& c = model_;
    row_as_floats(c.table, row.token, h);
    if (!c.rotary()) {
      float* const x = scratch_[0].x.data();
      row_as_floats(c.learnt, row.position, x);
      add_to(h, x, c.width);
    }
    if (row.cache->quantized())
      for (Scratch& m : scratch_) {
        m.keys.resize(static_cast<std::size_t>(capacity_ * c.head_size));
        m.values.resize(m.keys.size());
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
  static void project(BoundMatrix const& w, Factor& x, index_t first, index_t last, float* y, index_t y_row,
                      Scratch& mine) {
    if (first >= last) return;
    if (x.rows() == 1) x.prepare(w.rows.encoding);
    multiply_rows(w.rows, x, first, last, y, y_row);
    if (w.bias != nullptr)
      for (index_t i = 0; i < x.rows(); ++i) add_to(y + i * y_row + first, w.bias + first, last - first);
    if (!w.has_factors()) return;
    // Every thread makes the few inner numbers for itself: cheaper than to wait for another.
    float *const low = mine.low.data(), *const change = mine.change.data();
    multiply_rows(w.inner, x, 0, w.inner.rows, low, w.inner.rows);
    Factor inner;
    inner.set(low, x.rows(), w.inner.rows);
    multiply_rows(w.outer, inner, first, last, change - first, last - first);
    for (index_t i = 0; i < x.rows(); ++i)
      add_to(y + i * y_row + first, change + i * (last - first), last - first, w.scale);
  }

  void work(int thread, int threads) {
    DecoderModel const& c = model_;
    auto const n = static_cast<index_t>(step_->rows.size());
    bool const many = n > 1;
    Scratch& mine = scratch_[static_cast<std::size_t>(thread)];
    Factor& factor = many ? factor_ : mine.factor;
    float* const h = h_.data();
    auto const share = [&](index_t rows) { return share_of(rows, thread, threads, many ? 32 : 16); };
    auto const [from_row, to_row] = share_of(n, thread, threads, 1);
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
    auto const normalized = [&](BoundNorm const& by, auto const&... matrices) {
      float* const x = many ? x_.data() : mine.x.data();
      for (index_t i = many ? from_row : 0; i < (many ? to_row : 1); ++i)
        normalized_row(by, h + i * c.width, x + i * c.width);
      prepared(x, c.width, matrices...);
    };
    // h += w (of the vectors at `from`)
    auto const add_projected = [&](BoundMatrix const& w, float const* from) {
      prepared(from, w.rows.columns, w);
      float* const y = many ? y_.data() : mine.y.data();
      auto const [first, last] = share(c.width);
      project(w, factor, first, last, y, c.width, mine);
      for (index_t i = 0; i < n; ++i) add_to(h + i * c.width + first, y + i * c.width + first, last - first);
      wait(threads);
    };
    index_t const q_rows = c.heads * c.head_size, kv_rows = c.kv_heads * c.head_size;
    index_t const all_rows = q_rows + 2 * kv_rows;
    float* const qkv = qkv_.data();
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      Layer const& l = c.layers[i];
      normalized(l.input, l.q, l.k, l.v);
      auto const [first, last] = share(all_rows);
      auto const part = [&](BoundMatrix const& w, index_t before) {
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
        if (c.gated) silu_times(gate_.data() + at, up_.data() + at, to - from);
        else activate_all(c.activation, gate_.data() + at, to - from);
      }
      wait(threads);
      add_projected(l.down, gate_.data());
    }
    if (step_->results == n) {
      normalized(c.norm, c.head);
    } else {  // of the last alone
      normalized_row(c.norm, h + (n - 1) * c.width, mine.x.data());
      mine.factor.set(mine.x.data(), 1, c.width);
    }
    auto const [from, to] = share(c.vocabulary);
    project(c.head, step_->results == n ? factor : mine.factor, from, to, step_->logits.data(), c.vocabulary,
            mine);
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
    index_t const d = c.head_size, at = step_->rows[static_cast<std::size_t>(r)].position;
    float *const q = queries(r, g), *const k = key(r, g), *const v = k + c.kv_heads * d;
    float const *const cos = step_->cos.data() + r * d / 2, *const sin = step_->sin.data() + r * d / 2;
    auto const placed = [&](float* x, float const* norm) {
      if (norm != nullptr) normalize(x, norm, d, c.norm_eps, x);
      if (c.rotary()) turn(x, cos, sin, d);
    };
    for (index_t i = 0; i < c.heads / c.kv_heads; ++i) placed(q + i * d, l.q_norm);
    placed(k, l.k_norm);
    step_->rows[static_cast<std::size_t>(r)].cache->with_head(layer, g, [&]<class E>(E* keys, E* values) {
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
    DecoderRow const& row = step_->rows[static_cast<std::size_t>(r)];
    index_t const d = c.head_size, group = c.heads / c.kv_heads;
    index_t const first = l.window > 0 ? std::max<index_t>(0, row.position + 1 - l.window) : 0;
    auto const with = [&](auto const* keys, auto const* values) {
      attend_one(queries(r, g), keys + first * d, values + first * d, group, row.position + 1 - first, d,
                 l.scale, mine.scores.data(), seen_.data() + (r * c.heads + g * group) * d);
    };
    row.cache->with_head(layer, g, [&]<class E>(E* keys, E* values) {
      if constexpr (std::is_same_v<E, std::byte>) {
        // As floats, once for the tokens of a text that come together.
        bool const again = r > 0 && step_->rows[static_cast<std::size_t>(r) - 1].cache == row.cache;
        index_t last = row.position;
        for (std::size_t i = static_cast<std::size_t>(r);
             i < step_->rows.size() && step_->rows[i].cache == row.cache; ++i)
          last = step_->rows[i].position;
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

  DecoderModel const& model_;
  index_t capacity_ = 0, longest_ = 0, rank_ = 0,
          change_ = 0;  // longest row; most of inner and outer factors
  int threads_ = 1;
  DecoderStep* step_ = nullptr;
  std::vector<float> h_, qkv_, seen_, gate_, up_;
  index_t room_ = 0;          // tokens at once
  std::vector<float> x_, y_;  // of many tokens
  Factor factor_;
  std::vector<Scratch> scratch_;
};

}  // namespace dfdx::models::detail
