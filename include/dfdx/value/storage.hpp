// SPDX-License-Identifier: BSL-1.0
// Counted memory. One allocation holds the count and the bytes; the bytes are aligned for every vector type.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include <dfdx/core/error.hpp>

namespace dfdx {

/// Device - where memory lies. Index 0 of the CPU is the only device of a build without CUDA.
struct Device {
  enum class Kind : unsigned char { cpu, cuda } kind = Kind::cpu;
  short index = 0;
  constexpr bool operator==(Device const&) const = default;
};

/// Storage - bytes on a device, shared by the arrays that view them.
class Storage {
 public:
  static constexpr std::size_t alignment = 64;

  /// Cost: one allocation. The bytes are not initialised.
  /// Errors  "storage: no memory on a CUDA device in this build": that memory comes with the CUDA backend
  static Storage* allocate(std::size_t bytes, Device device = {}) {
    if (device.kind != Device::Kind::cpu) raise("storage: no memory on a CUDA device in this build");
    void* raw = ::operator new(alignment + bytes, std::align_val_t{alignment});
    return new (raw) Storage(bytes, device);
  }

  void retain() { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      this->~Storage();
      ::operator delete(static_cast<void*>(this), std::align_val_t{alignment});
    }
  }
  bool shared() const { return count_.load(std::memory_order_acquire) > 1; }
  std::byte* data() { return reinterpret_cast<std::byte*>(this) + alignment; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  Storage(std::size_t bytes, Device device) : bytes_(bytes), device_(device) {}
  ~Storage() = default;

  std::atomic<int> count_{1};
  std::size_t bytes_;
  Device device_;
};
static_assert(sizeof(Storage) <= Storage::alignment);

}  // namespace dfdx
