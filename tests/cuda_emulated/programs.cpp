// SPDX-License-Identifier: BSL-1.0
// Whole programs on the emulated device: moves, loops of steps, ops with kernels of their own, training.
#include "emulated.hpp"

#include "../../bench/training/words_model.hpp"

#include <dfdx/optim/adam.hpp>

using namespace emulated;

TEST_CASE("a network is trained on the device as on the CPU", "[cuda]") {
  auto const train = [](Device device) {
    auto model = to(device, init<words::Model>(1));
    auto step = train_step(words::loss, optim::AdamW{.lr = 1e-2f});
    auto x = Tensor<std::int32_t, words::batch, words::context>(Array(words::Contexts::static_meta));
    auto y = Tensor<std::int32_t, words::batch>(Array(words::Labels::static_meta));
    std::vector<double> losses;
    for (int k = 0; k < 6; ++k) {
      for (index_t i = 0; i < x.size(); ++i)
        x.data()[i] = static_cast<std::int32_t>((i * 7) % words::letters);
      for (index_t i = 0; i < y.size(); ++i)
        y.data()[i] = static_cast<std::int32_t>((i * 5) % words::letters);
      losses.push_back(static_cast<double>(step(model, to(device, x), to(device, y))));
    }
    auto all = numbers(model);
    all.insert(all.end(), losses.begin(), losses.end());
    return all;
  };
  auto const expected = train(Device{});
  auto const found = train(cuda());
  REQUIRE(expected.back() < expected[expected.size() - 6]);
  REQUIRE(difference(found, expected) < 2e-4);
  for (auto const turns : {cuda_fake::Turns::backward, cuda_fake::Turns::shuffled}) {
    InTurns const order(turns);
    REQUIRE(difference(train(cuda()), found) == 0);
  }
}
