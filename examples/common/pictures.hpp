// SPDX-License-Identifier: BSL-1.0
// Pictures and their labels from IDX files, as MNIST and Fashion-MNIST are kept.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/io/idx.hpp>

#include <string>

namespace common {

inline constexpr std::size_t side = 28, classes = 10, batch = 64;

using Pictures = dfdx::Tensor<std::uint8_t, dfdx::dyn, side, side>;
using Labels = dfdx::Tensor<std::int32_t, dfdx::dyn>;

struct Examples {
  Pictures pictures;
  Labels labels;
  dfdx::index_t size() const { return labels.size(); }
};

/// Examples from FOLDER/PART-images-idx3-ubyte and FOLDER/PART-labels-idx1-ubyte, with .gz at the end or without; at
/// most `limit` of them, 0 for all.
///
/// Errors    "data: x has pictures [60000, 32, 32], not [N, 28, 28] of bytes"; "data: x has 60000 pictures, y 10000
///           labels"; "data: x: 63 pictures; 64 are needed"; those of read_idx and read_idx_labels
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
  dfdx::index_t const n = limit > 0 ? std::min(limit, all.size()) : all.size();
  if (auto const least = static_cast<dfdx::index_t>(batch); n < least)
    throw dfdx::error("data: " + pictures + ": " + std::to_string(n) + " pictures; " + std::to_string(least) +
                      " are needed");
  Examples r{Pictures::uninitialized(dfdx::make_shape(n, d, d)), Labels::uninitialized(dfdx::make_shape(n))};
  std::copy_n(raw.data<std::uint8_t>(), n * d * d, r.pictures.data());
  std::copy_n(all.data(), n, r.labels.data());
  return r;
}

}  // namespace common
