// SPDX-License-Identifier: BSL-1.0
// Recurrent layers of several layers and directions: against single layers in a row, and their names.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::nn_recurrent {

using namespace dfdx;

namespace {

constexpr std::size_t T = 5, B = 2, I = 3, H = 4;
constexpr nn::Recurrent deep{.layers = 3, .dropout = 0.5}, both{.layers = 2, .bidirectional = true};

double difference(Array const& a, Array const& b) { return max(abs(a - b)).item(); }

template <class M>
std::vector<std::string> names(M const& m) {
  std::vector<std::string> r;
  visit_state(m, [&](std::string const& name, auto const&) { r.push_back(name); });
  return r;
}

}  // namespace

TEST_CASE("recurrent layers have PyTorch's names", "[nn]") {
  CHECK(names(nn::GRU<I, H, float, both>{}) ==
        std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                 "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                 "bias_hh_l0_reverse", "weight_ih_l1", "weight_hh_l1", "bias_ih_l1",
                                 "bias_hh_l1", "weight_ih_l1_reverse", "weight_hh_l1_reverse",
                                 "bias_ih_l1_reverse", "bias_hh_l1_reverse"});
  CHECK(names(nn::RNN<I, H, float, nn::Recurrent{.layers = 12}>{})[44] == "weight_ih_l11");
  CHECK(names(nn::RNN<I, H>{}) ==
        names(nn::RNN<I, H, float, nn::Recurrent{.bidirectional = false, .dropout = 0.1}>{}));
  auto const layer = init<nn::LSTM<I, H, float, both>>(1);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(std::get<0>(std::get<2>(layer.cells)))>,
                               Tensor<float, 4 * H, 2 * H>>);
  visit(layer, [](Array const& w) { CHECK((max(abs(w)).item() <= 0.5 && max(abs(w)).item() > 0.25)); });
}

TEST_CASE("several layers are layers in a row", "[nn]") {
  auto const x = randn<double, T, B, I>(Key{1});
  auto const h = randn<double, 3, B, H>(Key{2}), c = randn<double, 3, B, H>(Key{3});
  auto const layer = init<nn::LSTM<I, H, double, deep>>(4);
  Array y = x;
  std::vector<Array> last_h, last_c;
  std::size_t k = 0;
  std::vector<Array> w;
  visit(layer, [&](Array const& leaf) { w.push_back(leaf); });
  for (index_t l = 0; l < 3; ++l, k += 4) {
    auto const [out, hn, cn] = lstm(y, select(h, 0, l), select(c, 0, l), w[k], w[k + 1], w[k + 2], w[k + 3]);
    y = out;
    last_h.push_back(unsqueeze(hn, 0));
    last_c.push_back(unsqueeze(cn, 0));
  }
  auto const [out, hn, cn] = layer(x, h, c);
  static_assert(std::is_same_v<decltype(out), Tensor<double, T, B, H> const>);
  static_assert(std::is_same_v<decltype(hn), Tensor<double, 3, B, H> const>);
  CHECK(array_equal(out, y));
  CHECK(array_equal(hn, concat(std::span<Array const>(last_h), 0)));
  CHECK(array_equal(cn, concat(std::span<Array const>(last_c), 0)));
  auto const compiled = compile([](auto const& l, auto const& v, auto const& a, auto const& b) {
    return std::get<0>(l(v, a, b));
  })(layer, x, h, c);
  CHECK(difference(compiled, y) < 1e-12);

  auto const trained = std::get<0>(layer.train(Key{1}, x, h, c));
  CHECK(difference(trained, y) > 1e-3);
  CHECK(array_equal(trained, std::get<0>(layer.train(Key{1}, x, h, c))));
  // Nothing is dropped before the first layer and after the last.
  auto const alone = init<nn::LSTM<I, H, double, nn::Recurrent{.dropout = 0.5}>>(4);
  auto const one = randn<double, 1, B, H>(Key{2});
  CHECK(array_equal(std::get<0>(alone.train(Key{1}, x, one, one)), std::get<0>(alone(x, one, one))));
}

