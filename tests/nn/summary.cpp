// SPDX-License-Identifier: BSL-1.0
// The table of a model.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::nn_summary {

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

struct Mlp {
  nn::Linear<8, 16> fc1;
  nn::Linear<16, 4, false> fc2;
  DFDX_FIELDS(fc1, fc2)
  constexpr auto operator()(operand auto const& x) const { return fc2(relu(fc1(x))); }
};
struct Reader {
  nn::Embedding<20, 6> letters;
  nn::LSTM<6, 5> lstm;
  nn::Linear<5, 2> out;
  DFDX_FIELDS(letters, lstm, out)
  constexpr auto operator()(operand auto const& x) const { return out(std::get<0>(lstm(letters(x)))); }
};

// What a function that is not constexpr does is not known.
struct Unrecorded {
  nn::Linear<4, 2> fc;
  DFDX_FIELDS(fc)
  auto operator()(auto const& x) const { return fc(x); }
};

}  // namespace

TEST_CASE("a summary names layers, shapes and numbers", "[nn]") {
  using Net = nn::Sequential<nn::Conv2d<1, 8, 3>, nn::ReLU, nn::Flatten<>,
                             nn::Sequential<nn::Linear<288, 10, false>, nn::Tanh>>;
  // A convolution: two for each of 9 terms of 576 results, and a bias; the last layer 2 x 2 x 288 x 10.
  CHECK(summary(Net{}, zeros<float, 2, 1, 8, 8>()) ==
        "layer  output        parameters                     number   flops  memory\n"
        "0      [2, 8, 6, 6]  weight [8, 1, 3, 3], bias [8]      80  10,944   2,304\n"
        "1      [2, 8, 6, 6]                                      0     576   2,304\n"
        "2      [2, 288]                                          0       0   2,304\n"
        "3.0    [2, 10]       weight [10, 288]                2,880  11,520      80\n"
        "3.1    [2, 10]                                           0      20      80\n"
        "total  [2, 10]                                       2,960  23,060   7,072\n");
  // 150 blocks: fc 2 x 3 x 8 x 8, a bias and what the block adds in the end.
  CHECK(summary(Deep{}, zeros<float, 3, 4>()) ==
        "layer          output  parameters                         number    flops  memory\n"
        "in             [3, 8]  weight [8, 4], bias [8]                40      216      96\n"
        "blocks.*.norm  [3, 8]  weight [150, 8], bias [150, 8]      2,400   37,350  14,400\n"
        "blocks.*.fc    [3, 8]  weight [150, 8, 8], bias [150, 8]  10,800   64,800  14,400\n"
        "               [3, 8]  scale [8]                               8       24      96\n"
        "total          [3, 8]                                     13,248  102,390  28,992\n");
}

TEST_CASE("a summary without an input", "[nn]") {
  CHECK(summary(Mlp{}) ==
        "layer  output  parameters                 number  flops  memory\n"
        "fc1            weight [16, 8], bias [16]     144      ?       ?\n"
        "fc2            weight [4, 16]                 64      ?       ?\n"
        "total                                        208      ?       ?\n");
  CHECK(summary(nn::Sequential<nn::Linear<8, 3>, nn::ReLU>{}) ==
        "layer  output  parameters               number  flops  memory\n"
        "0              weight [3, 8], bias [3]      27      ?       ?\n"
        "total                                       27      ?       ?\n");
}

TEST_CASE("the work of layers adds up to that of the program", "[nn]") {
  auto const call = [](auto const& m, auto const& x) { return m(x); };
  auto const last_line = [](std::string const& s) { return s.substr(s.rfind('\n', s.size() - 2) + 1); };
  // fc2 has the relu: 2 x 32 x 16 x 4 + 32 x 16.
  using X = Tensor<float, 32, 8>;
  static_assert(program<decltype(call), Mlp, X>::flops() ==
                2 * 32 * 8 * 16 + 32 * 16 + 2 * 32 * 16 * 4 + 32 * 16);
  CHECK(summary(Mlp{}, zeros<X>()) ==
        "layer  output    parameters                 number   flops  memory\n"
        "fc1    [32, 16]  weight [16, 8], bias [16]     144   8,704   2,048\n"
        "fc2    [32, 4]   weight [4, 16]                 64   4,608     512\n"
        "total  [32, 4]                                 208  13,312   2,560\n");
  // LSTM: of 21 inputs 2 x 6 x 20 and two biases and a sum of 20; of 7 steps 2 x 3 x 5 x 20, and 9 of 15 numbers.
  CHECK(
      summary(Reader{}, zeros<std::int32_t, 7, 3>()) ==
      "layer    output     parameters                                                                    "
      "number   flops  memory\n"
      "letters  [7, 3, 6]  weight [20, 6]                                                                   "
      "120       0     504\n"
      "lstm                weight_ih_l0 [20, 6], weight_hh_l0 [20, 5], bias_ih_l0 [20], bias_hh_l0 [20]     "
      "260  11,445       ?\n"
      "out      [7, 3, 2]  weight [2, 5], bias [2]                                                           "
      "12     462     168\n"
      "total    [7, 3, 2]                                                                                   "
      "392  11,907       ?\n");
  static_assert(2 * 21 * 6 * 20 + 3 * 21 * 20 + 7 * (2 * 3 * 5 * 20 + 9 * 15) == 11445);
  static_assert(program<decltype(call), Reader, Tensor<std::int32_t, 7, 3>>::flops() == 11907);
  using Half = nn::Sequential<nn::Linear<8, 4, true, float16>>;
  CHECK(last_line(summary(Half{}, zeros<float16, 3, 8>())) ==
        "total  [3, 4]                               36    204      24\n");
  // Transposed: each of 640 inputs goes into 27 results; a bias for 1500.
  using Up = nn::Sequential<nn::ConvTranspose2d<2, 3, 3>>;
  CHECK(last_line(summary(Up{}, zeros<float, 5, 2, 8, 8>())) ==
        "total  [5, 3, 10, 10]                                     57  36,060   6,000\n");
}

TEST_CASE("what is not known beforehand is a question mark", "[nn]") {
  auto const rows = Tensor<float, dyn, 8>::uninitialized(make_shape(3, 8));
  CHECK(summary(Mlp{}, rows) ==
        "layer  output    parameters                 number  flops  memory\n"
        "fc1              weight [16, 8], bias [16]     144      ?       ?\n"
        "fc2              weight [4, 16]                 64      ?       ?\n"
        "total  [dyn, 4]                                208      ?       ?\n");
  CHECK(summary(nn::Sequential<Unrecorded, nn::ReLU>{}, zeros<float, 3, 4>()) ==
        "layer  output  parameters               number  flops  memory\n"
        "0.fc   [3, 2]  weight [2, 4], bias [2]      10      ?      24\n"
        "1      [3, 2]                                0      6      24\n"
        "total  [3, 2]                               10      ?      48\n");
}

}  // namespace tests::nn_summary
