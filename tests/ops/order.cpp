// SPDX-License-Identifier: BSL-1.0
// Cumulative sums and their kin, sorting and searching, norms, and functions of an index.
#include "ops/places.hpp"

#include <dfdx/vocabulary/embedding.hpp>
#include <dfdx/vocabulary/measure.hpp>
#include <dfdx/vocabulary/methods.hpp>
#include <dfdx/vocabulary/quantile.hpp>

#include <catch2/matchers/catch_matchers.hpp>

#include <algorithm>
#include <numeric>

namespace tests::ops_order {

namespace {

using namespace suite;

// Each line along an axis of x, as f(line) makes it; lines may change their length.
template <class F>
auto lines(int axis, F const& f) {
  return [=](V v) {
    Array const x = v[0];
    Shape to = x.shape(), others = x.shape();
    others[axis] = 1;
    Array r;
    for_indices(others, [&](index_t const* i) {
      std::vector<double> line;
      index_t j[max_rank] = {};
      std::copy(i, i + max_rank, j);
      for (j[axis] = 0; j[axis] < x.shape()[axis]; ++j[axis]) line.push_back(value_at(x, j));
      std::vector<double> const y = f(line);
      to[axis] = static_cast<index_t>(y.size());
      if (r.empty()) r = doubles(to);
      for (j[axis] = 0; j[axis] < to[axis]; ++j[axis]) cell(r, j) = y[static_cast<std::size_t>(j[axis])];
    });
    return r;
  };
}

template <class Join>
auto running(Join const& join) {
  return [=](std::vector<double> x) {
    for (std::size_t i = 1; i < x.size(); ++i) x[i] = join(x[i - 1], x[i]);
    return x;
  };
}

Array cube(std::uint64_t key = 5) { return draw(make_shape(2, 5, 3), {-2, 2}, key, DType::f64); }

}  // namespace

TEST_CASE("cumulative functions", "[ops]") {
  for (int axis : {0, 1, 2}) {
    INFO(axis);
    check_op(
        "cumsum", [&](V v) { return cumsum(v[0], axis); },
        lines(axis, running([](double a, double b) { return a + b; })), {cube()}, true, true);
    check_op(
        "cumprod", [&](V v) { return cumprod(v[0], axis); },
        lines(axis, running([](double a, double b) { return a * b; })), {cube()}, true, true);
    check_op(
        "logcumsumexp", [&](V v) { return logcumsumexp(v[0], axis); },
        lines(axis, running([](double a, double b) { return std::log(std::exp(a) + std::exp(b)); })),
        {cube()}, false, true);
    check_op(
        "cummax", [&](V v) { return std::get<0>(cummax(v[0], axis)); },
        lines(axis, running([](double a, double b) { return a > b ? a : b; })), {cube()}, false, true);
    check_op(
        "cummin", [&](V v) { return std::get<0>(cummin(v[0], axis)); },
        lines(axis, running([](double a, double b) { return a < b ? a : b; })), {cube()}, false, true);
  }
  // Gradients of products in which some factors are zero.
  Array const zeros_in = from<double>({2, 0, 3, 0, -1, 4, 5, 0}, {2, 4});
  check_rules([](V v) { return cumprod(v[0], 1); }, {zeros_in}, DType::f64);
  // The last of several positions, and a NaN from the first on.
  CHECK(array_equal(std::get<1>(cummax(from<float>({1, 3, 3, 2, NAN, 9}), 0)),
                    from<std::int64_t>({0, 1, 2, 2, 4, 4})));
  CHECK(array_equal(std::get<1>(cummin(from<float>({3, 1, 2, 1}), 0)), from<std::int64_t>({0, 1, 1, 3})));
  double const inf = HUGE_VAL;
  CHECK(array_equal(logcumsumexp(from<double>({-inf, -inf, 0, inf}), 0), from<double>({-inf, -inf, 0, inf})));
  CHECK(at(logcumsumexp(from<double>({1000, 1000}), 0), 1) == 1000 + std::log(2.0));
  // Second derivatives where sums are equal: s (1 - s) of the sigmoid s = 1/2, as in PyTorch 2.11.
  Array even = from<double>({3, 3});
  even.requires_grad(true);
  Array const slope = gradients(logcumsumexp(even, 0)(1), {even}, {.create_graph = true})[0];
  CHECK(array_equal(slope.detach(), from<double>({0.5, 0.5})));
  CHECK(array_equal(gradients(slope(0), {even})[0], from<double>({0.25, -0.25})));
  CHECK(cumsum(zeros({0, 2}), 0).shape() == make_shape(0, 2));
  CHECK(cumprod(zeros({0, 2}), 1).shape() == make_shape(0, 2));
  CHECK_THROWS_WITH(cumsum(zeros({2, 3}), 2), "cumsum: axis 2 out of range for [2, 3]");
  CHECK_THROWS_WITH(cummax(zeros({2, 3}), 2), "cummax: axis 2 out of range for [2, 3]");
}

TEST_CASE("sort, topk, median, quantile", "[ops]") {
  auto const ascending = [](std::vector<double> x) {
    std::sort(x.begin(), x.end());
    return x;
  };
  for (int axis : {0, 1, -1}) {
    int const a = axis < 0 ? 2 : axis;
    check_op(
        "sort", [&](V v) { return std::get<0>(sort(v[0], axis)); }, lines(a, ascending), {cube()}, true,
        true);
    check_op(
        "topk", [&](V v) { return std::get<0>(topk(v[0], 2, axis)); },
        lines(a,
              [&](std::vector<double> const& x) {
                auto y = ascending(x);
                return std::vector<double>{y[y.size() - 1], y[y.size() - 2]};
              }),
        {cube()}, true, true);
    check_op(
        "median", [&](V v) { return unsqueeze(median(v[0], axis), axis); },
        lines(a,
              [&](std::vector<double> const& x) {
                return std::vector<double>{ascending(x)[(x.size() - 1) / 2]};
              }),
        {cube()}, true, true);
    check_op(
        "quantile", [&](V v) { return unsqueeze(quantile(v[0], 0.4, axis), axis); },
        lines(a,
              [&](std::vector<double> const& x) {
                double const at = 0.4 * static_cast<double>(x.size() - 1);
                auto const low = static_cast<std::size_t>(at);
                auto const y = ascending(x);
                double const high = low + 1 < y.size() ? y[low + 1] : y[low];
                return std::vector<double>{y[low] + (high - y[low]) * (at - static_cast<double>(low))};
              }),
        {cube()}, false, true);
  }
  // Equal elements stay in order both ways; NaN counts as the largest.
  Array const x = from<float>({2, 1, 2, NAN, 1});
  CHECK(array_equal(argsort(x, 0), from<std::int64_t>({1, 4, 0, 2, 3})));
  CHECK(array_equal(argsort(x, 0, true), from<std::int64_t>({3, 0, 2, 1, 4})));
  CHECK(array_equal(std::get<1>(topk(x, 2, 0, false)), from<std::int64_t>({1, 4})));
  CHECK(std::isnan(median(x).item<float>()));
  CHECK(std::isnan(quantile(x, 0.0).item<float>()));
  CHECK(median(from<float>({4, 1, 3, 2})).item<float>() == 2);
  CHECK(quantile(from<float>({4, 1, 3, 2}), 1).item<float>() == 4);
  CHECK_THROWS_WITH(topk(zeros({2, 5}), 6), "topk: 6 elements wanted along axis 1 of [2, 5]");
  CHECK_THROWS_WITH(median(zeros({0})), "median: empty axis 0 of [0]");
  CHECK_THROWS_WITH(quantile(x, 1.5), "quantile: a number between 0 and 1 required");
  CHECK_THROWS_WITH(sort(x, 1), "sort: axis 1 out of range for [5]");
  CHECK_THROWS_WITH(argsort(x, 1), "argsort: axis 1 out of range for [5]");
  CHECK_THROWS_WITH(cummin(x, 1), "cummin: axis 1 out of range for [5]");
  CHECK_THROWS_WITH(median(x, 1), "median: axis 1 out of range for [5]");
  CHECK_THROWS_WITH(nanmedian(x, 1), "nanmedian: axis 1 out of range for [5]");
  CHECK_THROWS_WITH(quantile(arange(3), 0.5), "quantile: floating dtype required, got i64");
}

// Found among all, the first in order and the one at a rank are those that a stable sort puts there.
TEST_CASE("ranks without sorting", "[ops]") {
  auto const same = [](Array const& x, int axis, index_t k) {
    INFO("k " << k);
    for (index_t descending : {0, 1}) {
      Array const all = bind<op::argsort>(Attrs{{axis, descending}}, x);
      CHECK(array_equal(bind<op::argsort>(Attrs{{axis, descending, k}}, x), narrow(all, axis, 0, k)));
      CHECK(array_equal(bind<op::argsort>(Attrs{{axis, descending, -k}}, x), narrow(all, axis, k - 1, 1)));
    }
  };
  auto const sorted = [](Array const& x) {
    std::vector<std::int64_t> r(static_cast<std::size_t>(x.size()));
    std::iota(r.begin(), r.end(), 0);
    // No stable_sort: that of libstdc++ 12 is made of what clang warns of.
    std::sort(r.begin(), r.end(), [&](std::int64_t a, std::int64_t b) {
      return op::detail::before(at(x, a), at(x, b)) || (!op::detail::before(at(x, b), at(x, a)) && a < b);
    });
    return from<std::int64_t>(r, {x.size()});
  };
  for (index_t n : {1, 2, 31, 100, 256, 257, 700, 5000}) {
    Array const numbers = draw(make_shape(n), {-3, 3}, 7, DType::f32);
    Array const holes = where(abs(numbers) > 2.9, full({}, NAN), numbers);
    Array const kinds[] = {
        numbers,        holes, round(numbers), full({n}, -0.0), std::get<0>(sort(numbers, 0)),
        -numbers * 1e9, -holes};
    for (std::size_t kind = 0; kind < std::size(kinds); ++kind)
      for (DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::u8}) {
        if (!is_floating(dtype) && kind != 0 && kind != 2 && kind != 4) continue;
        Array const x = (is_floating(dtype) ? kinds[kind] : abs(kinds[kind]) * 20).to(dtype);
        INFO(n << " of " << name_of(dtype) << ", kind " << kind);
        CHECK(array_equal(argsort(x, 0), sorted(x)));
        for (index_t k : {index_t{1}, index_t{2}, n / 20, n / 8, n / 3, n / 2, n - 1, n})
          if (k > 0 && k <= n) same(x, 0, k);
      }
  }
  // Lines side by side, more than are read at once, and lines that nothing is next to.
  Array const block = draw(make_shape(2, 300, 37), {-2, 2}, 3, DType::f32);
  for (int axis : {0, 1, 2})
    for (index_t k : {1, 2}) same(block, axis, k);
  for (index_t k : {20, 100, 150, 300}) same(block, 1, k), same(transpose(block, 1, 2), 2, k);
  CHECK(bind<op::argsort>(Attrs{{0, 0, 2}}, zeros({5, 0})).shape() == make_shape(2, 0));
}

