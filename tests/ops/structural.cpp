// SPDX-License-Identifier: BSL-1.0
// Ops that are not elementwise: reductions, views, products, indexing, joining, and the composites made of them.
// Values against plain loops in double over index tuples; rules as for every op (ops/suite.hpp).
#include "ops/places.hpp"

#include <dfdx/program/transforms.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/one_hot.hpp>

#include <catch2/matchers/catch_matchers.hpp>

#include <array>
#include <list>
#include <vector>

namespace tests::ops_structural {

using namespace suite;

TEST_CASE("reductions of nothing", "[ops]") {
  Array const x = zeros({3, 0});
  CHECK(array_equal(sum<1>(x), zeros({3})));
  CHECK(array_equal(prod<1>(x), ones({3})));
  CHECK(sum<0>(x).shape() == make_shape(0));
  CHECK(max<0>(x).shape() == make_shape(0));
  CHECK_THROWS_AS(max<1>(x), error);
  CHECK_THROWS_AS(argmax<1>(x), error);
  CHECK(softmax<1>(x).shape() == make_shape(3, 0));
  CHECK(log_softmax<1>(x).shape() == make_shape(3, 0));
  CHECK(at(logsumexp<1>(x), 0) == -HUGE_VAL);
  CHECK_THROWS_AS(sum<2>(x), error);
  CHECK_THROWS_AS(sum<-3>(x), error);
}

TEST_CASE("logsumexp beside infinities", "[ops]") {
  double const inf = HUGE_VAL;
  for (DType d : {DType::f32, DType::f64}) {
    Array x = cast_to(from({-inf, -inf, 2.0, -inf, 3.0, 1e30}, {3, 2}), d);
    x.requires_grad(true);
    Array y = logsumexp<1>(x);
    CHECK(allclose(y, cast_to(from({-inf, 2.0, 1e30}), d)));
    sum(y).backward();
    CHECK(array_equal(x.grad(), cast_to(from({0.0, 0.0, 1.0, 0.0, 0.0, 1.0}, {3, 2}), d)));
    x = cast_to(from({inf, 179.0}), d);
    x.requires_grad(true);
    y = logsumexp(x);
    CHECK(at(y, 0) == inf);
    y.backward();
    CHECK(at(x.grad(), 1) == 0);
  }
  Tensor<float, 2, 2> const rows{{-HUGE_VALF, -HUGE_VALF}, {1, 2}};
  auto const g = grad([](auto const& v) { return sum(logsumexp<1>(v)); })(rows);
  CHECK((g(0, 0) == 0 && g(0, 1) == 0));
  CHECK(std::fabs(g(1, 0) + g(1, 1) - 1) < 1e-6f);
}

TEST_CASE("mean, var, std", "[ops]") {
  for (Shape const& s : {make_shape(7), make_shape(3, 5), make_shape(2, 3, 4)}) {
    index_t const last = index_t{1} << (s.rank - 1);
    auto const n = static_cast<double>(s[s.rank - 1]);
    Array const x = draw(s, {-2, 2}, 3, DType::f64);
    auto const mean_of = [&](V v) {
      return reduced(v[0], last, true, 0, [](double a, double b) { return a + b; }) / n;
    };
    auto const var_of = [&](V v, double correction) {
      Array const m = broadcast_to(mean_of(v), v[0].shape());
      Array squares = doubles(s);
      for_indices(
          s, [&](index_t const* i) { cell(squares, i) = std::pow(value_at(v[0], i) - value_at(m, i), 2); });
      return reduced(squares, last, false, 0, [](double a, double b) { return a + b; }) / (n - correction);
    };
    check_op("mean", [](V v) { return mean<-1>(v[0], keepdim); }, mean_of, {x}, false, true);
    check_op("var", [](V v) { return var<-1>(v[0]); }, [&](V v) { return var_of(v, 1); }, {x}, false, true);
    check_op(
        "var 0", [](V v) { return var<-1>(v[0], 0); }, [&](V v) { return var_of(v, 0); }, {x}, false, true);
    check_op(
        "std", [](V v) { return dfdx::std<-1>(v[0]); },
        [&](V v) {
          Array const r = var_of(v, 1);
          for_indices(r.shape(), [&](index_t const* i) { cell(r, i) = std::sqrt(cell(r, i)); });
          return r;
        },
        {x}, false, true);
  }
  check_op(
      "mean of all", [](V v) { return mean(v[0]); },
      [](V v) { return reduced(v[0], 3, false, 0, [](double a, double b) { return a + b; }) / 15.0; },
      {draw(make_shape(3, 5), {}, 4, DType::f64)}, false, true);
}

TEST_CASE("reductions of integers and truths", "[ops]") {
  Array const bytes = full({2, 3}, 200, DType::u8), truths = full({2, 3}, 1, DType::boolean);
  CHECK(array_equal(sum(bytes), full({}, 1200, DType::i64)));
  CHECK(array_equal(prod(bytes, 0), full({3}, 40000, DType::i64)));
  CHECK(array_equal(mean(bytes, {1}), full({2}, 200)));
  CHECK(var(bytes).item() == 0);
  CHECK(array_equal(sum(truths, 1), full({2}, 3, DType::i64)));
  CHECK(array_equal(mean(truths), full({}, 1)));
  CHECK(sum(full({3}, 1 << 30, DType::i32)).item() == 3.0 * (1 << 30));
  CHECK(array_equal(cumsum(truths, 1), cumsum(full({2, 3}, 1, DType::i64), 1)));
  CHECK(cumprod(bytes, 1).at<std::int64_t>({0, 2}) == 8000000);
}

TEST_CASE("reductions of 16 bits do not overflow on their way", "[ops]") {
  for (DType d : {DType::f16, DType::bf16}) {
    CHECK(mean(full({70000}, 1, d)).item() == 1);
    Array const x = cast_to(from({300.0f, -300.0f, 300.0f, -300.0f}), d);
    CHECK(norm(x).item() == cast_to(from({600.0f}), d).item());
    CHECK(dfdx::std(x, {}, 0).item() == x[0].item());
    CHECK(normalize(x, 2, 0)[0].item() == 0.5);
  }
}

TEST_CASE("no axes are all of them", "[ops]") {
  Array const a = randn({2, 3}, Key{1});
  CHECK(array_equal(sum(a, {}), sum(a)));
  CHECK(array_equal(max(a, {}, true), max(a, keepdim)));
  CHECK(array_equal(var(a, {}, 0), var<0, 1>(a, 0)));
  CHECK(array_equal(dfdx::std(a, {}, 1, true), dfdx::std(a, keepdim)));
  CHECK(array_equal(logsumexp(a, {}), logsumexp(a)));
}

TEST_CASE("axes of scalars, and axes named twice", "[ops]") {
  Array const s = full({}, 2), a = full({2, 3}, 2);
  for (int axis : {0, -1}) {
    CHECK(sum(s, axis).item() == 2);
    CHECK(argmax(s, axis).item() == 0);
    CHECK(softmax(s, axis).item() == 1);
    CHECK(log_softmax(s, axis).item() == 0);
    CHECK(logsumexp(s, axis).item() == 2);
  }
  CHECK_THROWS_WITH(sum(s, 1), "sum: axis 1 out of range for []");
  CHECK_THROWS_WITH(sum(a, {0, -2}), "sum: axis -2 named twice for [2, 3]");
  CHECK_THROWS_WITH(flip(a, {1, 1}), "flip: axis 1 named twice for [2, 3]");
  CHECK_THROWS_WITH(logsumexp(a, 2), "logsumexp: axis 2 out of range for [2, 3]");
}

TEST_CASE("var and std of few elements", "[ops]") {
  CHECK(std::isnan(var(zeros({0})).item()));
  CHECK(std::isnan(var(zeros({1})).item()));
  Array x = full({4}, 3);
  x.requires_grad(true);
  Array const y = dfdx::std(x);
  CHECK(y.item() == 0);
  y.backward();
  CHECK(array_equal(x.grad(), zeros({4})));
}

TEST_CASE("sizes that cannot be are refused", "[ops]") {
  index_t const big = index_t{1} << 32;
  CHECK_THROWS_WITH(zeros({big, big}), "array: size overflows: [4294967296, 4294967296]");
  CHECK_THROWS_WITH(expand(full({}, 1), {big, big}), "expand: size overflows: [4294967296, 4294967296]");
  CHECK(expand(full({}, 1), {big, 4}).size() == 4 * big);
}

TEST_CASE("argmax and argmin", "[ops]") {
  Array const x = from<double>({1, 5, 5, -2, 0, -2, 3, 3}, {2, 4});
  CHECK(array_equal(argmax<1>(x), from<std::int64_t>({1, 2})));
  CHECK(array_equal(argmin<1>(x), from<std::int64_t>({3, 1})));
  CHECK(array_equal(argmax<0>(x), from<std::int64_t>({0, 0, 0, 1})));
  CHECK(argmax<0>(x, keepdim).shape() == make_shape(1, 4));
  Array const nan = from<double>({1, std::nan(""), 7});
  CHECK(argmax(nan).item<std::int64_t>() == 1);
  CHECK(argmax(from<double>({1, std::nan(""), 7, std::nan("")})).item<std::int64_t>() ==
        1);  // the first of several
  CHECK(argmin(nan).item<std::int64_t>() == 1);
  for (DType d : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8, DType::i8})
    for (Layout layout : {Layout::turned, Layout::sparse}) {
      Array const y = laid_out(draw(make_shape(3, 7), {0, 9}, 8, d), layout);
      Array const found = argmax<1>(y);
      for (index_t i = 0; i < 3; ++i)
        for (index_t j = 0; j < 7; ++j) {
          index_t const at_best[] = {i, found.at<std::int64_t>({i})}, here[] = {i, j};
          REQUIRE(value_at(y, at_best) >= value_at(y, here));
          if (j < at_best[1]) REQUIRE(value_at(y, at_best) > value_at(y, here));
        }
    }
}

