// SPDX-License-Identifier: BSL-1.0
// Files of llama2.c: the same net in its three versions and as GGUF, and files that must be refused.
#include "io/models.hpp"
#include "support.hpp"

#include <dfdx/core/random.hpp>
#include <dfdx/io/gguf.hpp>
#include <dfdx/io/llama2c.hpp>
#include <dfdx/kernels/reference/quantize.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::io_llama2c {

using namespace tests;

namespace {

std::filesystem::path const shared = std::filesystem::path(DFDX_SHARED_DIR) / "data/llama";

// dim 4, hidden 6, one layer, 2 heads of 2, 1 for keys and values, 5 tokens, 3 places.
struct Header {
  std::vector<std::int32_t> numbers = {4, 6, 1, 2, 1, 5, 3};
  std::string bytes() const { return {reinterpret_cast<char const*>(numbers.data()), numbers.size() * 4}; }
  Header with(std::size_t i, std::int32_t x) const {
    Header r = *this;
    r.numbers[i] = x;
    return r;
  }
};
constexpr std::size_t floats = 5 * 4 + 4 + 16 + 8 + 8 + 16 + 4 + 24 + 24 + 24 + 4;
std::string version0(Header const& h = {}, bool own = false) {
  return h.bytes() + std::string((floats + 3 * 1 * 2 + (own ? 20 : 0)) * 4, '\1');
}
std::string versioned(std::int32_t version, char own, std::size_t data, std::int32_t group = 2) {
  Header h;
  h.numbers.insert(h.numbers.begin(), {0x616b3432, version});
  std::string r = h.bytes() + own + std::string(reinterpret_cast<char const*>(&group), 4);
  r.resize(256);
  return r + std::string(data, '\1');
}
std::string refusal(std::string const& bytes) {
  std::string const r = error_of([&] { llama2c_from(bytes_of(bytes), "f"); });
  CHECK((r.empty() || r.starts_with("llama2c: f: ")));
  return r.empty() ? "" : r.substr(12);
}

}  // namespace

TEST_CASE("the three versions and GGUF hold the same net", "[io]") {
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(shared))
    SKIP("no files of llama2.c: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Weights const gguf = read_gguf(shared / "stories260K-f32.gguf");
  Weights const v0 = read_llama2c(shared / "stories260K.bin"),
                v1 = read_llama2c(shared / "stories260K_v1.bin"),
                v2 = read_llama2c(shared / "stories260K-q8.bin");
  for (Weights const* w : {&v0, &v1, &v2}) {
    CAPTURE(w->format);
    CHECK(w->size() == gguf.size());
    CHECK(w->rope == gguf.rope);
    for (char const* key :
         {"vocab_size", "context_length", "embedding_length", "block_count", "feed_forward_length",
          "rope.dimension_count", "attention.head_count", "attention.head_count_kv"})
      CHECK(w->metadata.integer(std::string("llama.") + key) ==
            gguf.metadata.integer(std::string("llama.") + key));
    char const* const epsilon = "llama.attention.layer_norm_rms_epsilon";
    CHECK(w->metadata.number(epsilon) == gguf.metadata.number(epsilon));
  }
  CHECK(v0.format == "llama2.c 0");
  CHECK(v2.at("token_embd.weight").group == 8);
  for (Weight const& w : gguf) {
    CAPTURE(w.name);
    Array const exact = w.array();
    CHECK(array_equal(v0.array(w.name), exact));
    CHECK(array_equal(v1.array(w.name), exact));
    Weight const& q = v2.at(w.name);
    Array const rounded = q.array();
    if (q.group == 0) {
      CHECK(array_equal(rounded, exact));
      continue;
    }
    // Each is as near as half a step, and our own rounding gives the same bytes.
    int far = 0;
    for (index_t i = 0; i < exact.size(); ++i) {
      float scale;
      std::memcpy(&scale, q.bytes.data() + exact.size() + i / q.group * 4, 4);
      far += std::abs(rounded.data<float>()[i] - exact.data<float>()[i]) > scale * 0.50001f;
    }
    CHECK(far == 0);
    std::vector<std::byte> ours(q.bytes.size());
    REQUIRE(
        quantize_groups(exact.data<float>(), exact.size(), q.group, ours.data(), ours.data() + exact.size()));
    CHECK(std::equal(ours.begin(), ours.end(), q.bytes.begin()));
    // Any piece is the same as in the whole.
    std::vector<float> some(static_cast<std::size_t>(exact.size() - 9));
    q.read(7, exact.size() - 9, some.data());
    CHECK(std::equal(some.begin(), some.end(), rounded.data<float>() + 7));
  }
}

