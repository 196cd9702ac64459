// SPDX-License-Identifier: BSL-1.0
// A model that is compiled for several levels of x86-64 (cmake/dispatch.cmake).
#include "model.hpp"

#include <dfdx/dfdx.hpp>

using namespace dfdx;

namespace {

struct Network {
  nn::Linear<16, 64> a;
  nn::Linear<64, 4> b;
  DFDX_FIELDS(a, b)
  constexpr auto operator()(auto const& x) const { return b(tanh(a(x))); }
};
constexpr auto loss = [](auto const& m, auto const& x) { return mean(square(m(x))); };

}  // namespace

int vector_bytes() { return static_cast<int>(xsimd::batch<float>::size * sizeof(float)); }

double trained_loss() {
  auto model = init<Network>(1);
  auto step = train_step(loss, optim::SGD{.lr = 0.1f});
  auto const x = randn<float, 8, 16>(Key{2});
  double last = 0;
  for (int i = 0; i < 10; ++i) last = static_cast<double>(step(model, x));
  return last;
}

void refuse() { raise("model: refused"); }
