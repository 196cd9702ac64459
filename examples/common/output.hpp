// SPDX-License-Identifier: BSL-1.0
// The folder a run writes to, and its model.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/io/safetensors.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace common {

/// Before training, so that an hour's work is not lost to a folder or file that cannot be written.
inline void prepare_file(std::string const& file) { dfdx::FileWriter(file, "output"); }
inline void prepare_folder(std::string const& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw dfdx::error("output: cannot make the folder " + folder + ": " + failed.message());
  prepare_file(folder + "/model.safetensors");
}

/// What main does: f, and of what it throws one sentence on standard error. The exit status.
template <class F>
int guarded(char const* name, F const& f) {
  try {
    f();
    return 0;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", name, e.what());
    return 1;
  }
}

template <class Model>
bool equal(Model const& a, Model const& b) {
  std::vector<dfdx::Array> other;
  dfdx::visit(b, [&](dfdx::Array const& leaf) { other.push_back(leaf); });
  bool same = true;
  std::size_t i = 0;
  dfdx::visit(a, [&](dfdx::Array const& leaf) { same = same && array_equal(leaf, other[i++]); });
  return same;
}

/// Writes a model and reads it back.
template <class Model>
void save(std::string const& file, Model const& model, std::map<std::string, std::string> const& facts) {
  dfdx::save_safetensors(file, model, facts);
  Model again;
  dfdx::load_safetensors(file, again);
  if (!equal(model, again))
    throw dfdx::error("output: " + file + " does not read back as the model it was written from");
}

/// What f, which trains a model, returns; if it cannot go on, keep() saves the model that it leaves and says where.
template <class Keep, class F>
auto or_keep(Keep const& keep, F const& f) {
  try {
    return f();
  } catch (dfdx::error const& e) {
    std::string place;
    try {
      place = "the model is in " + keep();
    } catch (std::exception const& why) {
      place = std::string("the model is lost: ") + why.what();
    }
    throw dfdx::error(std::string(e.what()) + "; " + place);
  }
}

/// The same for a model that `save` writes. Where a step is watched (dfdx::watch), it is the model before the step that
/// made NaN.
///
/// Errors    those of f, and "; the model is in x/last.safetensors"
template <class Model, class F>
auto or_keep(Model const& model, std::string const& folder, std::map<std::string, std::string> const& facts,
             F const& f) {
  auto const keep = [&] {
    std::string const file = folder + "/last.safetensors";
    save(file, model, facts);
    return file;
  };
  return or_keep(keep, f);
}

}  // namespace common
