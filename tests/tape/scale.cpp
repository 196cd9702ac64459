// SPDX-License-Identifier: BSL-1.0
// Tapes of a million nodes, and the memory they hold.
#include "allocations.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::tape_scale {

namespace {

using namespace dfdx;

Array leaf_number(double v) {
  Array a = full({}, v, DType::f64);
  a.requires_grad(true);
  return a;
}

constexpr int million = 1000000;

TEST_CASE("a chain of a million ops") {
  Array const x = leaf_number(1);
  for (bool passes : {true, false}) {  // without a pass the chain is freed as it is
    Array y = x;
    for (int i = 0; i < million; ++i) y = y * 1.0000001;
    if (!passes) continue;
    y.backward();
    CHECK(x.grad().item() == y.item());
  }
}

TEST_CASE("a sum over a million numbers, leaves and elements of one") {
  std::vector<Array> leaves;
  leaves.reserve(million);
  for (int i = 0; i < million; ++i) leaves.push_back(leaf_number(i));
  Array s = full({}, 0, DType::f64);
  for (Array const& x : leaves) s = s + x;
  s.backward();
  CHECK(s.item() == 0.5 * million * (million - 1.0));
  bool ones = true;
  for (Array const& x : leaves) ones = ones && x.grad().item() == 1;
  CHECK(ones);

  Array v = full({million}, 2, DType::f64);
  v.requires_grad(true);
  Array t = full({}, 0, DType::f64);
  for (int i = 0; i < million; ++i) t = t + v[i] * v[i];
  t.backward();
  Array const g = v.grad();
  CHECK(t.item() == 4.0 * million);
  bool fours = true;
  for (int i = 0; i < million; ++i) fours = fours && g.data<double>()[i] == 4;
  CHECK(fours);
}

TEST_CASE("what no parameter can be reached from is not visited") {
  Array const x = leaf_number(3), c = full({}, 2, DType::f64);
  Array y = c;
  for (int i = 0; i < 1000; ++i) y = y * c * 0.5;
  CHECK(y.tape() == nullptr);
  Array const z = x * y;
  CHECK(z.tape()->in(0) == x.tape());
  CHECK(z.tape()->in(1) == nullptr);
}

TEST_CASE("values are released when their gradient has been passed on") {
  // Each op squares 8 MB. A hook half way down must find the memory of the upper half gone: its nodes hold no values.
  Array x = full({1 << 20}, 1.0, DType::f64);
  x.requires_grad(true);
  std::vector<TapeNode*> nodes;
  Array y = x;
  bool first_gone = false, last_there = false;
  for (int i = 0; i < 6; ++i) {
    y = y * y;
    nodes.push_back(y.tape());
    if (i == 2)
      y.register_hook([&](Array const&) {
        first_gone = nodes[4]->payload == TapeNode::Payload::none;
        last_there = nodes[1]->payload == TapeNode::Payload::arrays;
      });
  }
  Array const top = y;
  nodes[4]->retain();
  top.backward();
  nodes[4]->release();
  CHECK(first_gone);
  CHECK(last_there);
  CHECK(x.grad().data<double>()[5] == 64);
}

TEST_CASE("the tape asks the allocator for nothing once it has what it needs") {
  Array const x = leaf_number(0.5), w = leaf_number(1.5);
  auto const round = [&] {
    Array y = x;
    for (int i = 0; i < 500; ++i) y = y * w - sin(y) * 0.1 + x / w;
    y.backward();
    x.zero_grad();
    w.zero_grad();
  };
  for (int i = 0; i < 3; ++i) round();
#if DFDX_KEEPS_BLOCKS
  std::int64_t const before = tests::allocations();
  round();
  CHECK(tests::allocations() == before);
#endif
}

}  // namespace

}  // namespace tests::tape_scale
