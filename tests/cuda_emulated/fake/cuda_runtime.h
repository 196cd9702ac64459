// SPDX-License-Identifier: BSL-1.0
// What dfdx uses of the CUDA runtime, on the CPU: the same source files are compiled by a plain compiler and run. Device
// memory can be touched by kernels and copies only; blocks, or clusters of them, run one after another, their threads as
// fibers.
#pragma once

#define DFDX_CUDA_EMULATED 1

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "cuda.h"
#include "machine.hpp"
#include "tensor_cores.hpp"
#include "warpgroups.hpp"

#define __global__
#define __launch_bounds__(...)
#define __grid_constant__

enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
struct cudaFuncAttributes {
  std::size_t sharedSizeBytes = 0;
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
struct cudaPointerAttributes {
  cudaMemoryType type = cudaMemoryTypeUnregistered;
};
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess, cudaDriverEntryPointSymbolNotFound };
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned long long cudaEnableDefault = 0;

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

using cudaStream_t = cuda_fake::Stream*;
using cudaGraph_t = cuda_fake::Graph*;
using cudaGraphExec_t = cuda_fake::Graph*;
struct cuda_fake_pool;
using cudaMemPool_t = cuda_fake_pool*;

// What kernels see
// -----------------------------------------------------------------------------------------------------------

#define threadIdx (cuda_fake::Position{cuda_fake::machine().fibers.thread(), 0, 0})
#define blockIdx \
  (cuda_fake::Position{cuda_fake::machine().block.x + cuda_fake::machine().fibers.block(), 0, 0})
// (No macro, as launches have a member of that name.)
inline constexpr struct {
  struct {
    operator unsigned() const { return cuda_fake::machine().blocks.x; }
  } x;
} gridDim{};
inline void __syncwarp() { cuda_fake::machine().fibers.votes(true); }
inline void __syncthreads() { cuda_fake::machine().fibers.barrier(); }
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask) {
  return cuda_fake::machine().fibers.exchange(x, static_cast<unsigned>(mask));
}

inline unsigned __ballot_sync(unsigned, bool yes) { return cuda_fake::machine().fibers.votes(yes); }

namespace cuda_fake {

/// What the block that runs has of memory that all blocks of a cluster have, one after the other; and another.
template <class T, std::size_t N>
T* own(T (&of_all)[Fibers::most_blocks][N]) {
  return of_all[fibers().block()];
}
template <class T>
T* of_block(T* own, std::ptrdiff_t size, unsigned block) {
  fibers().require_running(block);
  return own + (static_cast<std::ptrdiff_t>(block) - static_cast<std::ptrdiff_t>(fibers().block())) * size;
}

}  // namespace cuda_fake

// What the host calls
// ---------------------------------------------------------------------------------------------------------

namespace cuda_fake {

inline void end_late_copy(cudaStream_t s) {
  if (s == nullptr || s->late_copy == nullptr) return;
  Machine::Open const open(machine());
  std::exchange(s->late_copy, nullptr)();
}
inline cudaError_t submit(cudaStream_t s, std::function<void()> work) {
  if (machine().lost != cudaSuccess) return machine().say(machine().lost);
  end_late_copy(s);
  if (s != nullptr && s->capturing != nullptr) {
    s->capturing->work.push_back(std::move(work));
  } else {
    Machine::Open const open(machine());
    work();
  }
  return machine().say(cudaSuccess);
}

}  // namespace cuda_fake

enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    struct {
      unsigned x, y, z;
    } clusterDim;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};

