// SPDX-License-Identifier: BSL-1.0
// A text in a file: what comes after it is what would have come, and files of other things are refused.
#include "models/hf.hpp"

#include <dfdx/models/any_model.hpp>
#include <dfdx/models/batch.hpp>
#include <dfdx/models/gpt2.hpp>
#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/session.hpp>

#include <fstream>

namespace tests::models_session {

using namespace tests;

namespace {

// What a model says next, and then, each token the likeliest.
template <class M>
std::vector<float> continuation(models::Context<M>& context, std::int32_t token, int n) {
  std::vector<float> all;
  for (int i = 0; i < n; ++i) {
    std::span<float const> const logits = context.step(token);
    all.insert(all.end(), logits.begin(), logits.end());
    token = static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  return all;
}

template <class M>
void check_session(M const& m, Encoding encoding) {
  TemporaryFolder const folder;
  Tokens const start{1, 17, 30, 4, 9, 22, 51, 8, 3, 60};
  models::Context<M> context(m, 32, encoding);
  context.add(start);
  models::save_session(folder / "s", m, context);
  std::vector<float> const want = continuation(context, 5, 12);
  models::Context<M> restored = models::load_session(folder / "s", m, 40);
  CHECK(restored.tokens() == start);
  CHECK(restored.cache().encoding == encoding);
  CHECK(continuation(restored, 5, 12) == want);
  CHECK(restored.tokens() == context.tokens());
}

}  // namespace

TEST_CASE("a restored text goes on bit for bit", "[models]") {
  fs::path const hf = shared("data/llama/hf"), q8 = shared("data/llama/stories260K-q8_0.gguf"),
                 gpt2 = shared("refs/hf/gpt2-tiny");
  models::Llama const m = models::load_llama(hf);
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) check_session(m, dtype);
  check_session(models::load_llama(q8, {.as_stored = true}), DType::f32);
  check_session(models::load_gpt2(gpt2), DType::f32);
  models::LlamaConfig c;
  c.vocabulary = 70, c.width = 64, c.hidden = 96, c.layers = 2, c.heads = 4, c.kv_heads = 2, c.head_size = 32;
  c.context = 64, c.tied = true;
  models::Llama random = models::detail::outline_of(c);
  std::uint64_t seed = 1;
  visit(random, [&](Array& leaf) { leaf = randn(Extents(leaf.shape()), Key{++seed}) * 0.3; });
  check_session(random, Quant::q8_0);
}

namespace {

template <class M>
void check_any(M const& m, std::string const& architecture) {
  models::AnyModel const any = models::any_model(m);
  CHECK(any.config.architecture == architecture);
  CHECK(any.config.vocabulary == m.config.vocabulary);
  CHECK(any.config.bos == m.config.bos);
  CHECK(any.config.eos == m.config.eos);
  CHECK(any.config.positions() == m.config.positions());
  index_t const beyond = m.config.positions() + 10;
  CHECK(any.cache(beyond).capacity == m.cache(beyond).capacity);
  models::Sampler const likeliest({.temperature = 0});
  models::GenerateOptions const o{.tokens = 20, .capacity = 16};
  Tokens const first{1, 17, 30, 4, 9}, second{3, 60};
  Tokens const said = models::generate(m, first, likeliest, o);
  CHECK(said.size() == 20);
  CHECK(models::generate(any, first, likeliest, o) == said);
  CHECK(models::generate(any, {first, second}, {likeliest}, o) ==
        models::generate(m, {first, second}, {likeliest}, o));
  CHECK(models::score(any, said, 8).loss == models::score(m, said, 8).loss);
  TemporaryFolder const folder;
  models::Context<M> context(m, 32);
  context.add(first);
  models::save_session(folder / "s", m, context);
  std::vector<float> const want = continuation(context, 5, 6);
  models::Context<models::AnyModel> restored = models::load_session(folder / "s", any);
  models::save_session(folder / "t", any, restored);
  CHECK(continuation(restored, 5, 6) == want);
  models::Context<M> again = models::load_session(folder / "t", m);
  CHECK(continuation(again, 5, 6) == want);
}

}  // namespace

TEST_CASE("a model whose family is known at run time", "[models]") {
  check_any(models::load_llama(shared("data/llama/hf")), "llama");
  check_any(models::load_llama(shared("data/llama/stories260K-q8_0.gguf"), {.as_stored = true}), "llama");
  check_any(models::load_gpt2(shared("refs/hf/gpt2-tiny")), "gpt2");
  // It keeps what the model had.
  models::AnyModel const kept = models::any_model(models::load_gpt2(shared("refs/hf/gpt2-tiny")));
  models::AnyModel const copy = kept;
  models::Sampler const likeliest({.temperature = 0});
  CHECK(models::generate(copy, Tokens{1, 2}, likeliest, {.tokens = 5}).size() == 5);
  models::AnyModel const other = models::any_model(models::load_gpt2(shared("refs/hf/gpt2-tiny")));
  CHECK(other.fingerprint() == kept.fingerprint());
  CHECK(models::any_model(models::load_llama(shared("data/llama/hf"))).fingerprint() != kept.fingerprint());
}

TEST_CASE("a context whose rotary frequencies depend on the length of the text", "[models]") {
  models::LlamaConfig c;
  c.vocabulary = 70, c.width = 32, c.hidden = 48, c.layers = 2, c.heads = 4, c.kv_heads = 2, c.head_size = 8;
  c.context = 16, c.rope.kind = models::RopeFrequencies::Kind::dynamic, c.rope.factor = 4;
  c.rope.original_context = 16;
  models::Llama m = models::detail::outline_of(c);
  std::uint64_t seed = 1;
  visit(m, [&](Array& leaf) { leaf = randn(Extents(leaf.shape()), Key{++seed}) * 0.3; });
  Tokens long_text(40), other(30);
  for (std::size_t i = 0; i < 40; ++i) long_text[i] = static_cast<std::int32_t>(i * 7 % 70);
  for (std::size_t i = 0; i < 30; ++i) other[i] = i < 20 ? long_text[i] : 3;
  models::Context<models::Llama> context(m, 60);
  context.add(long_text);
  CHECK(context.common(other) == 0);  // those twenty have the frequencies of forty
  models::AnyModel const any = models::any_model(m);
  CHECK(any.config.positions() == 64);
  models::Context<models::AnyModel> same(any, 60);
  same.add(long_text);
  CHECK(same.common(other) == 0);
  models::Sampler const likeliest({.temperature = 0});
  CHECK(models::generate(context, other, likeliest, {.tokens = 12}) ==
        models::generate(m, other, likeliest, {.tokens = 12, .capacity = 60}));
  context.rewind(0);
  context.add(Tokens(long_text.begin(), long_text.begin() + 10));
  CHECK(context.common(Tokens(other.begin(), other.begin() + 14)) == 10);
}

TEST_CASE("a context in which all is to be kept, and one beyond the model's", "[models]") {
  models::Llama const m = models::load_llama(shared("data/llama/hf"));
  models::Sampler const likeliest({.temperature = 0});
  Tokens const prompt = {1, 403, 407, 261};
  CHECK(models::generate(m, prompt, likeliest, {.tokens = 40, .capacity = 16, .keep = 100}).size() == 40);
  models::Gpt2 const gpt2 = models::load_gpt2(shared("refs/hf/gpt2-tiny"));
  index_t const most = gpt2.config.context;
  CHECK(models::Context<models::Gpt2>(gpt2, 10 * most).cache().capacity == most);
}

TEST_CASE("files that are no session of a model", "[models]") {
  fs::path const hf = shared("data/llama/hf");
  models::Llama const m = models::load_llama(hf), other = models::load_llama(shared("refs/hf/llama-tiny"));
  TemporaryFolder const folder;
  models::Context context(m, 32);
  CHECK(error_of([&] { models::save_session(folder / "s", m, context); }) ==
        "save_session: the context is empty");
  context.add(Tokens{1, 2, 3, 4, 5});
  models::save_session(folder / "s", m, context);
  auto const load = [&](fs::path const& path, index_t room = 0) {
    return error_of([&] { models::load_session(path, m, room); });
  };
  CHECK(load(folder / "s").empty());
  CHECK(has(load(hf / "model.safetensors"), "model.safetensors is no session, or that of another model"));
  CHECK(has(error_of([&] { models::load_session(folder / "s", other); }),
            "is no session, or that of another model"));
  // One that differs in a matrix alone, or keeps its matrices otherwise.
  auto const with = [&](models::Llama const& of) {
    return error_of([&] { models::load_session(folder / "s", of); });
  };
  auto const q8 = models::quantized(m, Quant::q8_0), q4 = models::quantized(m, Quant::q4_0);
  for (models::Llama const& of : {q8, q4}) CHECK(has(with(of), "or that of another model"));
  CHECK(with(models::load_llama(hf)).empty());
  for (char const* part : {"embed_tokens", "layers.3.mlp.up_proj", "layers.4.self_attn.q_proj"}) {
    INFO(part);
    models::Llama changed = m;
    visit_named(changed, [&](std::string const& name, Array& leaf) {
      if (name.find(part) != name.npos) leaf = leaf.detach() * 1.001;
    });
    CHECK(has(with(changed), "or that of another model"));
  }
  TemporaryFolder const stored;
  models::Context of_q8(q8, 32);
  of_q8.add(Tokens{1, 2, 3});
  models::save_session(stored / "s", q8, of_q8);
  auto const of_stored = [&](models::Llama const& of) {
    return error_of([&] { models::load_session(stored / "s", of); });
  };
  CHECK(of_stored(models::quantized(m, Quant::q8_0)).empty());
  models::Llama other_q8 = m;
  other_q8.model.layers[2].mlp.down_proj.weight = *m.model.layers[2].mlp.down_proj.weight * -1.0;
  CHECK(has(of_stored(models::quantized(other_q8, Quant::q8_0)), "or that of another model"));
  CHECK(has(load(folder / "s", 4), ": 5 tokens, there is room for 4"));
  CHECK(has(load(folder / "none"), "none"));

  // Cut anywhere, nothing is loaded and something is said.
  std::ifstream in(folder / "s", std::ios::binary);
  std::string const whole((std::istreambuf_iterator<char>(in)), {});
  for (std::size_t n : {std::size_t{0}, std::size_t{4}, std::size_t{100}, whole.size() / 2, whole.size() - 1})
    CHECK(!load(folder.write("cut", whole.substr(0, n))).empty());

  // Parts of other shapes and types.
  Weights const w = read_safetensors(folder / "s");
  auto const changed = [&](std::string const& name, Array const& by) {
    std::map<std::string, Array> all = w.arrays();
    if (by.empty()) all.erase(name);
    else all[name] = by;
    save_safetensors(folder / "t", all, {{"session_of", w.metadata.text("session_of")}});
    return load(folder / "t");
  };
  CHECK(
      has(changed("keys.3", ones({4, 6, 8})), "keys.3: shape [4, 6, 8] in the file, [4, 5, 8] in the model"));
  CHECK(has(changed("values.4", {}), "values.4 is missing"));
  CHECK(has(changed("keys.5", ones({4, 5, 8})), "keys.5 is not in the model"));
  CHECK(has(changed("keys.2", ones({4, 5, 8}, DType::f16)), "keys.2 is not of f32"));
  CHECK(has(changed("keys.0", ones({4, 5, 8}, DType::i32)), "is no session"));
  CHECK(has(changed("tokens", ones({5})), "is no session"));
  CHECK(has(changed("tokens", full({5}, 512).to(DType::i32)), "token 512, there are 512"));
}

TEST_CASE("a context that holds another text already", "[models]") {
  models::Llama const m = models::load_llama(shared("data/llama/hf"));
  models::Sampler const likeliest({.temperature = 0});
  models::Context<models::Llama> context(m, 64);
  Tokens const once = {1, 403, 407, 261}, other = {1, 403, 300};
  index_t read = 0, expected = 0;
  for (auto const& [prompt, new_tokens] : {std::pair(once, 4), {other, 1}, {once, 2}, {once, 1}}) {
    Tokens const fresh = models::generate(m, prompt, likeliest, {.tokens = 20, .capacity = 64});
    CHECK(models::generate(context, prompt, likeliest, {.tokens = 20, .read = &read}) == fresh);
    CHECK(read == (expected += new_tokens));
    CHECK(context.tokens().size() == prompt.size() + 19);
  }
  context.rewind(2);
  CHECK((context.tokens() == Tokens{1, 403} && context.cache().length == 2));
  CHECK(error_of([&] { context.rewind(3); }) == "generate: 3 tokens cannot be kept of 2");
}

namespace {

// Each text of a batch is what it is alone, token by token.
template <class M>
void check_batch(M const& m, std::vector<Tokens> const& prompts, models::GenerateOptions const& o) {
  std::vector<Tokens> handed(prompts.size());
  std::vector<Tokens> const got = models::generate(
      m, prompts, {models::Sampler({.temperature = 0})}, o, [&](std::size_t i, std::int32_t t) {
        handed[i].push_back(t);
        return handed[i].size() < 12 + i;  // they end one after another
      });
  CHECK(got == handed);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    std::size_t count = 0;
    INFO(i);
    CHECK(got[i] == models::generate(m, prompts[i], models::Sampler({.temperature = 0}), o,
                                     [&](std::int32_t) { return ++count < 12 + i; }));
  }
}

}  // namespace

