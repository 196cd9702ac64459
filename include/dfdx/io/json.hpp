// SPDX-License-Identifier: BSL-1.0
// JSON from outside: refuses what a parser takes and should not. Needs nlohmann-json.
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace dfdx::detail {

/// CheckedJson - a value, or in `fault` what is wrong with the text: "is nested too deep", "is not valid JSON in UTF-8"
/// or "has a name twice" (of which the parser would keep the last).
struct CheckedJson {
  nlohmann::json value;
  char const* fault = nullptr;
};

/// parse_json - nothing is nested deeper than `deepest`, which is looked at before it costs memory.
inline CheckedJson parse_json(std::span<std::byte const> text, int deepest) {
  using json = nlohmann::json;
  std::vector<std::set<std::string>> seen;
  bool repeated = false, deep = false;
  auto const watch = [&](int depth, json::parse_event_t event, json& value) {
    deep = deep || depth > deepest;
    if (deep) return false;
    if (event == json::parse_event_t::object_start) seen.emplace_back();
    else if (event == json::parse_event_t::object_end) seen.pop_back();
    else if (event == json::parse_event_t::key)
      repeated = repeated || !seen.back().insert(value.get<std::string>()).second;
    return true;
  };
  auto const* const begin = reinterpret_cast<char const*>(text.data());
  CheckedJson r{json::parse(begin, begin + text.size(), watch, /*allow_exceptions=*/false)};
  if (deep) r.fault = "is nested too deep";
  else if (r.value.is_discarded()) r.fault = "is not valid JSON in UTF-8";
  else if (repeated) r.fault = "has a name twice";
  return r;
}

}  // namespace dfdx::detail
