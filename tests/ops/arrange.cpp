// SPDX-License-Identifier: BSL-1.0
// Functions that lay elements out anew, against the place from which each element comes.
#include "ops/places.hpp"

#include <dfdx/vocabulary/one_hot.hpp>
#include <dfdx/vocabulary/split.hpp>

#include <catch2/matchers/catch_matchers.hpp>

namespace tests::ops_arrange {

namespace {

using namespace suite;

// Element i of the result is that at place(i) of the operand, or a number where place says so by returning false.
template <class Place>
auto from_places(Shape const& to, Place const& place, double otherwise = 0) {
  return [=](V v) {
    Array r = doubles(to);
    for_indices(to, [&](index_t const* i) {
      index_t j[max_rank] = {};
      cell(r, i) = place(i, j) ? value_at(v[0], j) : otherwise;
    });
    return r;
  };
}

template <class F, class Place>
void check_places(char const* name, F const& f, Shape const& from, Shape const& to, Place const& place,
                  double otherwise = 0) {
  check_op(
      name, [&](V v) { return f(v[0]); }, from_places(to, place, otherwise),
      {draw(from, {-2, 2}, 5, DType::f64)}, true, true);
}

index_t mod(index_t a, index_t n) { return (a % n + n) % n; }

}  // namespace

TEST_CASE("flip, roll, tile, repeat_interleave", "[ops]") {
  Shape const s = make_shape(2, 3, 4);
  check_places(
      "flip", [](Array const& x) { return flip(x, {0, -1}); }, s, s,
      [](index_t const* i, index_t* j) {
        j[0] = 1 - i[0], j[1] = i[1], j[2] = 3 - i[2];
        return true;
      });
  check_places(
      "roll", [](Array const& x) { return roll(x, {1, -6}, {0, 2}); }, s, s,
      [](index_t const* i, index_t* j) {
        j[0] = mod(i[0] - 1, 2), j[1] = i[1], j[2] = mod(i[2] + 6, 4);
        return true;
      });
  // To either side by shifts that are not half an extent, one of them longer than it.
  check_places(
      "roll of two axes", [](Array const& x) { return roll(x, {-1, 5}, {1, -1}); }, s, s,
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = mod(i[1] + 1, 3), j[2] = mod(i[2] - 5, 4);
        return true;
      });
  check_places(
      "roll backwards of all", [](Array const& x) { return roll(x, -29); }, s, s,
      [](index_t const* i, index_t* j) {
        index_t const n = mod(i[0] * 12 + i[1] * 4 + i[2] + 29, 24);
        j[0] = n / 12, j[1] = n / 4 % 3, j[2] = n % 4;
        return true;
      });
  check_places(
      "roll of all", [](Array const& x) { return roll<5>(x); }, s, s,
      [](index_t const* i, index_t* j) {
        index_t const n = mod(i[0] * 12 + i[1] * 4 + i[2] - 5, 24);
        j[0] = n / 12, j[1] = n / 4 % 3, j[2] = n % 4;
        return true;
      });
  check_places(
      "tile", [](Array const& x) { return tile(x, {3, 1, 2, 2}); }, s, make_shape(3, 2, 6, 8),
      [](index_t const* i, index_t* j) {
        j[0] = i[1], j[1] = i[2] % 3, j[2] = i[3] % 4;
        return true;
      });
  check_places(
      "tile of the last axes", [](Array const& x) { return tile<2>(x); }, s, make_shape(2, 3, 8),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = i[1], j[2] = i[2] % 4;
        return true;
      });
  check_places(
      "repeat_interleave", [](Array const& x) { return repeat_interleave(x, 2, 1); }, s, make_shape(2, 6, 4),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = i[1] / 2, j[2] = i[2];
        return true;
      });
  check_places(
      "repeat_interleave of all", [](Array const& x) { return repeat_interleave<3>(x); }, s, make_shape(72),
      [](index_t const* i, index_t* j) {
        j[0] = i[0] / 36, j[1] = i[0] / 12 % 3, j[2] = i[0] / 3 % 4;
        return true;
      });
  Array const nothing = zeros({0, 3});
  CHECK(flip(nothing, 0).shape() == make_shape(0, 3));
  CHECK(roll(nothing, 1, 0).shape() == make_shape(0, 3));
  CHECK(tile(nothing, {2, 0}).shape() == make_shape(0, 0));
  CHECK(repeat_interleave(nothing, 2).shape() == make_shape(0));
  CHECK(flip(full({}, 3), {}).item<float>() == 3);
  CHECK(tile(full({}, 3), 2).shape() == make_shape(2));
  CHECK_THROWS_WITH(flip(nothing, 2), "flip: axis 2 out of range for [0, 3]");
  CHECK_THROWS_WITH(roll(nothing, {1, 2}, 0), "roll: 2 shifts for 1 axes");
  CHECK_THROWS_WITH(tile(nothing, -1), "tile: negative number of repetitions");
}

