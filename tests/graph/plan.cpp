// SPDX-License-Identifier: BSL-1.0
// fuse and plan: which nodes share a kernel, in what order kernels run, where values lie, and when parameters may
// be written over.
#include <dfdx/testing/run_plan.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/scan.hpp>

#include <catch2/catch_test_macros.hpp>

#include <functional>

namespace tests::graph_plan {

namespace {

using namespace dfdx;

using V = std::span<Array const>;
using F = std::function<std::vector<Array>(V)>;

Graph ready(F const& f, std::vector<Meta> const& metas, graph::Aliases const& aliases = {}) {
  return graph::prepare(graph::simplify(testing::record(f, metas)), aliases);
}
Meta single(Shape const& s) { return Meta{DType::f32, s}; }

int count(graph::Fusion const& f, graph::Group::Kind kind) {
  int n = 0;
  for (graph::Group const& g : f.groups) n += g.kind == kind;
  return n;
}

// What every plan owes: values that live at the same time do not share bytes, and are written before they are read.
void check_layout(graph::Plan const& plan) {
  std::vector<index_t> offsets(plan.buffers.size() + 1);
  index_t const total = graph::place_buffers(plan.buffers, nullptr, offsets);
  auto const bytes = [&](std::size_t i) {
    return plan.buffers[i].elements * static_cast<index_t>(size_of(plan.buffers[i].dtype));
  };
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    CHECK(offsets[i] % (bytes(i) >= 32 * 1024 ? 4096 : 64) == 0);
    CHECK(offsets[i] + bytes(i) <= total);
    for (std::size_t j = 0; j < i; ++j) {
      bool const together =
          plan.buffers[i].first <= plan.buffers[j].last && plan.buffers[j].first <= plan.buffers[i].last;
      bool const overlap = offsets[i] < offsets[j] + bytes(j) && offsets[j] < offsets[i] + bytes(i);
      CHECK(!(together && overlap));
    }
  }
}

Graph training_step(F const& loss, std::vector<Meta> const& metas, int parameters, graph::Aliases& aliases) {
  Graph g = testing::record(loss, metas);
  std::vector<int> wrt;
  for (int i = 0; i < parameters; ++i) wrt.push_back(i);
  Sym const y{&g, g.outputs[0]};
  std::vector<Sym> const ends = {y}, cts = {full_as(y, y.meta(), 1)};
  auto const d = graph::pull_back(g, ends, cts, wrt);
  aliases = graph::Aliases(1, -1);
  for (int i = 0; i < parameters; ++i) {
    g.outputs.push_back((Sym{&g, i} - d[static_cast<std::size_t>(i)] * 0.1).id);
    aliases.push_back(i);
  }
  return graph::prepare(graph::simplify(g), aliases);
}

void check_in_place(Graph const& g, std::vector<Meta> const& metas, graph::Aliases const& aliases) {
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < metas.size(); ++i)
    inputs.push_back(is_floating(metas[i].dtype) ? randn(metas[i].shape, Key{i}, metas[i].dtype)
                                                 : randint(metas[i].shape, Key{i}, 0, 3, metas[i].dtype));
  std::vector<Array> const want = testing::interpret(g, inputs);
  testing::PlanRun const run = testing::run_plan(g, inputs, aliases);
  for (std::size_t k = 0; k < want.size(); ++k) {
    CHECK(allclose(run.results[k], want[k], 1e-4, 1e-5));
    if (k < aliases.size() && aliases[k] >= 0)
      CHECK(allclose(run.inputs[static_cast<std::size_t>(aliases[k])], want[k], 1e-4, 1e-5));
  }
}

}  // namespace

TEST_CASE("elementwise chains and their reductions are one loop", "[graph]") {
  auto const groups = [](F const& f, std::vector<Meta> const& metas) {
    return graph::fuse(ready(f, metas)).groups.size();
  };
  std::vector<Meta> const two = {single(make_shape(8, 16)), single(make_shape(8, 16))};
  CHECK(groups([](V v) { return std::vector<Array>{tanh(v[0] * v[1]) + v[0]}; }, two) == 1);
  CHECK(groups([](V v) { return std::vector<Array>{sum(square(v[0] - v[1]))}; }, two) == 1);
  CHECK(groups([](V v) { return std::vector<Array>{softmax<1>(v[0])}; }, two) == 1);
  CHECK(groups(
            [](V v) {
              return std::vector<Array>{layer_norm(v[0], ones_like(reshape(slice<0, 0, 1>(v[0]), {16})),
                                                   zeros_like(reshape(slice<0, 0, 1>(v[0]), {16})))};
            },
            two) == 1);
}

