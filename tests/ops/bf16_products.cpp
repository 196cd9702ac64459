// SPDX-License-Identifier: BSL-1.0
// Products of bf16 by the processor's own instruction (kernels/gemm_bf16.cpp) are the same in every regime.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstring>

namespace tests::ops_bf16_products {

using namespace dfdx;

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
