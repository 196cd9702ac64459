// SPDX-License-Identifier: BSL-1.0
// Tables as text (CSV), plain or compressed by gzip: columns of numbers and labels as tensors. Not part of
// <dfdx/io.hpp>: it needs zlib (zlib1g-dev; link with -lz, in CMake ZLIB::ZLIB).
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dfdx/io/packed_file.hpp>
#include <dfdx/value/tensor.hpp>

namespace dfdx::data {

/// CsvOptions - how a table is written. Lines that are skipped stand before the header.
struct CsvOptions {
  bool header = true;
  char separator = ',';
  int skip = 0;
  /// What an empty field of a column of floating numbers is read as; nothing for an error.
  std::optional<double> missing{};
};

/// Labels - a column of classes as numbers, with their names; they are numbered in the order of names (numbers by
/// value), so that parts of a table agree.
struct Labels {
  Tensor<std::int32_t, dyn> numbers;
  std::vector<std::string> classes;
};

/// Csv - the fields of a table: a header if there is one, and rows of as many fields. Fields may be in double quotes,
/// in which separators and ends of lines stand for themselves and two quotes for one. Lines without text are left out.
/// Spaces around numbers and labels do not count.
///
/// Errors    "data: iris.csv:7: 3 fields, there are 5 columns"; "data: iris.csv:7: a quote is not closed"; "data:
///           iris.csv has no rows"; "data: iris.csv has no column petal"
/// Source    RFC 4180
class Csv {
 public:
  /// From text; `name` is for messages.
  Csv(std::string text, std::string name, CsvOptions const& options = {})
      : text_(std::move(text)), name_(std::move(name)), options_(options) {
    parse();
  }

  index_t rows() const { return static_cast<index_t>(lines_.size()); }
  index_t size() const { return static_cast<index_t>(width_); }
  /// The names of the columns; without a header "0", "1", ...
  std::vector<std::string> const& columns() const { return names_; }
  /// The number of a column.
  index_t column(std::string_view name) const {
    auto const found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      std::string all;
      for (std::size_t i = 0; i < names_.size() && i < 20; ++i) all += (i > 0 ? ", " : "") + names_[i];
      fail("has no column " + std::string(name) + " but " + all + (names_.size() > 20 ? ", ..." : ""));
    }
    return static_cast<index_t>(found - names_.begin());
  }
  /// A field as it is.
  std::string_view text(index_t row, index_t column) const {
    if (row < 0 || row >= rows() || column < 0 || column >= size())
      raise("csv: row ", Position{row}, ", column ", Position{column}, " of a table of ", rows(), " by ",
            size());
    return view(fields_[static_cast<std::size_t>(row) * width_ + static_cast<std::size_t>(column)]);
  }
  /// The line of the file that a row begins at, from 1.
  std::size_t line(index_t row) const { return lines_.at(static_cast<std::size_t>(row)); }

