// SPDX-License-Identifier: BSL-1.0
// Reading the safetensors format: names, dtypes, shapes and bytes, without knowing any model. A file is from
// outside, so every number in it is checked before it is used. Loading into a model: io/safetensors.hpp.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <dfdx/io/file.hpp>
#include <dfdx/io/json.hpp>
#include <dfdx/value/array.hpp>

namespace dfdx {

static_assert(std::endian::native == std::endian::little, "safetensors: files are little-endian");

/// SafetensorsEntry - one tensor of a file.
struct SafetensorsEntry {
  std::string name;
  std::string dtype_name;      // as in the file, "F32"
  std::optional<DType> dtype;  // empty for those that the library does not compute with
  std::vector<index_t> shape;
  std::span<std::byte const> bytes;  // not aligned

  /// The tensor in memory of its own.
  ///
  /// Errors    "safetensors: x: dtype F8_E4M3 is not supported", "safetensors: x: rank 9 is not supported"
  Array array() const {
    if (!dtype) detail::raise_file("safetensors: " + name + ": dtype " + dtype_name + " is not supported");
    if (shape.size() > static_cast<std::size_t>(max_rank))
      detail::raise_file("safetensors: " + name + ": rank " + std::to_string(shape.size()) +
                         " is not supported");
    Array r(Meta{*dtype, dims()});
    copy_to(r.bytes());
    return r;
  }

  /// The shape, if the rank is supported.
  Shape dims() const {
    Shape s;
    for (index_t d : shape) s.push_back(d);
    return s;
  }

  void copy_to(std::byte* out) const {
    if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
    // A bool of any other value would be undefined behaviour.
    if (dtype == DType::boolean)
      for (std::size_t i = 0; i < bytes.size(); ++i) out[i] = out[i] == std::byte{0} ? out[i] : std::byte{1};
  }
};

/// SafetensorsFile - the tensors of a safetensors file, in the order of their data.
///
/// Errors    "safetensors: <path>: ..." and what is wrong, for anything that the format does not allow
/// Source    https://github.com/huggingface/safetensors, "Format"
class SafetensorsFile {
 public:
  /// Reads the file into memory.
  static SafetensorsFile open(std::filesystem::path const& path) {
    SafetensorsFile f;
    f.owned_ = read_file(path, "safetensors");
    f.parse(f.owned_, path.string());
    return f;
  }

  /// Bytes in memory, which must outlive the result; `name` is for messages.
  static SafetensorsFile from(std::span<std::byte const> bytes, std::string const& name = "memory") {
    SafetensorsFile f;
    f.parse(bytes, name);
    return f;
  }

  SafetensorsFile(SafetensorsFile const&) = delete;
  SafetensorsFile& operator=(SafetensorsFile const&) = delete;
  SafetensorsFile(SafetensorsFile&&) = default;
  SafetensorsFile& operator=(SafetensorsFile&&) = default;

  std::vector<SafetensorsEntry> const& entries() const { return entries_; }
  std::map<std::string, std::string> const& metadata() const { return metadata_; }

  /// The tensor of that name; null if there is none.
  SafetensorsEntry const* find(std::string const& name) const {
    auto const found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &entries_[found->second];
  }

  /// All tensors, in memory of their own.
  std::map<std::string, Array> arrays() const {
    std::map<std::string, Array> r;
    for (SafetensorsEntry const& e : entries_) r.emplace(e.name, e.array());
    return r;
  }

 private:
  using json = nlohmann::json;

  static constexpr std::uint64_t max_header = 100'000'000;

  struct Name {
    char const* text;
    unsigned bits;
    std::optional<DType> dtype;
  };
  static Name const* known(std::string const& text) {
    static constexpr Name names[] = {{"F64", 64, DType::f64}, {"F32", 32, DType::f32},
                                     {"F16", 16, DType::f16}, {"BF16", 16, DType::bf16},
                                     {"I64", 64, DType::i64}, {"I32", 32, DType::i32},
                                     {"U8", 8, DType::u8},    {"BOOL", 8, DType::boolean},
                                     {"I16", 16, {}},         {"I8", 8, DType::i8},
                                     {"U16", 16, {}},         {"U32", 32, {}},
                                     {"U64", 64, {}},         {"C64", 64, {}},
                                     {"F8_E4M3", 8, {}},      {"F8_E5M2", 8, {}},
                                     {"F8_E8M0", 8, {}},      {"F6_E2M3", 6, {}},
                                     {"F6_E3M2", 6, {}},      {"F4", 4, {}}};
    for (Name const& n : names)
      if (text == n.text) return &n;
    return nullptr;
  }

