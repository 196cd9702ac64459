// SPDX-License-Identifier: BSL-1.0
// jacobian, hessian and their products with vectors: against one another, closed forms and central differences.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

namespace tests::program_derivatives {

namespace {

using namespace dfdx;

constexpr auto x_exp_x = [](Tensor<double, 3> const& x) { return sum(x * exp(x)); };
constexpr auto rosenbrock = [](Tensor<double, 4> const& x) {
  auto const a = slice<0, 0, 3>(x), b = slice<0, 1, 4>(x);
  return sum(square(b - square(a)) * 100.0 + square(1.0 - a));
};
constexpr auto mixed = [](Tensor<double, 2, 3> const& x, Tensor<double, 3> const& y) {
  return sum(tanh(matmul(x, y)) * sum(square(x)));
};
constexpr auto field = [](Tensor<double, 2, 3> const& x, Tensor<double, 3> const& y) {
  return sin(matmul(x, y)) * sum(y);
};

struct Net {
  nn::Linear<3, 4, true, double> fc1;
  nn::Linear<4, 2, true, double> fc2;
  DFDX_FIELDS(fc1, fc2)
  constexpr auto operator()(auto const& x) const { return fc2(tanh(fc1(x))); }
};
constexpr auto predict = [](Net const& net, Tensor<double, 5, 3> const& x, Tensor<double, 5, 2> const&) {
  return net(x);
};
constexpr auto squared = [](auto const& y, Tensor<double, 5, 3> const&, Tensor<double, 5, 2> const& target) {
  return sum(square(y - target)) * 0.5;
};
constexpr auto fit = [](Net const& net, Tensor<double, 5, 3> const& x, Tensor<double, 5, 2> const& target) {
  return squared(net(x), x, target);
};

}  // namespace

TEST_CASE("DESIGN 10 (a): the hessian", "[program][hessian]") {
  auto const x = Tensor<double, 3>::from({0.0, 1.0, 2.0});
  auto const h = hessian(x_exp_x)(x);
  static_assert(std::is_same_v<std::remove_const_t<decltype(h)>, Tensor<double, 3, 3>>);
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 3; ++j) {
      double const want = i == j ? (2 + x(i)) * std::exp(x(i)) : 0;
      CHECK(std::fabs(h(i, j) - want) <= 1e-14 * want);
    }
  CHECK(allclose(diagonal_hessian(x_exp_x)(x), diagonal(Array(h)), 1e-14, 0));
}

TEST_CASE("hessian: central differences of the gradient, the jacobian of the gradient",
          "[program][hessian]") {
  auto const x = randn<double, 4>(Key{3});
  auto const h = hessian(rosenbrock)(x);
  CHECK(allclose(h, jacrev(grad(rosenbrock))(x), 1e-12, 1e-12));
  CHECK(allclose(h, transpose(Array(h), 0, 1), 1e-12, 1e-12));
  for (index_t j = 0; j < 4; ++j) {
    Array up = Array(x).clone(), down = Array(x).clone();
    double const step = 1e-5;
    up.data<double>()[j] += step;
    down.data<double>()[j] -= step;
    Array const g = grad(rosenbrock)(Tensor<double, 4>(up)) - grad(rosenbrock)(Tensor<double, 4>(down));
    CHECK(allclose(select(Array(h), 1, j), g / (2 * step), 1e-7, 1e-6));
  }
  auto const v = randn<double, 4>(Key{4});
  CHECK(allclose(hvp(rosenbrock)(x, v), matmul(h, v), 1e-12, 1e-12));
  CHECK(allclose(diagonal_hessian(rosenbrock)(x), diagonal(Array(h)), 1e-12, 1e-12));
}

namespace {

constexpr auto softplus_by_rule =
    custom_vjp([](auto const& x) { return log(1.0 + exp(x)); },
               [](auto const& ct, auto const&, auto const& x) { return ct * sigmoid(x); });
constexpr auto by_rule = [](auto const& x) { return sum(square(softplus_by_rule(x))); };
constexpr auto without_rule = [](auto const& x) { return sum(square(softplus(x))); };

}  // namespace

