// SPDX-License-Identifier: BSL-1.0
// Arrays as text, in NumPy's and PyTorch's manner: nested brackets, aligned columns, four decimals, long arrays
// summarised. For people to read; nothing here parses it back, and four decimals would not suffice for that.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iosfwd>
#include <string>

#include <dfdx/value/device_ops.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/tensor.hpp>

namespace dfdx {

namespace detail {

// How the elements of one array are written: one notation and one width for all, so that columns line up.
class ElementFormat {
 public:
  explicit ElementFormat(DType dtype) : dtype_(dtype) {}

  void see(double v) {
    if (!std::isfinite(v) || v == 0) return;
    double const magnitude = std::fabs(v);
    integral_ = integral_ && v == std::trunc(v);
    smallest_ = smallest_ == 0 || magnitude < smallest_ ? magnitude : smallest_;
    largest_ = magnitude > largest_ ? magnitude : largest_;
  }
  void widen(Operand const& x, index_t offset) { width_ = std::max(width_, text(x, offset).size()); }
  std::size_t width() const { return width_; }

  std::string text(Operand const& x, index_t offset) const {
    if (dtype_ == DType::boolean) return read_integer(x, offset) != 0 ? "true" : "false";
    if (!is_floating(dtype_)) return std::to_string(read_integer(x, offset));
    double const v = read_real(x, offset);
    if (std::isnan(v)) return "nan";
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    char digits[32];
    auto const to = [&](std::chars_format f, int precision) {
      return std::string(digits, std::to_chars(digits, digits + sizeof digits, v, f, precision).ptr);
    };
    if (scientific()) return to(std::chars_format::scientific, 4);
    return integral_ ? to(std::chars_format::fixed, 0) + "." : to(std::chars_format::fixed, 4);
  }

 private:
  // Where four decimals would show zeros, or many digits that mean nothing. Whole numbers stay whole up to 10^8.
  bool scientific() const {
    return largest_ >= 1e8 || (!integral_ && (smallest_ < 1e-4 || largest_ / smallest_ > 1000));
  }

  DType dtype_;
  bool integral_ = true;
  double smallest_ = 0, largest_ = 0;
  std::size_t width_ = 0;
};

class ArrayPrinter {
 public:
  explicit ArrayPrinter(Array const& x)
      : x_(x.operand()), format_(x.dtype()), summarise_(x.size() > summary_above) {
    each(0, 0, [this](index_t o) { format_.see(read_real(x_, o)); });
    each(0, 0, [this](index_t o) { format_.widen(x_, o); });
  }
  std::string text() {
    print(0, 0);
    return std::move(out_);
  }

 private:
  static constexpr index_t summary_above = 1000, edge = 3;
  static constexpr std::size_t line_width = 80;

  bool skips(int axis) const { return summarise_ && x_.meta.shape[axis] > 2 * edge; }
  index_t after(int axis, index_t i) const {
    return skips(axis) && i + 1 == edge ? x_.meta.shape[axis] - edge : i + 1;
  }

  // The elements that will be printed.
  template <class F>
  void each(int axis, index_t offset, F const& f) {
    if (axis == x_.meta.shape.rank) return f(offset);
    for (index_t i = 0; i < x_.meta.shape[axis]; i = after(axis, i))
      each(axis + 1, offset + i * x_.strides[axis], f);
  }

  void put_element(index_t offset) {
    std::string const t = format_.text(x_, offset);
    out_.append(format_.width() - t.size(), ' ').append(t);
  }

  void print(int axis, index_t offset) {
    int const rank = x_.meta.shape.rank;
    if (axis == rank) return put_element(offset);
    bool const innermost = axis + 1 == rank;
    std::size_t const room = line_width - static_cast<std::size_t>(rank);
    std::size_t const per_line = std::max<std::size_t>(room / (format_.width() + 2), 1);
    out_ += '[';
    std::size_t on_line = 1;
    for (index_t i = 0; i < x_.meta.shape[axis];) {
      print(axis + 1, offset + i * x_.strides[axis]);
      index_t const next = after(axis, i);
      if (next < x_.meta.shape[axis]) {
        out_ += ',';
        if (next != i + 1) {
          if (innermost) out_ += ' ';
          else lines(axis);
          out_ += "...,";
        }
        if (!innermost) lines(axis);
        else if (on_line++ % per_line != 0) out_ += ' ';
        else new_line(axis);
      }
      i = next;
    }
    out_ += ']';
  }

  void new_line(int axis) { out_.append("\n").append(static_cast<std::size_t>(axis) + 1, ' '); }
  // Rows start on a line of their own, matrices after an empty line, and so on.
  void lines(int axis) {
    out_.append(static_cast<std::size_t>(x_.meta.shape.rank - axis - 2), '\n');
    new_line(axis);
  }

  Operand x_;
  ElementFormat format_;
  bool summarise_;
  std::string out_;
};

}  // namespace detail

/// to_string - the array as NumPy would print it, with four decimals; above 1000 elements the middle is "...". The
/// dtype follows when it is not f32, the shape when the brackets cannot tell it.
///
/// Example   [[1.0000, 0.5000],
///            [0.2500, 2.0000]]
inline std::string to_string(Array const& x) {
  // (Text, not sums of strings: g++ 12 warns of those at -O3.)
  auto const named = [&](char const* before, char const* after = "") {
    Text const t = make_text(before, x.dtype(), " ", x.shape(), after);
    return std::string(t.data(), t.size());
  };
  if (x.recorded()) return named("<recorded ", ">");
  if (x.size() == 0 && x.ndim() >= 0 && x.shape().is_static()) return named("[] ");
  if (x.ndim() < 0 || !x.shape().is_static() || x.bytes() == nullptr) return named("<no memory, ", ">");
  std::string r = detail::ArrayPrinter(detail::here(x)).text();
  return x.dtype() == DType::f32 ? r : r + " " + name_of(x.dtype());
}

/// to_string of a shape, "[2, 3]", and of a dtype, "f32".
inline std::string to_string(Shape const& s) { return Text().put(s).c_str(); }
inline std::string to_string(DType d) { return name_of(d); }

/// out << x - prints to_string(x). A template, so that <ostream> is included by whoever uses it.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, Array const& x) {
  return out << to_string(x);
}
/// The same for shapes and dtypes: [2, 3], f32.
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, Shape const& s) {
  return out << Text().put(s).c_str();
}
template <class Traits>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, DType d) {
  return out << name_of(d);
}

}  // namespace dfdx
