// SPDX-License-Identifier: BSL-1.0
// Layers that call one function with parameters of their own, modules made of modules, and their training.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::nn_layers {

using namespace dfdx;

namespace {

double difference(Array const& a, Array const& b) { return max(abs(a - b)).item(); }

template <class M>
std::vector<std::string> names(M const& m) {
  std::vector<std::string> r;
  visit_state(m, [&](std::string const& name, auto const&) { r.push_back(name); });
  return r;
}

}  // namespace

TEST_CASE("layers call their functions with their parameters", "[nn]") {
  auto const x = randn<float, 3, 4>(Key{1}), y = randn<float, 3, 4>(Key{2});
  auto const b = init<nn::Bilinear<4, 4, 2>>(3);
  CHECK(array_equal(b(x, y), bilinear(x, y, b.weight, b.bias)));
  double const bound = 1 / std::sqrt(4.0);
  CHECK((max(abs(b.weight)).item() <= bound && max(abs(b.weight)).item() > 0.8 * bound));
  CHECK((max(abs(b.bias)).item() <= bound && max(abs(b.bias)).item() > 0));
  auto const plain = init<nn::Bilinear<4, 4, 2, false>>(3);
  CHECK(array_equal(plain(x, y), bilinear(x, y, plain.weight)));

  auto const image = randn<float, 2, 4, 6, 6>(Key{1});
  CHECK(array_equal(nn::InstanceNorm2d<4>{}(image), instance_norm(image)));
  auto in = init<nn::InstanceNorm2d<4, true>>(1);
  CHECK(array_equal(in(image), instance_norm(image)));
  nn::init::uniform(in.weight, Key{4});
  nn::init::uniform(in.bias, Key{5});
  CHECK(array_equal(in(image), instance_norm(image, in.weight, in.bias)));
  CHECK(array_equal(nn::Flatten<>{}(image), reshape<2, 144>(image)));
  CHECK(array_equal(nn::Flatten<2, 3>{}(image), reshape<2, 4, 36>(image)));
  CHECK(array_equal(nn::Unflatten<1, 2, 2>{}(image), reshape<2, 2, 2, 6, 6>(image)));
  CHECK(array_equal(nn::PixelShuffle<2>{}(image), pixel_shuffle<2>(image)));
  CHECK(array_equal(nn::PixelUnshuffle<3>{}(image), pixel_unshuffle<3>(image)));
  constexpr InterpolateOptions finer{.scale_factor = 2, .mode = InterpolateMode::bilinear};
  CHECK(array_equal(nn::Upsample<finer>{}(image), interpolate<finer>(image)));
  CHECK(array_equal(nn::AdaptiveMaxPool2d<2, 3>{}(image), adaptive_max_pool2d<2, 3>(image)));
  auto const row = reshape<2, 4, 36>(image);
  CHECK(array_equal(nn::AdaptiveMaxPool1d<5>{}(row), adaptive_max_pool1d<5>(row)));
  CHECK(array_equal(nn::AdaptiveAvgPool1d<5>{}(row), adaptive_avg_pool1d<5>(row)));
  auto const volume = reshape<2, 2, 2, 6, 6>(image);
  CHECK(array_equal(nn::MaxPool3d<2>{}(volume), max_pool3d(volume, {2})));
  CHECK(array_equal(nn::AvgPool3d<2, 1>{}(volume), avg_pool3d(volume, {2, 1})));

  auto const bag = init<nn::EmbeddingBag<10, 4, Bag::sum>>(2);
  auto const index = Tensor<std::int64_t, 2, 3>::from({1, 2, 3, 4, 5, 5});
  CHECK(array_equal(bag(index), embedding_bag<Bag::sum>(index, bag.weight)));
  auto const flat = reshape<6>(index);
  auto const offsets = Tensor<std::int64_t, 3>::from({0, 1, 4});
  CHECK(array_equal(bag(flat, offsets), embedding_bag<Bag::sum>(flat, bag.weight, offsets)));
  CHECK(array_equal(init<nn::EmbeddingBag<10, 4>>(2)(index), embedding_bag(index, bag.weight)));
}

