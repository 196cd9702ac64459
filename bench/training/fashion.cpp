// SPDX-License-Identifier: BSL-1.0
// The training step of a small convolutional network: 64 pictures of 28 x 28, 3 x 3 convolutions of 32 and 64
// channels, each with relu and a pool, layers of 128 and 10, Adam.
#include "pictures.hpp"
#include "step.hpp"

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

// Of each layer its value, the gradient of its weight and, but for the first, that of its input.
constexpr double multiplications =
    batch * (2.0 * 26 * 26 * 32 * 9 + 3.0 * 11 * 11 * 64 * 288 + 3.0 * 1600 * 128 + 3.0 * 128 * 10);

}  // namespace

int main() {
  auto model = init<Model>(42);
  auto step = train_step(bench::loss, optim::Adam{.lr = 1e-3});
  bench::run({"fashion", "training step 64x28x28", 2 * multiplications, 1e-3, 1e-3, 15, 10}, step, model,
             bench::pictures<batch, 1, 28, 28>());
}
