// SPDX-License-Identifier: BSL-1.0
// Lanes of elements that lie a few apart: each is read from and written to its place, at the end of memory that may be
// touched, and what lies between stays as it was.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_template_test_macros.hpp>

#include "flush.hpp"

namespace tests::kernels_every {

namespace {

using namespace dfdx;

template <class T, int Step>
void moves() {
  using Lane = kernels::lane<T>;
  if constexpr (kernels::detail::steps_by_vectors<Lane>(Step)) {
    constexpr int size = kernels::lane_size<T>, n = (size - 1) * Step + 1;
    CAPTURE(Step, size);
    Flush<T> const from(n), to(n);
    for (int i = 0; i < n; ++i) from[i] = static_cast<T>(i + 1);
    alignas(64) T lane[static_cast<std::size_t>(size)];
    kernels::detail::load_every<Step, Lane>(from.data).store_aligned(lane);
    for (int i = 0; i < size; ++i) REQUIRE(lane[i] == static_cast<T>(i * Step + 1));
    if constexpr (kernels::detail::has_masked_stores<Lane>) {
      for (int i = 0; i < n; ++i) to[i] = static_cast<T>(77);
      for (int i = 0; i < size; ++i) lane[i] = static_cast<T>(100 + i);
      kernels::detail::store_every<Step>(to.data, Lane::load_aligned(lane));
      for (int i = 0; i < n; ++i) REQUIRE(to[i] == static_cast<T>(i % Step == 0 ? 100 + i / Step : 77));
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("lanes of elements that lie apart", "", float, double, std::int32_t, std::int64_t) {
  [&]<int... N>(std::integer_sequence<int, N...>) {
    (moves<TestType, N + 1>(), ...);
  }(std::make_integer_sequence<int, 9>());
  CHECK_FALSE(kernels::detail::steps_by_vectors<kernels::lane<TestType>>(1));
}

}  // namespace tests::kernels_every
