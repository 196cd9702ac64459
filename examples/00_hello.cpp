// SPDX-License-Identifier: BSL-1.0
// Lesson 0: the program of the README. A network learns exclusive or.
// [readme:hello]
#include <iostream>

#include <dfdx/dfdx.hpp>
using namespace dfdx;

struct Mlp {
  nn::Linear<2, 16> fc1;
  nn::Linear<16, 2> fc2;
  DFDX_FIELDS(fc1, fc2)

  constexpr auto operator()(auto const& x) const { return fc2(tanh(fc1(x))); }
};

constexpr auto loss = [](auto const& model, auto const& x, auto const& labels) {
  return cross_entropy(model(x), labels);
};

int main() {
  Tensor<float, 4, 2> x{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
  Tensor<std::int32_t, 4> labels{0, 1, 1, 0};
  auto model = init<Mlp>(/*seed*/ 42);
  auto step = train_step(loss, optim::AdamW{.lr = 1e-2f});  // forward, backward and update: one program
  for (int i = 0; i <= 400; ++i)
    if (float l = step(model, x, labels); i % 100 == 0) std::cout << "step " << i << "  loss " << l << "\n";
  std::cout << argmax<1>(model(x)) << "\n";
  return array_equal(argmax<1>(model(x)), labels) ? 0 : 1;
}
// [/readme:hello]
