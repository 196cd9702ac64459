// SPDX-License-Identifier: BSL-1.0
// Functions of functions, whose loops run part by part on some vectors at a time: every element and every sum is there,
// of sizes that end within such vectors or parts of them, and where a result takes the place of an operand.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::program_chains {

namespace {

using namespace dfdx;

constexpr auto chain = [](auto const& x, auto const& y) {
  auto const inner = exp(-square(x)) + y;
  return sin(log(inner + 2.0)) * tanh(inner) - erf(sin(x) * y);
};
constexpr auto total = [](auto const& x, auto const& y) { return sum(log(1.0 + exp(sin(x) * y))); };
// A value of one part that a later phase needs again.
constexpr auto share = [](auto const& x, auto const& y) {
  auto const a = tanh(exp(x * 0.3) - y);
  return a / sum<-1>(square(a) + 0.1, keepdim);
};

template <class T, std::size_t... N>
void check(double tolerance) {
  auto const x = randn<T, N...>(Key{1}), y = uniform<T, N...>(Key{2});
  CAPTURE(x.size());
  CHECK(allclose(compile(chain)(x, y), chain(x, y), tolerance, tolerance));
  CHECK(allclose(compile(total)(x, y), total(x, y), 10 * tolerance, 10 * tolerance));
  CHECK(allclose(compile(share)(x, y), share(x, y), tolerance, tolerance));
  auto u = clone(x), v = clone(y);
  watch(u);
  watch(v);
  sum(square(chain(u, v)) + share(u, v)).backward();
  auto const [gx, gy] = grad(
      [](auto const& a, auto const& b) { return sum(square(chain(a, b)) + share(a, b)); }, wrt<0, 1>)(x, y);
  CHECK(allclose(gx, u.grad(), 20 * tolerance, 20 * tolerance));
  CHECK(allclose(gy, v.grad(), 20 * tolerance, 20 * tolerance));
}

struct Held {
  Tensor<double, 1003> w;
  DFDX_FIELDS(w)
};

}  // namespace

TEST_CASE("functions of functions") {
  check<float, 127>(2e-6);
  check<float, 128>(2e-6);
  check<float, 1003>(2e-6);
  check<float, 3, 515>(2e-6);
  check<float, 5, 4096>(2e-6);
  check<double, 64>(1e-13);
  check<double, 1003>(1e-13);
  check<double, 2, 77>(1e-13);
}

TEST_CASE("functions of functions of an operand that the result replaces") {
  Held stepped{randn<double, 1003>(Key{3})};
  auto const before = clone(stepped.w);
  auto step =
      train_step([](Held const& h) { return sum(log(2.0 + sin(exp(tanh(h.w))))); }, optim::SGD{.lr = 0.1});
  step(stepped);
  auto w = clone(before);
  watch(w);
  sum(log(2.0 + sin(exp(tanh(w))))).backward();
  CHECK(allclose(stepped.w, before - 0.1 * w.grad(), 1e-13, 1e-13));
}

}  // namespace tests::program_chains
