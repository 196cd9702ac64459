// SPDX-License-Identifier: BSL-1.0
// Layers of RTNeural of sizes that it knows when compiled, with xsimd.
#include "rtneural.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#define RTNEURAL_USE_XSIMD 1
#define RTNEURAL_DEFAULT_ALIGNMENT 64
#include <RTNeural/RTNeural.h>

namespace rtneural_layers {

namespace {

using Matrix = std::vector<std::vector<float>>;

// PyTorch stacks the gates r, z, n and i, f, g, o; RTNeural has z, r, c and i, f, c, o, each weight by its input.
Matrix by_input(float const* w, int size, std::vector<int> const& gates) {
  Matrix m(static_cast<std::size_t>(size));
  for (int i = 0; i < size; ++i)
    for (int const g : gates)
      for (int o = 0; o < size; ++o) m[static_cast<std::size_t>(i)].push_back(w[(g * size + o) * size + i]);
  return m;
}
std::vector<float> in_order(float const* b, int size, std::vector<int> const& gates) {
  std::vector<float> v;
  for (int const g : gates) v.insert(v.end(), b + g * size, b + (g + 1) * size);
  return v;
}

template <class L, int N>
struct Of : Layer {
  RTNeural::ModelT<float, N, N, L> model;
  alignas(64) float input[N] = {};
  L& layer() { return model.template get<0>(); }
  float const* step(float const* x) override {
    std::copy(x, x + N, input);
    model.forward(input);
    return model.getOutputs();
  }
};

template <int N, int Kernel>
std::unique_ptr<Layer> make_of(std::string const& name, Weights const& w) {
  if (name == "dense") {
    auto l = std::make_unique<Of<RTNeural::DenseT<float, N, N>, N>>();
    Matrix m;
    for (int o = 0; o < N; ++o) m.emplace_back(w.input + o * N, w.input + (o + 1) * N);
    l->layer().setWeights(m);
    l->layer().setBias(w.bias);
    l->model.reset();
    return l;
  }
  if (name == "gru") {
    auto l = std::make_unique<Of<RTNeural::GRULayerT<float, N, N>, N>>();
    std::vector<int> const gates{1, 0, 2};
    l->layer().setWVals(by_input(w.input, N, gates));
    l->layer().setUVals(by_input(w.state, N, gates));
    l->layer().setBVals({in_order(w.bias, N, gates), in_order(w.state_bias, N, gates)});
    l->model.reset();
    return l;
  }
  if (name == "lstm") {
    auto l = std::make_unique<Of<RTNeural::LSTMLayerT<float, N, N>, N>>();
    std::vector<int> const gates{0, 1, 2, 3};
    l->layer().setWVals(by_input(w.input, N, gates));
    l->layer().setUVals(by_input(w.state, N, gates));
    auto bias = in_order(w.bias, N, gates), more = in_order(w.state_bias, N, gates);
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] += more[i];
    l->layer().setBVals(bias);
    l->model.reset();
    return l;
  }
  if (name == "conv1d") {
    auto l = std::make_unique<Of<RTNeural::Conv1DT<float, N, N, Kernel, 1>, N>>();
    std::vector<Matrix> m(N, Matrix(N, std::vector<float>(Kernel)));
    for (std::size_t o = 0; o < N; ++o)
      for (std::size_t i = 0; i < N; ++i)
        for (std::size_t k = 0; k < Kernel; ++k)
          m[o][i][k] = w.input[(o * N + i) * Kernel + Kernel - 1 - k];  // the latest sample first
    l->layer().setWeights(m);
    l->layer().setBias({w.bias, w.bias + N});
    l->model.reset();
    return l;
  }
  throw std::runtime_error("no layer " + name);
}

}  // namespace

std::unique_ptr<Layer> make(std::string const& name, int size, Weights const& weights) {
  return size == 16 ? make_of<16, 15>(name, weights) : make_of<64, 63>(name, weights);
}

}  // namespace rtneural_layers
