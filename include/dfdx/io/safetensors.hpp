// SPDX-License-Identifier: BSL-1.0
// Models as safetensors files: save_safetensors and load_safetensors, for any tree of tensors. A tensor's name is
// its path, "fc1.weight"; of a stacked tree each part has its own, "blocks.0.weight".
#pragma once

#include <set>

#include <dfdx/core/utf8.hpp>
#include <dfdx/io/safetensors_file.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/value/walk.hpp>
#include <dfdx/vocabulary/to_device.hpp>

namespace dfdx {

namespace detail {

struct NamedArray {
  std::string name;
  Array value;
};

inline char const* safetensors_name(DType d) {
  constexpr char const* names[dtype_count] = {"F32", "F64", "F16", "BF16", "I32", "I64", "U8", "I8", "BOOL"};
  return names[static_cast<int>(d)];
}

inline std::string text_of(Shape const& s) {
  Text const t = make_text(s);
  return std::string(t.data(), t.size());
}

inline void write_safetensors(std::filesystem::path const& path, std::vector<NamedArray> tensors,
                              std::map<std::string, std::string> const& metadata,
                              char const* op = "save_safetensors") {
  // Wide elements first, so that every tensor is aligned to its element; then by name.
  std::sort(tensors.begin(), tensors.end(), [](NamedArray const& a, NamedArray const& b) {
    std::size_t const x = size_of(a.value.dtype()), y = size_of(b.value.dtype());
    return x != y ? x > y : a.name < b.name;
  });
  std::map<std::string, std::string>
      header;  // written here: a general writer of JSON is a second of compile time
  auto const refuse = [&](std::string const& why) { raise_file(std::string(op) + ": " + why); };
  auto const as_json = [&](std::string const& x) {
    if (!is_utf8(x)) refuse("a name or the metadata is not UTF-8");
    return json_text(x);
  };
  if (!metadata.empty()) {
    std::string& all = header["__metadata__"];
    for (auto const& [key, value] : metadata) {
      all.append(all.empty() ? "{" : ",").append(as_json(key)).append(":").append(as_json(value));
    }
    all += "}";
  }
  std::uint64_t end = 0;
  for (NamedArray const& t : tensors) {
    if (t.name == "__metadata__") refuse("the name __metadata__ is taken by the format");
    if (header.contains(t.name)) refuse("the name " + t.name + " is given twice");
    if (t.value.bytes() == nullptr) refuse(t.name + " holds no memory");
    std::uint64_t const begin = end;
    end += static_cast<std::uint64_t>(t.value.size()) * size_of(t.value.dtype());
    std::string shape;
    for (int i = 0; i < t.value.ndim(); ++i)  // (g++ 12 warns of a sum of "," and a string)
      shape.append(i > 0 ? "," : "").append(std::to_string(t.value.shape()[i]));
    header[t.name] = "{\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) +
                     "],\"dtype\":\"" + safetensors_name(t.value.dtype()) + "\",\"shape\":[" + shape + "]}";
  }
  std::string text = "{";
  for (auto const& [name, value] : header)
    text.append(text.size() > 1 ? "," : "").append(as_json(name)).append(":").append(value);
  text += "}";
  text.append((8 - text.size() % 8) % 8, ' ');

  FileWriter out(path, op);
  std::uint64_t const length = text.size();
  out.write(&length, 8);
  out.write(text.data(), text.size());
  for (NamedArray const& t : tensors) {
    Array a = t.value;
    if (!a.device().is_cpu()) {
      a = moved_to(Device{}, a.detach());
    } else if (!a.contiguous_memory()) {
      a = Array(t.value.meta());
      copy_elements(t.value.operand(), a.operand());
    }
    out.write(a.bytes(), static_cast<std::size_t>(a.size()) * size_of(a.dtype()));
  }
  out.finish();
}

// Why an array of this type (dims may be dyn, an untyped Array may be anything while empty) cannot hold the tensor;
// empty if it can.
template <class Leaf>
std::string misfit(Leaf const& leaf, SafetensorsEntry const& e, std::string const& owner) {
  bool const open = !typed<Leaf> && leaf.empty();
  if (!e.dtype) return "dtype " + e.dtype_name + " in the file is not supported";
  if (!open && leaf.dtype() != *e.dtype)
    return std::string("dtype ") + e.dtype_name + " in the file, " + safetensors_name(leaf.dtype()) + " in " +
           owner;
  if (e.shape.size() > static_cast<std::size_t>(max_rank)) return "its rank in the file is not supported";
  Shape const want = [&] {
    if constexpr (typed<Leaf>) return Leaf::static_shape;
    else return leaf.shape();
  }();
  Shape const got = e.dims();
  bool same = open || want.rank == got.rank;
  for (int i = 0; same && !open && i < want.rank; ++i) same = want[i] == extent::unknown || want[i] == got[i];
  if (!same) return "shape " + text_of(got) + " in the file, " + text_of(want) + " in " + owner;
  return {};
}

// Whether it is PyTorch's count of the batches that a BatchNorm of the model has seen. It is for averages without a
// momentum, which ours are not; PyTorch does without it where it is missing.
inline bool counts_batches_of(std::set<std::string> const& model, std::string const& name) {
  std::string const ending = "num_batches_tracked";
  if (!name.ends_with(ending)) return false;
  std::string const path = name.substr(0, name.size() - ending.size());
  return (path.empty() || path.back() == '.') && model.contains(path + "running_mean");
}

// Whether each element has a place of its own, as a view made by expand does not.
inline bool writable(Array const& a) {
  for (int i = 0; i < a.ndim(); ++i)
    if (a.strides()[i] == 0 && a.shape()[i] > 1) return false;
  return a.bytes() != nullptr;
}

// Numbers go where the leaf has its own, so that views of it follow; else it gets this memory.
template <class Leaf>
void take_over(Leaf& leaf, Array value) {
  bool const in_place = writable(leaf) && leaf.shape() == value.shape();
  if (!leaf.device().is_cpu()) {
    auto const bytes = static_cast<std::size_t>(value.size()) * size_of(value.dtype());
    if (in_place && leaf.contiguous_memory())
      return device_memory->copy(leaf.bytes(), leaf.device(), value.bytes(), Device{}, bytes);
    value = moved_to(leaf.device(), value);
  } else if (in_place) {
    return copy_elements(value.operand(), leaf.operand());
  }
  if constexpr (typed<Leaf>) leaf = Leaf(typename Leaf::Unchecked{}, std::move(value));
  else leaf = std::move(value);
}

}  // namespace detail

/// save_safetensors - writes all tensors of a model. The file appears whole or not at all; one that was there
/// before stays until then.
///
/// Errors    "save_safetensors: cannot write out/m.safetensors: No such file or directory";
///           "save_safetensors: fc1.weight holds no memory"
template <tree M>
void save_safetensors(std::filesystem::path const& path, M const& model,
                      std::map<std::string, std::string> const& metadata = {}) {
  std::vector<detail::NamedArray> tensors;
  visit_state(model, [&](std::string const& name, Array const& leaf) { tensors.push_back({name, leaf}); });
  detail::write_safetensors(path, std::move(tensors), metadata);
}
inline void save_safetensors(std::filesystem::path const& path, std::map<std::string, Array> const& tensors,
                             std::map<std::string, std::string> const& metadata = {}) {
  std::vector<detail::NamedArray> list;
  for (auto const& [name, value] : tensors) list.push_back({name, value});
  detail::write_safetensors(path, std::move(list), metadata);
}

/// load_safetensors - fills a model from a file whose tensors have its names, shapes and dtypes, no more and no
/// fewer; but for bn.num_batches_tracked, which PyTorch writes beside bn.running_mean, and which is passed over. A
/// tensor that has memory is written in place, so that views of it follow; one without gets memory. Returns the file's
/// metadata.
///
/// Errors    "load_safetensors: m.safetensors does not fit the model: fc1.bias is missing; fc2.weight: shape [3, 5] in
///           the file, [3, 4] in the model; old.scale is not in the model". All mismatches in one error, and then, or
///           when the file is damaged, the model is as before.
template <tree M>
std::map<std::string, std::string> load_safetensors(SafetensorsFile const& file, M& model,
                                                    std::string const& name_of_file) {
  std::string wrong;
  auto const report = [&](std::string const& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
  std::set<std::string> wanted;
  visit_state(std::as_const(model), [&](std::string const& name, auto const& leaf) {
    wanted.insert(name);
    SafetensorsEntry const* e = file.find(name);
    if (e == nullptr) return report(name + " is missing");
    std::string const why = detail::misfit(leaf, *e, "the model");
    if (!why.empty()) report(name + ": " + why);
  });
  for (SafetensorsEntry const& e : file.entries())
    if (!wanted.contains(e.name) && !detail::counts_batches_of(wanted, e.name))
      report(e.name + " is not in the model");
  if (!wrong.empty())
    detail::raise_file("load_safetensors: " + name_of_file + " does not fit the model: " + wrong);

  // All memory first: from the first write on, nothing can fail but a device.
  std::vector<Array> values;
  visit_state(model,
              [&](std::string const& name, auto const&) { values.push_back(file.find(name)->array()); });
  std::size_t i = 0;
  visit_state(model,
              [&](std::string const&, auto& leaf) { detail::take_over(leaf, std::move(values[i++])); });
  return file.metadata();
}
template <tree M>
std::map<std::string, std::string> load_safetensors(std::filesystem::path const& path, M& model) {
  return load_safetensors(SafetensorsFile::open(path), model, path.string());
}

}  // namespace dfdx
