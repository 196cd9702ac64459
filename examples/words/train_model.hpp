// SPDX-License-Identifier: BSL-1.0
// Training, evaluation, sampling: what happens to a model.
#pragma once

#include <dfdx/data/loader.hpp>
#include <dfdx/dfdx.hpp>

#include <cmath>
#include <string>

#include "../common/device.hpp"
#include "../common/mixed_step.hpp"
#include "../common/run_log.hpp"
#include "cause.hpp"
#include "draw.hpp"

namespace words {

/// The loss in use.
inline constexpr auto loss = [](auto const& model, auto const& contexts, auto const& labels) {
  return cross_entropy(model(contexts), labels);
};

/// A batch of contexts from `begin` on; after the last of n comes the last again.
template <class Model>
void fill(ContextBatch<Model>& contexts, Examples<Model::context> const& examples, dfdx::index_t begin,
          dfdx::index_t n) {
  for (dfdx::index_t i = 0; i < static_cast<dfdx::index_t>(batch); ++i)
    for (dfdx::index_t k = 0; k < static_cast<dfdx::index_t>(Model::context); ++k)
      contexts(i, k) = examples.contexts(std::min(begin + i, n - 1), k);
}

/// Mean negative log-likelihood of the examples, or of the first `limit`.
template <class Model>
double evaluate(Model const& model, Examples<Model::context> const& examples, dfdx::index_t limit = -1) {
  static auto mean_loss = dfdx::compile(loss);
  dfdx::index_t const b = batch, n = limit < 0 ? examples.size() : std::min(limit, examples.size());
  auto contexts = dfdx::empty<std::int32_t, batch, Model::context>();
  auto labels = dfdx::empty<std::int32_t, batch>();
  dfdx::Device device;
  dfdx::visit(model, [&](auto const& leaf) { device = leaf.device(); });
  // The sum over b examples from `begin` on.
  auto const sum_from = [&](dfdx::index_t begin) {
    fill<Model>(contexts, examples, begin, n);
    for (dfdx::index_t i = 0; i < b; ++i) labels(i) = examples.labels(std::min(begin + i, n - 1));
    auto const mean = mean_loss(model, common::on(device, contexts), common::on(device, labels));
    return static_cast<double>(mean.item()) * static_cast<double>(b);
  };
  double sum = 0;
  for (dfdx::index_t begin = 0; begin < n; begin += b) sum += sum_from(begin);
  // The program knows batches of one size only, so the rest was filled up with the last example: a batch of nothing
  // else says what that added.
  if (dfdx::index_t const extra = (b - n % b) % b; extra > 0)
    sum -= sum_from(n - 1) / static_cast<double>(b) * static_cast<double>(extra);
  return sum / static_cast<double>(n);
}

/// The learning rate of a step: constant for the first half, then straight down to lr_end.
inline float rate_at(Settings const& s, std::int64_t step) {
  double const done = static_cast<double>(step) / static_cast<double>(s.steps);
  return done < 0.5 ? s.lr : static_cast<float>(s.lr + (s.lr_end - s.lr) * (done - 0.5) * 2);
}

/// Trains in place; the log has a row for each dev loss after the first step. A step that would make NaN is undone.
///
/// Errors    "train_step: step 13: matmul: made NaN of numbers, in a result of shape [32, 200]; the model is as it was
///           after 12 steps; a smaller --lr may help"; "train: the loss is 20000 after 12 steps; a smaller --lr may
///           help"
template <class Model>
History train(Model& model, Split<Model::context> const& data, Settings const& settings, Key key,
              Report const& report, common::RunLog& log) {
  History history;
  dfdx::Device const device = settings.device;
  Model there = common::on(device, model);
  auto loader = dfdx::data::loader<batch>(key, data.train.contexts, data.train.labels);
  // Dev losses for the picture: forty over the run, and more at its beginning, where the loss falls fast.
  std::int64_t const between = std::max<std::int64_t>(settings.steps / 40, 1);
  std::int64_t next_dev = 0;
  auto const look_at_dev = [&](std::int64_t done) {
    history.dev.emplace_back(done, evaluate(there, data.dev, 4096));
    if (done > 0)
      log.row({{"step", done}, {"train_loss", history.recent}, {"dev_loss", history.dev.back().second}});
  };
  auto const after = [&](std::int64_t done, double recent) {
    if (done % 256 == 0 || done == settings.steps) report(done, recent);
  };
  dfdx::optim::SGD const rule{.lr = settings.lr};
  common::with_step(settings.precision, training_loss, rule, [&](auto& step, auto& optimizer) {
    auto const prepare = [&](std::int64_t i) {
      if (i == next_dev) {
        look_at_dev(i);
        next_dev = std::min(std::max<std::int64_t>(2 * i, 64), i + between);
      }
      optimizer.lr = rate_at(settings, i);
    };
    auto watched =
        dfdx::watch(step, there, [](auto const&... x) { return cause<Model>(common::on({}, x)...); });
    auto const one = [&] {
      auto const& [contexts, labels] = loader.next();
      return watched(common::on(device, contexts), common::on(device, labels));
    };
    // The model as it is at the end, also of a run that fails.
    try {
      common::train_loop(history, settings.steps, 1000, prepare, one, after);
    } catch (dfdx::error const&) {
      common::bring_back(model, there);
      throw;
    }
  });
  model = common::on({}, there);
  look_at_dev(settings.steps);
  return history;
}

/// A word drawn from the model.
template <class Model>
std::string sample(Model const& model, Key key) {
  // Eagerly: the model is a function like any other.
  return draw<Model::context>([&](auto const& letters) { return softmax(model(letters)); }, key);
}

/// Outputs of the tanh layers, as in training, on some examples. Takes a copy, for training may move statistics.
template <class Model>
Activations activations(Model model, Examples<Model::context> const& examples) {
  Activations r;
  auto contexts = dfdx::empty<std::int32_t, batch, Model::context>();
  dfdx::index_t const b = batch, n = examples.size();
  for (dfdx::index_t begin = 0; begin + b <= std::min<dfdx::index_t>(n, 1024); begin += b) {
    fill<Model>(contexts, examples, begin, n);
    auto const layers = model.train_layers(contexts);
    r.layers.resize(std::tuple_size_v<std::remove_cvref_t<decltype(layers)>>);
    std::size_t l = 0;
    auto const add = [&](auto const& h) {
      r.layers[l].insert(r.layers[l].end(), h.data(), h.data() + h.size());
      ++l;
    };
    std::apply([&](auto const&... h) { (add(h), ...); }, layers);
  }
  return r;
}

}  // namespace words
