// SPDX-License-Identifier: BSL-1.0
#include "figures.hpp"

#include <dfdx/report/chart.hpp>

namespace lstm {

namespace report = dfdx::report;

void draw_loss(std::string const& path, std::vector<float> const& train,
               std::vector<report::Point> const& dev, std::string const& subtitle) {
  report::LineChart chart{.title = "Loss while training",
                          .subtitle = "nats per letter; " + subtitle,
                          .x_label = "steps of " + std::to_string(batch) + " words",
                          .steps = static_cast<double>(train.size())};
  chart.y_format = "%.2f";
  chart.end_format = "%.4f";
  chart.curves = {report::Curve::of("train", report::blue, train),
                  report::Curve{.name = "dev", .color = report::orange, .points = dev, .circles = true}};
  chart.save(path);
}

void draw_breaks(std::string const& path, std::span<Word const> words, std::vector<Probabilities> const& p) {
  constexpr double cell = 32, left = 40, top = 104;
  report::Svg svg(static_cast<int>(2 * left + cell * static_cast<double>(longest)),
                  static_cast<int>(top + 30 + (cell + 14) * static_cast<double>(words.size())));
  svg.text(left, 34, "Where words may be broken", "start", report::ink, 19, "bold");
  svg.text(left, 56, "words to test on; the darker a letter, the more probable a break behind it", "start",
           report::grey, 13);
  svg.line(left + 1, 68, left + 1, 86, report::orange, 3);
  svg.text(left + 12, 82, "where the breaks are", "start", report::orange, 12, "bold");
  for (std::size_t i = 0; i < words.size(); ++i) {
    double const y = top + (cell + 14) * static_cast<double>(i);
    for (std::size_t t = 0; t < words[i].letters.size(); ++t) {
      double const x = left + cell * static_cast<double>(t), q = static_cast<double>(p[i][t]);
      svg.rect(x, y, cell - 2, cell, "#f4f5f7");
      svg.rect(x, y, cell - 2, cell, report::blue, q);
      svg.text(x + cell / 2 - 1, y + 21, text_of(words[i].letters.substr(t, 1)), "middle",
               q > 0.5 ? "#fff" : report::ink, 15);
    }
    for (std::size_t t = 0; t < words[i].letters.size(); ++t)
      if (double const x = left + cell * static_cast<double>(t + 1) - 1; words[i].breaks[t])
        svg.line(x, y - 4, x, y + cell + 4, report::orange, 3);
  }
  svg.save(path);
}

}  // namespace lstm
