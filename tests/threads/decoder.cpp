// SPDX-License-Identifier: BSL-1.0
// Decoders that share their rows among threads of OpenMP give the same numbers to the last bit, however many there are,
// and inside of a team of the caller's own.
#include <dfdx/core/random.hpp>
#include <dfdx/models/generate.hpp>
#include <dfdx/models/llama_load.hpp>

#include <cassert>
#include <cstring>

using namespace dfdx;

namespace {

models::Llama random_model() {
  models::LlamaConfig c;
  c.vocabulary = 301, c.width = 96, c.hidden = 160, c.layers = 2, c.heads = 6, c.kv_heads = 3,
  c.head_size = 16;
  c.context = 32, c.tied = true;
  models::Llama m = models::detail::outline_of(c);
  std::uint64_t seed = 1;
  visit(m, [&](Array& leaf) {
    Array x(leaf.meta());
    for (index_t i = 0; i < x.size(); ++i)
      x.data<float>()[i] = static_cast<float>(normal_at(Key{seed}, static_cast<std::uint64_t>(i))) * 0.3f;
    ++seed;
    leaf = x;
  });
  return m;
}

std::vector<float> decoded(models::Llama const& m, int threads) {
  models::KvCache cache = m.cache(20);
  models::Decoder decode(m, 20, threads);
  std::span<float const> logits;
  for (std::int32_t i = 0; i < 20; ++i) logits = decode(i * 13, cache);
  return {logits.begin(), logits.end()};
}

// A prompt, then several texts side by side.
std::vector<float> decoded_together(models::Llama const& m, int threads) {
  models::KvCache a = m.cache(40), b = m.cache(40);
  models::Decoder decode(m, 40, threads);
  std::vector<std::int32_t> prompt(19);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int32_t>(i * 7 % 31);
  decode(prompt, a), decode(std::span(prompt).first(3), b);
  models::KvCache* both[] = {&a, &b};
  std::span<float const> const logits = decode(std::span(prompt).first(2), both);
  return {logits.begin(), logits.end()};
}

bool same(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

int main() {
  models::Llama const plain = random_model();
  Weights w("memory");
  visit_named(plain, [&](std::string const& name, Array const& leaf) { w.add(gguf_name(name), leaf); });
  models::Llama q8 = plain;
  models::detail::visit_matrices(q8, [&](std::string const& name, auto& layer) {
    layer.stored = models::detail::quantized(w.at(gguf_name(name)), Quant::q8_0, 0);
    layer.weight.reset();
  });
  for (models::Llama const* m : {&plain, static_cast<models::Llama const*>(&q8)}) {
    std::vector<float> const one = decoded(*m, 1);
    for (int threads : {2, 3, 5, 0}) assert(same(decoded(*m, threads), one));
    std::vector<float> const together = decoded_together(*m, 1);
    for (int threads : {2, 3, 5, 0}) assert(same(decoded_together(*m, threads), together));
    int wrong = 0;
#pragma omp parallel num_threads(2) reduction(+ : wrong)
    wrong += !same(decoded(*m, 1), one) || !same(decoded(*m, 2), one);
    assert(wrong == 0);
  }
}
