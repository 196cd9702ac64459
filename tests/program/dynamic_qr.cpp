// SPDX-License-Identifier: BSL-1.0
// qr, and what is made by it, in programs that learn how many rows there are when they are called.
#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

namespace tests::program_dynamic_qr {

namespace {

using namespace dfdx;

using Rows = Tensor<double, dyn, 3>;
using Sides = Tensor<double, dyn, 2>;

Array drawn(Shape const& s, std::uint64_t key) { return randn(s, Key{key}, DType::f64); }
bool close(Array const& x, Array const& y) { return testing::error_ratio(x, y, 1e-11, 1e-11) <= 1; }

auto const weighed = [](auto const& a, auto const& b) {
  auto const [q, r] = qr(a);
  return sum(sin(q)) + sum(cos(r)) + sum(square(lstsq(a, b))) + sum(sin(pinv(a) * 0.5));
};

}  // namespace

TEST_CASE("qr of rows whose number a program learns", "[program]") {
  auto factor = compile([](Rows const& a) { return qr(a); });
  for (index_t const m : {3, 4, 17, 50}) {
    INFO(m);
    Array const a = drawn({m, 3}, 1);
    auto const [q, r] = factor(Rows(a));
    auto const [q_called, r_called] = qr(a);
    CHECK(close(q, q_called));
    CHECK(close(r, r_called));
    CHECK(array_equal(Array(r), tril(Array(r)) * 0.0 + triu(Array(r))));
  }
  CHECK_THROWS_WITH(factor(Rows(drawn({2, 3}, 1))),
                    "qr: matrices with at least as many rows as columns required, got [2, 3]");
  CHECK_THROWS_WITH(qr(Rows(drawn({2, 3}, 1))),
                    "qr: matrices with at least as many rows as columns required, got [2, 3]");
  // Many matrices, in f32.
  auto const a = Tensor<float, dyn, dyn, 2>(cast_to(drawn({4, 5, 2}, 3), DType::f32));
  auto const [q, r] = compile([](Tensor<float, dyn, dyn, 2> const& x) { return qr(x); })(a);
  CHECK(testing::error_ratio(matmul(Array(q), Array(r)), Array(a), 1e-5, 1e-5) <= 1);
}

TEST_CASE("derivatives of qr, lstsq and pinv of rows whose number a program learns", "[program]") {
  auto gradient = value_and_grad(weighed, Wrt<0, 1>{});
  for (index_t const m : {3, 9, 20}) {
    INFO(m);
    Array a = drawn({m, 3}, 1), b = drawn({m, 2}, 2);
    auto const [value, slopes] = gradient(Rows(a), Sides(b));
    // The same where sizes are known, on the tape.
    a.requires_grad(true), b.requires_grad(true);
    Array const known = weighed(a, b);
    auto const wanted = gradients(known, {a, b});
    CHECK(close(value, known.detach()));
    CHECK(close(std::get<0>(slopes), wanted[0]));
    CHECK(close(std::get<1>(slopes), wanted[1]));
    // Forward mode, along a itself.
    Array const along = drawn({m, 3}, 4), none = zeros_like(b.detach());
    auto const [again, tangent] = jvp(weighed)(Rows(a.detach()), Sides(b.detach()), Rows(along), Sides(none));
    CHECK(close(tangent, sum(wanted[0] * along)));
  }
}

}  // namespace tests::program_dynamic_qr
