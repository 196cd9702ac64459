// SPDX-License-Identifier: BSL-1.0
// Attention for devices: a training step, and results and gradients of 16-bit floats, which tensor cores compute. What
// nvcc's front end has to read, and kernels without local memory. main compares the device with the CPU, where there is
// a device, and times the long sequences.
#include "models.hpp"

#include <dfdx/vocabulary/attention.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <vector>

using namespace device_models;

namespace {

using Texts = Tensor<float, 2, 9, 16>;

Texts texts() {
  auto x = Texts(Array(Texts::static_meta));
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * 37 % 101) / 50.f - 1.f;
  return x;
}

double attend(Device device) {
  auto model = to(device, init<Attend>(2));
  auto step = train_step(squares, optim::SGD{.lr = 1e-1f});
  auto const x = to(device, texts());
  double last = 0;
  for (int k = 0; k < 10; ++k) last = static_cast<double>(step(model, x));
  return last;
}

// Heads side by side in rows of [T, heads, D], as projections leave them.
template <bool Causal>
struct Heads {
  constexpr auto operator()(auto const& q, auto const& k, auto const& v) const {
    auto const heads_first = [](auto const& x) { return transpose<0, 1>(x); };
    return scaled_dot_product_attention(heads_first(q), heads_first(k), heads_first(v), {.causal = Causal});
  }
};
template <class F>
struct SquaresOf {
  constexpr auto operator()(auto const&... x) const { return sum(square(cast<float>(F{}(x...)))); }
};
template <class T>
T made(int seed) {
  T x = T(Array(T::static_meta));
  for (index_t i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<float>((i * 2654435761 + seed * 40503) % 1009) / 504.f - 1.f;
  return x;
}
template <class T>
std::vector<double> numbers(T const& value) {
  std::vector<double> r;
  auto const here = to(Device{}, value);
  visit(here, [&](auto const& leaf) {
    auto const dense = leaf.contiguous();
    for (index_t i = 0; i < dense.size(); ++i) r.push_back(read_real(dense.operand(), i));
  });
  return r;
}
// The largest difference relative to the largest number: on the device the second of two runs, which has to be the
// first again, bit by bit.
template <class F, class... A>
double apart(F, A const&... args) {
  auto f = compile(F{});
  auto const expected = numbers(f(args...)), first = numbers(f(to(cuda(), args)...)),
             again = numbers(f(to(cuda(), args)...));
  if (first != again) return INFINITY;
  double largest = 0, most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!std::isfinite(first[i])) return INFINITY;
    largest = std::fmax(largest, std::fabs(expected[i]));
    most = std::fmax(most, std::fabs(first[i] - expected[i]));
  }
  return most / largest;
}
// Milliseconds of a call, of several after the first two.
template <class F, class... A>
double milliseconds(F, A const&... args) {
  auto f = compile(F{});
  std::tuple const there(to(cuda(), args)...);
  auto const once = [&] { std::apply([&](auto const&... a) { static_cast<void>(f(a...)); }, there); };
  once(), once();
  cudaDeviceSynchronize();
  auto const begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) once();
  cudaDeviceSynchronize();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count() / 10;
}
template <class E, bool Causal, index_t T, index_t D, index_t H, index_t G>
bool heads(char const* name) {
  auto const q = made<Tensor<E, T, H, D>>(1);
  auto const k = made<Tensor<E, T, G, D>>(2), v = made<Tensor<E, T, G, D>>(3);
  auto const back = grad(SquaresOf<Heads<Causal>>{}, wrt<0, 1, 2>);
  double const a = apart(Heads<Causal>{}, q, k, v), b = apart(back, q, k, v);
  std::printf("%s, %d queries: %g and %g of the largest apart; %.3f ms, with gradients %.3f ms\n", name,
              static_cast<int>(T), a, b, milliseconds(Heads<Causal>{}, q, k, v), milliseconds(back, q, k, v));
  double const bound = std::is_same_v<E, float16> ? 2e-3 : 1.6e-2;
  return a <= bound && b <= 2 * bound;
}

}  // namespace

int main() {
  if (device_models::no_device()) return 77;
  bool good = true;
  auto const compare = [&](char const* name, double here, double there) {
    std::printf("%s: %g on the CPU, %g on the device\n", name, here, there);
    good = good && std::fabs(here - there) <= 1e-3;
  };
  compare("attention", attend(Device{}), attend(cuda()));
  good = heads<float16, false, 1024, 64, 4, 4>("f16, heads of 64") && good;
  good = heads<bfloat16, true, 4096, 64, 2, 1>("bf16, heads of 64, causal") && good;
  good = heads<bfloat16, true, 1024, 128, 4, 2>("bf16, heads of 128, causal") && good;
  good = heads<float16, false, 4096, 128, 2, 2>("f16, heads of 128") && good;
  // What is not aligned, and rows for which only results are computed by tensor cores.
  good = heads<float16, true, 90, 61, 4, 2>("f16, heads of 61, causal") && good;
  good = heads<bfloat16, true, 90, 256, 2, 1>("bf16, heads of 256, causal") && good;
  return good ? 0 : 1;
}