TEST_CASE("views", "[ops]") {
  Array const cube = draw(make_shape(2, 3, 4), {}, 5, DType::f64),
              row = draw(make_shape(1, 4), {}, 6, DType::f64);
  auto const moved = [](Shape const& to, auto const& place) {
    return [=](V v) {
      Array r = doubles(to);
      for_indices(to, [&](index_t const* i) {
        index_t from_index[max_rank] = {};
        place(i, from_index);
        cell(r, i) = value_at(v[0], from_index);
      });
      return r;
    };
  };
  check_op(
      "reshape", [](V v) { return reshape(v[0], {6, 4}); },
      moved(make_shape(6, 4),
            [](index_t const* i, index_t* j) { j[0] = i[0] / 3, j[1] = i[0] % 3, j[2] = i[1]; }),
      {cube}, true, true);
  check_op(
      "reshape -1", [](V v) { return reshape(v[0], {4, -1}); },
      moved(make_shape(4, 6),
            [](index_t const* i, index_t* j) {
              index_t const n = i[0] * 6 + i[1];
              j[0] = n / 12, j[1] = n / 4 % 3, j[2] = n % 4;
            }),
      {cube}, true, true);
  check_op(
      "permute", [](V v) { return permute<2, 0, 1>(v[0]); },
      moved(make_shape(4, 2, 3), [](index_t const* i, index_t* j) { j[2] = i[0], j[0] = i[1], j[1] = i[2]; }),
      {cube}, true, true);
  check_op(
      "transpose", [](V v) { return transpose(v[0]); },
      moved(make_shape(2, 4, 3), [](index_t const* i, index_t* j) { j[0] = i[0], j[2] = i[1], j[1] = i[2]; }),
      {cube}, true, true);
  check_op(
      "expand", [](V v) { return expand<3, 2, 4>(v[0]); },
      moved(make_shape(3, 2, 4), [](index_t const* i, index_t* j) { j[0] = 0, j[1] = i[2]; }), {row}, true,
      true);
  check_op(
      "slice", [](V v) { return slice<2, 1, 4, 2>(slice<1, -2, 3>(v[0])); },
      moved(make_shape(2, 2, 2),
            [](index_t const* i, index_t* j) { j[0] = i[0], j[1] = i[1] + 1, j[2] = 1 + 2 * i[2]; }),
      {cube}, true, true);
  check_op(
      "slice to nothing", [](V v) { return slice<1, 2, 2>(v[0]); },
      moved(make_shape(2, 0, 4), [](index_t const*, index_t*) {}), {cube}, true, false);
  check_op(
      "squeeze and unsqueeze", [](V v) { return unsqueeze<-1>(squeeze<0>(v[0])); },
      moved(make_shape(4, 1), [](index_t const* i, index_t* j) { j[0] = 0, j[1] = i[0]; }), {row}, true,
      true);
  // Views of memory share it; a reshape copies only what strides cannot say.
  CHECK(transpose(cube).bytes() == cube.bytes());
  CHECK(reshape(cube, {24}).bytes() == cube.bytes());
  CHECK(reshape(transpose(cube), {24}).bytes() != cube.bytes());
  CHECK(slice<1, 1, 3>(cube).bytes() != cube.bytes());
  CHECK(slice<1, 1, 3>(cube).storage() == cube.storage());
  CHECK(expand<2, 3, 4>(slice<0, 0, 1>(cube)).storage() == cube.storage());
  CHECK_THROWS_AS(slice_axis(cube, 0, 1, cube.shape()[0]), error);
  CHECK_THROWS_WITH(reshape(cube, {5, 5}), "reshape: cannot view [2, 3, 4] as [5, 5]");
  CHECK_THROWS_WITH(reshape(cube, {-1, 7}), "reshape: cannot view [2, 3, 4] as [-1, 7]");
  CHECK_THROWS_WITH(reshape(cube, {-1, -1}), "reshape: cannot view [2, 3, 4] as [-1, -1]");
  CHECK_THROWS_WITH(reshape(cube, {-2, 12}), "reshape: cannot view [2, 3, 4] as [-2, 12]");
  CHECK_THROWS_WITH(reshape(cube, {-24}), "reshape: cannot view [2, 3, 4] as [-24]");
  CHECK_THROWS_WITH(reshape(cube, {index_t{1} << 40, index_t{1} << 40}),
                    "reshape: cannot view [2, 3, 4] as [1099511627776, 1099511627776]");
  CHECK_THROWS_AS((expand<2, 3, 5>(cube)), error);
  CHECK_THROWS_AS((permute<0, 0, 1>(cube)), error);
}

