// SPDX-License-Identifier: BSL-1.0
// The steps of a decoder on a CUDA device: what models/decoder_host.hpp does, kernel after kernel on the device's
// stream. Tokens, places and sines go there in one copy; the same step again, for the next token, is one launch.
#pragma once

#include <dfdx/kernels/cuda/prompt_attention.hpp>
#include <dfdx/kernels/cuda/replay.hpp>
#include <dfdx/models/decoder_factor.hpp>
#include <dfdx/models/decoder_step.hpp>

namespace dfdx::models::detail::inline DFDX_TARGET {

/// DeviceRunner - runs a model on its device, with caches of `capacity` positions.
class DeviceRunner final : public DecoderRunner {
 public:
  DeviceRunner(DecoderModel const& c, index_t capacity) : model_(c), capacity_(capacity) {
    if (c.head_size > gpu::See<float, 4>::most_size)
      raise("decoder: heads of ", c.head_size, " on ", c.device, ", at most ", gpu::See<float, 4>::most_size,
            " are supported");
    for_factors(c, [&](BoundMatrix const& w) { rank_ = std::max(rank_, w.inner.rows); });
  }

  void reserve(index_t rows, index_t results) override {
    DecoderModel const& c = model_;
    // Attention counts numbers in 32 bits.
    if (index_t const most = INT32_MAX / ((c.heads + 2 * c.kv_heads) * c.head_size); rows > most)
      raise("decoder: ", rows, " tokens at once on ", c.device, ", at most ", most, " are supported");
    h_ = rooms_[0].take<float>(rows * c.width, c.device);
    x_ = rooms_[1].take<float>(rows * c.width, c.device);
    qkv_ = rooms_[2].take<float>(rows * (c.heads + 2 * c.kv_heads) * c.head_size, c.device);
    y_ = rooms_[3].take<float>(rows * c.heads * c.head_size, c.device);
    hidden_ = rooms_[4].take<float>(rows * c.hidden * (c.gated ? 2 : 1), c.device);
    logits_ = rooms_[5].take<float>(results * c.vocabulary, c.device);
    low_ = rooms_[6].take<float>(rows * rank_, c.device);
    spoiled_ = rooms_[7].take<std::int32_t>(1, c.device);
  }

  void run(DecoderStep& step) override {
    DecoderModel const& c = model_;
    cuda_runtime::Current const current(c.device);
    stream_ = cuda_runtime::stream(c.device);
    KvCache const& first = *step.rows[0].cache;
    rows_ = static_cast<index_t>(step.rows.size()), results_ = step.results;
    together_ = true;
    encoding_ = first.encoding;
    index_t longest = 0;
    for (DecoderRow const& r : step.rows) {
      if (r.cache->encoding != encoding_) raise("decoder: caches of several encodings in one step");
      together_ = together_ && r.cache == &first;
      longest = std::max(longest, r.position + 1);
    }
    // Few rows come again and again, at other places: what is captured has to do for all.
    bool const again = rows_ < gpu::many_rows_from;
    bring(step);
    set_parts(again ? capacity_ : longest);
    if (first.quantized()) cuda_runtime::zero(spoiled_, sizeof(std::int32_t), c.device);
    cuda_runtime::Range const range("decoder");
    if (again && dfdx::cuda_options.capture) replay_.run(key(), stream_, [&] { work(); });
    else work();
    cuda_runtime::copy(step.logits.data(), Device{}, logits_, c.device,
                       static_cast<std::size_t>(results_ * c.vocabulary) * sizeof(float));
    if (!first.quantized()) return;
    std::int32_t spoiled = 0;
    cuda_runtime::copy(&spoiled, Device{}, spoiled_, c.device, sizeof(spoiled));
    if (spoiled != 0) raise("llama: a number too large for a cache of Q8_0, or none");
  }

 private:
  // A matrix and where its products go.
  struct Into {
    BoundMatrix const* w;
    float* y;
  };

