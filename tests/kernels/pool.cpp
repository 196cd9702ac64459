// SPDX-License-Identifier: BSL-1.0
// Where the largest elements of windows are, against loops that follow the definition: windows that overlap, with steps
// and borders; equal elements, infinities and NaN; samples that end where memory of others begins.
#include <dfdx/kernels/pool.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace tests::kernels_pool {

namespace {

using namespace dfdx;

struct Case {
  index_t batch, n[3];
  Window windows[3];
};

template <class E, class Y>
index_t wrong_places(Case const& c, bool special) {
  index_t m[3] = {}, packed[3] = {};
  for (int axis = 0; axis < 3; ++axis) {
    Window const& w = c.windows[axis];
    m[axis] = (c.n[axis] + 2 * w.before - w.reach()) / w.stride + 1;
    packed[axis] = w.packed();
  }
  index_t const size = c.n[0] * c.n[1] * c.n[2], made = m[0] * m[1] * m[2];
  std::vector<E> x(static_cast<std::size_t>(c.batch * size));
  std::mt19937 chance(5);
  E const infinity = std::numeric_limits<E>::infinity();
  for (E& v : x) {
    v = static_cast<E>(static_cast<int>(chance() % 19) - 9);  // few different ones: many are equal
    if (special && chance() % 7 == 0) v = chance() % 2 == 0 ? std::numeric_limits<E>::quiet_NaN() : -infinity;
  }
  constexpr Y untouched = static_cast<Y>(99);
  std::vector<Y> y(static_cast<std::size_t>(c.batch * made + 1), untouched);
  kernels::window_argmax(x.data(), y.data(), static_cast<int>(sizeof(Y)), c.batch, c.n, m, packed);
  index_t wrong = y.back() != untouched;
  std::size_t at = 0;
  for (index_t b = 0; b < c.batch; ++b)
    for (index_t p = 0; p < made; ++p) {
      index_t const at_axis[3] = {p / (m[1] * m[2]), p / m[2] % m[1], p % m[2]};
      index_t want = -1;
      auto const value = [&](index_t place) { return x[static_cast<std::size_t>(b * size + place)]; };
      index_t k[3];
      for (k[0] = 0; k[0] < c.windows[0].size; ++k[0])
        for (k[1] = 0; k[1] < c.windows[1].size; ++k[1])
          for (k[2] = 0; k[2] < c.windows[2].size; ++k[2]) {
            index_t place = 0;
            bool inside = true;
            for (int axis = 0; axis < 3; ++axis) {
              Window const& w = c.windows[axis];
              index_t const i = at_axis[axis] * w.stride + k[axis] * w.dilation - w.before;
              inside = inside && i >= 0 && i < c.n[axis];
              place = place * c.n[axis] + i;
            }
            if (!inside || (want >= 0 && std::isnan(value(want)))) continue;
            if (want < 0 || value(place) > value(want) || std::isnan(value(place))) want = place;
          }
      wrong += static_cast<index_t>(y[at++]) != want;
    }
  return wrong;
}

template <class E, class Y>
index_t all_wrong() {
  index_t wrong = 0;
  Window const one{1, 1, 1, 0};
  Case const cases[] = {{1, {1, 1, 1}, {one, one, one}},
                        {2, {1, 1, 37}, {one, one, {3, 2, 1, 1}}},
                        {3, {1, 9, 11}, {one, {2, 2, 1, 0}, {3, 1, 1, 1}}},
                        {1, {3, 5, 7}, {{2, 1, 1, 0}, {3, 2, 1, 1}, {2, 2, 2, 0}}},
                        {2, {1, 13, 17}, {one, {5, 3, 2, 2}, {4, 1, 1, 2}}}};
  for (Case const& c : cases) wrong += wrong_places<E, Y>(c, false) + wrong_places<E, Y>(c, true);
  return wrong;
}

}  // namespace

TEST_CASE("places of the largest elements of windows", "[kernels]") {
  CHECK(all_wrong<float, std::int32_t>() == 0);
  CHECK(all_wrong<float, std::int64_t>() == 0);
  CHECK(all_wrong<float, std::uint8_t>() == 0);
  CHECK(all_wrong<double, std::int32_t>() == 0);
  CHECK(all_wrong<double, std::int64_t>() == 0);
  CHECK(all_wrong<double, std::uint8_t>() == 0);
}

}  // namespace tests::kernels_pool
