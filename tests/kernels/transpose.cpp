// SPDX-License-Identifier: BSL-1.0
// The SIMD transpose against the definition, flush with pages that cannot be touched.
#include <dfdx/kernels/simd/transpose.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <vector>

namespace tests::kernels_transpose {

namespace {

using dfdx::kernels::transpose;

template <class T>
bool transposes(std::int64_t rows, std::int64_t columns, std::int64_t src_gap, std::int64_t dst_gap) {
  std::int64_t const src_row = columns + src_gap, dst_row = rows + dst_gap;
  // Exactly the elements a strided matrix spans: the sanitizers see a byte more.
  std::vector<T> src(static_cast<std::size_t>((rows - 1) * src_row + columns));
  std::vector<T> dst(static_cast<std::size_t>((columns - 1) * dst_row + rows), T(-1));
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<T>(i + 1);
  transpose(src.data(), src_row, rows, columns, dst.data(), dst_row);
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < dst_row && c * dst_row + r < static_cast<std::int64_t>(dst.size()); ++r) {
      T const want = r < rows ? src[static_cast<std::size_t>(r * src_row + c)] : T(-1);
      if (dst[static_cast<std::size_t>(c * dst_row + r)] != want) return false;
    }
  }
  return true;
}

template <class T>
int failures() {
  int wrong = 0;
  for (std::int64_t rows : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47})
    for (std::int64_t columns : {1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47})
      for (std::int64_t gap : {0, 3}) wrong += !transposes<T>(rows, columns, gap, 3 - gap);
  return wrong;
}

}  // namespace

TEST_CASE("transpose of every tail, dense and strided", "[kernels]") {
  CHECK(failures<float>() == 0);
  CHECK(failures<double>() == 0);
  CHECK(failures<std::int32_t>() == 0);
  CHECK(failures<std::uint8_t>() == 0);
}

TEST_CASE("a transpose past the caches", "[kernels]") {
  // Destinations where a line begins, of rows of whole lines or not, and others.
  auto const wrong = []<class T>(std::int64_t rows, std::int64_t columns, std::int64_t dst_row,
                                 std::size_t offset) {
    std::vector<T> src(static_cast<std::size_t>(rows * columns)),
        room(static_cast<std::size_t>(columns * dst_row) + 64, T(-1));
    for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<T>(i + 1);
    auto const skip = (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64) % 64 / sizeof(T) + offset;
    T* const dst = room.data() + skip;
    dfdx::kernels::transpose_past(src.data(), columns, rows, columns, dst, dst_row);
    int count = 0;
    for (std::size_t i = 0; i < room.size(); ++i) {
      auto const at = static_cast<std::int64_t>(i) - static_cast<std::int64_t>(skip);
      std::int64_t const c = at < 0 ? columns : at / dst_row, r = at < 0 ? 0 : at % dst_row;
      T const want = c < columns && r < rows ? src[static_cast<std::size_t>(r * columns + c)] : T(-1);
      count += room[i] != want;
    }
    return count;
  };
  for (std::int64_t rows : {1, 16, 31, 48, 65})
    for (std::int64_t columns : {1, 16, 31, 48, 65})
      for (std::int64_t dst_row : {80, 83})
        for (std::size_t offset : {0u, 3u}) {
          CHECK(wrong.operator()<float>(rows, columns, dst_row, offset) == 0);
          CHECK(wrong.operator()<double>(rows, columns, dst_row, offset) == 0);
        }
}

TEST_CASE("a padded transpose fills whole lanes and no more", "[kernels]") {
  constexpr std::int64_t rows = 13, columns = 21;
  constexpr std::int64_t room = 16;  // a multiple of every lane of float
  std::vector<float> src(rows * columns), dst(columns * room + 1, -1.0f);
  for (std::size_t i = 0; i < src.size(); ++i) src[i] = static_cast<float>(i);
  transpose<true>(src.data(), columns, rows, columns, dst.data(), room);
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r) CHECK(dst[c * room + r] == src[r * columns + c]);
  CHECK(dst.back() == -1.0f);
}

}  // namespace tests::kernels_transpose
