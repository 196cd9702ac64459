// SPDX-License-Identifier: BSL-1.0
// Transforms of functions: gradients, both modes, nesting, tuples, numbers, arguments of all kinds.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace tests::program_functions {

namespace {

using namespace dfdx;

constexpr auto cube = [](auto const& x) { return x * x * x; };
constexpr auto square_plus_one = [](Tensor<double> const& x) { return x * x + 1.0; };

// Numbers are differentiated in constant expressions.
static_assert(grad(square_plus_one)(3.0) == 6.0);
static_assert(value_and_grad(square_plus_one)(3.0).first == 10.0);
static_assert(grad(grad(cube))(2.0) == 12.0);
static_assert(grad(grad(grad(cube)))(2.0) == 6.0);
static_assert(jvp(cube)(2.0, 1.0).second == 12.0);
static_assert(vjp(cube)(2.0, 10.0).second == 120.0);
static_assert(compile(cube)(3) == 27);
constexpr auto two_numbers = [](auto const& x, auto const& y) { return x * y * y; };
static_assert(grad(two_numbers)(2.0, 3.0) == 9.0);
static_assert(grad(two_numbers, wrt<1>)(2.0, 3.0) == 12.0);
static_assert(std::get<1>(grad(two_numbers, wrt<0, 1>)(2.0, 3.0)) == 12.0);
static_assert(std::get<0>(grad(two_numbers, wrt<1, 0>)(2.0, 3.0)) == 12.0);
constexpr auto kinked = [](auto const& x) { return relu(x) + abs(x - 2.0); };
static_assert(grad(kinked)(1.0) == 0.0 && grad(kinked)(3.0) == 2.0 && grad(kinked)(-1.0) == -1.0);
static_assert(grad([](Tensor<float> const& x) { return exp(x) * 2.0; })(0.0f) == 2.0f);

bool near(double a, double b, double rtol = 1e-12) {
  return std::fabs(a - b) <= rtol * (std::fabs(b) + 1e-300);
}

constexpr auto wave = [](Tensor<double, 4> const& x) { return sum(sin(x) * x); };
constexpr auto along = [](Tensor<double, 4> const& x, Tensor<double, 4> const& v) {
  return sum(grad(wave)(x) * v);
};
constexpr auto slope = [](Tensor<double, 4> const& x, Tensor<double, 4> const& v) {
  return jvp(wave)(x, v).second;
};

constexpr auto x_exp_x = [](Tensor<double, 3> const& x) { return sum(x * exp(x)); };

struct Many {
  std::vector<Tensor<float, 2>> parts;
  std::optional<Tensor<float, 3>> last;
  DFDX_FIELDS(parts, last)
};
struct Perhaps {
  std::optional<Tensor<float, 3>> last;
  DFDX_FIELDS(last)
};

}  // namespace

TEST_CASE("DESIGN 10 (a): a gradient", "[program]") {
  auto x = Tensor<double, 3>::from({0.0, 1.0, 2.0});
  auto [y, dx] = value_and_grad(x_exp_x)(x);
  double const e = std::exp(1.0);
  CHECK(near(y.item(), e + 2 * e * e));
  CHECK(dx(0) == 1);
  CHECK(near(dx(1), 2 * e));
  CHECK(near(dx(2), 3 * e * e));
  auto const direction = Tensor<double, 3>::from({1.0, -1.0, 0.5});
  auto [value, tangent] = jvp(x_exp_x)(x, direction);
  CHECK(value.item() == y.item());
  CHECK(near(tangent.item(), 1 - 2 * e + 1.5 * e * e));
  auto [again, pulled] = vjp(x_exp_x)(x, Tensor<double>(2.0));
  CHECK(again.item() == y.item());
  CHECK(near(pulled(2), 6 * e * e));
}

