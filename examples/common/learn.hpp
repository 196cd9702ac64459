// SPDX-License-Identifier: BSL-1.0
// Training of models that learn from pictures alone, with all that people see of it.
#pragma once

#include <dfdx/report.hpp>
#include <dfdx/report/png.hpp>

#include <cstdio>

#include "loop.hpp"
#include "output.hpp"
#include "picture_options.hpp"
#include "pictures.hpp"

namespace common {

/// The first `n` pictures, as a batch; n is at most 64, and the last stands for those that are missing.
template <std::size_t N, std::size_t Side>
dfdx::Tensor<std::uint8_t, N, Side, Side> first_pictures(PicturesOf<Side> const& pictures) {
  constexpr std::size_t points = Side * Side;
  auto r = dfdx::zeros<std::uint8_t, N, Side, Side>();
  auto const last = static_cast<std::size_t>(pictures.shape()[0] - 1);
  for (std::size_t i = 0; i < N; ++i)
    std::copy_n(pictures.data() + std::min(i, last) * points, points, r.data() + i * points);
  return r;
}

/// Pictures of brightness 0 .. 1, [N, Side, Side], to draw.
template <std::size_t N, std::size_t Side>
std::vector<dfdx::report::Image> images(dfdx::Tensor<float, N, Side, Side> const& x) {
  std::vector<dfdx::report::Image> r;
  for (std::size_t i = 0; i < N; ++i) {
    float const* const from = x.data() + i * Side * Side;
    r.push_back({Side, Side, std::vector<float>(from, from + Side * Side)});
  }
  return r;
}

/// The first twenty test pictures, in two rows of ten, above what the model makes of each.
template <class Model, class Reconstruct, std::size_t Side>
void draw_reconstructions(std::string const& path, Model const& model, Reconstruct const& reconstruct,
                          PicturesOf<Side> const& test) {
  auto const some = first_pictures<20>(test);
  auto const before = images(brightness(some)), after = images(dfdx::compile(reconstruct)(model, some));
  std::vector<dfdx::report::Image> rows;
  for (std::size_t row = 0; row < 20; row += 10)
    for (auto const* from : {&before, &after})
      rows.insert(rows.end(), from->begin() + static_cast<std::ptrdiff_t>(row),
                  from->begin() + static_cast<std::ptrdiff_t>(row + 10));
  dfdx::report::save_png(path, dfdx::report::tiled(rows, 10, 2 * side / Side));
}

/// Mean of loss(model, pictures, key) over whole batches of pictures; what is left over at the end is not looked at.
template <class Model, class Loss, std::size_t Side>
double mean_loss(Model const& model, Loss const& loss, PicturesOf<Side> const& pictures) {
  auto program = dfdx::compile(loss);
  auto loader = dfdx::data::loader<batch>(pictures);
  double sum = 0;
  std::int64_t n = 0;
  for (auto const& [x] : loader)
    sum += static_cast<double>(program(model, x, dfdx::Tensor<std::int64_t>(n++)).item());
  return sum / static_cast<double>(n);
}

/// Trains with AdamW to lower loss(model, pictures, key), where the key is a number that differs from step to step;
/// the rate climbs to lr in the first twentieth of the steps and falls to 0 along half a cosine. Writes the model, a
/// log and a chart to the folder of the options. The mean loss of the test pictures at the end. A step that would make
/// NaN is undone and the model before it kept; cause(model, pictures, key) says what made it, dfdx::first_nan's words.
///
/// Errors    "train_step: step 13: conv2d: made NaN of numbers, in a result of shape [64, 16, 14, 14]; the model is as
///           it was after 12 steps; a smaller --lr may help; the model is in x/last.safetensors"
template <class Model, class Loss, class Cause, std::size_t Side>
double learn(Model& model, Loss const& loss, Cause const& cause, PictureOptions const& o,
             PicturesOf<Side> const& training, PicturesOf<Side> const& test, std::string const& unit) {
  namespace optim = dfdx::optim;
  namespace report = dfdx::report;
  std::printf("data     %s: %lld pictures to train on, %lld to test on\n", o.data.c_str(),
              static_cast<long long>(training.shape()[0]), static_cast<long long>(test.shape()[0]));
  std::printf("model    %lld parameters\n", static_cast<long long>(dfdx::parameter_count<Model>));
  std::fflush(stdout);
  dfdx::Key const key = dfdx::fold_in(dfdx::Key{o.seed}, 1), draws = dfdx::fold_in(key, 1);
  auto loader = dfdx::data::loader<batch>(dfdx::fold_in(key, 0), training);
  std::int64_t const epoch = loader.size(), epochs = o.epochs_of(epoch), steps = epochs * epoch,
                     warmup = steps / 20;
  optim::WarmupSchedule const rate{warmup, optim::CosineSchedule{.lr = o.lr, .steps = steps - warmup}};
  auto step = dfdx::train_step(loss, optim::AdamW{});
  report::Log log(o.output + "/log.csv");
  report::Curve tests{.name = "test", .color = report::orange, .circles = true};

  dfdx::Tensor<std::int64_t> draw(0);
  dfdx::Tensor<std::uint8_t, batch, Side, Side> const* now = nullptr;
  auto const prepare = [&](std::int64_t i) {
    now = &std::get<0>(loader.next());
    step.optimizer().lr = rate(i);
    draw.data()[0] = dfdx::integer_at(draws, static_cast<std::uint64_t>(i), dfdx::index_t{1} << 53);
  };
  Run run;
  {
    report::Progress progress(steps);
    auto watched = dfdx::watch(step, model, cause);
    auto const after = [&](std::int64_t done, double recent) {
      if (done % epoch == 0) {
        tests.points.emplace_back(static_cast<double>(done), mean_loss(model, loss, test));
        log.row({{"epoch", done / epoch}, {"train_loss", recent}, {"test_loss", tests.points.back().second}});
      }
      progress.show(done, {{"loss", recent}});
    };
    or_keep(model, o.output, {},
            [&] { train_loop(run, steps, 200, prepare, [&] { return watched(*now, draw); }, after); });
  }
  double const result = tests.points.back().second;
  std::printf("trained  %lld steps in %.1f s, %.1f ms per step\n", static_cast<long long>(steps), run.seconds,
              run.step * 1e3);
  std::printf("test     loss %.4f %s\n", result, unit.c_str());

  report::LineChart chart{.title = "Loss while training",
                          .subtitle = unit + "; seed " + std::to_string(o.seed),
                          .x_label = "steps of " + std::to_string(batch) + " pictures",
                          .steps = static_cast<double>(steps)};
  bool const small = result < 1;
  chart.y_format = small ? "%.3f" : "%.0f";
  chart.end_format = small ? "%.4f" : "%.1f";
  chart.curves = {report::Curve::of("train", report::blue, run.loss), tests};
  chart.save(o.output + "/loss.svg");
  save(o.output + "/model.safetensors", model,
       {{"epochs", std::to_string(epochs)}, {"test_loss", report::formatted("%.4f", result)}});
  return result;
}

}  // namespace common
