// SPDX-License-Identifier: BSL-1.0
// Casts to integers of numbers that they do not hold, called on their own: of arrays and tensors, of parts of them, on
// the tape, interpreted, on a device; and other functions that make integers of real numbers.
#include "casts.hpp"

#include <dfdx/testing/reference.hpp>

#include "support.hpp"

namespace tests::ops_casts {

namespace {

using namespace casts;

// On the device where a test is compiled for devices.
Array there(Array const& x) {
#if defined(DFDX_WITH_CUDA)
  return to(cuda(), x);
#else
  return x;
#endif
}
Array back(Array const& x) { return to(Device{}, x); }

}  // namespace

TEST_CASE("casts of arrays to integers", "[ops]") {
  for (DType const from : reals)
    for (DType const to : whole) {
      for (index_t n : {1, 7, 64, 83, 300}) {
        Array const x = numbers(from, make_shape(n), static_cast<int>(n));
        CHECK(wrong(x, back(cast_to(there(x), to))) == 0);
        if (n == 1) continue;
        Array const rest = slice(x, 0, 1, n - 1), every_second = slice(x, 0, 0, n / 2, 2);
        CHECK(wrong(rest, back(cast_to(slice(there(x), 0, 1, n - 1), to))) == 0);
        CHECK(wrong(every_second, back(cast_to(slice(there(x), 0, 0, n / 2, 2), to))) == 0);
      }
      Array const x = numbers(from, make_shape(83, 3), 1);
      CHECK(wrong(transpose(x), back(cast_to(transpose(there(x)), to))) == 0);
      CHECK(wrong(broadcast_to(slice(x, 1, 0, 1), make_shape(83, 70)),
                  back(cast_to(broadcast_to(slice(there(x), 1, 0, 1), make_shape(83, 70)), to))) == 0);
      Array y(Meta{to, x.shape()});
      testing::reference::run_cast(x, y);
      CHECK(wrong(x, y) == 0);
      for (double const v : edges) {
        Array one = numbers(from, make_shape(1), 0);
        write_real(one.operand(), 0, v);
        CHECK(wrong(one, back(cast_to(there(one), to))) == 0);
      }
    }
}

TEST_CASE("casts to integers on the tape", "[ops]") {
  for (DType const from : reals)
    for (DType const to : whole) {
      Array x = there(numbers(from, make_shape(83), 5));
      x.requires_grad(true);
      Array const y = cast_to(x, to);
      CHECK(wrong(back(x.detach()), back(y.detach())) == 0);
      CHECK(!y.requires_grad());
    }
}

TEST_CASE("doubles become numbers of 16 bits by one rounding", "[ops]") {
  double const above = 1 + 0x1p-11 + 0x1p-40, brain = 1 + 0x1p-8 + 0x1p-40;  // the middle, as floats
  auto const all = [](Array const& x, double v) {
    return array_equal(back(cast_to(x, DType::f64)), full(x.shape(), v, DType::f64));
  };
  for (index_t n : {1, 67}) {
    Array const x = there(full({n, 3}, above, DType::f64)), y = there(full({n, 3}, brain, DType::f64));
    CHECK(all(cast_to(x, DType::f16), 1 + 0x1p-10));
    CHECK(all(cast_to(transpose(x), DType::f16), 1 + 0x1p-10));
    CHECK(all(cast_to(y, DType::bf16), 1 + 0x1p-7));
    CHECK(all(full({n}, above, DType::f16), 1 + 0x1p-10));
    CHECK(all(full({n}, brain, DType::bf16), 1 + 0x1p-7));
    Array z = full({n, 3}, 0.0, DType::f16), r(Meta{DType::f16, x.shape()});
    z.copy_(back(x));
    CHECK(all(z, 1 + 0x1p-10));
    testing::reference::run_cast(back(x), r);
    CHECK(all(r, 1 + 0x1p-10));
  }
  // What a number is compared with.
  CHECK(array_equal(full({3}, 1 + 0x1p-10, DType::f16) == above, full({3}, 1, DType::boolean)));
}

TEST_CASE("other ways from real numbers to integers", "[ops]") {
  Array const x = from({300.9, -1.5, 0x1p32 + 5, 1e20, not_a_number, infinity});
  CHECK(x.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{44, 255, 5, 0, 0, 0});
  CHECK(x.to_vector<int>() == std::vector<int>{300, -1, 5, 1661992960, 0, 0});
  CHECK(x.to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{300, -1, (std::int64_t{1} << 32) + 5, 7766279631452241920, 0, 0});
  CHECK(full({1}, 300.9, DType::u8).item() == 44);
  CHECK(full({1}, -0x1p31 - 1, DType::i32).item() == INT32_MAX);
  CHECK(full({1}, infinity, DType::i64).item() == 0);
  CHECK(full_like(zeros<std::int8_t, 1>(), -129).item() == 127);
  CHECK(full_like(zeros<std::int32_t, 1>(), not_a_number).item() == 0);
  CHECK(arange(254.0, 258.0, 1.0, DType::u8).to_vector<int>() == std::vector<int>{254, 255, 0, 1});
  // What names a number for a dtype that does not hold it is refused, as before.
  CHECK(tests::error_of([] { ones({1}, DType::u8) + 300; }) == "add: 300 does not fit u8");
  CHECK(tests::error_of([] { ones({1}, DType::i32) + (std::int64_t{1} << 31); }) ==
        "add: 2147483648 does not fit i32");
}

}  // namespace tests::ops_casts
