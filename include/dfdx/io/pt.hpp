// SPDX-License-Identifier: BSL-1.0
// Reading PyTorch's .pt and .pth files, as torch.save writes them since PyTorch 1.6: zip files of a pickle and
// storages. Not part of <dfdx/io.hpp>: it needs zlib (zlib1g-dev; link with -lz, in CMake ZLIB::ZLIB).
#pragma once

#include <dfdx/io/llama_names.hpp>
#include <dfdx/io/mapped_file.hpp>
#include <dfdx/io/npz.hpp>
#include <dfdx/io/pickle.hpp>
#include <dfdx/io/weights.hpp>

namespace dfdx {

namespace detail {

class PtReader {
 public:
  using Kind = Pickle::Kind;

  PtReader(std::span<std::byte const> file, std::string const& name)
      : name_(name), zip_(open(file, name)), weights_(name) {
    for (auto const& m : zip_.members())
      if (!members_.emplace(m.name, &m).second) fail("it has the part " + shown_name(m.name) + " twice");
  }

  Weights read(std::string const& set) {
    weights_.format = "PyTorch";
    auto const found = std::find_if(zip_.members().begin(), zip_.members().end(),
                                    [](auto const& m) { return m.name.ends_with("/data.pkl"); });
    if (found == zip_.members().end()) fail("it has no data.pkl, as files of PyTorch have");
    folder_ = found->name.substr(0, found->name.size() - 8);
    constexpr std::uint64_t longest = 64'000'000;
    if (found->size > longest) fail("its pickle is longer than 64 MB");
    if (auto const order = members_.find(folder_ + "byteorder"); order != members_.end()) {
      if (order->second->size > 16) fail("its byteorder is none");
      auto const text = zip_.read(*order->second);
      if (std::string_view(reinterpret_cast<char const*>(text.data()), text.size()) != "little")
        fail("it is not little-endian, which is not supported");
    }
    auto const bytes = zip_.read(*found);
    Pickle const pickle(bytes, "pt: " + name_);
    take(pickle, set);
    weights_.rope = rope_of_names(weights_);
    return std::move(weights_);
  }

 private:
  [[noreturn]] void fail(std::string const& why) const { raise_file("pt: " + name_ + ": " + why); }

  static data::detail::ZipFile open(std::span<std::byte const> file, std::string const& name) {
    if (!file.empty() && file[0] == std::byte{0x80})
      raise_file("pt: " + name + ": it is a file of PyTorch before 1.6, which is not supported");
    return {file, name};
  }

  static bool holds_tensors(Pickle const& p, Pickle::Value const& v) {
    if (v.kind != Kind::dict) return false;
    for (std::size_t i = 1; i < v.items.size(); i += 2)
      if (p[v.items[i]].kind == Kind::tensor) return true;
    return false;
  }

  // The tensors are the value, its items, or those of one of its dicts.
  void take(Pickle const& p, std::string const& set) {
    Pickle::Value const& root = p.root();
    if (root.kind == Kind::tensor) return add("tensor", p.tensor(root));
    if (root.kind == Kind::list || root.kind == Kind::tuple) {
      for (std::size_t i = 0; i < root.items.size(); ++i)
        if (p[root.items[i]].kind == Kind::tensor) add(std::to_string(i), p.tensor(p[root.items[i]]));
      return;
    }
    if (root.kind != Kind::dict) fail("it holds no tensors");
    if (set.empty() && holds_tensors(p, root)) return add_all(p, root);
    Pickle::Value const* one = nullptr;
    std::string names;
    for (std::size_t i = 0; i < root.items.size(); i += 2) {
      Pickle::Value const &key = p[root.items[i]], &value = p[root.items[i + 1]];
      if (key.kind != Kind::text) continue;
      if (!holds_tensors(p, value)) {
        add_fact(key.text, value);
        continue;
      }
      names += (names.empty() ? "" : ", ") + shown_name(key.text);
      if (set.empty() ? key.text == "state_dict" || key.text == "model_state_dict" || key.text == "model"
                      : key.text == set) {
        if (one != nullptr) fail("it has several sets of tensors: " + names + "; name one");
        one = &value;
      } else if (set.empty() && one == nullptr) candidate_ = &value, ++candidates_;
    }
    if (one == nullptr && set.empty() && candidates_ == 1) one = candidate_;
    if (one == nullptr && names.empty()) fail("it holds no tensors");
    if (one == nullptr && !set.empty())
      fail("it has no set of tensors " + shown_name(set) + "; there are " + names);
    if (one == nullptr) fail("it has several sets of tensors: " + names + "; name one");
    add_all(p, *one);
  }

