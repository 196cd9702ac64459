// SPDX-License-Identifier: BSL-1.0
// Counted memory. Memory of our own is one allocation that holds the count and the bytes, aligned for every vector
// type unless they are few; memory of others is adopted, that of devices is their backend's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <dfdx/core/error.hpp>
#include <dfdx/core/pool.hpp>

namespace dfdx {

namespace detail {
struct Changes;  // changes in place that the tape has seen; defined in tape_saved.hpp, after Array
void discard(Changes*);
}  // namespace detail

/// Storage - bytes on a device, shared by the arrays that view them.
class Storage {
 public:
  static constexpr std::size_t alignment = 64;
  /// A number or two lie in the same 64 bytes as what describes them.
  static constexpr std::size_t few_bytes = 16;

  /// Cost: one allocation. The bytes are not initialised.
  /// Errors  "storage: no memory on a CUDA device in this build": that memory comes with the CUDA backend
  static Storage* allocate(std::size_t bytes, Device device = {}) {
    if (!device.is_cpu()) return allocate_elsewhere(bytes, device);
    if (bytes <= few_bytes) return allocate_few(bytes);
    void* raw = take_block(alignment + bytes);
    return new (raw) Storage(static_cast<std::byte*>(raw) + alignment, bytes, device, nullptr, Kind::block);
  }
  [[gnu::noinline]] static Storage* allocate_elsewhere(std::size_t bytes, Device device) {
    if (detail::device_memory == nullptr) raise("storage: no memory on a CUDA device in this build");
    void* const data = detail::device_memory->take(bytes, device);
    return new (take_packed(alignment))
        Storage(static_cast<std::byte*>(data), bytes, device, nullptr, Kind::elsewhere);
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
    bool const has_changes = changes_ != nullptr && !is_adopted();  // then all who hold it are of one thread
    if (count_.down()) destroy();
    else if (has_changes && handles() == 0) forget_changes();
  }
  /// The same for nodes of the tape, which keep numbers for their rules.
  void retain_saved() {
    saved_.up();
    retain();
  }
  void release_saved() {
    saved_.down();
    release();
  }
  /// handles - how many hold it who are no such nodes: arrays.
  int handles() const { return count_.value() - (saved_.value() - 1); }
  bool shared() const { return !count_.is_one(); }
  bool is_adopted() const { return kind_ == Kind::adopted; }
  std::byte* data() { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  /// version - how often the bytes were changed in place since they were made: a tape compares it with what it saw.
  std::uint32_t version() const { return version_; }
  void changed() { ++version_; }
  /// Of a copy that stands for bytes of that version.
  void version(std::uint32_t v) { version_ = v; }
  /// changes - what the tape knows of changes in place, null for most: taken over, and dropped with the last array,
  /// though nodes that it leads to may hold the bytes.
  detail::Changes* changes() const { return is_adopted() ? nullptr : changes_; }
  void changes(detail::Changes* c) { changes_ = c; }
  void forget_changes() { detail::discard(std::exchange(changes_, nullptr)); }
  /// of_leaf - whether the bytes are those of a leaf of the tape, so that it must not see them changed in place.
  bool of_leaf() const { return of_leaf_; }
  void of_leaf(bool is) { of_leaf_ = is; }

 private:
  enum class Kind : unsigned char { block, few, adopted, elsewhere };

  Storage(std::byte* data, std::size_t bytes, Device device, void (*give_back)(void*), Kind kind)
      : data_(data), bytes_(bytes), changes_(nullptr), device_(device), kind_(kind) {
    if (kind == Kind::adopted) give_back_ = give_back;
  }
  ~Storage() = default;
  void destroy() {
    if (is_adopted() && give_back_ != nullptr) give_back_(data_);
    if (changes() != nullptr) forget_changes();
    if (kind_ == Kind::elsewhere) detail::device_memory->give(data_, device_);
    if (kind_ != Kind::block) return give_packed(this, alignment);
    give_block(this, alignment + bytes_);
  }

  Count count_;
  std::uint32_t version_ = 0;
  std::byte* data_;
  std::size_t bytes_;
  union {
    detail::Changes* changes_;
    void (*give_back_)(void*);  // of adopted memory
  };
  Count saved_;  // one more than there are
  Device device_;
  Kind kind_;
  bool of_leaf_ = false;
};
static_assert(sizeof(Storage) <= Storage::alignment - Storage::few_bytes);

}  // namespace dfdx
