// SPDX-License-Identifier: BSL-1.0
// Norms called on their own, whose rows are brought to mean 0 and variance 1 in one step, beside plain loops and beside
// the same on the tape, where they are several ops.
#include <cmath>
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <dfdx/dfdx.hpp>

namespace tests::kernels_standardize {

namespace {

using namespace dfdx;

double largest(Array const& x) { return max(abs(x)).item(); }
Array on_tape(Array const& x) {
  Array r = x.detach() * 1.0;
  r.requires_grad(true);
  return r;
}

}  // namespace

TEST_CASE("rows of any length are standardized", "[kernels]") {
  for (DType const d : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (index_t n : {1, 2, 15, 16, 17, 63, 64, 65, 300, 4096, 4100}) {
      Array const x = cast_to(randn({3, n}, Key{static_cast<std::uint64_t>(n)}) * 3.0 + 50.0, d);
      Array const y = cast_to(layer_norm(x, {n}), DType::f64), wide = cast_to(x, DType::f64);
      bool good = true;
      for (index_t r = 0; r < 3; ++r) {
        double const* const p = wide.data<double>() + r * n;
        double mean = 0, variance = 0;
        for (index_t i = 0; i < n; ++i) mean += p[i] / static_cast<double>(n);
        for (index_t i = 0; i < n; ++i) variance += (p[i] - mean) * (p[i] - mean) / static_cast<double>(n);
        for (index_t i = 0; i < n; ++i) {
          double const wanted = (p[i] - mean) / std::sqrt(variance + 1e-5);
          double const near = is_half(d) ? 0.02 : d == DType::f32 ? 5e-5 : 1e-10;
          good = good && std::abs(y.data<double>()[r * n + i] - wanted) < near * (1 + std::abs(wanted));
        }
      }
      INFO(d << " " << n);
      // (Of one number what is left is what rounding makes of its mean.)
      CHECK((good || n == 1));
      CHECK(largest(cast_to(layer_norm(on_tape(x), {n}).detach(), DType::f64) - y) < 0.05);
    }
}

TEST_CASE("norms of what lies in any order are those on the tape", "[kernels]") {
  Array const x = cast_to(randn({2, 6, 5, 4}, Key{1}), DType::f64);
  for (Array const& v : {x, permute(x, {0, 1, 3, 2}), permute(x, {2, 1, 0, 3}), slice(x, 3, 0, 4, 2),
                         expand(slice(x, 0, 0, 1), {3, 6, 5, 4})}) {
    Array const w = cast_to(randn({6}, Key{2}), DType::f64), b = cast_to(randn({6}, Key{3}), DType::f64);
    auto const close = [&](Array const& called, Array const& recorded) {
      return called.shape() == recorded.shape() && largest(called - recorded.detach()) < 1e-12;
    };
    CHECK(close(group_norm(v, 3, w, b), group_norm(on_tape(v), 3, w, b)));
    CHECK(close(group_norm(v, 6), group_norm(on_tape(v), 6)));
    CHECK(close(instance_norm(v, w, b), instance_norm(on_tape(v), w, b)));
    Shape const s = v.shape();
    CHECK(close(layer_norm(v, {s[2], s[3]}), layer_norm(on_tape(v), {s[2], s[3]})));
    CHECK(close(layer_norm(v, {s[1], s[2], s[3]}), layer_norm(on_tape(v), {s[1], s[2], s[3]})));
  }
}

TEST_CASE("NaN and infinities stay in their rows", "[kernels]") {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Array const x = cast_to(randn({3, 40}, Key{4}), DType::f32);
    x.data<float>()[47] = static_cast<float>(bad);
    Array const y = layer_norm(x, {40});
    for (index_t i = 0; i < 120; ++i) CHECK(std::isnan(y.data<float>()[i]) == (i / 40 == 1));
  }
  CHECK(layer_norm(Array(Meta{DType::f32, make_shape(0, 4)}), {4}).size() == 0);
  Tensor<float, 2, 8> const same = ones<Tensor<float, 2, 8>>() * 3.0f;
  CHECK(largest(layer_norm<8>(same)) == 0);
}

}  // namespace tests::kernels_standardize
