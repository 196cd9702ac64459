// SPDX-License-Identifier: BSL-1.0
// Loops whose values are a few numbers: filters, equations of motion, estimators. Each is one kernel, forward and
// backward, and agrees with what runs eagerly and with the tape.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

namespace tests::program_small_loops {

namespace {

using namespace dfdx;

constexpr std::size_t rounds = 24;
using Times = Tensor<double, rounds>;

// Values agree with eager calls, gradients with the tape.
template <class Loss, class Model, class... X>
void check_gradient(Loss loss, Model const& model, X const&... x) {
  auto [value, gradient] = value_and_grad(loss)(model, x...);
  Model taped = clone(model);
  watch(taped);
  auto const y = loss(taped, x...);
  y.backward();
  CHECK(allclose(value, y, 1e-12, 1e-12));
  std::vector<Array> want;
  visit(taped, [&](auto const& t) { want.push_back(t.grad()); });
  std::size_t k = 0;
  visit(gradient, [&](auto const& g) { CHECK(allclose(Array(g), want[k++], 1e-10, 1e-12)); });
  CHECK(k == want.size());
}

// --- a differential equation by the method of Runge and Kutta ---

struct Lorenz {
  Tensor<double> s, r, b;
  DFDX_FIELDS(s, r, b)
};
constexpr auto slope = [](Lorenz const& p, auto const& u) {
  auto const [x, y, z] = unbind(u);
  return stack(p.s * (y - x), x * (p.r - z) - y, x * y - p.b * z);
};
constexpr auto orbit = [](Lorenz const& p, Tensor<double, 3> const& start, Times const& h) {
  return scan(
             [&](auto const& u, auto const& dt) {
               auto const k1 = slope(p, u), k2 = slope(p, u + 0.5 * dt * k1);
               auto const k3 = slope(p, u + 0.5 * dt * k2), k4 = slope(p, u + dt * k3);
               auto const next = u + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
               return std::pair(next, next);
             },
             start, h)
      .second;
};

// --- a filter by Kalman ---

using Matrix = Tensor<double, 2, 2>;
using Vector = Tensor<double, 2>;
struct Filter {
  Matrix a, q;
  Vector h;
  Tensor<double> r;
  DFDX_FIELDS(a, q, h, r)
};
constexpr auto likelihood = [](Filter const& f, Vector const& x0, Matrix const& p0, Times const& z) {
  auto const step = [&](auto const& state, auto const& measured) {
    auto const x = matmul(f.a, state.first);
    auto const p = matmul(matmul(f.a, state.second), transpose(f.a)) + f.q;
    auto const ph = matmul(p, f.h);
    auto const s = dot(f.h, ph) + f.r, error = measured - dot(f.h, x);
    auto const gain = ph / s;
    return std::pair(std::pair(x + gain * error, p - outer(gain, ph)), log(s) + error * error / s);
  };
  return sum(scan(step, std::pair(x0, p0), z).second);
};

// --- what moves numbers ---

constexpr auto moved = [](Tensor<double, 2, 3> const& w, Tensor<double, 6> const& start,
                          Tensor<double, rounds, 2> const& xs) {
  auto const step = [&](auto const& c, auto const& x) {
    auto const m = reshape<2, 3>(c);
    auto const turned = reshape<6>(transpose(m));
    auto const every_other = slice<0, 0, 6, 2>(turned);
    auto const wide = expand<2, 3>(reshape<2, 1>(x)) * w + expand<2, 3>(reshape<1, 3>(every_other));
    auto const spread = pad<1, 2>(every_other, 0.5);
    auto const rows = sum<1>(m * wide);
    auto const next = concat<0>(tanh(reshape<4>(slice<1, 1, 3>(wide))), rows) * 0.5 + 0.1 * spread;
    auto const windows = unfold<0, 4, 1>(next);  // [3, 4]
    return std::pair(next + 0.1 * sum(windows * slice<0, 1, 5>(next)), stack(rows, x));
  };
  return scan(step, start, xs).second;
};

// --- a line of delays, each of whose values moves on by one ---

constexpr auto delayed = [](Tensor<double, 8> const& taps, Times const& x) {
  auto const step = [&](auto const& line, auto const& now) {
    auto const next = concat<0>(reshape<1>(now), slice<0, 0, 7>(line));
    return std::pair(next, dot(taps, next));
  };
  return scan(step, zeros<double, 8>(), x).second;
};

template <class F, class... A>
using Compiled = typename decltype(compile(std::declval<F>()))::template program_for<A...>;
template <class F, class... A>
using Gradient = typename decltype(value_and_grad(std::declval<F>()))::template program_for<A...>;

}  // namespace

TEST_CASE("a differential equation is one kernel") {
  Lorenz const p{10.0, 28.0, 8.0 / 3};
  Tensor<double, 3> const start{1.0, 2.0, 3.0};
  Times const h = full<double, rounds>(0.01);
  CHECK(allclose(compile(orbit)(p, start, h), orbit(p, start, h), 1e-12, 1e-12));
  using Program = Compiled<decltype(orbit), Lorenz, Tensor<double, 3>, Times>;
  CHECK(Program::kernels == 2);  // one copies the start
  constexpr auto loss = [](Lorenz const& q, Tensor<double, 3> const& u, Times const& dt) {
    return mean(square(orbit(q, u, dt)));
  };
  check_gradient(loss, p, start, h);
  using Backward = Gradient<decltype(loss), Lorenz, Tensor<double, 3>, Times>;
  CHECK(Backward::kernels <= 8);
}

TEST_CASE("a filter of two states is one kernel, and so is its gradient") {
  Filter const f{{{1.0, 0.1}, {-0.05, 0.9}}, {{0.02, 0.01}, {0.01, 0.03}}, {1.0, 0.5}, 0.2};
  Vector const x0{0.3, -0.2};
  Matrix const p0{{1.0, 0.1}, {0.1, 2.0}};
  Times const z = randn<double, rounds>(Key{1});
  CHECK(allclose(compile(likelihood)(f, x0, p0, z), likelihood(f, x0, p0, z), 1e-12, 1e-12));
  check_gradient(likelihood, f, x0, p0, z);
  using Backward = Gradient<decltype(likelihood), Filter, Vector, Matrix, Times>;
  CHECK(Backward::kernels <= 12);
}

TEST_CASE("numbers that a round moves, pads, joins and sums") {
  auto const w = randn<double, 2, 3>(Key{2});
  auto const start = randn<double, 6>(Key{3});
  auto const xs = randn<double, rounds, 2>(Key{4});
  CHECK(allclose(compile(moved)(w, start, xs), moved(w, start, xs), 1e-12, 1e-12));
  using Program =
      Compiled<decltype(moved), Tensor<double, 2, 3>, Tensor<double, 6>, Tensor<double, rounds, 2>>;
  CHECK(Program::kernels == 2);
  constexpr auto loss = [](Tensor<double, 2, 3> const& v, Tensor<double, 6> const& u,
                           Tensor<double, rounds, 2> const& x) { return mean(square(moved(v, u, x))); };
  check_gradient(loss, w, start, xs);
}

TEST_CASE("a line of delays stays in registers") {
  auto const taps = randn<double, 8>(Key{5});
  auto const x = randn<double, rounds>(Key{6});
  auto const y = compile(delayed)(taps, x);
  CHECK(allclose(y, delayed(taps, x), 1e-12, 1e-12));
  using Program = Compiled<decltype(delayed), Tensor<double, 8>, Times>;
  CHECK(Program::kernels == 2);
  for (index_t i = 0; i < static_cast<index_t>(rounds); ++i) {
    double want = 0;
    for (index_t k = 0; k <= i && k < 8; ++k) want += taps(k) * x(i - k);
    CHECK(std::fabs(y(i) - want) < 1e-12);
  }
}

}  // namespace tests::program_small_loops
