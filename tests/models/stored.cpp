// SPDX-License-Identifier: BSL-1.0
// Models whose matrices stay as their files have them, or are quantized when they are loaded.
#include "models/hf.hpp"

#include <dfdx/models/generate.hpp>
#include <dfdx/models/llama_load.hpp>

#include <fstream>

#include "worse.hpp"

namespace tests::models_stored {

using namespace tests;

namespace {

index_t leaves(models::Llama const& m) {
  index_t n = 0;
  visit(m, [&](Array const&) { ++n; });
  return n;
}

}  // namespace

TEST_CASE("matrices left in a file say what their numbers say", "[models]") {
  fs::path const folder = shared("data/llama");
  Array const tokens = read_safetensors(folder / "hf/golden_forward.safetensors").array("tokens");
  struct File {
    char const* name;
    double within;
  };
  // The other factor is rounded to 8 bits. In the last file rows are not blocks: they are read as floats.
  for (File const& f :
       {File{"stories260K-q8_0.gguf", 0.5}, {"stories260K-q4_0.gguf", 1}, {"stories260K-q8.bin", 1e-5}}) {
    INFO(f.name);
    models::Llama const floats = models::load_llama(folder / f.name);
    models::Llama const m = models::load_llama(folder / f.name, {.as_stored = true});
    CHECK((leaves(m) < leaves(floats)) == (f.within > 0.1));
    CHECK(largest_difference(m(tokens), floats(tokens)) < f.within);
    Tokens const start = {1, 403, 407};
    CHECK(models::generate(m, start, models::Sampler({.temperature = 0}), {.tokens = 20}).size() == 20);
  }
}

TEST_CASE("a checkpoint of floats is quantized when it is loaded", "[models]") {
  fs::path const folder = shared("data/llama");
  Array const tokens = read_safetensors(folder / "hf/golden_forward.safetensors").array("tokens");
  Array const exact = models::load_llama(folder / "hf")(tokens);
  // The same file quantized by others has the same blocks, but for down_proj, which it has in f16; rows of queries and
  // keys come from either rotary layout.
  models::Llama const theirs = models::load_llama(folder / "stories260K-q8_0.gguf", {.as_stored = true});
  for (char const* name : {"hf", "stories260K.bin", "stories260K-f32.gguf"}) {
    INFO(name);
    models::Llama const m = models::load_llama(folder / name, {.quant = Quant::q8_0});
    auto const same = [](auto const& a, auto const& b) {
      models::detail::MatrixRows const &x = a.stored->data, &y = b.stored->data;
      std::size_t const size = x.row_bytes() * static_cast<std::size_t>(x.rows);
      return x.encoding == y.encoding && x.rows == y.rows && std::memcmp(x.bytes, y.bytes, size) == 0;
    };
    CHECK(same(m.model.embed_tokens, theirs.model.embed_tokens));
    for (std::size_t i = 0; i < m.model.layers.size(); ++i) {
      auto const &a = m.model.layers[i].self_attn, &b = theirs.model.layers[i].self_attn;
      CHECK(same(a.q_proj, b.q_proj));
      CHECK(same(a.k_proj, b.k_proj));
      CHECK(same(a.v_proj, b.v_proj));
      CHECK(same(m.model.layers[i].mlp.up_proj, theirs.model.layers[i].mlp.up_proj));
    }
    CHECK(largest_difference(m(tokens), exact) < 0.5);
  }
  // The f32 file's blocks cannot be had in rows of 64 numbers: these stay floats.
  models::Llama const m = models::load_llama(folder / "hf", {.quant = Quant::q4_k});
  CHECK(largest_difference(m(tokens), exact) < 1e-4);
}

TEST_CASE("numbers of 16 bits stay in the file", "[models]") {
  Weights const files = open_weights(shared("data/llama/stories260K-f32.gguf"));
  for (DType d : {DType::f16, DType::bf16}) {
    Weights half(files.source());
    half.format = files.format, half.metadata = files.metadata, half.rope = files.rope;
    for (Weight const& w : files) half.add(w.name, w.array(d));
    models::Llama const m = models::load_llama(half, {.as_stored = true}), floats = models::load_llama(half);
    Array const tokens = arange(1, 30);
    CHECK(leaves(m) < leaves(floats));
    CHECK(largest_difference(m(tokens), floats(tokens)) < 1e-4);
    models::KvCache cache = m.cache(8);
    models::Decoder decode(m, 8);
    std::span<float const> const logits = decode(1, cache);
    Array const first = floats(arange(1, 2));
    double worst = 0;
    for (std::size_t i = 0; i < logits.size(); ++i)
      worst = tests::worse(worst, std::abs(double{logits[i]} - double{first.data<float>()[i]}));
    CHECK(worst < 1e-4);
  }
}

TEST_CASE("numbers of f32 stay in the file", "[models]") {
  fs::path const folder = shared("data/llama");
  Array const tokens = read_safetensors(folder / "hf/golden_forward.safetensors").array("tokens");
  Tokens const start = {1, 403, 407};
  models::Sampler const likeliest({.temperature = 0});
  for (char const* name : {"hf", "stories260K.bin", "stories260K-f32.gguf"}) {
    INFO(name);
    models::Llama const copied = models::load_llama(folder / name),
                        m = models::load_llama(folder / name, {.as_stored = true});
    CHECK(leaves(m) < leaves(copied));
    CHECK(largest_difference(m(tokens), copied(tokens)) < 3e-5);
    CHECK(models::generate(m, start, likeliest, {.tokens = 60}) ==
          models::generate(copied, start, likeliest, {.tokens = 60}));
  }
  // In the file itself, but for rows that are turned; and where numbers do not lie at multiples of their size, a copy.
  Weights const files = open_weights(folder / "hf");
  models::Llama const m = models::load_llama(files, {.as_stored = true});
  CHECK(m.model.layers[0].mlp.up_proj.stored->data.bytes ==
        files.at("model.layers.0.mlp.up_proj.weight").bytes.data());
  std::string const path = files.begin()->file;
  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  bytes.insert(8 + length, 1, ' '), ++length;
  std::memcpy(bytes.data(), &length, 8);
  TemporaryFolder const odd;
  fs::copy_file(folder / "hf/config.json", odd / "config.json");
  std::ofstream(odd / "model.safetensors", std::ios::binary) << bytes;
  models::Llama const n = models::load_llama(odd / ".", {.as_stored = true});
  auto const at = reinterpret_cast<std::uintptr_t>(n.model.layers[0].mlp.up_proj.stored->data.bytes);
  CHECK(at % 4 == 0);
  CHECK(largest_difference(n(tokens), m(tokens)) == 0);
}

TEST_CASE("matrices as stored are not trained", "[models]") {
  models::Llama m = models::load_llama(shared("data/llama/stories260K-q8_0.gguf"), {.as_stored = true});
  visit(m, [](Array& leaf) { leaf.requires_grad(true); });
  CHECK(error_of([&] { m(arange(1, 5)); }) ==
        "llama: a matrix as it is stored cannot be trained: load the model with a dtype");
  no_grad const mode;
  CHECK(m(arange(1, 5)).shape() == make_shape(4, 512));
  CHECK(error_of([&] { m(arange(510, 514)); }) == "llama: token 512, there are 512");
  models::StoredMatrix const& head = *m.model.embed_tokens.stored;
  CHECK(error_of([&] { head.product(zeros({2, 3})); }) ==
        "llama: [..., 64] required for a matrix [512, 64], got [2, 3]");
}

}  // namespace tests::models_stored
