// SPDX-License-Identifier: BSL-1.0
// The same model struct on the tape and compiled: gradients agree, and so do parameters after steps of every optimizer.
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::tape_training {

namespace {

using namespace dfdx;

struct Net {
  nn::Embedding<11, 4> embed;
  nn::Linear<8, 16> in;
  nn::LayerNorm<16> norm;
  nn::Linear<16, 5> out;
  DFDX_FIELDS(embed, in, norm, out)

  constexpr auto operator()(auto const& tokens) const {
    auto const h = reshape<-1, 8>(embed(tokens));
    return out(gelu(norm(in(h))));
  }
};

constexpr auto loss = [](auto const& net, auto const& x, auto const& y) { return cross_entropy(net(x), y); };

Net fresh() { return init<Net>(3); }

double apart(Array const& a, Array const& b) { return testing::error_ratio(a, b, 1e-5, 1e-6); }

template <class O>
void check(O rule) {
  Net compiled = fresh(), taped = fresh();
  watch(taped);
  auto const x = randint<Tensor<std::int32_t, 6, 2>>(Key{1}, 0, 11);
  auto const y = randint<Tensor<std::int32_t, 6>>(Key{2}, 0, 5);
  auto step = train_step(loss, rule);
  optim::Optimizer optimizer(rule);
  for (int i = 0; i < 4; ++i) {
    float const want = step(compiled, x, y);
    Array const l = loss(taped, x, y);
    CHECK(std::fabs(l.item() - static_cast<double>(want)) < 1e-5);
    l.backward();
    optimizer.step(taped);
    zero_grad(taped);
  }
  std::vector<Array> a, b;
  visit(compiled, [&](auto const& leaf) { a.push_back(leaf); });
  visit(taped, [&](auto const& leaf) { b.push_back(leaf); });
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("parameter " << i);
    CHECK(apart(b[i].detach(), a[i]) <= 1);
  }
}

TEST_CASE("a model on the tape learns as it does compiled") {
  check(optim::SGD{.lr = 0.1});
  check(optim::SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-2, .nesterov = true});
  check(optim::Adam{.lr = 1e-2, .weight_decay = 1e-2});
  check(optim::AdamW{.lr = 1e-2});
  check(optim::ClipNorm{optim::AdamW{.lr = 1e-2}, 0.1});
  check(optim::ClipValue{optim::SGD{.lr = 0.1}, 1e-3});
}

TEST_CASE("gradients of a model are a model") {
  Net net = fresh();
  watch(net);
  auto const x = randint<Tensor<std::int32_t, 6, 2>>(Key{1}, 0, 11);
  auto const y = randint<Tensor<std::int32_t, 6>>(Key{2}, 0, 5);
  loss(net, x, y).backward();
  Net const g = grads(net);
  auto const [value, want] = value_and_grad(loss)(fresh(), x, y);
  CHECK(apart(g.embed.weight, want.embed.weight) <= 1);
  CHECK(apart(g.norm.weight, want.norm.weight) <= 1);
  CHECK(apart(g.out.bias, want.out.bias) <= 1);
  CHECK_FALSE(g.out.bias.requires_grad());
  // Batches of any size, known only now.
  for (index_t batch : {1, 9}) {
    Array const logits = net(randint({batch, 2}, Key{5}, 0, 11));
    CHECK(logits.shape() == make_shape(batch, 5));
    CHECK(logits.requires_grad());
  }
  unwatch(net);
  CHECK_FALSE(net(x).requires_grad());
}

struct Block {
  nn::Linear<6, 6> fc;
  DFDX_FIELDS(fc)
  constexpr auto operator()(auto const& x) const { return x + tanh(fc(x)); }
};
struct Deep {
  nn::Repeat<Block, 4> blocks;
  DFDX_FIELDS(blocks)
  constexpr auto operator()(auto const& x) const { return blocks(x); }
};
constexpr auto squares = [](auto const& net, auto const& x) { return sum(square(net(x))); };

TEST_CASE("loops of a model, and scans, are followed by the tape") {
  Deep net = init<Deep>(4);
  auto const x = randn<float, 3, 6>(Key{1});
  auto const [value, want] = value_and_grad(squares)(net, x);
  watch(net);
  auto const loss = squares(net, x);
  CHECK(std::fabs(loss.item() - value.item()) < 1e-4f);
  loss.backward();
  std::vector<Array> expected, got;
  visit(want, [&](auto const& leaf) { expected.push_back(leaf); });
  Deep const g = grads(net);
  visit(g, [&](auto const& leaf) { got.push_back(leaf); });
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(apart(got[i], expected[i]) <= 1);

  // Carried and stacked values; the first two of these do not depend on the leaf.
  Array w = full({}, 2, DType::f64);
  w.requires_grad(true);
  for (Order order : {Order::forward, Order::backward}) {
    w.zero_grad();
    Array const xs = arange(1, 5, 1, DType::f64);
    auto const [last, all] =
        scan([&](Array const& c, Array const& v) { return std::pair(Array(c * w + v), Array(c * v)); },
             Array(full({}, 0, DType::f64)), xs, order);
    (last + sum(all)).backward();
    double const h = 1e-6;
    auto const plain = [&](double k) {
      double c = 0, total = 0;
      for (int i = 0; i < 4; ++i) {
        double const v = order == Order::forward ? 1 + i : 4 - i;
        total += c * v;
        c = c * k + v;
      }
      return total + c;
    };
    CHECK(std::fabs(w.grad().item() - (plain(2 + h) - plain(2 - h)) / (2 * h)) < 1e-6);
  }
}

