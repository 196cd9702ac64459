// SPDX-License-Identifier: BSL-1.0
// Recurrent cells against plain loops, layers against their cells, compiled, on the tape, and at bad inputs.
#include "ops/compiled.hpp"

#include <dfdx/nn/recurrent.hpp>
#include <dfdx/tape/backward.hpp>

#include <catch2/matchers/catch_matchers_exception.hpp>

namespace tests::vocabulary_recurrent {

using namespace dfdx;
using Catch::Matchers::Message;

namespace {

constexpr std::size_t steps = 3, batch = 2, inputs = 4, size = 5;

struct Case {
  Array x = randn({steps, batch, inputs}, Key{1}, DType::f64), h = randn({batch, size}, Key{2}, DType::f64),
        c = randn({batch, size}, Key{3}, DType::f64);
  Array w_ih, w_hh, b_ih, b_hh;
  explicit Case(index_t gates)
      : w_ih(randn({gates * 5, 4}, Key{4}, DType::f64)),
        w_hh(randn({gates * 5, 5}, Key{5}, DType::f64)),
        b_ih(randn({gates * 5}, Key{6}, DType::f64)),
        b_hh(randn({gates * 5}, Key{7}, DType::f64)) {}
  Array first() const { return select(x, 0, 0); }
  // W x + b for gate g, state j of sample n.
  double from_input(index_t n, index_t row) const { return sum_of(first(), n, w_ih, b_ih, row); }
  double from_state(index_t n, index_t row) const { return sum_of(h, n, w_hh, b_hh, row); }

