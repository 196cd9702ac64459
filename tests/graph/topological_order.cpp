// SPDX-License-Identifier: BSL-1.0
// The order of a graph of edges, and the cycles that it reports.
#include "support.hpp"

#include <dfdx/graph/topological_order.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace tests::graph_topological_order {

namespace {

using namespace dfdx;
using graph::Edge;
using graph::topological_order;
using tests::error_of;

TEST_CASE("each node comes after all it needs") {
  std::vector<Edge> const edges{{4, 2}, {2, 0}, {4, 0}, {3, 1}, {0, 1}, {0, 1}};
  Vec<int> const order = topological_order(5, edges);
  REQUIRE(order.size() == 5);
  std::vector<int> place(5, -1);
  for (std::size_t i = 0; i < 5; ++i) place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  for (int p : place) CHECK(p >= 0);
  for (Edge const& e : edges)
    CHECK(place[static_cast<std::size_t>(e.from)] < place[static_cast<std::size_t>(e.to)]);
  CHECK(topological_order(0, {}).empty());
  CHECK(topological_order(3, {}).size() == 3);
  static_assert([] {
    Edge const edges[] = {{1, 0}};
    Vec<int> const order = topological_order(2, edges);
    return order[0] == 1 && order[1] == 0;
  }());
}

TEST_CASE("a cycle is reported, however long and whatever hangs on it") {
  auto const says = [](int n, std::vector<Edge> const& edges) {
    return error_of([&] { topological_order(n, edges); });
  };
  CHECK(says(1, {{0, 0}}) == "topological_order: a cycle: 0 needs 0");
  CHECK(says(5, {{0, 1}, {1, 2}, {2, 1}, {2, 0}, {2, 4}}).starts_with("topological_order: a cycle: "));
  CHECK(says(4, {{1, 2}, {2, 1}, {2, 0}, {3, 1}}) == "topological_order: a cycle: 2 needs 1 needs 2");
  CHECK(says(3, {{0, 7}}) == "topological_order: edge from 0 to 7 among 3 nodes");
  CHECK(says(3, {{-1, 0}}) == "topological_order: edge from -1 to 0 among 3 nodes");
  int const n = 1000000;
  std::vector<Edge> ring;
  for (int i = 0; i < n; ++i) ring.push_back({i, (i + 1) % n});
  CHECK(
      says(n, ring) ==
      "topological_order: a cycle: 0 needs 999999 needs 999998 needs 999997 needs 999996 needs 999995 needs "
      "999994 needs 999993 needs 999992 needs ...");
  ring.pop_back();
  CHECK(topological_order(n, ring)[999999] == 999999);
}

}  // namespace

}  // namespace tests::graph_topological_order
