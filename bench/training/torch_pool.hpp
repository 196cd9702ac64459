// SPDX-License-Identifier: BSL-1.0
// The memory of libtorch's tensors in all benchmarks: kept for the next of the same size, so that none of its time is
// spent on asking the system for pages.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <vector>

#include <torch/torch.h>

namespace torch_trainer {

/// Pool - keeps blocks that were given back for the next tensor of that size, and counts. Not for several threads.
class Pool final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR >= 2
  c10::DataPtr allocate(std::size_t bytes) override { return take(bytes); }
  void copy_data(void* to, void const* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
#else
  c10::DataPtr allocate(std::size_t bytes) const override { return take(bytes); }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
  std::size_t peak() const { return peak_; }
  void forget_peak() { peak_ = live_; }

 private:
  static constexpr std::size_t front = 64;
  static void give_back(void* block);
  c10::DataPtr take(std::size_t bytes) const {
    auto& kept = free_[bytes];
    char* block = nullptr;  // its size stands in front
    if (kept.empty()) {
      block =
          static_cast<char*>(std::aligned_alloc(front, front + (bytes + front - 1) / front * front)) + front;
      *reinterpret_cast<std::size_t*>(block - front) = bytes;
    } else {
      block = kept.back();
      kept.pop_back();
    }
    peak_ = std::max(peak_, live_ += bytes);
    return {block, block, &give_back, c10::Device(c10::DeviceType::CPU)};
  }
  mutable std::unordered_map<std::size_t, std::vector<char*>> free_;
  mutable std::size_t live_ = 0, peak_ = 0;
};

inline Pool& pool() {
  static auto* const one = new Pool;  // tensors may outlive everything else
  return *one;
}
inline void Pool::give_back(void* block) {
  auto* const data = static_cast<char*>(block);
  std::size_t const bytes = *reinterpret_cast<std::size_t*>(data - front);
  pool().free_[bytes].push_back(data);
  pool().live_ -= bytes;
}

/// use_pool - one thread, and tensors from the pool.
inline void use_pool() {
  at::set_num_threads(1);
  c10::SetAllocator(c10::DeviceType::CPU, &pool(), 100);
}

}  // namespace torch_trainer
