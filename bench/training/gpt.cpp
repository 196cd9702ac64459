// SPDX-License-Identifier: BSL-1.0
// The training step of examples/gpt: 12 x 64 characters, AdamW on gradients clipped by their norm.
#include "../../examples/gpt/model.hpp"
#include "step.hpp"

namespace {

using namespace dfdx;

constexpr auto loss = [](auto const& model, auto const& tokens, auto const& next) {
  return cross_entropy(reshape<-1, gpt::vocabulary>(model(tokens)), reshape<-1>(next));
};

// Of each product its value and the gradients of both factors: in every block the layers and the attention, then the
// scores of the characters.
constexpr double w = gpt::width, T = gpt::context;
constexpr double multiplications =
    3.0 * gpt::batch * T * (gpt::layers * (12 * w * w + 2 * T * w) + w * gpt::vocabulary);

// A text in which each letter follows from those before, with noise.
std::deque<std::pair<gpt::Tokens, gpt::Tokens>> make_batches() {
  std::deque<std::pair<gpt::Tokens, gpt::Tokens>> all;
  std::uint64_t n = 0;
  for (int k = 0; k < 16; ++k) {
    auto x = empty<std::int32_t, gpt::batch, gpt::context>(),
         y = empty<std::int32_t, gpt::batch, gpt::context>();
    for (index_t row = 0; row < static_cast<index_t>(gpt::batch); ++row) {
      auto letter = static_cast<std::int32_t>(integer_at(Key{1}, n++, 64));
      for (index_t i = 0; i < static_cast<index_t>(gpt::context); ++i) {
        x(row, i) = letter;
        letter = integer_at(Key{2}, n++, 4) == 0 ? static_cast<std::int32_t>(integer_at(Key{3}, n, 64))
                                                 : (letter * 5 + 3) % 64;
        y(row, i) = letter;
      }
    }
    all.emplace_back(x, y);
  }
  return all;
}

}  // namespace

int main() {
  auto model = init<gpt::Model>(42);
  auto step =
      train_step(loss, optim::ClipNorm{optim::AdamW{.lr = 1e-3, .beta2 = 0.99, .weight_decay = 0.1}, 1.0});
  bench::run({"gpt", "training step 12x64", 2 * multiplications, 1e-3, 1e-3, 11, 4}, step, model,
             make_batches());
}