template <class A>
cudaError_t cudaLaunchKernelExC(cudaLaunchConfig_t const* how, void (*kernel)(A), void** arguments) {
  using cuda_fake::machine;
  if (auto const e = machine().next_launch; e != cudaSuccess) {
    machine().next_launch = cudaSuccess;
    return machine().say(e);
  }
  dim3 const grid = how->gridDim, block = how->blockDim;
  std::size_t const dynamic = how->dynamicSmemBytes;
  unsigned const cluster = how->numAttrs == 0 ? 1 : how->attrs->val.clusterDim.x;
  if (grid.x == 0 || grid.y != 1 || grid.z != 1 || block.y != 1 || block.z != 1 || block.x > 1024 ||
      dynamic > cuda_fake::Machine::most_dynamic || cluster == 0 ||
      cluster > cuda_fake::Fibers::most_blocks || grid.x % cluster != 0)
    return machine().say(cudaErrorInvalidValue);
  using Arguments = std::remove_const_t<A>;
  static_assert(sizeof(A) <= 4096 && std::is_trivially_copyable_v<Arguments>);
  return cuda_fake::submit(how->stream, [=, a = *static_cast<Arguments const*>(arguments[0])] {
    ++machine().launches;
    if (cluster > 1) ++machine().cluster_launches;
    struct Call {
      void (*kernel)(A);
      Arguments const* a;
    } call{kernel, &a};
    machine().blocks = {grid.x, 1, 1};
    bool const backward = machine().fibers.turns == cuda_fake::Turns::backward;
    for (unsigned b = 0; b < grid.x; b += cluster) {
      machine().forget_dynamic_memory(dynamic, cluster);
      machine().block = {backward ? grid.x - cluster - b : b, 0, 0};
      try {
        machine().fibers.run(
            block.x, cluster, [](void* p) { static_cast<Call*>(p)->kernel(*static_cast<Call*>(p)->a); },
            &call);
      } catch (...) {
        cuda_fake::forget_copies();
        throw;
      }
    }
  });
}
template <class A>
cudaError_t cudaLaunchKernel(void (*kernel)(A), dim3 grid, dim3 block, void** arguments, std::size_t dynamic,
                             cudaStream_t stream) {
  cudaLaunchConfig_t const how{grid, block, dynamic, stream, nullptr, 0};
  return cudaLaunchKernelExC(&how, kernel, arguments);
}

inline cudaError_t cudaGetLastError() {
  auto const e = cuda_fake::machine().last;
  cuda_fake::machine().last = cuda_fake::machine().lost;
  return e;
}
inline char const* cudaGetErrorName(cudaError_t e) {
  switch (e) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    default: return "cudaErrorInvalidValue";
  }
}
inline char const* cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    default: return "invalid argument";
  }
}

inline cudaError_t cudaGetDeviceCount(int* n) {
  *n = cuda_fake::machine().devices;
  return cuda_fake::machine().say(*n == 0 ? cudaErrorNoDevice : cudaSuccess);
}
inline cudaError_t cudaGetDevice(int* d) {
  *d = cuda_fake::machine().device;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int d) {
  if (cuda_fake::machine().devices == 0) return cuda_fake::machine().say(cudaErrorNoDevice);
  if (d < 0 || d >= cuda_fake::machine().devices) return cuda_fake::machine().say(cudaErrorInvalidDevice);
  cuda_fake::machine().device = d;
  cuda_fake::is_stranger = false;
  return cuda_fake::machine().say(cudaSuccess);
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}

