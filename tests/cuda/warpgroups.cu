// SPDX-License-Identifier: BSL-1.0
// Products and attention by warpgroups of Hopper GPUs: compiled for sm_90a, every order of factors and both widths of
// tiles, heads of 64 and 128.
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
}

}  // namespace tests::cuda_warpgroups
