// SPDX-License-Identifier: BSL-1.0
#include "figures.hpp"

#include <dfdx/report/chart.hpp>

#include <algorithm>

namespace autoencoder {

namespace report = dfdx::report;

void draw_codes(std::string const& path, std::vector<float> const& codes, common::Labels const& labels,
                std::vector<std::string> const& classes) {
  // Ten colours that differ in more than their hue.
  constexpr char const* colors[] = {"#2f6fb5", "#d9772b", "#3a923a", "#c03d3e", "#7d5ba6",
                                    "#7a5230", "#c85fa8", "#555555", "#8f8f1f", "#1f9aa8"};
  report::Svg svg(860, 640);
  auto const axis = [&](std::size_t k, double begin, double end) {
    double low = static_cast<double>(codes[k]), high = low;
    for (std::size_t i = k; i < codes.size(); i += 2) {
      low = std::min(low, static_cast<double>(codes[i]));
      high = std::max(high, static_cast<double>(codes[i]));
    }
    double const room = high > low ? (high - low) / 25 : 1;
    return report::Axis{low - room, high + room, begin, end};
  };
  report::Axis const x = axis(0, 64, 740), y = axis(1, 580, 76);
  svg.text(64, 34, "Pictures as two numbers", "start", report::ink, 19, "bold");
  svg.text(64, 56,
           report::formatted("codes of %lld test pictures, each drawn as its class",
                             static_cast<long long>(labels.size())),
           "start", report::grey, 13);
  for (double v : report::ticks(x.low, x.high)) {
    svg.line(x(v), y.begin, x(v), y.end, report::pale);
    svg.text(x(v), y.begin + 20, report::formatted("%g", v), "middle", report::grey, 12);
  }
  for (double v : report::ticks(y.low, y.high)) {
    svg.line(x.begin, y(v), x.end, y(v), report::pale);
    svg.text(x.begin - 10, y(v) + 4, report::formatted("%g", v), "end", report::grey, 12);
  }
  svg.text((x.begin + x.end) / 2, 624, "first number of the code; upwards the second", "middle", report::ink,
           13);
  for (dfdx::index_t i = 0; i < labels.size(); ++i) {
    auto const c = static_cast<std::size_t>(labels(i)), at = 2 * static_cast<std::size_t>(i);
    svg.text(x(static_cast<double>(codes[at])), y(static_cast<double>(codes[at + 1])) + 4,
             classes[c].substr(0, 1), "middle", colors[c % std::size(colors)], 12, "bold");
  }
  for (std::size_t c = 0; c < classes.size() && c < 25; ++c)
    svg.text(762, 92 + 20 * static_cast<double>(c), classes[c].substr(0, 12), "start",
             colors[c % std::size(colors)], 14, "bold");
  svg.save(path);
}

}  // namespace autoencoder
