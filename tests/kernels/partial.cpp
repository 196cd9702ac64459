// SPDX-License-Identifier: BSL-1.0
// Loads and stores of part of a lane: as many elements as asked for, whether the compiler knows how many or not, at the
// end of memory that may be touched; and what stands beside them stays as it was.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include "flush.hpp"

namespace tests::kernels_partial {

namespace {

using namespace dfdx;

// A number that the compiler does not know.
int unknown(int n) {
  int volatile const v = n;
  return v;
}

// Memory of n elements behind which there is none, numbered from `first`, taken by `store` from a lane and read back by
// `load` to another lane.
template <class T>
void moves(int n, auto const& load, auto const& store) {
  constexpr int size = kernels::lane_size<T>;
  CAPTURE(n, size);
  Flush<T> const from(n), to(n + 1);
  for (int i = 0; i < n; ++i) from[i] = static_cast<T>(i + 1);
  T const before = static_cast<T>(77);
  to[0] = before;

  alignas(64) T lane[static_cast<std::size_t>(size)];
  kernels::lane<T> const loaded = load(from.data);
  loaded.store_aligned(lane);
  for (int i = 0; i < size; ++i) REQUIRE(lane[i] == (i < n ? static_cast<T>(i + 1) : T(0)));

  for (int i = 0; i < size; ++i) lane[i] = static_cast<T>(100 + i);
  auto const full = kernels::lane<T>::load_aligned(lane);
  store(to.data + 1, full);
  REQUIRE(to[0] == before);
  for (int i = 0; i < n; ++i) REQUIRE(to[i + 1] == static_cast<T>(100 + i));

  // Behind them in the same memory nothing changes either.
  alignas(64) T row[static_cast<std::size_t>(2 * size)];
  for (T& x : row) x = before;
  store(row, full);
  for (int i = 0; i < 2 * size; ++i) REQUIRE(row[i] == (i < n ? static_cast<T>(100 + i) : before));
}

template <class T, int N>
void known() {
  moves<T>(
      N, [](T const* p) { return kernels::load_n(p, N); },
      [](T* p, kernels::lane<T> const& v) { kernels::store_n(p, v, N); });
  moves<T>(
      N, [](T const* p) { return kernels::load_n(p, unknown(N)); },
      [](T* p, kernels::lane<T> const& v) { kernels::store_n(p, v, unknown(N)); });
}

}  // namespace

TEMPLATE_TEST_CASE("parts of a lane", "", float, double, std::int32_t, std::int64_t, std::uint32_t,
                   std::uint8_t, std::int16_t) {
  using T = TestType;
  [&]<int... N>(std::integer_sequence<int, N...>) {
    (known<T, N>(), ...);
  }(std::make_integer_sequence<int, kernels::lane_size<T> + 1>());
}

}  // namespace tests::kernels_partial
