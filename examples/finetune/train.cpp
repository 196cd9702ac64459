// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/models/generate.hpp>

#include <chrono>

namespace finetune {

namespace {

using dfdx::Array;

struct Batch {
  Array tokens, next;
};

// Pieces of the text that begin anywhere.
Batch pieces(Ids text, Settings const& s, dfdx::Key key, std::int64_t step) {
  auto const shape = dfdx::make_shape(s.batch, s.length);
  Batch b{Array(dfdx::Meta{dfdx::DType::i32, shape}), Array(dfdx::Meta{dfdx::DType::i32, shape})};
  auto const places = static_cast<dfdx::index_t>(text.size()) - s.length;
  for (std::int64_t row = 0; row < s.batch; ++row) {
    auto const at = dfdx::integer_at(key, static_cast<std::uint64_t>(step * s.batch + row), places);
    auto const piece = text.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(s.length) + 1);
    std::copy(piece.begin(), piece.end() - 1, b.tokens.data<std::int32_t>() + row * s.length);
    std::copy(piece.begin() + 1, piece.end(), b.next.data<std::int32_t>() + row * s.length);
  }
  return b;
}

}  // namespace

common::Run train(dfdx::models::Llama& model, Ids text, Settings const& s, dfdx::Key key,
                  Report const& report) {
  namespace optim = dfdx::optim;
  auto const warmup = static_cast<std::int64_t>(s.warmup * static_cast<double>(s.steps));
  optim::WarmupSchedule const rate{
      warmup, optim::CosineSchedule{.lr = s.lr, .steps = s.steps - warmup, .lr_end = s.lr / 10}};
  optim::Optimizer optimizer(
      optim::ClipNorm{optim::AdamW{.beta2 = 0.99, .weight_decay = s.weight_decay}, s.clip});
  common::Run run;
  Batch b;
  auto const start = std::chrono::steady_clock::now();
  common::train_loop(
      run, s.steps, 20,
      [&](std::int64_t i) {
        b = pieces(text, s, key, i);
        optimizer.rule().inner.lr = rate(i);
      },
      [&] {
        Array const loss =
            cross_entropy(flatten(model(b.tokens).to(dfdx::DType::f32), 0, 1), flatten(b.next));
        loss.backward();
        optimizer.step(model);
        dfdx::zero_grad(model);
        return loss.item<float>();
      },
      [&](std::int64_t done, double recent) {
        double const seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        report(done, recent, static_cast<double>(done * s.batch * s.length) / seconds);
      });
  return run;
}

double evaluate(dfdx::models::Llama const& model, Ids text, std::int64_t length) {
  return dfdx::models::score(model, text, length).loss;
}

}  // namespace finetune