TEST_CASE("gradients of gradients, forward over reverse and reverse over forward", "[program]") {
  auto const x = Tensor<double, 4>::from({0.3, -1.0, 2.0, 0.0}),
             v = Tensor<double, 4>::from({1.0, 2.0, -1.0, 0.5});
  auto const hv = grad(along)(x, v);                  // reverse over reverse
  auto const forward = jvp(grad(wave))(x, v).second;  // forward over reverse
  auto const reverse = grad(slope)(x, v);             // reverse over forward
  for (index_t i = 0; i < 4; ++i) {
    double const want = (2 * std::cos(x(i)) - x(i) * std::sin(x(i))) * v(i);
    CHECK(near(hv(i), want, 1e-10));
    CHECK(near(forward(i), want, 1e-10));
    CHECK(near(reverse(i), want, 1e-10));
  }
}

TEST_CASE("results that are tuples, and gradients for several arguments", "[program]") {
  constexpr auto f = [](Tensor<float, 2, 3> const& a, Tensor<float, 3> const& b) {
    return std::tuple(a + b, sum<0>(a) * b, std::pair(max(a), b));
  };
  auto const a = Tensor<float, 2, 3>::from({{1, 2, 3}, {4, 5, 6}});
  auto const b = Tensor<float, 3>::from({10, 20, 30});
  auto const [both, scaled, rest] = compile(f)(a, b);
  CHECK(array_equal(both, Tensor<float, 2, 3>::from({{11, 22, 33}, {14, 25, 36}})));
  CHECK(array_equal(scaled, Tensor<float, 3>::from({50, 140, 270})));
  CHECK(rest.first.item() == 6);
  CHECK(array_equal(rest.second, b));  // an argument handed through
  CHECK(rest.second.bytes() != b.bytes());

  constexpr auto loss = [](Tensor<float, 2, 3> const& a, Tensor<float, 3> const& b) { return sum(a * b); };
  auto const [da, db] = grad(loss, wrt<0, 1>)(a, b);
  CHECK(array_equal(da, Tensor<float, 2, 3>::from({{10, 20, 30}, {10, 20, 30}})));
  CHECK(array_equal(db, Tensor<float, 3>::from({5, 7, 9})));
  auto const only = grad(loss, wrt<1>)(a, b);
  CHECK(array_equal(only, db));
}

TEST_CASE("a value that does not depend on its argument has a gradient of zeros", "[program]") {
  constexpr auto g = [](Tensor<float, 3> const& x, Tensor<float, 3> const& y) {
    return sum(stop_gradient(x) * y);
  };
  auto const x = Tensor<float, 3>::from({1, 2, 3});
  CHECK(array_equal(grad(g)(x, x), zeros<float, 3>()));
  CHECK(array_equal(grad(g, wrt<1>)(x, x), x));
}

TEST_CASE("arguments that are not contiguous, and the same argument twice", "[program]") {
  constexpr auto f = [](Tensor<double, 3, 2> const& x, Tensor<double, 3, 2> const& y) {
    return matmul(x, transpose(y)) * 2.0;
  };
  auto const wide = Tensor<double, 2, 3>::from({{1, 2, 3}, {4, 5, 6}});
  auto const x = transpose(wide);
  CHECK(!x.contiguous_memory());
  auto const got = compile(f)(x, x);
  CHECK(allclose(got, f(x, x), 1e-14));
  auto const repeated = expand<3, 2>(Tensor<double, 1, 2>::from({{3, 4}}));
  CHECK(allclose(compile(f)(repeated, x), f(repeated, x), 1e-14));
  auto const every_second = slice<0, 0, 6, 2>(reshape<6, 2>(arange<double, 12>()));
  CHECK(allclose(compile(f)(every_second, x), f(every_second, x), 1e-14));
}

TEST_CASE("a function tied to its arguments", "[program]") {
  using Rows = Tensor<double, dyn, 2>;
  auto f = compile([](Rows const& x, Rows const& y) { return x * y + 1.0; });
  Rows const x(ones({3, 2}, DType::f64)), y(full({3, 2}, 2, DType::f64));
  auto bound = f.bind(x, y);
  auto const* const memory = bound().data();
  CHECK(array_equal(bound(), full({3, 2}, 3, DType::f64)));
  x.data()[5] = 4;  // arguments are read at the call
  CHECK(bound()(2, 1) == 9);
  CHECK(bound().data() == memory);
  CHECK_THROWS_AS(f.bind(x, Rows(ones({4, 2}, DType::f64))), error);
  CHECK_THROWS_AS(f.bind(x, Rows(transpose(ones({2, 3}, DType::f64)))), error);
}

