// SPDX-License-Identifier: BSL-1.0
// The little SVG that two line charts need.
#pragma once

#include <dfdx/io/file.hpp>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace words {

class Svg {
 public:
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
  void path(std::vector<std::pair<double, double>> const& points, char const* stroke, double width,
            char const* fill, double fill_opacity = 1) {
    out_ += "<path d=\"";
    for (std::size_t i = 0; i < points.size(); ++i)
      put("%c%.2f %.2f", i == 0 ? 'M' : 'L', points[i].first, points[i].second);
    put("\" stroke=\"%s\" stroke-width=\"%g\" fill=\"%s\" fill-opacity=\"%g\" stroke-linejoin=\"round\"/>\n",
        stroke, width, fill, fill_opacity);
  }
  /// anchor: start, middle or end.
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
    char text[512];
    std::snprintf(text, sizeof text, format, a...);
    out_ += text;
  }
  std::string out_;
};

/// A number as text.
template <class... A>
std::string formatted(char const* format, A... a) {
  char text[160];
  std::snprintf(text, sizeof text, format, a...);
  return text;
}

}  // namespace words