TEST_CASE("kthvalue", "[ops]") {
  Array const x = from<float>({2, 1, NAN, 2, 1}), rows = from<double>({3, 1, 2, 9, 7, 8}, {2, 3});
  auto const [third, at] = kthvalue(x, 3);
  CHECK(third.item<float>() == 2);
  CHECK(at.item<std::int64_t>() == 0);
  CHECK(std::isnan(std::get<0>(kthvalue(x, 5)).item<float>()));
  CHECK(array_equal(std::get<0>(kthvalue<2>(rows)), from<double>({2, 8})));
  CHECK(array_equal(std::get<1>(kthvalue(rows, 2, 0)), from<std::int64_t>({1, 1, 1})));
  CHECK(array_equal(std::get<0>(kthvalue<2, 0>(Tensor<float, 3, 2>::from({1, 6, 2, 5, 3, 4}))),
                    from<float>({2, 5})));
  Array leaf = full({}, 4.0, DType::f64);
  CHECK(std::get<0>(kthvalue(leaf, 1)).item() == 4);
  for (int axis : {0, 1, -1})
    check_op(
        "kthvalue", [&](V v) { return unsqueeze(std::get<0>(kthvalue(v[0], 2, axis)), axis); },
        lines(axis < 0 ? 2 : axis,
              [](std::vector<double> y) {
                std::sort(y.begin(), y.end());
                return std::vector<double>{y[1]};
              }),
        {cube()}, true, true);
  CHECK_THROWS_WITH(kthvalue(zeros({2, 5}), 6), "kthvalue: element 6 wanted along axis 1 of [2, 5]");
  CHECK_THROWS_WITH(kthvalue(zeros({2, 5}), 0), "kthvalue: element 0 wanted along axis 1 of [2, 5]");
  CHECK_THROWS_WITH(kthvalue(x, 1, 1), "kthvalue: axis 1 out of range for [5]");
  CHECK_THROWS_WITH(kthvalue(zeros({0}), 1), "kthvalue: empty axis 0 of [0]");
}

