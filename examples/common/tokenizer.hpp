// SPDX-License-Identifier: BSL-1.0
// Texts and the tokenizers of published models, for programs that run them.
#pragma once

#include <dfdx/core/shape.hpp>
#include <dfdx/io/file.hpp>
#include <dfdx/text.hpp>

#include <filesystem>
#include <string>

namespace common {

inline std::string read_text(std::string const& path) {
  auto const bytes = dfdx::read_file(path, "text");
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// The tokenizer in a file or folder, or, for an empty name, the model's own: in its folder, in its .gguf, or in a
/// tokenizer.bin beside it. The model knows `vocabulary` tokens.
///
/// Errors    "m.bin has no tokenizer, and there is no tokenizer.bin: give --tokenizer FILE"; "the tokenizer has 32000
///           tokens, the model 512"; those of text::load_tokenizer
inline dfdx::text::Tokenizer load_tokenizer(std::string const& given, std::string const& model,
                                            dfdx::index_t vocabulary) {
  namespace text = dfdx::text;
  text::LoadOptions how;
  how.count = static_cast<std::size_t>(vocabulary);
  auto const load = [&] {
    if (!given.empty()) return text::load_tokenizer(given, how);
    std::filesystem::path const path = model;
    if (std::filesystem::is_directory(path) || path.extension() == ".gguf")
      return text::load_tokenizer(path, how);
    std::filesystem::path const beside = path.parent_path() / "tokenizer.bin";
    if (!std::filesystem::exists(beside))
      throw dfdx::error(model + " has no tokenizer, and there is no " + beside.string() +
                        ": give --tokenizer FILE");
    return text::load_tokenizer(beside, how);
  };
  text::Tokenizer r = load();
  if (static_cast<dfdx::index_t>(r.size()) > vocabulary)
    throw dfdx::error("the tokenizer has " + std::to_string(r.size()) + " tokens, the model " +
                      std::to_string(vocabulary));
  return r;
}

}  // namespace common
