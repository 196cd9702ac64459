// SPDX-License-Identifier: BSL-1.0
// A text so far in a file: its tokens, and their keys and values, so that it goes on without being computed again.
#pragma once

#include <dfdx/io/safetensors.hpp>
#include <dfdx/io/safetensors_weights.hpp>
#include <dfdx/models/fingerprint.hpp>
#include <dfdx/models/generate.hpp>

namespace dfdx::models {

namespace detail {

// Calls f("keys.0", rows) with each part of a cache that counts.
template <class F>
void visit_rows(KvCache const& c, index_t length, F const& f) {
  auto const first = [&](Array const& all) {
    Shape s = all.shape();
    s[s.rank - 2] = length;
    return all.view(s, all.strides());
  };
  for (std::size_t i = 0; i < c.keys.size(); ++i) {
    f("keys." + std::to_string(i), first(c.keys[i]));
    f("values." + std::to_string(i), first(c.values[i]));
  }
}

}  // namespace detail

/// save_session - writes what a model has computed of a text, as safetensors: "tokens", "keys.0", "values.0", ...
///
/// Errors    "save_session: the context is empty"; those of save_safetensors
template <language_model M>
void save_session(std::filesystem::path const& path, M const& model, Context<M> const& context) {
  if (context.tokens().empty()) raise("save_session: the context is empty");
  std::map<std::string, Array> all{{"tokens", detail::token_row(context.tokens())}};
  detail::visit_rows(context.cache(), context.cache().length,
                     [&](std::string const& name, Array const& rows) {
                       all.emplace(name, dfdx::detail::moved(Device{}, rows));
                     });
  save_safetensors(path, all, {{"session_of", detail::fingerprint(model)}});
}

/// load_session - a context as save_session has written it, with room for `capacity` positions (0: the model's). What
/// comes next is, bit for bit, what would have come had it never been written.
///
/// Errors    "load_session: s.session is no session, or that of another model"; "load_session: s.session: 300 tokens,
///           there is room for 256"; "weights: s.session does not fit the model: keys.4 is missing; keys.0: shape [4,
///           10, 8] in the file, [4, 12, 8] in the model"; those of read_safetensors
template <language_model M>
Context<M> load_session(Weights const& w, M const& model, index_t capacity = 0, index_t block = 256) {
  auto const fail = [&](std::string const& why) {
    dfdx::detail::raise_file("load_session: " + w.source() + why);
  };
  Weight const *const keys = w.find("keys.0"), *const told = w.find("tokens");
  bool const ours =
      w.metadata.find("session_of") != nullptr && w.metadata.text("session_of") == detail::fingerprint(model);
  if (!ours || keys == nullptr || !keys->dtype || !(is_floating(*keys->dtype) || keys->dtype == DType::u8) ||
      told == nullptr || told->dtype != DType::i32)
    fail(" is no session, or that of another model");
  index_t const n = told->size(), room = capacity > 0 ? capacity : model.config.positions();
  if (n > room) fail(": " + std::to_string(n) + " tokens, there is room for " + std::to_string(room));
  Encoding encoding = *keys->dtype;
  if (encoding == Encoding(DType::u8)) encoding = Quant::q8_0;
  Context<M> r(model, room, encoding, block);
  std::vector<WantedWeight> wanted{{"tokens", {n}}};
  detail::visit_rows(r.cache(), n, [&](std::string const& name, Array const& rows) {
    wanted.push_back(detail::wanted_weight(name, rows));
  });
  w.check(wanted);
  detail::visit_rows(r.cache(), n, [&](std::string const& name, Array const& rows) {
    if (w.at(name).dtype != rows.dtype()) fail(": " + name + " is not of " + name_of(rows.dtype()));
    dfdx::detail::copy_values(w.array(name), rows);
  });
  Array const tokens = w.array("tokens");
  for (index_t i = 0; i < n; ++i)
    if (std::int32_t const t = tokens.data<std::int32_t>()[i]; t < 0 || t >= model.config.vocabulary)
      fail(": token " + std::to_string(t) + ", there are " + std::to_string(model.config.vocabulary));
  r.resume({tokens.data<std::int32_t>(), static_cast<std::size_t>(n)});
  return r;
}

template <language_model M>
Context<M> load_session(std::filesystem::path const& path, M const& model, index_t capacity = 0,
                        index_t block = 256) {
  return load_session(read_safetensors(path), model, capacity, block);
}

}  // namespace dfdx::models
