// SPDX-License-Identifier: BSL-1.0
// What comes up to each element along an axis, of what lies in any order, beside plain loops; derivatives of products,
// also where elements are 0; and gather, by which the extremes are found.
#include <cmath>
#include <limits>
#include <tuple>

#include <catch2/catch_test_macros.hpp>
#include <dfdx/dfdx.hpp>

namespace tests::ops_scan {

namespace {

using namespace dfdx;

constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

double at(Array const& x, index_t i, index_t j) {
  return read_real(x.operand(), i * x.strides()[0] + j * x.strides()[1]);
}
bool is(double a, double b, double near) {
  return std::isnan(b) ? std::isnan(a) : a == b || std::abs(a - b) <= near * (1 + std::abs(b));
}
// f(line of so many elements, the element at a place) for every line of a matrix along an axis.
template <class F>
void each_line(Array const& x, int axis, F const& f) {
  for (index_t l = 0; l < x.shape()[1 - axis]; ++l)
    f([&x, axis, l](Array const& y, index_t i) {
      static_cast<void>(x);
      return axis == 0 ? at(y, i, l) : at(y, l, i);
    });
}
void check_scans(Array const& x) {
  double const near = is_half(x.dtype()) ? 0.05 : x.dtype() == DType::f32 ? 1e-6 : 1e-14;
  double const largest = x.dtype() == DType::f16   ? 65504
                         : x.dtype() == DType::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                                                   : std::numeric_limits<double>::max();
  for (int axis : {0, 1}) {
    Array const sums = cumsum(x, axis), products = cumprod(x, axis);
    std::tuple<Array, Array> const highest = cummax(x, axis), lowest = cummin(x, axis);
    auto const &high = std::get<0>(highest), &high_at = std::get<1>(highest);
    auto const &low = std::get<0>(lowest), &low_at = std::get<1>(lowest);
    each_line(x, axis, [&](auto const& of) {
      double s = 0, p = 1;
      index_t most = 0, least = 0;
      bool good = true;
      for (index_t i = 0; i < x.shape()[axis]; ++i) {
        double const v = of(x, i), h = of(x, most), l = of(x, least);
        s += v, p *= v;
        if (std::abs(p) > largest) p = std::copysign(inf, p);
        if (std::isnan(v) || v >= h) most = i;
        if (std::isnan(v) || v <= l) least = i;
        good = good && is(of(sums, i), s, near) && is(of(products, i), p, near);
        good = good && of(high_at, i) == static_cast<double>(most) && is(of(high, i), of(x, most), 0);
        good = good && of(low_at, i) == static_cast<double>(least) && is(of(low, i), of(x, least), 0);
      }
      INFO(x.dtype() << " " << x.shape() << " axis " << axis);
      CHECK(good);
    });
  }
}

}  // namespace

TEST_CASE("scans of what lies in any order", "[ops]") {
  for (DType const d : {DType::f32, DType::f64, DType::f16, DType::i64, DType::i32})
    for (auto const& [m, n] : {std::pair{1, 1}, std::pair{3, 7}, std::pair{5, 31}, std::pair{9, 32},
                               std::pair{4, 100}, std::pair{70, 6}, std::pair{2, 129}}) {
      // Near 1, so that products stay; ties among them.
      Array x = cast_to(round(1.0 + randn({m, n}, Key{static_cast<std::uint64_t>(m * n)}) * 0.6), d);
      if (is_floating(d)) x = cast_to(where(x == 0.0, 1.125, x), d);
      else x = cast_to(sign(x), d);
      check_scans(x);
      check_scans(transpose(x));
      check_scans(slice(x, 1, 0, n, 2));
      check_scans(expand(slice(x, 0, 0, 1), {m, n}));
      check_scans(slice(x, 1, 0, 0));
    }
}

TEST_CASE("extremes up to NaN and infinities", "[ops]") {
  for (DType const d : {DType::f32, DType::f64})
    for (index_t place : {0, 5, 31, 32, 63, 64, 99})
      for (double v : {nan, inf, -inf}) {
        Array const x = cast_to(randn({3, 100}, Key{7}), DType::f64);
        x.data<double>()[100 + place] = v;
        x.data<double>()[200 + place / 2] = v;
        check_scans(cast_to(x, d));
        check_scans(transpose(cast_to(x, d)));
      }
  Array const rising = cast_to(arange(200), DType::f32);
  check_scans(reshape(rising, {2, 100}));
  check_scans(reshape(-rising, {2, 100}));
  check_scans(full({2, 100}, 3, DType::f32));
}

TEST_CASE("running products on the tape have the sign of what they are elsewhere, also where they are 0",
          "[ops]") {
  Array const x = from({-1.0, 0.0, 2.0, -3.0, -0.0, 5.0}, {2, 3});
  for (int axis : {0, 1}) {
    Array leaf = x.clone();
    leaf.requires_grad(true);
    Array const y = cumprod(leaf, axis).detach(), plain = cumprod(x, axis);
    for (index_t i = 0; i < 6; ++i) {
      double const a = at(y, i / 3, i % 3), b = at(plain, i / 3, i % 3);
      CHECK(a == b);
      CHECK(std::signbit(a) == std::signbit(b));
    }
  }
}

namespace {

constexpr auto products = [](auto const& x) { return std::tuple(cumprod<0>(x), cumprod<1>(x)); };
constexpr auto weighed = [](auto const& x, auto const& w) {
  return sum(cumprod<0>(x) * w) + sum(square(cumprod<1>(x)));
};
template <class T, index_t M, index_t N>
void check_programs() {
  using X = Tensor<T, M, N>;
  X x(cast_to(round(1.0 + randn({M, N}, Key{5}) * 0.6), dtype_v<T>));
  auto const [down, along] = compile(products)(x);
  CHECK(array_equal(down, cumprod(Array(x), 0)));
  CHECK(array_equal(along, cumprod(Array(x), 1)));
  if constexpr (std::is_floating_point_v<T>) {
    X const w(cast_to(randn({M, N}, Key{6}), dtype_v<T>)), t(cast_to(randn({M, N}, Key{7}), dtype_v<T>));
    Array leaf = x.detach();
    leaf.requires_grad(true);
    Array const on_tape = gradients(weighed(leaf, w), {leaf})[0], g = grad(weighed)(x, w);
    double const near = std::is_same_v<T, float> ? 1e-5 : 1e-13;
    CHECK(max(abs(g - on_tape)).item() <= near * max(abs(on_tape)).item());
    constexpr auto f = [](auto const& v) { return cumprod<1>(v); };
    auto const [y, moved] = jvp(f)(x, t);
    CHECK(array_equal(y, along));
    Array const back = std::get<1>(vjp(f)(x, w));
    CHECK(std::abs(sum(moved * w).item() - sum(back * t).item()) <=
          40 * near * (1 + sum(abs(moved * w)).item()));
  }
}

}  // namespace

TEST_CASE("running products in programs are those of values in memory, to the last bit", "[ops]") {
  check_programs<float, 5, 37>();
  check_programs<double, 70, 6>();
  check_programs<std::int64_t, 4, 9>();
  // A program goes along a line once, as one op.
  using P = program<std::remove_const_t<decltype(products)>, Tensor<float, 5, 37>>;
  int recurrences = 0, joins = 0;
  for (auto const& n : detail::program_graph<P>.nodes) {
    recurrences += is_op<op::recurrence>(*n.op);
    joins += is_op<op::concat>(*n.op);
  }
  CHECK(recurrences == 2);
  CHECK(joins == 0);
}

TEST_CASE("derivatives of running products, of any number of zeros", "[ops]") {
  for (int axis : {0, 1})
    for (int zeros : {0, 1, 2, 4}) {
      Array x = cast_to(randn({4, 6}, Key{3}), DType::f64), w = cast_to(randn({4, 6}, Key{4}), DType::f64);
      for (int k = 0; k < zeros; ++k) x.data<double>()[k * 5] = 0;
      x.requires_grad(true);
      Array const y = cumprod(x, axis);
      CHECK(max(abs(y.detach() - cumprod(x.detach(), axis))).item() < 1e-14);
      Array const g = gradients(sum(y * w), {x}, {.create_graph = true})[0];
      Array const gg = gradients(sum(g * w), {x})[0];
      // The derivative by element k, and the derivative of its sum with w along w.
      auto const along = [&](Array const& at, Array const& direction) {
        // Products are polynomials of degree up to 6: exact differences of so few points are close.
        auto const f = [&](double t) { return sum(cumprod(at + direction * t, axis) * w).item(); };
        double const h = 0.01;
        return (45 * (f(h) - f(-h)) - 9 * (f(2 * h) - f(-2 * h)) + (f(3 * h) - f(-3 * h))) / (60 * h);
      };
      Array const values = x.detach();
      for (index_t k = 0; k < 24; ++k) {
        Array const unit = values * 0.0;
        unit.data<double>()[k] = 1;
        CHECK(is(at(g, k / 6, k % 6), along(values, unit), 1e-9));
        auto const slope = [&](double t) { return along(values + w * t, unit); };
        double const h = 0.01;
        double const second = (45 * (slope(h) - slope(-h)) - 9 * (slope(2 * h) - slope(-2 * h)) +
                               (slope(3 * h) - slope(-3 * h))) /
                              (60 * h);
        CHECK(is(at(gg, k / 6, k % 6), second, 1e-6));
      }
    }
}

TEST_CASE("gather looks at every place", "[ops]") {
  Array const x = randn({3, 50}, Key{1});
  for (DType const d : {DType::i64, DType::i32, DType::u8})
    for (index_t n : {1, 63, 64, 65, 200}) {
      Array const all(Meta{DType::i64, make_shape(3, n)});
      for (index_t i = 0; i < all.size(); ++i) all.data<std::int64_t>()[i] = i * 7 % 50;
      Array const index = cast_to(all, d), y = take_along(x, index, 1);
      bool good = true;
      for (index_t i = 0; i < 3; ++i)
        for (index_t j = 0; j < n; ++j) good = good && at(y, i, j) == at(x, i, (i * n + j) * 7 % 50);
      CHECK(good);
      for (std::int64_t wrong :
           {std::int64_t{50}, d == DType::u8 ? std::int64_t{255} : std::int64_t{-1},
            d == DType::i64 ? std::numeric_limits<std::int64_t>::min() : std::int64_t{51}}) {
        Array const bad = all + 0;
        bad.data<std::int64_t>()[2 * n + n / 2] = wrong;
        CHECK_THROWS_AS(take_along(x, cast_to(bad, d), 1), error);
      }
    }
}

}  // namespace tests::ops_scan
