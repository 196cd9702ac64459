// SPDX-License-Identifier: BSL-1.0
// Changes in place: their numbers, what the tape makes of them, and what it refuses.
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/testing/gradcheck.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>

namespace tests::tape_in_place {

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
  Array x = full({3}, 2, DType::f64);
  x.requires_grad(true);
  Array plain = full({2, 3}, 1, DType::f64), other = plain;
  for (auto const &change :
       {+[](Array p, Array const& v) { p[0] += v * 2; }, +[](Array p, Array const& v) { p[1].copy_(v); },
        +[](Array p, Array const& v) { p += v; }})
    CHECK(error_of([&] { change(plain, x); })
              .find(", memory without a gradient that others view; use index_put_, stack the parts, or "
                    "clone() the target") != std::string::npos);
  CHECK(error_of([&] { plain[0] += x; }) ==
        "add_: a recorded value cannot change the target of shape [3], memory without a gradient that others "
        "view; use index_put_, stack the parts, or clone() the target");
  CHECK(array_equal(plain, full({2, 3}, 1, DType::f64)));
  {
    no_grad const mode;
    plain[0] += x;  // numbers only
  }
  CHECK(at(other, 0) == 3);
  CHECK(at(a, 0) == 1);
  CHECK(at(i, 0) == 1);
}

TEST_CASE("recorded values are put into parts of memory without a gradient by index_put_") {
  Array x = from({3.0, 5.0}), y = zeros(make_shape(3, 2), DType::f64),
        weights = from({0.0, 1.0, 2.0, 3.0, 4.0, 5.0}, {3, 2});
  x.requires_grad(true);
  for (index_t i = 0; i < 3; ++i) index_put_(y, x * static_cast<double>(i), i);
  index_put_(y, square(x), 1);  // over the earlier one
  CHECK(array_equal(y.detach(), from({0.0, 0.0, 9.0, 25.0, 6.0, 10.0}, {3, 2})));
  sum(y * weights).backward();
  CHECK(array_equal(x.grad(), from({2 * 2 * 3.0 + 2 * 4, 3 * 2 * 5.0 + 2 * 5})));
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

  // Nor do rules that move elements or add them up.
  auto const slope_of_first = [&](Array (*f)(Array const&)) {
    x.zero_grad();
    Array a = x * 2.0;
    Array const moved = f(a);
    a += 1.0;
    sum(moved).backward();
    return at(x.grad(), 0);
  };
  CHECK(slope_of_first([](Array const& a) { return flip(a, 0); }) == 2);
  CHECK(slope_of_first([](Array const& a) { return cumsum(a, 0); }) == 4);
  CHECK(slope_of_first([](Array const& a) { return concat({a, a}, 0); }) == 4);

  Array m = x * 2.0;
  Array const part = m[0];
  {
    no_grad const guard;
    m += 1.0;  // the tape does not know what m is now
  }
  CHECK(error_of([&] { part * 2.0; }) ==
        "mul: operand 0 of shape [] was changed in place, through another view, after it was recorded");
}

// The gradients of x and w where f makes a number of them, and that number.
template <class F>
std::array<Array, 3> slopes_of(F const& f) {
  Array x = from<double>({1, 2, 3, 4, 5, 6}).reshape({3, 2}), w = from<double>({0.5, -2});
  x.requires_grad(true);
  w.requires_grad(true);
  Array const y = f(x, w);
  y.backward();
  auto const slope = [](Array const& v) { return v.grad().empty() ? zeros_like(v.detach()) : v.grad(); };
  return {y.detach(), slope(x), slope(w)};
}
// Both compute the same, one of them in place.
template <class F, class G>
void check_same(F const& in_place, G const& functional) {
  auto const got = slopes_of(in_place), want = slopes_of(functional);
  for (std::size_t k = 0; k < 3; ++k) {
    INFO(k << ": " << to_string(got[k]) << " for " << to_string(want[k]));
    CHECK(allclose(got[k], want[k], 1e-12, 1e-12));
  }
}
Array rows(Array const& a, Array const& b, Array const& c) { return stack({a, b, c}); }
Array weigh(Array const& y) { return sum(y * y * (arange(6).reshape({3, 2}) + 1.0)); }

TEST_CASE("a recorded value follows what is done to a part of it") {
  check_same(
      [](Array const& x, Array const& w) {
        Array y = x * 2.0;
        y[1] += w;
        return weigh(y);
      },
      [](Array const& x, Array const& w) {
        Array const y = x * 2.0;
        return weigh(rows(y[0], y[1] + w, y[2]));
      });
  check_same(
      [](Array const& x, Array const& w) {
        Array y = x * 2.0;
        y[0] -= 5.0;
        y[1] *= w;
        y[2] /= w;
        return weigh(y);
      },
      [](Array const& x, Array const& w) {
        Array const y = x * 2.0;
        return weigh(rows(y[0] - 5.0, y[1] * w, y[2] / w));
      });
  // fill_ and copy_, an element, and one part after another.
  check_same(
      [](Array const& x, Array const& w) {
        Array y = exp(x * 0.1) + 0.0;
        y[0].fill_(3);
        y[1].copy_(w);
        y[1][1] *= 4.0;
        y[1] += y[2];
        return weigh(y);
      },
      [](Array const& x, Array const& w) {
        Array const y = exp(x * 0.1) + 0.0;
        return weigh(rows(full({2}, 3, DType::f64), stack({w[0], w[1] * 4.0}) + y[2], y[2]));
      });
  // A column, every second element, a view of a view; the value itself is a view that is not dense.
  check_same(
      [](Array const& x, Array const& w) {
        Array y = transpose(x * 1.0, 0, 1);
        select(y, 0, 1).mul_(w[0]);
        y(all(), range(0, 3, 2)) += w.reshape({2, 1});
        return weigh(y.T());
      },
      [](Array const& x, Array const& w) {
        Array const a = stack({x(all(), 0), x(all(), 1) * w[0]}, 1);
        return weigh(rows(a[0] + w, a[1], a[2] + w));
      });
  // All of it through another shape; then a part.
  check_same(
      [](Array const& x, Array const& w) {
        Array y = x * 3.0, flat = reshape(y, {6}), copy = y;
        flat *= y.detach().clone().reshape({6});
        y[2] += w;
        return weigh(copy);
      },
      [](Array const& x, Array const& w) {
        Array const y = x * 3.0, z = y * y.detach();
        return weigh(rows(z[0], z[1], z[2] + w));
      });
}

