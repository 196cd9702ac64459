// SPDX-License-Identifier: BSL-1.0
// Reductions over an axis that is not the last, beside sums in double of one column after another.
#include <dfdx/kernels/reduce.hpp>

#include <cmath>
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <dfdx/dfdx.hpp>

namespace tests::kernels_reduce {

namespace {

using namespace dfdx;

bool same(float a, double b) {
  auto const wanted = static_cast<float>(b);
  return std::isnan(wanted) ? std::isnan(a) : a == wanted;
}

}  // namespace

TEST_CASE("folds of rows add up in double, whatever the length of a row", "[kernels]") {
  constexpr index_t rows = 5;
  for (index_t n = 1; n < 70; ++n) {
    Array const x = randn({rows, n}, Key{static_cast<std::uint64_t>(n)});
    float* const p = x.data<float>();
    p[n / 2] = 1e8f, p[2 * n + n / 2] = -1e8f;
    p[n + n / 3] = std::numeric_limits<float>::quiet_NaN();
    p[3 * n] = -std::numeric_limits<float>::infinity();
    Array const total = sum(x, 0), product = prod(x, 0), high = max(x, 0), low = min(x, 0);
    for (index_t i = 0; i < n; ++i) {
      double s = 0, q = 1, h = p[i], l = p[i];
      for (index_t r = 0; r < rows; ++r) {
        double const v = static_cast<double>(p[r * n + i]);
        s += v, q *= v;
        h = std::isnan(h) || h > v ? h : v, l = std::isnan(l) || l < v ? l : v;
      }
      INFO(n << " numbers in a row, number " << i);
      CHECK(same(total.data<float>()[i], s));
      CHECK(same(product.data<float>()[i], q));
      CHECK(same(high.data<float>()[i], h));
      CHECK(same(low.data<float>()[i], l));
    }
  }
}

}  // namespace tests::kernels_reduce
