// SPDX-License-Identifier: BSL-1.0
// Matrix products by the kernel for warpgroups of Hopper GPUs, on the emulated device.
#include "products.hpp"

namespace tests::cuda_emulated_warpgroups {

using namespace emulated;

namespace {

constexpr auto dense = [](auto const& x, auto const& w, auto const& b, auto const& r) {
  return gelu(matmul(x, w) + b) + r;
};

// All products that the kernel for warpgroups takes are its own as long as this lives.
struct Always {
  Always() { cuda_options = {.cublas_from = std::int64_t{1} << 60, .warpgroup_products_from = 0}; }
  Always(Always const&) = delete;
  ~Always() { cuda_options = {}; }
};

/// Whole numbers, whose sums f32 holds: no element is taken for another, and none is lost.
template <class T, class... N>
T whole(int step, N... n) {
  T x = filled<T>(1, n...);
  for (index_t i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<typename T::value_type>(static_cast<float>(i * step % 13 - 6));
  return x;
}

/// Whether products of warpgroups were asked for, and the result is right.
template <class F, class... A>
auto made(F const& f, double within, A const&... args) {
  auto const before = cuda_fake::warpgroup_products;
  REQUIRE(apart(f, args...) <= within);
  return cuda_fake::warpgroup_products > before;
}

}  // namespace

TEST_CASE("products by warpgroups, of factors that lie in any order", "[cuda]") {
  Always const always;
  using H = float16;
  REQUIRE(made(product, 0, whole<Tensor<H, 136, 200>>(7), whole<Tensor<H, 200, 144>>(5)));
  REQUIRE(made(product_nt, 0, whole<Tensor<H, 136, 200>>(7), whole<Tensor<H, 144, 200>>(5)));
  REQUIRE(made(product_tn, 0, whole<Tensor<H, 200, 136>>(7), whole<Tensor<H, 200, 144>>(5)));
  REQUIRE(made(product_tt, 0, whole<Tensor<H, 200, 136>>(7), whole<Tensor<H, 144, 200>>(5)));
  // More pieces along k than there are stages, sizes that fill tiles, that do not, and that are tiny.
  REQUIRE(made(product, 0, whole<Tensor<H, 128, 1032>>(7), whole<Tensor<H, 1032, 128>>(5)));
  REQUIRE(made(product_nt, 0, whole<Tensor<H, 1, 8>>(7), whole<Tensor<H, 1, 8>>(5)));
  REQUIRE(made(product, 0, whole<Tensor<H, 3, 64>>(7), whole<Tensor<H, 64, 264>>(5)));
  REQUIRE(made(product_tn, 1e-2, filled<Tensor<bfloat16, 72, 64>>(1), filled<Tensor<bfloat16, 72, 40>>(2)));
  REQUIRE(made(product, 2e-3, filled<Tensor<H, 20, 64>>(1), filled<Tensor<H, 64, 24>>(2)));
}
TEST_CASE("products by warpgroups in wide tiles, several for each block", "[cuda]") {
  Always const always;
  using Any = Tensor<bfloat16, dyn, dyn>;
  REQUIRE(made(product, 0, whole<Any>(7, 300, 136), whole<Any>(5, 136, 1000)));
  REQUIRE(made(product_nt, 0, whole<Any>(7, 1100, 24), whole<Any>(5, 264, 24)));
  REQUIRE(made(product_tn, 0, whole<Any>(7, 72, 136), whole<Any>(5, 72, 320)));
  REQUIRE(made(product_tt, 0, whole<Any>(7, 72, 136), whole<Any>(5, 520, 72)));
  REQUIRE(!made(product, 0, whole<Any>(7, 16, 0), whole<Any>(5, 0, 16)));
}
TEST_CASE("batches of products by warpgroups", "[cuda]") {
  Always const always;
  using H = float16;
  REQUIRE(made(product, 0, whole<Tensor<H, 3, 2, 130, 72>>(7), whole<Tensor<H, 3, 2, 72, 40>>(5)));
  REQUIRE(made(product, 0, whole<Tensor<H, 3, 2, 130, 72>>(7), whole<Tensor<H, 2, 72, 40>>(5)));
  REQUIRE(made(product, 0, whole<Tensor<H, 3, 1, 130, 72>>(7), whole<Tensor<H, 2, 72, 40>>(5)));
  REQUIRE(made(heads, 0, whole<Tensor<H, 70, 4, 16>>(7), whole<Tensor<H, 80, 4, 16>>(5)));
}
TEST_CASE("what follows products by warpgroups, and gradients", "[cuda]") {
  Always const always;
  using B = bfloat16;
  REQUIRE(made(dense, 2e-2, filled<Tensor<B, 130, 72>>(1), filled<Tensor<B, 72, 136>>(2),
               filled<Tensor<B, 136>>(3), filled<Tensor<B, 130, 136>>(4)));
  // Rows of the result that are not aligned are stored number by number.
  REQUIRE(made(dense, 2e-2, filled<Tensor<B, 130, 72>>(1), whole<Tensor<B, 72, 40>>(2),
               filled<Tensor<B, 40>>(3), filled<Tensor<B, 130, 40>>(4)));
  constexpr auto nt = [](auto const& x, auto const& w) { return relu(matmul(x, transpose(w))); };
  REQUIRE(made(nt, 0, whole<Tensor<B, 33, 72>>(1), whole<Tensor<B, 51, 72>>(2)));
  constexpr auto loss = [](auto const& w, auto const& x) { return sum(square(matmul(x, w))); };
  REQUIRE(made(grad(loss, wrt<0, 1>), 5e-2, filled<Tensor<B, 64, 72>>(1), filled<Tensor<B, 40, 64>>(2)));
}
TEST_CASE("what the copy engine does not take is computed by others", "[cuda]") {
  Always const always;
  using H = float16;
  REQUIRE(!made(product, 0, whole<Tensor<H, 20, 63>>(7), whole<Tensor<H, 63, 24>>(5)));
  REQUIRE(!made(product, 0, whole<Tensor<H, 20, 64>>(7), whole<Tensor<H, 64, 23>>(5)));
  constexpr auto part = [](auto const& a, auto const& b) { return matmul(slice<1, 4, 68>(a), b); };
  REQUIRE(!made(part, 0, whole<Tensor<H, 20, 72>>(7), whole<Tensor<H, 64, 24>>(5)));
  constexpr auto aligned_part = [](auto const& a, auto const& b) { return matmul(slice<1, 8, 72>(a), b); };
  REQUIRE(made(aligned_part, 0, whole<Tensor<H, 20, 80>>(7), whole<Tensor<H, 64, 24>>(5)));
  REQUIRE(!made(product, 1e-5, filled<Tensor<float, 20, 64>>(1), filled<Tensor<float, 64, 24>>(2)));
}
TEST_CASE("a thread that the driver has not seen has maps too", "[cuda][emulated]") {
  Always const always;
  cuda_fake::is_stranger = true;
  REQUIRE(made(product, 0, whole<Tensor<float16, 24, 72>>(7), whole<Tensor<float16, 72, 16>>(5)));
  REQUIRE(!cuda_fake::is_stranger);
}
TEST_CASE("programs without code for sm_90a, or not asked to, have other products", "[cuda][emulated]") {
  auto const a = whole<Tensor<float16, 24, 64>>(7);
  auto const b = whole<Tensor<float16, 64, 16>>(5);
  REQUIRE(!made(product, 0, a, b));
  // A program that was captured without them has them when it is asked to, with the same memory.
  auto f = compile(std::remove_const_t<decltype(product)>{});
  auto const x = to(cuda(), a);
  auto const y = to(cuda(), b);
  for (int k = 0; k < 3; ++k) f(x, y);
  Always const always;
  auto const before = cuda_fake::warpgroup_products;
  f(x, y);
  REQUIRE(cuda_fake::warpgroup_products > before);
  machine().has_warpgroups = false;
  // (Of products that no other test has: whether the code is there is asked once.)
  auto const without =
      made(product_nt, 0, whole<Tensor<float16, 24, 56>>(7), whole<Tensor<float16, 16, 56>>(5));
  machine().has_warpgroups = true;
  REQUIRE(!without);
}

}  // namespace tests::cuda_emulated_warpgroups
