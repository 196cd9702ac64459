// SPDX-License-Identifier: BSL-1.0
// Values and models moved to another device, and back.
#pragma once

#include <dfdx/value/fields.hpp>
#include <dfdx/vocabulary/bind.hpp>

namespace dfdx {

namespace detail {

// A view of a device's memory in memory of the CPU, row by row: all that it reaches over is copied.
template <class = void>
Array brought(Array const& x) {
  Operand from{x.bytes(), x.meta(), x.strides()};
  index_t last = 0;
  for (int i = 0; i < x.ndim(); ++i) last += (x.shape()[i] - 1) * from.strides[i];
  auto const bytes = static_cast<std::size_t>(last + 1) * size_of(x.dtype());
  Array const reached(Meta{DType::u8, make_shape(static_cast<index_t>(bytes))});
  device_memory->copy(reached.bytes(), Device{}, from.data, x.device(), bytes);
  from.data = reached.bytes();
  Array y(x.meta());
  copy_elements(from, y.operand());
  return y;
}

template <class = void>
Array moved_to(Device device, Array const& x) {
  if (x.recorded()) raise("to: a value that is being recorded cannot be moved to ", device);
  if (x.requires_grad())
    raise("to: a value of shape ", x.shape(),
          " requires a gradient, and tapes run on the CPU only: detach it");
  if (x.bytes() == nullptr) return x;
  if (x.size() == 0) return Array(x.meta(), device);
  if (!x.device().is_cpu() && !x.contiguous_memory()) return moved_to(device, brought(x));
  Array const from = packed(x);
  Array y(x.meta(), device);
  auto const bytes = static_cast<std::size_t>(x.size()) * size_of(x.dtype());
  if (device.is_cpu() && x.device().is_cpu()) std::memcpy(y.bytes(), from.bytes(), bytes);
  else device_memory->copy(y.bytes(), device, from.bytes(), x.device(), bytes);
  return y;
}

}  // namespace detail

/// to(device, value) - a copy of a value, or of a model leaf by leaf, on a device: `to(cuda(), model)`. What holds no
/// memory stays as it is. Programs run where their arguments are; what is called on its own runs on the CPU.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any
/// Cost      one allocation and one copy for each leaf
/// Errors    "storage: no memory on a CUDA device in this build"; "cuda: out of memory on cuda:0: 4096 bytes asked,
///           1024 of 2048 free"; "to: a value of shape [3] requires a gradient, and tapes run on the CPU only:
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