TEST_CASE("softmax and cross entropy, forward and backward, are loops over rows with phases", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(8, 16)), Meta{DType::i32, make_shape(8)}};
  Graph g = testing::record([](V v) { return std::vector<Array>{cross_entropy(v[0], v[1])}; }, metas);
  Sym const y{&g, g.outputs[0]};
  std::vector<Sym> const ends = {y}, cts = {full_as(y, y.meta(), 1)};
  std::vector<int> const wrt = {0};
  g.outputs.push_back(graph::pull_back(g, ends, cts, wrt)[0].id);
  Graph const small = graph::prepare(graph::simplify(g), {});
  graph::Fusion const f = graph::fuse(small);
  int rows = 0;
  for (graph::Group const& x : f.groups) rows += x.kind == graph::Group::Kind::loop && x.split == 1;
  CHECK(rows == 1);
  CHECK(count(f, graph::Group::Kind::loop) == 2);    // the other counts the labels
  CHECK(count(f, graph::Group::Kind::opaque) == 1);  // which are looked at before
  CHECK(f.groups.size() == 3);
}

TEST_CASE("layer norm, forward and backward, is one loop with all of its gradients", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(8, 16)), single(make_shape(16)), single(make_shape(16)),
                                   single(make_shape(8, 16))};
  Graph g = testing::record([](V v) { return std::vector<Array>{layer_norm(v[0], v[1], v[2])}; }, metas);
  std::vector<Sym> const ends = {Sym{&g, g.outputs[0]}}, cts = {Sym{&g, 3}};
  std::vector<int> const wrt = {0, 1, 2};
  for (Sym const& d : graph::pull_back(g, ends, cts, wrt)) g.outputs.push_back(d.id);
  CHECK(graph::fuse(graph::prepare(graph::simplify(g), {})).groups.size() == 1);
}

TEST_CASE("a sum over rows of an input is part of a loop that walks the input", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(8, 16)), single(make_shape(8, 16))};
  auto const groups = [&](F const& f) { return graph::fuse(ready(f, metas)).groups.size(); };
  CHECK(groups([](V v) { return std::vector<Array>{sum<0>(v[0]), tanh(v[0] * v[1])}; }) == 1);
  CHECK(groups([](V v) { return std::vector<Array>{tanh(v[0] * v[1]), sum<0>(v[0])}; }) == 1);
  // Not of one that reads the sum, which is whole only when all rows are done; and by itself where nothing else is.
  CHECK(groups([](V v) { return std::vector<Array>{sum<0>(v[0]) + v[0]}; }) == 2);
  CHECK(groups([](V v) { return std::vector<Array>{sum<0>(v[0]), exp(v[1])}; }) == 2);
}

TEST_CASE("a sum over leading axes adds up in memory", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(8, 16))};
  Graph const g = ready([](V v) { return std::vector<Array>{sum<0>(tanh(v[0])), tanh(v[0]) * 2.0}; }, metas);
  graph::Fusion const f = graph::fuse(g);
  REQUIRE(f.groups.size() == 1);
  int accumulated = 0;
  for (int id = 0; id < g.size(); ++id)
    if (g[id].op->code == Code::reduce_sum) accumulated += f.place[static_cast<std::size_t>(id)].accumulated;
  CHECK(accumulated == 1);
}

TEST_CASE("matrix products and ops with kernels of their own stand alone", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(8, 16)), single(make_shape(16, 4)),
                                   Meta{DType::i32, make_shape(5)}};
  Graph const g = ready(
      [](V v) { return std::vector<Array>{tanh(matmul(v[0] * 2.0, v[1])), take(v[1], v[2]) + 1.0}; }, metas);
  graph::Fusion const f = graph::fuse(g);
  CHECK(count(f, graph::Group::Kind::matmul) == 1);
  CHECK(count(f, graph::Group::Kind::opaque) == 1);
  CHECK(count(f, graph::Group::Kind::loop) == 3);
  for (graph::Group const& x : f.groups)
    if (x.kind != graph::Group::Kind::loop) CHECK(x.members.size() == 1);
}

TEST_CASE("what a group reads is complete before it runs", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(6, 6)), single(make_shape(6, 6))};
  // A sum over rows that is needed by what made it, products between, and values used far apart.
  Graph const g = ready(
      [](V v) {
        Array const a = tanh(v[0]), total = sum<0>(a, keepdim), b = a / total, c = matmul(b, a) + total;
        return std::vector<Array>{c * a + sum<1>(c, keepdim), max<0>(b * c)};
      },
      metas);
  graph::Fusion const f = graph::fuse(g);
  for (int id = 0; id < g.size(); ++id) {
    int const mine = f.place[static_cast<std::size_t>(id)].group;
    for (int k = 0; mine >= 0 && k < g[id].op->arity; ++k) {
      int const root = f.access[static_cast<std::size_t>(g[id].in[k])].root;
      int const other = f.place[static_cast<std::size_t>(root)].group;
      if (other >= 0 && other != mine)
        CHECK(f.groups[static_cast<std::size_t>(other)].level <
              f.groups[static_cast<std::size_t>(mine)].level);
    }
  }
  check_layout(graph::make_plan(g, {}));
  check_in_place(g, metas, {});
}

