// SPDX-License-Identifier: BSL-1.0
// Llamas whose sizes the compiler knows, against those whose sizes the running program knows: from files, compiled,
// token by token, in training.
#include "allocations.hpp"
#include "models/hf.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/models/batch.hpp>
#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/llama_step.hpp>
#include <dfdx/models/session.hpp>
#include <dfdx/text/load.hpp>

#include <catch2/catch_message.hpp>

#include <fstream>

#include "worse.hpp"

namespace tests::models_static_llama {

using namespace tests;

namespace {

constexpr models::LlamaSizes stories{.vocabulary = 512,
                                     .width = 64,
                                     .hidden = 172,
                                     .layers = 5,
                                     .heads = 8,
                                     .kv_heads = 4,
                                     .head_size = 8,
                                     .context = 512,
                                     .tied = true};
// All options at once.
constexpr models::LlamaSizes rich{.vocabulary = 61,
                                  .width = 32,
                                  .hidden = 48,
                                  .layers = 3,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_size = 10,
                                  .context = 64,
                                  .norm_eps = 1e-6,
                                  .rope = {.kind = models::RopeFrequencies::Kind::llama3,
                                           .base = 50000,
                                           .factor = 8,
                                           .original_context = 32},
                                  .window = 5,
                                  .normalized_heads = true,
                                  .attention_bias = true,
                                  .output_bias = true,
                                  .mlp_bias = true};

// What caches have room for: one for each model, for each is a program of its own.
template <models::LlamaSizes S>
constexpr index_t room = std::min<index_t>(S.context, 256);

constexpr auto forward = [](auto const& model, auto const& tokens) { return model(tokens); };
constexpr auto loss = [](auto const& model, auto const& tokens, auto const& next) {
  return cross_entropy(model(tokens), next);
};

template <models::LlamaSizes S>
models::LlamaModel<S> random_model() {
  auto m = init<models::LlamaModel<S>>(1);
  std::uint64_t seed = 1;
  visit_state(m, [&](std::string const& name, auto const& leaf) {
    float* const p = static_cast<Array const&>(leaf).template data<float>();
    for (index_t i = 0; i < leaf.size(); ++i)
      p[i] = (name.ends_with("norm.weight") ? 1.0f : 0.0f) +
             0.3f * static_cast<float>(normal_at(Key{seed}, static_cast<std::uint64_t>(i)));
    ++seed;
  });
  return m;
}

// The same numbers where the running program knows the sizes.
template <models::LlamaSizes S>
models::Llama at_run_time(models::LlamaModel<S> const& m) {
  models::LlamaConfig c;
  static_cast<models::LlamaSizes&>(c) = S;
  models::Llama r = models::detail::outline_of(c);
  std::map<std::string, Array> all;
  visit_state(m, [&](std::string const& name, auto const& leaf) { all.emplace(name, Array(leaf)); });
  visit_named(r, [&](std::string const& name, Array& leaf) { leaf = all.at(name).clone(); });
  return r;
}

template <std::size_t N>
Tensor<std::int32_t, N> some_tokens(index_t vocabulary, index_t from = 0) {
  auto r = Tensor<std::int32_t, N>::uninitialized();
  for (index_t i = 0; i < static_cast<index_t>(N); ++i)
    r(i) = static_cast<std::int32_t>(((i + from) * 37 + 1) % vocabulary);
  return r;
}

}  // namespace

TEST_CASE("a file's model of static sizes, compiled", "[models]") {
  fs::path const folder = shared("data/llama");
  Weights const golden = read_safetensors(folder / "hf/golden_forward.safetensors");
  auto const tokens = Tensor<std::int32_t, 256>(reshape(golden.array("tokens").to(DType::i32), {-1}));
  Array const expected = reshape(golden.array("logits_f64"), {256, 512});
  auto run = compile(forward);
  for (char const* name : {"hf", "stories260K.bin", "stories260K_v1.bin", "stories260K-f32.gguf"}) {
    INFO(name);
    auto const m = models::load_llama<stories>(folder / name);
    auto const logits = run(m, tokens);
    // What f32 rounds depends on the order of sums, so on the processor: 2.2e-5 were seen on a Zen 4.
    CHECK(largest_difference(logits, expected) < 3e-5);
    CHECK(largest_difference(logits, models::load_llama(folder / name)(tokens)) < 4e-5);
  }
  using P = decltype(run)::program_for<models::LlamaModel<stories>, Tensor<std::int32_t, 256>>;
  static_assert(P::arena_bytes < 5 << 20);
}

TEST_CASE("a file's model of static sizes token by token", "[models]") {
  fs::path const folder = shared("data/llama");
  Weights const golden = read_safetensors(folder / "hf/golden_forward.safetensors");
  Tokens const text = tokens_of(golden.array("tokens"));
  auto const m = models::load_llama<stories>(folder / "stories260K.bin");
  models::Llama const other = models::load_llama(folder / "stories260K.bin");
  using Cache = models::LlamaCache<stories, room<stories>>;
  Cache cache = Cache::empty();
  models::KvCache theirs = other.cache(256);
  models::Decoder decode(other, 256, 1);
  models::LlamaStep step;
  Tensor<float, 512> logits = step(m, 1, cache);
  decode(1, theirs);
  Tokens told{1};
  double worst = 0;
  std::int64_t taken = 0;
  while (told.size() < text.size()) {
    float const* const p = logits.data();
    told.push_back(static_cast<std::int32_t>(std::max_element(p, p + 512) - p));
    std::int64_t const before = tests::allocations();
    logits = step(m, told.back(), cache);
    if (told.size() >= 4)
      taken += tests::allocations() - before;  // two results at a time have memory of their own
    std::span<float const> const want = decode(told.back(), theirs);
    for (std::size_t i = 0; i < want.size(); ++i)
      worst = tests::worse(worst, std::abs(double{want[i]} - double{logits.data()[i]}));
  }
  CHECK(taken == 0);
  CHECK(worst < 2e-5);
  CHECK(told == text);
  CHECK(cache.length.item() == 256);
  CHECK(error_of([&] { step(m, 1, cache); }) == "llama: 257 positions, there is room for 256");

  std::ifstream in(folder / "stories260K.md");
  std::string const page((std::istreambuf_iterator<char>(in)), {});
  text::Tokenizer const words = text::load_tokenizer(folder / "tok512.bin");
  std::string const story = words.decode(told);
  INFO(story);
  CHECK(page.find(story.substr(0, 400)) != page.npos);

  using P = models::LlamaStep::program_for<models::LlamaModel<stories>, Cache>;
  static_assert(P::arena_bytes < 64 << 10);  // the cache has 320 KiB
  for (auto const& s : P::plan.steps) CHECK(s.kind != graph::Step::Kind::move);
}

namespace {

// What a model's step says next, each token the likeliest.
template <models::LlamaSizes S>
Tokens told_by_steps(models::LlamaModel<S> const& m, Tokens const& prompt, std::size_t n) {
  auto cache = models::LlamaCache<S, room<S>>::empty();
  models::LlamaStep step;
  Tokens r;
  for (std::size_t i = 0; i < prompt.size() + n - 1; ++i) {
    auto const logits = step(m, i < prompt.size() ? prompt[i] : r.back(), cache);
    if (i + 1 >= prompt.size()) r.push_back(static_cast<std::int32_t>(argmax<0>(logits).item()));
  }
  return r;
}

std::vector<Tokens> prompts_of(std::size_t n, index_t vocabulary) {
  std::vector<Tokens> r;
  for (std::size_t i = 0; i < n; ++i) {
    Tokens p{1};
    for (std::size_t k = 0; k < 3 * i; ++k)
      p.push_back(static_cast<std::int32_t>((k * 17 + i) % static_cast<std::size_t>(vocabulary)));
    r.push_back(p);
  }
  return r;
}

models::Sampler likeliest() { return models::Sampler({.temperature = 0}); }

}  // namespace

TEST_CASE("texts of a batch of static sizes", "[models]") {
  auto const m = models::load_llama<stories>(shared("data/llama/stories260K.bin"));
  std::vector<Tokens> const nine = prompts_of(9, 512);
  for (std::size_t n : {std::size_t{3}, nine.size()}) {
    std::vector<Tokens> const some(nine.begin(), nine.begin() + static_cast<std::ptrdiff_t>(n));
    std::vector<Tokens> handed(n);
    std::vector<Tokens> const got =
        models::generate(m, some, {likeliest()}, {.tokens = 40}, [&](std::size_t i, std::int32_t t) {
          handed[i].push_back(t);
          return handed[i].size() < 12 + 4 * i;  // they end one after another
        });
    CHECK(got == handed);
    for (std::size_t i = 0; i < n; ++i) {
      INFO(i);
      CHECK(got[i].size() == std::min<std::size_t>(12 + 4 * i, 40));
      CHECK(got[i] == told_by_steps(m, some[i], got[i].size()));
      CHECK(got[i] ==
            models::generate(m, some[i], likeliest(), {.tokens = static_cast<index_t>(got[i].size())}));
    }
  }
  // Whatever a model has, and of all that a program knows of one whose sizes it reads.
  auto const all = random_model<rich>();
  models::Llama const other = at_run_time(all);
  std::vector<Tokens> const five = prompts_of(5, 61);
  auto const told = models::generate(all, five, {likeliest()}, {.tokens = 20});
  CHECK(told == models::generate(other, five, {likeliest()}, {.tokens = 20}));
  CHECK(told[4] == told_by_steps(all, five[4], 20));
  CHECK(models::score(all, told[2]).loss == models::score(other, told[2]).loss);
  // The numbers are the model's own.
  models::Decoder decode(all, 4);
  models::KvCache cache = all.cache(4);
  float const before = decode(3, cache)[7];
  Array(all.lm_head.weight).data<float>()[7 * rich.width] += 1;
  cache.length = 0;
  CHECK(decode(3, cache)[7] != before);

  CHECK(error_of([&] { models::generate(m, nine, std::vector<models::Sampler>(2)); }) ==
        "generate: 2 samplers for 9 prompts");
  CHECK(error_of([&] { models::generate(m, {{1}, {512}}, {likeliest()}); }) ==
        "llama: token 512, there are 512");
}

TEST_CASE("a batch takes no memory for a token", "[models]") {
  auto const check = [](auto const& m, models::SamplingOptions const& s) {
    std::vector<Tokens> const prompts = prompts_of(6, 61);
    std::int64_t before = 0, taken = 0, tokens = 0;
    models::generate(m, prompts, {models::Sampler(s)}, {.tokens = 40}, [&](std::size_t, std::int32_t) {
      // A first token of each comes from its prompt, the second from the first step of all.
      if (++tokens > 12) taken += tests::allocations() - before;
      before = tests::allocations();
      return true;
    });
    CHECK(tokens == 240);
    CHECK(taken == 0);
  };
  auto const m = random_model<rich>();
  for (models::SamplingOptions const& s :
       {models::SamplingOptions{.temperature = 0},
        models::SamplingOptions{.top_k = 20, .top_p = 0.9, .min_p = 0.01, .repeat = 1.1, .presence = 0.1}}) {
    check(m, s);
    check(at_run_time(m), s);
  }
}

TEST_CASE("a text of static sizes in a file", "[models]") {
  auto const m = random_model<rich>();
  TemporaryFolder const folder;
  models::Context<models::LlamaModel<rich>> context(m, 32);
  context.add(Tokens{1, 17, 30, 4});
  models::save_session(folder / "s", m, context);
  auto restored = models::load_session(folder / "s", m);
  CHECK(restored.tokens() == context.tokens());
  CHECK(std::ranges::equal(restored.step(5), context.step(5)));
  CHECK(has(error_of([&] { models::load_session(folder / "s", init<models::LlamaModel<rich>>(2)); }),
            "is no session, or that of another model"));
}

TEST_CASE("static sizes with all options", "[models]") {
  auto const m = random_model<rich>();
  models::Llama const other = at_run_time(m);
  auto const tokens = some_tokens<24>(61);
  Array const want = other(tokens);
  double const size = max(abs(want)).item<float>();
  auto run = compile(forward);
  CHECK(largest_difference(run(m, tokens), want) < 2e-6 * size);
  CHECK(largest_difference(m(tokens), want) < 2e-6 * size);
  auto const two = Tensor<std::int32_t, 2, 12>(reshape(tokens, {2, 12}));
  CHECK(largest_difference(run(m, two), other(two)) < 2e-6 * size);

  // Blocks of several tokens, and single ones.
  auto cache = models::LlamaCache<rich, room<rich>>::empty();
  models::LlamaStep step;
  auto const row = [&](index_t i) { return slice(want, 0, i, i + 1)[0]; };
  CHECK(largest_difference(step(m, some_tokens<4>(61), cache), row(3)) < 3e-6 * size);
  for (index_t i = 4; i < 8; ++i) CHECK(largest_difference(step(m, tokens(i), cache), row(i)) < 3e-6 * size);
  CHECK(largest_difference(step(m, some_tokens<4>(61, 8), cache), row(11)) < 3e-6 * size);
  for (index_t i = 12; i < 24; ++i)
    CHECK(largest_difference(step(m, tokens(i), cache), row(i)) < 3e-6 * size);
  while (cache.length.item() < 62) step(m, 1, cache);
  CHECK(error_of([&] { step(m, some_tokens<4>(61), cache); }) == "llama: 66 positions, there is room for 64");
  cache.length = Tensor<std::int32_t>(0);
  CHECK(error_of([&] { step(m, 61, cache); }) == "take: index 61 out of range for axis 0 of [61, 32]");
}

TEST_CASE("gradients of static sizes", "[models]") {
  auto const m = random_model<rich>();
  auto const tokens = some_tokens<12>(61), next = some_tokens<12>(61, 1);
  auto const [value, gradient] = value_and_grad(loss)(m, tokens, next);
  models::Llama other = at_run_time(m);
  visit(other, [](Array& leaf) { leaf.requires_grad(true); });
  Array const l = cross_entropy(other(tokens), next);
  l.backward();
  CHECK(std::abs(value.item() - l.item<float>()) < 1e-5);
  std::map<std::string, Array> expected;
  visit_named(other,
              [&](std::string const& name, Array const& leaf) { expected.emplace(name, leaf.grad()); });
  int compared = 0;
  visit_state(gradient, [&](std::string const& name, auto const& leaf) {
    INFO(name);
    double const size = max(abs(expected.at(name))).item<float>();
    CHECK(largest_difference(leaf, expected.at(name)) < 1e-5 * (size + 1e-3));
    ++compared;
  });
  CHECK(compared == static_cast<int>(expected.size()));
}

TEST_CASE("a step of training of a file's model", "[models]") {
  fs::path const folder = shared("data/llama");
  Weights const golden = read_safetensors(folder / "hf/golden_forward.safetensors");
  auto const all = Tensor<std::int32_t, 256>(reshape(golden.array("tokens").to(DType::i32), {-1}));
  Tensor<std::int32_t, 64> const tokens = slice<0, 0, 64>(all), next = slice<0, 1, 65>(all);
  auto m = models::load_llama<stories>(folder / "hf");
  models::Llama other = models::load_llama(folder / "hf");
  visit(other, [](Array& leaf) { leaf.requires_grad(true); });
  auto step = train_step(loss, optim::SGD{.lr = 0.1f});
  Array const l = cross_entropy(other(tokens), next);
  CHECK(std::abs(step(m, tokens, next) - l.item<float>()) < 1e-5f);
  l.backward();
  std::map<std::string, Array> expected;
  visit_named(other, [&](std::string const& name, Array const& leaf) {
    expected.emplace(name, leaf.detach() - leaf.grad() * 0.1f);
  });
  visit_state(m, [&](std::string const& name, auto const& leaf) {
    INFO(name);
    CHECK(largest_difference(leaf, expected.at(name)) < 2e-5);
  });
}

TEST_CASE("files whose sizes are others are refused", "[models]") {
  fs::path const file = shared("data/llama") / "stories260K-f32.gguf";
  constexpr models::LlamaSizes wider = [] {
    models::LlamaSizes s = stories;
    s.width = 288, s.heads = 6, s.kv_heads = 6, s.head_size = 48, s.norm_eps = 1e-6, s.rope.base = 500000;
    s.tied = false;
    return s;
  }();
  std::string const why = error_of([&] { models::load_llama<wider>(file); });
  CHECK(
      has(why,
          "stories260K-f32.gguf does not fit the model: width: 64 in the file, 288 in the model; heads: 8 "
          "in the file, 6 in the model; heads of keys and values: 4 in the file, 6 in the model; head size: "
          "8 in the file, 48 in the model; epsilon of norms: 1e-05 in the file, 1e-06 in the model; the head "
          "is the embedding: yes in the file, no in the model; rotary embeddings: of base 10000 in the file, "
          "of base 500000 in the model"));
}

}  // namespace tests::models_static_llama
