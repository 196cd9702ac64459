// SPDX-License-Identifier: BSL-1.0
// The training step of examples/words, forward, backward and SGD on 32 x 3 letters, against the same in libtorch
// (-DDFDX_BENCH_TORCH). Both start from equal weights and must report equal losses over 20 steps; then rounds of
// both take turns, and medians count. The roof is that of roof.hpp, the share counts the matrix products only.
#include "model.hpp"

#include <cstdio>
#include <deque>

#include "../step.hpp"

#if defined(DFDX_BENCH_TORCH)
#include "torch_words.hpp"
#endif

namespace {

using namespace words;

// Of each layer y = x W': y itself, the gradient of W, and the gradient of x, which the embedding's table needs
// too.
constexpr double flops = 3 * 2.0 * batch * (context * width * hidden + hidden * hidden + hidden * letters);
constexpr float lr = 0.1f;
constexpr int compared = 20, rounds = 41;

struct Batch {
  Contexts contexts = dfdx::empty<std::int32_t, batch, context>();
  Labels labels = dfdx::empty<std::int32_t, batch>();
};

// Some regular pattern with noise, so that the losses have something to fall to.
std::deque<Batch> make_batches(int count) {
  std::deque<Batch> all(static_cast<std::size_t>(count));
  unsigned random = 1;
  auto const next = [&] {
    return static_cast<int>((random = random * 1664525u + 1013904223u) >> 16) % letters;
  };
  for (Batch& b : all)
    for (int i = 0; i < batch; ++i) {
      for (int k = 0; k < context; ++k) b.contexts(i, k) = next();
      b.labels(i) = i % 4 == 0 ? next() : (b.contexts(i, 0) * 7 + b.contexts(i, 2)) % letters;
    }
  return all;
}

}  // namespace

int main() {
  std::deque<Batch> const batches = make_batches(16);
  auto model = dfdx::init<Model>(42);
  auto step = dfdx::train_step(loss, dfdx::optim::SGD{.lr = lr});
  bench::Row row{.bench = "words", .name = "training step 32x3"};

  std::size_t turn = 0;
  auto const ours = [&] { step(model, batches[turn % 16].contexts, batches[turn % 16].labels), ++turn; };
#if defined(DFDX_BENCH_TORCH)
  torch_words::Trainer torch({model.embedding.weight.data(), model.fc1.weight.data(), model.fc2.weight.data(),
                              model.out.weight.data(), model.out.bias.data()},
                             lr);
  for (Batch const& b : batches) torch.add_batch(b.contexts.data(), b.labels.data());
  bench::require_equal_losses(
      row, compared, 1e-4,
      [&](int i) {
        Batch const& b = batches[static_cast<std::size_t>(i) % 16];
        return static_cast<double>(step(model, b.contexts, b.labels));
      },
      [&](int i) { return static_cast<double>(torch.step(static_cast<std::size_t>(i) % 16)); });
  row.peer = torch_words::version();
  std::size_t its_turn = 0;
  bench::time_steps(row, flops, rounds, 200, ours, [&] { torch.step(its_turn++ % 16); });
#else
  bench::time_steps(row, flops, rounds, 200, ours);
#endif
}