  template <class K, class A>
  void start(char const* what, A const& arguments, index_t blocks) {
    cudaError_t const said = gpu::start<K>(arguments, blocks, stream_);
    if (said != cudaSuccess) cuda_runtime::failed(std::string("decoder, ") + what, said);
  }
  // f(what kernels of matrices of that encoding are)
  template <class F>
  static void for_encoding(Encoding const& e, F const& f) {
    if (Quant const* const q = std::get_if<Quant>(&e))
      return dispatch(*q, [&](auto format) {
        constexpr Quant F_ = decltype(format)::value;
        f(std::type_identity<gpu::BlockRows<F_>>{}, std::type_identity<gpu::ReadBlocks<F_>>{});
      });
    auto const numbers = [&]<class E>(std::type_identity<E>) {
      f(std::type_identity<gpu::NumberRows<E>>{}, std::type_identity<gpu::ReadRows<E>>{});
    };
    switch (std::get<DType>(e)) {
      case DType::f16: return numbers(std::type_identity<float16>{});
      case DType::bf16: return numbers(std::type_identity<bfloat16>{});
      default: return numbers(std::type_identity<float>{});
    }
  }
  // f(the type of what the caches hold)
  template <class F>
  void for_caches(F const& f) const {
    if (std::holds_alternative<Quant>(encoding_)) return f(std::type_identity<gpu::Q8Row>{});
    switch (std::get<DType>(encoding_)) {
      case DType::f16: return f(std::type_identity<float16>{});
      case DType::bf16: return f(std::type_identity<bfloat16>{});
      default: return f(std::type_identity<float>{});
    }
  }

  // Tokens, places, sines and the caches of all layers, in one copy.
  void bring(DecoderStep const& step) {
    DecoderModel const& c = model_;
    auto const n = static_cast<std::size_t>(rows_), layers = c.layers.size();
    std::size_t const turns = c.rotary() ? n * static_cast<std::size_t>(c.head_size / 2) : 0;
    std::size_t const caches = layers * n * sizeof(gpu::CacheRows), bytes = caches + (2 * turns + 2 * n) * 4;
    given_.resize(bytes);
    auto* const rows = reinterpret_cast<gpu::CacheRows*>(given_.data());
    auto* const cos = reinterpret_cast<float*>(given_.data() + caches);
    auto* const tokens = reinterpret_cast<std::int32_t*>(cos + 2 * turns);
    for (std::size_t m = 0; m < n; ++m) {
      KvCache const& cache = *step.rows[m].cache;
      for (std::size_t i = 0; i < layers; ++i)
        rows[i * n + m] = {cache.keys[i].bytes(), cache.values[i].bytes(), cache.capacity};
      tokens[m] = step.rows[m].token;
      tokens[n + m] = static_cast<std::int32_t>(step.rows[m].position);
    }
    if (turns > 0) {
      std::memcpy(cos, step.cos.data(), turns * 4);
      std::memcpy(cos + turns, step.sin.data(), turns * 4);
    }
    std::byte* const there = given_there_.take<std::byte>(static_cast<index_t>(bytes), c.device);
    cuda_runtime::copy(there, c.device, given_.data(), Device{}, bytes);
    caches_ = reinterpret_cast<gpu::CacheRows const*>(there);
    cos_ = turns > 0 ? reinterpret_cast<float const*>(there + caches) : nullptr;
    sin_ = turns > 0 ? cos_ + turns : nullptr;
    tokens_ = reinterpret_cast<std::int32_t const*>(there + caches + 2 * turns * 4);
    positions_ = tokens_ + rows_;
  }

