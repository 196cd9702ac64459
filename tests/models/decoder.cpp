// SPDX-License-Identifier: BSL-1.0
// One token at a time against the model on the tape: every kind of model, cache and matrix, and no memory for a token.
#include "allocations.hpp"
#include "models/hf.hpp"

#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/lora.hpp>

#include "worse.hpp"

namespace tests::models_decoder {

using namespace tests;

namespace {

models::LlamaConfig small() {
  models::LlamaConfig c;
  c.vocabulary = 131, c.width = 64, c.hidden = 96, c.layers = 2, c.heads = 4, c.kv_heads = 2,
  c.head_size = 18;
  c.context = 64, c.tied = true;
  return c;
}

// A model of random numbers.
models::Llama random_model(models::LlamaConfig const& c) {
  c.check();
  models::Llama m = models::detail::outline_of(c);
  std::uint64_t seed = 1;
  visit_named(m, [&](std::string const& name, Array& leaf) {
    Array x(leaf.meta());
    for (index_t i = 0; i < x.size(); ++i)
      x.data<float>()[i] = static_cast<float>(normal_at(Key{seed}, static_cast<std::uint64_t>(i))) *
                               (name.ends_with("norm.weight") ? 0.2f : 0.3f) +
                           (name.ends_with("norm.weight") ? 1.0f : 0.0f);
    ++seed;
    leaf = x;
  });
  return m;
}

// The largest difference over n tokens, from both the model and a decoder, each with a cache of its own.
double difference(models::Llama const& m, index_t n, Encoding cache = DType::f32, int threads = 0) {
  models::KvCache a = m.cache(n, {}, cache), b = m.cache(n, {}, cache);
  models::Decoder decode(m, n, threads);
  double worst = 0;
  for (index_t i = 0; i < n; ++i) {
    auto const token = static_cast<std::int32_t>((i * 37 + 1) % m.config.vocabulary);
    Array const want = m(models::detail::token_row(std::span(&token, 1)), a).to(DType::f32).contiguous();
    std::span<float const> const got = decode(token, b);
    REQUIRE(static_cast<index_t>(got.size()) == want.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      double const d = std::abs(double{got[k]} - double{want.data<float>()[k]});
      if (!(d <= worst)) worst = d;
    }
  }
  CHECK(b.length == n);
  return worst;
}

}  // namespace

TEST_CASE("a decoder gives what its model gives", "[models]") {
  CHECK(difference(random_model(small()), 40) < 1e-4);
  models::LlamaConfig c = small();
  c.kv_heads = 4, c.tied = false, c.window = 7;
  CHECK(difference(random_model(c), 40) < 1e-4);
  c = small();
  c.normalized_heads = c.attention_bias = c.output_bias = c.mlp_bias = true;
  c.kv_heads = 1;
  CHECK(difference(random_model(c), 40) < 1e-4);
  c = small();
  c.rope.kind = models::RopeFrequencies::Kind::dynamic;
  c.rope.factor = 2, c.rope.original_context = 16;
  CHECK(difference(random_model(c), 40) < 1e-4);
}

TEST_CASE("a decoder with a cache of 16 bits", "[models]") {
  // Where the two differ in the last bit, 16 bits may round to neighbours.
  CHECK(difference(random_model(small()), 40, DType::f16) < 0.02);
  CHECK(difference(random_model(small()), 40, DType::bf16) < 0.2);
}

TEST_CASE("a decoder with a cache of blocks", "[models]") {
  models::LlamaConfig c = small();
  c.head_size = 32;
  models::Llama const m = random_model(c);
  CHECK(difference(m, 40, Quant::q8_0) < 0.1);  // a last bit may bring a neighbour of integers
  // It is near what a cache of f32 gives, in a fraction of the memory.
  models::KvCache a = m.cache(40), b = m.cache(40, {}, Quant::q8_0), whole = m.cache(40, 2, Quant::q8_0);
  CHECK(b.keys[0].shape() == make_shape(2, 40, 34));
  models::Decoder decode(m, 40, 1), other(m, 40, 1);
  Tokens text;
  for (std::int32_t i = 0; i < 40; ++i) text.push_back((i * 37 + 1) % 131);
  std::span<float const> const want = decode(text, a), got = other(text, b);
  Array const two = stack({models::detail::token_row(text), models::detail::token_row(text)});
  Array const rows = m(two, whole);
  Array const last = slice(rows, 1, 39)[1][0].contiguous();
  double worst = 0, batched = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    worst = tests::worse(worst, std::abs(double{want[i]} - double{got[i]}));
    batched = tests::worse(batched, std::abs(double{last.data<float>()[i]} - double{got[i]}));
    size = std::max(size, std::abs(double{want[i]}));
  }
  CHECK(worst > 0);
  CHECK(worst < 0.03 * size);
  CHECK(batched < 0.01 * size);
  std::int64_t const before = tests::allocations();
  for (std::int32_t i = 0; i < 1; ++i) b.length = 39, other(i, b);
  CHECK(tests::allocations() == before);
  CHECK(error_of([&] { random_model(small()).cache(4, {}, Quant::q8_0); }) ==
        "llama: a cache of Q8_0 needs heads of a multiple of 32, got 18");
  CHECK(error_of([&] { m.cache(4, {}, Quant::q4_0); }) == "llama: a cache of Q4_0 is not supported");
}

