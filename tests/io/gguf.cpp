// SPDX-License-Identifier: BSL-1.0
// GGUF files: those of others, round trips, and files that must be refused.
#include "io/models.hpp"
#include "support.hpp"

#include <dfdx/core/random.hpp>
#include <dfdx/io/gguf_write.hpp>

#include <catch2/catch_test_macros.hpp>

#include <fstream>

namespace tests::io_gguf {

using namespace tests;

namespace {

std::filesystem::path const shared = std::filesystem::path(DFDX_SHARED_DIR) / "data/llama";

#define NEEDS_SHARED_FILES()                                                    \
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(shared)) \
  SKIP("no GGUF files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'")

// A file piece by piece.
struct Gguf {
  std::string bytes = "GGUF";

  template <class T>
  Gguf& put(T x) {
    bytes.append(reinterpret_cast<char const*>(&x), sizeof(T));
    return *this;
  }
  Gguf& u32(std::uint32_t x) { return put(x); }
  Gguf& u64(std::uint64_t x) { return put(x); }
  Gguf& text(std::string const& s) {
    u64(s.size());
    bytes += s;
    return *this;
  }
  Gguf& head(std::uint64_t tensors, std::uint64_t keys, std::uint32_t version = 3) {
    return u32(version).u64(tensors).u64(keys);
  }
  Gguf& tensor(std::string const& name, std::vector<std::uint64_t> extents, std::uint32_t type,
               std::uint64_t offset) {
    text(name).u32(static_cast<std::uint32_t>(extents.size()));
    for (std::uint64_t e : extents) u64(e);
    return u32(type).u64(offset);
  }
  Gguf& data(std::size_t n) {
    bytes.resize((bytes.size() + 31) / 32 * 32 + n, '\1');
    return *this;
  }
};

std::string refusal(Gguf const& g) {
  std::string const r = error_of([&] { gguf_from(bytes_of(g.bytes), "f"); });
  CHECK((r.empty() || r.starts_with("gguf: f: ")));
  return r.empty() ? "" : r.substr(9);
}

Weights sample() {
  Weights w("sample");
  w.metadata.set("general.architecture", "llama");
  w.metadata.set("a.u8", std::uint8_t{200});
  w.metadata.set("a.i8", std::int8_t{-100});
  w.metadata.set("a.u16", std::uint16_t{60000});
  w.metadata.set("a.i16", std::int16_t{-30000});
  w.metadata.set("a.u32", std::uint32_t{4000000000});
  w.metadata.set("a.i32", std::int32_t{-2000000000});
  w.metadata.set("a.f32", 1.5f);
  w.metadata.set("a.bool", true);
  w.metadata.set("a.u64", ~std::uint64_t{0});
  w.metadata.set("a.i64", std::int64_t{-5});
  w.metadata.set("a.f64", 0.1);
  w.metadata.set("a.texts", MetaList{std::vector<std::string>{"x", "", "\xff raw"}});
  w.metadata.set("a.flags", MetaList{std::vector<bool>{true, false, true}});
  w.metadata.set("a.empty", MetaList{std::vector<double>{}});
  w.metadata.set("a.nested", MetaList{std::vector<MetaList>{MetaList{std::vector<std::int32_t>{1, 2}},
                                                            MetaList{std::vector<float>{0.5f}}}});
  auto matrix = Tensor<float, 3, 256>::uninitialized();
  for (index_t i = 0; i < 768; ++i)
    matrix.data()[i] = static_cast<float>(normal_at(Key{1}, static_cast<std::uint64_t>(i)));
  w.add("matrix", matrix);
  w.add("vector", Tensor<float16, 5>::from({float16(1), float16(2), float16(3), float16(4), float16(5)}));
  w.add("ids", Tensor<std::int64_t, 2, 1, 2>::from({1, 2, 3, -4}));
  return w;
}

double distance(Array const& a, Array const& b) {
  REQUIRE(a.shape() == b.shape());
  double sum = 0;
  for (index_t i = 0; i < a.size(); ++i) sum += std::pow(double{a.data<float>()[i]} - b.data<float>()[i], 2);
  return std::sqrt(sum / static_cast<double>(a.size()));
}
double root_mean_square(Array const& a) {
  double sum = 0;
  for (index_t i = 0; i < a.size(); ++i) sum += std::pow(double{a.data<float>()[i]}, 2);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

}  // namespace

TEST_CASE("a GGUF file from the wild", "[io]") {
  NEEDS_SHARED_FILES();
  Weights const w = read_gguf(shared / "llama-2-tiny-random.gguf");
  CHECK(w.format == "GGUF 3");
  CHECK(w.rope == RopeLayout::interleaved);
  CHECK(w.size() == 12);
  CHECK(w.metadata.text("general.name") == "LLaMA v2");
  CHECK(w.metadata.integer("llama.embedding_length") == 8);
  CHECK(w.metadata.number("llama.attention.layer_norm_rms_epsilon") == double{1e-5f});
  auto const& tokens = w.metadata.list<std::string>("tokenizer.ggml.tokens");
  CHECK(tokens.size() == 32000);
  CHECK(tokens[3] == "<0x00>");
  CHECK(w.metadata.list<float>("tokenizer.ggml.scores").size() == 32000);
  CHECK(w.at("token_embd.weight").shape == std::vector<index_t>{32000, 8});
  CHECK(w.at("blk.0.ffn_down.weight").shape == std::vector<index_t>{8, 32});
  CHECK(w.array("output.weight").dtype() == DType::f16);
  CHECK(w.array("output.weight", DType::f32).shape() == make_shape(32000, 8));
  CHECK(&output_head(w) == w.find("output.weight"));
}

TEST_CASE("quantizing the same net gives llama.cpp's bytes", "[io]") {
  NEEDS_SHARED_FILES();
  Weights const f32 = read_gguf(shared / "stories260K-f32.gguf");
  CHECK(output_head(f32).name == "token_embd.weight");
  for (auto const& [file, bound] :
       {std::pair{"stories260K-q8_0.gguf", 0.008}, {"stories260K-q4_0.gguf", 0.1}}) {
    Weights const q = read_gguf(shared / file);
    CHECK(q.size() == f32.size());
    int blocks = 0;
    for (Weight const& w : q) {
      CAPTURE(file, w.name, w.format);
      Weight const& from = f32.at(w.name);
      Array const exact = from.array(), rounded = w.array(DType::f32);
      CHECK(distance(exact, rounded) <= bound * root_mean_square(exact));
      if (!w.quant) continue;
      ++blocks;
      std::vector<std::byte> ours(w.bytes.size());
      REQUIRE(quantize_row(*w.quant, exact.data<float>(), exact.size(), ours.data()));
      std::size_t differ = 0;
      for (std::size_t i = 0; i < ours.size(); ++i) differ += ours[i] != w.bytes[i];
      CHECK(differ == 0);
    }
    CHECK(blocks > 30);
  }
}

TEST_CASE("what is saved comes back", "[io]") {
  TemporaryFolder const folder;
  Weights const w = sample();
  save_gguf(folder / "m.gguf", w);
  Weights const r = read_gguf(folder / "m.gguf");
  CHECK(r.metadata.entries() == w.metadata.entries());
  REQUIRE(r.size() == 3);
  for (Weight const& x : w) {
    CAPTURE(x.name);
    CHECK(array_equal(r.array(x.name), x.array()));
    CHECK(r.at(x.name).shape == x.shape);
  }
  // A copy keeps the file open, and saving it again gives the same bytes.
  std::optional<Weights> copy;
  copy = Weights(r);
  save_gguf(folder / "n.gguf", *copy);
  auto const a = read_file(folder / "m.gguf", "t"), b = read_file(folder / "n.gguf", "t");
  CHECK(a == b);
}

TEST_CASE("a file is saved in every encoding", "[io]") {
  TemporaryFolder const folder;
  Weights const w = sample();
  for (Quant f : {Quant::q4_0, Quant::q4_1, Quant::q5_0, Quant::q5_1, Quant::q8_0, Quant::q4_k, Quant::q5_k,
                  Quant::q6_k}) {
    save_gguf(folder / "q.gguf", w, quantized_as{f});
    Weights const r = read_gguf(folder / "q.gguf");
    CAPTURE(name_of(f));
    CHECK(r.at("matrix").format == name_of(f));
    CHECK(r.at("vector").format == "F32");
    CHECK(distance(r.array("matrix"), w.array("matrix")) < 0.11);
    CHECK(r.array("matrix", DType::bf16).dtype() == DType::bf16);
    // Rows one by one, as an embedding reads them.
    Array const all = r.array("matrix");
    std::vector<float> row(256);
    r.at("matrix").read(512, 256, row.data());
    CHECK(std::equal(row.begin(), row.end(), all.data<float>() + 512));
    CHECK(error_of([&] {
            r.at("matrix").read(512, 512, row.data());
          }).ends_with("matrix: elements 512 to 1024 are not there"));
    CHECK(error_of([&] {
            r.at("matrix").read(16, 256, row.data());
          }).ends_with("matrix: elements 16 to 272 are not whole blocks"));
  }
  for (DType d : {DType::f32, DType::f16, DType::bf16, DType::f64}) {
    save_gguf(folder / "d.gguf", w,
              [&](Weight const& x) { return Encoding(is_floating(*x.dtype) ? d : *x.dtype); });
    CHECK(read_gguf(folder / "d.gguf").at("matrix").dtype == d);
    CHECK(distance(read_gguf(folder / "d.gguf").array("matrix", DType::f32), w.array("matrix")) < 0.003);
  }
}

TEST_CASE("what save_gguf refuses", "[io]") {
  TemporaryFolder const folder;
  auto const path = folder / "m.gguf";
  auto const saved = [&](Weights const& w, Encoding e) {
    return error_of([&] { save_gguf(path, w, [&](Weight const&) { return e; }); });
  };
  Weights w;
  w.add("x", Tensor<float, 2, 3>::from({1, 2, 3, 4, 5, 6}));
  CHECK(saved(w, Quant::q4_0) == "save_gguf: x: its rows are not whole blocks of Q4_0");
  CHECK(saved(w, DType::i32) == "save_gguf: x: f32 cannot become i32");
  Weights ids;
  ids.add("x", Tensor<std::int32_t, 2>::from({1, 2}));
  CHECK(saved(ids, DType::f16) == "save_gguf: x: i32 cannot become f16");
  Weights bad;
  Tensor<float, 32> row = Tensor<float, 32>::uninitialized();
  std::fill(row.data(), row.data() + 32, 1e30f);
  bad.add("x", row);
  CHECK(saved(bad, Quant::q8_0) == "save_gguf: x: a number is not finite, or too large for Q8_0");
  Weights flags;
  flags.add("x", Tensor<bool, 2>::from({true, false}));
  CHECK(saved(flags, DType::boolean) == "save_gguf: x: a GGUF file cannot hold bool");
  CHECK(folder.files() == 0);
}

TEST_CASE("GGUF files that must be refused", "[io]") {
  CHECK(refusal(Gguf().head(0, 0)) == "");
  CHECK(refusal(Gguf().head(0, 0, 2)) == "");
  CHECK(refusal({"GG"}) == "it is shorter than the four letters that every GGUF file begins with");
  CHECK(refusal({"GGML0000"}) == "it does not begin with GGUF");
  CHECK(refusal({"tjgg0000"}) == "it is a file of ggml from before GGUF, which is not supported");
  CHECK(refusal(Gguf().u32(0x03000000)) == "it is big-endian, which is not supported");
  CHECK(refusal(Gguf().head(0, 0, 1)) == "it is of version 1; 2 and 3 are supported");
  CHECK(refusal(Gguf().head(0, 0, 4)) == "it is of version 4; 2 and 3 are supported");
  CHECK(refusal(Gguf().head(1, 0)) == "it says that it has more tensors than are possible");
  CHECK(refusal(Gguf().head(0, 1ull << 60)) == "it says that it has more keys than are possible");

  auto const key = [](std::string const& name, std::uint32_t type) {
    return Gguf().head(0, 1).text(name).u32(type);
  };
  CHECK(refusal(key("abc", 8).u64(100)) == "it ends within the key abc");
  CHECK(refusal(key("abc", 8).u64(~0ull)) == "it ends within the key abc");
  CHECK(refusal(key("abc", 13).u64(1)) == "the key abc has type 13, which is not known");
  CHECK(refusal(key("abc", 7).put('\2')) == "the key abc is neither true nor false");
  CHECK(refusal(key("a\xff", 0).put('\2')) == "the key a? is not UTF-8");
  CHECK(refusal(key("abc", 9).u32(4).u64(1ull << 40)) == "it ends within the key abc");
  CHECK(refusal(key("abc", 9).u32(8).u64(~0ull)) == "it ends within the key abc");
  CHECK(refusal(key("abc", 9).u32(14).u64(0)) == "the key abc has type 14, which is not known");
  Gguf deep = key("abc", 9);
  for (int i = 0; i < 100000; ++i) deep.u32(9).u64(1);
  CHECK(refusal(deep) == "the key abc is nested too deep");
  CHECK(refusal(Gguf().head(0, 2).text("k").u32(0).put('\1').text("k").u32(0).put('\2').u64(0)) ==
        "the key k is there twice");

  auto const one = [](std::vector<std::uint64_t> extents, std::uint32_t type, std::uint64_t offset,
                      std::size_t data) {
    return refusal(Gguf().head(1, 0).tensor("t", extents, type, offset).data(data));
  };
  CHECK(one({8}, 0, 0, 32) == "");
  CHECK(one({8, 0}, 0, 0, 0) == "");
  CHECK(one({}, 0, 0, 4) == "");
  CHECK(one({8}, 0, 0, 31) == "tensor t: its data ends behind the file");
  CHECK(one({8}, 0, 32, 64) == "tensor t: there are unused bytes before its data");
  CHECK(one({8}, 0, 16, 64) == "tensor t: its data is not aligned to 32 bytes");
  CHECK(one({8}, 0, 1ull << 63, 64) == "tensor t: there are unused bytes before its data");
  CHECK(one({8}, 0, 0, 64) == "there are bytes behind the last tensor");
  CHECK(one({1, 1, 1, 1, 1}, 0, 0, 32) == "tensor t has 5 axes; at most 4 are possible");
  CHECK(refusal(Gguf().head(1, 0).text("t").u32(0xffffffff).data(99)) ==
        "tensor t has 4294967295 axes; at most 4 are possible");
  CHECK(one({1ull << 32, 1ull << 32}, 0, 0, 32) == "tensor t: its size overflows");
  CHECK(one({~0ull}, 0, 0, 32) == "tensor t: its size overflows");
  CHECK(one({1ull << 62, 0}, 0, 0, 0) == "tensor t: its size overflows");
  CHECK(one({33}, 2, 0, 18) == "t: its rows are not whole blocks of Q4_0");
  CHECK(one({256}, 14, 0, 210) == "");

  auto const two = [](char const* a, char const* b, std::uint64_t offset) {
    return refusal(Gguf().head(2, 0).tensor(a, {8}, 0, 0).tensor(b, {8}, 0, offset).data(64));
  };
  CHECK(two("a", "b", 32) == "");
  CHECK(two("a", "a", 32) == "a: the name is given twice");
  CHECK(two("a", "b", 0) == "tensor b: its data begins within that of another tensor");
  CHECK(two("a", "b\xc0\x80", 32) == "b??: its name is not UTF-8");

  auto const aligned = [](std::uint32_t to) {
    return refusal(Gguf().head(0, 1).text("general.alignment").u32(4).u32(to));
  };
  CHECK(aligned(64) == "");
  CHECK(aligned(0) == "general.alignment is no power of two");
  CHECK(aligned(48) == "general.alignment is no power of two");
}

TEST_CASE("types that the library does not know are refused when used", "[io]") {
  Gguf const g = Gguf().head(2, 0).tensor("a", {256}, 22, 0).tensor("b", {8}, 0, 96).data(128);
  Weights const w = gguf_from(bytes_of(g.bytes), "f");
  CHECK(w.at("a").bytes.size() == 96);
  CHECK(w.array("b").size() == 8);
  CHECK(error_of([&] { w.array("a"); }) == "weights: f: a: elements of type IQ2_S are not supported");
}

TEST_CASE("what a model needs and what is there", "[io]") {
  Weights w("f");
  w.add("a", Tensor<float, 2, 3>::from({1, 2, 3, 4, 5, 6}));
  w.add("b", Tensor<float, 2>::from({1, 2}));
  std::vector<WantedWeight> wanted = {{"a", {2, 3}}, {"b", {2}}, {"c", {1}, true}};
  w.check(wanted);
  wanted[0].shape = {3, 2};
  wanted[1].name = "x";
  CHECK(error_of([&] { w.check(wanted); }) ==
        "weights: f does not fit the model: a: shape [2, 3] in the file, [3, 2] in the model; x is missing; "
        "b is not in "
        "the model");
  CHECK(error_of([&] { w.at("c"); }) == "weights: f: there is no c");
  CHECK(error_of([&] { w.metadata.integer("n"); }) == "weights: f: there is no n");
  w.metadata.set("n", std::string("x"));
  CHECK(error_of([&] { w.metadata.integer("n"); }) == "weights: f: n is not an integer");
  w.metadata.set("n", ~std::uint64_t{0});
  CHECK(error_of([&] { w.metadata.integer("n"); }) == "weights: f: n is not an integer");
  w.add("wide", Tensor<std::int64_t, 2>::from({1, std::int64_t{1} << 40}));
  CHECK(error_of([&] { w.array("wide", DType::i32); }) == "weights: f: wide: a number does not fit i32");
  CHECK(error_of([&] { w.array("a", DType::i32); }) == "weights: f: a: f32 cannot become i32");
  auto const arrays = w.arrays(DType::bf16);
  CHECK(arrays.size() == 3);
  CHECK(arrays.at("a").dtype() == DType::bf16);
  CHECK(arrays.at("wide").dtype() == DType::i64);
  CHECK(w.array("wide", DType::f64).at<double>({1}) == 0x1p40);
}

TEST_CASE("names and rotary layouts", "[io]") {
  CHECK(gguf_name("model.layers.12.self_attn.q_proj.weight") == "blk.12.attn_q.weight");
  CHECK(gguf_name("model.layers.0.self_attn.k_proj.bias") == "blk.0.attn_k.bias");
  CHECK(gguf_name("layers.3.feed_forward.w2.weight") == "blk.3.ffn_down.weight");
  CHECK(gguf_name("lm_head.weight") == "output.weight");
  CHECK(gguf_name("model.embed_tokens.weight") == "token_embd.weight");
  for (char const* same : {"blk.0.attn_q.weight", "model.layers.x.mlp.up_proj.weight", "model.layers.",
                           "layers.1", "model.layers.1.mlp.weight", "model.layers.1..weight",
                           "layers.1..weight", "layers..attention.wq.weight", ""})
    CHECK(gguf_name(same) == same);
  using enum RopeLayout;
  for (index_t i = 0; i < 16; ++i) {
    index_t const there = rope_row(i, 8, interleaved, half_split);
    CHECK(rope_row(there, 8, half_split, interleaved) == i);
    CHECK(there / 8 == i / 8);
  }
  CHECK(rope_row(3, 8, interleaved, half_split) == 5);
  CHECK(rope_row(5, 8, half_split, interleaved) == 3);
}

TEST_CASE("every truncation and many damages of a GGUF file are refused or read, never worse", "[io]") {
  TemporaryFolder const folder;
  save_gguf(folder / "m.gguf", sample(), quantized_as{Quant::q4_k});
  std::ifstream in(folder / "m.gguf", std::ios::binary);
  std::string const good{std::istreambuf_iterator<char>(in), {}};
  // The padding behind the last tensor may be missing.
  std::size_t const end = good.find_last_not_of('\0') + 1;
  for (std::size_t n = 0; n < good.size(); ++n) {
    bool const refused = !error_of([&] { gguf_from(bytes_of(good.substr(0, n))); }).empty();
    if (!refused) CHECK(n >= end - 1);
  }
  int refused = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (std::uint64_t k = 0; k <= i % 3; ++k)
      bad[static_cast<std::size_t>(integer_at(Key{i}, k, 760))] =
          static_cast<char>(integer_at(Key{i}, k + 8, 256));
    refused += !error_of([&] {
                  for (Weight const& w : gguf_from(bytes_of(bad)))
                    if (w.size() < 100000) w.array();
                }).empty();
  }
  CHECK(refused > 5000);
}

}  // namespace tests::io_gguf