  // Among how many blocks the positions of a text are divided, so that they are enough for a large device.
  void set_parts(index_t positions) {
    gpu::SeePositionsArguments const x = seeing();
    index_t pieces = 1;
    for_attention(x, [&]<class K>(std::type_identity<K>) {
      index_t const most = (positions + K::part_size - 1) / K::part_size;
      pieces = K::work(x);
      parts_ = std::clamp<index_t>(gpu::enough_blocks / std::max<index_t>(pieces, 1), 1,
                                   std::max<index_t>(most, 1));
    });
    index_t const numbers = parts_ > 1 ? rows_ * model_.heads * parts_ * (model_.head_size + 2) : 0;
    seen_ = seen_room_.take<float>(numbers, model_.device);
    void const* const before = done_room_.bytes();
    done_ = done_room_.take<int>(std::max<index_t>(pieces, 1024), model_.device);
    if (done_ != before)
      cuda_runtime::zero(done_, static_cast<std::size_t>(std::max<index_t>(pieces, 1024)) * sizeof(int),
                         model_.device);
  }
  gpu::SeePositionsArguments seeing() const {
    gpu::SeePositionsArguments x;
    x.qkv = qkv_, x.rows = static_cast<int>(rows_), x.heads = static_cast<int>(model_.heads);
    x.key_heads = static_cast<int>(model_.kv_heads), x.size = static_cast<int>(model_.head_size);
    x.positions = positions_, x.together = together_;
    return x;
  }
  // f(the kernel of attention)
  template <class F>
  void for_attention(gpu::SeePositionsArguments const& x, F const& f) const {
    for_caches([&]<class E>(std::type_identity<E>) {
      if constexpr (std::is_same_v<E, float16> || std::is_same_v<E, bfloat16>)
        if (together_ && rows_ >= gpu::many_rows_from) {
          if (x.size == 64) return f(std::type_identity<gpu::SeeTogether<E, 64>>{});
          if (x.size <= 128) return f(std::type_identity<gpu::SeeTogether<E, 128>>{});
          return f(std::type_identity<gpu::SeeTogether<E, 256>>{});
        }
      if (x.sharing() <= 4) f(std::type_identity<gpu::See<E, 4>>{});
      else if (x.sharing() <= 8) f(std::type_identity<gpu::See<E, 8>>{});
      else f(std::type_identity<gpu::See<E, 16>>{});
    });
  }

  // What a captured step may not differ in.
  std::vector<std::uintptr_t> const& key() {
    key_.clear();
    for (void const* p :
         {static_cast<void const*>(h_), static_cast<void const*>(x_), static_cast<void const*>(qkv_),
          static_cast<void const*>(y_), static_cast<void const*>(hidden_), static_cast<void const*>(logits_),
          static_cast<void const*>(low_), static_cast<void const*>(seen_), static_cast<void const*>(done_),
          static_cast<void const*>(caches_)})
      key_.push_back(reinterpret_cast<std::uintptr_t>(p));
    factor_.add_to(key_), low_factor_.add_to(key_);
    key_.push_back(static_cast<std::uintptr_t>(rows_));
    key_.push_back(static_cast<std::uintptr_t>(results_) * 2 + together_);
    key_.push_back(static_cast<std::uintptr_t>(parts_) * 2 + dfdx::cuda_options.early);
    key_.push_back(std::visit([](auto e) { return static_cast<std::uintptr_t>(e); }, encoding_) * 2 +
                   std::holds_alternative<Quant>(encoding_));
    return key_;
  }

