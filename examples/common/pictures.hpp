// SPDX-License-Identifier: BSL-1.0
// Pictures and their labels from IDX files, as MNIST and Fashion-MNIST are kept.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/io/idx.hpp>

#include <string>

namespace common {

inline constexpr std::size_t side = 28, classes = 10, batch = 64;

template <std::size_t Side>
using PicturesOf = dfdx::Tensor<std::uint8_t, dfdx::dyn, Side, Side>;
using Pictures = PicturesOf<side>;
using Labels = dfdx::Tensor<std::int32_t, dfdx::dyn>;

template <std::size_t Side>
struct ExamplesOf {
  PicturesOf<Side> pictures;
  Labels labels;
  dfdx::index_t size() const { return labels.size(); }

  /// The first `limit` of them, or all for 0.
  ///
  /// Errors    "data: x: 63 pictures; 64 are needed"
  ExamplesOf first(dfdx::index_t limit, std::string const& file) const {
    dfdx::index_t const n = limit > 0 ? std::min(limit, size()) : size();
    if (auto const least = static_cast<dfdx::index_t>(batch); n < least)
      throw dfdx::error("data: " + file + ": " + std::to_string(n) + " pictures; " + std::to_string(least) +
                        " are needed");
    ExamplesOf r{PicturesOf<Side>::uninitialized(dfdx::make_shape(n, Side, Side)),
                 Labels::uninitialized(dfdx::make_shape(n))};
    std::copy_n(pictures.data(), r.pictures.size(), r.pictures.data());
    std::copy_n(labels.data(), n, r.labels.data());
    return r;
  }
};
using Examples = ExamplesOf<side>;

/// Brightness 0 .. 1 as numbers, [B, Side, Side].
constexpr auto brightness = [](auto const& pictures) { return dfdx::cast<float>(pictures) / 255.0; };

/// Examples from FOLDER/PART-images-idx3-ubyte and FOLDER/PART-labels-idx1-ubyte, with .gz at the end or without; at
/// most `limit` of them, 0 for all.
///
/// Errors    "data: x has pictures [60000, 32, 32], not [N, 28, 28] of bytes"; "data: x has 60000 pictures, y 10000
///           labels"; those of Examples::first, read_idx and read_idx_labels
inline Examples read_examples(std::string const& folder, std::string const& part, dfdx::index_t limit) {
  auto const file = [&](char const* name) {
    std::string const plain = folder + "/" + part + name;
    return std::filesystem::exists(plain) ? plain : plain + ".gz";
  };
  std::string const pictures = file("-images-idx3-ubyte"), labels = file("-labels-idx1-ubyte");
  dfdx::Array const raw = dfdx::data::read_idx(pictures);
  auto const d = static_cast<dfdx::index_t>(side);
  if (raw.dtype() != dfdx::DType::u8 || raw.ndim() != 3 || raw.shape()[1] != d || raw.shape()[2] != d) {
    auto const got = dfdx::make_text(raw.dtype(), " ", raw.shape());
    throw dfdx::error("data: " + pictures + " has " + std::string(got.data(), got.size()) +
                      ", not pictures u8 [N, 28, 28]");
  }
  Labels const all = dfdx::data::read_idx_labels(labels, static_cast<int>(classes));
  if (raw.shape()[0] != all.size())
    throw dfdx::error("data: " + pictures + " has " + std::to_string(raw.shape()[0]) + " pictures, " +
                      labels + " " + std::to_string(all.size()) + " labels");
  return Examples{Pictures(raw), all}.first(limit, pictures);
}

}  // namespace common
