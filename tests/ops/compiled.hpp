// SPDX-License-Identifier: BSL-1.0
// Compiled programs against the eager kernels: every distinct program costs compile time, so each covers many ops.
#pragma once

#include <dfdx/program/transforms.hpp>
#include <dfdx/testing/interpret.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/draw.hpp>

#include <catch2/catch_test_macros.hpp>

#include "allocations.hpp"

#include <map>
#include <set>
#include <string>

namespace compiled {

using namespace dfdx;

/// In how many compiled programs of this run each op is (compiled_twice.cpp looks).
inline std::map<std::string, int>& uses() {
  static std::map<std::string, int> r;
  return r;
}
inline std::vector<Array> interpret(Graph const& g, std::vector<Array> const& inputs) {
  std::set<std::string> names;
  for (int i = 0; i < g.size(); ++i) names.insert(g[i].op->name);
  for (std::string const& name : names) ++uses()[name];
  return testing::interpret(g, inputs);
}

inline double tolerance(DType d) {
  if (d == DType::f64) return 1e-12;
  if (d == DType::f32) return 2e-5;
  return d == DType::f16 ? 1e-2 : d == DType::bf16 ? 5e-2 : 0;
}

template <class Tree>
std::vector<Array> leaves(Tree const& t) {
  std::vector<Array> r;
  visit(t, [&](auto const& leaf) { r.push_back(leaf); });
  return r;
}

inline void require_same(std::vector<Array> const& got, std::vector<Array> const& want, char const* what) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    double scale = 0;
    Array const dense = dfdx::detail::packed(want[i]);
    for (index_t k = 0; k < dense.size(); ++k)
      if (double const v = std::fabs(read_real(dense.operand(), k)); v > scale && std::isfinite(v)) scale = v;
    double const t = tolerance(want[i].dtype());
    INFO(what << ", result " << i << ", " << name_of(want[i].dtype()));
    CHECK(got[i].dtype() == want[i].dtype());
    if (!is_floating(want[i].dtype())) CHECK(array_equal(got[i], want[i]));  // i64 has more bits than double
    CHECK(testing::error_ratio(got[i], want[i], t, t * scale + 1e-300) <= 1);
  }
}

/// The program of f on a device against the same on the CPU, where a test is compiled for devices: twice, for the
/// second time it is captured if it can be.
template <class F, class... A>
void check_on_device([[maybe_unused]] F const& f, [[maybe_unused]] std::vector<Array> const& want,
                     [[maybe_unused]] A const&... args) {
#if defined(DFDX_WITH_CUDA)
  auto program = f;
  for (int k = 0; k < 2; ++k) {
    auto const result = program(to(cuda(), args)...);
    require_same(leaves(to(Device{}, result)), want, "on a device");
  }
#endif
}

/// A program that was called before makes its results in blocks that were given back, and asks for no others.
template <class Call>
void check_allocates_nothing(Call const& call) {
  if (!DFDX_KEEPS_BLOCKS || kernels::has_threads) return;
  static_cast<void>(call());
  std::int64_t const before = tests::allocations();
  static_cast<void>(call());
  CHECK(tests::allocations() == before);
}

/// The program of f against f on memory and against its graph, node by node.
template <class F, class... A>
void check(F const& f, A const&... args) {
  auto program = compile(f);
  auto const result = program(args...);
  check_allocates_nothing([&] { return program(args...); });
  std::vector<Array> const got = leaves(result);
  std::vector<Array> inputs;
  (visit(args, [&](auto const& leaf) { inputs.push_back(leaf); }), ...);
  require_same(got, interpret(trace<F, A...>(testing::new_graph()), inputs), "compiled");
  require_same(leaves(f(args...)), got, "eager");
  check_on_device(compile(f), got, args...);
}

/// The same for its gradients: cotangents are drawn at random.
template <class F, class... A>
void check_vjp(F const& f, A const&... args) {
  using Y = result_t<F, A...>;
  Y ct{};
  std::uint64_t k = 0;
  visit(ct, [&](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    leaf = uniform<Leaf>(Key{900 + k++}, -1, 1);
  });
  auto program = vjp(f);
  auto const result = program(args..., ct);
  check_allocates_nothing([&] { return program(args..., ct); });
  std::vector<Array> inputs;
  (visit(args, [&](auto const& leaf) { inputs.push_back(leaf); }), ...);
  visit(ct, [&](auto const& leaf) { inputs.push_back(leaf); });
  require_same(leaves(result), interpret(trace<Vjp<F>, A..., Y>(testing::new_graph()), inputs), "vjp");
  check_on_device(vjp(f), leaves(result), args..., ct);
}

}  // namespace compiled
