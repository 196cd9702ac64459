// SPDX-License-Identifier: BSL-1.0
// Ops with kernels of their own compiled in 16 bits: their gradients, and functions that round once.
#include "ops/every_kernel.hpp"

#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/linalg.hpp>

namespace tests::ops_compiled_kernels_half {

using namespace compiled;

namespace {

constexpr auto rows = [](auto const& x) {
  return std::tuple(softmax<0>(x), softmax<1>(x), log_softmax<1>(x), logsumexp<1>(x), logcumsumexp<1>(x),
                    cumprod<1>(x), quantile<1>(x, 0.3));
};
constexpr auto solved = [](auto const& a, auto const& b) {
  auto const definite = matmul(a, transpose(a));
  return std::tuple(solve(a, b), solve_triangular(a, b), cholesky(definite), std::get<1>(qr(a)), det(a));
};
constexpr auto smoothed = [](auto const& x, auto const& grid) {
  constexpr InterpolateOptions twice{.scale_factor = {1.5, 0.5}, .mode = InterpolateMode::bilinear};
  return std::tuple(avg_pool2d<AvgPoolOptions{{3, 2}, 2, 1, true, false}>(x), interpolate<twice>(x),
                    grid_sample(x, grid));
};
constexpr auto attended = [](auto const& q, auto const& k, auto const& v) {
  return scaled_dot_product_attention(q, k, v);
};

// Half a unit of 16 bits from what doubles give, compiled and eagerly: no result is rounded on the way.
template <class T>
void check_rounded_once() {
  auto const x = uniform<T, 5, 7>(Key{1}, -3, 3);
  auto const result = compile(rows)(x);
  std::vector<Array> const want = leaves(rows(cast<double>(x)));
  double const half = dtype<T> == DType::f16 ? 0x1.02p-11 : 0x1.02p-8;
  for (std::vector<Array> const& got : {leaves(result), leaves(rows(x))})
    for (std::size_t i = 0; i < want.size(); ++i) {
      INFO("result " << i << ", " << name_of(dtype<T>));
      CHECK(testing::error_ratio(got[i], want[i], half, 0x1p-25) <= 1);
    }
}
template <class T>
void check_analytic() {
  check_rounded_once<T>();
  check_closely(solved, drawn<T, 3, 3>(2) + eye<T, 3, 3>() * 5.0, drawn<T, 3, 2>(3));
  check_closely(smoothed, drawn<T, 2, 2, 7, 5>(4), uniform<T, 2, 3, 3, 2>(Key{5}, -1, 1));
}
template <class T, class I>
void check_gradients() {
  check_vjp(rows, drawn<T, 5, 7>(1));
  check_vjp(looked_up, drawn<T, 7, 17>(1), drawn<T, 7, 17>(2), randint<I, 7, 17>(Key{3}, 0, 7),
            permutation<I, 7>(Key{4}), randint<I, 17>(Key{5}, 0, 7));
  check_vjp(windowed, drawn<T, 2, 2, 7, 5>(1), drawn<T, 4, 2, 3, 3>(2));
}

}  // namespace

TEST_CASE("what compiled f16 round once", "[ops]") { check_analytic<float16>(); }
TEST_CASE("what compiled bf16 round once", "[ops]") { check_analytic<bfloat16>(); }
TEST_CASE("compiled gradients of kernels in f16", "[ops]") {
  check_gradients<float16, std::int32_t>();
  check_vjp(attended, drawn<float16, 1, 70, 8>(1), drawn<float16, 1, 66, 8>(2), drawn<float16, 1, 66, 5>(3));
}
TEST_CASE("compiled gradients of kernels in bf16", "[ops]") {
  check_gradients<bfloat16, std::int64_t>();
  check_vjp(solved, drawn<bfloat16, 3, 3>(2) + eye<bfloat16, 3, 3>() * 5.0, drawn<bfloat16, 3, 2>(3));
}

}  // namespace tests::ops_compiled_kernels_half
