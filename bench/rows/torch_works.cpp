// SPDX-License-Identifier: BSL-1.0
// The work of the rows as one writes it in libtorch: eager calls on one thread.
#include "torch_works.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>

#include <torch/torch.h>

#include "../training/torch_pool.hpp"

namespace torch_works {

namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
namespace F = torch::nn::functional;

// Libtorch 1 has no fused attention for C++ callers, so it is written out there.
Tensor attention(Tensors const& in, bool causal) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(in[0], in[1], in[2], std::nullopt, 0.0, causal);
#else
  auto const scale = 1 / std::sqrt(static_cast<double>(in[0].size(-1)));
  auto scores = torch::matmul(in[0] * scale, in[1].transpose(-2, -1));
  if (causal) {
    static std::map<std::int64_t, Tensor> masks;
    auto const t = in[0].size(-2);
    auto& mask = masks[t];
    if (!mask.defined()) mask = torch::ones({t, t}, torch::kBool).triu(1);
    scores = scores.masked_fill(mask, -std::numeric_limits<float>::infinity());
  }
  return torch::matmul(torch::softmax(scores, -1), in[2]);
#endif
}

// What a work computes from its inputs; the last input is the cotangent of the result unless it is a scalar.
using Function = Tensor (*)(Tensors const&);

Function function_of(std::string const& name) {
  static std::map<std::string, Function> const all{
      {"gelu", [](Tensors const& in) { return torch::gelu(in[0] * in[1] + in[2]) + in[3]; }},
      {"softmax", [](Tensors const& in) { return torch::softmax(in[0], -1); }},
      {"layer_norm",
       [](Tensors const& in) { return torch::layer_norm(in[0], {in[0].size(-1)}, in[1], in[2]); }},
      {"cross_entropy", [](Tensors const& in) { return F::cross_entropy(in[0], in[1]); }},
      {"sum", [](Tensors const& in) { return torch::sum(in[0]); }},
      {"exp", [](Tensors const& in) { return torch::exp(in[0]); }},
      {"pairs",
       [](Tensors const& in) {
         auto const between = in[0].unsqueeze(1) - in[1].unsqueeze(0);
         return torch::exp(-0.5 * torch::sum(torch::square(between), 2));
       }},
      {"directions",
       [](Tensors const& in) { return in[0] / torch::sqrt(torch::sum(torch::square(in[0]), -1, true)); }},
      {"attention", [](Tensors const& in) { return attention(in, false); }},
      {"causal_attention", [](Tensors const& in) { return attention(in, true); }},
      {"embedding", [](Tensors const& in) { return torch::embedding(in[0], in[1]); }},
      {"columns", [](Tensors const& in) { return torch::index_select(in[0], 1, in[1]); }},
      {"scatter_add", [](Tensors const& in) { return torch::scatter_add(in[0], 1, in[1], in[2]); }},
      {"one_hot", [](Tensors const& in) { return torch::one_hot(in[0], 128).to(torch::kFloat32); }},
      {"histc", [](Tensors const& in) { return torch::histc(in[0], 100, -3, 3); }},
      {"transpose", [](Tensors const& in) { return in[0].t().contiguous(); }},
      {"cholesky", [](Tensors const& in) { return at::linalg_cholesky(in[0]); }},
      {"qr",
       [](Tensors const& in) {
         auto const [q, r] = at::linalg_qr(in[0]);
         return torch::cat({q, r}, -2);
       }},
      {"inverse", [](Tensors const& in) { return at::linalg_inv(in[0]); }},
      {"solve", [](Tensors const& in) { return at::linalg_solve(in[0], in[1]); }},
      {"eigenvalues", [](Tensors const& in) { return std::get<0>(at::linalg_eigh(in[0])); }},
      {"orthogonal",
       [](Tensors const& in) {
         auto const [u, s, vt] = at::linalg_svd(in[0], false);
         return torch::matmul(u, vt);
       }},
      {"singular values", [](Tensors const& in) { return at::linalg_svdvals(in[0]); }},
      {"pseudoinverse", [](Tensors const& in) { return at::linalg_pinv(in[0]); }},
      {"exponential", [](Tensors const& in) { return at::linalg_matrix_exp(in[0]); }},
      {"distances", [](Tensors const& in) { return torch::cdist(in[0], in[1]); }},
      {"dropout", [](Tensors const& in) { return torch::dropout(in[0], 0.5, true); }},
      {"randn", [](Tensors const& in) { return torch::randn(in[0].sizes()); }},
  };
  auto const found = all.find(name);
  if (found == all.end()) throw std::runtime_error("no work " + name);
  return found->second;
}

}  // namespace

struct Work::State {
  Function function = nullptr;
  Tensors inputs, results;
  bool differentiated = false;
};

Work::Work(std::string const& name, std::vector<Given> const& inputs) : state_(std::make_unique<State>()) {
  torch_trainer::use_pool();
  torch_trainer::pool().forget_peak();
  State& s = *state_;
  s.function = function_of(name);
  for (Given const& g : inputs) {
    auto const view =
        torch::from_blob(const_cast<void*>(g.data), g.shape, g.integers ? torch::kInt32 : torch::kFloat32);
    s.inputs.push_back(g.integers ? view.to(torch::kInt64) : view.clone());
    s.inputs.back().set_requires_grad(g.wants_gradient);
    s.differentiated = s.differentiated || g.wants_gradient;
  }
}

Work::~Work() = default;

void Work::operator()() const {
  State& s = *state_;
  s.results.clear();
  for (Tensor& t : s.inputs) t.mutable_grad() = Tensor();
  if (!s.differentiated) {
    torch::NoGradGuard const no_grad;
    s.results.push_back(s.function(s.inputs));
    return;
  }
  Tensor const y = s.function(s.inputs);
  if (y.dim() == 0) y.backward();
  else y.backward(s.inputs.back());
  s.results.push_back(y.detach());
  for (Tensor const& t : s.inputs)
    if (t.requires_grad()) s.results.push_back(t.grad());
}

std::size_t Work::results() const { return state_->results.size(); }

std::vector<float> Work::result(std::size_t k) const {
  Tensor const t = state_->results[k].contiguous();
  auto const* const data = t.data_ptr<float>();
  return {data, data + t.numel()};
}

double Work::peak_mb() const { return 1e-6 * static_cast<double>(torch_trainer::pool().peak()); }

std::string version() { return std::string("libtorch ") + TORCH_VERSION; }

}  // namespace torch_works
