// SPDX-License-Identifier: BSL-1.0
// ADBench's LSTM compiled, its steps and its layers as loops of the program, against the hand-written gradient.
#include <adbench.hpp>

namespace tests::program_adbench_lstm {

namespace {

using namespace tests::adbench;

// Layers with diagonal weights [L, 2, 4, B] over a sequence of characters as bits [C, B]; the loss of each step is
// against the next character. The state [L, 2, B] is what is shown and what is kept.
template <std::size_t L, std::size_t C, std::size_t B>
constexpr auto lstm(Tensor<double, L, 2, 4, B> const& main, Tensor<double, 3, B> const& extra,
                    Tensor<double, L, 2, B> const& first, Tensor<double, C, B> const& sequence) {
  auto const layer = [](auto const& x, auto const& part) {
    auto const& [weights, state] = part;
    auto const w = select<0, 0>(weights), u = select<0, 1>(weights);
    auto const shown = select<0, 0>(state), kept = select<0, 1>(state);
    auto const forget = sigmoid(x * select<0, 0>(w) + select<0, 0>(u));
    auto const in = sigmoid(shown * select<0, 1>(w) + select<0, 1>(u));
    auto const out = sigmoid(x * select<0, 2>(w) + select<0, 2>(u));
    auto const change = tanh(shown * select<0, 3>(w) + select<0, 3>(u));
    auto const keep = kept * forget + in * change;
    auto const show = out * tanh(keep);
    return std::pair(show, stack<0>(show, keep));
  };
  auto const step = [&](auto const& state, auto const& characters) {
    auto const& [now, next] = characters;
    auto const [x, states] = scan(layer, now * select<0, 0>(extra), std::pair(main, state));
    auto const y = x * select<0, 1>(extra) + select<0, 2>(extra);
    return std::pair(states, sum(next * (y - log(sum(exp(y)) + 2.0))));
  };
  auto const [last, losses] =
      scan(step, first, std::pair(slice<0, 0, C - 1>(sequence), slice<0, 1, C>(sequence)));
  return -sum(losses) / static_cast<double>((C - 1) * B);
}

// Whether the problem has these sizes; if so, it has been solved.
template <std::size_t L, std::size_t C, std::size_t B>
bool solved(std::string const& name, Lstm const& p) {
  if (p.layers != L || p.steps != C || p.bits != B) return false;
  constexpr auto f = [](auto const&... x) { return lstm<L, C, B>(x...); };
  auto const [loss, gradient] = value_and_grad(f, wrt<0, 1>)(
      Tensor<double, L, 2, 4, B>(p.main.reshape({L, 2, 4, B})), Tensor<double, 3, B>(p.extra),
      Tensor<double, L, 2, B>(p.state.reshape({L, 2, B})), Tensor<double, C, B>(p.sequence));
  auto const& [main, extra] = gradient;
  std::vector<double> all;
  append(all, main);
  append(all, extra);
  check(loss.item(), all, expected(name));
  return true;
}

}  // namespace

TEST_CASE("ADBench: LSTM as a scan, compiled", "[program]") {
  int count = 0;
  for (std::string const& name : problems("lstm")) {
    INFO(name);
    Lstm const p(name);
    // The sizes that ADBench has.
    if (solved<2, 1024, 14>(name, p) || solved<4, 1024, 14>(name, p) || solved<2, 4096, 14>(name, p) ||
        solved<4, 4096, 14>(name, p))
      ++count;
    else
      WARN(name << " left out: no program for " << p.layers << " layers, " << p.steps << " characters of "
                << p.bits << " bits");
  }
  if (count == 0) SKIP("no ADBench LSTM of 2 or 4 layers and 1024 or 4096 characters of 14 bits");
}

}  // namespace tests::program_adbench_lstm
