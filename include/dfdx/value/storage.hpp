// SPDX-License-Identifier: BSL-1.0
// Counted memory. Memory of our own is one allocation that holds the count and the bytes, aligned for every vector
// type; memory of others is adopted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>

#include <dfdx/core/error.hpp>

namespace dfdx {

/// Storage - bytes on a device, shared by the arrays that view them.
class Storage {
 public:
  static constexpr std::size_t alignment = 64;

  /// Cost: one allocation. The bytes are not initialised.
  /// Errors  "storage: no memory on a CUDA device in this build": that memory comes with the CUDA backend
  static Storage* allocate(std::size_t bytes, Device device = {}) {
    if (!device.is_cpu()) raise("storage: no memory on a CUDA device in this build");
    void* raw = ::operator new(alignment + bytes, std::align_val_t{alignment});
    return new (raw) Storage(static_cast<std::byte*>(raw) + alignment, bytes, device, nullptr);
  }
  /// adopt - memory that somebody else made; `give_back(data)`, unless null, is called when nobody views it any more.
  static Storage* adopt(void* data, std::size_t bytes, Device device, void (*give_back)(void*)) {
    void* raw = ::operator new(sizeof(Storage), std::align_val_t{alignment});
    return new (raw) Storage(static_cast<std::byte*>(data), bytes, device, give_back);
  }

  void retain() { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  bool shared() const { return count_.load(std::memory_order_acquire) > 1; }
  std::byte* data() { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  Storage(std::byte* data, std::size_t bytes, Device device, void (*give_back)(void*))
      : data_(data), bytes_(bytes), give_back_(give_back), device_(device) {}
  ~Storage() = default;
  [[gnu::noinline]] void destroy() {
    if (give_back_ != nullptr) give_back_(data_);
    this->~Storage();
    ::operator delete(static_cast<void*>(this), std::align_val_t{alignment});
  }

  std::atomic<int> count_{1};
  std::byte* data_;
  std::size_t bytes_;
  void (*give_back_)(void*);
  Device device_;
};
static_assert(sizeof(Storage) <= Storage::alignment);

}  // namespace dfdx
