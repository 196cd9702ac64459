// SPDX-License-Identifier: BSL-1.0
// What tells models apart, so that what was computed with one is not taken for another's.
#pragma once

#include <dfdx/models/config.hpp>
#include <dfdx/models/stored.hpp>

namespace dfdx::models::detail {

// A hash of all numbers of a model's norms and biases, and of some of every matrix. Those are few, for a file that is
// mapped is read where it is touched.
class Fingerprint {
 public:
  void add(Array const& given) {
    Array const a = dfdx::detail::here(given);
    index_t const count = a.ndim() == 1 ? a.size() : std::min(a.size(), few);
    for (index_t k = 0; k < count; ++k) {
      index_t at = 0, rest = place(k, count, a.size());
      for (int d = a.ndim() - 1; d >= 0; rest /= a.shape()[d--]) at += rest % a.shape()[d] * a.strides()[d];
      auto const size = static_cast<index_t>(size_of(a.dtype()));
      for (index_t i = 0; i < size; ++i) add(a.bytes()[at * size + i]);
    }
  }
  void add(MatrixRows const& w) {
    index_t const size = w.rows * static_cast<index_t>(w.row_bytes()), count = std::min(size, 4 * few);
    for (index_t k = 0; k < count; ++k) add(w.bytes[place(k, count, size)]);
  }
  std::string text() const { return std::to_string(h_); }

 private:
  static constexpr index_t few = 16;
  static index_t place(index_t k, index_t count, index_t size) {
    return k * (size / count) + size / count / 2;
  }
  void add(std::byte b) { h_ = (h_ ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3u; }

  std::uint64_t h_ = 0xcbf29ce484222325u;
};

template <class M>
std::string fingerprint(M const& m) {
  if constexpr (requires { m.fingerprint(); }) {
    return m.fingerprint();
  } else {
    Fingerprint r;
    for (auto const& [name, leaf] : named_leaves(m)) r.add(*leaf);
    auto const add = [&](StoredMatrix const& w) { r.add(w.data); };
    if constexpr (requires { visit_stored(m, add); }) visit_stored(m, add);
    return r.text();
  }
}

}  // namespace dfdx::models::detail
