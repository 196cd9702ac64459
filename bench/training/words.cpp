// SPDX-License-Identifier: BSL-1.0
// The training step of examples/words, forward, backward and SGD on 32 x 3 letters.
#include "step.hpp"
#include "words_model.hpp"

namespace {

using namespace words;

// Of each layer y = x W': y itself, the gradient of W, and the gradient of x, which the embedding's table needs too.
constexpr double flops = 3 * 2.0 * batch * (context * width * hidden + hidden * hidden + hidden * letters);
constexpr float lr = 0.1f;

// Some regular pattern with noise, so that the losses have something to fall to.
std::deque<std::pair<Contexts, Labels>> make_batches() {
  std::deque<std::pair<Contexts, Labels>> all;
  unsigned random = 1;
  auto const next = [&] {
    return static_cast<int>((random = random * 1664525u + 1013904223u) >> 16) % letters;
  };
  for (int n = 0; n < 16; ++n) {
    auto x = dfdx::empty<std::int32_t, batch, context>();
    auto y = dfdx::empty<std::int32_t, batch>();
    for (int i = 0; i < batch; ++i) {
      for (int k = 0; k < context; ++k) x(i, k) = next();
      y(i) = i % 4 == 0 ? next() : (x(i, 0) * 7 + x(i, 2)) % letters;
    }
    all.emplace_back(x, y);
  }
  return all;
}

}  // namespace

int main() {
  auto model = dfdx::init<Model>(42);
  auto step = dfdx::train_step(loss, dfdx::optim::SGD{.lr = lr});
  bench::run({"words", "training step 32x3", flops, lr, 1e-4, 41, 200}, step, model, make_batches());
}
