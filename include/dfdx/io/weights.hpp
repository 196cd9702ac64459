// SPDX-License-Identifier: BSL-1.0
// Weight and Weights: the tensors of a published model by name, left where the file has them and converted when asked
// for. The readers of each format make them: safetensors_weights.hpp, gguf.hpp, llama2c.hpp, pt.hpp; open_weights.hpp
// looks at a file to find which. Not part of <dfdx/io.hpp>.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <variant>

#include <dfdx/io/metadata.hpp>
#include <dfdx/kernels/reference/quantized.hpp>
#include <dfdx/value/array.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx {

/// RopeLayout - which two rows of the query and key matrices rotary embeddings turn together: 2i and 2i + 1 of a head
/// (llama2.c, GGUF files of Llama), or i and i + half of a head (Hugging Face). The wrong one gives a text that is
/// well for a few words, and then nonsense. See io/llama_names.hpp.
enum class RopeLayout : std::uint8_t { unknown, interleaved, half_split };

/// Encoding - how elements are stored: one by one, or in blocks.
using Encoding = std::variant<DType, Quant>;

/// Weight - a tensor of a file. Of dtype, quant and group one is given, or none if the library does not know the
/// format: such a tensor can be looked at, not converted.
struct Weight {
  std::string name;
  std::string file;                  // for messages
  std::string format;                // as the file calls it, "F32", "Q4_K"
  std::optional<DType> dtype;        // elements one by one
  std::optional<Quant> quant;        // blocks
  index_t group = 0;                 // i8 numbers, and behind them a float for each so many: llama2.c
  std::vector<index_t> shape;        // the outermost extent first, rows last, as in PyTorch
  std::span<std::byte const> bytes;  // not aligned

  /// How many elements there are; it fits, since the bytes are there.
  index_t size() const {
    index_t n = 1;
    for (index_t d : shape) n *= d;
    return n;
  }

  /// Elements as floats, from `first` on; of blocks whole ones.
  ///
  /// Errors    as of array; "...: elements 5 to 40 are not there", "...: elements 5 to 40 are not whole blocks"
  void read(index_t first, index_t n, float* out) const {
    auto const refuse = [&](char const* why) {
      fail("elements " + std::to_string(first) + " to " + std::to_string(first + n) + why);
    };
    if (first < 0 || n < 0 || n > size() - first) refuse(" are not there");
    if (quant) {
      if (first % block_length(*quant) != 0 || n % block_length(*quant) != 0) refuse(" are not whole blocks");
      std::size_t const begin = static_cast<std::size_t>(first / block_length(*quant)) * block_bytes(*quant);
      dequantize_row(*quant, bytes.data() + begin, n, out);
    } else if (group > 0) {
      std::byte const* const scales = bytes.data() + size();
      for (index_t done = 0; done < n;) {
        index_t const at = first + done, some = std::min(n - done, group - at % group);
        dequantize_groups(bytes.data() + at, scales + at / group * 4, group, some, out + done);
        done += some;
      }
    } else {
      if (!dtype) fail("elements of type " + detail::shown_name(format) + " are not supported");
      read_plain(first, n, out);
    }
  }

  /// The tensor in memory of its own: as it is stored, blocks as f32; or in another dtype. Numbers become floating or
  /// stay integers; integers must fit.
  ///
  /// Errors    "weights: m.gguf: blk.0.attn_q.weight: elements of type IQ2_S are not supported", "...: F32 cannot
  ///           become i32", "...: a number does not fit i32", "...: rank 9 is not supported"
  Array array(std::optional<DType> as = {}) const {
    if (shape.size() > static_cast<std::size_t>(max_rank))
      fail("rank " + std::to_string(shape.size()) + " is not supported");
    if (!dtype && !quant && group == 0)
      fail("elements of type " + detail::shown_name(format) + " are not supported");
    DType const to = as.value_or(dtype.value_or(DType::f32));
    if (!is_floating(to) && (!dtype || is_floating(*dtype))) fail(format + " cannot become " + name_of(to));
    Shape s;
    for (index_t d : shape) s.push_back(d);
    Array r(Meta{to, s});
    if (dtype == to && to != DType::boolean) {
      if (!bytes.empty()) std::memcpy(r.bytes(), bytes.data(), bytes.size());
      return r;
    }
    dispatch(to, [&](auto type) {
      using T = typename decltype(type)::type;
      T* const out = r.data<T>();
      if (dtype) read_plain(0, size(), out);
      else if constexpr (std::is_same_v<T, float>) read(0, size(), out);
      else {
        float some[1024];
        for (index_t i = 0; i < size(); i += 1024) {
          index_t const n = std::min<index_t>(1024, size() - i);
          read(i, n, some);
          for (index_t k = 0; k < n; ++k) out[i + k] = static_cast<T>(some[k]);
        }
      }
    });
    return r;
  }

