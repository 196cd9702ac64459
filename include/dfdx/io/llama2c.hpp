// SPDX-License-Identifier: BSL-1.0
// Reading the model files of llama2.c (.bin): floats of version 0 (without a magic number) and 1, groups of int8 of
// version 2. Not part of <dfdx/io.hpp>.
#pragma once

#include <dfdx/io/mapped_file.hpp>
#include <dfdx/io/weights.hpp>

namespace dfdx {

namespace detail {

class Llama2cReader {
 public:
  Llama2cReader(std::span<std::byte const> file, std::string const& name)
      : file_(file), name_(name), weights_(name) {}

  Weights read() {
    version_ = header();
    weights_.format = "llama2.c " + std::to_string(version_);
    weights_.rope = RopeLayout::interleaved;
    head_ = dim_ / heads_;
    keys();
    if (version_ > 0) at_ = 256;
    if (version_ == 0) matrix("token_embd", vocabulary_, dim_);
    if (version_ == 2) norms(), group_ = asked_group_, matrix("token_embd", vocabulary_, dim_);
    if (version_ == 1) norms(), matrix("token_embd", vocabulary_, dim_);
    if (version_ == 0) vectors("attn_norm");
    matrices("attn_q", dim_, dim_);
    matrices("attn_k", kv_heads_ * head_, dim_);
    matrices("attn_v", kv_heads_ * head_, dim_);
    matrices("attn_output", dim_, dim_);
    if (version_ == 0) vectors("ffn_norm");
    matrices("ffn_gate", hidden_, dim_);
    matrices("ffn_down", dim_, hidden_);
    matrices("ffn_up", hidden_, dim_);
    if (version_ == 0) {
      put("output_norm.weight", {dim_});
      // Tables of sines and cosines, which programs now compute.
      std::uint64_t const tables =
          static_cast<std::uint64_t>(sequence_) * static_cast<std::uint64_t>(head_ / 2) * 8;
      if (tables > file_.size() - at_) fail("it ends within the rotary tables");
      at_ += static_cast<std::size_t>(tables);
    }
    if (!shared_) matrix("output", vocabulary_, dim_);
    if (at_ != file_.size())
      fail("it has " + std::to_string(file_.size() - at_) + " bytes more than its header says");
    return std::move(weights_);
  }

 private:
  [[noreturn]] void fail(std::string const& why) const { raise_file("llama2c: " + name_ + ": " + why); }

  index_t word() {
    if (file_.size() - at_ < 4) fail("it ends within its header");
    std::int32_t x;
    std::memcpy(&x, file_.data() + at_, 4);
    at_ += 4;
    return x;
  }
  // Bounds far above any model, below which no size that is computed from them overflows.
  index_t count(char const* what, index_t most) { return checked(what, word(), most); }
  index_t checked(char const* what, index_t x, index_t most) {
    if (x < 1 || x > most)
      fail(std::string("its header has ") + what + " " + std::to_string(x) + ", which is not possible");
    return x;
  }

  int header() {
    constexpr std::uint32_t magic = 0x616b3432;
    index_t const first = word();
    if (static_cast<std::uint32_t>(first) == __builtin_bswap32(magic))
      fail("it is big-endian, which is not supported");
    int version = 0;
    if (static_cast<std::uint32_t>(first) != magic) at_ = 0;
    else {
      index_t const v = word();
      if (v != 1 && v != 2) fail("it is of version " + std::to_string(v) + "; 0, 1 and 2 are supported");
      if (file_.size() < 256) fail("it ends within its header");
      version = static_cast<int>(v);
    }
    dim_ = count("dim", 1 << 20);
    hidden_ = count("hidden_dim", 1 << 20);
    layers_ = count("n_layers", 1 << 10);
    heads_ = count("n_heads", 1 << 20);
    kv_heads_ = count("n_kv_heads", 1 << 20);
    index_t const v = word();
    shared_ =
        version == 0 && v > 0;  // version 0: a negative size says that the last layer has a matrix of its own
    vocabulary_ = checked("vocab_size", version == 0 && v < 0 ? -v : v, 1 << 24);
    sequence_ = count("max_seq_len", 1 << 24);
    if (dim_ % heads_ != 0 || heads_ % kv_heads_ != 0)
      fail("its header has dim " + std::to_string(dim_) + ", n_heads " + std::to_string(heads_) +
           " and n_kv_heads " + std::to_string(kv_heads_) + ", which do not divide each other");
    if (version == 0) return 0;
    auto const shared = std::to_integer<unsigned>(file_[at_++]);
    if (shared > 1) fail("its header does not say whether the last layer shares its matrix");
    shared_ = shared == 1;
    if (version == 2) asked_group_ = count("group_size", 1 << 20);
    return version;
  }