// The interpolations as PyTorch documents them, of 1 2 4 8 at places 0.75 and 1.5.
TEST_CASE("quantiles between two elements, and several", "[ops]") {
  using enum Interpolation;
  Array const x = from<double>({8, 1, 4, 2});
  auto const of = [&](Interpolation how) { return quantile(x, {0.25, 0.5}, 0, how); };
  CHECK(allclose(of(linear), from<double>({1.75, 3})));
  CHECK(array_equal(of(lower), from<double>({1, 2})));
  CHECK(array_equal(of(higher), from<double>({2, 4})));
  CHECK(array_equal(of(nearest), from<double>({2, 4})));  // of 1.5 the even one
  CHECK(allclose(of(midpoint), from<double>({1.5, 3})));
  CHECK(quantile(from<double>({1, 2, 3, 4, 5, 6}), 0.5, nearest).item() == 3);
  for (Interpolation how : {linear, lower, higher, nearest, midpoint}) {
    CHECK(quantile(x, 1, how).item() == 8);
    CHECK(quantile(from<double>({INFINITY, 1}), 1, how).item() == INFINITY);
  }
  // Between a number and an infinity, between two, and where the difference overflows.
  auto const quarter = [](std::initializer_list<float> v) { return quantile(from(v), 0.25).item<float>(); };
  CHECK(quarter({-INFINITY, 1}) == -INFINITY);
  CHECK(quarter({INFINITY, 1}) == INFINITY);
  CHECK(quarter({INFINITY, INFINITY}) == INFINITY);
  CHECK(std::isnan(quarter({INFINITY, -INFINITY})));
  CHECK(std::fabs(quarter({-3e38f, 3e38f}) / -1.5e38f - 1) < 1e-6f);
  Array far = from({-INFINITY, 1.0f});
  far.requires_grad(true);
  quantile(far, 0.25).backward();
  CHECK(array_equal(far.grad(), from({0.75f, 0.25f})));
  auto const t = randn<double, 3, 4>(Key{5});
  auto const both = [](auto const& v) { return quantile<1>(v, {0.1, 0.8}, Interpolation::midpoint); };
  static_assert(std::is_same_v<decltype(both(t)), Tensor<double, 2, 3>>);
  for (int k = 0; k < 2; ++k)
    CHECK(allclose(both(t)[k], quantile(t, k == 0 ? 0.1 : 0.8, 1, Interpolation::midpoint)));
  CHECK(allclose(quantile(t, std::vector<double>{0.1, 0.8}, 1, Interpolation::midpoint), both(t)));
  CHECK(quantile(t, {0.1, 0.5, 0.8}).shape() == make_shape(3));
  Array leaf = t.detach();
  leaf.requires_grad(true);
  sum(both(leaf)).backward();
  CHECK(sum(leaf.grad()).item() == 6);
}

TEST_CASE("a scalar has an order along axis 0 and -1", "[ops]") {
  Array leaf = full({}, 2.5, DType::f64);
  leaf.requires_grad(true);
  Array total = zeros({}, DType::f64);
  for (int axis : {0, -1})
    total = total + cumsum(leaf, axis) + cumprod(leaf, axis) + std::get<0>(cummax(leaf, axis)) +
            std::get<0>(sort(leaf, axis)) + std::get<0>(topk(leaf, 1, axis)) + median(leaf, axis) +
            quantile(leaf, 0.3, axis);
  CHECK(total.item() == 14 * 2.5);
  total.backward();
  CHECK(leaf.grad().item() == 14);
  CHECK(argsort(leaf, 0).item() == 0);
  CHECK(std::get<1>(topk(leaf, 1)).item() == 0);
  CHECK_THROWS_WITH(topk(leaf, 2), "topk: 2 elements wanted along axis 0 of []");
  CHECK_THROWS_WITH(cumsum(leaf, 1), "cumsum: axis 1 out of range for []");
  CHECK_THROWS_WITH(cumprod(leaf, -2), "cumprod: axis -2 out of range for []");
  CHECK_THROWS_WITH(sort(leaf, 1), "sort: axis 1 out of range for []");
}

