// SPDX-License-Identifier: BSL-1.0
// Elementwise work: a fused expression forward and backward, a sum, an exponential, differences of all pairs,
// directions.
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

// The likeness of all pairs of points of D numbers, of a Gaussian process and of what has neighbours.
template <std::size_t N, std::size_t D>
void pairs() {
  auto const x = bench::numbers<Tensor<float, N, D>>(8), y = bench::numbers<Tensor<float, N, D>>(9);
  auto const ct = bench::numbers<Tensor<float, N, N>>(10);
  auto f = vjp([](auto const& p, auto const& q) {
    return exp(-0.5 * sum<2>(square(unsqueeze<1>(p) - unsqueeze<0>(q))));
  });
  bench::compare_works(
      {"elementwise", "pairs of " + std::to_string(N) + " points of " + std::to_string(D) + ", vjp", "pairs"},
      [&] { return f(x, y, ct); }, bench::wanted(x), bench::wanted(y), bench::plain(ct));
}

// The directions of points, as of the normals of a mesh or of quaternions.
template <std::size_t N, std::size_t D>
void directions() {
  auto const x = bench::numbers<Tensor<float, N, D>>(11), ct = bench::numbers<Tensor<float, N, D>>(12);
  auto f = vjp([](auto const& v) { return v / sqrt(sum<-1>(square(v), keepdim)); });
  bench::compare_works(
      {"elementwise", "directions of " + std::to_string(N) + " points of " + std::to_string(D) + ", vjp",
       "directions"},
      [&] { return f(x, ct); }, bench::wanted(x), bench::plain(ct));
}

}  // namespace

int main() {
  fused_gelu<10'000>();
  fused_gelu<1'000'000>();
  fused_gelu<10'000'000>();
  exponential<10'000>();
  exponential<10'000'000>();
  pairs<1000, 3>();
  pairs<1000, 8>();
  directions<10'000, 3>();
  directions<1'000'000, 3>();
  auto const x = bench::numbers<Tensor<float, 10'000'000>>(7);
  auto total = compile([](auto const& v) { return sum(v); });
  bench::compare_works(
      {"elementwise", "sum, 10000000", "sum", 1e-3}, [&] { return total(x); }, bench::plain(x));
}
