// SPDX-License-Identifier: BSL-1.0
// Products of bf16 by the processor's own instructions, or its matrix tiles, against sums in double.
#include <catch2/catch_test_macros.hpp>
#include <dfdx/kernels/gemm.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "flush.hpp"
#include "worse.hpp"

namespace tests::kernels_gemm_bf16 {

using namespace dfdx;
using std::int64_t;

static_assert(kernels::has_bf16_products, "this file is for targets that multiply bf16");

namespace {

struct Case {
  int64_t m, n, k;
  bool a_turned, b_turned;
  int64_t gap;  // between the rows, or columns, of all three
};

// Operands flush with pages that are not mapped: they are read to their last number and no further.
struct Product {
  Case how;
  int64_t a_row, a_col, b_row, b_col, c_row;
  Flush<bfloat16> a, b, c;

  explicit Product(Case const& x)
      : how(x),
        a_row(x.a_turned ? 1 : x.k + x.gap),
        a_col(x.a_turned ? x.m + x.gap : 1),
        b_row(x.b_turned ? 1 : x.n + x.gap),
        b_col(x.b_turned ? x.k + x.gap : 1),
        c_row(x.n + x.gap),
        a((x.m - 1) * a_row + (x.k - 1) * a_col + 1),
        b((x.k - 1) * b_row + (x.n - 1) * b_col + 1),
        c((x.m - 1) * c_row + x.n) {
    unsigned state = 7;
    for (auto* const operand : {&a, &b})
      for (int64_t i = 0; i < operand->count(); ++i)
        (*operand)[i] =
            bfloat16(static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1);
    for (int64_t i = 0; i < c.count(); ++i) c[i] = bfloat16(7.0f);
  }
  void run() const {
    kernels::Scratch<std::byte> const room(kernels::gemm_bf16_workspace(how.m, how.n, how.k));
    std::memset(room.get(), 0xff, kernels::gemm_bf16_workspace(how.m, how.n, how.k));  // NaN
    kernels::multiply_bf16(how.m, how.n, how.k, {a.data, a_row, a_col}, {b.data, b_row, b_col}, c.data, c_row,
                           room.get());
  }
  // The largest error in units of the bound: k eps sum |a| |b| of f32, and half a place of the result.
  double worst_error() const {
    double worst = 0;
    std::vector<double> sum(static_cast<std::size_t>(how.n)), absolute(sum);
    for (int64_t i = 0; i < how.m; ++i) {
      std::fill(sum.begin(), sum.end(), 0.0), std::fill(absolute.begin(), absolute.end(), 0.0);
      for (int64_t p = 0; p < how.k; ++p) {
        auto const x = static_cast<double>(a[i * a_row + p * a_col]);
        for (int64_t j = 0; j < how.n; ++j) {
          double const product = x * static_cast<double>(b[p * b_row + j * b_col]);
          sum[static_cast<std::size_t>(j)] += product;
          absolute[static_cast<std::size_t>(j)] += std::abs(product);
        }
      }
      for (int64_t j = 0; j < how.n; ++j) {
        double const s = sum[static_cast<std::size_t>(j)];
        double const bound = static_cast<double>(how.k) * 0x1p-24 * absolute[static_cast<std::size_t>(j)] +
                             0x1p-8 * std::abs(s);
        worst = worse(worst, std::abs(static_cast<double>(c[i * c_row + j]) - s) / bound);
      }
      if (i + 1 < how.m)
        for (int64_t j = how.n; j < c_row; ++j)
          if (static_cast<float>(c[i * c_row + j]) != 7) return 1e9;  // between the rows
    }
    return worst;
  }
};

double error_of(Case const& x) {
  Product const product(x);
  product.run();
  return product.worst_error();
}

}  // namespace

TEST_CASE("products of bf16: sizes, layouts, gaps", "[kernels][gemm]") {
  for (int64_t const m : {9, 12, 13, 16, 43})
    for (int64_t const n : {16, 17, 32, 50, 64, 100, 129})
      for (int64_t const k : {16, 17, 31, 32, 33, 40, 64, 1023, 1030, 2100})
        for (int how = 0; how < 8; ++how) {
          INFO(m << " " << n << " " << k << " " << how);
          CHECK(error_of({m, n, k, (how & 1) != 0, (how & 2) != 0, how & 4 ? 3 : 0}) < 1);
        }
}

TEST_CASE("products of bf16 of several blocks of rows, columns and k", "[kernels][gemm]") {
  for (auto const& [m, n, k] : {std::array<int64_t, 3>{150, 40, 8201}, {300, 40, 2080}, {33, 400, 700}})
    for (int how = 0; how < 4; ++how) {
      INFO(m << " " << n << " " << k << " " << how);
      CHECK(error_of({m, n, k, (how & 1) != 0, (how & 2) != 0, 0}) < 1);
    }
}

TEST_CASE("products of bf16 keep what is not finite in its row and column", "[kernels][gemm]") {
  for (auto const& [turned, k] : {std::pair{false, 35}, {true, 35}, {false, 64}}) {
    Product const product({21, 40, k, turned, turned, 1});
    float const inf = std::numeric_limits<float>::infinity();
    product.a[5 * product.a_row + (k - 1) * product.a_col] = bfloat16(inf);
    product.b[3 * product.b_row + 39 * product.b_col] = bfloat16(std::nanf(""));
    product.run();
    for (int64_t i = 0; i < 21; ++i)
      for (int64_t j = 0; j < 40; ++j) {
        auto const x = static_cast<float>(product.c[i * product.c_row + j]);
        INFO(i << " " << j << " " << x);
        if (j == 39) CHECK(std::isnan(x));
        else if (i == 5) CHECK(std::isinf(x));
        else CHECK(std::isfinite(x));
      }
  }
}

TEST_CASE("products of bf16 are the same again", "[kernels][gemm]") {
  Product const once({70, 130, 600, false, true, 0}), again(once.how);
  once.run(), again.run();
  CHECK(std::memcmp(once.c.data, again.c.data, static_cast<std::size_t>(once.c.count()) * 2) == 0);
}

#if defined(DFDX_AMX)
TEST_CASE("matrix tiles of any extents, small ones included", "[kernels][gemm]") {
  // Where this is skipped the other cases are about the instructions that take the place of tiles.
  if (!kernels::amx_is_permitted()) SKIP("the system gives this process no tiles");
  using namespace kernels::detail;
  for (int64_t const m : {1, 2, 15, 17, 33})
    for (int64_t const n : {1, 3, 16, 31, 49})
      for (int64_t const k : {0, 1, 3, 64, 65, 1100})
        for (bool const turned : {false, true}) {
          Flush<std::int8_t> const a(m * k), b(k * n);
          Flush<std::int32_t> const c(m * n);
          for (int64_t i = 0; i < m * k; ++i) a[i] = static_cast<std::int8_t>(i * 37 % 251);
          for (int64_t i = 0; i < k * n; ++i) b[i] = static_cast<std::int8_t>(i * 91 % 253);
          strided<std::int8_t> const x{a.data, turned ? 1 : k, turned ? m : 1},
              y{b.data, turned ? 1 : n, turned ? k : 1};
          kernels::Scratch<std::byte> const room(TileBlocks(m, n, (k + 3) / 4).all());
          multiply_tiles<TileWords::i8_i8>(m, n, k, x, y, WholeSums{c.data, n}, room.get());
          bool equal = true;
          for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j) {
              std::int32_t sum = 0;
              for (int64_t p = 0; p < k; ++p)
                sum += x.at[i * x.row + p * x.col] * y.at[p * y.row + j * y.col];
              equal = equal && c[i * n + j] == sum;
            }
          INFO(m << " " << n << " " << k << " " << turned);
          CHECK(equal);
        }
}
#endif

}  // namespace tests::kernels_gemm_bf16
