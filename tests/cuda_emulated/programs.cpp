// SPDX-License-Identifier: BSL-1.0
// Whole programs on the emulated device: products, moves, loops of steps, ops with kernels of their own, training.
#include "emulated.hpp"

#include "../../bench/training/words_model.hpp"

#include <dfdx/optim/adam.hpp>

using namespace emulated;

namespace {

constexpr auto product = [](auto const& a, auto const& b) { return matmul(a, b); };
constexpr auto product_nt = [](auto const& a, auto const& b) { return matmul(a, transpose(b)); };
constexpr auto product_tn = [](auto const& a, auto const& b) { return matmul(transpose(a), b); };
constexpr auto dense = [](auto const& x, auto const& w, auto const& b) { return gelu(matmul(x, w) + b); };
constexpr auto residual = [](auto const& x, auto const& w) { return relu(matmul(x, w)) + x; };

}  // namespace

TEST_CASE("matrix products of every layout and dtype", "[cuda]") {
  REQUIRE(apart(product, filled<Tensor<float, 65, 17>>(1), filled<Tensor<float, 17, 70>>(2)) < 1e-5);
  REQUIRE(apart(product, filled<Tensor<float, 1, 1>>(1), filled<Tensor<float, 1, 1>>(2)) < 1e-6);
  REQUIRE(apart(product_nt, filled<Tensor<float, 5, 40>>(1), filled<Tensor<float, 130, 40>>(2)) < 1e-5);
  REQUIRE(apart(product_tn, filled<Tensor<float, 33, 64>>(1), filled<Tensor<float, 33, 9>>(2)) < 1e-5);
  REQUIRE(apart(product, filled<Tensor<double, 20, 50>>(1), filled<Tensor<double, 50, 7>>(2)) < 1e-12);
  REQUIRE(apart(product, filled<Tensor<float16, 20, 50>>(1), filled<Tensor<float16, 50, 7>>(2)) < 2e-3);
  REQUIRE(apart(product, filled<Tensor<bfloat16, 20, 50>>(1), filled<Tensor<bfloat16, 50, 7>>(2)) < 1e-2);
  REQUIRE(apart(product, filled<Tensor<std::int32_t, 20, 50>>(1), filled<Tensor<std::int32_t, 50, 7>>(2)) ==
          0);
  REQUIRE(apart(product, filled<Tensor<float, 3, 2, 20, 19>>(1), filled<Tensor<float, 2, 19, 30>>(2)) < 1e-5);
  REQUIRE(apart(product, filled<Tensor<float, dyn, dyn>>(1, 70, 18),
                filled<Tensor<float, dyn, dyn>>(2, 18, 66)) < 1e-5);
  REQUIRE(apart(product, filled<Tensor<float, dyn, dyn>>(1, 3, 0),
                filled<Tensor<float, dyn, dyn>>(2, 0, 4)) == 0);
  REQUIRE(apart(product, filled<Tensor<float, dyn, dyn>>(1, 0, 3),
                filled<Tensor<float, dyn, dyn>>(2, 3, 4)) == 0);
}
TEST_CASE("epilogues of products", "[cuda]") {
  REQUIRE(apart(dense, filled<Tensor<float, 33, 20>>(1), filled<Tensor<float, 20, 70>>(2),
                filled<Tensor<float, 70>>(3)) < 1e-5);
  REQUIRE(apart(residual, filled<Tensor<double, 33, 20>>(1), filled<Tensor<double, 20, 20>>(2)) < 1e-12);
  REQUIRE(apart(dense, filled<Tensor<float, dyn, 20>>(1, 7, 20), filled<Tensor<float, 20, 70>>(2),
                filled<Tensor<float, 70>>(3)) < 1e-5);
}

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
