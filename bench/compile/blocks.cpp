// SPDX-License-Identifier: BSL-1.0
// Training a residual MLP of BLOCKS blocks of two layers each: repeated, or, with -DUNROLLED, one by one.
#include <array>
#include <cstdio>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

struct Block {
  nn::Linear<64, 64> a, b;
  DFDX_FIELDS(a, b)
  constexpr auto operator()(auto const& x) const { return x + b(tanh(a(x))); }
};

struct Net {
  nn::Linear<16, 64> in;
#ifdef UNROLLED
  std::array<Block, BLOCKS> blocks;
#else
  nn::Repeat<Block, BLOCKS> blocks;
#endif
  nn::Linear<64, 10> out;
  DFDX_FIELDS(in, blocks, out)
  constexpr auto operator()(auto const& x) const {
#ifdef UNROLLED
    auto h = in(x);
    for (auto const& block : blocks) h = block(h);
    return out(h);
#else
    return out(blocks(in(x)));
#endif
  }
};

constexpr auto loss = [](auto const& m, auto const& x, auto const& y) { return cross_entropy(m(x), y); };

int main() {
  auto model = init<Net>(1);
  auto step = train_step(loss, optim::SGD{.lr = 0.001f});
  auto x = empty<float, 32, 16>();
  auto y = empty<std::int32_t, 32>();
  for (int i = 0; i < 32; ++i) {
    for (int k = 0; k < 16; ++k) x(i, k) = static_cast<float>((i * 16 + k) * 7 % 27) / 27;
    y(i) = i * 5 % 10;
  }
  for (int i = 0; i < 5; ++i) std::printf("%g\n", static_cast<double>(step(model, x, y)));
}
