// SPDX-License-Identifier: BSL-1.0
// What Hopper GPUs have alone, compiled for sm_90a: products and attention by warpgroups, every order of factors and
// both widths of tiles, heads of 64 and 128; and rows that blocks of a cluster share.
#include <dfdx/cuda.hpp>

#include <dfdx/vocabulary/attention.hpp>

namespace tests::cuda_warpgroups {

using namespace dfdx;

struct Product {
  constexpr auto operator()(auto const& a, auto const& b) const { return matmul(a, b); }
};
struct Dense {
  constexpr auto operator()(auto const& x, auto const& w, auto const& b, auto const& r) const {
    return gelu(matmul(x, w) + b) + r;
  }
};
struct Loss {
  constexpr auto operator()(auto const& w, auto const& x) const { return sum(square(matmul(x, w))); }
};

struct CausalAttention {
  constexpr auto operator()(auto const& q, auto const& k, auto const& v) const {
    return scaled_dot_product_attention(q, k, v, {.causal = true});
  }
};

struct Softmax {
  constexpr auto operator()(auto const& x) const { return softmax(x); }
};
struct Entropy {
  constexpr auto operator()(auto const& x, auto const& labels) const { return cross_entropy(x, labels); }
};
struct NormLoss {
  constexpr auto operator()(auto const& weight, auto const& bias, auto const& x) const {
    return sum(square(layer_norm(x, weight, bias, 1e-5f)));
  }
};

template <class... X>
void run(auto f, X const&... x) {
  static_cast<void>(f(to(cuda(), x)...));
}

void all() {
  using B = bfloat16;
  run(compile(Product{}), Tensor<B, 2048, 1024>{}, Tensor<B, 1024, 4096>{});
  run(compile(Dense{}), Tensor<B, dyn, 768>{}, Tensor<B, 768, 3072>{}, Tensor<B, 3072>{},
      Tensor<B, dyn, 3072>{});
  using Heads = Tensor<B, 4, 32, 4096, 128>;
  run(compile(CausalAttention{}), Heads{}, Heads{}, Heads{});
  using Small = Tensor<float16, 12, 1000, 64>;
  run(compile(CausalAttention{}), Small{}, Small{}, Small{});
  run(vjp(CausalAttention{}), Heads{}, Heads{}, Heads{}, Heads{});
  run(vjp(CausalAttention{}), Small{}, Small{}, Small{}, Small{});
  run(grad(Loss{}, wrt<0, 1>), Tensor<float16, 1024, 512>{}, Tensor<float16, 512, 1024>{});

  using Labels = Tensor<std::int32_t, 8192>;
  run(value_and_grad(Entropy{}), Tensor<float, 8192, 128256>{}, Labels{});
  run(value_and_grad(Entropy{}), Tensor<float, 8192, 50257>{}, Labels{});
  run(value_and_grad(Entropy{}), Tensor<B, 8192, 128256>{}, Labels{});
  run(compile(Softmax{}), Tensor<double, 30, 30001>{});
  using Row = Tensor<float, 60000>;
  run(grad(NormLoss{}, wrt<0, 1, 2>), Row{}, Row{}, Tensor<float, dyn, 60000>{});
}

}  // namespace tests::cuda_warpgroups
