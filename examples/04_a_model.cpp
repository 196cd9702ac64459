// SPDX-License-Identifier: BSL-1.0
// Lesson 4: a model is a struct. DFDX_FIELDS names its parameters, and with that it is a tree which can be
// initialised, visited by name, counted, and mirrored by a tree of gradients. There is no base class and no
// registration.
#include <cassert>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

template <std::size_t Width>
struct Residual {
  nn::Linear<Width, Width> inner;
  Tensor<float, 1> gain;  // a parameter of our own
  DFDX_FIELDS(inner, gain)

  constexpr auto operator()(auto const& x) const { return x + gain * tanh(inner(x)); }

  // init gives tensors of our own zeros; a member reset says otherwise.
  void reset(Key) { nn::init::constant(gain, 0.5); }
};

template <std::size_t In, std::size_t Width, std::size_t Out>
struct Net {
  nn::Linear<In, Width> first;
  std::array<Residual<Width>, 3> blocks;
  nn::Linear<Width, Out, false> last;  // no bias
  DFDX_FIELDS(first, blocks, last)

  constexpr auto operator()(auto const& x) const {
    auto h = relu(first(x));
    for (auto const& block : blocks) h = block(h);
    return last(h);
  }
};

using Model = Net<4, 16, 3>;
static_assert(parameter_count<Model> == (4 * 16 + 16) + 3 * (16 * 16 + 16 + 1) + 16 * 3);

constexpr auto loss = [](auto const& model, auto const& x, auto const& labels) {
  return cross_entropy(model(x), labels);
};

int main() {
  auto model = init<Model>(/*seed*/ 42);
  auto x = randn<float, 8, 4>(Key{1});
  auto labels = randint<std::int32_t, 8>(Key{2}, 0, 3);

  // Parameters have the names that a checkpoint would give them.
  std::vector<std::string> names;
  visit_named(model, [&](std::string const& name, auto const& leaf) {
    names.push_back(name);
    std::cout << name << " " << leaf.shape().rank << "-d, " << leaf.size() << " numbers\n";
  });
  assert(names[2] == "blocks.0.inner.weight" && names.size() == 12);

  // The same model runs eagerly, and compiled.
  auto eager = model(x);
  auto compiled = compile([](auto const& m, auto const& v) { return m(v); });
  assert(allclose(compiled(model, x), eager, 1e-5, 1e-6));

  // A copy shares its numbers with the model, as copies of Tensors do; a clone has its own, and can be written back.
  auto const same = model, kept = clone(model);
  model.first.bias(0) = 0.5f;
  assert(same.first.bias(0) == 0.5f && kept.first.bias(0) != 0.5f);
  copy_(model, kept);
  assert(array_equal(same.first.bias, kept.first.bias));

  // The gradient of a model is a model: here a step of gradient descent by hand.
  auto [before, gradient] = value_and_grad(loss)(model, x, labels);
  float const first_loss = before.item();
  model.last.weight = model.last.weight - 0.1f * gradient.last.weight;
  model.blocks[1].gain = model.blocks[1].gain - 0.1f * gradient.blocks[1].gain;
  float const second_loss = loss(model, x, labels).item();
  std::cout << "loss " << first_loss << " -> " << second_loss << "\n";
  assert(second_loss < first_loss);
}
