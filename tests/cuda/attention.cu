// SPDX-License-Identifier: BSL-1.0
// A training step of attention for devices: what nvcc's front end has to read, and kernels without local memory. main
// compares the device with the CPU, where there is a device.
#include "models.hpp"

#include <cmath>
#include <cstdio>

using namespace device_models;

namespace {

using Texts = Tensor<float, 2, 9, 16>;

Texts texts() {
  auto x = Texts(Array(Texts::static_meta));
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * 37 % 101) / 50.f - 1.f;
  return x;
}

double attend(Device device) {
  auto model = to(device, init<Attend>(2));
  auto step = train_step(squares, optim::SGD{.lr = 1e-1f});
  auto const x = to(device, texts());
  double last = 0;
  for (int k = 0; k < 10; ++k) last = static_cast<double>(step(model, x));
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
  compare("attention", attend(Device{}), attend(cuda()));
  return good ? 0 : 1;
}
