// SPDX-License-Identifier: BSL-1.0
// JSON from outside: refuses what a parser takes and should not. Needs nlohmann-json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dfdx/core/utf8.hpp>

#include <nlohmann/json.hpp>

namespace dfdx::detail {

/// CheckedJson - a value, or in `fault` what is wrong with the text: "is nested too deep", "is not valid JSON in UTF-8"
/// or "has 'a' twice in one object" (of which the parser would keep the last).
struct CheckedJson {
  nlohmann::json value;
  std::string fault{};
};

/// json_text - a text as JSON has it, in quotation marks.
inline std::string json_text(std::string_view text) {
  std::string r = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') r += {'\\', c};
    else if (static_cast<unsigned char>(c) >= 0x20) r += c;
    else {
      constexpr char const* digits = "0123456789abcdef";
      r += {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
    }
  }
  return r + "\"";
}

// Builds a value from a parser's events. (json::parse with a callback compiles its parser twice, with and without.)
class JsonBuilder {
 public:
  using json = nlohmann::json;

  JsonBuilder(json& root, int deepest) : root_(root), deepest_(deepest) {}

  bool deep() const { return deep_; }
  /// The first name that an object had already.
  std::optional<std::string> const& repeated() const { return repeated_; }

  bool null() { return add(nullptr); }
  bool boolean(bool x) { return add(x); }
  bool number_integer(std::int64_t x) { return add(x); }
  bool number_unsigned(std::uint64_t x) { return add(x); }
  bool number_float(double x, std::string const&) { return add(x); }
  bool string(std::string& x) { return add(std::move(x)); }
  bool binary(json::binary_t&) { return false; }  // of other formats
  bool start_object(std::size_t) { return open(json::value_t::object); }
  bool start_array(std::size_t) { return open(json::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    auto const [place, fresh] = open_.back()->get_ref<json::object_t&>().try_emplace(std::move(name));
    if (!fresh && !repeated_) repeated_ = place->first;
    next_ = &place->second;
    return true;
  }
  bool parse_error(std::size_t, std::string const&, nlohmann::detail::exception const&) { return false; }

 private:
  bool add(json&& value) {
    place() = std::move(value);
    return true;
  }
  bool open(json::value_t kind) {
    deep_ = static_cast<int>(open_.size()) >= deepest_;
    if (deep_) return false;
    json& at = place();
    at = json(kind);
    open_.push_back(&at);
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  // Where the next value belongs. What is open does not move: only the innermost array grows.
  json& place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return *next_;
    json::array_t& list = open_.back()->get_ref<json::array_t&>();
    return list.emplace_back();
  }

  json& root_;
  json* next_ = nullptr;
  std::vector<json*> open_;
  int deepest_;
  bool deep_ = false;
  std::optional<std::string> repeated_;
};

/// parse_json - nothing is nested deeper than `deepest`, which is looked at before it costs memory.
inline CheckedJson parse_json(std::span<std::byte const> text, int deepest) {
  auto const* const begin = reinterpret_cast<char const*>(text.data());
  CheckedJson r;
  JsonBuilder builder(r.value, deepest);
  // (json::sax_parse would bring readers of four binary formats along.)
  auto input = nlohmann::detail::input_adapter(begin, begin + text.size());
  bool const good =
      nlohmann::detail::parser<nlohmann::json, decltype(input)>(std::move(input)).sax_parse(&builder);
  if (builder.deep()) r.fault = "is nested too deep";
  else if (!good) r.fault = "is not valid JSON in UTF-8";
  else if (builder.repeated()) r.fault = "has '" + shown_name(*builder.repeated()) + "' twice in one object";
  if (!r.fault.empty()) r.value = nullptr;
  return r;
}

}  // namespace dfdx::detail
