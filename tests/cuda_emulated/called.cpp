// SPDX-License-Identifier: BSL-1.0
// Ops that are called one by one on values of the emulated device, and the tape there. (Every op in every dtype: the op
// suite, compiled for devices, CMakePresets.json's `device`.)
#include "called.hpp"

#include "support.hpp"

#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/in_place.hpp>
#include <dfdx/vocabulary/one_hot.hpp>
#include <dfdx/vocabulary/pool.hpp>

#include <algorithm>

namespace tests::cuda_emulated_called {

using namespace emulated;

namespace {

struct Net {
  nn::Linear<6, 8> first;
  nn::LayerNorm<8> norm;
  nn::Linear<8, 3> second;
  DFDX_FIELDS(first, norm, second)
  auto operator()(auto const& x) const { return second(gelu(norm(first(x)))); }
};

}  // namespace

TEST_CASE("ops called on a device run there") {
  Missed const missed;
  Array const x = drawn(make_shape(5, 7), 1), y = drawn(make_shape(5, 7), 2);
  CHECK(called([](auto const& a, auto const& b) { return a + b * 2.0; }, x, y) < 1e-6);
  CHECK(called([](auto const& a, auto const& b) { return where(a > b, exp(a), transpose(transpose(b))); }, x,
               y) < 1e-6);
  CHECK(called([](auto const& a) { return transpose(a).contiguous(); }, x) == 0);
  CHECK(called([](auto const& a) { return softmax<1>(a); }, x) < 1e-6);
  CHECK(called([](auto const& a, auto const& b) { return matmul(a, transpose(b)); }, x, y) < 1e-6);
  CHECK(called([](auto const& a) { return cast_to(a, DType::i32) * 3 + 1; }, x) == 0);
  for (DType const d : {DType::i8, DType::u8})
    for (DType const other : {DType::i8, DType::u8})
      CHECK(called([](auto const& a, auto const& b) { return matmul(a, transpose(b)); }, cast_to(x * 20.0, d),
                   cast_to(y * 20.0, other)) == 0);
  CHECK(called([](auto const& a) { return argsort<1>(a); }, x) == 0);
  CHECK(called([](auto const& a) { return std::get<1>(topk<2, 0>(a)); }, x) == 0);
  CHECK(called([](auto const& a) { return std::get<1>(kthvalue<3>(a)); }, x) == 0);
  CHECK(called([](auto const& a) { return argmax<0>(a); }, x) == 0);
  CHECK(called([](auto const& a) { return cumsum<0>(a); }, x) < 1e-6);
  CHECK(called([](auto const& a, auto const& b) { return concat<1>(a, b); }, x, y) == 0);
  CHECK(called([](auto const& a) { return dropout(a, 0.4, Key{3}); }, x) == 0);
  Array const labels = randint({5}, Key{4}, 0, 7, DType::i64);
  CHECK(called([](auto const& a, auto const& l) { return cross_entropy(a, l); }, x, labels) < 1e-6);
  CHECK(called([](auto const& a, auto const& l) { return embedding(l, a); }, x,
               randint({3, 4}, Key{4}, 0, 5)) == 0);
  // Of 16 bits what meets at one place is added in f32.
  Array const many = full({3000, 3}, 1.0, DType::bf16), places = randint({3000}, Key{7}, 0, 2);
  CHECK(called([&](auto const& a, auto const& i) { return index_add(zeros_like(a), 0, i, a); }, many,
               places) == 0);
  CHECK(called([&](auto const& a, auto const& i) { return scatter_add(zeros_like(a), 0, i, a); }, many,
               randint({3000, 3}, Key{8}, 0, 2)) == 0);
  for (DType const d : {DType::f64, DType::f16, DType::bf16})
    CHECK(called([](auto const& a) { return layer_norm(a, {7}) * 0.5; }, cast_to(x, d)) <=
          (d == DType::f64 ? 1e-12 : 0.01));
  Array const images = drawn(make_shape(2, 4, 9, 8), 5), w = drawn(make_shape(6, 2, 3, 2), 6);
  auto const convolve = [](Array const& v, Array const& u) {
    return conv2d<ConvOptions{.stride = {2, 1}, .padding = 1, .groups = 2}>(v, u);
  };
  auto const gradient_of = [](auto const& f, std::size_t which) {
    return [=](Array const& v, Array const& u) {
      Array x[2] = {v.detach(), u.detach()};
      for (Array& one : x) one.requires_grad(true);
      return gradients(sum(square(f(x[0], x[1]))), {x[which]})[0];
    };
  };
  CHECK(called(convolve, images, w) < 1e-5);
  CHECK(called(convolve, cast_to(images, DType::bf16), cast_to(transpose(w, 2, 3), DType::bf16)) < 1e-2);
  CHECK(called(gradient_of(convolve, 0), images, w) < 1e-4);
  CHECK(called(gradient_of(convolve, 1), images, w) < 1e-4);
  CHECK(called([](auto const& a, auto const& b) { return conv1d(a, transpose(b)); },
               drawn(make_shape(2, 3, 20), 7), drawn(make_shape(5, 4, 3), 8)) < 1e-5);
  CHECK(
      called(
          [](auto const& a) { return max_pool2d<MaxPoolOptions{.kernel = 3, .stride = 2, .padding = 1}>(a); },
          images) == 0);
  CHECK(called([](auto const& a) { return pad<1, 2>(flip<0, 1>(a), 0.5); }, x) == 0);
  CHECK(Missed::names() == std::vector<std::string>());

  CHECK(called([](auto const& a) { return conv3d<ConvOptions{.padding = 1}>(a, a); },
               drawn(make_shape(2, 2, 3, 3, 3), 5)) < 1e-5);
  CHECK(std::ranges::count(Missed::names(), "conv") != 0);  // of three axes on the CPU, until it has one
}

TEST_CASE("reductions called on a device, of all kinds of lines") {
  Array const x = drawn(make_shape(3, 5000, 2), 1), wide = drawn(make_shape(70, 300), 2),
              long_line = drawn(make_shape(300000), 3);
  for (auto const& f : std::vector<std::function<Array(Array const&)>>{
           [](Array const& a) { return sum(a); }, [](Array const& a) { return sum(a, 0); },
           [](Array const& a) { return sum(a, -1, true); }, [](Array const& a) { return max(a, -1); },
           [](Array const& a) { return min(a, 0); },
           [](Array const& a) { return prod(a * 0.01 + 1.0, -1); }}) {
    CHECK(called(f, x) < 1e-6);
    CHECK(called(f, wide) < 1e-6);
    CHECK(called(f, transpose(wide)) < 1e-6);
    CHECK(called(f, long_line) < 1e-6);
  }
  CHECK(called([](Array const& a) { return sum(a, {0, 2}); }, x) < 1e-6);
  CHECK(called([](Array const& a) { return sum(a, 1); }, x) < 1e-6);
  CHECK(called([](Array const& a) { return sum(cast_to(a * 100.0, DType::i32)); }, long_line) == 0);
  Array const with_nan = where(long_line > 2.5, full({}, NAN), long_line);
  CHECK(called([](Array const& a) { return max(a); }, with_nan) == 0);
  CHECK(called([](Array const& a) { return argmax(a); }, with_nan) == 0);
}

TEST_CASE("the tape on a device") {
  auto const loss = [](Array const& a, Array const& w) {
    Array const h = relu(matmul(a, w));
    return mean(square(h[1])) + sum(slice<1, 1, 2>(softmax<1>(h))) + sum(h) * 0.1;
  };
  Array x = drawn(make_shape(4, 3), 1), w = drawn(make_shape(3, 5), 2);
  Array a = there(x), b = there(w);
  for (Array* v : {&x, &w, &a, &b}) v->requires_grad(true);
  loss(x, w).backward();
  Array const y = loss(a, b);
  CHECK(y.device() == cuda());
  y.backward();
  CHECK(a.grad().device() == cuda());
  CHECK(allclose(a.grad(), x.grad(), 1e-5, 1e-6));
  CHECK(allclose(b.grad(), w.grad(), 1e-5, 1e-6));
  loss(a, b).backward();  // adds to what is there
  CHECK(allclose(b.grad(), w.grad() * 2.0, 1e-5, 1e-6));

  // Of gradients.
  auto const second = [&](Array const& at) {
    Array const g = gradients(sum(exp(at) * at), {at}, {.create_graph = true})[0];
    return gradients(sum(g * g), {at})[0];
  };
  CHECK(allclose(second(a), second(x), 1e-5, 1e-5));
  // A number of the CPU beside them gets its gradient on the CPU.
  Array s = full({}, 2.0), t = there(s);
  s.requires_grad(true), t.requires_grad(true);
  sum(a * s + a * t).backward();
  CHECK(s.grad().device().is_cpu());
  CHECK(t.grad().device() == cuda());
  CHECK(s.grad().item() == t.grad().item());
  CHECK(std::fabs(s.grad().item() - sum(x).item()) < 1e-5);
}

TEST_CASE("cotangents lie where their values do") {
  Array const v = from({1.f, 2.f, 3.f}), w = from({.5f, -1.f, .25f});
  auto const leaf_of = [](Array x) { return x.requires_grad(true); };
  // The end gradient comes from elsewhere, twice.
  for (bool const far : {false, true}) {
    Array a = leaf_of(far ? there(v) : to(Device{}, v));
    Array const y = a + 0.0;
    y.backward(there(w), {.retain_graph = true});
    y.backward(w);
    CHECK(a.grad().device() == a.device());
    CHECK(array_equal(a.grad(), w * 2.0));
  }
  // What is on the CPU beside what is not.
  for (Shape const& s : {make_shape(), make_shape(1)}) {
    Array x = leaf_of(full(Extents(s), 2.0)), a = there(v);
    Array const wide = broadcast_to(x, make_shape(3));
    (sum(a * wide) + sum(v * wide)).backward();
    CHECK(x.grad().device().is_cpu());
    CHECK(x.grad().item() == 12);
    Array const g =
        gradients(sum(v * broadcast_to(x, make_shape(3))) * sum(a * x), {x}, {.create_graph = true})[0];
    CHECK(g.item() == 2 * 2 * 36);
  }
  Array one = leaf_of(ones({1}));
  Array const part = one[0] * 3.0, y = sum(there(v) * one);
  (part + y).backward();
  CHECK(one.grad().item() == 9);
  Array hooked = leaf_of(there(v));
  Array const h = hooked * 1.0;
  h.register_hook([&](Array const&) { return w; });
  sum(h).backward();
  CHECK(hooked.grad().device() == cuda());
  CHECK(array_equal(hooked.grad(), w));
}

TEST_CASE("changes in place on a device") {
  Array x = drawn(make_shape(4, 3), 1), a = there(x);
  for (Array* v : {&x, &a}) {
    *v += 1.0;
    *v *= *v;
    slice<1, 1, 1>(*v) -= 3.0;
    (*v)[2].fill_(7);
    v->add_(cast_to(*v, DType::f64));
  }
  CHECK(array_equal(a, x));
  Array y = drawn(make_shape(4), 2), b = there(y);
  y.requires_grad(true), b.requires_grad(true);
  for (Array const* v : {&y, &b}) {
    Array z = *v * 2.0;
    z *= *v;
    z[0] += 1.0;
    sum(z).backward();
  }
  CHECK(allclose(b.grad(), y.grad()));
}

TEST_CASE("a model is trained on a device as on the CPU") {
  auto here = init<Net>(1);
  auto far = to(cuda(), here);
  auto const x = randn<float, 10, 6>(Key{2});
  auto const labels = randint<std::int32_t, 10>(Key{3}, 0, 3);
  auto const step = [](auto& model, auto const& inputs, auto const& wanted, auto& optimizer) {
    zero_grad(model);
    auto const loss = cross_entropy(model(inputs), wanted);
    loss.backward();
    optimizer.step(model);
    return loss.item();
  };
  optim::Optimizer one(optim::AdamW{.lr = 1e-2f}), two(optim::AdamW{.lr = 1e-2f});
  watch(here);
  watch(far);
  auto const xs = to(cuda(), x);
  auto const ls = to(cuda(), labels);
  Missed const missed;
  for (int i = 0; i < 5; ++i) CHECK(std::fabs(step(here, x, labels, one) - step(far, xs, ls, two)) < 1e-5);
  CHECK(Missed::names() == std::vector<std::string>());
  CHECK(far.second.weight.device() == cuda());
  CHECK(allclose(far.second.weight, here.second.weight, 1e-4, 1e-5));
  CHECK(allclose(far.norm.weight, here.norm.weight, 1e-4, 1e-5));
}

TEST_CASE("values of several devices do not meet") {
  Array const x = ones({3}), a = there(x);
  CHECK(tests::error_of([&] { a + x; }) == "add: operands of shapes [3] and [3] lie on cuda:0 and cpu");
  CHECK(tests::error_of([&] { matmul(reshape<1, 3>(x), reshape<3, 1>(a)); }) ==
        "matmul: operands of shapes [3, 1] and [1, 3] lie on cuda:0 and cpu");
  CHECK(array_equal(a + full({}, 2), x + 2));  // a number goes along
  CHECK(array_equal(a * ones({1}), x));
}

TEST_CASE("what is there can be read and printed") {
  Array const x = drawn(make_shape(3, 4), 1), a = there(x);
  CHECK(to_string(a) == to_string(x));
  CHECK(to_string(transpose(a)) == to_string(transpose(x)));
  CHECK(array_equal(slice<1, 1, 2>(a), slice<1, 1, 2>(x)));
  CHECK(transpose(a).to_vector<float>() == transpose(x).to_vector<float>());
  CHECK(array_equal(to(Device{}, flip<0>(a)), flip<0>(x)));
  CHECK(zeros_like(a).device() == cuda());
}

TEST_CASE("a NaN on the device is found where it is made") {
  detect_anomaly const guard;
  Array a = there(full({3}, -1));
  a.requires_grad(true);
  CHECK(tests::error_of([&] { sqrt(a); }) == "sqrt: made NaN of numbers, in a result of shape [3]");
}

TEST_CASE("an index out of range is said when a result is read") {
  Array const a = there(ones({3, 2})), at = there(full({2}, 5, DType::i64));
  Array const y = embedding(at, a);
  CHECK_THROWS_AS(y.to_vector<float>(), error);
  CHECK(sum(a).item() == 6);  // and once
}

TEST_CASE("labels, places and lengths on a device are looked at") {
  Array const scores = there(drawn(make_shape(4, 3), 1)), labels = there(from({0, 1, 9, 2}));
  Array const loss = cross_entropy(scores, labels);
  CHECK(tests::error_of([&] { loss.item(); }) ==
        "cross_entropy: label 9 out of range for 3 classes on cuda:0: what was computed since is void");
  CHECK_THROWS_AS(one_hot(labels, 3), error);
  Array const rows = there(from({0, 3})), columns = there(from({1, 5}));
  CHECK_THROWS_AS(scores(rows, columns).to_vector<float>(), error);
  CHECK(array_equal(scores(rows, there(from({1, -1}))), to(Device{}, scores)(from({0, 3}), from({1, 2}))));
}

TEST_CASE("what looks at elements works on a device") {
  Array const x = from({3.f, 0.f, 1.f, 0.f, 3.f}), a = there(x);
  CHECK(array_equal(nonzero(a), nonzero(x)));
  CHECK(array_equal(masked_select(a, a > 0.5), masked_select(x, x > 0.5)));
  CHECK(array_equal(unique(a), unique(x)));
  CHECK(unique(a).device() == cuda());
  CHECK(array_equal(a(a > 0.5), x(x > 0.5)));
  // Truths chosen by truths, into memory of truths.
  Array const t = x > 0.5, f = x > 2.0;
  CHECK(called([](auto const& c, auto const& p, auto const& q) { return where(c, p, q); }, f, t, f) == 0);
  Array const room = there(zeros({64}, DType::boolean));
  slice<0, 0, 5>(room).copy_(where(there(f), there(t), there(f)));
  CHECK(sum(room).item() == sum(where(f, t, f)).item());
  auto const [carry, ys] =
      scan([](Array const& c, Array const& v) { return std::pair(c + v, c * v); }, there(full({}, 0.0)), a);
  CHECK(carry.item() == 7);
  CHECK(ys.device() == cuda());
}

// Has a name of the library's.
struct relu_of_mine : op::arithmetic<relu_of_mine, 1> {
  static constexpr char const* name = "relu";
  static constexpr Code code = op::numbered(1024);
  template <class X>
  static constexpr X eval(X const& x) {
    return math::times(x, x);
  }
};
TEST_CASE("an op of one's own is not mistaken for the library's") {
  Array const x = from({-2.f, 3.f});
  CHECK(called([](auto const& v) { return apply<relu_of_mine>(v); }, x) == 0);
  CHECK(array_equal(apply<relu_of_mine>(there(x)), square(x)));
}

TEST_CASE("a small product takes no workspace") {
  std::size_t const before = machine().live();
  Array const a = there(ones({2, 2}));
  Array const b = matmul(a, a);
  CHECK(machine().live() == before + 2);
  CHECK(b.to_vector<float>() == std::vector<float>(4, 2.f));
}

TEST_CASE("without kernels of their own ops run on the CPU") {
  NoKernels const none;
  Array x = drawn(make_shape(4, 3), 1), a = there(x);
  CHECK(called([](auto const& v) { return softmax<1>(transpose(v)) + 1.0; }, x) == 0);
  x.requires_grad(true), a.requires_grad(true);
  sum(square(slice<0, 1, 3>(a)[1]) * transpose(slice<0, 0, 3>(a))[1]).backward();
  sum(square(slice<0, 1, 3>(x)[1]) * transpose(slice<0, 0, 3>(x))[1]).backward();
  CHECK(array_equal(a.grad(), x.grad()));
  Array y = drawn(make_shape(4, 4), 2), b = there(y);
  for (Array* v : {&y, &b}) slice<1, 1, 2>(*v) += 1.0;
  CHECK(array_equal(b, y));
}

TEST_CASE("no memory is left behind, and what fails leaves values as they were") {
  std::size_t const before = machine().live();
  {
    Array const a = there(drawn(make_shape(300, 70), 1));
    Array b = softmax<1>(a);
    Array const kept = to(Device{}, b);
    machine().next_launch = cudaErrorInvalidValue;
    CHECK(tests::error_of([&] { exp(b); }).starts_with("cuda: exp [300, 70]: "));
    CHECK(array_equal(b, kept));
    CHECK(sum(exp(b)).item() > 0);
  }
  CHECK(machine().live() == before);
}

TEST_CASE("running products and recurrences called on a device, and their gradients") {
  Missed const missed;
  auto const gradient = [](int axis) {
    return [=](Array const& v) {
      Array leaf = v.detach();
      leaf.requires_grad(true);
      return gradients(sum(square(cumprod(leaf, axis))), {leaf})[0];
    };
  };
  for (DType const d : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::i64})
    for (int axis : {0, 1}) {
      INFO(d);
      Array const x = cast_to(round(drawn(make_shape(4, 9), 3) * 2.0), d);
      CHECK(called([=](Array const& v) { return cumprod(v, axis); }, x) == 0);
      if (is_floating(d)) CHECK(called(gradient(axis), x) <= (d == DType::f64 ? 1e-9 : 1e-2));
    }
  for (index_t which = 0; which < 4; ++which) {
    auto const recurrence = [=](Array const& a, Array const& b) {
      return bind<op::recurrence>(Attrs{{1, which}}, a, b);
    };
    for (Shape const& s : {make_shape(3, 1, 2), make_shape(2, 8, 300), make_shape(5, 29, 1)})
      CHECK(called(recurrence, drawn(s, 1) * 0.5, drawn(s, 2)) < 1e-5);
    Array const turned = transpose(drawn(make_shape(29, 5), 1, DType::f64));
    CHECK(called(recurrence, turned * 0.5, drawn(make_shape(5, 29), 2, DType::f64)) < 1e-12);
  }
  CHECK(Missed::names() == std::vector<std::string>());
}

}  // namespace tests::cuda_emulated_called
