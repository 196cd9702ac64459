// SPDX-License-Identifier: BSL-1.0
// Reading GGUF files, versions 2 and 3. A file is from outside, so every number in it is checked before it is used.
// Writing them: gguf_write.hpp. Not part of <dfdx/io.hpp>.
#pragma once

#include <algorithm>
#include <bit>

#include <dfdx/io/llama_names.hpp>
#include <dfdx/io/mapped_file.hpp>
#include <dfdx/io/weights.hpp>

namespace dfdx {

static_assert(std::endian::native == std::endian::little, "gguf: files are little-endian");

namespace detail {

// Types of tensors by their number in the file; those without dtype and quant are there for messages.
struct GgufType {
  std::uint32_t id;
  char const* name;
  std::optional<DType> dtype{};
  std::optional<Quant> quant{};
};
inline constexpr GgufType gguf_types[] = {{0, "F32", DType::f32, {}},
                                          {1, "F16", DType::f16, {}},
                                          {2, "Q4_0", {}, Quant::q4_0},
                                          {3, "Q4_1", {}, Quant::q4_1},
                                          {6, "Q5_0", {}, Quant::q5_0},
                                          {7, "Q5_1", {}, Quant::q5_1},
                                          {8, "Q8_0", {}, Quant::q8_0},
                                          {9, "Q8_1"},
                                          {10, "Q2_K"},
                                          {11, "Q3_K"},
                                          {12, "Q4_K", {}, Quant::q4_k},
                                          {13, "Q5_K", {}, Quant::q5_k},
                                          {14, "Q6_K", {}, Quant::q6_k},
                                          {15, "Q8_K"},
                                          {16, "IQ2_XXS"},
                                          {17, "IQ2_XS"},
                                          {18, "IQ3_XXS"},
                                          {19, "IQ1_S"},
                                          {20, "IQ4_NL"},
                                          {21, "IQ3_S"},
                                          {22, "IQ2_S"},
                                          {23, "IQ4_XS"},
                                          {24, "I8", DType::i8, {}},
                                          {25, "I16"},
                                          {26, "I32", DType::i32, {}},
                                          {27, "I64", DType::i64, {}},
                                          {28, "F64", DType::f64, {}},
                                          {29, "IQ1_M"},
                                          {30, "BF16", DType::bf16, {}},
                                          {34, "TQ1_0"},
                                          {35, "TQ2_0"},
                                          {39, "MXFP4"}};

class GgufReader {
 public:
  GgufReader(std::span<std::byte const> file, std::string const& name)
      : file_(file), name_(name), weights_(name) {}

  Weights read() {
    std::uint32_t const version = header();
    auto const tensors = number<std::uint64_t>("the number of tensors");
    auto const keys = number<std::uint64_t>("the number of keys");
    // The least that a tensor and a key take, so that no claim is believed that the file cannot hold.
    if (tensors > left() / 24 || tensors > most) fail("it says that it has more tensors than are possible");
    if (keys > left() / 13 || keys > most) fail("it says that it has more keys than are possible");
    for (std::uint64_t i = 0; i < keys; ++i) key_value();
    std::vector<Info> infos;
    for (std::uint64_t i = 0; i < tensors; ++i) infos.push_back(info());
    place(infos);
    weights_.format = "GGUF " + std::to_string(version);
    weights_.rope = rope_of_architecture(weights_.metadata);
    return std::move(weights_);
  }

 private:
  // Far above any model: in memory an entry takes several times its bytes in the file, and a file with holes may be
  // larger than any memory.
  static constexpr std::uint64_t most = 1 << 20, longest_list = 1 << 24;

  struct Info {
    Weight weight;
    std::uint64_t offset;
  };

  [[noreturn]] void fail(std::string const& why) const { raise_file("gguf: " + name_ + ": " + why); }
  [[noreturn]] void ends(std::string const& what) const { fail("it ends within " + what); }
  std::uint64_t left() const { return file_.size() - at_; }

