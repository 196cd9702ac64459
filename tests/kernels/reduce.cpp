// SPDX-License-Identifier: BSL-1.0
// Reductions over an axis that is not the last, beside sums in double of one column after another; over any axes of
// what lies in memory in another order, has gaps or is repeated, beside plain loops.
#include <dfdx/kernels/reduce.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <catch2/catch_test_macros.hpp>
#include <dfdx/dfdx.hpp>

namespace tests::kernels_reduce {

namespace {

using namespace dfdx;

bool same(float a, double b) {
  auto const wanted = static_cast<float>(b);
  return std::isnan(wanted) ? std::isnan(a) : a == wanted;
}

// The reductions over the axes of a mask, in double, one element after another, and what the library says of them.
struct Plain {
  double sum = 0, high = -std::numeric_limits<double>::infinity(), low = -high;
};
void check_all_axes(Array const& x) {
  Operand const o = x.operand();
  int const rank = x.ndim();
  for (int mask = 1; mask < 1 << rank; ++mask) {
    Axes axes;
    Strides to;
    index_t size = 1;
    for (int a = rank - 1; a >= 0; --a) {
      bool const reduced = (mask >> a & 1) != 0;
      if (reduced) axes.push(a);
      to.push_back(reduced ? 0 : size);
      if (!reduced) size *= x.shape()[a];
    }
    std::reverse(to.dims, to.dims + rank);
    std::vector<Plain> plain(static_cast<std::size_t>(size));
    Strides const strides[2] = {x.strides(), to};
    walk<2>(x.shape(), strides, [&](index_t const(&at)[2]) {
      Plain& p = plain[static_cast<std::size_t>(at[1])];
      double const v = read_real(o, at[0]);
      p.sum += v;
      p.high = std::isnan(p.high) || p.high > v ? p.high : v;
      p.low = std::isnan(p.low) || p.low < v ? p.low : v;
    });
    Array const total = cast_to(sum(x, axes), DType::f64), high = cast_to(max(x, axes), DType::f64),
                low = cast_to(min(x, axes), DType::f64);
    INFO(x.dtype() << " axes " << mask << " rank " << rank);
    for (index_t i = 0; i < size; ++i) {
      Plain const& p = plain[static_cast<std::size_t>(i)];
      auto const is = [](double a, double b, double near) {
        return std::isnan(b) ? std::isnan(a) : a == b || std::abs(a - b) <= near * (1 + std::abs(b));
      };
      CHECK(is(total.data<double>()[i], p.sum, is_half(x.dtype()) ? 0.01 : 2e-5));
      CHECK(is(high.data<double>()[i], p.high, 0));
      CHECK(is(low.data<double>()[i], p.low, 0));
    }
  }
}

}  // namespace

TEST_CASE("reductions over any axes of what lies in any order", "[kernels]") {
  for (DType const d : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32}) {
    std::uint64_t key = 0;
    for (Shape const& s : {make_shape(3, 5, 2, 40), make_shape(2, 1, 7, 19), make_shape(1, 33, 4, 3),
                           make_shape(6, 2, 70, 1)}) {
      Array const drawn = randn({s[0], s[1], s[2], s[3]}, Key{++key});
      if (is_floating(d)) {
        drawn.data<float>()[drawn.size() / 3] = std::numeric_limits<float>::quiet_NaN();
        drawn.data<float>()[drawn.size() / 2] = std::numeric_limits<float>::infinity();
        drawn.data<float>()[drawn.size() - 1] = -std::numeric_limits<float>::infinity();
      }
      Array const x = cast_to(is_floating(d) ? drawn : drawn * 9.0, d);
      check_all_axes(x);
      check_all_axes(permute(x, {3, 1, 0, 2}));
      check_all_axes(permute(x, {1, 0, 3, 2}));
      check_all_axes(slice(permute(x, {2, 0, 3, 1}), 1, 0, s[0], 2));
      check_all_axes(expand(reshape(x, {s[0], s[1], 1, s[2] * s[3]}), {s[0], s[1], 3, s[2] * s[3]}));
    }
  }
  // Rows of every length around those of lanes and blocks.
  for (index_t n : {1, 3, 15, 16, 17, 63, 64, 65, 100, 257, 4096, 4097, 4200, 9001})
    for (DType const d : {DType::f32, DType::f64}) {
      Array const x = cast_to(randn({3, n}, Key{static_cast<std::uint64_t>(n)}), d);
      check_all_axes(x);
      x(1, n - 1).copy_(full({}, std::numeric_limits<double>::quiet_NaN(), d));
      check_all_axes(x);
    }
  CHECK(sum(Array(Meta{DType::f32, make_shape(0, 4)}), 0).data<float>()[3] == 0);
  CHECK(sum(Array(Meta{DType::f32, make_shape(4, 0)}), 1).data<float>()[3] == 0);
  CHECK(sum(Array(Meta{DType::f32, make_shape(4, 0)}), 0).size() == 0);
  CHECK(prod(Array(Meta{DType::f64, make_shape(0)}), 0).item() == 1);
}

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
