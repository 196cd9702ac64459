// SPDX-License-Identifier: BSL-1.0
// open_weights finds out what a file is, and the readers' errors say so where it is damaged.
#include "io/models.hpp"
#include "io/zip.hpp"
#include "support.hpp"

#include <dfdx/io/gguf_write.hpp>
#include <dfdx/io/open_weights.hpp>
#include <dfdx/vocabulary/compare.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::io_open_weights {

using namespace tests;

TEST_CASE("the shared files of every format are found out", "[io]") {
  std::filesystem::path const data = std::filesystem::path(DFDX_SHARED_DIR) / "data";
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(data / "llama"))
    SKIP("no model files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  std::pair<char const*, char const*> const files[] = {{"llama/stories260K.bin", "llama2.c 0"},
                                                       {"llama/stories260K_v1.bin", "llama2.c 1"},
                                                       {"llama/stories260K-q8.bin", "llama2.c 2"},
                                                       {"llama/stories260K-q4_0.gguf", "GGUF 3"},
                                                       {"llama/hf/model.safetensors", "safetensors"},
                                                       {"llama/hf", "safetensors"},
                                                       {"formats/candle/test.npz", "npz"},
                                                       {"formats/candle/test.pt", "PyTorch"},
                                                       {"formats/candle/fortran_tensor_3d.pth", "PyTorch"}};
  for (auto const& [name, format] : files) {
    CAPTURE(name);
    Weights const w = open_weights(data / name);
    CHECK(w.format == format);
    CHECK(w.size() > 0);
    for (Weight const& x : w) CHECK(x.array().size() == x.size());
  }
}

TEST_CASE("files are known by what is in them, not by their names", "[io]") {
  TemporaryFolder const folder;
  Weights w;
  w.add("x", Tensor<float, 2>::from({1, 2}));
  save_gguf(folder / "a.bin", w);
  CHECK(open_weights(folder / "a.bin").format == "GGUF 3");
  save_safetensors(folder / "b", {{"x", Tensor<float, 2>::from({1, 2})}});
  CHECK(open_weights(folder / "b").format == "safetensors");
  CHECK(open_weights(folder / "b").array("x").at<float>({1}) == 2);
}

TEST_CASE("PyTorch's files in a folder, by their index", "[io]") {
  std::filesystem::path const data = std::filesystem::path(DFDX_SHARED_DIR) / "data/formats/candle";
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(data))
    SKIP("no files of PyTorch: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  TemporaryFolder const folder;
  std::filesystem::copy_file(data / "test.pt", folder / "pytorch_model.bin");
  folder.write("config.json", R"({"hidden_size": 5})");
  Weights const one = open_weights(folder / "");
  CHECK(one.format == "PyTorch");
  CHECK(one.metadata.integer("config.hidden_size") == 5);
  std::filesystem::rename(folder / "pytorch_model.bin", folder / "m-1.bin");
  std::filesystem::copy_file(data / "fortran_tensor_3d.pth", folder / "m-2.bin");
  std::string map;
  for (char const* file : {"m-1.bin", "m-2.bin"})
    for (Weight const& w : read_pt(folder / file))
      map += (map.empty() ? "\"" : ", \"") + w.name + "\": \"" + file + "\"";
  std::string const name = "pytorch_model.bin.index.json";
  folder.write(name, R"({"weight_map": {)" + map + "}}");
  Weights const all = open_weights(folder / "");
  CHECK(all.metadata.integer("config.hidden_size") == 5);
  CHECK(all.size() == one.size() + read_pt(folder / "m-2.bin").size());
  CHECK(open_weights(folder / name).size() == all.size());
  for (Weight const& w : one) CHECK(array_equal(all.array(w.name), w.array()));
  folder.write(name, R"({"weight_map": {)" + map + R"(, "x": "m-2.bin"}})");
  CHECK(error_of([&] { open_weights(folder / ""); }) ==
        "pt: " + (folder / name).string() + " does not fit its files: x is not in m-2.bin");
  folder.write(name, R"({"weight_map": {"x": "../m-2.bin"}})");
  CHECK(error_of([&] { open_weights(folder / ""); }).ends_with("which is no name of a file beside it"));
}

TEST_CASE("what is of no format, or of one and damaged", "[io]") {
  TemporaryFolder const folder;
  auto const refusal = [&](std::string const& name, std::string const& content) {
    folder.write(name, content);
    std::string const r = error_of([&] { open_weights(folder / name); });
    std::string const path = (folder / name).string();
    std::size_t const at = r.find(path);
    REQUIRE(at != r.npos);
    return std::string(r).replace(at, path.size(), name);
  };
  CHECK(refusal("m.txt", "hello") ==
        "weights: m.txt is of no format that is known: safetensors, GGUF, llama2.c, npz and PyTorch are");
  CHECK(refusal("m", "") ==
        "weights: m is of no format that is known: safetensors, GGUF, llama2.c, npz and PyTorch are");
  CHECK(refusal("m.gguf", "hello") == "gguf: m.gguf: it does not begin with GGUF");
  CHECK(refusal("m.gguf", "") ==
        "gguf: m.gguf: it is shorter than the four letters that every GGUF file begins with");
  CHECK(refusal("m.bin", "") == "llama2c: m.bin: it ends within its header");
  CHECK(refusal("m.bin", "GGUF") == "gguf: m.bin: it ends within the version");
  CHECK(refusal("m.safetensors", "") ==
        "safetensors: m.safetensors: shorter than the 8 bytes of the header's length");
  CHECK(refusal("m.json", "{}") == "safetensors: m.json has no weight_map");
  CHECK(refusal("m.pt", "") == "data: m.pt is no zip file");
  CHECK(refusal("m.pth", "PK\3\4") == "data: m.pth is no zip file");
  CHECK(refusal("m.npz", "PK\3\4") == "data: m.npz is no zip file");
  CHECK(refusal("m.bin", zip({{"m/x", ""}})) == "pt: m.bin: it has no data.pkl, as files of PyTorch have");
  CHECK(error_of([&] { open_weights(folder / "none"); }) ==
        "weights: cannot read " + (folder / "none").string() + ": No such file or directory");
}

}  // namespace tests::io_open_weights