TEST_CASE("pad, concat, stack", "[ops]") {
  Array const x = draw(make_shape(2, 3), {}, 5, DType::f64), y = draw(make_shape(2, 4), {}, 6, DType::f64);
  check_op(
      "pad", [](V v) { return pad<2, 1>(v[0], 7.0); },
      [](V v) {
        Array const r = full({2, 6}, 7, DType::f64);
        for_indices(v[0].shape(), [&](index_t const* i) {
          index_t const to[] = {i[0], i[1] + 2};
          cell(r, to) = value_at(v[0], i);
        });
        return r;
      },
      {x}, true, true);
  check_op(
      "pad with gaps", [](V v) { return pad_axis(v[0], 0, 1, 0, 2); },
      [](V v) {
        Array const r = full({5, 3}, 0, DType::f64);
        for_indices(v[0].shape(), [&](index_t const* i) {
          index_t const to[] = {1 + 3 * i[0], i[1]};
          cell(r, to) = value_at(v[0], i);
        });
        return r;
      },
      {x}, true, true);
  check_op(
      "concat", [](V v) { return concat<1>(v[0], v[1], v[0]); },
      [](V v) {
        Array const r = full({2, 10}, 0, DType::f64);
        for_indices(r.shape(), [&](index_t const* i) {
          index_t const in_x[] = {i[0], i[1] < 3 ? i[1] : i[1] - 7}, in_y[] = {i[0], i[1] - 3};
          cell(r, i) = i[1] >= 3 && i[1] < 7 ? value_at(v[1], in_y) : value_at(v[0], in_x);
        });
        return r;
      },
      {x, y}, true, true);
  check_op(
      "stack", [](V v) { return stack<1>(v[0], v[1]); },
      [](V v) {
        Array const r = full({2, 2, 3}, 0, DType::f64);
        for_indices(r.shape(), [&](index_t const* i) {
          index_t const in[] = {i[0], i[2]};
          cell(r, i) = value_at(v[static_cast<std::size_t>(i[1])], in);
        });
        return r;
      },
      {x, draw(make_shape(2, 3), {}, 9, DType::f64)}, true, true);
  CHECK_THROWS_AS(concat<0>(x, y), error);
}