  // h = rows of a matrix, or those added to it.
  void read_rows(MatrixRows const& w, std::int32_t const* at, bool adds) {
    index_t const blocks = blocks_of(w);
    gpu::ReadRowsArguments const x{w.bytes, blocks, w.columns, rows_, at, h_, adds};
    for_encoding(w.encoding, [&]<class Rows, class Read>(Rows, std::type_identity<Read>) {
      index_t const work = blocks > 0 ? rows_ * w.columns / 32 : rows_ * w.columns;
      start<Read>("embedding", x, gpu::blocks_for(work, Read::threads));
    });
  }
  static index_t blocks_of(MatrixRows const& w) {
    Quant const* const q = std::get_if<Quant>(&w.encoding);
    return q != nullptr ? w.rows * (w.columns / block_length(*q)) : 0;
  }
  // x_ = the norms of rows, which are the factor of what follows.
  void normalize(BoundNorm const& by, float const* from, index_t rows) {
    DecoderModel const& c = model_;
    factor_.set(
        gpu::NormRowsArguments{from, by.weight, by.bias, x_, rows, c.width, static_cast<float>(c.norm_eps)});
  }
  // Products of the factor with matrices; those of one encoding that follow each other are one kernel.
  void multiply(DeviceFactor& by, std::initializer_list<Into> all, index_t y_row, bool adds) {
    for (Into const *i = all.begin(), *next = i; i != all.end(); i = next) {
      MatrixRows const& w = i->w->rows;
      gpu::RowProduct p;
      p.y_row = y_row, p.adds = adds;
      for (; next != all.end() && next->w->rows.encoding == w.encoding; ++next)
        p.of[p.matrices++] = {next->w->rows.bytes, next->w->rows.rows, next->w->bias, next->y};
      product(by, p, w.encoding);
    }
    // And with the factors of changes.
    for (Into const& i : all) {
      if (!i.w->has_factors()) continue;
      gpu::RowProduct inner, outer;
      inner.matrices = outer.matrices = 1;
      inner.of[0] = {i.w->inner.bytes, i.w->inner.rows, nullptr, low_}, inner.y_row = i.w->inner.rows;
      product(by, inner, i.w->inner.encoding);
      low_factor_.set(low_, inner.rows, inner.y_row);
      outer.of[0] = {i.w->outer.bytes, i.w->outer.rows, nullptr, i.y}, outer.y_row = y_row;
      outer.factor = i.w->scale, outer.adds = true;
      product(low_factor_, outer, i.w->outer.encoding);
    }
  }
  void product(DeviceFactor& by, gpu::RowProduct& p, Encoding const& e) {
    by.multiply_many(e, p, model_.device, stream_);
    if (p.matrices == 0 || by.multiply_one(e, p, model_.device, stream_)) return;
    by.give(e, p, model_.device, stream_);
    for_encoding(e, [&]<class Rows, class Read>(std::type_identity<Rows>, Read) {
      cudaError_t const said = gpu::start_product<Rows>(p, stream_);
      if (said != cudaSuccess) cuda_runtime::failed("decoder, product", said);
    });
  }
  // hidden_ = f(gate x) (up x), which are the factor of what follows.
  void activate(BoundLayer const& l) {
    DecoderModel const& c = model_;
    float* const up = hidden_ + rows_ * c.hidden;
    auto const function = static_cast<int>(c.activation);
    bool const is_changed = l.gate.has_factors() || (c.gated && l.up.has_factors());
    if (!is_changed && (!c.gated || l.gate.rows.encoding == l.up.rows.encoding)) {
      gpu::RowProduct p;
      p.y_row = c.hidden;
      p.of[p.matrices++] = {l.gate.rows.bytes, c.hidden, l.gate.bias, hidden_};
      if (c.gated) p.of[p.matrices++] = {l.up.rows.bytes, c.hidden, l.up.bias, nullptr};
      if (factor_.multiply_one(l.gate.rows.encoding, p, c.device, stream_, function))
        return factor_.set(hidden_, rows_, c.hidden);
    }
    if (c.gated) multiply(factor_, {{&l.gate, hidden_}, {&l.up, up}}, c.hidden, false);
    else multiply(factor_, {{&l.gate, hidden_}}, c.hidden, false);
    factor_.set(gpu::ActivateArguments{hidden_, c.gated ? up : nullptr, rows_ * c.hidden, function}, rows_);
  }
  // Keys and values into the caches of a layer, and what positions see of them.
  void see(BoundLayer const& l, std::size_t layer) {
    DecoderModel const& c = model_;
    gpu::CacheRows const* const caches = caches_ + static_cast<index_t>(layer) * rows_;
    gpu::SeePositionsArguments x = seeing();
    gpu::PlaceHeadsArguments place;
    place.qkv = qkv_, place.rows = x.rows, place.heads = x.heads, place.key_heads = x.key_heads;
    place.size = x.size, place.q_norm = l.q_norm, place.k_norm = l.k_norm;
    place.eps = static_cast<float>(c.norm_eps), place.cos = cos_, place.sin = sin_;
    place.caches = caches, place.positions = positions_, place.spoiled = spoiled_;
    // Where queries go through the cache once, that kernel does it.
    bool const places = (rows_ == 1 || !together_) && c.heads / c.kv_heads <= 16;
    x.caches = caches, x.window = static_cast<int>(l.window), x.scale = l.scale,
    x.parts = static_cast<int>(parts_), x.y = y_, x.seen = seen_, x.done = done_;
    x.places = places, x.place = place;
    if (!places)
      for_caches([&]<class E>(std::type_identity<E>) {
        start<gpu::PlaceHeads<E>>("heads", place, gpu::PlaceHeads<E>::blocks_for(place));
      });
    for_attention(x, [&]<class K>(std::type_identity<K>) {
      if (!places) return start<K>("attention", x, K::work(x));
      cudaError_t const said = gpu::start_early<K>(x, K::work(x), c.device, stream_);
      if (said != cudaSuccess) cuda_runtime::failed("decoder, attention", said);
    });
  }