  /// One number.
  ///
  /// Errors    "data: iris.csv:7: 'abc' in column petal is no number"; "...: '300' in column petal is out of range";
  ///           "...: column petal is empty"
  template <element T>
  T number(index_t row, index_t column) const {
    std::string_view const field = trimmed(text(row, column));
    auto const wrong = [&](char const* what) {
      // (Not "'" + ...: g++ 12 warns of that, gcc bug 105651.)
      fail_at(line(row), std::string("'").append(field.substr(0, 40)) + "' in column " +
                             names_[static_cast<std::size_t>(column)] + " " + what);
    };
    using Read = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
    Read x{};
    if (field.empty()) {
      if constexpr (!std::is_integral_v<T>)
        if (options_.missing) return static_cast<T>(*options_.missing);
      fail_at(line(row), "column " + names_[static_cast<std::size_t>(column)] + " is empty");
    }
    char const *first = field.data(), *const last = first + field.size();
    if (*first == '+' && last - first > 1 && first[1] != '-') ++first;
    auto const [end, error] = std::from_chars(first, last, x);
    bool in_range = error != std::errc::result_out_of_range;
    if (end != last || error == std::errc::invalid_argument)
      wrong(std::is_integral_v<T> ? "is no whole number" : "is no number");
    if constexpr (std::is_integral_v<T>) {
      in_range = in_range && static_cast<std::int64_t>(static_cast<T>(x)) == x;
    } else {
      if (!in_range && field.find_first_of("eE") != field.npos && field.find("-", 1) != field.npos) {
        in_range = true;  // too small for any number but 0
        x = 0;
      }
      in_range = in_range && (!std::isfinite(x) || std::isfinite(static_cast<double>(static_cast<T>(x))));
    }
    if (!in_range) wrong("is out of range");
    return static_cast<T>(x);
  }
  /// Columns of numbers, [rows, columns].
  template <element T>
  Tensor<T, dyn, dyn> numbers(std::span<index_t const> columns) const {
    auto r = Tensor<T, dyn, dyn>::uninitialized(make_shape(rows(), columns.size()));
    T* out = r.data();
    for (index_t i = 0; i < rows(); ++i)
      for (index_t c : columns) *out++ = number<T>(i, c);
    return r;
  }
  template <element T>
  Tensor<T, dyn, dyn> numbers(std::vector<std::string> const& names) const {
    std::vector<index_t> columns;
    for (std::string const& n : names) columns.push_back(column(n));
    return numbers<T>(std::span<index_t const>(columns));
  }
  /// All columns.
  template <element T>
  Tensor<T, dyn, dyn> numbers() const {
    std::vector<index_t> columns;
    for (index_t c = 0; c < size(); ++c) columns.push_back(c);
    return numbers<T>(std::span<index_t const>(columns));
  }
  /// The same where the compiler knows how many they are, as layers and loaders want them.
  ///
  ///     Tensor<float, dyn, 2> const x = table.numbers<float, 2>({"area", "rooms"});
  ///
  /// Errors    "data: flats.csv gives 3 columns of numbers, 2 expected"
  template <element T, std::size_t Columns>
  Tensor<T, dyn, Columns> numbers(std::vector<std::string> const& names) const {
    return of_columns<Columns>(numbers<T>(names));
  }
  template <element T, std::size_t Columns>
  Tensor<T, dyn, Columns> numbers() const {
    return of_columns<Columns>(numbers<T>());
  }
  /// One column, [rows].
  template <element T>
  Tensor<T, dyn> numbers(index_t column) const {
    auto r = Tensor<T, dyn>::uninitialized(make_shape(rows()));
    for (index_t i = 0; i < rows(); ++i) r.data()[i] = number<T>(i, column);
    return r;
  }

