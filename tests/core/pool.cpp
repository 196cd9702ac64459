// SPDX-License-Identifier: BSL-1.0
// Blocks: alignment, reuse, and what a thread keeps at most.
#include <dfdx/core/pool.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace tests::core_pool {

namespace {

using namespace dfdx;

bool is_aligned(void const* p, std::size_t to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

TEST_CASE("each class holds its sizes and none of the next") {
  using detail::Pool;
  for (std::size_t bytes = 1; bytes <= Pool::largest; bytes += 1 + bytes / 37) {
    std::size_t const k = Pool::class_of(bytes);
    REQUIRE(k < Pool::first_packed);
    CHECK(Pool::size_of_class(k) >= bytes);
    if (k > 1) CHECK(Pool::size_of_class(k - 1) < bytes);
  }
  CHECK(Pool::size_of_class(Pool::class_of(Pool::largest)) == Pool::largest);
  for (std::size_t bytes = 1; bytes <= Pool::largest_packed; ++bytes) {
    std::size_t const k = Pool::packed_class_of(bytes);
    REQUIRE(k >= Pool::first_packed);
    REQUIRE(k < Pool::classes);
    CHECK(Pool::size_of_class(k) >= bytes);
    CHECK(Pool::size_of_class(k) < bytes + Pool::packed_grain);
  }
}

TEST_CASE("blocks are aligned, apart, and come back") {
  for (std::size_t bytes : {1, 16, 17, 63, 64, 65, 256, 257, 1000, 5000, 1 << 20, (1 << 20) + 1}) {
    void* const a = take_block(bytes);
    void* const b = take_packed(bytes);
    CHECK(is_aligned(a, 64));
    CHECK(is_aligned(b, 16));
    std::memset(a, 1, bytes);
    std::memset(b, 2, bytes);
    CHECK(static_cast<unsigned char*>(a)[bytes - 1] == 1);
    give_block(a, bytes);
    give_packed(b, bytes);
#if DFDX_KEEPS_BLOCKS
    if (bytes > detail::Pool::largest_packed) continue;
    void* const c = take_block(bytes);
    void* const d = take_packed(bytes);
    CHECK(c == a);
    CHECK(d == b);
    give_block(c, bytes);
    give_packed(d, bytes);
#endif
  }
}

#if DFDX_KEEPS_BLOCKS
TEST_CASE("a thread that frees what others made keeps no more than its share, all sizes together") {
  constexpr std::size_t small = std::size_t{1} << 19, large = std::size_t{1} << 20, packed = 256;
  std::size_t most = 0, given = 0, at_end = 1;
  std::thread([&] {
    // Not touched, so that the test needs no such memory; what is kept has a pointer written to it.
    while (given < 2 * detail::Pool::most_kept) {
      void *const a = ::operator new(small, std::align_val_t{64}),
                  *const b = ::operator new(large, std::align_val_t{64}), *const c = ::operator new(packed);
      give_block(a, small);
      give_block(b, large);
      give_packed(c, packed);
      given += small + large + packed;
      most = detail::pool.kept_bytes > most ? detail::pool.kept_bytes : most;
    }
    detail::pool.clear();
    at_end = detail::pool.kept_bytes;
  }).join();
  CHECK(most <= detail::Pool::most_kept);
  CHECK(most > detail::Pool::most_kept / 2);
  CHECK(at_end == 0);
}
#endif

}  // namespace

}  // namespace tests::core_pool
