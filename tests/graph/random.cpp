// SPDX-License-Identifier: BSL-1.0
// Random graphs through all passes: each leaves a sound graph and the values as they were; gradients agree between
// the passes and between forward and reverse mode.
#include "graph/batched.hpp"
#include "graph/random_graph.hpp"

#include <dfdx/graph/absorb.hpp>
#include <dfdx/graph/casts.hpp>
#include <dfdx/graph/components.hpp>
#include <dfdx/graph/scalars.hpp>
#include <dfdx/graph/verify.hpp>
#include <dfdx/testing/run_plan.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>

namespace tests::graph_random {

namespace {

using namespace dfdx;
using random_graph::Loops;

// Rounding adds up along these chains; errors of the passes are of the size of the values.
double tolerance(DType d) { return d == DType::f64 ? 1e-9 : 2e-3; }

void require_same(std::vector<Array> const& got, std::vector<Array> const& want, DType d, char const* what) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    double scale = 1e-3;  // where values cancel, of what cancelled
    for (index_t k = 0; k < want[i].size(); ++k)
      if (double const v = std::fabs(read_real(dfdx::detail::packed(want[i]).operand(), k));
          v > scale && std::isfinite(v))
        scale = v;
    INFO(what << ", output " << i);
    REQUIRE(testing::error_ratio(got[i], want[i], tolerance(d), tolerance(d) * scale) <= 1);
  }
}

void check_plan(Graph const& g, std::vector<Array> const& inputs, std::vector<Array> const& want, DType d) {
  Graph const ready = graph::prepare(g, {});
  REQUIRE(std::string(graph::verify(ready).c_str()) == "");
  require_same(testing::interpret(ready, inputs), want, d, "prepare");
  require_same(testing::run_plan(ready, inputs).results, want, d, "plan");
}

// Graphs with loops that were small enough, and with vectors that only sums read.
int scalarized = 0, split = 0;

void check_passes(Graph const& g, std::vector<Array> const& inputs, DType d) {
  REQUIRE(std::string(graph::verify(g).c_str()) == "");
  std::vector<Array> const want = testing::interpret(g, inputs);
  Graph const small = graph::simplify(g);
  REQUIRE(std::string(graph::verify(small).c_str()) == "");
  REQUIRE(small.size() <= g.size());
  require_same(testing::interpret(small, inputs), want, d, "simplify");
  Graph const cast = graph::place_casts(small);
  REQUIRE(std::string(graph::verify(cast).c_str()) == "");
  require_same(testing::interpret(cast, inputs), want, d, "casts");
  Graph const components = graph::split_components(cast, {}, 1, 1);
  if (components.size() != cast.size()) {
    ++split;
    REQUIRE(std::string(graph::verify(components).c_str()) == "");
    require_same(testing::interpret(components, inputs), want, d, "components");
    check_plan(components, inputs, want, d);
  }
  Graph const absorbed = graph::absorb(cast, 1);
  REQUIRE(std::string(graph::verify(absorbed).c_str()) == "");
  require_same(testing::interpret(absorbed, inputs), want, d, "absorb");
  check_plan(absorbed, inputs, want, d);
  Graph const numbers = graph::scalarize(absorbed, 1 << 20);
  if (numbers.size() == absorbed.size()) return;  // no loop is that small
  ++scalarized;
  REQUIRE(std::string(graph::verify(numbers).c_str()) == "");
  require_same(testing::interpret(numbers, inputs), want, d, "scalarize");
  check_plan(numbers, inputs, want, d);
}

