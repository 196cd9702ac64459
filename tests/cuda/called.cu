// SPDX-License-Identifier: BSL-1.0
// Ops that are called one by one: the kernels of all of them, as nvcc reads them. main trains a model on the tape of a
// device and of the CPU, where there is a device.
#include <dfdx/cuda_ops.hpp>

#include "models.hpp"

#include <cmath>
#include <cstdio>

using namespace dfdx;

namespace {

template <class Model, class X, class Y>
double step(Model& model, X const& x, Y const& labels, optim::Optimizer<optim::AdamW<>>& optimizer) {
  zero_grad(model);
  auto const loss = device_models::entropy(model, x, labels);
  loss.backward();
  optimizer.step(model);
  return static_cast<double>(loss.item());
}

}  // namespace

int main() {
  if (device_models::no_device()) return 0;
  auto here = init<device_models::Deep>(1);
  auto there = to(cuda(), here);
  watch(here);
  watch(there);
  auto const x = randint<std::int32_t, 64>(Key{2}, 0, 17), labels = randint<std::int32_t, 64>(Key{3}, 0, 17);
  auto const far_x = to(cuda(), x), far_labels = to(cuda(), labels);
  optim::Optimizer one(optim::AdamW{.lr = 1e-2f}), two(optim::AdamW{.lr = 1e-2f});
  double worst = 0;
  for (int i = 0; i < 20; ++i)
    worst = std::fmax(worst, std::fabs(step(here, x, labels, one) - step(there, far_x, far_labels, two)));
  auto const large = randn<float, 1000, 333>(Key{4});
  auto const far = to(cuda(), large);
  auto const relative = [](double a, double b) { return std::fabs(a - b) / (1 + std::fabs(b)); };
  worst = std::fmax(worst, relative(sum(exp(transpose(far))).item(), sum(exp(large)).item()));
  worst = std::fmax(
      worst, relative(max(matmul(far, transpose(far))).item(), max(matmul(large, transpose(large))).item()));
  std::printf("ops one by one: %g from the CPU\n", worst);
  return worst < 1e-3 ? 0 : 1;
}