// Code for sm_90a has memory with a name where it needs that of the other kind.
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* facts, void const*) {
  facts->sharedSizeBytes = cuda_fake::machine().has_warpgroups ? 64 : 0;
  return cudaSuccess;
}
inline cudaError_t cudaFuncSetAttribute(void const*, cudaFuncAttribute, int value) {
  bool const fits = static_cast<std::size_t>(value) <= cuda_fake::machine().dynamic_limit;
  return cuda_fake::machine().say(fits ? cudaSuccess : cudaErrorInvalidValue);
}
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void const*, int, std::size_t) {
  *blocks = 2;
  return cudaSuccess;
}
inline cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, void const*, cudaLaunchConfig_t const*) {
  *clusters = 2;
  return cudaSuccess;
}
inline cudaError_t cudaGetDriverEntryPointByVersion(char const* name, void** f, unsigned, unsigned long long,
                                                    cudaDriverEntryPointQueryResult* found) {
  bool const is_map = std::strcmp(name, "cuTensorMapEncodeTiled") == 0;
  *f = is_map ? reinterpret_cast<void*>(&cuTensorMapEncodeTiled) : nullptr;
  *found = is_map ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

// What dfdx never asks of a stream that is captured. (CUDA allows some of it; memory would be the graph's.)
inline bool is_captured(cudaStream_t s) { return s != nullptr && s->capturing != nullptr; }
inline cudaError_t cudaMallocAsync(void** p, std::size_t bytes, cudaStream_t s) {
  if (is_captured(s)) return cuda_fake::machine().say(cudaErrorStreamCaptureUnsupported);
  return cuda_fake::machine().take(p, bytes);
}
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  if (is_captured(s)) return cuda_fake::machine().say(cudaErrorStreamCaptureUnsupported);
  return cuda_fake::machine().give(p);
}
inline cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  *p = std::malloc(bytes);
  cuda_fake::machine().pinned.insert(*p);
  return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* p) {
  cuda_fake::machine().pinned.erase(p);
  std::free(p);
  return cudaSuccess;
}
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* facts, void const* p) {
  bool const is_pinned = cuda_fake::machine().pinned.contains(p);
  facts->type = is_pinned ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  return cuda_fake::machine().say(cudaSuccess);
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = cuda_fake::machine().total_bytes;
  *free = *total - cuda_fake::machine().used_bytes;
  return cuda_fake::machine().say(cudaSuccess);
}
// From the beginning of pinned memory as late as may be.
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t s) {
  auto const copy = [=] { std::memcpy(to, from, bytes); };
  if (is_captured(s) || !cuda_fake::machine().pinned.contains(from)) return cuda_fake::submit(s, copy);
  auto const said = cuda_fake::submit(s, [] {});
  if (said == cudaSuccess) s->late_copy = copy;
  return said;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t s) {
  return cuda_fake::submit(s, [=] { std::memset(to, value, bytes); });
}
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* p, int) {
  *p = nullptr;
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) { return cudaSuccess; }

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  *s = new cuda_fake::Stream;
  ++cuda_fake::machine().streams;
  return cuda_fake::machine().say(cudaSuccess);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  cuda_fake::end_late_copy(s);
  ++cuda_fake::machine().waits;
  return cuda_fake::machine().say(is_captured(s) ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}
inline cudaError_t cudaDeviceSynchronize() {
  bool const captures = cuda_fake::machine().capturing != 0;
  return cuda_fake::machine().say(captures ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
}

// Events know when the work before them was done, which is at once.
using cudaEvent_t = std::chrono::steady_clock::time_point*;
inline cudaError_t cudaEventCreate(cudaEvent_t* e) {
  *e = new std::chrono::steady_clock::time_point;
  return cuda_fake::machine().say(cudaSuccess);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete e;
  return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  return cuda_fake::submit(s, [e] { *e = std::chrono::steady_clock::now(); });
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cuda_fake::machine().say(cudaSuccess); }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  *ms = std::chrono::duration<float, std::milli>(*b - *a).count();
  return cuda_fake::machine().say(cudaSuccess);
}

inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  s->capturing = new cuda_fake::Graph;
  ++cuda_fake::machine().capturing;
  return cuda_fake::machine().say(cudaSuccess);
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* g) {
  *g = std::exchange(s->capturing, nullptr);
  --cuda_fake::machine().capturing;
  ++cuda_fake::machine().captures;
  ++cuda_fake::machine().graphs;
  return cuda_fake::machine().say(cudaSuccess);
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long = 0) {
  *e = new cuda_fake::Graph(*g);
  ++cuda_fake::machine().graphs;
  return cuda_fake::machine().say(cudaSuccess);
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
  ++cuda_fake::machine().replays;
  return cuda_fake::submit(s, [e] {
    for (auto const& w : e->work) w();
  });
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete g;
  --cuda_fake::machine().graphs;
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) { return cudaGraphDestroy(g); }
