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
  auto const want = [&](std::size_t i) {
    double sum = 0;
    for (std::size_t k = 0; k < K; ++k) sum += va[i / N * K + k] * vb[k * N + i % N];
    return sum;
  };
  auto const one = [&](char const* how, CudaOptions const& options) {
    cuda_options = options;
    auto f = compile(Product{});
    double const error = error_of(f(a, b), want);
    row(
        "cuda product", std::string(name) + ", " + how, [&] { f(a, b); },
        options.tf32 ? checked<bfloat16>(error) : checked<T>(error), bandwidth, 0, flops);
    cuda_options = {};
  };
  one("cuBLASLt", {.cublas_from = 0});
  if (sizeof(T) == 4) one("cuBLASLt, tf32", {.tf32 = true, .cublas_from = 0});
  one("own tiles", {.cublas_from = std::int64_t{1} << 60});
  if (has_warpgroups && sizeof(T) == 2)
    one("own tiles, by warpgroups", {.cublas_from = std::int64_t{1} << 60, .warpgroup_products_from = 0});
}

template <class T>
void convolution(char const* dtype, double bandwidth) {
  constexpr std::size_t n = size_or(32, 1), c = size_or(64, 9), side = size_or(56, 9);
  using X = Tensor<T, n, c, side, side>;
  auto const x = normals<X>(1), ct = normals<X>(3);
  auto const w = normals<Tensor<T, c, c, 3, 3>>(2);
  auto const vx = numbers(x), vw = numbers(w);
  double const flops = 2.0 * 9 * static_cast<double>(n * c * c * side * side);
  auto const want = [&](std::size_t i) {
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
  };
  auto const one = [&](std::string const& how, CudaOptions const& options) {
    cuda_options = options;
    std::string const name = "3x3, 64 channels of 56 x 56, 32 pictures, ";
    auto f = compile(Convolution{});
    double const error = error_of(f(x, w), want);
    row("cuda conv", name + dtype + how, [&] { f(x, w); }, checked<T>(error), bandwidth, 0, flops);
    auto g = vjp(Convolution{});
    row(
        "cuda conv", name + "with gradients, " + dtype + how, [&] { g(x, w, ct); },
        checked<T>(error_beside_cpu(g, x, w, ct)), bandwidth, 0, 3 * flops);
    cuda_options = {};
  };
  one("", {});
  if (cuda_runtime::Cudnn::version() != 0)
    one(", without cuDNN", {.cudnn_from = std::numeric_limits<std::int64_t>::max()});
}

// What is computed of the last head alone, on the CPU, stands for all: no head sees another.
template <class T, std::size_t Length, std::size_t Size>
void attention(char const* name, double bandwidth) {
  constexpr std::size_t batch = size_or(4, 2), heads = size_or(32, 2), t = size_or(Length, 80), d = Size;
  using X = Tensor<T, batch, heads, t, d>;
  auto const q = normals<X>(1), k = normals<X>(2), v = normals<X>(3), ct = normals<X>(4);
  double const flops = 2.0 * batch * heads * static_cast<double>(t * t) * d;  // half of all weights count
  auto const last = [](X const& x) {
    return Tensor<T, 1, 1, t, d>(
        slice(slice(to(Device{}, x), 0, batch - 1, batch), 1, heads - 1, heads).contiguous());
  };
  auto const error = [&](X const& got, auto const& wanted) {
    auto const numbers_wanted = numbers(wanted);
    return error_of(last(got), [&](std::size_t i) { return numbers_wanted[i]; });
  };
  auto alone = vjp(CausalAttention{});
  auto const [want, want_back] = alone(last(q), last(k), last(v), last(ct));
  auto const one = [&](std::string const& how, CudaOptions const& options) {
    cuda_options = options;
    auto f = compile(CausalAttention{});
    auto g = vjp(CausalAttention{});
    auto const [y, back] = g(q, k, v, ct);
    double const alone_error = error(f(q, k, v), want);
    double worst = error(y, want);
    worst = worse(worst, error(std::get<0>(back), std::get<0>(want_back)));
    worst = worse(worst, error(std::get<1>(back), std::get<1>(want_back)));
    worst = worse(worst, error(std::get<2>(back), std::get<2>(want_back)));
    row("cuda attention", name + how, [&] { f(q, k, v); }, checked<T>(alone_error), bandwidth, 0, flops);
    row(
        "cuda attention", name + (", with gradients" + how), [&] { g(q, k, v, ct); }, checked<T>(worst),
        bandwidth, 0, 3.5 * flops);
    cuda_options = {};
  };
  one("", {});
  if (has_warpgroups && sizeof(T) == 2)
    one(", without warpgroups", {.warpgroup_attention_from = std::numeric_limits<std::int64_t>::max()});
}

}  // namespace

int main() {
  return run([](double bandwidth) {
    constexpr std::size_t n = size_or(4096, 70);
    product<float, n, n, n>("4096 cubed, f32", bandwidth);
    product<bfloat16, n, n, n>("4096 cubed, bf16", bandwidth);
    constexpr std::size_t large = size_or(8192, 80);
    product<bfloat16, large, large, large>("8192 cubed, bf16", bandwidth);
    product<bfloat16, large, size_or(1024, 20), size_or(4096, 50)>("8192 x 4096 x 1024, bf16", bandwidth);
    product<float, size_or(256, 40), size_or(256, 40), size_or(256, 40)>("256 cubed, f32", bandwidth);
    convolution<float>("f32", bandwidth);
    convolution<bfloat16>("bf16", bandwidth);
    attention<bfloat16, 4096, 128>("B4 H32 T4096 D128 causal, bf16", bandwidth);
    attention<float, 2048, 64>("B4 H32 T2048 D64 causal, f32", bandwidth);
  });
}
