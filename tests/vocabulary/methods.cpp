// SPDX-License-Identifier: BSL-1.0
// Functions of the vocabulary as methods: those of an Array give Arrays, those of a Tensor give Tensors.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::vocabulary_methods {

namespace {

using namespace dfdx;

template <class T, class X>
constexpr bool is = std::is_same_v<T, std::remove_cvref_t<X>>;

TEST_CASE("methods of an Array") {
  Array const x = from<double>({0.5, -1.5, 2.0, 1.0, -0.25, 3.0}).reshape({2, 3}), p = x.abs();
  struct {
    Array got, want;
  } const cases[] = {{x.exp(), exp(x)},
                     {p.log(), log(p)},
                     {p.sqrt(), sqrt(p)},
                     {x.square(), x * x},
                     {x.sin(), sin(x)},
                     {x.cos(), cos(x)},
                     {x.tanh(), tanh(x)},
                     {x.sigmoid(), sigmoid(x)},
                     {x.relu(), relu(x)},
                     {x.floor(), floor(x)},
                     {x.ceil(), ceil(x)},
                     {x.round(), round(x)},
                     {x.clamp(-1, 1), clamp(x, -1, 1)},
                     {p.pow(1.5), pow(p, 1.5)},
                     {x.any(1), any(x, 1)},
                     {x.all(0, true), all(x, 0, true)},
                     {x.var(1), var(x, 1)},
                     {x.argmin(1), argmin(x, 1)},
                     {x.cumsum(1), cumsum(x, 1)},
                     {std::get<0>(x.sort(-1, true)), std::get<0>(sort(x, -1, true))},
                     {std::get<0>(x.topk(2)), std::get<0>(topk(x, 2))},
                     {std::get<1>(x.topk(2)), std::get<1>(topk(x, 2))},
                     {x.softmax(), softmax(x, -1)},
                     {x.log_softmax(0), log_softmax(x, 0)},
                     {x.view({3, 2}), reshape(x, {3, 2})},
                     {x.matmul(x.T()), matmul(x, transpose(x, 0, 1))},
                     {x[0].dot(x[1]), dot(x[0], x[1])}};
  for (auto const& c : cases) CHECK(array_equal(c.got, c.want));
  CHECK(x.to(DType::i32).to_vector<int>() == std::vector<int>{0, -1, 2, 1, 0, 3});
  CHECK(x.T().to_vector<double>() == std::vector<double>{0.5, 1.0, -1.5, -0.25, 2.0, 3.0});
  CHECK(full({1}, 1, DType::i64).fill_(9007199254740993).to_vector<std::int64_t>()[0] == 9007199254740993);
}

TEST_CASE("methods of a Tensor keep its type") {
  auto const x = Tensor<float, 2, 3>::from({{0.5f, -1.5f, 2}, {1, -0.25f, 3}});
  static_assert(is<Tensor<float, 2, 3>, decltype(x.exp())>);
  static_assert(is<Tensor<float, 2, 3>, decltype(x.detach())>);
  static_assert(is<Tensor<float, 2, 3>, decltype(x.clone())>);
  static_assert(is<Tensor<float, 2, 3>, decltype(x.contiguous())>);
  static_assert(is<Tensor<float>, decltype(x.sum())>);
  static_assert(is<Tensor<float, 3>, decltype(x.mean<0>())>);
  static_assert(is<Tensor<bool, 2>, decltype((x > 0).any<-1>())>);
  static_assert(is<Tensor<std::int64_t, 2>, decltype(x.argmax<1>())>);
  static_assert(is<Tensor<float, 3, 2>, decltype(x.T())>);
  static_assert(is<Tensor<float, 3, 2>, decltype(x.transpose())>);
  static_assert(is<Tensor<float, 3, 2>, decltype(x.permute<1, 0>())>);
  static_assert(is<Tensor<float, 6>, decltype(x.flatten())>);
  static_assert(is<Tensor<float, 3, 2>, decltype(x.reshape<3, -1>())>);
  static_assert(is<Tensor<float, 2, 1, 3>, decltype(x.unsqueeze<1>())>);
  static_assert(is<Tensor<float, 2, 3>, decltype(x.unsqueeze<1>().squeeze<1>())>);
  static_assert(is<Tensor<float, 4, 2, 3>, decltype(x.expand<4, 2, 3>())>);
  static_assert(is<Tensor<double, 2, 3>, decltype(x.to<double>())>);
  static_assert(is<Tensor<float, 2, 2>, decltype(x.matmul(x.T()))>);
  static_assert(is<Tensor<float, 2, 3>, decltype(x.softmax<0>())>);
  static_assert(is<Tensor<float, 2, 1>, decltype(std::get<0>(x.topk<1>()))>);
  static_assert(is<Array, decltype(x.sum(1))>);
  static_assert(is<Array, decltype(x.reshape({3, 2}))>);
  static_assert(is<Array, decltype(x.to(DType::f64))>);
  CHECK(x.clone().data() != x.data());
  CHECK(x.detach().data() == x.data());
  CHECK(array_equal(x.sum<0>(), Tensor<float, 3>::from({1.5f, -1.75f, 5})));
  CHECK(array_equal(x.sum(1), sum<1>(x)));
  CHECK(array_equal(x.var<1>(), var<1>(x)));
  CHECK(array_equal(x.cumsum<1>(), cumsum<1>(x)));
  CHECK(array_equal(std::get<0>(x.sort()), std::get<0>(sort(x))));
  CHECK(array_equal(std::get<1>(x.sort(0, true)), std::get<1>(sort(x, 0, true))));
  CHECK(array_equal(std::get<1>(x.topk(2)), std::get<1>(topk<2>(x))));
  CHECK(array_equal(x.clamp(0, 1), clamp(x, 0, 1)));
  CHECK(array_equal(x.pow(2), square(x)));
  CHECK(array_equal(x.log_softmax(0), log_softmax<0>(x)));
  CHECK(array_equal(x.transpose(0, 1).permute({1, 0}), x));
  CHECK(x.argmax().item() == 5);
  CHECK(x.to_vector<float>()[4] == -0.25f);
}

TEST_CASE("methods in compiled programs and on the tape") {
  constexpr auto f = [](auto const& x) { return (x.exp() * x.softmax()).sum(); };
  auto const x = Tensor<double, 3>::from({0.5, -1.5, 2.0});
  auto const [y, dx] = value_and_grad(f)(x);
  Array const leaf = x.clone().requires_grad(true);
  f(leaf).backward();
  CHECK(allclose(dx, leaf.grad()));
  CHECK(allclose(y, sum(exp(x) * softmax(x))));
  auto const typed = [&] {
    auto v = x.clone();
    v.requires_grad(true);
    return v;
  }();
  CHECK_FALSE(typed.detach().requires_grad());
  CHECK(typed.clone().requires_grad());
}

}  // namespace

}  // namespace tests::vocabulary_methods