TEST_CASE("pad in all modes", "[ops]") {
  Shape const s = make_shape(2, 3, 4);
  check_places(
      "constant", [](Array const& x) { return pad(x, {1, 2, 0, 1}, PadMode::constant, 7); }, s,
      make_shape(2, 4, 7),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = i[1], j[2] = i[2] - 1;
        return j[1] < 3 && j[2] >= 0 && j[2] < 4;
      },
      7);
  auto const at = [](PadMode mode, index_t i, index_t n) {
    if (mode == PadMode::circular) return mod(i, n);
    if (mode == PadMode::replicate) return i < 0 ? 0 : i >= n ? n - 1 : i;
    return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
  };
  for (PadMode mode : {PadMode::reflect, PadMode::replicate, PadMode::circular})
    check_places(
        "mode", [&](Array const& x) { return pad(x, {3, 2, 0, 2}, mode); }, s, make_shape(2, 5, 9),
        [&](index_t const* i, index_t* j) {
          j[0] = i[0], j[1] = at(mode, i[1], 3), j[2] = at(mode, i[2] - 3, 4);
          return true;
        });
  Array const x = zeros({2, 3});
  CHECK_THROWS_WITH(pad(x, {3, 0}, PadMode::reflect),
                    "pad: widths 3 and 0 are too large for axis 1 of [2, 3]");
  CHECK_THROWS_WITH(pad(x, {4, 0}, PadMode::circular),
                    "pad: widths 4 and 0 are too large for axis 1 of [2, 3]");
  CHECK(pad(x, {3, 0}, PadMode::circular).shape() == make_shape(2, 6));
  CHECK_THROWS_WITH(pad(x, {1}), "pad: a pair of widths for each of at most 2 axes required, got 1 numbers");
  CHECK_THROWS_AS(pad(zeros({0}), {1, 0}, PadMode::replicate), error);
  CHECK_THROWS_WITH(pad(x, {-1, 0}, PadMode::reflect), "pad: negative padding");
}