TEST_CASE("hessian goes backwards twice where forward mode has no rule", "[program]") {
  auto const x = Tensor<double, 3>::from({-1.0, 0.5, 2.0});
  auto const wanted = hessian(without_rule)(x);
  CHECK(allclose(hessian(by_rule)(x), wanted, 1e-12, 1e-12));
  CHECK(allclose(hessian(by_rule)(Array(x)), wanted, 1e-12, 1e-12));
  CHECK(allclose(vmap(hessian(by_rule))(unsqueeze<0>(x)), unsqueeze<0>(wanted), 1e-12, 1e-12));
}

TEST_CASE("jacobian: both modes, several arguments, any rank", "[program][jacobian]") {
  auto const x = randn<double, 2, 3>(Key{1});
  auto const y = randn<double, 3>(Key{2});
  auto const [jx, jy] = jacrev(field, wrt<0, 1>)(x, y);
  static_assert(std::is_same_v<std::remove_const_t<decltype(jx)>, Tensor<double, 2, 2, 3>>);
  static_assert(std::is_same_v<std::remove_const_t<decltype(jy)>, Tensor<double, 2, 3>>);
  auto const [fx, fy] = jacfwd(field, wrt<0, 1>)(x, y);
  CHECK(allclose(fx, jx, 1e-13, 1e-13));
  CHECK(allclose(fy, jy, 1e-13, 1e-13));
  CHECK(allclose(jacobian(field)(x, y), jx, 1e-13, 1e-13));
  // dy_i / dx_jk = [i = j] cos(x_i y) y_k sum(y)
  auto const slope = cos(matmul(x, y)) * sum(y);
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 2; ++j)
      for (index_t k = 0; k < 3; ++k) CHECK(std::fabs(jx(i, j, k) - (i == j ? slope(i) * y(k) : 0)) < 1e-13);
  // The argument that was named, and a block of second derivatives of the other.
  auto const h = hessian(mixed, wrt<1>)(x, y);
  CHECK(allclose(h, jacrev(grad(mixed, wrt<1>), wrt<1>)(x, y), 1e-12, 1e-12));
  auto const cross = jacfwd(grad(mixed), wrt<1>)(x, y);
  CHECK(allclose(cross, movedim(Array(jacrev(grad(mixed, wrt<1>))(x, y)), 0, 2), 1e-12, 1e-12));
}

TEST_CASE("hvp, gauss_newton_vp: directions that are models", "[program][hessian]") {
  auto const net = init<Net>(1);
  auto const v = init<Net>(2);
  auto const x = randn<double, 5, 3>(Key{1});
  auto const t = randn<double, 5, 2>(Key{2});
  auto const hv = hvp(fit)(net, x, t, v);
  // Central differences of the gradient along v.
  double const step = 1e-6;
  auto const moved = [&](double by) {
    Net n = net;
    std::vector<Array> to;
    visit(v, [&](auto const& leaf) { to.push_back(leaf); });
    std::size_t k = 0;
    visit(n, [&](auto& leaf) {
      using Leaf = std::remove_cvref_t<decltype(leaf)>;
      leaf = Leaf(Array(leaf) + to[k++] * by);
    });
    return n;
  };
  auto const up = grad(fit)(moved(step), x, t), down = grad(fit)(moved(-step), x, t);
  CHECK(allclose(hv.fc1.weight, (Array(up.fc1.weight) - down.fc1.weight) / (2 * step), 1e-6, 1e-7));
  CHECK(allclose(hv.fc2.bias, (Array(up.fc2.bias) - down.fc2.bias) / (2 * step), 1e-6, 1e-7));
  // For squares, J^T J v; and it is the Hessian where the residuals vanish.
  auto const gv = gauss_newton_vp(predict, squared)(net, x, t, v);
  auto const jv =
      jvp([](Net const& n, Tensor<double, 5, 3> const& a) { return n(a); })(net, x, v, zeros_like(x)).second;
  auto const jtjv = vjp([](Net const& n, Tensor<double, 5, 3> const& a) { return n(a); })(net, x, jv).second;
  CHECK(allclose(gv.fc1.weight, std::get<0>(jtjv).fc1.weight, 1e-11, 1e-11));
  auto const exact = hvp(fit)(net, x, Tensor<double, 5, 2>(net(x)), v);
  CHECK(allclose(exact.fc1.weight, gv.fc1.weight, 1e-11, 1e-11));
}