TEST_CASE("all views of a recorded value follow a change of one, and what was computed before does not") {
  check_same(
      [](Array const& x, Array const& w) {
        Array y = x * 2.0;
        Array const first = y[0], last = y[2], both = slice(y, 0, 0, 2), before = sum(y);
        y[0] *= w;
        y += 1.0;
        return sum(first * w) + sum(last) * 2.0 + sum(both * both) + before;
      },
      [](Array const& x, Array const& w) {
        Array const y = x * 2.0, first = y[0] * w + 1.0, both = stack({first, y[1] + 1.0});
        return sum(first * w) + sum(y[2] + 1.0) * 2.0 + sum(both * both) + sum(y);
      });
  // What a rule has kept of the old numbers is still refused.
  Array x = full({3}, 2, DType::f64);
  x.requires_grad(true);
  Array y = x * 2.0;
  Array const z = y * y;
  y[1] += 5.0;
  CHECK(error_of([&] { sum(z).backward(); }) ==
        "backward of mul: its operand 1 of shape [3] was changed in place since");
  CHECK(error_of([&] { sum(y * y).backward(); }).empty());
  CHECK(at(x.grad(), 0) == 2 * 4 * 2);
  CHECK(at(x.grad(), 1) == 2 * 9 * 2);
}

TEST_CASE("a view that repeats elements follows a change of them") {
  // Values and gradients are those of PyTorch 2.11.
  auto const slopes = [](auto const& change) {
    Array x = from<double>({1, 2});
    x.requires_grad(true);
    Array a = x * 1.0;
    Array const twice = expand(unsqueeze(a, 0), {2, 2});
    change(a);
    CHECK(array_equal(twice[0].detach(), twice[1].detach()));
    sum(twice * from<double>({1, 10, 100, 1000}, {2, 2})).backward();
    return x.grad();
  };
  CHECK(array_equal(slopes([](Array& a) { a *= 3.0; }), from<double>({303, 3030})));
  CHECK(array_equal(slopes([](Array& a) { a[0] *= 3.0; }), from<double>({303, 1010})));
  CHECK(array_equal(slopes([](Array& a) { index_put_(a, 5.0, 1); }), from<double>({101, 0})));
  CHECK(array_equal(slopes([](Array& a) { a *= 3.0, a[1] += a[0] * 2.0; }), from<double>({6363, 3030})));
}

TEST_CASE("a part that was filled follows what is done to the whole later") {
  // The gradients are those of PyTorch 2.11.
  Array x = from<double>({1, 2}), w = from<double>({5, 7});
  x.requires_grad(true);
  w.requires_grad(true);
  Array a = x * 1.0;
  Array first = a[0], filled = a;
  first.fill_(3);
  a += w;
  filled *= 2.0;
  CHECK(at(first, 0) == 16);
  (first * 10.0 + sum(a)).backward();
  CHECK(array_equal(x.grad(), from<double>({0, 2})));
  CHECK(array_equal(w.grad(), from<double>({22, 2})));
}

TEST_CASE("memory whose changes lead back to it is freed without a pass") {
  // (Under sanitizers it would be reported.)
  Array x = full({3}, 2, DType::f64);
  x.requires_grad(true);
  Array y = x * 2.0;
  y[1] += sum(y * y);
  y[0] += y[1];
  Storage const* const memory = y.storage();
  CHECK(memory->handles() == 1);
  CHECK(sum(y).item() == 56 + 52 + 4);
  CHECK(memory->changes() != nullptr);
}

TEST_CASE("a loop over the parts of a recorded value, its hooks, and gradients of gradients") {
  // y[i] = y[i - 1] * x[i] makes powers.
  Array x = full({5}, 1.5, DType::f64);
  x.requires_grad(true);
  Array y = x * 1.0;
  for (int i = 1; i < 5; ++i) y[i] *= y[i - 1];
  y.retain_grad();
  Array const g = gradients(y[4], {x}, {.create_graph = true})[0];
  CHECK(std::fabs(at(g, 2) - std::pow(1.5, 4)) < 1e-12);
  sum(g).backward({.retain_graph = true});
  CHECK(std::fabs(at(x.grad(), 0) - 4 * std::pow(1.5, 3)) < 1e-12);
  sum(y).backward();
  CHECK(at(y.grad(), 4) == 1);

  Array a = full({2}, 3, DType::f64);
  a.requires_grad(true);
  Array b = a * 2.0;
  b[0] += 1.0;
  double seen = 0;
  b.register_hook([&](Array const& ct) { seen = at(ct, 1); });
  b.backward(full({2}, 7, DType::f64));
  CHECK(seen == 7);
  CHECK(at(a.grad(), 0) == 14);
  a.zero_grad();
  CHECK(testing::gradcheck(
      [](std::span<Array const> v) {
        Array u = sin(v[0]);
        u[0] *= u[1];
        return sum(u * u);
      },
      {a.detach()}));
}

}  // namespace

}  // namespace tests::tape_in_place