  SafetensorsFile() = default;

  [[noreturn]] void fail(std::string const& why) const {
    detail::raise_file("safetensors: " + source_ + ": " + why);
  }
  void require(bool ok, char const* why) const {
    if (!ok) fail(why);
  }
  void require(bool ok, std::string const& name, char const* why) const {
    if (!ok) fail(name + ": " + why);
  }

  void parse(std::span<std::byte const> file, std::string const& source) {
    source_ = source;
    require(file.size() >= 8, "shorter than the 8 bytes of the header's length");
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), 8);
    require(length <= max_header, "the header is longer than 100 MB");
    require(length <= file.size() - 8, "the header is longer than the file");
    auto const header = file.subspan(8, static_cast<std::size_t>(length));
    auto const data = file.subspan(8 + static_cast<std::size_t>(length));

    auto const [all, fault] = detail::parse_json(header, 3);
    if (!fault.empty()) fail("the header " + fault);
    require(all.is_object(), "the header is not a JSON object");
    std::vector<std::pair<std::uint64_t, std::uint64_t>> offsets;
    for (auto i = all.begin(); i != all.end(); ++i) {
      if (i.key() == "__metadata__") read_metadata(*i);
      else offsets.push_back(read_entry(i.key(), *i));
    }

    // The data is covered without holes or overlaps when each tensor, in order, begins where the one before ended.
    std::vector<std::size_t> order(entries_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
    std::vector<SafetensorsEntry> sorted;
    std::uint64_t end = 0;
    for (std::size_t i : order) {
      require(offsets[i].first == end, entries_[i].name,
              "its data does not begin where the data before ends");
      end = offsets[i].second;
      require(end <= data.size(), entries_[i].name, "its data ends behind the file");
      entries_[i].bytes = data.subspan(static_cast<std::size_t>(offsets[i].first),
                                       static_cast<std::size_t>(end - offsets[i].first));
      by_name_.emplace(entries_[i].name, sorted.size());
      sorted.push_back(std::move(entries_[i]));
    }
    require(end == data.size(), "there are bytes behind the last tensor");
    entries_ = std::move(sorted);
  }

  void read_metadata(json const& value) {
    require(value.is_object(), "__metadata__ is not an object");
    for (auto i = value.begin(); i != value.end(); ++i) {
      require(i->is_string(), "__metadata__ holds something that is not a string");
      metadata_.emplace(i.key(), i->get_ref<std::string const&>());
    }
  }

  std::pair<std::uint64_t, std::uint64_t> read_entry(std::string const& name, json const& value) {
    auto const field = [&](char const* key) -> json const& {
      auto const found = value.find(key);
      if (found == value.end()) fail(name + ": no " + key);
      return *found;
    };
    require(value.is_object(), name, "not an object");
    SafetensorsEntry e;
    e.name = name;

    json const& dtype = field("dtype");
    require(dtype.is_string(), name, "dtype is not a string");
    e.dtype_name = dtype.get_ref<std::string const&>();
    Name const* const type = known(e.dtype_name);
    if (type != nullptr) e.dtype = type->dtype;

    json const& shape = field("shape");
    require(shape.is_array(), name, "shape is not an array");
    std::uint64_t bits = type != nullptr ? type->bits : 0;
    for (json const& d : shape) {
      require(d.is_number_unsigned(), name, "shape holds something that is not a count");
      auto const n = d.get<std::uint64_t>();
      require(n <= static_cast<std::uint64_t>(std::numeric_limits<index_t>::max()), name,
              "its size overflows");
      require(!__builtin_mul_overflow(bits, n, &bits), name, "its size overflows");
      e.shape.push_back(static_cast<index_t>(n));
    }

    json const& offsets = field("data_offsets");
    require(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
                offsets[1].is_number_unsigned(),
            name, "data_offsets is not two counts");
    auto const begin = offsets[0].get<std::uint64_t>(), end = offsets[1].get<std::uint64_t>();
    require(begin <= end, name, "its data ends before it begins");
    if (type != nullptr)
      require(bits % 8 == 0 && end - begin == bits / 8, name,
              "its data has another size than dtype and shape say");
    entries_.push_back(std::move(e));
    return {begin, end};
  }

  std::vector<std::byte> owned_;
  std::string source_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace dfdx
