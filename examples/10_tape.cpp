// SPDX-License-Identifier: BSL-1.0
// Lesson 10: the run-time tape. Where shapes, ranks or control flow are known only when the program runs, ask values
// for gradients: ops on them run at once and are remembered. The rules, and the models, are those of compiled
// functions.
#include <cassert>
#include <cmath>
#include <cstdio>
#include <vector>

#include <dfdx/dfdx.hpp>
#include <dfdx/testing/gradcheck.hpp>

using namespace dfdx;

void attention(index_t batch, index_t time) {
  // [readme:tape]
  Array a = randn({batch, time, 64}, Key{1});
  a.requires_grad(true);
  Array scores = softmax(matmul(a, transpose(a, -2, -1)) / 8.0, -1);
  mean(square(scores)).backward();
  Array g = a.grad();
  // [/readme:tape]
  assert(g.shape() == a.shape());
}

// --- control flow in plain C++: Newton's method until it has converged, differentiated as it went ---
Array square_root(Array const& x) {
  Array y = x;
  while (std::fabs((y * y - x).item()) > 1e-12) y = 0.5 * (y + x / y);
  return y;
}

// --- the same model struct as compiled, with batches of any size ---
struct Net {
  nn::Linear<3, 32> in;
  nn::Linear<32, 1> out;
  DFDX_FIELDS(in, out)
  constexpr auto operator()(auto const& x) const { return out(tanh(in(x))); }
};
constexpr auto loss = [](auto const& net, auto const& x, auto const& y) { return mse_loss(net(x), y); };

float train() {
  Net net = init<Net>(/*seed*/ 1);
  watch(net);  // its parameters require gradients now
  optim::Optimizer optimizer(optim::AdamW{.lr = 1e-2});
  double last = 0;
  for (std::uint64_t i = 0; i < 600; ++i) {
    Array const x = randn({8 + static_cast<index_t>(i % 5), 3}, Key{i});
    Array const l = loss(net, x, sin(sum(x, 1, /*keep*/ true)));
    l.backward();
    optimizer.step(net);
    zero_grad(net);
    last = l.item();
  }
  return static_cast<float>(last);
}

// --- a function with a rule of its own: f, then the cotangent of x from that of f(x), f(x) and x. It serves eager
// calls, the tape and compiled functions alike. ---
constexpr auto softplus_ =
    custom_vjp([](auto const& x) { return log(1.0 + exp(x)); },
               [](auto const& ct, auto const&, auto const& x) { return ct * sigmoid(x); });

int main() {
  attention(2, 5);
  attention(1, 9);

  Array two = full({}, 2, DType::f64);
  two.requires_grad(true);
  square_root(two).backward();
  std::printf("sqrt(2)' = %.9f\n", two.grad().item());
  assert(std::fabs(two.grad().item() - 0.5 / std::sqrt(2.0)) < 1e-12);

  // Gradients of gradients; and of chosen values, which leaves `grad` alone.
  Array const x = from({0.5, 1.0, 1.5});
  Array w = x.clone();
  w.requires_grad(true);
  Array const first = gradients(sum(w * w * w), {w}, {.create_graph = true})[0];
  Array const second = gradients(sum(first), {w})[0];
  assert(second(1).item() == 6.0 && w.grad().empty());

  // Parts of a value, changes in place, and what is not recorded.
  Array v = w * 2.0;
  v *= 3.0;
  v(range(1), newaxis).sum().backward();
  assert(w.grad()(0).item() == 0 && w.grad()(2).item() == 6);
  {
    no_grad const guard;
    w -= 0.1 * w.grad();
  }

  float const l = train();
  std::printf("loss %.4f\n", static_cast<double>(l));
  assert(l < 0.1f);

  // Compiled and on the tape, the same; and checked against differences.
  assert(std::fabs(grad([](Tensor<double> const& t) { return softplus_(t); })(0.3) -
                   1 / (1 + std::exp(-0.3))) < 1e-15);
  assert(testing::gradcheck([](std::span<Array const> in) { return softplus_(in[0]); }, {x}));
}
