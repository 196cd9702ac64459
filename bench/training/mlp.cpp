// SPDX-License-Identifier: BSL-1.0
// The training step of three layers, 784-512-256-10, on 128 pictures, Adam.
#include "pictures.hpp"
#include "step.hpp"

namespace {

using namespace dfdx;

constexpr std::size_t batch = 128;

struct Model {
  nn::Linear<784, 512> fc1;
  nn::Linear<512, 256> fc2;
  nn::Linear<256, 10> fc3;
  DFDX_FIELDS(fc1, fc2, fc3)

  constexpr auto operator()(auto const& x) const { return fc3(relu(fc2(relu(fc1(x))))); }
};

// Of each layer its value, the gradient of its weight and, but for the first, that of its input.
constexpr double multiplications = batch * (2.0 * 784 * 512 + 3.0 * 512 * 256 + 3.0 * 256 * 10);

}  // namespace

int main() {
  auto model = init<Model>(42);
  auto step = train_step(bench::loss, optim::Adam{.lr = 1e-3});
  bench::run({"mlp", "training step 128x784", 2 * multiplications, 1e-3, 1e-3, 15, 20}, step, model,
             bench::pictures<batch, 784>());
}
