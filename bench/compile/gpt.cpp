// SPDX-License-Identifier: BSL-1.0
// Training the transformer of examples/gpt with LAYERS blocks: AdamW on clipped gradients.
#include "../../examples/gpt/model.hpp"

#include <cstdio>

using namespace dfdx;

struct Net {
  nn::Embedding<gpt::vocabulary, gpt::width> wte;
  nn::Embedding<gpt::context, gpt::width> wpe;
  nn::Repeat<gpt::Block, LAYERS> h;
  nn::LayerNorm<gpt::width> ln_f;
  DFDX_FIELDS(wte, wpe, h, ln_f)
  constexpr auto operator()(auto const& tokens) const {
    return matmul(ln_f(h(wte(tokens) + wpe.weight)), transpose(wte.weight));
  }
};

constexpr auto loss = [](auto const& m, auto const& tokens, auto const& next) {
  return cross_entropy(reshape<-1, gpt::vocabulary>(m(tokens)), reshape<-1>(next));
};

int main() {
  auto model = init<Net>(1);
  auto step =
      train_step(loss, optim::ClipNorm{optim::AdamW{.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1}, 1.0});
  auto tokens = empty<std::int32_t, gpt::batch, gpt::context>(),
       next = empty<std::int32_t, gpt::batch, gpt::context>();
  for (std::size_t i = 0; i < gpt::batch * gpt::context; ++i) {
    tokens.data()[i] = static_cast<std::int32_t>(i * 7 % gpt::vocabulary);
    next.data()[i] = static_cast<std::int32_t>((i + 1) * 7 % gpt::vocabulary);
  }
  for (int i = 0; i < 5; ++i) std::printf("%g\n", static_cast<double>(step(model, tokens, next)));
}
