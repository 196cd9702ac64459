// SPDX-License-Identifier: BSL-1.0
// Kernels that begin while those before them end (programmatic dependent launch; in code for sm_90a): what they can do
// without what those compute, they do in the meantime. Such a kernel lets the next begin, and waits for those before
// before it reads what they write or writes at all; each waits, so that when one goes on, all before it are done.
#pragma once

#include <array>
#include <atomic>

#include <dfdx/core/device.hpp>
#include <dfdx/kernels/cuda/cublas.hpp>
#include <dfdx/kernels/cuda/threads.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// let_next_begin - the kernel behind this one may begin when all blocks of this have said so; nothing if it was
/// started as usual. (PTX ISA, griddepcontrol.)
DFDX_INLINE void let_next_begin() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}
/// wait_for_before - all kernels before this one have ended, and what they wrote is there.
DFDX_INLINE void wait_for_before() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}

/// Waits - a kernel that shares memory where the code of K waits by itself, and none elsewhere: they are compiled
/// together.
template <class K>
struct Waits {
  static constexpr int threads = warp_size;
  static DFDX_INLINE void run(int) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    asm volatile("" : : "l"(shared<Waits, int, 1>()) : "memory");
#endif
  }
};

/// may_be_early - whether the program's code of kernel K for a device waits by itself.
template <class K>
bool may_be_early([[maybe_unused]] Device device) {
#if defined(DFDX_CUDA_EMULATED)
  return false;
#else
  static std::array<std::atomic<signed char>, 64> known{};
  auto& is = known[static_cast<std::size_t>(device.index)];
  if (is == 0) {
    cudaFuncAttributes facts{};
    cudaError_t const said =
        cudaFuncGetAttributes(&facts, reinterpret_cast<void const*>(entry_of<Waits<K>, int>()));
    if (said != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    is = facts.sharedSizeBytes != 0 ? 1 : -1;
  }
  return is > 0;
#endif
}

/// start_early - starts a kernel that waits for those before by itself, with CudaOptions::early; returns what the
/// runtime says.
template <class K, class Arguments>
cudaError_t start_early(Arguments const& arguments, index_t blocks, Device device, cudaStream_t stream) {
#if !defined(DFDX_CUDA_EMULATED)
  if (blocks != 0 && cuda_options.early && may_be_early<K>(device)) {
    Arguments copy = arguments;
    void* list[] = {&copy};
    cudaLaunchAttribute at_once{};
    at_once.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    at_once.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how{};
    how.gridDim = dim3(static_cast<unsigned>(blocks)), how.blockDim = dim3(K::threads);
    how.dynamicSmemBytes = dynamic_bytes<K>, how.stream = stream;
    how.attrs = &at_once, how.numAttrs = 1;
    return cudaLaunchKernelExC(&how, reinterpret_cast<void const*>(entry_of<K, Arguments>()), list);
  }
#endif
  static_cast<void>(device);
  return start<K>(arguments, blocks, stream);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
