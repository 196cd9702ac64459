// SPDX-License-Identifier: BSL-1.0
// What files say of rotary embeddings: "rope_scaling" and "rope_parameters" of config.json, keys and tensors of GGUF.
#pragma once

#include <dfdx/models/config.hpp>
#include <dfdx/models/rotary.hpp>

namespace dfdx::models::detail {

/// RopeConfig - the frequencies, and what divides them besides.
struct RopeConfig {
  RopeFrequencies rope;
  RopeDivisors divisors;
};

template <int = 0>
std::vector<double> numbers_in(Metadata const& m, std::string const& key) {
  MetaValue const* const v = m.find(key);
  std::vector<double> r;
  if (v != nullptr && v->list() != nullptr && v->list()->type == MetaType::i64) {
    for (std::int64_t x : m.list<std::int64_t>(key)) r.push_back(static_cast<double>(x));
  } else {
    auto const all = m.list<double>(key);
    r.assign(all.begin(), all.end());
  }
  return r;
}

template <int = 0>
std::vector<double> numbers_in(Weight const& w) {
  Array const all = w.array(DType::f64);
  return {all.data<double>(), all.data<double>() + all.size()};
}

// yarn of config.json at `in`: what is not said is the paper's, as transformers has it.
template <int = 0>
void read_yarn(RopeFrequencies& r, Metadata const& m, std::string const& in) {
  r.kind = RopeFrequencies::Kind::yarn;
  // 0 is taken for nothing said.
  auto const or_else = [&](char const* key, double otherwise) {
    double const x = m.number(in + key, 0);
    return x == 0 ? otherwise : x;
  };
  r.original_context = or_else("original_max_position_embeddings", r.original_context);
  r.fast = or_else("beta_fast", 32), r.slow = or_else("beta_slow", 1);
  r.whole = m.flag(in + "truncate", true);
  double const one = m.number(in + "mscale", 0), all = m.number(in + "mscale_all_dim", 0);
  r.amplitude = one != 0 && all != 0 ? RopeFrequencies::yarn_amplitude(r.factor, one) /
                                           RopeFrequencies::yarn_amplitude(r.factor, all)
                                     : RopeFrequencies::yarn_amplitude(r.factor);
  r.amplitude = m.number(in + "attention_factor", r.amplitude);
}

// longrope, whose factor is that of the two contexts if the config has both.
template <int = 0>
void read_longrope(RopeConfig& c, Metadata const& m, std::string const& in) {
  RopeFrequencies& r = c.rope;
  r.kind = RopeFrequencies::Kind::longrope;
  c.divisors = {numbers_in(m, in + "short_factor"), numbers_in(m, in + "long_factor")};
  double const now = r.original_context;
  double const before = m.number("config.original_max_position_embeddings",
                                 m.number(in + "original_max_position_embeddings", 0));
  if (before > 0) r.original_context = before, r.factor = now / before;
  else r.factor = m.number(in + "factor");
  r.amplitude =
      m.number(in + "attention_factor", RopeFrequencies::longrope_amplitude(r.factor, r.original_context));
}

/// rope_of_hugging_face - "rope_parameters" of newer files, "rope_theta" and "rope_scaling" of others, of a model of
/// `context` positions.
template <int = 0>
RopeConfig rope_of_hugging_face(Weights const& w, index_t context) {
  Metadata const& m = w.metadata;
  std::string in = "config.rope_scaling.";
  for (char const* key : {"rope_theta", "rope_type", "type"})
    if (m.find(std::string("config.rope_parameters.") + key) != nullptr) in = "config.rope_parameters.";
  RopeConfig c;
  RopeFrequencies& r = c.rope;
  r.base = m.number(in + "rope_theta", m.number("config.rope_theta", 10000));
  for (std::string const& key : {in + "partial_rotary_factor", std::string("config.partial_rotary_factor")})
    if (m.number(key, 1) != 1)
      refuse_model("llama", w, "rotary embeddings of a part of each head are not supported");
  std::string type = "default";
  for (char const* key : {"type", "rope_type"})
    if (m.find(in + key) != nullptr) type = m.text(in + key);
  if (type == "default") return c;
  r.original_context = static_cast<double>(context);
  if (type == "longrope" || type == "su") {  // "su" of the first Phi-3
    read_longrope(c, m, in);
    return c;
  }
  r.factor = m.number(in + "factor");
  if (type == "linear") r.kind = RopeFrequencies::Kind::linear;
  else if (type == "dynamic") r.kind = RopeFrequencies::Kind::dynamic;
  else if (type == "yarn") read_yarn(r, m, in);
  else if (type == "llama3") {
    r.kind = RopeFrequencies::Kind::llama3;
    r.original_context = m.number(in + "original_max_position_embeddings", r.original_context);
    r.low_factor = m.number(in + "low_freq_factor");
    r.high_factor = m.number(in + "high_freq_factor");
  } else
    refuse_model("llama", w,
                 "rotary embeddings of type " + dfdx::detail::shown_name(type) + " are not supported");
  return c;
}

/// rope_of_gguf - the keys behind `in`, "llama." for instance, and the tensors of divisors, for heads of a size.
template <int = 0>
RopeConfig rope_of_gguf(Weights const& w, std::string const& in, index_t head_size, index_t context) {
  Metadata const& m = w.metadata;
  RopeConfig c;
  RopeFrequencies& r = c.rope;
  auto const refuse = [&](std::string const& why) { refuse_model("llama", w, why); };
  r.base = m.number(in + "rope.freq_base", 10000);
  if (m.integer(in + "rope.dimension_count", head_size) != head_size)
    refuse("rotary embeddings of a part of each head are not supported");
  auto const divisors = [&](char const* name) {
    Weight const* const f = w.find(name);
    if (f == nullptr) return std::vector<double>();
    if (f->size() != head_size / 2) refuse(std::string(name) + " does not fit the heads");
    return numbers_in(*f);
  };
  std::string const of = in + "rope.scaling.", type = text_or(m, of + "type", "none");
  c.divisors.within = divisors("rope_freqs.weight");
  auto const original = [&] {
    return m.number(of + "original_context_length", static_cast<double>(context));
  };
  // Files of Phi-3 have the tensors, and not always the type.
  std::vector<double> far = divisors("rope_factors_long.weight"),
                      near = divisors("rope_factors_short.weight");
  if (far.empty() != near.empty() || (type == "longrope" && far.empty()))
    refuse("longrope without its two tensors of factors");
  if (!far.empty()) {
    if (type != "longrope" && type != "none")
      refuse("factors of longrope with rotary embeddings of type " + dfdx::detail::shown_name(type));
    r.kind = RopeFrequencies::Kind::longrope;
    r.original_context = original();
    r.factor = static_cast<double>(context) / r.original_context;
    r.amplitude =
        m.number(of + "attn_factor", RopeFrequencies::longrope_amplitude(r.factor, r.original_context));
    c.divisors = {std::move(near), std::move(far)};
  } else if (type == "linear") {
    r.kind = RopeFrequencies::Kind::linear;
    r.factor = m.number(of + "factor");
  } else if (type == "yarn") {
    r.kind = RopeFrequencies::Kind::yarn;
    r.factor = m.number(of + "factor");
    r.original_context = original();
    r.fast = m.number(of + "yarn_beta_fast", 32), r.slow = m.number(of + "yarn_beta_slow", 1);
    // There the factor is one besides the paper's.
    r.amplitude = m.number(of + "attn_factor", m.number(of + "yarn_attn_factor", 1)) *
                  RopeFrequencies::yarn_amplitude(r.factor);
  } else if (type != "none") {
    refuse("rotary embeddings of type " + dfdx::detail::shown_name(type) + " are not supported");
  }
  return c;
}

}  // namespace dfdx::models::detail
