// SPDX-License-Identifier: BSL-1.0
// Normalization, flips and crops against loops over indices.
#include "support.hpp"

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::data_transform {

using namespace dfdx;
using tests::error_of;

namespace {

auto const images = reshape<6, 2, 3, 4>(arange<Tensor<float, 144>>() + 1.0f);
auto const strided = permute<0, 3, 1, 2>(reshape<6, 3, 4, 2>(arange<Tensor<float, 144>>() + 1.0f));

}  // namespace

TEST_CASE("normalize", "[data]") {
  double const mean[] = {10, 100}, deviation[] = {2, 0.5};
  for (auto const& x : {images, Tensor<float, 6, 2, 3, 4>(Array(strided))}) {
    auto const y = data::normalize(x, mean, deviation);
    for (index_t b = 0; b < 6; ++b)
      for (index_t c = 0; c < 2; ++c)
        for (index_t h = 0; h < 3; ++h)
          for (index_t w = 0; w < 4; ++w)
            CHECK(y(b, c, h, w) ==
                  static_cast<float>((static_cast<double>(x(b, c, h, w)) - mean[c]) / deviation[c]));
  }
  CHECK(error_of([&] { data::normalize(images, std::span(mean, 1), deviation); }) ==
        "normalize: 1 means and 2 deviations for 2 channels");
}

TEST_CASE("flips of some examples, settled by the key", "[data]") {
  auto const check = [](auto const& x) {
    int flipped = 0;
    auto const y = data::random_flip(x, Key{3}), rows = data::random_flip<2>(x, Key{3}, 1);
    for (index_t b = 0; b < 6; ++b) {
      bool const here = y(b, 0, 0, 0) != x(b, 0, 0, 0);
      flipped += here;
      for (index_t c = 0; c < 2; ++c)
        for (index_t h = 0; h < 3; ++h)
          for (index_t w = 0; w < 4; ++w) {
            CHECK(y(b, c, h, w) == x(b, c, h, here ? 3 - w : w));
            CHECK(rows(b, c, h, w) == x(b, c, 2 - h, w));
          }
    }
    CHECK((flipped > 0 && flipped < 6));
    CHECK(array_equal(y, data::random_flip(x, Key{3})));
    CHECK(array_equal(data::random_flip(x, Key{3}, 0), x));
  };
  check(images);
  check(strided);
}

TEST_CASE("crops move examples by up to the padding", "[data]") {
  auto const check = [](auto const& x, index_t padding) {
    auto const y = data::random_crop(x, Key{5}, padding);
    index_t lowest = 99, highest = -99;
    for (index_t b = 0; b < 6; ++b) {
      // The move that explains all pixels.
      int fits = 0;
      for (index_t dh = -padding; dh <= padding; ++dh)
        for (index_t dw = -padding; dw <= padding; ++dw) {
          bool same = true;
          for (index_t c = 0; c < 2; ++c)
            for (index_t h = 0; h < 3; ++h)
              for (index_t w = 0; w < 4; ++w) {
                bool const inside = h + dh >= 0 && h + dh < 3 && w + dw >= 0 && w + dw < 4;
                same = same && y(b, c, h, w) == (inside ? x(b, c, h + dh, w + dw) : 0.0f);
              }
          if (!same) continue;
          ++fits;
          lowest = std::min({lowest, dh, dw});
          highest = std::max({highest, dh, dw});
        }
      CHECK(fits >= 1);
      if (padding < 3) CHECK(fits == 1);
    }
    if (padding > 0) CHECK((lowest < 0 && highest > 0));
    CHECK(array_equal(y, data::random_crop(x, Key{5}, padding)));
  };
  for (index_t padding : {0, 1, 2, 5}) {
    check(images, padding);
    check(strided, padding);
  }
  CHECK(error_of([] { data::random_crop(images, Key{1}, -1); }) ==
        "random_crop: a padding of 0 or more required, got -1");
}

}  // namespace tests::data_transform
