// SPDX-License-Identifier: BSL-1.0
// The transforms on Arrays, shapes known at run time: the same numbers as the compiled ones, also when nested.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <array>
#include <cmath>
#include <optional>
#include <vector>

namespace tests::program_eager {

namespace {

using namespace dfdx;

constexpr auto wave = [](auto const& x) { return sum(sin(x) * square(x)); };
constexpr auto field = [](auto const& x, auto const& w) { return tanh(matmul(w, x)) * sum(x); };
constexpr auto with_more = [](auto const& x, auto const& w) {
  auto const y = tanh(matmul(w, x));
  return std::pair(sum(square(y)), std::pair(y, sum(x)));
};
constexpr auto without = [](auto const& x, auto const& w) { return with_more(x, w).first; };
constexpr auto squares = [](auto const& y, auto const&) { return sum(square(square(y))); };
constexpr auto two = [](auto const& x, auto const& y) { return std::pair(x * exp(y), sum(x * x)); };

template <std::size_t N>
Tensor<double, N> point(std::uint64_t k) {
  return randn<double, N>(Key{k});
}
bool same(Array const& a, Array const& b) { return a.shape() == b.shape() && allclose(a, b, 1e-12, 1e-13); }

}  // namespace

TEST_CASE("grad: of functions that return more in a pair, compiled and not", "[program][eager]") {
  auto const x = point<4>(1), v = point<4>(2);
  auto const w = randn<double, 3, 4>(Key{3});
  auto const [y, g] = value_and_grad(without, wrt<0, 1>)(x, w);
  auto const [more, same_g] = value_and_grad(with_more, wrt<0, 1>)(x, w);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(more.second.first)>, Tensor<double, 3>>);
  CHECK(same(more.first, y));
  CHECK(same(more.second.first, tanh(matmul(w, x))));
  CHECK(same(more.second.second, sum(x)));
  CHECK(same(std::get<0>(same_g), std::get<0>(g)));
  CHECK(same(std::get<1>(same_g), std::get<1>(g)));
  Array const ax = x, aw = w, av = v;
  auto const [eager_more, eager_g] = value_and_grad(with_more, wrt<0, 1>)(ax, aw);
  CHECK(same(eager_more.first, y));
  CHECK(same(eager_more.second.first, more.second.first));
  CHECK(!eager_more.second.first.requires_grad());
  CHECK(same(std::get<1>(eager_g), std::get<1>(g)));
  CHECK(same(grad(with_more)(x, w), std::get<0>(g)));
  CHECK(same(grad(with_more)(ax, aw), std::get<0>(g)));
  CHECK(same(hessian(with_more)(x, w), hessian(without)(x, w)));
  CHECK(same(hessian(with_more)(ax, aw), hessian(without)(x, w)));
  CHECK(same(diagonal_hessian(with_more)(ax, aw), diagonal_hessian(without)(x, w)));
  CHECK(same(hvp(with_more)(x, w, v), hvp(without)(x, w, v)));
  CHECK(same(hvp(with_more)(ax, aw, av), hvp(without)(x, w, v)));
  // Of each example its own.
  auto const many = randn<double, 5, 4>(Key{4});
  auto const [each, slopes] = vmap(value_and_grad(with_more), in_axes<0, unmapped>)(many, w);
  CHECK(same(each.second.first, tanh(matmul(many, transpose(w)))));
  CHECK(same(slice(slopes, 0, 2, 3), reshape(grad(without)(select<0, 2>(many), w), {1, 4})));
  CHECK_THROWS_WITH(value_and_grad([](auto const& a) { return std::pair(a, a); })(ax),
                    "grad: the function must return a scalar, got [4]");
}

TEST_CASE("eager transforms: gradients and products", "[program][eager]") {
  auto const x = point<4>(1), v = point<4>(2);
  Array const ax = x, av = v;
  auto const [y, g] = value_and_grad(wave)(x);
  auto const [ay, ag] = value_and_grad(wave)(ax);
  static_assert(std::is_same_v<std::remove_const_t<decltype(ag)>, Array>);
  CHECK(same(ay, y));
  CHECK(same(ag, g));
  CHECK(!ag.requires_grad());
  CHECK(!ax.requires_grad());  // the argument is as it was
  CHECK(same(grad(wave)(ax), g));
  CHECK(same(jvp(wave)(ax, av).second, jvp(wave)(x, v).second));
  CHECK(same(hvp(wave)(ax, av), hvp(wave)(x, v)));
  CHECK(same(hessian(wave)(ax), hessian(wave)(x)));
  CHECK(same(diagonal_hessian(wave)(ax), diagonal_hessian(wave)(x)));
  auto const w = randn<double, 3, 4>(Key{3});
  Array const aw = w;
  auto const [jx, jw] = jacobian(field, wrt<0, 1>)(ax, aw);
  auto const [cx, cw] = jacobian(field, wrt<0, 1>)(x, w);
  CHECK(same(jx, cx));
  CHECK(same(jw, cw));
  CHECK(same(jacfwd(field)(ax, aw), cx));
  CHECK(same(gauss_newton_vp(field, squares)(ax, aw, av), gauss_newton_vp(field, squares)(x, w, v)));
  auto const ct = std::pair(point<4>(5), randn<double>(Key{6}));
  auto const [r, cts] = vjp(two)(x, v, ct);
  auto const [ar, acts] = vjp(two)(ax, av, std::pair<Array, Array>(ct));
  CHECK(same(ar.first, r.first));
  CHECK(same(std::get<0>(acts), std::get<0>(cts)));
  CHECK(same(std::get<1>(acts), std::get<1>(cts)));
}

