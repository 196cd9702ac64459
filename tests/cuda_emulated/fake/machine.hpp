// SPDX-License-Identifier: BSL-1.0
// The emulated device itself: its memory, which kernels and copies alone can touch, the threads of a block, what tests
// set and what they count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include <sys/mman.h>

#include "fibers.hpp"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorNoDevice = 100,
  cudaErrorInvalidDevice = 101,
  cudaErrorIllegalAddress = 700,
  cudaErrorStreamCaptureUnsupported = 900,
};

namespace cuda_fake {

struct Graph {
  std::vector<std::function<void()>> work;
};
struct Stream {
  int device = 0;
  Graph* capturing = nullptr;
  /// A copy from pinned memory that was asked for last.
  std::function<void()> late_copy;
};

/// Machine - one process's device: what tests set, and what they count.
class Machine {
 public:
  Fibers fibers;
  /// The first block that runs now, and how many the grid has.
  Position block, blocks;

  int devices = 1, device = 0;
  std::size_t total_bytes = std::size_t{256} << 20, used_bytes = 0;
  /// The least total with which something that was refused would have been given.
  std::size_t lacking_bytes = std::size_t(-1);
  /// What the next launch, or every call from now on, reports.
  cudaError_t next_launch = cudaSuccess, lost = cudaSuccess;
  cudaError_t last = cudaSuccess;
  /// Whether code for sm_90a is there.
  bool has_warpgroups = true;
  int launches = 0, replays = 0, captures = 0, streams = 0, graphs = 0, waits = 0;
  /// Streams that are captured now.
  int capturing = 0;
  /// Host memory that devices read by themselves.
  std::set<void const*> pinned;
  /// Launches of clusters of blocks.
  int cluster_launches = 0;

  cudaError_t say(cudaError_t e) {
    if (lost != cudaSuccess) e = lost;
    if (e != cudaSuccess) last = e;
    return e;
  }

  cudaError_t take(void** p, std::size_t bytes) {
    std::size_t const size = (bytes + 255) / 256 * 256;
    if (lost != cudaSuccess) return say(cudaErrorMemoryAllocation);
    if (used_bytes + size > total_bytes) {
      lacking_bytes = std::min(lacking_bytes, used_bytes + size);
      return say(cudaErrorMemoryAllocation);
    }
    std::size_t at = 0;
    for (auto const& [begin, n] : live_) {
      if (begin - at >= size) break;
      at = begin + n;
    }
    if (at + size > region_bytes) return say(cudaErrorMemoryAllocation);
    live_[at] = size;
    used_bytes += size;
    *p = region() + at;
    Open const open(*this);
    std::memset(*p, 0xff, size);  // so that what nobody has written is found
    return say(cudaSuccess);
  }
  cudaError_t give(void* p) {
    auto const i = live_.find(static_cast<std::size_t>(static_cast<std::byte*>(p) - region()));
    if (i == live_.end()) return say(cudaErrorInvalidValue);
    used_bytes -= i->second;
    live_.erase(i);
    return say(cudaSuccess);
  }
  std::size_t live() const { return live_.size(); }

  /// What blocks share besides what they name.
  static constexpr std::size_t most_dynamic = std::size_t{227} << 10;
  std::size_t dynamic_limit = most_dynamic;
  std::byte* dynamic_memory() {
    if (dynamic_ == nullptr) dynamic_ = std::make_unique<std::byte[]>(most_dynamic * Fibers::most_blocks);
    return dynamic_.get() + fibers.block() * most_dynamic;
  }
  void forget_dynamic_memory(std::size_t bytes, unsigned of_blocks) {
    fibers.current = 0;
    std::byte* const first = dynamic_memory();
    for (unsigned b = 0; bytes != 0 && b < of_blocks; ++b) std::memset(first + b * most_dynamic, 0xff, bytes);
  }

  /// Device memory can be touched while one of these lives.
  class Open {
   public:
    explicit Open(Machine& m) : machine_(m) {
      if (machine_.open_++ == 0) mprotect(machine_.region(), region_bytes, PROT_READ | PROT_WRITE);
    }
    Open(Open const&) = delete;
    ~Open() {
      if (--machine_.open_ == 0) mprotect(machine_.region(), region_bytes, PROT_NONE);
    }

   private:
    Machine& machine_;
  };

 private:
  static constexpr std::size_t region_bytes = std::size_t{256} << 20;
  std::byte* region() {
    if (region_ == nullptr) {
      region_ = static_cast<std::byte*>(
          mmap(nullptr, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
      madvise(region_, region_bytes, MADV_HUGEPAGE);  // each open and close goes through all its pages
    }
    return region_;
  }
  std::byte* region_ = nullptr;
  std::unique_ptr<std::byte[]> dynamic_;
  std::map<std::size_t, std::size_t> live_;
  int open_ = 0;
};
inline Machine& machine() {
  static Machine* const m = new Machine;  // outlives whoever gives memory back at the end
  return *m;
}

inline Fibers& fibers() { return machine().fibers; }

}  // namespace cuda_fake
