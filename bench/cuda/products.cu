// SPDX-License-Identifier: BSL-1.0
// What a GPU's arithmetic bounds: matrix products by cuBLASLt and by dfdx, convolutions, attention.
#include "measure.hpp"

#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/conv.hpp>

using namespace bench;

namespace {

struct Product {
  constexpr auto operator()(auto const& a, auto const& b) const { return matmul(a, b); }
};
struct Convolution {
  constexpr auto operator()(auto const& x, auto const& w) const {
    return conv2d<ConvOptions{.padding = 1}>(x, w);
  }
};
struct CausalAttention {
  constexpr auto operator()(auto const& q, auto const& k, auto const& v) const {
    return scaled_dot_product_attention(q, k, v, {.causal = true});
  }
};

template <class T, std::size_t M, std::size_t N, std::size_t K>
void product(char const* name, double bandwidth) {
  auto const a = normals<Tensor<T, M, K>>(1);
  auto const b = normals<Tensor<T, K, N>>(2);
  auto const va = numbers(a), vb = numbers(b);
  double const flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
  auto const one = [&](char const* how, std::int64_t from) {
    cuda_options.cublas_from = from;
    auto f = compile(Product{});
    double const error = error_of(f(a, b), [&](std::size_t i) {
      double sum = 0;
      for (std::size_t k = 0; k < K; ++k) sum += va[i / N * K + k] * vb[k * N + i % N];
      return sum;
    });
    row("cuda product", std::string(name) + ", " + how, milliseconds([&] { f(a, b); }), error, bandwidth, 0,
        flops);
    cuda_options = {};
  };
  one("cuBLASLt", 0);
  one("own tiles", std::int64_t{1} << 60);
}

template <class T>
void convolution(char const* dtype, double bandwidth) {
  constexpr std::size_t n = size_or(32, 1), c = size_or(64, 9), side = size_or(56, 9);
  using X = Tensor<T, n, c, side, side>;
  auto const x = normals<X>(1), ct = normals<X>(3);
  auto const w = normals<Tensor<T, c, c, 3, 3>>(2);
  auto const vx = numbers(x), vw = numbers(w);
  double const flops = 2.0 * 9 * static_cast<double>(n * c * c * side * side);
  auto f = compile(Convolution{});
  double const error = error_of(f(x, w), [&](std::size_t i) {
    std::size_t const q = i % side, p = i / side % side, o = i / side / side % c,
                      sample = i / side / side / c;
    double sum = 0;
    for (std::size_t in = 0; in < c; ++in)
      for (std::size_t k = 0; k < 9; ++k) {
        std::size_t const row = p + k / 3, column = q + k % 3;  // one more than they are
        if (row == 0 || column == 0 || row > side || column > side) continue;
        sum += vx[((sample * c + in) * side + row - 1) * side + column - 1] * vw[(o * c + in) * 9 + k];
      }
    return sum;
  });
  row("cuda conv", std::string("3x3, 64 channels of 56 x 56, 32 pictures, ") + dtype,
      milliseconds([&] { f(x, w); }), error, bandwidth, 0, flops);
  auto g = vjp(Convolution{});
  row("cuda conv", std::string("3x3, 64 channels of 56 x 56, 32 pictures, with gradients, ") + dtype,
      milliseconds([&] { g(x, w, ct); }), unknown, bandwidth, 0, 3 * flops);
}

void attention(double bandwidth) {
  constexpr std::size_t heads = size_or(32, 2), t = size_or(2048, 80), d = 64;
  using X = Tensor<float, 4, heads, t, d>;
  auto const q = normals<X>(1), k = normals<X>(2), v = normals<X>(3), ct = normals<X>(4);
  auto const vq = numbers(q), vk = numbers(k), vv = numbers(v);
  double const flops = 2.0 * 4 * heads * static_cast<double>(t * t) * d;  // half of all weights count
  auto f = compile(CausalAttention{});
  double const error = error_of(f(q, k, v), [&](std::size_t i) {
    std::size_t const e = i % d, row = i / d % t, head = i / d / t * t * d;
    double sum = 0, total = 0;
    for (std::size_t j = 0; j <= row; ++j) {
      double s = 0;
      for (std::size_t c = 0; c < d; ++c) s += vq[head + row * d + c] * vk[head + j * d + c];
      double const p = std::exp(s / 8);
      total += p, sum += p * vv[head + j * d + e];
    }
    return sum / total;
  });
  row("cuda attention", "B4 H32 T2048 D64 causal, f32", milliseconds([&] { f(q, k, v); }), error, bandwidth,
      0, flops);
  auto g = vjp(CausalAttention{});
  row("cuda attention", "B4 H32 T2048 D64 causal with gradients, f32", milliseconds([&] { g(q, k, v, ct); }),
      unknown, bandwidth, 0, 3.5 * flops);
}

}  // namespace

int main() {
  return run([](double bandwidth) {
    constexpr std::size_t n = size_or(4096, 70);
    product<float, n, n, n>("4096 cubed, f32", bandwidth);
    product<bfloat16, n, n, n>("4096 cubed, bf16", bandwidth);
    product<bfloat16, size_or(8192, 80), size_or(1024, 20), size_or(4096, 50)>("8192 x 4096 x 1024, bf16",
                                                                               bandwidth);
    product<float, size_or(256, 40), size_or(256, 40), size_or(256, 40)>("256 cubed, f32", bandwidth);
    convolution<float>("f32", bandwidth);
    convolution<bfloat16>("bf16", bandwidth);
    attention(bandwidth);
  });
}