TEST_CASE("sums, means and medians without NaN", "[ops]") {
  // Every other element is none; one line has nothing else.
  Array const place = reshape(arange(24), {4, 6}), hole = logical_or(fmod(place, 2) == 0, place > 17);
  auto const holes = [](V v) { return where(v[1], NAN, v[0]); };
  auto const numbers = [](std::vector<double> const& x) {
    std::vector<double> y;
    for (double v : x)
      if (v == v) y.push_back(v);
    return y;
  };
  auto const total = [](std::vector<double> const& x) { return std::accumulate(x.begin(), x.end(), 0.0); };
  Array const x = draw(make_shape(4, 6), {}, 3, DType::f64);
  for (int axis : {0, 1}) {
    check_op(
        "nansum", [&](V v) { return nansum(holes(v), axis, true); },
        [&](V v) {
          return lines(axis, [&](std::vector<double> const& l) {
            return std::vector<double>{total(numbers(l))};
          })(std::vector<Array>{cast_to(holes(v), DType::f64)});
        },
        {x, hole}, false, true);
    check_op(
        "nanmedian", [&](V v) { return unsqueeze(nanmedian(holes(v), axis), axis); },
        [&](V v) {
          return lines(axis, [&](std::vector<double> const& l) {
            std::vector<double> y = numbers(l);
            std::sort(y.begin(), y.end());
            return std::vector<double>{y.empty() ? NAN : y[(y.size() - 1) / 2]};
          })(std::vector<Array>{cast_to(holes(v), DType::f64)});
        },
        {x, hole}, false, true, false);
  }
  Array const few = from<double>({1, NAN, 4, NAN, NAN, 2, 9, 3, NAN}, {3, 3});
  CHECK(array_equal(nanmean<1>(few), from<double>({2.5, 2, 6})));
  CHECK(nanmean(few).item() == 19.0 / 5);
  CHECK(nanmean(few, 0, true).shape() == make_shape(1, 3));
  CHECK(array_equal(nansum<0>(few, keepdim), from<double>({10, 3, 6}, {1, 3})));
  CHECK(nanmedian(few).item() == 3);
  CHECK(array_equal(nanmedian<1>(few), from<double>({1, 2, 3})));
  CHECK(std::isnan(nanmedian(full({2}, NAN)).item<float>()));
  CHECK(std::isnan(nanmean(full({2}, NAN)).item<float>()));
  CHECK(nansum(from<std::int32_t>({1, 2})).item<std::int64_t>() == 3);
  CHECK(nanmean(ones({300}, DType::u8)).item<float>() == 1);  // not counted in u8
  CHECK(nanmedian<0>(Tensor<float, 4>::from({NAN, 3, 1, 2})).item() == 2);
  CHECK_THROWS_AS(nanmedian(zeros({0})), error);
  // Gradients go where the numbers are.
  Array y = few.clone();
  y.requires_grad(true);
  (nanmean(y) * 5.0 + nanmedian(y) * 7.0).backward();
  CHECK(array_equal(y.grad(), from<double>({1, 0, 1, 0, 0, 1, 1, 8, 0}, {3, 3})));
  CHECK(std::fabs(few(2, range(0, 2)).std().item() - std::sqrt(18.0)) < 1e-12);
  CHECK(few(all(), range(0, 1)).std(1, 0, true).shape() == make_shape(3, 1));
}

TEST_CASE("searchsorted and bucketize", "[ops]") {
  for (DType d :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8, DType::i8}) {
    Array const list = cast_to(from<double>({1, 3, 3, 5}), d),
                x = cast_to(from<double>({0, 1, 2, 3, 5, 6}), d);
    CHECK(array_equal(searchsorted(list, x), from<std::int64_t>({0, 0, 1, 1, 3, 4})));
    CHECK(array_equal(bucketize(x, list, true), from<std::int64_t>({0, 1, 1, 3, 4, 4})));
    Array const lists = laid_out(stack({list, list + list}), Layout::turned);
    CHECK(array_equal(searchsorted(lists, laid_out(stack({x, x}), Layout::sparse)),
                      from<std::int64_t>({0, 0, 1, 1, 3, 4, 0, 0, 0, 1, 1, 1}, {2, 6})));
  }
  CHECK(array_equal(searchsorted(from<float>({1, 2}), from<float>({NAN})), from<std::int64_t>({2})));
  CHECK_THROWS_WITH(searchsorted(zeros({2, 5}), zeros({3, 4})),
                    "searchsorted: lists [2, 5] do not fit values [3, 4]");
  CHECK_THROWS_WITH(searchsorted(zeros({5}), zeros({4}, DType::f64)),
                    "searchsorted: one dtype required, got f32 and f64");
}

TEST_CASE("norms and counts", "[ops]") {
  double const inf = HUGE_VAL;
  for (double p : {2.0, 1.0, inf, -inf, 3.0, 0.5, -1.0})
    check_op(
        "norm", [&](V v) { return norm(v[0], p, 1, true); },
        lines(1,
              [p, inf](std::vector<double> const& x) {
                double r = p == -inf ? inf : 0;
                for (double e : x) {
                  if (p == inf) r = std::fmax(r, std::fabs(e));
                  else if (p == -inf) r = std::fmin(r, std::fabs(e));
                  else r += std::pow(std::fabs(e), p);
                }
                return std::vector<double>{std::isinf(p) ? r : std::pow(r, 1 / p)};
              }),
        {draw(make_shape(2, 5, 3), {0.25, 2}, 5, DType::f64)}, false, true);
  check_op(
      "normalize", [](V v) { return normalize(v[0], 2, 1); },
      lines(1,
            [](std::vector<double> x) {
              double s = 0;
              for (double e : x) s += e * e;
              for (double& e : x) e /= std::sqrt(s);
              return x;
            }),
      {cube()}, false, true);
  // At zero the gradient is zero.
  for (double p : {2.0, 1.0, 3.0, 0.5}) {
    Graph g = testing::record([p](V v) { return std::vector<Array>{norm(v[0], p)}; },
                              std::vector<Meta>{{DType::f64, make_shape(3)}});
    testing::add_vjp(g, std::vector<int>{0});
    std::vector<Array> const in = {zeros({3}, DType::f64), full({}, 1, DType::f64)};
    CHECK(array_equal(testing::interpret(g, in)[0], zeros({3}, DType::f64)));
  }
  Array const x = from<float>({0, 1, 2, 0, 0, 0}, {2, 3});
  CHECK(norm(x, 0).item<float>() == 2);
  // Of no elements it is 0, as in PyTorch 2.11, also where the compiler knows that there are none.
  auto const none = zeros<float, 3, 0>();
  for (double const p : {0.0, 1.0, 2.0, 2.5}) {
    CHECK(array_equal(norm<1>(none, p), zeros({3})));
    CHECK(array_equal(norm(Array(none), p, 1), zeros({3})));
  }
  static_assert(std::is_same_v<decltype(normalize<1>(none)), Tensor<float, 3, 0>>);
  CHECK_THROWS_WITH(norm<1>(none, HUGE_VAL), "norm: no elements in [3, 0] to be the largest or smallest");
  CHECK(array_equal(count_nonzero(x, 1), from<std::int64_t>({2, 0})));
  CHECK(array_equal(any(x, 1), from<bool>({true, false})));
  CHECK(array_equal(all(x, 0), from<bool>({false, false, false})));
  CHECK(all(zeros({0})).item<bool>());
  CHECK(!any(zeros({0})).item<bool>());
  CHECK(any(from<bool>({false, true})).item<bool>());
  CHECK(any(from<float>({NAN})).item<bool>());
  CHECK(array_equal(amax<1>(x, keepdim), from<float>({2, 0}, {2, 1})));
  CHECK(amin(x).item<float>() == 0);
}