TEST_CASE("parts of values", "[ops]") {
  Shape const s = make_shape(2, 3, 4);
  check_places(
      "flatten", [](Array const& x) { return flatten(x, 1); }, s, make_shape(2, 12),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = i[1] / 4, j[2] = i[1] % 4;
        return true;
      });
  check_places(
      "unflatten", [](Array const& x) { return unflatten(x, -1, {2, -1}); }, s, make_shape(2, 3, 2, 2),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = i[1], j[2] = 2 * i[2] + i[3];
        return true;
      });
  check_places(
      "movedim", [](Array const& x) { return movedim(x, {0, 2}, {-1, 0}); }, s, make_shape(4, 3, 2),
      [](index_t const* i, index_t* j) {
        j[0] = i[2], j[1] = i[1], j[2] = i[0];
        return true;
      });
  check_places(
      "movedim of one", [](Array const& x) { return movedim<0, 1>(x); }, s, make_shape(3, 2, 4),
      [](index_t const* i, index_t* j) {
        j[0] = i[1], j[1] = i[0], j[2] = i[2];
        return true;
      });
  check_places(
      "select", [](Array const& x) { return select(x, 1, -1); }, s, make_shape(2, 4),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = 2, j[2] = i[1];
        return true;
      });
  check_places(
      "narrow", [](Array const& x) { return narrow(x, 2, 1, 2); }, s, make_shape(2, 3, 2),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = i[1], j[2] = i[2] + 1;
        return true;
      });
  for (int k : {-2, -1, 0, 1, 3})
    check_places(
        "diagonal", [&](Array const& x) { return diagonal(x, k, 1, 2); }, s,
        make_shape(2, k < 0 ? 3 + k : std::min(3, 4 - k)),
        [&](index_t const* i, index_t* j) {
          j[0] = i[0], j[1] = i[1] + (k < 0 ? -k : 0), j[2] = i[1] + (k > 0 ? k : 0);
          return true;
        });
  for (int k : {-1, 0, 2}) {
    check_places(
        "diag_embed", [&](Array const& x) { return diag_embed(x, k); }, make_shape(2, 3),
        make_shape(2, 3 + std::abs(k), 3 + std::abs(k)),
        [&](index_t const* i, index_t* j) {
          j[0] = i[0], j[1] = i[1] - (k < 0 ? -k : 0);
          return i[2] - i[1] == k;
        });
    check_places(
        "tril", [&](Array const& x) { return tril(x, k); }, s, s,
        [&](index_t const* i, index_t* j) {
          j[0] = i[0], j[1] = i[1], j[2] = i[2];
          return i[2] - i[1] <= k;
        });
    check_places(
        "triu", [&](Array const& x) { return triu(x, k); }, s, s,
        [&](index_t const* i, index_t* j) {
          j[0] = i[0], j[1] = i[1], j[2] = i[2];
          return i[2] - i[1] >= k;
        });
  }
  check_places(
      "trace", [](Array const& x) { return trace(x); }, make_shape(1, 4), make_shape(),
      [](index_t const*, index_t*) { return true; });
  check_places(
      "pixel_shuffle", [](Array const& x) { return pixel_shuffle(x, 2); }, make_shape(2, 8, 1, 3),
      make_shape(2, 2, 2, 6),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = i[1] * 4 + i[2] % 2 * 2 + i[3] % 2, j[2] = i[2] / 2, j[3] = i[3] / 2;
        return true;
      });
  check_places(
      "pixel_unshuffle", [](Array const& x) { return pixel_unshuffle(pixel_shuffle(x, 2), 2); },
      make_shape(8, 1, 3), make_shape(8, 1, 3),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = i[1], j[2] = i[2];
        return true;
      });
  Array const x = zeros({2, 3, 4});
  CHECK(flatten(full({}, 1)).shape() == make_shape(1));
  CHECK(diagonal(zeros({2, 3}), 7).shape() == make_shape(0));
  CHECK(diag_embed(zeros({0}), 2).shape() == make_shape(2, 2));
  CHECK_THROWS_WITH(flatten(x, 2, 1), "flatten: axis 2 lies behind axis 1 of [2, 3, 4]");
  CHECK_THROWS_WITH(unflatten(x, 1, {2, 2}), "unflatten: axis 1 of [2, 3, 4] does not make [2, 2]");
  CHECK_THROWS_WITH(movedim(x, {0, 0}, {1, 2}), "movedim: 2 axes of [2, 3, 4] cannot move to 2 places");
  CHECK_THROWS_WITH(select(x, 0, 2), "select: index 2 out of range for axis 0 of [2, 3, 4]");
  CHECK_THROWS_WITH(narrow(x, 0, 1, 2), "narrow: 2 elements from 1 on out of range for axis 0 of [2, 3, 4]");
  CHECK_THROWS_WITH(pixel_shuffle(x, 2), "pixel_shuffle: channels of [2, 3, 4] are no multiple of 2 squared");
  CHECK(array_equal(tril(from<bool>({true, true, true, true}, {2, 2})),
                    from<bool>({true, false, true, true}, {2, 2})));
  CHECK(triu(ones({2, 2, 3}, DType::i32), 1).dtype() == DType::i32);
  CHECK_THROWS_WITH(tril(zeros({3})), "tril: a matrix required, got [3]");
  CHECK_THROWS_WITH(diagonal(x, 0, 1, -2), "diagonal: two axes of [2, 3, 4] required");
}

