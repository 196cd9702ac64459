// SPDX-License-Identifier: BSL-1.0
// What a file of weights says besides them: keys with values of a few types.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <dfdx/core/utf8.hpp>
#include <dfdx/io/file.hpp>

namespace dfdx {

/// MetaList - values of one type. The alternatives are in the order of MetaValue's, so that an empty list has a type.
struct MetaList {
  std::variant<std::vector<std::uint8_t>, std::vector<std::int8_t>, std::vector<std::uint16_t>,
               std::vector<std::int16_t>, std::vector<std::uint32_t>, std::vector<std::int32_t>,
               std::vector<float>, std::vector<bool>, std::vector<std::string>, std::vector<MetaList>,
               std::vector<std::uint64_t>, std::vector<std::int64_t>, std::vector<double>>
      items;

  std::size_t size() const {
    return std::visit([](auto const& v) { return v.size(); }, items);
  }
  bool operator==(MetaList const&) const = default;
};

/// MetaValue - a value; the index of the alternative is the number of the type in GGUF files.
using MetaValue =
    std::variant<std::uint8_t, std::int8_t, std::uint16_t, std::int16_t, std::uint32_t, std::int32_t, float,
                 bool, std::string, MetaList, std::uint64_t, std::int64_t, double>;

namespace detail {

// A name from a file in a message: of bounded length, no control characters, and text whatever was in it.
inline std::string shown_name(std::string_view name) {
  constexpr std::size_t most = 100;
  std::string r;
  bool const text = is_utf8(name);
  for (char c : name.substr(0, most)) {
    bool const odd = static_cast<unsigned char>(c) < 0x20 || c == 0x7f || (!text && (c & 0x80) != 0);
    r.push_back(odd ? '?' : c);
  }
  while (text && name.size() > most && !is_utf8(r)) r.pop_back();
  return name.size() > most ? r + "..." : r;
}

}  // namespace detail

/// Metadata - keys and their values, in the order of the file.
///
/// Errors    "weights: m.gguf: there is no llama.block_count"; "weights: m.gguf: llama.block_count is not an integer"
class Metadata {
 public:
  using Entry = std::pair<std::string, MetaValue>;

  explicit Metadata(std::string source = "memory") : source_(std::move(source)) {}

  std::vector<Entry> const& entries() const { return entries_; }
  std::string const& source() const { return source_; }

  /// The value of a key; null if there is none.
  MetaValue const* find(std::string_view key) const {
    auto const found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &entries_[found->second].second;
  }
  /// Adds a key, or gives one another value. Whether it is new.
  bool set(std::string const& key, MetaValue value) {
    auto const [place, fresh] = by_key_.try_emplace(key, entries_.size());
    if (fresh) entries_.emplace_back(key, std::move(value));
    else entries_[place->second].second = std::move(value);
    return fresh;
  }

  /// An integer of any width; a float that is one.
  std::int64_t integer(std::string_view key) const {
    return std::visit(
        [&]<class T>(T const& x) -> std::int64_t {
          if constexpr (std::integral<T> && !std::same_as<T, bool>) {
            if (std::in_range<std::int64_t>(x)) return static_cast<std::int64_t>(x);
          } else if constexpr (std::floating_point<T>) {
            if (std::trunc(x) == x && std::abs(x) < 0x1p53) return static_cast<std::int64_t>(x);
          }
          wrong(key, "is not an integer");
        },
        at(key));
  }
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const {
    return find(key) != nullptr ? integer(key) : otherwise;
  }
  double number(std::string_view key) const {
    return std::visit(
        [&]<class T>(T const& x) -> double {
          if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>) return static_cast<double>(x);
          else wrong(key, "is not a number");
        },
        at(key));
  }
  double number(std::string_view key, double otherwise) const {
    return find(key) != nullptr ? number(key) : otherwise;
  }
  std::string const& text(std::string_view key) const { return as<std::string>(key, "is not a text"); }
  bool flag(std::string_view key, bool otherwise) const {
    return find(key) != nullptr ? as<bool>(key, "is neither true nor false") : otherwise;
  }
  /// The values of a list of that type.
  template <class T>
  std::vector<T> const& list(std::string_view key) const {
    auto const* const r = std::get_if<std::vector<T>>(&as<MetaList>(key, "is not a list").items);
    if (r == nullptr) wrong(key, "is a list of another type");
    return *r;
  }

 private:
  [[noreturn]] void wrong(std::string_view key, char const* why) const {
    detail::raise_file("weights: " + source_ + ": " + std::string(key) + " " + why);
  }
  MetaValue const& at(std::string_view key) const {
    MetaValue const* const v = find(key);
    if (v == nullptr) detail::raise_file("weights: " + source_ + ": there is no " + std::string(key));
    return *v;
  }
  template <class T>
  T const& as(std::string_view key, char const* why) const {
    T const* const r = std::get_if<T>(&at(key));
    if (r == nullptr) wrong(key, why);
    return *r;
  }

  std::string source_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_key_;
};

}  // namespace dfdx
