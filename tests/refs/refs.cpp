// SPDX-License-Identifier: BSL-1.0
// All reference cases of the ops that the library has: values eagerly and through the passes, gradients and
// second-order products through trace, pull_back and interpret, and forward mode against reverse mode. Prints a
// table.
#include "graph/batched.hpp"
#include "refs/functions.hpp"

#include <dfdx/tape/backward.hpp>
#include <dfdx/testing/run_plan.hpp>
#include <dfdx/vocabulary/draw.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdio>

namespace refs {

std::map<std::string, Function> const& functions() {
  static std::map<std::string, Function> const table = [] {
    std::map<std::string, Function> t;
    add_elementwise(t);
    add_reductions(t);
    add_shapes(t);
    add_networks(t);
    add_layers(t);
    add_optimizers(t);
    return t;
  }();
  return table;
}

namespace {

using namespace dfdx;

struct Tally {
  int cases = 0;
  double worst = 0;
  std::string worst_where;
  std::vector<std::string> failures;

  void see(double ratio, std::string const& where) {
    if (ratio > worst) {
      worst = ratio;
      worst_where = where;
    }
    if (!(ratio <= 1))
      failures.push_back(where + ": error is " + std::to_string(ratio) + " of the tolerance");
  }
};

// The same numbers, every axis walked backwards through memory order.
Array scattered(Array const& x) {
  int axes[max_rank] = {};
  for (int i = 0; i < x.ndim(); ++i) axes[i] = x.ndim() - 1 - i;
  index_t const reversed = op::pack_axes(axes, x.ndim());
  Array const turned = dfdx::detail::packed(permute_axes(x, reversed));
  return permute_axes(turned, reversed);
}

double largest(Array const& x) {
  double r = 0;
  for (index_t i = 0; i < x.size(); ++i)
    if (double const v = std::fabs(read_real(x.operand(), i)); std::isfinite(v) && v > r) r = v;
  return r;
}

// A number that the references hold as a vector of one element, as the number it is.
Array in_shape(Array const& reference, Shape const& shape) {
  return shape.rank == 0 && reference.size() == 1 ? reference.view(shape, Strides{}) : reference;
}

bool is_optimizer(Case const& c) { return c.op.rfind("optim_", 0) == 0 || c.op == "clip_grad_norm"; }

void check_values(Case const& c, std::vector<Array> const& got, Tally& t, char const* how) {
  if (got.size() != c.outputs.size()) throw std::runtime_error("another number of results");
  for (std::size_t j = 0; j < got.size(); ++j) {
    Array const want = in_shape(c.outputs[j], got[j].shape());
    t.see(testing::error_ratio(got[j], want, c.rtol, c.atol_out), c.id + " " + how);
  }
}

// Through all passes, fusion and planning among them.
std::vector<Array> planned(Graph const& g, std::vector<Array> const& inputs) {
  return testing::run_plan(graph::prepare(graph::simplify(g), {}), inputs).results;
}

// Gradients of celu and hardsigmoid in double: the references round 1/alpha and 1/6 to float, which moves them by 1e-8
// of themselves. Ours are exact.
double slack(Case const& c) {
  return c.dtype == "f64" && (c.op == "celu" || c.op == "hardsigmoid") ? 3000 : 1;
}

// Along an axis of one element the gradient of normalize is 0, as is that of queries with a single key; the references
// hold what their roundings leave of it.
double rounding(Case const& c) {
  bool single = c.op == "sdpa" && c["k"].shape()[c["k"].ndim() - 2] == 1;
  if (c.op == "normalize") {
    int const axis = c.attrs.at("axis").get<int>(), rank = c["x"].ndim();
    single = c["x"].shape()[axis < 0 ? axis + rank : axis] == 1;
  }
  return !single ? 0 : c.dtype == "f64" ? 1e-13 : 1e-5;
}

// For several examples at once what it is for each, bit for bit: all inputs mapped over, the first only, all others.
void check_batched(Case const& c, Graph const& g, std::vector<Array> const& inputs) {
  for (int which = 0; which < 3; ++which) {
    std::vector<bool> mapped(inputs.size());
    std::vector<Array> examples = inputs;
    bool any = false;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      mapped[k] = which == 0 || (k == 0) == (which == 1);
      any = any || mapped[k];
      if (mapped[k]) examples[k] = batched::examples_like(inputs[k], 2);
    }
    if (!any) continue;
    std::string const d = batched::difference(g, mapped, examples, 2);
    if (!d.empty()) throw std::runtime_error(c.id + " batched: " + d);
  }
}

// Second derivatives have no tolerance of their own. Where terms cancel, as in the tail of gelu, what is left is a
// rounding of the terms, which are of the size of the factors.
double hvp_error(Case const& c, std::size_t i, Array const& got) {
  double factors = 0;
  for (Array const& v : c.hvp_v)
    for (Array const& w : c.gout) factors = std::fmax(factors, largest(v) * largest(w));
  double const atol = 1e-10 * largest(c.hvp[i]) + 1e-14 * factors + rounding(c) + 1e-300;
  return testing::error_ratio(got, c.hvp[i], c.rtol, atol) / slack(c);
}

void check_gradients(Case const& c, Graph g, Tally& t) {
  std::vector<int> wrt;
  for (std::size_t i = 0; i < c.diff.size(); ++i) wrt.push_back(static_cast<int>(i));
  std::vector<Array> inputs = c.inputs;
  // Running statistics come last, and have no cotangents.
  g.outputs.resize(c.gout.size());
  Graph forward = g;
  for (std::size_t j = 0; j < c.gout.size(); ++j)
    inputs.push_back(in_shape(c.gout[j], g[g.outputs[j]].meta.shape));
  testing::add_vjp(g, wrt);
  auto const check = [&](std::vector<Array> const& gin, char const* name) {
    for (std::size_t i = 0; i < gin.size(); ++i)
      t.see(testing::error_ratio(gin[i], c.gin[i], c.rtol, c.atol_grad[i] + rounding(c)) / slack(c),
            c.id + " " + name + " " + c.diff[i]);
  };
  check(testing::interpret(g, inputs), "gradient");
  check(testing::interpret(graph::simplify(g), inputs), "simplified gradient");
  check(planned(g, inputs), "planned gradient");
  check_batched(c, g, inputs);

  // <J v, w> = <v, J' w>, with the reference's gradients on the right.
  std::vector<Array> with_tangents = c.inputs;
  double right = 0, scale = rounding(c) * 1e12, given = 1e-300;
  for (std::size_t i = 0; i < c.diff.size(); ++i) {
    Array const v = randn(c.inputs[i].shape(), Key{i + 7}, c.inputs[i].dtype());
    with_tangents.push_back(v);
    right += testing::dot(v, c.gin[i]);
    auto const terms = largest(v) * static_cast<double>(v.size() + 1);
    scale += terms * largest(c.gin[i]);
    given += terms * c.atol_grad[i];  // where the terms of a gradient cancel
  }
  testing::add_jvp(forward, wrt);
  std::vector<Array> const tangents = testing::interpret(graph::simplify(forward), with_tangents);
  double left = 0;
  for (std::size_t j = 0; j < c.gout.size(); ++j) left += testing::dot(tangents[j], c.gout[j]);
  t.see(std::fabs(left - right) / (scale * slack(c) * (c.dtype == "f64" ? 1e-11 : 1e-5) + given),
        c.id + " jvp");

  if (c.hvp.empty()) return;
  inputs.insert(inputs.end(), c.hvp_v.begin(), c.hvp_v.end());
  testing::add_vjp(g, wrt);
  for (bool fused : {false, true}) {
    std::vector<Array> const hvp = fused ? planned(g, inputs) : testing::interpret(g, inputs);
    for (std::size_t i = 0; i < hvp.size(); ++i) t.see(hvp_error(c, i, hvp[i]), c.id + " hvp " + c.diff[i]);
  }
}

// The same on the tape: gradients by backward(), those of second order by recording the first pass.
void check_tape(Case const& c, Function const& f, Tally& t) {
  std::vector<Array> inputs;
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(c.inputs[i].detach());
    if (i < c.diff.size()) inputs[i].requires_grad(true);
  }
  std::span<Array const> const wrt(inputs.data(), c.diff.size());
  std::vector<Array> const results = f(Arguments(c, inputs));
  check_values(c, results, t, "tape");
  for (std::size_t j = 0; j < c.gout.size(); ++j)
    if (results[j].requires_grad())
      results[j].backward(in_shape(c.gout[j], results[j].shape()), {.retain_graph = true});
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    Array const g = wrt[i].grad();
    t.see(testing::error_ratio(g.empty() ? zeros_like(c.inputs[i]) : g, c.gin[i], c.rtol,
                               c.atol_grad[i] + rounding(c)) /
              slack(c),
          c.id + " tape gradient " + c.diff[i]);
  }
  if (c.hvp.empty()) return;
  Array total = full({}, 0, c.inputs[0].dtype());
  for (std::size_t j = 0; j < c.gout.size(); ++j)
    total = total + sum(results[j] * in_shape(c.gout[j], results[j].shape()));
  std::vector<Array> const g = gradients(total, wrt, {.create_graph = true});
  Array along = full({}, 0, c.inputs[0].dtype());
  for (std::size_t i = 0; i < g.size(); ++i) along = along + sum(g[i] * c.hvp_v[i]);
  std::vector<Array> hvp;
  if (along.requires_grad()) hvp = gradients(along, wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    Array const got = hvp.empty() ? zeros_like(c.inputs[i]) : hvp[i];
    t.see(hvp_error(c, i, got), c.id + " tape hvp " + c.diff[i]);
  }
}