TEST_CASE("a value smaller than its group's space is computed once", "[graph]") {
  // The sum over a row of the second input must not be added up once for each row of the first.
  std::vector<Meta> const metas = {single(make_shape(5, 7)), single(make_shape(1, 7))};
  Graph const g = ready(
      [](V v) {
        return std::vector<Array>{sum<1>(v[1] / (square(min<0, 1>(v[0], keepdim)) + 1.0), keepdim)};
      },
      metas);
  check_in_place(g, metas, {});
}

TEST_CASE("buffers that live at the same time do not overlap", "[graph]") {
  // In double, for the chain multiplies what kernels round differently.
  Meta const square{DType::f64, make_shape(16, 16)};
  std::vector<Meta> const metas = {square, square};
  Graph const g = ready(
      [](V v) {
        Array x = v[0];
        std::vector<Array> kept;
        for (int i = 0; i < 12; ++i) {
          x = matmul(tanh(x), v[1]);
          if (i % 4 == 0) kept.push_back(x);
        }
        for (Array const& k : kept) x = x + k;
        return std::vector<Array>{x};
      },
      metas);
  graph::Plan const plan = graph::make_plan(g, {});
  check_layout(plan);
  std::vector<index_t> offsets(plan.buffers.size() + 1);
  // A chain needs the memory of a few of its values, not of all.
  CHECK(graph::place_buffers(plan.buffers, nullptr, offsets) <= 7 * 16 * 16 * 8);
  check_in_place(g, metas, {});
}

TEST_CASE("parameters are written after their last use", "[graph]") {
  graph::Aliases aliases;
  SECTION("a parameter used twice, once transposed") {
    std::vector<Meta> const metas = {single(make_shape(6, 6)), single(make_shape(4, 6))};
    Graph const g = training_step(
        [](V v) {
          return std::vector<Array>{sum(square(matmul(tanh(matmul(v[1], v[0])), transpose(v[0]))))};
        },
        metas, 1, aliases);
    check_in_place(g, metas, aliases);
  }
  SECTION("an elementwise use of the parameter's transpose in the group that updates it") {
    std::vector<Meta> const metas = {single(make_shape(5, 5))};
    Graph const g = training_step([](V v) { return std::vector<Array>{sum(v[0] * transpose(v[0]) * 0.5)}; },
                                  metas, 1, aliases);
    check_in_place(g, metas, aliases);
  }
  SECTION("two parameters whose updates read each other") {
    std::vector<Meta> const metas = {single(make_shape(7)), single(make_shape(7))};
    Graph const g =
        training_step([](V v) { return std::vector<Array>{sum(v[0] * v[1] * v[1])}; }, metas, 2, aliases);
    check_in_place(g, metas, aliases);
  }
  SECTION("a table that is looked up and a bias that is broadcast") {
    std::vector<Meta> const metas = {single(make_shape(3, 6)), single(make_shape(6)),
                                     Meta{DType::i32, make_shape(4)}};
    Graph const g =
        training_step([](V v) { return std::vector<Array>{sum(square(tanh(take(v[0], v[2]) + v[1])))}; },
                      metas, 2, aliases);
    check_in_place(g, metas, aliases);
  }
  SECTION("a parameter that is handed through and swapped with another") {
    std::vector<Meta> const metas = {single(make_shape(4, 3)), single(make_shape(4, 3))};
    Graph const swap = testing::record([](V v) { return std::vector<Array>{v[1], v[0]}; }, metas);
    graph::Aliases const both = {0, 1};
    check_in_place(graph::prepare(graph::simplify(swap), both), metas, both);
  }
  SECTION("a parameter that one group reads as it is and updates transposed") {
    std::vector<Meta> const metas = {single(make_shape(3, 3)), single(make_shape(3, 3))};
    Graph const g = testing::record(
        [](V v) {
          Array const e = exp(v[1]);
          return std::vector<Array>{v[0] * e, v[0] - transpose(e)};
        },
        metas);
    graph::Aliases const second = {-1, 0};
    check_in_place(graph::prepare(graph::simplify(g), second), metas, second);
  }
  SECTION("two parameters that become the same value") {
    std::vector<Meta> const metas = {single(make_shape(4, 3)), single(make_shape(4, 3))};
    Graph const mean = testing::record(
        [](V v) {
          Array const m = (v[0] + v[1]) * 0.5;
          return std::vector<Array>{m, m};
        },
        metas);
    graph::Aliases const both = {0, 1};
    check_in_place(graph::prepare(graph::simplify(mean), both), metas, both);
  }
}