TEST_CASE("the largest and the smallest of infinities alone", "[program]") {
  constexpr auto f = [](Tensor<float, 5, 5> const& x) {
    return std::tuple(max<1>(x), max<0>(x), min<1>(-x), min<0>(-x));
  };
  float const inf = std::numeric_limits<float>::infinity();
  auto const [a, b, c, d] = compile(f)(full<float, 5, 5>(-inf));
  auto const low = full<float, 5>(-inf), high = full<float, 5>(inf);
  CHECK((array_equal(a, low) && array_equal(b, low)));
  CHECK((array_equal(c, high) && array_equal(d, high)));
}

TEST_CASE("the largest and the smallest of a row wherever they stand, and NaN from any place", "[program]") {
  constexpr auto f = [](auto const& x) { return std::tuple(max<1>(x), min<1>(x), prod<1>(x)); };
  constexpr std::size_t n = 37;  // whole lanes and a tail
  auto const run = [&]<class T>(T) {
    auto x = full<T, n, n>(T(1));
    for (std::size_t i = 0; i < n; ++i) x.data()[i * n + i] = static_cast<T>(i % 2 == 0 ? 3 : -2);
    auto const [most, least, product] = compile(f)(x);
    for (std::size_t i = 0; i < n; ++i) {
      INFO("row " << i);
      CHECK(most(i) == (i % 2 == 0 ? T(3) : T(1)));
      CHECK(least(i) == (i % 2 == 0 ? T(1) : T(-2)));
      CHECK(product(i) == (i % 2 == 0 ? T(3) : T(-2)));
    }
    if constexpr (std::is_floating_point_v<T>) {
      for (std::size_t i = 0; i < n; ++i) x.data()[i * n + i] = std::numeric_limits<T>::quiet_NaN();
      auto const [a, b, c] = compile(f)(x);
      for (std::size_t i = 0; i < n; ++i) CHECK((std::isnan(a(i)) && std::isnan(b(i)) && std::isnan(c(i))));
    }
  };
  run(1.0f);
  run(1.0);
  run(std::int32_t{1});
  run(std::int64_t{1});
}

TEST_CASE("functions of one number for each row, of rows long and short", "[program]") {
  constexpr auto f = [](auto const& x) {
    auto const total = sum<1>(square(x));
    return std::tuple(log(total), tanh(total * 1e-3), pow(total, total * 1e-4),
                      x * exp(unsqueeze<1>(total) * -1e-3));
  };
  auto const agree = [&](auto const& x, double tolerance) {
    auto const [a, b, c, d] = compile(f)(x);
    auto const [p, q, r, s] = f(x);
    CHECK(allclose(a, p, tolerance, 0));
    CHECK(allclose(b, q, tolerance, 0));
    CHECK(allclose(c, r, tolerance, 0));
    CHECK(allclose(d, s, tolerance, 1e-30));
  };
  agree(randn<float, 5, 700>(Key{1}), 2e-6);
  agree(randn<float, 5, 7>(Key{2}), 2e-6);
  agree(randn<double, 5, 700>(Key{3}), 1e-13);
  // Where the function has no number, or none that is finite.
  constexpr auto logs = [](auto const& x) { return log(sum<1>(x)); };
  auto x = zeros<float, 3, 600>();
  for (int i = 0; i < 600; ++i) x.data()[600 + i] = -1;
  x.data()[1200] = std::numeric_limits<float>::infinity();
  auto const y = compile(logs)(x);
  CHECK(y(0) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(y(1)));
  CHECK(y(2) == std::numeric_limits<float>::infinity());
}

TEST_CASE("the last lanes of a row write nothing behind it", "[program]") {
  constexpr auto f = [](Tensor<float, 21, 3> const& x, Tensor<float, 3> const& y) {
    return std::tuple(x < y, cast<float16>(x * y), x + y);
  };
  auto const x = randn<float, 21, 3>(Key{1});
  auto const y = randn<float, 3>(Key{2});
  auto const [less, product, total] = compile(f)(x, y);
  CHECK(array_equal(less, x < y));
  CHECK(array_equal(product, cast<float16>(x * y)));
  CHECK(array_equal(total, x + y));
}