TEST_CASE("texts of a batch", "[models]") {
  models::Llama const m = models::load_llama(shared("data/llama/hf"));
  std::vector<Tokens> prompts;
  for (std::int32_t i = 0; i < 9; ++i) {
    Tokens p{1};
    for (std::int32_t k = 0; k < i * 3; ++k) p.push_back(300 + (k * 17 + i) % 100);
    prompts.push_back(p);
  }
  check_batch(m, {prompts.begin(), prompts.begin() + 4}, {.tokens = 40});
  check_batch(m, prompts, {.tokens = 15, .stop = {2, 403}, .block = 5});
  check_batch(m, {prompts.begin() + 2, prompts.begin() + 5}, {.tokens = 20, .capacity = 16});  // outgrown
  check_batch(models::quantized(m, Quant::q8_0), {prompts.begin(), prompts.begin() + 3}, {.tokens = 14});
  check_batch(models::load_gpt2(shared("refs/hf/gpt2-tiny")), {{5, 6, 7}, {1}, {90, 3}}, {.tokens = 30});
  // Samplers of their own; of one seed alike.
  models::SamplingOptions s{.temperature = 1};
  std::vector<models::Sampler> samplers{models::Sampler(s), models::Sampler(s)};
  std::vector<Tokens> const twice{prompts[3], prompts[3]};
  std::vector<Tokens> const alike = models::generate(m, twice, samplers, {.tokens = 20});
  CHECK((alike[0] == alike[1] &&
         alike[0] == models::generate(m, prompts[3], models::Sampler(s), {.tokens = 20})));
  s.seed = 2, samplers[1] = models::Sampler(s);
  CHECK(models::generate(m, twice, samplers, {.tokens = 20})[1] ==
        models::generate(m, prompts[3], models::Sampler(s), {.tokens = 20}));
  auto const fault = [&](std::vector<Tokens> const& of, std::size_t n) {
    return error_of(
        [&] { models::generate(m, of, std::vector<models::Sampler>(n), {.tokens = 3, .capacity = 8}); });
  };
  CHECK(fault(twice, 3) == "generate: 3 samplers for 2 prompts");
  CHECK(fault({{1}, {}}, 1) == "generate: the prompt is empty");
  CHECK(fault({{1}, Tokens(9, 1)}, 1) == "generate: a prompt of 9 tokens, there is room for 8");
  CHECK(fault({{1}, {512}}, 1) == "llama: token 512, there are 512");
  CHECK(fault({}, 1).empty());
}

