// SPDX-License-Identifier: BSL-1.0
// Products and attention of decoders on a device: matrices and caches of every kind, few rows and many, against the
// decoder on the CPU.
#include "cuda_emulated/decoder.hpp"

#include <dfdx/models/lora.hpp>

#include "worse.hpp"

namespace tests::cuda_emulated_decoder_products {

using namespace emulated_decoders;

namespace {

// With matrices of numbers of that type.
models::Llama in(DType d, models::Llama m) {
  visit(m, [&](Array& leaf) {
    if (leaf.ndim() == 2) leaf = leaf.to(d);
  });
  return m;
}

}  // namespace

TEST_CASE("matrices of 16 bits on a device", "[cuda]") {
  for (DType d : {DType::bf16, DType::f16}) {
    INFO(name_of(d));
    models::Llama m = in(d, random_model(small()));
    CHECK(difference(m, 0, 6) < 1e-5);
    CHECK(difference(m, 70, 2) < 5e-5);  // of two numbers of 16 bits each
    models::LlamaConfig c = small();
    c.width = 60;  // rows that no words of 16 bytes are
    m = in(d, random_model(c));
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
      models::Llama const m = in(d, random_model(c));
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
    // Rows are rounded once to the matrix's type: 2^-9 or 2^-12 of each number, of which some of the sum is left.
    double const bound = d == DType::f32 ? 1e-5 : d == DType::bf16 ? 2e-2 : 2e-3;
    models::LlamaConfig c = small();
    c.attention_bias = c.output_bias = c.mlp_bias = true;
    models::Llama m = in(d, random_model(c));
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
    // Numbers that f16 does not hold: all of it is divided, and the sums are multiplied.
    models::Llama loud = in(d, random_model(small()));
    for (auto& layer : loud.model.layers) {
      auto& norm = layer.post_attention_layernorm.weight;
      norm = norm * 1e5;
    }
    CHECK(difference(loud, 19, 0) < bound);
    cuda_options.cublas_from = before;
  }
}

TEST_CASE("prompts that cuBLASLt refuses", "[cuda]") {
  auto const before = cuda_options.cublas_from;
  auto& products = cuda_fake::products;
  cuda_options.cublas_from = 0;
  for (DType d : {DType::f32, DType::bf16, DType::f16}) {
    INFO(name_of(d));
    models::LlamaConfig c = one_layer(small());
    c.attention_bias = true;
    // Those with a bias, or all: they go to the kernels of dfdx. (What was chosen is remembered: another number of
    // tokens asks again.)
    models::Llama const m = in(d, random_model(c));
    int const all = products.products;
    products.refuse_bias = true;
    CHECK(difference(m, 22, 0) < (d == DType::f32 ? 1e-5 : 2e-2));
    CHECK(products.products == all + 5);
    products.refuse_bias = false, products.refuse = true;
    CHECK(difference(m, 21, 0) < (d == DType::f32 ? 1e-5 : 5e-5));
    CHECK(products.products == all + 5);
    products.refuse = false;
  }
  cuda_options.cublas_from = before;
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

}  // namespace tests::cuda_emulated_decoder_products
