// SPDX-License-Identifier: BSL-1.0
// What a file of weights says besides them: keys with values of a few types.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dfdx/core/utf8.hpp>
#include <dfdx/io/file.hpp>

namespace dfdx {

/// MetaType - the type of a value, by its number in GGUF files.
enum class MetaType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };

namespace detail {

inline constexpr std::uint32_t meta_types = 13;

/// meta_size - bytes of a number (or truth) of that type, 0 of others.
constexpr std::size_t meta_size(MetaType t) {
  constexpr unsigned char sizes[meta_types] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[static_cast<std::size_t>(t)];
}

/// meta_type - the type that a C++ type of number has.
template <class T>
  requires std::is_arithmetic_v<T>
constexpr MetaType meta_type() {
  using enum MetaType;
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (std::is_same_v<T, bool>) return boolean;
  else if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) <= 8);
    return sizeof(T) == 4 ? f32 : f64;
  } else {
    return sizeof(T) == 1   ? is_signed ? i8 : u8
           : sizeof(T) == 2 ? is_signed ? i16 : u16
           : sizeof(T) == 4 ? is_signed ? i32 : u32
                            : (is_signed ? i64 : u64);
  }
}

}  // namespace detail

/// MetaList - values of one type: numbers, texts or lists. (The three are kept apart, and numbers as their bytes: a
/// variant of all types would be some thousand functions in every program that reads a model.)
struct MetaList {
  MetaType type = MetaType::u8;
  std::vector<std::byte> numbers;
  std::vector<std::string> texts;
  std::vector<MetaList> lists;

  MetaList() = default;
  explicit MetaList(std::vector<std::string> v) : type(MetaType::text), texts(std::move(v)) {}
  explicit MetaList(std::vector<MetaList> v) : type(MetaType::list), lists(std::move(v)) {}
  template <class T>
    requires std::is_arithmetic_v<T>
  explicit MetaList(std::vector<T> const& v) : type(detail::meta_type<T>()) {
    for (T const x : v) {
      auto const* const p = reinterpret_cast<std::byte const*>(&x);
      numbers.insert(numbers.end(), p, p + sizeof x);
    }
  }

  std::size_t size() const {
    if (type == MetaType::text) return texts.size();
    return type == MetaType::list ? lists.size() : numbers.size() / detail::meta_size(type);
  }
  /// The values, if they are of that type.
  template <class T>
  std::optional<std::span<T const>> as() const {
    if constexpr (std::is_same_v<T, std::string>) {
      if (type == MetaType::text) return texts;
    } else if (type == detail::meta_type<T>()) {
      return std::span(reinterpret_cast<T const*>(numbers.data()), size());
    }
    return {};
  }
  bool operator==(MetaList const&) const = default;
};

/// MetaValue - a number, a truth, a text or a list.
class MetaValue {
 public:
  template <class T>
    requires std::is_arithmetic_v<T>
  MetaValue(T x) : type_(detail::meta_type<T>()) {
    std::memcpy(number_, &x, sizeof x);
  }
  MetaValue(std::string text) : type_(MetaType::text), text_(std::move(text)) {}
  MetaValue(std::string_view text) : MetaValue(std::string(text)) {}
  MetaValue(char const* text) : MetaValue(std::string(text)) {}
  MetaValue(MetaList list) : type_(MetaType::list), list_(std::move(list)) {}
  /// A number of that type, from its bytes.
  MetaValue(MetaType type, std::byte const* bytes) : type_(type) {
    std::memcpy(number_, bytes, detail::meta_size(type));
  }

  MetaType type() const { return type_; }
  /// Null if it is something else.
  std::string const* text() const { return type_ == MetaType::text ? &text_ : nullptr; }
  MetaList const* list() const { return type_ == MetaType::list ? &list_ : nullptr; }
  /// The number (or truth) if it is of that type.
  template <class T>
    requires std::is_arithmetic_v<T>
  std::optional<T> as() const {
    if (type_ != detail::meta_type<T>()) return {};
    return stored<T>();
  }
  std::span<std::byte const> bytes() const { return {number_, detail::meta_size(type_)}; }

  /// An integer of any width; a float that is one.
  std::optional<std::int64_t> integer() const {
    using enum MetaType;
    switch (type_) {
      case u8: return stored<std::uint8_t>();
      case i8: return stored<std::int8_t>();
      case u16: return stored<std::uint16_t>();
      case i16: return stored<std::int16_t>();
      case u32: return stored<std::uint32_t>();
      case i32: return stored<std::int32_t>();
      case i64: return stored<std::int64_t>();
      case u64: {
        auto const x = stored<std::uint64_t>();
        if (x >> 63 == 0) return static_cast<std::int64_t>(x);
        return {};
      }
      case f32:
      case f64: {
        double const x = *number();
        if (std::trunc(x) == x && std::abs(x) < 0x1p53) return static_cast<std::int64_t>(x);
        return {};
      }
      default: return {};
    }
  }
  /// A number of any type.
  std::optional<double> number() const {
    if (type_ == MetaType::f32) return stored<float>();
    if (type_ == MetaType::f64) return stored<double>();
    if (type_ == MetaType::u64) return static_cast<double>(stored<std::uint64_t>());
    std::optional<std::int64_t> const i = integer();
    if (i) return static_cast<double>(*i);
    return {};
  }
  bool operator==(MetaValue const&) const = default;

 private:
  template <class T>
  T stored() const {
    T x;
    std::memcpy(&x, number_, sizeof x);
    return x;
  }

  MetaType type_;
  std::byte number_[8] = {};
  std::string text_;
  MetaList list_;
};

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

  /// Says that a key is there and has no value, as null in JSON: find gives none. is_null - whether that was said.
  void set_null(std::string const& key) { nulls_.insert(key); }
  bool is_null(std::string_view key) const { return nulls_.contains(key); }

  /// An integer of any width; a float that is one.
  std::int64_t integer(std::string_view key) const {
    return known(at(key).integer(), key, "is not an integer");
  }
  std::int64_t integer(std::string_view key, std::int64_t otherwise) const {
    return find(key) != nullptr ? integer(key) : otherwise;
  }
  double number(std::string_view key) const { return known(at(key).number(), key, "is not a number"); }
  double number(std::string_view key, double otherwise) const {
    return find(key) != nullptr ? number(key) : otherwise;
  }
  std::string const& text(std::string_view key) const {
    std::string const* const r = at(key).text();
    if (r == nullptr) wrong(key, "is not a text");
    return *r;
  }
  bool flag(std::string_view key, bool otherwise) const {
    return find(key) != nullptr ? known(at(key).as<bool>(), key, "is neither true nor false") : otherwise;
  }
  /// The values of a list of that type; they last as long as the entry.
  template <class T>
  std::span<T const> list(std::string_view key) const {
    MetaList const* const r = at(key).list();
    if (r == nullptr) wrong(key, "is not a list");
    return known(r->as<T>(), key, "is a list of another type");
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
  T known(std::optional<T> const& x, std::string_view key, char const* why) const {
    if (!x) wrong(key, why);
    return *x;
  }

  std::string source_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_key_;
  std::set<std::string, std::less<>> nulls_;
};

}  // namespace dfdx