TEST_CASE("jacobian and hessian compose with vmap and grad", "[program][hessian]") {
  auto const xs = randn<double, 3, 4>(Key{5});
  auto const all = vmap(hessian(rosenbrock))(xs);
  static_assert(std::is_same_v<std::remove_const_t<decltype(all)>, Tensor<double, 3, 4, 4>>);
  auto const third = jacobian(hessian(rosenbrock));
  for (index_t i = 0; i < 3; ++i) {
    Tensor<double, 4> const x(Array(xs).part(i));
    CHECK(allclose(Array(all).part(i), hessian(rosenbrock)(x), 1e-12, 1e-12));
    // d3/dx_k3 of 100 (x_{k+1} - x_k^2)^2 is 2400 x_k.
    auto const t = third(x);
    for (index_t k = 0; k < 3; ++k) CHECK(std::fabs(t(k, k, k) - 2400 * x(k)) < 1e-9);
  }
  // The gradient of a function of second derivatives.
  auto const stiffness = [](Tensor<double, 4> const& x) { return sum(square(hessian(rosenbrock)(x))); };
  auto const x = Tensor<double, 4>(Array(xs).part(0));
  Array const g = grad(stiffness)(x);
  double const step = 1e-6;
  for (index_t k = 0; k < 4; ++k) {
    Array up = Array(x).clone(), down = Array(x).clone();
    up.data<double>()[k] += step;
    down.data<double>()[k] -= step;
    double const want =
        (stiffness(Tensor<double, 4>(up)).item() - stiffness(Tensor<double, 4>(down)).item()) / (2 * step);
    CHECK(std::fabs(read_real(g.operand(), k) - want) <= 1e-5 * std::fabs(want) + 1);
  }
}

TEST_CASE("a table of which no number is read has an extent all the same", "[program]") {
  // The loss is linear in it: its gradient depends on its shape alone, which only the call knows.
  using Table = Tensor<float, dyn, 2>;
  using Index = Tensor<std::int32_t, 3>;
  constexpr auto looked_up = [](Table const& table, Index const& i, Tensor<float, 3, 2> const& w) {
    return sum(take(table, i) * w);
  };
  auto f = compile(grad(looked_up));
  auto const i = Index::from({1, 0, 1});
  auto const w = Tensor<float, 3, 2>::from({1, 2, 3, 4, 5, 6});
  for (index_t const rows : {2, 4}) {
    Table const g = f(Table(Array(Meta{DType::f32, make_shape(rows, 2)})), i, w);
    REQUIRE(g.shape() == make_shape(rows, 2));
    REQUIRE(g(0, 1) == 4);
    REQUIRE(g(1, 0) == 6);
    REQUIRE(g(rows - 1, 1) == (rows == 2 ? 8.f : 0.f));
  }
}

TEST_CASE("parts of an axis whose extent is known when a program is called", "[program]") {
  // The first step of a sequence, steps with gaps, and neighbours: gradients are zeros around them.
  using Sequence = Tensor<double, 2, dyn, 3>;
  constexpr auto steps = [](auto const& x) {
    return sum(sin(select<1, 0>(x))) + sum(slice<1, 1, 4, 2>(x) * slice<1, 2, 4>(exp(x))) + sum(square(x));
  };
  auto slopes = grad(steps);
  auto curved = hvp(steps);
  for (index_t const n : {4, 7}) {
    Sequence const x(uniform({2, n, 3}, Key{1}, -1, 1, DType::f64));
    CHECK(allclose(slopes(x), slopes(Array(x)), 1e-13, 1e-13));
    CHECK(allclose(curved(x, x), curved(Array(x), Array(x)), 1e-13, 1e-13));
  }
  CHECK_THROWS_WITH(slopes(Sequence(zeros({2, 3, 3}, DType::f64))), "slice: extent too small: 3 x 4");
}

}  // namespace tests::program_derivatives
