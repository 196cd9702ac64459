// SPDX-License-Identifier: BSL-1.0
// Groups, freezing, accumulation, averages and buffers, compiled and on the tape.
#include "worse.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

#include <cmath>

namespace tests::optim_wrappers {

using namespace dfdx;

namespace {

struct Layer {
  Tensor<double, 2> weight;
  Tensor<double, 2> bias;
  DFDX_FIELDS(weight, bias)
};
struct Net {
  Layer in;
  std::array<Layer, 2> blocks;
  Buffer<double, 2> seen;
  DFDX_FIELDS(in, blocks, seen)
};
// The gradient is g.
constexpr auto pull = [](auto const& net, auto const& g) {
  auto const one = [](auto const& a, auto const& b) {
    return sum(a.weight * b.weight) + sum(a.bias * b.bias);
  };
  return one(net.in, g.in) + one(net.blocks[0], g.blocks[0]) + one(net.blocks[1], g.blocks[1]) +
         sum(net.seen * g.seen);
};
Net random_net(std::uint64_t seed) {
  Net r;
  visit(r, [&](auto& leaf) { nn::init::normal(leaf, Key{seed++}); });
  return r;
}
template <class M>
std::vector<Array> leaves(M const& m) {
  std::vector<Array> r;
  visit(m, [&](auto const& leaf) { r.push_back(leaf.detach()); });
  return r;
}
// The largest difference of two models in the leaves that are chosen.
template <class M>
double apart(M const& a, M const& b, auto chosen) {
  double r = 0;
  auto const x = leaves(a), y = leaves(b);
  std::size_t k = 0;
  visit_named(a, [&](std::string const& name, auto const&) {
    for (index_t i = 0; chosen(name) && i < x[k].size(); ++i)
      r = tests::worse(r, std::fabs(read_real(x[k].operand(), i) - read_real(y[k].operand(), i)));
    ++k;
  });
  return r;
}
template <class M>
double apart(M const& a, M const& b) {
  return apart(a, b, [](auto const&) { return true; });
}

// One step after another by a rule, compiled and on the tape; they must agree.
template <class O>
struct Both {
  Net model = random_net(1), taped = random_net(1);
  decltype(train_step(pull, std::declval<O>())) step;
  optim::Optimizer<O> optimizer;
  explicit Both(O const& o) : step(train_step(pull, o)), optimizer(o) { watch(taped); }
  void operator()(Net const& g) {
    step(model, g);
    pull(taped, g).backward();
    optimizer.step(taped);
    zero_grad(taped);
    CHECK(apart(model, taped) < 1e-14);
  }
};
Net gradient_of(std::uint64_t k) { return random_net(10 * k); }

bool is_bias(std::string const& name) { return name.ends_with("bias"); }

}  // namespace

TEST_CASE("patterns of names", "[optim]") {
  using optim::name_matches;
  CHECK(name_matches("*.bias", "layers.0.bias"));
  CHECK_FALSE(name_matches("*.bias", "layers.0.bias2"));
  CHECK_FALSE(name_matches("*.bias", "bias"));
  CHECK(name_matches("*bias", "bias"));
  CHECK(name_matches("blocks.*.norm*.weight", "blocks.*.norm1.weight"));
  CHECK(name_matches("a*b*c", "aXbYbZc"));
  CHECK_FALSE(name_matches("a*b*c", "aXbYbZ"));
  CHECK(name_matches("*", ""));
  CHECK(name_matches("", ""));
  CHECK_FALSE(name_matches("", "a"));
  CHECK(name_matches("**a", "ba"));
  STATIC_CHECK(optim::Pattern("in.*").matches("in.weight"));
}

TEST_CASE("groups have rates and decays of their own", "[optim]") {
  optim::AdamW const rule{.lr = 0.1, .weight_decay = 0.5};
  Both grouped(optim::Groups{rule, optim::group<"*.bias">({.weight_decay = 0}),
                             optim::group<"blocks.1.*", "*.bias">({.lr = 0.25})});
  Both clipped(optim::Groups{optim::ClipNorm{rule, 0.5}, optim::group<"*.bias">({.weight_decay = 0}),
                             optim::group<"blocks.1.*">({.lr = 0.25})});
  Both around(optim::ClipNorm{optim::Groups{rule, optim::group<"*.bias">({.weight_decay = 0}),
                                            optim::group<"blocks.1.*">({.lr = 0.25})},
                              0.5});
  Both plain(rule), undecayed(optim::AdamW{.lr = 0.1, .weight_decay = 0}),
      slow(optim::AdamW{.lr = 0.025, .weight_decay = 0.5});
  for (std::uint64_t k = 1; k <= 3; ++k) {
    Net const g = gradient_of(k);
    if (k == 3) {  // a schedule moves the rate of all
      grouped.step.optimizer().inner.lr = grouped.optimizer.rule().inner.lr = 0.2;
      plain.step.optimizer().lr = plain.optimizer.rule().lr = 0.2;
      undecayed.step.optimizer().lr = undecayed.optimizer.rule().lr = 0.2;
      slow.step.optimizer().lr = slow.optimizer.rule().lr = 0.05;
    }
    grouped(g), clipped(g), around(g), plain(g), undecayed(g), slow(g);
    CHECK(apart(grouped.model, undecayed.model, is_bias) < 1e-14);
    auto const last = [](std::string const& name) { return name == "blocks.1.weight"; };
    CHECK(apart(grouped.model, slow.model, last) < 1e-14);
    auto const others = [&](std::string const& name) { return !is_bias(name) && !last(name); };
    CHECK(apart(grouped.model, plain.model, others) < 1e-14);
    CHECK(apart(clipped.model, around.model) < 1e-14);
  }
  CHECK(apart(clipped.model, plain.model, is_bias) > 0.01);
}

TEST_CASE("patterns that are like no name are refused", "[optim]") {
  Net model = init<Net>(1);
  watch(model);
  sum(square(model.in.weight)).backward();
  optim::SGD const rule{.lr = 0.1};
  optim::Optimizer frozen(optim::freeze<"inn.*", "*.biases">(rule));
  CHECK_THROWS_WITH(frozen.step(model), "freeze: no parameter is called inn.* *.biases");
  optim::Optimizer grouped(optim::ClipNorm{
      optim::Groups{rule, optim::group<"*.bias">({.lr = 2}), optim::group<"*.scale">({.lr = 2})}, 1});
  CHECK_THROWS_WITH(grouped.step(model), "group: no parameter is called *.scale");
  // One pattern of several suffices.
  optim::Optimizer good(optim::freeze<"inn.*", "*.bias">(rule));
  good.step(model);
}

TEST_CASE("frozen parameters stay, and count for nothing", "[optim]") {
  optim::ClipNorm const rule{optim::AdamW{.lr = 0.1, .weight_decay = 0.5}, 0.01};
  Both frozen(optim::freeze<"in.*", "blocks.0.bias">(rule));
  Both plain(rule);
  auto const is_frozen = [](std::string const& name) {
    return name.starts_with("in.") || name == "blocks.0.bias" || name == "seen";
  };
  Net g = gradient_of(1), huge = gradient_of(1);
  nn::init::constant(huge.in.weight, 1e300);  // would be infinite in the norm
  Net zero = gradient_of(1);
  for (Array* a : {static_cast<Array*>(&zero.in.weight), static_cast<Array*>(&zero.in.bias),
                   static_cast<Array*>(&zero.blocks[0].bias)})
    nn::init::zeros(*a);
  frozen(huge), plain(zero);
  CHECK(apart(frozen.model, random_net(1), is_frozen) == 0);
  auto const moved = [&](std::string const& name) { return !is_frozen(name); };
  CHECK(apart(frozen.model, plain.model, moved) < 1e-14);
  CHECK(apart(frozen.model, random_net(1), moved) > 0.01);
  // Programs do not compute what is frozen.
  using All = decltype(frozen.step)::program_for<Net, Net>;
  using None = decltype(train_step(pull, optim::freeze<"*">(rule)))::program_for<Net, Net>;
  STATIC_CHECK(None::flops() * 3 < All::flops());
}

TEST_CASE("gradients of several steps move parameters once", "[optim]") {
  Both parts(optim::Accumulate{optim::ClipNorm{optim::Adam{.lr = 0.1}, 0.7}, 3});
  Both whole(optim::ClipNorm{optim::Adam{.lr = 0.1}, 0.7});
  for (std::uint64_t round = 0; round < 3; ++round) {
    Net all = gradient_of(1);
    visit(all, [](auto& leaf) { nn::init::zeros(leaf); });
    Net const before = random_net(1);
    for (std::uint64_t k = 1; k <= 3; ++k) {
      Net const g = gradient_of(3 * round + k);
      CHECK(apart(parts.model, whole.model) < 1e-14);
      parts(g);
      auto const from = leaves(g);
      std::size_t i = 0;
      visit(all, [&](auto& leaf) {
        using Leaf = std::remove_cvref_t<decltype(leaf)>;
        leaf = Leaf(Array(leaf + from[i++] * (1.0 / 3)));
      });
    }
    whole(all);
    CHECK(apart(parts.model, whole.model) < 1e-14);
    CHECK(apart(parts.model, before) > 0.01);
  }
}

TEST_CASE("averages of the parameters", "[optim]") {
  Both both(optim::Accumulate{optim::Average{optim::SGD{.lr = 0.1}, 0.6}, 1});
  Net want;
  for (std::uint64_t k = 1; k <= 4; ++k) {
    both(gradient_of(k));
    auto const now = leaves(both.model);
    std::size_t i = 0;
    visit(want, [&](auto& leaf) {
      using Leaf = std::remove_cvref_t<decltype(leaf)>;
      Array const& p = now[i++];
      leaf = Leaf(k == 1 || is_buffer<Leaf> ? p.clone() : Array(leaf * 0.6 + p * 0.4));
    });
    Net const average = optim::average(both.step, both.model);
    CHECK(apart(average, want) < 1e-14);
    CHECK(apart(optim::average(both.optimizer, both.taped), want) < 1e-14);
    CHECK(average.in.weight.bytes() != both.model.in.weight.bytes());
  }
  CHECK(apart(want, both.model) > 0.01);
}

namespace {

struct Deep {
  nn::Repeat<nn::Linear<3, 3, true, double>, 2> blocks;
  DFDX_FIELDS(blocks)
};
constexpr auto through = [](auto const& net, auto const& x) { return sum(square(net.blocks(x))); };

}  // namespace

TEST_CASE("names of stacked layers", "[optim]") {
  auto model = init<Deep>(1), fresh = init<Deep>(1);
  auto step = train_step(through, optim::freeze<"blocks.*.bias">(optim::SGD{.lr = 0.1}));
  step(model, randn<double, 2, 3>(Key{1}));
  CHECK(apart(model, fresh, is_bias) == 0);
  CHECK(apart(model, fresh) > 0.001);
}

namespace {

struct Normed {
  nn::Linear<3, 4, true, double> fc;
  nn::BatchNorm<4, 2, max_rank, double> norm;
  DFDX_FIELDS(fc, norm)
};
constexpr auto in_training = [](auto net, auto const& x) {
  auto const l = sum(square(net.norm.train(net.fc(x)) - 0.5));
  return std::pair(l, net);
};
constexpr auto in_use = [](auto const& net, auto const& x) { return sum(square(net.norm(net.fc(x)) - 0.5)); };

}  // namespace

TEST_CASE("buffers are state, not parameters", "[optim]") {
  STATIC_CHECK(is_buffer<decltype(Normed{}.norm.running_mean)>);
  STATIC_CHECK(leaf_count<Normed> == 6);
  STATIC_CHECK(parameter_count<Normed> == 12 + 4 + 8);
  auto const x = randn<double, 5, 3>(Key{1});
  optim::AdamW const rule{.lr = 0.01, .weight_decay = 0.5};

  // A loss that does not move them: decay does not either.
  auto model = init<Normed>(2);
  auto step = train_step(in_use, rule);
  for (int k = 0; k < 3; ++k) step(model, x);
  CHECK(array_equal(model.norm.running_mean, zeros<double, 4>()));
  CHECK(array_equal(model.norm.running_var, ones<double, 4>()));
  CHECK_FALSE(array_equal(model.norm.weight, ones<double, 4>()));

  // One that does, compiled, on the tape and by hand. The bias before a norm has no gradient but rounding, which a
  // small eps would make steps of.
  optim::AdamW const steady{.lr = 0.01, .eps = 1e-3, .weight_decay = 0.5};
  auto compiled = init<Normed>(2), taped = init<Normed>(2);
  auto training = train_step(in_training, steady);
  optim::Optimizer optimizer(steady);
  watch(taped);
  CHECK_FALSE(taped.norm.running_mean.requires_grad());
  CHECK(taped.norm.weight.requires_grad());
  for (int k = 0; k < 3; ++k) {
    auto const h = compiled.fc(x).detach();
    Array const mean = compiled.norm.running_mean * 0.9 + dfdx::mean<0>(Tensor<double, 5, 4>(h)) * 0.1;
    double const loss = training(compiled, x);
    auto const l = sum(square(taped.norm.train(taped.fc(x)) - 0.5));
    CHECK(std::fabs(l.item() - loss) < 1e-12);
    l.backward();
    optimizer.step(taped);
    zero_grad(taped);
    CHECK(allclose(compiled.norm.running_mean, mean, 1e-12, 1e-12));
    CHECK(apart(compiled, taped) < 1e-11);
    CHECK_FALSE(taped.norm.running_mean.requires_grad());
  }
  CHECK_FALSE(array_equal(compiled.norm.running_mean, zeros<double, 4>()));
}

}  // namespace tests::optim_wrappers
