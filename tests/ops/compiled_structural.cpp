// SPDX-License-Identifier: BSL-1.0
// Compiled reductions, views, indexing and composites.
#include "ops/compiled.hpp"

#include <dfdx/transforms/eager.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/one_hot.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_compiled_structural {

namespace {

using namespace compiled;

constexpr auto reductions = [](auto const& x) {
  return std::tuple(sum(x), sum<0>(x), sum<1>(x), sum<2>(x), sum<0, 2>(x), prod<1>(x), prod<2>(x), max<0>(x),
                    max<1, 2>(x), min(x), min<2>(x, keepdim), sum<0, 1>(x, keepdim));
};
constexpr auto moments = [](auto const& x) {
  return std::tuple(mean<-1>(x), var<-1>(x), dfdx::std<0>(x), mean(x), x - mean<0>(x, keepdim));
};
constexpr auto views = [](auto const& x, auto const& row) {
  return std::tuple(transpose(x) + 1.0, reshape<35>(x) * 2.0, slice<1, 1, 7, 2>(x) * slice<1, 0, 3>(x),
                    permute<1, 0>(x), concat<0>(x, x * 2.0), pad<1, 2>(x, 3.0), stack<1>(row, row + 1.0),
                    expand<5, 7>(row) + x, squeeze<0>(unsqueeze<0>(x)), reshape<7, 5>(transpose(x)) - 1.0,
                    slice<0, 2, 2>(x));
};
constexpr auto composites = [](auto const& x, auto const& w, auto const& b) {
  return std::tuple(softmax<1>(x), softmax<0>(x), log_softmax<1>(x), logsumexp<1>(x), logsumexp(x),
                    layer_norm(x, w, b), gelu(x), gelu_tanh(x), silu(x), softplus(x));
};
constexpr auto losses = [](auto const& x, auto const& y, auto const& labels) {
  return std::tuple(cross_entropy(x, labels), nll_loss(log_softmax<1>(y), labels), mse_loss(x, y));
};
constexpr auto indexing = [](auto const& table, auto const& rows, auto const& places, auto const& src) {
  return std::tuple(take(table, rows), gather<1>(table, places), scatter_add<1>(table, places, src));
};

}  // namespace

TEST_CASE("compiled reductions", "[ops]") {
  check(reductions, uniform<float, 3, 4, 21>(Key{1}, 0.5, 1.5));
  check(reductions, uniform<double, 3, 4, 21>(Key{1}, 0.5, 1.5));
  check(reductions, randint<std::int32_t, 3, 4, 5>(Key{1}, -2, 3));
  check([](auto const& x) { return std::tuple(sum<1>(x), max<0>(x), sum(x), min<1>(x)); },
        uniform<float16, 5, 19>(Key{2}, -1, 1));
  check([](auto const& x) { return std::tuple(sum<1>(x), prod<0>(x), max(x)); },
        randint<std::int64_t, 4, 9>(Key{2}, -2, 3));
  check([](auto const& x) { return std::tuple(sum<1>(x), sum<0>(x), prod<1>(x), sum(x) + 1.0); },
        zeros<float, 3, 0>());
}

TEST_CASE("compiled gradients of reductions", "[ops]") {
  check_vjp(reductions, uniform<float, 3, 4, 21>(Key{1}, 0.5, 1.5));
  check_vjp(reductions, uniform<double, 2, 3, 5>(Key{1}, 0.5, 1.5));
  check_vjp(moments, uniform<double, 4, 19>(Key{1}, -1, 1));
  check(moments, uniform<float, 4, 19>(Key{1}, -1, 1));
}

TEST_CASE("compiled views and joins", "[ops]") {
  check(views, uniform<float, 5, 7>(Key{1}, -1, 1), uniform<float, 7>(Key{2}, -1, 1));
  check_vjp(views, uniform<double, 5, 7>(Key{1}, -1, 1), uniform<double, 7>(Key{2}, -1, 1));
  constexpr auto moved = [](auto const& x) {
    return std::tuple(transpose(x), reshape<7, 5>(x), slice<0, 1, 4>(x), concat<1>(x, x),
                      pad<0, 0, 1, 1>(x, 7), x + x);
  };
  check(moved, randint<std::uint8_t, 5, 7>(Key{1}, 0, 9));
  check(moved, randint<std::int64_t, 5, 7>(Key{1}, 0, 9));
}

TEST_CASE("compiled composites", "[ops]") {
  auto const x = uniform<float, 5, 21>(Key{1}, -3, 3);
  check(composites, x, uniform<float, 21>(Key{2}, 0.5, 2), uniform<float, 21>(Key{3}, -1, 1));
  check_vjp(composites, uniform<double, 5, 21>(Key{1}, -3, 3), uniform<double, 21>(Key{2}, 0.5, 2),
            uniform<double, 21>(Key{3}, -1, 1));
  auto const labels = randint<std::int32_t, 5>(Key{4}, 0, 21);
  auto const y = uniform<float, 5, 21>(Key{5}, -3, 3);
  check(losses, x, y, labels);
  check_vjp([](auto const& x, auto const& y) { return std::tuple(mse_loss(x, y), logsumexp<0>(x * y)); }, x,
            y);
}

TEST_CASE("compiled losses with labels: gradients", "[ops]") {
  constexpr auto loss = [](auto const& x, auto const& labels) { return cross_entropy(x, labels); };
  auto const x = uniform<double, 5, 21>(Key{1}, -3, 3);
  auto const labels = randint<std::int64_t, 5>(Key{4}, 0, 21);
  auto const [value, dx] = value_and_grad(loss)(x, labels);
  auto const p = softmax<1>(x);
  for (index_t i = 0; i < 5; ++i)
    for (index_t j = 0; j < 21; ++j)
      CHECK(std::fabs(dx(i, j) - (p(i, j) - (labels(i) == j ? 1 : 0)) / 5) < 1e-14);
  CHECK(std::fabs(value.item() - loss(x, labels).item()) < 1e-13);
}

