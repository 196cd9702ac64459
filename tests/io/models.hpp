// SPDX-License-Identifier: BSL-1.0
// What the tests of files save and load.
#pragma once

#include <dfdx/io/safetensors.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/create.hpp>

#include <array>
#include <string>

namespace tests {

using namespace dfdx;

struct Model {
  nn::Linear<3, 4> fc1;
  std::array<nn::Linear<4, 4, false>, 2> layers;
  Tensor<std::int64_t, 2> steps;
  Tensor<bool, 3> mask;
  Tensor<float16> scale;
  DFDX_FIELDS(fc1, layers, steps, mask, scale)
};

inline Model model(std::uint64_t seed) {
  auto m = init<Model>(seed);
  m.steps = Tensor<std::int64_t, 2>::from({5, -(std::int64_t{1} << 60)});
  m.mask = Tensor<bool, 3>::from({true, false, true});
  m.scale = Tensor<float16>(float16(1.5f));
  return m;
}

template <class M>
bool equal(M const& a, M const& b) {
  std::vector<Array> of_a, of_b;
  visit(a, [&](Array const& x) { of_a.push_back(x); });
  visit(b, [&](Array const& x) { of_b.push_back(x); });
  bool r = true;
  for (std::size_t i = 0; i < of_a.size(); ++i) r = r && array_equal(of_a[i], of_b[i]);
  return r;
}

/// A file of that header and so many bytes of data (0, 1, 2, ...).
inline std::string file_of(std::string const& header, std::size_t data) {
  std::string r(8, '\0');
  std::uint64_t const length = header.size();
  std::memcpy(r.data(), &length, 8);
  r += header;
  for (std::size_t i = 0; i < data; ++i) r.push_back(static_cast<char>(i));
  return r;
}

inline std::span<std::byte const> bytes_of(std::string const& s) {
  return {reinterpret_cast<std::byte const*>(s.data()), s.size()};
}

}  // namespace tests
