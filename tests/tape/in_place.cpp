// SPDX-License-Identifier: BSL-1.0
// Changes in place: their numbers, what the tape makes of them, and what it refuses.
#include "support.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace {

using namespace dfdx;
using tests::error_of;

double at(Array const& x, index_t i) { return read_real(dfdx::detail::packed(x).operand(), i); }

TEST_CASE("numbers change in the memory that all views share") {
  Array a = full({2, 3}, 1);
  Array const row = a[1];
  a += 2.0;
  CHECK(at(row, 0) == 3);
  a[0].mul_(10.0);
  CHECK(at(a, 2) == 30);
  CHECK(at(a, 3) == 3);
  a -= from({1.0f, 2.0f, 3.0f});
  CHECK(at(a, 2) == 27);
  a /= 3.0;
  CHECK(at(a, 2) == 9);
  a.fill_(4).sub_(1.0).div_(2.0).add_(a);
  CHECK(at(a, 5) == 3);
  Array t = transpose(a, 0, 1);
  a[0].fill_(7);
  t += a[0].detach()[0];
  CHECK(at(a, 0) == 14);
  CHECK(at(a, 5) == 10);
  a.copy_(from({1, 2, 3}));
  CHECK(at(a, 5) == 3);
  a.uniform_(Key{1}, 2, 3);
  CHECK((at(a, 0) >= 2 && at(a, 5) < 3));
  a.normal_(Key{1}, 100, 1e-3);
  CHECK((at(a, 0) > 99 && at(a, 5) < 101));
  auto typed = Tensor<float, 2>::from({1, 2});
  (typed += 1) *= 2;
  CHECK(typed(1) == 6);
}

TEST_CASE("a program that is being recorded gives the name to a new value") {
  constexpr auto f = [](Tensor<double, 2> const& x) {
    auto y = x * 2;
    y += x;
    y *= y;
    return sum(y);
  };
  CHECK(grad(f)(Tensor<double, 2>::from({1.0, 2.0}))(1) == 36);
  CHECK(f(Tensor<double, 2>::from({1.0, 2.0})).item() == 45);
}

TEST_CASE("what cannot be changed says so and stays as it was") {
  Array a = full({3}, 1);
  CHECK(error_of([&] { a += full({2, 3}, 1); }) ==
        "add_: a result of shape [2, 3] does not fit the target of shape [3]");
  Array i = full({3}, 1, DType::i64);
  CHECK(error_of([&] { i += 0.5; }) == "add_: a result of f32 does not fit the target of i64");
  Array repeated = broadcast_to(full({1, 3}, 1), make_shape(2, 3));
  CHECK(error_of([&] { repeated += 1.0; }) == "add_: the target of shape [2, 3] overlaps itself");
  Strides windows = make_shape(1, 1);
  Array window = full({4}, 1).view(make_shape(3, 2), windows);
  CHECK(error_of([&] { window.fill_(2); }) == "fill_: the target of shape [3, 2] overlaps itself");
  CHECK(error_of([&] { a.copy_(full({2}, 1)); }) ==
        "copy_: a value of shape [2] does not fit the target of shape [3]");
  CHECK(error_of([&] { Array().fill_(1); }) == "fill_: the target of shape [] holds no memory");
  CHECK(at(a, 0) == 1);
  CHECK(at(i, 0) == 1);
}

TEST_CASE("a target takes its new value's place on the tape") {
  Array x = full({2}, 3, DType::f64);
  x.requires_grad(true);
  CHECK(error_of([&] { x += 1.0; }) ==
        "add_: the target of shape [2] is a leaf that requires a gradient; change it under no_grad");
  Array y = x * 2.0;
  y += x;
  y *= 5.0;
  sum(y).backward();
  CHECK(at(x.grad(), 1) == 15);
  x.zero_grad();

  Array z = full({2}, 0, DType::f64);  // plain memory becomes a value of the tape
  z += x * 4.0;
  z[0].detach();
  sum(z * z).backward();
  CHECK(at(x.grad(), 0) == 2 * 12 * 4);
  z.fill_(1);
  CHECK_FALSE(z.requires_grad());

  Array c = full({2}, 0, DType::f64);
  x.zero_grad();
  c.copy_(x);
  c += 1.0;
  sum(x * c).backward();
  CHECK(at(x.grad(), 0) == 3 + 4);
  {
    no_grad const guard;
    x -= 1.0;  // what an optimizer does
  }
  CHECK(x.is_leaf());
  CHECK(x.requires_grad());
  CHECK(at(x, 0) == 2);
}

TEST_CASE("a part of a leaf is changed under no_grad only") {
  Array x = full({3}, 3, DType::f64);
  x.requires_grad(true);
  char const* const text =
      "add_: the target of shape [] is a part of a leaf that requires a gradient; change it under no_grad";
  CHECK(error_of([&] { x[0] += 1.0; }) == text);
  CHECK(error_of([&] { x[0].requires_grad(true) += 1.0; }) == text);
  CHECK(at(x, 0) == 3);
  {
    no_grad const guard;
    x[0] += 1.0;
  }
  CHECK(at(x, 0) == 4);
  CHECK(error_of([&] { x.detach()[0] += 1.0; }).empty());
  Array y = x * 1.0;
  y[0] += 1.0;
  CHECK(at(y, 0) == 6);
  x.requires_grad(false);
  x[0] += 1.0;
  CHECK(at(x, 0) == 6);
}

TEST_CASE("values that the backward pass needs are watched") {
  Array x = full({2}, 3, DType::f64), w = full({2}, 5, DType::f64);
  x.requires_grad(true);
  Array y = x * w;
  w += 1.0;
  CHECK(error_of([&] { sum(y).backward(); }) ==
        "backward of mul: its operand 1 of shape [2] was changed in place since");
  Array e = exp(x);
  Array const f = sum(e);
  e += 1.0;
  CHECK(error_of([&] { f.backward({.retain_graph = true}); }) ==
        "backward of exp: its result of shape [2] was changed in place since");
  CHECK(x.grad().empty());

  Array s = x + w;  // a sum needs neither operand
  w += 1.0;
  s[0].detach();
  sum(s).backward();
  CHECK(at(x.grad(), 0) == 1);

  Array m = x * 2.0;
  Array const part = m[0];
  m += 1.0;  // m stands for the new value, `part` for the old one, which is gone
  CHECK(error_of([&] { part * 2.0; }) ==
        "mul: operand 0 of shape [] was changed in place, through another view, after it was recorded");
  CHECK(error_of([&] { sum(m).backward(); }).empty());
}

}  // namespace
