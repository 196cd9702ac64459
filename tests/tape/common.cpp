// SPDX-License-Identifier: BSL-1.0
// What the gradients of several operands have in common is computed once on the tape: by rules of users, whose calls
// are counted, and by those of ops that solve or attend.
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/testing/gradcheck.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::tape_common {

namespace {

using namespace dfdx;
using testing::gradcheck;
using testing::gradgradcheck;
using Values = std::span<Array const>;

int calls = 0;
constexpr auto counted =
    custom_vjp([](auto const& a, auto const& b, auto const& c) { return a * b + c; },
               [](auto const& ct, auto const&, auto const& a, auto const& b, auto const& c) {
                 ++calls;
                 return std::tuple(ct * b, ct * a, ct * full_like(c, 1.0));
               });

Array leaf(Shape const& s, std::uint64_t key) {
  Array x = randn(Extents(s), Key{key}, DType::f64);
  x.requires_grad(true);
  return x;
}

}  // namespace

TEST_CASE("a rule for several operands is called once for each use") {
  Array const a = leaf(make_shape(3), 1), b = leaf(make_shape(3), 2), c = leaf(make_shape(3), 3);
  calls = 0;
  sum(counted(a, b, c) * 2.0 + counted(b, b, c)).backward();
  CHECK(calls == 2);
  CHECK(allclose(a.grad(), b.detach() * 2.0));
  CHECK(allclose(b.grad(), a.detach() * 2.0 + b.detach() * 2.0));
  CHECK(allclose(c.grad(), full_like(c.detach(), 3.0)));
  // Where only the last operand asks, and again in another pass.
  Array const d = leaf(make_shape(3), 4);
  calls = 0;
  for (int i = 0; i < 2; ++i) sum(counted(a.detach(), b.detach(), d)).backward();
  CHECK(calls == 2);
  CHECK(allclose(d.grad(), full_like(d.detach(), 2.0)));
  calls = 0;
  CHECK(gradgradcheck([](Values v) { return counted(v[0], v[1], v[2]); }, {a, b, c}));
}

TEST_CASE("gradients of gradients go through what is shared") {
  Array const m = leaf(make_shape(3, 3), 5), r = leaf(make_shape(3, 2), 6);
  Array const spread = eye(3, 3, DType::f64) * 4.0;
  CHECK(gradcheck([&](Values v) { return solve(v[0] + spread, v[1]); }, {m, r}));
  CHECK(gradgradcheck([&](Values v) { return solve(v[0] + spread, v[1]); }, {m, r}));
  CHECK(gradgradcheck([&](Values v) { return solve_triangular(v[0] + spread, v[1]); }, {m, r}));
}

}  // namespace tests::tape_common