TEST_CASE("compiled indexing", "[ops]") {
  auto const table = uniform<float, 6, 5>(Key{1}, -1, 1);
  auto const rows = Tensor<std::int32_t, 2, 3>::from({{5, 0, 5}, {1, 5, 2}});
  auto const places = randint<std::int64_t, 6, 4>(Key{2}, 0, 5);
  auto const src = uniform<float, 6, 4>(Key{3}, -1, 1);
  check(indexing, table, rows, places, src);
  check(
      [](auto const& x, auto const& i) {
        return std::tuple(argmax<1>(x), argmin<0>(x), one_hot<6>(i), argmax<1>(x * 2.0));
      },
      table, rows);
  constexpr auto looked_up = [](auto const& table) {
    // An index that is computed: the table's own order.
    return take(table, argmax<1>(table)) * 2.0;
  };
  check(looked_up, uniform<float, 5, 5>(Key{1}, -1, 1));
  check_vjp(looked_up, uniform<double, 5, 5>(Key{1}, -1, 1));
}

TEST_CASE("compiled sums of integers and truths", "[ops]") {
  check(
      [](auto const& x, auto const& i) {
        return std::tuple(sum(x), mean<1>(x), prod<0>(x), sum<1>(x < 200), cumsum<1>(x), sum(i));
      },
      randint<std::uint8_t, 3, 40>(Key{1}, 190, 256), full<std::int32_t, 5>(1 << 30));
}

TEST_CASE("compiled means of nothing and variances of one element", "[ops]") {
  check([](auto const& x) { return std::tuple(sum(x), mean(x), mean<0>(x), var<0>(x)); },
        zeros<float, 0, 3>());
  check([](auto const& x) { return std::tuple(var<0>(x), dfdx::std(x), var<0>(x, 0), mean<0>(x)); },
        randn<float, 1, 3>(Key{1}));
}

TEST_CASE("compiled scatter_add with extents known when it is called", "[ops]") {
  using Rows = Tensor<double, dyn, 2>;
  constexpr auto add_to_rows = [](auto const& x, auto const& index, auto const& src) {
    return scatter_add<0>(x, index, src);
  };
  auto f = compile(add_to_rows);
  auto const x = Rows::from({1, 2, 3, 4}), src = Rows::from({10, 20, 30, 40, 50, 60});
  auto const index = Tensor<std::int64_t, dyn, 2>::from({0, 1, 1, 0, 0, 0});
  CHECK(array_equal(f(x, index, src), Tensor<double, 2, 2>::from({{61, 102}, {33, 24}})));
  CHECK(array_equal(add_to_rows(x, index, src), f(x, index, src)));
  CHECK_THROWS_WITH(f(x, index, x), "scatter_add: extents differ: 3 x 2");
  CHECK_THROWS_WITH(add_to_rows(x, index, x), "scatter_add: index [3, 2] is larger than source [2, 2]");
}

TEST_CASE("compiled scatter_add of the first rows of a source whose extent is known when it is called",
          "[ops]") {
  constexpr auto add_first = [](auto const& x, auto const& index, auto const& src) {
    return sum(square(scatter_add<0>(x, index, src)));
  };
  auto f = value_and_grad(add_first, wrt<2>);
  auto const x = Tensor<double, 3, 1>::from({1, 2, 3});
  auto const index = Tensor<std::int64_t, 2, 1>::from({2, 0});
  using Source = Tensor<double, dyn, 1>;
  for (index_t n : {2, 4}) {
    Source const src(uniform({n, 1}, Key{1}, -1, 1, DType::f64));
    auto const [value, slope] = f(x, index, src);
    CHECK(allclose(value, add_first(x, index, src), 1e-14));
    CHECK(allclose(slope, f(Array(x), Array(index), Array(src)).second, 1e-14));
  }
  CHECK_THROWS_WITH(f(x, index, Source::from({1})), "scatter_add: extent too small: 1 x 2");
}

TEST_CASE("compiled losses with a number of classes known when they are called", "[ops]") {
  constexpr auto loss = [](auto const& x, auto const& labels) { return cross_entropy(x, labels); };
  auto program = compile(loss);
  for (index_t n : {3, 5}) {
    Tensor<float, dyn, dyn> const x(uniform({4, n}, Key{1}));
    Tensor<std::int64_t, dyn> const labels(randint({4}, Key{2}, 0, n));
    Array const want = cross_entropy(Array(x), Array(labels));
    CHECK(testing::error_ratio(loss(x, labels), want, 1e-6, 0) <= 1);
    CHECK(testing::error_ratio(program(x, labels), want, 1e-6, 0) <= 1);
  }
}

TEST_CASE("one_hot of bytes has room for more than bytes", "[ops]") {
  auto const bytes = Tensor<std::uint8_t, 3>::from({0, 255, 44});
  auto const compiled = compile([](Tensor<std::uint8_t, 3> const& i) { return one_hot<301>(i); })(bytes);
  for (Array const& hot : {Array(one_hot<301>(bytes)), one_hot(Array(bytes), 301), Array(compiled)}) {
    CHECK(sum(hot).item() == 3);
    CHECK(array_equal(argmax(hot, 1), Array(bytes)));
  }
}

}  // namespace tests::ops_compiled_structural
