// SPDX-License-Identifier: BSL-1.0
// Norms of values in memory, which are one step, beside the ops that they are made of in programs: values, gradients,
// gradients of gradients; and numbers that are far from 0, all the same, or none.
#include <cmath>
#include <limits>

#include <catch2/catch_test_macros.hpp>
#include <dfdx/dfdx.hpp>

namespace tests::vocabulary_standardize {

namespace {

using namespace dfdx;

Array drawn(Shape const& s, std::uint64_t key, DType d = DType::f64) {
  return cast_to(randn(s, Key{key}), d);
}
double largest(Array const& x) { return x.size() == 0 ? 0 : max(abs(cast_to(x, DType::f64))).item(); }
Array leaf(Array const& x) {
  Array r = x.detach();
  r.requires_grad(true);
  return r;
}

// The value, the gradients of a loss, and of the sum of their squares with respect to all operands.
template <class F>
std::vector<Array> all_of(F const& f, std::vector<Array> const& given) {
  std::vector<Array> x;
  for (Array const& a : given) x.push_back(leaf(a));
  Array const y = f(x), ct = drawn(y.shape(), 99, y.dtype());
  std::vector<Array> r{y.detach()}, first = gradients(sum(y * ct), x, {.create_graph = true});
  Array total = sum(square(first[0]));
  for (std::size_t k = 1; k < first.size(); ++k) total = total + sum(square(first[k]));
  for (Array const& g : first) r.push_back(g.detach());
  for (Array const& g : gradients(total, x)) r.push_back(g);
  return r;
}
template <class F, class G>
void check_same(F const& one_step, G const& by_ops, std::vector<Array> const& x) {
  std::vector<Array> const a = all_of(one_step, x), b = all_of(by_ops, x);
  REQUIRE(a.size() == b.size());
  double const near = x[0].dtype() == DType::f64 ? 1e-10 : 2e-3;
  for (std::size_t k = 0; k < a.size(); ++k) {
    INFO("of " << x[0].shape() << " " << x[0].dtype() << ", result " << k);
    REQUIRE(a[k].shape() == b[k].shape());
    REQUIRE(a[k].dtype() == b[k].dtype());
    CHECK(largest(a[k] - b[k]) <= near * (1 + largest(b[k])));
  }
  no_grad const alone;
  CHECK(largest(one_step(x) - a[0]) == 0);
}

// As programs have them.
template <bool Rms, class... W>
Array trailing_by_ops(Array const& x, int axes, W const&... w) {
  return detail::over_trailing_by_ops<Rms>(
      x, detail::Over{detail::axes_from(x.ndim() - axes, x.ndim()), true}, 1e-5, w...);
}
Array per_channel(Array const& p, int rank) {
  Shape s = make_shape(1, p.size());
  while (s.rank < rank) s[s.rank++] = 1;
  return reshape_to(p, s);
}
Array groups_by_ops(Array const& x, index_t groups, Array const& w, Array const& b) {
  Shape const s = make_shape(x.shape()[0], groups, x.size() / x.shape()[0] / groups);
  Array const y =
      reshape_to(detail::standard_over(reshape_to(x, s), detail::Over{Axes{2}, true}, 1e-5).z, x.shape());
  return y * per_channel(w, x.ndim()) + per_channel(b, x.ndim());
}
Array batch_by_ops(Array const& x, Array const& w, Array const& b) {
  Array const y = detail::standard_over(x, detail::Over{detail::all_but_channels(x.ndim()), true}, 1e-5).z;
  return y * per_channel(w, x.ndim()) + per_channel(b, x.ndim());
}
Array batch(Array const& x, Array const& w, Array const& b) {
  index_t const c = x.shape()[1];
  Array const mean = full({c}, 0, x.dtype()), var = full({c}, 1, x.dtype());
  return std::get<0>(batch_norm(x, mean, var, w, b, {.training = true}));
}

}  // namespace

TEST_CASE("layer_norm and rms_norm in one step", "[vocabulary]") {
  for (DType const d : {DType::f64, DType::f32})
    for (index_t n : {1, 2, 7, 16, 17, 40, 65, 130})
      for (index_t rows : {1, 3, 4, 6, 70}) {
        std::vector<Array> const x{drawn(make_shape(rows, n), 1, d), drawn(make_shape(n), 2, d),
                                   drawn(make_shape(n), 3, d)};
        check_same([](auto const& v) { return layer_norm(v[0], v[1], v[2]); },
                   [](auto const& v) { return trailing_by_ops<false>(v[0], 1, v[1], v[2]); }, x);
        check_same([](auto const& v) { return rms_norm(v[0], v[1]); },
                   [](auto const& v) { return trailing_by_ops<true>(v[0], 1, v[1]); }, {x[0], x[1]});
        check_same([&](auto const& v) { return layer_norm(v[0], {n}); },
                   [](auto const& v) { return trailing_by_ops<false>(v[0], 1); }, {x[0]});
      }
  std::vector<Array> const x{drawn(make_shape(3, 4, 5, 2), 1), drawn(make_shape(5, 2), 2)};
  check_same([](auto const& v) { return layer_norm(v[0], v[1]); },
             [](auto const& v) { return trailing_by_ops<false>(v[0], 2, v[1]); }, x);
  // Longer than what is added up in one block.
  check_same([](auto const& v) { return layer_norm(v[0], {9001}); },
             [](auto const& v) { return trailing_by_ops<false>(v[0], 1); }, {drawn(make_shape(2, 9001), 1)});
}

TEST_CASE("group_norm, instance_norm and batch_norm in one step", "[vocabulary]") {
  for (DType const d : {DType::f64, DType::f32})
    for (Shape const& s : {make_shape(2, 6), make_shape(5, 6, 1), make_shape(2, 6, 3), make_shape(2, 6, 5, 9),
                           make_shape(66, 6, 2), make_shape(1, 6, 100), make_shape(3, 300, 2)}) {
      std::vector<Array> const x{drawn(s, 1, d), drawn(make_shape(s[1]), 2, d),
                                 drawn(make_shape(s[1]), 3, d)};
      for (index_t groups : {1, 3})
        check_same([=](auto const& v) { return group_norm(v[0], groups, v[1], v[2]); },
                   [=](auto const& v) { return groups_by_ops(v[0], groups, v[1], v[2]); }, x);
      check_same(
          [=](auto const& v) { return group_norm(v[0], 6); },
          [=](auto const& v) { return groups_by_ops(v[0], 6, full({s[1]}, 1, d), full({s[1]}, 0, d)); },
          {x[0]});
      if (s.rank > 2 && s.numel() / s[0] / s[1] > 1)
        check_same([](auto const& v) { return instance_norm(v[0], v[1], v[2]); },
                   [&](auto const& v) { return groups_by_ops(v[0], s[1], v[1], v[2]); }, x);
      check_same([](auto const& v) { return batch(v[0], v[1], v[2]); },
                 [](auto const& v) { return batch_by_ops(v[0], v[1], v[2]); }, x);
    }
}

TEST_CASE("norms of what lies in any order", "[vocabulary]") {
  Array const x = drawn(make_shape(2, 6, 5, 4), 1);
  for (Array const& v : {permute(x, {0, 1, 3, 2}), permute(x, {2, 1, 0, 3}), slice(x, 3, 0, 4, 2),
                         expand(slice(x, 0, 0, 1), {3, 6, 5, 4})}) {
    Array const w = drawn(make_shape(12), 2), b = drawn(make_shape(6), 3);
    check_same([](auto const& a) { return group_norm(a[0], 3, a[1], a[2]); },
               [](auto const& a) { return groups_by_ops(a[0], 3, a[1], a[2]); },
               {v, slice(w, 0, 0, 12, 2), b});
  }
}

TEST_CASE("gradients of some operands of a norm alone", "[vocabulary]") {
  Array const x = drawn(make_shape(5, 6), 1), w = drawn(make_shape(6), 2), b = drawn(make_shape(6), 3),
              ct = drawn(make_shape(5, 6), 4);
  auto const of = [&](std::vector<Array> const& v) {
    return gradients(sum(layer_norm(v[0], v[1], v[2]) * ct), [&] {
      std::vector<Array> r;
      for (Array const& a : v)
        if (a.requires_grad()) r.push_back(a);
      return r;
    }());
  };
  std::vector<Array> const all = of({leaf(x), leaf(w), leaf(b)});
  CHECK(largest(of({leaf(x), w, b})[0] - all[0]) == 0);
  CHECK(largest(of({x, leaf(w), b})[0] - all[1]) == 0);
  CHECK(largest(of({x, w, leaf(b)})[0] - all[2]) == 0);
  // What is kept of a gradient is that, not the memory of all of them.
  CHECK(all[1].storage() != all[0].storage());
}

TEST_CASE("batch_norm's running statistics from one step", "[vocabulary]") {
  for (Shape const& s : {make_shape(7, 3), make_shape(4, 3, 50)})
    for (DType const d : {DType::f64, DType::f32, DType::f16}) {
      Array const x = cast_to(drawn(s, 5) * 2.0 + 3.0, d), mean = full({3}, 1, d), var = full({3}, 2, d);
      auto const [y, m, v] = batch_norm(x, mean, var, {.training = true, .momentum = 0.25});
      auto const apart = detail::all_but_channels(s.rank);
      Array const wide = cast_to(x, DType::f64);
      double const near = d == DType::f16 ? 4e-3 : d == DType::f32 ? 1e-6 : 1e-13;
      CHECK(m.dtype() == d);
      CHECK(largest(cast_to(m, DType::f64) - (dfdx::mean(wide, apart) * 0.25 + 0.75)) < 4 * near);
      CHECK(largest(cast_to(v, DType::f64) - (dfdx::var(wide, apart) * 0.25 + 1.5)) < 4 * near);
    }
}

TEST_CASE("norms of numbers far from 0, of equal ones, of infinities, of none", "[vocabulary]") {
  Array const x = drawn(make_shape(4, 1000), 1, DType::f32) + 1e4;
  Array const exact = trailing_by_ops<false>(cast_to(x, DType::f64), 1);
  double const before = largest(cast_to(trailing_by_ops<false>(x, 1), DType::f64) - exact);
  CHECK(largest(cast_to(layer_norm(x, {1000}), DType::f64) - exact) <= 1.5 * before);
  Array const columns = reshape_to(x, make_shape(4000, 1));
  CHECK(largest(reshape_to(
                    cast_to(batch(columns, full({1}, 1, DType::f32), full({1}, 0, DType::f32)), DType::f64),
                    make_shape(4000)) -
                reshape_to(batch_by_ops(cast_to(columns, DType::f64), full({1}, 1, DType::f64),
                                        full({1}, 0, DType::f64)),
                           make_shape(4000))) < 2 * before + 1e-3);

  CHECK(largest(layer_norm(full({3, 40}, 7.5, DType::f32), {40})) == 0);
  CHECK(largest(layer_norm(full({3, 1}, 7.5, DType::f32), {1})) == 0);
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Array v = drawn(make_shape(3, 40), 4, DType::f32);
    v.data<float>()[47] = static_cast<float>(bad);
    Array const y = layer_norm(v, {40}), r = rms_norm(v, {40});
    for (index_t i = 0; i < 120; ++i) {
      CHECK(std::isnan(y.data<float>()[i]) == (i / 40 == 1));
      if (std::isnan(bad)) CHECK(std::isnan(r.data<float>()[i]) == (i / 40 == 1));
      else
        CHECK((std::isnan(r.data<float>()[i]) == (i == 47) &&
               (i / 40 != 1 || i == 47 || r.data<float>()[i] == 0)));
    }
  }
  CHECK(layer_norm(Array(Meta{DType::f32, make_shape(0, 4)}), {4}).shape() == make_shape(0, 4));
  CHECK(group_norm(Array(Meta{DType::f32, make_shape(2, 4, 0)}), 2).size() == 0);
  Array const none = leaf(Array(Meta{DType::f64, make_shape(0, 4)})), w = leaf(drawn(make_shape(4), 1));
  auto const g = gradients(sum(layer_norm(none, w)), std::vector<Array>{none, w});
  CHECK(g[0].shape() == make_shape(0, 4));
  CHECK(largest(g[1]) == 0);
}

