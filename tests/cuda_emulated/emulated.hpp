// SPDX-License-Identifier: BSL-1.0
// What tests of the CUDA path on the CPU have in common: a program is run on the CPU and on the emulated device, there
// with the threads of blocks in several orders, which must not change a bit.
#pragma once

#include <dfdx/cuda.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "worse.hpp"

namespace emulated {

using namespace dfdx;

/// Numbers of a value, wherever it lies.
template <class T>
std::vector<double> numbers(T const& value) {
  std::vector<double> r;
  auto const here = to(Device{}, value);
  visit(here, [&](auto const& leaf) {
    using E = typename std::remove_cvref_t<decltype(leaf)>::value_type;
    auto const dense = leaf.contiguous();
    for (index_t i = 0; i < dense.size(); ++i)
      r.push_back(static_cast<double>(reinterpret_cast<E const*>(dense.bytes())[i]));
  });
  return r;
}

/// The largest difference, relative to 1 + |b|; NaN agrees with NaN only.
inline double difference(std::vector<double> const& a, std::vector<double> const& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return INFINITY;
    if (std::isnan(a[i]) || a[i] == b[i]) continue;
    worst = tests::worse(worst, std::fabs(a[i] - b[i]) / (1 + std::fabs(b[i])));
  }
  return worst;
}

inline cuda_fake::Machine& machine() { return cuda_fake::machine(); }

/// Sets the order of threads as long as it lives.
struct InTurns {
  explicit InTurns(cuda_fake::Turns t) { machine().fibers.turns = t; }
  InTurns(InTurns const&) = delete;
  ~InTurns() { machine().fibers.turns = cuda_fake::Turns::forward; }
};

/// How far the device is from the CPU, for function F; infinite if the order of threads shows.
template <class F, class... A>
double apart(F const&, A const&... args) {
  auto f = compile(F{});
  auto const expected = numbers(f(args...));
  std::vector<double> first;
  for (auto const turns :
       {cuda_fake::Turns::forward, cuda_fake::Turns::backward, cuda_fake::Turns::shuffled}) {
    InTurns const order(turns);
    auto const found = numbers(f(to(cuda(), args)...));
    if (first.empty()) first = found;
    bool same = first.size() == found.size();
    for (std::size_t i = 0; same && i < first.size(); ++i)
      same = std::memcmp(&first[i], &found[i], sizeof(double)) == 0;
    if (!same) return INFINITY;
  }
  return difference(first, expected);
}

/// Numbers that are not in order, of both signs.
template <class T>
void fill(T& x, int seed = 1) {
  using E = typename T::value_type;
  auto* const p = reinterpret_cast<E*>(x.bytes());
  for (index_t i = 0; i < x.size(); ++i) {
    auto const bits = static_cast<std::uint32_t>(i * 2654435761 + seed * 40503) * 2246822519u;
    float const v = static_cast<float>(bits >> 8) / 8388608.f - 1.f;
    p[i] = std::is_integral_v<E> ? static_cast<E>(v * 50) : static_cast<E>(v);
  }
}
template <class T, class... N>
T filled(int seed, N... n) {
  T x;
  if constexpr (sizeof...(N) == 0) x = T(Array(T::static_meta));
  else x = T(Array(Meta{T::static_meta.dtype, make_shape(n...)}));
  fill(x, seed);
  return x;
}

}  // namespace emulated