TEST_CASE("a product's kernel knows when its epilogue reads what it stores to", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(6, 6)), single(make_shape(6, 4)),
                                   single(make_shape(4, 6))};
  graph::Aliases const first = {0};
  Graph const g = ready([](V v) { return std::vector<Array>{v[0] - matmul(v[1], v[2])}; }, metas, first);
  auto const reads_result = [&](graph::Aliases const& aliases) {
    graph::Plan const plan = graph::make_plan(g, aliases);
    REQUIRE(plan.steps.size() == 1);
    REQUIRE(plan.steps[0].epilogue >= 0);
    return plan.steps[0].epilogue_reads_result;
  };
  CHECK(reads_result(first));
  CHECK_FALSE(reads_result({}));
  check_in_place(g, metas, first);
}

TEST_CASE("a product that is an output is stored beside what is made of it", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(5, 3)), single(make_shape(3, 4))};
  Graph const g = ready(
      [](V v) {
        Array const y = matmul(v[0], v[1]);
        return std::vector<Array>{y, tanh(y)};
      },
      metas);
  check_in_place(g, metas, {});
}

TEST_CASE("a cheap value that one group reads in two ways stays where it is made", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(4, 4)), single(make_shape(4, 4))};
  Graph const g = ready(
      [](V v) {
        Array const a = tanh(v[0]), cheap = a * 2.0, e = exp(tanh(matmul(a, v[1])));
        return std::vector<Array>{cheap * e, cheap - transpose(e)};
      },
      metas);
  check_in_place(g, metas, {});
}

TEST_CASE("one value read at the positions of two loops", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(4)), single(make_shape(3, 4))};
  Graph const g = ready(
      [](V v) {
        auto const outer = [&](Array const& h, Array const& x) {
          return scan([&](Array const& sum, Array const& y) { return tanh(sum + x * y); }, h, v[1]);
        };
        return std::vector<Array>{scan(outer, v[0], v[1])};
      },
      metas);
  check_in_place(g, metas, {});
}

TEST_CASE("what does not change in a loop is computed before it", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(7)), single(make_shape(7)), single(make_shape(3, 7))};
  Graph const g = ready(
      [](V v) {
        Array const factor = v[1] * 2.0;
        return std::vector<Array>{
            scan([&](Array const& h, Array const& x) { return tanh(h * factor + x); }, v[0], v[2])};
      },
      metas);
  graph::Fusion const f = graph::plan_fusion(g);
  for (graph::Group const& x : f.groups)
    for (int id : x.members) CHECK(g[id].region == x.region);
  check_in_place(g, metas, {});
}

TEST_CASE("passes visit nodes in proportion to their number", "[graph]") {
  auto const nodes = [](int layers) {
    std::vector<Meta> const metas = {single(make_shape(4, 8)), single(make_shape(8, 8))};
    Graph g = testing::record(
        [&](V v) {
          Array x = v[0];
          for (int i = 0; i < layers; ++i) x = x + tanh(matmul(x, v[1]) * (1.0 + i));
          return std::vector<Array>{sum(x)};
        },
        metas);
    std::vector<int> const wrt = {1};
    testing::add_vjp(g, wrt);
    Graph const small = graph::simplify(g);
    graph::Plan const plan = graph::make_plan(graph::prepare(small, {}), {});
    check_layout(plan);
    return std::pair(small.size(), static_cast<int>(plan.steps.size()));
  };
  auto const [n10, s10] = nodes(10);
  auto const [n20, s20] = nodes(20);
  auto const [n40, s40] = nodes(40);
  CHECK(n40 - n20 == 2 * (n20 - n10));
  CHECK(s40 - s20 == 2 * (s20 - s10));
}