TEST_CASE("equal constants of two element types in one loop", "[program]") {
  constexpr auto f = [](Tensor<double, 9> const& x) { return cast<std::int64_t>(x * 3.0) * std::int64_t{3}; };
  // The result is no double.
  CHECK(compile(f)(full<double, 9>(3002399751580329.0))(8) == 27021597764222961);
}

TEST_CASE("element types, also mixed", "[program]") {
  constexpr auto mixed = [](Tensor<float16, 5> const& h, Tensor<bfloat16, 5> const& b,
                            Tensor<float, 5> const& f, Tensor<double, 5> const& d,
                            Tensor<std::int32_t, 5> const& i, Tensor<std::int64_t, 5> const& l,
                            Tensor<std::uint8_t, 5> const& u, Tensor<bool, 5> const& t) {
    return std::tuple(h * 2.0, b + f, d * i, i * i - i, l / 2, u + u, where(t, d, f),
                      cast<float>(t) + cast<float>(u), cast<std::int32_t>(d * 10.0), h + h * h, !t);
  };
  Key const key{3};
  auto const h = uniform<float16, 5>(key), h2 = uniform<float16, 5>(Key{4});
  auto const b = uniform<bfloat16, 5>(key, -2, 2);
  auto const f = uniform<float, 5>(key, -2, 2);
  auto const d = uniform<double, 5>(key, -2, 2);
  auto const i = randint<std::int32_t, 5>(key, -9, 9);
  auto const l = randint<std::int64_t, 5>(key, -9, 9);
  auto const u = randint<std::uint8_t, 5>(key, 0, 200);
  auto const t = randint<bool, 5>(key, 0, 2);
  auto const got = compile(mixed)(h, b, f, d, i, l, u, t);
  auto const want = mixed(h, b, f, d, i, l, u, t);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (
        [&] {
          INFO("result " << I);
          CHECK(allclose(std::get<I>(got), std::get<I>(want), 2e-3, 1e-6));
          CHECK(std::get<I>(got).dtype() == std::get<I>(want).dtype());
        }(),
        ...);
  }(std::make_index_sequence<11>{});
  static_cast<void>(h2);
  constexpr auto squares = [](Tensor<float16, 5> const& x) { return sum(x * x); };
  auto const g = grad(squares)(h);
  for (index_t k = 0; k < 5; ++k) CHECK(float(g(k)) == 2 * float(h(k)));
}

TEST_CASE("DESIGN 10 (d): dims known when called", "[program]") {
  auto const model = init<nn::Linear<6, 4>>(7);
  // (Elements whose number is learnt when it is called are not counted in their dtype.)
  CHECK(compile([](Tensor<std::uint8_t, dyn> const& x) { return mean(x); })(
            ones<std::uint8_t, dyn>(make_shape(300)))
            .item() == 1);
  auto run = compile([](auto const& m, Tensor<float, dyn, 6> const& x) { return softmax<1>(m(x)); });
  for (std::size_t n : {3, 1, 8, 17, 0, 3}) {
    auto const x = randn<float, dyn, 6>(Key{n}, make_shape(n, 6));
    auto const y = run(model, x);
    REQUIRE(y.shape() == make_shape(n, 4));
    CHECK(allclose(y, softmax<1>(model(x)), 1e-4, 1e-6));
  }
}

TEST_CASE("dims known when called: gradients, and mismatches", "[program]") {
  constexpr auto loss = [](Tensor<double, dyn, 3> const& w, Tensor<double, dyn, 3> const& x) {
    return mean(square(w * x));
  };
  auto f = value_and_grad(loss);
  for (std::size_t n : {2, 5, 1}) {
    auto const w = randn<double, dyn, 3>(Key{1}, make_shape(n, 3)),
               x = randn<double, dyn, 3>(Key{2}, make_shape(n, 3));
    auto const [value, dw] = f(w, x);
    REQUIRE(dw.shape() == w.shape());
    CHECK(near(value.item(), loss(w, x).item()));
    CHECK(allclose(dw, w * x * x * (2.0 / static_cast<double>(3 * n)), 1e-12));
  }
}

