// SPDX-License-Identifier: BSL-1.0
// The table of a model.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace dfdx;

namespace {

struct Block {
  nn::LayerNorm<8> norm;
  nn::Linear<8, 8> fc;
  DFDX_FIELDS(norm, fc)
  constexpr auto operator()(operand auto const& x) const { return x + fc(norm(x)); }
};
struct Deep {
  nn::Linear<4, 8> in;
  nn::Repeat<Block, 150> blocks;
  Tensor<float, 8> scale;
  DFDX_FIELDS(in, blocks, scale)
  constexpr auto operator()(operand auto const& x) const { return blocks(in(x)) * scale; }
};

}  // namespace

TEST_CASE("a summary names layers, shapes and numbers", "[nn]") {
  using Net = nn::Sequential<nn::Conv2d<1, 8, 3>, nn::ReLU, nn::Flatten<>,
                             nn::Sequential<nn::Linear<288, 10, false>, nn::Tanh>>;
  auto const x = zeros<float, 2, 1, 8, 8>();
  CHECK(summary(Net{}, x) ==
        "layer  output        parameters                           number\n"
        "0      [2, 8, 6, 6]  weight [8, 1, 3, 3], bias [8]            80\n"
        "1      [2, 8, 6, 6]                                            0\n"
        "2      [2, 288]                                                0\n"
        "3.0    [2, 10]       weight [10, 288]                      2,880\n"
        "3.1    [2, 10]                                                 0\n"
        "total  [2, 10]                                             2,960\n");
  CHECK(summary(Deep{}, zeros<float, 3, 4>()) ==
        "layer          output  parameters                               number\n"
        "in                     weight [8, 4], bias [8]                      40\n"
        "blocks.*.norm          weight [150, 8], bias [150, 8]            2,400\n"
        "blocks.*.fc            weight [150, 8, 8], bias [150, 8]        10,800\n"
        "                       scale [8]                                     8\n"
        "total          [3, 8]                                           13,248\n");
}
