// SPDX-License-Identifier: BSL-1.0
// Memory that a kernel needs while it runs.
#pragma once

#include <cstddef>
#include <vector>

#include <dfdx/core/config.hpp>
#include <dfdx/core/pool.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// Scratch - memory from the pool.
template <class E>
class Scratch {
 public:
  explicit Scratch(std::size_t n)
      : bytes_(n * sizeof(E)), data_(bytes_ == 0 ? nullptr : static_cast<E*>(take_block(bytes_))) {}
  Scratch(Scratch const&) = delete;
  Scratch& operator=(Scratch const&) = delete;
  ~Scratch() {
    if (data_ != nullptr) give_block(data_, bytes_);
  }
  E* get() const { return data_; }

 private:
  std::size_t bytes_;
  E* data_;
};

/// ScratchVector - a vector with memory from the pool.
template <class E>
struct PoolAllocator {
  using value_type = E;
  PoolAllocator() = default;
  template <class Other>
  PoolAllocator(PoolAllocator<Other> const&) {}
  E* allocate(std::size_t n) { return static_cast<E*>(take_block(n * sizeof(E))); }
  void deallocate(E* p, std::size_t n) { give_block(p, n * sizeof(E)); }
  friend bool operator==(PoolAllocator, PoolAllocator) { return true; }
};
template <class E>
using ScratchVector = std::vector<E, PoolAllocator<E>>;

}  // namespace dfdx::kernels::inline DFDX_TARGET
