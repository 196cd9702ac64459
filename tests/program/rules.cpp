// SPDX-License-Identifier: BSL-1.0
// custom_jvp and linearize: in programs, eagerly and on the tape, in both modes.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

namespace tests::program_rules {

namespace {

using namespace dfdx;
using X = Tensor<double, 4>;

// log(1 + exp(x)) with the derivative in the form that does not overflow. A factor 2 in the rule would be seen.
constexpr auto softplus_rule =
    custom_jvp([](auto const& x) { return log(1.0 + exp(x)); },
               [](auto const&, auto const& x, auto const& t) { return t / (1.0 + exp(-x)); });
// A rule that is not the derivative, so that what follows it is seen to come from it: y = w * x, dy = 3 w dx + x dw.
constexpr auto tripled = custom_jvp(
    [](X const& w, X const& x) { return w * x; },
    [](X const&, X const& w, X const& x, X const& dw, X const& dx) { return 3.0 * w * dx + x * dw; });
constexpr auto of_tripled = [](X const& w, X const& x) { return sum(sin(tripled(w, x))); };
constexpr auto wrong_shape = custom_jvp([](auto const& x) { return x * x; },
                                        [](auto const&, auto const&, auto const& t) { return sum(t); });

constexpr auto total = [](X const& x) { return sum(softplus_rule(x * x)); };
constexpr auto plain = [](X const& x) { return sum(log(1.0 + exp(x * x))); };

X numbers(int seed) { return randn<double, 4>(Key{static_cast<std::uint64_t>(seed)}); }

}  // namespace

TEST_CASE("custom_jvp: one rule for both modes", "[program][rules]") {
  X const x = numbers(1), t = numbers(2);
  CHECK(allclose(grad(total)(x), grad(plain)(x), 1e-14, 1e-14));
  CHECK(allclose(jvp(total)(x, t).second, jvp(plain)(x, t).second, 1e-14, 1e-14));
  CHECK(allclose(hessian(total)(x), hessian(plain)(x), 1e-12, 1e-12));
  CHECK(allclose(hvp(total)(x, t), hvp(plain)(x, t), 1e-12, 1e-12));
  auto const rows = randn<double, 3, 4>(Key{3});
  CHECK(allclose(vmap(grad(total))(rows), vmap(grad(plain))(rows), 1e-14, 1e-14));
  // Where the plain form is inf / inf.
  CHECK(grad(softplus_rule)(1000.0) == 1.0);
  CHECK(std::isnan(grad([](auto const& v) { return log(1.0 + exp(v)); })(1000.0)));
}

TEST_CASE("custom_jvp: what is used is the rule", "[program][rules]") {
  X const w = numbers(1), x = numbers(2), dw = numbers(3), dx = numbers(4);
  X const c = cos(w * x);
  auto const [gw, gx] = grad(of_tripled, wrt<0, 1>)(w, x);
  CHECK(allclose(gw, c * x, 1e-14, 1e-14));
  CHECK(allclose(gx, 3.0 * c * w, 1e-14, 1e-14));
  auto const along = jvp(of_tripled)(w, x, dw, dx).second;
  CHECK(allclose(along, sum(c * (3.0 * w * dx + x * dw)), 1e-14, 1e-14));
  // By one operand alone, the other without a tangent.
  CHECK(allclose(jacfwd(of_tripled, wrt<1>)(w, x), 3.0 * c * w, 1e-14, 1e-14));

  // On the tape, typed and not, with gradients of gradients.
  X tw(Array(w).clone());
  tw.requires_grad(true);
  of_tripled(tw, x).backward();
  CHECK(allclose(tw.grad(), c * x, 1e-14, 1e-14));
  Array ax = Array(x).clone();
  ax.requires_grad(true);
  Array const y = sum(softplus_rule(ax * ax));
  Array const g = gradients(y, {ax}, {true, true})[0];
  CHECK(allclose(g, grad(plain)(x), 1e-14, 1e-14));
  Array const h = gradients(sum(g * Array(dx)), {ax})[0];
  CHECK(allclose(h, hvp(plain)(x, dx), 1e-12, 1e-12));
  CHECK(allclose(jvp([](auto const& v) { return softplus_rule(v); })(Array(x), Array(dx)).second,
                 sigmoid(x) * dx, 1e-13, 1e-13));
}

TEST_CASE("custom_jvp: in loops", "[program][rules]") {
  constexpr auto loop = [](X const& x) {
    return sum(scan([](auto const& c, auto const& v) { return softplus_rule(c * v); }, x * 0.0 + 1.0,
                    expand<5, 4>(x)));
  };
  constexpr auto unrolled = [](X const& x) {
    X c = x * 0.0 + 1.0;
    for (int i = 0; i < 5; ++i) c = log(1.0 + exp(c * x));
    return sum(c);
  };
  X const x = numbers(5), t = numbers(6);
  CHECK(allclose(grad(loop)(x), grad(unrolled)(x), 1e-13, 1e-13));
  CHECK(allclose(jvp(loop)(x, t).second, jvp(unrolled)(x, t).second, 1e-13, 1e-13));
  CHECK(allclose(hvp(loop)(x, t), hvp(unrolled)(x, t), 1e-12, 1e-12));
}

TEST_CASE("custom_jvp: errors", "[program][rules]") {
  Array a = numbers(1);
  a.requires_grad(true);
  CHECK_THROWS_MATCHES(sum(wrong_shape(a)).backward(), error,
                       Catch::Matchers::Message("custom_jvp: the rule gives [] for a result of shape [4]"));
}

namespace {
constexpr auto two = [](X const& x, Tensor<double> const& k) { return std::pair(sin(x * k), sum(x) * k); };
// Two directions at one point, in a program.
constexpr auto twice = [](X const& x, Tensor<double> const& k, X const& t) {
  auto const [y, along] = linearize(two)(x, k);
  auto const [a, b] = along(t, k);
  auto const [c, d] = along(a, b);
  return std::tuple(y.first, c, d);
};
// (A + 1) s = b by conjugate gradients, A the Hessian of `plain` at x: a loop that does not look at the point again.
constexpr auto slope_of = grad(plain);
constexpr auto solve_in_loop = [](X const& x, X const& b) {
  auto const along = linearize(slope_of)(x).second;
  auto const step = [&](auto const& c, auto const&) {
    auto const& [s, r, p] = c;
    auto const ap = along(p) + p;
    auto const alpha = sum(r * r) / sum(p * ap);
    X const next = r - alpha * ap;
    return std::tuple(X(s + alpha * p), next, X(next + sum(next * next) / sum(r * r) * p));
  };
  return std::get<0>(scan(step, std::tuple(b * 0.0, b, b), zeros_like(expand<4, 4>(b))));
};
}  // namespace

TEST_CASE("linearize: a derivative that is called many times", "[program][rules]") {
  X const x = numbers(1), t = numbers(2);
  Tensor<double> const k(0.7);
  auto const [y, dy] = jvp(two)(x, k, t, k);
  auto const again = jvp(two)(x, k, dy.first, dy.second).second;

  auto const [value, along] = linearize(two)(x, k);
  CHECK(allclose(value.first, y.first, 1e-14, 1e-14));
  CHECK(allclose(value.second, y.second, 1e-14, 1e-14));
  for (int i = 0; i < 2; ++i) {
    auto const d = along(t, k);
    CHECK(allclose(d.first, dy.first, 1e-14, 1e-14));
    CHECK(allclose(d.second, dy.second, 1e-14, 1e-14));
  }
  auto const [first, c, d] = compile(twice)(x, k, t);
  CHECK(allclose(first, y.first, 1e-14, 1e-14));
  CHECK(allclose(c, again.first, 1e-13, 1e-13));
  CHECK(allclose(d, again.second, 1e-13, 1e-13));

  // Of arrays, and of gradients.
  constexpr auto any = [](auto const& v) { return sum(exp(v) * v); };
  auto const slope = linearize(grad(any))(Array(x)).second;
  CHECK(allclose(slope(Array(t)), exp(x) * (x + 2.0) * t, 1e-13, 1e-13));
  CHECK(allclose(linearize(grad(plain))(x).second(t), hvp(plain)(x, t), 1e-12, 1e-12));
  CHECK_THROWS_MATCHES(
      slope(Array(sum(t))), error,
      Catch::Matchers::Message("linearize: a direction of shape [] for a value of shape [4]"));
}

TEST_CASE("linearize: within a loop, and differentiated", "[program][rules]") {
  X const x = numbers(3), b = numbers(4);
  X const s = compile(solve_in_loop)(x, b);
  CHECK(allclose(hvp(plain)(x, s) + s, b, 1e-9, 1e-9));
  constexpr auto loss = [](X const& at, X const& v) {
    return sum(square(linearize(slope_of)(at).second(v)));
  };
  constexpr auto by_hvp = [](X const& at, X const& v) { return sum(square(hvp(plain)(at, v))); };
  CHECK(allclose(grad(loss)(x, b), grad(by_hvp)(x, b), 1e-11, 1e-11));
}

// The gradient comes with the extent of the labels; that the rows are as many only a call tells.
struct Normalised {
  nn::Linear<6, 6> linear;
  nn::LayerNorm<6> norm;
  DFDX_FIELDS(linear, norm)
  constexpr auto operator()(auto const& x) const { return gelu(norm(linear(x))); }
};
constexpr auto class_loss = [](auto const& m, auto const& x, auto const& y) {
  return cross_entropy(m(x), y);
};

TEST_CASE("a rule of rows as many as another argument's", "[program][rules]") {
  auto const m = init<Normalised>(1);
  auto const x = randn<float, 3, 6>(Key{2});
  Tensor<std::int32_t, 3> const y{4, 0, 1};
  auto const known = value_and_grad(class_loss)(m, x, y);
  auto const learned = value_and_grad(class_loss)(m, Tensor<float, dyn, 6>(x), Tensor<std::int32_t, dyn>(y));
  CHECK(allclose(learned.first, known.first, 1e-6, 1e-6));
  CHECK(allclose(learned.second.norm.weight, known.second.norm.weight, 1e-5, 1e-6));
  CHECK(allclose(learned.second.linear.weight, known.second.linear.weight, 1e-5, 1e-6));
  Tensor<std::int32_t, dyn> const more(Tensor<std::int32_t, 4>{4, 0, 1, 2});
  CHECK_THROWS_AS(value_and_grad(class_loss)(m, Tensor<float, dyn, 6>(x), more), error);
}

}  // namespace tests::program_rules
