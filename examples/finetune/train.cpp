// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/models/generate.hpp>

#include <chrono>
#include <cmath>

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

// Mean -log p of the tokens behind a batch's.
Array loss_of(dfdx::models::Llama const& model, Batch const& b) {
  return cross_entropy(flatten(model(b.tokens).to(dfdx::DType::f32), 0, 1), flatten(b.next));
}

bool finite_gradients(dfdx::models::Llama const& model) {
  bool good = true;
  dfdx::visit(model, [&](Array const& leaf) {
    if (leaf.requires_grad()) good = good && dfdx::all_finite(leaf.grad());
  });
  return good;
}

// Which op made what is not finite; it is all done again, for it costs to look at each result.
std::string cause(dfdx::models::Llama const& model, Batch const& b, float loss) {
  try {
    dfdx::detect_anomaly const look;
    dfdx::zero_grad(model);
    loss_of(model, b).backward();
  } catch (dfdx::error const& e) {
    return e.what();
  }
  return std::isfinite(loss) ? "the gradient is not finite" : "the loss is " + std::to_string(loss);
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
        Array const loss = loss_of(model, b);
        loss.backward();
        auto const value = loss.item<float>();
        // The optimizer's step would spoil the model.
        if (auto const done = static_cast<std::int64_t>(run.loss.size());
            !std::isfinite(value) || !finite_gradients(model))
          throw dfdx::error("train: step " + std::to_string(done + 1) + ": " + cause(model, b, value) +
                            "; the model is as it was after " + std::to_string(done) + " steps");
        optimizer.step(model);
        dfdx::zero_grad(model);
        return value;
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