void check_sample(random_graph::Sample s, DType d, bool is_rounded = false) {
  std::vector<int> wrt;
  for (int i = 0; i < s.parameters; ++i) wrt.push_back(i);
  check_passes(s.graph, s.inputs, d);

  std::vector<Array> cts, tangents, primal = s.inputs;
  for (int o : s.graph.outputs) cts.push_back(randn(s.graph[o].meta.shape, Key{cts.size() + 100}, d));
  for (int w : wrt) tangents.push_back(randn(s.graph[w].meta.shape, Key{tangents.size() + 200}, d));
  Graph reverse = s.graph, forward = s.graph;
  testing::add_vjp(reverse, wrt);
  testing::add_jvp(forward, wrt);
  std::vector<Array> with_cts = primal, with_tangents = primal;
  with_cts.insert(with_cts.end(), cts.begin(), cts.end());
  with_tangents.insert(with_tangents.end(), tangents.begin(), tangents.end());
  check_passes(reverse, with_cts, d);
  check_passes(forward, with_tangents, d);
  if (is_rounded) return;  // tangents and cotangents as well, so that they are no longer adjoint

  double left = 0, right = 0, scale = 1e-3;
  std::vector<Array> const jv = testing::interpret(forward, with_tangents),
                           jw = testing::interpret(reverse, with_cts);
  for (std::size_t i = 0; i < jv.size(); ++i) {
    left += testing::dot(jv[i], cts[i]);
    scale += std::sqrt(testing::dot(jv[i], jv[i]) * testing::dot(cts[i], cts[i]));
  }
  for (std::size_t i = 0; i < jw.size(); ++i) {
    right += testing::dot(jw[i], tangents[i]);
    scale += std::sqrt(testing::dot(jw[i], jw[i]) * testing::dot(tangents[i], tangents[i]));
  }
  if (std::isfinite(scale)) REQUIRE(std::fabs(left - right) <= 10 * tolerance(d) * scale);
}

bool same_bits(Array const& a, Array const& b) {
  Array const x = dfdx::detail::packed(a), y = dfdx::detail::packed(b);
  return x.meta() == y.meta() &&
         std::memcmp(x.bytes(), y.bytes(), static_cast<std::size_t>(x.size()) * size_of(x.dtype())) == 0;
}

// Outputs of which some are written where inputs lie.
void check_written(Graph const& g, std::vector<Array> const& inputs, graph::Aliases const& aliases, DType d) {
  std::vector<Array> const want = testing::interpret(g, inputs);
  auto const check = [&](Graph const& of) {
    Graph const ready = graph::prepare(graph::absorb(of, 1), aliases);
    REQUIRE(std::string(graph::verify(ready).c_str()) == "");
    testing::PlanRun const run = testing::run_plan(ready, inputs, aliases);
    require_same(run.results, want, d, "in place");
    for (std::size_t k = 0; k < aliases.size(); ++k)
      if (aliases[k] >= 0)
        require_same({run.inputs[static_cast<std::size_t>(aliases[k])]}, {want[k]}, d, "written");
  };
  Graph const cast = graph::place_casts(graph::simplify(g));
  check(cast);
  Graph const components = graph::split_components(cast, aliases, 1, 1);
  if (components.size() != cast.size()) check(components);
}

// A step of gradient descent that writes the parameters where they are, as train_step's programs do.
void check_in_place(random_graph::Sample s, DType d) {
  std::vector<int> wrt;
  std::vector<Sym> ends, cts;
  for (int i = 0; i < s.parameters; ++i) wrt.push_back(i);
  Graph& g = s.graph;
  graph::Aliases aliases;
  for (int o : g.outputs) {
    ends.push_back(Sym{&g, o});
    cts.push_back(full_as(Sym{&g, o}, Meta(g[o].meta), 0.5));
    aliases.push_back(-1);
  }
  auto const gradients = graph::pull_back(g, ends, cts, wrt);
  for (int i = 0; i < s.parameters; ++i) {
    Sym const p{&g, i};
    g.outputs.push_back((p - gradients[static_cast<std::size_t>(i)] * 0.25).id);
    aliases.push_back(i);
  }
  check_written(g, s.inputs, aliases, d);
}

