// SPDX-License-Identifier: BSL-1.0
// Convolutions of several channels, with both gradients, against their definition in double: numbers of channels and
// lengths of lines around those that each kernel is chosen for, flush with pages that cannot be touched.
#include <dfdx/kernels/conv.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "convolution.hpp"
#include "flush.hpp"

namespace tests::kernels_conv {

namespace {

using namespace convolution;

struct Case {
  index_t batch, groups, in, out, x[3];
  Window w[3];
};

// The largest error of the three products, relative to the sum of the sizes of what is added up.
template <class E>
double error_of(Case const& c) {
  ConvGeometry const g = geometry(c.batch, c.groups, c.in, c.out, c.x, c.w);
  auto const size = [](index_t n) { return static_cast<std::size_t>(n); };
  std::size_t const nx = size(g.batch * g.groups * g.in * g.x_size()),
                    nw = size(g.groups * g.out * g.in * g.w_size()),
                    ny = size(g.batch * g.groups * g.out * g.y_size());
  std::vector<E> const x = numbers<E>(static_cast<index_t>(nx), 1),
                       w = numbers<E>(static_cast<index_t>(nw), 2),
                       y = numbers<E>(static_cast<index_t>(ny), 3);
  std::vector<double> to_x(nx), to_w(nw), to_y(ny), of_x(nx), of_w(nw), of_y(ny);
  each_product(g, [&](index_t i, index_t j, index_t k) {
    std::size_t const a = size(i), b = size(j), d = size(k);
    auto const add = [](double& sum, double& sizes, double v) { sum += v, sizes += std::fabs(v); };
    add(to_y[d], of_y[d], static_cast<double>(x[a]) * static_cast<double>(w[b]));
    add(to_x[a], of_x[a], static_cast<double>(y[d]) * static_cast<double>(w[b]));
    add(to_w[b], of_w[b], static_cast<double>(x[a]) * static_cast<double>(y[d]));
  });
  double worst = 0;
  auto const compare = [&](E const* found, std::vector<double> const& sums,
                           std::vector<double> const& sizes) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      double const d = std::fabs(static_cast<double>(found[i]) - sums[i]);
      worst = std::isnan(d) ? INFINITY : std::max(worst, d / (sizes[i] + 1e-30));
    }
  };
  auto const flush = [](std::vector<E> const& from, Flush<E> const& to) {
    std::copy(from.begin(), from.end(), to.data);
  };
  auto const length = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  Flush<E> const xs(length(nx)), ws(length(nw)), ys(length(ny)), got_x(length(nx)), got_w(length(nw)),
      got_y(length(ny));
  flush(x, xs), flush(w, ws), flush(y, ys);
  kernels::Conv<E> const conv(g);
  conv.forward(xs.data, ws.data, got_y.data);
  conv.input(got_x.data, ws.data, ys.data);
  conv.weight(xs.data, got_w.data, ys.data);
  compare(got_x.data, to_x, of_x), compare(got_w.data, to_w, of_w), compare(got_y.data, to_y, of_y);
  return worst;
}
void check(Case const& c) {
  INFO("channels " << c.in << " to " << c.out << ", groups " << c.groups << ", lines of " << c.x[2]);
  CHECK(error_of<float>(c) < 1e-5);
  CHECK(error_of<double>(c) < 1e-13);
}

constexpr Window one{}, three{3, 1, 1, 0}, padded{3, 1, 1, 1}, by_two{3, 2, 1, 1}, five{5, 1, 1, 0};

}  // namespace

TEST_CASE("convolution kernels: gradients of few weights, from copied windows", "[kernels]") {
  for (index_t const out : {11, 12, 16, 33}) check({2, 1, 1, out, {1, 28, 28}, {one, three, three}});
  for (index_t const line : {9, 17, 18, 31, 34, 50})
    check({2, 1, 1, 13, {1, 9, line}, {one, padded, padded}});
  check({2, 1, 3, 14, {1, 30, 33}, {one, padded, padded}});  // several blocks of lines
  check({1, 1, 2, 12, {1, 40, 61}, {one, by_two, by_two}});
  check({2, 2, 1, 12, {1, 12, 20}, {one, three, {3, 1, 2, 2}}});
  check({2, 1, 2, 12, {1, 50, 41}, {one, {3, 1, 2, 2}, three}});  // lines of a window two apart
  check({1, 1, 1, 15, {5, 7, 19}, {three, three, padded}});
  check({1, 1, 1, 12, {1, 11, 23}, {one, {4, 1, 1, 0}, {5, 1, 1, 2}}});
  check({1, 1, 1, 12, {1, 3, 3000}, {one, three, three}});  // lines longer than a block
}

