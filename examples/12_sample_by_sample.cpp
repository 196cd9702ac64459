// SPDX-License-Identifier: BSL-1.0
// Lesson 12: one sample after another, as audio, sensors and controllers need it. A model with a memory becomes a
// function that is called once for each sample: the memory is changed in place, nothing is allocated, and what depends
// on the weights alone has been computed before the first call.
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <vector>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

// A window of the last 15 samples goes through a convolution, its result through a recurrent layer.
struct Amplifier {
  nn::Conv1d<1, 16, 15> filter;
  nn::GRU<16, 16> memory;
  nn::Linear<16, 1> out;
  DFDX_FIELDS(filter, memory, out)
};
struct Memory {
  Tensor<float, 1, 1, 15> window;
  Tensor<float, 1, 16> hidden;
  DFDX_FIELDS(window, hidden)
};
Memory silence() { return {zeros<float, 1, 1, 15>(), zeros<float, 1, 16>()}; }

// The state first; the result, and the state as it is to be.
constexpr auto amplify = [](Memory const& was, Amplifier const& m, Tensor<float, 1, 1, 1> const& sample) {
  Memory now;
  now.window = concat<2>(slice<2, 1, 15>(was.window), sample);
  auto const heard = tanh(reshape<1, 16>(m.filter(now.window)));
  auto const& g = m.memory;
  now.hidden = gru_cell(heard, was.hidden, g.weight_ih_l0, g.weight_hh_l0, g.bias_ih_l0, g.bias_hh_l0);
  return std::pair(m.out(now.hidden), now);
};

int main() {
  auto const model = init<Amplifier>(1);
  std::vector<float> samples(48000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = std::sin(0.0576f * static_cast<float>(i));

  // stateful(f) changes the state that it is given; f itself does not, and is what the result is checked against below.
  // [readme:tied]
  Memory state = silence();
  auto sample = zeros<float, 1, 1, 1>();
  auto step =
      stateful(amplify).bind(state, fixed(model), sample);  // reads `sample`, writes `state`: no allocation
  // [/readme:tied]
  std::vector<float> heard(samples.size());
  auto const start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    sample.data()[0] = samples[i];
    heard[i] = step().data()[0];
  }
  std::chrono::duration<double> const took = std::chrono::steady_clock::now() - start;
  std::printf("a second of sound at 48 kHz in %.1f ms, %.0f ns for each sample\n", took.count() * 1e3,
              took.count() * 1e9 / static_cast<double>(samples.size()));

  // The same function, call by call on the tape.
  Memory now = silence();
  for (std::size_t i = 0; i < 100; ++i) {
    sample.data()[0] = samples[i];
    auto const [y, next] = amplify(now, model, sample);
    now = next;
    assert(std::fabs(y.data()[0] - heard[i]) < 1e-5f);
  }
}
