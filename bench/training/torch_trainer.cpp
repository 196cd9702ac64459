// SPDX-License-Identifier: BSL-1.0
// Training steps as one writes them in libtorch: modules, eager calls, torch::optim; one thread.
#include "torch_trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include <torch/torch.h>

#include "torch_pool.hpp"

namespace torch_trainer {

namespace {

using torch::Tensor;
namespace nn = torch::nn;

struct Network : nn::Module {
  std::vector<std::int64_t> inputs, labels;
  bool tokens = false;
  virtual Tensor loss(Tensor const& x, Tensor const& y) = 0;
  virtual std::unique_ptr<torch::optim::Optimizer> optimizer(double lr) {
    return std::make_unique<torch::optim::Adam>(parameters(), torch::optim::AdamOptions(lr));
  }
  virtual void before_step() {}

 protected:
  nn::Linear linear(std::string const& name, int in, int out, bool bias = true) {
    return register_module(name, nn::Linear(nn::LinearOptions(in, out).bias(bias)));
  }
};

struct Words : Network {
  nn::Embedding embedding = register_module("embedding", nn::Embedding(27, 10));
  nn::Linear fc1 = linear("fc1", 30, 200, false), fc2 = linear("fc2", 200, 200, false),
             out = linear("out", 200, 27);

  Words() { inputs = {32, 3}, labels = {32}, tokens = true; }
  Tensor loss(Tensor const& x, Tensor const& y) override {
    auto const h = torch::tanh(fc1(embedding(x).view({-1, 30})));
    return nn::functional::cross_entropy(out(torch::tanh(fc2(h))), y);
  }
  std::unique_ptr<torch::optim::Optimizer> optimizer(double lr) override {
    return std::make_unique<torch::optim::SGD>(parameters(), torch::optim::SGDOptions(lr));
  }
};

struct Fashion : Network {
  nn::Conv2d conv1 = register_module("conv1", nn::Conv2d(1, 32, 3)),
             conv2 = register_module("conv2", nn::Conv2d(32, 64, 3));
  nn::Linear fc1 = linear("fc1", 1600, 128), fc2 = linear("fc2", 128, 10);

  Fashion() { inputs = {64, 1, 28, 28}, labels = {64}; }
  Tensor loss(Tensor const& x, Tensor const& y) override {
    auto const h = torch::max_pool2d(torch::relu(conv1(x)), 2);
    auto const k = torch::max_pool2d(torch::relu(conv2(h)), 2);
    return nn::functional::cross_entropy(fc2(torch::relu(fc1(torch::flatten(k, 1)))), y);
  }
};

struct Mlp : Network {
  nn::Linear fc1 = linear("fc1", 784, 512), fc2 = linear("fc2", 512, 256), fc3 = linear("fc3", 256, 10);

  Mlp() { inputs = {128, 784}, labels = {128}; }
  Tensor loss(Tensor const& x, Tensor const& y) override {
    return nn::functional::cross_entropy(fc3(torch::relu(fc2(torch::relu(fc1(x))))), y);
  }
};

struct AttentionImpl : nn::Module {
  nn::Linear c_attn = register_module("c_attn", nn::Linear(nn::LinearOptions(128, 384).bias(false))),
             c_proj = register_module("c_proj", nn::Linear(nn::LinearOptions(128, 128).bias(false)));
  Tensor mask = torch::ones({64, 64}, torch::kBool).tril().logical_not();

  Tensor forward(Tensor const& x) {
    auto const b = x.size(0), t = x.size(1);
    auto const parts = c_attn(x).split(128, 2);
    auto const heads = [&](Tensor const& v) { return v.view({b, t, 4, 32}).transpose(1, 2); };
    auto const q = heads(parts[0]), k = heads(parts[1]), v = heads(parts[2]);
    auto const scores = torch::matmul(q, k.transpose(-2, -1)) * (1 / std::sqrt(32.0));
    auto const p = torch::softmax(scores.masked_fill(mask, -std::numeric_limits<float>::infinity()), -1);
    return c_proj(torch::matmul(p, v).transpose(1, 2).contiguous().view({b, t, 128}));
  }
};
TORCH_MODULE(Attention);

struct BlockImpl : nn::Module {
  nn::LayerNorm ln_1 = register_module("ln_1", nn::LayerNorm(nn::LayerNormOptions({128})));
  Attention attn = register_module("attn", Attention());
  nn::LayerNorm ln_2 = register_module("ln_2", nn::LayerNorm(nn::LayerNormOptions({128})));
  nn::Sequential mlp{nullptr};
  nn::Linear c_fc = nn::Linear(nn::LinearOptions(128, 512).bias(false)),
             c_proj = nn::Linear(nn::LinearOptions(512, 128).bias(false));

