// SPDX-License-Identifier: BSL-1.0
// Functions with rules of their own in every regime, and the checks of gradients that users have.
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/testing/gradcheck.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>

namespace tests::tape_custom {

namespace {

using namespace dfdx;
using Catch::Approx;
using testing::gradcheck;
using testing::gradgradcheck;
using Values = std::span<Array const>;

// log(1 + e^x), which overflows if written so, with its stable derivative.
constexpr auto log1pexp =
    custom_vjp([](auto const& x) { return log(1.0 + exp(x)); },
               [](auto const& ct, auto const&, auto const& x) { return ct * sigmoid(x); });
// x y, whose rule swaps what it should not: seen in each gradient.
constexpr auto wrong = custom_vjp(
    [](auto const& x, auto const& y) { return x * y; },
    [](auto const& ct, auto const&, auto const& x, auto const& y) { return std::tuple(ct * x, ct * y); });
constexpr auto of_shape = custom_vjp([](auto const& x) { return sum(x); },
                                     [](auto const& ct, auto const&, auto const&) { return ct; });

// Each cotangent is doubled, so that it is seen to be the rule's.
constexpr auto doubled =
    custom_vjp([](auto const& a, auto const& b, auto const& c, auto const& d) { return a * b + c * d; },
               [](auto const& ct, auto const&, auto const& a, auto const& b, auto const& c, auto const& d) {
                 return std::tuple(ct * b * 2.0, ct * a * 2.0, ct * d * 2.0, ct * c * 2.0);
               });

TEST_CASE("a rule of one's own, eagerly, on the tape and compiled") {
  auto const x = Tensor<double, 3>::from({-1.0, 0.5, 800.0});
  constexpr auto f = [](Tensor<double, 3> const& v) { return sum(log1pexp(v) * v); };
  CHECK(log1pexp(x)(1) == Approx(std::log(1 + std::exp(0.5))));
  auto const compiled = grad(f)(x);
  Tensor<double, 3> w = x;
  w.requires_grad(true);
  f(w).backward();
  Array const taped = w.grad();
  auto const want = [](double v) { return v / (1 + std::exp(-v)) + std::log1p(std::exp(v)); };
  CHECK(compiled(0) == Approx(want(-1)));
  CHECK(compiled(1) == Approx(want(0.5)));
  CHECK(std::isinf(compiled(2)));  // the value overflows, the rule does not
  for (index_t i = 0; i < 2; ++i) CHECK(taped.data<double>()[i] == Approx(compiled(i)));

  constexpr auto g = [](Tensor<double> const& v) { return log1pexp(v * v); };
  CHECK(grad(grad(g))(Tensor<double>(0.3)).item() ==
        Approx(
            grad(grad([](Tensor<double> const& v) { return softplus(v * v); }))(Tensor<double>(0.3)).item()));
  static_assert(grad([](Tensor<double> const& v) { return wrong(v, v * 2.0); })(3.0) == 3.0 + 2 * 6.0);

  Array a = from({1.0, 2.0}), b = from({5.0, 7.0});
  a.requires_grad(true);
  sum(wrong(a, b)).backward();
  CHECK(a.grad().data<double>()[1] == 2);
  CHECK(tests::error_of([&] { of_shape(a).backward(); }) ==
        "custom_vjp: the rule gives [] for operand 0 of shape [2]");
}

TEST_CASE("a rule for four operands") {
  std::vector<Array> x{from({2.0, 3.0}), from({5.0, 7.0}), from({11.0, 13.0}), from({17.0, 19.0})};
  for (Array& one : x) one.requires_grad(true);
  std::vector<Array> const taped = gradients(sum(doubled(x[0], x[1], x[2], x[3])), x);
  using T = Tensor<double, 2>;
  auto const compiled =
      grad([](T const& a, T const& b, T const& c, T const& d) { return sum(doubled(a, b, c, d)); },
           wrt<0, 1, 2, 3>)(T(x[0].detach()), T(x[1].detach()), T(x[2].detach()), T(x[3].detach()));
  std::size_t const other[] = {1, 0, 3, 2};
  std::size_t k = 0;
  auto const check = [&](auto const& g) {
    CHECK(array_equal(g, x[other[k]].detach() * 2.0));
    CHECK(array_equal(g, taped[k++]));
  };
  std::apply([&](auto const&... g) { (check(g), ...); }, compiled);
}

TEST_CASE("a jacobian of more results than arguments takes the rule there is") {
  constexpr auto f = [](auto const& v) { return log1pexp(expand<4, 2>(v)) * v; };
  constexpr auto plain = [](auto const& v) { return softplus(expand<4, 2>(v)) * v; };
  auto const x = Tensor<double, 2>::from({-1.0, 0.5});
  CHECK(allclose(jacobian(f)(x), jacobian(plain)(x)));
  CHECK(allclose(jacobian(f)(Array(x)), jacobian(plain)(x)));
  CHECK(allclose(jacobian(jacobian(f))(x), jacobian(jacobian(plain))(x)));
  // In a loop, and where the rule lies beside the way from the argument to the result.
  constexpr auto loop = [](auto const& v) {
    return scan([](auto const& c, auto const& each) { return std::pair(c + log1pexp(each), c * each); }, v,
                expand<4, 2>(v))
        .second;
  };
  constexpr auto plain_loop = [](auto const& v) {
    return scan([](auto const& c, auto const& each) { return std::pair(c + softplus(each), c * each); }, v,
                expand<4, 2>(v))
        .second;
  };
  CHECK(allclose(jacobian(loop)(x), jacobian(plain_loop)(x)));
  constexpr auto beside = [](auto const& v, auto const& w) { return expand<4, 2>(v) * log1pexp(w); };
  CHECK(allclose(jacobian(beside)(x, x), jacfwd(beside)(x, x)));
}

TEST_CASE("gradcheck believes what is right, and names what is not") {
  Array const x = randn({2, 3}, Key{1}, DType::f64), y = randn({3}, Key{2}, DType::f64);
  CHECK(gradcheck([](Values v) { return tanh(v[0] * v[1]); }, {x, y}));
  CHECK(gradgradcheck([](Values v) { return tanh(v[0] * v[1]); }, {x, y}));
  CHECK(gradcheck([](Values v) { return softmax(v[0], -1); }, {cast_to(x, DType::f32)}));
  CHECK(gradcheck([](Values v) { return exp(v[0]); }, {cast_to(x, DType::f16)}));
  CHECK(gradcheck([](Values v) { return take(v[0], v[1]); }, {x, from({1, 0, 1})}).checked == 6);
  CHECK(gradcheck([](Values v) { return log1pexp(v[0]); }, {x}));
  CHECK(gradgradcheck([](Values v) { return log1pexp(v[0]); }, {x}));
  CHECK(gradcheck([](Values v) { return stop_gradient(v[0]) * 0.0; }, {x}));

  testing::GradcheckReport const r =
      gradcheck([](Values v) { return wrong(v[0], v[1]); }, {from({2.0, 3.0}), from({3.0, 3.0})});
  CHECK_FALSE(r);
  CHECK(r.checked == 4);
  CHECK(r.failed == 2);
  CHECK(r.text.find("operand 0 [0]: gradient ") == 0);
  CHECK(r.text.find("operand 1 [0]: gradient ") != std::string::npos);
  CHECK(r.text.find("relative") != std::string::npos);
  // Right to first order, wrong to second: the rule's own derivative is cut off.
  constexpr auto cut =
      custom_vjp([](auto const& v) { return v * v; },
                 [](auto const& ct, auto const&, auto const& v) { return ct * stop_gradient(v) * 2.0; });
  CHECK(gradcheck([&](Values v) { return cut(v[0]); }, {x}));
  CHECK_FALSE(gradgradcheck([&](Values v) { return cut(v[0]); }, {x}));
  CHECK(tests::error_of([&] { gradcheck([](Values v) { return v[0] > 0.0; }, {x}); }) ==
        "gradcheck: floating result required, got bool");
}

}  // namespace

}  // namespace tests::tape_custom
