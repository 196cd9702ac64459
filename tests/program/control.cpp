// SPDX-License-Identifier: BSL-1.0
// cond and while_loop: eager, compiled and on the tape, with gradients.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace {

using namespace dfdx;
using X = Tensor<double, 3>;

constexpr auto up = [](auto const& x) { return std::pair(exp(x), sum(x)); };
constexpr auto down = [](auto const& x) { return std::pair(x * x, sum(x) * 3.0); };
constexpr auto branch = [](X const& x) { return cond(sum(x) > 0.0, up, down, x); };
constexpr auto branch_loss = [](X const& x) {
  auto const [a, b] = branch(x);
  return sum(a * a) + b;
};

// Newton's iteration for the square root, until it is there.
constexpr auto root = [](Tensor<double> const& a) {
  auto const far = [](auto const& c) {
    return abs(std::get<0>(c) * std::get<0>(c) - std::get<1>(c)) > 1e-12;
  };
  auto const better = [](auto const& c) {
    auto const& [x, s] = c;
    return std::tuple(0.5 * (x + s / x), s);
  };
  return std::get<0>(while_loop<40>(far, better, std::tuple(a * 0.0 + 1.0, a)));
};

}  // namespace

TEST_CASE("cond: the branch that the condition names", "[program][control]") {
  auto const positive = X::from({0.5, 1.0, -0.2}), negative = X::from({-0.5, 1.0, -0.7});
  for (X const& x : {positive, negative}) {
    bool const is_up = sum(x).item() > 0;
    auto const want = is_up ? up(x) : down(x);
    auto const eager = branch(x);
    auto const compiled = compile(branch)(x);
    CHECK(allclose(eager.first, want.first, 1e-14, 0));
    CHECK(allclose(compiled.first, want.first, 1e-14, 0));
    CHECK(allclose(compiled.second, want.second, 1e-14, 0));
    X const slope = is_up ? X(exp(x) * exp(x) * 2.0 + 1.0) : X(4.0 * x * x * x + 3.0);
    CHECK(allclose(grad(branch_loss)(x), slope, 1e-13, 1e-13));
    Array tape = Array(x).clone();
    tape.requires_grad(true);
    auto const loss = [](auto const& v) {
      auto const [a, b] = cond(sum(v) > 0.0, up, down, v);
      return sum(a * a) + b;
    };
    loss(tape).backward();
    CHECK(allclose(tape.grad(), slope, 1e-13, 1e-13));
  }
  CHECK(cond(true, [](double v) { return v + 1; }, [](double v) { return v - 1; }, 2.0) == 3.0);
}

TEST_CASE("while_loop: eager, compiled and differentiated", "[program][control]") {
  for (double a : {2.0, 9.0, 0.3}) {
    Tensor<double> const x(a);
    CHECK(std::fabs(root(x).item() - std::sqrt(a)) < 1e-12);
    CHECK(std::fabs(compile(root)(x).item() - std::sqrt(a)) < 1e-12);
    CHECK(std::fabs(grad(root)(x).item() - 0.5 / std::sqrt(a)) < 1e-6);
    Array tape = Array(x).clone();
    tape.requires_grad(true);
    // Without a bound, of values in memory: the number of rounds is data.
    Array const y = while_loop([](Array const& c) { return sum(c) < 100.0; },
                               [](Array const& c) { return c * c + 1.0; }, tape);
    y.backward();
    double v = a, d = 1;
    while (v < 100) d *= 2 * v, v = v * v + 1;
    CHECK(std::fabs(y.item() - v) <= 1e-12 * v);
    CHECK(std::fabs(tape.grad().item() - d) <= 1e-12 * d);
  }
  // A bound holds in memory too.
  auto const count = while_loop<3>([](Array const&) { return full({}, 1, DType::boolean); },
                                   [](Array const& c) { return c + 1.0; }, full({}, 0, DType::f64));
  CHECK(count.item() == 3);
}

TEST_CASE("control flow: errors", "[program][control]") {
  auto const says = [](auto const& f, std::string const& words) {
    try {
      f();
    } catch (error const& e) {
      INFO(e.what());
      return std::string(e.what()) == words;
    }
    return false;
  };
  Array const x = randn(make_shape(2), Key{1});
  auto const same = [](Array const& a) { return a; };
  auto const one = [](Array const& a) { return sum(a); };
  CHECK(says([&] { cond(x, same, same, x); },
             "cond: a condition of shape [] and dtype bool required, got f32 [2]"));
  CHECK(says([&] { while_loop(one, same, x); },
             "while_loop: a condition of shape [] and dtype bool required, got f32 []"));
}