TEST_CASE("a map writes over an operand that nobody reads after it", "[graph]") {
  std::vector<Meta> const metas = {Meta{DType::f32, make_shape(3, 4)}};
  auto const steps_of = [&](auto const& f) {
    Graph const g = ready(f, metas);
    graph::Plan const plan = graph::make_plan(g, {});
    REQUIRE(plan.steps[1].kind == graph::Step::Kind::loop);
    auto const index = [&](int k) {
      return plan.arguments[static_cast<std::size_t>(plan.steps[1].argument + k)].index;
    };
    int const arguments = plan.steps[1].arguments;  // what it reads, what it writes, and maybe scratch
    REQUIRE((arguments == 2 || arguments == 3));
    std::vector<Array> const inputs = {randn(make_shape(3, 4), Key{1}, DType::f32)};
    auto const got = testing::run_plan(g, inputs).results, want = testing::interpret(g, inputs);
    for (std::size_t i = 0; i < got.size(); ++i)
      REQUIRE(testing::error_ratio(got[i], want[i], 1e-6, 1e-6) <= 1);
    return index(0) == index(1) || (arguments == 3 && index(0) == index(2));
  };
  // pad and concat have kernels of their own, the map between them reads one and is read by the other.
  REQUIRE(steps_of([](V v) {
    Array const y = exp(pad_axis(v[0], 0, 1, 1, 0, 0.5));
    return std::vector<Array>{pad_axis(y, 1, 1, 0, 0, 0.0)};
  }));
  // A view has given it another shape.
  REQUIRE(steps_of([](V v) {
    Array const y = exp(reshape(pad_axis(v[0], 0, 1, 1, 0, 0.5), {2, 10}));
    return std::vector<Array>{pad_axis(y, 1, 1, 0, 0, 0.0)};
  }));
  // In the last of the phases that go along a row.
  REQUIRE(steps_of([](V v) {
    Array const y = softmax<1>(pad_axis(v[0], 0, 1, 1, 0, 0.5));
    return std::vector<Array>{pad_axis(y, 1, 1, 0, 0, 0.0)};
  }));
  // Here what the map reads is read again.
  REQUIRE_FALSE(steps_of([](V v) {
    Array const x = pad_axis(v[0], 0, 1, 1, 0, 0.5), y = exp(x);
    return std::vector<Array>{pad_axis(y, 1, 1, 0, 0, 0.0), pad_axis(x, 1, 2, 0, 0, 0.0)};
  }));

  // Here a later phase reads it, when the first result has been stored; the second may take its place.
  auto const two = [](V v) {
    Array const x = pad_axis(v[0], 0, 1, 1, 0, 0.5), y = x * 2.0 - max<1>(x, keepdim),
                z = x * sum<1>(y, keepdim) + 1.0;
    return std::vector<Array>{pad_axis(y, 1, 1, 0, 0, 0.0), pad_axis(z, 1, 1, 0, 0, 0.0)};
  };
  Graph const g = ready(two, metas);
  graph::Plan const plan = graph::make_plan(g, {});
  REQUIRE(plan.steps[1].kind == graph::Step::Kind::loop);
  std::vector<Array> const inputs = {randn(make_shape(3, 4), Key{1}, DType::f32)};
  auto const got = testing::run_plan(g, inputs).results, want = testing::interpret(g, inputs);
  for (std::size_t i = 0; i < 2; ++i) REQUIRE(testing::error_ratio(got[i], want[i], 1e-6, 1e-6) <= 1);
}

TEST_CASE("equal steps have one kernel, described once", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(6, 6)), single(make_shape(6, 6)),
                                   Meta{DType::f64, make_shape(6, 6)}, Meta{DType::f64, make_shape(6, 6)}};
  auto const layers = [](int n) {
    return [n](V v) {
      Array x = v[0], y = matmul(v[2], v[3]);
      for (int i = 0; i < n; ++i) x = x + tanh(matmul(x, v[1]));
      return std::vector<Array>{x, y};
    };
  };
  auto const plan_of = [&](int n) { return graph::make_plan(ready(layers(n), metas), {}); };
  graph::Plan const few = plan_of(4), many = plan_of(12);
  CHECK(many.steps.size() == few.steps.size() + 8);
  CHECK(many.kernels.size() == few.kernels.size());
  CHECK(many.code.size() == few.code.size());
  for (graph::Plan const& plan : {few, many})
    for (graph::Step const& s : plan.steps) {
      graph::Step const& first =
          plan.steps[static_cast<std::size_t>(plan.kernels[static_cast<std::size_t>(s.kernel)])];
      CHECK(first.kernel == s.kernel);
      CHECK(first.code == s.code);
      CHECK(first.epilogue == s.epilogue);
      CHECK(first.dtype == s.dtype);
    }
  check_in_place(ready(layers(3), metas), metas, {});
}

TEST_CASE("a product that is written over what its epilogue reads has a kernel of its own", "[graph]") {
  Meta const m = single(make_shape(6, 6));
  std::vector<Meta> const metas = {m, m, m, m};
  graph::Aliases const first = {0, -1};
  Graph const g =
      ready([](V v) { return std::vector<Array>{v[0] - matmul(v[1], v[2]), v[3] - matmul(v[2], v[1])}; },
            metas, first);
  graph::Plan const plan = graph::make_plan(g, first), apart = graph::make_plan(g, {});
  REQUIRE(plan.steps.size() == 2);
  CHECK(plan.kernels.size() == 2);
  CHECK(apart.kernels.size() == 1);
  check_in_place(g, metas, first);
}

