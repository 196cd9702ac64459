// SPDX-License-Identifier: BSL-1.0
// Loop groups that are alike are described once: every description is the one that lower() makes of the group alone,
// for groups that are the same and for such as differ in one thing.
#include "graph/random_graph.hpp"

#include <dfdx/graph/lowerings.hpp>
#include <dfdx/graph/prepare.hpp>
#include <dfdx/vocabulary/index.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <functional>

namespace tests::graph_lowerings {

namespace {

using namespace dfdx;

bool same(Vec<index_t> const& a, Vec<index_t> const& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}
void require_same(graph::Lowered const& got, graph::Lowered const& want) {
  REQUIRE(same(got.code, want.code));
  REQUIRE(got.memory.size() == want.memory.size());
  for (std::size_t i = 0; i < want.memory.size(); ++i) {
    graph::Memory const &a = got.memory[i], &b = want.memory[i];
    REQUIRE((a.kind == b.kind && a.what == b.what && a.offset == b.offset && a.dtype == b.dtype &&
             a.written == b.written && a.turn == b.turn));
  }
}

// How many groups took a description over. Each is asked for as it is, and with a dim for each axis.
std::size_t check(Graph const& g, Vec<char> const& stored) {
  graph::Fusion const f = graph::plan_fusion(g);
  graph::detail::Lowerings known(g, f, stored);
  std::size_t asked = 0;
  for (graph::Group const& x : f.groups)
    for (bool const keep_dims : {false, true}) {
      if (x.kind != graph::Group::Kind::loop || x.members.empty() || (keep_dims && x.reductions != 0))
        continue;
      require_same(known.of(x, keep_dims), graph::lower(g, f, x, stored, keep_dims));
      ++asked;
    }
  return asked - known.size();
}

// A function of inputs of its own, so that it makes a group of its own; the dtype and the shape of each.
struct Group {
  std::function<std::vector<Array>(std::span<Array const>)> make;
  std::vector<Meta> inputs;
};

std::size_t check_together(std::vector<Group> const& groups) {
  std::vector<Meta> metas;
  for (Group const& x : groups) metas.insert(metas.end(), x.inputs.begin(), x.inputs.end());
  Graph const g = testing::record(
      [&](std::span<Array const> v) {
        std::vector<Array> r;
        for (Group const& x : groups) {
          for (Array const& y : x.make(v.first(x.inputs.size()))) r.push_back(y);
          v = v.subspan(x.inputs.size());
        }
        return r;
      },
      metas);
  Graph const ready = graph::prepare(graph::simplify(g), {});
  Vec<char> stored(ready.nodes.size(), 0);
  for (int o : ready.outputs) stored[o] = 1;
  return check(ready, stored);
}

// The position of each element along an axis.
Array positions(Array const& x, int axis) {
  return cast_to(dfdx::detail::iota_as(x, Meta{DType::i64, x.shape()}, axis), x.dtype());
}

}  // namespace

TEST_CASE("groups that differ in one thing are lowered each, those that do not once", "[graph]") {
  Meta const m{DType::f32, make_shape(5, 5)}, tall{DType::f32, make_shape(6, 5)},
      wide{DType::f64, make_shape(5, 5)}, whole{DType::i32, make_shape(5, 5)}, one{DType::f32, make_shape(5)};
  using V = std::span<Array const>;
  using R = std::vector<Array>;
  std::vector<Group> const kinds = {
      {[](V v) { return R{tanh(v[0]) * v[1]}; }, {m, m}},
      {[](V v) { return R{tanh(v[0]) * v[0]}; }, {m, m}},  // one operand read twice
      {[](V v) {                                           // an operand made in the group
         Array const t = tanh(v[0]);
         return R{t * t};
       },
       {m, m}},
      {[](V v) { return R{tanh(v[0]) * transpose(v[1])}; }, {m, m}},  // strides
      {[](V v) { return R{tanh(v[0]) * slice_axis(v[1], 0, 0, 5)}; }, {m, tall}},
      {[](V v) { return R{tanh(v[0]) * slice_axis(v[1], 0, 1, 5)}; }, {m, tall}},  // an offset
      {[](V v) { return R{tanh(v[0]) * v[1]}; }, {wide, wide}},                    // the dtype
      {[](V v) { return R{sum<0>(tanh(v[0]))}; }, {m}},
      {[](V v) { return R{sum<1>(tanh(v[0]))}; }, {m}},  // the axis
      {[](V v) { return R{tanh(v[0]) * 2.0}; }, {m}},
      {[](V v) { return R{tanh(v[0]) * 3.0}; }, {m}},  // a number
      {[](V v) {
         Array const a = tanh(v[0]), b = sigmoid(v[0]);
         return R{a - b};
       },
       {m}},
      {[](V v) {  // the operands' order
         Array const a = tanh(v[0]), b = sigmoid(v[0]);
         return R{b - a};
       },
       {m}},
      {[](V v) {  // what is stored
         Array const a = tanh(v[0]);
         return R{a, a * v[1]};
       },
       {m, m}},
      {[](V v) { return R{tanh(cast_to(v[0], DType::f64))}; }, {m}},
      {[](V v) { return R{tanh(cast_to(v[0], DType::f64))}; }, {whole}},  // what it is made of
      {[](V v) {
         Array const a = tanh(v[0]);
         return R{a, sin(a)};
       },
       {m}},
      {[](V v) {  // where it stands in the group's space
         Array const a = tanh(v[0]);
         return R{a, sin(transpose(a))};
       },
       {m}},
      {[](V v) { return R{v[0] * reshape_to(v[1], make_shape(5, 1))}; }, {m, one}},
      {[](V v) { return R{v[0] * v[1]}; }, {m, one}},  // along another axis
      {[](V v) { return R{v[0] * v[1] - v[2] * v[1]}; }, {m, m, m}},
      {[](V v) { return R{v[0] * v[1] - v[1] * v[2]}; }, {m, m, m}},
      {[](V v) { return R{v[0] * v[1] - v[0] * v[2]}; }, {m, m, m}},  // which operands are one
      {[](V v) { return R{tanh(v[0]) * positions(v[0], 0)}; }, {m}},
      {[](V v) { return R{tanh(v[0]) * positions(v[0], 1)}; }, {m}},  // the axis that is counted
      {[](V v) { return R{softmax<1>(v[0])}; }, {m}},
      {[](V v) { return R{softmax<0>(v[0])}; }, {m}},
  };
  for (Group const& a : kinds) {
    CHECK(check_together({a, a, a}) >= 2);
    for (Group const& b : kinds) check_together({a, b, a, b});
  }
}

TEST_CASE("groups of random graphs are lowered as they are alone", "[graph]") {
  for (int seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    auto const at = 50000 + static_cast<std::uint64_t>(seed);
    random_graph::Dice dice(at);
    auto const loops = seed % 5 == 0 ? random_graph::Loops::scanned : random_graph::Loops::none;
    DType const d = seed % 4 == 0 ? DType::f32 : DType::f64;
    Graph const g =
        graph::prepare(graph::simplify(random_graph::make(at, 4 + seed % 15, d, false, loops).graph), {});
    Vec<char> stored(g.nodes.size(), 1);
    for (char& s : stored) s = dice.once_in(9) ? 0 : 1;
    check(g, stored);
  }
}

TEST_CASE("groups that differ in a number or an offset are found apart by their hashes", "[graph]") {
  // Each is lowered; were they compared with one another, the time would grow with the square of their number.
  Graph const g = testing::record(
      [](std::span<Array const> v) {
        std::vector<Array> r;
        for (int i = 0; i < 2000; ++i) r.push_back(sum(tanh(slice_axis(v[0], 0, i, 1)) * (i + 2.0)));
        return r;
      },
      std::vector<Meta>{{DType::f32, make_shape(2000, 3)}});
  Graph const ready = graph::prepare(graph::simplify(g), {});
  graph::Fusion const f = graph::plan_fusion(ready);
  Vec<char> const stored(ready.nodes.size(), 1);
  graph::detail::Lowerings known(ready, f, stored);
  for (graph::Group const& x : f.groups)
    if (x.kind == graph::Group::Kind::loop && !x.members.empty()) static_cast<void>(known.of(x));
  CHECK(known.size() == 2000);
  CHECK(known.misses() < 4000);
}

}  // namespace tests::graph_lowerings
