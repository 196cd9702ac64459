// SPDX-License-Identifier: BSL-1.0
// What is done to batches before they are trained on: normalization, and changes at random that a key settles, the same
// in every run. (one_hot is an op, vocabulary/one_hot.hpp.) They run when called and are not differentiated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <span>

#include <dfdx/core/random.hpp>
#include <dfdx/value/tensor.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::data {

/// normalize(x, mean, deviation) - of each channel, the second axis, its mean is taken away and the rest divided by its
/// deviation.
///
/// Math      y = (x - mean) / deviation
/// Shapes    x: [B, C, S...], mean, deviation: C numbers -> [B, C, S...]
/// Dtypes    floating
/// Errors    "normalize: 3 means and 1 deviations for 3 channels"
template <typed X>
  requires(X::static_rank >= 2)
X normalize(X const& x, std::span<double const> mean, std::span<double const> deviation) {
  static_assert(is_floating(X::static_meta.dtype), "normalize: floating values required");
  index_t const channels = x.shape()[1];
  if (static_cast<index_t>(mean.size()) != channels || static_cast<index_t>(deviation.size()) != channels)
    raise("normalize: ", static_cast<index_t>(mean.size()), " means and ",
          static_cast<index_t>(deviation.size()), " deviations for ", channels, " channels");
  using E = typename X::value_type;
  X r = X::uninitialized(x.shape());
  copy_elements(x.operand(), r.operand());
  index_t const examples = x.shape()[0];
  index_t const inside = r.size() == 0 ? 0 : r.size() / (examples * channels);
  for (index_t i = 0; i < examples * channels && inside > 0; ++i) {
    auto const c = static_cast<std::size_t>(i % channels);
    E* const p = r.data() + i * inside;
    for (index_t k = 0; k < inside; ++k)
      p[k] = static_cast<E>((static_cast<double>(p[k]) - mean[c]) / deviation[c]);
  }
  return r;
}

/// random_flip<Axis>(x, key, probability) - turns examples around along an axis, by default the last: images left to
/// right.
///
/// Shapes    x: [B, S...] -> [B, S...]
/// Dtypes    any
template <int Axis = -1, typed X>
  requires(X::static_rank >= 2)
X random_flip(X const& x, Key key, double probability = 0.5) {
  constexpr int axis = Axis < 0 ? X::static_rank + Axis : Axis;
  static_assert(axis >= 1 && axis < X::static_rank, "random_flip: an axis of the examples required");
  X r = X::uninitialized(x.shape());
  for (index_t i = 0; i < x.shape()[0]; ++i) {
    Array from = x.part(i);
    if (uniform_at(key, static_cast<std::uint64_t>(i)) < probability && from.size() > 0) {
      Strides back = from.strides();
      index_t const last = (from.shape()[axis - 1] - 1) * back[axis - 1];
      back[axis - 1] = -back[axis - 1];
      from = from.view(from.shape(), back, last);
    }
    copy_elements(from.operand(), r.part(i).operand());
  }
  return r;
}

/// random_crop(x, key, padding) - each example with `padding` zeros around its last two axes, cut to its size again at a
/// place of its own: images moved by up to `padding` pixels.
///
/// Shapes    x: [B, S..., H, W] -> [B, S..., H, W]
/// Dtypes    any
/// Errors    "random_crop: a padding of 0 or more required, got -1"
template <typed X>
  requires(X::static_rank >= 3)
X random_crop(X const& x, Key key, index_t padding) {
  if (padding < 0) raise("random_crop: a padding of 0 or more required, got ", Position{padding});
  X r = X::uninitialized(x.shape());
  if (r.size() == 0) return r;
  std::memset(r.bytes(), 0, static_cast<std::size_t>(r.size()) * size_of(r.dtype()));
  for (index_t i = 0; i < x.shape()[0]; ++i) {
    Array from = x.part(i), to = r.part(i);
    Shape shape = from.shape();
    index_t begin_from = 0, begin_to = 0;
    bool outside = false;
    for (int k = 0; k < 2; ++k) {
      int const a = shape.rank - 1 - k;
      index_t const move = integer_at(key, 2 * static_cast<std::uint64_t>(i) + static_cast<std::uint64_t>(k),
                                      2 * padding + 1) -
                           padding;
      begin_from += std::max<index_t>(move, 0) * from.strides()[a];
      begin_to += std::max<index_t>(-move, 0) * to.strides()[a];
      shape[a] = std::max<index_t>(shape[a] - std::abs(move), 0);
      outside = outside || shape[a] == 0;
    }
    if (!outside)
      copy_elements(from.view(shape, from.strides(), begin_from).operand(),
                    to.view(shape, to.strides(), begin_to).operand());
  }
  return r;
}

}  // namespace dfdx::data
