// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"

#include <dfdx/data/loader.hpp>

#include <cmath>

namespace words {

namespace {

constexpr auto loss = [](auto const& model, auto const& contexts, auto const& labels) {
  return cross_entropy(model(contexts), labels);
};

}  // namespace

float rate_at(Settings const& s, std::int64_t step) {
  double const done = static_cast<double>(step) / static_cast<double>(s.steps);
  return done < 0.5 ? s.lr : static_cast<float>(s.lr + (s.lr_end - s.lr) * (done - 0.5) * 2);
}

History train(Model& model, Split const& data, Settings const& settings, Key key, Report const& report) {
  History history;
  auto loader = dfdx::data::loader<batch>(key, data.train.contexts, data.train.labels);
  auto step = dfdx::train_step(loss, dfdx::optim::SGD{.lr = settings.lr});

  // Dev losses for the picture: forty over the run, and more at its beginning, where the loss falls fast.
  std::int64_t const between = std::max<std::int64_t>(settings.steps / 40, 1);
  std::int64_t next_dev = 0;
  auto const prepare = [&](std::int64_t i) {
    if (i == next_dev) {
      history.dev.emplace_back(i, evaluate(model, data.dev, 4096));
      next_dev = std::min(std::max<std::int64_t>(2 * i, 64), i + between);
    }
    step.optimizer().lr = rate_at(settings, i);
  };
  auto const one = [&] {
    auto const& [contexts, labels] = loader.next();
    return step(model, contexts, labels);
  };
  auto const after = [&](std::int64_t done, double recent) {
    if (done % 256 == 0 || done == settings.steps) report(done, recent);
  };
  common::train_loop(history, settings.steps, 1000, prepare, one, after);
  history.dev.emplace_back(settings.steps, evaluate(model, data.dev, 4096));
  return history;
}

double evaluate(Model const& model, Examples const& examples, dfdx::index_t limit) {
  static auto mean_loss = dfdx::compile(loss);
  dfdx::index_t const b = batch, n = limit < 0 ? examples.size() : std::min(limit, examples.size());
  Tensor<std::int32_t, batch, context> contexts = dfdx::empty<std::int32_t, batch, context>();
  Tensor<std::int32_t, batch> labels = dfdx::empty<std::int32_t, batch>();
  // The sum over b examples from `begin` on; after the last comes the last again.
  auto const sum_from = [&](dfdx::index_t begin) {
    for (dfdx::index_t i = 0; i < b; ++i) {
      dfdx::index_t const from = std::min(begin + i, n - 1);
      for (dfdx::index_t k = 0; k < static_cast<dfdx::index_t>(context); ++k)
        contexts(i, k) = examples.contexts(from, k);
      labels(i) = examples.labels(from);
    }
    return static_cast<double>(mean_loss(model, contexts, labels).item()) * static_cast<double>(b);
  };
  double sum = 0;
  for (dfdx::index_t begin = 0; begin < n; begin += b) sum += sum_from(begin);
  // The program knows batches of one size only, so the rest was filled up with the last example: a batch of nothing
  // else says what that added.
  if (dfdx::index_t const extra = (b - n % b) % b; extra > 0)
    sum -= sum_from(n - 1) / static_cast<double>(b) * static_cast<double>(extra);
  return sum / static_cast<double>(n);
}

std::string sample(Model const& model, Key key) {
  std::string word;
  auto letters = dfdx::zeros<std::int32_t, 1, context>();
  for (std::uint64_t i = 0; i < 30; ++i) {
    // Eagerly: the model is a function like any other.
    auto const p = softmax(model(letters));
    double u = dfdx::uniform_at(key, i);
    int next = 0;
    while (next + 1 < static_cast<int>(vocabulary) && (u -= static_cast<double>(p(0, next))) >= 0) ++next;
    if (next == 0) break;
    word += letter_of(next);
    for (int k = 0; k < 2; ++k) letters(0, k) = letters(0, k + 1);
    letters(0, 2) = next;
  }
  return word;
}

Activations activations(Model const& model, Examples const& examples) {
  Activations r;
  auto contexts = dfdx::empty<std::int32_t, batch, context>();
  auto const add = [](std::vector<float>& to, auto const& h) {
    to.insert(to.end(), h.data(), h.data() + h.size());
  };
  dfdx::index_t const b = batch;
  for (dfdx::index_t begin = 0; begin + b <= std::min<dfdx::index_t>(examples.size(), 1024); begin += b) {
    for (dfdx::index_t i = 0; i < b; ++i)
      for (dfdx::index_t k = 0; k < static_cast<dfdx::index_t>(context); ++k)
        contexts(i, k) = examples.contexts(begin + i, k);
    auto const h1 = model.layer1(contexts);
    add(r.layers[0], h1);
    add(r.layers[1], model.layer2(h1));
  }
  return r;
}

}  // namespace words