  /// A column of classes.
  ///
  /// Errors    "data: iris.csv:7: column species is empty"
  Labels labels(index_t column) const {
    // Numbers before words and by value: 9 before 10.
    struct Class {
      std::string name;
      std::int32_t number = 0;
    };
    std::map<std::pair<double, std::string>, Class> classes;
    std::vector<Class const*> of_row;
    for (index_t i = 0; i < rows(); ++i) {
      std::string const field(trimmed(text(i, column)));
      if (field.empty()) fail_at(line(i), "column " + names_[static_cast<std::size_t>(column)] + " is empty");
      double value = 0;
      auto const [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
      bool const is_number =
          error == std::errc{} && end == field.data() + field.size() && std::isfinite(value);
      auto const key = is_number ? std::pair(value, std::string()) : std::pair(HUGE_VAL, field);
      of_row.push_back(&classes.try_emplace(key, Class{field}).first->second);
    }
    Labels r{Tensor<std::int32_t, dyn>::uninitialized(make_shape(rows())), {}};
    for (auto& [key, one] : classes) {
      one.number = static_cast<std::int32_t>(r.classes.size());
      r.classes.push_back(one.name);
    }
    for (index_t i = 0; i < rows(); ++i) r.numbers.data()[i] = of_row[static_cast<std::size_t>(i)]->number;
    return r;
  }
  Labels labels(std::string_view name) const { return labels(column(name)); }

 private:
  template <std::size_t Columns, element T>
  Tensor<T, dyn, Columns> of_columns(Tensor<T, dyn, dyn> const& x) const {
    if (x.shape()[1] != static_cast<index_t>(Columns))
      fail("gives " + std::to_string(x.shape()[1]) + " columns of numbers, " + std::to_string(Columns) +
           " expected");
    return Tensor<T, dyn, Columns>(x);
  }
  struct Field {
    std::size_t begin, length;
  };

  [[noreturn]] void fail(std::string const& what) const { raise("data: " + name_ + " " + what); }
  [[noreturn]] void fail_at(std::size_t line, std::string const& what) const {
    raise("data: " + name_ + ":" + std::to_string(line) + ": " + what);
  }
  static std::string_view trimmed(std::string_view s) {
    auto const blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
    while (!s.empty() && blank(s.front())) s.remove_prefix(1);
    while (!s.empty() && blank(s.back())) s.remove_suffix(1);
    return s;
  }

  std::string_view view(Field const& f) const { return std::string_view(text_).substr(f.begin, f.length); }

  // One field from `at` on, which is moved behind it and what ends it. Quoted ones are written over themselves without
  // their quotes. Whether it is the last of its line.
  bool read_field(std::size_t& at, std::size_t& line, Field& field) {
    char const separator = options_.separator;
    auto const ends = [&](std::size_t i) {
      return i >= text_.size() || text_[i] == separator || text_[i] == '\n' ||
             (text_[i] == '\r' && (i + 1 >= text_.size() || text_[i + 1] == '\n'));
    };
    if (at < text_.size() && text_[at] == '"') {
      std::size_t const start = line;
      std::size_t out = ++at;
      field.begin = at;
      for (;; ++at) {
        if (at >= text_.size()) fail_at(start, "a quote is not closed");
        if (text_[at] == '"') {
          if (at + 1 >= text_.size() || text_[at + 1] != '"') break;
          ++at;
        }
        line += text_[at] == '\n' ? 1 : 0;
        text_[out++] = text_[at];
      }
      field.length = out - field.begin;
      if (!ends(++at)) fail_at(line, "text behind a closing quote");
    } else {
      field.begin = at;
      while (!ends(at)) ++at;
      field.length = at - field.begin;
    }
    if (at < text_.size() && text_[at] == separator) return ++at, false;
    at += at < text_.size() && text_[at] == '\r' ? 1 : 0;
    at += at < text_.size() ? 1 : 0;  // the end of the line
    return true;
  }

  void parse() {
    if (text_.find('\0') != text_.npos) fail("is no text: it has a byte of 0");
    std::size_t at = text_.starts_with("\xef\xbb\xbf") ? 3 : 0, line = 1;  // a mark of the encoding
    for (int i = 0; i < options_.skip; ++i, ++line) at = std::min(text_.find('\n', at), text_.size() - 1) + 1;
    bool header = options_.header;
    std::vector<Field> row;
    while (at < text_.size()) {
      row.clear();
      std::size_t const begin = at, first = line;
      Field field{};
      bool last = false;
      while (!last) {
        last = read_field(at, line, field);
        row.push_back(field);
      }
      ++line;
      if (row.size() == 1 && text_[begin] != '"' && trimmed(view(field)).empty()) continue;
      if (width_ == 0) width_ = row.size();
      if (row.size() != width_)
        fail_at(first,
                std::to_string(row.size()) + " fields, there are " + std::to_string(width_) + " columns");
      if (std::exchange(header, false)) {
        for (Field const& f : row) names_.emplace_back(trimmed(view(f)));
      } else {
        lines_.push_back(first);
        fields_.insert(fields_.end(), row.begin(), row.end());
      }
    }
    if (lines_.empty()) fail("has no rows");
    if (names_.empty())
      for (std::size_t i = 0; i < width_; ++i) names_.push_back(std::to_string(i));
  }

  std::string text_, name_;
  CsvOptions options_;
  std::size_t width_ = 0;
  std::vector<std::string> names_;
  std::vector<Field> fields_;
  std::vector<std::size_t> lines_;
};

/// read_csv - a table from a file, packed by gzip or not.
///
/// Errors    those of Csv; "data: cannot read iris.csv: No such file or directory"; "data: x.csv.gz is damaged:
///           incorrect data check"
inline Csv read_csv(std::filesystem::path const& path, CsvOptions const& options = {}) {
  return Csv(detail::PackedFile(path).rest(), path.string(), options);
}

}  // namespace dfdx::data
