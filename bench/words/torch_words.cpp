// SPDX-License-Identifier: BSL-1.0
// The words training step as one writes it in libtorch: modules, eager calls, torch::optim::SGD; one thread.
#include "torch_words.hpp"

#include <torch/torch.h>

namespace torch_words {

struct NetImpl : torch::nn::Module {
  torch::nn::Embedding embedding{nullptr};
  torch::nn::Linear fc1{nullptr}, fc2{nullptr}, out{nullptr};

  NetImpl() {
    embedding = register_module("embedding", torch::nn::Embedding(27, 10));
    fc1 = register_module("fc1", torch::nn::Linear(torch::nn::LinearOptions(30, 200).bias(false)));
    fc2 = register_module("fc2", torch::nn::Linear(torch::nn::LinearOptions(200, 200).bias(false)));
    out = register_module("out", torch::nn::Linear(200, 27));
  }

  torch::Tensor forward(torch::Tensor const& x) {
    auto const h = torch::tanh(fc1(embedding(x).view({-1, 30})));
    return out(torch::tanh(fc2(h)));
  }
};
TORCH_MODULE(Net);

struct Trainer::State {
  Net net;
  torch::optim::SGD optimizer;
  std::vector<torch::Tensor> contexts, labels;

  explicit State(float lr)
      : optimizer(net->parameters(), torch::optim::SGDOptions(static_cast<double>(lr))) {}
};

Trainer::Trainer(Weights const& w, float lr) {
  at::set_num_threads(1);
  state_ = std::make_unique<State>(lr);
  torch::NoGradGuard const no_grad;
  auto const copy = [](torch::Tensor to, float const* from) {
    to.copy_(torch::from_blob(const_cast<float*>(from), to.sizes(), torch::kFloat32));
  };
  Net const& net = state_->net;
  copy(net->embedding->weight, w.embedding);
  copy(net->fc1->weight, w.fc1);
  copy(net->fc2->weight, w.fc2);
  copy(net->out->weight, w.out);
  copy(net->out->bias, w.bias);
}

Trainer::~Trainer() = default;

void Trainer::add_batch(int const* contexts, int const* labels) {
  auto const tensor = [](int const* from, at::IntArrayRef sizes) {
    return torch::from_blob(const_cast<int*>(from), sizes, torch::kInt32).to(torch::kInt64);
  };
  state_->contexts.push_back(tensor(contexts, {32, 3}));
  state_->labels.push_back(tensor(labels, {32}));
}

float Trainer::step(std::size_t batch) {
  State& s = *state_;
  s.optimizer.zero_grad();
  auto const loss = torch::nn::functional::cross_entropy(s.net(s.contexts[batch]), s.labels[batch]);
  loss.backward();
  s.optimizer.step();
  return loss.item<float>();
}

std::string version() { return std::string("libtorch ") + TORCH_VERSION; }

}  // namespace torch_words
