// SPDX-License-Identifier: BSL-1.0
// Normalisation, attention, random choices and recurrent layers of sizes that only the running program knows.
#include "ops/compiled.hpp"

#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/channel_norm.hpp>
#include <dfdx/vocabulary/recurrent.hpp>

namespace tests::vocabulary_unknown_sizes {
using namespace dfdx;

namespace {

// The program of f against f on memory.
template <class F, class... A>
void check(F const& f, A const&... args) {
  compiled::require_same(compiled::leaves(compile(f)(args...)), compiled::leaves(f(args...)), "compiled");
}

}  // namespace

TEST_CASE("normalisation of batches of unknown size", "[vocabulary]") {
  Tensor<float, dyn, 4, 3> const x(Array(randn<float, 5, 4, 3>(Key{1})));
  auto const w = uniform<float, 4>(Key{2});
  auto const last = uniform<float, 3>(Key{3});
  check(
      [](auto const& v, auto const& p, auto const& q) {
        auto const t = batch_norm(v, p, p, p, p, {.training = true});
        return std::tuple(layer_norm(v, q, q), rms_norm(v, q), group_norm<2>(v, p), instance_norm(v, p),
                          std::get<0>(t), std::get<1>(t), std::get<2>(t), local_response_norm(v, 3),
                          layer_norm<4, 3>(v));
      },
      x, w, last);
}
TEST_CASE("attention and dropout of sequences of unknown length", "[vocabulary]") {
  Tensor<float, 2, dyn, 4> const q(Array(randn<float, 2, 5, 4>(Key{1})));
  Tensor<float, 2, dyn, 4> const k(Array(randn<float, 2, 5, 4>(Key{2})));
  check(
      [](auto const& a, auto const& b, auto const& key) {
        return std::tuple(scaled_dot_product_attention(a, b, b, {.causal = true}), rope(a),
                          rope(a, {.interleaved = true}), dropout(a, 0.5, key),
                          multinomial<2>(sigmoid(a), key), multinomial<2, true>(sigmoid(a), key),
                          scaled_dot_product_attention(a, b, b, no_mask, key, {.dropout = 0.2}));
      },
      q, k, Tensor<std::int64_t>(3));
}
TEST_CASE("recurrent layers of batches of unknown size", "[vocabulary]") {
  Tensor<float, 3, dyn, 4> const x(Array(randn<float, 3, 5, 4>(Key{1})));
  Tensor<float, dyn, 2> const h(Array(randn<float, 5, 2>(Key{1})));
  auto const w = randn<float, 6, 4>(Key{2});
  auto const u = randn<float, 6, 2>(Key{2});
  auto const b = randn<float, 6>(Key{2});
  check([](auto const& v, auto const& s, auto const& p, auto const& q,
           auto const& r) { return gru(v, s, p, q, r, r); },
        x, h, w, u, b);
  auto const w4 = randn<float, 8, 4>(Key{2});
  auto const u4 = randn<float, 8, 2>(Key{2});
  auto const b4 = randn<float, 8>(Key{2});
  check([](auto const& v, auto const& s, auto const& c, auto const& p, auto const& q,
           auto const& r) { return lstm(v, s, c, p, q, r, r); },
        x, h, h, w4, u4, b4);
}

}  // namespace tests::vocabulary_unknown_sizes
