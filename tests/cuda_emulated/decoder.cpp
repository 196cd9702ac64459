// SPDX-License-Identifier: BSL-1.0
// Decoders of models that lie on a device: every kind of model, matrix and cache against the same on the CPU.
#include "cuda_emulated/emulated.hpp"

#include <dfdx/cuda_models.hpp>
#include <dfdx/models/any_model.hpp>
#include <dfdx/models/batch.hpp>
#include <dfdx/models/gpt2.hpp>
#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/lora.hpp>
#include <dfdx/models/session.hpp>

#include <filesystem>

#include "worse.hpp"

namespace tests::cuda_emulated_decoder {

using namespace emulated;

namespace {

using Tokens = std::vector<std::int32_t>;

models::LlamaConfig small() {
  models::LlamaConfig c;
  c.vocabulary = 131, c.width = 64, c.hidden = 96, c.layers = 2, c.heads = 4, c.kv_heads = 2,
  c.head_size = 16;
  c.context = 512, c.tied = true;
  return c;
}
// Sizes of which rows are whole blocks of every format.
models::LlamaConfig of_blocks() {
  models::LlamaConfig c = small();
  c.width = 256, c.hidden = 512, c.head_size = 64;
  return c;
}
models::LlamaConfig one_layer(models::LlamaConfig c) {
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
models::Llama random_model(models::LlamaConfig const& c) {
  c.check();
  return with_random_numbers(models::detail::outline_of(c));
}

Tokens some_tokens(index_t n, index_t vocabulary) {
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

}  // namespace

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

TEST_CASE("matrices of 16 bits on a device", "[cuda]") {
  for (DType d : {DType::bf16, DType::f16}) {
    INFO(name_of(d));
    models::Llama m = random_model(small());
    visit(m, [&](Array& leaf) {
      if (leaf.ndim() == 2) leaf = leaf.to(d);
    });
    CHECK(difference(m, 0, 6) < 1e-5);
    CHECK(difference(m, 70, 2) < 5e-5);  // of two numbers of 16 bits each
    models::LlamaConfig c = small();
    c.width = 60;  // rows that no words of 16 bytes are
    m = random_model(c);
    visit(m, [&](Array& leaf) {
      if (leaf.ndim() == 2) leaf = leaf.to(d);
    });
    CHECK(difference(m, 18, 2) < 5e-5);
  }
}

TEST_CASE("a token by itself, in rows of every length", "[cuda]") {
  models::LlamaConfig c = one_layer(small());
  for (DType d : {DType::f32, DType::bf16}) {
    // Several steps of a warp, more rows than there are warps, and rows that are too long.
    for (index_t hidden : {88, 2600, 8200}) {
      INFO(name_of(d) << ' ' << hidden);
      c.hidden = hidden, c.mlp_bias = hidden == 2600;
      models::Llama m = random_model(c);
      visit(m, [&](Array& leaf) {
        if (leaf.ndim() == 2) leaf = leaf.to(d);
      });
      int const launches = machine().launches;
      CHECK(difference(m, 0, 2) < 1e-5);
      // Norms and activations are no kernels of their own.
      CHECK(machine().launches == launches + 2 * 7);
    }
  }
}

TEST_CASE("tokens by kernels that begin early", "[cuda]") {
  models::Llama const m = random_model(of_blocks()), there = to(cuda(), m);
  models::KvCache a = there.cache(200), b = there.cache(200);
  models::Decoder decode(there, 200), early(there, 200);
  for (std::int32_t t = 0; t < 40; ++t) {
    std::span<float const> const last = decode(t, a);
    std::vector<float> const want(last.begin(), last.end());
    cuda_options.early = true;
    std::span<float const> const got = early(t, b);
    cuda_options.early = false;
    CHECK(std::equal(want.begin(), want.end(), got.begin(), got.end()));
  }
}

TEST_CASE("prompts by cuBLASLt", "[cuda]") {
  auto const before = cuda_options.cublas_from;
  auto& products = cuda_fake::products;
  for (DType d : {DType::f32, DType::bf16, DType::f16}) {
    INFO(name_of(d));
    auto const narrow = [&](models::Llama m) {
      visit(m, [&](Array& leaf) {
        if (leaf.ndim() == 2) leaf = leaf.to(d);
      });
      return m;
    };
    // Rows are rounded once to the matrix's type: 2^-9 or 2^-12 of each number, of which some of the sum is left.
    double const bound = d == DType::f32 ? 1e-5 : d == DType::bf16 ? 2e-2 : 2e-3;
    models::LlamaConfig c = small();
    c.attention_bias = c.output_bias = c.mlp_bias = true;
    models::Llama m = narrow(random_model(c));
    double const split = difference(m, 20, 0);
    cuda_options.cublas_from = 0;
    int const all = products.products, biases = products.biases, addends = products.addends,
              wide = products.into_f32;
    double const rounded = difference(m, 20, 2);
    CHECK(rounded < bound);
    CHECK((d == DType::f32 || rounded > split));
    // The head and of each of two layers seven matrices, of which two add to what is there; the next tokens are no rows
    // for it.
    CHECK(products.products == all + 15);
    CHECK(products.biases == biases + 14);
    CHECK(products.addends == addends + 4);
    CHECK(products.into_f32 == wide + (d == DType::f32 ? 0 : 15));
    models::add_lora(m, {.rank = 3, .alpha = 6, .targets = {"q_proj", "down_proj"}}, Key{3});
    visit_named(m, [](std::string const& name, Array& leaf) {
      if (name.ends_with("lora_B.weight")) leaf = randn(Extents(leaf.shape()), Key{9}) * 0.2;
    });
    CHECK(difference(m, 20, 0) < bound);
    // What it refuses goes to the kernels of dfdx, all or what has a bias.
    products.refuse_bias = true;
    CHECK(difference(m, 20, 0) < bound);
    products.refuse_bias = false;
    // What was chosen is remembered, so another number of tokens asks again.
    products.refuse = true;
    CHECK(difference(narrow(random_model(c)), 21, 0) < (d == DType::f32 ? 1e-5 : 5e-5));
    products.refuse = false;
    // Numbers that f16 does not hold: all of it is divided, and the sums are multiplied.
    models::Llama loud = narrow(random_model(small()));
    for (auto& layer : loud.model.layers) {
      auto& norm = layer.post_attention_layernorm.weight;
      norm = norm * 1e5;
    }
    CHECK(difference(loud, 19, 0) < bound);
    cuda_options.cublas_from = before;
  }
}

TEST_CASE("matrices that begin where no word does on a device", "[cuda]") {
  models::Llama const m = random_model(small());
  models::Llama there = to(cuda(), m);
  Array& up = *there.model.layers[0].mlp.up_proj.weight;
  Array const dense = to(Device{}, up), flat(Meta{DType::f32, make_shape(dense.size() + 1)});
  std::copy_n(dense.data<float>(), dense.size(), flat.data<float>() + 1);
  up = slice(to(cuda(), flat), 0, 1, dense.size() + 1).view(dense.shape(), dense.strides());
  CHECK(up.device() == cuda());
  CHECK(reinterpret_cast<std::uintptr_t>(up.bytes()) % 16 == 4);
  models::KvCache a = m.cache(30), b = there.cache(30);
  models::Decoder here(m, 30), decode(there, 30);
  for (index_t n : {1, 20}) {
    std::span<float const> const want = here(some_tokens(n, 131), a), got = decode(some_tokens(n, 131), b);
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(std::abs(want[i] - got[i]) < 1e-4f);
  }
}

TEST_CASE("matrices of blocks on a device", "[cuda]") {
  models::Llama const m = random_model(one_layer(of_blocks()));
  for (Quant q : {Quant::q4_0, Quant::q4_1, Quant::q5_0, Quant::q5_1, Quant::q8_0, Quant::q4_k, Quant::q5_k,
                  Quant::q6_k}) {
    INFO(name_of(q));
    models::Llama const r = models::quantized(m, q);
    // A last bit may bring a neighbour of the other factor's integers, which is a step of 1 / 127.
    CHECK(difference(r, 0, 2) < 0.02);
    CHECK(difference(r, 6, 0) < 0.02);
    CHECK(difference(r, 20, 0) < 0.02);
  }
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

TEST_CASE("what is seen of long texts and of caches of every kind", "[cuda]") {
  models::LlamaConfig c = of_blocks();
  c.layers = 1, c.width = 32, c.hidden = 32, c.head_size = 32;
  for (index_t kv_heads : {1, 2, 4}) {
    c.kv_heads = kv_heads;
    models::Llama const m = random_model(c);
    INFO(kv_heads);
    // Positions are divided among blocks where there are few rows, and seen 128 at a time: two or three times here.
    CHECK(difference(m, kv_heads == 2 ? 300 : 140, 3) < 1e-5);
    CHECK(difference(m, 2, 140) < 1e-5);
  }
  c.window = 150;
  CHECK(difference(random_model(c), 200, 3) < 1e-5);
  c.window = 5;
  CHECK(difference(random_model(c), 140, 3) < 1e-5);
  c.window = 0, c.heads = 12, c.kv_heads = 1;  // a group of more heads than a block has
  CHECK(difference(random_model(c), 3, 2) < 1e-5);
  models::Llama const m = random_model(c);
  // Where the two differ in the last bit, 16 bits may round to neighbours.
  CHECK(difference(m, 150, 3, DType::f16) < 1e-3);
  CHECK(difference(m, 150, 3, DType::bf16) < 1e-2);
  CHECK(difference(m, 150, 3, Quant::q8_0) < 1e-2);
}

TEST_CASE("prompts and caches of 16 bits, by tensor cores", "[cuda]") {
  models::LlamaConfig c = small();
  c.layers = 1, c.width = 32, c.hidden = 32;
  // Rounded are queries, weights and, where the last bit differs, what is in the caches.
  auto const check = [&](index_t prompt, index_t before) {
    INFO(c.head_size << ' ' << c.heads << ' ' << c.kv_heads << ' ' << c.window << ' ' << prompt << ' '
                     << before);
    models::Llama const m = random_model(c), there = to(cuda(), m);
    for (DType d : {DType::f16, DType::bf16}) {
      double const bound = d == DType::f16 ? 1e-3 : 1e-2;
      CHECK(difference(m, prompt, 1, d) < bound);
      if (before == 0) continue;
      // A prompt that comes after others, in a cache with room.
      models::KvCache a = m.cache(before + prompt + 7, {}, d), b = there.cache(before + prompt + 7, {}, d);
      models::Decoder here(m, 512), decode(there, 512);
      here(some_tokens(before, 131), a), decode(some_tokens(before, 131), b);
      std::span<float const> const want = here(some_tokens(prompt, 130), a),
                                   got = decode(some_tokens(prompt, 130), b);
      double worst = 0, size = 0;
      for (std::size_t k = 0; k < want.size(); ++k) {
        worst = tests::worse(worst, std::abs(double{got[k]} - double{want[k]}));
        size = std::max(size, std::abs(double{want[k]}));
      }
      CHECK(worst < bound * size);
    }
  };
  check(17, 0), check(70, 100);
  c.window = 5, check(70, 30);
  c.window = 90, check(150, 3);
  c.window = 0, c.head_size = 64, c.heads = 6, check(40, 300);  // long texts are divided among blocks
  c.head_size = 18, check(40, 20);                              // rows that no words of 16 bytes are
  c.head_size = 96, c.heads = c.kv_heads = 2, check(70, 20);
  c.head_size = 200, check(33, 20);
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