  template <class T>
  T number(std::string const& what) {
    if (left() < sizeof(T)) ends(what);
    T x;
    std::memcpy(&x, file_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return x;
  }
  std::string string(std::string const& what) {
    auto const length = number<std::uint64_t>(what);
    if (length > left()) ends(what);
    std::string s(reinterpret_cast<char const*>(file_.data()) + at_, static_cast<std::size_t>(length));
    at_ += static_cast<std::size_t>(length);
    return s;
  }

  std::uint32_t header() {
    if (file_.size() < 4) fail("it is shorter than the four letters that every GGUF file begins with");
    std::string_view const magic(reinterpret_cast<char const*>(file_.data()), 4);
    if (magic == "lmgg" || magic == "fmgg" || magic == "tjgg")
      fail("it is a file of ggml from before GGUF, which is not supported");
    if (magic != "GGUF") fail("it does not begin with GGUF");
    at_ = 4;
    auto const version = number<std::uint32_t>("the version");
    if ((version & 0xffff) == 0 && version != 0) fail("it is big-endian, which is not supported");
    if (version != 2 && version != 3)
      fail("it is of version " + std::to_string(version) + "; 2 and 3 are supported");
    return version;
  }

  void key_value() {
    std::string const key = string("a key");
    std::string const shown = "the key " + shown_name(key);
    if (!is_utf8(key)) fail(shown + " is not UTF-8");
    auto const type = number<std::uint32_t>(shown);
    if (!weights_.metadata.set(key, value(type, shown))) fail(shown + " is there twice");
  }

  MetaType type_of(std::uint32_t type, std::string const& what) const {
    if (type >= meta_types) fail(what + " has type " + std::to_string(type) + ", which is not known");
    return static_cast<MetaType>(type);
  }
  // That many numbers of a type.
  std::byte const* numbers(MetaType type, std::size_t count, std::string const& what) {
    std::size_t const bytes = count * meta_size(type);
    if (left() < bytes) ends(what);
    std::byte const* const p = file_.data() + at_;
    at_ += bytes;
    if (type == MetaType::boolean)
      for (std::size_t i = 0; i < count; ++i)
        if (p[i] > std::byte{1}) fail(what + " is neither true nor false");
    return p;
  }
  MetaValue value(std::uint32_t number, std::string const& what) {
    MetaType const type = type_of(number, what);
    if (type == MetaType::text) return string(what);
    if (type == MetaType::list) return list(what, 0);
    return {type, numbers(type, 1, what)};
  }
  MetaList list(std::string const& what, int depth) {
    constexpr int deepest = 4;
    if (depth == deepest) fail(what + " is nested too deep");
    auto const number_of_type = number<std::uint32_t>(what);
    auto const count = number<std::uint64_t>(what);
    MetaList r;
    r.type = type_of(number_of_type, what);
    std::size_t const least = r.type == MetaType::text   ? 8
                              : r.type == MetaType::list ? 12
                                                         : meta_size(r.type);
    if (count > left() / least) ends(what);
    if (count > longest_list) fail(what + " is a list of more than 16777216 values");
    auto const n = static_cast<std::size_t>(count);
    if (r.type == MetaType::text) {
      r.texts.reserve(n);
      for (std::size_t i = 0; i < n; ++i) r.texts.push_back(string(what));
    } else if (r.type == MetaType::list) {
      r.lists.reserve(n);
      for (std::size_t i = 0; i < n; ++i) r.lists.push_back(list(what, depth + 1));
    } else {
      std::byte const* const p = numbers(r.type, n, what);
      r.numbers.assign(p, p + n * meta_size(r.type));
    }
    return r;
  }

  Info info() {
    Info r;
    Weight& w = r.weight;
    w.name = string("the name of a tensor");
    w.file = name_;
    std::string const what = "tensor " + shown_name(w.name);
    auto const rank = number<std::uint32_t>(what);
    if (rank > 4) fail(what + " has " + std::to_string(rank) + " axes; at most 4 are possible");
    for (std::uint32_t i = 0; i < rank; ++i) {
      auto const extent = number<std::uint64_t>(what);
      if (!std::in_range<index_t>(extent)) fail(what + ": its size overflows");
      w.shape.insert(w.shape.begin(), static_cast<index_t>(extent));  // the file has the innermost first
    }
    auto const id = number<std::uint32_t>(what);
    auto const* const type = std::find_if(std::begin(gguf_types), std::end(gguf_types),
                                          [&](GgufType const& t) { return t.id == id; });
    w.format = "type " + std::to_string(id);
    if (type != std::end(gguf_types)) w.format = type->name, w.dtype = type->dtype, w.quant = type->quant;
    r.offset = number<std::uint64_t>(what);
    return r;
  }

  std::uint64_t alignment() const {
    MetaValue const* const v = weights_.metadata.find("general.alignment");
    if (v == nullptr) return 32;
    auto const n = v->as<std::uint32_t>();
    if (!n || !std::has_single_bit(*n)) fail("general.alignment is no power of two");
    return *n;
  }

  // Gives each tensor its bytes: in the order of the offsets each begins where the one before ends, rounded up.
  void place(std::vector<Info>& infos) {
    std::uint64_t const unit = alignment(), begin = (at_ + unit - 1) / unit * unit;
    std::uint64_t const size = begin < file_.size() ? file_.size() - begin : 0;
    std::vector<Info*> order;
    for (Info& i : infos) order.push_back(&i);
    std::sort(order.begin(), order.end(), [](Info* a, Info* b) {
      return a->offset != b->offset ? a->offset < b->offset : a < b;  // those without elements first
    });
    std::uint64_t end = 0;
    bool known = true;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Weight& w = order[i]->weight;
      std::uint64_t const offset = order[i]->offset;
      std::string const what = "tensor " + shown_name(w.name) + ": ";
      if (offset % unit != 0) fail(what + "its data is not aligned to " + std::to_string(unit) + " bytes");
      if (offset < end) fail(what + "its data begins within that of another tensor");
      if (known && offset - end >= unit) fail(what + "there are unused bytes before its data");
      if (offset > size) fail(what + "its data begins behind the file");
      std::optional<std::uint64_t> bytes = Weights::stored_bytes(w);
      if (!bytes) fail(what + "its size overflows");
      known = w.dtype || w.quant;
      // What a type takes that is not known: all up to the next tensor.
      if (!known) bytes = (i + 1 < order.size() ? std::min(order[i + 1]->offset, size) : size) - offset;
      if (*bytes > size - offset) fail(what + "its data ends behind the file");
      w.bytes = file_.subspan(static_cast<std::size_t>(*bytes == 0 ? 0 : begin + offset),
                              static_cast<std::size_t>(*bytes));
      end = offset + *bytes;
    }
    if (known && size > end && size - end >= unit) fail("there are bytes behind the last tensor");
    for (Info& i : infos) weights_.add(std::move(i.weight), "gguf");
  }

  std::span<std::byte const> file_;
  std::size_t at_ = 0;
  std::string name_;
  Weights weights_;
};

}  // namespace detail

/// gguf_from - the weights in the bytes of a GGUF file, which must outlive them; `name` is for messages.
inline Weights gguf_from(std::span<std::byte const> bytes, std::string const& name = "memory") {
  return detail::GgufReader(bytes, name).read();
}

/// read_gguf - the weights in a GGUF file, which is mapped. All keys of the file are metadata. Tensors of types that
/// the library does not know are refused when their numbers are asked for, not before.
///
/// Errors    "gguf: m.gguf: ..." and what is wrong, for anything that the format does not allow: "it ends within the
///           key general.name", "tensor blk.0.attn_q.weight: its data ends behind the file", "it is big-endian, ..."
/// Source    https://github.com/ggml-org/ggml, docs/gguf.md
inline Weights read_gguf(std::filesystem::path const& path) {
  auto const file = MappedFile::open(path, "gguf");
  Weights r = gguf_from(file->bytes(), path.string());
  r.keep(file);
  return r;
}

}  // namespace dfdx
