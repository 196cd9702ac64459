// SPDX-License-Identifier: BSL-1.0
// What reading the configs of published models, and making models of their shapes, has in common.
#pragma once

#include <algorithm>
#include <limits>
#include <optional>

#include <nlohmann/json.hpp>

#include <dfdx/io/file.hpp>
#include <dfdx/io/weights.hpp>
#include <dfdx/models/parts.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/vocabulary/create.hpp>

namespace dfdx::models::detail {

// "llama: m.gguf: models of type gemma are not supported", with the name of the family.
[[noreturn]] inline void refuse_model(char const* family, Weights const& w, std::string const& why) {
  dfdx::detail::raise_file(std::string(family) + ": " + w.source() + ": " + why);
}

// "llama: layers: 0". The product of two sizes, three times, is a number too.
inline void check_size(char const* family, char const* what, index_t n) {
  if (n <= 0 || n > index_t{1} << 30)
    dfdx::detail::raise_file(std::string(family) + ": " + what + ": " + std::to_string(n));
}

inline void check_eps(char const* family, double eps) {
  if (!(eps > 0 && eps < 1)) raise(family, ": the norms have an epsilon that is not between 0 and 1");
}

// What all transformers have, of the config of one with as many heads of keys as of queries.
template <class Config>
void check_sizes(char const* family, Config const& c) {
  check_size(family, "vocabulary", c.vocabulary);
  check_size(family, "width", c.width);
  check_size(family, "hidden width", c.hidden);
  check_size(family, "layers", c.layers);
  check_size(family, "heads", c.heads);
  check_size(family, "context", c.context);
  if (c.width % c.heads != 0)
    raise(family, ": a width of ", c.width, " is not divided by ", c.heads, " heads");
  check_eps(family, c.norm_eps);
}

// Before a model takes memory for its layers: each has a tensor at least.
inline void check_layers(char const* family, Weights const& w, index_t layers) {
  if (static_cast<std::size_t>(layers) > w.size())
    refuse_model(family, w, std::to_string(layers) + " layers, and " + std::to_string(w.size()) + " tensors");
}

// "weights: m: config.eos_token_id: 5000000000 is no token". -1, also as 32 bits without a sign, is none.
inline std::int32_t token_of(Metadata const& m, std::string const& key, std::int64_t t) {
  if (t == 0xFFFFFFFF) return -1;
  if (t < -1 || t > std::numeric_limits<std::int32_t>::max())
    dfdx::detail::raise_file("weights: " + m.source() + ": " + key + ": " + std::to_string(t) +
                             " is no token");
  return static_cast<std::int32_t>(t);
}

// One number or a list of them.
inline std::vector<std::int32_t> token_list(Metadata const& m, std::string const& key) {
  MetaValue const* const v = m.find(key);
  if (v == nullptr) return {};
  std::vector<std::int32_t> r;
  if (v->list() != nullptr)
    for (std::int64_t t : m.list<std::int64_t>(key)) r.push_back(token_of(m, key, t));
  else r.push_back(token_of(m, key, m.integer(key)));
  return r;
}

inline std::string text_or(Metadata const& m, std::string const& key, char const* otherwise) {
  return m.find(key) != nullptr ? m.text(key) : otherwise;
}

inline Activation activation_in(char const* family, Weights const& w, std::string const& key,
                                char const* otherwise) {
  std::string const name = text_or(w.metadata, key, otherwise);
  std::optional<Activation> const r = activation_of_name(name);
  if (!r)
    refuse_model(family, w, "an activation " + dfdx::detail::shown_name(name) + ", which is not supported");
  return *r;
}

// A shape without memory: all elements are one.
inline Array outline(Shape const& s) {
  Strides none = s;
  for (int i = 0; i < s.rank; ++i) none[i] = 0;
  return Array::number(0.0f).view(s, none);
}
inline LayerNorm outline_of_norm(index_t n) { return {outline(make_shape(n)), outline(make_shape(n))}; }

// The leaves of a model and their names. Reading, filling and telling models apart go through this list, for each visit
// of a tree is a set of functions of its own.
template <tree M>
  requires(!std::is_const_v<M>)
std::vector<std::pair<std::string, Array*>> named_leaves(M& model) {
  std::vector<std::pair<std::string, Array*>> r;
  visit_named(model, [&](std::string const& name, Array& leaf) { r.emplace_back(name, &leaf); });
  return r;
}
template <tree M>
std::vector<std::pair<std::string, Array const*>> named_leaves(M const& model) {
  auto const leaves = named_leaves(const_cast<M&>(model));
  return {leaves.begin(), leaves.end()};
}

inline WantedWeight wanted_weight(std::string const& name, Array const& leaf) {
  return {name, std::vector<index_t>(leaf.shape().dims, leaf.shape().dims + leaf.shape().rank)};
}

// Fills a model of outlines whose names are those of the files; `needless` may be there besides, and matrices may lie
// the other way.
template <tree M, class Turned>
void fill(M& model, Weights const& w, DType dtype, std::vector<WantedWeight> const& needless,
          Turned const& turned) {
  std::vector<WantedWeight> wanted = needless;
  auto const leaves = named_leaves(model);
  for (auto const& [name, leaf] : leaves) {
    wanted.push_back(wanted_weight(name, *leaf));
    if (turned(name)) std::reverse(wanted.back().shape.begin(), wanted.back().shape.end());
  }
  w.check(wanted);
  for (auto const& [name, leaf] : leaves) {
    *leaf = w.array(name, dtype);
    if (!turned(name)) continue;
    Array const there = *leaf;
    index_t const rows = there.shape()[0], columns = there.shape()[1];
    *leaf = Array(Meta{dtype, make_shape(columns, rows)});
    copy_elements(there.view(make_shape(columns, rows), make_shape(1, columns)).operand(), leaf->operand());
  }
}
template <tree M>
void fill(M& model, Weights const& w, DType dtype, std::vector<WantedWeight> const& needless) {
  fill(model, w, dtype, needless, [](std::string const&) { return false; });
}

inline void write_json(std::filesystem::path const& path, nlohmann::ordered_json const& value,
                       char const* op) {
  std::string const text = value.dump(2) + "\n";
  FileWriter out(path, op);
  out.write(text.data(), text.size());
  out.finish();
}
inline void make_folder(std::filesystem::path const& folder, char const* op) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    dfdx::detail::raise_file(std::string(op) + ": cannot make the folder " + folder.string() + ": " +
                             failed.message());
}

}  // namespace dfdx::models::detail