TEST_CASE("values are joined along an axis that stands behind them, and in containers", "[ops]") {
  Tensor<float, 2, 3> const x{{0, 1, 2}, {3, 4, 5}}, y{{9, 8, 7}, {6, 5, 4}};
  for (int axis : {0, 1, -1}) {
    CHECK(array_equal(concat(x, y, x, axis), concat({x, y, x}, axis)));
    CHECK(array_equal(cat(x, y, axis), concat({x, y}, axis)));
    CHECK(array_equal(stack(x, y, axis), stack({x, y}, axis)));
  }
  CHECK(array_equal(concat(x, Array(y), 1), concat<1>(x, y)));
  std::vector<Tensor<float, 2, 3>> const typed{x, y};
  CHECK(array_equal(concat(typed, 1), concat<1>(x, y)));
  CHECK(array_equal(cat(std::array{x, y}), concat<0>(x, y)));
  CHECK(array_equal(stack(typed, 2), stack<2>(x, y)));
  CHECK(array_equal(stack(std::list<Array>{x, y}), stack<0>(x, y)));
  Array a = Tensor<float, 2, 3>{{0, 1, 2}, {3, 4, 5}};
  a.requires_grad(true);
  sum(square(concat(a, a, 1))).backward();
  CHECK(array_equal(a.grad(), 4 * x));
  CHECK_THROWS_WITH(concat(x, y, 2), "concat: axis 2 out of range for [2, 3]");
  CHECK_THROWS_WITH(stack(x, y, 3), "stack: axis 3 out of range for [2, 3]");
}