TEST_CASE("buffers lie as they fit best, forwards or backwards in time", "[graph]") {
  auto const arena = [](std::vector<graph::Buffer> const& buffers) {
    std::vector<index_t> offsets(buffers.size() + 1);
    return graph::place_buffers(buffers, nullptr, offsets);
  };
  auto const buffer = [](index_t elements, int first, int last) {
    return graph::Buffer{elements, DType::f32, first, last};
  };
  // A small value makes way for a larger one that stays: it must not lie below.
  CHECK(arena({buffer(16, 0, 1), buffer(32, 1, 5), buffer(32, 2, 5)}) == 4 * 64);
  // The same in the other direction of time.
  CHECK(arena({buffer(32, 0, 3), buffer(32, 0, 4), buffer(16, 4, 5)}) == 4 * 64);
}

TEST_CASE("buffers lie as they fit best, the largest first", "[graph]") {
  std::vector<graph::Buffer> const buffers = {{96, DType::f32, 0, 1}, {16, DType::f32, 1, 3},
                                              {96, DType::f32, 3, 4}, {16, DType::f32, 4, 6},
                                              {96, DType::f32, 6, 7}, {32, DType::f32, 1, 6}};
  std::vector<index_t> offsets(buffers.size() + 1);
  // In the order of time one of the small ones lies where a large one would have to be.
  CHECK(graph::place_buffers(buffers, nullptr, offsets) == (96 + 32 + 16) * 4);
  graph::Plan plan;
  for (graph::Buffer const& b : buffers) plan.buffers.push_back(b);
  check_layout(plan);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {  // none lies upon another, and the best is the best
    plan.buffers = {};
    int const n = 3 + static_cast<int>(integer_at(Key{seed}, 0, 30));
    for (int i = 0, first = 0; i < n; ++i) {
      auto const draw = [&](std::uint64_t k, int below) {
        return static_cast<int>(integer_at(Key{seed}, static_cast<std::uint64_t>(4 * i) + k, below));
      };
      first += draw(1, 3);
      plan.buffers.push_back(graph::Buffer{1 + draw(2, 200), DType::f32, first, first + draw(3, 12)});
    }
    check_layout(plan);
    Vec<index_t> sizes;
    Vec<int> order;
    for (int i = 0; i < n; ++i) {
      sizes.push_back(graph::detail::bytes_of(plan.buffers[i], nullptr));
      order.push_back(i);
    }
    offsets.assign(plan.buffers.size() + 1, 0);
    index_t const best = graph::place_buffers(plan.buffers, nullptr, offsets);
    CHECK(best <= graph::detail::first_fit(plan.buffers, sizes, order, false, offsets));
    CHECK(best <= graph::detail::largest_first(plan.buffers, sizes, offsets));
  }
}

TEST_CASE("large buffers begin where pages do", "[graph]") {
  graph::Plan plan;  // three at once, numbers between them, and one that comes when two are gone
  for (auto const& [elements, first, last] : std::vector<std::array<index_t, 3>>{
           {1, 0, 5}, {8192, 0, 2}, {3, 1, 4}, {8200, 1, 3}, {20000, 1, 2}, {9000, 3, 5}})
    plan.buffers.push_back(
        graph::Buffer{elements, DType::f32, static_cast<int>(first), static_cast<int>(last)});
  check_layout(plan);
  auto const x = zeros({8192});  // and large tensors, 64 bytes after
  CHECK(reinterpret_cast<std::uintptr_t>(x.data<float>()) % 4096 == 64);
}

