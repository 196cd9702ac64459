// SPDX-License-Identifier: BSL-1.0
// The CUDA runtime as dfdx uses it: one stream for each device, on which all work and all memory of dfdx is ordered;
// what it reports, as errors; memory from the pool of that stream; and copies, from host memory through pinned buffers.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#if defined(DFDX_NVTX)
#include <nvtx3/nvToolsExt.h>
#endif

#include <dfdx/core/device.hpp>
#include <dfdx/core/error.hpp>

namespace dfdx::inline DFDX_TARGET::cuda_runtime {

/// failed - throws what the runtime said of `what`. An error that stays makes all later calls fail.
///
/// Errors    "cuda: copy of 64 bytes: an illegal memory access was encountered (cudaErrorIllegalAddress); the device is
///           lost to this process, which has to be started again"
[[noreturn]] inline void failed(std::string const& what, cudaError_t e) {
  static_cast<void>(cudaGetLastError());  // what passes is forgotten here
  std::string text = "cuda: " + what + ": " + cudaGetErrorString(e) + " (" + cudaGetErrorName(e) + ")";
  bool const says_nothing =
      e == cudaErrorNoDevice || e == cudaErrorInvalidDevice || e == cudaErrorInsufficientDriver;
  cudaError_t const now = says_nothing ? cudaSuccess : cudaDeviceSynchronize();
  if (now != cudaSuccess) static_cast<void>(cudaGetLastError());
  // While steps are captured nobody may wait for the device, which is not lost for that.
  if (now != cudaSuccess && now != cudaErrorStreamCaptureUnsupported)
    text += "; the device is lost to this process, which has to be started again";
  raise(text);
}
/// check - throws unless the runtime said that all is well.
inline void check(char const* what, cudaError_t e) {
  if (e != cudaSuccess) failed(what, e);
}

/// Current - makes a device the current one of this thread, as long as it lives.
class Current {
 public:
  explicit Current(Device device) {
    check("current device", cudaGetDevice(&before_));
    if (before_ == device.index) return;
    check("change of device", cudaSetDevice(device.index));
    changed_ = true;
  }
  Current(Current const&) = delete;
  Current& operator=(Current const&) = delete;
  ~Current() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// Range - what NVIDIA's profilers show by a name as long as it lives. Programs that define DFDX_NVTX have ranges named
/// after the ops of each step; others need no header for it.
struct Range {
#if defined(DFDX_NVTX)
  explicit Range(char const* name) { nvtxRangePushA(name); }
  Range(Range const&) = delete;
  ~Range() { nvtxRangePop(); }
#else
  explicit Range(char const*) {}
#endif
};

/// Stopwatch - how long the device works at what is asked of it, by its own clock.
class Stopwatch {
 public:
  explicit Stopwatch(cudaStream_t stream) : stream_(stream) {
    check("event", cudaEventCreate(&begin_));
    check("event", cudaEventCreate(&end_));
  }
  Stopwatch(Stopwatch const&) = delete;
  ~Stopwatch() {
    static_cast<void>(cudaEventDestroy(begin_));
    static_cast<void>(cudaEventDestroy(end_));
  }
  /// Seconds that the device takes for what `work` asks of it.
  template <class Work>
  double seconds(Work const& work) {
    check("event", cudaEventRecord(begin_, stream_));
    work();
    check("event", cudaEventRecord(end_, stream_));
    check("earlier work", cudaEventSynchronize(end_));
    float milliseconds = 0;
    check("event", cudaEventElapsedTime(&milliseconds, begin_, end_));
    return static_cast<double>(milliseconds) * 1e-3;
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t begin_{}, end_{};
};

/// stream - that of a device, made when it is first asked for.
///
/// Errors    "cuda: no device 3, there are 1", and what the runtime says where there is no driver
inline cudaStream_t stream(Device device) {
  static constexpr int most = 64;
  static std::array<cudaStream_t, most> made{};
  static std::mutex mutex;
  std::lock_guard const lock(mutex);
  int const i = device.index;
  if (i >= 0 && i < most && made[static_cast<std::size_t>(i)] != nullptr)
    return made[static_cast<std::size_t>(i)];
  int devices = 0;
  check("devices", cudaGetDeviceCount(&devices));
  if (i < 0 || i >= devices || i >= most)
    raise("cuda: no device " + std::to_string(i) + ", there are " + std::to_string(devices));
  Current const current(device);
  // Memory that is given back stays with the pool.
  cudaMemPool_t pool{};
  check("memory pool", cudaDeviceGetDefaultMemPool(&pool, i));
  std::uint64_t keep = ~std::uint64_t{0};
  check("memory pool", cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
  cudaStream_t s{};
  check("stream", cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  return made[static_cast<std::size_t>(i)] = s;
}

/// current_device - of this thread.
inline Device current_device() {
  int i = 0;
  check("current device", cudaGetDevice(&i));
  return cuda(static_cast<short>(i));
}

/// multiprocessors - that a device has.
inline int multiprocessors(Device device) {
  static std::array<std::atomic<int>, 64> known{};
  auto& n = known[static_cast<std::size_t>(device.index)];
  if (n == 0) {
    int count = 0;
    check("device", cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device.index));
    n = count;
  }
  return n;
}

/// Fault - what a kernel found that it could not go on with, in host memory that the device writes to: an index that is
/// out of range. Kernels go on with a zero in its place, and it is said when a result is read.
struct Fault {
  char const* by = nullptr;  // who asked, a host's text; null if there was none
  index_t index = 0, extent = 0;
  bool is_label = false;
};
inline Fault* fault(Device device) {
  static std::array<Fault*, 64> made{};
  static std::mutex mutex;
  std::lock_guard const lock(mutex);
  Fault*& f = made[static_cast<std::size_t>(device.index)];
  if (f == nullptr) {
    void* p = nullptr;
    check("pinned memory", cudaHostAlloc(&p, sizeof(Fault), 0));
    f = new (p) Fault;
  }
  return f;
}
/// require_no_fault - says what a kernel has found, once.
///
/// Errors    "take: index 30 out of range for 27 on cuda:0: what was computed since is void"; "cross_entropy: label 10
///           out of range for 10 classes on cuda:0: what was computed since is void"
inline void require_no_fault(Device device) {
  Fault* const f = fault(device);
  if (f->by == nullptr) return;
  Fault const found = std::exchange(*f, Fault{});
  raise(found.by, found.is_label ? ": label " : ": index ", Position{found.index}, " out of range for ",
        found.extent, found.is_label ? " classes on " : " on ", device, ": what was computed since is void");
}

/// synchronize - waits until a device has done all that was asked of it.
///
/// Errors    what the device reports of any of it
inline void synchronize(Device device) {
  Current const current(device);
  check("earlier work", cudaStreamSynchronize(stream(device)));
  require_no_fault(device);
}

// Memory
// -------------------------------------------------------------------------------------------------------------

/// take - memory of a device, for what is asked of it from now on.
///
/// Errors    "cuda: out of memory on cuda:0: 4096 bytes asked, 1024 of 2048 free"
inline void* take(std::size_t bytes, Device device) {
  cudaStream_t const s = stream(device);
  Current const current(device);
  void* p = nullptr;
  std::size_t const asked = bytes == 0 ? 1 : bytes;
  cudaError_t e = cudaMallocAsync(&p, asked, s);
  if (e == cudaErrorMemoryAllocation) {
    // What was given back may be free when the work before has been done, in pieces of other sizes.
    static_cast<void>(cudaGetLastError());
    cudaMemPool_t pool{};
    check("earlier work", cudaStreamSynchronize(s));
    check("memory pool", cudaDeviceGetDefaultMemPool(&pool, device.index));
    check("memory pool", cudaMemPoolTrimTo(pool, 0));
    e = cudaMallocAsync(&p, asked, s);
  }
  if (e == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t free = 0, total = 0;
    check("memory", cudaMemGetInfo(&free, &total));
    raise("cuda: out of memory on ", device, ": ", static_cast<index_t>(bytes), " bytes asked, ",
          static_cast<index_t>(free), " of ", static_cast<index_t>(total), " free");
  }
  if (e != cudaSuccess) failed("memory of " + std::to_string(bytes) + " bytes", e);
  return p;
}

/// give - takes memory back when all that was asked of the device before has been done. Never throws: a lost device
/// has lost its memory too.
inline void give(void* p, Device device) noexcept {
  try {
    Current const current(device);
    if (cudaFreeAsync(p, stream(device)) != cudaSuccess) static_cast<void>(cudaGetLastError());
  } catch (...) {
    static_cast<void>(cudaGetLastError());
  }
}

/// Pinned - host memory that devices read and write by themselves, one block for each thread.
struct Pinned {
  static constexpr std::size_t bytes = std::size_t{4} << 20;
  struct Free {
    void operator()(void* p) const { static_cast<void>(cudaFreeHost(p)); }
  };
  static std::byte* block() {
    static thread_local std::unique_ptr<void, Free> mine;
    if (mine == nullptr) {
      void* p = nullptr;
      check("pinned memory", cudaHostAlloc(&p, bytes, 0));
      mine.reset(p);
    }
    return static_cast<std::byte*>(mine.get());
  }
};

/// is_pinned - whether devices read host memory by themselves, after a copy of it was asked for: what a user borrowed.
inline bool is_pinned(void const* p) {
  cudaPointerAttributes facts{};
  check("host memory", cudaPointerGetAttributes(&facts, p));
  return facts.type != cudaMemoryTypeUnregistered;
}

/// copy - bytes from one device, or the host, to another; has read and written host memory when it returns.
inline void copy(void* to, Device to_device, void const* from, Device from_device, std::size_t bytes) {
  if (bytes == 0) return;
  Device const device = to_device.is_cpu() ? from_device : to_device;
  cudaStream_t const s = stream(device);
  Current const current(device);
  auto const say = [&](cudaError_t e) {
    if (e != cudaSuccess) failed("copy of " + std::to_string(bytes) + " bytes", e);
  };
  if (!to_device.is_cpu() && !from_device.is_cpu()) {
    // What is asked of the other device before and after waits for the copy, which its stream knows nothing of.
    if (from_device != to_device) synchronize(from_device);
    say(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s));
    if (from_device != to_device) say(cudaStreamSynchronize(s));
    return;
  }
  static constexpr std::size_t few = std::size_t{64} << 10;
  if (to_device.is_cpu() ? false : bytes <= few && !is_pinned(from))  // the runtime keeps few bytes itself
    return say(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, s));
  std::byte* const between = Pinned::block();
  for (std::size_t i = 0; i < bytes; i += Pinned::bytes) {
    std::size_t const n = bytes - i < Pinned::bytes ? bytes - i : Pinned::bytes;
    if (to_device.is_cpu()) {
      say(cudaMemcpyAsync(between, static_cast<std::byte const*>(from) + i, n, cudaMemcpyDeviceToHost, s));
      say(cudaStreamSynchronize(s));
      require_no_fault(from_device);
      std::memcpy(static_cast<std::byte*>(to) + i, between, n);
    } else {
      std::memcpy(between, static_cast<std::byte const*>(from) + i, n);
      say(cudaMemcpyAsync(static_cast<std::byte*>(to) + i, between, n, cudaMemcpyHostToDevice, s));
      say(cudaStreamSynchronize(s));
    }
  }
}

inline void zero(void* p, std::size_t bytes, Device device) {
  if (bytes == 0) return;
  Current const current(device);
  check("zeros", cudaMemsetAsync(p, 0, bytes, stream(device)));
}

inline constexpr DeviceMemory memory{take, give, copy, zero};
/// Says at the start of the process that there is a backend.
inline bool const registered = (dfdx::detail::device_memory = &memory, true);

}  // namespace dfdx::inline DFDX_TARGET::cuda_runtime
