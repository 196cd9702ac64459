// SPDX-License-Identifier: BSL-1.0
#include "figures.hpp"

#include "svg.hpp"

#include <algorithm>
#include <cmath>

namespace words {

namespace {

constexpr char const *blue = "#2f6fb5", *orange = "#d9772b", *grey = "#8a8f98", *grid = "#e4e7eb",
                     *ink = "#333";

struct Axis {
  double low, high;   // of the data
  double begin, end;  // in the picture
  double operator()(double v) const { return begin + (v - low) / (high - low) * (end - begin); }
};

std::string thousands(std::int64_t n) {
  std::string const digits = std::to_string(n);
  std::string s;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) s += ',';
    s += digits[i];
  }
  return s;
}

// Round numbers, four to eight of them, in a range.
std::vector<double> ticks(double low, double high) {
  double step = std::pow(10, std::floor(std::log10((high - low) / 4)));
  for (double f : {1.0, 2.0, 5.0, 10.0})
    if ((high - low) / (step * f) <= 8) {
      step *= f;
      break;
    }
  std::vector<double> r;
  for (double v = std::ceil(low / step - 1e-9) * step; v <= high + step * 1e-9; v += step)
    r.push_back(std::fabs(v) < step / 2 ? 0 : v);
  return r;
}

// Batches' losses of neighbouring steps together: their mean, and the range of the middle half.
struct Bucket {
  double step, mean, low, high;
};
std::vector<Bucket> buckets_of(std::vector<float> const& loss) {
  std::size_t const n = std::min<std::size_t>(250, std::max<std::size_t>(loss.size() / 8, 1));
  std::vector<Bucket> r;
  for (std::size_t b = 0; b < n; ++b) {
    std::size_t const begin = loss.size() * b / n, end = loss.size() * (b + 1) / n;
    std::vector<float> part(loss.begin() + static_cast<std::ptrdiff_t>(begin),
                            loss.begin() + static_cast<std::ptrdiff_t>(end));
    std::sort(part.begin(), part.end());
    double sum = 0;
    for (float v : part) sum += static_cast<double>(v);
    auto const quantile = [&](double q) {
      return static_cast<double>(part[static_cast<std::size_t>(q * static_cast<double>(part.size() - 1))]);
    };
    r.push_back({static_cast<double>(begin + end) / 2, sum / static_cast<double>(part.size()), quantile(0.25),
                 quantile(0.75)});
  }
  return r;
}

void baseline(Svg& svg, Axis const& x, Axis const& y, double value, std::string const& label) {
  if (value < y.low || value > y.high) return;
  svg.line(x.begin, y(value), x.end, y(value), grey, 1.2, "5 4");
  svg.text(x.end, y(value) - 6, label, "end", grey, 12);
}

}  // namespace