// Some values of a graph written where inputs lie, whatever else reads these.
void check_aliases(random_graph::Sample s, std::uint64_t seed) {
  random_graph::Dice dice(seed);
  Graph& g = s.graph;
  auto const is_result = [&](int id) { return g[id].region < 0 && g[id].meta.dtype == DType::f64; };
  for (int id : s.stacked)
    if (is_result(id)) g.outputs.push_back(id);
  for (int tries = 0; tries < 4; ++tries) {
    int const id = dice(g.size());
    if (is_result(id) && g[id].op->arity > 0 && g[id].op->code != Code::carry) g.outputs.push_back(id);
  }
  graph::Aliases aliases;
  std::vector<char> used(s.inputs.size(), 0);
  for (int o : g.outputs) {
    int to = -1;
    for (int i = 0; i < s.parameters; ++i)
      if (used[static_cast<std::size_t>(i)] == 0 && g[i].meta == g[o].meta && dice.once_in(2)) to = i;
    if (to >= 0) used[static_cast<std::size_t>(to)] = 1;
    aliases.push_back(to);
  }
  check_written(g, s.inputs, aliases, DType::f64);
}

// Values and derivatives of the first two orders.
std::vector<std::vector<Array>> derivatives(random_graph::Sample const& s) {
  std::vector<int> wrt;
  for (int i = 0; i < s.parameters; ++i) wrt.push_back(i);
  std::vector<std::vector<Array>> r;
  for (char const* order : {"", "r", "f", "rr", "rf", "fr", "ff"}) {
    Graph g = s.graph;
    std::vector<Array> inputs = s.inputs;
    for (char const* mode = order; *mode != 0; ++mode) {
      auto const known = static_cast<int>(inputs.size());
      if (*mode == 'r') testing::add_vjp(g, wrt);
      else testing::add_jvp(g, wrt);
      for (Node const& n : g.nodes)
        if (n.op->code == Code::input && n.attrs.i[0] >= known)
          inputs.push_back(randn(n.meta.shape, Key{static_cast<std::uint64_t>(n.attrs.i[0])}, n.meta.dtype));
    }
    r.push_back(testing::interpret(g, inputs));
    Graph const ready = graph::prepare(graph::simplify(g), {});
    REQUIRE(std::string(graph::verify(ready).c_str()) == "");
    require_same(testing::run_plan(ready, inputs).results, r.back(), DType::f64, order);
  }
  return r;
}

// More with DFDX_FUZZ=N in the environment.
// Vectors of 2 to 8 numbers between all of 4 and 5 points, of which sums over some axes are taken, and used again.
random_graph::Sample pairs(std::uint64_t seed, int size, DType d) {
  random_graph::Sample s;
  random_graph::detail::Builder b{random_graph::Dice(seed), d, {}, {}};
  index_t const c = b.dice.once_in(2) ? 3 : 2 + b.dice(7);
  Shape const shapes[] = {make_shape(4, 1, c), make_shape(1, 5, c), make_shape(4, 5, 1), make_shape(c),
                          make_shape(4, 1, 1)};
  std::vector<Array> few, many, sums;
  s.parameters = 5;
  for (Shape const& shape : shapes) {
    s.inputs.push_back(randn(shape, Key{seed * 16 + s.inputs.size()}, d));
    few.push_back(testing::add_input(s.graph, Meta{d, shape}));
  }
  auto const one_of = [&](std::vector<Array> const& v) {
    return v[static_cast<std::size_t>(b.dice(static_cast<int>(v.size())))];
  };
  many.push_back(few[0] - few[1]);
  for (int i = 0; i < size; ++i) switch (b.dice(4)) {
      case 0: many.push_back(b.unary(one_of(many))); break;
      case 1: many.push_back(b.binary(one_of(many), one_of(few))); break;
      case 2: many.push_back(b.binary(one_of(few), one_of(many))); break;
      default:
        few.push_back(dfdx::detail::reduce_mask<op::sum, void>(one_of(many), 1 + b.dice(7), true) * 0.25);
        sums.push_back(few.back());
    }
  sums.push_back(dfdx::detail::reduce_mask<op::sum, void>(many.back(), 4, b.dice.once_in(2)));
  for (int k = 1 + b.dice(3); k > 0; --k) s.graph.outputs.push_back(one_of(sums).id());
  s.graph.outputs.push_back(sums.back().id());
  if (b.dice.once_in(8)) s.graph.outputs.push_back(one_of(many).id());
  return s;
}

