// SPDX-License-Identifier: BSL-1.0
// Casts to integers of numbers that they do not hold: one rule in whole lanes, tails, strided and misaligned rows, in
// fused loops, and in constant expressions.
#include "casts.hpp"

#include <array>

namespace tests::kernels_casts {

namespace {

using namespace casts;
using u8 = std::uint8_t;
using i8 = std::int8_t;

// By hand: truncated, then modulo 2^bits.
static_assert(math::convert_number<u8>(300.9f) == 44 && math::convert_number<u8>(-1.5f) == 255);
static_assert(math::convert_number<i8>(-129.0) == 127 && math::convert_number<i8>(128.9) == -128);
static_assert(math::convert_number<std::int32_t>(0x1p32 + 5.5) == 5);
static_assert(math::convert_number<std::int32_t>(0x1p31f) == INT32_MIN);
static_assert(math::convert_number<std::int32_t>(-0x1p31 - 1) == INT32_MAX);
static_assert(math::convert_number<std::int64_t>(0x1p63f) == INT64_MIN);
static_assert(math::convert_number<std::int64_t>(-0x1p63 - 2048) == INT64_MAX - 2047);
static_assert(math::convert_number<std::int64_t>(1e20) == 7766279631452241920);
static_assert(math::convert_number<std::int64_t>(not_a_number) == 0 &&
              math::convert_number<u8>(-infinity) == 0);
static_assert(math::convert_number<std::int32_t>(float16(infinity)) == 0);
static_assert(math::convert_number<bool>(not_a_number) && math::convert_number<bool>(5e-324) &&
              !math::convert_number<bool>(-0.0));
static_assert(math::convert_number<i8>(std::int64_t{511}) == -1 && math::convert_number<u8>(-3) == 253);

// All edges, cast while this file is compiled.
template <class To, int... I>
constexpr std::array<To, sizeof...(I)> edges_as(std::integer_sequence<int, I...>) {
  return {math::convert_number<To>(edges[I])...};
}
template <class To>
constexpr auto constants = edges_as<To>(std::make_integer_sequence<int, edge_count>{});

// An operand of n elements, `step` apart, that begins `skip` elements into new memory.
struct Row {
  Array memory;
  Operand row;
  Row(DType d, index_t n, index_t step, index_t skip) : memory(Meta{d, make_shape(skip + n * step)}) {
    Strides s;
    s.push_back(step);
    row = memory.view(make_shape(n), s, skip).operand();
  }
};

void check_row(DType from, DType to, index_t n, index_t step_from, index_t step_to, index_t skip,
               index_t place) {
  Row x(from, n, step_from, skip), y(to, n, step_to, skip + 1);
  Array const values = numbers(from, make_shape(n), static_cast<int>(n + skip), place);
  for (index_t i = 0; i < n; ++i) write_real(x.row, i * step_from, read_real(values.operand(), i));
  kernels::convert(x.row, y.row);
  int wrong_ones = 0;
  for (index_t i = 0; i < n; ++i)
    wrong_ones += read_integer(y.row, i * step_to) != expected(to, read_real(x.row, i * step_from));
  INFO(name_of(from) << " as " << name_of(to) << ", " << n << " of them, steps " << step_from << " and "
                     << step_to << ", from element " << skip << " on, place " << place);
  CHECK(wrong_ones == 0);
}

template <class From>
void check_held() {
  for (double const v : edges) {
    auto const x = static_cast<From>(static_cast<compute_t<From>>(v));
    auto const real = static_cast<double>(static_cast<compute_t<From>>(x));
    CHECK(math::convert_number<std::int32_t>(x) == expected(DType::i32, real));
    CHECK(math::convert_number<std::int64_t>(x) == expected(DType::i64, real));
    CHECK(math::convert_number<u8>(x) == expected(DType::u8, real));
    CHECK(math::convert_number<i8>(x) == expected(DType::i8, real));
    CHECK(math::convert_number<bool>(x) == (expected(DType::boolean, real) != 0));
    CHECK(math::integer_without_branch<std::int64_t>(static_cast<compute_t<From>>(x)) ==
          expected(DType::i64, real));
    CHECK(math::integer_without_branch<i8>(static_cast<compute_t<From>>(x)) == expected(DType::i8, real));
  }
}

}  // namespace

TEST_CASE("one number as an integer", "[kernels]") {
  // The formula that all is compared with, by hand.
  CHECK(expected(DType::u8, 300.9) == 44);
  CHECK(expected(DType::i8, -129) == 127);
  CHECK(expected(DType::i32, 0x1p32 + 5) == 5);
  CHECK(expected(DType::i32, -0x1p31 - 1) == INT32_MAX);
  CHECK(expected(DType::i64, 1e20) == 7766279631452241920);
  CHECK(expected(DType::i64, -0x1p63 - 2048) == INT64_MAX - 2047);
  for (int i = 0; i < edge_count; ++i) {
    auto const k = static_cast<std::size_t>(i);
    CHECK(constants<std::int32_t>[k] == expected(DType::i32, edges[i]));
    CHECK(constants<std::int64_t>[k] == expected(DType::i64, edges[i]));
    CHECK(constants<u8>[k] == expected(DType::u8, edges[i]));
    CHECK(constants<i8>[k] == expected(DType::i8, edges[i]));
    CHECK(constants<bool>[k] == (expected(DType::boolean, edges[i]) != 0));
  }
  check_held<double>();
  check_held<float>();
  check_held<float16>();
  check_held<bfloat16>();
}

TEST_CASE("rows of real numbers as integers", "[kernels]") {
  for (DType const from : reals)
    for (DType const to : whole) {
      for (index_t n : {1, 3, 4, 7, 8, 16, 31, 33, 63, 64, 65, 100, 129, 191, 513, 600})
        for (index_t skip : {0, 1, 3})
          for (index_t place : {index_t{-2}, index_t{-1}, index_t{0}, n / 2, n - 1})
            check_row(from, to, n, 1, 1, skip, place);
      for (index_t n : {1, 5, 16, 67, 600})
        for (index_t place : {index_t{-2}, index_t{-1}, n / 2}) {
          check_row(from, to, n, 2, 1, 1, place);
          check_row(from, to, n, 1, 3, 0, place);
          check_row(from, to, n, 3, 2, 2, place);
        }
    }
}

TEST_CASE("integers as integers of fewer bits", "[kernels]") {
  auto const x =
      from({INT64_MAX, INT64_MIN, std::int64_t{-1}, std::int64_t{255}, std::int64_t{256}, std::int64_t{-129},
            std::int64_t{1} << 31, (std::int64_t{1} << 32) + 5, std::int64_t{128}});
  CHECK(cast_to(x, DType::i32).to_vector<int>() ==
        std::vector<int>{-1, 0, -1, 255, 256, -129, INT32_MIN, 5, 128});
  CHECK(cast_to(x, DType::u8).to_vector<int>() == std::vector<int>{255, 0, 255, 255, 0, 127, 0, 5, 128});
  CHECK(cast_to(x, DType::i8).to_vector<int>() == std::vector<int>{-1, 0, -1, -1, 0, 127, 0, 5, -128});
  CHECK(cast_to(cast_to(x, DType::i32), DType::i8).to_vector<int>() ==
        std::vector<int>{-1, 0, -1, -1, 0, 127, 0, 5, -128});
}

TEST_CASE("fused loops that cast to integers", "[kernels]") {
  auto const here = [](auto program, auto const&... x) { return program(x...); };
  check_compiled<double>(here);
  check_compiled<float>(here);
  check_compiled<float16>(here);
  check_compiled<bfloat16>(here);
}

}  // namespace tests::kernels_casts
