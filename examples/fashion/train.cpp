// SPDX-License-Identifier: BSL-1.0
#include "train.hpp"

#include <algorithm>
#include <cmath>

#include "../common/device.hpp"
#include "../common/mixed_step.hpp"
#include "cause.hpp"

namespace fashion {

namespace {

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

std::int64_t steps_of(common::PictureOptions const& options, Examples const& train) {
  return options.epochs * (train.size() / static_cast<dfdx::index_t>(batch));
}

History train(Model& model, Examples const& examples, Examples const& test,
              common::PictureOptions const& options, Report const& report, EpochReport const& epoch_report) {
  namespace optim = dfdx::optim;
  dfdx::Key const key = dfdx::fold_in(dfdx::Key{options.seed}, 1), draws = dfdx::fold_in(key, 1);
  model.brightness = brightness_of(examples.pictures);
  auto loader = dfdx::data::loader<batch>(dfdx::fold_in(key, 0), examples.pictures, examples.labels);
  std::int64_t const steps = steps_of(options, examples), warmup = steps / 20, epoch = loader.size();
  optim::WarmupSchedule const rate{warmup, optim::CosineSchedule{.lr = options.lr, .steps = steps - warmup}};

  History history;
  dfdx::Device const device = *options.device;
  Model there = common::on(device, model);
  dfdx::Tensor<std::int64_t> draw(0);
  decltype(&loader.next()) now = nullptr;
  double sum = 0;
  auto const after = [&](std::int64_t done, double recent) {
    if (done % epoch == 0) {
      history.tests.push_back(evaluate(there, test));
      epoch_report(done / epoch, sum / static_cast<double>(epoch), history.tests.back());
      sum = 0;
    }
    report(done, recent,
           history.tests.empty() ? std::nullopt : std::optional(history.tests.back().confusion.accuracy()));
  };
  optim::AdamW const rule{.weight_decay = 0.05};
  auto const run = [&] {
    common::with_step(*options.precision, loss, rule, [&](auto& step, auto& optimizer) {
      auto const prepare = [&](std::int64_t i) {
        now = &loader.next();
        optimizer.lr = rate(i);
        draw.data()[0] = dfdx::integer_at(draws, static_cast<std::uint64_t>(i), dfdx::index_t{1} << 53);
      };
      auto watched = dfdx::watch(step, there, [](auto const&... x) { return cause(common::on({}, x)...); });
      auto const one = [&] {
        float const l = watched(common::on(device, std::get<0>(*now)), common::on(device, std::get<1>(*now)),
                                common::on(device, draw));
        sum += static_cast<double>(l);
        return l;
      };
      common::train_loop(history, steps, 200, prepare, one, after);
    });
  };
  // The model as it is at the end, also of a run that fails.
  try {
    run();
  } catch (dfdx::error const&) {
    common::bring_back(model, there);
    throw;
  }
  model = common::on({}, there);
  return history;
}

Figures evaluate(Model const& model, Examples const& examples) {
  static auto program = dfdx::compile(scores_and_losses);
  constexpr auto b = static_cast<dfdx::index_t>(batch), points = static_cast<dfdx::index_t>(side * side);
  auto pictures = dfdx::zeros<std::uint8_t, batch, side, side>();
  auto labels = dfdx::zeros<std::int32_t, batch>();
  dfdx::Device const device = model.fc2.bias.device();
  Figures r;
  double sum = 0;
  // The program knows batches of one size only; of the last, what is left over from the one before is not counted.
  for (dfdx::index_t begin = 0; begin < examples.size(); begin += b) {
    dfdx::index_t const n = std::min(b, examples.size() - begin);
    std::copy_n(examples.pictures.data() + begin * points, n * points, pictures.data());
    std::copy_n(examples.labels.data() + begin, n, labels.data());
    auto const [said, losses] =
        common::on({}, program(model, common::on(device, pictures), common::on(device, labels)));
    for (dfdx::index_t i = 0; i < n; ++i) {
      r.confusion.add(labels(i), said(i));
      sum += static_cast<double>(losses(i));
    }
  }
  r.loss = sum / static_cast<double>(examples.size());
  return r;
}

}  // namespace fashion
