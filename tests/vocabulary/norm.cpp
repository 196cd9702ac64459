// SPDX-License-Identifier: BSL-1.0
// Normalisations against plain loops, of Tensors against Arrays, compiled, at bad inputs, and their layers.
#include "ops/compiled.hpp"

#include <dfdx/nn/layer_norm.hpp>
#include <dfdx/nn/norm.hpp>
#include <dfdx/testing/gradcheck.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>

namespace tests::vocabulary_norm {

using namespace dfdx;
using Catch::Matchers::Message;

namespace {

double at(Array const& x, index_t i) { return read_real(dfdx::detail::packed(x).operand(), i); }
bool same(Array const& got, Array const& want, double tolerance = 1e-12) {
  return got.shape() == want.shape() && got.dtype() == want.dtype() &&
         testing::error_ratio(got, want, tolerance, tolerance) <= 1;
}

// x [N, C, S] with each of its elements brought to mean 0 and variance 1 over those of the same key.
template <class Key>
Array standardized(Array const& x, double eps, Key key) {
  Array y(Meta{DType::f64, x.shape()});
  index_t const channels = x.shape()[1], places = x.size() / x.shape()[0] / channels;
  auto const key_of = [&](index_t i) { return key(i / places / channels, i / places % channels); };
  for (index_t i = 0; i < x.size(); ++i) {
    double n = 0, mean = 0, var = 0;
    for (index_t j = 0; j < x.size(); ++j)
      if (key_of(j) == key_of(i)) n += 1, mean += at(x, j);
    mean /= n;
    for (index_t j = 0; j < x.size(); ++j)
      if (key_of(j) == key_of(i)) var += (at(x, j) - mean) * (at(x, j) - mean) / n;
    y.data<double>()[i] = (at(x, i) - mean) / std::sqrt(var + eps);
  }
  return y;
}

Array const x = randn({3, 4, 5}, Key{1}, DType::f64);
Array const w = uniform({4}, Key{2}, 0.5, 2, DType::f64), b = randn({4}, Key{3}, DType::f64);
Array lifted(Array const& v) { return reshape(v, {4, 1}); }

}  // namespace

TEST_CASE("normalisations by channels, groups and samples", "[vocabulary]") {
  Array const each = standardized(x, 0.1, [](index_t n, index_t c) { return n * 10 + c; });
  CHECK(same(instance_norm(x, 0.1), each));
  CHECK(same(instance_norm(x, w, 0.1), each * lifted(w)));
  CHECK(same(instance_norm(x, w, b, 0.1), each * lifted(w) + lifted(b)));
  Array const pairs = standardized(x, 1e-5, [](index_t n, index_t c) { return n * 10 + c / 2; });
  CHECK(same(group_norm(x, 2), pairs));
  CHECK(same(group_norm<2>(x, w), pairs * lifted(w)));
  CHECK(same(group_norm<2>(x, w, b), group_norm(x, 2, w, b)));
  CHECK(same(group_norm(x, 2, w, b), pairs * lifted(w) + lifted(b)));
  CHECK(same(group_norm(x, 4), instance_norm(x)));
  Array const samples = standardized(x, 1e-5, [](index_t n, index_t) { return n; });
  CHECK(same(layer_norm<4, 5>(x), samples));
  CHECK(same(layer_norm(x, {4, 5}), samples));
  CHECK(same(group_norm<1>(x), samples));
  Array const scale = uniform({4, 5}, Key{5}, 0.5, 2, DType::f64);
  CHECK(same(layer_norm(x, scale), samples * scale));
  CHECK(same(layer_norm(x, {4, 5}, scale, scale, 1e-5), samples * scale + scale));
  CHECK(same(rms_norm<4, 5>(x, 0.2), x / sqrt(mean(square(x), {1, 2}, true) + 0.2)));
  CHECK(same(rms_norm(x, scale, 0.2), rms_norm(x, {4, 5}, 0.2) * scale));
}

TEST_CASE("batch_norm and its running statistics", "[vocabulary]") {
  Array const mean_before = from<double>({1, 2, 3, 4}), var_before = from<double>({0.5, 1, 2, 4});
  Array const all = standardized(x, 1e-3, [](index_t, index_t c) { return c; });
  auto const [y, m, v] =
      batch_norm(x, mean_before, var_before, w, b, {.training = true, .momentum = 0.2, .eps = 1e-3});
  CHECK(same(y, all * lifted(w) + lifted(b)));
  CHECK(same(m, mean_before * 0.8 + mean(x, {0, 2}) * 0.2));
  CHECK(same(v, var_before * 0.8 + var(x, {0, 2}) * 0.2));
  auto const [u, m1, v1] = batch_norm(x, mean_before, var_before, w);
  CHECK(same(u, (x - lifted(mean_before)) / sqrt(lifted(var_before) + 1e-5) * lifted(w)));
  CHECK(same(m1, mean_before, 0));
  CHECK(same(v1, var_before, 0));
  Array const flat = reshape(permute(x, {0, 2, 1}), {15, 4});
  auto const [z, m2, v2] = batch_norm(flat, mean_before, var_before, {.training = true, .momentum = 0.2});
  CHECK(same(m2, m));
  CHECK(same(v2, v));
  CHECK(same(reshape(z, {3, 5, 4}),
             permute(standardized(x, 1e-5, [](index_t, index_t c) { return c; }), {0, 2, 1})));
}

TEST_CASE("local_response_norm", "[vocabulary]") {
  for (index_t size : {1, 2, 3, 5}) {
    Array const y = local_response_norm(x, size, {.alpha = 0.3, .beta = 0.6, .k = 1.5});
    for (index_t n = 0; n < 3; ++n)
      for (index_t c = 0; c < 4; ++c)
        for (index_t s = 0; s < 5; ++s) {
          double total = 0;
          for (index_t d = c - size / 2; d <= c + (size - 1) / 2; ++d)
            if (d >= 0 && d < 4) total += std::pow(at(x, (n * 4 + d) * 5 + s), 2);
          index_t const i = (n * 4 + c) * 5 + s;
          double const want = at(x, i) / std::pow(1.5 + 0.3 * total / static_cast<double>(size), 0.6);
          CHECK(std::fabs(at(y, i) - want) < 1e-12);
        }
  }
}

TEST_CASE("gradients of normalisations", "[vocabulary]") {
  auto const good = [](auto const& f, std::vector<Array> const& in) {
    auto const report = testing::gradcheck(f, in);
    INFO(report.text);
    CHECK(report.ok);
  };
  using V = std::span<Array const>;
  good([](V v) { return group_norm(v[0], 2, v[1], v[2]); }, {x, w, b});
  good([](V v) { return instance_norm(v[0], v[1], v[2]); }, {x, w, b});
  good([](V v) { return layer_norm<4, 5>(v[0]); }, {x});
  good([](V v) { return rms_norm<5>(v[0]); }, {x});
  good([](V v) { return local_response_norm(v[0], 3, {.alpha = 0.5}); }, {x});
  for (bool training : {true, false})
    good(
        [=](V v) {
          return std::get<0>(batch_norm(v[0], zeros({4}, DType::f64), ones({4}, DType::f64), v[1], v[2],
                                        {.training = training}));
        },
        {x, w, b});
}

TEST_CASE("normalisations of 16 bits are worked out in f32", "[vocabulary]") {
  // Squares of these overflow, and their mean has more digits than f16 holds.
  Array const big = cast<float16>(x * 3000.0 + 5000.0), exact = cast<double>(big);
  Array const y = layer_norm<5>(big), r = rms_norm<5>(big);
  CHECK(y.dtype() == DType::f16);
  CHECK(testing::error_ratio(y, layer_norm<5>(exact), 1e-3, 1e-4) <= 1);
  CHECK(testing::error_ratio(r, rms_norm<5>(exact), 1e-3, 1e-4) <= 1);
  auto const [z, m, v] = batch_norm(big, zeros({4}), ones({4}), {.training = true});
  CHECK(z.dtype() == DType::f16);
  CHECK(m.dtype() == DType::f32);
  CHECK(testing::error_ratio(m, mean(exact, {0, 2}) * 0.1, 1e-3, 1e-3) <= 1);
  Tensor<float16, 3, 4, 5> const t(big);
  CHECK(same(group_norm<2>(t), group_norm(big, 2)));
}

TEST_CASE("compiled normalisations", "[vocabulary]") {
  compiled::check_vjp(
      [](auto const& v, auto const& p, auto const& q, auto const& last) {
        return std::tuple(group_norm<2>(v, p, q), instance_norm(v, p), layer_norm(v, last, last),
                          rms_norm(v, last), rms_norm<4, 5>(v), layer_norm<5>(v), local_response_norm(v, 3));
      },
      randn<float, 3, 4, 5>(Key{1}), uniform<float, 4>(Key{2}, 0.5, 2), randn<float, 4>(Key{3}),
      uniform<float, 5>(Key{4}, 0.5, 2));
  constexpr auto batch = [](auto const& v, auto const& m, auto const& s, auto const& p) {
    auto const trained = batch_norm(v, m, s, p, p, {.training = true});
    return std::tuple(std::get<0>(trained), std::get<1>(trained), std::get<2>(trained),
                      std::get<0>(batch_norm(v, m, s, p)));
  };
  auto const p = uniform<double, 4>(Key{2}, 0.5, 2);
  compiled::check_vjp(batch, randn<double, 3, 4, 5>(Key{1}), p * 2.0, p, p);
  compiled::check(batch, randn<float, 6, 4>(Key{1}), uniform<float, 4>(Key{2}), uniform<float, 4>(Key{3}),
                  uniform<float, 4>(Key{4}));
  compiled::check([](auto const& v) { return std::tuple(group_norm<2>(v), rms_norm<3>(v)); },
                  randn<float16, 2, 4, 3>(Key{5}));
}

TEST_CASE("normalisations with parameters whose extent is learnt at run time", "[vocabulary]") {
  auto const x = randn<float, 2, 3>(Key{1});
  auto const w = randn<float, 3>(Key{2});
  auto const any = Tensor<float, dyn>(Array(w));
  CHECK(array_equal(layer_norm(x, any, any), layer_norm(x, w, w)));
  CHECK(array_equal(rms_norm(Tensor<float, dyn, 3>(Array(x)), any), rms_norm(x, w)));
  auto const f = [](auto const& a, auto const& b) { return layer_norm(a, b, b); };
  CHECK(allclose(compile(f)(x, any), layer_norm(x, w, w), 1e-5, 1e-6));
}

TEST_CASE("layers of normalisation", "[vocabulary]") {
  auto const layer = init<nn::BatchNorm2d<3>>();
  CHECK(leaf_count<nn::BatchNorm2d<3>> == 4);
  auto const image = randn<float, 4, 3, 2, 5>(Key{1});
  nn::BatchNorm2d<3> trained = layer;
  Tensor<float, 4, 3, 2, 5> const y = trained.train(image);
  Array const means = mean(Array(image), {0, 2, 3});
  CHECK(allclose(mean(Array(y), {0, 2, 3}), zeros({3}), 0, 1e-6));
  CHECK(same(trained.running_mean, means * 0.1, 1e-6));
  CHECK(same(trained.running_var, var(Array(image), {0, 2, 3}) * 0.1 + 0.9, 1e-6));
  CHECK(same(layer.running_var, ones({3}), 0));  // the layer it was copied from
  CHECK(same(layer(image), image / std::sqrt(1 + 1e-5), 1e-6));

  // On the tape: parameters have gradients, running statistics have none, and are no longer what they were.
  watch(trained);
  sum(square(trained.train(image))).backward();
  CHECK(!trained.weight.grad().empty());
  CHECK(trained.running_mean.grad().empty());
  CHECK(!trained.running_mean.requires_grad());
  CHECK(same(trained.running_mean.detach(), means * 0.19, 1e-6));

  // In a program: the model that it returns has moved.
  auto const step = compile([](nn::BatchNorm1d<4> model, Tensor<float, 6, 4> const& v) {
    auto const out = model.train(v);
    return std::tuple(sum(out * out), model);
  });
  auto const rows = randn<float, 6, 4>(Key{2});
  auto const [loss, next] = step(init<nn::BatchNorm1d<4>>(), rows);
  CHECK(std::fabs(loss.item() - 24) < 1e-2);
  CHECK(same(next.running_mean, mean(Array(rows), 0) * 0.1, 1e-6));

  auto const channels = randn<float, 2, 4, 3>(Key{3});
  CHECK(same(init<nn::GroupNorm<2, 4>>()(channels), group_norm(Array(channels), 2), 1e-6));
  CHECK(same(init<nn::RMSNorm<3>>()(channels), rms_norm(Array(channels), {3}), 1e-6));
  CHECK(same(init<nn::LayerNorm<3>>()(channels), layer_norm(Array(channels), {3}), 1e-6));

  // Other constants of the type, in a program too.
  auto const in_program = [&]<class M>(M const& model) {
    return compile([](M const& m, Tensor<float, 2, 4, 3> const& v) { return m(v); })(model, channels);
  };
  Array const plain(channels);
  CHECK(same(in_program(init<nn::LayerNorm<3, float, 0.5>>()), layer_norm(plain, ones({3}), zeros({3}), 0.5),
             1e-6));
  CHECK(same(in_program(init<nn::RMSNorm<3, float, 0.5>>()), rms_norm(plain, ones({3}), 0.5), 1e-6));
  CHECK(same(in_program(init<nn::GroupNorm<2, 4, float, 0.5>>()), group_norm(plain, 2, 0.5), 1e-6));
  CHECK(same(in_program(nn::InstanceNorm1d<4, false, float, 0.5>()), instance_norm(plain, 0.5), 1e-6));
  CHECK(same(in_program(init<nn::InstanceNorm1d<4, true, float, 0.5>>()), instance_norm(plain, 0.5), 1e-6));
  using Slow = nn::BatchNorm1d<4, float, 0.5, 0.01>;
  CHECK(same(in_program(init<Slow>()), plain * (1 / std::sqrt(1.5)), 1e-6));
  auto const [slow_loss, slow] = compile([](Slow model, Tensor<float, 6, 4> const& v) {
    auto const out = model.train(v);
    return std::tuple(sum(out), model);
  })(init<Slow>(), rows);
  CHECK(same(slow.running_mean, mean(Array(rows), 0) * 0.01, 1e-6));
}

TEST_CASE("normalisations refuse what does not fit", "[vocabulary]") {
  Array const three = ones({3}, DType::f64), four = ones({4}, DType::f64);
  auto const says = [](auto const& f, char const* text) { CHECK_THROWS_MATCHES(f(), error, Message(text)); };
  says([&] { return layer_norm(x, three); }, "layer_norm: [3] are not the last axes of [3, 4, 5]");
  says([&] { return layer_norm(x, ones({5}, DType::f64), ones({4, 5}, DType::f64)); },
       "layer_norm: [4, 5] are not the last axes of [3, 4, 5]");
  says([&] { return layer_norm(x, {4, 5}, three); },
       "layer_norm: parameters of shape [4, 5] required, got [3]");
  says([&] { return rms_norm(x, {4}); }, "rms_norm: [4] are not the last axes of [3, 4, 5]");
  says([&] { return rms_norm(ones({3}, DType::i32), {3}); }, "rms_norm: floating dtype required, got i32");
  says([&] { return group_norm(x, 3); }, "group_norm: the channels of [3, 4, 5] do not make 3 groups");
  says([&] { return group_norm(x, 2, three); },
       "group_norm: a parameter of shape [3] does not fit the channels of [3, 4, 5]");
  says([&] { return instance_norm(ones({3, 4})); },
       "instance_norm: a batch of channels with more axes required, got [3, 4]");
  says([&] { return batch_norm(ones({4}), four, four); },
       "batch_norm: a batch of channels required, got [4]");
  says([&] { return batch_norm(ones({1, 4}), four, four, {.training = true}); },
       "batch_norm: more than one value for each channel required to train, got [1, 4]");
  says([&] { return init<nn::BatchNorm2d<4>>()(x); },
       "batch_norm: a batch of channels with more axes required, got [3, 4, 5]");
  says([&] { return local_response_norm(x, 0); }, "local_response_norm: a window of 0 channels");
  says([&] { return local_response_norm(Tensor<double, 3, 4, 5>(x), -1); },
       "local_response_norm: a window of -1 channels");
}

}  // namespace tests::vocabulary_norm
