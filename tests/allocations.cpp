// SPDX-License-Identifier: BSL-1.0
// Counting allocators. They stand in a library, so that they come with allocations() and not otherwise.
#include "allocations.hpp"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> asked{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  asked.fetch_add(1, std::memory_order_relaxed);
  if (void* const p = std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment)) return p;
  throw std::bad_alloc();
}

}  // namespace

std::int64_t tests::allocations() { return asked.load(std::memory_order_relaxed); }

void* operator new(std::size_t n) { return counted(n, alignof(std::max_align_t)); }
void* operator new[](std::size_t n) { return counted(n, alignof(std::max_align_t)); }
void* operator new(std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