TEST_CASE("norms refuse axes by their name", "[ops]") {
  Array const x = ones({2, 3});
  CHECK_THROWS_WITH(norm(x, 2, 2), "norm: axis 2 out of range for [2, 3]");
  CHECK_THROWS_WITH(norm(x, 1, {0, -2}), "norm: axis -2 named twice for [2, 3]");
  CHECK_THROWS_WITH(normalize(x, 2, 5), "normalize: axis 5 out of range for [2, 3]");
}

TEST_CASE("scatter, index_add, embeddings", "[ops]") {
  Array const x = draw(make_shape(4, 3), {}, 1, DType::f64),
              places = from<std::int64_t>({0, 2, 2, 1}, {4, 1});
  check_op(
      "scatter", [](V v) { return scatter(v[0], 1, v[1], v[2]); },
      [](V v) {
        Array const r = doubles(make_shape(4, 3));
        for_indices(r.shape(), [&](index_t const* i) { cell(r, i) = value_at(v[0], i); });
        for_indices(make_shape(4, 1), [&](index_t const* i) {
          index_t const to[] = {i[0], static_cast<index_t>(value_at(v[1], i))};
          cell(r, to) = value_at(v[2], i);
        });
        return r;
      },
      {x, places, draw(make_shape(4, 1), {}, 2, DType::f64)}, true, true);
  CHECK(array_equal(scatter(zeros({3}), 0, from<std::int32_t>({1, 1}), from<float>({5, 6})),
                    from<float>({0, 6, 0})));
  CHECK_THROWS_WITH(scatter(zeros({3}), 0, from<std::int32_t>({1, 1}), from<float>({5})),
                    "scatter: index [2] is larger than source [1]");
  Array const rows = from<std::int64_t>({2, 0, 2});
  Array const two = from<std::int64_t>({2, 0});
  check_op(
      "index_copy", [](V v) { return index_copy(v[0], -1, v[1], v[2]); },
      [](V v) {
        Array const r = doubles(make_shape(4, 3));
        for_indices(r.shape(), [&](index_t const* i) { cell(r, i) = value_at(v[0], i); });
        for_indices(make_shape(4, 2), [&](index_t const* i) {
          index_t const which[] = {i[1]}, to[] = {i[0], static_cast<index_t>(value_at(v[1], which))};
          cell(r, to) = value_at(v[2], i);
        });
        return r;
      },
      {x, two, draw(make_shape(4, 2), {}, 2, DType::f64)}, true, true);
  CHECK_THROWS_WITH(index_copy(x, 1, two, x), "index_copy: source [4, 3] does not fit [4, 3] at index [2]");
  CHECK_THROWS_WITH(index_copy(x, 2, two, x), "index_copy: axis 2 out of range for [4, 3]");
  CHECK_THROWS_WITH(index_copy(x, 1, places, x), "index_copy: a list of integers required, got i64 [4, 1]");
  CHECK_THROWS_WITH(index_copy(x, 0, two, ones({2, 3})), "index_copy: one dtype required, got f64 and f32");
  CHECK_THROWS_WITH(index_copy(x, 1, two + 1, ones({4, 2}, DType::f64)),
                    "index_copy: index 3 out of range for axis 1 of [4, 3]");
  check_op(
      "index_add", [](V v) { return index_add(v[0], 1, v[1], v[2], 2); },
      [](V v) {
        Array const r = doubles(make_shape(4, 3));
        for_indices(r.shape(), [&](index_t const* i) { cell(r, i) += value_at(v[0], i); });
        for_indices(r.shape(), [&](index_t const* i) {
          index_t const which[] = {i[1]}, to[] = {i[0], static_cast<index_t>(value_at(v[1], which))};
          cell(r, to) += 2 * value_at(v[2], i);
        });
        return r;
      },
      {x, rows, draw(make_shape(4, 3), {}, 3, DType::f64)}, true, true);
  CHECK_THROWS_WITH(index_add(x, 0, rows, zeros({2, 3}, DType::f64)),
                    "index_add: source [2, 3] does not fit [4, 3] at index [3]");
  check_op(
      "index_select", [](V v) { return index_select(v[0], 1, v[1]); },
      [](V v) {
        Array const r = doubles(make_shape(4, 3));
        for_indices(r.shape(), [&](index_t const* i) {
          index_t const which[] = {i[1]}, from_place[] = {i[0], static_cast<index_t>(value_at(v[1], which))};
          cell(r, i) = value_at(v[0], from_place);
        });
        return r;
      },
      {x, rows}, true, true);
  CHECK_THROWS_WITH(index_select(x, 0, places), "index_select: a list of integers required, got i64 [4, 1]");
  Array const bags = from<std::int64_t>({2, 0, 1, 1}, {2, 2});
  check_op(
      "embedding_bag", [](V v) { return embedding_bag<Bag::mean>(v[1], v[0]); },
      [](V v) {
        Array const r = doubles(make_shape(2, 3));
        for_indices(make_shape(2, 2, 3), [&](index_t const* i) {
          index_t const from_place[] = {static_cast<index_t>(value_at(v[1], i)), i[2]}, to[] = {i[0], i[2]};
          cell(r, to) += value_at(v[0], from_place) / 2;
        });
        return r;
      },
      {x, bags}, false, true);
  CHECK(embedding_bag<Bag::max>(bags, x).shape() == make_shape(2, 3));
  CHECK(array_equal(embedding(bags, x, 1), take(x, bags)));
  // The row of padding has no gradient.
  Graph g = testing::record([&](V v) { return std::vector<Array>{embedding(v[1], v[0], 1)}; },
                            std::vector<Meta>{x.meta(), bags.meta()});
  testing::add_vjp(g, std::vector<int>{0});
  Array const d = testing::interpret(g, std::vector<Array>{x, bags, ones({2, 2, 3}, DType::f64)})[0];
  CHECK(array_equal(slice(d, 1, 0, 1), from<double>({1, 0, 1, 0}, {4, 1})));
  // Also where it is counted from the end.
  Array table = zeros({4, 3});
  table.requires_grad(true);
  sum(embedding(bags, table, -3)).backward();
  CHECK(array_equal(slice(table.grad(), 1, 0, 1), from<double>({1, 0, 1, 0}, {4, 1})));
}