TEST_CASE("extents that only a call can find wrong are errors that name the op", "[program]") {
  auto const any = [](std::size_t n, std::size_t m) { return ones<float, dyn, dyn>(make_shape(n, m)); };
  auto const rows = [](std::size_t n) { return ones<float, dyn, 4>(make_shape(n, 4)); };
  auto const labels = [](std::size_t n) { return zeros<std::int32_t, dyn, 2>(make_shape(n, 2)); };
  using Rows = Tensor<float, dyn, 4>;
  using Any = Tensor<float, dyn, dyn>;
  auto const says = [](std::string const& text, auto const& call) {
    try {
      static_cast<void>(call());
      FAIL("no error where this was expected: " << text);
    } catch (error const& e) {
      CHECK(std::string(e.what()) == text);
    }
  };
  auto const product = compile([](Any const& a, Any const& b) { return matmul(a, b); });
  CHECK(allclose(product(any(3, 5), any(5, 2)), full<float, 3, 2>(5)));
  says("matmul: extents differ: 5 x 3", [&] { return product(any(3, 5), any(3, 5)); });
  // The name is that of the function called, not of the one that it is made of.
  auto const layer = compile([](Any const& x, Any const& w) { return linear(x, w); });
  CHECK(allclose(layer(any(3, 5), any(2, 5)), full<float, 3, 2>(5)));
  says("linear: extents differ: 5 x 2", [&] { return layer(any(3, 5), any(5, 2)); });
  auto const matrices = compile([](Any const& a, Any const& b) { return mm(a, b); });
  says("mm: extents differ: 5 x 3", [&] { return matrices(any(3, 5), any(3, 5)); });
  auto const seen = compile([](Rows const& a) { return view<6, 4>(a) + 1.0; });
  says("view: extents differ: 24 x 20", [&] { return seen(rows(5)); });
  auto const sum_of = compile([](Rows const& a, Rows const& b) { return a + b; });
  CHECK(allclose(sum_of(rows(3), rows(3)), full<float, 3, 4>(2)));
  says("add: extents differ: 5 x 2", [&] { return sum_of(rows(5), rows(2)); });
  // Dims that must be numbers, so that the program is static.
  auto const with_three = compile([](Rows const& a, Tensor<float, 3, 4> const& b) { return a + b; });
  CHECK(allclose(with_three(rows(3), ones<float, 3, 4>()), full<float, 3, 4>(2)));
  says("add: extents differ: 3 x 5", [&] { return with_three(rows(5), ones<float, 3, 4>()); });
  says("reshape: extents differ: 24 x 20",
       [&] { return compile([](Rows const& a) { return reshape<6, 4>(a) + 1.0; })(rows(5)); });
  says("slice: extent too small: 5 x 6",
       [&] { return compile([](Rows const& a) { return slice<0, 0, 6>(a) + 1.0; })(rows(5)); });
  says("expand: extents differ: 7 x 5",
       [&] { return compile([](Rows const& a) { return expand<7, 4>(a) + 1.0; })(rows(5)); });
  says("concat: extents differ: 5 x 2", [&] {
    return compile([](Rows const& a, Rows const& b) { return concat<1>(a, b); })(rows(5), rows(2));
  });
  // An index shorter than the table says nothing about what else is as long as it.
  auto const scaled = compile([](Rows const& a, Tensor<std::int32_t, dyn, 2> const& i,
                                 Tensor<float, dyn, 2> const& by) { return gather<1>(a, i) * by; });
  CHECK(allclose(scaled(rows(3), labels(2), full<float, dyn, 2>(5, make_shape(2, 2))), full<float, 2, 2>(5)));
  says("gather: extent too small: 2 x 4", [&] {
    return compile([](Rows const& a, Tensor<std::int32_t, dyn, 2> const& i) { return gather<1>(a, i); })(
        rows(2), labels(4));
  });
}

