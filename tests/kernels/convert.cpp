// SPDX-License-Identifier: BSL-1.0
// Conversions between all pairs of dtypes: what goes by way of a third dtype, and rows of any layout, give each number
// as math::convert_number has it.
#include "../support.hpp"

#include <cstring>

#include <catch2/catch_test_macros.hpp>

#include <dfdx/dfdx.hpp>

namespace tests::kernels_convert {

namespace {

using namespace dfdx;

// Places of rows of numbers, `size` in all.
struct Layout {
  char const* name;
  Shape shape;
  Strides strides;
  index_t size;
};
Strides steps(index_t a, index_t b) {
  Strides s;
  s.push_back(a), s.push_back(b);
  return s;
}
std::vector<Layout> layouts() {
  return {{"dense", make_shape(3, 700), steps(700, 1), 2100},
          {"transposed", make_shape(33, 40), steps(1, 33), 1320},
          {"rows with gaps", make_shape(150, 7), steps(9, 1), 1350},
          {"long rows with gaps", make_shape(3, 600), steps(1300, 2), 3900},
          {"columns that repeat", make_shape(80, 9), steps(2, 0), 160},
          {"many columns that repeat", make_shape(3, 1100), steps(1, 0), 3},
          {"rows that repeat", make_shape(20, 70), steps(0, 1), 70}};
}

// Numbers of every kind: small and large, with fractions, negative, and what no integer holds.
template <class T>
T number(index_t i) {
  double const of[] = {0,
                       1,
                       -1,
                       2.5,
                       -3.75,
                       127.9,
                       -128.5,
                       200,
                       255,
                       256.5,
                       -300,
                       65504.0,
                       70000.,
                       1e9 + 7,
                       -5e9 - 3,
                       1.0 + 0x1p-11 + 0x1p-40,
                       5e-324,
                       3e38,
                       -1e19,
                       std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::quiet_NaN(),
                       -0.0,
                       0.1,
                       1e-7};
  return math::convert_number<T>(of[i % 24] + static_cast<double>(i % 24 < 16 ? i / 24 % 5 : 0));
}

template <class To, class From>
index_t differing(Layout const& of, Layout const& to) {
  std::unique_ptr<From[]> const x(new From[static_cast<std::size_t>(of.size)]);
  for (index_t i = 0; i < of.size; ++i) x[static_cast<std::size_t>(i)] = number<From>(i);
  To const untouched = math::convert_number<To>(77);
  std::unique_ptr<To[]> const y(new To[static_cast<std::size_t>(to.size)]);
  for (index_t i = 0; i < to.size; ++i) y[static_cast<std::size_t>(i)] = untouched;
  kernels::convert({x.get(), {dtype_v<From>, of.shape}, of.strides},
                   {y.get(), {dtype_v<To>, of.shape}, to.strides});
  std::vector<bool> is_made(static_cast<std::size_t>(to.size));
  index_t wrong = 0;
  for (index_t i = 0; i < of.shape[0]; ++i)
    for (index_t j = 0; j < of.shape[1]; ++j) {
      auto const at = static_cast<std::size_t>(i * to.strides[0] + j * to.strides[1]);
      is_made[at] = true;
      To const is = y[at], should = math::convert_number<To>(
                               x[static_cast<std::size_t>(i * of.strides[0] + j * of.strides[1])]);
      auto const nan = [](To v) { return static_cast<compute_t<To>>(v) != static_cast<compute_t<To>>(v); };
      wrong += std::memcmp(&is, &should, sizeof is) != 0 && !(nan(is) && nan(should)) ? 1 : 0;
    }
  for (std::size_t at = 0; at < is_made.size(); ++at)
    wrong += !is_made[at] && std::memcmp(&y[at], &untouched, sizeof untouched) != 0 ? 1 : 0;
  return wrong;
}

}  // namespace

TEST_CASE("numbers of every dtype in every other, in any layout", "[kernels]") {
  for (int from = 0; from < dtype_count; ++from)
    for (int to = 0; to < dtype_count; ++to)
      for (Layout const& l : layouts())
        for (bool gaps : {false, true}) {
          // The result in order, or each row as a column, with gaps.
          index_t const rows = l.shape[0], columns = l.shape[1];
          Layout const result = gaps ? Layout{"", l.shape, steps(1, rows + 1), columns * (rows + 1)}
                                     : Layout{"", l.shape, steps(columns, 1), rows * columns};
          dispatch(static_cast<DType>(from), [&](auto x) {
            dispatch(static_cast<DType>(to), [&](auto y) {
              using From = typename decltype(x)::type;
              using To = typename decltype(y)::type;
              INFO(name_of(dtype_v<From>)
                   << " as " << name_of(dtype_v<To>) << ", " << l.name << ", gaps " << gaps);
              CHECK(differing<To, From>(l, result) == 0);
            });
          });
        }
}

}  // namespace tests::kernels_convert