TEST_CASE("diff", "[ops]") {
  check_op(
      "diff", [](V v) { return diff(v[0], 1); },
      [](V v) {
        Array r = doubles(make_shape(2, 3, 3));
        for_indices(r.shape(), [&](index_t const* i) {
          index_t const next[] = {i[0], i[1] + 1, i[2]};
          cell(r, i) = value_at(v[0], next) - value_at(v[0], i);
        });
        return r;
      },
      {draw(make_shape(2, 4, 3), {-2, 2}, 5, DType::f64)}, false, true);
  CHECK(array_equal(diff(from<std::int32_t>({5, 1, 2})), from<std::int32_t>({-4, 1})));
  CHECK(array_equal(diff<0>(ones({1, 3})), zeros({0, 3})));
  CHECK(diff(zeros({0})).shape() == make_shape(0));
}

TEST_CASE("split, chunk, unbind, meshgrid", "[ops]") {
  Array const x = draw(make_shape(5, 3), {}, 1, DType::f64);
  auto const parts = split(x, 2);
  REQUIRE(parts.size() == 3);
  CHECK(array_equal(concat(parts), x));
  CHECK(parts[2].shape() == make_shape(1, 3));
  CHECK(parts[1].storage() == x.storage());
  auto const sized = split(x, {1, 2}, 1);
  CHECK(array_equal(concat({sized[0], sized[1]}, 1), x));
  CHECK(sized[1].shape() == make_shape(5, 2));
  CHECK_THROWS_WITH(split(x, {1, 3}, 1), "split: sizes [1, 3] do not add up to axis 1 of [5, 3]");
  CHECK(chunk(x, 2).size() == 2);
  CHECK(chunk(x, 4).size() == 3);
  // Of an empty axis too there are parts, which join to it (PyTorch 2.11 has one of split, n of chunk).
  Array const none = zeros({2, 0});
  CHECK(split(none, 3, 1).size() == 1);
  CHECK(concat(split(none, 3, 1), 1).shape() == none.shape());
  CHECK(chunk(none, 3, -1).size() == 3);
  CHECK(chunk(none, 3, -1)[2].shape() == none.shape());
  Tensor<float, 2, 0> const nothing = zeros<float, 2, 0>();
  static_assert(std::is_same_v<decltype(split<3, 1>(nothing)), std::array<Tensor<float, 2, 0>, 1>>);
  static_assert(std::is_same_v<decltype(chunk<3, 1>(nothing)), std::array<Tensor<float, 2, 0>, 3>>);
  CHECK(array_equal(stack(unbind(x, 1), 1), x));
  CHECK_THROWS_WITH(unbind(x, 2), "unbind: axis 2 out of range for [5, 3]");
  CHECK_THROWS_WITH(concat(std::vector<Array>{}), "concat: no values");
  std::vector<Array> many(9, x);
  CHECK(concat(many, 1).shape() == make_shape(5, 27));
  CHECK(array_equal(slice(concat(many, 1), 1, 24), x));

  auto const a = Tensor<float, 2>::from({1, 2});
  static_assert(std::is_same_v<decltype(diag(a)), Tensor<float, 2, 2>>);
  CHECK(array_equal(diag(a), from<float>({1, 0, 0, 2}, {2, 2})));
  CHECK(array_equal(diag(diag(a)), a));
  CHECK(array_equal(diag(Array(diag(a)), 1), from<float>({0})));
  CHECK(array_equal(diag<-1>(Array(a)), diag(Array(a), -1)));
  auto const b = Tensor<float, 3>::from({3, 4, 5});
  auto const [p, q] = meshgrid(a, b);
  static_assert(std::is_same_v<decltype(p), Tensor<float, 2, 3> const>);
  CHECK(array_equal(p, from<float>({1, 1, 1, 2, 2, 2}, {2, 3})));
  CHECK(array_equal(q, from<float>({3, 4, 5, 3, 4, 5}, {2, 3})));
  auto const [u, w] = broadcast_tensors(unsqueeze<1>(a), b);
  CHECK(array_equal(u, p));
  CHECK(array_equal(w, q));
  auto const typed = Tensor<float, 4, 3>::from({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {0, 1, 2}});
  static_assert(std::is_same_v<decltype(split<2>(typed)), std::array<Tensor<float, 2, 3>, 2>>);
  static_assert(
      std::is_same_v<decltype(chunk<2, 1>(typed)), std::tuple<Tensor<float, 4, 2>, Tensor<float, 4, 1>>>);
  CHECK(array_equal(std::get<1>(chunk<2, 1>(typed)), slice(Array(typed), 1, 2)));
  CHECK(array_equal(unbind<0>(typed)[2], from<float>({7, 8, 9})));

  // Of Arrays too, so that the same model serves programs and the tape.
  Array const plain = typed;
  CHECK(array_equal(split<2>(plain)[1], split<2>(typed)[1]));
  CHECK(array_equal(unbind<0>(plain)[2], unbind<0>(typed)[2]));
  auto const [left, right] = chunk<2, 1>(plain);
  CHECK(array_equal(left, slice(plain, 1, 0, 2)));
  CHECK(array_equal(right, slice(plain, 1, 2)));
  CHECK_THROWS_WITH(chunk<4>(slice(plain, 0, 0, 2)), "chunk: axis 0 of [2, 3] makes 2 parts, 4 required");
}

