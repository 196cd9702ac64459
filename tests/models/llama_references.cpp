// SPDX-License-Identifier: BSL-1.0
// Why results in f64 of the stored Llamas are as far from those of transformers as they are. In models of f64, too,
// transformers compute norms and the tables of rotary embeddings in f32. Here the parts of this library make the model
// twice: with its own norms and tables, which is the model, and with theirs, rounding for rounding, which agrees with
// what is stored to the last bits of f64: logits, hidden states, loss and all gradients.
#include "hf.hpp"
#include "worse.hpp"

#include <dfdx/models/llama_load.hpp>
#include <dfdx/vocabulary/custom_vjp.hpp>

#include <cmath>

namespace tests::models_llama_references {

using namespace tests;

namespace {

// Sums of 64 numbers, the last axis, in the order of PyTorch's on AVX2: four sums of 8 lanes each, those four, then the
// lanes.
template <class X>
X sum_in_their_order(X const& x) {
  X const parts = unflatten(x, -1, {2, 4, 8}), fours = select(parts, -3, 0) + select(parts, -3, 1);
  X lanes = select(fours, -2, 0);
  for (index_t i = 1; i < 4; ++i) lanes = lanes + select(fours, -2, i);
  X sum = select(lanes, -1, 0);
  for (index_t i = 1; i < 8; ++i) sum = sum + select(lanes, -1, i);
  return unsqueeze(sum, -1);
}
template <class X>
X their_inverse_root(X const& x) {
  return 1.0f / sqrt(sum_in_their_order<X>(x * x) / 64.0f + 1e-6f);
}

// x / sqrt(mean(x^2) + 1e-6), and its gradient by the same steps as theirs, in f32.
constexpr auto their_norm = custom_vjp(
    [](auto const& wide) {
      auto const x = cast<float>(wide);
      return cast<double>(x * their_inverse_root(x));
    },
    [](auto const& ct, auto const&, auto const& wide) {
      auto const x = cast<float>(wide), g = cast<float>(ct), by = their_inverse_root(x);
      using X = std::remove_cvref_t<decltype(x)>;
      X const of_mean = -0.5f * sum_in_their_order<X>(g * x) * (by * by * by) / 64.0f;
      return cast<double>(g * by + of_mean * (2.0f * x));
    });

// 1 / base^(2 i / D), and what llama3 makes of it, each step rounded to f32.
std::vector<double> their_frequencies(models::LlamaConfig const& c) {
  std::vector<double> r;
  for (index_t i = 0; i < c.head_size; i += 2) {
    float const exponent = static_cast<float>(i) / static_cast<float>(c.head_size);
    float f = 1 / static_cast<float>(std::pow(c.rope.base, static_cast<double>(exponent)));
    if (c.rope.kind == models::RopeFrequencies::Kind::llama3) {
      auto const context = static_cast<float>(c.rope.original_context);
      auto const low = static_cast<float>(c.rope.low_factor), high = static_cast<float>(c.rope.high_factor);
      float const length = static_cast<float>(2 * std::numbers::pi) / f;
      float const divided = f / static_cast<float>(c.rope.factor);
      if (length > context / low) {
        f = divided;
      } else if (length >= context / high) {
        float const kept = (context / length - low) / (high - low);
        float const others = (1 - kept) * f / static_cast<float>(c.rope.factor), whole = kept * f;
        f = others + whole;
      }
    }
    r.push_back(static_cast<double>(f));
  }
  return r;
}

// PyTorch's vectors have sines and cosines that are not always the nearest float: by position those of 8 pairs that
// are the next float above (+) or below (-), cosines first.
struct Stored {
  char const* folder;
  std::vector<std::string_view> off;
};
std::vector<Stored> const all_stored = {
    {"llama-tiny",
     {"................", "...+++-.........", "..---.+.........", "..++...+........", ".-+....-..+.....",
      "-.++...++.......", ".....+.+........", "..-.--.+........", ".-...-++........", "......-.........",
      ".....++++.......", "................", "+..-+....-+.....", "..-+..+.+.......", "+......-........",
      ".-....-+-.......", "..+.+--+-......."}},
    {"llama3-rope-tiny",
     {"................", ".-..-.-.........", "................", ".+..-...........", "...+.--.........",
      "-...+...+.......", ".+.......+......", "...+.-..........", "...+............", ".-..............",
      "....-...+.......", "..--............", "+..+............", "........+-......", "+.....-.........",
      ".....-..-.......", "..+-....-......."}}};

models::Angles their_angles(models::LlamaConfig const& c, std::vector<std::string_view> const& off) {
  auto const n = static_cast<index_t>(off.size());
  models::Angles r(their_frequencies(c), 0, n, DType::f64);
  std::size_t const pairs = static_cast<std::size_t>(c.head_size / 2);
  for (std::size_t t = 0; t < off.size(); ++t)
    for (std::size_t i = 0; i < 2 * pairs; ++i) {
      double& x = (i < pairs ? r.cos : r.sin).data<double>()[t * pairs + i % pairs];
      float const to = off[t][i] == '+' ? HUGE_VALF : off[t][i] == '-' ? -HUGE_VALF : static_cast<float>(x);
      x = static_cast<double>(std::nextafter(static_cast<float>(x), to));
    }
  return r;
}

struct Results {
  std::vector<Array> states;  // what each layer reads, and what goes into the head
  Array logits, loss;
  std::map<std::string, Array> gradients;
};

Results learnt(models::Llama const& m, std::vector<Array> states, Array const& logits, Array const& ids) {
  Results r{std::move(states), logits, loss_of(logits, ids), {}};
  r.loss.backward();
  visit_named(m,
              [&](std::string const& name, Array const& leaf) { r.gradients[name] = leaf.grad().clone(); });
  visit(m, [](Array const& leaf) { leaf.zero_grad(); });
  return r;
}

// The model made of the library's parts, but for a norm and tables that are given.
template <class Norm>
Results made_with(models::Llama const& m, Norm const& norm, models::Angles const& angles, Array const& ids) {
  std::vector<Array> states;
  auto const see = [&](Array const& q, Array const& k, Array const& v) {
    return scaled_dot_product_attention(rotate(q, angles), rotate(k, angles), v, {.causal = true});
  };
  Array h = m.model.embed_tokens(ids);
  for (auto const& block : m.model.layers) {
    states.push_back(h);
    h = h + block.self_attn(m.config, norm(h, block.input_layernorm.weight), see);
    h = h + block.mlp(norm(h, block.post_attention_layernorm.weight));
  }
  states.push_back(norm(h, m.model.norm.weight));
  return learnt(m, states, m.head(states.back()), ids);
}

// The largest difference of anything.
double apart(Results const& a, Results const& b) {
  REQUIRE((a.states.size() == b.states.size() && a.gradients.size() == b.gradients.size()));
  double r = tests::worse(largest_difference(a.logits, b.logits), largest_difference(a.loss, b.loss));
  for (std::size_t i = 0; i < a.states.size(); ++i)
    r = tests::worse(r, largest_difference(a.states[i], b.states[i]));
  for (auto const& [name, g] : a.gradients) r = tests::worse(r, largest_difference(g, b.gradients.at(name)));
  return r;
}

}  // namespace

TEST_CASE("with the f32 of transformers the stored Llamas agree to 1e-10", "[models]") {
  for (Stored const& s : all_stored) {
    INFO(s.folder);
    fs::path const folder = shared("refs/hf") / s.folder;
    Weights const refs = read_safetensors(folder / "refs.safetensors");
    Array const ids = refs.array("input_ids");
    models::Llama m = models::load_llama(folder, DType::f64);
    REQUIRE((m.config.norm_eps == 1e-6 && m.config.width == 64));
    visit(m, [](Array& leaf) { leaf.requires_grad(true); });

    Results stored{{}, refs.array("logits_f64"), reshape(refs.array("loss_f64"), {}), {}};
    for (int i = 0; i < 3; ++i) stored.states.push_back(refs.array("hidden_f64/" + std::to_string(i)));
    visit_named(m, [&](std::string const& name, Array const&) {
      stored.gradients[name] = refs.array("grads_f64/" + name);
    });

    std::vector<Array> states;
    Array const last = m.hidden(ids, nullptr, [&](index_t, Array const& h) { states.push_back(h); });
    states.push_back(last);
    Results const model = learnt(m, states, m.head(last), ids);
    index_t const n = ids.shape()[1];
    auto const own_norm = [](Array const& x, Array const& w) { return rms_norm(x, w, 1e-6); };
    auto const theirs = [](Array const& x, Array const& w) { return w * their_norm(x); };
    models::Angles const own_angles(m.config.frequencies(n), 0, n, DType::f64),
        angles = their_angles(m.config, s.off);

    // The same parts are the model itself, ...
    CHECK(apart(made_with(m, own_norm, own_angles, ids), model) < 1e-13);
    // ... and with both of what they round they have the results that are stored, with neither alone.
    CHECK(apart(made_with(m, theirs, angles, ids), stored) < 1e-13);
    CHECK(apart(made_with(m, own_norm, angles, ids), stored) > 1e-8);
    CHECK(apart(made_with(m, theirs, own_angles, ids), stored) > 1e-8);
  }
}

}  // namespace tests::models_llama_references
