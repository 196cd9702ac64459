// SPDX-License-Identifier: BSL-1.0
// Small training steps, which launches bound: each is one CUDA graph.
#include "measure.hpp"

#include "../training/words_model.hpp"

#include <dfdx/optim/adam.hpp>
#include <dfdx/optim/sgd.hpp>

using namespace bench;

namespace {

struct Mlp {
  nn::Linear<784, 512> fc1;
  nn::Linear<512, 512> fc2;
  nn::Linear<512, 10> out;
  DFDX_FIELDS(fc1, fc2, out)
  constexpr auto operator()(auto const& x) const { return out(relu(fc2(relu(fc1(x))))); }
};
struct Cnn {
  nn::Conv2d<1, 32, 3> conv1;
  nn::Conv2d<32, 64, 3> conv2;
  nn::Linear<1600, 128> fc1;
  nn::Linear<128, 10> fc2;
  DFDX_FIELDS(conv1, conv2, fc1, fc2)
  constexpr auto operator()(auto const& x) const {
    auto const h = relu(max_pool2d<MaxPoolOptions{2}>(conv1(x)));
    return fc2(relu(fc1(flatten<1>(relu(max_pool2d<MaxPoolOptions{2}>(conv2(h)))))));
  }
};
constexpr auto entropy = [](auto const& model, auto const& x, auto const& y) {
  return cross_entropy(model(x), y);
};

template <class Labels>
Labels labels(index_t classes) {
  Labels y = Labels(Array(Labels::static_meta));
  for (index_t i = 0; i < y.size(); ++i) y.data()[i] = static_cast<std::int32_t>(i * 7 % classes);
  return to(cuda(), y);
}

// Some steps of the same have to give the CPU's losses.
template <class Loss, class Model, class O, class X, class Y>
void training(char const* name, Loss const& loss, Model const& start, O const& rule, X const& x, Y const& y,
              double bandwidth) {
  auto here = start, there = to(cuda(), start);
  auto on_cpu = train_step(loss, rule), step = train_step(loss, rule);
  auto const x_here = to(Device{}, x);
  auto const y_here = to(Device{}, y);
  Error e;
  for (int k = 0; k < 10; ++k)
    e.add(static_cast<double>(step(there, x, y)), static_cast<double>(on_cpu(here, x_here, y_here)));
  row(
      "cuda training", name, [&] { step(there, x, y); }, {e.value(), 1e-3}, bandwidth, 0, 0,
      "the step reads its loss back");
}

}  // namespace

int main() {
  return run([](double bandwidth) {
    auto contexts = words::Contexts(Array(words::Contexts::static_meta));
    for (index_t i = 0; i < contexts.size(); ++i) contexts.data()[i] = static_cast<std::int32_t>(i * 5 % 27);
    training("words, 32 contexts", words::loss, init<words::Model>(1), optim::SGD{.lr = 0.1f},
             to(cuda(), contexts), labels<words::Labels>(27), bandwidth);
    constexpr std::size_t batch = size_or(128, 4);
    training("perceptron 784-512-512-10, batch 128", entropy, init<Mlp>(1), optim::AdamW{.lr = 1e-3f},
             normals<Tensor<float, batch, 784>>(1), labels<Tensor<std::int32_t, batch>>(10), bandwidth);
    training("LeNet 32-64, batch 128", entropy, init<Cnn>(1), optim::AdamW{.lr = 1e-3f},
             normals<Tensor<float, batch, 1, 28, 28>>(1), labels<Tensor<std::int32_t, batch>>(10), bandwidth);
  });
}
