// SPDX-License-Identifier: BSL-1.0
// The training step of a small convolutional network as one writes it in libtorch: modules, eager calls,
// torch::optim::Adam; one thread.
#include "torch_fashion.hpp"

#include <torch/torch.h>

namespace torch_fashion {

struct NetImpl : torch::nn::Module {
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};

  NetImpl() {
    conv1 = register_module("conv1", torch::nn::Conv2d(1, 32, 3));
    conv2 = register_module("conv2", torch::nn::Conv2d(32, 64, 3));
    fc1 = register_module("fc1", torch::nn::Linear(1600, 128));
    fc2 = register_module("fc2", torch::nn::Linear(128, 10));
  }

  torch::Tensor forward(torch::Tensor const& x) {
    auto const h = torch::max_pool2d(torch::relu(conv1(x)), 2);
    auto const k = torch::max_pool2d(torch::relu(conv2(h)), 2);
    return fc2(torch::relu(fc1(torch::flatten(k, 1))));
  }
};
TORCH_MODULE(Net);

struct Trainer::State {
  Net net;
  torch::optim::Adam optimizer;
  std::vector<torch::Tensor> pictures, labels;

  explicit State(double lr) : optimizer(net->parameters(), torch::optim::AdamOptions(lr)) {}
};

Trainer::Trainer(std::vector<float const*> const& weights, double lr) {
  at::set_num_threads(1);
  state_ = std::make_unique<State>(lr);
  torch::NoGradGuard const no_grad;
  std::size_t i = 0;
  for (torch::Tensor to : state_->net->parameters())
    to.copy_(torch::from_blob(const_cast<float*>(weights.at(i++)), to.sizes(), torch::kFloat32));
}

Trainer::~Trainer() = default;

void Trainer::add_batch(float const* pictures, int const* labels) {
  state_->pictures.push_back(
      torch::from_blob(const_cast<float*>(pictures), {64, 1, 28, 28}, torch::kFloat32).clone());
  state_->labels.push_back(torch::from_blob(const_cast<int*>(labels), {64}, torch::kInt32).to(torch::kInt64));
}

float Trainer::step(std::size_t batch) {
  State& s = *state_;
  s.optimizer.zero_grad();
  auto const loss = torch::nn::functional::cross_entropy(s.net(s.pictures[batch]), s.labels[batch]);
  loss.backward();
  s.optimizer.step();
  return loss.item<float>();
}

std::string version() { return std::string("libtorch ") + TORCH_VERSION; }

}  // namespace torch_fashion
