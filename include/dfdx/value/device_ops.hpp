// SPDX-License-Identifier: BSL-1.0
// Ops that are called one by one on values which lie on a device, as everybody below the backend sees them; and values
// brought from one memory to another.
#pragma once

#include <dfdx/value/array.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx {

/// ShapeRule - an op's `infer`. It says with the name which op is meant, for an op of a user's may have a name of ours.
using ShapeRule = Meta (*)(Attrs const&, Meta const*, Text*);

/// DeviceOps - how a backend does ops that are called one by one. `run` starts the op of that name, and of that rule
/// unless it is null, on n operands, into memory of a device, which `out` views. Operands lie there too, or are single
/// numbers on the CPU. False if it has no kernel for them: then nothing has been started. Elementwise ops take any view
/// for `out`, also one of their operands; "copy" takes any dtype.
struct DeviceOps {
  bool (*run)(char const* name, ShapeRule rule, Attrs const& attrs, Array const* const* x, int n,
              Array const& out);
};

namespace detail {

/// Of the CUDA backend, in a program that has <dfdx/cuda_ops.hpp> in one of its files; else null.
inline constinit DeviceOps const* device_ops = nullptr;
inline bool has_run(char const* op, ShapeRule rule, Attrs const& attrs, Array const* const* x, int n,
                    Array const& out) {
  return device_ops != nullptr && device_ops->run(op, rule, attrs, x, n, out);
}

/// is_elsewhere - whether a value lies on a device.
template <class... X>
bool is_elsewhere(X const&... x) {
  return (... || !x.device().is_cpu());
}

// Whether a view repeats one number.
inline bool repeats_one(Array const& x) {
  for (int i = 0; i < x.ndim(); ++i)
    if (x.strides()[i] != 0 && x.shape()[i] != 1) return false;
  return x.ndim() > 0 && x.size() > 0;
}

// Whether two indices of a view may name one element: from the smallest step on, each axis must step over what the axes
// before it reach.
inline bool overlaps_itself(Shape const& s, Strides const& t) {
  if (s.numel() == 0) return false;
  unsigned done = 0;
  for (index_t reach = 0;;) {
    int next = -1;
    auto const step = [&](int i) { return t[i] < 0 ? -t[i] : t[i]; };
    for (int i = 0; i < s.rank; ++i)
      if (s[i] > 1 && (done >> i & 1u) == 0 && (next < 0 || step(i) < step(next))) next = i;
    if (next < 0) return false;
    if (step(next) <= reach) return true;
    reach += step(next) * (s[next] - 1);
    done |= 1u << next;
  }
}

// The bytes that a view of memory on a device reaches over, in memory of the CPU.
class Reached {
 public:
  explicit Reached(Array const& x) : from_(x), view_{nullptr, x.meta(), x.strides()} {
    index_t low = 0, high = 0;
    for (int i = 0; i < x.ndim(); ++i)
      (x.strides()[i] < 0 ? low : high) += (x.shape()[i] - 1) * x.strides()[i];
    auto const size = static_cast<index_t>(size_of(x.dtype()));
    begin_ = x.bytes() + low * size;
    bytes_ = static_cast<std::size_t>((high - low + 1) * size);
    memory_ = Array(Meta{DType::u8, make_shape(static_cast<index_t>(bytes_))});
    device_memory->copy(memory_.bytes(), Device{}, begin_, x.device(), bytes_);
    view_.data = memory_.bytes() - low * size;
  }
  Operand const& view() const { return view_; }
  void put_back() const { device_memory->copy(begin_, from_.device(), memory_.bytes(), Device{}, bytes_); }

 private:
  Array const& from_;
  Operand view_;
  std::byte* begin_;
  std::size_t bytes_;
  Array memory_;
};

/// copy_values - the elements of a view to those of another one of that shape and dtype, wherever both lie.
template <int = 0>
void copy_values(Array const& from, Array const& to) {
  if (from.size() == 0) return;
  if (!is_elsewhere(from, to)) return copy_elements(from.operand(), to.operand());
  if (from.contiguous_memory() && to.contiguous_memory())
    return device_memory->copy(to.bytes(), to.device(), from.bytes(), from.device(),
                               static_cast<std::size_t>(from.size()) * size_of(from.dtype()));
  if (from.device() != to.device()) {
    bool const gathers = !from.contiguous_memory();  // else the result is no dense one
    Array const dense(from.meta(), gathers ? from.device() : to.device());
    copy_values(from, dense);
    return copy_values(dense, to);
  }
  Array const* const operands[] = {&from};
  if (has_run("copy", nullptr, {}, operands, 1, to)) return;
  Reached const here(from), there(to);
  copy_elements(here.view(), there.view());
  there.put_back();
}

/// moved - a value in memory of its own on a device, or on the CPU, row by row.
template <int = 0>
Array moved(Device device, Array const& x) {
  Array y(x.meta(), device);
  copy_values(x, y);
  return y;
}

/// here - a value on the CPU: itself if it is there.
template <int = 0>
Array here(Array const& x) {
  return is_elsewhere(x) ? moved(Device{}, x) : x;
}

/// beside - a value in memory of where another one lies.
template <int = 0>
Array beside(Array const& x, Array const& v) {
  return x.device() == v.device() ? v : moved(x.device(), v);
}

/// device_among - where an op on these operands is done. Single numbers on the CPU go along with any.
///
/// Errors    "add: operands of shapes [3] and [3] lie on cuda:0 and cpu"
template <int = 0>
Device device_among(char const* op, Array const* const* x, int n) {
  Array const* there = nullptr;
  auto const refuse = [&](Array const& y) {
    raise(op, ": operands of shapes ", there->shape(), " and ", y.shape(), " lie on ", there->device(),
          " and ", y.device());
  };
  for (int k = 0; k < n; ++k) {
    if (x[k]->device().is_cpu()) continue;
    if (there == nullptr) there = x[k];
    else if (there->device() != x[k]->device()) refuse(*x[k]);
  }
  for (int k = 0; k < n; ++k)
    if (x[k]->device().is_cpu() && x[k]->bytes() != nullptr && x[k]->size() > 1 && !repeats_one(*x[k]))
      refuse(*x[k]);
  return there == nullptr ? Device{} : there->device();
}

/// run_elsewhere - an op on values of which one lies on a device at least, by a kernel of that device; an empty value
/// if it has none.
template <int = 0>
[[gnu::noinline]] Array run_elsewhere(char const* op, ShapeRule rule, Meta const& meta, Attrs const& attrs,
                                      Array const* const* x, int n) {
  Array out(meta, device_among(op, x, n));
  if (out.size() == 0) return out;
  return has_run(op, rule, attrs, x, n, out) ? out : Array();
}

}  // namespace detail

}  // namespace dfdx
