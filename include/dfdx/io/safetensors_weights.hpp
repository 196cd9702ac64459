// SPDX-License-Identifier: BSL-1.0
// Safetensors files as Weights, mapped: one, or the shards of a Hugging Face folder. Loading one into a model whose
// tensors have its names: safetensors.hpp. Not part of <dfdx/io.hpp>.
#pragma once

#include <algorithm>

#include <dfdx/io/json.hpp>
#include <dfdx/io/llama_names.hpp>
#include <dfdx/io/mapped_file.hpp>
#include <dfdx/io/safetensors_file.hpp>
#include <dfdx/io/weights.hpp>

namespace dfdx {

namespace detail {

inline constexpr std::size_t max_json_file = 100'000'000;

inline nlohmann::json read_json_file(std::filesystem::path const& path, char const* op, int deepest) {
  auto const file = MappedFile::open(path, op);
  auto const fail = [&](std::string const& why) {
    raise_file(std::string(op) + ": " + path.string() + " " + why);
  };
  if (file->bytes().size() > max_json_file) fail("is longer than 100 MB");
  auto [value, fault] = parse_json(file->bytes(), deepest);
  if (fault != nullptr) fail(fault);
  if (!value.is_object()) fail("is not a JSON object");
  return std::move(value);
}

inline void add_safetensors(Weights& to, std::filesystem::path const& path) {
  auto const file = MappedFile::open(path, "safetensors");
  auto const parsed = SafetensorsFile::from(file->bytes(), path.string());
  for (SafetensorsEntry const& e : parsed.entries()) {
    Weight w;
    w.name = e.name;
    w.file = path.string();
    w.format = e.dtype_name;
    w.dtype = e.dtype;
    w.shape = e.shape;
    w.bytes = e.bytes;
    to.add(std::move(w), "safetensors");
  }
  for (auto const& [key, text] : parsed.metadata()) to.metadata.set(key, text);
  to.keep(file);
}

// Numbers, texts and lists of one of these; what is in objects by names with a dot. Nulls and the rest are left out.
inline void add_config(Metadata& to, std::string const& name, nlohmann::json const& value) {
  if (value.is_object())
    for (auto const& [key, part] : value.items()) add_config(to, name + "." + key, part);
  else if (value.is_boolean()) to.set(name, value.get<bool>());
  else if (value.is_number_unsigned()) to.set(name, value.get<std::uint64_t>());
  else if (value.is_number_integer()) to.set(name, value.get<std::int64_t>());
  else if (value.is_number()) to.set(name, value.get<double>());
  else if (value.is_string()) to.set(name, value.get<std::string>());
  else if (value.is_array() && !value.empty()) {
    auto const all = [&](auto const& is) { return std::all_of(value.begin(), value.end(), is); };
    if (all([](auto const& x) { return x.is_number_integer(); }))
      to.set(name, MetaList{value.get<std::vector<std::int64_t>>()});
    else if (all([](auto const& x) { return x.is_number(); }))
      to.set(name, MetaList{value.get<std::vector<double>>()});
    else if (all([](auto const& x) { return x.is_string(); }))
      to.set(name, MetaList{value.get<std::vector<std::string>>()});
  }
}

}  // namespace detail

/// read_safetensors - the weights in a safetensors file, which is mapped.
///
/// Errors    those of SafetensorsFile
inline Weights read_safetensors(std::filesystem::path const& path) {
  Weights r(path.string());
  r.format = "safetensors";
  detail::add_safetensors(r, path);
  r.rope = rope_of_names(r);
  return r;
}

namespace detail {

// The weights in files that an index names; `add(weights, path)` adds those of one.
inline Weights read_index(std::filesystem::path const& path, char const* op,
                          void (*add)(Weights&, std::filesystem::path const&)) {
  auto const index = read_json_file(path, op, 2);
  auto const fail = [&](std::string const& why) {
    raise_file(std::string(op) + ": " + path.string() + " " + why);
  };
  auto const map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) fail("has no weight_map");
  std::map<std::string, std::string> wanted;  // the file of each
  std::set<std::string> files;
  for (auto const& [name, file] : map->items()) {
    if (!file.is_string()) fail("gives no file for " + shown_name(name));
    auto const text = file.get<std::string>();
    // A name of a file beside the index, and nothing that leads elsewhere.
    if (text.empty() || text == "." || text == ".." ||
        text.find_first_of(std::string("/\\\0", 3)) != text.npos)
      fail("gives " + shown_name(name) + " the file " + shown_name(text) +
           ", which is no name of a file beside it");
    wanted.emplace(name, text);
    files.insert(text);
  }
  Weights r(path.string());
  r.format = op;
  for (std::string const& file : files) add(r, path.parent_path() / file);
  std::string wrong;
  auto const report = [&](std::string const& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
  for (auto const& [name, file] : wanted) {
    Weight const* const w = r.find(name);
    if (w == nullptr || std::filesystem::path(w->file).filename() != file)
      report(shown_name(name) + " is not in " + file);
  }
  for (Weight const& w : r)
    if (!wanted.contains(w.name))
      report(shown_name(w.name) + " is in " + std::filesystem::path(w.file).filename().string() +
             " and not in the index");
  if (!wrong.empty()) fail("does not fit its files: " + wrong);
  r.rope = rope_of_names(r);
  return r;
}

inline void add_folder_config(Weights& to, std::filesystem::path const& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder / "config.json", ignored))
    add_config(to.metadata, "config", read_json_file(folder / "config.json", "safetensors", 8));
}

}  // namespace detail

/// read_safetensors_index - the weights in the safetensors files that an index (model.safetensors.index.json) names,
/// which lie beside it and are mapped.
///
/// Errors    "safetensors: m/model.safetensors.index.json does not fit its files: a.weight is not in
///           model-1.safetensors; b.weight is in model-2.safetensors and not in the index". All mismatches in one;
///           those of SafetensorsFile
inline Weights read_safetensors_index(std::filesystem::path const& path) {
  return detail::read_index(path, "safetensors", detail::add_safetensors);
}

/// read_hugging_face - the weights in a folder of Hugging Face: model.safetensors or the shards of its index, and what
/// its config.json says as metadata "config.hidden_size", "config.rope_scaling.factor".
///
/// Errors    "safetensors: m has neither model.safetensors nor model.safetensors.index.json"; those of the above
inline Weights read_hugging_face(std::filesystem::path const& folder) {
  auto const index = folder / "model.safetensors.index.json", one = folder / "model.safetensors";
  std::error_code ignored;
  bool const sharded = std::filesystem::exists(index, ignored);
  if (!sharded && !std::filesystem::exists(one, ignored))
    detail::raise_file("safetensors: " + folder.string() +
                       " has neither model.safetensors nor model.safetensors.index.json");
  Weights r = sharded ? read_safetensors_index(index) : read_safetensors(one);
  detail::add_folder_config(r, folder);
  return r;
}

}  // namespace dfdx