TEST_CASE("embedding_bag with offsets", "[ops]") {
  Array const table = draw(make_shape(5, 3), {}, 1, DType::f64),
              index = from<std::int64_t>({4, 0, 4, 2, 1, 3}), offsets = from<std::int64_t>({0, 3, 3, 4});
  std::vector<std::vector<index_t>> const bags = {{4, 0, 4}, {}, {2}, {1, 3}};
  auto const plain = [&](Bag how) {
    return [&, how](V v) {
      Array const y = doubles(make_shape(4, 3));
      for_indices(y.shape(), [&](index_t const* i) {
        double total = 0, most = -HUGE_VAL;
        auto const& bag = bags[static_cast<std::size_t>(i[0])];
        for (index_t r : bag) {
          index_t const j[] = {r, i[1]};
          total += value_at(v[0], j);
          most = std::fmax(most, value_at(v[0], j));
        }
        if (bag.empty()) return;
        cell(y, i) = how == Bag::max   ? most
                     : how == Bag::sum ? total
                                       : total / static_cast<double>(bag.size());
      });
      return y;
    };
  };
  check_op(
      "sum", [](V v) { return embedding_bag<Bag::sum>(v[1], v[0], v[2]); }, plain(Bag::sum),
      {table, index, offsets}, false, true);
  check_op(
      "mean", [](V v) { return embedding_bag(v[1], v[0], v[2]); }, plain(Bag::mean), {table, index, offsets},
      false, true);
  // Without the row that one bag has twice: equal elements share a gradient, and differences do not see that.
  Array const once = from<std::int64_t>({4, 0, 3, 2, 1, 3});
  check_rules([](V v) { return embedding_bag<Bag::max>(v[1], v[0], v[2]); }, {table, once, offsets},
              DType::f64);
  check_op(
      "max", [](V v) { return embedding_bag<Bag::max>(v[1], v[0], v[2]); }, plain(Bag::max),
      {table, index, offsets}, false, false, false);
  auto const typed = embedding_bag<Bag::sum>(Tensor<std::int64_t, 3>::from({1, 0, 1}), ones<float, 2, 4>(),
                                             Tensor<std::int64_t, 2>::from({0, 2}));
  static_assert(std::is_same_v<decltype(typed), Tensor<float, 2, 4> const>);
  CHECK(array_equal(typed, from<float>({2, 2, 2, 2, 1, 1, 1, 1}, {2, 4})));
  CHECK_THROWS_WITH(
      embedding_bag(zeros({2, 3}, DType::i64), zeros({4, 5}), zeros({2}, DType::i64)),
      "embedding_bag: an index [L] and offsets [B] required, got rows [2, 3, 5] and offsets [2]");
  CHECK_THROWS_AS(embedding_bag<Bag::sum>(index, table, from<std::int64_t>({1, 3})), error);
  // Bags of nothing are 0, and rows of integers stay integers.
  CHECK(array_equal(embedding_bag<Bag::max>(zeros({0}, DType::i64), ones({5, 2}), zeros({2}, DType::i64)),
                    zeros({2, 2})));
  Tensor<std::int64_t, dyn> const none(zeros({0}, DType::i64));
  CHECK(array_equal(embedding_bag<Bag::max>(none, ones<float, 5, 2>(), zeros<std::int64_t, 2>()),
                    zeros({2, 2})));
  Array const whole = from<std::int32_t>({-5, 16777217, -7, -9}, {2, 2});
  CHECK(array_equal(embedding_bag<Bag::max>(from<std::int64_t>({0, 1}), whole, from<std::int64_t>({0, 2})),
                    from<std::int32_t>({-5, 16777217, 0, 0}, {2, 2})));
}

TEST_CASE("sparse gradients of an embedding", "[ops]") {
  Array const table = draw(make_shape(6, 3), {}, 1, DType::f64),
              index = from<std::int64_t>({4, 0, 4, 2}, {2, 2}),
              weight = draw(make_shape(2, 2, 3), {}, 2, DType::f64);
  SparseRows const used = sparse_rows(table, index);
  CHECK(array_equal(used.indices, from<std::int64_t>({0, 2, 4})));
  CHECK(array_equal(embedding(used.places, used.rows), embedding(index, table)));
  sum(square(embedding(used.places, used.rows)) * weight).backward();
  Array dense = table.clone();
  dense.requires_grad(true);
  sum(square(embedding(index, dense)) * weight).backward();
  REQUIRE(used.rows.grad().shape() == make_shape(3, 3));
  CHECK(array_equal(used.rows.grad(), take(dense.grad(), used.indices)));
  Array stepped = table.clone();
  auto const version = stepped.storage()->version();
  index_add_(stepped, 0, used.indices, used.rows.grad(), -0.5);
  CHECK(allclose(stepped, table - dense.grad() * 0.5));
  CHECK(stepped.storage()->version() != version);
  // Along other axes; what is named twice is added twice; on the tape.
  Array x = zeros({2, 3}), y = ones({2, 2});
  index_add_(x, 1, from<std::int32_t>({2, 2}), y);
  CHECK(array_equal(x, from<float>({0, 0, 2, 0, 0, 2}, {2, 3})));
  Array counts = from<std::int64_t>({5, 6, 7});
  index_add_(counts, 0, from<std::int32_t>({2, 0, 2}), from<std::int64_t>({1, 2, 3}), 2);
  CHECK(array_equal(counts, from<std::int64_t>({9, 6, 15})));
  y.requires_grad(true);
  Array z = zeros({2, 3});
  index_add_(z, -1, from<std::int32_t>({2, 0}), y, 3);
  sum(square(z)).backward();
  CHECK(array_equal(y.grad(), full({2, 2}, 18)));
  Array own = from<float>({1, 10, 100});
  index_add_(own, 0, from<std::int32_t>({1, 0, 2}), own);
  CHECK(array_equal(own, from<float>({11, 11, 200})));
  // Of several parts for one place the sum is added, as on the tape, bit by bit.
  Array const before = randn({3, 5}, Key{1}), often = from<std::int32_t>({1, 0, 1, 1, 2});
  for (double alpha : {1.0, 0.3})
    for (int axis : {0, 1}) {
      Array const parts = randn(axis == 0 ? Extents(5, 5) : Extents(3, 5), Key{2});
      Array after = before.clone();
      index_add_(after, axis, often, parts, alpha);
      CHECK(array_equal(after, index_add(before, axis, often, parts, alpha)));
    }
  CHECK_THROWS_WITH(index_add_(x, 0, from<std::int32_t>({1, 2}), zeros({2, 3})),
                    "index_add_: index 2 out of range for axis 0 of [2, 3]");
  CHECK(array_equal(x, from<float>({0, 0, 2, 0, 0, 2}, {2, 3})));
  CHECK_THROWS_WITH(index_add_(x, 0, from<std::int32_t>({1}), zeros({2, 3})),
                    "index_add: source [2, 3] does not fit [2, 3] at index [1]");
  CHECK_THROWS_WITH(sparse_rows(table, from<std::int64_t>({6})),
                    "sparse_rows: index 6 out of range for axis 0 of [6, 3]");
}

