// SPDX-License-Identifier: BSL-1.0
// Layers of static sizes on one sample after another, as audio is processed: against RTNeural (-DDFDX_BENCH_RTNEURAL),
// or, where it is missing, the times published for it on one Zen 4 core.
#include <cstdlib>
#include <deque>
#include <vector>

#include <dfdx/dfdx.hpp>

#include "../row.hpp"
#if defined(DFDX_BENCH_RTNEURAL)
#include "rtneural.hpp"
#endif

namespace {

using namespace dfdx;

// From the state and a sample to the output and the next state.
constexpr auto gru_step = [](auto const& h, auto const& m, auto const& x) {
  auto const next = gru_cell(x, h, m.weight_ih_l0, m.weight_hh_l0, m.bias_ih_l0, m.bias_hh_l0);
  return std::pair(next, next);
};
constexpr auto lstm_step = [](auto const& s, auto const& m, auto const& x) {
  auto const [h, c] =
      lstm_cell(x, s.first, s.second, m.weight_ih_l0, m.weight_hh_l0, m.bias_ih_l0, m.bias_hh_l0);
  return std::pair(h, std::pair(h, c));
};
// The last samples are a window that moves on by one.
template <std::size_t N, std::size_t K>
struct ConvStep {
  constexpr auto operator()(auto const& window, auto const& m, auto const& x) const {
    auto const next = concat<2>(slice<2, 1, K>(window), x);
    return std::pair(m(next), next);
  }
};

template <std::size_t N, class Ours>
void compare(char const* name, double published, [[maybe_unused]] auto const& weights, Ours ours) {
  bench::Row row{.bench = "inference", .name = std::string(name) + " " + std::to_string(N)};
  std::vector<std::vector<float>> samples(16, std::vector<float>(N));
  unsigned state = 7;
  for (auto& s : samples)
    for (float& x : s) x = static_cast<float>((state = state * 1664525u + 1013904223u) >> 8) * 0x1p-23f - 1;
  std::size_t turn = 0, its_turn = 0;
  auto const mine = [&] { return ours(samples[turn++ % 16].data()); };
  int const rounds = 25;
  std::vector<double> a, b;
#if defined(DFDX_BENCH_RTNEURAL)
  auto const layer = rtneural_layers::make(name, N, weights);
  auto const its = [&] { return layer->step(samples[its_turn++ % 16].data()); };
  row.error = 0;
  row.peer = "RTNeural";
  for (int i = 0; i < 200; ++i) {
    float const *const y = mine(), *const z = its();
    for (std::size_t k = 0; k < N; ++k)
      row.error = std::max(row.error, static_cast<double>(std::abs(y[k] - z[k])));
  }
  if (!(row.error < 1e-3)) {
    std::fprintf(stderr, "inference: %s is off by %g\n", row.name.c_str(), row.error);
    std::exit(1);
  }
  long const its_calls = bench::calls_for(its, 2e-3);
#else
  static_cast<void>(its_turn);
  row.peer = "RTNeural, published";
  row.peer_ms = published * 1e-6;
  row.note = "the peer is not here: its time is that published for a Zen 4 core";
#endif
  long const calls = bench::calls_for(mine, 2e-3);
  for (int round = 0; round < rounds; ++round) {
    a.push_back(bench::time_of(mine, calls));
#if defined(DFDX_BENCH_RTNEURAL)
    b.push_back(bench::time_of(its, its_calls));
#endif
  }
  row.ours_ms = bench::best(a) * 1e3;
  if (!b.empty()) {
    row.peer_ms = bench::best(b) * 1e3;
    char note[80];
    std::snprintf(note, sizeof note, "medians %.4g and %.4g ns; published %g ns", bench::median(a) * 1e9,
                  bench::median(b) * 1e9, published);
    row.note = note;
  }
  bench::print(row);
}

#if defined(DFDX_BENCH_RTNEURAL)
using rtneural_layers::Weights;
#else
struct Weights {
  float const *input, *state = nullptr, *bias, *state_bias = nullptr;
};
#endif
Weights weights_of(auto const& m) {
  if constexpr (requires { m.weight_hh_l0; })
    return {m.weight_ih_l0.data(), m.weight_hh_l0.data(), m.bias_ih_l0.data(), m.bias_hh_l0.data()};
  else return {m.weight.data(), nullptr, m.bias.data(), nullptr};
}

template <std::size_t N>
void dense(double published) {
  auto const model = init<nn::Linear<N, N>>(1);
  auto x = zeros<float, N>();
  auto run = compile([](auto const& m, auto const& v) { return m(v); }).bind(fixed(model), x);
  compare<N>("dense", published, weights_of(model), [&](float const* sample) {
    std::copy_n(sample, N, x.data());
    return run().data();
  });
}

// A layer with a state that it changes in place.
template <std::size_t N, class Model, class State, class F>
void with_state(char const* name, double published, State state, auto x, F f) {
  auto const model = init<Model>(1);
  auto step = stateful(f).bind(state, fixed(model), x);
  compare<N>(name, published, weights_of(model), [&](float const* sample) {
    std::copy_n(sample, N, x.data());
    return step().data();
  });
}

template <std::size_t N, std::size_t K>
void all(double const (&published)[4]) {
  dense<N>(published[0]);
  auto const h = [] { return zeros<float, 1, N>(); };
  with_state<N, nn::GRU<N, N>>("gru", published[1], h(), h(), gru_step);
  with_state<N, nn::LSTM<N, N>>("lstm", published[2], std::pair(h(), h()), h(), lstm_step);
  with_state<N, nn::Conv1d<N, N, K>>("conv1d", published[3], zeros<float, 1, N, K>(), zeros<float, 1, N, 1>(),
                                     ConvStep<N, K>{});
}

}  // namespace

int main() {
  all<16, 15>({9.1, 99, 137, 168});
  all<64, 63>({149, 1070, 1491, 15121});
}
