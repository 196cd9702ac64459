// SPDX-License-Identifier: BSL-1.0
// A training step of attention for devices: what nvcc's front end has to read, and kernels without local memory. main
// compares the device with the CPU, where there is a device.
#include <cmath>
#include <cstdio>

#include <dfdx/cuda.hpp>

using namespace dfdx;

namespace {

struct Attend {
  nn::Linear<16, 48> qkv;
  nn::Linear<16, 16> out;
  DFDX_FIELDS(qkv, out)
  constexpr auto operator()(auto const& x) const {  // [B, T, 16], two heads
    auto const all = permute<2, 0, 3, 1, 4>(reshape<2, 9, 3, 2, 8>(qkv(x)));
    auto const q = reshape<2, 2, 9, 8>(slice<0, 0, 1>(all)), k = reshape<2, 2, 9, 8>(slice<0, 1, 2>(all)),
               v = reshape<2, 2, 9, 8>(slice<0, 2, 3>(all));
    auto const weights = softmax(matmul(q, permute<0, 1, 3, 2>(k)) * 0.35f);
    return out(reshape<2, 9, 16>(permute<0, 2, 1, 3>(matmul(weights, v))));
  }
};
constexpr auto squares = [](auto const& model, auto const& x) { return mean(square(model(x) - 0.5f)); };

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
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("SKIPPED: no CUDA device\n");
    return 77;
  }
  bool good = true;
  auto const compare = [&](char const* name, double here, double there) {
    std::printf("%s: %g on the CPU, %g on the device\n", name, here, there);
    good = good && std::fabs(here - there) <= 1e-3;
  };
  compare("attention", attend(Device{}), attend(cuda()));
  return good ? 0 : 1;
}
