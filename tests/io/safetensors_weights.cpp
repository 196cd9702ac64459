// SPDX-License-Identifier: BSL-1.0
// Safetensors files as weights: one, shards by their index, folders of Hugging Face; and that a large file is not read
// before it is used.
#include "io/models.hpp"
#include "support.hpp"

#include <dfdx/io/gguf.hpp>
#include <dfdx/io/safetensors_weights.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>

namespace tests::io_safetensors_weights {

using namespace tests;

namespace {

std::filesystem::path const shared = std::filesystem::path(DFDX_SHARED_DIR) / "data/llama";

// Kilobytes of memory that this process has touched.
long resident() {
  long pages = 0, all = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

std::string index_of(std::string const& map) {
  return R"({"metadata":{"total_size":8},"weight_map":)" + map + "}";
}

}  // namespace

TEST_CASE("a safetensors file as weights", "[io]") {
  TemporaryFolder const folder;
  auto const path = folder / "m.safetensors";
  std::map<std::string, Array> const arrays = {
      {"a", Tensor<float16, 2, 2>::from({float16(1), float16(2), float16(3), float16(-4)})},
      {"b", Tensor<bfloat16, 3>::from({bfloat16(1), bfloat16(2), bfloat16(-3)})},
      {"c", Tensor<std::int64_t, 1>::from({7})},
      {"d", Tensor<bool, 2>::from({true, false})}};
  save_safetensors(path, arrays, {{"format", "pt"}});
  Weights const w = read_safetensors(path);
  CHECK(w.format == "safetensors");
  CHECK(w.metadata.text("format") == "pt");
  CHECK(w.at("a").format == "F16");
  CHECK(w.at("b").format == "BF16");
  for (auto const& [name, value] : arrays) CHECK(array_equal(w.array(name), value));
  CHECK(w.array("a", DType::f32).at<float>({1, 1}) == -4);
  CHECK(w.array("b", DType::f64).at<double>({2}) == -3);
  CHECK(w.array("d", DType::f32).at<float>({0}) == 1);
  CHECK(w.array("d", DType::i32).at<std::int32_t>({1}) == 0);
  CHECK(error_of([&] { read_safetensors(folder / "x"); }) ==
        "safetensors: cannot read " + (folder / "x").string() + ": No such file or directory");
  CHECK(error_of([&] { read_safetensors(folder / ""); }).ends_with(": Is a directory"));
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(error_of([&] { read_safetensors(folder / "pipe"); }).ends_with(": not a regular file"));
  folder.write("empty", "");
  CHECK(error_of([&] {
          read_safetensors(folder / "empty");
        }).ends_with("shorter than the 8 bytes of the header's length"));
}

TEST_CASE("shards and their index", "[io]") {
  TemporaryFolder const folder;
  save_safetensors(folder / "m-1.safetensors",
                   {{"a", Tensor<float, 2>::from({1, 2})}, {"b", Tensor<float, 1>::from({3})}});
  save_safetensors(folder / "m-2.safetensors", {{"c", Tensor<float, 1>::from({4})}});
  std::string const name = "model.safetensors.index.json";
  auto const index = folder / name;
  folder.write(name, index_of(R"({"a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"})"));
  folder.write("config.json",
               R"({"hidden_size":64,"eps":1e-5,"tied":true,"rope":{"factor":8.0,"x":null},"eos":[1,2],)"
               R"("kind":"llama","neg":-1,"archs":["A"],"mixed":[1,"a"],"empty":[]})");
  Weights const w = read_hugging_face(folder / "");
  CHECK(w.size() == 3);
  CHECK(w.array("c").at<float>({0}) == 4);
  CHECK(w.metadata.integer("config.hidden_size") == 64);
  CHECK(w.metadata.number("config.eps") == 1e-5);
  CHECK(w.metadata.flag("config.tied", false));
  CHECK(w.metadata.number("config.rope.factor") == 8);
  CHECK(*w.metadata.find("config.eos") == MetaList{std::vector<std::int64_t>{1, 2}});
  CHECK(*w.metadata.find("config.archs") == MetaList{std::vector<std::string>{"A"}});
  CHECK(w.metadata.integer("config.neg") == -1);
  CHECK(w.metadata.find("config.mixed") == nullptr);

  auto const refusal = [&](std::string const& json) {
    folder.write(name, json);
    std::string const r = error_of([&] { read_safetensors_index(index); });
    std::string const prefix = "safetensors: " + index.string() + " ";
    return r.starts_with(prefix) ? r.substr(prefix.size()) : r;
  };
  CHECK(refusal(index_of(R"({"a":"m-1.safetensors","b":"m-2.safetensors","x":"m-2.safetensors"})")) ==
        "does not fit its files: b is not in m-2.safetensors; x is not in m-2.safetensors; c is in "
        "m-2.safetensors and "
        "not in the index");
  CHECK(refusal(index_of(R"({"a":"../m-1.safetensors"})")) ==
        "gives a the file ../m-1.safetensors, which is no name of a file beside it");
  CHECK(refusal(index_of(R"({"a":"/etc/passwd"})")).ends_with("which is no name of a file beside it"));
  CHECK(refusal(index_of(R"({"a":"..","b":""})")).ends_with("which is no name of a file beside it"));
  CHECK(refusal(index_of(R"({"a":5})")) == "gives no file for a");
  CHECK(refusal(index_of(R"({"a":"m-1.safetensors","a":"m-1.safetensors"})")) ==
        "has 'a' twice in one object");
  CHECK(refusal(R"({"weight_map":[]})") == "has no weight_map");
  CHECK(refusal(R"([])") == "is not a JSON object");
  CHECK(refusal("{") == "is not valid JSON in UTF-8");
  CHECK(refusal(index_of("{\"a\xff\":\"m\"}")) == "is not valid JSON in UTF-8");
  CHECK(refusal(std::string(100000, '[')) == "is nested too deep");
  CHECK(refusal(index_of(R"({"a":"gone.safetensors"})"))
            .ends_with("gone.safetensors: No such file or directory"));
  save_safetensors(folder / "m-2.safetensors", {{"a", Tensor<float, 1>::from({4})}});
  CHECK(refusal(index_of(R"({"a":"m-1.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"})")) ==
        "safetensors: " + (folder / "m-2.safetensors").string() + ": a: the name is given twice");
  std::filesystem::remove(index);
  CHECK(error_of([&] {
          read_hugging_face(folder / "");
        }).ends_with("has neither model.safetensors nor model.safetensors.index.json"));
}

TEST_CASE("the files of Hugging Face and of GGUF hold the same net", "[io]") {
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(shared))
    SKIP("no model files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Weights const hf = with_gguf_names(read_hugging_face(shared / "hf")),
                gguf = read_gguf(shared / "stories260K-f32.gguf");
  Weights const bf16 = with_gguf_names(read_safetensors(shared / "hf/model-bf16.safetensors"));
  CHECK(hf.rope == RopeLayout::half_split);
  CHECK(hf.metadata.integer("config.hidden_size") == 64);
  index_t const head = gguf.metadata.integer("llama.rope.dimension_count");
  for (Weight const& w : gguf) {
    CAPTURE(w.name);
    bool const turned = w.name.ends_with("attn_q.weight") || w.name.ends_with("attn_k.weight");
    Array const here = w.array(), there = hf.array(w.name), rounded = bf16.array(w.name, DType::f32);
    REQUIRE(here.shape() == there.shape());
    index_t const row = w.shape.back(), rows = here.size() / row;
    int wrong = 0;
    for (index_t i = 0; i < rows; ++i) {
      index_t const k = turned ? rope_row(i, head, gguf.rope, hf.rope) : i;
      float const* const a = here.data<float>() + i * row;
      wrong += !std::equal(a, a + row, there.data<float>() + k * row);
      for (index_t j = 0; j < row; ++j)
        wrong += std::abs(rounded.data<float>()[k * row + j] - a[j]) > std::abs(a[j]) / 256;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows of queries and keys change their layout", "[io]") {
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(shared))
    SKIP("no model files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  Weights const hf = with_gguf_names(read_hugging_face(shared / "hf")),
                gguf = read_gguf(shared / "stories260K-f32.gguf");
  Weights const there = with_rope(hf, RopeLayout::interleaved, 8),
                back = with_rope(there, RopeLayout::half_split, 8);
  CHECK(there.rope == RopeLayout::interleaved);
  CHECK(back.rope == RopeLayout::half_split);
  for (Weight const& w : gguf) {
    CAPTURE(w.name);
    CHECK(array_equal(there.array(w.name), w.array()));
    CHECK(array_equal(back.array(w.name), hf.array(w.name)));
  }
  // Blocks stay what they are.
  Weights const q4 = read_gguf(shared / "stories260K-q4_0.gguf"),
                turned = with_rope(q4, RopeLayout::half_split, 8);
  Array const a = q4.array("blk.1.attn_k.weight"), b = turned.array("blk.1.attn_k.weight");
  CHECK(turned.at("blk.1.attn_k.weight").quant == Quant::q4_0);
  for (index_t i = 0; i < 32; ++i) {
    index_t const k = rope_row(i, 8, RopeLayout::interleaved, RopeLayout::half_split);
    CHECK(std::equal(a.data<float>() + i * 64, a.data<float>() + i * 64 + 64, b.data<float>() + k * 64));
  }
  CHECK(error_of([&] {
          with_rope(gguf, RopeLayout::half_split, 7);
        }).ends_with("attn_q.weight: its rows are not whole heads of 7"));
  CHECK(error_of([&] { with_rope(Weights("f"), RopeLayout::half_split, 8); }) ==
        "weights: f: its rotary layout is not known");
}

TEST_CASE("a file of 440 MB is opened without being read", "[io]") {
  if (!std::filesystem::exists("/proc/self/statm")) SKIP("no /proc/self/statm on this system");
  TemporaryFolder const folder;
  std::uint64_t const numbers = 110'000'000;
  std::string const header = R"({"w":{"dtype":"F32","shape":[110000,1000],"data_offsets":[0,440000000]}})";
  folder.write("m.safetensors", file_of(header, 0));
  std::filesystem::resize_file(folder / "m.safetensors", 8 + header.size() + numbers * 4);
  std::string gguf = "GGUF";
  auto const put = [&](auto x) { gguf.append(reinterpret_cast<char const*>(&x), sizeof(x)); };
  put(std::uint32_t{3}), put(std::uint64_t{1}), put(std::uint64_t{0}), put(std::uint64_t{1});
  gguf += 'w';
  put(std::uint32_t{2}), put(std::uint64_t{1000}), put(std::uint64_t{110000}), put(std::uint32_t{0}),
      put(std::uint64_t{0});
  gguf.resize((gguf.size() + 31) / 32 * 32);
  folder.write("m.gguf", gguf);
  std::filesystem::resize_file(folder / "m.gguf", gguf.size() + numbers * 4);
  for (char const* name : {"m.safetensors", "m.gguf"}) {
    CAPTURE(name);
    long const before = resident();
    auto const start = std::chrono::steady_clock::now();
    Weights const w =
        std::string(name) == "m.gguf" ? read_gguf(folder / name) : read_safetensors(folder / name);
    std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - start;
    CHECK(w.at("w").bytes.size() == numbers * 4);
    float row[1000];
    w.at("w").read(50'000'000, 1000, row);
    CHECK(row[999] == 0);
    long const grown = resident() - before;
    std::printf("%s: opened in %.3f ms, %ld kB touched\n", name, took.count(), grown);
    CHECK(grown < 4096);
  }
}

}  // namespace tests::io_safetensors_weights
