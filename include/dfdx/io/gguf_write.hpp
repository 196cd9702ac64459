// SPDX-License-Identifier: BSL-1.0
// Writing GGUF files, and quantizing weights on the way. Not part of <dfdx/io.hpp>.
#pragma once

#include <bit>
#include <span>
#include <type_traits>
#include <variant>

#include <dfdx/io/gguf.hpp>
#include <dfdx/kernels/reference/quantize.hpp>

namespace dfdx {

namespace detail {

class GgufWriter {
 public:
  static constexpr char const* op = "save_gguf";

  template <class Choose>
  GgufWriter(Weights const& from, Choose const& choose) : metadata_(from.metadata) {
    for (Weight const& w : from) {
      Encoding const as = choose(w);
      GgufType const& type = type_of(w, as);
      if (auto const* q = std::get_if<Quant>(&as);
          q && (w.shape.empty() || w.shape.back() % block_length(*q) != 0))
        refuse(w, std::string("its rows are not whole blocks of ") + name_of(*q));
      if (w.shape.size() > 4) refuse(w, "a GGUF file holds at most 4 axes");
      tensors_.push_back({&w, &type});
    }
    if (auto const* a = metadata_.find("general.alignment")) {
      auto const n = a->as<std::uint32_t>();
      if (!n || !std::has_single_bit(*n)) raise_file("save_gguf: general.alignment is no power of two");
      unit_ = *n;
    }
  }

  void write(std::filesystem::path const& path) {
    std::string head = "GGUF";
    put(head, std::uint32_t{3});
    put(head, std::uint64_t{tensors_.size()});
    put(head, std::uint64_t{metadata_.entries().size()});
    for (auto const& [key, value] : metadata_.entries()) {
      put(head, key);
      put(head, static_cast<std::uint32_t>(value.type()));
      if (std::string const* const text = value.text()) put(head, *text);
      else if (MetaList const* const list = value.list()) put(head, *list);
      else put(head, value.bytes());
    }
    std::uint64_t end = 0;
    for (Tensor const& t : tensors_) {
      put(head, t.weight->name);
      put(head, static_cast<std::uint32_t>(t.weight->shape.size()));
      for (std::size_t i = t.weight->shape.size(); i-- > 0;)
        put(head, static_cast<std::uint64_t>(t.weight->shape[i]));
      put(head, t.type->id);
      put(head, end);
      end = up(end + bytes(t));
    }
    head.resize(up(head.size()));
    FileWriter out(path, op);
    out.write(head.data(), head.size());
    for (Tensor const& t : tensors_) {
      write_tensor(out, t);
      std::string const padding(up(bytes(t)) - bytes(t), '\0');
      out.write(padding.data(), padding.size());
    }
    out.finish();
  }

 private:
  struct Tensor {
    Weight const* weight;
    GgufType const* type;
  };

  [[noreturn]] static void refuse(Weight const& w, std::string const& why) {
    raise_file(std::string(op) + ": " + shown_name(w.name) + ": " + why);
  }

  static GgufType const& type_of(Weight const& w, Encoding const& as) {
    if (!w.dtype && !w.quant && w.group == 0)
      refuse(w, "elements of type " + shown_name(w.format) + " are not supported");
    auto const* const dtype = std::get_if<DType>(&as);
    bool const whole = w.dtype && !is_floating(*w.dtype);
    if (whole != (dtype != nullptr && !is_floating(*dtype)) || (whole && *w.dtype != *dtype))
      refuse(w, w.format + " cannot become " + (dtype ? name_of(*dtype) : name_of(std::get<Quant>(as))));
    for (GgufType const& t : gguf_types)
      if (dtype != nullptr ? t.dtype == *dtype : t.quant == std::get<Quant>(as)) return t;
    refuse(w, std::string("a GGUF file cannot hold ") + name_of(*dtype));
  }

