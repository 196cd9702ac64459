// SPDX-License-Identifier: BSL-1.0
// vmap: a compiled function of many examples against a loop over them, alone and composed with other transforms.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::program_vmap {

namespace {

using namespace dfdx;

template <class X>
Tensor<float, 3> row(X const& all, index_t i) {
  return Tensor<float, 3>(Array(all).part(i));
}

// Whether example i of `all` is `one`.
bool is_example(Array const& all, index_t i, Array const& one) {
  return allclose(all.part(i), one, 3e-6, 3e-7);
}

constexpr auto affine = [](Tensor<float, 3> const& x, Tensor<float, 3, 2> const& w) {
  return tanh(matmul(x, w));
};
constexpr auto energy = [](Tensor<float, 3> const& x, Tensor<float, 3, 2> const& w) {
  return sum(square(matmul(x, w)) * 0.5f);
};
constexpr auto pair_of = [](Tensor<float, 3> const& x) { return std::pair(sum(x), cumsum<0>(x) * max(x)); };

struct Net {
  nn::Linear<3, 4> fc1;
  nn::Linear<4, 2> fc2;
  DFDX_FIELDS(fc1, fc2)
  constexpr auto operator()(auto const& x) const { return fc2(tanh(fc1(x))); }
};
constexpr auto loss = [](Net const& net, Tensor<float, 3> const& x, Tensor<float, 2> const& y) {
  return mse_loss(net(x), y);
};

}  // namespace

TEST_CASE("vmap: examples along the first axis, and arguments that are for all", "[program][vmap]") {
  auto const x = randn<float, 5, 3>(Key{1});
  auto const w = randn<float, 3, 2>(Key{2});
  auto const y = vmap(affine, in_axes<0, unmapped>)(x, w);
  static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, Tensor<float, 5, 2>>);
  auto const ws = randn<float, 5, 3, 2>(Key{3});
  auto const z = vmap(affine)(x, ws);
  auto const only_w = vmap(affine, in_axes<unmapped, 0>)(row(x, 0), ws);
  for (index_t i = 0; i < 5; ++i) {
    Tensor<float, 3, 2> const wi(Array(ws).part(i));
    CHECK(is_example(y, i, affine(row(x, i), w)));
    CHECK(is_example(z, i, affine(row(x, i), wi)));
    CHECK(is_example(only_w, i, affine(row(x, 0), wi)));
  }
}

TEST_CASE("vmap: other axes, in and out", "[program][vmap]") {
  auto const x = randn<float, 3, 5>(Key{1});  // the examples are columns
  auto const w = randn<float, 3, 2, 5>(Key{2});
  auto const y = vmap(affine, in_axes<1, -1>, out_axes<1>)(x, w);
  static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, Tensor<float, 2, 5>>);
  auto const p = vmap(pair_of, in_axes<-1>, out_axes<0, -1>)(x);
  static_assert(std::is_same_v<decltype(p.second), Tensor<float, 3, 5>>);
  for (index_t i = 0; i < 5; ++i) {
    Array const xi = select(Array(x), 1, i);
    auto const want = pair_of(Tensor<float, 3>(xi));
    CHECK(allclose(select(Array(y), 1, i), tanh(matmul(xi, select(Array(w), 2, i))), 1e-6, 1e-7));
    CHECK(is_example(p.first, i, want.first));
    CHECK(allclose(select(Array(p.second), 1, i), want.second, 1e-6, 1e-7));
  }
}

