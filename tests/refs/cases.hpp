// SPDX-License-Identifier: BSL-1.0
// Reference results computed by outside programs: reads a folder of manifest.json and safetensors files.
#pragma once

#include <dfdx/io/safetensors_file.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace refs {

using dfdx::Array;
using nlohmann::json;

inline dfdx::Shape shape_of(json const& dims) {
  dfdx::Shape s;
  for (auto const& d : dims) s.push_back(d.get<dfdx::index_t>());
  return s;
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
    std::ifstream in(dir_ / "manifest.json");
    if (!in) throw std::runtime_error("cannot read " + (dir_ / "manifest.json").string());
    json const all = json::parse(in);
    if (all.at("format") != 1) throw std::runtime_error("manifest.json: format 1 required");
    for (auto const& c : all.at("cases")) {
      std::string const op = c.at("op");
      if (by_op_.find(op) == by_op_.end()) ops_.push_back(op);
      by_op_[op].push_back(c);
    }
  }

  std::vector<std::string> const& ops() const { return ops_; }
  bool has(std::string const& op) const { return by_op_.find(op) != by_op_.end(); }
  int total() const {
    std::size_t n = 0;
    for (auto const& [op, cases] : by_op_) n += cases.size();
    return static_cast<int>(n);
  }
  std::size_t count(std::string const& op) const { return has(op) ? by_op_.at(op).size() : 0; }

  /// The cases of an op, with their tensors.
  std::vector<Case> cases(std::string const& op) const {
    std::map<std::string, std::map<std::string, Array>> files;
    std::vector<Case> r;
    for (json const& c : by_op_.at(op)) {
      std::string const file = c.at("file");
      if (files.find(file) == files.end()) files[file] = dfdx::SafetensorsFile::open(dir_ / file).arrays();
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
      if (a.size() != shape.numel())
        throw std::runtime_error(r.id + key + ": another size than the manifest says");
      to.push_back(a.view(shape, dfdx::contiguous(shape)));
      return true;
    };
    auto const input_shape = [&](std::string const& name) {
      return shape_of(c.at("inputs").at(name).at("shape"));
    };
    for (auto const& name : r.names)
      if (!take("/in/" + name, input_shape(name), r.inputs))
        throw std::runtime_error(r.id + ": input missing");
    for (std::size_t j = 0; j < c.at("outputs").get<std::size_t>(); ++j) {
      dfdx::Shape const shape = shape_of(c.at("output_shapes").at(j));
      if (!take("/out/" + std::to_string(j), shape, r.outputs))
        throw std::runtime_error(r.id + ": output missing");
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