TEST_CASE("norms of numbers that are all alike are 0, whatever the number", "[vocabulary]") {
  for (double alike : {2024.3, -99999.9, 0.1, 1 / 3.0})
    for (DType const d : {DType::f32, DType::f64}) {
      INFO(alike << " as " << d);
      auto const of = [&](auto... extents) { return full({extents...}, alike, d); };
      for (index_t n : {7, 61, 1924, 9000}) CHECK(largest(layer_norm(of(3, n), {n})) == 0);
      CHECK(largest(group_norm(of(2, 6, 57), 2)) == 0);
      CHECK(largest(instance_norm(of(2, 3, 11, 13))) == 0);
      Array const w = full({3}, 1, d), b = full({3}, 0, d);
      for (Array const& x : {of(1001, 3), of(67, 3, 5), of(9, 3, 211)}) CHECK(largest(batch(x, w, b)) == 0);
      // Beside a column that varies, too.
      Array mixed = of(400, 3).clone();
      select(mixed, 1, 1).copy_(drawn(make_shape(400), 7, d));
      Array const y = batch(mixed, w, b);
      CHECK(largest(select(y, 1, 0)) == 0);
      CHECK(largest(select(y, 1, 2)) == 0);
      CHECK(std::abs(dfdx::var(cast_to(select(y, 1, 1), DType::f64), Axes{0}, 0).item() - 1) < 1e-4);
    }
}

