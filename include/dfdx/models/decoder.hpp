// SPDX-License-Identifier: BSL-1.0
// Decoder - one token at a time through a model in memory: the numbers that Llama gives, without values, shapes and
// memory for each op between. With OpenMP, where the including project enables it, threads share the rows.
#pragma once

#include <dfdx/kernels/simd/functions.hpp>
#include <dfdx/models/llama.hpp>

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace dfdx::models {

namespace detail {

using Lane = kernels::lane<float>;

// Calls f(i, count) for lanes of n numbers; `count` of the last may be less.
template <class F>
DFDX_INLINE void by_lanes(index_t n, F const& f) {
  constexpr index_t W = kernels::lane_size<float>;
  index_t i = 0;
  for (; i + W <= n; i += W) f(i, static_cast<int>(W));
  if (i < n) f(i, static_cast<int>(n - i));
}

/// y = x / sqrt(mean(x^2) + eps) * weight; y may be x.
inline void normalize(float const* x, float const* weight, index_t n, double eps, float* y) {
  Lane squares(0.0f);
  by_lanes(n, [&](index_t i, int c) {
    Lane const v = kernels::load_n(x + i, c);
    squares = xsimd::fma(v, v, squares);
  });
  float const mean = xsimd::reduce_add(squares) / static_cast<float>(n);
  Lane const by(1.0f / std::sqrt(mean + static_cast<float>(eps)));
  by_lanes(n, [&](index_t i, int c) {
    kernels::store_n(y + i, kernels::load_n(x + i, c) * by * kernels::load_n(weight + i, c), c);
  });
}

/// Elements i and i + n / 2 turned together, as `rotate` does.
inline void turn(float* x, float const* cos, float const* sin, index_t n) {
  float* const y = x + n / 2;
  by_lanes(n / 2, [&](index_t i, int c) {
    Lane const a = kernels::load_n(x + i, c), b = kernels::load_n(y + i, c);
    Lane const k = kernels::load_n(cos + i, c), s = kernels::load_n(sin + i, c);
    kernels::store_n(x + i, a * k - b * s, c);
    kernels::store_n(y + i, b * k + a * s, c);
  });
}

/// x[i] = silu(x[i]) y[i]
inline void silu_times(float* x, float const* y, index_t n) {
  Lane const one(1.0f);
  by_lanes(n, [&](index_t i, int c) {
    Lane const v = kernels::load_n(x + i, c);
    kernels::store_n(x + i, v / (one + kernels::lane_exp(-v)) * kernels::load_n(y + i, c), c);
  });
}

inline void add_to(float* x, float const* y, index_t n) {
  by_lanes(n, [&](index_t i, int c) {
    kernels::store_n(x + i, kernels::load_n(x + i, c) + kernels::load_n(y + i, c), c);
  });
}

/// x = softmax(scale x), of n > 0 numbers.
inline void soften(float* x, index_t n, float scale) {
  constexpr float least = std::numeric_limits<float>::lowest();
  float top = least;
  for (index_t i = 0; i < n; ++i) top = std::max(top, x[i]);
  Lane const by(scale), from(top * scale);
  Lane sum(0.0f);
  by_lanes(n, [&](index_t i, int c) {
    Lane e = kernels::lane_exp(xsimd::fms(kernels::load_n(x + i, c), by, from));
    kernels::store_n(x + i, e, c);
    sum = sum + (c == kernels::lane_size<float> ? e : kernels::load_n(x + i, c));
  });
  Lane const share(1.0f / xsimd::reduce_add(sum));
  by_lanes(n, [&](index_t i, int c) { kernels::store_n(x + i, kernels::load_n(x + i, c) * share, c); });
}

/// One position's attention for the heads that share keys and values: q [heads, size] and keys and values of n
/// positions to y [heads, size]; scores has room for heads * n.
template <class E>
void attend_one(float const* q, E const* keys, E const* values, index_t heads, index_t n, index_t size,
                float scale, float* scores, float* y) {
  kernels::store_sum const as_is;
  using Put = kernels::detail::along_row<float, kernels::store_sum>;
  kernels::detail::gemm_dot(heads, n, size, q, size, keys, size, Put{scores, n, as_is});
  for (index_t h = 0; h < heads; ++h) {
    soften(scores + h * n, n, scale);
    kernels::detail::gemm_row(size, n, scores + h * n, index_t{1}, values, size,
                              Put{y + h * size, size, as_is});
  }
}

// A matrix of a layer and its bias, by their addresses.
struct BoundMatrix {
  MatrixRows rows;
  float const* bias = nullptr;
};

}  // namespace detail

/// Decoder - runs a model for one token after another, for one sequence. It takes its memory when it is made, none for
/// a token, and shares the model's arrays: what is changed within them it sees, arrays put in their place it does not.
///
///   Decoder decode(model, cache.capacity);
///   std::span<float const> logits = decode(token, cache);  // valid until the next call
///
/// Numerics  those of the model: equal to rounding, and for any number of threads to the last bit
class Decoder {
 public:
  /// supports - whether the model's numbers are f32, or matrices as stored, in memory and dense, without factors
  /// besides (models/lora.hpp).
  static bool supports(Llama const& m) {
    bool good = true;
    visit(m, [&](Array const& leaf) {
      good = good && !leaf.recorded() && leaf.dtype() == DType::f32 && leaf.contiguous_memory() &&
             leaf.device() == Device{};
    });
    visit_projections(m, [&](std::string const&, Projection const& p) { good = good && !p.has_factors(); });
    return good;
  }
  /// supports - whether the cache is one of a single sequence, of f32 or of 16 bits.
  static bool supports(KvCache const& c) {
    return !c.keys.empty() && c.keys[0].ndim() == 3 && detail::MatrixRows::supports(c.keys[0].dtype());
  }

  /// `threads` is the most that take part: 0 for as many as OpenMP has, 1 without it.
  ///
  /// Errors    "decoder: the model's numbers are not f32 in memory"
  explicit Decoder(Llama const& m, index_t capacity, int threads = 0)
      : model_(m), config_(m.config), capacity_(capacity) {
    if (!supports(m)) raise("decoder: the model's numbers are not f32 in memory");
#if defined(_OPENMP)
    threads_ = threads > 0 ? threads : omp_get_max_threads();
#else
    static_cast<void>(threads);
#endif
    auto const bound = [](Projection const& p) {
      detail::BoundMatrix r{rows_of(p.weight, p.stored), nullptr};
      if (p.bias) r.bias = p.bias->data<float>();
      return r;
    };
    for (auto const& b : m.model.layers) {
      auto const& a = b.self_attn;
      layers_.push_back({bound(a.q_proj), bound(a.k_proj), bound(a.v_proj), bound(a.o_proj),
                         bound(b.mlp.gate_proj), bound(b.mlp.up_proj), bound(b.mlp.down_proj),
                         b.input_layernorm.weight.data<float>(),
                         b.post_attention_layernorm.weight.data<float>(),
                         a.q_norm ? a.q_norm->weight.data<float>() : nullptr,
                         a.k_norm ? a.k_norm->weight.data<float>() : nullptr});
    }
    norm_ = m.model.norm.weight.data<float>();
    table_.rows = rows_of(m.model.embed_tokens.weight, m.model.embed_tokens.stored);
    head_ = m.lm_head ? bound(*m.lm_head) : table_;
    LlamaConfig const& c = config_;
    frequencies_ = c.frequencies(1);
    auto const take = [](std::vector<float>& v, index_t n) { v.resize(static_cast<std::size_t>(n)); };
    take(cos_, c.head_size / 2), take(sin_, c.head_size / 2);
    take(h_, c.width);
    take(qkv_, (c.heads + 2 * c.kv_heads) * c.head_size);
    take(seen_, c.heads * c.head_size);
    take(gate_, c.hidden), take(up_, c.hidden);
    take(logits_, c.vocabulary);
    scratch_.resize(static_cast<std::size_t>(threads_));
    for (Scratch& s : scratch_) {
      take(s.x, c.width), take(s.y, std::max(c.width, c.hidden));
      take(s.scores, c.heads / c.kv_heads * capacity);
      s.factor.reserve(std::max({c.width, c.hidden, c.heads * c.head_size}));
    }
  }

  /// The numbers for what comes after `token`, which is added to the cache.
  ///
  /// Errors    "llama: 65 positions, there is room for 64"; "llama: token 600, there are 512"
  std::span<float const> operator()(std::int32_t token, KvCache& cache) {
    index_t const room = std::min(cache.capacity, capacity_);
    if (cache.length + 1 > room) raise("llama: ", cache.length + 1, " positions, there is room for ", room);
    if (token < 0 || token >= table_.rows.rows)
      raise("llama: token ", Position{token}, ", there are ", table_.rows.rows);
    if (!supports(cache)) raise("decoder: the cache is not one of a single sequence in f32 or 16 bits");
    detail::row_as_floats(table_.rows, token, h_.data());
    set_angles(cache.length);
#if defined(_OPENMP)
    if (threads_ > 1) {
#pragma omp parallel num_threads(threads_)
      run(cache, omp_get_thread_num(), omp_get_num_threads());
    } else {
      run(cache, 0, 1);
    }
#else
    run(cache, 0, 1);
#endif
    ++cache.length;
    return logits_;
  }

 private:
  struct Layer {
    detail::BoundMatrix q, k, v, o, gate, up, down;
    float const *input_norm, *middle_norm, *q_norm, *k_norm;
  };
  // What each thread has for itself.
  struct Scratch {
    std::vector<float> x, y, scores;
    detail::Factor factor;
  };

  static detail::MatrixRows rows_of(std::optional<Array> const& weight,
                                    std::shared_ptr<StoredMatrix const> const& stored) {
    if (stored) return stored->data;
    return {DType::f32, weight->bytes(), weight->shape()[0], weight->shape()[1]};
  }

  void set_angles(index_t position) {
    // Dynamic frequencies depend on the length beyond the original context; there alone a token takes memory.
    bool const dynamic = config_.rope.kind == RopeFrequencies::Kind::dynamic;
    bool const stretch = dynamic && static_cast<double>(position + 1) > config_.rope.original_context;
    if (stretch || stretched_) frequencies_ = config_.frequencies(position + 1);
    stretched_ = stretch;
    for (std::size_t i = 0; i < cos_.size(); ++i) {
      float const angle = static_cast<float>(position) * static_cast<float>(frequencies_[i]);
      cos_[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
      sin_[i] = static_cast<float>(std::sin(static_cast<double>(angle)));
    }
  }

  // Only in a team of its own: the barrier of another's would wait for threads that do not come.
  static void wait([[maybe_unused]] int threads) {
#if defined(_OPENMP)
    if (threads > 1) {
#pragma omp barrier
    }
#endif
  }

  // Rows `first` to `last` of w x + bias into y.
  static void project(detail::BoundMatrix const& w, detail::Factor& x, index_t first, index_t last,
                      float* y) {
    if (first >= last) return;
    x.prepare(w.rows.encoding);
    detail::multiply_rows(w.rows, x, first, last, y, w.rows.rows);
    if (w.bias != nullptr) detail::add_to(y + first, w.bias + first, last - first);
  }

  void run(KvCache& cache, int thread, int threads) {
    LlamaConfig const& c = config_;
    Scratch& mine = scratch_[static_cast<std::size_t>(thread)];
    float *const h = h_.data(), *const x = mine.x.data();
    auto const share = [&](index_t rows) { return detail::share_of(rows, thread, threads); };
    // What is short every thread computes for itself: that is cheaper than to wait for another.
    auto const normalized = [&](float const* weight) {
      detail::normalize(h, weight, c.width, c.norm_eps, x);
      mine.factor.set(x, 1, c.width);
    };
    // h += w (of the vector at `from`)
    auto const add_projected = [&](detail::BoundMatrix const& w, float const* from) {
      mine.factor.set(from, 1, w.rows.columns);
      auto const [first, last] = share(c.width);
      project(w, mine.factor, first, last, mine.y.data());
      detail::add_to(h + first, mine.y.data() + first, last - first);
      wait(threads);
    };
    index_t const q_rows = c.heads * c.head_size, kv_rows = c.kv_heads * c.head_size;
    float *const q = qkv_.data(), *const k = q + q_rows, *const v = k + kv_rows;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer const& l = layers_[i];
      normalized(l.input_norm);
      auto const [first, last] = share(q_rows + 2 * kv_rows);
      auto const part = [&](detail::BoundMatrix const& w, index_t before, float* to) {
        project(w, mine.factor, std::clamp(first - before, index_t{0}, w.rows.rows),
                std::clamp(last - before, index_t{0}, w.rows.rows), to);
      };
      part(l.q, 0, q), part(l.k, q_rows, k), part(l.v, q_rows + kv_rows, v);
      wait(threads);
      for (index_t g = c.kv_heads * thread / threads; g < c.kv_heads * (thread + 1) / threads; ++g)
        attend(l, cache, i, g, mine.scores.data());
      wait(threads);
      add_projected(l.o, seen_.data());
      normalized(l.middle_norm);
      auto const [from, to] = share(c.hidden);
      project(l.gate, mine.factor, from, to, gate_.data());
      project(l.up, mine.factor, from, to, up_.data());
      detail::silu_times(gate_.data() + from, up_.data() + from, to - from);
      wait(threads);
      add_projected(l.down, gate_.data());
    }
    normalized(norm_);
    auto const [from, to] = share(c.vocabulary);
    project(head_, mine.factor, from, to, logits_.data());
  }

  // The heads that share keys and values g: the new ones into the cache, then all that is seen.
  void attend(Layer const& l, KvCache& cache, std::size_t layer, index_t g, float* scores) {
    LlamaConfig const& c = config_;
    index_t const d = c.head_size, group = c.heads / c.kv_heads, at = cache.length;
    float *const q = qkv_.data() + g * group * d, *const k = qkv_.data() + (c.heads + g) * d,
                 *const v = k + c.kv_heads * d;
    for (index_t i = 0; i < group; ++i) {
      if (l.q_norm != nullptr) detail::normalize(q + i * d, l.q_norm, d, c.norm_eps, q + i * d);
      detail::turn(q + i * d, cos_.data(), sin_.data(), d);
    }
    if (l.k_norm != nullptr) detail::normalize(k, l.k_norm, d, c.norm_eps, k);
    detail::turn(k, cos_.data(), sin_.data(), d);
    index_t const first = c.window > 0 ? std::max<index_t>(0, at + 1 - c.window) : 0;
    auto const with = [&]<class E>(E* keys, E* values) {
      keys += g * cache.capacity * d, values += g * cache.capacity * d;
      if constexpr (std::is_same_v<E, float>) {
        std::copy(k, k + d, keys + at * d);
        std::copy(v, v + d, values + at * d);
      } else {
        kernels::narrow(keys + at * d, k, d);
        kernels::narrow(values + at * d, v, d);
      }
      detail::attend_one(q, keys + first * d, values + first * d, group, at + 1 - first, d,
                         1.0f / std::sqrt(static_cast<float>(d)), scores, seen_.data() + g * group * d);
    };
    Array const &keys = cache.keys[layer], &values = cache.values[layer];
    if (keys.dtype() == DType::f32) with(keys.data<float>(), values.data<float>());
    else if (keys.dtype() == DType::f16) with(keys.data<float16>(), values.data<float16>());
    else with(keys.data<bfloat16>(), values.data<bfloat16>());
  }

  Llama model_;  // so that the arrays stay
  LlamaConfig config_;
  index_t capacity_ = 0;
  int threads_ = 1;
  std::vector<Layer> layers_;
  detail::BoundMatrix table_, head_;
  float const* norm_ = nullptr;
  bool stretched_ = false;
  std::vector<double> frequencies_;
  std::vector<float> cos_, sin_, h_, qkv_, seen_, gate_, up_, logits_;
  std::vector<Scratch> scratch_;
};

}  // namespace dfdx::models