  void add_fact(std::string const& key, Pickle::Value const& v) {
    if (!is_utf8(key)) return;
    if (v.kind == Kind::boolean) weights_.metadata.set(key, v.integer != 0);
    if (v.kind == Kind::integer) weights_.metadata.set(key, v.integer);
    if (v.kind == Kind::real) weights_.metadata.set(key, v.real);
    if (v.kind == Kind::text) weights_.metadata.set(key, v.text);
  }

  void add_all(Pickle const& p, Pickle::Value const& dict) {
    for (std::size_t i = 0; i < dict.items.size(); i += 2) {
      Pickle::Value const &key = p[dict.items[i]], &value = p[dict.items[i + 1]];
      if (value.kind == Kind::tensor) {
        if (key.kind != Kind::text) fail("a tensor has a name that is no text");
        add(key.text, p.tensor(value));
      } else if (key.kind == Kind::text) add_fact(key.text, value);
    }
  }

  struct Type {
    char const *storage, *name;
    std::size_t size;
    std::optional<DType> dtype{};
  };
  static Type const* type_of(std::string const& storage) {
    static constexpr Type types[] = {
        {"FloatStorage", "F32", 4, DType::f32}, {"DoubleStorage", "F64", 8, DType::f64},
        {"HalfStorage", "F16", 2, DType::f16},  {"BFloat16Storage", "BF16", 2, DType::bf16},
        {"IntStorage", "I32", 4, DType::i32},   {"LongStorage", "I64", 8, DType::i64},
        {"ByteStorage", "U8", 1, DType::u8},    {"BoolStorage", "BOOL", 1, DType::boolean},
        {"CharStorage", "I8", 1, DType::i8},    {"ShortStorage", "I16", 2}};
    for (Type const& t : types)
      if (storage == t.storage) return &t;
    return nullptr;
  }

  // The bytes of a storage: those of the file, unless they are packed.
  std::span<std::byte const> storage(std::string const& key) {
    auto const [place, fresh] = storages_.try_emplace(key);
    if (!fresh) return place->second;
    auto const found = members_.find(folder_ + "data/" + key);
    if (found == members_.end()) fail("there is no storage " + shown_name(key));
    if (found->second->method == 0) place->second = zip_.stored(*found->second);
    else {
      auto const kept = std::make_shared<std::vector<std::byte> const>(zip_.read(*found->second));
      weights_.keep(kept);
      place->second = *kept;
    }
    stored_ += place->second.size();
    return place->second;
  }

  void add(std::string const& name, PickledTensor const& t) {
    auto const bad = [&](std::string const& why) { fail(shown_name(name) + ": " + why); };
    Type const* const type = type_of(t.type);
    if (type == nullptr) bad("its storage is a " + shown_name(t.type) + ", which is not supported");
    auto const bytes = storage(t.storage);
    if (t.numbers < 0 || bytes.size() / type->size != static_cast<std::uint64_t>(t.numbers) ||
        bytes.size() % type->size != 0)
      bad("its storage has " + std::to_string(bytes.size()) + " bytes, not " + std::to_string(t.numbers) +
          " elements");
    if (t.size.size() != t.stride.size()) bad("it has another number of extents than of strides");
    // The last element's place, and how many there are: not more than the storage has.
    std::int64_t count = 1, last = t.offset;
    bool possible = t.offset >= 0, none = false;
    for (std::size_t i = 0; i < t.size.size(); ++i) {
      std::int64_t step = 0;
      possible = possible && t.size[i] >= 0 && t.stride[i] >= 0;
      none = none || t.size[i] == 0;
      possible = possible && !__builtin_mul_overflow(count, std::max<std::int64_t>(t.size[i], 1), &count) &&
                 !__builtin_mul_overflow(std::max<std::int64_t>(t.size[i] - 1, 0), t.stride[i], &step) &&
                 !__builtin_add_overflow(last, step, &last);
    }
    if (!possible || (!none && (last >= t.numbers || count > t.numbers)))
      bad("its elements are not all in its storage");
    Weight w;
    w.name = name;
    w.file = name_;
    w.format = type->name;
    w.dtype = type->dtype;
    w.shape = t.size;
    if (!none) w.bytes = gather(t, bytes, type->size, static_cast<std::size_t>(count));
    weights_.add(std::move(w), "pt");
  }

