// SPDX-License-Identifier: BSL-1.0
// A training step of repeated blocks for devices: what nvcc's front end has to read, and kernels without local memory.
// main compares the device with the CPU, where there is a device.
#include "models.hpp"

#include <cmath>
#include <cstdio>

#include <dfdx/optim/adam.hpp>

using namespace device_models;

namespace {

using Tokens = Tensor<std::int32_t, 20>;

Tokens tokens(index_t below) {
  auto x = Tokens(Array(Tokens::static_meta));
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<std::int32_t>(i * i * 7 % below);
  return x;
}
double deep(Device device) {
  auto model = to(device, init<Deep>(2));
  auto step = train_step(entropy, optim::AdamW{.lr = 1e-2f});
  auto const x = to(device, tokens(17)), y = to(device, tokens(13));
  double last = 0;
  for (int k = 0; k < 10; ++k) last = static_cast<double>(step(model, x, y));
  return last;
}
}  // namespace

int main() {
  if (device_models::no_device()) return 77;
  bool good = true;
  auto const compare = [&](char const* name, double here, double there) {
    std::printf("%s: %g on the CPU, %g on the device\n", name, here, there);
    good = good && std::fabs(here - there) <= 1e-3;
  };
  compare("repeated blocks", deep(Device{}), deep(cuda()));
  return good ? 0 : 1;
}
