// SPDX-License-Identifier: BSL-1.0
// LoRA on any model with projections (Llama and its kin, GPT-2, CLIP's encoder of texts): small factors that are
// trained in place of its matrices, in the files of PEFT.
#pragma once

#include <dfdx/io/safetensors.hpp>
#include <dfdx/io/safetensors_weights.hpp>
#include <dfdx/models/config.hpp>
#include <dfdx/models/name_pattern.hpp>
#include <dfdx/vocabulary/draw.hpp>

namespace dfdx::models {

/// LoraConfig - how large the factors are, how much they count (alpha / rank, or alpha / sqrt(rank) with
/// `root_of_rank`), and which projections have some: those whose names end in one of `targets`, or, if it is not empty,
/// match all of `pattern`, a regular expression (models/name_pattern.hpp).
struct LoraConfig {
  index_t rank = 8;
  double alpha = 16;
  std::vector<std::string> targets = {"q_proj", "v_proj"};
  std::string pattern{};
  bool root_of_rank = false;

  double scale() const {
    double const r = static_cast<double>(rank);
    return alpha / (root_of_rank ? std::sqrt(r) : r);
  }
  /// Errors    "lora: a rank of 0", "lora: an alpha that is no positive number", "lora: no targets", those of
  ///           NamePattern
  void check() const {
    if (rank < 1 || rank > 1 << 20) dfdx::detail::raise_file("lora: a rank of " + std::to_string(rank));
    if (!(alpha > 0 && std::isfinite(alpha))) raise("lora: an alpha that is no positive number");
    if (targets.empty() && pattern.empty()) raise("lora: no targets");
    static_cast<void>(detail::NamePattern(pattern));
  }
};

namespace detail {

// What the factors of a model are computed in: the dtype of its norms.
template <class Model>
DType dtype_of_norms(Model const& m) {
  for (auto const& [name, leaf] : named_leaves(m))
    if (leaf->ndim() == 1) return leaf->dtype();
  return DType::f32;
}

// Calls f(name, projection) with those that the config names.
template <class Model, class F>
void visit_targets(Model& m, LoraConfig const& c, F const& f) {
  c.check();
  std::set<std::string> unmatched(c.targets.begin(), c.targets.end());
  if (!c.pattern.empty()) unmatched = {c.pattern};
  NamePattern const pattern(c.pattern);
  visit_projections(m, [&](std::string const& name, auto& p) {
    bool hit = false;
    if (!c.pattern.empty()) {
      hit = pattern.matches(name);
      if (hit) unmatched.clear();
    } else {
      for (std::string const& t : c.targets)
        if (name == t || name.ends_with("." + t)) {
          hit = true;
          unmatched.erase(t);
        }
    }
    if (!hit) return;
    if (p.lora_A) dfdx::detail::raise_file("lora: " + name + " has factors already");
    f(name, p);
  });
  std::string wrong;
  for (std::string const& t : unmatched) wrong += (wrong.empty() ? "" : ", ") + dfdx::detail::shown_name(t);
  if (!wrong.empty()) dfdx::detail::raise_file("lora: the model has no projection that is called " + wrong);
}

inline constexpr char const* lora_prefix = "base_model.model.";

template <class Model>
void add_to_weights(Model& m, bool merged) {
  no_grad const mode;
  visit_projections(m, [&](std::string const&, auto& p) {
    if (!p.lora_A || p.lora_merged == merged) return;
    p.add_change(matmul(p.lora_B->weight, p.lora_A->weight) * (merged ? p.lora_scale : -p.lora_scale));
    p.lora_merged = merged;
  });
}

}  // namespace detail

/// add_lora - gives projections factors that change nothing yet: A is drawn from the key, uniform in +-1 / sqrt(In), B
/// is 0.
///
/// Errors    "lora: the model has no projection that is called x_proj, y_proj"; "lora: model.layers.0.self_attn.q_proj
///           has factors already"; those of LoraConfig::check. The model is then as before
template <class Model>
void add_lora(Model& model, LoraConfig const& config, Key key) {
  Model m = model;
  std::uint64_t n = 0;
  DType const dtype = detail::dtype_of_norms(m);
  detail::visit_targets(m, config, [&](std::string const&, auto& p) {
    Shape const s = p.shape();
    double const most = 1 / std::sqrt(static_cast<double>(s[1]));
    p.lora_A = Table{uniform(make_shape(config.rank, s[1]), fold_in(key, n++), -most, most, dtype)};
    p.lora_B = Table{zeros(make_shape(s[0], config.rank)).to(dtype)};
    p.lora_scale = config.scale();
    p.lora_merged = false;
  });
  model = std::move(m);
}

/// watch_lora - from now on the factors require gradients, and nothing else does: an optim::Optimizer moves them alone.
template <class Model>
void watch_lora(Model& model) {
  visit_named(model, [](std::string const& name, Array& leaf) {
    leaf.requires_grad(name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight"));
  });
}

/// merge_lora, unmerge_lora - adds the factors' products to the matrices, and takes them off again up to rounding.
/// Between these the factors stay, and are not used. drop_lora removes them, merged or not.
///
/// Math      W += scale B A
template <class Model>
void merge_lora(Model& model) {
  detail::add_to_weights(model, true);
}
template <class Model>
void unmerge_lora(Model& model) {
  detail::add_to_weights(model, false);
}
template <class Model>
void drop_lora(Model& model) {
  visit_projections(model, [](std::string const&, auto& p) {
    p.lora_A.reset();
    p.lora_B.reset();
    p.lora_merged = false;
  });
}

/// save_lora - a model's factors as a folder of PEFT: adapter_model.safetensors and adapter_config.json, which says
/// that they belong to `base`, a name or a path.
///
/// Errors    "lora: the model has no factors"; those of FileWriter
template <class Model>
void save_lora(std::filesystem::path const& folder, Model const& model, LoraConfig const& config,
               std::string const& base = {}) {
  std::map<std::string, Array> factors;
  visit_named(model, [&](std::string const& name, Array const& leaf) {
    if (name.find(".lora_") != name.npos) factors.emplace(detail::lora_prefix + name, leaf.detach());
  });
  if (factors.empty()) raise("lora: the model has no factors");
  detail::make_folder(folder, "lora");
  save_safetensors(folder / "adapter_model.safetensors", factors, {{"format", "pt"}});
  bool inputs_first = false;
  visit_projections(model, [&](std::string const&, auto const& p) { inputs_first = p.inputs_first; });
  constexpr bool speaks = requires { model.lm_head; };
  nlohmann::ordered_json j = {{"peft_type", "LORA"},
                              {"task_type", speaks ? "CAUSAL_LM" : "FEATURE_EXTRACTION"},
                              {"base_model_name_or_path", nullptr},
                              {"r", config.rank},
                              {"lora_alpha", config.alpha},
                              {"lora_dropout", 0.0},
                              {"target_modules", config.targets},
                              {"use_rslora", config.root_of_rank},
                              {"use_dora", false},
                              {"bias", "none"},
                              {"fan_in_fan_out", inputs_first},
                              {"inference_mode", true}};
  if (!base.empty()) j["base_model_name_or_path"] = base;
  if (!config.pattern.empty()) j["target_modules"] = config.pattern;
  // PEFT wants an integer where there is one.
  if (std::trunc(config.alpha) == config.alpha) j["lora_alpha"] = static_cast<std::int64_t>(config.alpha);
  detail::write_json(folder / "adapter_config.json", j, "lora");
}

/// lora_config - what adapter_config.json in a folder of PEFT says.
///
/// Errors    "lora: adapter: use_dora is not supported"; "weights: adapter: there is no config.r"; those of
///           LoraConfig::check
inline LoraConfig lora_config(Metadata const& m) {
  auto const refuse = [&](std::string const& why) {
    dfdx::detail::raise_file("lora: " + m.source() + ": " + why);
  };
  if (std::string const type = detail::text_or(m, "config.peft_type", "LORA"); type != "LORA")
    refuse("adapters of type " + dfdx::detail::shown_name(type) + " are not supported");
  // fan_in_fan_out says how a matrix lies, which the model knows better.
  for (char const* key : {"use_dora", "lora_bias"})
    if (m.flag(std::string("config.") + key, false)) refuse(std::string(key) + " is not supported");
  if (detail::text_or(m, "config.bias", "none") != "none")
    refuse("biases that are trained are not supported");
  for (auto const& [key, value] : m.entries())
    for (char const* other : {"rank_pattern.", "alpha_pattern.", "modules_to_save", "layers_to_transform",
                              "layers_pattern", "exclude_modules"})
      if (key.starts_with(std::string("config.") + other))
        refuse(dfdx::detail::shown_name(key.substr(7)) + " is not supported");
  LoraConfig c;
  c.rank = m.integer("config.r");
  c.alpha = m.number("config.lora_alpha", 8);
  c.root_of_rank = m.flag("config.use_rslora", false);
  c.targets.clear();
  if (MetaValue const* const v = m.find("config.target_modules"); v != nullptr && v->text() != nullptr)
    c.pattern = m.text("config.target_modules");
  else {
    auto const names = m.list<std::string>("config.target_modules");
    c.targets.assign(names.begin(), names.end());
  }
  if (c.pattern == "all-linear") c.pattern = "(?!lm_head).*";  // all but the head
  c.check();
  return c;
}

inline LoraConfig lora_config(std::filesystem::path const& folder) {
  Metadata m(folder.string());
  dfdx::detail::add_config(m, "config",
                           dfdx::detail::read_json_file(folder / "adapter_config.json", "lora", 8));
  return lora_config(m);
}

/// load_lora - gives a model the factors in a folder of PEFT, or in a file with adapter_config.json beside it, in the
/// dtype of its norms. All that is missing, of another shape or too much is told at once, and the model is then as
/// before.
///
/// Errors    "weights: adapter/adapter_model.safetensors does not fit the model: base_model.model.model.layers.0.
///           self_attn.q_proj.lora_A.weight is missing; ..."; those of lora_config and add_lora
template <class Model>
void load_lora(LoraConfig const& c, Weights const& w, Model& model) {
  Model m = model;
  std::vector<WantedWeight> wanted;
  detail::visit_targets(m, c, [&](std::string const& name, auto& p) {
    Shape const s = p.shape();
    std::string const whole = detail::lora_prefix + name;
    wanted.push_back({whole + ".lora_A.weight", {c.rank, s[1]}});
    wanted.push_back({whole + ".lora_B.weight", {s[0], c.rank}});
  });
  w.check(wanted);
  DType const dtype = detail::dtype_of_norms(m);
  detail::visit_targets(m, c, [&](std::string const& name, auto& p) {
    std::string const whole = detail::lora_prefix + name;
    p.lora_A = Table{w.array(whole + ".lora_A.weight", dtype)};
    p.lora_B = Table{w.array(whole + ".lora_B.weight", dtype)};
    p.lora_scale = c.scale();
    p.lora_merged = false;
  });
  model = std::move(m);
}
template <class Model>
LoraConfig load_lora(std::filesystem::path const& path, Model& model) {
  bool const file = std::filesystem::is_regular_file(path);
  LoraConfig const c = lora_config(file ? path.parent_path() : path);
  load_lora(c, read_safetensors(file ? path : path / "adapter_model.safetensors"), model);
  return c;
}

}  // namespace dfdx::models