TEST_CASE("cat is concat by PyTorch's name", "[ops]") {
  auto const x = Tensor<float, 2, 1>::from({1, 2}), y = Tensor<float, 2, 1>::from({3, 4});
  auto const beside = Tensor<float, 2, 2>::from({1, 3, 2, 4});
  auto const below = Tensor<float, 4, 1>::from({1, 2, 3, 4});
  STATIC_CHECK(std::is_same_v<decltype(cat<1>(x, y)), Tensor<float, 2, 2>>);
  CHECK(array_equal(cat<1>(x, y), beside));
  CHECK(array_equal(cat(x, y), below));
  std::vector<Array> const list = {x, y};
  CHECK(array_equal(cat(list, -1), beside));
  CHECK(array_equal(cat(list), below));
  CHECK(array_equal(cat({x, y}, 1), beside));
  CHECK(array_equal(cat({Array(x), Array(y)}), below));
  CHECK_THROWS_WITH(cat({Array(x), ones({3, 2})}, 1), "concat: shapes differ off axis 1: [2, 1] x [3, 2]");
}

TEST_CASE("matmul in all cases of NumPy", "[ops]") {
  struct Case {
    Shape a, b, result;
  };
  std::vector<Case> const cases = {
      {make_shape(3, 5), make_shape(5, 2), make_shape(3, 2)},
      {make_shape(3, 5), make_shape(5), make_shape(3)},
      {make_shape(5), make_shape(5, 2), make_shape(2)},
      {make_shape(5), make_shape(5), make_shape()},
      {make_shape(1, 1), make_shape(1, 1), make_shape(1, 1)},
      {make_shape(4, 3, 5), make_shape(5, 2), make_shape(4, 3, 2)},
      {make_shape(4, 3, 5), make_shape(4, 5, 2), make_shape(4, 3, 2)},
      {make_shape(3, 5), make_shape(4, 5, 2), make_shape(4, 3, 2)},
      {make_shape(2, 1, 3, 2), make_shape(3, 2, 2), make_shape(2, 3, 3, 2)},
      {make_shape(4, 3, 5), make_shape(5), make_shape(4, 3)},
      {make_shape(3, 0), make_shape(0, 2), make_shape(3, 2)},
      {make_shape(0, 3), make_shape(3, 2), make_shape(0, 2)},
  };
  for (Case const& c : cases) {
    bool const row = c.a.rank == 1, column = c.b.rank == 1;
    auto const reference = [&](V v) {
      Array const r = doubles(c.result);
      for_indices(c.result, [&](index_t const* i) {
        int const n = c.result.rank;
        index_t const m = row ? 0 : i[n - 1 - (column ? 0 : 1)], q = column ? 0 : i[n - 1];
        int const batches = n - (row ? 0 : 1) - (column ? 0 : 1);
        index_t ia[max_rank] = {}, ib[max_rank] = {};
        auto const place = [&](Shape const& s, index_t* to) {
          for (int d = 0; d < s.rank - 2; ++d) {
            int const from_axis = batches - (s.rank - 2) + d;
            to[d] = s[d] == 1 ? 0 : i[from_axis];
          }
        };
        place(c.a, ia);
        place(c.b, ib);
        double total = 0;
        for (index_t k = 0; k < c.a[c.a.rank - 1]; ++k) {
          if (!row) ia[c.a.rank - 2] = m;
          ia[c.a.rank - 1] = k;
          ib[column ? 0 : c.b.rank - 2] = k;
          if (!column) ib[c.b.rank - 1] = q;
          total += value_at(v[0], ia) * value_at(v[1], ib);
        }
        cell(r, i) = total;
      });
      return r;
    };
    INFO("ranks " << c.a.rank << " x " << c.b.rank);
    check_op(
        "matmul", [](V v) { return matmul(v[0], v[1]); }, reference,
        {draw(c.a, {-2, 2}, 1, DType::f64), draw(c.b, {-2, 2}, 2, DType::f64)}, c.a.rank < 3, true);
  }
  CHECK_THROWS_WITH(matmul(zeros({32, 784}), zeros({128, 10})),
                    "matmul: inner dimensions differ: [32, 784] x [128, 10]");
  CHECK_THROWS_AS(matmul(zeros({2, 3, 4}), zeros({3, 4, 5})), error);
  CHECK_THROWS_AS(matmul(zeros({}), zeros({3})), error);
}