  void keys() {
    Metadata& m = weights_.metadata;
    m.set("general.architecture", std::string("llama"));
    auto const set = [&](std::string const& key, index_t x) {
      m.set("llama." + key, static_cast<std::uint32_t>(x));
    };
    set("vocab_size", vocabulary_);
    set("context_length", sequence_);
    set("embedding_length", dim_);
    set("block_count", layers_);
    set("feed_forward_length", hidden_);
    set("rope.dimension_count", head_);
    set("attention.head_count", heads_);
    set("attention.head_count_kv", kv_heads_);
    // Constants of its programs.
    m.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    m.set("llama.rope.freq_base", 1e4f);
  }

  void put(std::string name, std::vector<index_t> shape) {
    Weight w;
    w.name = std::move(name);
    w.file = name_;
    w.shape = std::move(shape);
    if (group_ > 0) {
      w.group = group_;
      w.format = "int8 in groups of " + std::to_string(group_);
      if (w.size() % group_ != 0)
        fail(w.name + ": its numbers are not whole groups of " + std::to_string(group_));
    } else {
      w.dtype = DType::f32;
      w.format = "F32";
    }
    std::uint64_t const size = Weights::stored_bytes(w).value();
    if (size > file_.size() - at_) fail("it ends within " + w.name);
    w.bytes = file_.subspan(at_, static_cast<std::size_t>(size));
    at_ += w.bytes.size();
    weights_.add(std::move(w), "llama2c");
  }
  void matrix(std::string const& name, index_t rows, index_t columns) {
    put(name + ".weight", {rows, columns});
  }
  void each_layer(std::string const& part, std::vector<index_t> const& shape) {
    for (index_t i = 0; i < layers_; ++i) put("blk." + std::to_string(i) + "." + part + ".weight", shape);
  }
  void matrices(std::string const& part, index_t rows, index_t columns) { each_layer(part, {rows, columns}); }
  void vectors(std::string const& part) { each_layer(part, {dim_}); }
  void norms() {
    vectors("attn_norm");
    vectors("ffn_norm");
    put("output_norm.weight", {dim_});
  }

  std::span<std::byte const> file_;
  std::size_t at_ = 0;
  std::string name_;
  Weights weights_;
  int version_ = 0;
  index_t dim_ = 0, hidden_ = 0, layers_ = 0, heads_ = 0, kv_heads_ = 0, vocabulary_ = 0, sequence_ = 0,
          head_ = 0;
  index_t asked_group_ = 0, group_ = 0;  // of what is read now
  bool shared_ = false;
};

}  // namespace detail

/// llama2c_from - the weights in the bytes of a file of llama2.c, which must outlive them.
inline Weights llama2c_from(std::span<std::byte const> bytes, std::string const& name = "memory") {
  return detail::Llama2cReader(bytes, name).read();
}

/// read_llama2c - the weights in a file of llama2.c, which is mapped. They have the names of GGUF files
/// ("blk.0.attn_q.weight"), and the numbers of the header GGUF's keys ("llama.embedding_length"), with the constants of
/// its programs: an epsilon of 1e-5 and a rotary base of 1e4. Without output.weight the last layer uses the embedding.
///
/// Errors    "llama2c: m.bin: its header has dim -5, which is not possible"; "llama2c: m.bin: it ends within
///           blk.3.attn_q.weight"; "llama2c: m.bin: it has 12 bytes more than its header says"
/// Source    karpathy/llama2.c, export.py and run.c
inline Weights read_llama2c(std::filesystem::path const& path) {
  auto const file = MappedFile::open(path, "llama2c");
  Weights r = llama2c_from(file->bytes(), path.string());
  r.keep(file);
  return r;
}

}  // namespace dfdx
