// SPDX-License-Identifier: BSL-1.0
// A network of two convolutions for pictures of 28 x 28 points, after LeNet-5 (LeCun et al. 1998).
#pragma once

#include "../common/pictures.hpp"

namespace fashion {

using common::batch, common::classes, common::side;

struct Model {
  dfdx::Buffer<float, 2> brightness;  // mean and standard deviation of what it was trained on
  dfdx::nn::Conv2d<1, 32, 3> conv1;
  dfdx::nn::Conv2d<32, 64, 3> conv2;
  dfdx::nn::Linear<1600, 128> fc1;
  dfdx::nn::Linear<128, classes> fc2;
  DFDX_FIELDS(brightness, conv1, conv2, fc1, fc2)

  /// Pictures of bytes, [B, 28, 28] -> scores of the classes, [B, 10].
  constexpr auto operator()(auto const& pictures) const { return fc2(features(pictures)); }
  /// The same, with a part of the features left out.
  constexpr auto train(auto const& pictures, auto const& key) const {
    return fc2(dfdx::dropout(features(pictures), 0.25, key));
  }

 private:
  constexpr auto features(auto const& pictures) const {
    auto const mean = dfdx::select<0, 0>(brightness), deviation = dfdx::select<0, 1>(brightness);
    auto const x = dfdx::unsqueeze<1>((dfdx::cast<float>(pictures) - mean) / deviation);
    // The largest of four, then relu: the same as the other way round, on a quarter of the points.
    auto const h = relu(dfdx::max_pool2d<2>(conv1(x)));
    return relu(fc1(dfdx::flatten<1>(relu(dfdx::max_pool2d<2>(conv2(h))))));
  }
};

}  // namespace fashion
