// SPDX-License-Identifier: BSL-1.0
// GPT-2 against results of Hugging Face's transformers: logits, hidden states, gradients, greedy texts.
#include "hf.hpp"

#include <dfdx/io/gguf_write.hpp>
#include <dfdx/models/gpt2.hpp>

namespace tests::models_gpt2 {

using namespace tests;

namespace {

fs::path tiny() { return shared("refs/hf/gpt2-tiny"); }
Array some_tokens() { return read_safetensors(tiny() / "refs.safetensors").array("input_ids"); }

}  // namespace

TEST_CASE("tiny models of the GPT-2 family of transformers", "[models]") {
  for_models_of_types({"gpt2"}, [](fs::path const& folder) {
    check_language_model(folder, [&](DType d) { return models::load_gpt2(folder, d); }, {1e-10, 1e-10});
  });
}

TEST_CASE("a cache changes nothing of GPT-2", "[models]") {
  models::Gpt2 const m = models::load_gpt2(tiny());
  Array const tokens = some_tokens(), whole = m(tokens);
  models::KvCache cache = m.cache(16, 2);
  Array const a = m(slice(tokens, 1, 0, 9), cache), b = m(slice(tokens, 1, 9, 10), cache);
  Array const c = m(slice(tokens, 1, 10, 16), cache);
  CHECK(largest_difference(concat({a, b, c}, 1), slice(whole, 1, 0, 16)) < 1e-5);
  CHECK(cache.length == 16);
  CHECK(error_of([&] { m(slice(tokens, 1, 16), cache); }) == "gpt2: 17 positions, there is room for 16");
  models::KvCache large = m.cache(300);
  CHECK(error_of([&] { m(zeros(make_shape(129)).to(DType::i32), large); }) ==
        "gpt2: 129 positions, there is room for 128");

  // Texts and scores by the same functions as of other models.
  Tokens const text = tokens_of(slice(tokens, 0, 0, 1));
  CHECK(greedy(m, text, 40, {.block = 5}) == greedy(m, text, 40));
  CHECK(greedy(m, text, 150).size() == 150);  // beyond its positions
  CHECK(std::abs(models::score(m, text).loss -
                 loss_of(slice(whole, 0, 0, 1), slice(tokens, 0, 0, 1)).item()) < 1e-5);
}

TEST_CASE("a decoder gives what GPT-2 gives", "[models]") {
  models::Gpt2 m = models::load_gpt2(tiny());
  Tokens const text = tokens_of(slice(some_tokens(), 0, 0, 1));
  for (models::Activation f :
       {models::Activation::gelu, models::Activation::gelu_tanh, models::Activation::quick_gelu,
        models::Activation::relu, models::Activation::silu}) {
    m.config.activation = f;
    m.config.scaled_by_layer = f == models::Activation::relu, m.config.scaled = f != models::Activation::silu;
    models::KvCache cache = m.cache(64), other = m.cache(64);
    models::Decoder decode(m, 64);
    std::span<float const> const rows = decode.rows(text, cache);
    Array const got =
        Array::borrow(const_cast<float*>(rows.data()),
                      Meta{DType::f32, make_shape(static_cast<index_t>(text.size()), m.config.vocabulary)});
    CHECK(largest_difference(got, m(models::detail::token_row(text))) < 1e-4);
    CHECK(error_of([&] { decode(Tokens(65), other); }) == "gpt2: 65 positions, there is room for 64");
  }
}

TEST_CASE("files of GPT-2 with other names, and with what is not needed", "[models]") {
  Weights const files = open_weights(tiny());
  Array const tokens = some_tokens(), whole = models::load_gpt2(files)(tokens);
  Weights bare = files.renamed([](Weight const& w) { return w.name.substr(w.name.find('.') + 1); });
  bare.add("h.0.attn.bias", ones(make_shape(1, 1, 128, 128)));
  bare.add("lm_head.weight", files.array("transformer.wte.weight"));
  CHECK(array_equal(models::load_gpt2(bare)(tokens), whole));

  // A head of its own is one.
  TemporaryFolder const folder;
  copy_changed(tiny(), folder / "", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  CHECK(has(error_of([&] { models::load_gpt2(folder / ""); }), "lm_head.weight is missing"));
  Weights untied = open_weights(folder / "");
  untied.add("lm_head.weight", files.array("transformer.wte.weight") * 2.0);
  CHECK(largest_difference(models::load_gpt2(untied)(tokens), whole * 2.0) < 1e-5);
}

TEST_CASE("GPT-2 from GGUF", "[models]") {
  Weights const files = open_weights(tiny());
  Array const tokens = some_tokens(), whole = models::load_gpt2(files)(tokens);
  // As llama.cpp's converter writes it: other names, matrices the other way.
  Weights w;
  w.metadata.set("general.architecture", std::string("gpt2"));
  for (auto const& [key, n] : {std::pair("context_length", 128u),
                               {"embedding_length", 64u},
                               {"feed_forward_length", 256u},
                               {"block_count", 2u},
                               {"attention.head_count", 4u}})
    w.metadata.set(std::string("gpt2.") + key, std::uint32_t{n});
  w.metadata.set("gpt2.attention.layer_norm_epsilon", 1e-5f);
  w.metadata.set("tokenizer.ggml.eos_token_id", std::uint32_t{500});
  auto const add = [&](std::string const& to, std::string const& from, bool turned = false) {
    for (char const* end : {".weight", ".bias"})
      if (files.find("transformer." + from + end) != nullptr) {
        Array const x = files.array("transformer." + from + end);
        w.add(to + end, turned && x.ndim() == 2 ? swapaxes(x, 0, 1).contiguous() : x);
      }
  };
  add("token_embd", "wte"), add("position_embd", "wpe"), add("output_norm", "ln_f");
  for (char const* i : {"0", "1"}) {
    std::string const to = std::string("blk.") + i + ".", from = std::string("h.") + i + ".";
    add(to + "attn_norm", from + "ln_1"), add(to + "attn_qkv", from + "attn.c_attn", true);
    add(to + "attn_output", from + "attn.c_proj", true), add(to + "ffn_norm", from + "ln_2");
    add(to + "ffn_up", from + "mlp.c_fc", true), add(to + "ffn_down", from + "mlp.c_proj", true);
  }
  TemporaryFolder const folder;
  save_gguf(folder / "m.gguf", w);
  models::Gpt2 const m = models::load_gpt2(folder / "m.gguf");
  CHECK(array_equal(m(tokens), whole));
  CHECK(m.config.eos == Tokens{500});
  save_gguf(folder / "q.gguf", w, [](Weight const& x) -> Encoding {
    return x.shape.size() == 2 ? Encoding(Quant::q8_0) : Encoding(*x.dtype);
  });
  CHECK(largest_difference(models::load_gpt2(folder / "q.gguf")(tokens), whole) < 0.5);
  // A head of its own counts.
  w.add("output.weight", files.array("transformer.wte.weight") * 2.0);
  save_gguf(folder / "h.gguf", w);
  CHECK(largest_difference(models::load_gpt2(folder / "h.gguf")(tokens), whole * 2.0) < 1e-5);

  w.metadata.set("gpt2.block_count", std::uint32_t{3});
  CHECK(has(error_of([&] { models::load_gpt2(w); }), "transformer.h.2.ln_1.weight is missing"));
  w.metadata.set("gpt2.block_count", std::uint32_t{1000000000});
  CHECK(has(error_of([&] { models::load_gpt2(w); }), "1000000000 layers, and 29 tensors"));
  w.metadata.set("general.architecture", std::string("bloom"));
  CHECK(has(error_of([&] { models::load_gpt2(w); }), "models of type bloom are not supported"));
}

TEST_CASE("files that do not fit GPT-2 are refused", "[models]") {
  fs::path const files = tiny();
  TemporaryFolder const folder;
  auto const config = [&](std::string const& from, std::string const& to) {
    copy_changed(files, folder / "", from, to);
    return error_of([&] { models::load_gpt2(folder / ""); });
  };
  CHECK(has(config("\"n_layer\": 2", "\"n_layer\": 3"),
            "transformer.h.2.ln_1.weight is missing; transformer.h.2.ln_1.bias is missing"));
  CHECK(has(config("\"n_layer\": 2", "\"n_layer\": 1"), "transformer.h.1.ln_1.weight is not in the model"));
  CHECK(
      has(config("\"n_positions\": 128", "\"n_positions\": 127"), "shape [128, 64] in the file, [127, 64]"));
  for (char const* n : {"0", "8222222222222222222"})  // four times as many are hidden, if it says nothing
    CHECK(config("\"n_embd\": 64", std::string("\"n_embd\": ") + n) == std::string("gpt2: width: ") + n);
  CHECK(config("\"n_head\": 4", "\"n_head\": 5") == "gpt2: a width of 64 is not divided by 5 heads");
  CHECK(config("\"n_head\": 4", "\"n_head\": 0") == "gpt2: heads: 0");
  CHECK(has(config("\"model_type\": \"gpt2\"", "\"model_type\": \"opt\""),
            "models of type opt are not supported"));
  CHECK(has(config("\"gelu_new\"", "\"tanhshrink\""), "an activation tanhshrink, which is not supported"));
  CHECK(has(config("\"add_cross_attention\": false", "\"add_cross_attention\": true"), "another text"));
  CHECK(has(config("\"n_embd\": 64", "\"n_embed\": 64"), "there is no config.n_embd"));
  CHECK(has(error_of([&] { models::load_gpt2(tiny() / "model.safetensors"); }),
            "it does not say what model this is"));
}

}  // namespace tests::models_gpt2