  void work() {
    DecoderModel const& c = model_;
    read_rows(c.table, tokens_, false);
    if (!c.rotary()) read_rows(c.learnt, positions_, true);
    index_t const q_rows = c.heads * c.head_size, kv_rows = c.kv_heads * c.head_size;
    float *const k = qkv_ + q_rows, *const v = k + kv_rows;
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      BoundLayer const& l = c.layers[i];
      normalize(l.input, h_, rows_);
      multiply(factor_, {{&l.q, qkv_}, {&l.k, k}, {&l.v, v}}, q_rows + 2 * kv_rows, false);
      see(l, i);
      factor_.set(y_, rows_, q_rows);
      multiply(factor_, {{&l.o, h_}}, c.width, true);
      normalize(l.middle, h_, rows_);
      activate(l);
      multiply(factor_, {{&l.down, h_}}, c.width, true);
    }
    bool const all = results_ == rows_;
    normalize(c.norm, all ? h_ : h_ + (rows_ - 1) * c.width, results_);
    multiply(factor_, {{&c.head, logits_}}, c.vocabulary, false);
  }

  DecoderModel const& model_;
  index_t capacity_, rank_ = 0;
  cudaStream_t stream_{};
  index_t rows_ = 0, results_ = 0, parts_ = 1;
  bool together_ = false;
  Encoding encoding_ = DType::f32;
  DeviceRoom rooms_[8], seen_room_, done_room_, given_there_;
  int* done_ = nullptr;
  float *h_ = nullptr, *x_ = nullptr, *qkv_ = nullptr, *y_ = nullptr, *hidden_ = nullptr, *logits_ = nullptr,
        *low_ = nullptr, *seen_ = nullptr;
  std::int32_t* spoiled_ = nullptr;
  std::vector<std::byte> given_;
  gpu::CacheRows const* caches_ = nullptr;
  float const *cos_ = nullptr, *sin_ = nullptr;
  std::int32_t const *tokens_ = nullptr, *positions_ = nullptr;
  DeviceFactor factor_, low_factor_;
  cuda_runtime::Replay replay_;
  std::vector<std::uintptr_t> key_;
};

inline std::unique_ptr<DecoderRunner> device_runner(DecoderModel const& model, index_t capacity) {
  return std::make_unique<DeviceRunner>(model, capacity);
}
/// Says at the start of the process that decoders run on devices.
inline bool const device_runner_registered = (make_device_runner = &device_runner, true);

}  // namespace dfdx::models::detail::inline DFDX_TARGET
