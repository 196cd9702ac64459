// SPDX-License-Identifier: BSL-1.0
// Integers of eight bits: what they become, products of them in every regime, and a layer quantized with what there is.
#include <dfdx/dfdx.hpp>
#include <dfdx/testing/reference.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>

#include "support.hpp"

namespace tests::ops_bytes {

using namespace dfdx;
using u8 = std::uint8_t;
using i8 = std::int8_t;

namespace {

// A product eagerly, compiled, of arrays whose types only they know, and by plain loops.
template <class A, class B, std::size_t M, std::size_t N, std::size_t K>
void check_product(bool turned) {
  auto const a = randint<A, 2, M, K>(Key{1}, std::is_signed_v<A> ? -128 : 0, std::is_signed_v<A> ? 128 : 256);
  auto const b = randint<B, N, K>(Key{2}, std::is_signed_v<B> ? -128 : 0, std::is_signed_v<B> ? 128 : 256);
  auto const f = [&](auto const& g) {
    if (turned) return g(a, transpose(b));
    return g(a, reshape<K, N>(b));
  };
  auto const product = [](auto const& x, auto const& y) { return matmul(x, y); };
  Array const eager = f(product),
              compiled = f([&](auto const& x, auto const& y) { return Array(compile(product)(x, y)); });
  Array const plain = f([](Array const& x, Array const& y) {
    return matmul(x.to(DType::i64), y.to(DType::i64)).to(DType::i32);
  });
  Array const untyped = f([](Array const& x, Array const& y) { return matmul(x, y); });
  CHECK(eager.dtype() == DType::i32);
  CHECK(array_equal(eager, plain));
  CHECK(array_equal(compiled, plain));
  CHECK(untyped.dtype() == DType::i32);
  CHECK(array_equal(untyped, plain));
}
template <class A, class B>
void check_products() {
  for (bool turned : {false, true}) {
    check_product<A, B, 3, 5, 7>(turned);
    check_product<A, B, 33, 70, 130>(turned);
    check_product<A, B, 1, 9, 64>(turned);
  }
}

// Symmetric, a scale for each row.
constexpr auto scale_of(auto const& v) { return amax<1>(abs(v), keepdim) / 127.0f; }
constexpr auto quantized(auto const& v, auto const& scale) { return cast<i8>(round(v / scale)); }

constexpr ConvOptions options{.stride = 2, .padding = 1, .groups = 2};
// Convolutions of integers by floats, single and double ones, and by integers where these would round; as the plain
// sums are, modulo the range of the dtype.
template <class T>
void check_convolution(std::int64_t most) {
  auto const x = randint<T, 2, 4, 9, 8>(Key{3}, -most, most);
  auto const w = randint<T, 6, 2, 3, 2>(Key{4}, -most, most);
  constexpr auto f = [](auto const& a, auto const& b) { return conv2d<options>(a, b); };
  auto const y = f(x, w), compiled = compile(f)(x, w);
  std::uint64_t sum = 0;  // of one place
  for (int c = 0; c < 2; ++c)
    for (int k = 0; k < 3; ++k)
      for (int l = 0; l < 2; ++l)
        sum +=
            static_cast<std::uint64_t>(x(1, 2 + c, 3 + k, 1 + l)) * static_cast<std::uint64_t>(w(4, c, k, l));
  using Y = typename decltype(y)::value_type;
  CHECK(y(1, 4, 2, 1) == static_cast<Y>(sum));
  CHECK(array_equal(compiled, y));
  Array const untyped = conv2d(Array(x), Array(w), options);
  CHECK(untyped.dtype() == y.dtype());
  CHECK(array_equal(untyped, y));
}

}  // namespace

TEST_CASE("convolutions of bytes are i32, those of integers exact", "[ops]") {
  check_convolution<i8>(127);
  check_convolution<std::int32_t>(100);
  check_convolution<std::int32_t>(1 << 20);
  check_convolution<std::int32_t>(std::int64_t{1} << 31);
  check_convolution<std::int64_t>(std::int64_t{1} << 31);
  auto const images = full<u8, 1, 2, 4, 4>(200);
  auto const y = conv2d(images, full<i8, 3, 2, 3, 3>(-100), full<i8, 3>(1));
  static_assert(std::is_same_v<decltype(y), Tensor<std::int32_t, 1, 3, 2, 2> const>);
  CHECK(array_equal(y, full<std::int32_t, 1, 3, 2, 2>(1 - 18 * 20000)));
}

TEST_CASE("products of bytes are i32", "[ops]") {
  check_products<i8, i8>();
  check_products<u8, i8>();
  check_products<i8, u8>();
  check_products<u8, u8>();
  static_assert(
      std::is_same_v<decltype(matmul(Tensor<u8, 2, 3>{}, Tensor<i8, 3, 4>{})), Tensor<std::int32_t, 2, 4>>);
  static_assert(
      std::is_same_v<decltype(matmul(Tensor<i8, 2, 3>{}, Tensor<float, 3, 4>{})), Tensor<float, 2, 4>>);
  // Products alike but for the kind of a factor are different kernels of one program.
  auto const a = randint<i8, 9, 20>(Key{1}, -128, 128);
  auto const b = randint<u8, 9, 20>(Key{2}, 0, 256);
  auto const w = randint<i8, 20, 7>(Key{3}, -128, 128);
  auto const both = [](auto const& p, auto const& q, auto const& r) { return matmul(p, r) - matmul(q, r); };
  CHECK(array_equal(compile(both)(a, b, w), both(a, b, w)));
  auto const x = Tensor<i8, 2>::from({100, 100});
  CHECK(dot(x, x).item() == 20000);
  CHECK(einsum<"i,i->">(x, x).item() == 20000);
  CHECK(einsum<"i,j->ij">(x, x).at<std::int32_t>({0, 1}) == 10000);
}

TEST_CASE("sums of products of bytes wrap in every regime", "[ops]") {
  // 2^17 times 127^2 is 1,057,095,680 more than 2^30, 2^18 times it is beyond 2^31.
  Array const x = full({1, 1 << 18}, 127, DType::i8), y = full({1 << 18, 1}, 127, DType::i8);
  auto const wrapped = static_cast<std::int32_t>(static_cast<std::uint32_t>((1u << 18) * 127u * 127u));
  CHECK(matmul(x, y).item() == wrapped);
  // No columns: nothing is written.
  CHECK(matmul(Tensor<i8, dyn, dyn>(ones({4, 64}, DType::i8)), Tensor<i8, dyn, dyn>(ones({64, 0}, DType::i8)))
            .size() == 0);
  Tensor<i8, dyn, dyn> const a(x), b(y);
  CHECK(matmul(a, b).item() == wrapped);
  CHECK(compile([](auto const& u, auto const& v) { return matmul(u, v); })(a, b).item() == wrapped);
}

TEST_CASE("integers of eight bits with a sign", "[ops]") {
  CHECK(promote(DType::i8, DType::u8) == DType::i32);
  CHECK(promote(DType::i8, DType::i32) == DType::i32);
  CHECK(promote(DType::i8, DType::f16) == DType::f16);
  CHECK(promote(DType::i8, DType::boolean) == DType::i8);
  auto const x = Tensor<i8, 4>::from({-128, -1, 0, 127});
  CHECK((cast<float>(x) * 2.0f).to_vector<float>() == std::vector<float>{-256, -2, 0, 254});
  CHECK(array_equal(x + x, Tensor<i8, 4>::from({0, -2, 0, -2})));
  CHECK(array_equal(-x, Tensor<i8, 4>::from({-128, 1, 0, -127})));
  CHECK(array_equal(abs(x), Tensor<i8, 4>::from({-128, 1, 0, 127})));
  CHECK(sum(x).item() == -2);
  CHECK(array_equal(x < 0, Tensor<bool, 4>::from({true, true, false, false})));
  CHECK(tests::error_of([&] { Array(x) + 128; }) == "add: 128 does not fit i8");
  CHECK(tests::error_of([] { randint({1}, Key{1}, -129, 5, DType::i8); }) ==
        "randint: i8 does not hold all of [-129, 5)");
  CHECK(name_of(DType::i8) == std::string("i8"));
}

TEST_CASE("loops that read and write bytes are the same compiled and eager", "[ops]") {
  auto const x = randn<float, 5, 67>(Key{3});
  auto const narrowed = [](auto const& v) { return cast<i8>(clip(round(v * 40.0f), -127.0f, 127.0f)); };
  auto const picture = randint<u8, 5, 67>(Key{4}, 0, 256);
  // Exact, whether a multiplication and an addition are one instruction or two.
  auto const scaled = [](auto const& v) { return cast<float>(v) * (1.0f / 256) - 0.5f; };
  auto const both = [](auto const& p, auto const& q) { return cast<float>(p) * cast<float>(q); };
  CHECK(array_equal(compile(narrowed)(x), narrowed(x)));
  CHECK(array_equal(compile(scaled)(picture), scaled(picture)));
  CHECK(array_equal(compile(both)(picture, narrowed(x)), both(picture, narrowed(x))));
  auto const sums = [](auto const& v) { return sum<1>(v); };
  CHECK(array_equal(compile(sums)(picture), sums(picture)));
  auto const wide = [](auto const& v) { return cast<u8>(cast<std::int32_t>(v) * 3); };
  CHECK(array_equal(compile(wide)(picture), wide(picture)));
  // What wraps does so also where it is never stored.
  auto const through = [](auto const& v) {
    auto const thrice = cast<std::int32_t>(v) * 3;
    return cast<float>(cast<u8>(thrice)) - cast<float>(cast<i8>(thrice)) + cast<float>(cast<i8>(v));
  };
  CHECK(array_equal(compile(through)(picture), through(picture)));
  auto const truths = [](auto const& v) { return cast<bool>(v); };
  CHECK(array_equal(compile(truths)(picture), truths(picture)));
  auto const less = [](auto const& p, auto const& q) { return logical_or(p < q, p == q); };
  auto const other = randint<u8, 5, 67>(Key{8}, 100, 140);
  CHECK(array_equal(compile(less)(picture, other), less(picture, other)));
  auto const chosen = [](auto const& p, auto const& q) { return where(p > q, p, q); };
  CHECK(array_equal(compile(chosen)(picture, other), maximum(picture, other)));
  auto const of_both = [](auto const& m, auto const& p, auto const& q) {
    return where(m, cast<std::int64_t>(p), q);
  };
  auto const long_ones = ones<std::int64_t, 5, 67>();
  auto const mask = picture < 99;
  CHECK(array_equal(compile(of_both)(mask, picture, long_ones), of_both(mask, picture, long_ones)));
  CHECK(array_equal(compile(of_both)(mask, narrowed(x), long_ones), of_both(mask, narrowed(x), long_ones)));
  auto const from_truths = [](auto const& v) { return cast<i8>(v > 0.0f); };
  CHECK(array_equal(compile(from_truths)(x), from_truths(x)));
}

TEST_CASE("a layer whose weights and inputs are bytes is near the one in f32", "[ops]") {
  auto const x = randn<float, 16, 96>(Key{5});
  auto const w = randn<float, 40, 96>(Key{6});
  auto const bias = randn<float, 40>(Key{7});
  auto const scale = scale_of(w);
  auto const bytes = quantized(w, scale);
  auto const layer = [](auto const& v, auto const& wq, auto const& ws, auto const& b) {
    auto const s = scale_of(v);
    auto const sums = matmul(quantized(v, s), transpose(wq));
    return cast<float>(sums) * s * transpose(ws) + b;
  };
  auto const exact = linear(x, w, bias);
  auto const eager = layer(x, bytes, scale, bias);
  auto const compiled = compile(layer)(x, bytes, scale, bias);
  // Each of 96 terms is off by at most half a step of either factor.
  CHECK(amax(abs(eager - exact)).item() < 0.5f);
  CHECK(amax(abs(compiled - eager)).item() < 1e-5f);
}

}  // namespace tests::ops_bytes
