// SPDX-License-Identifier: BSL-1.0
// autocast: which products are computed in 16 bits, what comes of it, and that training reaches what f32 reaches.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::optim_autocast {

namespace {

using namespace dfdx;

struct Net {
  nn::Conv2d<1, 4, 3> conv;
  nn::Linear<36, 16> fc1;
  nn::Linear<16, 4> fc2;
  DFDX_FIELDS(conv, fc1, fc2)
  constexpr auto operator()(auto const& x) const {
    auto const pooled = max_pool2d<MaxPoolOptions{.kernel = 2}>(relu(conv(x)));
    return fc2(tanh(fc1(flatten<1, 3>(pooled))));
  }
};
using Images = Tensor<float, 32, 1, 8, 8>;
using Labels = Tensor<std::int32_t, 32>;

constexpr auto loss = [](Net const& net, Images const& x, Labels const& y) {
  return cross_entropy(net(x), y);
};

// Which quarter of the picture is bright.
Labels labels() {
  auto y = dfdx::empty<std::int32_t, 32>();
  for (int i = 0; i < 32; ++i) y(i) = i % 4;
  return y;
}
Images images(std::uint64_t key) {
  auto x = randn<float, 32, 1, 8, 8>(Key{key});
  for (int i = 0; i < 32; ++i)
    for (int r = 0; r < 4; ++r)
      for (int c = 0; c < 4; ++c) x(i, 0, r + i % 4 / 2 * 4, c + i % 2 * 4) += 1;
  return x;
}

template <class Step>
double trained(Step step) {
  auto net = init<Net>(1);
  auto const y = labels();
  for (std::uint64_t k = 0; k < 150; ++k) step(net, images(10 + k), y);
  double total = 0;
  for (std::uint64_t k = 0; k < 10; ++k) total += static_cast<double>(loss(net, images(k), y).item());
  return total / 10;
}

template <class F, class T>
constexpr int products_in() {
  int n = 0;
  Graph const g = trace<F, Net, Images, Labels>();
  for (Node const& node : g.nodes) {
    std::string_view const name = node.op->name;
    bool const product = name == "matmul" || name == "conv" || name == "conv_input" || name == "conv_weight";
    n += product && node.meta.dtype == dtype_v<T> ? 1 : 0;
  }
  return n;
}

constexpr auto attended = [](auto const& q, auto const& k, auto const& v) {
  return scaled_dot_product_attention(q, k, v, {.causal = true});
};
using Attended = std::remove_const_t<decltype(attended)>;
struct AttendedInHalves {
  constexpr auto operator()(auto const&... x) const { return cast<float>(attended(cast<bfloat16>(x)...)); }
};
struct Layers {
  nn::Linear<24, 48> first;
  nn::Linear<48, 24> second;
  DFDX_FIELDS(first, second)
  constexpr auto operator()(auto const& x) const { return x + tanh(second(gelu(first(x)))); }
};
constexpr auto size = [](Layers const& model, Tensor<float, 3, 5, 24> const& x) {
  return mean(square(model(x)));
};
template <class F>
struct Curved {
  constexpr auto operator()(auto const&... x) const {
    auto const y = F{}(x...);
    return sum(y * sin(y));
  }
};

}  // namespace

TEST_CASE("autocast: products in 16 bits, forward and backward, and nothing else", "[optim]") {
  using Forward = Autocast<std::remove_const_t<decltype(loss)>, bfloat16>;
  using Backward = ValueAndGrad<Forward, Wrt<0>>;
  STATIC_CHECK(products_in<Forward, bfloat16>() == 3);
  STATIC_CHECK(products_in<Forward, float>() == 0);
  STATIC_CHECK(products_in<Backward, bfloat16>() == 8);  // the pictures need no gradient
  STATIC_CHECK(products_in<Backward, float>() == 0);

  // A product is that of the rounded operands, rounded.
  constexpr auto product = [](auto const& a, auto const& b) { return matmul(a, b); };
  auto const a = randn<float, 5, 7>(Key{1});
  auto const b = randn<float, 7, 3>(Key{2});
  auto const got = compile(autocast<bfloat16>(product))(a, b);
  CHECK(array_equal(got, cast<float>(matmul(cast<bfloat16>(a), cast<bfloat16>(b)))));
  CHECK_FALSE(array_equal(got, matmul(a, b)));
  CHECK(array_equal(autocast<bfloat16>(product)(a, b), matmul(a, b)));  // in memory as it is
  // Integers and f64 keep their dtype.
  auto const d = randn<double, 3, 3>(Key{3});
  CHECK(array_equal(compile(autocast<float16>(product))(d, d), compile(product)(d, d)));
}

TEST_CASE("autocast: numbers become narrow and wide in the loops beside products", "[optim]") {
  // Three axes, of which products join two: both weights and x are rounded by themselves, all else with what is
  // computed anyway.
  using Forward = Autocast<std::remove_const_t<decltype(size)>, bfloat16>;
  using F = program<Forward, Layers, Tensor<float, 3, 5, 24>>;
  STATIC_CHECK(F::kernels == 3 + 2 + 2);
  // In the backward pass gradients of weights become wide.
  using B = program<ValueAndGrad<Forward, Wrt<0>>, Layers, Tensor<float, 3, 5, 24>>;
  STATIC_CHECK(B::kernels == F::kernels + 3 + 1 + 2);
}

TEST_CASE("autocast: attention by blocks takes rounded operands", "[optim]") {
  auto const q = randn<float, 2, 70, 16>(Key{1}), k = randn<float, 2, 70, 16>(Key{2}),
             v = randn<float, 2, 70, 16>(Key{3});
  auto const rounded = [](auto const& x) { return cast<float>(cast<bfloat16>(x)); };
  CHECK(array_equal(compile(autocast<bfloat16>(attended))(q, k, v),
                    rounded(compile(attended)(rounded(q), rounded(k), rounded(v)))));
  // Its gradients, too, are those of operands that have been rounded by hand.
  auto const found = compile(grad(Curved<Autocast<Attended, bfloat16>>{}, wrt<0, 1, 2>))(q, k, v);
  auto const expected = compile(grad(Curved<AttendedInHalves>{}, wrt<0, 1, 2>))(q, k, v);
  CHECK(array_equal(std::get<0>(found), std::get<0>(expected)));
  CHECK(array_equal(std::get<1>(found), std::get<1>(expected)));
  CHECK(array_equal(std::get<2>(found), std::get<2>(expected)));
  CHECK(array_equal(std::get<0>(found), rounded(std::get<0>(found))));
}

TEST_CASE("autocast: a network of convolutions reaches what f32 reaches", "[optim]") {
  optim::AdamW const rule{.lr = 0.01};
  double const exact = trained(train_step(loss, rule));
  double const brain = trained(train_step(autocast<bfloat16>(loss), rule));
  double const half = trained(train_step(autocast<float16>(loss), optim::LossScale{rule}));
  CAPTURE(exact, brain, half);
  CHECK(exact < 0.3);
  CHECK(brain < exact * 1.1 + 0.01);
  CHECK(half < exact * 1.1 + 0.01);
  CHECK(brain != exact);
}

}  // namespace tests::optim_autocast