TEST_CASE("parameters in 16 bits, and those without a gradient") {
  struct Pair {
    Tensor<float16, 3> used;
    Tensor<float, 2> unused;
    DFDX_FIELDS(used, unused)
  };
  Pair p{full<Tensor<float16, 3>>(1), full<Tensor<float, 2>>(2)};
  watch(p);
  optim::Optimizer optimizer(optim::SGD{.lr = 0.5});
  sum(p.used * p.used).backward();
  optimizer.step(p);
  CHECK(float(p.used(1)) == 0);
  CHECK(p.unused(1) == 2);
  CHECK(p.used.is_leaf());
  struct Other {
    Tensor<float, 3> a;
    DFDX_FIELDS(a)
  };
  Other o{full<Tensor<float, 3>>(1)};
  CHECK(tests::error_of([&] { optimizer.step(o); }) ==
        "step: the optimizer has state for 2 parameters, the model has 1");
}

struct Late {
  Tensor<double, 3> early, late;
  DFDX_FIELDS(early, late)
};
Late late_one() { return {randn<double, 3>(Key{1}), randn<double, 3>(Key{2})}; }

// One step; what has no part in the loss gets no gradient.
template <class O>
void move(Late& p, optim::Optimizer<O>& o, bool early, bool late) {
  watch(p);
  Array loss = full({}, 0, DType::f64);
  if (early) loss = loss + sum(square(p.early));
  if (late) loss = loss + sum(exp(p.late));
  if constexpr (requires { o.rule().scaling; }) loss = loss * o.rule().scaling.scale;
  loss.backward();
  o.step(p);
  zero_grad(p);
}

// A parameter that has gradients in some steps only goes the way that it goes alone.
template <class O>
void check_counts(O const& rule) {
  Late both = late_one(), alone = late_one();
  optim::Optimizer<O> of_both(rule), of_one(rule);
  for (bool late : {false, false, true, true, false, false, true, true}) {
    move(both, of_both, true, late);
    if (late) move(alone, of_one, false, true);
    CHECK(apart(both.late.detach(), alone.late.detach()) < 1e-6);
  }
  CHECK(of_both.steps() == 8);
  CHECK(array_equal(alone.early.detach(), late_one().early));
  CHECK_FALSE(allclose(alone.late.detach(), late_one().late));
}

TEST_CASE("on the tape each parameter counts its own updates") {
  namespace o = optim;
  check_counts(o::Adam{.lr = 0.1});
  check_counts(o::NAdam{.lr = 0.1});
  check_counts(o::Rprop{.lr = 0.1});
  check_counts(o::SGD{.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
  check_counts(o::Average{o::Adam{.lr = 0.1}, 0.5});
  check_counts(o::Accumulate{o::Adam{.lr = 0.1}, 2});
  check_counts(o::Groups{o::ClipValue{o::freeze<"none*", "early">(o::AdamW{.lr = 0.1}), 10.0},
                         o::group<"late">({.lr = 0.5})});
  check_counts(o::LossScale{o::Adam{.lr = 0.1}, {.scale = 1024}});

  // The average of a parameter is the parameter after its first update, not a part of it.
  Late p = late_one();
  o::Optimizer optimizer(o::Average{o::Adam{.lr = 0.1}, 0.9});
  move(p, optimizer, true, false);
  move(p, optimizer, true, true);
  CHECK(array_equal(o::average(optimizer, p).late, p.late.detach()));

  // Steps that a scale made overflow are no updates of any.
  Late scaled = late_one(), plain = late_one();
  o::Optimizer with(o::LossScale{o::Adam{.lr = 0.1}, {.scale = 1e308, .backoff = 1e-300}});
  o::Optimizer without(o::Adam{.lr = 0.1});
  move(scaled, with, true, true);
  CHECK(with.rule().skipped == 1);
  move(scaled, with, true, false);
  move(plain, without, true, false);
  move(scaled, with, true, true);
  move(plain, without, true, true);
  CHECK(apart(scaled.late.detach(), plain.late.detach()) < 1e-6);
  CHECK(apart(scaled.early.detach(), plain.early.detach()) < 1e-6);
}

}  // namespace

}  // namespace tests::tape_training