TEST_CASE("take_along", "[ops]") {
  Array const x = draw(make_shape(2, 5, 3), {}, 1, DType::f64);
  Array const order = argsort(x, 1);
  CHECK(array_equal(take_along(x, order, 1), std::get<0>(sort(x, 1))));
  Array const row = from<std::int64_t>({4, 0}, {1, 2, 1});
  check_op(
      "take_along", [](V v) { return take_along(v[0], v[1], 1); },
      [](V v) {
        Array const r = doubles(make_shape(2, 2, 3));
        for_indices(r.shape(), [&](index_t const* i) {
          index_t const from_place[] = {i[0], i[1] == 0 ? 4 : 0, i[2]};
          cell(r, i) = value_at(v[0], from_place);
        });
        return r;
      },
      {x, row}, true, true);
  CHECK(take_along(zeros({1, 3}), zeros({4, 2}, DType::i32), 1).shape() == make_shape(4, 2));
  CHECK_THROWS_WITH(take_along(x, zeros({2}, DType::i64), 1), "take_along: index [2] does not fit [2, 5, 3]");
  CHECK_THROWS_WITH(take_along(x, zeros({3, 1, 3}, DType::i64), 1),
                    "take_along: shapes do not broadcast: [2, 1, 3] x [3, 1, 3]");
}

TEST_CASE("results whose shape the elements tell", "[ops]") {
  Array const x = from<float>({0, 1, 2, 0, 0, 3}, {2, 3});
  for (Layout layout : {Layout::dense, Layout::turned, Layout::sparse}) {
    Array const y = laid_out(x, layout);
    CHECK(array_equal(nonzero(y), from<std::int64_t>({0, 1, 0, 2, 1, 2}, {3, 2})));
    CHECK(array_equal(masked_select(y, y > 1), from<float>({2, 3})));
    CHECK(array_equal(masked_select(y, from<bool>({true, false, false})), from<float>({0, 0})));
    CHECK(array_equal(masked_rows(y, from<bool>({false, true})), from<float>({0, 0, 3}, {1, 3})));
    CHECK(array_equal(masked_rows(y, y == 2), from<float>({2})));
    CHECK(array_equal(unique(y), from<float>({0, 1, 2, 3})));
  }
  CHECK(nonzero(zeros({3})).shape() == make_shape(0, 1));
  CHECK(nonzero(full({}, 5)).shape() == make_shape(1, 0));
  CHECK(masked_select(zeros({0, 2}), ones({2})).shape() == make_shape(0));
  CHECK(unique(zeros({0})).shape() == make_shape(0));
  Unique const u = unique_all(from<float>({3, 1, 1, 2, 3, 1}, {2, 3}));
  CHECK(array_equal(u.values, from<float>({1, 2, 3})));
  CHECK(array_equal(u.inverse, from<std::int64_t>({2, 0, 0, 1, 2, 0}, {2, 3})));
  CHECK(array_equal(u.counts, from<std::int64_t>({3, 1, 2})));
  CHECK(array_equal(unique_all(from<float>({NAN, 1, NAN})).counts, from<std::int64_t>({1, 1, 1})));
  CHECK(unique_all(zeros({0, 2})).inverse.shape() == make_shape(0, 2));
  CHECK(unique_all(zeros({0, 2})).counts.shape() == make_shape(0));
  CHECK(unique(from<float>({NAN, 1, NAN, 1})).shape() == make_shape(3));
  CHECK(array_equal(unique(from<bool>({true, false, true})), from<bool>({false, true})));
  CHECK_THROWS_WITH(masked_select(x, ones({4})), "masked_select: shapes do not broadcast: [2, 3] x [4]");
  CHECK_THROWS_WITH(masked_rows(x, ones({3})), "masked_rows: mask [3] does not fit [2, 3]");
  Graph g = testing::new_graph();
  Array const recorded = testing::add_input(g, x.meta());
  CHECK_THROWS_WITH(nonzero(recorded),
                    "nonzero: the shape of the result depends on elements, which a program cannot know");
  CHECK_THROWS_AS(unique(recorded), error);
  CHECK_THROWS_AS(masked_select(recorded, recorded), error);
}

namespace {

// Positions in ascending or descending order: NaN as the largest, equal numbers in their order.
std::vector<std::int64_t> positions_of(std::vector<double> const& x, bool descending) {
  std::vector<std::int64_t> r(x.size());
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<std::int64_t>(i);
  // No stable_sort: that of libstdc++ 12 is made of what clang warns of.
  auto const before = [](double a, double b) { return a < b || (b != b && a == a); };
  std::sort(r.begin(), r.end(), [&](std::int64_t i, std::int64_t j) {
    double const a = x[static_cast<std::size_t>(descending ? j : i)],
                 b = x[static_cast<std::size_t>(descending ? i : j)];
    return before(a, b) || (!before(b, a) && i < j);
  });
  return r;
}

}  // namespace

