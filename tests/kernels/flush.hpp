// SPDX-License-Identifier: BSL-1.0
// Memory whose end is the end of what may be touched.
#pragma once

#include <catch2/catch_test_macros.hpp>

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

/// Flush - `count` numbers that end where memory ends: what is read or written beyond them ends the program.
template <class T>
class Flush {
  static constexpr std::size_t page = 4096;
  std::int64_t count_;
  std::size_t bytes_;
  std::byte* pages_;

 public:
  T* data;

  explicit Flush(std::int64_t count)
      : count_(count), bytes_((static_cast<std::size_t>(count) * sizeof(T) + page - 1) / page * page + page) {
    void* const taken = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(taken != MAP_FAILED);
    pages_ = static_cast<std::byte*>(taken);
    REQUIRE(mprotect(pages_ + bytes_ - page, page, PROT_NONE) == 0);
    data = reinterpret_cast<T*>(pages_ + bytes_ - page) - count;
  }
  Flush(Flush const&) = delete;
  Flush& operator=(Flush const&) = delete;
  ~Flush() { munmap(pages_, bytes_); }

  T& operator[](std::int64_t i) const { return data[i]; }
  std::int64_t count() const { return count_; }
};
