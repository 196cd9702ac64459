// SPDX-License-Identifier: BSL-1.0
// What the model is compared with.
#pragma once

#include <dfdx/value/array_type.hpp>

namespace autoencoder {

/// Mean squared errors of a point.
struct Baselines {
  double mean_picture, main_directions;
};

/// The errors of drawing every picture as the mean of those to train on, and as that plus a sum of `code` pictures, the
/// directions in which they differ most: the best that a linear model can do.
///
/// Shapes    pictures: [N, Side, Side], bytes
/// Source    Pearson 1901; orthogonal iteration, Golub and Van Loan, Matrix Computations, 8.2
Baselines compare(dfdx::Array const& training, dfdx::Array const& test, dfdx::index_t code);

}  // namespace autoencoder