TEST_CASE("unfold and fold", "[ops]") {
  check_places(
      "windows", [](Array const& x) { return unfold(x, 1, 3, 2); }, make_shape(2, 7, 2),
      make_shape(2, 3, 2, 3),
      [](index_t const* i, index_t* j) {
        j[0] = i[0], j[1] = 2 * i[1] + i[3], j[2] = i[2];
        return true;
      });
  Patches const p{{2, 3}, {1, 2}, {1, 0}, {2, 1}};
  check_places(
      "unfold", [&](Array const& x) { return unfold(x, p); }, make_shape(2, 2, 3, 7), make_shape(2, 12, 6),
      [](index_t const* i, index_t* j) {
        index_t const channel = i[1] / 6, row = i[1] / 3 % 2, column = i[1] % 3;
        j[0] = i[0], j[1] = channel, j[2] = 2 * (i[2] / 3) + row - 1, j[3] = i[2] % 3 + 2 * column;
        return j[2] >= 0 && j[2] < 3;
      });
  // fold is the transpose: <unfold x, y> = <x, fold y>.
  Array const x = draw(make_shape(2, 2, 3, 7), {}, 1, DType::f64),
              y = draw(make_shape(2, 12, 6), {}, 2, DType::f64);
  CHECK(std::fabs(testing::dot(unfold(x, p), y) - testing::dot(x, fold(y, {3, 7}, p))) < 1e-12);
  check_rules([&](V v) { return fold(v[0], {3, 7}, p); }, {y}, DType::f64);
  CHECK(unfold(zeros({1, 4, 4}), {2}).shape() == make_shape(4, 9));
  CHECK_THROWS_WITH(unfold(zeros({1, 4, 4}), {5}), "unfold: the patches do not fit images [1, 4, 4]");
  CHECK_THROWS_WITH(unfold(zeros({4}), 0, 5, 1),
                    "unfold: windows of 5 by steps of 1 do not fit axis 0 of [4]");
  CHECK_THROWS_AS(fold(y, {3, 8}, p), error);
}

