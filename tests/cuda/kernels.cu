// SPDX-License-Identifier: BSL-1.0
// Ops with kernels of their own: what nvcc's front end has to read, and kernels without local memory. main compares the
// device with the CPU, where there is a device.
#include "models.hpp"

#include <cmath>
#include <cstdio>
#include <tuple>
#include <vector>

#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/pool.hpp>
#include <dfdx/vocabulary/random.hpp>

using namespace dfdx;

namespace {

struct Convolutions {
  constexpr auto operator()(auto const& x, auto const& w, auto const& thin) const {
    auto const y = conv2d<ConvOptions{.stride = {2, 1}, .padding = 1}>(x, w);
    auto const z = conv2d<ConvOptions{.padding = 1, .groups = 8}>(x, thin);
    return sum(square(y)) + sum(square(z)) + sum(square(avg_pool2d<AvgPoolOptions{2}>(x))) +
           sum(square(max_pool2d<MaxPoolOptions{2}>(x))) + sum(square(adaptive_avg_pool2d<3, 3>(x)));
  }
};
struct Images {
  constexpr auto operator()(auto const& x) const {
    return sum(square(interpolate<InterpolateOptions{.size = {9, 4}, .mode = InterpolateMode::bicubic}>(x))) +
           sum(square(interpolate<InterpolateOptions{.size = {9, 4}, .mode = InterpolateMode::bilinear}>(x)));
  }
};
struct Sampled {
  constexpr auto operator()(auto const& x, auto const& grid) const {
    return sum(square(grid_sample<GridSampleOptions{.mode = GridMode::bicubic}>(x, grid))) +
           sum(square(grid_sample(x, grid))) +
           sum(square(grid_sample<GridSampleOptions{.mode = GridMode::nearest}>(x, grid)));
  }
};
struct Ordered {
  constexpr auto operator()(auto const& x) const {
    return std::tuple(argsort<1>(x), cumsum<1>(x), cumprod<1>(x), std::get<1>(cummax<0>(x)),
                      searchsorted(select<0, 0>(x), x));
  }
};
struct Moved {
  constexpr auto operator()(auto const& x, auto const& at, auto const& src) const {
    return std::tuple(index_copy<1>(x, at, src), concat<0>(flip<0>(x), x), pad<1, 2>(x, 0.5),
                      index_add<1>(x, at, src), index_add<0>(transpose(x), at, transpose(src)));
  }
};
struct Drawn {
  constexpr auto operator()(auto const& x, auto const& key) const {
    return dropout(x, 0.3, key) + randn_like(x, key, 1);
  }
};
struct CausalAttention {
  constexpr auto operator()(auto const& q, auto const& k, auto const& v) const {
    return sum(square(scaled_dot_product_attention(q, k, v, {.causal = true})));
  }
};

template <class T>
T made(int seed = 0) {
  T x = T(Array(T::static_meta));
  using E = typename T::value_type;
  auto* const p = reinterpret_cast<E*>(x.bytes());
  for (index_t i = 0; i < x.size(); ++i)
    p[i] = std::is_integral_v<E> ? static_cast<E>(i * 7 % 30)
                                 : static_cast<E>(static_cast<float>((i + seed) * 37 % 101) / 50.f - 1.f);
  return x;
}

// The same program on the CPU and on the device, there three times: the second time it is captured.
template <class F, class... A>
bool agrees(char const* name, F, A const&... args) {
  auto f = compile(F{});
  auto const expected = f(args...);
  double worst = 0;
  std::tuple const there(to(cuda(), args)...);
  for (int k = 0; k < 3; ++k) {
    auto const found = to(Device{}, std::apply([&](auto const&... a) { return f(a...); }, there));
    std::vector<Array> a, b;
    visit(found, [&](auto const& leaf) { a.push_back(leaf); });
    visit(expected, [&](auto const& leaf) { b.push_back(leaf); });
    for (std::size_t i = 0; i < a.size(); ++i) {
      Array const dense = b[i].contiguous();
      for (index_t j = 0; j < dense.size(); ++j) {
        double const want = read_real(dense.operand(), j);
        double const d = std::fabs(read_real(a[i].operand(), j) - want) / (1 + std::fabs(want));
        if (!(d <= worst) && !std::isnan(worst)) worst = d;  // NaN stays
      }
    }
  }
  std::printf("%s: %g\n", name, worst);
  return worst <= 1e-4;
}

}  // namespace

int main() {
  if (device_models::no_device()) return 77;
  bool good = agrees("convolutions", grad(Convolutions{}, wrt<0, 1, 2>), made<Tensor<float, 2, 8, 16, 16>>(),
                     made<Tensor<float, 12, 8, 3, 3>>(1), made<Tensor<float, 8, 1, 3, 3>>(2));
  good = agrees("images", grad(Images{}), made<Tensor<float, 2, 3, 7, 7>>()) && good;
  good = agrees("sampled images", grad(Sampled{}, wrt<0, 1>), made<Tensor<float, 2, 3, 7, 7>>(),
                made<Tensor<float, 2, 5, 6, 2>>(1)) &&
         good;
  good = agrees("order", Ordered{}, made<Tensor<float, 30, 3000>>()) && good;
  good = agrees("moves", Moved{}, made<Tensor<float, 8, 30>>(), made<Tensor<std::int32_t, 9>>(),
                made<Tensor<float, 8, 9>>(3)) &&
         good;
  good = agrees("draws", Drawn{}, made<Tensor<float, 1001>>(), made<Tensor<std::int64_t>>()) && good;
  using Heads = Tensor<float, 2, 4, 100, 32>;
  good = agrees("attention", grad(CausalAttention{}, wrt<0, 1, 2>), made<Heads>(), made<Heads>(1),
                made<Heads>(2)) &&
         good;
  return good ? 0 : 1;
}
