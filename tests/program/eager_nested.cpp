// SPDX-License-Identifier: BSL-1.0
// Transforms of Arrays inside of one another, where arguments depend on one another, directions are on the tape, and
// rules of one's own take gradients within a backward pass: the same numbers as programs.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

namespace tests::program_eager_nested {

namespace {

using namespace dfdx;

bool same(Array const& a, Array const& b, double tolerance = 1e-10) {
  return a.shape() == b.shape() && allclose(a, b, tolerance, tolerance);
}
// The gradient of a function of an Array against that of a program, and that it is not nothing.
template <class F>
bool like_the_program(F const& f) {
  auto const x = randn<double, 3>(Key{1});
  Array const want = grad(f)(x);
  return same(grad(f)(Array(x)), want) && max(abs(want)).item() > 1e-3;
}
template <class F>
bool like_the_program_by_both(F const& f) {
  auto const x = randn<double, 3>(Key{1}), v = randn<double, 3>(Key{2});
  auto const [a, b] = grad(f, wrt<0, 1>)(x, v);
  return same(grad(f)(Array(x), Array(v)), a) && same(grad(f, wrt<1>)(Array(x), Array(v)), b) &&
         max(abs(a)).item() > 1e-3 && max(abs(b)).item() > 1e-3;
}

constexpr auto product = [](auto const& a, auto const& b) { return sum(a * b * b); };
constexpr auto field = [](auto const& x) { return tanh(x * sum(x)); };
constexpr auto wave = [](auto const& x) { return sum(sin(x) * square(x)) + square(sum(x)); };
constexpr auto fourths = [](auto const& y) { return sum(square(square(y))); };

}  // namespace

TEST_CASE("eager transforms: by one argument is not by another that depends on it", "[program][eager]") {
  CHECK(like_the_program([](auto const& x) { return sum(grad(product)(x, sin(x))); }));
  CHECK(like_the_program([](auto const& x) { return sum(grad(product)(x, x)); }));
  CHECK(like_the_program([](auto const& x) {
    auto const [a, b] = grad(product, wrt<0, 1>)(x, sin(x));
    return sum(a * x + b);
  }));
  CHECK(like_the_program([](auto const& x) { return sum(jvp(product)(x, sin(x), x, x).second); }));
  CHECK(like_the_program([](auto const& x) { return sum(hvp(product, wrt<1>)(x, sin(x), x)); }));
  CHECK(like_the_program(
      [](auto const& x) { return sum(jacobian([](auto const& a, auto const& b) { return a * b; })(x, x)); }));
  CHECK(like_the_program([](auto const& x) { return sum(linearize(product)(x, sin(x)).second(x, x)); }));
}

TEST_CASE("eager transforms: directions and cotangents are differentiated too", "[program][eager]") {
  CHECK(like_the_program_by_both([](auto const& x, auto const& v) { return sum(square(hvp(wave)(x, v))); }));
  CHECK(like_the_program_by_both(
      [](auto const& x, auto const& v) { return sum(square(vjp(field)(x, v).second)); }));
  CHECK(like_the_program_by_both(
      [](auto const& x, auto const& v) { return sum(square(jvp(field)(x, v).second)); }));
  CHECK(like_the_program_by_both(
      [](auto const& x, auto const& v) { return sum(square(gauss_newton_vp(field, fourths)(x, v))); }));
}

namespace {
constexpr auto sine = custom_jvp([](auto const& x) { return sin(x); },
                                 [](auto const&, auto const& x, auto const& t) { return cos(x) * t; });
constexpr auto of_sine = [](auto const& x) { return sum(square(sine(x * 2.0))); };
constexpr auto plain = [](auto const& x) { return sum(square(sin(x * 2.0))); };
constexpr auto many_sines = [](auto const& x) {
  auto y = x;
  for (int i = 0; i < 40; ++i) y = sine(y);
  return sum(y);
};
constexpr auto layer = [](auto const& x, auto const& w, auto const& b) {
  return tanh(matmul(w, x) * 0.2 + b);
};
constexpr auto at_rest = [](auto const& start, auto const& w, auto const& b) {
  return sum(square(fixed_point<60>(layer)(start, w, b)));
};
}  // namespace

TEST_CASE("eager transforms: a rule that takes gradients, within a pass that is recorded",
          "[program][eager]") {
  auto const x = randn<double, 3>(Key{1}), v = randn<double, 3>(Key{2});
  Array const ax = x, av = v;
  CHECK(same(hessian(of_sine)(ax), hessian(plain)(x)));
  CHECK(same(hvp(of_sine)(ax, av), hvp(plain)(x, v)));
  CHECK(same(jvp(grad(of_sine))(ax, av).second, hvp(plain)(x, v)));
  auto const rows = randn<double, 2, 3>(Key{3});
  CHECK(same(vmap(hessian(of_sine))(Array(rows)), vmap(hessian(plain))(rows)));
  // What each rule records is its own: not, again and again, all that comes before it.
  Array const h = hvp(many_sines)(ax, av);
  double const eps = 1e-5;
  CHECK(same(h, (grad(many_sines)(ax + av * eps) - grad(many_sines)(ax - av * eps)) / (2 * eps), 1e-7));
}

TEST_CASE("eager transforms: fixed points", "[program][eager]") {
  auto const start = zeros<double, 3>(), b = randn<double, 3>(Key{2}), db = randn<double, 3>(Key{4});
  auto const w = randn<double, 3, 3>(Key{3});
  Array const as = start, aw = w, ab = b, adb = db;
  CHECK(same(at_rest(as, aw, ab), at_rest(start, w, b)));
  auto const [gw, gb] = grad(at_rest, wrt<1, 2>)(start, w, b);
  auto const [aw_, ab_] = grad(at_rest, wrt<1, 2>)(as, aw, ab);
  CHECK((same(aw_, gw) && same(ab_, gb)));
  CHECK(same(hvp(at_rest, wrt<2>)(as, aw, ab, adb), hvp(at_rest, wrt<2>)(start, w, b, db), 1e-8));
  CHECK(same(jvp(at_rest)(as, aw, ab, as, aw, adb).second, sum(gb * db) + sum(gw * w)));
  auto const many = randn<double, 2, 3>(Key{5});
  CHECK(same(vmap(grad(at_rest, wrt<2>), in_axes<unmapped, unmapped, 0>)(as, aw, Array(many)),
             vmap(grad(at_rest, wrt<2>), in_axes<unmapped, unmapped, 0>)(start, w, many)));
}

TEST_CASE("gradients of what is asked for, and nothing else", "[program][eager]") {
  Array a = randn(make_shape(3), Key{1}, DType::f64), b = randn(make_shape(3), Key{2}, DType::f64);
  a.requires_grad(true), b.requires_grad(true);
  Array const h = exp(b);
  int calls = 0;
  h.register_hook([&](Array const& ct) { return ++calls, ct; });
  Array const y = sum(a * h);
  BackwardOptions const keep{.retain_graph = true};
  CHECK(same(gradients(y, {a}, keep)[0], h));
  CHECK(calls == 0);
  auto const both = gradients(y, {h, b, a}, keep);
  CHECK((same(both[0], a) && same(both[1], a * h) && same(both[2], h)));
  CHECK(calls == 1);
  // Values of which one is below another, one that is the end itself, one that is elsewhere.
  Array c = b.clone();
  c.requires_grad(true);
  auto const all = gradients(y, {y, c, h}, keep);
  CHECK((all[0].item() == 1 && all[1].size() == 3 && max(abs(all[1])).item() == 0 && same(all[2], a)));
  y.backward();
  CHECK((same(a.grad(), h) && same(b.grad(), a * h)));
}

namespace {
struct Net {
  Tensor<double, 2, 3> w;
  Tensor<double, 2> b;
  DFDX_FIELDS(w, b)
};
struct NetOfArrays {
  struct Inner {
    Array w;
    DFDX_FIELDS(w)
  };
  Inner inner;
  Array b;
  DFDX_FIELDS(inner, b)
};
constexpr auto energy = [](auto const& w, auto const& b, auto const& x) {
  return sum(square(tanh(matmul(w, x) + b)));
};
constexpr auto of_net = [](auto const& net, auto const& x) { return energy(net.w, net.b, x); };
constexpr auto of_arrays = [](auto const& net, auto const& x) { return energy(net.inner.w, net.b, x); };
}  // namespace

TEST_CASE("eager vmap: gradients of each example for models", "[program][eager]") {
  auto const x = randn<double, 4, 3>(Key{1});
  Net const net{randn<double, 2, 3>(Key{2}), randn<double, 2>(Key{3})};
  NetOfArrays const arrays{{net.w}, net.b};
  auto const want = vmap(grad(of_net), in_axes<unmapped, 0>)(net, x);
  auto const each = vmap(grad(of_net), in_axes<unmapped, 0>)(net, Array(x));
  NetOfArrays const all = vmap(grad(of_arrays), in_axes<unmapped, 0>)(arrays, Array(x));
  CHECK(each.size() == 4);
  CHECK(want.size() == 4);
  for (index_t i = 0; i < 4; ++i) {
    CHECK((same(each[i].w, want[i].w) && same(each[i].b, want[i].b)));
    CHECK((same(all.inner.w.part(i), want[i].w) && same(all.b.part(i), want[i].b)));
  }
  CHECK_THROWS_MATCHES(each[4], error, Catch::Matchers::Message("stacked: part 4 of 4"));
  // As models for examples.
  Array const values = vmap(of_net)(want, x);
  CHECK(same(vmap(of_net)(each, Array(x)), values));
  CHECK(same(vmap(of_arrays)(all, Array(x)), values));
  int parts = 0;
  visit_state(each, [&](std::string const& name, Array const& a) {
    parts += name == "3.w" && a.shape() == make_shape(2, 3);
  });
  CHECK(parts == 1);
}

}  // namespace tests::program_eager_nested