TEST_CASE("a loop that one other loop alone reads is part of it", "[graph]") {
  Meta const m = single(make_shape(6, 8));
  auto const loops = [&](F const& f, std::vector<Meta> const& metas) {
    Graph const g = ready(f, metas);
    check_in_place(g, metas, {});
    int n = 0;
    for (graph::Group const& x : graph::plan_fusion(g).groups)
      n += x.kind == graph::Group::Kind::loop && !x.members.empty();
    return n;
  };
  auto const wave = [](Array const& x) { return exp(sin(x)) + cos(x) * tanh(x); };
  auto const beside = [&](auto const& f) {  // of x, y and the product of others
    return loops([&](V v) { return f(v, tanh(matmul(v[2], v[3]))); },
                 {m, m, single(make_shape(6, 5)), single(make_shape(5, 8))});
  };
  using R = std::vector<Array>;
  // The loop begins with the product; x is read there instead of the wave.
  CHECK(beside([&](V v, Array const& p) { return R{p * wave(v[0])}; }) == 1);
  CHECK(beside([&](V v, Array const& p) { return R{softmax<1>(p * wave(v[0])) * v[0]}; }) == 1);
  CHECK(beside([&](V v, Array const& p) { return R{p * wave(v[0] * v[1]) - v[1]}; }) == 1);
  // Two values are read where one was, which need not be stored now; but not several times by a loop with sums.
  CHECK(beside([&](V v, Array const& p) { return R{p * wave(v[0] * v[1])}; }) == 1);
  CHECK(beside([&](V v, Array const& p) { return R{softmax<1>(p * wave(v[0] * v[1]))}; }) == 2);
  // The caller wants it too: it is stored there.
  CHECK(beside([&](V v, Array const& p) {
          Array const w = wave(v[0]);
          return R{p * w, w};
        }) == 1);
  // Somebody else reads it: a product, another loop.
  CHECK(beside([&](V v, Array const& p) {
          Array const w = wave(v[0]);
          return R{p * w, matmul(w, transpose(v[1]))};
        }) == 2);
  CHECK(beside([&](V v, Array const& p) {
          Array const w = wave(v[0]);
          return R{p * w, sum<0>(w)};
        }) == 2);
  // It sums, or is read in another order than it is made.
  CHECK(beside([&](V v, Array const& p) { return R{p * sum<1>(wave(v[0]), keepdim)}; }) == 2);
  Meta const square = single(make_shape(6, 6));
  CHECK(loops(
            [&](V v) {
              Array const w = wave(v[0]);
              return R{tanh(matmul(v[1], v[2])) * w * transpose(w)};
            },
            {square, square, square}) == 2);
}

TEST_CASE("two reshapes that have to copy one value copy it once", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(6, 8))};
  F const f = [](V v) {
    Array const z = permute_axes(exp(v[0]), op::pack_axes(std::array{1, 0}.data(), 2));
    return std::vector<Array>{cumsum(reshape_to(z, make_shape(48)), 0),
                              cumsum(reshape_to(z, make_shape(2, 24)), 0)};
  };
  Graph const g = ready(f, metas);
  check_in_place(g, metas, {});
  CHECK(graph::make_plan(g, {}).buffers.size() == 3);  // of the copy and two sums
}

TEST_CASE("what is joined along the first axis is computed where it will lie", "[graph]") {
  Meta const m = single(make_shape(6, 8));
  using R = std::vector<Array>;
  // Kernels that are neither loops nor products, once the values have been found right.
  auto const kernels = [&](F const& f, graph::Aliases const& aliases = {}) {
    std::vector<Meta> const metas = {m, m, single(make_shape(12, 8)), single(make_shape(8, 5))};
    Graph const g = ready(f, metas, aliases);
    check_in_place(g, metas, aliases);
    int n = 0;
    for (graph::Step const& x : graph::make_plan(g, aliases).steps)
      n += x.kind == graph::Step::Kind::opaque || x.kind == graph::Step::Kind::move;
    return n;
  };
  CHECK(kernels([](V v) { return R{exp(concat(tanh(v[0]), sin(v[1])) + v[2])}; }) == 0);
  // A product, and what is joined of what is joined; by way of a view, on an axis behind others of one.
  CHECK(kernels([](V v) {
          Array const p = matmul(v[0], matmul(v[3], transpose(v[3])));
          return R{sin(concat(concat(tanh(v[0]), p), exp(v[1])))};
        }) == 0);
  CHECK(kernels([](V v) {
          Shape const one = make_shape(1, 1, 48);
          return R{sin(concat<2>(reshape_to(tanh(v[0]), one), reshape_to(exp(v[1]), one)))};
        }) == 0);
  // An input is copied there, and so is what is joined twice or a result by itself.
  CHECK(kernels([](V v) { return R{sin(concat(v[0], exp(v[1])))}; }) == 0);
  CHECK(kernels([](V v) { return R{sin(concat(exp(v[0]), exp(v[0])))}; }) == 0);
  CHECK(kernels([](V v) {
          Array const x = exp(v[0]);
          return R{sin(concat(x, tanh(v[1]))), x};
        }) == 0);
  // What one loop writes over all of it another still reads a part of.
  CHECK(kernels([](V v) {
          Array const x = exp(v[0]), y = concat(x, tanh(v[1]));
          Array const sums = sum<0>(sin(y) * v[2]);
          return R{cos(y), matmul(matmul(x, v[3]) * sum<0>(matmul(reshape_to(sums, make_shape(1, 8)), v[3])),
                                  transpose(v[3]))};
        }) == 0);
  // Not rows of several, nor inputs alone; nor where the whole is written over an input.
  CHECK(kernels([](V v) { return R{sin(concat<1>(exp(v[0]), tanh(v[1])))}; }) == 1);
  CHECK(kernels([](V v) { return R{sin(concat(v[0], v[1]))}; }) == 1);
  CHECK(kernels([](V v) { return R{concat(exp(v[0]), tanh(v[1]))}; }, {2}) == 2);
  CHECK(kernels([](V v) { return R{concat(exp(v[0]), tanh(v[1]))}; }) == 0);
}

