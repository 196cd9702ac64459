// SPDX-License-Identifier: BSL-1.0
#include "figures.hpp"

#include <dfdx/report/chart.hpp>

#include <algorithm>
#include <cmath>

namespace words {

namespace report = dfdx::report;
using report::formatted;

void draw_loss(std::string const& path, History const& history, Settings const& settings,
               Baselines const& baselines, std::string const& subtitle) {
  report::Curve dev{.name = "dev", .color = report::orange, .circles = true};
  for (auto const& [step, loss] : history.dev) dev.points.emplace_back(static_cast<double>(step), loss);
  report::LineChart chart{.title = "Loss while training",
                          .subtitle = "nats per letter; " + subtitle,
                          .x_label = "steps of 32 examples",
                          .steps = static_cast<double>(settings.steps)};
  chart.curves = {report::Curve::of("train", report::blue, history.loss), dev};
  chart.baselines = {{baselines.uniform, formatted("guessing: ln 27 = %.2f", baselines.uniform)},
                     {baselines.bigram, formatted("bigram model: %.2f", baselines.bigram)}};
  chart.events = {{chart.steps / 2, formatted("rate falls from %g to %g", static_cast<double>(settings.lr),
                                              static_cast<double>(settings.lr_end))}};
  chart.save(path);
}

void draw_activations(std::string const& path, Activations const& before, Activations const& after) {
  constexpr std::size_t bins = 50;
  constexpr double saturated = 0.97;
  auto const histogram = [](std::vector<float> const& v) {
    std::vector<double> r(bins, 0);
    for (float t : v)
      r[std::min(bins - 1, static_cast<std::size_t>((t + 1) / 2 * static_cast<float>(bins)))] +=
          100.0 / static_cast<double>(v.size());
    return r;
  };
  auto const share = [](std::vector<float> const& v) {
    double n = 0;
    for (float t : v) n += std::fabs(static_cast<double>(t)) > saturated;
    return 100 * n / static_cast<double>(v.size());
  };

  std::size_t const layers = after.layers.size();
  std::vector<std::vector<double>> old(layers), now(layers);
  double most = 0;
  for (std::size_t l = 0; l < layers; ++l) {
    old[l] = histogram(before.layers[l]);
    now[l] = histogram(after.layers[l]);
    for (double v : old[l]) most = std::max(most, v);
    for (double v : now[l]) most = std::max(most, v);
  }

  report::Svg svg(900, 430);
  svg.text(48, 34, "Outputs of the tanh layers", "start", report::ink, 19, "bold");
  svg.text(48, 56,
           "share of outputs in each of 50 intervals, on examples of the training set; |y| > 0.97 counts as "
           "saturated",
           "start", report::grey, 13);
  for (std::size_t l = 0; l < layers; ++l) {
    double const pitch = 864 / static_cast<double>(layers), left = 64 + pitch * static_cast<double>(l);
    report::Axis const x{-1, 1, left, left + pitch - 72}, y{0, most * 1.22, 370, 112};
    svg.text(left, 96, formatted("layer %d", static_cast<int>(l) + 1), "start", report::ink, 14, "bold");
    svg.rect(x(-1), y.end, x(-saturated) - x(-1), y.begin - y.end, report::orange, 0.14);
    svg.rect(x(saturated), y.end, x(1) - x(saturated), y.begin - y.end, report::orange, 0.14);
    for (double v : report::ticks(0, y.high)) {
      svg.line(x.begin, y(v), x.end, y(v), report::pale);
      svg.text(x.begin - 8, y(v) + 4, formatted("%g%%", v), "end", report::grey, 12);
    }
    double const width = (x.end - x.begin) / static_cast<double>(bins);
    std::vector<std::pair<double, double>> outline{{x.begin, y.begin}};
    for (std::size_t b = 0; b < bins; ++b) {
      double const at = x.begin + width * static_cast<double>(b);
      bool const edge = b == 0 || b + 1 == bins;
      svg.rect(at + 0.5, y(now[l][b]), width - 1, y.begin - y(now[l][b]),
               edge ? report::orange : report::blue, 0.85);
      outline.emplace_back(at, y(old[l][b]));
      outline.emplace_back(at + width, y(old[l][b]));
    }
    outline.emplace_back(x.end, y.begin);
    svg.path(outline, report::ink, 1.3, "none");
    svg.line(x.begin, y.begin, x.end, y.begin, report::grey);
    for (double v : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
      svg.line(x(v), y.begin, x(v), y.begin + 5, report::grey);
      svg.text(x(v), y.begin + 20, formatted("%g", v), "middle", report::grey, 12);
    }
    double const middle = (x.begin + x.end) / 2;
    svg.text(middle, y.end + 18, formatted("saturated %.1f%%", share(after.layers[l])), "middle",
             report::orange, 14, "bold");
    svg.text(middle, y.end + 36, formatted("before training %.1f%%", share(before.layers[l])), "middle",
             report::ink, 12);
  }
  svg.rect(64, 404, 12, 12, report::blue, 0.85);
  svg.text(82, 415, "after training", "start", report::ink, 12);
  svg.line(180, 410, 204, 410, report::ink, 1.3);
  svg.text(210, 415, "before training", "start", report::ink, 12);
  svg.save(path);
}

}  // namespace words