TEST_CASE("a text that begins as another", "[models]") {
  models::Llama const m = models::load_llama(shared("data/llama/hf"));
  Tokens start(60), rest{7, 9, 11};
  for (std::size_t i = 0; i < start.size(); ++i) start[i] = static_cast<std::int32_t>(3 + i * 31 % 500);
  for (DType dtype : {DType::f32, DType::bf16}) {
    models::Context<models::Llama> one(m, 80, dtype), other(m, 100, dtype), alone(m, 100, dtype);
    one.add(start);
    other.add(Tokens{5, 6, 7, 8});  // is forgotten
    other.begin_as(one, 50);
    CHECK(other.tokens() == Tokens(start.begin(), start.begin() + 50));
    alone.add(Tokens(start.begin(), start.begin() + 50));
    Array const got = other.add(rest), want = alone.add(rest);
    CHECK(other.tokens() == alone.tokens());
    CHECK(array_equal(got, want));  // the same blocks
    CHECK(continuation(one, 5, 3) == [&] {
      models::Context<models::Llama> same(m, 80, dtype);
      same.add(start);
      return continuation(same, 5, 3);
    }());
  }
  models::Context<models::Llama> one(m, 80), narrow(m, 20), half(m, 80, DType::f16);
  one.add(start);
  CHECK(error_of([&] {
          narrow.begin_as(one, 30);
        }).starts_with("generate: 30 tokens cannot be taken of 60 by a context of "));
  CHECK(error_of([&] {
          half.begin_as(one, 61);
        }).starts_with("generate: 61 tokens cannot be taken of 60 by a context of "));
  CHECK(error_of([&] { one.begin_as(one, 3); }) == "generate: a context cannot begin as itself");
  CHECK(error_of([&] { half.begin_as(one, 30); }) == "generate: contexts that keep other numbers");

  // Prompts of one beginning: that of the first is computed, a part of it serves each other one, the whole the last but
  // one; the last is another.
  std::vector<Tokens> prompts;
  for (std::size_t shared_tokens : {60, 59, 30, 60, 0}) {
    prompts.emplace_back(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(shared_tokens));
    prompts.back().insert(prompts.back().end(), shared_tokens == 60 ? 0 : 2,
                          400 + static_cast<int>(prompts.size()));
  }
  check_batch(m, prompts, {.tokens = 20});
  // No beginning is computed again: 60 tokens of the first, then the two others, and the last that all are asked after.
  index_t read = 0;
  models::generate(m, prompts, {models::Sampler({.temperature = 0})}, {.tokens = 1, .read = &read});
  CHECK(read == 60 + 2 + 2 + 1 + 2);
  check_batch(models::load_gpt2(shared("refs/hf/gpt2-tiny")), {{1, 5, 9, 2}, {1, 5, 9, 3}, {1, 5}},
              {.tokens = 8});
}

}  // namespace tests::models_session