TEST_CASE("what a file of llama2.c holds", "[io]") {
  std::string const tied = version0(), own = version0(Header().with(5, -5), true);
  Weights const w = llama2c_from(bytes_of(tied));
  CHECK(w.size() == 11);
  CHECK(w.find("output.weight") == nullptr);
  CHECK(w.at("blk.0.attn_k.weight").shape == std::vector<index_t>{2, 4});
  CHECK(w.at("blk.0.ffn_down.weight").shape == std::vector<index_t>{4, 6});
  CHECK(llama2c_from(bytes_of(own)).at("output.weight").shape == std::vector<index_t>{5, 4});
  CHECK(refusal(versioned(1, 1, floats * 4)) == "");
  CHECK(refusal(versioned(1, 0, (floats + 20) * 4)) == "");
  CHECK(refusal(versioned(2, 1, 12 * 4 + (floats - 12) * 3)) == "");
  CHECK(refusal(versioned(2, 0, 12 * 4 + (floats + 8) * 3)) == "");
}

TEST_CASE("files of llama2.c that must be refused", "[io]") {
  CHECK(refusal("") == "it ends within its header");
  CHECK(refusal(std::string("\x61\x6b\x34\x32", 4)) == "it is big-endian, which is not supported");
  CHECK(refusal(versioned(3, 1, 0)) == "it is of version 3; 0, 1 and 2 are supported");
  CHECK(refusal(versioned(1, 2, floats * 4)) ==
        "its header does not say whether the last layer shares its matrix");
  CHECK(refusal(versioned(2, 1, 999, 0)) == "its header has group_size 0, which is not possible");
  CHECK(refusal(versioned(2, 1, 999, 3)) == "token_embd.weight: its numbers are not whole groups of 3");
  CHECK(refusal(version0(Header().with(0, -4))) == "its header has dim -4, which is not possible");
  CHECK(refusal(version0(Header().with(2, 1 << 30))) ==
        "its header has n_layers 1073741824, which is not possible");
  CHECK(refusal(version0(Header().with(5, -2147483647 - 1))) ==
        "its header has vocab_size 2147483648, which is not possible");
  CHECK(refusal(version0(Header().with(3, 3))) ==
        "its header has dim 4, n_heads 3 and n_kv_heads 1, which do not divide each other");
  CHECK(refusal(version0(Header().with(1, 1 << 20))) == "it ends within blk.0.ffn_gate.weight");
  CHECK(refusal(version0(Header().with(6, 4))) == "it ends within the rotary tables");
  CHECK(refusal(version0() + "0123") == "it has 4 bytes more than its header says");
  CHECK(refusal(version0(Header().with(5, -5))) == "it ends within output.weight");
  for (std::string const& good :
       {version0(), versioned(1, 1, floats * 4), versioned(2, 0, 12 * 4 + (floats + 8) * 3)}) {
    for (std::size_t n = 0; n < good.size(); ++n) CHECK(refusal(good.substr(0, n)) != "");
    for (std::uint64_t i = 0; i < 5000; ++i) {
      std::string bad = good;
      bad[static_cast<std::size_t>(integer_at(Key{i}, 0, 45))] =
          static_cast<char>(integer_at(Key{i}, 1, 256));
      error_of([&] {
        for (Weight const& w : llama2c_from(bytes_of(bad))) w.array();
      });
    }
  }
}

}  // namespace tests::io_llama2c
