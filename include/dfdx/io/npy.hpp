// SPDX-License-Identifier: BSL-1.0
// NumPy's files of one array (.npy). Several in one: io/npz.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dfdx/io/file.hpp>
#include <dfdx/value/array.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::data {

namespace detail {

static_assert(std::endian::native == std::endian::little,
              "npy: the order of bytes is taken to be little-endian");

// What a header says, a Python literal: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
class NpyHeader {
 public:
  std::string type;  // as in the file, '<f8'
  bool fortran = false;
  std::vector<std::uint64_t> shape;

  // Nothing if it is not as it should be.
  bool parse(std::string_view text) {
    rest_ = text;
    unsigned seen = 0;
    if (!take('{')) return false;
    while (!take('}')) {
      std::string key;
      if (!string(key) || !take(':')) return false;
      unsigned const bit = key == "descr" ? 1 : key == "fortran_order" ? 2 : key == "shape" ? 4 : 0;
      if (bit == 0 || (seen & bit) != 0) return false;
      seen |= bit;
      if (!(bit == 1 ? descr() : bit == 2 ? boolean() : tuple())) return false;
      if (take('}')) break;
      if (!take(',')) return false;
    }
    skip();
    return rest_.empty() && seen == 7;
  }

 private:
  void skip() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n' || rest_[0] == '\t' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    skip();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool string(std::string& s) {
    skip();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    std::size_t const end = rest_.find(rest_[0], 1);
    if (end == rest_.npos) return false;
    s = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return s.find('\\') == s.npos;
  }
  // A list describes the fields of structures: what stands between its brackets is kept for the message.
  bool descr() {
    skip();
    if (rest_.empty() || rest_[0] != '[') return string(type);
    std::size_t depth = 0, n = 0;
    do {
      if (n >= rest_.size()) return false;
      depth += rest_[n] == '[' ? 1 : 0;
      depth -= rest_[n++] == ']' ? 1 : 0;
    } while (depth > 0);
    type = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return true;
  }
  bool boolean() {
    if (take("False")) return true;
    fortran = true;
    return take("True");
  }
  bool tuple() {
    if (!take('(')) return false;
    while (!take(')')) {
      skip();
      std::uint64_t n = 0;
      std::size_t digits = 0;
      for (; digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9'; ++digits) {
        if (n > (std::numeric_limits<std::uint64_t>::max() - 9) / 10) return false;
        n = n * 10 + static_cast<std::uint64_t>(rest_[digits] - '0');
      }
      if (digits == 0) return false;
      rest_.remove_prefix(digits);
      take('L');  // of Python 2
      shape.push_back(n);
      if (take(')')) return true;
      if (!take(',')) return false;
    }
    return true;
  }

  std::string_view rest_;
};

// Numbers of type T in a file, as E.
template <class T, class E>
void read_numbers(std::span<std::byte const> from, bool swapped, E* to, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    std::byte word[sizeof(T)];
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(i * sizeof(T)), sizeof(T), word);
    if (swapped) std::reverse(word, word + sizeof(T));
    if constexpr (std::is_same_v<T, bool>) to[i] = word[0] != std::byte{0};
    else {
      T x;
      std::memcpy(&x, word, sizeof(T));
      to[i] = static_cast<E>(x);
    }
  }
}

struct NpyType {
  std::string_view name;
  std::size_t size;
  DType dtype;
  void (*read)(std::span<std::byte const>, bool, void*, std::size_t);
};
template <class T, class E = T>
constexpr NpyType npy_type(std::string_view name) {
  return {name, sizeof(T), dtype_v<E>,
          [](std::span<std::byte const> from, bool swapped, void* to, std::size_t n) {
            read_numbers<T>(from, swapped, static_cast<E*>(to), n);
          }};
}
inline constexpr NpyType npy_types[] = {npy_type<float>("f4"),
                                        npy_type<double>("f8"),
                                        npy_type<float16>("f2"),
                                        npy_type<bool>("b1"),
                                        npy_type<std::uint8_t>("u1"),
                                        npy_type<std::int32_t>("i4"),
                                        npy_type<std::int64_t>("i8"),
                                        npy_type<std::int8_t>("i1"),
                                        npy_type<std::int16_t, std::int32_t>("i2"),
                                        npy_type<std::uint16_t, std::int32_t>("u2"),
                                        npy_type<std::uint32_t, std::int64_t>("u4")};

}  // namespace detail

