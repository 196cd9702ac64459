// SPDX-License-Identifier: BSL-1.0
// Counted memory. Memory of our own is one allocation that holds the count and the bytes, aligned for every vector
// type unless they are few; memory of others is adopted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include <dfdx/core/error.hpp>
#include <dfdx/core/pool.hpp>

namespace dfdx {

/// Storage - bytes on a device, shared by the arrays that view them.
class Storage {
 public:
  static constexpr std::size_t alignment = 64;
  /// A number or two lie in the same 64 bytes as what describes them.
  static constexpr std::size_t few_bytes = 16;

  /// Cost: one allocation. The bytes are not initialised.
  /// Errors  "storage: no memory on a CUDA device in this build": that memory comes with the CUDA backend
  static Storage* allocate(std::size_t bytes, Device device = {}) {
    if (!device.is_cpu()) raise("storage: no memory on a CUDA device in this build");
    if (bytes <= few_bytes) return allocate_few(bytes);
    void* raw = take_block(alignment + bytes);
    return new (raw) Storage(static_cast<std::byte*>(raw) + alignment, bytes, device, nullptr, Kind::block);
  }
  static Storage* allocate_few(std::size_t bytes) {
    void* raw = take_packed(alignment);
    return new (raw)
        Storage(static_cast<std::byte*>(raw) + (alignment - few_bytes), bytes, Device{}, nullptr, Kind::few);
  }
  /// adopt - memory that somebody else made; `give_back(data)`, unless null, is called when nobody views it any more.
  static Storage* adopt(void* data, std::size_t bytes, Device device, void (*give_back)(void*)) {
    return new (take_packed(alignment))
        Storage(static_cast<std::byte*>(data), bytes, device, give_back, Kind::adopted);
  }

  void retain() { count_.up(); }
  // Not inline: every destructor of an array has a call.
  [[gnu::noinline]] void release() {
    if (count_.down()) destroy();
  }
  bool shared() const { return !count_.is_one(); }
  bool is_adopted() const { return kind_ == Kind::adopted; }
  std::byte* data() { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// version - how often the bytes were changed in place since they were made: a tape compares it with what it saw.
  std::uint32_t version() const { return version_; }
  void changed() { ++version_; }
  /// of_leaf - whether the bytes are those of a leaf of the tape, so that it must not see them changed in place.
  bool of_leaf() const { return of_leaf_; }
  void of_leaf(bool is) { of_leaf_ = is; }

 private:
  enum class Kind : unsigned char { block, few, adopted };

  Storage(std::byte* data, std::size_t bytes, Device device, void (*give_back)(void*), Kind kind)
      : data_(data), bytes_(bytes), give_back_(give_back), device_(device), kind_(kind) {}
  ~Storage() = default;
  void destroy() {
    if (give_back_ != nullptr) give_back_(data_);
    if (kind_ != Kind::block) return give_packed(this, alignment);
    give_block(this, alignment + bytes_);
  }

  Count count_;
  std::uint32_t version_ = 0;
  std::byte* data_;
  std::size_t bytes_;
  void (*give_back_)(void*);
  Device device_;
  Kind kind_;
  bool of_leaf_ = false;
};
static_assert(sizeof(Storage) <= Storage::alignment - Storage::few_bytes);

}  // namespace dfdx