TEST_CASE("eager transforms nest, in one another and in the tape", "[program][eager]") {
  auto const x = point<3>(1);
  Array const ax = x;
  constexpr auto third = [](auto const& a) {
    return sum(grad(grad([](auto const& b) { return sum(sin(b)); }))(a));
  };
  static_cast<void>(third);
  constexpr auto stiffness = [](auto const& a) { return sum(square(hessian(wave)(a))); };
  CHECK(same(grad(stiffness)(ax), grad(stiffness)(x)));
  CHECK(same(jacobian(hessian(wave))(ax), jacobian(hessian(wave))(x)));
  CHECK(same(jvp(grad(wave))(ax, ax).second, jvp(grad(wave))(x, x).second));
  // A gradient penalty: the gradient of a function of a gradient, by backward().
  Array leaf = ax.clone();
  leaf.requires_grad(true);
  sum(square(grad(wave)(leaf))).backward();
  constexpr auto penalty = [](auto const& a) { return sum(square(grad(wave)(a))); };
  CHECK(same(leaf.grad(), grad(penalty)(x)));
}

TEST_CASE("eager vmap: a loop over the examples", "[program][eager]") {
  auto const x = randn<double, 5, 4>(Key{1});
  auto const w = randn<double, 3, 4>(Key{3});
  Array const ax = x, aw = w;
  constexpr auto f = vmap(field, in_axes<0, unmapped>);
  CHECK(same(f(ax, aw), f(x, w)));
  CHECK(same(vmap(field, in_axes<1, unmapped>, out_axes<-1>)(transpose(ax, 0, 1), aw),
             transpose(Array(f(x, w)), 0, 1)));
  CHECK(same(vmap(grad(wave))(ax), vmap(grad(wave))(x)));
  constexpr auto total = [](auto const& a, auto const& b) {
    return sum(square(vmap(field, in_axes<0, unmapped>)(a, b)));
  };
  CHECK(same(grad(total, wrt<1>)(ax, aw), grad(total, wrt<1>)(x, w)));
}

TEST_CASE("eager transforms: errors in the words of the compiler's", "[program][eager]") {
  Array const x = point<3>(1), i = arange(4);
  auto const says = [](auto const& call, std::string const& words) {
    try {
      call();
    } catch (error const& e) {
      INFO(e.what());
      return std::string(e.what()).find(words) != std::string::npos;
    }
    return false;
  };
  CHECK(says([&] { grad([](auto const& a) { return a * 2.0; })(x); },
             "grad: the function must return a scalar, got [3]"));
  CHECK(says([&] { grad(wave)(i); }, "grad: floating arguments required, got i64"));
  CHECK(says([&] { vmap(two)(x, i); }, "vmap: axis 0 of [4] must have the extent mapped over, 3"));
}

// As many layers as there are: programs know their number, so this is run by the tape.
struct Deep {
  std::vector<nn::Linear<3, 3>> layers;
  std::optional<nn::Linear<3, 3>> last;
  DFDX_FIELDS(layers, last)
  constexpr auto operator()(Tensor<float, 4, 3> x) const {
    for (auto const& layer : layers) x = tanh(layer(x));
    return last ? (*last)(x) : x;
  }
};

TEST_CASE("eager transforms: models with lists of layers", "[program][eager]") {
  constexpr auto loss = [](auto const& m, auto const& x) { return mean(square(m(x))); };
  auto const x = randn<float, 4, 3>(Key{1});
  std::array<nn::Linear<3, 3>, 2> known;
  for (std::size_t i = 0; i < 2; ++i) known[i] = init<nn::Linear<3, 3>>(i);
  Deep deep{{known[0]}, known[1]};
  auto const by_hand = [](auto const& m, auto const& v) { return mean(square(m[1](tanh(m[0](v))))); };
  auto const [y, g] = value_and_grad(loss)(deep, x);
  auto const [want, want_g] = value_and_grad(by_hand)(known, x);
  CHECK(std::abs(y.item() - want.item()) < 1e-6f);
  REQUIRE((g.layers.size() == 1 && g.last));
  CHECK(allclose(g.layers[0].weight, want_g[0].weight, 1e-5, 1e-7));
  CHECK(allclose(g.last->bias, want_g[1].bias, 1e-5, 1e-7));
  CHECK(!deep.layers[0].weight.requires_grad());

  auto const run = compile([](Deep const& m, Tensor<float, 4, 3> const& v) { return m(v); });
  CHECK(array_equal(run(deep, x), deep(x)));
  deep.last.reset();
  deep.layers.push_back(known[1]);
  CHECK(array_equal(run(deep, x), deep(x)));
  auto const first = compile([](std::vector<Tensor<float, 4, 3>> const& v) { return v.at(0) * v.at(1); });
  CHECK(array_equal(first(std::vector{x, x}), square(x)));
}

TEST_CASE("a program refuses what is on the tape, where its gradient would be lost", "[program][eager]") {
  auto x = point<3>(1);
  auto const before = compile([](Tensor<double, 3> const& a) { return sum(a); })(x);
  x.requires_grad(true);
  auto const sum_of = compile([](Tensor<double, 3> const& a) { return sum(a); });
  std::string const refusal =
      "program: an argument of shape [3] requires a gradient, but programs are not recorded on the tape: "
      "detach "
      "it, or use no_grad";
  CHECK_THROWS_WITH(sum_of(x), refusal);
  no_grad const off;
  CHECK(sum_of(x).item() == before.item());
}

}  // namespace tests::program_eager