namespace {

// Of a small eps little is left that would hide what is not 0.
template <bool Small>
inline constexpr double eps_of = Small ? 1e-14 : 1e-5;
template <bool Small>
struct Trailing {
  constexpr auto operator()(auto const& x) const {
    return layer_norm<std::remove_cvref_t<decltype(x)>::static_shape[1]>(x, eps_of<Small>);
  }
};
template <bool Small>
struct Grouped {
  constexpr auto operator()(auto const& x) const { return group_norm<2>(x, eps_of<Small>); }
};
template <bool Small>
struct Alone {
  constexpr auto operator()(auto const& x) const { return instance_norm(x, eps_of<Small>); }
};
template <bool Small>
struct Batched {
  constexpr auto operator()(auto const& x) const {
    auto const zero = [&] {
      if constexpr (std::remove_cvref_t<decltype(x)>::static_rank == 2) return zeros_like(sum<0>(x));
      else return zeros_like(sum<0, 2>(x));
    }();
    return std::get<0>(batch_norm(x, zero, zero + 1.0, BatchNorm{.training = true, .eps = eps_of<Small>}));
  }
};
template <class F>
struct Weighed {
  constexpr auto operator()(auto const& x, auto const& ct) const { return sum(F{}(x)*ct); }
};
// Of a program the value, and gradients as far from the tape's as rounding is, of what they are at most.
template <template <bool> class F, class X>
void check_alike(X const& x) {
  CHECK(largest(compile(F<true>{})(x)) == 0);
  auto const ct = X(cast_to(drawn(x.shape(), 3), x.dtype()));
  Array const g = grad(Weighed<F<false>>{})(x, ct), on_tape = leaf(x);
  Array const want = gradients(Weighed<F<false>>{}(X(on_tape), ct), {on_tape})[0];
  CHECK(largest(g - want) <= (x.dtype() == DType::f64 ? 1e-11 : 2e-3) * largest(want));
}

}  // namespace