TEST_CASE("the second direction reads from the end", "[nn]") {
  auto const x = randn<double, T, B, I>(Key{1});
  auto const h = randn<double, 4, B, H>(Key{2});
  auto const layer = init<nn::GRU<I, H, double, both>>(4);
  std::vector<Array> w;
  visit(layer, [&](Array const& leaf) { w.push_back(leaf); });
  auto const run = [&](Array const& in, index_t cell) {
    std::size_t const k = 4 * static_cast<std::size_t>(cell);
    return gru(in, select(h, 0, cell), w[k], w[k + 1], w[k + 2], w[k + 3]);
  };
  Array y = x;
  std::vector<Array> last;
  for (index_t l = 0; l < 2; ++l) {
    auto const [ahead, ha] = run(y, 2 * l);
    auto const [back, hb] = run(flip(y, {0}), 2 * l + 1);
    Array const parts[] = {ahead, flip(back, {0})};
    y = concat(std::span<Array const>(parts), 2);
    last.push_back(unsqueeze(ha, 0));
    last.push_back(unsqueeze(hb, 0));
  }
  auto const [out, hn] = layer(x, h);
  static_assert(std::is_same_v<decltype(out), Tensor<double, T, B, 2 * H> const>);
  CHECK(array_equal(out, y));
  CHECK(array_equal(hn, concat(std::span<Array const>(last), 0)));
}

TEST_CASE("states begin with zeros if none are given", "[nn]") {
  auto const x = randn<float, T, B, I>(Key{1});
  auto const check = [&](auto const& layer, auto const&... none) {
    auto const [y, last] = [&] {
      auto const r = layer(x, none...);
      return std::pair(std::get<0>(r), std::get<1>(r));
    }();
    CHECK(max(abs(y)).item() > 0.01);
    auto const r = layer(x);
    static_assert(std::is_same_v<decltype(r), decltype(layer(x, none...)) const>);
    CHECK((array_equal(std::get<0>(r), y) && array_equal(std::get<1>(r), last)));
    CHECK(array_equal(std::get<0>(layer(Array(x))), y));
    auto const loss = [](auto const& l, auto const& v) { return mean(square(std::get<0>(l(v)))); };
    CHECK(std::fabs(compile(loss)(layer, x).item() - mean(square(y)).item()) < 1e-6);
  };
  auto const one = zeros<float, B, H>();
  auto const four = zeros<float, 4, B, H>();
  check(init<nn::RNN<I, H>>(2), one);
  check(init<nn::GRU<I, H>>(2), one);
  check(init<nn::LSTM<I, H>>(2), one, one);
  check(init<nn::GRU<I, H, float, both>>(2), four);
  check(init<nn::LSTM<I, H, float, both>>(2), four, four);
  auto const layer = init<nn::LSTM<I, H, float, nn::Recurrent{.layers = 2, .dropout = 0.5}>>(2);
  auto const two = zeros<float, 2, B, H>();
  CHECK(array_equal(std::get<0>(layer.train(Key{3}, x)), std::get<0>(layer.train(Key{3}, x, two, two))));
}

TEST_CASE("cells are one step of the layers", "[nn]") {
  auto const x = randn<float, 1, 2, 3>(Key{1});
  auto const h = randn<float, 2, 4>(Key{2}), c = randn<float, 2, 4>(Key{3});
  auto const now = select<0, 0>(x);
  auto const weights_of = [](auto const& layer, auto cell) {
    cell.weight_ih = layer.weight_ih_l0, cell.weight_hh = layer.weight_hh_l0;
    cell.bias_ih = layer.bias_ih_l0, cell.bias_hh = layer.bias_hh_l0;
    return cell;
  };
  auto const rnn = init<nn::RNN<3, 4>>(1);
  auto const gru = init<nn::GRU<3, 4>>(2);
  auto const lstm = init<nn::LSTM<3, 4>>(3);
  auto const rnn_cell = weights_of(rnn, nn::RNNCell<3, 4>{});
  auto const gru_cell = weights_of(gru, nn::GRUCell<3, 4>{});
  auto const lstm_cell = weights_of(lstm, nn::LSTMCell<3, 4>{});
  CHECK(allclose(rnn_cell(now, h), std::get<1>(rnn(x, h)), 1e-6, 1e-7));
  CHECK(allclose(gru_cell(now, h), std::get<1>(gru(x, h)), 1e-6, 1e-7));
  auto const [next, memory] = lstm_cell(now, h, c);
  CHECK(allclose(next, std::get<1>(lstm(x, h, c)), 1e-6, 1e-7));
  CHECK(allclose(memory, std::get<2>(lstm(x, h, c)), 1e-6, 1e-7));
  CHECK(allclose(gru_cell(now), std::get<1>(gru(x)), 1e-6, 1e-7));
  CHECK(allclose(std::get<1>(lstm_cell(now)), std::get<2>(lstm(x)), 1e-6, 1e-7));
  auto const fresh = init<nn::GRUCell<3, 4>>(4);
  CHECK(max(abs(fresh.weight_hh)).item() <= 0.5f);
  CHECK(max(abs(fresh.bias_ih)).item() > 0.1f);
}

}  // namespace tests::nn_recurrent