  static void put(std::string& to, std::span<std::byte const> x) {
    to.append(reinterpret_cast<char const*>(x.data()), x.size());
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  static void put(std::string& to, T x) {
    to.append(reinterpret_cast<char const*>(&x), sizeof x);
  }
  static void put(std::string& to, std::string const& x) {
    put(to, std::uint64_t{x.size()});
    to += x;
  }
  static void put(std::string& to, MetaList const& x) {
    put(to, static_cast<std::uint32_t>(x.type));
    put(to, std::uint64_t{x.size()});
    for (std::string const& text : x.texts) put(to, text);
    for (MetaList const& list : x.lists) put(to, list);
    put(to, x.numbers);
  }

  std::size_t up(std::uint64_t n) const { return static_cast<std::size_t>((n + unit_ - 1) / unit_ * unit_); }
  static std::uint64_t bytes(Tensor const& t) {
    auto const n = static_cast<std::uint64_t>(t.weight->size());
    if (t.type->dtype) return n * size_of(*t.type->dtype);
    return n / static_cast<std::uint64_t>(block_length(*t.type->quant)) * block_bytes(*t.type->quant);
  }

  static void write_tensor(FileWriter& out, Tensor const& t) {
    Weight const& w = *t.weight;
    if (w.dtype == t.type->dtype && w.quant == t.type->quant && w.group == 0)
      return out.write(w.bytes.data(), w.bytes.size());
    constexpr index_t step = 1 << 16;  // whole blocks of every format
    std::vector<float> numbers(static_cast<std::size_t>(std::min(step, w.size())));
    std::vector<std::byte> stored(numbers.size() * 8);
    for (index_t i = 0; i < w.size(); i += step) {
      index_t const n = std::min(step, w.size() - i);
      w.read(i, n, numbers.data());
      std::size_t size = 0;
      if (t.type->quant) {
        size = static_cast<std::size_t>(n / block_length(*t.type->quant)) * block_bytes(*t.type->quant);
        if (!quantize_row(*t.type->quant, numbers.data(), n, stored.data()))
          refuse(w, std::string("a number is not finite, or too large for ") + t.type->name);
      } else {
        size = static_cast<std::size_t>(n) * size_of(*t.type->dtype);
        dispatch(*t.type->dtype, [&](auto type) {
          using T = typename decltype(type)::type;
          for (index_t k = 0; k < n; ++k) {
            T const x = static_cast<T>(numbers[static_cast<std::size_t>(k)]);
            std::memcpy(stored.data() + k * static_cast<index_t>(sizeof(T)), &x, sizeof(T));
          }
        });
      }
      out.write(stored.data(), size);
    }
  }

  Metadata metadata_;
  std::uint64_t unit_ = 32;
  std::vector<Tensor> tensors_;
};

}  // namespace detail

/// as_stored - a choice for save_gguf: what has an encoding keeps it, llama2.c's int8 becomes f32.
inline Encoding as_stored(Weight const& w) {
  if (w.quant) return *w.quant;
  return w.dtype.value_or(DType::f32);
}

/// quantized_as - a choice for save_gguf: matrices in that format, or where their rows are not whole blocks of it in
/// Q8_0, or f16; vectors in f32, integers as they are.
struct quantized_as {
  Quant format;
  Encoding operator()(Weight const& w) const {
    if (w.dtype && !is_floating(*w.dtype)) return *w.dtype;
    if (w.shape.size() < 2) return DType::f32;
    if (w.shape.back() % block_length(format) == 0) return format;
    if (w.shape.back() % block_length(Quant::q8_0) == 0) return Quant::q8_0;
    return DType::f16;
  }
};

/// save_gguf - writes weights as a GGUF file (version 3) with their metadata, each tensor in the encoding that
/// choose(weight) gives it, in the order they have:
///
///   save_gguf("m-q4.gguf", read_gguf("m.gguf"), quantized_as{Quant::q4_0});
///
/// The file appears whole or not at all, and no more than a piece of one tensor is in memory at a time. Names and rows
/// stay as they are: those that llama.cpp expects are with_gguf_names' and RopeLayout::interleaved.
///
/// Errors    "save_gguf: cannot write m.gguf: No space left on device"; "save_gguf: blk.0.attn_q.weight: its rows are
///           not whole blocks of Q4_K", "...: a number is not finite, or too large for Q4_0", "...: i64 cannot become
///           f16"
template <class Choose>
void save_gguf(std::filesystem::path const& path, Weights const& weights, Choose const& choose) {
  detail::GgufWriter(weights, choose).write(path);
}
inline void save_gguf(std::filesystem::path const& path, Weights const& weights) {
  save_gguf(path, weights, as_stored);
}

}  // namespace dfdx
