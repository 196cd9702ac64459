// SPDX-License-Identifier: BSL-1.0
// Values and models moved to another device, and back.
#pragma once

#include <dfdx/value/fields.hpp>
#include <dfdx/vocabulary/bind.hpp>

namespace dfdx {

namespace detail {

template <class = void>
Array moved_to(Device device, Array const& x) {
  if (x.recorded()) raise("to: a value that is being recorded cannot be moved to ", device);
  if (x.requires_grad())
    raise("to: a value of shape ", x.shape(),
          " requires a gradient: move it before it is watched, or detach it");
  if (x.bytes() == nullptr) return x;
  return moved(device, x);
}

}  // namespace detail

/// to(device, value) - a copy of a value, or of a model leaf by leaf, on a device: `to(cuda(), model)`. What holds no
/// memory stays as it is. Programs, ops that are called one by one and the tape work where their operands lie.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any
/// Cost      one allocation and one copy for each leaf
/// Errors    "storage: no memory on a CUDA device in this build"; "cuda: out of memory on cuda:0: 4096 bytes asked,
///           1024 of 2048 free"; "to: a value of shape [3] requires a gradient: move it before it is watched, or
///           detach it"
/// Source    PyTorch's to
template <class T>
T to(Device device, T const& value) {
  Vec<Array> moved;
  visit(value, [&](auto const& leaf) { moved.push_back(detail::moved_to(device, leaf)); });
  std::size_t i = 0;
  return detail::filled(value, [&] { return moved[i++]; });
}

}  // namespace dfdx
