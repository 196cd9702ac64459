// SPDX-License-Identifier: BSL-1.0
// A training step of GPT-2 with 124 million parameters (Radford et al. 2019), 8 texts of 1,024 tokens: products and
// attention in bf16, all else in f32, AdamW. Its roof is what the largest product of bf16 by cuBLASLt reaches.
#include "measure.hpp"

#include <dfdx/nn/embedding.hpp>
#include <dfdx/nn/layer_norm.hpp>
#include <dfdx/nn/linear.hpp>
#include <dfdx/nn/repeat.hpp>
#include <dfdx/optim/adam.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/autocast.hpp>

using namespace bench;

namespace {

constexpr std::size_t width = size_or(768, 48), heads = size_or(12, 3), layers = size_or(12, 2),
                      context = size_or(1024, 20), batch = size_or(8, 2),
                      vocabulary = size_or(50304, 70);  // 50,257, and some so that it can be divided

struct Attention {
  nn::Linear<width, 3 * width> c_attn;
  nn::Linear<width, width> c_proj;
  DFDX_FIELDS(c_attn, c_proj)
  constexpr auto operator()(auto const& x) const {
    auto const qkv = permute<2, 0, 3, 1, 4>(reshape<-1, context, 3, heads, width / heads>(c_attn(x)));
    auto const y = scaled_dot_product_attention(select<0, 0>(qkv), select<0, 1>(qkv), select<0, 2>(qkv),
                                                {.causal = true});
    return c_proj(reshape<-1, context, width>(permute<0, 2, 1, 3>(y)));
  }
};
struct Block {
  nn::LayerNorm<width> ln_1;
  Attention attn;
  nn::LayerNorm<width> ln_2;
  nn::Linear<width, 4 * width> c_fc;
  nn::Linear<4 * width, width> c_proj;
  DFDX_FIELDS(ln_1, attn, ln_2, c_fc, c_proj)
  constexpr auto operator()(auto const& x) const {
    auto const h = x + attn(ln_1(x));
    return h + c_proj(gelu_tanh(c_fc(ln_2(h))));
  }
};
struct Gpt {
  nn::Embedding<vocabulary, width> wte;
  nn::Embedding<context, width> wpe;
  nn::Repeat<Block, layers> h;
  nn::LayerNorm<width> ln_f;
  DFDX_FIELDS(wte, wpe, h, ln_f)
  constexpr auto operator()(auto const& tokens) const {
    return matmul(ln_f(h(wte(tokens) + wpe.weight)), transpose(wte.weight));
  }
  void reset(Key key) {
    std::uint64_t k = 0;
    visit_named(*this, [&](std::string const&, auto& leaf) {
      if (leaf.ndim() > 1) nn::init::normal(leaf, fold_in(key, k++), 0, 0.02);
    });
  }
};
constexpr auto loss = [](auto const& model, auto const& tokens, auto const& next) {
  return cross_entropy(reshape<-1, vocabulary>(model(tokens)), reshape<-1>(next));
};
struct Product {
  constexpr auto operator()(auto const& a, auto const& b) const { return matmul(a, b); }
};

// Operations a second.
double product_rate() {
  constexpr std::size_t n = size_or(8192, 70);
  auto const a = normals<Tensor<bfloat16, n, n>>(1), b = normals<Tensor<bfloat16, n, n>>(2);
  auto f = compile(Product{});
  return 2.0 * n * n * n / (milliseconds([&] { f(a, b); }) * 1e-3);
}

// What a step has to compute: each number of a matrix six times for a token, and the weights of attention, of
// which half are seen.
double operations(Gpt const& model) {
  double parameters = 0;
  visit(model, [&](auto const& leaf) { parameters += static_cast<double>(leaf.size()); });
  parameters -= static_cast<double>(context * width);
  return static_cast<double>(batch * context) *
         (6 * parameters + 6.0 * static_cast<double>(layers * context * width));
}

using Tokens = Tensor<std::int32_t, batch, context>;
Tokens tokens(index_t by) {
  auto x = Tokens(Array(Tokens::static_meta));
  for (index_t i = 0; i < x.size(); ++i)
    x.data()[i] = static_cast<std::int32_t>((i + by) * 7919 % static_cast<index_t>(vocabulary));
  return x;
}

// Whether the loss begins at that of a model that knows nothing, and falls; in a dry run how far it is from the CPU's.
template <class Step>
Checked check(Step& step, Gpt& there, Tokens const& x, Tokens const& y) {
  Gpt here;
  if (small) here = to(Device{}, there);
  auto on_cpu = train_step(autocast<bfloat16>(loss), optim::AdamW{.lr = 1e-3f});
  Error e;
  double first = 0, last = 0;
  for (int k = 0; k < 5; ++k) {
    last = static_cast<double>(step(there, x, y));
    if (k == 0) first = last;
    if (small) e.add(last, static_cast<double>(on_cpu(here, to(Device{}, x), to(Device{}, y))));
  }
  if (small) return {e.value(), 1e-2};
  bool const learns =
      std::fabs(first - std::log(static_cast<double>(vocabulary))) < 0.5 && last < first - 0.1;
  return {learns ? 0.0 : 1.0, 0};
}

}  // namespace

int main() {
  return run([](double bandwidth) {
    double const rate = product_rate();
    auto const x = to(cuda(), tokens(0)), y = to(cuda(), tokens(1));
    auto const start = to(cuda(), init<Gpt>(1));
    auto const train = [&](std::string const& name, CudaOptions const& options) {
      cuda_options = options;
      auto model = clone(start);
      auto step = train_step(autocast<bfloat16>(loss), optim::AdamW{.lr = 1e-3f});
      Checked const result = check(step, model, x, y);
      double const ms = milliseconds([&] { step(model, x, y); }), flops = operations(model);
      char note[96];
      std::snprintf(note, sizeof note, "%.0f tokens/s, %.0f%% of the largest product's rate",
                    static_cast<double>(batch * context) / (ms * 1e-3), 100 * flops / (ms * 1e-3) / rate);
      row("cuda training", name, ms, result, bandwidth, 0, flops, note);
      cuda_options = {};
    };
    std::string const name = "GPT-2 124M, 8 x 1024 tokens, bf16";
    train(name, {});
    if (has_warpgroups)
      train(name + ", products by warpgroups", {.warpgroup_products_from = small ? 0 : 1 << 20});
  });
}
