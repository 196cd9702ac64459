// SPDX-License-Identifier: BSL-1.0
// open_weights: the weights in a file or folder, whatever its format. Not part of <dfdx/io.hpp>: it needs nlohmann-json
// and zlib (zlib1g-dev; link with -lz, in CMake ZLIB::ZLIB).
#pragma once

#include <dfdx/io/gguf.hpp>
#include <dfdx/io/llama2c.hpp>
#include <dfdx/io/npz.hpp>
#include <dfdx/io/pt.hpp>
#include <dfdx/io/safetensors_weights.hpp>

namespace dfdx {

/// npz_weights - the arrays in an .npz file as weights, by name. They are read, for they may be packed.
///
/// Errors    those of read_npz
inline Weights npz_weights(std::filesystem::path const& path) {
  Weights r(path.string());
  r.format = "npz";
  for (auto const& [name, value] : data::read_npz(path)) r.add(name, value);
  r.rope = rope_of_names(r);
  return r;
}

/// read_pt_index - the weights in the files of PyTorch that an index (pytorch_model.bin.index.json) names, which lie
/// beside it.
///
/// Errors    "pt: m/pytorch_model.bin.index.json does not fit its files: a.weight is not in pytorch_model-1.bin", as
///           read_safetensors_index; those of read_pt
inline Weights read_pt_index(std::filesystem::path const& path) {
  return detail::read_index(path, "pt", [](Weights& to, std::filesystem::path const& file) {
    auto const shard = std::make_shared<Weights const>(read_pt(file));
    to.format = shard->format;
    for (Weight const& w : *shard) to.add(w, "pt");
    to.keep(shard);
  });
}

namespace detail {

// A folder of Hugging Face whose weights are PyTorch's: as one file, or several and their index; none if it is not.
inline std::optional<Weights> read_pt_folder(std::filesystem::path const& folder) {
  std::error_code ignored;
  auto const there = [&](char const* name) { return std::filesystem::exists(folder / name, ignored); };
  if (there("model.safetensors") || there("model.safetensors.index.json")) return {};
  std::optional<Weights> r;
  if (there("pytorch_model.bin.index.json")) r = read_pt_index(folder / "pytorch_model.bin.index.json");
  else if (there("pytorch_model.bin")) r = read_pt(folder / "pytorch_model.bin");
  if (r) add_folder_config(*r, folder);
  return r;
}

enum class WeightsFormat : std::uint8_t { unknown, safetensors, index, gguf, llama2c, npz, pt };

// By what is in the file; its name decides between zip files, and for the formats that begin with a number.
inline WeightsFormat format_of_weights(std::span<std::byte const> bytes, std::filesystem::path const& path) {
  using enum WeightsFormat;
  std::string_view const head(reinterpret_cast<char const*>(bytes.data()),
                              std::min<std::size_t>(bytes.size(), 16));
  auto const begins = [&](std::string_view s) { return head.starts_with(s); };
  std::string const end = path.extension().string();
  if (begins("GGUF") || begins("lmgg") || begins("fmgg") || begins("tjgg")) return gguf;
  if (begins("24ka") || begins("ak42")) return llama2c;  // of either order
  if (begins("PK")) return end == ".npz" ? npz : pt;
  if (end == ".safetensors") return safetensors;
  if (end == ".json") return index;
  if (end == ".pt" || end == ".pth" || begins("\x80\x02")) return pt;
  // A header's length, far below 2^40, and the header itself.
  if (head.size() >= 9 && head[8] == '{' && head.substr(5, 3) == std::string_view("\0\0\0", 3))
    return safetensors;
  if (end == ".bin") return llama2c;
  if (end == ".gguf") return gguf;
  if (end == ".npz") return npz;
  return unknown;
}

}  // namespace detail

/// open_weights - the weights in a file, by what it begins with and where that leaves open what it is by the end of its
/// name: safetensors, an index of safetensors (.json) or of PyTorch's files (.bin.index.json), GGUF, llama2.c (.bin),
/// .npz, .pt and .pth; or in a folder of Hugging Face, with weights in safetensors or in PyTorch's files. What can be
/// mapped is mapped.
///
/// Errors    "weights: m.txt is of no format that is known: safetensors, GGUF, llama2.c, npz and PyTorch are"; those of
///           the readers
inline Weights open_weights(std::filesystem::path const& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    std::optional<Weights> pt = detail::read_pt_folder(path);
    return pt ? *pt : read_hugging_face(path);
  }
  auto const file = MappedFile::open(path, "weights");
  using enum detail::WeightsFormat;
  switch (detail::format_of_weights(file->bytes(), path)) {
    case safetensors: return read_safetensors(path);
    case index:
      return path.filename().string().ends_with(".bin.index.json") ? read_pt_index(path)
                                                                   : read_safetensors_index(path);
    case gguf: return read_gguf(path);
    case llama2c: return read_llama2c(path);
    case npz: return npz_weights(path);
    case pt: return read_pt(path);
    default:
      detail::raise_file("weights: " + path.string() +
                         " is of no format that is known: safetensors, GGUF, llama2.c, npz and PyTorch are");
  }
}

}  // namespace dfdx
