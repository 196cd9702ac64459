// SPDX-License-Identifier: BSL-1.0
#include "llama.hpp"

#include <cmath>
#include <dfdx/models/generate.hpp>

#include "../llama/random_model.hpp"
#include "error.hpp"

namespace bench {

using namespace dfdx;

namespace {

using Tokens = std::vector<std::int32_t>;

models::LlamaConfig config(bool small) {
  models::LlamaConfig c;
  c.tied = true, c.context = 4096;
  if (small) {
    c.vocabulary = 131, c.width = 64, c.hidden = 96, c.layers = 2;
    c.heads = 4, c.kv_heads = 2, c.head_size = 16;
  } else {
    c.vocabulary = 128256, c.width = 2048, c.hidden = 8192, c.layers = 16;
    c.heads = 32, c.kv_heads = 8, c.head_size = 64;
  }
  return c;
}

models::Llama model_of(models::LlamaConfig const& c) {
  auto m = random_model(c, static_cast<float>(std::sqrt(3.0 / static_cast<double>(c.width))));
  visit(m, [](Array& leaf) {
    if (leaf.ndim() == 2) leaf = leaf.to(DType::bf16);
  });
  return m;
}

Tokens some_tokens(index_t n, index_t vocabulary) {
  Tokens r;
  for (index_t i = 0; i < n; ++i) r.push_back(static_cast<std::int32_t>((i * 211 + 1) % vocabulary));
  return r;
}

double difference(std::span<float const> got, std::span<float const> want) {
  Error e;
  for (std::size_t i = 0; i < want.size(); ++i) e.add(double{got[i]}, double{want[i]});
  return e.value();
}

}  // namespace

struct Llama::State {
  State(bool small, Device device)
      : here(model_of(config(small))),
        there(to(device, here)),
        tokens(some_tokens(small ? 70 : 2048, here.config.vocabulary)),
        positions(static_cast<index_t>(tokens.size()) + 1),
        decode(there, positions),
        cache(there.cache(positions, {}, Encoding(DType::bf16))) {}

  models::Llama here, there;
  Tokens tokens;
  index_t positions;
  models::Decoder decode;
  models::KvCache cache;
};

Llama::Llama(bool small, Device device) : state_(new State(small, device)) {}
Llama::~Llama() = default;

index_t Llama::prompt() const { return static_cast<index_t>(state_->tokens.size()); }

double Llama::matrix_bytes() const {
  double sum = 0;
  visit(state_->here, [&](Array const& leaf) {
    if (leaf.ndim() == 2) sum += static_cast<double>(leaf.size()) * 2;
  });
  return sum;
}

double Llama::error() {
  models::Decoder on_cpu(state_->here, 8);
  models::KvCache a = state_->here.cache(8), b = state_->there.cache(8);
  double worst = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    worst = worse(worst, difference(state_->decode(state_->tokens[i], b), on_cpu(state_->tokens[i], a)));
  }
  return worst;
}

double Llama::prompt_error() {
  models::KvCache a = state_->there.cache(state_->positions, {}, Encoding(DType::bf16));
  std::span<float const> last;
  for (std::int32_t const token : state_->tokens) last = state_->decode(token, a);
  std::vector<float> const want(last.begin(), last.end());
  state_->cache.length = 0;
  return difference(state_->decode(state_->tokens, state_->cache), want);
}

void Llama::next_token() {
  state_->cache.length = prompt() / 2;
  state_->decode(state_->tokens[3], state_->cache);
}

void Llama::read_prompt() {
  state_->cache.length = 0;
  state_->decode(state_->tokens, state_->cache);
}

}  // namespace bench
