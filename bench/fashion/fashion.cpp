// SPDX-License-Identifier: BSL-1.0
// The training step of a small convolutional network: 64 pictures of 28 x 28, 3 x 3 convolutions of 32 and 64
// channels, each with relu and a pool, layers of 128 and 10, Adam; against the same in libtorch (-DDFDX_BENCH_TORCH).
// Both start from equal weights and must report equal losses over 20 steps; then rounds of both take turns, and
// medians count. The roof is that of roof.hpp, the share counts convolutions and matrix products only.
#include <dfdx/dfdx.hpp>

#include <cstdio>
#include <deque>

#include "../step.hpp"

#if defined(DFDX_BENCH_TORCH)
#include "torch_fashion.hpp"
#endif

namespace {

using namespace dfdx;

constexpr std::size_t batch = 64;
constexpr MaxPoolOptions pool{.kernel = 2};

struct Model {
  nn::Conv2d<1, 32, 3> conv1;
  nn::Conv2d<32, 64, 3> conv2;
  nn::Linear<1600, 128> fc1;
  nn::Linear<128, 10> fc2;
  DFDX_FIELDS(conv1, conv2, fc1, fc2)

  constexpr auto operator()(auto const& x) const {
    auto const h = max_pool2d<pool>(relu(conv1(x)));
    auto const k = max_pool2d<pool>(relu(conv2(h)));
    return fc2(relu(fc1(flatten<1>(k))));
  }
};
constexpr auto loss = [](auto const& m, auto const& x, auto const& y) { return cross_entropy(m(x), y); };

// Of each layer its value, the gradient of its weight and, but for the first, that of its input.
constexpr double multiplications =
    batch * (2.0 * 26 * 26 * 32 * 9 + 3.0 * 11 * 11 * 64 * 288 + 3.0 * 1600 * 128 + 3.0 * 128 * 10);
constexpr double flops = 2 * multiplications, lr = 1e-3;
constexpr int compared = 20, rounds = 15;

struct Batch {
  Tensor<float, batch, 1, 28, 28> pictures = empty<float, batch, 1, 28, 28>();
  Tensor<std::int32_t, batch> labels = empty<std::int32_t, batch>();
};

// Noise about a picture for each class, so that there is something to learn.
std::deque<Batch> make_batches(int count) {
  auto const classes = randn<float, 10, 784>(Key{2});
  std::deque<Batch> all(static_cast<std::size_t>(count));
  std::uint64_t n = 0;
  for (Batch& b : all) {
    auto const noise = randn<float, batch, 784>(Key{100 + n});
    for (std::size_t i = 0; i < batch; ++i, ++n) {
      auto const label = static_cast<std::size_t>(integer_at(Key{3}, n, 10));
      b.labels.data()[i] = static_cast<std::int32_t>(label);
      for (std::size_t k = 0; k < 784; ++k)
        b.pictures.data()[i * 784 + k] = noise.data()[i * 784 + k] + 0.3f * classes.data()[label * 784 + k];
    }
  }
  return all;
}

}  // namespace

int main() {
  std::deque<Batch> const batches = make_batches(16);
  auto model = init<Model>(42);
  auto step = train_step(loss, optim::Adam{.lr = lr});
  bench::Row row{.bench = "fashion", .name = "training step 64x28x28"};

  std::size_t turn = 0;
  auto const ours = [&] { step(model, batches[turn % 16].pictures, batches[turn % 16].labels), ++turn; };
#if defined(DFDX_BENCH_TORCH)
  std::vector<float const*> weights;
  visit(model, [&](auto const& leaf) { weights.push_back(leaf.data()); });
  torch_fashion::Trainer torch(weights, lr);
  for (Batch const& b : batches) torch.add_batch(b.pictures.data(), b.labels.data());
  bench::require_equal_losses(
      row, compared, 1e-3,
      [&](int i) {
        Batch const& b = batches[static_cast<std::size_t>(i) % 16];
        return static_cast<double>(step(model, b.pictures, b.labels));
      },
      [&](int i) { return static_cast<double>(torch.step(static_cast<std::size_t>(i) % 16)); });
  row.peer = torch_fashion::version();
  std::size_t its_turn = 0;
  bench::time_steps(row, flops, rounds, 10, ours, [&] { torch.step(its_turn++ % 16); });
#else
  bench::time_steps(row, flops, rounds, 10, ours);
#endif
}