TEST_CASE("take, gather, scatter_add, one_hot", "[ops]") {
  Array const table = draw(make_shape(5, 3), {}, 1, DType::f64);
  for (DType index_type : {DType::i32, DType::i64, DType::u8}) {
    Array const rows = cast_to(from<std::int64_t>({4, 0, 4, 2}, {2, 2}), index_type);
    check_op(
        "take", [](V v) { return take(v[0], v[1]); },
        [](V v) {
          Array const r = doubles(make_shape(2, 2, 3));
          for_indices(r.shape(), [&](index_t const* i) {
            index_t const from_index[] = {static_cast<index_t>(value_at(v[1], i)), i[2]};
            cell(r, i) = value_at(v[0], from_index);
          });
          return r;
        },
        {table, rows}, true, true);
    Array const places = cast_to(from<std::int64_t>({0, 2, 2, 1, 1, 0, 0, 0}, {4, 2}), index_type);
    check_op(
        "gather", [](V v) { return gather<1>(v[0], v[1]); },
        [](V v) {
          Array const r = doubles(make_shape(4, 2));
          for_indices(r.shape(), [&](index_t const* i) {
            index_t const from_index[] = {i[0], static_cast<index_t>(value_at(v[1], i))};
            cell(r, i) = value_at(v[0], from_index);
          });
          return r;
        },
        {table, places}, true, true);
    check_op(
        "scatter_add", [](V v) { return scatter_add<1>(v[0], v[1], v[2]); },
        [](V v) {
          Array const r = doubles(make_shape(5, 3));
          for_indices(r.shape(), [&](index_t const* i) { cell(r, i) = value_at(v[0], i); });
          for_indices(make_shape(4, 2), [&](index_t const* i) {
            index_t const to[] = {i[0], static_cast<index_t>(value_at(v[1], i))};
            cell(r, to) += value_at(v[2], i);
          });
          return r;
        },
        {table, places, draw(make_shape(4, 2), {}, 2, DType::f64)}, true, true);
    // Of a larger source the rest does not count.
    check_op(
        "scatter_add", [](V v) { return scatter_add(v[0], 1, v[1], v[2]); },
        [](V v) { return scatter_add<1>(v[0], v[1], slice(slice(v[2], 0, 0, 4), 1, 0, 2)); },
        {table, places, draw(make_shape(5, 3), {}, 2, DType::f64)}, true, true);
    Array const hot = one_hot<5, double>(rows);
    REQUIRE(hot.shape() == make_shape(2, 2, 5));
    for_indices(hot.shape(), [&](index_t const* i) {
      CHECK((value_at(hot, i) != 0) == (value_at(rows, i) == static_cast<double>(i[2])));
    });
  }
  CHECK_THROWS_WITH(take(table, from<std::int32_t>({1, 5})),
                    "take: index 5 out of range for axis 0 of [5, 3]");
  CHECK_THROWS_AS(take(table, from<std::int32_t>({-1})), error);
  // Each error names the function that was called, and says the shape that it was given.
  Array const at_9 = from<std::int64_t>({9}), beyond = from<std::int64_t>({9, 9, 9}, {1, 3});
  CHECK_THROWS_WITH(index_select(table, 0, at_9), "index_select: index 9 out of range for axis 0 of [5, 3]");
  CHECK_THROWS_WITH(index_select(table, 1, at_9), "index_select: index 9 out of range for axis 1 of [5, 3]");
  CHECK_THROWS_WITH(index_add(table, 1, at_9, ones({5, 1}, table.dtype())),
                    "index_add: index 9 out of range for axis 1 of [5, 3]");
  CHECK_THROWS_WITH(embedding(at_9, table), "embedding: index 9 out of range for axis 0 of [5, 3]");
  CHECK_THROWS_WITH(embedding(beyond, table), "embedding: index 9 out of range for axis 0 of [5, 3]");
  CHECK_THROWS_WITH(embedding(table, table),
                    "embedding: integer index required, got " + std::string(name_of(table.dtype())));
  CHECK_THROWS_WITH(scatter(table, 0, beyond, ones({1, 3}, table.dtype())),
                    "scatter: index 9 out of range for axis 0 of [5, 3]");
  CHECK_THROWS_WITH(scatter_add(table, 0, beyond, ones({1, 3}, table.dtype())),
                    "scatter_add: index 9 out of range for axis 0 of [5, 3]");
  CHECK_THROWS_WITH(index_add(table, 0, at_9, ones({1, 3}, table.dtype())),
                    "index_add: index 9 out of range for axis 0 of [5, 3]");
  CHECK_THROWS_WITH(take_along(table, beyond, 0), "take_along: index 9 out of range for axis 0 of [5, 3]");
  CHECK(array_equal(scatter(zeros({3}), 0, from<std::int64_t>({2, 0}), from<float>({5, 6, 7})),
                    from<float>({6, 0, 5})));
  CHECK_THROWS_WITH(scatter(zeros({3}), 0, from<std::int64_t>({2, 0}), ones({1})),
                    "scatter: index [2] is larger than source [1]");
  CHECK_THROWS_WITH(stack({ones({2}), ones({3})}), "stack: shapes differ: [2] x [3]");
  CHECK_THROWS_WITH(stack({ones({2}), arange(2)}), "stack: one dtype required, got f32 x i64");
  CHECK_THROWS_WITH(stack({ones({2})}, 2), "stack: axis 2 out of range for [2]");
  CHECK_THROWS_AS(gather<0>(table, from<std::int64_t>({9}, {1, 1})), error);
  // The transpose of take, over rows that are not dense.
  Array const rows = draw(make_shape(4, 3), {-2, 2}, 5, DType::f64), which = from<std::int32_t>({1, 0, 1, 2});
  Array const dense = bind<op::rows_add>(Attrs{{3}}, rows, which);
  for (Layout layout : {Layout::turned, Layout::sparse})
    CHECK(array_equal(bind<op::rows_add>(Attrs{{3}}, laid_out(rows, layout), which), dense));
  // An index may be longer than the table along its own axis only.
  Array const longer = zeros({table.shape()[0] + 1, 1}, DType::i64);
  CHECK(gather<0>(table, longer).shape() == longer.shape());
  CHECK_THROWS_AS(gather<1>(table, longer), error);
  CHECK_THROWS_AS(take(table, table), error);
  Array const places = zeros({4, 2}, DType::i64);
  CHECK_THROWS_WITH(scatter_add<1>(table, places, zeros({3, 2}, DType::f64)),
                    "scatter_add: index [4, 2] is larger than source [3, 2]");
  CHECK_THROWS_WITH(scatter_add<1>(table, places, zeros({4, 2}, DType::f32)),
                    "scatter_add: one dtype required, got f64 and f32");
  CHECK_THROWS_WITH(scatter_add<2>(table, places, zeros({4, 2}, DType::f64)),
                    "scatter_add: axis 2 out of range for [5, 3]");
}

