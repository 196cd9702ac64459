// SPDX-License-Identifier: BSL-1.0
// load_tokenizer: a tokenizer of whatever file or folder is given; it looks at the content to see what it is.
#pragma once

#include <fstream>
#include <ios>

#include <dfdx/io/file.hpp>
#include <dfdx/io/gguf.hpp>
#include <dfdx/text/gguf_vocabulary.hpp>
#include <dfdx/text/hugging_face.hpp>
#include <dfdx/text/llama2c.hpp>
#include <dfdx/text/sentencepiece.hpp>
#include <dfdx/text/tokenizer.hpp>

namespace dfdx::text {

/// LoadOptions - what some files leave open.
struct LoadOptions {
  std::optional<Pattern> pattern = {};      // byte-level: instead of the file's; tiktoken: if unknown by size
  std::vector<SpecialToken> specials = {};  // tiktoken: its control tokens
  std::size_t count = 0;                    // llama2.c: how many tokens the model has, 0 for all in the file
};

namespace detail {

inline std::string read_text(std::filesystem::path const& path) {
  constexpr std::uintmax_t most = std::uintmax_t{1} << 30;
  std::error_code ignored;
  std::uintmax_t const size = std::filesystem::file_size(path, ignored);
  if (!ignored && size > most)
    fail(path.string(), "it has " + std::to_string(size) + " bytes, more than 1 GiB");
  auto const bytes = read_file(path, "tokenizer");
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

inline bool is_file(std::filesystem::path const& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

inline std::string read_if_there(std::filesystem::path const& path) {
  return is_file(path) ? read_text(path) : "";
}

// encoder.json and vocab.bpe, or vocab.json and merges.txt, given one of them or neither.
inline TokenizerParts load_pair(std::filesystem::path const& folder) {
  for (auto const& [vocabulary, merges] :
       {std::pair{"encoder.json", "vocab.bpe"}, std::pair{"vocab.json", "merges.txt"}})
    if (is_file(folder / vocabulary) && is_file(folder / merges))
      return parse_gpt2(read_text(folder / vocabulary), read_text(folder / merges),
                        (folder / vocabulary).string(), (folder / merges).string());
  fail(folder.string(),
       "a vocabulary needs its merges: encoder.json and vocab.bpe, or vocab.json and merges.txt");
}

inline TokenizerParts load_json(std::filesystem::path const& path, std::string const& text) {
  // tokenizer.json begins with a version; the vocabulary alone is an object of numbers.
  std::string const file = path.filename().string();
  if (file == "encoder.json" || file == "vocab.json") return load_pair(path.parent_path());
  auto const config = path.parent_path() / "tokenizer_config.json";
  return parse_tokenizer_json(text, path.string(), read_if_there(config), config.string());
}

inline TokenizerParts load_wordpiece(std::filesystem::path const& path, std::string const& text) {
  auto const config = path.parent_path() / "tokenizer_config.json";
  bool lower = true;
  if (std::string const found = read_if_there(config); !found.empty()) {
    json const all = parse_json(found, config.string());
    lower = JsonView(all, config.string(), "the file").flag("do_lower_case", true);
  }
  return parse_wordpiece(text, path.string(), lower);
}

inline bool looks_like_tiktoken(std::string_view text) {
  std::string_view const line = text.substr(0, text.find('\n'));
  std::size_t const blank = line.find(' ');
  std::string bytes;
  return blank != std::string_view::npos && blank > 0 && blank % 4 == 0 &&
         line.substr(blank + 1).starts_with('0') && from_base64(line.substr(0, blank), bytes);
}

// Before it is read: those files have a model besides.
inline bool is_gguf(std::filesystem::path const& path) {
  char start[4] = {};
  std::ifstream(path, std::ios::binary).read(start, 4);
  return std::string_view(start, 4) == "GGUF";
}

inline TokenizerParts load_file(std::filesystem::path const& path, LoadOptions const& o) {
  if (is_gguf(path)) return parse_gguf(gguf_vocabulary(read_gguf(path).metadata));
  std::string const text = read_text(path), name = path.string();
  std::string_view const start = std::string_view(text).substr(0, 4);
  if (text.empty()) fail(name, "it is empty");
  if (start.starts_with("\x1F\x8B")) fail(name, "it is packed by gzip: unpack it first");
  std::size_t const first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return load_json(path, text);
  std::string_view const line = std::string_view(text).substr(0, text.find('\n'));
  if (line.find("bpe_simple_vocab") != std::string_view::npos) return parse_clip(text, name);
  if (line.starts_with("#version") || path.filename() == "merges.txt" || path.filename() == "vocab.bpe")
    return load_pair(path.parent_path());
  if (path.extension() == ".tiktoken" || looks_like_tiktoken(text))
    return parse_tiktoken(text, name, o.pattern, o.specials);
  if (path.extension() == ".txt") return load_wordpiece(path, text);
  // A number of four bytes below 2^16; a protobuf begins with a piece that has a length.
  if (text.size() >= 4 && text[2] == 0 && text[3] == 0) return parse_llama2c(text, name, o.count);
  return parse_sentencepiece(text, name);
}

inline TokenizerParts load_folder(std::filesystem::path const& folder, LoadOptions const& o) {
  for (char const* name : {"tokenizer.json", "tokenizer.model"})
    if (is_file(folder / name)) return load_file(folder / name, o);
  for (char const* name : {"encoder.json", "vocab.json"})
    if (is_file(folder / name)) return load_pair(folder);
  for (char const* name : {"vocab.txt", "tokenizer.bin"})
    if (is_file(folder / name)) return load_file(folder / name, o);
  fail(folder.string(),
       "there is none of tokenizer.json, tokenizer.model, encoder.json, vocab.json, vocab.txt, tokenizer.bin "
       "in it");
}

}  // namespace detail

/// load_tokenizer - the tokenizer of a file, or of a folder of a model: tokenizer.json, tokenizer.model (SentencePiece,
/// or Llama 3's), encoder.json with vocab.bpe, vocab.json with merges.txt, .tiktoken, CLIP's list of merges, vocab.txt,
/// llama2.c's tokenizer.bin, a GGUF file.
///
/// Errors    "tokenizer: <path>: ..." and what is wrong with it; "tokenizer: cannot read <path>: No such file or
///           directory". Nothing is returned then
inline Tokenizer load_tokenizer(std::filesystem::path const& path, LoadOptions const& options = {}) {
  std::error_code ignored;
  TokenizerParts parts = std::filesystem::is_directory(path, ignored) ? detail::load_folder(path, options)
                                                                      : detail::load_file(path, options);
  if (options.pattern && parts.model == TokenizerModel::byte_bpe) detail::split_by(parts, *options.pattern);
  return Tokenizer(std::move(parts));
}

/// load_chat_template - the template for conversations (Jinja) that a model has: a folder's chat_template.jinja, or
/// what its tokenizer_config.json says; the key of a GGUF file. Empty if there is none.
///
/// Errors    "tokenizer: m/tokenizer_config.json: ..." if that is no JSON; those of read_gguf
inline std::string load_chat_template(std::filesystem::path const& path) {
  if (detail::is_file(path)) {
    if (!detail::is_gguf(path)) return {};
    Weights const files = read_gguf(path);
    MetaValue const* const v = files.metadata.find("tokenizer.chat_template");
    return v != nullptr && v->text() != nullptr ? *v->text() : std::string();
  }
  std::filesystem::path const config = path / "tokenizer_config.json";
  std::string const own = detail::read_if_there(path / "chat_template.jinja");
  std::string const text = own.empty() ? detail::read_if_there(config) : "";
  if (text.empty()) return own;
  detail::json const all = detail::parse_json(text, config.string());
  auto const found = all.find("chat_template");
  if (found == all.end()) return {};
  if (found->is_string()) return found->get<std::string>();
  // Of several the one that is called default.
  for (detail::json const& one : *found) {
    bool const named = one.is_object() && one.contains("name") && one.contains("template");
    if (named && one["name"] == "default" && one["template"].is_string())
      return one["template"].get<std::string>();
  }
  return {};
}

}  // namespace dfdx::text
