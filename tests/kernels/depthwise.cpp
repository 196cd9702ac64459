// SPDX-License-Identifier: BSL-1.0
// Convolutions of single channels, with both gradients, against their definition: windows of all kinds, lines around
// the lengths of vectors, flush with pages that cannot be touched.
#include <dfdx/kernels/conv.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "convolution.hpp"
#include "flush.hpp"

namespace tests::kernels_depthwise {

namespace {

using namespace convolution;

ConvGeometry geometry(index_t batch, index_t groups, index_t const (&x)[3], Window const (&w)[3]) {
  return convolution::geometry(batch, groups, 1, 1, x, w);
}

// How many numbers of the three products are wrong.
template <class E>
int wrong(ConvGeometry const& g) {
  index_t const nx = g.batch * g.groups * g.x_size(), nw = g.groups * g.w_size(),
                ny = g.batch * g.groups * g.y_size();
  auto const x = numbers<E>(nx, 1), w = numbers<E>(nw, 2), y = numbers<E>(ny, 3);
  Flush<E> const xs(nx), ws(nw), ys(ny), got_x(nx), got_w(nw), got_y(ny);
  std::copy(x.begin(), x.end(), xs.data), std::copy(w.begin(), w.end(), ws.data);
  std::copy(y.begin(), y.end(), ys.data);
  std::vector<double> to_x(x.size()), to_w(w.size()), to_y(y.size());
  each_product(g, [&](index_t i, index_t k, index_t j) {
    auto const a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(k),
               c = static_cast<std::size_t>(j);
    to_y[c] += static_cast<double>(x[a]) * static_cast<double>(w[b]);
    to_x[a] += static_cast<double>(y[c]) * static_cast<double>(w[b]);
    to_w[b] += static_cast<double>(x[a]) * static_cast<double>(y[c]);
  });
  kernels::Conv<E> const conv(g);
  conv.forward(xs.data, ws.data, got_y.data);
  conv.input(got_x.data, ws.data, ys.data);
  conv.weight(xs.data, got_w.data, ys.data);
  int count = 0;
  double const near = sizeof(E) == 4 ? 2e-5 : 1e-13;
  auto const compare = [&](Flush<E> const& got, std::vector<double> const& want, double bound) {
    for (index_t i = 0; i < got.count(); ++i)
      count += !(std::abs(static_cast<double>(got[i]) - want[static_cast<std::size_t>(i)]) <= bound);
  };
  compare(got_y, to_y, near), compare(got_x, to_x, near);
  compare(got_w, to_w, near * std::sqrt(static_cast<double>(ny)));  // sums of so many products
  return count;
}

}  // namespace

TEST_CASE("depthwise convolutions", "[kernels]") {
  Window const one{1, 1, 1, 0};
  for (index_t n : {1, 3, 9, 17, 33, 70, 131})
    for (index_t stride : {1, 2, 3})
      for (index_t dilation : {1, 2}) {
        Window const three{3, stride, dilation, dilation}, five{5, stride, dilation, 2 * dilation};
        CHECK(wrong<float>(geometry(2, 3, {1, n, n < 40 ? 13 : n}, {one, three, three})) == 0);
        CHECK(wrong<float>(geometry(1, 2, {1, 1, n}, {one, one, five})) == 0);
        if (n < 40) CHECK(wrong<double>(geometry(2, 1, {3, 9, n}, {three, five, three})) == 0);
      }
}

TEST_CASE("depthwise convolutions of lines no longer than a lane", "[kernels]") {
  Window const one{1, 1, 1, 0};
  for (index_t n = 1; n < 18; ++n)
    for (index_t lines : {1, 2, 3, 4, 14})
      for (index_t before : {0, 1, 2}) {
        if (n + 2 * before < 3 || lines + 2 * before < 3) continue;
        Window const three{3, 1, 1, before};
        CHECK(wrong<float>(geometry(2, 3, {1, lines, n}, {one, three, three})) == 0);
        CHECK(wrong<double>(geometry(1, 2, {1, lines, n}, {one, three, three})) == 0);
      }
}

TEST_CASE("weights' gradients of short lines have nothing of what their elements do not see", "[kernels]") {
  Window const one{1, 1, 1, 0}, three{3, 1, 1, 0};
  ConvGeometry const g = geometry(1, 1, {1, 4, 12}, {one, three, three});
  std::vector<float> x(48, 1.0f), w(9), y(20, 1.0f);
  x[11] = std::numeric_limits<float>::infinity();
  kernels::Conv<float>(g).weight(x.data(), w.data(), y.data());
  for (int k = 0; k < 9; ++k) CHECK((k == 2 ? std::isinf(w[2]) : w[static_cast<std::size_t>(k)] == 20));
}

TEST_CASE("depthwise convolutions by two", "[kernels]") {
  Window const one{1, 1, 1, 0};
  for (index_t n : {1, 2, 7, 15, 16, 17, 31, 32, 33, 64, 67})
    for (index_t lines : {1, 2, 3, 8, 9})
      for (index_t before : {0, 1, 2})
        for (index_t above : {0, 1, 2}) {
          if (n + 2 * before < 3 || lines + 2 * above < 3) continue;
          Window const down{3, 2, 1, above}, along{3, 2, 1, before};
          CHECK(wrong<float>(geometry(2, 2, {1, lines, n}, {one, down, along})) == 0);
          CHECK(wrong<double>(geometry(1, 2, {1, lines, n}, {one, down, along})) == 0);
        }
}

}  // namespace tests::kernels_depthwise
