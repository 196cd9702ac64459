// SPDX-License-Identifier: BSL-1.0
// NumPy's files: every type, order and version; zip files packed and not; and what is refused.
#include "io/zip.hpp"
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/io/npz.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::io_npy {

#ifndef DFDX_SHARED_DIR
#define DFDX_SHARED_DIR ""
#endif

using namespace dfdx;
using data::npy_array, data::read_npy, data::read_npz;
using tests::error_of, tests::little, tests::zip;

namespace {

std::span<std::byte const> bytes_of(std::string const& s) {
  return {reinterpret_cast<std::byte const*>(s.data()), s.size()};
}
template <class T>
std::string numbers(std::vector<T> const& v, bool swapped = false) {
  std::string r;
  for (T x : v) {
    std::string one(sizeof(T), '\0');
    std::memcpy(one.data(), &x, sizeof(T));
    if (swapped) std::reverse(one.begin(), one.end());
    r += one;
  }
  return r;
}

// A file as NumPy writes it, the header filled up to 64 bytes.
std::string with_header(std::string header, std::string const& data, int version = 1) {
  int const width = version == 1 ? 2 : 4;
  while ((8 + static_cast<std::size_t>(width) + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  return "\x93NUMPY" + std::string(1, static_cast<char>(version)) + std::string(1, '\0') +
         little(header.size(), width) + header + data;
}
std::string npy(std::string const& type, std::string const& shape, std::string const& data,
                bool fortran = false, int version = 1) {
  return with_header("{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") +
                         ", 'shape': " + shape + ", }",
                     data, version);
}
Array read(std::string const& file) { return npy_array(bytes_of(file), "f"); }
std::string refusal(std::string const& file) {
  return error_of([&] { read(file); });
}

}  // namespace

TEST_CASE("npy files of every type", "[io]") {
  auto const one = [&]<class T, class E>(std::string const& type, std::vector<T> const& v, E) {
    for (bool swapped : {false, true}) {
      if (swapped && sizeof(T) == 1) continue;
      Array const a = read(npy((sizeof(T) == 1 ? "|"
                                : swapped      ? ">"
                                               : "<") +
                                   type,
                               "(3,)", numbers(v, swapped)));
      CAPTURE(type, swapped);
      CHECK(a.dtype() == dtype_v<E>);
      REQUIRE(a.shape() == make_shape(3));
      for (std::size_t i = 0; i < 3; ++i) CHECK(a.data<E>()[i] == static_cast<E>(v[i]));
    }
  };
  one("f4", std::vector<float>{1.5f, -2, 1e38f}, 0.0f);
  one("f8", std::vector<double>{1.5, -2, 1e300}, 0.0);
  one("i4", std::vector<std::int32_t>{1, -2, 1 << 30}, std::int32_t{});
  one("i8", std::vector<std::int64_t>{1, -2, std::int64_t{1} << 60}, std::int64_t{});
  one("u1", std::vector<std::uint8_t>{0, 7, 255}, std::uint8_t{});
  one("i1", std::vector<std::int8_t>{0, 7, -128}, std::int8_t{});
  one("i2", std::vector<std::int16_t>{0, 7, -300}, std::int32_t{});
  one("u2", std::vector<std::uint16_t>{0, 7, 65535}, std::int32_t{});
  one("u4", std::vector<std::uint32_t>{0, 7, 4294967295u}, std::int64_t{});
  Array const half = read(npy("<f2", "(2,)", std::string("\0\x3e\0\xc0", 4)));
  CHECK(array_equal(half, Tensor<float16, 2>::from({float16(1.5f), float16(-2.0f)})));
  Array const flags = read(npy("|b1", "(3,)", std::string("\0\1\2", 3)));
  CHECK(array_equal(flags, Tensor<bool, 3>::from({false, true, true})));
  for (int i = 0; i < 3; ++i) CHECK(static_cast<int>(flags.bytes()[i]) == (i > 0));
  CHECK(read(npy("=i4", "(1,)", little(5, 4))).item() == 5);
  CHECK(read(npy("i4", "(1,)", little(5, 4))).item() == 5);
}

TEST_CASE("npy files of every shape, order and version", "[io]") {
  std::vector<std::int32_t> const v{0, 1, 2, 3, 4, 5};
  auto const want = reshape<2, 3>(arange<std::int32_t, 6>());
  for (int version : {1, 2, 3}) {
    CHECK(array_equal(read(npy("<i4", "(2, 3)", numbers(v), false, version)), want));
    Array const f = read(npy("<i4", "(3, 2)", numbers(v), true, version));
    CHECK(array_equal(f, transpose(want)));
    CHECK(f.contiguous_memory());
  }
  auto const cube = arange<std::int32_t, 24>();
  std::vector<std::int32_t> const long_v(cube.data(), cube.data() + 24);
  CHECK(array_equal(read(npy("<i4", "(4, 3, 2)", numbers(long_v), true)),
                    permute<2, 1, 0>(reshape<2, 3, 4>(cube))));
  CHECK(read(npy("<f8", "()", numbers<double>({2.5}))).shape() == Shape{});
  CHECK(read(npy("<f8", "()", numbers<double>({2.5}), true)).item() == 2.5);
  CHECK(read(npy("<f8", "(3, 0)", "")).shape() == make_shape(3, 0));
  CHECK(read(npy("<f8", "(0, 9223372036854775807)", "", true)).size() == 0);
  // As other programs write it.
  std::string const five = numbers<double>({1, 2, 3, 4, 5});
  for (char const* header : {"{\"shape\":(5L,),\"fortran_order\":True,\"descr\":\"<f8\"}",
                             " { 'descr' : '<f8' ,\n'fortran_order':False,'shape':( 5 , ) , } ",
                             "{'fortran_order': False, 'descr': '<f8', 'shape': (5)}"})
    CHECK(read(with_header(header, five)).shape() == make_shape(5));
}

TEST_CASE("other npy files are refused in a sentence", "[io]") {
  std::string const data = numbers<double>({1, 2, 3});
  std::string const good = npy("<f8", "(3,)", data);
  REQUIRE(refusal(good) == "");
  for (std::size_t n = 0; n < good.size(); ++n) CHECK(refusal(good.substr(0, n)) == "data: f ends early");
  for (int version : {2, 3}) {
    std::string const other = npy("<f8", "(1, 3)", data, true, version);
    for (std::size_t n = 0; n < other.size(); ++n) CHECK(refusal(other.substr(0, n)) == "data: f ends early");
  }
  CHECK(refusal(good + "x") == "data: f has more bytes than its header says");
  CHECK(refusal("PK\3\4, not an array") == "data: f is no NPY file");
  CHECK(refusal(npy("<f8", "(3,)", data, false, 4)) ==
        "data: f is an NPY file of version 4, which is not supported");
  for (char const* type : {"|O", "<c8", "<U5", "|S3", "<M8[ns]", "<u8", "<f16", "|f8", "<V2", "", "<", "f"})
    CHECK(refusal(npy(type, "(3,)", data)) ==
          std::string("data: f has elements of type ") + type + ", which is not supported");
  CHECK(
      refusal(with_header(
          "{'descr': [('a', '<f8'), ('b', '<i4', (2,))], 'fortran_order': False, 'shape': (3,), }", data)) ==
      "data: f has elements of type [('a', '<f8'), ('b', '<i4', (2,))], which is not supported");
  CHECK(refusal(npy("<f8", "(1, 1, 1, 1, 1, 1, 1, 1, 3)", data)) ==
        "data: f has 9 axes; at most 8 are supported");
  // Sizes that nothing can have, whatever their product wraps around to.
  for (char const* shape :
       {"(4,)", "(4294967296, 4294967296)", "(18446744073709551616,)", "(9223372036854775808,)",
        "(65536, 65536, 65536, 65537)", "(99999999999999999999999999,)"}) {
    std::string const said = refusal(npy("<f8", shape, data));
    CHECK(
        (said == "data: f ends early" || said == "data: f has a header that is no description of an array"));
  }
  for (char const* header : {"", "{}", "x", "{'descr': '<f8', 'fortran_order': False}",
                             "{'descr': '<f8', 'fortran_order': 0, 'shape': (3,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': 3}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), 'more': 1}",
                             "{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (3,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (3,)} x",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (3,",
                             "{'descr': '<f8\\x00', 'fortran_order': False, 'shape': (3,)}",
                             "{'descr': [[, 'fortran_order': False, 'shape': (3,)}",
                             "{'descr': '<f8' 'fortran_order': False 'shape': (3,)}",
                             "{'descr': '<f8', 'fortran_order': False, 'shape': (3 3)}"})
    CHECK(refusal(with_header(header, data)) == "data: f has a header that is no description of an array");
}

TEST_CASE("npz files, packed or not, small and wide", "[io]") {
  tests::TemporaryFolder const folder;
  std::string const a = npy("<i4", "(3,)", numbers<std::int32_t>({1, 2, 3}));
  std::string const b = npy("<f4", "(500,)", numbers(std::vector<float>(500, 0.25f)));
  for (bool packed : {false, true})
    for (bool wide : {false, true})
      for (char const* comment : {"", "a comment PK\5\6"}) {
        auto const file = folder.write(
            "x.npz", zip({{"a.npy", a, packed, wide}, {"dir/b.npy", b, packed, wide}}, comment, wide));
        auto const all = read_npz(file);
        REQUIRE(all.size() == 2);
        CHECK(array_equal(all.at("a"), Tensor<std::int32_t, 3>::from({1, 2, 3})));
        CHECK(array_equal(all.at("dir/b"), full<Tensor<float, 500>>(0.25)));
      }
  CHECK(read_npz(folder.write("empty.npz", zip({}))).empty());
}

TEST_CASE("other zip files are refused in a sentence", "[io]") {
  tests::TemporaryFolder const folder;
  std::string const name = (folder / "x").string();
  auto const refused = [&](std::string const& s) {
    auto const file = folder.write("x", s);
    return error_of([&] { read_npz(file); });
  };
  std::string const a = npy("<i4", "(3,)", numbers<std::int32_t>({1, 2, 3}));
  CHECK(refused("") == "data: " + name + " is no zip file");
  CHECK(refused(std::string(100, 'x')) == "data: " + name + " is no zip file");
  CHECK(refused(zip({{"a.txt", a}})) == "data: " + name + ":a.txt is no array");
  CHECK(refused(zip({{"a.npy", a}, {"a.npy", a}})) == "data: " + name + ":a.npy is there twice");
  CHECK(refused(zip({{"a.npy", a.substr(0, 100)}})) == "data: " + name + ":a.npy ends early");
  for (bool packed : {false, true})
    for (bool wide : {false, true}) {
      std::string const good = zip({{"a.npy", a, packed, wide}, {"b.npy", a, packed, wide}}, "", wide);
      REQUIRE(refused(good) == "");
      for (std::size_t n = 0; n < good.size(); ++n)
        CHECK(refused(good.substr(0, n)).starts_with("data: " + name));
      // Any byte changed: refused, or (names, times, versions) the same arrays.
      for (std::size_t i = 0; i < good.size(); ++i)
        for (int flip : {0x01, 0x55, 0xff}) {
          std::string bad = good;
          bad[i] = static_cast<char>(bad[i] ^ flip);
          auto const file = folder.write("x", bad);
          try {
            for (auto const& [key, array] : read_npz(file))
              CHECK(array_equal(array, Tensor<std::int32_t, 3>::from({1, 2, 3})));
          } catch (error const& e) {
            CHECK(std::string(e.what()).starts_with("data: " + name));
          }
        }
    }
  // Two members of the same bytes.
  std::string overlapping = zip({{"a.npy", std::string(5000, 'x')}, {"b.npy", std::string(5000, 'x')}});
  overlapping.erase(5035, 5035);
  CHECK(refused(overlapping).starts_with("data: " + name + " is damaged"));
}

TEST_CASE("NumPy's and Candle's own files", "[io]") {
  std::filesystem::path const shared = std::filesystem::path(DFDX_SHARED_DIR) / "data/formats";
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(shared))
    SKIP("no files: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  for (char const* file : {"py2-np0-objarr.npy", "py2-objarr.npy", "py3-objarr.npy"})
    CHECK(error_of([&] { read_npy(shared / "npy" / file); }).find(" has elements of type |O") !=
          std::string::npos);
  for (char const* file : {"py2-objarr.npz", "py3-objarr.npz"})
    CHECK(error_of([&] { read_npz(shared / "npy" / file); }).find(":x.npy has elements of type |O") !=
          std::string::npos);
  Array const x = read_npy(shared / "candle/test.npy");
  auto const two = read_npz(shared / "candle/test.npz");
  REQUIRE(two.size() == 2);
  CHECK(array_equal(two.at("x"), x));
  CHECK(array_equal(two.at("x_plus_one"), x + 1));
  CHECK(x.size() > 1);
}

}  // namespace tests::io_npy
