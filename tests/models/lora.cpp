// SPDX-License-Identifier: BSL-1.0
// LoRA on Llama: that fresh factors change nothing, their gradients, merging, and the files of PEFT.
#include "hf.hpp"

#include <dfdx/models/clip_text.hpp>
#include <dfdx/models/gpt2.hpp>
#include <dfdx/models/llama_load.hpp>
#include <dfdx/models/lora.hpp>
#include <dfdx/optim/adam.hpp>
#include <dfdx/optim/optimizer.hpp>
#include <dfdx/transforms/watch.hpp>

#include <fstream>

namespace tests::models_lora {

using namespace tests;

namespace {

models::Llama tiny(DType d = DType::f32) { return models::load_llama(shared("refs/hf/llama-tiny"), d); }
Array some_tokens() {
  return read_safetensors(shared("refs/hf/llama-tiny") / "refs.safetensors").array("input_ids");
}

models::LoraConfig const everywhere{
    .rank = 3,
    .alpha = 6,
    .targets = {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}};

// Factors as after training, when B is not 0.
models::Llama trained(models::LoraConfig const& c, DType d = DType::f32) {
  models::Llama m = tiny(d);
  models::add_lora(m, c, Key{1});
  std::uint64_t i = 0;
  models::visit_projections(m, [&](std::string const&, models::Projection& p) {
    if (p.lora_B) p.lora_B->weight = randn(p.lora_B->weight.shape(), fold_in(Key{2}, i++), d) * 0.1;
  });
  return m;
}

std::set<std::string> names_of_factors(models::Llama const& m) {
  std::set<std::string> r;
  visit_named(m, [&](std::string const& name, Array const&) {
    if (name.find("lora") != name.npos) r.insert(name);
  });
  return r;
}

}  // namespace

TEST_CASE("fresh factors change nothing, and are where they were asked for", "[models]") {
  models::Llama m = tiny();
  Array const before = m(some_tokens());
  models::add_lora(m, {}, Key{1});
  CHECK(array_equal(m(some_tokens()), before));
  auto const names = names_of_factors(m);
  CHECK(names.size() == 4 * m.model.layers.size());
  CHECK(names.contains("model.layers.1.self_attn.v_proj.lora_B.weight"));
  CHECK(error_of([&] { models::add_lora(m, {}, Key{1}); }) ==
        "lora: model.layers.0.self_attn.q_proj has factors already");
  models::drop_lora(m);
  CHECK(names_of_factors(m).empty());
  models::add_lora(m, {.pattern = R"(model\.layers\.1\.mlp\..*)"}, Key{1});
  CHECK(names_of_factors(m).size() == 6);
  models::drop_lora(m);
  CHECK(error_of([&] { models::add_lora(m, {.targets = {"q_proj", "query", "proj"}}, Key{1}); }) ==
        "lora: the model has no projection that is called proj, query");
  CHECK(names_of_factors(m).empty());
  CHECK(error_of([&] { models::add_lora(m, {.rank = 0}, Key{1}); }) == "lora: a rank of 0");
  CHECK(
      has(error_of([&] { models::add_lora(m, {.pattern = "(x"}, Key{1}); }), "(x is no regular expression"));
  // Nothing that a file says takes the stack or the time.
  for (std::string const& hostile :
       {std::string(100000, '('), std::string("(((((a*)*)*)*)*)*b{999,}|") + std::string(5000, 'a')})
    CHECK(has(error_of([&] { models::add_lora(m, {.pattern = hostile}, Key{1}); }), "lora: the pattern"));
}

TEST_CASE("names by regular expressions", "[models]") {
  struct Case {
    char const *pattern, *name;
    bool hit;
  };
  for (Case const& c : {Case{".*_proj", "mlp.up_proj", true},
                        {".*_proj", "mlp.up_projection", false},
                        {R"(.*\.(q|v)_proj$)", "layers.0.self_attn.v_proj", true},
                        {R"(.*\.(q|v)_proj$)", "layers.0.self_attn.k_proj", false},
                        {"(?!lm_head).*", "lm_head", false},
                        {"(?!lm_head).*", "model.lm_head", true},
                        {R"(.*layers\.(?:[02-9]|1\d+)\..*)", "model.layers.12.mlp.up_proj", true},
                        {R"(.*layers\.(?:[02-9]|1\d+)\..*)", "model.layers.1.mlp.up_proj", false},
                        {"a{2,3}?b*", "aaabb", true},
                        {"a{2,3}b*", "abb", false},
                        {"a{2}", "aaa", false},
                        {R"([^\d.]+\w)", "x_1", true},
                        {"(a?){3}a{3}", "aaa", true},
                        {"^(x|)y?$", "", true},
                        {"(?=.*z)[a-z]+", "abzc", true},
                        {"(?=.*z)[a-z]+", "abc", false}}) {
    INFO(c.pattern << " " << c.name);
    CHECK(models::detail::NamePattern(c.pattern).matches(c.name) == c.hit);
  }
  for (char const* wrong :
       {"(x", "x)", "*a", "a{3,2}", "[a", "[z-a]", "a{", "(?<=a)b", R"((a)\1)", R"(a\b)", "\\"})
    CHECK(has(error_of([&] { models::detail::NamePattern{wrong}; }), "is no regular expression"));
}

TEST_CASE("gradients of factors", "[models]") {
  models::Llama m = trained(everywhere, DType::f64);
  Array const tokens = some_tokens();
  models::watch_lora(m);
  loss_of(m(tokens), tokens).backward();
  int compared = 0;
  visit_named(m, [&](std::string const& name, Array& leaf) {
    if (name.find("lora") == name.npos) {
      CHECK(leaf.grad().empty());
      return;
    }
    INFO(name);
    no_grad const mode;
    Array const g = leaf.grad();
    REQUIRE(g.shape() == leaf.shape());
    index_t const at = (7 * compared + 3) % leaf.size();
    double& x = leaf.data<double>()[at];
    double const kept = x, h = 1e-5;
    x = kept + h;
    double const above = loss_of(m(tokens), tokens).item<double>();
    x = kept - h;
    double const below = loss_of(m(tokens), tokens).item<double>();
    x = kept;
    // Rounding of the loss over the step, and the step squared, leave about 1e-10.
    CHECK(std::abs((above - below) / (2 * h) - g.contiguous().data<double>()[at]) < 1e-8);
    ++compared;
  });
  CHECK(compared == 2 * 7 * static_cast<int>(m.model.layers.size()));
}

TEST_CASE("training moves the factors alone", "[models]") {
  models::Llama m = tiny();
  models::Llama const before = m;
  Array const tokens = some_tokens();
  models::add_lora(m, everywhere, Key{1});
  models::watch_lora(m);
  optim::Optimizer optimizer(optim::AdamW{.lr = 1e-2});
  double first = 0, last = 0;
  for (int i = 0; i < 8; ++i) {
    Array const l = loss_of(m(tokens), tokens);
    l.backward();
    optimizer.step(m);
    zero_grad(m);
    last = l.item();
    if (i == 0) first = last;
  }
  CHECK(last < first - 0.1);
  models::drop_lora(m);
  CHECK(array_equal(m(tokens), before(tokens)));
}

TEST_CASE("merged, a model says the same", "[models]") {
  models::Llama m = trained(everywhere);
  models::Llama const base = tiny();
  Array const tokens = some_tokens(), apart = m(tokens);
  CHECK(largest_difference(apart, base(tokens)) > 1e-3);
  models::Llama const copy = m;
  models::merge_lora(m);
  models::merge_lora(m);  // once is enough
  CHECK(largest_difference(m(tokens), apart) < 1e-5);
  CHECK(array_equal(copy(tokens), apart));
  models::Llama dense = m;
  models::drop_lora(dense);
  CHECK(largest_difference(dense(tokens), apart) < 1e-5);
  // Token by token too, with factors that count.
  CHECK(greedy(dense, {5, 9}, 20) == greedy(copy, {5, 9}, 20));
  CHECK(greedy(base, {5, 9}, 20) != greedy(copy, {5, 9}, 20));
  models::unmerge_lora(m);
  CHECK(largest_difference(m(tokens), apart) < 1e-5);
  models::drop_lora(m);
  CHECK(largest_difference(m(tokens), base(tokens)) < 1e-5);
}

TEST_CASE("factors in the files of PEFT", "[models]") {
  TemporaryFolder const folder;
  models::Llama const m = trained(everywhere);
  Array const tokens = some_tokens();
  models::save_lora(folder / "a", m, everywhere, "some/base");
  Weights const file = read_safetensors(folder / "a/adapter_model.safetensors");
  CHECK(file.at("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight").shape ==
        std::vector<index_t>{3, m.config.width});
  models::Llama again = tiny();
  models::LoraConfig const c = models::load_lora(folder / "a/adapter_model.safetensors", again);
  CHECK((c.rank == 3 && c.alpha == 6 && c.targets == everywhere.targets));
  CHECK(array_equal(again(tokens), m(tokens)));
  CHECK(has(error_of([&] { models::load_lora(folder / "a", again); }), "has factors already"));
  CHECK(error_of([&] { models::save_lora(folder / "b", tiny(), {}); }) == "lora: the model has no factors");

  // By a pattern, and scaled by the root of the rank.
  models::LoraConfig const other{.rank = 4, .alpha = 2.5, .pattern = ".*_proj", .root_of_rank = true};
  models::Llama const rooted = trained(other);
  models::save_lora(folder / "c", rooted, other);
  models::Llama read = tiny();
  CHECK(models::load_lora(folder / "c", read).scale() == 1.25);
  CHECK(array_equal(read(tokens), rooted(tokens)));
}

TEST_CASE("factors that do not fit are refused", "[models]") {
  TemporaryFolder const folder;
  models::save_lora(folder / "", trained(everywhere), everywhere);
  std::ifstream in(folder / "adapter_config.json");
  std::string const good((std::istreambuf_iterator<char>(in)), {});
  models::Llama m = tiny();
  auto const config = [&](std::string const& from, std::string const& to) {
    std::string text = good;
    REQUIRE(text.find(from) != text.npos);
    folder.write("adapter_config.json", text.replace(text.find(from), from.size(), to));
    std::string const r = error_of([&] { models::load_lora(folder / "", m); });
    CHECK(names_of_factors(m).empty());
    return r;
  };
  std::string const in_q =
      "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight: shape [3, 64] in the "
      "file, [5, 64] in the model; base_model.model.model.layers.0.self_attn.q_proj.lora_B";
  CHECK(has(config("\"r\": 3", "\"r\": 5"), in_q));
  std::string const fewer = config("\"q_proj\",", "");
  CHECK(has(fewer,
            "layers.0.self_attn.q_proj.lora_A.weight is not in the model; base_model.model.model.layers.0"));
  CHECK(has(config("\"q_proj\"", "\"lm_head\""), "is missing"));
  CHECK(has(config("\"q_proj\"", "\"c_attn\""), "the model has no projection that is called c_attn"));
  CHECK(has(config("\"use_dora\": false", "\"use_dora\": true"), "use_dora is not supported"));
  CHECK(has(config("\"bias\": \"none\"", "\"bias\": \"all\""), "biases that are trained"));
  CHECK(has(config("\"LORA\"", "\"IA3\""), "adapters of type IA3 are not supported"));
  CHECK(has(config("\"r\": 3", "\"r\": 3, \"rank_pattern\": {\"q_proj\": 4}"),
            "rank_pattern.q_proj is not supported"));
  CHECK(has(config("\"r\": 3,", ""), "there is no config.r"));
  CHECK(has(config("\"r\": 3", "\"r\": -3"), "lora: a rank of -3"));
  CHECK(has(error_of([&] { models::load_lora(folder / "none", m); }), "adapter_config.json"));
}

namespace {

// Factors that count, merged, taken off, trained, written and read.
template <class Load, class Run>
void check_lora(Load const& load, Run const& run, models::LoraConfig const& c, std::size_t places) {
  auto m = load();
  Array const before = run(m);
  models::add_lora(m, c, Key{1});
  CHECK(array_equal(run(m), before));
  models::watch_lora(m);
  mean(square(run(m))).backward();
  std::size_t trained = 0;
  visit_named(m, [&](std::string const& name, Array const& leaf) {
    if (!leaf.requires_grad()) return;
    bool const b = name.ends_with(".lora_B.weight");
    CHECK((b || name.ends_with(".lora_A.weight")));
    if (b) CHECK(max(abs(leaf.grad())).template item<double>() > 0);
    ++trained;
  });
  CHECK(trained == 2 * places);
  std::uint64_t i = 0;
  models::visit_projections(m, [&](std::string const&, auto& p) {
    if (!p.lora_B) return;
    p.lora_A->weight = p.lora_A->weight.detach();
    p.lora_B->weight = randn(p.lora_B->weight.shape(), fold_in(Key{2}, i++), DType::f64) * 0.1;
  });
  Array const changed = run(m);
  CHECK(largest_difference(changed, before) > 1e-3);
  TemporaryFolder const folder;
  models::save_lora(folder / "a", m, c);
  auto again = load();
  models::load_lora(folder / "a", again);
  CHECK(largest_difference(run(again), changed) < 1e-12);
  models::merge_lora(m);
  CHECK(largest_difference(run(m), changed) < 1e-12);
  models::unmerge_lora(m);
  models::drop_lora(m);
  CHECK(largest_difference(run(m), before) < 1e-12);
  std::ifstream in(folder / "a/adapter_config.json");
  std::string const said((std::istreambuf_iterator<char>(in)), {});
  CHECK(has(said, c.targets[0]));
}

}  // namespace

TEST_CASE("factors for GPT-2 and for CLIP", "[models]") {
  fs::path const gpt2 = shared("refs/hf/gpt2-tiny"), clip = shared("refs/hf/clip-text-tiny-quick_gelu");
  Array const tokens = read_safetensors(gpt2 / "refs.safetensors").array("input_ids");
  check_lora([&] { return models::load_gpt2(gpt2, DType::f64); },
             [&](models::Gpt2 const& m) { return m(tokens); },
             {.rank = 3, .alpha = 6, .targets = {"c_attn", "c_proj", "mlp.c_fc"}}, 8);
  Array const words = read_safetensors(clip / "refs.safetensors").array("input_ids");
  check_lora([&] { return models::load_clip_text(clip, DType::f64); },
             [&](models::ClipText const& m) { return m(words); },
             {.rank = 2, .alpha = 4, .targets = {"q_proj", "out_proj", "fc1"}}, 6);
  models::Gpt2 m = models::load_gpt2(gpt2);
  CHECK(error_of([&] { models::add_lora(m, {}, Key{1}); }) ==
        "lora: the model has no projection that is called q_proj, v_proj");
  // As PEFT writes it: the matrix lies the other way, and "all-linear".
  TemporaryFolder const folder;
  models::LoraConfig const all{.rank = 2, .pattern = "(?!lm_head).*"};
  models::add_lora(m, all, Key{3});
  models::save_lora(folder / "a", m, all);
  std::ifstream in(folder / "a/adapter_config.json");
  std::string said((std::istreambuf_iterator<char>(in)), {});
  CHECK(has(said, "\"fan_in_fan_out\": true"));
  said.replace(said.find("(?!lm_head).*"), 13, "all-linear");
  std::ofstream(folder / "a/adapter_config.json") << said;
  models::Gpt2 other = models::load_gpt2(gpt2);
  models::load_lora(folder / "a", other);
  CHECK(array_equal(other(tokens), m(tokens)));
}

}  // namespace tests::models_lora