TEST_CASE("long lines are sorted like short ones, of every dtype", "[ops]") {
  double const inf = std::numeric_limits<double>::infinity();
  for (DType const d : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8,
                        DType::i8, DType::boolean})
    for (index_t const n : {2, 63, 64, 65, 300, 5000})
      for (bool const descending : {false, true}) {
        Array wide = floor(uniform({n}, Key{static_cast<std::uint64_t>(n)}, -90, 90, DType::f64));
        if (d == DType::u8) wide = abs(wide);
        if (d == DType::i64) wide = wide * 4294967296.0 + wide;
        if (is_floating(d) && n > 60) {
          auto* const p = wide.data<double>();
          p[3] = p[40] = std::nan(""), p[7] = inf, p[8] = -inf, p[9] = 0.0, p[10] = -0.0, p[11] = 0.0;
        }
        Array const x = wide.to(d);
        INFO(name_of(d) << " " << n << " " << descending);
        auto const expected = positions_of(x.to_vector<double>(), descending);
        CHECK(argsort(x, 0, descending).to_vector<std::int64_t>() == expected);
        // Across rows, several of them side by side.
        Array const across = argsort(transpose(stack({x, x, x})), 0, descending);
        CHECK(slice(across, 1, 2, 3).to_vector<std::int64_t>() == expected);
      }
}

namespace {

// The position of the extreme of so many first numbers: of NaN the first, or with `last` the last; so of equal ones.
std::int64_t extreme_of(std::vector<double> const& x, std::size_t n, bool smallest, bool last) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < n; ++i) {
    bool const was_nan = std::isnan(x[best]), is_nan = std::isnan(x[i]);
    bool const better = smallest ? x[i] < x[best] : x[i] > x[best];
    if (was_nan ? is_nan && last : is_nan || better || (last && x[i] == x[best])) best = i;
  }
  return static_cast<std::int64_t>(best);
}

}  // namespace

TEST_CASE("extremes of long lines and of many lines, of every dtype", "[ops]") {
  for (DType const d : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8,
                        DType::i8, DType::boolean})
    for (index_t const n : {1, 64, 65, 150, 700})
      for (bool const smallest : {false, true}) {
        // In some lines the extreme is met several times, in some there are NaN.
        Array wide = floor(uniform({n, 67}, Key{static_cast<std::uint64_t>(n)}, -60, 60, DType::f64));
        if (d == DType::u8) wide = abs(wide);
        if (is_floating(d) && n > 60)
          for (index_t const i : {0, 3, 40, 66})
            wide.data<double>()[(i * 7 % n) * 67 + i] = wide.data<double>()[(n - 1) * 67 + i] = NAN;
        Array const x = wide.to(d);
        INFO(name_of(d) << " " << n << " " << smallest);
        std::vector<std::int64_t> ends, running;
        for (index_t j = 0; j < 67; ++j) {
          std::vector<double> const line = select(x, 1, j).to_vector<double>();
          ends.push_back(extreme_of(line, line.size(), smallest, false));
          for (std::size_t i = 1; i <= line.size(); ++i)
            running.push_back(extreme_of(line, i, smallest, true));
        }
        auto const at = [&](Array const& y, int axis) {
          return (smallest ? argmin(y, axis) : argmax(y, axis)).to_vector<std::int64_t>();
        };
        auto const up_to = [&](Array const& y, int axis) {
          return std::get<1>(smallest ? cummin(y, axis) : cummax(y, axis));
        };
        Array const rows = transpose(x).contiguous();
        CHECK(at(x, 0) == ends);     // lines side by side
        CHECK(at(rows, 1) == ends);  // in memory
        CHECK(at(flip(flip(rows, {1}), {1}), 1) == ends);
        CHECK(at(select(stack({rows, rows}, 2), 2, 1), 1) == ends);
        CHECK(transpose(up_to(x, 0)).to_vector<std::int64_t>() == running);
        CHECK(up_to(rows, 1).to_vector<std::int64_t>() == running);
      }
}

TEST_CASE("extremes of many short rows", "[ops]") {
  // Whole numbers, so that equal ones meet; some NaN, and both zeros.
  for (DType const d : {DType::f32, DType::f64, DType::f16, DType::i32})
    for (index_t const n : {1, 2, 3, 7, 8, 15, 16, 17})
      for (index_t const rows : {1, 2, 63, 64, 150}) {
        CAPTURE(name_of(d), n, rows);
        Array x =
            cast_to(randint({rows, n}, Key{static_cast<std::uint64_t>(17 * n + rows)}, -2, 3), DType::f64);
        for (index_t i = 0; is_floating(d) && i < x.size(); ++i) {
          double& v = x.data<double>()[i];
          if (v == 0 && i % 2 == 0) v = -0.0;
          if (i % 41 == 40) v = NAN;
        }
        Array const y = cast_to(x, d);
        for (bool const smallest : {false, true}) {
          Array const extreme = smallest ? min(y, 1) : max(y, 1),
                      place = smallest ? argmin(y, 1) : argmax(y, 1);
          bool all = true;
          for (index_t r = 0; r < rows; ++r) {
            double const* const row = x.data<double>() + r * n;
            index_t best = 0;
            for (index_t i = 1; i < n; ++i)
              if (row[best] == row[best] && !(smallest ? row[i] >= row[best] : row[i] <= row[best])) best = i;
            double const got = suite::at(extreme, r);
            bool const same = got == row[best] || (got != got && row[best] != row[best]);
            all = all && same && static_cast<index_t>(suite::at(place, r)) == best;
          }
          CHECK(all);
          // Rows that do not lie side by side, and their transpose.
          CHECK(array_equal(
              cast_to(place, DType::f64),
              cast_to(smallest ? argmin(transpose(y).contiguous(), 0) : argmax(transpose(y).contiguous(), 0),
                      DType::f64)));
        }
      }
}
TEST_CASE("positions of many elements", "[ops]") {
  Array const x = uniform({37, 5, 21}, Key{3}) < 0.03;
  std::vector<std::int64_t> expected;
  for_indices(x.shape(), [&](index_t const* i) {
    if (value_at(x, i) != 0) expected.insert(expected.end(), i, i + 3);
  });
  CHECK(expected.size() > 150);
  CHECK(nonzero(x).to_vector<std::int64_t>() == expected);
  CHECK(masked_select(arange(37 * 5 * 21).reshape({37, 5, 21}), x).to_vector<std::int64_t>() ==
        nonzero(flatten(x)).to_vector<std::int64_t>());
  CHECK(nonzero(from<float>({0, NAN, -0.0F})).to_vector<std::int64_t>() == std::vector<std::int64_t>{1});
  CHECK(any(from<float>({0, NAN})).item() == 1);
  CHECK(all(from<float>({NAN, -2})).item() == 1);
  CHECK(any(zeros({0})).item() == 0);
  CHECK(all(zeros({0})).item() == 1);
}

}  // namespace tests::ops_order