  BlockImpl() {
    mlp = register_module("mlp", nn::Sequential());
    mlp->push_back("c_fc", c_fc);
    mlp->push_back("gelu", nn::GELU());
    mlp->push_back("c_proj", c_proj);
  }
  Tensor forward(Tensor const& x) {
    auto const h = x + attn(ln_1(x));
    return h + mlp->forward(ln_2(h));
  }
};
TORCH_MODULE(Block);

// As nanoGPT writes it: 4 layers of 4 heads, 128 wide, 64 characters of context.
struct Gpt : Network {
  nn::Embedding wte = register_module("wte", nn::Embedding(128, 128)),
                wpe = register_module("wpe", nn::Embedding(64, 128));
  nn::Sequential h = register_module("h", nn::Sequential(Block(), Block(), Block(), Block()));
  nn::LayerNorm ln_f = register_module("ln_f", nn::LayerNorm(nn::LayerNormOptions({128})));

  Gpt() { inputs = {12, 64}, labels = {12, 64}, tokens = true; }
  Tensor loss(Tensor const& x, Tensor const& y) override {
    auto const out = ln_f(h->forward(wte(x) + wpe->weight));
    auto const scores = torch::matmul(out, wte->weight.t());
    return nn::functional::cross_entropy(scores.view({-1, 128}), y.view({-1}));
  }
  std::unique_ptr<torch::optim::Optimizer> optimizer(double lr) override {
    auto const options = torch::optim::AdamWOptions(lr).betas({0.9, 0.99}).weight_decay(0.1);
    return std::make_unique<torch::optim::AdamW>(parameters(), options);
  }
  void before_step() override { nn::utils::clip_grad_norm_(parameters(), 1.0); }
};

std::shared_ptr<Network> make(std::string const& name) {
  if (name == "words") return std::make_shared<Words>();
  if (name == "fashion") return std::make_shared<Fashion>();
  if (name == "mlp") return std::make_shared<Mlp>();
  if (name == "gpt") return std::make_shared<Gpt>();
  throw std::runtime_error("no network " + name);
}

}  // namespace

struct Trainer::State {
  std::shared_ptr<Network> net;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::vector<Tensor> inputs, labels;
};

Trainer::Trainer(std::string const& network, std::vector<Weight> const& weights, double lr) {
  use_pool();
  state_ = std::make_unique<State>();
  state_->net = make(network);
  state_->optimizer = state_->net->optimizer(lr);
  torch::NoGradGuard const no_grad;
  auto parameters = state_->net->named_parameters();
  if (parameters.size() != weights.size()) throw std::runtime_error(network + ": other parameters");
  for (Weight const& w : weights) {
    Tensor& to = parameters[w.name];
    to.copy_(torch::from_blob(const_cast<float*>(w.data), to.sizes(), torch::kFloat32));
  }
}

Trainer::~Trainer() = default;

void Trainer::add_batch(void const* inputs, int const* labels) {
  State& s = *state_;
  auto const tensor = [](void const* from, std::vector<std::int64_t> const& sizes, bool integers) {
    auto const view =
        torch::from_blob(const_cast<void*>(from), sizes, integers ? torch::kInt32 : torch::kFloat32);
    return integers ? view.to(torch::kInt64) : view.clone();
  };
  s.inputs.push_back(tensor(inputs, s.net->inputs, s.net->tokens));
  s.labels.push_back(tensor(labels, s.net->labels, true));
  pool().forget_peak();
}

float Trainer::step(std::size_t batch) {
  State& s = *state_;
  s.optimizer->zero_grad();
  auto const loss = s.net->loss(s.inputs[batch], s.labels[batch]);
  loss.backward();
  s.net->before_step();
  s.optimizer->step();
  return loss.item<float>();
}

std::size_t Trainer::peak_bytes() const {
  State const& s = *state_;
  return pool().peak() - (s.inputs.size() - 1) * (s.inputs[0].nbytes() + s.labels[0].nbytes());
}

std::string version() { return std::string("libtorch ") + TORCH_VERSION; }

}  // namespace torch_trainer
