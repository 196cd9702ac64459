// SPDX-License-Identifier: BSL-1.0
// Training a small U-Net: eleven convolutions of different shapes, pools, images made larger and joined.
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

template <std::size_t In, std::size_t Out>
struct Twice {
  nn::Conv2d<In, Out, 3, ConvOptions{.padding = 1}> a;
  nn::Conv2d<Out, Out, 3, ConvOptions{.padding = 1}> b;
  DFDX_FIELDS(a, b)
  constexpr auto operator()(auto const& x) const { return relu(b(relu(a(x)))); }
};

struct Net {
  Twice<1, 8> down1;
  Twice<8, 16> down2;
  Twice<16, 32> middle;
  Twice<48, 16> up2;
  Twice<24, 8> up1;
  nn::Conv2d<8, 2, 1> out;
  DFDX_FIELDS(down1, down2, middle, up2, up1, out)
  constexpr auto operator()(auto const& x) const {
    auto const larger = [](auto const& y) { return interpolate<InterpolateOptions{.scale_factor = 2}>(y); };
    auto const a = down1(x);
    auto const b = down2(max_pool2d<2>(a));
    auto const c = middle(max_pool2d<2>(b));
    return out(up1(concat<1>(larger(up2(concat<1>(larger(c), b))), a)));
  }
};

constexpr auto loss = [](auto const& m, auto const& x, auto const& y) { return mse_loss(m(x), y); };

int main() {
  auto model = init<Net>(1);
  auto step = train_step(loss, optim::Adam{.lr = 0.001f});
  auto const x = uniform<float, 4, 1, 32, 32>(Key{1});
  auto const y = uniform<float, 4, 2, 32, 32>(Key{2});
  for (int i = 0; i < 5; ++i) std::printf("%g\n", static_cast<double>(step(model, x, y)));
}
