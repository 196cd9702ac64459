// SPDX-License-Identifier: BSL-1.0
// Compiled attention of sequences so long that programs compute it by blocks: against Arrays, which have all weights
// in memory, with gradients. (Tangents and gradients of gradients: primitives.cpp.)
#include "ops/compiled.hpp"

#include <dfdx/vocabulary/attention.hpp>

namespace tests::ops_compiled_attention {

namespace {

using namespace compiled;

constexpr auto plain = [](auto const& q, auto const& k, auto const& v) {
  return scaled_dot_product_attention(q, k, v);
};
// Heads that share keys, queries behind the keys, axes in the order in which models have them.
constexpr auto causal = [](auto const& q, auto const& k, auto const& v) {
  auto const heads_first = [](auto const& x) { return transpose<1, 2>(x); };
  return scaled_dot_product_attention(heads_first(q), heads_first(k), heads_first(v),
                                      {.causal = true, .scale = 0.3, .offset = 5});
};
template <class F, class... A>
bool has_blocks(F const&, A const&...) {
  for (auto const& n : program<F, A...>::graph().graph.nodes)
    if (n.op != nullptr && is_op<op::attend>(*n.op)) return true;
  return false;
}

}  // namespace

TEST_CASE("attention of long sequences is computed by blocks", "[ops]") {
  auto const q = randn<float, 2, 150, 20>(Key{1});
  auto const k = randn<float, 2, 130, 20>(Key{2});
  auto const v = randn<float, 2, 130, 12>(Key{3});
  CHECK(has_blocks(plain, q, k, v));
  check(plain, q, k, v);
  check_vjp(plain, q, k, v);
  auto const few = randn<float, 2, 15, 20>(Key{1});
  CHECK(!has_blocks(plain, few, k, v));
  // Neither pass needs memory for the weights.
  using P = program<Vjp<std::remove_const_t<decltype(plain)>>, Tensor<float, 1, 2048, 16>,
                    Tensor<float, 1, 2048, 16>, Tensor<float, 1, 2048, 16>, Tensor<float, 1, 2048, 16>>;
  STATIC_CHECK(P::arena_bytes < 16 * 2048 * 16 * 4);
  // Results and the logarithms of their sums are made in one step; then what the rows of gradients sum to, and
  // gradients, which are parts of one value.
  STATIC_CHECK(P::kernels == 3);
}

TEST_CASE("attention by blocks: masks, shared heads, strides, gradients", "[ops]") {
  check_vjp(causal, randn<double, 1, 140, 4, 6>(Key{1}), randn<double, 1, 150, 2, 6>(Key{2}),
            randn<double, 1, 150, 2, 5>(Key{3}));
}

TEST_CASE("attention by blocks of 16 bits", "[ops]") {
  auto const q = cast<float16>(randn<float, 2, 70, 12>(Key{1}));
  auto const k = cast<float16>(randn<float, 1, 75, 12>(Key{2}));
  auto const v = cast<float16>(randn<float, 1, 75, 9>(Key{3}));
  CHECK(has_blocks(plain, q, k, v));
  check(plain, q, k, v);
  check_vjp(plain, q, k, v);
  // Gradients of gradients, and tangents.
  constexpr auto curvature = [](auto const& a, auto const& b, auto const& c) {
    auto const loss = [](auto const&... x) { return sum(square(cast<float>(plain(x...)))); };
    auto const g = grad(loss, wrt<0, 1, 2>)(a, b, c);
    return sum(square(cast<float>(std::get<0>(g)))) + sum(square(cast<float>(std::get<1>(g)))) +
           sum(square(cast<float>(std::get<2>(g))));
  };
  static_cast<void>(grad(curvature, wrt<0, 1, 2>)(q, k, v));
}

}  // namespace tests::ops_compiled_attention
