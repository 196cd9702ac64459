// SPDX-License-Identifier: BSL-1.0
// The safetensors reader on files that it must accept, must refuse, and that are damaged in many ways.
#include "io/models.hpp"
#include "support.hpp"

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <sstream>

namespace tests::io_safetensors_file {

#ifndef DFDX_SHARED_DIR
#define DFDX_SHARED_DIR ""
#endif

using namespace tests;

namespace {

std::string refusal(std::string const& file) {
  return error_of([&] { SafetensorsFile::from(bytes_of(file), "f"); });
}
std::string header_refusal(std::string const& header, std::size_t data = 8) {
  return refusal(file_of(header, data));
}

}  // namespace

TEST_CASE("the files of the Rust implementation are accepted and refused as it does", "[io]") {
  std::filesystem::path const folder = std::filesystem::path(DFDX_SHARED_DIR) / "data/formats/safetensors-rs";
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(folder))
    SKIP("no safetensors-rs files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  // Its errors, and how ours begin behind the file's name.
  std::map<std::string, std::string> const words = {
      {"HeaderTooSmall", "shorter than the 8 bytes"},
      {"HeaderTooLarge", "the header is longer than 100 MB"},
      {"InvalidHeaderLength", "the header is longer than the file"},
      {"InvalidHeader", "not valid JSON in UTF-8"},
      {"InvalidHeaderDeserialization", "not valid JSON in UTF-8"},
      {"TensorInvalidInfo", "another size than dtype and shape say"},
      {"ValidationOverflow", "its size overflows"},
      {"MetadataIncompleteBuffer", ""}};
  std::ifstream list(folder / "expected.tsv");
  std::string line;
  std::getline(list, line);
  int files = 0;
  while (std::getline(list, line)) {
    std::istringstream fields(line);
    std::string name, size, expected;
    std::getline(fields, name, '\t');
    std::getline(fields, size, '\t');
    std::getline(fields, expected, '\t');
    CAPTURE(name, expected);
    std::string const got = error_of([&] { SafetensorsFile::open(folder / name); });
    if (expected == "OK") {
      CHECK(got == "");
    } else {
      REQUIRE(words.contains(expected));
      CHECK(got.find("safetensors: " + (folder / name).string() + ": ") == 0);
      CHECK(got.find(words.at(expected)) != std::string::npos);
    }
    ++files;
  }
  CHECK(files == 16);
}

TEST_CASE("a reader gives names, dtypes, shapes and values", "[io]") {
  auto const text =
      file_of(R"({"b":{"dtype":"U8","shape":[2,1],"data_offsets":[4,6]},"__metadata__":{"k":"v"},)"
              R"("a":{"dtype":"I32","shape":[],"data_offsets":[0,4]},)"
              R"("e":{"dtype":"F32","shape":[0,3],"data_offsets":[6,6]}})",
              6);
  auto const f = SafetensorsFile::from(bytes_of(text));
  REQUIRE(f.entries().size() == 3);
  CHECK(f.entries()[0].name == "a");
  CHECK(f.metadata().at("k") == "v");
  CHECK(f.find("a")->array().at<std::int32_t>({}) == 0x03020100);
  CHECK(f.find("b")->array().at<std::uint8_t>({1, 0}) == 5);
  CHECK(f.find("e")->array().shape() == make_shape(0, 3));
  CHECK(f.find("c") == nullptr);
  CHECK(f.arrays().size() == 3);
}

TEST_CASE("dtypes that the library does not have are refused only when used", "[io]") {
  auto const text = file_of(R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]},)"
                            R"("b":{"dtype":"X7","shape":[3],"data_offsets":[2,7]}})",
                            7);
  auto const f = SafetensorsFile::from(bytes_of(text));
  CHECK(f.find("b")->bytes.size() == 5);
  CHECK(error_of([&] { f.find("a")->array(); }) == "safetensors: a: dtype F8_E4M3 is not supported");
}