/// npy_array - the array that the bytes of an .npy file are; `name` is for messages. Floats, bools, u8, i8, i32 and i64
/// are what they are there; integers of types that the library lacks are i32 (16 bits) or i64 (32 bits without a sign).
/// Whatever its order in the file, the result is row-major.
///
/// Errors    "data: x.npy is no NPY file"; "data: x.npy has elements of type |O, which is not supported"; "data: x.npy
///           ends early"; "data: x.npy has more bytes than its header says"
/// Source    numpy.lib.format, versions 1.0, 2.0 and 3.0
inline Array npy_array(std::span<std::byte const> bytes, std::string const& name) {
  auto const fail = [&](std::string const& what) { raise("data: " + name + " " + what); };
  std::string_view const text(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  std::string_view const magic = "\x93NUMPY";
  if (!magic.starts_with(text.substr(0, magic.size()))) fail("is no NPY file");
  if (text.size() < 10) fail("ends early");
  auto const version = static_cast<unsigned char>(text[6]);
  if (version < 1 || version > 3)
    fail("is an NPY file of version " + std::to_string(version) + ", which is not supported");
  std::size_t const begin = version == 1 ? 10 : 12;
  if (text.size() < begin) fail("ends early");
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > 8;) length = length << 8 | static_cast<unsigned char>(text[i]);
  if (length > text.size() - begin) fail("ends early");

  detail::NpyHeader header;
  if (!header.parse(text.substr(begin, length))) fail("has a header that is no description of an array");
  std::string_view kind = header.type;
  char const order = kind.empty() || std::string_view("<>|=").find(kind[0]) == kind.npos ? '=' : kind[0];
  if (order != '=' || kind.starts_with("=")) kind.remove_prefix(1);
  auto const* const type = std::find_if(std::begin(detail::npy_types), std::end(detail::npy_types),
                                        [&](detail::NpyType const& t) { return t.name == kind; });
  if (type == std::end(detail::npy_types) || (order == '|' && type->size > 1))
    fail("has elements of type " + header.type.substr(0, 60) + ", which is not supported");
  if (header.shape.size() > static_cast<std::size_t>(max_rank))
    fail("has " + std::to_string(header.shape.size()) + " axes; at most " + std::to_string(max_rank) +
         " are supported");

  auto const data = bytes.subspan(begin + length);
  std::size_t const n = data.size() / type->size;
  std::uint64_t count = 1;  // up to one more than there can be
  for (std::uint64_t d : header.shape) {
    if (d > static_cast<std::uint64_t>(std::numeric_limits<index_t>::max())) fail("ends early");
    count = d == 0 ? 0 : std::min<std::uint64_t>(count, n / d + 1) * d;
  }
  if (std::find(header.shape.begin(), header.shape.end(), 0) != header.shape.end()) count = 0;
  if (count > n) fail("ends early");
  if (count * type->size != data.size()) fail("has more bytes than its header says");

  Shape shape;
  for (std::uint64_t d : header.shape) shape.push_back(static_cast<index_t>(d));
  Shape stored = shape;
  if (header.fortran) std::reverse(stored.dims, stored.dims + stored.rank);
  Array there(Meta{type->dtype, stored});
  type->read(data, order == '>', there.bytes(), static_cast<std::size_t>(count));
  if (!header.fortran || shape.rank < 2) return there;
  Strides strides = there.strides();
  std::reverse(strides.dims, strides.dims + strides.rank);
  Array r(Meta{type->dtype, shape});
  copy_elements(there.view(shape, strides).operand(), r.operand());
  return r;
}

/// read_npy - the array in an .npy file.
///
/// Errors    those of npy_array; "data: cannot read x.npy: No such file or directory"
inline Array read_npy(std::filesystem::path const& path) {
  auto const bytes = read_file(path, "data");
  return npy_array(bytes, path.string());
}

}  // namespace dfdx::data