TEST_CASE("convolution kernels: lines of neighbours of one lane of channels", "[kernels]") {
  for (index_t line = 8; line <= 34; ++line) check({1, 1, 20, 13, {1, 9, line}, {one, three, three}});
  check({3, 1, 6, 16, {1, 14, 14}, {one, five, five}});
  check({2, 2, 20, 16, {1, 11, 13}, {one, padded, by_two}});
  check({1, 1, 40, 16, {3, 8, 16}, {padded, padded, padded}});
}

TEST_CASE("convolution kernels: windows of one element", "[kernels]") {
  check({2, 1, 200, 130, {1, 18, 19}, {one, one, one}});  // rows of x on many pages
  check({2, 2, 20, 130, {1, 18, 19}, {one, one, one}});
  check({2, 1, 530, 18, {2, 7, 8}, {one, one, one}});  // in parts
  check({2, 1, 20, 130, {1, 25, 26}, {one, {1, 2, 1, 0}, {1, 2, 1, 0}}});
}

TEST_CASE("convolution kernels: windows of many channels that reach beyond the input", "[kernels]") {
  constexpr Window wide{5, 1, 1, 2}, beyond{3, 1, 1, 3};
  check({3, 1, 65, 40, {1, 5, 6}, {one, padded, padded}});
  check({2, 2, 64, 33, {1, 7, 7}, {one, padded, by_two}});
  check({1, 1, 70, 17, {3, 4, 5}, {padded, padded, padded}});
  check({1, 1, 64, 20, {1, 6, 9}, {one, {3, 1, 2, 2}, padded}});
  check({2, 1, 64, 16, {1, 4, 5}, {one, beyond, beyond}});  // some see nothing of it
  check({29, 1, 64, 9, {1, 4, 4}, {one, padded, padded}});  // more samples than at a time
  check({3, 2, 70, 66, {1, 23, 24}, {one, wide, by_two}});  // channels of x on many pages
  check({2, 1, 40, 24, {1, 30, 31}, {one, {3, 1, 2, 2}, {2, 1, 1, 1}}});
  check({3, 1, 64, 104, {1, 17, 19}, {one, padded, padded}});  // and of y, of more samples than at a time
  check({1, 1, 64, 12, {1, 31, 31}, {one, wide, wide}});       // and more positions
  check(
      {4, 1, 90, 66, {1, 12, 12}, {one, wide, wide}});  // weights in parts and panels, kept for other samples
  check({1, 1, 90, 66, {1, 9, 12}, {one, wide, wide}});  // and not kept
}

TEST_CASE("convolution kernels: gradients of the input, phase by phase", "[kernels]") {
  constexpr Window two{3, 2, 1, 0}, seven{7, 1, 1, 3};
  check({3, 1, 70, 20, {1, 25, 26}, {one, two, two}});         // several panels
  check({5, 2, 20, 9, {1, 13, 12}, {one, two, two}});          // fewer samples at the end
  check({1, 1, 17, 140, {1, 40, 41}, {one, by_two, by_two}});  // several blocks, and parts of sums
  check({2, 1, 18, 6, {9, 9, 11}, {two, two, by_two}});
  check({2, 1, 20, 8, {1, 20, 22}, {one, {2, 3, 1, 0}, {1, 2, 1, 0}}});  // some elements are in no window
  check({1, 1, 24, 8, {1, 30, 43}, {one, {3, 2, 2, 2}, {3, 4, 3, 5}}});
  check({4, 1, 19, 7, {1, 3, 90}, {one, {3, 5, 1, 1}, {2, 4, 1, 0}}});  // strides longer than the axis
  check({3, 1, 16, 40, {1, 12, 13}, {one, seven, seven}});              // a single phase
}

// Results of so many numbers are stored past the caches: whole lines of memory, and those that are not.
TEST_CASE("convolution kernels: results larger than caches", "[kernels]") {
  static_assert(std::min(2 * 4 * 1022 * 1030, 9 * 966 * 976) * sizeof(float) >= kernels::past_caches);
  CHECK(error_of<float>({2, 1, 1, 4, {1, 1024, 1032}, {one, three, three}}) < 1e-5);
  CHECK(error_of<float>({1, 1, 1, 9, {1, 966, 978}, {one, padded, three}}) < 1e-5);
}

}  // namespace tests::kernels_conv
