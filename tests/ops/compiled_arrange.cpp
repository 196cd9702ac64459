// SPDX-License-Identifier: BSL-1.0
// Compiled programs of functions that lay elements out anew, put them in order, or measure them.
#include "ops/compiled.hpp"

#include <dfdx/program/vmap.hpp>
#include <dfdx/vocabulary/embedding.hpp>
#include <dfdx/vocabulary/margin_loss.hpp>
#include <dfdx/vocabulary/measure.hpp>
#include <dfdx/vocabulary/quantile.hpp>
#include <dfdx/vocabulary/split.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_compiled_arrange {

namespace {

using namespace compiled;

constexpr auto layouts = [](auto const& x) {
  return std::tuple(flip<0, 1>(x), diff(x), diff<0>(x), roll<2, 1>(x * 2.0), roll<-3>(x), tile<2, 3>(x),
                    repeat_interleave<2, 0>(x), pad<PadMode::reflect, 2, 1>(x),
                    pad<PadMode::replicate, 1, 1, 2, 0>(x + 1.0), pad<PadMode::circular, 0, 3>(x),
                    pad<1, 1, 0, 2>(x, 4));
};
constexpr auto parts = [](auto const& x) {
  return std::tuple(flatten<0, 1>(x) * 2.0, unflatten<2, 2, -1>(x), movedim<0, -1>(x) + 1.0, select<1, -1>(x),
                    narrow<2, 1, 2>(x), diagonal<1, 1, 2>(x), diag_embed<-1>(select<0, 0>(x)), tril(x),
                    triu(x, 1), trace(select<0, 1>(x)), pixel_shuffle<2>(tile<1, 4, 1, 1>(unsqueeze<1>(x))),
                    unfold<2, 3, 1>(x), std::get<1>(split<2, 2>(x)));
};
constexpr auto scaled_row = [](Tensor<float, 100> const& x) { return unfold<0, 12, 8>(x) * 2.0f; };
constexpr auto patches = [](auto const& x) {
  constexpr Patches p{{2, 3}, 1, {1, 0}, {2, 1}};
  auto const columns = unfold<p>(x);
  return std::tuple(columns, fold<4, 5, p>(columns * columns));
};
constexpr auto ordered = [](auto const& x) {
  auto const [values, index] = sort<1>(x);
  auto const [top, places] = topk<2, 0>(x);
  auto const [largest, at] = cummax<1>(x);
  return std::tuple(values, top, largest, cumsum<0>(x), cumprod<1>(x), logcumsumexp<1>(x * 2.0), median<1>(x),
                    quantile<0>(x, 0.3), std::get<0>(cummin<0>(x)),
                    quantile<1>(x, {0.1, 0.8}, Interpolation::midpoint), squeeze<0>(x),
                    std::get<0>(kthvalue<2, 0>(x)));
};
constexpr auto ordered_scalar = [](auto const& s) {
  return std::tuple(cumsum<0>(s), cumprod<-1>(s), logcumsumexp<0>(s), std::get<0>(cummax<0>(s)),
                    std::get<0>(cummin<-1>(s)), std::get<0>(sort<0>(s)), std::get<0>(topk<1>(s)),
                    median<0>(s), nanmedian<0>(s), quantile<0>(s, 0.3));
};
constexpr auto positions_of = [](auto const& x, auto const& list) {
  return std::tuple(argsort<1, true>(x), std::get<1>(topk<3>(x)), std::get<1>(kthvalue<2>(x)),
                    std::get<1>(cummax<0>(x)), searchsorted(list, x), bucketize(x, list, true), argmax(x),
                    count_nonzero<0>(x), any<1>(x), all(x), argmin(x, keepdim));
};
constexpr auto measures = [](auto const& x) {
  return std::tuple(norm(x), norm<1>(x, 1), norm<0>(x, keepdim, 3), norm<1>(x, HUGE_VAL), normalize(x),
                    amax<0>(x), var<1>(x, keepdim, 0), dfdx::std<0>(x, keepdim));
};
constexpr auto indexed = [](auto const& x, auto const& places, auto const& src, auto const& rows) {
  return std::tuple(scatter<1>(x, places, src), index_select<1>(x, rows),
                    index_add<0>(x, rows, slice<0, 0, 3>(x), 2), embedding(rows, x, 1),
                    embedding_bag<Bag::max>(unsqueeze<0>(rows), x), embedding_bag(rows, x, rows * 0));
};

}  // namespace