TEST_CASE("one_hot and embedding refuse what is no place", "[ops]") {
  Array const i = from<std::int64_t>({0, 3}), w = ones({4, 2});
  CHECK_THROWS_WITH(one_hot(i, 3), "one_hot: index 3 out of range for 3 places");
  CHECK_THROWS_WITH(one_hot<2>(-i), "one_hot: index -3 out of range for 2 places");
  CHECK_THROWS_WITH(one_hot(w, 3), "one_hot: integer index required, got f32");
  CHECK_THROWS_WITH(embedding(i, w, 4), "embedding: padding 4 out of range for axis 0 of [4, 2]");
  CHECK_THROWS_WITH(embedding(i, w, -5), "embedding: padding -5 out of range for axis 0 of [4, 2]");
  Array table = ones({4, 2});
  table.requires_grad(true);
  sum(embedding(i, table, -1)).backward();
  CHECK(table.grad().at<float>({0, 0}) == 1);
  CHECK(table.grad().at<float>({3, 0}) == 0);
}

TEST_CASE("composites", "[ops]") {
  CHECK_THROWS_WITH(cross_entropy(zeros({2, 5, 4}), zeros({2, 3}, DType::i32)),
                    "cross_entropy: labels [2, 3] do not fit scores [2, 5, 4]");
  Array const x = draw(make_shape(3, 5), {-3, 3}, 1, DType::f64);
  auto const over_rows = [](auto const& f) {
    return [=](V v) {
      Array const r = doubles(make_shape(3, 5));
      for (index_t i = 0; i < 3; ++i) {
        double row[5], out[5];
        for (index_t j = 0; j < 5; ++j) row[j] = at(slice_axis(v[0], 0, i, 1), j);
        f(row, out);
        for (index_t j = 0; j < 5; ++j) r.data<double>()[i * 5 + j] = out[j];
      }
      return r;
    };
  };
  auto const soft = [](double const* row, double* out) {
    double total = 0;
    for (int j = 0; j < 5; ++j) total += out[j] = std::exp(row[j]);
    for (int j = 0; j < 5; ++j) out[j] /= total;
  };
  auto const log_soft = [soft](double const* row, double* out) {
    soft(row, out);
    for (int j = 0; j < 5; ++j) out[j] = std::log(out[j]);
  };
  check_op("softmax", [](V v) { return softmax<1>(v[0]); }, over_rows(soft), {x}, false, true);
  check_op(
      "softmax along 0", [](V v) { return softmax<0>(v[0]); },
      [&](V v) {
        Array const r = doubles(make_shape(3, 5));
        for_indices(r.shape(), [&](index_t const* i) {
          double total = 0;
          for (index_t k = 0; k < 3; ++k) total += std::exp(at(slice_axis(v[0], 0, k, 1), i[1]));
          cell(r, i) = std::exp(value_at(v[0], i)) / total;
        });
        return r;
      },
      {x}, false, true);
  check_op("log_softmax", [](V v) { return log_softmax<1>(v[0]); }, over_rows(log_soft), {x}, false, true);
  check_op(
      "logsumexp", [](V v) { return logsumexp<0, 1>(v[0]); },
      [](V v) {
        double total = 0;
        for_indices(v[0].shape(), [&](index_t const* i) { total += std::exp(value_at(v[0], i)); });
        return full({}, std::log(total), DType::f64);
      },
      {x}, false, true);
  check_op(
      "layer_norm", [](V v) { return layer_norm(v[0], v[1], v[2], 0.01); },
      [](V v) {
        Array const r = doubles(make_shape(3, 5));
        for_indices(r.shape(), [&](index_t const* i) {
          double mean = 0, var = 0;
          for (index_t j = 0; j < 5; ++j) mean += at(slice_axis(v[0], 0, i[0], 1), j) / 5;
          for (index_t j = 0; j < 5; ++j) var += std::pow(at(slice_axis(v[0], 0, i[0], 1), j) - mean, 2) / 5;
          cell(r, i) = (value_at(v[0], i) - mean) / std::sqrt(var + 0.01) * at(v[1], i[1]) + at(v[2], i[1]);
        });
        return r;
      },
      {x, draw(make_shape(5), {0.5, 2}, 2, DType::f64), draw(make_shape(5), {}, 3, DType::f64)}, false, true);
  Array const labels = from<std::int64_t>({4, 0, 2});
  check_op(
      "cross_entropy", [](V v) { return cross_entropy(v[0], v[1]); },
      [&](V v) {
        Array const p = over_rows(log_soft)(v);
        return full({}, -(at(p, 4) + at(p, 5) + at(p, 12)) / 3, DType::f64);
      },
      {x, labels}, false, true);
  check_op(
      "nll_loss", [](V v) { return nll_loss(v[0], v[1]); },
      [&](V v) { return full({}, -(at(v[0], 4) + at(v[0], 5) + at(v[0], 12)) / 3, DType::f64); }, {x, labels},
      false, false);
  check_op(
      "cross_entropy of places",
      [](V v) { return cross_entropy(permute<0, 2, 1>(reshape(v[0], {1, 3, 5})), v[1]); },
      [&](V v) {
        Array const p = over_rows(log_soft)(v);
        return full({}, -(at(p, 4) + at(p, 5) + at(p, 12)) / 3, DType::f64);
      },
      {x, reshape(labels, {1, 3})}, false, true);
  check_op(
      "mse_loss", [](V v) { return mse_loss(v[0], v[1]); },
      [](V v) {
        double total = 0;
        for_indices(v[0].shape(),
                    [&](index_t const* i) { total += std::pow(value_at(v[0], i) - value_at(v[1], i), 2); });
        return full({}, total / 15, DType::f64);
      },
      {x, draw(make_shape(3, 5), {}, 8, DType::f64)}, false, true);
  // Large scores stay finite.
  Array const large = from<float>({1e4f, -1e4f, 9990}, {1, 3});
  CHECK(std::isfinite(cross_entropy(large, from<std::int64_t>({1})).item<float>()));
  CHECK(at(softmax<1>(large), 0) > 0.99);
}

}  // namespace tests::ops_structural
