// SPDX-License-Identifier: BSL-1.0
// Reference results computed by outside programs: reads a folder of manifest.json and safetensors files.
#pragma once

#include <dfdx/value/array.hpp>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace refs {

using nlohmann::json;
using dfdx::Array;

inline std::vector<char> read_bytes(std::filesystem::path const& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline dfdx::DType dtype_named(std::string const& name) {
  static std::map<std::string, dfdx::DType> const names = {
      {"F32", dfdx::DType::f32}, {"F64", dfdx::DType::f64},    {"I32", dfdx::DType::i32},
      {"I64", dfdx::DType::i64}, {"BOOL", dfdx::DType::boolean}, {"U8", dfdx::DType::u8}};
  return names.at(name);
}

inline dfdx::Shape shape_of(json const& dims) {
  dfdx::Shape s;
  for (auto const& d : dims) s.push_back(d.get<dfdx::index_t>());
  return s;
}

/// Tensors - all tensors of one file.
inline std::map<std::string, Array> read_tensors(std::filesystem::path const& path) {
  std::vector<char> const bytes = read_bytes(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  json const header = json::parse(bytes.begin() + 8, bytes.begin() + 8 + static_cast<std::ptrdiff_t>(length));
  std::map<std::string, Array> r;
  for (auto const& [key, t] : header.items()) {
    if (key == "__metadata__") continue;
    Array a(dfdx::Meta{dtype_named(t["dtype"]), shape_of(t["shape"])});
    auto const begin = t["data_offsets"][0].get<std::size_t>(), end = t["data_offsets"][1].get<std::size_t>();
    if (end - begin != static_cast<std::size_t>(a.size()) * dfdx::size_of(a.dtype()))
      throw std::runtime_error(path.string() + ": " + key + " has another size than its shape");
    if (end != begin) std::memcpy(a.bytes(), bytes.data() + 8 + length + begin, end - begin);
    r.emplace(key, a);
  }
  return r;
}

/// Case - one call of an op: inputs by name, in the order of `names`; those of `diff` first.
struct Case {
  std::string id, op, dtype;
  json attrs;
  std::vector<std::string> names, diff;
  std::vector<Array> inputs;
  std::vector<Array> outputs, gout, gin, hvp_v, hvp;
  double rtol = 0, atol_out = 0;
  std::vector<double> atol_grad;

  Array const& operator[](std::string const& name) const {
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return inputs[i];
    throw std::runtime_error(id + ": no input " + name);
  }
};

/// The folder of reference results; empty if there is none.
inline std::filesystem::path folder() {
  if (char const* dir = std::getenv("DFDX_REFS")) return dir;
  std::filesystem::path const shared = DFDX_SHARED_DIR;
  return shared.empty() ? shared : shared / "refs" / "ops";
}

class Manifest {
 public:
  explicit Manifest(std::filesystem::path dir) : dir_(std::move(dir)) {
    json const all = json::parse(read_bytes(dir_ / "manifest.json"));
    if (all.at("format") != 1) throw std::runtime_error("manifest.json: format 1 required");
    for (auto const& c : all.at("cases")) {
      std::string const op = c.at("op");
      if (by_op_.find(op) == by_op_.end()) ops_.push_back(op);
      by_op_[op].push_back(c);
    }
  }

  std::vector<std::string> const& ops() const { return ops_; }
  bool has(std::string const& op) const { return by_op_.find(op) != by_op_.end(); }
  std::size_t count(std::string const& op) const { return has(op) ? by_op_.at(op).size() : 0; }

  /// The cases of an op, with their tensors.
  std::vector<Case> cases(std::string const& op) const {
    std::map<std::string, std::map<std::string, Array>> files;
    std::vector<Case> r;
    for (json const& c : by_op_.at(op)) {
      std::string const file = c.at("file");
      if (files.find(file) == files.end()) files[file] = read_tensors(dir_ / file);
      r.push_back(load(c, files[file]));
    }
    return r;
  }

 private:
  static Case load(json const& c, std::map<std::string, Array> const& tensors) {
    Case r;
    r.id = c.at("id");
    r.op = c.at("op");
    r.dtype = c.at("dtype");
    r.attrs = c.at("attrs");
    r.rtol = c.at("rtol");
    r.atol_out = c.at("atol_out");
    for (auto const& name : c.at("diff")) r.diff.push_back(name);
    r.names = r.diff;
    for (auto const& [name, unused] : c.at("inputs").items())
      if (std::find(r.diff.begin(), r.diff.end(), name) == r.diff.end()) r.names.push_back(name);
    // Shapes of inputs as the manifest has them: the files store numbers as one-element vectors.
    auto const take = [&](std::string const& key, dfdx::Shape const& shape, std::vector<Array>& to) {
      auto const found = tensors.find(r.id + key);
      if (found == tensors.end()) return false;
      Array const& a = found->second;
      if (a.size() != shape.numel()) throw std::runtime_error(r.id + key + ": another size than the manifest says");
      to.push_back(a.view(shape, dfdx::contiguous(shape)));
      return true;
    };
    auto const input_shape = [&](std::string const& name) { return shape_of(c.at("inputs").at(name).at("shape")); };
    for (auto const& name : r.names)
      if (!take("/in/" + name, input_shape(name), r.inputs)) throw std::runtime_error(r.id + ": input missing");
    for (std::size_t j = 0; j < c.at("outputs").get<std::size_t>(); ++j) {
      dfdx::Shape const shape = shape_of(c.at("output_shapes").at(j));
      if (!take("/out/" + std::to_string(j), shape, r.outputs)) throw std::runtime_error(r.id + ": output missing");
      take("/gout/" + std::to_string(j), shape, r.gout);
    }
    for (auto const& name : r.diff) {
      take("/gin/" + name, input_shape(name), r.gin);
      take("/hvp_v/" + name, input_shape(name), r.hvp_v);
      take("/hvp/" + name, input_shape(name), r.hvp);
      if (c.contains("atol_grad")) r.atol_grad.push_back(c["atol_grad"].at(name));
    }
    return r;
  }

  std::filesystem::path dir_;
  std::vector<std::string> ops_;
  std::map<std::string, std::vector<json>> by_op_;
};

}  // namespace refs
