// SPDX-License-Identifier: BSL-1.0
// Attention of 16-bit floats, and its gradients, by the kernels that suit the device and the operands.
#pragma once

#include <dfdx/kernels/cuda/warpgroup_attention_back.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// TensorAttend - attention of 16-bit floats by tensor cores, by the kernel that suits the device.
template <class Code, class T>
struct TensorAttend {
  using Plain = TensorAttendKernel<Code, T>;
  static constexpr bool fits = Plain::tile != 0;

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    using Warpgroups = WarpgroupAttendKernel<Code, T>;
    if constexpr (Warpgroups::fits) {
      cudaError_t said = cudaSuccess;
      if (Warpgroups::start_there(x, stream, said)) return said;
    }
    return start<Plain>(x, blocks_for(Plain::work(x.symbols), Plain::threads), stream);
  }
};

/// TensorAttendBack - gradients of attention of 16-bit floats by tensor cores, by the kernels that suit the device.
template <class Code, class T>
struct TensorAttendBack {
  using Plain = TensorAttendBackKernel<Code, T>;
  using Warpgroups = WarpgroupAttendBack<Code, T>;
  static constexpr bool fits = Plain::fits;

  static constexpr index_t workspace(index_t const* s) {
    if constexpr (Warpgroups::fits) return Warpgroups::workspace(s);
    else return 0;
  }
  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    if constexpr (Warpgroups::fits) {
      cudaError_t said = cudaSuccess;
      if (Warpgroups::start_there(x, stream, said)) return said;
    }
    return Plain::start_all(x, stream);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
