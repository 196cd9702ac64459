// SPDX-License-Identifier: BSL-1.0
// Llama and its kin against results of Hugging Face's transformers: logits, hidden states, gradients, greedy texts.
#include "support.hpp"

#include <dfdx/models/generate.hpp>
#include <dfdx/models/llama_load.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <map>
#include <set>

using namespace dfdx;
using namespace tests;
namespace fs = std::filesystem;

namespace {

using Tokens = std::vector<std::int32_t>;

fs::path shared(char const* below) {
  fs::path const p = fs::path(DFDX_SHARED_DIR) / below;
  if (std::string(DFDX_SHARED_DIR).empty() || !fs::exists(p)) SKIP("no " << p);
  return p;
}

double largest_difference(Array const& a, Array const& b) {
  REQUIRE(a.shape() == b.shape());
  return max(abs(a.to(DType::f64) - b.to(DType::f64))).item<double>();
}

Tokens tokens_of(Array const& a) {
  Array const row = a.to(DType::i32).contiguous();
  return Tokens(row.data<std::int32_t>(), row.data<std::int32_t>() + row.shape().numel());
}

Tokens greedy(models::Llama const& m, Tokens const& prompt, index_t n, models::GenerateOptions o = {}) {
  o.tokens = n;
  o.stop = m.config.eos;
  return models::generate(m, prompt, models::Sampler({.temperature = 0}), o);
}

// The mean of -log p of the next token, as transformers computes it for labels that are the input.
Array loss_of(Array const& logits, Array const& tokens) {
  index_t const n = tokens.shape()[1];
  Array const next = reshape(slice(tokens, 1, 1, n), {-1});
  return cross_entropy(flatten(slice(logits, 1, 0, n - 1), 0, 1), next);
}

bool is_llama(fs::path const& folder) {
  static std::set<std::string> const types = {"llama", "mistral", "qwen2", "qwen3"};
  Weights const w = open_weights(folder);
  return types.contains(w.metadata.text("config.model_type"));
}

// In their models of f64 too, transformers compute norms and the angles of rotary embeddings in f32. What is exact in
// f64 differs from theirs by what f32 rounds: the same by this library as by NumPy.
constexpr double rounded = 5e-6, rounded_gradient = 5e-7;

void check_against(fs::path const& folder) {
  INFO(folder);
  Weights const refs = read_safetensors(folder / "refs.safetensors");
  Array const ids = refs.array("input_ids");
  CHECK(largest_difference(models::load_llama(folder)(ids), refs.array("logits_f64")) < 1e-5);

  models::Llama m = models::load_llama(folder, DType::f64);
  std::vector<Array> states;
  Array const last = m.hidden(ids, nullptr, [&](index_t, Array const& h) { states.push_back(h); });
  states.push_back(last);
  for (std::size_t i = 0; i < states.size(); ++i)
    CHECK(largest_difference(states[i], refs.array("hidden_f64/" + std::to_string(i))) < rounded);
  visit(m, [](Array& leaf) { leaf.requires_grad(true); });
  Array const logits = m(ids);
  CHECK(largest_difference(logits, refs.array("logits_f64")) < rounded);
  Array const loss = loss_of(logits, ids);
  CHECK(std::abs(loss.item<double>() - refs.array("loss_f64").item<double>()) < rounded_gradient);
  loss.backward();
  int compared = 0;
  visit_named(m, [&](std::string const& name, Array const& leaf) {
    INFO(name);
    Weight const* const expected = refs.find("grads_f64/" + name);
    REQUIRE(expected != nullptr);
    CHECK(largest_difference(leaf.grad(), expected->array()) < rounded_gradient);
    ++compared;
  });
  CHECK(compared >= 3);

  // The first sequence, or a prefix of it, and what greedy decoding makes of it.
  Tokens const text = tokens_of(refs.array("greedy"));
  std::size_t prompt = 0;
  Tokens const first = tokens_of(ids);
  while (prompt < text.size() && prompt < first.size() && text[prompt] == first[prompt]) ++prompt;
  REQUIRE(prompt > 0);
  Tokens const start(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(prompt));
  visit(m, [](Array& leaf) { leaf.requires_grad(false); });
  CHECK(greedy(m, start, static_cast<index_t>(text.size() - prompt)) ==
        Tokens(text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end()));
}

}  // namespace

TEST_CASE("tiny models of transformers", "[models]") {
  char const* const given = std::getenv("DFDX_HF_REFS");
  fs::path const all = given != nullptr ? fs::path(given) : shared("refs/hf");
  int models = 0;
  for (auto const& entry : fs::directory_iterator(all)) {
    if (!entry.is_directory() || !fs::exists(entry.path() / "refs.safetensors") || !is_llama(entry.path()))
      continue;
    check_against(entry.path());
    ++models;
  }
  CHECK(models > 0);
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
  for (File const& f : {File{"hf", 2e-5, 1e-6},
                        {"stories260K.bin", 2e-5, 1e-6},
                        {"stories260K_v1.bin", 2e-5, 1e-6},
                        {"stories260K-f32.gguf", 2e-5, 1e-6},
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
    std::ifstream in(hf / "config.json");
    std::string text((std::istreambuf_iterator<char>(in)), {});
    REQUIRE(text.find(from) != text.npos);
    folder.write("config.json", text.replace(text.find(from), from.size(), to));
    fs::copy_file(hf / "model.safetensors", folder / "model.safetensors",
                  fs::copy_options::overwrite_existing);
    return error_of([&] { models::load_llama(folder / ""); });
  };
  auto const has = [](std::string const& text, std::string const& part) {
    INFO(text);
    return text.find(part) != text.npos;
  };
  CHECK(has(config("\"num_hidden_layers\": 5", "\"num_hidden_layers\": 4"), "is not in the model"));
  std::string const more = config("\"num_hidden_layers\": 5", "\"num_hidden_layers\": 6");
  CHECK(has(more, "blk.5.attn_norm.weight is missing; blk.5.attn_q.weight is missing"));
  CHECK(
      has(config("\"intermediate_size\": 172", "\"intermediate_size\": 171"), "shape [172, 64] in the file"));
  CHECK(has(config("\"num_key_value_heads\": 4", "\"num_key_value_heads\": 3"), "8 heads do not share 3"));
  CHECK(has(config("\"model_type\": \"llama\"", "\"model_type\": \"gemma\""), "models of type gemma"));
  CHECK(has(config("\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\""), "an activation other than silu"));
  CHECK(has(config("\"rope_theta\": 10000.0", "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0}"),
            "rotary embeddings of type yarn are not supported"));
  CHECK(config("\"hidden_size\": 64", "\"hidden_size\": -64") == "llama: width: -64");
  CHECK(has(error_of([&] { models::load_llama(hf / "model.safetensors"); }),
            "it does not say what model this is"));
  models::Llama const m = models::load_llama(hf);
  CHECK(has(error_of([&] { m(full(make_shape(3), 512).to(DType::i32)); }), "512"));
}
