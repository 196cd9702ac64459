// SPDX-License-Identifier: BSL-1.0
// einsum and the products made of matmul.
#include "ops/places.hpp"

#include <dfdx/vocabulary/linear.hpp>

#include <catch2/matchers/catch_matchers.hpp>

#include <map>

namespace tests::ops_products {

namespace {

using namespace suite;

// The sum over all tuples of labels of the products of the operands; labels are letters, the result's extents known.
auto by_loops(std::string const& equation, std::map<char, index_t> const& extents) {
  return [=](V v) {
    std::vector<std::string> terms(1);
    std::string out, all;
    std::size_t const arrow = equation.find('>');
    for (char c : equation.substr(0, arrow - 1))
      if (c == ',') terms.emplace_back();
      else terms.back() += c;
    out = equation.substr(arrow + 1);
    Shape space, to;
    for (auto const& [c, n] : extents) all += c, space.push_back(n);
    for (char c : out) to.push_back(extents.at(c));
    Array r = doubles(to);
    for_indices(space, [&](index_t const* i) {
      double product = 1;
      index_t j[max_rank] = {};
      for (std::size_t k = 0; k < terms.size(); ++k) {
        for (std::size_t a = 0; a < terms[k].size(); ++a) {
          index_t const at = i[all.find(terms[k][a])];
          j[a] = v[k].shape()[static_cast<int>(a)] == 1 ? 0 : at;
        }
        product *= value_at(v[k], j);
      }
      for (std::size_t a = 0; a < out.size(); ++a) j[a] = i[all.find(out[a])];
      cell(r, j) += product;
    });
    return r;
  };
}

}  // namespace

TEST_CASE("einsum", "[ops]") {
  std::map<char, index_t> const all = {{'a', 2}, {'b', 3}, {'i', 4}, {'j', 2}, {'k', 3}};
  for (char const* equation : {"ij,jk->ik", "bij,bjk->bik", "ij,ij->ij", "ij,ij->", "i,j->ij", "ij->ji",
                               "ij->", "ijk->k", "bi,ij,bj->b", "aib,abj->bi", "ab,bi,ij,jk->ak", "jj->j",
                               "ajaj->ja", "jj->", "ij,k->jik", "b,b,b->b", "ijk,k->ji", "a,i->"}) {
    std::string const e = equation;
    std::map<char, index_t> used;
    std::vector<Array> x;
    Shape s;
    std::size_t const end = e.find('-');
    for (std::size_t i = 0; i <= end; ++i)
      if (i == end || e[i] == ',') {
        x.push_back(draw(s, {-2, 2}, i, DType::f64));
        s = {};
      } else {
        s.push_back(all.at(e[i]));
        used[e[i]] = all.at(e[i]);
      }
    INFO(e);
    check_op(equation, [&](V v) { return einsum(equation, v); }, by_loops(e, used), x, false, true);
  }
  // Extents of 1 are repeated, also of contracted axes.
  check_op(
      "ones", [](V v) { return einsum("ij,jk->ik", v); },
      by_loops("ij,jk->ik", {{'i', 2}, {'j', 3}, {'k', 4}}),
      {draw(make_shape(2, 1), {}, 1, DType::f64), draw(make_shape(3, 4), {}, 2, DType::f64)}, false, true);
  Array const a = draw(make_shape(2, 3, 4, 5), {}, 1, DType::f64),
              b = draw(make_shape(3, 5, 2), {}, 2, DType::f64);
  CHECK(testing::error_ratio(einsum("...ij,...jk", a, b), matmul(a, b), 1e-13, 1e-13) <= 1);
  CHECK(testing::error_ratio(einsum("...ij,...jk->ki...", a, b), permute(matmul(a, b), {3, 2, 0, 1}), 1e-13,
                             1e-13) <= 1);
  CHECK(array_equal(einsum("ba", draw(make_shape(2, 3), {}, 1, DType::f64)),
                    transpose(draw(make_shape(2, 3), {}, 1, DType::f64))));
  CHECK(einsum("ij,jk->ik", zeros({0, 3}), zeros({3, 2})).shape() == make_shape(0, 2));
  CHECK(array_equal(einsum("ij,j->i", zeros({2, 0}), zeros({0})), zeros({2})));
  CHECK(einsum("i,i->", full({3}, 2, DType::i32), full({3}, 3, DType::i64)).item<std::int64_t>() == 18);
  static_assert(
      std::is_same_v<decltype(einsum<"bij,jk->kb">(Tensor<float, 2, 3, 4>{}, Tensor<float, 4, 5>{})),
                     Tensor<float, 5, 2>>);
  CHECK_THROWS_WITH(einsum("ij,jk->ik", zeros({2, 3}), zeros({4, 5})), "einsum: one axis of extents 3 and 4");
  CHECK_THROWS_WITH(einsum("ij->i", zeros({2, 3, 4})), "einsum: a term of 2 axes for [2, 3, 4]");
  CHECK_THROWS_WITH(einsum("ij->k", zeros({2, 3})),
                    "einsum: the result names an axis twice, or one that no operand has");
  CHECK_THROWS_WITH(einsum("i,j", zeros({2})), "einsum: as many terms as operands required");
  CHECK_THROWS_WITH(einsum("i$->i", zeros({2, 2})), "einsum: a letter or one ... required");
  CHECK_THROWS_WITH(einsum("abcde,fghij->aj", zeros({1, 1, 1, 1, 1}), zeros({1, 1, 1, 1, 1})),
                    "einsum: more than 8 different axes");
  CHECK_THROWS_AS(einsum("......", zeros({2})), error);
}

TEST_CASE("products by name", "[ops]") {
  auto const x = [](Shape const& s, std::uint64_t key) { return draw(s, {-2, 2}, key, DType::f64); };
  std::map<char, index_t> const all = {{'b', 2}, {'i', 3}, {'j', 4}, {'o', 5}};
  Array const c = x(make_shape(3, 5), 3);
  check_op(
      "addmm", [](V v) { return addmm(v[2], v[0], v[1], 0.5, 2); },
      [&](V v) {
        return by_loops("ij,jo->io", {{'i', 3}, {'j', 4}, {'o', 5}})(v) * 2.0 +
               cast_to(v[2], DType::f64) * 0.5;
      },
      {x(make_shape(3, 4), 1), x(make_shape(4, 5), 2), c}, false, true);
  check_op(
      "baddbmm", [](V v) { return baddbmm(v[2], v[0], v[1]); },
      [&](V v) { return by_loops("bij,bjo->bio", all)(v) + cast_to(v[2], DType::f64); },
      {x(make_shape(2, 3, 4), 1), x(make_shape(2, 4, 5), 2), c}, false, false);
  check_op(
      "bilinear", [](V v) { return bilinear(v[0], v[2], v[1], v[3]); },
      [&](V v) { return by_loops("bi,oij,bj->bo", all)(v) + cast_to(v[3], DType::f64); },
      {x(make_shape(2, 3), 1), x(make_shape(5, 3, 4), 2), x(make_shape(2, 4), 3), x(make_shape(5), 4)}, false,
      true);
  check_op(
      "linear", [](V v) { return linear(v[0], v[1], v[2]); },
      [&](V v) {
        return by_loops("bi,oi->bo", {{'b', 2}, {'i', 3}, {'o', 5}})(v) + cast_to(v[2], DType::f64);
      },
      {x(make_shape(2, 3), 1), x(make_shape(5, 3), 2), x(make_shape(5), 3)}, false, true);
  check_op(
      "linear with one row of weights", [](V v) { return linear(v[0], v[1], v[2]); },
      [&](V v) {
        return by_loops("bji,i->bj", {{'b', 2}, {'j', 4}, {'i', 3}})(v) + cast_to(v[2], DType::f64);
      },
      {x(make_shape(2, 4, 3), 1), x(make_shape(3), 2), x(make_shape(), 3)}, false, true);
  check_op(
      "kron", [](V v) { return kron(v[0], v[1]); },
      [](V v) {
        Array r = doubles(make_shape(6, 8));
        for_indices(r.shape(), [&](index_t const* i) {
          index_t const a[] = {i[0] / 3, i[1] / 4}, b[] = {i[0] % 3, i[1] % 4};
          cell(r, i) = value_at(v[0], a) * value_at(v[1], b);
        });
        return r;
      },
      {x(make_shape(2, 2), 1), x(make_shape(3, 4), 2)}, true, true);
  // The first operand has the result's shape.
  auto const crossed = [](V v) {
    Array r = doubles(v[0].shape());
    for_indices(r.shape(), [&](index_t const* i) {
      auto const at = [&](Array const& x, index_t k) {
        index_t place[max_rank];
        int const missing = r.ndim() - x.ndim();
        for (int j = 0; j < x.ndim(); ++j)
          place[j] = x.shape()[j] == 1 ? 0 : missing + j == 1 ? k % 3 : i[missing + j];
        return value_at(x, place);
      };
      index_t const k = i[1];
      cell(r, i) = at(v[0], k + 1) * at(v[1], k + 2) - at(v[0], k + 2) * at(v[1], k + 1);
    });
    return r;
  };
  check_op(
      "cross", [](V v) { return cross(v[0], v[1]); }, crossed,
      {x(make_shape(5, 3), 1), x(make_shape(5, 3), 2)}, false, true);  // u8 would wrap
  check_op(
      "cross of an axis, broadcast", [](V v) { return cross<1>(v[0], v[1]); }, crossed,
      {x(make_shape(2, 3, 4), 1), x(make_shape(3, 1), 2)}, false, true);
  CHECK(dot(from<float>({1, 2}), from<float>({3, 4})).item<float>() == 11);
  CHECK(outer(from<float>({1, 2}), from<float>({3, 4, 5})).shape() == make_shape(2, 3));
  CHECK_THROWS_WITH(mm(zeros({2}), zeros({2, 3})), "mm: operands of 2 axes required, got [2] x [2, 3]");
  CHECK_THROWS_WITH(bmm(zeros({2, 3, 4}), zeros({2, 3, 4})),
                    "bmm: inner dimensions differ: [2, 3, 4] x [2, 3, 4]");
  CHECK_THROWS_WITH(addmm(zeros({3}), zeros({2, 3}), zeros({2, 3})),
                    "addmm: inner dimensions differ: [2, 3] x [2, 3]");
  CHECK_THROWS_WITH(addmm(zeros({3}), zeros({2, 3}), zeros({3, 2})),
                    "addmm: shapes do not broadcast: [3] x [2, 2]");
  CHECK_THROWS_WITH(linear(zeros({2, 3}), zeros({5, 4})), "linear: inner dimensions differ: [2, 3] x [4, 5]");
  CHECK_THROWS_WITH(linear(zeros({2, 3}), zeros({5, 3}), zeros({4})),
                    "linear: shapes do not broadcast: [4] x [2, 5]");
  CHECK_THROWS_WITH(outer(zeros({2, 2}), zeros({3})), "outer: two vectors required, got [2, 2] x [3]");
  CHECK_THROWS_WITH(bilinear(zeros({2, 3}), zeros({2, 5}), zeros({5, 3, 4})),
                    "bilinear: weight [5, 3, 4] does not fit [2, 3] and [2, 5]");
  CHECK_THROWS_WITH(bilinear(zeros({2, 3}), zeros({4, 4}), zeros({5, 3, 4})),
                    "bilinear: one axis of extents 2 and 4");
  CHECK_THROWS_WITH(bilinear(zeros({2, 3}), zeros({2, 4}), zeros({5, 3, 4}), zeros({4})),
                    "bilinear: shapes do not broadcast: [4] x [2, 5]");
  CHECK_THROWS_WITH(cross(zeros({5, 4}), zeros({5, 4})),
                    "cross: three elements on axis 1 required, got [5, 4] x [5, 4]");
  CHECK_THROWS_WITH(cross(zeros({2, 3}), zeros({2, 1})),
                    "cross: three elements on axis 1 required, got [2, 3] x [2, 1]");
  CHECK_THROWS_WITH(cross(zeros({2, 3}), zeros({5, 3})), "cross: shapes do not broadcast: [2, 3] x [5, 3]");
  CHECK_THROWS_WITH(cross<2>(zeros({2, 3}), zeros({3})), "cross: axis 2 out of range for [2, 3]");
  CHECK_THROWS_WITH(kron(zeros({2}), zeros({2, 3})),
                    "kron: operands of equal ranks up to 4 required, got [2] x [2, 3]");
}

}  // namespace tests::ops_products
