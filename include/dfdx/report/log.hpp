// SPDX-License-Identifier: BSL-1.0
// The figures of a run as a table that other programs read: CSV or JSON lines.
#pragma once

#include <charconv>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <fstream>
#include <ios>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include <dfdx/io/file.hpp>

namespace dfdx::report {

/// Log - rows of named values, appended to a new file as they come, so that a run that ends early leaves its rows.
/// The ending of the file's name says how: ".csv" is a table whose columns the first row names, ".jsonl" an object on
/// each line. Numbers have as many digits as are needed to read them back equal; what is not finite is an empty field
/// of a table, and null.
///
///     report::Log log("run/log.csv");
///     log.row({{"epoch", 1}, {"loss", 0.31}, {"note", "first"}});
///
/// Errors    "log: run.txt ends neither in .csv nor in .jsonl"; "log: cannot write run.csv: No space left on device";
///           "log: run.csv has other columns than the row" - nothing is written of that row
/// Source    RFC 4180; jsonlines.org
class Log {
 public:
  /// A value of a row: an integer, a number or a text.
  class Value {
   public:
    template <std::integral N>
    Value(N n) : is_(static_cast<std::int64_t>(n)) {}
    template <std::floating_point N>
    Value(N n) : is_(static_cast<double>(n)) {}
    Value(std::string s) : is_(std::move(s)) {}
    Value(char const* s) : is_(std::string(s)) {}

    nlohmann::ordered_json json() const {
      return std::visit([](auto const& v) { return nlohmann::ordered_json(v); }, is_);
    }
    std::string field() const {
      if (auto const* s = std::get_if<std::string>(&is_)) return quoted(*s);
      if (auto const* n = std::get_if<std::int64_t>(&is_)) return std::to_string(*n);
      double const v = std::get<double>(is_);
      if (!std::isfinite(v)) return {};
      char text[32];
      return {text, std::to_chars(text, text + sizeof text, v).ptr};
    }

   private:
    std::variant<std::int64_t, double, std::string> is_;
  };
  using Row = std::vector<std::pair<std::string, Value>>;

  explicit Log(std::filesystem::path const& path) : path_(path.string()) {
    json_ = path.extension() == ".jsonl";
    if (!json_ && path.extension() != ".csv")
      dfdx::detail::raise_file("log: " + path_ + " ends neither in .csv nor in .jsonl");
    errno = 0;
    out_.open(path, std::ios::binary | std::ios::trunc);
    if (!out_) fail();
  }

  void row(Row const& values) {
    std::string text;
    if (json_) {
      nlohmann::ordered_json object = nlohmann::ordered_json::object();
      for (auto const& [name, value] : values) object[name] = value.json();
      text = object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    } else {
      std::string names;
      for (auto const& [name, value] : values) {
        for (std::string* line : {&names, &text})
          if (&name != &values.front().first) *line += ',';
        names += quoted(name);
        text += value.field();
      }
      if (columns_.empty()) text = (columns_ = names) + "\n" + text;
      else if (names != columns_)
        dfdx::detail::raise_file("log: " + path_ + " has other columns than the row");
    }
    errno = 0;
    out_ << text << '\n' << std::flush;
    if (!out_) fail();
  }

 private:
  static std::string quoted(std::string const& s) {
    if (s.find_first_of(",\"\r\n") == std::string::npos) return s;
    std::string r = "\"";
    for (char c : s) r.append(c == '"' ? 2 : 1, c);
    return r + '"';
  }
  [[noreturn]] void fail() const {
    dfdx::detail::raise_file("log: cannot write " + path_ + ": " + dfdx::detail::reason());
  }

  std::string path_, columns_;
  std::ofstream out_;
  bool json_ = false;
};

}  // namespace dfdx::report
