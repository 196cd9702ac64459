// SPDX-License-Identifier: BSL-1.0
// Many vectors of a few numbers each, as points, quaternions, colours or the classes of a sample are: programs go
// through their components in lanes and write each where it belongs. Values are those of eager calls, gradients those
// of the tape.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>
#include <tuple>

namespace tests::program_vectors {

namespace {

using namespace dfdx;

constexpr auto norms = [](auto const& x) { return sqrt(sum<-1>(square(x)) + 0.1f); };
constexpr auto units = [](auto const& x) { return x / sqrt(sum<-1>(square(x), keepdim) + 0.1f); };
constexpr auto classes = [](auto const& x) { return softmax<-1>(x); };
constexpr auto log_classes = [](auto const& x) { return log_softmax<-1>(x); };
constexpr auto spans = [](auto const& x) { return amax<-1>(x) - amin<-1>(x) + prod<-1>(x); };
constexpr auto standard = [](auto const& x) {
  auto const centred = x - mean<-1>(x, keepdim);
  return centred / sqrt(mean<-1>(square(centred), keepdim) + 0.1f);
};
template <class F>
constexpr auto weighed = [](auto const& x, auto const& w) { return sum(F{}(x)*w); };

// Each in one kernel, so that no vector is read or written twice; of eight components in two at most.
template <class T, std::size_t... N, class F>
void check(F const& f, double tolerance) {
  using X = Tensor<T, N...>;
  CAPTURE(X::static_shape[0], X::static_shape[X::static_shape.rank - 1]);
  auto const x = randn<T, N...>(Key{1});
  auto const y = compile(f)(x);
  CHECK(allclose(y, f(x), tolerance, tolerance));
  constexpr int kernels = decltype(compile(f))::template program_for<X>::kernels;
  CHECK(kernels <= (X::static_shape[X::static_shape.rank - 1] < 8 ? 1 : 2));
  auto w = y;
  for (index_t i = 0; i < w.size(); ++i) w.data()[i] = static_cast<T>(i % 7) - T(2);
  auto u = clone(x);
  watch(u);
  weighed<F>(u, w).backward();
  auto const g = grad(weighed<F>)(x, w);
  CHECK(allclose(g, u.grad(), 10 * tolerance, 10 * tolerance));
}

template <class F>
void check_all(F const& f) {
  check<float, 1003, 3>(f, 2e-6);
  check<double, 301, 3>(f, 1e-13);
  check<float, 3, 131, 4>(f, 2e-6);
  check<float, 517, 2>(f, 2e-6);
  check<double, 260, 5>(f, 1e-13);
  check<float, 256, 8>(f, 2e-6);
}

constexpr auto turned = [](auto const& x, auto const& m) { return matmul(units(matmul(units(x), m)), m); };

}  // namespace

TEST_CASE("lengths of many vectors") { check_all(norms); }
TEST_CASE("vectors of length one") { check_all(units); }
TEST_CASE("probabilities of few classes") { check_all(classes); }
TEST_CASE("their logarithms") { check_all(log_classes); }
TEST_CASE("least, greatest and product of each vector") { check_all(spans); }
TEST_CASE("standardized vectors") { check_all(standard); }

TEST_CASE("what is not a number stays in its vector") {
  auto x = randn<float, 300, 3>(Key{2});
  x(7, 1) = std::numeric_limits<float>::quiet_NaN();
  x(8, 2) = -std::numeric_limits<float>::infinity();
  auto const y = compile(spans)(x), want = spans(x);
  for (index_t i = 0; i < 300; ++i)
    CHECK(
        (std::fabs(y(i) - want(i)) <= 1e-5f || y(i) == want(i) || (std::isnan(y(i)) && std::isnan(want(i)))));
  auto const p = compile(classes)(x);
  CHECK(std::isnan(p(7, 0)));
  CHECK(p(8, 2) == 0);
  CHECK(allclose(sum(slice<0, 8>(p)), full({}, 292), 1e-5, 1e-5));
}

TEST_CASE("vectors before and after a product with a matrix") {
  constexpr auto loss = [](auto const& x, auto const& m) { return sum(cos(turned(x, m))); };
  auto const x = randn<float, 400, 3>(Key{3});
  auto const m = randn<float, 3, 3>(Key{4});
  CHECK(allclose(compile(turned)(x, m), turned(x, m), 1e-5, 1e-5));
  auto const [gx, gm] = grad(loss, wrt<0, 1>)(x, m);
  auto u = clone(x);
  auto v = clone(m);
  watch(u);
  watch(v);
  loss(u, v).backward();
  CHECK(allclose(gx, u.grad(), 1e-4, 1e-4));
  CHECK(allclose(gm, v.grad(), 1e-4, 1e-3));
}

// Points that a step moves, in place.
struct Cloud {
  Tensor<float, 300, 3> at;
  DFDX_FIELDS(at)
};
TEST_CASE("points that are trained on a sphere") {
  constexpr auto loss = [](Cloud const& c, Tensor<float, 300, 3> const& to) {
    return mean(square(c.at / sqrt(sum<-1>(square(c.at), keepdim)) - to));
  };
  Cloud stepped{randn<float, 300, 3>(Key{5})}, taped{clone(stepped.at)};
  auto const to = units(randn<float, 300, 3>(Key{6}));
  auto step = train_step(loss, optim::Adam{.lr = 1e-2f});
  optim::Optimizer optimizer(optim::Adam{.lr = 1e-2f});
  watch(taped);
  for (int i = 0; i < 20; ++i) {
    step(stepped, to);
    loss(taped, to).backward();
    optimizer.step(taped);
    zero_grad(taped);
  }
  CHECK(allclose(stepped.at, taped.at, 1e-4, 1e-4));
}

TEST_CASE("vectors whose number is known when the program runs") {
  using X = Tensor<float, dyn, 3>;
  constexpr auto loss = [](auto const& x, auto const& w) { return sum(units(x) * classes(w)); };
  auto f = compile(units);
  auto g = grad(loss, wrt<0, 1>);
  CHECK(decltype(f)::program_for<X>::kernels == 1);
  for (index_t n : {5, 1, 0, 33, 1000}) {
    X const x(randn({n, 3}, Key{11})), w(randn({n, 3}, Key{12}));
    auto u = clone(x), v = clone(w);
    watch(u);
    watch(v);
    loss(u, v).backward();
    CHECK(allclose(f(x), units(x), 1e-6, 1e-6));
    auto const [gx, gw] = g(x, w);
    CHECK(allclose(gx, u.grad(), 1e-5, 1e-5));
    CHECK(allclose(gw, v.grad(), 1e-5, 1e-5));
  }
}

TEST_CASE("columns that are stacked are computed where they lie") {
  constexpr auto polar = [](auto const& r, auto const& a) {
    return stack<-1>(r * cos(a), r * sin(a), r * 2.0f);
  };
  using V = Tensor<float, 333>;
  auto const r = randn<float, 333>(Key{7}), a = randn<float, 333>(Key{8});
  CHECK(allclose(compile(polar)(r, a), polar(r, a), 1e-6, 1e-6));
  CHECK(decltype(compile(polar))::program_for<V, V>::kernels == 1);
  // Also where one of them is wanted by itself, or both are parts of what is joined further.
  constexpr auto more = [](auto const& x, auto const& y) {
    auto const c = x * cos(y);
    auto const both = stack<-1>(c, x * sin(y));
    return std::tuple(both, c + 1.0f, concat<0>(both * 2.0f, both), matmul(transpose(both), both));
  };
  auto const got = compile(more)(r, a), want = more(r, a);
  CHECK(allclose(std::get<0>(got), std::get<0>(want), 1e-6, 1e-6));
  CHECK(allclose(std::get<1>(got), std::get<1>(want), 1e-6, 1e-6));
  CHECK(allclose(std::get<2>(got), std::get<2>(want), 1e-6, 1e-6));
  CHECK(allclose(std::get<3>(got), std::get<3>(want), 1e-5, 1e-5));
}

TEST_CASE("sums of all numbers of many vectors stay one walk") {
  constexpr auto loss = [](auto const& x, auto const& y) { return mean(square(x - y)); };
  using X = Tensor<float, 1000, 3>;
  auto const x = randn<float, 1000, 3>(Key{9}), y = randn<float, 1000, 3>(Key{10});
  CHECK(allclose(compile(loss)(x, y), loss(x, y), 1e-6, 1e-6));
  CHECK(decltype(compile(loss))::program_for<X, X>::kernels == 1);
}

}  // namespace tests::program_vectors
