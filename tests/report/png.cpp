// SPDX-License-Identifier: BSL-1.0
// PNG files read back by what zlib and the format say.
#include <dfdx/report/png.hpp>
#include <dfdx/vocabulary/create.hpp>

#include <catch2/catch_test_macros.hpp>

#include "support.hpp"

namespace tests::report_png {

using namespace dfdx;

TEST_CASE("a PNG file holds the image", "[report]") {
  tests::TemporaryFolder const folder;
  report::Image const image{2, 3, {0, 0.5f, 1, -1, 2, NAN}};
  report::save_png(folder / "x.png", image);
  auto const bytes = read_file(folder / "x.png", "test");
  auto const at = [&](std::size_t i) { return static_cast<unsigned>(bytes[i]); };
  auto const number = [&](std::size_t i) {
    return at(i) << 24 | at(i + 1) << 16 | at(i + 2) << 8 | at(i + 3);
  };
  REQUIRE(bytes.size() > 8 + 25);
  CHECK(number(0) == 0x89504e47);
  CHECK(number(4) == 0x0d0a1a0a);
  // Every chunk has a length, a name, and a checksum of name and data.
  std::string names, packed;
  for (std::size_t i = 8; i < bytes.size();) {
    std::size_t const size = number(i);
    REQUIRE(i + 12 + size <= bytes.size());
    auto const* const body = reinterpret_cast<unsigned char const*>(bytes.data() + i + 4);
    CHECK(number(i + 8 + size) == crc32(0, body, static_cast<unsigned>(size + 4)));
    names += std::string(reinterpret_cast<char const*>(body), 4) + " ";
    if (names == "IHDR ") {
      CHECK(size == 13);
      CHECK(number(i + 8) == 3);
      CHECK(number(i + 12) == 2);
    }
    if (names == "IHDR IDAT ") packed.assign(reinterpret_cast<char const*>(body + 4), size);
    i += 12 + size;
  }
  CHECK(names == "IHDR IDAT IEND ");
  unsigned char lines[16] = {};
  uLongf n = sizeof lines;
  REQUIRE(uncompress(lines, &n, reinterpret_cast<unsigned char const*>(packed.data()), packed.size()) ==
          Z_OK);
  CHECK(std::vector<int>(lines, lines + n) == std::vector<int>{0, 0, 128, 255, 0, 0, 255, 0});
}

TEST_CASE("tiles are images apart, each point several", "[report]") {
  report::Image const black{1, 2, {0, 0}}, grey{1, 2, {0.5f, 0.25f}};
  auto const r = report::tiled({black, grey, black}, 2, 3);
  CHECK(r.height == 2 * (3 + 4) + 4);
  CHECK(r.width == 2 * (6 + 4) + 4);
  auto const at = [&](std::size_t i, std::size_t j) { return r.values[i * r.width + j]; };
  CHECK(at(3, 4) == 1);
  CHECK(at(4, 4) == 0);
  CHECK(at(6, 9) == 0);
  CHECK(at(6, 10) == 1);
  CHECK(at(4, 14) == 0.5f);
  CHECK(at(6, 17) == 0.25f);
  CHECK(at(11, 4) == 0);
  CHECK(at(11, 14) == 1);
}

TEST_CASE("a PNG file holds colours", "[report]") {
  tests::TemporaryFolder const folder;
  // Two points beside each other: red and white, and what is beyond 0 .. 1.
  report::save_png(folder / "x.png", from({1, 2, 0, 1, -1, 1}, {3, 1, 2}));
  auto const bytes = read_file(folder / "x.png", "test");
  REQUIRE(bytes.size() > 8 + 25 + 12);
  CHECK(static_cast<int>(bytes[8 + 8 + 8]) == 8);
  CHECK(static_cast<int>(bytes[8 + 8 + 9]) == 2);  // red, green and blue
  std::size_t const idat = 8 + 25, size = static_cast<std::size_t>(bytes[idat + 3]);
  unsigned char line[8] = {};
  uLongf n = sizeof line;
  REQUIRE(uncompress(line, &n, reinterpret_cast<unsigned char const*>(bytes.data() + idat + 8), size) ==
          Z_OK);
  REQUIRE(n == 7);
  unsigned char const want[] = {0, 255, 0, 0, 255, 255, 255};
  CHECK(std::equal(want, want + 7, line));
}

TEST_CASE("images that do not fit are refused", "[report]") {
  tests::TemporaryFolder const folder;
  CHECK(tests::error_of([&] { report::save_png(folder / "x.png", {0, 3, {}}); }) ==
        "save_png: an image of 0 x 3 points");
  CHECK(tests::error_of([&] { report::save_png(folder / "x.png", {2, 3, {0}}); }) ==
        "save_png: an image of 2 x 3 points");
  CHECK(tests::error_of([&] { report::save_png(folder / "x.png", zeros({4, 2, 2})); }) ==
        "save_png: a picture [3, H, W] required, got [4, 2, 2]");
  CHECK(tests::error_of([&] { report::tiled({{1, 1, {0}}, {1, 2, {0, 0}}}, 2, 1); }) ==
        "tiled: images of 1 x 1 and 1 x 2 points");
  CHECK(tests::error_of([&] { report::tiled({{1, 2, {0}}}, 2, 1); }) == "tiled: 1 values for 1 x 2 points");
  CHECK(folder.files() == 0);
}

}  // namespace tests::report_png
