// SPDX-License-Identifier: BSL-1.0
// Small memory for what lives briefly and comes by the million: numbers, nodes of a tape. Freed blocks are kept, by
// size and per thread, so that in the steady state taking one is a few instructions and no call of the allocator.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <new>

#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define DFDX_KNOWS_SINGLE_THREADED 1
#endif
#endif

// Under AddressSanitizer every block is allocated and freed, so that it sees each use of freed memory.
#if defined(__SANITIZE_ADDRESS__)
#define DFDX_KEEPS_BLOCKS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DFDX_KEEPS_BLOCKS 0
#endif
#endif
#ifndef DFDX_KEEPS_BLOCKS
#define DFDX_KEEPS_BLOCKS 1
#endif

namespace dfdx {

namespace detail {

// What a thread keeps. It is constant-initialised and has no destructor, so that it may be used without a check, and
// still after the destructor of its `PoolCleaner` has run. Sizes are multiples of 64 bytes up to 1024, then four steps
// to each doubling, up to a megabyte.
struct Pool {
  static constexpr std::size_t grain = 64, small = 16, classes = small + 1 + 4 * 10;
  static constexpr std::size_t largest = std::size_t{1} << 20;
  static constexpr std::size_t class_of(std::size_t bytes) {
    if (bytes <= small * grain) return (bytes + grain - 1) / grain;
    auto const above = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 11;  // doublings beyond 1024
    return small + 1 + 4 * above + ((bytes - 1) >> (above + 8)) - 4;
  }
  static constexpr std::size_t size_of_class(std::size_t k) {
    if (k <= small) return k * grain;
    std::size_t const step = k - small - 1;
    return (5 + step % 4) << (step / 4 + 8);
  }
  static constexpr std::size_t most_kept(std::size_t k) {
    return (std::size_t{1} << 28) / size_of_class(k == 0 ? 1 : k);
  }

  struct Free {
    Free* next;
  };
  Free* free[classes] = {};
  std::size_t kept[classes] = {};
  bool ended = false;
};
inline constinit thread_local Pool pool{};

struct PoolCleaner {
  bool used = false;
  ~PoolCleaner() {
    pool.ended = true;
    for (std::size_t k = 0; k < Pool::classes; ++k)
      while (Pool::Free* const f = pool.free[k]) {
        pool.free[k] = f->next;
        ::operator delete(static_cast<void*>(f), std::align_val_t{Pool::grain});
      }
  }
};
[[gnu::noinline]] inline void* take_fresh(std::size_t bytes) {
  static thread_local PoolCleaner cleaner;  // from now on the thread cleans up when it ends
  cleaner.used = true;
  return ::operator new(bytes, std::align_val_t{Pool::grain});
}

}  // namespace detail

/// take_block - memory of at least `bytes`, aligned to 64 bytes; give_block(p, bytes) gives it back, on any thread.
inline void* take_block(std::size_t bytes) {
  if (!DFDX_KEEPS_BLOCKS || bytes > detail::Pool::largest)
    return ::operator new(bytes, std::align_val_t{detail::Pool::grain});
  std::size_t const k = detail::Pool::class_of(bytes);
  detail::Pool& pool = detail::pool;
  detail::Pool::Free* const f = pool.free[k];
  if (f == nullptr) return detail::take_fresh(detail::Pool::size_of_class(k));
  pool.free[k] = f->next;
  --pool.kept[k];
  return f;
}
inline void give_block(void* p, std::size_t bytes) {
  if (!DFDX_KEEPS_BLOCKS || bytes > detail::Pool::largest)
    return ::operator delete(p, std::align_val_t{detail::Pool::grain});
  std::size_t const k = detail::Pool::class_of(bytes);
  detail::Pool& pool = detail::pool;
  if (pool.ended || pool.kept[k] >= detail::Pool::most_kept(k))
    return ::operator delete(p, std::align_val_t{detail::Pool::grain});
  pool.free[k] = ::new (p) detail::Pool::Free{pool.free[k]};
  ++pool.kept[k];
}

/// Count - how many hold a thing. Plain arithmetic as long as the process has one thread.
class Count {
 public:
  void up() {
    if (alone()) n_.store(n_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else n_.fetch_add(1, std::memory_order_relaxed);
  }
  /// Whether that was the last.
  bool down() {
    if (!alone()) return n_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    int const n = n_.load(std::memory_order_relaxed) - 1;
    n_.store(n, std::memory_order_relaxed);
    return n == 0;
  }
  bool is_one() const { return n_.load(std::memory_order_acquire) == 1; }

 private:
  static bool alone() {
#if defined(DFDX_KNOWS_SINGLE_THREADED)
    return __libc_single_threaded != 0;
#else
    return false;
#endif
  }
  std::atomic<int> n_{1};
};

}  // namespace dfdx
