// SPDX-License-Identifier: BSL-1.0
// Elementwise work: a fused expression forward and backward, a sum, an exponential.
#include "works.hpp"

namespace {

using namespace dfdx;

constexpr auto affine_gelu = [](auto const& a, auto const& x, auto const& b, auto const& r) {
  return gelu(a * x + b) + r;
};

template <std::size_t N>
void fused_gelu() {
  using T = Tensor<float, N>;
  auto const a = bench::numbers<T>(1), x = bench::numbers<T>(2), b = bench::numbers<T>(3),
             r = bench::numbers<T>(4), ct = bench::numbers<T>(5);
  auto f = vjp(affine_gelu);
  bench::compare_works(
      {"elementwise", "gelu(a x + b) + r, vjp, " + std::to_string(N), "gelu"},
      [&] { return f(a, x, b, r, ct); }, bench::wanted(a), bench::wanted(x), bench::wanted(b),
      bench::wanted(r), bench::plain(ct));
}

template <std::size_t N>
void exponential() {
  auto const x = bench::numbers<Tensor<float, N>>(6);
  auto f = compile([](auto const& v) { return exp(v); });
  bench::compare_works(
      {"elementwise", "exp, " + std::to_string(N), "exp"}, [&] { return f(x); }, bench::plain(x));
}

}  // namespace

int main() {
  fused_gelu<10'000>();
  fused_gelu<1'000'000>();
  fused_gelu<10'000'000>();
  exponential<10'000>();
  exponential<10'000'000>();
  auto const x = bench::numbers<Tensor<float, 10'000'000>>(7);
  auto total = compile([](auto const& v) { return sum(v); });
  bench::compare_works(
      {"elementwise", "sum, 10000000", "sum", 1e-3}, [&] { return total(x); }, bench::plain(x));
}