TEST_CASE("a decoder with quantized matrices", "[models]") {
  models::LlamaConfig c = small();
  c.width = 256, c.hidden = 512, c.head_size = 64;
  models::Llama const m = random_model(c);
  for (Quant q : {Quant::q8_0, Quant::q4_0, Quant::q5_1, Quant::q4_k, Quant::q6_k}) {
    INFO(name_of(q));
    models::Llama const r = models::quantized(m, q);
    index_t leaves = 0;
    visit(r, [&](Array const&) { ++leaves; });
    CHECK(leaves == 5);  // the norms
    // A last bit may bring a neighbour of the other factor's integers, which is a step of 1 / 127.
    models::KvCache cache = r.cache(4);
    models::Decoder decode(r, 4);
    std::int32_t const token = 17;
    Array const want = r(models::detail::token_row(std::span(&token, 1)));
    std::span<float const> const got = decode(token, cache);
    double worst = 0, size = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = tests::worse(worst, std::abs(double{got[i]} - double{want.data<float>()[i]}));
      size = std::max(size, std::abs(double{got[i]}));
    }
    CHECK(worst < 0.02 * size);
  }
}

TEST_CASE("a trained model's text is the same token by token", "[models]") {
  models::Llama const m = models::load_llama(shared("data/llama/hf"));
  CHECK(difference(m, 200) < 1e-4);
  Weights const golden = read_safetensors(shared("data/llama/hf/golden_forward.safetensors"));
  Array const tokens = golden.array("tokens").to(DType::i32).contiguous();
  Tokens const text(tokens.data<std::int32_t>(), tokens.data<std::int32_t>() + 200);
  CHECK(models::generate(m, std::span(text).first(1), models::Sampler({.temperature = 0}), {.tokens = 199}) ==
        Tokens(text.begin() + 1, text.end()));
}

TEST_CASE("a decoder takes no memory for a token", "[models]") {
  models::LlamaConfig c = small();
  c.width = 256, c.hidden = 512, c.head_size = 64;
  models::Llama const plain = random_model(c);
  for (models::Llama const& m :
       {plain, models::quantized(plain, Quant::q8_0), models::quantized(plain, Quant::q4_k)}) {
    models::KvCache cache = m.cache(32);
    models::Decoder decode(m, 32, 1);
    decode(1, cache);
    std::int64_t const before = tests::allocations();
    for (int i = 0; i < 20; ++i) decode(i, cache);
    CHECK(tests::allocations() == before);
  }
}

