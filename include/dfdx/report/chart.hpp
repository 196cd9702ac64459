// SPDX-License-Identifier: BSL-1.0
// Charts of a run: lines over steps, and a matrix of numbers as a coloured table.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include <dfdx/core/shape.hpp>
#include <dfdx/report/svg.hpp>

namespace dfdx::report {

/// Axis - from the range of data to places in a drawing.
struct Axis {
  double low, high;   // of the data
  double begin, end;  // in the drawing
  double operator()(double v) const { return begin + (v - low) / (high - low) * (end - begin); }
};

/// ticks - round numbers, four to eight of them as a rule, in a range.
inline std::vector<double> ticks(double low, double high) {
  if (!(high > low) || !std::isfinite(high - low)) return {};
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

/// thousands - 1234567 as 1,234,567.
inline std::string thousands(std::int64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t i = s.size(); i > 3 && s[i - 4] != '-'; i -= 3) s.insert(i - 3, 1, ',');
  return s;
}

/// Bucket - neighbouring values of a noisy series together: their mean, and the range of the middle half.
struct Bucket {
  double at, mean, low, high;
};

/// buckets_of - at most 250, of eight values at least where there are so many; `at` counts values.
inline std::vector<Bucket> buckets_of(std::span<float const> values) {
  std::size_t const n = std::min<std::size_t>(250, std::max<std::size_t>(values.size() / 8, 1));
  std::vector<Bucket> r;
  for (std::size_t b = 0; b < n && !values.empty(); ++b) {
    std::size_t const begin = values.size() * b / n, end = values.size() * (b + 1) / n;
    std::vector<float> part(values.begin() + static_cast<std::ptrdiff_t>(begin),
                            values.begin() + static_cast<std::ptrdiff_t>(end));
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

/// Curve - points joined by lines, with its name and last value at the right; with a band of ranges below it, or a
/// circle at each point.
struct Curve {
  std::string name;
  char const* color = blue;
  std::vector<Point> points{};
  std::vector<Bucket> band{};
  bool circles = false;

  /// A series of values, one for each step, as means of neighbours in a band.
  static Curve of(std::string name, char const* color, std::span<float const> values) {
    Curve c{std::move(name), color};
    c.band = buckets_of(values);
    for (Bucket const& b : c.band) c.points.emplace_back(b.at, b.mean);
    return c;
  }
};

/// LineChart - curves over steps.
struct LineChart {
  std::string title, subtitle, x_label;
  double steps = 1;             // where the x axis ends; it begins at 0
  std::vector<Curve> curves{};  // two, or the names at their ends may overlap
  std::vector<std::pair<double, std::string>>
      baselines{};  // values to compare with; left out where out of range
  std::vector<std::pair<double, std::string>> events{};  // steps at which something happens
  char const* y_format = "%.1f";
  char const* end_format = "%.2f";

  /// Draws it.
  ///
  /// Errors    those of Svg::save
  void save(std::string const& path) const {
    Svg svg(900, 500);
    Axis const x{0, steps, 64, 776}, y = y_axis();
    svg.text(64, 34, title, "start", ink, 19, "bold");
    svg.text(64, 56, subtitle, "start", grey, 13);
    for (double v : ticks(y.low, y.high)) {
      svg.line(x.begin, y(v), x.end, y(v), pale);
      svg.text(x.begin - 10, y(v) + 4, formatted(y_format, v), "end", grey, 12);
    }
    for (double v : ticks(0, steps)) {
      if (v != std::floor(v)) continue;
      svg.line(x(v), y.begin, x(v), y.begin + 5, grey);
      svg.text(x(v), y.begin + 20, thousands(static_cast<std::int64_t>(v)), "middle", grey, 12);
    }
    svg.line(x.begin, y.begin, x.end, y.begin, grey);
    svg.text((x.begin + x.end) / 2, 486, x_label, "middle", ink, 13);
    for (auto const& [at, what] : events) {
      svg.line(x(at), y.begin, x(at), y.end, pale, 1.5, "2 4");
      svg.text(x(at) + 6, y.begin - 10, what, "start", grey, 12);
    }
    for (auto const& [value, what] : baselines) {
      if (value < y.low || value > y.high) continue;
      svg.line(x.begin, y(value), x.end, y(value), grey, 1.2, "5 4");
      svg.text(x.end, y(value) - 6, what, "end", grey, 12);
    }
    for (Curve const& c : curves) draw(svg, x, y, c);
    name_ends(svg, x, y);
    svg.save(path);
  }

 private:
  Axis y_axis() const {
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (Curve const& c : curves) {
      for (auto const& [at, v] : c.points) low = std::min(low, v), high = std::max(high, v);
      for (Bucket const& b : c.band) low = std::min(low, b.low);
      if (!c.band.empty()) high = std::max(high, c.band.front().high);
    }
    if (!(low <= high)) low = 0, high = 1;
    for (auto const& [v, what] : baselines)
      if (v > high && v < high + (high - low)) high = v;
    // A tenth of a round step of room at both ends.
    double const unit = std::pow(10, std::floor(std::log10(std::max(high - low, 1e-9))));
    return {std::floor(low / unit * 10) * unit / 10 - unit / 20,
            std::ceil(high / unit * 10) * unit / 10 + unit / 20, 440, 76};
  }

  static void draw(Svg& svg, Axis const& x, Axis const& y, Curve const& c) {
    std::vector<Point> band, line;
    for (Bucket const& b : c.band) band.emplace_back(x(b.at), y(std::min(b.high, y.high)));
    for (auto b = c.band.rbegin(); b != c.band.rend(); ++b) band.emplace_back(x(b->at), y(b->low));
    for (auto const& [at, v] : c.points) line.emplace_back(x(at), y(v));
    if (!band.empty()) svg.path(band, "none", 0, c.color, 0.16);
    svg.path(line, c.color, c.band.empty() ? 2.2 : 1.6, "none");
    if (c.circles)
      for (auto const& [px, py] : line) svg.circle(px, py, 2.6, "#fff", c.color);
  }

  // Names at the ends of the curves, the first two kept apart.
  void name_ends(Svg& svg, Axis const& x, Axis const& y) const {
    std::vector<double> at;
    for (Curve const& c : curves) at.push_back(c.points.empty() ? y.begin : y(c.points.back().second) + 4);
    if (at.size() > 1 && std::fabs(at[0] - at[1]) < 32) {
      double const middle = (at[0] + at[1]) / 2, up = at[0] < at[1] ? -16 : 16;
      at[0] = middle + up;
      at[1] = middle - up;
    }
    for (std::size_t i = 0; i < curves.size(); ++i) {
      Curve const& c = curves[i];
      if (c.points.empty()) continue;
      svg.text(x.end + 10, at[i], c.name + " " + formatted(end_format, c.points.back().second), "start",
               c.color, 13, "bold");
      if (!c.band.empty()) svg.text(x.end + 10, at[i] + 14, "band: half the values", "start", c.color, 10);
    }
  }
};

/// draw_matrix - a square table of counts with names for rows and columns, each cell as dark as its share of its row;
/// the diagonal in another colour.
///
/// Shapes    counts: n x n, row-major; n names
/// Errors    "draw_matrix: 99 counts, 10 names"; those of Svg::save
inline void draw_matrix(std::string const& path, std::string const& title, std::string const& subtitle,
                        std::span<std::int64_t const> counts, std::vector<std::string> const& names) {
  std::size_t const n = names.size();
  if (counts.size() != n * n)
    raise("draw_matrix: ", static_cast<index_t>(counts.size()), " counts, ", static_cast<index_t>(n),
          " names");
  constexpr double cell = 52, left = 130, top = 130;
  double const side = cell * static_cast<double>(n);
  Svg svg(static_cast<int>(left + side + 40), static_cast<int>(top + side + 40));
  svg.text(24, 34, title, "start", ink, 19, "bold");
  svg.text(24, 56, subtitle, "start", grey, 13);
  svg.text(left + side / 2, 86, "said to be", "middle", ink, 13);
  for (std::size_t i = 0; i < n; ++i) {
    double const at = cell * (static_cast<double>(i) + 0.5);
    svg.text(left - 10, top + at + 4, names[i], "end", ink, 12);
    svg.text(left + at, top - (i % 2 == 0 ? 8 : 24), names[i], "middle", ink, 12);
    std::int64_t row = 0;
    for (std::size_t j = 0; j < n; ++j) row += counts[i * n + j];
    for (std::size_t j = 0; j < n; ++j) {
      std::int64_t const count = counts[i * n + j];
      double const share = row == 0 ? 0 : static_cast<double>(count) / static_cast<double>(row);
      double const x = left + cell * static_cast<double>(j), y = top + cell * static_cast<double>(i);
      svg.rect(x, y, cell - 1, cell - 1, "#f4f5f7");
      // A square root, or mistakes of some per cent could not be seen.
      svg.rect(x, y, cell - 1, cell - 1, i == j ? blue : orange, std::sqrt(share));
      if (count > 0)
        svg.text(x + cell / 2, y + cell / 2 + 4, thousands(count), "middle", share > 0.4 ? "#fff" : ink, 12);
    }
  }
  svg.save(path);
}

/// Image - brightness by rows, 0 is black and 1 is white.
struct Image {
  std::size_t height, width;
  std::vector<float> values;
};

/// grey_level - of 0 .. 255; brightness outside of 0 .. 1 counts as the nearer, a NaN as 0.
inline int grey_level(float v) {
  return static_cast<int>(std::lround(255 * (v > 0 ? std::min(v, 1.0f) : 0.0f)));
}

/// draw_images - images in a grid, each point a square of `scale`; values outside of 0 .. 1 count as the nearer.
///
/// Errors    "draw_images: 10 values for 3 x 3 points"; those of Svg::save
inline void draw_images(std::string const& path, std::string const& title, std::string const& subtitle,
                        std::vector<Image> const& images, std::size_t columns, double scale) {
  columns = std::max<std::size_t>(columns, 1);
  double width = 0, height = 0;
  for (Image const& i : images) {
    if (i.values.size() != i.height * i.width)
      raise("draw_images: ", static_cast<index_t>(i.values.size()), " values for ",
            static_cast<index_t>(i.height), " x ", static_cast<index_t>(i.width), " points");
    width = std::max(width, static_cast<double>(i.width) * scale);
    height = std::max(height, static_cast<double>(i.height) * scale);
  }
  constexpr double left = 24, top = 76, gap = 6;
  std::size_t const rows = (images.size() + columns - 1) / columns;
  Svg svg(static_cast<int>(std::max(2 * left + static_cast<double>(columns) * (width + gap), 420.0)),
          static_cast<int>(top + 24 + static_cast<double>(rows) * (height + gap)));
  svg.text(left, 34, title, "start", ink, 19, "bold");
  svg.text(left, 56, subtitle, "start", grey, 13);
  for (std::size_t k = 0; k < images.size(); ++k) {
    Image const& image = images[k];
    double const x0 = left + static_cast<double>(k % columns) * (width + gap),
                 y0 = top + static_cast<double>(k / columns) * (height + gap);
    svg.rect(x0 - 1, y0 - 1, static_cast<double>(image.width) * scale + 2,
             static_cast<double>(image.height) * scale + 2, grey);
    for (std::size_t i = 0; i < image.height; ++i) {
      // Neighbours of one brightness as one rectangle.
      auto const level = [&](std::size_t j) { return grey_level(image.values[i * image.width + j]); };
      for (std::size_t j = 0, end; j < image.width; j = end) {
        int const v = level(j);
        for (end = j + 1; end < image.width && level(end) == v;) ++end;
        // A little larger, or what lies below shows through between.
        svg.rect(x0 + static_cast<double>(j) * scale, y0 + static_cast<double>(i) * scale,
                 static_cast<double>(end - j) * scale + 0.2, scale + 0.2,
                 formatted("#%02x%02x%02x", v, v, v).c_str());
      }
    }
  }
  svg.save(path);
}

}  // namespace dfdx::report