TEST_CASE("errors of compiled programs are dfdx::error", "[program]") {
  auto const lookup = compile([](Tensor<float, 4, 2> const& table, Tensor<std::int32_t, 3> const& rows) {
    return take(table, rows);
  });
  auto const table = ones<float, 4, 2>();
  CHECK_THROWS_AS(lookup(table, Tensor<std::int32_t, 3>::from({0, 4, 1})), error);
  CHECK(array_equal(lookup(table, Tensor<std::int32_t, 3>::from({0, 3, 1})), ones<float, 3, 2>()));
  CHECK_THROWS_AS(lookup(Tensor<float, 4, 2>{}, Tensor<std::int32_t, 3>::from({0, 3, 1})), error);
}

TEST_CASE("results stay while they are held", "[program]") {
  auto f = compile([](Tensor<float, 64> const& x) { return x * 2.0; });
  auto const one = ones<float, 64>();
  std::vector<Tensor<float, 64>> kept;
  for (int i = 0; i < 9; ++i) kept.push_back(f(full<float, 64>(i)));
  for (int i = 0; i < 9; ++i)
    for (index_t k = 0; k < 64; ++k)
      REQUIRE(kept[static_cast<std::size_t>(i)](k) == 2.0f * static_cast<float>(i));
  auto copy = f;  // a copy has memory of its own
  auto const mine = f(one);
  auto const its = copy(one + one);
  CHECK(mine(5) == 2);
  CHECK(its(5) == 4);
}

namespace {

struct Named {
  nn::Linear<2, 2> layer;
  std::string name = "a name that is longer than what a string holds in itself";
  std::vector<int> sizes{1, 2};
  DFDX_FIELDS(layer)
  constexpr auto operator()(auto const& x) const { return layer(x); }
};

}  // namespace

TEST_CASE("configuration may be strings and vectors", "[program]") {
  auto const model = init<Named>(1);
  auto const x = ones<float, 1, 2>();
  auto const f = compile([](auto const& m, auto const& v) { return m(v); });
  CHECK(allclose(f(model, x), model(x)));
}

TEST_CASE("the negative of zero has a sign", "[program]") {
  auto const f = compile([](auto const& x) { return 1.0 / -x; });
  CHECK(array_equal(f(zeros<float, 67>()), full<float, 67>(-std::numeric_limits<double>::infinity())));
  // What is added to it may change that, and is not left out then.
  constexpr auto sums = [](auto const& x) {
    return std::tuple(1.0 / (x + 0.0), 1.0 / (0.0 + x), 1.0 / (x - 0.0), 1.0 / (x + -0.0), 1.0 / (x - -0.0));
  };
  auto const x = full<float, 67>(-0.0);
  auto const [a, b, c, d, e] = compile(sums)(x);
  auto const [a1, b1, c1, d1, e1] = sums(x);
  CHECK((array_equal(a, a1) && array_equal(b, b1) && array_equal(c, c1) && array_equal(d, d1) &&
         array_equal(e, e1)));
  CHECK((a(66) > 0 && b(66) > 0 && c(66) < 0 && d(66) < 0 && e(66) > 0));
}