TEST_CASE("a decoder takes several tokens of a text at once", "[models]") {
  models::LlamaConfig c = small();
  c.width = 128, c.hidden = 160, c.head_size = 32, c.window = 9, c.normalized_heads = c.mlp_bias = true;
  models::Llama const plain = random_model(c);
  Tokens text;
  for (std::int32_t i = 0; i < 40; ++i) text.push_back((i * 37 + 1) % 131);
  for (models::Llama const& m :
       {plain, models::quantized(plain, Quant::q8_0), models::quantized(plain, Quant::q4_1)}) {
    for (DType dtype : {DType::f32, DType::f16}) {
      models::KvCache a = m.cache(40, {}, dtype), b = m.cache(40, {}, dtype);
      models::Decoder decode(m, 40, 1), one(m, 40, 1);
      std::size_t at = 0;
      for (std::size_t n : {3, 1, 20, 9, 7}) {
        std::vector<float> want;
        for (std::size_t i = 0; i < n; ++i) {
          std::span<float const> const logits = one(text[at + i], b);
          want.assign(logits.begin(), logits.end());
        }
        std::span<float const> const got = decode(std::span(text).subspan(at, n), a);
        at += n;
        REQUIRE(got.size() == want.size());
        double worst = 0, size = 0;
        for (std::size_t i = 0; i < want.size(); ++i) {
          worst = tests::worse(worst, std::abs(double{got[i]} - double{want[i]}));
          size = std::max(size, std::abs(double{want[i]}));
        }
        // Below 5 tokens to the last bit; else a last bit may bring a neighbour of integers or of 16 bits.
        CHECK(worst <= (at < 8                                                        ? 0
                        : dtype == DType::f32 && m.model.layers[0].mlp.up_proj.weight ? 1e-5
                                                                                      : 0.02) *
                           size);
        CHECK(a.length == static_cast<index_t>(at));
      }
    }
  }
}

TEST_CASE("texts side by side are what they are one by one", "[models]") {
  models::LlamaConfig c = small();
  c.width = 128, c.hidden = 160, c.head_size = 32;
  models::Llama const plain = random_model(c);
  for (models::Llama const& m : {plain, models::quantized(plain, Quant::q8_0)})
    for (std::size_t texts : {2, 5, 12}) {
      // Texts of different lengths: the first tokens of each on their own.
      std::vector<models::KvCache> together, alone;
      std::vector<models::KvCache*> caches;
      models::Decoder decode(m, 32, 1), one(m, 32, 1);
      for (std::size_t i = 0; i < texts; ++i)
        for (auto* all : {&together, &alone}) {
          all->push_back(m.cache(32));
          for (std::size_t k = 0; k < i; ++k) one(static_cast<std::int32_t>(5 * i + k), all->back());
        }
      for (models::KvCache& k : together) caches.push_back(&k);
      double worst = 0, size = 0;
      for (std::int32_t step = 0; step < 6; ++step) {
        Tokens next;
        for (std::size_t i = 0; i < texts; ++i)
          next.push_back((step * 17 + static_cast<std::int32_t>(i) * 29) % 131);
        std::span<float const> const rows = decode(next, caches);
        REQUIRE(rows.size() == texts * 131);
        for (std::size_t i = 0; i < texts; ++i) {
          std::span<float const> const want = one(next[i], alone[i]);
          for (std::size_t k = 0; k < 131; ++k) {
            worst = tests::worse(worst, std::abs(double{rows[i * 131 + k]} - double{want[k]}));
            size = std::max(size, std::abs(double{want[k]}));
          }
        }
      }
      INFO(texts);
      bool const floats = m.model.layers[0].mlp.up_proj.weight.has_value();
      CHECK(worst <= (texts < 5 ? 0 : floats ? 5e-5 : 0.02) * size);
      CHECK(together[1].length == 7);
      caches[1] = caches[0];
      CHECK(error_of([&] { decode(Tokens(texts), caches); }) == "decoder: a cache is given twice");
      CHECK(error_of([&] { decode(Tokens(1), caches); }) ==
            "decoder: 1 tokens for " + std::to_string(texts) + " caches");
    }
}