TEST_CASE("a bool is true or false whatever its byte", "[io]") {
  auto const text = file_of(R"({"a":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]}})", 4);
  auto const a = SafetensorsFile::from(bytes_of(text)).find("a")->array();
  for (int i = 0; i < 4; ++i) CHECK(static_cast<int>(a.bytes()[i]) == (i == 0 ? 0 : 1));
}

TEST_CASE("headers that the format does not allow", "[io]") {
  std::string const tensor = R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  CHECK(header_refusal("[1]") == "safetensors: f: the header is not a JSON object");
  CHECK(header_refusal("null", 0) == "safetensors: f: the header is not a JSON object");
  CHECK(header_refusal("{\"a\":" + tensor + ",\"a\":" + tensor + "}") ==
        "safetensors: f: the header has 'a' twice in one object");
  CHECK(header_refusal(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})") ==
        "safetensors: f: the header has 'dtype' twice in one object");
  CHECK(header_refusal(R"({"a":7})") == "safetensors: f: a: not an object");
  CHECK(header_refusal(R"({"a":{"shape":[2],"data_offsets":[0,8]}})") == "safetensors: f: a: no dtype");
  CHECK(header_refusal(R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})") ==
        "safetensors: f: a: dtype is not a string");
  CHECK(header_refusal(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})") ==
        "safetensors: f: a: shape is not an array");
  for (char const* d : {"-2", "2.0", "\"2\"", "null", "1e400"})
    CHECK(header_refusal(std::string(R"({"a":{"dtype":"F32","shape":[)") + d +
                         R"(],"data_offsets":[0,8]}})") != "");
  CHECK(header_refusal(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,8]}})") ==
        "safetensors: f: a: its size overflows");
  CHECK(header_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})") ==
        "safetensors: f: a: data_offsets is not two counts");
  CHECK(header_refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})") ==
        "safetensors: f: a: its data ends before it begins");
  CHECK(header_refusal("{\"a\":" + tensor + "}", 4) == "safetensors: f: a: its data ends behind the file");
  CHECK(header_refusal("{\"a\":" + tensor + "}", 9) ==
        "safetensors: f: there are bytes behind the last tensor");
  CHECK(header_refusal(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})") ==
        "safetensors: f: a: its data does not begin where the data before ends");
  CHECK(header_refusal("{\"a\":" + tensor + ",\"b\":" + tensor + "}") ==
        "safetensors: f: b: its data does not begin where the data before ends");
  CHECK(header_refusal(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})", 1) != "");
  CHECK(header_refusal(R"({"__metadata__":[]})", 0) == "safetensors: f: __metadata__ is not an object");
  CHECK(header_refusal(R"({"__metadata__":{"a":1}})", 0) ==
        "safetensors: f: __metadata__ holds something that is not a string");
  CHECK(header_refusal(std::string(100000, '['), 0) == "safetensors: f: the header is nested too deep");
  CHECK(header_refusal("{\"a\xff\":" + tensor + "}") ==
        "safetensors: f: the header is not valid JSON in UTF-8");
  CHECK(header_refusal("{} x", 0) == "safetensors: f: the header is not valid JSON in UTF-8");
}

TEST_CASE("every truncation and many damages of a good file are refused or read, never worse", "[io]") {
  TemporaryFolder const folder;
  save_safetensors(folder / "m.safetensors", model(1), {{"a", "b"}});
  std::ifstream in(folder / "m.safetensors", std::ios::binary);
  std::string const good{std::istreambuf_iterator<char>(in), {}};
  REQUIRE(refusal(good) == "");
  for (std::size_t n = 0; n < good.size(); ++n) CHECK(refusal(good.substr(0, n)) != "");
  int refused = 0;
  for (std::uint64_t i = 0; i < 20000; ++i) {
    std::string bad = good;
    for (std::uint64_t k = 0; k <= i % 3; ++k)
      bad[static_cast<std::size_t>(integer_at(Key{i}, k, 700))] =
          static_cast<char>(integer_at(Key{i}, k + 8, 256));
    refused += error_of([&] { SafetensorsFile::from(bytes_of(bad)).arrays(); }) != "";
  }
  CHECK(refused > 10000);
}

}  // namespace tests::io_safetensors_file