TEST_CASE("norms in programs of numbers that are all alike are 0", "[vocabulary]") {
  for (double alike : {2024.3, -99999.9, 0.1, 1 / 3.0}) {
    INFO(alike);
    auto const number = static_cast<float>(alike);
    check_alike<Trailing>(Tensor<float, 3, 61>(full({3, 61}, number, DType::f32)));
    check_alike<Trailing>(Tensor<float, 2, 9001>(full({2, 9001}, number, DType::f32)));
    check_alike<Trailing>(Tensor<double, 3, 61>(full({3, 61}, alike, DType::f64)));
    check_alike<Trailing>(Tensor<float, dyn, 100>(full({3, 100}, number, DType::f32)));
    check_alike<Grouped>(Tensor<float, 2, 6, 57>(full({2, 6, 57}, number, DType::f32)));
    check_alike<Alone>(Tensor<float, 2, 3, 11, 13>(full({2, 3, 11, 13}, number, DType::f32)));
    check_alike<Batched>(Tensor<float, 1001, 3>(full({1001, 3}, number, DType::f32)));
    check_alike<Batched>(Tensor<float, 9, 3, 211>(full({9, 3, 211}, number, DType::f32)));
    check_alike<Batched>(Tensor<float, dyn, 3>(full({67, 3}, number, DType::f32)));
  }
}

