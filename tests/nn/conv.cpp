// SPDX-License-Identifier: BSL-1.0
// Layers of convolutions and pooling: shapes of their states, initial values, and a small network that learns.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::nn_conv {

using namespace dfdx;

namespace {

constexpr ConvOptions halving{.stride = 2, .padding = 1, .groups = 2};
using Grouped = nn::Conv2d<4, 6, Extents{3, 5}, halving, false, double>;
static_assert(std::is_same_v<decltype(Grouped::weight), Tensor<double, 6, 2, 3, 5>>);
static_assert(parameter_count<nn::Conv1d<4, 6, 3>> == 6 * 4 * 3 + 6);
using Back = nn::ConvTranspose2d<4, 6, 3, ConvTransposeOptions{.stride = 2, .groups = 2}>;
static_assert(std::is_same_v<decltype(Back::weight), Tensor<float, 4, 3, 3, 3>>);

constexpr auto loss = [](auto const& net, auto const& x, auto const& y) { return cross_entropy(net(x), y); };

double largest(Array const& x) { return max(abs(x)).item(); }

// For images of bars that lie and of bars that stand.
struct Net {
  nn::Sequential<nn::Conv2d<1, 4, 3, ConvOptions{.padding = "same"}>, nn::ReLU, nn::MaxPool2d<2>,
                 nn::Conv2d<4, 4, 3, ConvOptions{.padding = 1}>, nn::ReLU, nn::AvgPool2d<3, 1, 1>,
                 nn::AdaptiveAvgPool2d<1>>
      features;
  nn::Linear<4, 2> head;
  DFDX_FIELDS(features, head)
  constexpr auto operator()(operand auto const& x) const { return head(reshape<-1, 4>(features(x))); }
};

}  // namespace

TEST_CASE("layers call their functions", "[nn]") {
  auto const layer = init<Grouped>(1);
  auto const x = uniform<double, 2, 4, 7, 7>(Key{2}, -1, 1);
  auto const y = layer(x);
  static_assert(std::is_same_v<decltype(y), Tensor<double, 2, 6, 4, 3> const>);
  CHECK(array_equal(y, conv2d(x, layer.weight, halving)));
  auto const back = init<Back>(1);
  auto const image = uniform<float, 2, 4, 3, 3>(Key{2}, -1, 1);
  auto const wide = back(image);
  static_assert(std::is_same_v<decltype(wide), Tensor<float, 2, 6, 7, 7> const>);
  CHECK(array_equal(wide, conv_transpose2d(image, back.weight, back.bias, {.stride = 2, .groups = 2})));
  CHECK(array_equal(nn::MaxPool2d<3, 2, 1>()(image), max_pool2d(image, {3, 2, 1})));
  CHECK(array_equal(nn::AvgPool2d<2, 1>()(image), avg_pool2d(image, {2, 1})));
  auto const row = uniform<float, 2, 3, 9>(Key{2}, -1, 1);
  CHECK(array_equal(nn::MaxPool1d<2>()(row), max_pool1d(row, {2})));
  CHECK(array_equal(nn::AvgPool1d<2>()(row), avg_pool1d(row, {2})));
  CHECK(init<nn::Conv3d<1, 2, 2>>(1)(uniform<float, 1, 1, 3, 3, 3>(Key{1})).shape() ==
        make_shape(1, 2, 2, 2, 2));
}

TEST_CASE("layers of convolutions start as in PyTorch", "[nn]") {
  // Uniform within 1 / sqrt(weights of a channel made): for the transpose that counts the channels of the result.
  auto const conv = init<nn::Conv2d<16, 64, 3>>(1);
  double const bound = 1 / std::sqrt(16.0 * 9);
  CHECK((largest(conv.weight) <= bound && largest(conv.weight) > 0.99 * bound));
  CHECK((largest(conv.bias) <= bound && largest(conv.bias) > 0.8 * bound));
  auto const back = init<nn::ConvTranspose2d<64, 16, 3>>(1);
  CHECK((largest(back.weight) <= bound && largest(back.weight) > 0.99 * bound));
}

TEST_CASE("a network of convolutions learns on the tape and compiled alike", "[nn]") {
  auto x = zeros<float, 8, 1, 6, 6>();
  auto labels = zeros<std::int64_t, 8>();
  for (index_t n = 0; n < 8; ++n) {
    labels.data()[n] = n % 2;
    for (index_t i = 0; i < 6; ++i) x.data()[n * 36 + (n % 2 == 0 ? n / 2 * 6 + i : i * 6 + n / 2)] = 1;
  }
  Net compiled = init<Net>(3), taped = init<Net>(3);
  watch(taped);
  optim::Adam const rule{.lr = 0.03f};
  auto step = train_step(loss, rule);
  optim::Optimizer optimizer(rule);
  float last = 0;
  for (int i = 0; i < 60; ++i) {
    last = step(compiled, x, labels);
    if (i >= 5) continue;
    Array const l = loss(taped, x, labels);
    CHECK(std::fabs(l.item() - static_cast<double>(last)) < 1e-4);
    l.backward();
    optimizer.step(taped);
    zero_grad(taped);
  }
  CHECK(last < 0.1f);
}

}  // namespace tests::nn_conv
