// SPDX-License-Identifier: BSL-1.0
// IDX files: all kinds of numbers, packed and not, and what is refused.
#include "io/zip.hpp"
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/io/idx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::io_idx {

using namespace dfdx;
using data::read_idx, data::read_idx_labels;
using tests::error_of;

namespace {

std::string text(std::initializer_list<int> bytes) {
  std::string s;
  for (int b : bytes) s += static_cast<char>(b);
  return s;
}

std::string packed(std::string const& s) { return tests::deflated(s, 16 + MAX_WBITS); }

std::string const small = text({0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 255});

}  // namespace

TEST_CASE("IDX files of every kind are read", "[io]") {
  tests::TemporaryFolder const folder;
  auto const want = Tensor<std::uint8_t, 2, 3>::from({1, 2, 3, 4, 5, 255});
  for (auto const& s : {small, packed(small)}) {
    Array const a = read_idx(folder.write("a", s));
    CHECK(a.dtype() == DType::u8);
    CHECK(array_equal(a, want));
  }
  auto const one = [&](std::initializer_list<int> bytes) { return read_idx(folder.write("a", text(bytes))); };
  CHECK(array_equal(one({0, 0, 9, 1, 0, 0, 0, 2, 255, 127}), Tensor<std::int32_t, 2>::from({-1, 127})));
  CHECK(
      array_equal(one({0, 0, 11, 1, 0, 0, 0, 2, 255, 254, 1, 0}), Tensor<std::int32_t, 2>::from({-2, 256})));
  CHECK(array_equal(one({0, 0, 12, 1, 0, 0, 0, 1, 255, 255, 255, 253}), Tensor<std::int32_t, 1>::from({-3})));
  CHECK(array_equal(one({0, 0, 13, 1, 0, 0, 0, 1, 0x3f, 0xc0, 0, 0}), Tensor<float, 1>::from({1.5f})));
  CHECK(array_equal(one({0, 0, 14, 1, 0, 0, 0, 1, 0xbf, 0xf8, 0, 0, 0, 0, 0, 0}),
                    Tensor<double, 1>::from({-1.5})));
  CHECK(one({0, 0, 8, 0, 7}).shape() == Shape{});
  CHECK(one({0, 0, 8, 2, 255, 255, 255, 255, 0, 0, 0, 0}).shape() == make_shape(4294967295, 0));
  CHECK(one({0, 0, 8, 2, 0, 0, 0, 0, 255, 255, 255, 255}).size() == 0);

  // Longer than the buffers.
  std::string big = text({0, 0, 12, 1, 0, 0, 0x40, 1});
  for (int i = 0; i < 0x4001; ++i) big += text({0, 0, i >> 8, i & 255});
  for (auto const& s : {big, packed(big)}) {
    Array const a = read_idx(folder.write("a", s));
    CHECK(array_equal(a, arange<std::int32_t, 0x4001>()));
  }
  auto const labels = read_idx_labels(folder.write("l", packed(text({0, 0, 8, 1, 0, 0, 0, 3, 9, 0, 4}))), 10);
  CHECK(array_equal(labels, Tensor<std::int32_t, 3>::from({9, 0, 4})));
}

TEST_CASE("other files are refused in a sentence", "[io]") {
  tests::TemporaryFolder const folder;
  std::string const at = "data: " + (folder / "x").string();
  auto const refusal = [&](std::string const& s) {
    auto const file = folder.write("x", s);
    return error_of([&] { read_idx(file); });
  };
  CHECK(error_of([&] { read_idx(folder / "none"); }) ==
        "data: cannot read " + (folder / "none").string() + ": No such file or directory");
  CHECK(refusal("") == at + " is empty");
  CHECK(refusal("abcdefgh") == at + " is no IDX file");
  CHECK(refusal(text({0, 0, 10, 1, 0, 0, 0, 0})) == at + " is no IDX file");
  CHECK(refusal(packed("hello, world")) == at + " is no IDX file");
  CHECK(refusal(text({0, 0, 8, 9})) == at + " has 9 axes; at most 8 are supported");
  for (std::size_t n = 1; n < small.size(); ++n) CHECK(refusal(small.substr(0, n)) == at + " ends early");
  CHECK(refusal(small + "x") == at + " has more bytes than its header says");
  CHECK(refusal(packed(small + "x")) == at + " has more bytes than its header says");
  CHECK(refusal(packed(small) + "x") == at + " has more bytes than its header says");
  // What would not fit any memory is refused before it is asked for, whatever the product wraps around to.
  for (std::string const& s : {text({0, 0, 14, 2, 255, 255, 255, 255, 255, 255, 255, 255, 0}),
                               text({0, 0, 8, 8, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0,
                                     0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0})}) {
    CHECK(refusal(s) == at + " ends early");
    CHECK(refusal(packed(s)) == at + " ends early");
  }

  std::string const good = packed(small);
  for (std::size_t n = 2; n < good.size(); ++n) CHECK(refusal(good.substr(0, n)) == at + " ends early");
  std::string damaged = good;
  damaged[damaged.size() - 6] ^= 1;  // of the checksum
  CHECK(refusal(damaged) == at + " is damaged: incorrect data check");
  // Any byte changed: refused, or (names and times in the header) the same array.
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string other = good;
    other[i] = static_cast<char>(other[i] ^ 0x55);
    auto const file = folder.write("x", other);
    Shape shape = make_shape(2, 3);
    try {
      shape = read_idx(file).shape();
    } catch (error const&) {
    }
    CHECK(shape == make_shape(2, 3));
  }

  auto const labels = [&](std::string const& s) {
    auto const file = folder.write("x", s);
    return error_of([&] { read_idx_labels(file, 10); });
  };
  CHECK(labels(text({0, 0, 8, 1, 0, 0, 0, 2, 9, 10})) == at + ": label 10 at 1, there are 10 classes");
  CHECK(labels(small) == at + " has no list of bytes but u8 [2, 3]");
}

}  // namespace tests::io_idx