TEST_CASE("vmap: of the gradient are the gradients of each example, as trees", "[program][vmap]") {
  auto const net = init<Net>(7);
  auto const x = randn<float, 4, 3>(Key{1});
  auto const y = randn<float, 4, 2>(Key{2});
  auto const each = vmap(grad(loss), in_axes<unmapped, 0, 0>)(net, x, y);
  static_assert(std::is_same_v<std::remove_const_t<decltype(each)>, Stacked<Net, 4>>);
  auto const mean_loss = [](Net const& n, Tensor<float, 4, 3> const& a, Tensor<float, 4, 2> const& b) {
    return mean(vmap(loss, in_axes<unmapped, 0, 0>)(n, a, b));
  };
  auto const whole = grad(mean_loss)(net, x, y);
  Array total = zeros_like(net.fc1.weight);
  for (index_t i = 0; i < 4; ++i) {
    auto const one = grad(loss)(net, row(x, i), Tensor<float, 2>(Array(y).part(i)));
    CHECK(allclose(each[i].fc1.weight, one.fc1.weight, 1e-5, 1e-6));
    CHECK(allclose(each[i].fc2.bias, one.fc2.bias, 1e-5, 1e-6));
    total = total + one.fc1.weight * 0.25;
  }
  CHECK(allclose(whole.fc1.weight, total, 1e-5, 1e-6));
  // An ensemble: a net for each example.
  Stacked<Net, 4> ensemble;
  for (index_t i = 0; i < 4; ++i) ensemble.set(i, init<Net>(static_cast<std::uint64_t>(i)));
  auto const outputs = vmap([](Net const& n, Tensor<float, 3> const& a) { return n(a); },
                            in_axes<0, unmapped>)(ensemble, row(x, 0));
  for (index_t i = 0; i < 4; ++i) CHECK(is_example(outputs, i, ensemble[i](row(x, 0))));
}

TEST_CASE("vmap: nests, and is differentiated", "[program][vmap]") {
  auto const x = randn<float, 4, 3>(Key{1});
  auto const w = randn<float, 6, 3, 2>(Key{2});
  constexpr auto for_rows = vmap(energy, in_axes<0, unmapped>);
  auto const all = vmap(for_rows, in_axes<unmapped, 0>)(x, w);
  static_assert(std::is_same_v<std::remove_const_t<decltype(all)>, Tensor<float, 6, 4>>);
  auto const summed = [](Tensor<float, 4, 3> const& a, Tensor<float, 3, 2> const& b) {
    return sum(vmap(energy, in_axes<0, unmapped>)(a, b));
  };
  auto const forward = [](Tensor<float, 3> const& a, Tensor<float, 3, 2> const& b) {
    return jvp(energy)(a, b, a * 0.5f, b * 2.0f).second;
  };
  Tensor<float, 3, 2> const w0(Array(w).part(0));
  auto const [da, db] = grad(summed, wrt<0, 1>)(x, w0);
  auto const directional = vmap(forward, in_axes<0, unmapped>)(x, w0);
  Array total = zeros_like(w0);
  for (index_t i = 0; i < 4; ++i) {
    for (index_t k = 0; k < 6; ++k) {
      float const one = energy(row(x, i), Tensor<float, 3, 2>(Array(w).part(k))).item();
      CHECK(std::fabs(all(k, i) - one) <= 1e-5f * std::fabs(one) + 1e-6f);
    }
    auto const [a, b] = grad(energy, wrt<0, 1>)(row(x, i), w0);
    CHECK(allclose(Array(da).part(i), a, 1e-5, 1e-6));
    CHECK(is_example(directional, i, forward(row(x, i), w0)));
    total = total + b;
  }
  CHECK(allclose(db, total, 1e-5, 1e-5));
}

namespace {
// One of every kind of rule: views, axes, reductions, tables of rows, ops that run one by one, loops.
constexpr auto many_ops = [](Tensor<float, 4, 6> const& x, Tensor<float, 5, 6> const& table,
                             Tensor<std::int64_t, 4> const& at) {
  auto const picked = embedding(at, table) * x;
  auto const turned = transpose<0, 1>(pad<1, 1>(flip<0>(slice<0, 1, 4>(concat<0>(picked, x)))));
  auto const order = std::get<0>(sort<-1>(x)) + cumsum<0>(x);
  auto const spread = softmax<-1>(order) + mean<0>(x, keepdim);
  auto const gram = matmul(x, transpose<0, 1>(x));
  return std::tuple(turned, spread, cholesky(gram), argmax<1>(x), where(x > 0.0f, x, spread));
};
}  // namespace

