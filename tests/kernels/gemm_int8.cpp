// SPDX-License-Identifier: BSL-1.0
// Products of numbers of eight bits against plain sums: each pair of kinds, each way that factors can lie, extremes.
#include <catch2/catch_test_macros.hpp>
#include <dfdx/kernels/gemm.hpp>

#include <array>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "flush.hpp"

namespace tests::kernels_gemm_int8 {

using namespace dfdx;
using std::int64_t, std::int32_t;

namespace {

// 0: rows contiguous; 1: columns; 2: neither.
struct Layout {
  int64_t row, col, size;
};
Layout layout(int how, int64_t rows, int64_t columns, int64_t gap) {
  if (how == 0) return {columns + gap, 1, rows * (columns + gap)};
  if (how == 1) return {1, rows + gap, columns * (rows + gap)};
  return {3, 3 * (rows + gap), 3 * columns * (rows + gap)};
}

std::string text(std::initializer_list<int64_t> numbers) {
  std::string r;
  for (int64_t const x : numbers) r += std::to_string(x) + ' ';
  return r + '\n';
}

template <class T>
std::vector<T> numbers(int64_t n, unsigned seed, bool extreme) {
  using L = std::numeric_limits<T>;
  std::vector<T> r(static_cast<std::size_t>(n));
  for (T& x : r) {
    seed = seed * 1664525u + 1013904223u;
    x = extreme ? (seed >> 30 == 0 ? L::max() : L::min()) : static_cast<T>(seed >> 24);
  }
  return r;
}

// Whether a product is exact and nothing between its rows is touched.
template <class A, class B>
bool is_exact(int64_t m, int64_t n, int64_t k, int a_how, int b_how, int64_t gap, bool extreme) {
  Layout const la = layout(a_how, m, k, gap), lb = layout(b_how, k, n, gap);
  auto const a = numbers<A>(la.size, 1, extreme);
  auto const b = numbers<B>(lb.size, 2, extreme);
  int64_t const c_row = n + gap;
  std::vector<int32_t> c(static_cast<std::size_t>(m * c_row), 77);
  // Flush with pages that are not mapped: the factors are read to their last number and no further.
  Flush<A> const x(la.size);
  Flush<B> const y(lb.size);
  if (!a.empty()) std::memcpy(x.data, a.data(), a.size());
  if (!b.empty()) std::memcpy(y.data, b.data(), b.size());
  kernels::Scratch<std::byte> const room(kernels::multiply_int8_workspace(m, n, k));
  kernels::multiply_int8(m, n, k, kernels::detail::strided<A>{x.data, la.row, la.col},
                         kernels::detail::strided<B>{y.data, lb.row, lb.col}, c.data(), c_row, room.get());
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      for (int64_t p = 0; p < k; ++p)
        sum += int64_t{a[static_cast<std::size_t>(i * la.row + p * la.col)]} *
               b[static_cast<std::size_t>(p * lb.row + j * lb.col)];
      if (c[static_cast<std::size_t>(i * c_row + j)] != static_cast<int32_t>(sum)) return false;
    }
    for (int64_t j = n; j < c_row; ++j)
      if (c[static_cast<std::size_t>(i * c_row + j)] != 77) return false;
  }
  return true;
}

#if defined(DFDX_EMULATED)
constexpr bool emulated = true;
#else
constexpr bool emulated = false;
#endif

template <class A, class B>
void check() {
  std::string wrong;  // sizes and layouts
  for (int64_t const m : {1, 2, 3, 5, 6, 7, 13, 24})
    for (int64_t const n : {1, 3, 4, 15, 16, 17, 63, 64, 65, 100})
      for (int64_t const k : {1, 2, 3, 4, 5, 17, 63, 64, 65, 131})
        for (int how = 0; how < 9; ++how) {
          int64_t const gap = (m + n + k + how) % 3;
          bool const extreme = (m * n + k) % 2 == 0;
          if (emulated && (m + n + k) % 4 != how % 4) continue;
          if (!is_exact<A, B>(m, n, k, how % 3, how / 3, gap, extreme))
            wrong += text({m, n, k, how, gap, extreme});
        }
  // Several blocks of k, with and without a last word that is not whole; nothing to sum; nothing at all.
  for (int64_t const k : {2048, 2051, 4101, 0})
    for (int how = 0; how < 9; ++how) {
      if (!is_exact<A, B>(7, 66, k, how % 3, how / 3, 1, how % 2 == 0)) wrong += text({7, 66, k, how});
      if (!is_exact<A, B>(1, 5, k, how % 3, how / 3, 0, how % 2 == 0)) wrong += text({1, 5, k, how});
    }
  for (int how = 0; how < 9; ++how)
    for (int64_t const m : {0, 1, 3, 5})
      for (int64_t const n : {0, 1, 5})
        if ((m == 0 || n == 0) && !is_exact<A, B>(m, n, 5, how % 3, how / 3, 2, false))
          wrong += text({m, n, 5, how});
  CHECK(wrong == "");
}

// Several blocks of rows, columns and k, and rows of whole lines, which matrix tiles read where they are.
template <class A, class B>
void check_large() {
  std::string wrong;
  for (auto const& [m, n, k] :
       {std::array<int64_t, 3>{300, 40, 1030}, {33, 150, 66}, {64, 96, 512}, {50, 128, 1024}})
    for (int const how : {0, 1, 3, 4, 8})
      for (int64_t const gap : {0, 1}) {
        if (gap != 0 && (emulated || m == 300)) continue;
        if (emulated && how != 0 && how != 4) continue;
        if (!is_exact<A, B>(m, n, k, how % 3, how / 3, gap, how == 3)) wrong += text({m, n, k, how, gap});
      }
  if (!emulated && !is_exact<A, B>(150, 40, 8201, 0, 0, 0, false)) wrong += text({150, 40, 8201});
  CHECK(wrong == "");
}

}  // namespace

TEST_CASE("products of i8 and i8", "[kernels][gemm]") { check<std::int8_t, std::int8_t>(); }
TEST_CASE("products of u8 and i8", "[kernels][gemm]") { check<std::uint8_t, std::int8_t>(); }
TEST_CASE("products of i8 and u8", "[kernels][gemm]") { check<std::int8_t, std::uint8_t>(); }
TEST_CASE("products of u8 and u8", "[kernels][gemm]") { check<std::uint8_t, std::uint8_t>(); }

TEST_CASE("large products of eight bits", "[kernels][gemm]") {
  check_large<std::int8_t, std::int8_t>();
  check_large<std::uint8_t, std::int8_t>();
  check_large<std::int8_t, std::uint8_t>();
  check_large<std::uint8_t, std::uint8_t>();
}

TEST_CASE("sums of products of eight bits wrap", "[kernels][gemm]") {
  // 2^18 times 127^2 is beyond 2^31.
  CHECK(is_exact<std::int8_t, std::int8_t>(1, 2, 1 << 18, 0, 1, 0, true));
  CHECK(is_exact<std::uint8_t, std::uint8_t>(5, 17, 1 << 17, 0, 0, 0, true));
}

}  // namespace tests::kernels_gemm_int8
