// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace fashion {

namespace {

constexpr auto loss = [](auto const& model, auto const& pictures, auto const& labels, auto const& key) {
  auto const scores = model.train(pictures, key);
  return cross_entropy(scores, labels);
};
constexpr auto scores_and_losses = [](auto const& model, auto const& pictures, auto const& labels) {
  auto const scores = model(pictures);
  return std::pair(dfdx::argmax<1>(scores), dfdx::cross_entropy<dfdx::Reduction::none>(scores, labels));
};

// Mean and standard deviation of all points.
dfdx::Tensor<float, 2> brightness_of(Pictures const& pictures) {
  std::uint64_t sum = 0, squares = 0;
  for (dfdx::index_t i = 0; i < pictures.size(); ++i) {
    std::uint64_t const v = pictures.data()[i];
    sum += v, squares += v * v;
  }
  double const n = static_cast<double>(pictures.size()), mean = static_cast<double>(sum) / n,
               variance = static_cast<double>(squares) / n - mean * mean;
  // Pictures that are all alike cannot be told apart, but nothing is divided by 0.
  return dfdx::Tensor<float, 2>::from(
      {static_cast<float>(mean), static_cast<float>(std::sqrt(std::max(variance, 1.0)))});
}

}  // namespace

std::int64_t steps_of(Settings const& settings, Examples const& train) {
  return settings.epochs * (train.size() / static_cast<dfdx::index_t>(batch));
}

History train(Model& model, Examples const& examples, Examples const& test, Settings const& settings,
              dfdx::Key key, Report const& report, EpochReport const& epoch_report) {
  namespace optim = dfdx::optim;
  using Clock = std::chrono::steady_clock;
  auto const seconds_since = [](Clock::time_point t) {
    return std::chrono::duration<double>(Clock::now() - t).count();
  };
  model.brightness = brightness_of(examples.pictures);
  auto loader = dfdx::data::loader<batch>(dfdx::fold_in(key, 0), examples.pictures, examples.labels);
  std::int64_t const steps = steps_of(settings, examples), warmup = steps / 20;
  optim::WarmupSchedule const rate{warmup, optim::CosineSchedule{.lr = settings.lr, .steps = steps - warmup}};
  auto step = dfdx::train_step(loss, optim::AdamW{.weight_decay = settings.weight_decay});

  History history;
  std::vector<double> times;
  double recent = 0;
  auto const start = Clock::now();
  for (std::int64_t i = 0; i < steps; ++i) {
    auto const& [pictures, labels] = loader.next();
    step.optimizer().lr = rate(i);
    dfdx::Tensor<std::int64_t> const draw(
        dfdx::integer_at(dfdx::fold_in(key, 1), static_cast<std::uint64_t>(i), dfdx::index_t{1} << 53));
    auto const before = Clock::now();
    float const l = step(model, pictures, labels, draw);
    times.push_back(seconds_since(before));
    if (!(l < 1e4f))  // also when it is not a number
      throw dfdx::error("train: the loss is " + std::to_string(l) + " after " + std::to_string(i + 1) +
                        " steps; a smaller --lr may help");
    history.loss.push_back(l);
    recent += (static_cast<double>(l) - recent) / static_cast<double>(std::min<std::int64_t>(i + 1, 200));
    report(i + 1, recent,
           history.tests.empty() ? std::nullopt : std::optional(history.tests.back().confusion.accuracy()));
    if ((i + 1) % loader.size() == 0) {
      history.tests.push_back(evaluate(model, test));
      auto const from = history.loss.end() - static_cast<std::ptrdiff_t>(loader.size());
      epoch_report((i + 1) / loader.size(),
                   std::accumulate(from, history.loss.end(), 0.0) / static_cast<double>(loader.size()),
                   history.tests.back());
    }
  }
  history.seconds = seconds_since(start);
  auto const middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  history.step = *middle;
  return history;
}

Figures evaluate(Model const& model, Examples const& examples) {
  static auto program = dfdx::compile(scores_and_losses);
  constexpr auto b = static_cast<dfdx::index_t>(batch), points = static_cast<dfdx::index_t>(side * side);
  auto pictures = dfdx::zeros<std::uint8_t, batch, side, side>();
  auto labels = dfdx::zeros<std::int32_t, batch>();
  Figures r;
  double sum = 0;
  // The program knows batches of one size only; of the last, what is left over from the one before is not counted.
  for (dfdx::index_t begin = 0; begin < examples.size(); begin += b) {
    dfdx::index_t const n = std::min(b, examples.size() - begin);
    std::copy_n(examples.pictures.data() + begin * points, n * points, pictures.data());
    std::copy_n(examples.labels.data() + begin, n, labels.data());
    auto const& [said, losses] = program(model, pictures, labels);
    for (dfdx::index_t i = 0; i < n; ++i) {
      r.confusion.add(labels(i), said(i));
      sum += static_cast<double>(losses(i));
    }
  }
  r.loss = sum / static_cast<double>(examples.size());
  return r;
}

}  // namespace fashion
