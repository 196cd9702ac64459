// SPDX-License-Identifier: BSL-1.0
// Ops that are called one by one: the kernels of all of them, as nvcc reads them. main trains a model on the tape of a
// device and of the CPU, where there is a device, and compares the gradients of attention, and what finds places.
#include <dfdx/cuda_ops.hpp>

#include "models.hpp"

#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/interpolate.hpp>
#include <dfdx/vocabulary/random.hpp>

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

// How far the gradient of attention is from the CPU's, relative to the largest of its numbers.
double attention_apart(DType d) {
  Array const x = cast_to(randn({2, 4, 130, 64}, Key{5}), d);
  auto const gradient = [](Array q) {
    q.requires_grad(true);
    Array const y = scaled_dot_product_attention(q, q, q, {.causal = true});
    return cast_to(gradients(sum(square(cast_to(y, DType::f32))), {q})[0], DType::f32);
  };
  Array const here = gradient(x.detach()), there = to(Device{}, gradient(to(cuda(), x)));
  double const apart =
      static_cast<double>(max(abs(here - there)).item()) / static_cast<double>(max(abs(here)).item());
  std::printf("gradients of attention in %s: %g of the largest apart\n", name_of(d), apart);
  return apart;
}

// How far what finds places and resamples axes is from the CPU's.
double places_apart() {
  Array const x = randn({6, 3, 700, 9}, Key{6}), list = std::get<0>(sort(randn({5000}, Key{7}), 0));
  Array const at = randint({400}, Key{8}, 0, 700), src = randn({6, 3, 400, 9}, Key{9});
  auto const all = [](Array image, Array const& sorted, Array const& index, Array const& parts) {
    image.requires_grad(true);
    auto const [most, places] = cummax(image, 2);
    Array const wide = interpolate(image, {.size = {333, 20}, .mode = InterpolateMode::bicubic});
    Array const loss =
        sum(square(most)) + sum(square(wide)) + sum(square(index_copy(image, 2, index, parts)));
    return std::vector<Array>{most, cast_to(places, DType::f32), wide, gradients(loss, {image})[0],
                              cast_to(searchsorted(sorted, image), DType::f32)};
  };
  auto const here = all(x.detach(), list, at, src),
             there = all(to(cuda(), x), to(cuda(), list), to(cuda(), at), to(cuda(), src));
  double apart = 0;
  for (std::size_t i = 0; i < here.size(); ++i)
    apart = std::fmax(apart, static_cast<double>(max(abs(here[i] - to(Device{}, there[i]))).item()));
  std::printf("places and axes: %g from the CPU\n", apart);
  return apart;
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
  bool const attends = attention_apart(DType::f32) < 1e-4 && attention_apart(DType::bf16) < 3.2e-2;
  return worst < 1e-3 && attends && places_apart() < 1e-4 ? 0 : 1;
}
