// SPDX-License-Identifier: BSL-1.0
// A function object that translation units for different instruction sets share (see targets.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <dfdx/dfdx.hpp>

using Function = void (*)();

/// What a translation unit says of its program.
struct Outcome {
  double worst = 1;                        // relative error of the results
  Function run = nullptr, loop = nullptr;  // the program, and the kernel of one of its loops
  dfdx::index_t arena = 0, lanes = 0;      // bytes, floats in a vector
};

Outcome in_sse2();
Outcome in_avx512();

using Left = dfdx::Tensor<float, 70, 300>;
using Right = dfdx::Tensor<float, 133, 300>;

inline constexpr auto row_sums = [](Left const& x, Right const& y) {
  return sum<1>(exp(matmul(exp(x), transpose(y))));
};
inline constexpr auto shared = dfdx::compile(row_sums);

// What follows differs from one translation unit to the next, so each has its own.
namespace {

// The kernel of step S of program P if it is a loop.
template <class P, std::size_t S>
void name_loop(Outcome& r) {
  if constexpr (P::steps[S].kind == dfdx::graph::Step::Kind::loop)
    r.loop = reinterpret_cast<Function>(&dfdx::kernels::Loop<dfdx::step_code_t<P, S>>::run);
}

[[maybe_unused]] Outcome outcome() {
  using P = decltype(shared)::program_for<Left, Right>;
  Outcome r;
  r.arena = P::arena_bytes;
  r.lanes = dfdx::kernels::lane_size<float>;
  r.run = reinterpret_cast<Function>(&P::run);
  [&]<std::size_t... S>(std::index_sequence<S...>) {
    (name_loop<P, S>(r), ...);
  }(std::make_index_sequence<static_cast<std::size_t>(P::kernels)>{});

  auto x = Left::uninitialized();
  auto y = Right::uninitialized();
  for (dfdx::index_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * 37 % 101) / 200.f;
  for (dfdx::index_t i = 0; i < y.size(); ++i) y.data()[i] = static_cast<float>(i * 53 % 103 - 51) / 3000.f;
  auto const sums = shared(x, y);
  r.worst = 0;
  for (dfdx::index_t i = 0; i < 70; ++i) {
    double expected = 0;
    for (dfdx::index_t j = 0; j < 133; ++j) {
      double product = 0;
      for (dfdx::index_t k = 0; k < 300; ++k)
        product += std::exp(static_cast<double>(x(i, k))) * static_cast<double>(y(j, k));
      expected += std::exp(product);
    }
    r.worst = std::max(r.worst, std::abs(static_cast<double>(sums(i)) - expected) / expected);
  }
  return r;
}

}  // namespace
