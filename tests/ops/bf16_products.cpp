// SPDX-License-Identifier: BSL-1.0
// Products of bf16 by the processor's own instruction, against sums in double; and the same in every regime.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstring>
#include <vector>

namespace tests::ops_bf16_products {

using namespace dfdx;

namespace {

// The largest error in units of the bound: k eps sum |a| |b| of f32, and half a place of the result.
[[maybe_unused]] double worst_error(index_t m, index_t n, index_t k, bool a_turned, bool b_turned,
                                    index_t gap) {
  index_t const a_row = a_turned ? 1 : k + gap, a_col = a_turned ? m + gap : 1;
  index_t const b_row = b_turned ? 1 : n + gap, b_col = b_turned ? k + gap : 1, c_row = n + gap;
  auto const size = [](index_t x) { return static_cast<std::size_t>(x); };
  std::vector<bfloat16> a(size((a_turned ? k : m) * (a_turned ? a_col : a_row))),
      b(size((b_turned ? n : k) * (b_turned ? b_col : b_row))), c(size(m * c_row), bfloat16(7.0f));
  unsigned state = 7;
  for (auto* const x : {&a, &b})
    for (bfloat16& e : *x)
      e = bfloat16(static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1);
  kernels::Scratch<std::byte> const workspace(kernels::gemm_bf16_workspace(m, n, k));
  kernels::multiply_bf16(m, n, k, {a.data(), a_row, a_col}, {b.data(), b_row, b_col}, c.data(), c_row,
                         workspace.get());
  double worst = 0;
  for (index_t i = 0; i < m; ++i) {
    for (index_t j = 0; j < n; ++j) {
      double sum = 0, absolute = 0;
      for (index_t p = 0; p < k; ++p) {
        double const product = static_cast<double>(a[size(i * a_row + p * a_col)]) *
                               static_cast<double>(b[size(p * b_row + j * b_col)]);
        sum += product;
        absolute += std::abs(product);
      }
      double const bound = static_cast<double>(k) * 0x1p-24 * absolute + 0x1p-8 * std::abs(sum);
      worst = std::max(worst, std::abs(static_cast<double>(c[size(i * c_row + j)]) - sum) / bound);
    }
    for (index_t j = n; j < c_row; ++j)
      if (static_cast<float>(c[size(i * c_row + j)]) != 7) return 1e9;  // between the rows
  }
  return worst;
}

}  // namespace

TEST_CASE("products of bf16 by the processor's instruction", "[kernels][gemm]") {
  if constexpr (!kernels::has_bf16_products) {
    SKIP("not compiled for AVX512_BF16: products of bf16 are computed as f32");
  } else {
    for (index_t m : {9, 12, 13, 37})
      for (index_t n : {16, 17, 50, 64, 100, 129})
        for (index_t k : {16, 17, 40, 1023, 1030, 2100})
          for (int how = 0; how < 8; ++how) {
            INFO(m << " " << n << " " << k << " " << how);
            CHECK(worst_error(m, n, k, (how & 1) != 0, (how & 2) != 0, how & 4 ? 3 : 0) < 1);
          }
  }
}

TEST_CASE("products of bf16 are the same compiled and eager", "[kernels][gemm]") {
  auto const equal = []<std::size_t M, std::size_t N, std::size_t K>() {
    auto const a = cast<bfloat16>(randn<float, 2, M, K>(Key{1}));
    auto const b = cast<bfloat16>(randn<float, 2, N, K>(Key{2}));
    auto const f = [](auto const& x, auto const& y) { return matmul(x, transpose(y)); };
    auto const once = compile(f)(a, b), again = f(a, b);
    return std::memcmp(once.data(), again.data(), sizeof(bfloat16) * 2 * M * N) == 0;
  };
  CHECK(equal.template operator()<33, 70, 130>());
  CHECK(equal.template operator()<9, 16, 17>());
  CHECK(equal.template operator()<3, 16, 40>());
}

}  // namespace tests::ops_bf16_products
