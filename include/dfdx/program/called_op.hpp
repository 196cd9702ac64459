// SPDX-License-Identifier: BSL-1.0
// One call of an op on a device: what its kernel is given, views of operands as kernels want them, and how those that
// were written for programs (kernels/cuda/own.hpp) are started.
#pragma once

#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/value/device_ops.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

/// CalledOp - one call: what the kernel of an op is given, and where it is started.
struct CalledOp {
  Attrs const& attrs;
  Array const* const* x;
  int n;
  Array const& out;
  char const* name;

  Device device() const { return out.device(); }
  cudaStream_t stream() const { return cuda_runtime::stream(device()); }
  Array const& operator[](int k) const { return *x[k]; }
  /// Whether all operands lie on the device: kernels that were written for programs take no numbers of the CPU.
  bool lies_there() const {
    for (int k = 0; k < n; ++k)
      if (x[k]->device().is_cpu()) return false;
    return true;
  }
  /// Errors    "cuda: exp [3, 4]: ...", with what the runtime says
  bool started(cudaError_t said) const {
    if (said != cudaSuccess) cuda_runtime::failed(make_text(name, " ", out.shape()).c_str(), said);
    return true;
  }
};

// f(a value of the type) for the dtype among these; false if it is none of them.
template <class... T, class F>
bool for_one_of(DType d, F const& f) {
  bool r = false;
  static_cast<void>((... || (d == dtype_v<T> ? (r = f(std::type_identity<T>{}), true) : false)));
  return r;
}

// Extents and strides of operands, one after another, for a kernel that is described by AnyWalks.
template <class... A>
void put_slots(index_t* to, A const&... x) {
  auto const put = [&](Array const& v) {
    for (int d = 0; d < v.ndim(); ++d) *to++ = v.shape()[d];
    for (int d = 0; d < v.ndim(); ++d) *to++ = v.strides()[d];
  };
  (put(x), ...);
}
inline Array bytes_on(Device device, index_t n) {
  return n == 0 ? Array() : Array(Meta{DType::u8, make_shape(n)}, device);
}

// Starts a kernel (kernels/cuda/own.hpp) on these operands, the last of which is the result. `put` fills its slots.
template <class Kernel, class Put, class... A>
bool start_with(CalledOp const& c, char const* by, Put const& put, A const&... operands) {
  dfdx::kernels::cuda::OwnArguments x;
  static_assert(sizeof...(A) <= std::size(decltype(x.base){}));
  int k = 0;
  ((x.base[k++] = operands.bytes()), ...);
  put(x.symbols);
  x.attrs = c.attrs;
  x.by = by;
  x.fault = cuda_runtime::fault(c.device());
  Array const workspace = bytes_on(c.device(), dfdx::kernels::cuda::workspace_of<Kernel>(x.symbols));
  x.workspace = workspace.bytes();
  if constexpr (dfdx::kernels::cuda::into_zeros<Kernel>())
    cuda_runtime::zero(c.out.bytes(), static_cast<std::size_t>(c.out.size()) * size_of(c.out.dtype()),
                       c.device());
  return c.started(dfdx::kernels::cuda::start_own<Kernel>(x, c.stream()));
}
// The same for views that AnyWalks describes.
template <class Kernel, class... A>
bool start_called(CalledOp const& c, char const* by, A const&... views) {
  return start_with<Kernel>(c, by, [&](index_t* slots) { put_slots(slots, views...); }, views...);
}

// A number of the CPU that goes along, brought there.
inline Array brought_there(CalledOp const& c, Array const& x) {
  return x.device().is_cpu() ? moved(c.device(), x) : x;
}
inline Array dense_there(Array const& x) { return x.contiguous_memory() ? x : moved(x.device(), x); }
inline Array as_shape(Array const& dense, Shape const& s) { return dense.view(s, contiguous(s)); }
// [.., N, ..] as [outer, N, inner].
inline Array as_lines(Array const& x, int axis) {
  Shape s = make_shape(1, x.shape()[axis], 1);
  for (int d = 0; d < x.ndim(); ++d)
    if (d != axis) s[d < axis ? 0 : 2] *= x.shape()[d];
  return as_shape(dense_there(x), s);
}
// Four axes, the given one first.
inline Array from_axis(Array const& x, int axis) {
  Shape s = make_shape(x.shape()[axis]);
  Strides t = make_shape(x.strides()[axis]);
  for (int d = 0; d < x.ndim(); ++d)
    if (d != axis) s.push_back(x.shape()[d]), t.push_back(x.strides()[d]);
  while (s.rank < 4) s.push_back(1), t.push_back(0);
  return x.view(s, t);
}

}  // namespace dfdx::detail::inline DFDX_TARGET
