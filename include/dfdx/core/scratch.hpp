// SPDX-License-Identifier: BSL-1.0
// Memory that a kernel needs while it runs.
#pragma once

#include <cstddef>

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

}  // namespace dfdx::kernels::inline DFDX_TARGET