 private:
  static double sum_of(Array const& v, index_t n, Array const& w, Array const& b, index_t row) {
    double r = b.data<double>()[row];
    index_t const k = w.shape()[1];
    for (index_t i = 0; i < k; ++i) r += w.data<double>()[row * k + i] * v.data<double>()[n * k + i];
    return r;
  }
};
double logistic(double v) { return 1 / (1 + std::exp(-v)); }
bool same(Array const& a, Array const& b) {
  return a.shape() == b.shape() && testing::error_ratio(a, b, 1e-12, 1e-12) <= 1;
}

}  // namespace

TEST_CASE("recurrent cells by the definition", "[vocabulary]") {
  Case const r(1), g(3), l(4);
  Array const rnn = rnn_tanh_cell(r.first(), r.h, r.w_ih, r.w_hh, r.b_ih, r.b_hh);
  Array const gated = gru_cell(g.first(), g.h, g.w_ih, g.w_hh, g.b_ih, g.b_hh);
  auto const [h, c] = lstm_cell(l.first(), l.h, l.c, l.w_ih, l.w_hh, l.b_ih, l.b_hh);
  for (index_t n = 0; n < 2; ++n)
    for (index_t j = 0; j < 5; ++j) {
      index_t const at = n * 5 + j;
      CHECK(std::fabs(rnn.data<double>()[at] - std::tanh(r.from_input(n, j) + r.from_state(n, j))) < 1e-12);
      double const reset = logistic(g.from_input(n, j) + g.from_state(n, j));
      double const keep = logistic(g.from_input(n, 5 + j) + g.from_state(n, 5 + j));
      double const fresh = std::tanh(g.from_input(n, 10 + j) + reset * g.from_state(n, 10 + j));
      CHECK(std::fabs(gated.data<double>()[at] - ((1 - keep) * fresh + keep * g.h.data<double>()[at])) <
            1e-12);
      auto const gate = [&](index_t k) { return l.from_input(n, 5 * k + j) + l.from_state(n, 5 * k + j); };
      double const memory =
          logistic(gate(1)) * l.c.data<double>()[at] + logistic(gate(0)) * std::tanh(gate(2));
      CHECK(std::fabs(c.data<double>()[at] - memory) < 1e-12);
      CHECK(std::fabs(h.data<double>()[at] - logistic(gate(3)) * std::tanh(memory)) < 1e-12);
    }
}

TEST_CASE("a recurrent layer is its cell, step by step, of Tensors as of Arrays", "[vocabulary]") {
  Case const l(4), g(3);
  Array h = l.h, c = l.c, state = g.h;
  std::vector<Array> hs, states;
  for (index_t t = 0; t < 3; ++t) {
    std::tie(h, c) = lstm_cell(select(l.x, 0, t), h, c, l.w_ih, l.w_hh, l.b_ih, l.b_hh);
    state = gru_cell(select(g.x, 0, t), state, g.w_ih, g.w_hh, g.b_ih, g.b_hh);
    hs.push_back(h);
    states.push_back(state);
  }
  auto const [y, h_last, c_last] = lstm(l.x, l.h, l.c, l.w_ih, l.w_hh, l.b_ih, l.b_hh);
  CHECK(same(y, stack(hs)));
  CHECK(same(h_last, h));
  CHECK(same(c_last, c));
  auto const [z, s_last] = gru(g.x, g.h, g.w_ih, g.w_hh, g.b_ih, g.b_hh);
  CHECK(same(z, stack(states)));
  CHECK(same(s_last, state));

  Tensor<double, steps, batch, inputs> const x(l.x);
  nn::LSTM<inputs, size, double> layer;
  layer.weight_ih_l0 = Tensor<double, 20, 4>(l.w_ih);
  layer.weight_hh_l0 = Tensor<double, 20, 5>(l.w_hh);
  layer.bias_ih_l0 = Tensor<double, 20>(l.b_ih);
  layer.bias_hh_l0 = Tensor<double, 20>(l.b_hh);
  watch(layer);
  std::tuple<Tensor<double, steps, batch, size>, Tensor<double, batch, size>,
             Tensor<double, batch, size>> const typed_results =
      layer(x, Tensor<double, batch, size>(l.h), Tensor<double, batch, size>(l.c));
  CHECK(same(std::get<0>(typed_results).detach(), y));
  // On the tape through all steps.
  sum(std::get<0>(typed_results)).backward();
  Array w = l.w_hh.detach();
  w.requires_grad(true);
  sum(std::get<0>(lstm(l.x, l.h, l.c, l.w_ih, w, l.b_ih, l.b_hh))).backward();
  CHECK(same(layer.weight_hh_l0.grad(), w.grad()));
  CHECK(!same(w.grad(), zeros({20, 5}, DType::f64)));
}

TEST_CASE("compiled recurrent layers", "[vocabulary]") {
  auto const x = randn<float, steps, batch, inputs>(Key{1});
  auto const h = randn<float, batch, size>(Key{2}), c = randn<float, batch, size>(Key{3});
  compiled::check_vjp([](nn::LSTM<inputs, size> const& layer, auto const& v, auto const& a,
                         auto const& b) { return layer(v, a, b); },
                      init<nn::LSTM<inputs, size>>(1), x, h, c);
  compiled::check(
      [](nn::GRU<inputs, size> const& layer, auto const& v, auto const& a) { return layer(v, a); },
      init<nn::GRU<inputs, size>>(2), x, h);
  compiled::check_vjp(
      [](nn::RNN<inputs, size> const& layer, auto const& v, auto const& a) { return layer(v, a); },
      init<nn::RNN<inputs, size>>(3), x, h);
  compiled::check_vjp(
      [](nn::GRU<inputs, size, double> const& l, auto const& v, auto const& a) {
        return gru_cell(v, a, l.weight_ih_l0, l.weight_hh_l0, l.bias_ih_l0, l.bias_hh_l0);
      },
      init<nn::GRU<inputs, size, double>>(2), randn<double, batch, inputs>(Key{1}),
      randn<double, batch, size>(Key{2}));
}

TEST_CASE("recurrent layers refuse what does not fit", "[vocabulary]") {
  auto const says = [](auto const& f, char const* text) { CHECK_THROWS_MATCHES(f(), error, Message(text)); };
  Case const l(4), g(3);
  says([&] { return lstm(l.x, l.h, l.c, g.w_ih, l.w_hh, l.b_ih, l.b_hh); },
       "lstm: w_ih of shape [20, 4] required, got [15, 4]");
  says([&] { return gru(g.x, g.h, g.w_ih, g.w_hh, g.b_ih, l.b_hh); },
       "gru: b_hh of shape [15] required, got [20]");
  says([&] { return gru(g.x, zeros({3, 5}, DType::f64), g.w_ih, g.w_hh, g.b_ih, g.b_hh); },
       "gru: states [3, 5] do not fit inputs [3, 2, 4]");
  says([&] { return lstm(l.x, l.h, zeros({2, 4}, DType::f64), l.w_ih, l.w_hh, l.b_ih, l.b_hh); },
       "lstm: states [2, 4] do not fit inputs [3, 2, 4]");
  says([&] { return gru(slice(g.x, 0, 0, 0), g.h, g.w_ih, g.w_hh, g.b_ih, g.b_hh); },
       "gru: at least one step required, got [0, 2, 4]");
  says([&] { return gru_cell(cast<float>(g.first()), g.h, g.w_ih, g.w_hh, g.b_ih, g.b_hh); },
       "gru: one dtype required, got f32 and f64");
}

}  // namespace tests::vocabulary_recurrent