void run_case(Case const& c, Function const& f, Tally& t) {
  check_values(c, f(Arguments(c, c.inputs)), t, "eager");
  if (is_optimizer(c)) return;
  std::vector<Array> turned;
  for (Array const& x : c.inputs) turned.push_back(scattered(x));
  check_values(c, f(Arguments(c, turned)), t, "eager, strided");
  std::vector<Meta> metas;
  for (Array const& x : c.inputs) metas.push_back(x.meta());
  Graph g = testing::record(
      [&](std::span<Array const> x) { return f(Arguments(c, std::vector<Array>(x.begin(), x.end()))); },
      metas);
  check_values(c, testing::interpret(graph::simplify(g), c.inputs), t, "simplified");
  check_values(c, planned(g, c.inputs), t, "planned");
  // Of truths (isnan) the references hold gradients, all zero, but no cotangents.
  if (c.gin.empty() || c.gout.empty()) return;
  check_gradients(c, g, t);
  check_tape(c, f, t);
}

}  // namespace

TEST_CASE("reference results", "[refs]") {
  std::filesystem::path const dir = folder();
  if (dir.empty() || !std::filesystem::exists(dir / "manifest.json"))
    SKIP("no reference results: set DFDX_REFS to a folder with a manifest.json");
  Manifest const manifest(dir);
  std::printf("%-20s %6s  %-10s %s\n", "op", "cases", "worst", "(largest error over tolerance)");
  int cases = 0;
  for (auto const& [op, f] : functions()) {
    if (!manifest.has(op)) continue;
    Tally t;
    for (Case const& c : manifest.cases(op)) {
      ++t.cases;
      try {
        run_case(c, f, t);
      } catch (std::exception const& e) {
        t.failures.push_back(c.id + ": " + e.what());
      }
    }
    cases += t.cases;
    std::printf("%-20s %6d  %-10.3g %s\n", op.c_str(), t.cases, t.worst,
                t.worst > 0.5 ? t.worst_where.c_str() : "");
    for (std::size_t i = 0; i < t.failures.size() && i < 5; ++i) UNSCOPED_INFO(t.failures[i]);
    INFO(op << ": " << t.failures.size() << " comparisons failed");
    CHECK(t.failures.empty());
  }
  int unknown = 0;
  for (std::string const& op : manifest.ops())
    if (functions().find(op) == functions().end()) {
      std::printf("%-20s not known, %d cases left out\n", op.c_str(), static_cast<int>(manifest.count(op)));
      ++unknown;
    }
  std::printf("%d cases of %d\n", cases, manifest.total());
  std::fflush(stdout);
  CHECK(cases > 0);
  // Other folders may hold functions that the library does not have.
  if (std::getenv("DFDX_REFS") == nullptr) CHECK(unknown == 0);
}

}  // namespace refs