TEST_CASE("results have memory of their own, equal ones too", "[program]") {
  auto const x = Tensor<double, 2>::from({1, 2});
  auto const f = compile([](auto const& v) {
    auto const y = v + 1.0, z = v + 1.0;
    return std::tuple(y, z, reshape<2, 1>(y), v, v, zeros_like(v), zeros_like(v), slice<0, 0, 1>(y));
  });
  auto [a, b, c, d, e, zero, other, part] = f(x);
  a(0) = 10, b(0) = 20, c(0, 0) = 30, d(0) = 40, e(0) = 50, zero(0) = 60, other(0) = 70, part(0) = 80;
  CHECK((a(0) == 10 && b(0) == 20 && c(0, 0) == 30 && d(0) == 40));
  CHECK((e(0) == 50 && zero(0) == 60 && other(0) == 70 && part(0) == 80 && x(0) == 1));
  CHECK((a(1) == 3 && b(1) == 3 && c(1, 0) == 3 && d(1) == 2));
  // What is joined, and its parts.
  auto const join = compile([](auto const& v) {
    auto const first = v + 1.0, second = v * 3.0;
    return std::tuple(concat(first, second), first, second);
  });
  auto [all, first_part, second_part] = join(x);
  all(0) = 10, second_part(1) = 20;
  CHECK((first_part(0) == 2 && first_part(1) == 3 && second_part(0) == 3));
  CHECK((all(1) == 3 && all(2) == 3 && all(3) == 6));
  // Copies that are made once.
  auto const turned = compile([](auto const& v) {
    auto const z = transpose(v * 2.0);
    return std::tuple(reshape<6>(z), reshape<1, 6>(z));
  });
  auto [line, row] = turned(Tensor<double, 2, 3>::from({1, 2, 3, 4, 5, 6}));
  line(1) = 100;
  CHECK((line(0) == 2 && row(0, 1) == 8 && row(0, 2) == 4));
  // Gradients of what is added are equal.
  auto const g = value_and_grad([](auto const& p, auto const& v) { return sum(tanh(p[0] + p[1] * v)); });
  auto grads = g(std::array{x, ones<double, 2>()}, ones<double, 2>()).second;
  double const before = grads[1](0);
  grads[0] *= 0.5;
  CHECK(grads[1](0) == before);
  // So with what takes over memory: the result, and the state that goes on.
  auto state = zeros<double, 2>();
  auto step = stateful([](auto const& s, auto const& v) {
    auto const next = s + v;
    return std::pair(next, next);
  });
  auto const first = step(state, x);
  step(state, x);
  CHECK((first(1) == 2 && state(1) == 4));
}

TEST_CASE("lists of parts are trees; what programs make of them", "[program]") {
  Many many;
  auto const names = [&] {
    std::string r;
    visit_named(many, [&](std::string const& name, auto const&) { r += name + " "; });
    return r;
  };
  CHECK(names().empty());
  many.parts = {zeros<float, 2>(), ones<float, 2>()};
  CHECK(names() == "parts.0 parts.1 ");
  many.last = ones<float, 3>();
  CHECK(names() == "parts.0 parts.1 last ");
  int leaves = 0;
  visit(many, [&](auto const&) { ++leaves; });
  CHECK(leaves == 3);

  constexpr auto twice = [](auto const& x, auto const&) { return x + x; };
  auto const f = compile(twice);
  Tensor<float, 2> const x = ones<float, 2>();
  // With a list the function runs as it is; of what may be missing a program is made without it.
  CHECK(f(x, many)(1) == 2);
  Perhaps perhaps;
  CHECK(f(x, perhaps)(1) == 2);
  perhaps.last = ones<float, 3>();
  std::string said;
  try {
    f(x, perhaps);
  } catch (error const& e) {
    said = e.what();
  }
  CHECK(said == "program: an optional in the arguments of a compiled function is not empty");
}

TEST_CASE("a graph that is large for its inputs", "[program]") {
  constexpr auto chain = [](auto const& x) {
    auto y = x;
    for (int i = 0; i < 300; ++i) y = y * x + x;
    return y;
  };
  using F = std::remove_const_t<decltype(chain)>;
  using Row = Tensor<double, 3>;
  STATIC_REQUIRE(!detail::roomy_graph<F, Row>().size.fits(detail::likely_graph_size(1)));
  Row x = zeros<double, 3>();
  x(0) = 0.5, x(1) = -0.25, x(2) = 0.125;
  auto const y = compile(chain)(x);
  for (int i = 0; i < 3; ++i) CHECK(std::abs(y(i) - x(i) / (1 - x(i))) < 1e-12);
}

TEST_CASE("a plan that is large for its graph", "[program]") {
  // Results that nothing is computed for: more of them than a plan of so few nodes is first given room for.
  using Row = Tensor<float, 2>;
  using Rows = std::array<Row, 96>;
  constexpr auto turned = [](auto const& x) {
    auto y = x;
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[x.size() - 1 - i];
    return y;
  };
  using F = std::remove_const_t<decltype(turned)>;
  STATIC_REQUIRE(!detail::roomy_plan<F, Rows>().size.fits(
      detail::likely_plan_size(detail::roomy_graph<F, Rows>().size.nodes)));
  Rows x;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = full<float, 2>(static_cast<double>(i));
  auto const y = compile(turned)(x);
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(array_equal(y[i], x[x.size() - 1 - i]));
}

}  // namespace tests::program_functions
