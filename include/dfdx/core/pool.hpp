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

#if defined(__linux__) && defined(__has_include)
#if __has_include(<sys/mman.h>)
#include <sys/mman.h>
#endif
#if defined(MADV_HUGEPAGE)
#define DFDX_KNOWS_HUGE_PAGES 1
#endif
#endif

#include <dfdx/core/config.hpp>

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

// Blocks of several huge pages are made of them where the system does so when asked (Linux): walking 40 MB is 20 of
// them, or 10,000 pages that each cost a fault when first touched and a look-up in tables that hold some 3,000.
inline constexpr std::size_t huge_page = std::size_t{1} << 21;
// Blocks of so many bytes begin where a page does, so that large operands lie alike within theirs (graph/layout.hpp).
inline constexpr std::size_t page = 4096, paged_block = 8 * page;
inline std::align_val_t alignment_of_block(std::size_t bytes) {
#if defined(DFDX_KNOWS_HUGE_PAGES)
  if (bytes >= 2 * huge_page) return std::align_val_t{huge_page};
#endif
  return std::align_val_t{bytes >= paged_block ? page : 64};
}
[[gnu::noinline]] inline void* allocate_block(std::size_t bytes) {
  void* const p = ::operator new(bytes, alignment_of_block(bytes));
#if defined(DFDX_KNOWS_HUGE_PAGES)
  if (bytes >= 2 * huge_page) static_cast<void>(::madvise(p, bytes / huge_page * huge_page, MADV_HUGEPAGE));
#endif
  return p;
}

// What a thread keeps. It is constant-initialised and has no destructor, so that it may be used without a check, and
// still after the destructor of its `PoolCleaner` has run. Sizes are multiples of 64 bytes up to 1024, then four steps
// to each doubling, up to 128 megabytes; and multiples of 16 up to 256 for what needs no more alignment than that:
// without it lies twice as close.
struct Pool {
  static constexpr std::size_t grain = 64, small = 16, packed_grain = 16;
  static constexpr std::size_t first_packed = small + 1 + 4 * 17, classes = first_packed + 17;
  static constexpr std::size_t largest = std::size_t{1} << 27, largest_packed = 16 * packed_grain;
  /// What a thread keeps at most, all sizes together.
  static constexpr std::size_t most_kept = std::size_t{1} << 28;
  static constexpr std::size_t class_of(std::size_t bytes) {
    if (bytes <= small * grain) return (bytes + grain - 1) / grain;
    auto const above = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 11;  // doublings beyond 1024
    return small + 1 + 4 * above + ((bytes - 1) >> (above + 8)) - 4;
  }
  static constexpr std::size_t packed_class_of(std::size_t bytes) {
    return first_packed + (bytes + packed_grain - 1) / packed_grain;
  }
  static constexpr std::size_t size_of_class(std::size_t k) {
    if (k >= first_packed) return (k - first_packed) * packed_grain;
    if (k <= small) return k * grain;
    std::size_t const step = k - small - 1;
    return (5 + step % 4) << (step / 4 + 8);
  }

  struct Free {
    Free* next;
  };
  Free* free[classes] = {};
  std::size_t kept_bytes = 0;
  bool ended = false;

  static void* allocate(std::size_t k) {
    std::size_t const bytes = size_of_class(k);
    return k >= first_packed ? ::operator new(bytes) : allocate_block(bytes);
  }
  static void deallocate(std::size_t k, void* p) {
    if (k >= first_packed) ::operator delete(p);
    else ::operator delete(p, alignment_of_block(size_of_class(k)));
  }
  void clear() {
    for (std::size_t k = 0; k < classes; ++k)
      while (Free* const f = free[k]) {
        free[k] = f->next;
        deallocate(k, f);
      }
    kept_bytes = 0;
  }

  void* take(std::size_t k);
  void give(std::size_t k, void* p);
};
inline constinit DFDX_THREAD_LOCAL Pool pool{};

struct PoolCleaner {
  bool used = false;
  ~PoolCleaner() {
    pool.ended = true;
    pool.clear();
  }
};
[[gnu::noinline]] inline void* take_fresh(std::size_t k) {
  static DFDX_THREAD_LOCAL PoolCleaner cleaner;  // from now on the thread cleans up when it ends
  cleaner.used = true;
  return Pool::allocate(k);
}
// A thread that frees what others made would hoard it, and so would one whose work has changed: what is kept then is
// not what is asked for, so all of it goes.
[[gnu::noinline]] inline void give_to_full(std::size_t k, void* p) {
  Pool::deallocate(k, p);
  pool.clear();
}

inline void* Pool::take(std::size_t k) {
  Free* const f = free[k];
  if (f == nullptr) return take_fresh(k);
  free[k] = f->next;
  kept_bytes -= size_of_class(k);
  return f;
}
inline void Pool::give(std::size_t k, void* p) {
  std::size_t const bytes = size_of_class(k);
  if (ended || kept_bytes + bytes > most_kept) return give_to_full(k, p);
  free[k] = ::new (p) Free{free[k]};
  kept_bytes += bytes;
}

}  // namespace detail

/// take_block - memory of at least `bytes`, aligned to 64 bytes; give_block(p, bytes) gives it back, on any thread.
inline void* take_block(std::size_t bytes) {
  if (!DFDX_KEEPS_BLOCKS || bytes > detail::Pool::largest) return detail::allocate_block(bytes);
  return detail::pool.take(detail::Pool::class_of(bytes));
}
inline void give_block(void* p, std::size_t bytes) {
  if (!DFDX_KEEPS_BLOCKS || bytes > detail::Pool::largest)
    return ::operator delete(p, detail::alignment_of_block(bytes));
  detail::pool.give(detail::Pool::class_of(bytes), p);
}

/// take_packed, give_packed - the same for what is aligned to 16 bytes.
inline void* take_packed(std::size_t bytes) {
  if (!DFDX_KEEPS_BLOCKS || bytes > detail::Pool::largest_packed) return ::operator new(bytes);
  return detail::pool.take(detail::Pool::packed_class_of(bytes));
}
inline void give_packed(void* p, std::size_t bytes) {
  if (!DFDX_KEEPS_BLOCKS || bytes > detail::Pool::largest_packed) return ::operator delete(p);
  detail::pool.give(detail::Pool::packed_class_of(bytes), p);
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
  int value() const { return n_.load(std::memory_order_acquire); }

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
