// SPDX-License-Identifier: BSL-1.0
// Tables of tokenizers: numbers by number, and a tree of byte strings on top of it. They only grow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dfdx::text::detail {

/// FlatMap - values by keys below 2^64 - 1, in one block of memory.
class FlatMap {
 public:
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  std::uint64_t find(std::uint64_t key) const {
    if (slots_.empty()) return none;
    Slot const& s = slots_[place(key)];
    return s.key == key ? s.value : none;
  }
  /// Keeps the first value of a key; whether this was it.
  bool insert(std::uint64_t key, std::uint64_t value) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& s = slots_[place(key)];
    if (s.key == key) return false;
    s = {key, value};
    ++size_;
    return true;
  }

 private:
  struct Slot {
    std::uint64_t key = none, value = 0;
  };
  std::size_t place(std::uint64_t key) const {
    std::uint64_t h = key * 0x9E3779B97F4A7C15u;
    h ^= h >> 32;
    std::size_t const mask = slots_.size() - 1;
    auto i = static_cast<std::size_t>(h) & mask;
    while (slots_[i].key != key && slots_[i].key != none) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : 2 * slots_.size());
    old.swap(slots_);
    for (Slot const& s : old)
      if (s.key != none) slots_[place(s.key)] = s;
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

/// ByteTree - byte strings, each with a number; finds those that a text begins with in one walk.
class ByteTree {
 public:
  void add(std::string_view text, std::int32_t value) {
    std::uint32_t node = 0;
    for (char c : text) {
      auto const next = static_cast<std::uint64_t>(values_.size());
      std::uint64_t const key = edge(node, c);
      if (edges_.insert(key, next)) {
        values_.push_back(-1);
        node = static_cast<std::uint32_t>(next);
      } else {
        node = static_cast<std::uint32_t>(edges_.find(key));
      }
    }
    if (!text.empty()) {
      values_[node] = value;
      begins_[static_cast<unsigned char>(text[0])] = true;
    }
  }

  bool begins(char c) const { return begins_[static_cast<unsigned char>(c)]; }

  /// f(length, value) for each string that stands at `at`, short ones first.
  template <class F>
  void matches(std::string_view text, std::size_t at, F&& f) const {
    std::uint32_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      std::uint64_t const next = edges_.find(edge(node, text[i]));
      if (next == FlatMap::none) return;
      node = static_cast<std::uint32_t>(next);
      if (values_[node] >= 0) f(i + 1 - at, values_[node]);
    }
  }

 private:
  static std::uint64_t edge(std::uint32_t node, char c) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(c);
  }

  FlatMap edges_;
  std::vector<std::int32_t> values_ = {-1};
  bool begins_[256] = {};
};

}  // namespace dfdx::text::detail
