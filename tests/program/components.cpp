// SPDX-License-Identifier: BSL-1.0
// Vectors of a few numbers between all pairs of points, which only sums read: programs go through them component by
// component. Values agree with loops by hand and with eager calls, gradients with the tape.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>

namespace tests::program_components {

namespace {

using namespace dfdx;

constexpr std::size_t points = 40;
template <class T, std::size_t D>
using Points = Tensor<T, points, D>;

constexpr auto between = [](auto const& x, auto const& y) { return unsqueeze<1>(x) - unsqueeze<0>(y); };
constexpr auto distances = [](auto const& x, auto const& y) { return sum<2>(square(between(x, y))); };
constexpr auto likeness = [](auto const& x, auto const& y) { return sum(exp(-0.3 * distances(x, y))); };

// What pulls each point, its own mass left out.
constexpr auto pull = [](Points<double, 3> const& x, Tensor<double, points> const& m) {
  auto const d = -between(x, x);
  auto const far = sum<2>(square(d)) + 0.01;
  auto const w = unsqueeze<0>(m) * pow(far, -1.5);
  return sum<1>(where(abs(d) < 2.0, d, 0.5 * d) * unsqueeze<2>(w));
};

template <class T, std::size_t D>
void check_distances(double tolerance) {
  auto const x = randn<T, points, D>(Key{1}), y = randn<T, points, D>(Key{2});
  auto const got = compile(distances)(x, y);
  for (index_t i = 0; i < static_cast<index_t>(points); ++i)
    for (index_t j = 0; j < static_cast<index_t>(points); ++j) {
      double want = 0;
      for (index_t k = 0; k < static_cast<index_t>(D); ++k) {
        double const d = static_cast<double>(x(i, k)) - static_cast<double>(y(j, k));
        want += d * d;
      }
      CHECK(std::fabs(static_cast<double>(got(i, j)) - want) <= tolerance * (1 + want));
    }
  auto const [value, gradients] = value_and_grad(likeness, wrt<0, 1>)(x, y);
  auto u = clone(x), v = clone(y);
  watch(u);
  watch(v);
  auto const taped = likeness(u, v);
  taped.backward();
  CHECK(allclose(value, taped, 100 * tolerance, 100 * tolerance));
  CHECK(allclose(std::get<0>(gradients), u.grad(), 100 * tolerance, 100 * tolerance));
  CHECK(std::get<0>(gradients).data()[D + 1] == std::get<0>(gradients)(1, 1));  // lies in order
  CHECK(allclose(std::get<1>(gradients), v.grad(), 100 * tolerance, 100 * tolerance));
}

}  // namespace

TEST_CASE("distances of all pairs of points and their gradients") {
  check_distances<double, 2>(1e-13);
  check_distances<double, 3>(1e-13);
  check_distances<float, 3>(1e-6);
  check_distances<float, 8>(1e-6);
  check_distances<float, 9>(1e-6);  // too long to be taken apart
  using Program = decltype(compile(distances))::program_for<Points<double, 3>, Points<double, 3>>;
  CHECK(Program::kernels == 2);  // one lays components side by side that lanes run along
  using Longer = decltype(compile(distances))::program_for<Points<float, 9>, Points<float, 9>>;
  CHECK(Longer::kernels == 1);
}

TEST_CASE("no array of all pairs of many points is stored") {
  // Of four components a kernel has no registers for the sums of all rows: then they stay together.
  using Three =
      decltype(value_and_grad(likeness))::program_for<Tensor<float, 1200, 3>, Tensor<float, 1200, 3>>;
  using Four =
      decltype(value_and_grad(likeness))::program_for<Tensor<float, 1200, 4>, Tensor<float, 1200, 4>>;
  CHECK(Three::kernels > 1);
  CHECK(Three::arena_bytes < 100'000);
  CHECK(Four::arena_bytes < 100'000);
}

TEST_CASE("sums of vectors over pairs") {
  auto const x = randn<double, points, 3>(Key{3});
  auto const m = uniform<double, points>(Key{4});
  auto const got = compile(pull)(x, m);
  CHECK(allclose(got, pull(x, m), 1e-12, 1e-12));
  constexpr auto loss = [](Points<double, 3> const& p, Tensor<double, points> const& q) {
    return sum(square(pull(p, q)));
  };
  auto const gradient = grad(loss)(x, m);
  auto u = clone(x);
  watch(u);
  loss(u, m).backward();
  CHECK(allclose(gradient, u.grad(), 1e-11, 1e-11));
}

TEST_CASE("vectors that a program returns stay as they are") {
  constexpr auto both = [](Points<double, 3> const& x, Points<double, 3> const& y) {
    auto const d = between(x, y);
    return std::pair(d, sum<2>(square(d)));
  };
  auto const x = randn<double, points, 3>(Key{5}), y = randn<double, points, 3>(Key{6});
  auto const [d, far] = compile(both)(x, y);
  CHECK(allclose(d, both(x, y).first, 1e-13, 1e-13));
  CHECK(allclose(far, both(x, y).second, 1e-13, 1e-13));
  using Program = decltype(compile(both))::program_for<Points<double, 3>, Points<double, 3>>;
  CHECK(Program::kernels <= 2);
}

}  // namespace tests::program_components
