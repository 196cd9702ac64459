// SPDX-License-Identifier: BSL-1.0
// Normalisation, attention, random choices and recurrent layers of sizes that only the running program knows.
#include "ops/compiled.hpp"

#include <dfdx/transforms/eager.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/channel_norm.hpp>
#include <dfdx/vocabulary/recurrent.hpp>

#include <catch2/matchers/catch_matchers.hpp>

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
TEST_CASE("reductions over axes of unknown length, of which there may be none", "[vocabulary]") {
  constexpr auto moments = [](auto const& v) {
    return std::tuple(var<0>(v), var<0>(v, 3), dfdx::std<0>(v), dfdx::std<0>(v, 3), mean<0>(v), softmax<0>(v),
                      logsumexp<0>(v), log_softmax<0>(v));
  };
  auto of_moments = compile(moments);
  constexpr auto extremes = [](auto const& v) {
    auto const largest = max<0>(v);
    return std::tuple(largest, argmin<0>(v));
  };
  auto of_extremes = compile(extremes);
  constexpr auto moved = [](auto const& v, auto const& m) { return batch_norm(v, m, m, {.training = true}); };
  auto of_moved = compile(moved);
  auto const mean = zeros<double, 2>();
  for (std::size_t n : {0, 1, 2, 3, 5}) {
    Tensor<double, dyn, 2> const x(randn({static_cast<index_t>(n), 2}, Key{n}, DType::f64));
    CAPTURE(n);
    std::vector<Array> const want = compiled::leaves(moments(Array(x))), eager = compiled::leaves(moments(x)),
                             got = compiled::leaves(of_moments(x));
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      CHECK(allclose(got[i], want[i], 1e-13, 1e-13, true));
      CHECK(allclose(eager[i], want[i], 1e-13, 1e-13, true));
    }
    if (n != 0) {
      compiled::require_same(compiled::leaves(of_extremes(x)), compiled::leaves(extremes(x)), "extremes");
    } else {
      CHECK_THROWS_WITH(extremes(x), "max: empty axis 0 of [0, 2] has no largest or smallest element");
      CHECK_THROWS_WITH(of_extremes(x), "max: extent too small: 0 x 1");
    }
    if (n > 1) {
      compiled::require_same(compiled::leaves(of_moved(x, mean)), compiled::leaves(moved(x, mean)),
                             "batch_norm");
    } else if (n == 1) {
      CHECK_THROWS_WITH(moved(x, mean),
                        "batch_norm: more than one value for each channel required to train, got [1, 2]");
      CHECK_THROWS_WITH(of_moved(x, mean), "batch_norm: extent too small: 1 x 2");
    }
  }
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
TEST_CASE("attention of vectors of unknown size is scaled by it", "[vocabulary]") {
  constexpr auto attended = [](auto const& q, auto const& k, auto const& v) {
    return scaled_dot_product_attention(q, k, v, {.causal = true});
  };
  constexpr auto total = [](auto const& q, auto const& k, auto const& v) {
    return sum(square(scaled_dot_product_attention(q, k, v)));
  };
  auto program = compile(attended);
  auto slopes = grad(total, wrt<0, 1>);
  auto const v = randn<double, 2, 4, 3>(Key{3});
  for (index_t const n : {5, 1, 16, 0}) {
    CAPTURE(n);
    auto const known = [&](std::uint64_t k) { return randn({2, 4, n}, Key{k}, DType::f64); };
    Tensor<double, 2, 4, dyn> const q(known(1)), k(known(2));
    compiled::require_same(compiled::leaves(program(q, k, v)), compiled::leaves(attended(q, k, v)),
                           "compiled");
    compiled::require_same(compiled::leaves(slopes(q, k, v)),
                           compiled::leaves(slopes(Array(q), Array(k), Array(v))), "gradients");
  }
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