TEST_CASE("run-time forms say what static ones do", "[ops]") {
  auto const x = uniform<float, 2, 3, 4>(Key{1});
  Array const a = x;
  CHECK(array_equal(transpose(a, 0, 1), transpose<0, 1>(x)));
  CHECK(array_equal(permute(a, {2, 0, 1}), permute<2, 0, 1>(x)));
  CHECK(array_equal(squeeze(unsqueeze(a, 1), 1), squeeze<1>(unsqueeze<1>(x))));
  CHECK(squeeze(zeros({1, 2, 1})).shape() == make_shape(2));
  CHECK(expand(a, {5, -1, 3, 4}).shape() == make_shape(5, 2, 3, 4));
  CHECK(array_equal(slice(a, 1, -2, 3), slice<1, -2, 3>(x)));
  CHECK(slice(a, 2, 0, 4, 3).shape() == make_shape(2, 3, 2));
  CHECK(array_equal(sum(a, {0, 2}), sum<0, 2>(x)));
  CHECK(sum(a, {0, 2}, true).shape() == make_shape(1, 3, 1));
  CHECK(array_equal(mean(a, -1), mean<-1>(x)));
  CHECK(array_equal(var(a, {1}, 0), var<1>(x, 0)));
  CHECK(array_equal(var(a, 1), var<1>(x)));
  CHECK(array_equal(logsumexp(a, {1, 2}), logsumexp<1, 2>(x)));
  CHECK(array_equal(argmax(a, 1), argmax<1>(x)));
  CHECK(argmax(a).item<std::int64_t>() == argmax<0>(reshape<24>(x)).item());
  // What is not 1 stays.
  CHECK(squeeze(a, 1).shape() == make_shape(2, 3, 4));
  CHECK(squeeze(ones({1, 3, 1}), {0, 1}).shape() == make_shape(3, 1));
  CHECK(squeeze(full({}, 1), 0).shape() == make_shape());
  static_assert(std::is_same_v<decltype(squeeze<1>(x)), Tensor<float, 2, 3, 4>>);
  CHECK_THROWS_WITH(squeeze(a, 3), "squeeze: axis 3 out of range for [2, 3, 4]");
  CHECK_THROWS_WITH(permute(a, {0, 1}), "permute: axes must name each axis of [2, 3, 4] once");
  CHECK_THROWS_WITH(expand(a, {2, 3}), "expand: cannot expand [2, 3, 4] to [2, 3]");
  CHECK_THROWS_AS(expand(zeros({1, 3}), {-5, 3}), error);
  CHECK_THROWS_AS(expand(zeros({3}), {-1, 3}), error);
  CHECK_THROWS_AS(one_hot(zeros({3}, DType::i64), -1), error);
  CHECK_THROWS_AS(one_hot(zeros({3}, DType::i64), -2), error);
  CHECK_THROWS_AS(pad(zeros({3}), {INT64_MAX, 0}), error);
  CHECK_THROWS_AS(pad(zeros({3}), {INT64_MIN, 0}), error);
  CHECK(array_equal(pad(a, {-1, 2, 0, -1}), pad(slice(slice(a, 2, 1, 4), 1, 0, 2), {0, 2})));
  CHECK(array_equal(pad(a, {-1, 2, 0, -1}), pad<-1, 2, 0, -1>(x)));
  CHECK(pad(a, {-3, -1}).size() == 0);
  CHECK_THROWS_WITH(pad(a, {-3, -2}), "pad: axis 2 of [2, 3, 4] has fewer than 5 elements to cut off");
  CHECK_THROWS_AS(pad(a, {-1, 0}, PadMode::reflect), error);
  CHECK_THROWS_WITH(sum(a, 3), "sum: axis 3 out of range for [2, 3, 4]");
  CHECK_THROWS_WITH(slice(a, 0, 0, 1, 0), "slice: step must be positive");
}

}  // namespace tests::ops_arrange