  // The elements in row-major order: where they are, if they are in that order.
  std::span<std::byte const> gather(PickledTensor const& t, std::span<std::byte const> bytes,
                                    std::size_t size, std::size_t count) {
    std::int64_t dense = 1;
    bool in_order = true;
    for (std::size_t i = t.size.size(); i-- > 0;) {
      in_order = in_order && (t.size[i] == 1 || t.stride[i] == dense);
      dense *= t.size[i];
    }
    if (in_order) return bytes.subspan(static_cast<std::size_t>(t.offset) * size, count * size);
    // Many tensors may be views of one storage, and a copy of each could fill any memory.
    copied_ += count * size;
    if (copied_ > 2 * stored_)
      fail("its tensors are views that take more memory than all that it stores, twice over");
    auto const kept = std::make_shared<std::vector<std::byte>>(count * size);
    std::vector<index_t> at(t.size.size(), 0);
    std::int64_t from = t.offset;
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(kept->data() + i * size, bytes.data() + static_cast<std::size_t>(from) * size, size);
      for (std::size_t k = at.size(); k-- > 0;) {
        from += t.stride[k];
        if (++at[k] < t.size[k]) break;
        from -= t.stride[k] * t.size[k];
        at[k] = 0;
      }
    }
    weights_.keep(kept);
    return *kept;
  }

  std::string name_, folder_;
  data::detail::ZipFile zip_;
  std::map<std::string, data::detail::ZipFile::Member const*> members_;
  std::map<std::string, std::span<std::byte const>> storages_;
  Pickle::Value const* candidate_ = nullptr;
  int candidates_ = 0;
  std::uint64_t stored_ = 0, copied_ = 0;  // bytes
  Weights weights_;
};

}  // namespace detail

/// pt_from - the weights in the bytes of a PyTorch file, which must outlive them.
inline Weights pt_from(std::span<std::byte const> bytes, std::string const& name = "memory",
                       std::string const& set = "") {
  return detail::PtReader(bytes, name).read(set);
}

/// read_pt - the tensors in a file that torch.save wrote: of a tensor ("tensor"), a list ("0", "1", ...), a dict, or a
/// dict within one: the one called `set`; without that state_dict, model_state_dict, model, or the only one. Numbers
/// and texts beside them are metadata. The file is mapped; tensors that are not in row-major order, and storages that
/// are packed, are copied. Checksums of storages that are not packed are not looked at: that would read all of them.
/// Nothing in the pickle is called: a name other than those that tensors are made of is refused.
///
/// Errors    "pt: m.pt: it would call posix.system; only tensors are built"; "pt: m.pt: fc.weight: its elements are not
///           all in its storage"; "pt: m.pt: it has several sets of tensors: ema, net; name one"; "data: m.pt is no zip
///           file"
/// Source    PyTorch, torch/serialization.py and torch/_utils.py
inline Weights read_pt(std::filesystem::path const& path, std::string const& set = "") {
  auto const file = MappedFile::open(path, "pt");
  Weights r = pt_from(file->bytes(), path.string(), set);
  r.keep(file);
  return r;
}

}  // namespace dfdx
