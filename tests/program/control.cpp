// SPDX-License-Identifier: BSL-1.0
// cond, while_loop and scan<N>: eager, compiled and on the tape, with gradients.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

namespace tests::program_control {

namespace {

using namespace dfdx;
using Catch::Approx;
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

TEST_CASE("cond: the branch that is not taken has no part in gradients", "[program][control]") {
  constexpr auto f = [](auto const& x, auto const& n) {
    return cond(
        x > 0.0, [](auto const& v, auto const&) { return sqrt(v) * log(v); },
        [](auto const& v, auto const& i) { return v * v + cast<double>(i); }, x, n);
  };
  Tensor<std::int32_t> const seven(7);
  auto program = value_and_grad(f);
  for (double a : {4.0, -3.0, 0.0, 0.25}) {
    Tensor<double> const x(a);
    auto const [value, slope] = program(x, seven);
    CHECK(std::fabs(value.item() - (a > 0 ? std::sqrt(a) * std::log(a) : a * a + 7)) < 1e-14);
    CHECK(std::fabs(slope.item() - (a > 0 ? (std::log(a) / 2 + 1) / std::sqrt(a) : 2 * a)) < 1e-14);
  }
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
  // What ended the loop need not be what the body can take, nor a number that it makes of it.
  constexpr auto fall = [](auto const& v, auto const& by) {
    return while_loop<6>([](auto const& c) { return c > 1.0; }, [&](auto const& c) { return sqrt(c - by); },
                         v);
  };
  Tensor<double> const seven(7.0), one(1.0);
  Array v = Array(seven).clone(), by = Array(one).clone();
  v.requires_grad(true);
  by.requires_grad(true);
  Array const end = fall(v, by);
  end.backward();
  auto const [value, slopes] = value_and_grad(fall, wrt<0, 1>)(seven, one);
  CHECK(std::fabs(value.item() - end.item()) < 1e-14);
  CHECK(std::fabs(std::get<0>(slopes).item() - v.grad().item()) < 1e-14);
  CHECK(std::fabs(std::get<1>(slopes).item() - by.grad().item()) < 1e-14);
  // A bound holds in memory too.
  auto const count = while_loop<3>([](Array const&) { return full({}, 1, DType::boolean); },
                                   [](Array const& c) { return c + 1.0; }, full({}, 0, DType::f64));
  CHECK(count.item() == 3);
}

// Heron's rounds, from a literal, with what they read outside of the loop; and the errors on the way.
constexpr auto root_of = [](auto const& x) {
  auto const [root, errors] = scan<7>(
      [&](auto const& y) {
        auto const next = 0.5 * (y + x / y);
        return std::pair(next, abs(next * next - x));
      },
      Tensor<double>(1.0));
  return root + 0.0 * sum(errors);
};
struct Swing {
  Tensor<double, 2> place, speed;
  DFDX_FIELDS(place, speed)
};
constexpr auto swung = [](Swing const& from, Tensor<double> const& stiffness) {
  return scan<50>(
      [&](Swing const& s) {
        auto const speed = s.speed - 0.1 * stiffness * s.place;
        return Swing{s.place + 0.1 * speed, speed};
      },
      from);
};

TEST_CASE("scan<N>: rounds of a function of the carry alone", "[program][control]") {
  Tensor<double> const x = 5.0;
  auto slope = value_and_grad(root_of);
  auto const [y, d] = slope(x);
  CHECK(y.item() == Approx(std::sqrt(5.0)));
  CHECK(d.item() == Approx(0.5 / std::sqrt(5.0)));
  CHECK(root_of(x).item() == y.item());
  Array on_tape = x.clone();
  on_tape.requires_grad(true);
  root_of(Tensor<double>(on_tape)).backward();
  CHECK(on_tape.grad().item() == Approx(d.item()));
  CHECK(decltype(slope)::program_for<Tensor<double>>::plan.loops.empty());  // a kernel for all rounds

  Swing const from{{1, 2}, {0, 1}};
  auto const end = compile(swung)(from, x), eager = swung(from, x);
  CHECK(allclose(end.place, eager.place, 1e-12));
  CHECK(allclose(end.speed, eager.speed, 1e-12));
  CHECK(array_equal(scan<0>([](auto const& c) { return c + 1.0; }, x), x));
}

TEST_CASE("rows of an argument by x[i], compiled as in memory", "[program]") {
  constexpr auto f = [](auto const& x) { return sum(x[0] * x[1] + x[3][1]) + sum(x[2]); };
  auto const x = uniform<double, 4, 2, 3>(Key{1}, -1, 1);
  CHECK(allclose(compile(f)(x), f(x), 1e-14));
  auto const slope = grad(f)(x);
  CHECK(array_equal(slope[0], x[1]));
  CHECK(array_equal(slope[2], ones<double, 2, 3>()));
}

TEST_CASE("clone in a compiled function is the value without a gradient, as on the tape", "[program]") {
  using Layer = nn::Linear<2, 3>;
  constexpr auto f = [](auto const& layer, auto const& x) {
    auto const before = clone(layer);
    return sum(square(layer(clone(x)) - 0.5 * before(x)));
  };
  auto const layer = init<Layer>(3);
  auto const x = randn<float, 4, 2>(Key{1});
  auto const [value, slope] = value_and_grad(f)(layer, x);
  CHECK(allclose(value, f(layer, x)));
  Layer taped = clone(layer);
  watch(taped);
  f(taped, x).backward();
  CHECK(allclose(slope.weight, taped.weight.grad()));
  CHECK(allclose(slope.bias, taped.bias.grad()));
  auto const of_integers = compile([](auto const& n) { return clone(n) * 2; });
  auto const doubled = of_integers(Tensor<std::int32_t, 2>{3, 4});
  CHECK((doubled(0) == 6 && doubled(1) == 8));
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

namespace {
// x = tanh(W x + b): a layer of no depth. W is small enough for a contraction.
using Deq = Tensor<double, 3>;
using Weights = Tensor<double, 3, 3>;
constexpr auto layer = [](auto const& x, auto const& w, auto const& b) { return tanh(matmul(w, x) + b); };
constexpr auto at_rest = [](Deq const& start, Weights const& w, Deq const& b) {
  return sum(square(fixed_point<60>(layer)(start, w * 0.2, b)));
};
// The same differentiated through the search.
constexpr auto unrolled = [](Deq const& start, Weights const& w, Deq const& b) {
  return sum(square(
      scan([&](Deq const& x, Deq const&) { return layer(x, w * 0.2, b); }, start, expand<60, 3>(start))));
};
}  // namespace

TEST_CASE("fixed_point: the gradient of the equation is that of the search", "[program][control]") {
  auto const start = randn<double, 3>(Key{1}), b = randn<double, 3>(Key{2});
  auto const w = randn<double, 3, 3>(Key{3});
  auto const [y, d] = value_and_grad(at_rest, wrt<0, 1, 2>)(start, w, b);
  auto const [z, e] = value_and_grad(unrolled, wrt<0, 1, 2>)(start, w, b);
  CHECK(std::fabs(y.item() - z.item()) < 1e-12);
  CHECK(std::fabs(at_rest(start, w, b).item() - z.item()) < 1e-12);
  CHECK(allclose(std::get<1>(d), std::get<1>(e), 1e-10, 1e-12));
  CHECK(allclose(std::get<2>(d), std::get<2>(e), 1e-10, 1e-12));
  CHECK(allclose(std::get<0>(d), zeros<double, 3>(), 0, 0));
  // On the tape.
  Weights tw(Array(w).clone());
  tw.requires_grad(true);
  at_rest(start, tw, b).backward();
  CHECK(allclose(tw.grad(), std::get<1>(e), 1e-10, 1e-12));
  // Second derivatives of a compiled program go through the rule.
  auto const slope = [](Deq const& s, Weights const& v, Deq const& c) {
    return sum(square(grad(at_rest, wrt<1>)(s, v, c)));
  };
  auto const slope_unrolled = [](Deq const& s, Weights const& v, Deq const& c) {
    return sum(square(grad(unrolled, wrt<1>)(s, v, c)));
  };
  CHECK(allclose(grad(slope, wrt<2>)(start, w, b), grad(slope_unrolled, wrt<2>)(start, w, b), 1e-8, 1e-9));
  // Forward mode has a rule of its own; both together make second derivatives.
  auto const db = randn<double, 3>(Key{4});
  auto const zero = zeros<double, 3>();
  auto const along = jvp(at_rest)(start, w, b, zero, zeros<double, 3, 3>(), db).second;
  CHECK(std::fabs(along.item() - sum(std::get<2>(e) * db).item()) < 1e-10);
  CHECK(allclose(hessian(at_rest, wrt<2>)(start, w, b), hessian(unrolled, wrt<2>)(start, w, b), 1e-8, 1e-9));
}

}  // namespace tests::program_control
