// SPDX-License-Identifier: BSL-1.0
// Images as PNG files. Not part of <dfdx/report.hpp>: it needs zlib (zlib1g-dev; link with -lz, in CMake ZLIB::ZLIB).
#pragma once

#include <type_traits>

#include <zlib.h>

#include <dfdx/report/chart.hpp>
#include <dfdx/value/array.hpp>
#include <dfdx/value/element.hpp>

namespace dfdx::report {

/// tiled - images of one size in a grid on white, each point `scale` x `scale`, four points apart.
///
/// Errors    "tiled: images of 28 x 28 and 3 x 3 points"; "tiled: 10 values for 3 x 3 points"
inline Image tiled(std::vector<Image> const& images, std::size_t columns, std::size_t scale) {
  constexpr std::size_t gap = 4;
  columns = std::max<std::size_t>(columns, 1);
  scale = std::max<std::size_t>(scale, 1);
  auto const size = [](std::size_t n) { return static_cast<index_t>(n); };
  std::size_t const h = images.empty() ? 0 : images[0].height, w = images.empty() ? 0 : images[0].width,
                    rows = (images.size() + columns - 1) / columns;
  Image r{rows * (h * scale + gap) + gap, columns * (w * scale + gap) + gap, {}};
  r.values.assign(r.height * r.width, 1.0f);
  for (std::size_t k = 0; k < images.size(); ++k) {
    Image const& image = images[k];
    if (image.height != h || image.width != w)
      raise("tiled: images of ", size(h), " x ", size(w), " and ", size(image.height), " x ",
            size(image.width), " points");
    if (image.values.size() != h * w)
      raise("tiled: ", size(image.values.size()), " values for ", size(h), " x ", size(w), " points");
    std::size_t const top = gap + k / columns * (h * scale + gap),
                      left = gap + k % columns * (w * scale + gap);
    for (std::size_t i = 0; i < h * scale; ++i)
      for (std::size_t j = 0; j < w * scale; ++j)
        r.values[(top + i) * r.width + left + j] = image.values[i / scale * w + j / scale];
  }
  return r;
}

namespace detail {

// f(point, channel) is what is seen there, of as many channels: 1 grey, 3 red, green and blue.
template <class F>
void write_png(std::string const& path, std::size_t height, std::size_t width, std::size_t channels,
               F const& f) {
  auto const extent = [&](std::size_t n) { return n > 0 && n < (std::size_t{1} << 31); };
  if (!extent(height) || !extent(width))
    raise("save_png: an image of ", static_cast<index_t>(height), " x ", static_cast<index_t>(width),
          " points");
  std::vector<unsigned char> raw;
  for (std::size_t i = 0; i < height * width; ++i) {
    if (i % width == 0) raw.push_back(0);  // the line as it is, not differences
    for (std::size_t c = 0; c < channels; ++c) raw.push_back(static_cast<unsigned char>(grey_level(f(i, c))));
  }
  std::vector<unsigned char> packed(compressBound(raw.size()));
  uLongf size = packed.size();
  if (compress2(packed.data(), &size, raw.data(), raw.size(), Z_BEST_COMPRESSION) != Z_OK)
    raise("save_png: no memory");

  FileWriter file(path, "figure");
  auto const number = [](std::size_t n) {
    return std::string{static_cast<char>(n >> 24 & 255), static_cast<char>(n >> 16 & 255),
                       static_cast<char>(n >> 8 & 255), static_cast<char>(n & 255)};
  };
  auto const chunk = [&](std::string const& name, std::string const& data) {
    std::string const body = name + data;
    std::string const all = number(data.size()) + body +
                            number(crc32(0, reinterpret_cast<unsigned char const*>(body.data()),
                                         static_cast<unsigned>(body.size())));
    file.write(all.data(), all.size());
  };
  file.write("\x89PNG\r\n\x1a\n", 8);
  // Eight bits, grey or colours, deflated, no filters to choose from but the five, not interlaced.
  chunk("IHDR", number(width) + number(height) + std::string("\x08", 1) +
                    static_cast<char>(channels == 1 ? 0 : 2) + std::string("\0\0\0", 3));
  chunk("IDAT", std::string(reinterpret_cast<char const*>(packed.data()), size));
  chunk("IEND", "");
  file.finish();
}

}  // namespace detail

/// save_png - an image in 256 greys, or of 256 levels of red, green and blue each; values outside of 0 .. 1 count as
/// the nearer, a NaN as 0.
///
/// Shapes    rgb: [3, H, W]
/// Errors    "save_png: an image of 0 x 3 points"; "save_png: a picture [3, H, W] required, got [4, 8, 8]"; "figure:
///           cannot write x.png: No such file or directory"; the old file stays
/// Source    W3C, Portable Network Graphics (PNG) Specification, 2nd edition
inline void save_png(std::string const& path, Image const& image) {
  if (image.values.size() != image.height * image.width)
    raise("save_png: an image of ", static_cast<index_t>(image.height), " x ",
          static_cast<index_t>(image.width), " points");
  detail::write_png(path, image.height, image.width, 1,
                    [&](std::size_t i, std::size_t) { return image.values[i]; });
}
template <class A>
  requires std::is_base_of_v<Array, A>
void save_png(std::string const& path, A const& rgb) {
  Shape const s = rgb.shape();
  if (s.rank != 3 || s[0] != 3) raise("save_png: a picture [3, H, W] required, got ", s);
  Operand const x = rgb.operand();
  detail::write_png(
      path, static_cast<std::size_t>(s[1]), static_cast<std::size_t>(s[2]), 3,
      [&](std::size_t i, std::size_t c) {
        auto const at = static_cast<index_t>(i);
        return static_cast<float>(read_real(
            x, static_cast<index_t>(c) * x.strides[0] + at / s[2] * x.strides[1] + at % s[2] * x.strides[2]));
      });
}

}  // namespace dfdx::report