TEST_CASE("compiled layouts and parts", "[ops]") {
  check(layouts, uniform<float, 4, 5>(Key{1}, -1, 1));
  check(layouts, randint<std::int32_t, 4, 5>(Key{1}, -9, 9));
  check_vjp(layouts, uniform<double, 4, 5>(Key{1}, -1, 1));
  check(parts, uniform<float, 2, 3, 4>(Key{1}, -1, 1));
  check_vjp(parts, uniform<double, 2, 3, 4>(Key{1}, -1, 1));
  check(patches, uniform<float, 2, 3, 4, 5>(Key{1}, -1, 1));
  check_vjp(patches, uniform<double, 1, 2, 4, 5>(Key{1}, -1, 1));
}

TEST_CASE("compiled functions in which order matters", "[ops]") {
  check(ordered, uniform<float, 5, 7>(Key{1}, -1, 1));
  check_vjp(ordered, uniform<double, 5, 7>(Key{1}, -1, 1));
  check(positions_of, uniform<float, 5, 7>(Key{1}, -1, 1), Tensor<float, 3>::from({-0.5f, 0, 0.5f}));
  check(ordered_scalar, Tensor<float>(2.5f));
  check_vjp(ordered_scalar, Tensor<double>(2.5));
  auto const same = [](auto const& y) { CHECK((y.ndim() == 0 && y.item() == 2.5f)); };
  std::apply([&](auto const&... y) { (same(y), ...); }, ordered_scalar(Tensor<float>(2.5f)));
  check(measures, uniform<float, 5, 7>(Key{1}, -1, 1));
  check_vjp(measures, uniform<double, 5, 7>(Key{1}, -1, 1));
}

TEST_CASE("compiled functions of an index", "[ops]") {
  auto const places = Tensor<std::int64_t, 4, 1>::from({{2}, {0}, {4}, {1}});
  auto const rows = Tensor<std::int32_t, 3>::from({3, 1, 3});
  check(indexed, uniform<float, 4, 5>(Key{1}, -1, 1), places, uniform<float, 4, 1>(Key{2}, -1, 1), rows);
  constexpr auto by = [](auto const& x, auto const& src) {
    // Positions that are computed from what carries no gradient.
    auto const rows = argsort<0>(stop_gradient(select<1, 0>(x)));
    return std::tuple(index_select<0>(x, rows), index_add<0>(x, rows, x * 2.0), embedding(rows, x, 2),
                      scatter<0>(x, unsqueeze<1>(rows), src), embedding_bag(rows, x, rows * 0),
                      nanmedian<0>(x), nanmean<1>(x), multi_margin_loss(x, rows));
  };
  check_vjp(by, uniform<double, 4, 5>(Key{1}, -1, 1), uniform<double, 4, 1>(Key{2}, -1, 1));
  // Programs name the function that was called, too.
  auto const bad = full<std::int64_t, 2>(9);
  auto const table = ones<float, 4, 5>();
  auto const lookup = compile([](auto const& t, auto const& i) { return embedding(i, t); });
  CHECK_THROWS_WITH(lookup(table, bad), "embedding: index 9 out of range for axis 0 of [4, 5]");
  auto const pick = compile([](auto const& t, auto const& i) { return index_select<1>(t, i); });
  CHECK_THROWS_WITH(pick(table, bad), "index_select: index 9 out of range for axis 1 of [4, 5]");
}

TEST_CASE("parts of positions", "[ops]") {
  constexpr auto f = [](auto const& x) {
    auto const column = positions<1, 4>(x);
    auto const table = expand<5, 4>(column);
    return std::tuple(slice<1, 1, 3>(table) + slice<1, 0, 2>(x), slice<1, 0, 4, 2>(column) * 2.0,
                      unfold<1, 2, 1>(column) + unfold<1, 2, 1>(x), flatten(table) + flatten(x));
  };
  compiled::check(f, randn<double, 5, 4>(Key{1}));
}