TEST_CASE("blocks are their formulas", "[nn]") {
  auto const x = randn<float, 3, 4>(Key{1});
  auto const mlp = init<nn::MLP<4, 8, 2>>(1);
  CHECK(array_equal(mlp(x), mlp.fc2(gelu(mlp.fc1(x)))));
  auto const ge = init<nn::GEGLU<4, 8>>(2);
  CHECK(array_equal(ge(x), ge.down_proj(gelu(ge.gate_proj(x)) * ge.up_proj(x))));
  auto const swi = init<nn::SwiGLU<4, 8, 5, true>>(2);
  CHECK(array_equal(swi(x), swi.down_proj(silu(swi.gate_proj(x)) * swi.up_proj(x))));
  CHECK(names(nn::SwiGLU<4, 8>{}) ==
        std::vector<std::string>{"gate_proj.weight", "up_proj.weight", "down_proj.weight"});

  auto const around = init<nn::Residual<nn::Linear<4, 4>>>(3);
  CHECK(array_equal(around(x), x + around.module(x)));
  auto const both = init<nn::Parallel<-1, nn::Linear<4, 2>, nn::Linear<4, 3>>>(3);
  auto const y = both(x);
  static_assert(std::is_same_v<decltype(y), Tensor<float, 3, 5> const>);
  CHECK(array_equal(y, concat<-1>(std::get<0>(both.layers)(x), std::get<1>(both.layers)(x))));
  CHECK(names(both) == std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias"});
}

TEST_CASE("dropout leaves what it should and draws anew in each place", "[nn]") {
  auto const x = ones<float, 100, 100>();
  nn::Dropout<0.25> const layer;
  CHECK(array_equal(layer(x), x));
  auto const y = layer.train(x, Key{1});
  CHECK(array_equal(y, dropout(x, 0.25, Key{1})));
  CHECK(std::abs(mean(y).item() - 1) < 0.03);

  // Two layers, two keys: what one drops says nothing of the other.
  nn::Parallel<0, nn::Dropout<>, nn::Dropout<>> const two;
  auto const apart = [&](auto const& key) {
    auto const both = two.train(x, key);
    return mean(cast<float>(slice<0, 0, 100>(both) == slice<0, 100>(both))).item();
  };
  CHECK(std::abs(apart(Key{7}) - 0.5) < 0.03);
  CHECK(std::abs(apart(Tensor<std::int64_t>(7)) - 0.5) < 0.03);
  nn::Residual<nn::Dropout<>> const beside;
  CHECK(array_equal(beside.train(x, Key{3}), x + dropout(x, 0.5, Key{3})));
}

TEST_CASE("a sequence trains its parts", "[nn]") {
  using Net = nn::Sequential<nn::Linear<4, 6>, nn::BatchNorm1d<6>, nn::Dropout<0.5>,
                             nn::Residual<nn::Sequential<nn::Dropout<0.5>, nn::Linear<6, 6>>>>;
  auto net = init<Net>(1);
  auto const before = clone(net);
  auto const x = randn<float, 32, 4>(Key{1});
  // A copy, for training moves the running statistics.
  auto const y = net.train(x, Key{2});
  CHECK(array_equal(y, Net(before).train(x, Key{2})));
  CHECK(difference(y, Net(before).train(x, Key{3})) > 0.1);
  CHECK(difference(std::get<1>(net.layers).running_mean, std::get<1>(before.layers).running_mean) > 1e-3);
  CHECK(array_equal(before(x), before(x)));

  // A compiled step whose key is an argument: the loss falls although half the values are dropped.
  using Small = nn::Sequential<nn::Linear<4, 32>, nn::ReLU, nn::Dropout<0.5>, nn::Linear<32, 1>>;
  auto model = init<Small>(1);
  auto step = train_step([](auto const& m, auto const& in, auto const& want,
                            auto const& key) { return mse_loss(m.train(in, key), want); },
                         optim::Adam{.lr = 1e-2});
  auto const want = sum<1>(x, keepdim);
  float first = 0, last = 0;
  for (std::int64_t i = 0; i < 300; ++i) {
    last = step(model, x, want, Tensor<std::int64_t>(i));
    if (i == 0) first = last;
  }
  CHECK(last < 0.3f * first);
  CHECK(mse_loss(model(x), want).item() < 0.1 * static_cast<double>(first));
}

TEST_CASE("repeated blocks draw each its own", "[nn]") {
  // Each block keeps half of what it gets, twice as large: of 2^-3 of the numbers 8 is left, if the draws differ.
  nn::Repeat<nn::Sequential<nn::Dropout<0.5>, nn::Linear<1, 1, false>>, 3> blocks;
  blocks.allocate();
  visit(blocks, [](auto& leaf) { nn::init::ones(leaf); });
  auto const x = ones<float, 4096, 1>();
  CHECK(array_equal(blocks(x), x));
  auto const check = [](Array const& y) {
    CHECK(std::abs(mean(cast_to(y == 8, DType::f32)).item() - 0.125) < 0.03);
    CHECK(mean(cast_to(y != 0, DType::f32)).item() == mean(cast_to(y == 8, DType::f32)).item());
  };
  check(blocks.train(x, Key{1}));
  Tensor<std::int64_t> const key(1);
  auto const y = blocks.train(x, key);
  check(y);
  CHECK(array_equal(
      compile([](auto const& b, auto const& v, auto const& k) { return b.train(v, k); })(blocks, x, key), y));
}

namespace {

// A block whose training moves running statistics: those of two norms, one of them in a part.
struct NormedBlock {
  nn::Linear<4, 4> fc;
  nn::BatchNorm1d<4> norm;
  nn::Sequential<nn::BatchNorm1d<4>, nn::Dropout<0.25>> last;
  DFDX_FIELDS(fc, norm, last)
  constexpr auto operator()(auto const& x) const { return x + last(relu(norm(fc(x)))); }
  constexpr auto train(auto const& x, auto const& key) {
    return x + last.train(relu(norm.train(fc(x))), key);
  }
};

}  // namespace

TEST_CASE("repeated blocks move their running statistics", "[nn]") {
  auto const x = randn<float, 16, 4>(Key{1});
  auto const start = repeat<3>(init<NormedBlock>(1));
  auto const keys = nn::detail::part_keys<3>(Key{9});
  // In memory: what the blocks one by one give.
  std::array<NormedBlock, 3> alone{start[0], start[1], start[2]};
  auto h = x;
  for (index_t i = 0; i < 3; ++i) {
    Tensor<std::int64_t> const key = keys[i];
    h = alone[static_cast<std::size_t>(i)].train(h, key);
  }
  auto blocks = start;
  CHECK(difference(blocks.train(x, Key{9}), h) < 1e-6);
  for (index_t i = 0; i < 3; ++i) {
    auto const& one = alone[static_cast<std::size_t>(i)];
    CHECK(difference(blocks[i].norm.running_mean, one.norm.running_mean) < 1e-6);
    CHECK(difference(std::get<0>(blocks[i].last.layers).running_var,
                     std::get<0>(one.last.layers).running_var) < 1e-6);
    CHECK(difference(blocks[i].norm.running_mean, start[i].norm.running_mean) > 1e-3);
  }

  // Compiled: the statistics after three steps are those of training on the tape.
  auto compiled = repeat<3>(init<NormedBlock>(1)), taped = repeat<3>(init<NormedBlock>(1));
  auto const want = randn<float, 16, 4>(Key{2});
  auto const loss = [](auto net, auto const& in, auto const& out, auto const& key) {
    auto const y = net.train(in, key);
    return std::pair(mse_loss(y, out), net);
  };
  auto step = train_step(loss, optim::SGD{.lr = 0.05});
  optim::Optimizer rule(optim::SGD{.lr = 0.05});
  watch(taped);
  for (std::int64_t k = 0; k < 3; ++k) {
    float const by_program = step(compiled, x, want, Tensor<std::int64_t>(k));
    auto const y = taped.train(x, Tensor<std::int64_t>(k));
    auto const by_tape = mse_loss(y, want);
    by_tape.backward();
    rule.step(taped);
    zero_grad(taped);
    CHECK(std::abs(by_program - by_tape.item()) < 1e-5f);
  }
  CHECK(difference(compiled[2].norm.running_var, taped[2].norm.running_var) < 1e-5);
  CHECK(difference(compiled[1].norm.running_mean, taped[1].norm.running_mean) < 1e-5);
  CHECK(difference(compiled[0].fc.weight, taped[0].fc.weight) < 1e-5);
  CHECK(difference(compiled(x), taped(x)) < 1e-4);
}

}  // namespace tests::nn_layers
