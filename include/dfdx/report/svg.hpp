// SPDX-License-Identifier: BSL-1.0
// Drawings of lines, shapes and words, saved as SVG.
#pragma once

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <dfdx/io/file.hpp>

namespace dfdx::report {

/// Point - x to the right, y downwards, in units of the drawing.
using Point = std::pair<double, double>;

/// The colours of the figures here.
inline constexpr char const *blue = "#2f6fb5", *orange = "#d9772b", *grey = "#8a8f98", *pale = "#e4e7eb",
                            *ink = "#333";

/// formatted - what printf would print.
template <class... A>
std::string formatted(char const* format, A... a) {
  std::string text(static_cast<std::size_t>(std::snprintf(nullptr, 0, format, a...)), '\0');
  std::snprintf(text.data(), text.size() + 1, format, a...);
  return text;
}

/// Svg - a drawing; what is put down later lies above. Colours are those of CSS.
///
/// Errors    save: "figure: cannot write out/loss.svg: No such file or directory"; the old file stays
/// Source    W3C, Scalable Vector Graphics (SVG) 1.1
class Svg {
 public:
  /// On white.
  Svg(int width, int height) {
    put("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n",
        width, height, width, height);
    rect(0, 0, width, height, "#fff");
  }

  void rect(double x, double y, double w, double h, char const* fill, double opacity = 1) {
    put("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" fill-opacity=\"%g\"/>\n", x,
        y, w, h, fill, opacity);
  }
  void line(double x1, double y1, double x2, double y2, char const* color, double width = 1,
            char const* dash = "none") {
    put("<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\" stroke-width=\"%g\" "
        "stroke-dasharray=\"%s\"/>\n",
        x1, y1, x2, y2, color, width, dash);
  }
  void circle(double x, double y, double r, char const* fill, char const* stroke) {
    put("<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%g\" fill=\"%s\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", x, y,
        r, fill, stroke);
  }
  /// Lines from point to point.
  void path(std::vector<Point> const& points, char const* stroke, double width, char const* fill,
            double fill_opacity = 1) {
    out_ += "<path d=\"";
    for (std::size_t i = 0; i < points.size(); ++i)
      put("%c%.2f %.2f", i == 0 ? 'M' : 'L', points[i].first, points[i].second);
    put("\" stroke=\"%s\" stroke-width=\"%g\" fill=\"%s\" fill-opacity=\"%g\" stroke-linejoin=\"round\"/>\n",
        stroke, width, fill, fill_opacity);
  }
  /// Beginning, centred or ending at (x, y): anchor is start, middle or end.
  void text(double x, double y, std::string const& s, char const* anchor = "start", char const* fill = "#333",
            int size = 13, char const* weight = "normal") {
    put("<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%d\" font-weight=\"%s\">", x,
        y, anchor, fill, size, weight);
    for (char c : s) {
      if (c == '&') out_ += "&amp;";
      else if (c == '<') out_ += "&lt;";
      else if (c == '>') out_ += "&gt;";
      else out_ += c;
    }
    out_ += "</text>\n";
  }

  void save(std::string const& path) {
    std::string const all = out_ + "</svg>\n";
    dfdx::FileWriter file(path, "figure");
    file.write(all.data(), all.size());
    file.finish();
  }

 private:
  template <class... A>
  void put(char const* format, A... a) {
    out_ += formatted(format, a...);
  }
  std::string out_;
};

}  // namespace dfdx::report
