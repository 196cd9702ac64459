// SPDX-License-Identifier: BSL-1.0
// Models against results of Hugging Face's transformers: folders of a small model each with refs.safetensors beside it.
#pragma once

#include "support.hpp"

#include <dfdx/io/open_weights.hpp>
#include <dfdx/models/generate.hpp>
#include <dfdx/tape/backward.hpp>
#include <dfdx/vocabulary/class_loss.hpp>
#include <dfdx/vocabulary/compare.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>
#include <fstream>
#include <set>

namespace tests {

using namespace dfdx;
namespace fs = std::filesystem;
using Tokens = std::vector<std::int32_t>;

inline fs::path shared(char const* below) {
  fs::path const p = fs::path(DFDX_SHARED_DIR) / below;
  if (std::string(DFDX_SHARED_DIR).empty() || !fs::exists(p)) SKIP("no " << p);
  return p;
}

inline double largest_difference(Array const& a, Array const& b) {
  REQUIRE(a.shape() == b.shape());
  return max(abs(a.to(DType::f64) - b.to(DType::f64))).item<double>();
}

inline Tokens tokens_of(Array const& a) {
  Array const row = a.to(DType::i32).contiguous();
  return Tokens(row.data<std::int32_t>(), row.data<std::int32_t>() + row.shape().numel());
}

inline bool has(std::string const& text, std::string const& part) {
  INFO(text);
  return text.find(part) != text.npos;
}

template <class Model>
Tokens greedy(Model const& m, Tokens const& prompt, index_t n, models::GenerateOptions o = {}) {
  o.tokens = n;
  o.stop = m.config.eos;
  return models::generate(m, prompt, models::Sampler({.temperature = 0}), o);
}

// The mean of -log p of the next token, as transformers computes it for labels that are the input.
inline Array loss_of(Array const& logits, Array const& tokens) {
  index_t const n = tokens.shape()[1];
  Array const next = reshape(slice(tokens, 1, 1, n), {-1});
  return cross_entropy(flatten(slice(logits, 1, 0, n - 1), 0, 1), next);
}

// The folders with refs.safetensors in them: of DFDX_HF_REFS, which may be such a folder itself, or of what is beside
// the checkout.
inline std::vector<fs::path> folders_of_references() {
  char const* const given = std::getenv("DFDX_HF_REFS");
  fs::path const all = given != nullptr ? fs::path(given) : shared("refs/hf");
  std::vector<fs::path> r;
  if (fs::exists(all / "refs.safetensors")) r.push_back(all);
  else
    for (auto const& entry : fs::directory_iterator(all))
      if (fs::exists(entry.path() / "refs.safetensors")) r.push_back(entry.path());
  std::sort(r.begin(), r.end());
  INFO("DFDX_HF_REFS or refs/hf: " << all);
  REQUIRE_FALSE(r.empty());
  return r;
}

inline std::string type_of_model(fs::path const& folder) {
  return open_weights(folder).metadata.text("config.model_type");
}

// Calls check(folder) for each folder with a model of such a type; skips where there is none.
template <class Check>
void for_models_of_types(std::set<std::string> const& types, Check const& check) {
  int models = 0;
  for (fs::path const& folder : folders_of_references()) {
    if (!types.contains(type_of_model(folder))) continue;
    DYNAMIC_SECTION(folder.filename().string()) { check(folder); }
    ++models;
  }
  if (models == 0) SKIP("no reference of a model of type " << *types.begin());
}

// How far results in f64 may be off: where transformers computes a part in f32, the references have what that rounds.
struct Within {
  double value, gradient;
};

// Logits, hidden states, loss, gradients and greedy texts of a model of language: load(dtype) makes it.
template <class Load>
void check_language_model(fs::path const& folder, Load const& load, Within within) {
  Weights const refs = read_safetensors(folder / "refs.safetensors");
  Array const ids = refs.array("input_ids");
  // Both are for numbers about 1.
  auto const off = [](Array const& x, Array const& expected) {
    double const scale = max(abs(expected.to(DType::f64))).item<double>();
    return largest_difference(x, expected) / std::max(scale, 1.0);
  };
  auto const narrow = load(DType::f32);
  Array const expected = refs.array("logits_f64");
  // By what generates texts, in blocks of 5 positions, and then one by one: where that is the same, which it
  // is not for dynamic frequencies beyond the context.
  Tokens const all = tokens_of(slice(ids, 0, 0, 1));
  bool const fits = ids.shape()[1] <= narrow.config.context;
  for (std::size_t n : {all.size(), fits ? all.size() / 2 : all.size()}) {
    models::Context context(narrow, narrow.config.positions(), DType::f32, 5);
    Array last = context.add(std::span(all).first(n));
    for (std::size_t i = n; i < all.size(); ++i) last = context.add(std::span(all).subspan(i, 1));
    CHECK(off(last, select(select(expected, 0, 0), 0, ids.shape()[1] - 1)) < 1e-5);
  }

  auto const check = [&](auto& m, Within most) {
    std::vector<Array> states;
    Array const last = m.hidden(ids, nullptr, [&](index_t, Array const& h) { states.push_back(h); });
    states.push_back(last);
    for (std::size_t i = 0; i < states.size(); ++i)
      CHECK(off(states[i], refs.array("hidden_f64/" + std::to_string(i))) < most.value);
    visit(m, [](Array& leaf) { leaf.requires_grad(true); });
    Array const logits = m(ids);
    CHECK(off(logits, expected) < most.value);
    Array const loss = loss_of(logits, ids);
    CHECK(largest_difference(loss, reshape(refs.array("loss_f64"), {})) < most.gradient);
    loss.backward();
    int compared = 0;
    visit_named(m, [&](std::string const& name, Array const& leaf) {
      INFO(name);
      Weight const* const gradient = refs.find("grads_f64/" + name);
      REQUIRE(gradient != nullptr);
      CHECK(off(leaf.grad(), gradient->array()) < most.gradient);
      ++compared;
    });
    CHECK(compared >= 3);
  };
  auto m = load(DType::f32);
  check(m, {1e-5, 1e-5});
  m = load(DType::f64);
  check(m, within);

  // The first sequence, or a prefix of it, and what greedy decoding makes of it: with what ends a text, if it came.
  Tokens text = tokens_of(refs.array("greedy"));
  std::size_t prompt = 0;
  while (prompt < text.size() && prompt < all.size() && text[prompt] == all[prompt]) ++prompt;
  REQUIRE(prompt > 0);
  index_t const more = static_cast<index_t>(text.size() - prompt);
  auto const& eos = m.config.eos;
  if (std::find(eos.begin(), eos.end(), text.back()) != eos.end() && prompt < text.size()) text.pop_back();
  auto const from = text.begin() + static_cast<std::ptrdiff_t>(prompt);
  visit(m, [](Array& leaf) { leaf.requires_grad(false); });
  CHECK(greedy(m, Tokens(text.begin(), from), more) == Tokens(from, text.end()));
}

// A folder's model with one part of its config.json changed, in another folder.
inline void copy_changed(fs::path const& from, fs::path const& to, std::string const& part,
                         std::string const& by) {
  std::ifstream in(from / "config.json");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  REQUIRE(text.find(part) != text.npos);
  std::ofstream(to / "config.json") << text.replace(text.find(part), part.size(), by);
  fs::copy_file(from / "model.safetensors", to / "model.safetensors", fs::copy_options::overwrite_existing);
}

}  // namespace tests