TEST_CASE("windows are read where they lie", "[ops]") {
  using Samples = Tensor<float, 3, 100>;
  using Row = Tensor<float, 100>;
  constexpr auto frames = [](Row const& x, Tensor<float, 20, 4> const& w) {
    return matmul(unfold<0, 20, 8>(x), w);
  };
  constexpr auto scaled = [](Samples const& x) { return unfold<1, 12, 8>(x) * 2.0f; };
  auto const x = randn<float, 3, 100>(Key{1});
  auto const w = randn<float, 20, 4>(Key{2});
  CHECK(array_equal(compile(scaled)(x), unfold(x, 1, 12, 8).clone() * 2.0f));
  CHECK(allclose(compile(frames)(x[1], w), matmul(unfold(x[1], 0, 20, 8).clone(), w), 1e-5, 1e-5));
  CHECK(decltype(compile(scaled))::program_for<Samples>::kernels == 1);
  CHECK(decltype(compile(frames))::program_for<Row, Tensor<float, 20, 4>>::kernels == 1);
  auto const together = compile([](Samples const& y) { return vmap(scaled_row)(y); })(x);
  CHECK(array_equal(together, compile(scaled)(x)));
  // What comes back is not a view, one element of which is in two places.
  auto alone = compile([](Samples const& y) { return unfold<1, 12, 8>(y + 1.0f); })(x);
  alone += 1.0f;
  CHECK(array_equal(alone, unfold(x + 1.0f, 1, 12, 8).clone() + 1.0f));
  // That of values in memory is one.
  Array view = unfold(x, 1, 12, 8);
  CHECK(view.data<float>() == x.data());
  CHECK_THROWS_AS(view += 1.0, error);
}

TEST_CASE("compiled layouts with extents known when they are called", "[ops]") {
  using Rows = Tensor<double, dyn, 4>;
  constexpr auto f = [](auto const& x) {
    return std::tuple(flip<0>(x), cumsum<0>(x), std::get<0>(sort<0>(x)), roll<1, 1>(x), pad<1, 1>(x),
                      repeat_interleave<2, 1>(x), tril(x), norm<0>(x), movedim<0, 1>(x), select<0, 1>(x));
  };
  auto program = compile(f);
  auto images = compile([](auto const& x) {
    constexpr Patches p{2};
    return std::tuple(unfold<p>(x), flatten<1>(x), pixel_shuffle<2>(x), einsum<"nchw,ncwk->nkh">(x, x),
                      fold<3, 3, p>(unfold<p>(x)), einsum<"nchw,nchw->n">(x, x * 2.0), concat<1>(x, x),
                      cumprod<1>(x), unfold<2, 2, 1>(x), pad<PadMode::reflect, 1, 1>(x));
  });
  for (index_t n : {2, 3}) {
    using Images = Tensor<double, dyn, 4, 3, 3>;
    auto const all = uniform<double, 3, 4, 3, 3>(Key{2}, -1, 1);
    auto const x = Images(slice(Array(all), 0, 0, n));
    auto const [u, fl, ps, e, fo, s, c, cp, w, p] = images(x);
    CHECK(array_equal(u, unfold(x, {2})));
    CHECK(array_equal(fl, flatten(x, 1)));
    CHECK(array_equal(ps, pixel_shuffle(x, 2)));
    CHECK(testing::error_ratio(e, einsum("nchw,ncwk->nkh", x, x), 1e-12, 1e-12) <= 1);
    CHECK(testing::error_ratio(fo, fold(unfold(x, {2}), {3, 3}, {2}), 1e-12, 1e-12) <= 1);
    CHECK(testing::error_ratio(s, sum(x * x * 2.0, {1, 2, 3}), 1e-12, 1e-12) <= 1);
    CHECK(array_equal(c, concat({x, x}, 1)));
    CHECK(testing::error_ratio(cp, cumprod(x, 1), 1e-12, 1e-12) <= 1);
    CHECK(array_equal(w, unfold(x, 2, 2, 1)));
    CHECK(array_equal(p, pad(x, {1, 1}, PadMode::reflect)));
  }
  for (index_t n : {3, 5}) {
    auto const x = Rows::from(
        std::span<double const>(uniform<double, 20>(Key{9}).data(), static_cast<std::size_t>(4 * n)),
        make_shape(n, 4));
    require_same(leaves(program(x)), leaves(f(x)), "dyn");
  }
}

}  // namespace tests::ops_compiled_arrange