TEST_CASE("results that are parts of one value lie in it, as far as they have no element in common",
          "[graph]") {
  using R = std::vector<Array>;
  std::vector<Meta> const metas = {single(make_shape(6, 8))};
  auto const steps = [&](F const& f, graph::Aliases const& aliases = {}) {
    Graph const g = ready(f, metas, aliases);
    check_in_place(g, metas, aliases);
    return graph::make_plan(g, aliases).steps.size();
  };
  auto const rows = [](Array const& x, index_t first, index_t n) { return slice_axis(x, 0, first, n); };
  CHECK(steps([&](V v) {
          Array const x = sum<1>(exp(cumsum<0>(v[0])));
          return R{rows(x, 4, 2), rows(x, 0, 3), reshape_to(rows(x, 3, 1), Shape{})};
        }) == 2);
  // Each copy is a step: of what overlaps, of the whole, of what lies between, and beside what takes over memory.
  CHECK(steps([&](V v) {
          Array const x = cumsum<0>(v[0]);
          return R{rows(x, 0, 3), rows(x, 2, 3)};
        }) == 2);
  CHECK(steps([&](V v) {
          Array const x = cumsum<0>(v[0]);
          return R{rows(x, 0, 3), x};
        }) == 2);
  CHECK(steps([&](V v) {
          Array const x = cumsum<0>(v[0]);
          return R{slice_axis(x, 1, 0, 4), slice_axis(x, 1, 4, 4)};
        }) == 2);
  CHECK(steps(
            [&](V v) {
              Array const x = cumsum<0>(v[0]);
              return R{x, rows(x, 2, 3)};
            },
            {0}) == 3);
}
TEST_CASE("a loop outside of a loop over steps is part of none inside", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(6, 6)), single(make_shape(6, 6)),
                                   single(make_shape(4, 6, 6))};
  Graph const g = ready(
      [](V v) {
        Array const wave = exp(sin(v[0])) * v[1];
        return std::vector<Array>{
            scan([&](Array const& h, Array const& x) { return tanh(matmul(h, x)) * wave * v[0] + v[1]; },
                 v[1], v[2])};
      },
      metas);
  check_in_place(g, metas, {});
  graph::Plan const plan = graph::make_plan(g, {});
  REQUIRE(plan.loops.size() == 1);
  CHECK(plan.loops[0].first > 0);  // the wave is made once
  CHECK(plan.loops[0].last - plan.loops[0].first == 1);
}

TEST_CASE("the rows of an epilogue may lie along several axes", "[graph]") {
  std::vector<Meta> const metas = {single(make_shape(2, 3, 5)), single(make_shape(5, 7)),
                                   single(make_shape(7)),       single(make_shape(2, 3, 7)),
                                   single(make_shape(3, 2, 7)), single(make_shape(2, 1, 7))};
  auto const steps = [&](auto const& f) {
    Graph const g = ready(
        [&](V v) {
          Array const y = reshape(matmul(reshape(v[0], make_shape(6, 5)), v[1]), make_shape(2, 3, 7));
          return std::vector<Array>{f(v, y)};
        },
        metas);
    check_in_place(g, metas, {});
    return graph::make_plan(g, {}).steps.size();
  };
  CHECK(steps([](V v, Array const& y) { return tanh(y + v[2]) + v[3]; }) == 1);
  // Operands whose rows are no one walk are none that the product's kernel can go along.
  CHECK(steps([](V v, Array const& y) { return y + permute<1, 0, 2>(v[4]); }) == 2);
  CHECK(steps([](V v, Array const& y) { return y * v[5]; }) == 2);
  CHECK(steps([](V, Array const& y) { return permute<1, 0, 2>(y) * 2.0; }) == 2);
}

TEST_CASE("what waits for nothing in a loop is made where it is needed", "[graph]") {
  std::vector<Meta> const metas = {Meta{DType::f64, make_shape(16, 16)},
                                   Meta{DType::f64, make_shape(3, 16, 16)}};
  Graph const g = ready(
      [](V v) {
        return std::vector<Array>{scan(
            [](Array h, Array const& x) {
              for (int i = 0; i < 8; ++i) h = matmul(h, tanh(x * (0.1 + i) * 0.05));
              return h;
            },
            v[0], v[1])};
      },
      metas);
  graph::Plan const plan = graph::make_plan(g, {});
  check_layout(plan);
  std::vector<index_t> offsets(plan.buffers.size() + 1);
  CHECK(graph::place_buffers(plan.buffers, nullptr, offsets) <= 6 * 16 * 16 * 8);
  check_in_place(g, metas, {});
}

}  // namespace tests::graph_plan
