// SPDX-License-Identifier: BSL-1.0
// Decoders of models that lie on a device: every kind of model against the same on the CPU, and what they do beside
// computing.
#include "cuda_emulated/decoder.hpp"

#include <dfdx/models/any_model.hpp>
#include <dfdx/models/batch.hpp>
#include <dfdx/models/gpt2.hpp>
#include <dfdx/models/lora.hpp>
#include <dfdx/models/session.hpp>

#include <filesystem>

#include "worse.hpp"

namespace tests::cuda_emulated_decoder {

using namespace emulated_decoders;

TEST_CASE("a decoder on a device gives what one on the CPU gives", "[cuda]") {
  CHECK(difference(random_model(small()), 0, 12) < 1e-5);
  CHECK(difference(random_model(small()), 5, 3) < 1e-5);   // few rows at once
  CHECK(difference(random_model(small()), 75, 3) < 1e-5);  // tiles
  models::LlamaConfig c = small();
  c.kv_heads = 4, c.tied = false, c.window = 7, c.head_size = 18;
  CHECK(difference(random_model(c), 33, 5) < 1e-5);
  c = small();
  c.normalized_heads = c.attention_bias = c.output_bias = c.mlp_bias = true;
  c.kv_heads = 1, c.heads = 6;
  CHECK(difference(random_model(c), 20, 5) < 1e-5);
  c = small();
  c.rope.kind = models::RopeFrequencies::Kind::dynamic;
  c.rope.factor = 2, c.rope.original_context = 16;
  CHECK(difference(random_model(c), 10, 15) < 1e-5);
}

TEST_CASE("a stored matrix that is asked for by itself beside values of a device", "[cuda]") {
  models::Llama const m = models::quantized(random_model(of_blocks()), Quant::q5_1);
  models::Llama const there = to(cuda(), m);
  auto const &here = *m.model.layers[0].mlp.up_proj.stored,
             &moved = *there.model.layers[0].mlp.up_proj.stored;
  CHECK(moved.there.device() == cuda());
  Array const x = randn(Extents{3, 256}, Key{1}), y = moved.product(to(cuda(), x));
  CHECK(y.device() == cuda());
  CHECK(array_equal(to(Device{}, y), here.product(x)));
  Array const at = models::detail::token_row(some_tokens(4, 131));
  auto const& table = *there.model.embed_tokens.stored;
  CHECK(array_equal(to(Device{}, table.rows_at(to(cuda(), at))), m.model.embed_tokens.stored->rows_at(at)));
  CHECK(to(Device{}, there).model.embed_tokens.stored->there.bytes() == nullptr);
}

TEST_CASE("texts side by side on a device", "[cuda]") {
  models::Llama const m = random_model(small()), there = to(cuda(), m);
  for (std::size_t texts : {3, 20}) {
    std::vector<models::KvCache> a, b;
    std::vector<models::KvCache*> of_a, of_b;
    models::Decoder here(m, 64), decode(there, 64);
    for (std::size_t i = 0; i < texts; ++i) {
      a.push_back(m.cache(40 + static_cast<index_t>(i))),
          b.push_back(there.cache(40 + static_cast<index_t>(i)));
      Tokens const first = some_tokens(static_cast<index_t>(i) + 1, 131);
      here(first, a.back()), decode(first, b.back());
    }
    for (std::size_t i = 0; i < texts; ++i) of_a.push_back(&a[i]), of_b.push_back(&b[i]);
    for (int step = 0; step < 3; ++step) {
      Tokens const next = some_tokens(static_cast<index_t>(texts), 131 - step);
      std::span<float const> const want = here(next, of_a), got = decode(next, of_b);
      double worst = 0, size = 0;
      for (std::size_t k = 0; k < want.size(); ++k) {
        worst = tests::worse(worst, std::abs(double{got[k]} - double{want[k]}));
        size = std::max(size, std::abs(double{want[k]}));
      }
      CHECK(worst < 1e-5 * size);
    }
    CHECK(b[1].length == 5);
  }
}

TEST_CASE("a GPT-2 on a device, and factors of changes", "[cuda]") {
  models::Gpt2Config c;
  c.vocabulary = 131, c.width = 48, c.hidden = 64, c.layers = 2, c.heads = 3, c.context = 64;
  for (auto activation :
       {models::Activation::gelu, models::Activation::gelu_tanh, models::Activation::quick_gelu,
        models::Activation::relu, models::Activation::silu}) {
    c.activation = activation;
    CHECK(difference(with_random_numbers(models::detail::outline_of(c)), 20, 3) < 1e-5);
  }
  models::LlamaConfig untied = of_blocks();
  untied.tied = false;
  models::Llama changed = random_model(untied);
  models::add_lora(changed, {.rank = 3, .alpha = 6, .targets = {"q_proj", "o_proj", "down_proj", "lm_head"}},
                   Key{3});
  visit_named(changed, [](std::string const& name, Array& leaf) {
    if (name.ends_with("lora_B.weight")) leaf = randn(Extents(leaf.shape()), Key{9}) * 0.2;
  });
  CHECK(difference(changed, 20, 3) < 1e-5);
  CHECK(difference(models::quantized(changed, Quant::q8_0), 3, 1) < 0.02);
}

TEST_CASE("texts from a model on a device", "[cuda]") {
  models::Llama const plain = random_model(one_layer(small()));
  for (models::Llama const& m : {plain, models::quantized(plain, Quant::q4_0)}) {
    models::Llama const there = to(cuda(), m);
    Tokens const prompt = some_tokens(18, 131);
    models::Sampler const sampler({.temperature = 0});
    Tokens const want = models::generate(m, prompt, sampler, {.tokens = 12});
    CHECK(want.size() == 12);
    CHECK(models::generate(there, prompt, sampler, {.tokens = 12}) == want);
    // In less room than the text needs, and with others that begin alike.
    models::GenerateOptions const few{.tokens = 12, .capacity = 24};
    CHECK(models::generate(there, prompt, sampler, few) == models::generate(m, prompt, sampler, few));
    models::AnyModel const any = models::any_model(there);
    std::vector<Tokens> const prompts{prompt, Tokens(prompt.begin(), prompt.begin() + 12), {5, 7}};
    CHECK(models::generate(any, prompts, {sampler}, {.tokens = 5}) ==
          models::generate(m, prompts, {sampler}, {.tokens = 5}));
    double const loss = models::score(m, prompt).loss;
    CHECK(std::abs(models::score(there, prompt).loss - loss) < 1e-3);
  }
}

TEST_CASE("a token after the second is one launch", "[cuda]") {
  models::Llama const m = random_model(small()), there = to(cuda(), m);
  models::KvCache cache = there.cache(200), other = there.cache(200);
  models::Decoder decode(there, 200);
  decode(some_tokens(20, 131), cache), decode(5, cache);
  int const captures = machine().captures, replays = machine().replays, launches = machine().launches;
  for (std::int32_t t = 0; t < 150; ++t) decode(t % 131, cache);
  CHECK(machine().captures == captures + 1);
  CHECK(machine().replays == replays + 150);
  decode(5, other);  // a cache is no part of what is captured
  CHECK(machine().captures == captures + 1);
  CHECK(machine().launches > launches);
  std::vector<float> const last(decode(6, other).begin(), decode(6, other).end());
  // The same without a graph, to the last bit.
  cuda_options.capture = false;
  models::KvCache again = there.cache(200);
  models::Decoder plain(there, 200);
  plain(5, again), plain(6, again);
  std::span<float const> const want = plain(6, again);
  cuda_options.capture = true;
  CHECK(std::equal(want.begin(), want.end(), last.begin(), last.end()));
}

TEST_CASE("a decoder goes on after memory was out, wherever it was", "[cuda]") {
  models::Llama const m = models::quantized(random_model(one_layer(small())), Quant::q4_0),
                      there = to(cuda(), m);
  Tokens const some = some_tokens(9, 131);
  models::KvCache good = there.cache(16);
  models::Decoder plain(there, 16);
  std::span<float const> const first = plain(some, good);
  std::vector<float> const want(first.begin(), first.end());
  int failures = 0;
  // Each limit is the least that lets more through than the last: all between refuse the same.
  std::size_t room = 0;
  for (bool fits = false; !fits; ++failures) {
    models::KvCache cache = there.cache(16);
    models::Decoder decode(there, 16);
    auto const before = machine().total_bytes, used = machine().used_bytes;
    machine().total_bytes = used + room;
    machine().lacking_bytes = before;
    try {
      decode(some, cache);
      fits = true;
    } catch (error const& e) {
      CHECK(std::string(e.what()).find("out of memory on cuda:0") != std::string::npos);
      CHECK(cache.length == 0);
    }
    machine().total_bytes = before;
    CHECK((fits || machine().lacking_bytes > used + room));
    room = machine().lacking_bytes - used;
    for (int again = 0; again < 3; ++again) {
      cache.length = 0;
      std::span<float const> const got = decode(some, cache);
      CHECK(std::equal(want.begin(), want.end(), got.begin(), got.end()));
    }
  }
  CHECK(failures > 5);
}

TEST_CASE("the order of threads does not show in what a decoder gives", "[cuda]") {
  models::Llama const plain = random_model(of_blocks());
  for (Encoding const e : {Encoding(Quant::q8_0), Encoding(DType::bf16)}) {
    models::Llama const there =
        to(cuda(), e == Encoding(DType::bf16) ? plain : models::quantized(plain, Quant::q6_k));
    std::vector<float> first;
    for (auto const turns :
         {cuda_fake::Turns::forward, cuda_fake::Turns::backward, cuda_fake::Turns::shuffled}) {
      InTurns const order(turns);
      models::KvCache cache = there.cache(80, {}, e);
      models::Decoder decode(there, 80);
      decode(some_tokens(25, 131), cache);
      decode(some_tokens(3, 131), cache);
      std::span<float const> const got = decode(9, cache);
      if (first.empty()) first.assign(got.begin(), got.end());
      CHECK(std::memcmp(first.data(), got.data(), first.size() * 4) == 0);
    }
  }
}

TEST_CASE("a text so far, written from a device and read to another place", "[cuda]") {
  models::Llama const m = random_model(small()), there = to(cuda(), m);
  auto const path = std::filesystem::temp_directory_path() / "dfdx_device.session";
  models::Context context(there, 64);
  context.add(some_tokens(20, 131));
  models::save_session(path, there, context);
  models::Context here = models::load_session(path, m), again = models::load_session(path, there);
  std::filesystem::remove(path);
  CHECK(again.cache().device() == cuda());
  std::span<float const> const want = here.step(7), got = again.step(7);
  for (std::size_t i = 0; i < want.size(); ++i) CHECK(std::abs(want[i] - got[i]) < 1e-4f);
}

TEST_CASE("a text that begins as another one takes it over on the device", "[cuda]") {
  models::Llama const there = to(cuda(), random_model(of_blocks()));
  for (Encoding const e : {Encoding(DType::f32), Encoding(DType::f16), Encoding(Quant::q8_0)}) {
    Tokens const text = some_tokens(21, 131);
    models::Context one(there, 40, e), other(there, 60, e);
    one.add(std::span(text).first(20));
    int const waits = machine().waits;
    other.begin_as(one, 20);
    CHECK(machine().waits == waits);  // nothing came by way of the host
    std::span<float const> const want = one.step(text[20]), got = other.step(text[20]);
    CHECK(std::equal(want.begin(), want.end(), got.begin(), got.end()));
  }
}

TEST_CASE("what a decoder on a device refuses", "[cuda]") {
  auto const error_of = [](auto const& f) -> std::string {
    try {
      f();
    } catch (error const& e) {
      return e.what();
    }
    return "nothing";
  };
  models::Llama const m = random_model(small()), there = to(cuda(), m);
  models::KvCache cache = m.cache(8), good = there.cache(8), halves = there.cache(8, {}, DType::f16);
  models::Decoder decode(there, 8);
  CHECK(error_of([&] { decode(1, cache); }) == "decoder: the cache lies on cpu, the model on cuda:0");
  CHECK(error_of([&] { decode(131, good); }) == "llama: token 131, there are 131");
  std::vector<models::KvCache*> const both{&good, &halves};
  CHECK(error_of([&] { decode(Tokens{1, 2}, both); }) == "decoder: caches of several encodings in one step");
  models::Llama mixed = there;
  mixed.model.layers[1].self_attn.q_proj.weight = *m.model.layers[1].self_attn.q_proj.weight;
  CHECK(error_of([&] { models::Decoder(mixed, 8); }) == "decoder: the model's numbers lie on cuda:0 and cpu");
  models::LlamaConfig wide = small();
  wide.head_size = 258;
  models::Llama const too_wide = to(cuda(), random_model(wide));
  CHECK(error_of([&] { models::Decoder(too_wide, 8); }) ==
        "decoder: heads of 258 on cuda:0, at most 256 are supported");
  wide.head_size = 256, wide.heads = wide.kv_heads = 64, wide.width = wide.hidden = 32, wide.layers = 1;
  models::Llama const of_many = to(cuda(), random_model(wide));
  models::KvCache short_one = of_many.cache(8);
  models::Decoder many(of_many, 8);
  CHECK(error_of([&] { many(some_tokens(43691, 131), short_one); }) ==
        "decoder: 43691 tokens at once on cuda:0, at most 43690 are supported");
  // A number that no block of a cache holds; then the cache is as before.
  models::Llama loud = random_model(of_blocks());
  Array const norm = *loud.model.layers[0].self_attn.v_proj.weight;
  loud.model.layers[0].self_attn.v_proj.weight = norm * 1e6;
  models::Llama const loud_there = to(cuda(), loud);
  models::KvCache blocks = loud_there.cache(8, {}, Quant::q8_0);
  models::Decoder of_loud(loud_there, 8);
  CHECK(error_of([&] { of_loud(1, blocks); }) == "llama: a number too large for a cache of Q8_0, or none");
  CHECK(blocks.length == 0);
  auto const before = cuda_fake::machine().total_bytes;
  cuda_fake::machine().total_bytes = cuda_fake::machine().used_bytes + 512;
  CHECK(error_of([&] { to(cuda(), m); }).find("out of memory on cuda:0") != std::string::npos);
  cuda_fake::machine().total_bytes = before;
}

}  // namespace tests::cuda_emulated_decoder