TEST_CASE("vmap: one of every kind of rule", "[program][vmap]") {
  auto const x = randn<float, 3, 4, 6>(Key{1});
  auto const table = randn<float, 5, 6>(Key{2});
  auto const tables = randn<float, 3, 5, 6>(Key{3});
  auto const at = randint<std::int64_t, 3, 4>(Key{4}, 0, 5);
  auto const shared = vmap(many_ops, in_axes<0, unmapped, 0>)(x, table, at);
  auto const own = vmap(many_ops)(x, tables, at);
  for (index_t i = 0; i < 3; ++i) {
    Tensor<float, 4, 6> const xi(Array(x).part(i));
    Tensor<std::int64_t, 4> const ai(Array(at).part(i));
    auto const one = many_ops(xi, table, ai);
    auto const other = many_ops(xi, Tensor<float, 5, 6>(Array(tables).part(i)), ai);
    auto const same = [&]<std::size_t... K>(auto const& all, auto const& want, std::index_sequence<K...>) {
      bool const each[] = {is_example(std::get<K>(all), i, std::get<K>(want))...};
      for (std::size_t k = 0; k < sizeof...(K); ++k) {
        INFO("result " << k << " of example " << i);
        CHECK(each[k]);
      }
    };
    same(shared, one, std::make_index_sequence<5>{});
    same(own, other, std::make_index_sequence<5>{});
  }
}

TEST_CASE("vmap: loops inside, and loops around", "[program][vmap]") {
  constexpr auto sums = [](Tensor<float, 3> const& start, Tensor<float, 4, 3> const& xs) {
    return scan([](auto const& c, auto const& x) { return std::pair(tanh(c + x), c * x); }, start, xs);
  };
  auto const xs = randn<float, 5, 4, 3>(Key{4});
  auto const start = randn<float, 3>(Key{5});
  auto const [last, stacked] = vmap(sums, in_axes<unmapped, 0>)(start, xs);
  constexpr auto scalar = [](Tensor<float, 3> const& s, Tensor<float, 4, 3> const& a) {
    auto const r = scan([](auto const& c, auto const& x) { return std::pair(tanh(c + x), c * x); }, s, a);
    return sum(r.first) + sum(square(r.second));
  };
  auto const slopes = vmap(grad(scalar), in_axes<unmapped, 0>)(start, xs);
  // The mapped function inside of a loop over something else.
  constexpr auto around = [](Tensor<float, 5, 3> const& all, Tensor<float, 2, 3> const& shifts) {
    return scan(
        [](auto const& c, auto const& s) {
          return vmap([](Tensor<float, 3> const& a, Tensor<float, 3> const& b) { return a * sum(a * b); },
                      in_axes<0, unmapped>)(c, s);
        },
        all, shifts);
  };
  Tensor<float, 5, 3> const all(select(Array(xs), 1, 0));
  auto const shifts = randn<float, 2, 3>(Key{6});
  auto const looped = compile(around)(all, shifts);
  for (index_t i = 0; i < 5; ++i) {
    Tensor<float, 4, 3> const mine(Array(xs).part(i));
    auto const [l, s] = sums(start, mine);
    CHECK(is_example(last, i, l));
    CHECK(is_example(stacked, i, s));
    CHECK(allclose(Array(slopes).part(i), grad(scalar)(start, mine), 1e-5, 1e-6));
    Tensor<float, 3> a = row(all, i);
    for (index_t k = 0; k < 2; ++k) a = a * sum(a * row(shifts, k));
    CHECK(is_example(looped, i, a));
  }
}

TEST_CASE("vmap: as many examples as there are when it is called", "[program][vmap]") {
  auto const f = vmap(affine, in_axes<0, unmapped>);
  auto const w = randn<float, 3, 2>(Key{2});
  for (index_t n : {1, 4, 9}) {
    Tensor<float, dyn, 3> const x(randn(make_shape(n, 3), Key{1}));
    auto const y = f(x, w);
    static_assert(std::is_same_v<std::remove_const_t<decltype(y)>, Tensor<float, dyn, 2>>);
    CHECK(allclose(y, tanh(matmul(x, w)), 1e-6, 1e-7));
  }
}

}  // namespace tests::program_vmap
