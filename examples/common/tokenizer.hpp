// SPDX-License-Identifier: BSL-1.0
// Texts and the tokenizers of published models, for programs that run them.
#pragma once

#include <dfdx/core/shape.hpp>
#include <dfdx/io/file.hpp>
#include <dfdx/text.hpp>

#include <filesystem>
#include <string>
#include <string_view>

namespace common {

inline std::string read_text(std::string const& path) {
  auto const bytes = dfdx::read_file(path, "text");
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// Where a tokenizer is: the file or folder given, or, for an empty name, the model's own: its folder, its .gguf, or a
/// tokenizer.bin beside it.
///
/// Errors    "m.bin has no tokenizer, and there is no tokenizer.bin: give --tokenizer FILE"
inline std::filesystem::path tokenizer_path(std::string const& given, std::string const& model) {
  if (!given.empty()) return given;
  std::filesystem::path const path = model;
  if (std::filesystem::is_directory(path) || path.extension() == ".gguf") return path;
  std::filesystem::path const beside = path.parent_path() / "tokenizer.bin";
  if (!std::filesystem::exists(beside))
    throw dfdx::error(model + " has no tokenizer, and there is no " + beside.string() +
                      ": give --tokenizer FILE");
  return beside;
}

/// The tokenizer of tokenizer_path. The model knows `vocabulary` tokens.
///
/// Errors    "the tokenizer has 32000 tokens, the model 512"; those of tokenizer_path and text::load_tokenizer
inline dfdx::text::Tokenizer load_tokenizer(std::string const& given, std::string const& model,
                                            dfdx::index_t vocabulary) {
  dfdx::text::LoadOptions how;
  how.count = static_cast<std::size_t>(vocabulary);
  dfdx::text::Tokenizer r = dfdx::text::load_tokenizer(tokenizer_path(given, model), how);
  if (static_cast<dfdx::index_t>(r.size()) > vocabulary)
    throw dfdx::error("the tokenizer has " + std::to_string(r.size()) + " tokens, the model " +
                      std::to_string(vocabulary));
  return r;
}

/// Copies a tokenizer's files into a model's folder, by the names that text::load_tokenizer looks for there. False if
/// they are no files of their own, but a part of a .gguf.
inline bool copy_tokenizer(std::filesystem::path const& from, std::filesystem::path const& folder) {
  namespace fs = std::filesystem;
  auto const copy = [&](fs::path const& file, fs::path const& name) {
    std::error_code same;
    if (fs::exists(file) && !fs::equivalent(file, folder / name, same))
      fs::copy_file(file, folder / name, fs::copy_options::overwrite_existing);
  };
  fs::path const in = fs::is_directory(from) ? from : from.parent_path();
  fs::path const name = from.filename(), end = from.extension();
  bool const pair = name == "encoder.json" || name == "vocab.json";
  if (fs::is_directory(from) || pair) {
    for (char const* part : {"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.txt",
                             "tokenizer.bin", "encoder.json", "vocab.bpe", "vocab.json", "merges.txt"})
      if (!pair || std::string_view(part).find("tokenizer") == std::string_view::npos) copy(in / part, part);
    return true;
  }
  if (end == ".gguf") return false;
  copy(from, name == "vocab.txt" ? "vocab.txt"
             : end == ".json"    ? "tokenizer.json"
             : end == ".bin"     ? "tokenizer.bin"
                                 : "tokenizer.model");
  return true;
}

}  // namespace common