TEST_CASE("what a decoder refuses", "[models]") {
  models::Llama const m = random_model(small());
  models::KvCache cache = m.cache(2), two = m.cache(2, 2);
  models::Decoder decode(m, 8);
  CHECK(error_of([&] { decode(131, cache); }) == "llama: token 131, there are 131");
  CHECK(error_of([&] { decode(-1, cache); }) == "llama: token -1, there are 131");
  CHECK(error_of([&] { decode(1, two); }) ==
        "decoder: the cache is not one of a single sequence in f32, 16 bits or blocks");
  decode(1, cache), decode(2, cache);
  CHECK(error_of([&] { decode(3, cache); }) == "llama: 3 positions, there is room for 2");
  CHECK(error_of([&] { decode(Tokens(), cache); }) == "decoder: no tokens");
  models::KvCache fresh = m.cache(4);
  CHECK(error_of([&] { decode(Tokens(5), fresh); }) == "llama: 5 positions, there is room for 4");
  CHECK(error_of([&] { decode(Tokens{1, 131}, fresh); }) == "llama: token 131, there are 131");
  CHECK(fresh.length == 0);
}

TEST_CASE("a decoder of a model of another dtype, and of one with factors", "[models]") {
  models::Llama const m = random_model(small());
  for (DType dtype : {DType::f64, DType::f16, DType::bf16}) {
    models::Llama other = m;
    visit(other, [&](Array& leaf) { leaf = leaf.to(dtype).contiguous(); });
    models::Llama floats = other;  // the same numbers
    visit(floats, [](Array& leaf) { leaf = leaf.to(DType::f32).contiguous(); });
    models::KvCache a = m.cache(8), b = m.cache(8);
    models::Decoder decode(other, 8), of_floats(floats, 8);
    for (std::int32_t t : {5, 17, 101}) {
      std::span<float const> const got = decode(t, a), want = of_floats(t, b);
      double worst = 0;
      for (std::size_t i = 0; i < got.size(); ++i)
        worst = tests::worse(worst, std::abs(double{got[i]} - double{want[i]}));
      CHECK(worst < 1e-4);
    }
  }
  models::LlamaConfig untied = small();
  untied.tied = false;
  models::Llama changed = random_model(untied);
  models::add_lora(changed, {.rank = 3, .alpha = 6, .targets = {"q_proj", "o_proj", "down_proj", "lm_head"}},
                   Key{3});
  visit_named(changed, [](std::string const& name, Array& leaf) {
    if (name.ends_with("lora_B.weight")) leaf = randn(Extents(leaf.shape()), Key{9}) * 0.2;
  });
  CHECK(difference(changed, 20) < 1e-4);
  CHECK(difference(models::quantized(changed, Quant::q8_0), 3) < 0.5);
  // Several tokens at once, and the numbers after each of them.
  models::KvCache a = m.cache(20), b = m.cache(20);
  models::Decoder decode(changed, 20, 1), one(changed, 20, 1);
  Tokens const text{3, 77, 12, 9, 60, 61, 62};
  std::span<float const> const rows = decode.rows(text, a);
  REQUIRE(rows.size() == 7 * 131);
  double worst = 0;
  for (std::size_t t = 0; t < 7; ++t) {
    std::span<float const> const want = one(text[t], b);
    for (std::size_t i = 0; i < 131; ++i)
      worst = tests::worse(worst, std::abs(double{rows[t * 131 + i]} - double{want[i]}));
  }
  CHECK(worst < 1e-4);
  CHECK(a.length == 7);
}

}  // namespace tests::models_decoder
