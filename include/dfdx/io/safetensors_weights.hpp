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
  if (!fault.empty()) fail(fault);
  if (!value.is_object()) fail("is not a JSON object");
  return std::move(value);
}

inline void add_safetensors(Weights& to, std::span<std::byte const> bytes, std::string const& file) {
  auto const parsed = SafetensorsFile::from(bytes, file);
  for (SafetensorsEntry const& e : parsed.entries()) {
    Weight w;
    w.name = e.name;
    w.file = file;
    w.format = e.dtype_name;
    w.dtype = e.dtype;
    w.shape = e.shape;
    w.bytes = e.bytes;
    to.add(std::move(w), "safetensors");
  }
  for (auto const& [key, text] : parsed.metadata()) to.metadata.set(key, text);
}
inline void add_safetensors(Weights& to, std::filesystem::path const& path) {
  auto const file = MappedFile::open(path, "safetensors");
  add_safetensors(to, file->bytes(), path.string());
  to.keep(file);
}

// A number or a truth.
inline std::optional<MetaValue> number_in(nlohmann::json const& value) {
  using json = nlohmann::json;
  if (auto const* const x = value.get_ptr<json::boolean_t const*>()) return MetaValue(*x);
  if (auto const* const x = value.get_ptr<json::number_unsigned_t const*>())
    return MetaValue(std::uint64_t{*x});
  if (auto const* const x = value.get_ptr<json::number_integer_t const*>())
    return MetaValue(std::int64_t{*x});
  if (auto const* const x = value.get_ptr<json::number_float_t const*>()) return MetaValue(*x);
  return {};
}

// A list of integers, of numbers or of texts; nothing if it is another, or empty.
inline std::optional<MetaList> list_in(nlohmann::json const& value) {
  std::vector<std::int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (nlohmann::json const& x : value) {
    if (auto const* const text = x.get_ptr<std::string const*>()) {
      texts.push_back(*text);
    } else if (x.is_number()) {
      MetaValue const v = *number_in(x);
      numbers.push_back(*v.number());
      if (x.is_number_integer()) integers.push_back(v.as<std::int64_t>().value_or(0));
      if (auto const u = v.as<std::uint64_t>()) integers.back() = static_cast<std::int64_t>(*u);
    }
  }
  if (value.empty()) return {};
  if (integers.size() == value.size()) return MetaList(integers);
  if (numbers.size() == value.size()) return MetaList(numbers);
  if (texts.size() == value.size()) return MetaList(std::move(texts));
  return {};
}

// Numbers, texts and lists of one of these; what is in objects by names with a dot. Nulls are said to be there; the
// rest is left out.
inline void add_config(Metadata& to, std::string const& name, nlohmann::json const& value) {
  if (value.is_object()) {
    for (auto i = value.begin(); i != value.end(); ++i) add_config(to, name + "." + i.key(), *i);
  } else if (value.is_null()) {
    to.set_null(name);
  } else if (auto const* const text = value.get_ptr<std::string const*>()) {
    to.set(name, *text);
  } else if (value.is_array()) {
    if (auto list = list_in(value)) to.set(name, std::move(*list));
  } else if (auto const number = number_in(value)) {
    to.set(name, *number);
  }
}

}  // namespace detail

/// safetensors_from - the weights in the bytes of a safetensors file, which must outlive them.
inline Weights safetensors_from(std::span<std::byte const> bytes, std::string const& name = "memory") {
  Weights r(name);
  r.format = "safetensors";
  detail::add_safetensors(r, bytes, name);
  r.rope = rope_of_names(r);
  return r;
}

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
  for (auto i = map->begin(); i != map->end(); ++i) {
    std::string const& name = i.key();
    if (!i->is_string()) fail("gives no file for " + shown_name(name));
    auto const& text = i->get_ref<std::string const&>();
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
  return detail::read_index(path, "safetensors", [](Weights& to, std::filesystem::path const& file) {
    detail::add_safetensors(to, file);
  });
}

/// read_hugging_face - the weights in a folder of Hugging Face: model.safetensors or the shards of its index, in the
/// parts of models that draw diffusion_pytorch_model.safetensors (of 16 bits where there are no others), and what its
/// config.json says as metadata "config.hidden_size", "config.rope_scaling.factor".
///
/// Errors    "safetensors: m has neither model.safetensors nor model.safetensors.index.json"; those of the above
inline Weights read_hugging_face(std::filesystem::path const& folder) {
  std::error_code ignored;
  for (char const* name : {"model.safetensors", "diffusion_pytorch_model.safetensors",
                           "model.fp16.safetensors", "diffusion_pytorch_model.fp16.safetensors"}) {
    auto const one = folder / name, index = folder / (std::string(name) + ".index.json");
    bool const sharded = std::filesystem::exists(index, ignored);
    if (!sharded && !std::filesystem::exists(one, ignored)) continue;
    Weights r = sharded ? read_safetensors_index(index) : read_safetensors(one);
    detail::add_folder_config(r, folder);
    return r;
  }
  detail::raise_file("safetensors: " + folder.string() +
                     " has neither model.safetensors nor model.safetensors.index.json");
}

}  // namespace dfdx
