// SPDX-License-Identifier: BSL-1.0
// Llama and its kin against results of Hugging Face's transformers: logits, hidden states, gradients, greedy texts.
#include "hf.hpp"

#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/llama_save.hpp>

namespace tests::models_llama {

using namespace tests;

TEST_CASE("tiny models of transformers", "[models]") {
  // In their models of f64 too, transformers compute norms and the tables of rotary embeddings in f32, so that their
  // results are as far from exact ones as that rounds. llama_references.cpp rounds the same and agrees to 1e-13;
  // llama_kinds.cpp compares what is exact within 1e-10.
  for_models_of_types({"llama", "mistral", "qwen2", "qwen3"}, [](fs::path const& folder) {
    check_language_model(folder, [&](DType d) { return models::load_llama(folder, d); }, {5e-6, 5e-7});
  });
}

TEST_CASE("every folder of references is of a model that is known", "[models]") {
  for (fs::path const& folder : folders_of_references()) {
    INFO(folder);
    std::set<std::string> const known = {"llama", "mistral", "qwen2",          "qwen3",
                                         "gpt2",  "clip",    "clip_text_model"};
    CHECK(known.contains(type_of_model(folder)));
  }
}

TEST_CASE("a trained model in every format says the same", "[models]") {
  fs::path const folder = shared("data/llama");
  Weights const golden = read_safetensors(folder / "hf/golden_forward.safetensors");
  Array const tokens = golden.array("tokens");
  Array const expected = golden.array("logits_f64");
  struct File {
    char const* name;
    double within, loss_within;
  };
  for (File const& f : {File{"hf", 3e-5, 1e-6},
                        {"stories260K.bin", 3e-5, 1e-6},
                        {"stories260K_v1.bin", 3e-5, 1e-6},
                        {"stories260K-f32.gguf", 3e-5, 1e-6},
                        {"stories260K-q8_0.gguf", 0.5, 0.01},
                        {"stories260K-q8.bin", 0.5, 0.01},
                        {"stories260K-q4_0.gguf", 10, 0.2}}) {
    INFO(f.name);
    models::Llama const m = models::load_llama(folder / f.name);
    CHECK(largest_difference(m(tokens), expected) < f.within);
    models::Score const s = models::score(m, tokens_of(tokens));
    CHECK(s.tokens == 255);
    CHECK(std::abs(s.loss - 0.4557876439064463) < f.loss_within);
  }
}

TEST_CASE("a trained model in 16 bits says nearly the same", "[models]") {
  fs::path const hf = shared("data/llama/hf");
  Weights const golden = read_safetensors(hf / "golden_forward.safetensors");
  Array const tokens = golden.array("tokens"), expected = golden.array("logits_f64");
  TemporaryFolder const folder;
  models::save_llama(folder / "m", models::load_llama(hf, DType::bf16));
  CHECK(open_weights(folder / "m").begin()->format == "BF16");
  // The weights have 8 bits: read as f32, left in the file, and with all of the sums rounded to 8 bits as well.
  models::Llama const wide = models::load_llama(folder / "m"),
                      stored = models::load_llama(folder / "m", {.as_stored = true}),
                      narrow = models::load_llama(folder / "m", DType::bf16);
  CHECK(largest_difference(wide(tokens), expected) < 0.5);
  CHECK(largest_difference(stored(tokens), wide(tokens)) < 1e-4);
  Array const rough = narrow(tokens);
  CHECK(rough.dtype() == DType::bf16);
  CHECK(largest_difference(rough, expected) < 2);
  Tokens const text = tokens_of(tokens);
  for (models::Llama const* m : {&wide, &stored, &narrow}) {
    models::Score const s = models::score(*m, text);
    CHECK(std::abs(s.loss - 0.4557876439064463) < 0.02);
    std::ptrdiff_t const n = m == &narrow ? 10 : 30;
    CHECK(greedy(*m, {1}, n) == Tokens(text.begin() + 1, text.begin() + 1 + n));
  }
}

TEST_CASE("a cache changes nothing", "[models]") {
  fs::path const folder = shared("data/llama/hf");
  Weights const golden = read_safetensors(folder / "golden_forward.safetensors");
  Tokens const text = tokens_of(golden.array("tokens"));
  models::Llama const m = models::load_llama(folder);
  Array const whole = m(golden.array("tokens"));
  models::KvCache cache = m.cache(64);
  for (index_t at = 0; at < 60;) {  // 1, 2, 3, ... tokens at a time
    index_t const n = std::min<index_t>(at / 5 + 1, 60 - at);
    Array const some = m(slice(golden.array("tokens"), 0, at, at + n), cache);
    CHECK(largest_difference(some, slice(whole, 0, at, at + n)) < 1e-4);
    at += n;
  }
  CHECK(cache.length == 60);
  CHECK(error_of([&] { m(slice(golden.array("tokens"), 0, 0, 5), cache); }) ==
        "llama: 65 positions, there is room for 64");
  // Two sequences side by side.
  Array const both =
      stack({slice(golden.array("tokens"), 0, 0, 20), slice(golden.array("tokens"), 0, 20, 40)});
  models::KvCache two = m.cache(32, 2);
  Array const first = m(slice(both, 1, 0, 15), two), rest = m(slice(both, 1, 15), two);
  CHECK(largest_difference(concat({first, rest}, 1), m(both)) < 1e-4);

  // The text that it was trained to tell, also in small blocks of the prompt.
  CHECK(greedy(m, {1}, 200) == Tokens(text.begin() + 1, text.begin() + 201));
  Tokens const start(text.begin(), text.begin() + 50);
  CHECK(greedy(m, start, 50, {.block = 7}) == Tokens(text.begin() + 50, text.begin() + 100));
}

TEST_CASE("a text that outgrows its room goes on", "[models]") {
  models::Llama const m = models::load_llama(shared("data/llama/hf"));
  Tokens const long_text = greedy(m, {1}, 60, {.capacity = 32});
  CHECK(long_text.size() == 60);
  CHECK(error_of([&] { greedy(m, Tokens(40, 5), 1, {.capacity = 32}); }) ==
        "generate: a prompt of 40 tokens, there is room for 32");
  CHECK(error_of([&] { greedy(m, {}, 1); }) == "generate: the prompt is empty");
}

TEST_CASE("a window of attention sees no further", "[models]") {
  models::Llama m = models::load_llama(shared("data/llama/hf"));
  m.config.window = 4;
  Array const tokens = arange(1, 13);
  // With one layer, the last position of a text sees what it sees of the last four tokens alone, at their positions.
  m.model.layers.resize(1);
  Array const whole = m(tokens);
  Array changed = tokens.clone();
  slice(changed, 0, 0, 8).copy_(arange(100, 108));
  CHECK(largest_difference(slice(whole, 0, 11), slice(m(changed), 0, 11)) == 0);
  CHECK(largest_difference(slice(whole, 0, 10), slice(m(changed), 0, 10)) > 0);
  models::KvCache cache = m.cache(16);
  Array const a = m(slice(tokens, 0, 0, 9), cache), b = m(slice(tokens, 0, 9), cache);
  CHECK(largest_difference(concat({a, b}, 0), whole) < 1e-4);
}

TEST_CASE("files that do not fit a model are refused", "[models]") {
  fs::path const hf = shared("data/llama/hf");
  TemporaryFolder const folder;
  auto const config = [&](std::string const& from, std::string const& to) {
    copy_changed(hf, folder / "", from, to);
    return error_of([&] { models::load_llama(folder / ""); });
  };
  CHECK(has(config("\"num_hidden_layers\": 5", "\"num_hidden_layers\": 4"), "is not in the model"));
  std::string const more = config("\"num_hidden_layers\": 5", "\"num_hidden_layers\": 6");
  CHECK(has(more, "blk.5.attn_norm.weight is missing; blk.5.attn_q.weight is missing"));
  CHECK(
      has(config("\"intermediate_size\": 172", "\"intermediate_size\": 171"), "shape [172, 64] in the file"));
  CHECK(has(config("\"num_key_value_heads\": 4", "\"num_key_value_heads\": 3"), "8 heads do not share 3"));
  CHECK(has(config("\"model_type\": \"llama\"", "\"model_type\": \"gemma\""), "models of type gemma"));
  CHECK(has(config("\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\""), "an activation other than silu"));
  CHECK(
      has(config("\"rope_theta\": 10000.0", "\"rope_scaling\": {\"rope_type\": \"spiral\", \"factor\": 4.0}"),
          "rotary embeddings of type spiral are not supported"));
  CHECK(config("\"hidden_size\": 64", "\"hidden_size\": -64") == "llama: width: -64");
  CHECK(
      has(config("\"num_hidden_layers\": 5", "\"num_hidden_layers\": 1000000000"), "1000000000 layers, and"));
  CHECK(has(config("\"eos_token_id\": 2", "\"eos_token_id\": 5000000000"), "5000000000 is no token"));
  CHECK(has(config("\"model_type\": \"llama\"",
                   "\"model_type\": \"mistral\", \"sliding_window\": 4, "
                   "\"layer_types\": [\"full_attention\", \"sliding_attention\"]"),
            "it says of 2 layers whether they have a window, and has 5"));
  CHECK(has(config("\"model_type\": \"llama\"",
                   "\"model_type\": \"mistral\", \"sliding_window\": 4, "
                   "\"layer_types\": [\"chunked_attention\"]"),
            "layers of type chunked_attention are not supported"));
  CHECK(has(error_of([&] { models::load_llama(hf / "model.safetensors"); }),
            "it does not say what model this is"));
  CHECK(has(config("\"hidden_size\": 64", "\"hidden_sizes\": 64"), "there is no config.hidden_size"));
  models::Llama const m = models::load_llama(hf);
  CHECK(has(error_of([&] { m(full(make_shape(3), 512).to(DType::i32)); }), "512"));
}

TEST_CASE("a saved model is read back", "[models]") {
  TemporaryFolder const folder;
  Array const tokens = arange(1, 13);
  for (char const* name :
       {"refs/hf/llama-tiny", "refs/hf/llama3-rope-tiny", "data/llama/stories260K-q8_0.gguf"})
    for (DType dtype : {DType::f32, DType::bf16}) {
      models::Llama const m = models::load_llama(shared(name), dtype);
      models::save_llama(folder / "m", m);
      models::Llama const again = models::load_llama(folder / "m", dtype);
      CHECK(array_equal(again(tokens), m(tokens)));
      CHECK((again.config.eos == m.config.eos && again.config.bos == m.config.bos));
      CHECK((again.config.context == m.config.context && again.config.norm_eps == m.config.norm_eps));
    }

  models::Llama m = models::load_llama(shared("refs/hf/llama-tiny"));
  models::add_lora(m, {}, Key{1});
  m.model.layers[0].self_attn.q_proj.lora_B->weight += 0.01;
  CHECK(error_of([&] { models::save_llama(folder / "m", m); }) ==
        "llama: the model has factors that are not in its matrices: merge_lora or drop_lora first");
  models::merge_lora(m);
  models::save_llama(folder / "m", m);
  CHECK(array_equal(models::load_llama(folder / "m")(tokens), m(tokens)));
  models::drop_lora(m);
  m.config.normalized_heads = true;
  CHECK(error_of([&] { models::save_llama(folder / "m", m); }) ==
        "llama: a config.json of llama has no word for norms of heads");
}

}  // namespace tests::models_llama
