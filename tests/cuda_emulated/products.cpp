// SPDX-License-Identifier: BSL-1.0
// Matrix products on the emulated device: by the kernel of tiles, and as they are handed to cuBLASLt.
#include "products.hpp"

namespace tests::cuda_emulated_products {

using namespace emulated;

namespace {

constexpr auto product_of_parts = [](auto const& a, auto const& b) {
  return matmul(slice<1, 2, 9>(a), slice<0, 1, 8>(b));
};
constexpr auto dense = [](auto const& x, auto const& w, auto const& b) { return gelu(matmul(x, w) + b); };
constexpr auto residual = [](auto const& x, auto const& w) { return relu(matmul(x, w)) + x; };
constexpr auto square_loss = [](auto const& w, auto const& x) { return sum(square(tanh(matmul(x, w)))); };

// Products of `from` multiplications or more are cuBLASLt's as long as it lives.
struct CublasFrom {
  explicit CublasFrom(std::int64_t from) { cuda_options.cublas_from = from; }
  CublasFrom(CublasFrom const&) = delete;
  ~CublasFrom() { cuda_options = {}; }
};

void check_products() {
  REQUIRE(apart(product, filled<Tensor<float, 65, 17>>(1), filled<Tensor<float, 17, 70>>(2)) < 1e-5);
  REQUIRE(apart(product, filled<Tensor<float, 1, 1>>(1), filled<Tensor<float, 1, 1>>(2)) < 1e-6);
  REQUIRE(apart(product, filled<Tensor<float, 1, 9>>(1), filled<Tensor<float, 9, 1>>(2)) < 1e-6);
  REQUIRE(apart(product, filled<Tensor<float, 9, 1>>(1), filled<Tensor<float, 1, 7>>(2)) < 1e-6);
  REQUIRE(apart(product_nt, filled<Tensor<float, 5, 40>>(1), filled<Tensor<float, 130, 40>>(2)) < 1e-5);
  REQUIRE(apart(product_tn, filled<Tensor<float, 33, 64>>(1), filled<Tensor<float, 33, 9>>(2)) < 1e-5);
  REQUIRE(apart(product_tt, filled<Tensor<float, 33, 20>>(1), filled<Tensor<float, 9, 33>>(2)) < 1e-5);
  REQUIRE(apart(product_tt, filled<Tensor<float, 1, 20>>(1), filled<Tensor<float, 9, 1>>(2)) < 1e-5);
  REQUIRE(apart(product_of_parts, filled<Tensor<float, 6, 12>>(1), filled<Tensor<float, 10, 5>>(2)) < 1e-5);
  REQUIRE(apart(product, filled<Tensor<double, 20, 50>>(1), filled<Tensor<double, 50, 7>>(2)) < 1e-12);
  REQUIRE(apart(product, filled<Tensor<float16, 20, 50>>(1), filled<Tensor<float16, 50, 7>>(2)) < 2e-3);
  REQUIRE(apart(product, filled<Tensor<bfloat16, 20, 50>>(1), filled<Tensor<bfloat16, 50, 7>>(2)) < 1e-2);
  REQUIRE(apart(product, filled<Tensor<std::int32_t, 20, 50>>(1), filled<Tensor<std::int32_t, 50, 7>>(2)) ==
          0);
  // Batches: of both, of one, of neither side in order.
  REQUIRE(apart(product, filled<Tensor<float, 3, 2, 20, 19>>(1), filled<Tensor<float, 3, 2, 19, 30>>(2)) <
          1e-5);
  REQUIRE(apart(product, filled<Tensor<float, 3, 2, 20, 19>>(1), filled<Tensor<float, 2, 19, 30>>(2)) < 1e-5);
  REQUIRE(apart(product, filled<Tensor<float, 3, 1, 20, 19>>(1), filled<Tensor<float, 2, 19, 30>>(2)) < 1e-5);
  REQUIRE(apart(heads, filled<Tensor<float, 10, 4, 6>>(1), filled<Tensor<float, 11, 4, 6>>(2)) < 1e-5);
  using Any = Tensor<float, dyn, dyn>;
  REQUIRE(apart(product, filled<Any>(1, 70, 18), filled<Any>(2, 18, 66)) < 1e-5);
  REQUIRE(apart(product_tn, filled<Any>(1, 18, 70), filled<Any>(2, 18, 66)) < 1e-5);
  REQUIRE(apart(product, filled<Any>(1, 3, 0), filled<Any>(2, 0, 4)) == 0);
  REQUIRE(apart(product, filled<Any>(1, 0, 3), filled<Any>(2, 3, 4)) == 0);
  // What is done to the sums.
  auto const bias = filled<Tensor<float, 70>>(3);
  REQUIRE(apart(dense, filled<Tensor<float, 33, 20>>(1), filled<Tensor<float, 20, 70>>(2), bias) < 1e-5);
  REQUIRE(apart(dense, filled<Tensor<float, dyn, 20>>(1, 7, 20), filled<Tensor<float, 20, 70>>(2), bias) <
          1e-5);
  REQUIRE(apart(residual, filled<Tensor<double, 33, 20>>(1), filled<Tensor<double, 20, 20>>(2)) < 1e-12);
  REQUIRE(apart(grad(square_loss, wrt<0, 1>), filled<Tensor<float, 20, 30>>(1),
                filled<Tensor<float, 25, 20>>(2)) < 1e-4);
}

}  // namespace

TEST_CASE("products by the kernel of tiles", "[cuda]") {
  CublasFrom const never(std::int64_t{1} << 60);
  int const before = cuda_fake::products.products;
  check_products();
  REQUIRE(cuda_fake::products.products == before);
}
TEST_CASE("products of 16 bits by tensor cores", "[cuda]") {
  CublasFrom const never(std::int64_t{1} << 60);
  auto const before = cuda_fake::tensor_products;
  REQUIRE(apart(product, filled<Tensor<bfloat16, 70, 130>>(1), filled<Tensor<bfloat16, 130, 72>>(2)) < 1e-2);
  REQUIRE(apart(product_nt, filled<Tensor<float16, 65, 96>>(1), filled<Tensor<float16, 9, 96>>(2)) < 2e-3);
  REQUIRE(apart(product_tn, filled<Tensor<bfloat16, 33, 64>>(1), filled<Tensor<bfloat16, 33, 65>>(2)) < 1e-2);
  REQUIRE(apart(product_tt, filled<Tensor<float16, 33, 20>>(1), filled<Tensor<float16, 9, 33>>(2)) < 2e-3);
  REQUIRE(apart(product_of_parts, filled<Tensor<float16, 6, 12>>(1), filled<Tensor<float16, 10, 5>>(2)) <
          2e-3);
  REQUIRE(apart(product, filled<Tensor<bfloat16, 1, 1>>(1), filled<Tensor<bfloat16, 1, 1>>(2)) < 1e-2);
  using Any = Tensor<float16, dyn, dyn>;
  REQUIRE(apart(product, filled<Any>(1, 17, 0), filled<Any>(2, 0, 18)) == 0);
  REQUIRE(apart(product, filled<Any>(1, 17, 31), filled<Any>(2, 31, 18)) < 2e-3);
  REQUIRE(apart(dense, filled<Tensor<float16, 33, 40>>(1), filled<Tensor<float16, 40, 70>>(2),
                filled<Tensor<float16, 70>>(3)) < 2e-3);
  REQUIRE(cuda_fake::tensor_products > before);
  // Exact where all sums are whole numbers that f32 holds: no element is taken for another.
  auto a = filled<Tensor<float16, 70, 90>>(1), b = filled<Tensor<float16, 70, 90>>(2);
  for (index_t i = 0; i < a.size(); ++i)
    a.data()[i] = static_cast<float16>(static_cast<float>(i * 7 % 13 - 6));
  for (index_t i = 0; i < b.size(); ++i)
    b.data()[i] = static_cast<float16>(static_cast<float>(i * 5 % 11 - 5));
  REQUIRE(apart(product_nt, a, b) == 0);
}
TEST_CASE("products as cuBLASLt takes them", "[cuda]") {
  CublasFrom const always(0);
  int const before = cuda_fake::products.products;
  check_products();
  REQUIRE(cuda_fake::products.products > before + 50);
}
TEST_CASE("products that cuBLASLt has nothing for are computed all the same", "[cuda][emulated]") {
  CublasFrom const always(0);
  cuda_fake::products.refuse = true;
  double const d = apart(product, filled<Tensor<float, 66, 19>>(1), filled<Tensor<float, 19, 71>>(2));
  cuda_fake::products.refuse = false;
  REQUIRE(d < 1e-5);
}
TEST_CASE("cuBLASLt adds a bias and a residual by itself", "[cuda][emulated]") {
  CublasFrom const always(0);
  constexpr auto biased = [](auto const& x, auto const& w, auto const& b) { return matmul(x, w) + b; };
  constexpr auto added = [](auto const& x, auto const& w, auto const& r) { return r + matmul(x, w); };
  constexpr auto both = [](auto const& x, auto const& w, auto const& b, auto const& r) {
    return r + (matmul(x, w) + b);
  };
  constexpr auto part = [](auto const& x, auto const& w, auto const& r) {
    return matmul(x, w) + slice<1, 3, 23>(r);
  };
  constexpr auto turned = [](auto const& x, auto const& w, auto const& r) {
    return matmul(x, w) + transpose(r);
  };
  constexpr auto column = [](auto const& x, auto const& w, auto const& b) {
    return matmul(x, w) + reshape<33, 1>(b);
  };
  constexpr auto twice = [](auto const& x, auto const& w, auto const& r) { return matmul(x, w) + r + r; };
  constexpr auto less = [](auto const& x, auto const& w, auto const& r) { return matmul(x, w) - r; };
  auto const x = filled<Tensor<float, 33, 9>>(1);
  auto const w = filled<Tensor<float, 9, 20>>(2);
  auto const b = filled<Tensor<float, 20>>(3);
  auto const r = filled<Tensor<float, 33, 20>>(4);
  // Whether biases and addends were added for a function, whose result is right.
  auto const counts = [](auto const& f, double within, auto const&... xs) {
    int const biases = cuda_fake::products.biases, addends = cuda_fake::products.addends;
    REQUIRE(apart(f, xs...) < within);
    return std::pair(cuda_fake::products.biases > biases ? 1 : 0,
                     cuda_fake::products.addends > addends ? 1 : 0);
  };
  REQUIRE(counts(biased, 1e-5, x, w, b) == std::pair(1, 0));
  REQUIRE(counts(added, 1e-5, x, w, r) == std::pair(0, 1));
  REQUIRE(counts(both, 1e-5, x, w, b, r) == std::pair(1, 1));
  REQUIRE(counts(part, 1e-5, x, w, filled<Tensor<float, 33, 31>>(4)) == std::pair(0, 1));
  REQUIRE(counts(residual, 1e-12, filled<Tensor<double, 33, 20>>(1), filled<Tensor<double, 20, 20>>(2)) ==
          std::pair(0, 0));
  REQUIRE(counts(added, 1e-12, filled<Tensor<double, 33, 9>>(1), filled<Tensor<double, 9, 20>>(2),
                 filled<Tensor<double, 33, 20>>(4)) == std::pair(0, 1));
  REQUIRE(counts(biased, 1e-12, filled<Tensor<double, 33, 9>>(1), filled<Tensor<double, 9, 20>>(2),
                 filled<Tensor<double, 20>>(4)) == std::pair(0, 0));
  REQUIRE(counts(biased, 1e-5, filled<Tensor<float, 1, 9>>(1), w, b) == std::pair(1, 0));
  constexpr auto onto_itself = [](auto const& given, auto const& weight) {
    return matmul(given, weight) + given;
  };
  REQUIRE(counts(biased, 1e-5, filled<Tensor<float, dyn, 9>>(1, 7, 9), w, b) == std::pair(1, 0));
  REQUIRE(counts(onto_itself, 1e-5, filled<Tensor<float, dyn, 20>>(1, 7, 20),
                 filled<Tensor<float, 20, 20>>(2)) == std::pair(0, 1));
  // Of two products the second is added to the first where that lies; a row may lie where it is stored.
  constexpr auto two = [](auto const& x, auto const& w, auto const& y, auto const& v) {
    return matmul(x, w) + matmul(y, v);
  };
  REQUIRE(counts(two, 1e-5, x, w, filled<Tensor<float, 33, 7>>(5), filled<Tensor<float, 7, 20>>(6)) ==
          std::pair(0, 1));
  REQUIRE(counts(two, 1e-5, filled<Tensor<float, 1, 9>>(1), w, filled<Tensor<float, 1, 7>>(5),
                 filled<Tensor<float, 7, 20>>(6))
              .second == 0);
  // What it cannot add, or not alone, is added by the kernel after it.
  REQUIRE(counts(turned, 1e-5, x, w, filled<Tensor<float, 20, 33>>(4)) == std::pair(0, 0));
  REQUIRE(counts(column, 1e-5, x, w, filled<Tensor<float, 33>>(4)) == std::pair(0, 0));
  REQUIRE(counts(twice, 1e-5, x, w, r) == std::pair(0, 0));
  REQUIRE(counts(less, 1e-5, x, w, r) == std::pair(0, 0));
  REQUIRE(counts(dense, 1e-5, x, w, b) == std::pair(0, 0));
  cuda_fake::products.refuse_bias = true;
  auto const other = filled<Tensor<float, 34, 9>>(1);
  auto const refused = counts(biased, 1e-5, other, w, b);
  cuda_fake::products.refuse_bias = false;
  REQUIRE(refused == std::pair(0, 0));
}
TEST_CASE("how a product is computed is chosen once, in full precision unless asked", "[cuda][emulated]") {
  CublasFrom const always(0);
  auto const x = filled<Tensor<float, 21, 22>>(1);
  auto const y = filled<Tensor<float, 22, 23>>(2);
  int const before = cuda_fake::products.choices;
  REQUIRE(apart(product, x, y) < 1e-5);
  REQUIRE(cuda_fake::products.choices == before + 1);
  REQUIRE(cuda_fake::products.compute == CUBLAS_COMPUTE_32F);
  cuda_options.tf32 = true;
  REQUIRE(apart(product, x, y) < 1e-5);
  REQUIRE(cuda_fake::products.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}
TEST_CASE("kinds of products that no one asks for again are forgotten", "[cuda][emulated]") {
  CublasFrom const always(0);
  using Any = Tensor<float, dyn, dyn>;
  auto const f = compile(std::remove_const_t<decltype(product)>{});
  auto const y = filled<Any>(2, 3, 2);
  int const before = cuda_fake::products.choices;
  int last = 0, times_forgotten = 0;
  for (index_t m = 1; m <= static_cast<index_t>(cuda_runtime::Cublas::most_kinds); ++m) {
    f(to(cuda(), filled<Any>(1, m, 3)), to(cuda(), y));
    if (cuda_fake::products.descriptors < last) ++times_forgotten;
    last = cuda_fake::products.descriptors;
  }
  // With the kinds of this one there are more than are remembered.
  REQUIRE(apart(product, filled<Any>(1, 3, 5), filled<Any>(2, 5, 2)) < 1e-5);
  if (cuda_fake::products.descriptors < last) ++times_forgotten;
  REQUIRE(times_forgotten == 1);
  REQUIRE(cuda_fake::products.choices > before);
}
TEST_CASE("a barrier that products lack shows", "[cuda][emulated]") {
  CublasFrom const never(std::int64_t{1} << 60);
  machine().fibers.drop_barriers = true;
  double const d = apart(product, filled<Tensor<float, 65, 17>>(1), filled<Tensor<float, 17, 70>>(2));
  machine().fibers.drop_barriers = false;
  REQUIRE(!(d < 1e-5));
}

}  // namespace tests::cuda_emulated_products