  [[noreturn]] void fail(std::string const& why) const {
    detail::raise_file("weights: " + file + ": " + detail::shown_name(name) + ": " + why);
  }

 private:
  // By way of a wide type that holds every number of the other exactly, so that n dtypes take 2 n loops and not n^2:
  // floats for f32 and 16 bits, doubles, and 64 bits for integers and truths.
  template <class To>
  void read_plain(index_t first, index_t n, To* out) const {
    if (*dtype == DType::f64) read_by_way_of<double>(first, n, out);
    else if (is_floating(*dtype)) read_by_way_of<float>(first, n, out);
    else read_by_way_of<std::int64_t>(first, n, out);
  }
  template <class Wide, class To>
  void read_by_way_of(index_t first, index_t n, To* out) const {
    // Of floats as integers nothing is read: array() has refused it.
    if constexpr (std::is_integral_v<Wide> || !std::is_integral_v<To>) {
      Wide some[512];
      for (index_t i = 0; i < n; i += 512) {
        index_t const count = std::min<index_t>(512, n - i);
        widen(bytes.data() + (first + i) * static_cast<index_t>(size_of(*dtype)), count, some);
        for (index_t k = 0; k < count; ++k) {
          Wide const x = some[k];
          if constexpr (std::is_integral_v<Wide> && std::is_integral_v<To>)
            if (static_cast<std::int64_t>(static_cast<To>(x)) != x)
              fail(std::string("a number does not fit ") + name_of(dtype_v<To>));
          out[i + k] = static_cast<To>(static_cast<compute_t<To>>(x));
        }
      }
    }
  }
  template <class Wide>
  [[gnu::noinline]] void widen(std::byte const* p, index_t n, Wide* out) const {
    dispatch(*dtype, [&](auto type) {
      using From = typename decltype(type)::type;
      constexpr bool exact = std::is_integral_v<Wide>       ? std::is_integral_v<From>
                             : std::is_same_v<Wide, double> ? std::is_same_v<From, double>
                                                            : is_floating(dtype_v<From>) && sizeof(From) <= 4;
      if constexpr (exact) {
        for (index_t i = 0; i < n; ++i, p += sizeof(From)) {
          if constexpr (std::is_same_v<From, bool>) {  // of any other value it would be undefined
            out[i] = *p != std::byte{0};
          } else {
            From x;
            std::memcpy(&x, p, sizeof(From));
            out[i] = static_cast<Wide>(x);
          }
        }
      }
    });
  }
};

/// WantedWeight - what a model needs: a name and a shape, and whether it can do without.
struct WantedWeight {
  std::string name;
  std::vector<index_t> shape;
  bool optional = false;
};

/// Weights - the tensors of a model in the order of their file, and what it says besides. Copies share the files,
/// which stay open while one of them lives.
class Weights {
 public:
  explicit Weights(std::string source = "memory") : metadata(source), source_(std::move(source)) {}

  std::string format;  // "GGUF 3", "safetensors"
  Metadata metadata;
  RopeLayout rope = RopeLayout::unknown;