int rounds(int otherwise) {
  char const* n = std::getenv("DFDX_FUZZ");
  return n != nullptr ? std::atoi(n) : otherwise;
}
// Those of the rounds, and some that found a fault once.
std::vector<int> seeds(int otherwise, std::initializer_list<int> known) {
  std::vector<int> r(known);
  for (int seed = 0; seed < rounds(otherwise); ++seed) r.push_back(seed);
  return r;
}

}  // namespace

TEST_CASE("random graphs in f64", "[graph]") {
  for (int seed = 0; seed < rounds(300); ++seed) {
    INFO("seed " << seed);
    check_sample(random_graph::make(static_cast<std::uint64_t>(seed), 4 + seed % 23, DType::f64), DType::f64);
  }
}

TEST_CASE("random sums of vectors between pairs of points", "[graph]") {
  split = 0;
  for (int seed = 0; seed < rounds(200); ++seed) {
    INFO("seed " << seed);
    check_sample(pairs(120000 + static_cast<std::uint64_t>(seed), 3 + seed % 13, DType::f64), DType::f64);
  }
  CHECK(split > rounds(200) / 2);  // of graphs and of those of their derivatives
}

TEST_CASE("random graphs with empty arrays", "[graph]") {
  for (int seed = 0; seed < rounds(150); ++seed) {
    INFO("seed " << seed);
    auto const at = 20000 + static_cast<std::uint64_t>(seed);
    check_sample(random_graph::make(at, 3 + seed % 13, DType::f64, true), DType::f64);
  }
}

TEST_CASE("random training steps in place", "[graph]") {
  for (int seed = 0; seed < rounds(300); ++seed) {
    INFO("seed " << seed);
    auto const at = 40000 + static_cast<std::uint64_t>(seed);
    check_in_place(random_graph::make(at, 2 + seed % 17, DType::f64, seed % 8 == 0), DType::f64);
  }
}

TEST_CASE("random layers, masks and elements at places", "[graph]") {
  for (int seed = 0; seed < rounds(300); ++seed) {
    INFO("seed " << seed);
    auto const at = 110000 + static_cast<std::uint64_t>(seed);
    Loops const loops = seed % 3 == 0 ? Loops::scanned : Loops::none;
    random_graph::Sample const s = random_graph::make(at, 3 + seed % 17, DType::f64, false, loops, true);
    check_sample(s, DType::f64);
    check_in_place(s, DType::f64);
    check_aliases(s, at);
  }
}

TEST_CASE("random graphs with loops", "[graph]") {
  scalarized = 0;
  for (int seed = 0; seed < rounds(300); ++seed) {
    INFO("seed " << seed);
    auto const at = 60000 + static_cast<std::uint64_t>(seed);
    check_sample(random_graph::make(at, 2 + seed % 9, DType::f64, seed % 10 == 0, Loops::scanned),
                 DType::f64);
  }
  CHECK(scalarized > rounds(300) / 10);
}

TEST_CASE("random loops and their derivatives are those of the unrolled ones", "[graph]") {
  for (int seed = 0; seed < rounds(120); ++seed) {
    INFO("seed " << seed);
    auto const at = 70000 + static_cast<std::uint64_t>(seed);
    int const size = 1 + seed % 6;
    auto const loops = derivatives(random_graph::make(at, size, DType::f64, false, Loops::scanned));
    auto const unrolled = derivatives(random_graph::make(at, size, DType::f64, false, Loops::unrolled));
    for (std::size_t i = 0; i < loops.size(); ++i)
      require_same(loops[i], unrolled[i], DType::f64, "unrolled");
  }
}