void draw_loss(std::string const& path, History const& history, Settings const& settings,
               Baselines const& baselines, std::string const& subtitle) {
  auto const buckets = buckets_of(history.loss);
  double low = buckets.front().low, high = std::max(buckets.front().high, baselines.uniform);
  for (Bucket const& b : buckets) low = std::min(low, b.low), high = std::max(high, b.mean);
  for (auto const& [step, loss] : history.dev) low = std::min(low, loss);
  double const steps = static_cast<double>(settings.steps);

  Svg svg(900, 500);
  Axis const x{0, steps, 64, 776},
      y{std::floor(low * 10) / 10 - 0.05, std::ceil(high * 10) / 10 + 0.05, 440, 76};
  svg.text(64, 34, "Loss while training", "start", ink, 19, "bold");
  svg.text(64, 56, "nats per letter; " + subtitle, "start", grey, 13);

  for (double v : ticks(y.low, y.high)) {
    svg.line(x.begin, y(v), x.end, y(v), grid);
    svg.text(x.begin - 10, y(v) + 4, formatted("%.1f", v), "end", grey, 12);
  }
  for (double v : ticks(0, steps)) {
    svg.line(x(v), y.begin, x(v), y.begin + 5, grey);
    svg.text(x(v), y.begin + 20, thousands(static_cast<std::int64_t>(v)), "middle", grey, 12);
  }
  svg.line(x.begin, y.begin, x.end, y.begin, grey);
  svg.text((x.begin + x.end) / 2, 486, "steps of 32 examples", "middle", ink, 13);

  // Where the learning rate begins to fall.
  svg.line(x(steps / 2), y.begin, x(steps / 2), y.end, grid, 1.5, "2 4");
  svg.text(x(steps / 2) + 6, y.begin - 10,
           formatted("rate falls from %g to %g", static_cast<double>(settings.lr),
                     static_cast<double>(settings.lr_end)),
           "start", grey, 12);
  baseline(svg, x, y, baselines.uniform, formatted("guessing: ln 27 = %.2f", baselines.uniform));
  baseline(svg, x, y, baselines.bigram, formatted("bigram model: %.2f", baselines.bigram));

  std::vector<std::pair<double, double>> band, mean, dev;
  for (Bucket const& b : buckets) band.emplace_back(x(b.step), y(std::min(b.high, y.high)));
  for (auto b = buckets.rbegin(); b != buckets.rend(); ++b) band.emplace_back(x(b->step), y(b->low));
  for (Bucket const& b : buckets) mean.emplace_back(x(b.step), y(b.mean));
  for (auto const& [step, loss] : history.dev) dev.emplace_back(x(static_cast<double>(step)), y(loss));
  svg.path(band, "none", 0, blue, 0.16);
  svg.path(mean, blue, 1.6, "none");
  svg.path(dev, orange, 2.2, "none");
  for (auto const& [px, py] : dev) svg.circle(px, py, 2.6, "#fff", orange);

  // Names at the ends of the curves, kept apart.
  double train_y = mean.back().second + 4, dev_y = dev.back().second + 4;
  if (std::fabs(train_y - dev_y) < 32) {
    double const middle = (train_y + dev_y) / 2, up = train_y < dev_y ? -16 : 16;
    train_y = middle + up;
    dev_y = middle - up;
  }
  svg.text(x.end + 10, train_y, formatted("train %.2f", buckets.back().mean), "start", blue, 13, "bold");
  svg.text(x.end + 10, train_y + 14, "band: half the batches", "start", blue, 10);
  svg.text(x.end + 10, dev_y, formatted("dev %.2f", history.dev.back().second), "start", orange, 13, "bold");
  svg.save(path);
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

  std::array<std::vector<double>, 2> old, now;
  double most = 0;
  for (std::size_t l = 0; l < 2; ++l) {
    old[l] = histogram(before.layers[l]);
    now[l] = histogram(after.layers[l]);
    for (double v : old[l]) most = std::max(most, v);
    for (double v : now[l]) most = std::max(most, v);
  }

  Svg svg(900, 430);
  svg.text(48, 34, "Outputs of the tanh layers", "start", ink, 19, "bold");
  svg.text(48, 56,
           "share of outputs in each of 50 intervals, on examples of the training set; |y| > 0.97 counts as "
           "saturated",
           "start", grey, 13);
  for (std::size_t l = 0; l < 2; ++l) {
    double const left = l == 0 ? 64 : 496;
    Axis const x{-1, 1, left, left + 360}, y{0, most * 1.22, 370, 112};
    svg.text(left, 96, formatted("layer %d", static_cast<int>(l) + 1), "start", ink, 14, "bold");
    svg.rect(x(-1), y.end, x(-saturated) - x(-1), y.begin - y.end, orange, 0.14);
    svg.rect(x(saturated), y.end, x(1) - x(saturated), y.begin - y.end, orange, 0.14);
    for (double v : ticks(0, y.high)) {
      svg.line(x.begin, y(v), x.end, y(v), grid);
      svg.text(x.begin - 8, y(v) + 4, formatted("%g%%", v), "end", grey, 12);
    }
    double const width = (x.end - x.begin) / static_cast<double>(bins);
    std::vector<std::pair<double, double>> outline{{x.begin, y.begin}};
    for (std::size_t b = 0; b < bins; ++b) {
      double const at = x.begin + width * static_cast<double>(b);
      bool const edge = b == 0 || b + 1 == bins;
      svg.rect(at + 0.5, y(now[l][b]), width - 1, y.begin - y(now[l][b]), edge ? orange : blue, 0.85);
      outline.emplace_back(at, y(old[l][b]));
      outline.emplace_back(at + width, y(old[l][b]));
    }
    outline.emplace_back(x.end, y.begin);
    svg.path(outline, ink, 1.3, "none");
    svg.line(x.begin, y.begin, x.end, y.begin, grey);
    for (double v : {-1.0, -0.5, 0.0, 0.5, 1.0}) {
      svg.line(x(v), y.begin, x(v), y.begin + 5, grey);
      svg.text(x(v), y.begin + 20, formatted("%g", v), "middle", grey, 12);
    }
    double const middle = (x.begin + x.end) / 2;
    svg.text(middle, y.end + 18, formatted("saturated %.1f%%", share(after.layers[l])), "middle", orange, 14,
             "bold");
    svg.text(middle, y.end + 36, formatted("before training %.1f%%", share(before.layers[l])), "middle", ink,
             12);
  }
  svg.rect(64, 404, 12, 12, blue, 0.85);
  svg.text(82, 415, "after training", "start", ink, 12);
  svg.line(180, 410, 204, 410, ink, 1.3);
  svg.text(210, 415, "before training", "start", ink, 12);
  svg.save(path);
}

}  // namespace words