  std::string const& source() const { return source_; }
  std::size_t size() const { return all_.size(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

  /// The tensor of that name; null if there is none.
  Weight const* find(std::string_view name) const {
    auto const found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &all_[found->second];
  }
  /// Errors    "weights: m.gguf: there is no output.weight"
  Weight const& at(std::string_view name) const {
    Weight const* const w = find(name);
    if (w == nullptr) detail::raise_file("weights: " + source_ + ": there is no " + std::string(name));
    return *w;
  }
  Array array(std::string_view name, std::optional<DType> as = {}) const { return at(name).array(as); }

  /// All tensors in memory, the floating ones in that dtype: save_safetensors("m.safetensors", w.arrays(DType::bf16)).
  ///
  /// Errors    those of Weight::array
  std::map<std::string, Array> arrays(std::optional<DType> as = {}) const {
    std::map<std::string, Array> r;
    for (Weight const& w : all_) {
      bool const whole = w.dtype && !is_floating(*w.dtype);
      r.emplace(w.name, w.array(whole ? w.dtype : as));
    }
    return r;
  }

  /// check - whether these are what a model needs, no more and no less.
  ///
  /// Errors    "weights: m.gguf does not fit the model: output_norm.weight is missing; token_embd.weight: shape [512,
  ///           64] in the file, [512, 32] in the model; old.bias is not in the model". All mismatches in one
  void check(std::span<WantedWeight const> wanted) const {
    std::string wrong;
    auto const report = [&](std::string const& what) { wrong += (wrong.empty() ? "" : "; ") + what; };
    std::set<std::string_view> names;
    for (WantedWeight const& w : wanted) {
      names.insert(w.name);
      Weight const* const here = find(w.name);
      if (here == nullptr && !w.optional) report(w.name + " is missing");
      if (here != nullptr && here->shape != w.shape)
        report(w.name + ": shape " + shown(here->shape) + " in the file, " + shown(w.shape) +
               " in the model");
    }
    for (Weight const& w : all_)
      if (!names.contains(w.name)) report(detail::shown_name(w.name) + " is not in the model");
    if (!wrong.empty()) detail::raise_file("weights: " + source_ + " does not fit the model: " + wrong);
  }

  /// Adds a tensor whose bytes are there; a reader calls it. Keep what holds the bytes with keep.
  ///
  /// Errors    "gguf: m.gguf: x: the name is given twice", "...: its name is not UTF-8", "...: its size overflows",
  ///           "...: its data has another size than type and shape say: 8 bytes, not 16", with the given op
  void add(Weight w, char const* op = "weights") {
    std::string const where = std::string(op) + ": " + w.file + ": " + detail::shown_name(w.name) + ": ";
    if (!is_utf8(w.name)) detail::raise_file(where + "its name is not UTF-8");
    if (by_name_.contains(w.name)) detail::raise_file(where + "the name is given twice");
    std::optional<std::uint64_t> const size = stored_bytes(w);
    if (!size) detail::raise_file(where + "its size overflows");
    if (w.quant && (w.shape.empty() || w.shape.back() % block_length(*w.quant) != 0))
      detail::raise_file(where + "its rows are not whole blocks of " + name_of(*w.quant));
    if (w.group < 0 || (w.group > 0 && w.size() % w.group != 0))
      detail::raise_file(where + "its numbers are not whole groups");
    if ((w.dtype || w.quant || w.group > 0) && *size != w.bytes.size())
      detail::raise_file(where + "its data has another size than type and shape say: " +
                         std::to_string(w.bytes.size()) + " bytes, not " + std::to_string(*size));
    by_name_.emplace(w.name, all_.size());
    all_.push_back(std::move(w));
  }
  /// Adds a tensor in memory.
  void add(std::string const& name, Array const& value) {
    Array dense = value;
    if (!value.contiguous_memory()) {
      dense = Array(value.meta());
      copy_elements(value.operand(), dense.operand());
    }
    auto const kept = std::make_shared<Array const>(dense);
    Weight w;
    w.name = name;
    w.file = source_;
    w.format = name_of(value.dtype());
    w.dtype = value.dtype();
    w.shape.assign(value.shape().dims, value.shape().dims + value.ndim());
    w.bytes = {kept->bytes(), static_cast<std::size_t>(value.size()) * size_of(value.dtype())};
    add(std::move(w));
    keep(kept);
  }
  void keep(std::shared_ptr<void const> owner) { owners_.push_back(std::move(owner)); }

  /// The same tensors, each as change(weight, result) leaves it; what it points to besides is for result.keep.
  template <class F>
  Weights changed(F const& change) const {
    Weights r(source_);
    r.format = format;
    r.metadata = metadata;
    r.rope = rope;
    r.owners_ = owners_;
    for (Weight w : all_) {
      change(w, r);
      r.add(std::move(w));
    }
    return r;
  }
  /// The same tensors by other names.
  ///
  /// Errors    "weights: m.gguf: a.weight: the name is given twice"
  template <class F>
  Weights renamed(F const& name_of_weight) const {
    return changed([&](Weight& w, Weights&) { w.name = name_of_weight(std::as_const(w)); });
  }

  /// stored_bytes - how many bytes the elements take, by type and shape; nothing if that overflows.
  static std::optional<std::uint64_t> stored_bytes(Weight const& w) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<index_t>::max());
    std::uint64_t n = 1;
    bool none = false;
    for (index_t d : w.shape) {
      if (d < 0) return {};
      none = none || d == 0;
      if (__builtin_mul_overflow(n, static_cast<std::uint64_t>(std::max<index_t>(d, 1)), &n)) return {};
      if (n > most / 16) return {};  // of no elements too: strides are products of the other extents
    }
    if (none) return 0;
    if (w.dtype) return n * size_of(*w.dtype);
    if (w.quant) return n / static_cast<std::uint64_t>(block_length(*w.quant)) * block_bytes(*w.quant);
    return w.group > 0 ? n + n / static_cast<std::uint64_t>(w.group) * 4 : n;
  }

 private:
  static std::string shown(std::vector<index_t> const& shape) {
    std::string r = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) r += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return r + "]";
  }

  std::string source_;
  std::vector<Weight> all_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::vector<std::shared_ptr<void const>> owners_;
};

}  // namespace dfdx