TEST_CASE("norms in programs of numbers far from 0, of infinities, of huge numbers", "[vocabulary]") {
  using X = Tensor<float, 4, 1000>;
  constexpr auto norm = [](auto const& x) { return layer_norm<1000>(x); };
  X const x(drawn(make_shape(4, 1000), 1, DType::f32) + 1e4);
  Array const exact = layer_norm(cast_to(Array(x), DType::f64), {1000});
  CHECK(largest(cast_to(Array(compile(norm)(x)), DType::f64) - exact) < 2e-3);
  X v(drawn(make_shape(4, 1000), 4, DType::f32));
  Array(v).data<float>()[1001] = std::numeric_limits<float>::infinity();
  for (index_t i = 2000; i < 3000; ++i) Array(v).data<float>()[i] *= 1e27f;
  Array const y = compile(norm)(v), want = layer_norm(v, {1000});
  for (index_t row = 0; row < 4; ++row) {
    Array const apart = abs(select(y, 0, row) - select(want, 0, row));
    if (row == 1) CHECK(isnan(apart).sum().item() == 1000);
    else CHECK(max(apart).item() < 1e-5);
  }
}

TEST_CASE("one number less its mean has no gradient", "[vocabulary]") {
  using X = Tensor<float, 200, 1>;
  X const x(drawn(make_shape(200, 1), 1, DType::f32)), ct(drawn(make_shape(200, 1), 2, DType::f32));
  Tensor<float, 1> const w{0.3f}, b{0.7f};
  constexpr auto f = [](auto const& v, auto const& weight, auto const& bias, auto const& c) {
    return sum(layer_norm(v, weight, bias) * c);
  };
  auto const [dx, dw] = grad(f, wrt<0, 1>)(x, w, b, ct);
  CHECK(largest(dx) == 0);
  CHECK(largest(dw) == 0);
  Array const lx = leaf(x), lw = leaf(w), lb = leaf(b);
  auto const g = gradients(sum(layer_norm(lx, lw, lb) * ct), {lx, lw, lb});
  CHECK(largest(g[0]) == 0);
  CHECK(largest(g[1]) == 0);
  CHECK(largest(g[2] - sum(ct, {0})) < 1e-4);
  Array const channels = leaf(drawn(make_shape(20, 3, 1), 1, DType::f32)),
              w3 = leaf(drawn(make_shape(3), 2, DType::f32));
  CHECK(largest(gradients(sum(instance_norm(channels, w3) * drawn(make_shape(20, 3, 1), 4, DType::f32)),
                          {channels})[0]) == 0);
}

TEST_CASE("norms of 16 bits are one step in f32", "[vocabulary]") {
  for (DType const d : {DType::f16, DType::bf16}) {
    Array const x = leaf(drawn(make_shape(6, 50), 1, d)), w = leaf(drawn(make_shape(50), 2, d));
    Array const wide_x = leaf(cast_to(x.detach(), DType::f32)),
                wide_w = leaf(cast_to(w.detach(), DType::f32));
    Array const y = layer_norm(x, w), wide = layer_norm(wide_x, wide_w);
    CHECK(y.dtype() == d);
    CHECK(largest(y.detach() - cast_to(wide.detach(), d)) == 0);
    auto const g = gradients(sum(y), std::vector<Array>{x, w}),
               wide_g = gradients(sum(cast_to(wide, d)), std::vector<Array>{wide_x, wide_w});
    CHECK(g[0].dtype() == d);
    for (std::size_t k = 0; k < 2; ++k) CHECK(largest(g[k] - cast_to(wide_g[k], d)) == 0);
  }
}

}  // namespace tests::vocabulary_standardize
