// SPDX-License-Identifier: BSL-1.0
// What tests of decoders on a device have in common: models of random numbers, and how far a decoder on the device is
// from the same on the CPU.
#pragma once

#include "cuda_emulated/emulated.hpp"

#include <dfdx/cuda_models.hpp>
#include <dfdx/models/generate.hpp>
#include <dfdx/models/llama_load.hpp>

namespace emulated_decoders {

using namespace emulated;

using Tokens = std::vector<std::int32_t>;

inline models::LlamaConfig small() {
  models::LlamaConfig c;
  c.vocabulary = 131, c.width = 64, c.hidden = 96, c.layers = 2, c.heads = 4, c.kv_heads = 2,
  c.head_size = 16;
  c.context = 512, c.tied = true;
  return c;
}
// Sizes of which rows are whole blocks of every format.
inline models::LlamaConfig of_blocks() {
  models::LlamaConfig c = small();
  c.width = 256, c.hidden = 512, c.head_size = 64;
  return c;
}
inline models::LlamaConfig one_layer(models::LlamaConfig c) {
  c.layers = 1;
  return c;
}

template <class M>
M with_random_numbers(M m) {
  std::uint64_t seed = 1;
  visit_named(m, [&](std::string const& name, Array& leaf) {
    Array x(leaf.meta());
    bool const is_norm = name.find("norm") != name.npos || name.find("ln_") != name.npos;
    for (index_t i = 0; i < x.size(); ++i)
      x.data<float>()[i] = static_cast<float>(normal_at(Key{seed}, static_cast<std::uint64_t>(i))) * 0.2f +
                           (is_norm && name.ends_with("weight") ? 1.0f : 0.0f);
    ++seed;
    leaf = x;
  });
  return m;
}
inline models::Llama random_model(models::LlamaConfig const& c) {
  c.check();
  return with_random_numbers(models::detail::outline_of(c));
}

inline Tokens some_tokens(index_t n, index_t vocabulary) {
  Tokens r;
  for (index_t i = 0; i < n; ++i) r.push_back(static_cast<std::int32_t>((i * 37 + 1) % vocabulary));
  return r;
}

// The largest difference relative to the largest number of all, between a decoder on the CPU and one on the device: a
// prompt of so many tokens, and so many tokens after it one by one.
template <class M>
double difference(M const& m, index_t prompt, index_t after, Encoding cache = DType::f32) {
  auto const there = to(cuda(), m);
  index_t const n = prompt + after;
  models::KvCache a = m.cache(n, {}, cache), b = there.cache(n, {}, cache);
  CHECK(b.device() == cuda());
  models::Decoder here(m, n), decode(there, n);
  double worst = 0, size = 0;
  auto const compare = [&](std::span<float const> want, std::span<float const> got) {
    REQUIRE(got.size() == want.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      double const d = std::abs(double{got[k]} - double{want[k]});
      if (!(d <= worst)) worst = d;
      size = std::max(size, std::abs(double{want[k]}));
    }
  };
  Tokens const tokens = some_tokens(n, m.config.vocabulary);
  auto const first = std::span(tokens).first(static_cast<std::size_t>(prompt));
  if (prompt > 0) compare(here.rows(first, a), decode.rows(first, b));
  for (index_t i = prompt; i < n; ++i) {
    auto const token = tokens[static_cast<std::size_t>(i)];
    compare(here(token, a), decode(token, b));
  }
  CHECK(a.length == b.length);
  CHECK(size > 0);
  return worst / size;
}

}  // namespace emulated_decoders
