// SPDX-License-Identifier: BSL-1.0
// Lesson 6: looking inside. What the compiler made of a function can be printed: the kernels, what each computes,
// reads and writes, and what all of it costs. The totals are constants that code can rely on.
#include <cassert>
#include <iostream>

#include <dfdx/explain.hpp>

using namespace dfdx;

struct Layer {
  nn::Linear<32, 64> fc1;
  nn::Linear<64, 8> fc2;
  DFDX_FIELDS(fc1, fc2)

  constexpr auto operator()(auto const& x) const { return fc2(relu(fc1(x))); }
};

constexpr auto loss = [](auto const& model, auto const& x, auto const& y) {
  return mse_loss(softmax(model(x)), y);
};

using X = Tensor<float, 16, 32>;
using Y = Tensor<float, 16, 8>;

using Forward = decltype(compile(loss))::program_for<Layer, X, Y>;
using Training = decltype(train_step(loss, optim::SGD{}))::program_for<Layer, X, Y>;

// Forward: two matrix products with bias and relu in their epilogues, and one loop over rows for softmax and the
// loss.
static_assert(Forward::kernels <= 4);
static_assert(Forward::flops() > 2 * 16 * (32 * 64 + 64 * 8));  // the two products alone
// Training costs about three times the products of the forward pass, and its arena is small and known.
static_assert(Training::flops() < 3.5 * static_cast<double>(Forward::flops()));
static_assert(Training::arena_bytes < 64 << 10);

int main() {
  std::cout << explain<Forward>() << "\n";

  // The same of a function object and its arguments, here a gradient.
  constexpr auto f = [](Tensor<float, 100> const& v) { return sum(v * exp(v)); };
  auto g = value_and_grad(f);
  auto v = ones<float, 100>();
  std::string const text = explain(g, v);
  std::cout << text;
  assert(text.find("1 kernels") != std::string::npos);  // forward and backward in one loop
  assert(text.find("arg0 f32 [100]") != std::string::npos);

  // In a program that writes its inputs in place, the parameters have their names.
  assert(explain<Training>().find("writes model.fc1.weight f32 [64, 32]") != std::string::npos);

  // What its kernels take here, beside their arithmetic and the memory they move: where the time goes. It is measured
  // on copies, so the model stays as it is.
  auto const model = init<Layer>(1);
  auto const before = clone(model);
  auto step = train_step(loss, optim::SGD{});
  Profile const times = profile(step, model, randn<float, 16, 32>(Key{1}), zeros<float, 16, 8>());
  std::cout << times;
  assert(times.kernels.size() == Training::kernels && times.seconds > 0 && step.steps() == 0);
  assert(array_equal(model.fc1.weight, before.fc1.weight));
  assert(profile(g, v).kernels.size() == 1);

  // Graphviz draws the graph, a box for each kernel: dot -Tsvg explain.dot > explain.svg
  std::string const drawing = dot<Training>();
  assert(drawing.starts_with("digraph program {") && drawing.find("cluster_0") != std::string::npos);
  std::cout << "the training step as a graph: " << drawing.size() << " characters of Graphviz\n";
}