TEST_CASE("random loops computed again in backward passes have the same derivatives", "[graph]") {
  for (int seed : seeds(120, {803})) {  // an exit that reads what comes after another one
    INFO("seed " << seed);
    random_graph::Sample s = random_graph::make(90000 + static_cast<std::uint64_t>(seed), 1 + seed % 6,
                                                DType::f64, false, Loops::scanned, false, 2 + seed % 2);
    auto const kept = derivatives(s);
    for (std::size_t r = 0; r < s.graph.regions.size(); ++r)
      s.graph.regions[r].recomputed = (static_cast<std::size_t>(seed) + r) % 3 != 0;
    auto const again = derivatives(s);
    for (std::size_t i = 0; i < kept.size(); ++i)
      for (std::size_t k = 0; i < 3 && k < kept[i].size(); ++k) REQUIRE(same_bits(again[i][k], kept[i][k]));
    // Those of second order add up in another order.
    for (std::size_t i = 3; i < kept.size(); ++i) require_same(again[i], kept[i], DType::f64, "again");
  }
}

TEST_CASE("random graphs for several examples at once are those for each, bit for bit", "[graph]") {
  // A loop inside of one that is recorded anew; an exit that reads what is the same for all examples.
  for (int seed : seeds(120, {676, 970})) {
    INFO("seed " << seed);
    auto const loops = seed % 2 == 0 ? Loops::scanned : Loops::none;
    random_graph::Sample s =
        random_graph::make(95000 + static_cast<std::uint64_t>(seed), 1 + seed % 7, DType::f64, false, loops);
    std::vector<int> wrt;
    for (int i = 0; i < s.parameters; ++i) wrt.push_back(i);
    std::vector<Array> inputs = s.inputs;
    if (seed % 3 != 0) {
      for (int o : s.graph.outputs)
        inputs.push_back(randn(s.graph[o].meta.shape, Key{inputs.size()}, DType::f64));
      testing::add_vjp(s.graph, wrt);
    }
    std::vector<bool> mapped(inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      mapped[k] = k == 0 || (static_cast<std::size_t>(seed) + k) % 3 != 0;
      if (mapped[k]) inputs[k] = batched::examples_like(inputs[k], 3);
    }
    REQUIRE(batched::difference(s.graph, mapped, inputs, 3) == "");
  }
}

TEST_CASE("random graphs that move values of 16 bits, and join some", "[graph]") {
  for (int seed = 0; seed < rounds(400); ++seed) {
    INFO("seed " << seed);
    auto const at = 130000 + static_cast<std::uint64_t>(seed);
    Loops const loops = seed % 2 == 0 ? Loops::scanned : Loops::none;
    random_graph::Sample const s =
        random_graph::make(at, 3 + seed % 17, DType::f64, seed % 10 == 0, loops, seed % 3 == 0, 2, true);
    check_sample(s, DType::f64, true);
    check_in_place(s, DType::f64);
    check_aliases(s, at);
  }
}

TEST_CASE("random training steps with loops in place", "[graph]") {
  for (int seed = 0; seed < rounds(200); ++seed) {
    INFO("seed " << seed);
    auto const at = 80000 + static_cast<std::uint64_t>(seed);
    check_in_place(random_graph::make(at, 2 + seed % 7, DType::f64, seed % 8 == 0, Loops::scanned),
                   DType::f64);
  }
}

TEST_CASE("random graphs in f32", "[graph]") {
  for (int seed = 0; seed < rounds(60); ++seed) {
    INFO("seed " << seed);
    check_sample(random_graph::make(1000 + static_cast<std::uint64_t>(seed), 3 + seed % 9, DType::f32),
                 DType::f32);
  }
}

}  // namespace tests::graph_random
