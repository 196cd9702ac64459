// SPDX-License-Identifier: BSL-1.0
// Numbers at the edges of integers, and what casts have to make of them: by a formula that the library does not have,
// of remainders in long double, which holds all numbers of 64 bits.
#pragma once

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <limits>
#include <vector>

namespace casts {

using namespace dfdx;

inline constexpr DType reals[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
inline constexpr DType whole[] = {DType::i32, DType::i64, DType::u8, DType::i8, DType::boolean};

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// ordinary - numbers that every integer dtype holds; edges - numbers that some or all do not.
inline constexpr double ordinary[] = {0,   -0.0,  0.5, 0.999,  1,     1.5,    2, 63.75,
                                      100, 126.5, 127, 5e-324, 1e-40, 1e-310, 7, 31};
inline constexpr double edges[] = {-0.5,
                                   -0.999,
                                   -1,
                                   -1.5,
                                   -2,
                                   127.9,
                                   128,
                                   128.5,
                                   -127.9,
                                   -128,
                                   -128.9,
                                   -129,
                                   -255.9,
                                   -256,
                                   -257,
                                   255,
                                   255.9,
                                   256,
                                   257.5,
                                   300,
                                   32767.5,
                                   65504,
                                   -65535,
                                   65536,
                                   1e6,
                                   16777217,
                                   0x1p31 - 1,
                                   0x1p31 - 128,
                                   0x1p31,
                                   0x1p31 + 256,
                                   -0x1p31,
                                   -0x1p31 - 0.5,
                                   -0x1p31 - 1,
                                   -0x1p31 - 256,
                                   0x1p32 - 1,
                                   0x1p32,
                                   0x1p32 + 5,
                                   0x1p32 + 512,
                                   -0x1p32 - 5,
                                   -0x1p32 - 512,
                                   1e10,
                                   -1e10,
                                   0x1p51 - 0.5,
                                   0x1p51,
                                   -0x1p51 + 0.5,
                                   -0x1p51,
                                   0x1p51 + 3,
                                   0x1p52 - 0.5,
                                   0x1p52 + 1,
                                   0x1p53,
                                   0x1p53 + 2,
                                   -0x1p53 - 2,
                                   0x1p63 - 1024,
                                   0x1p63 - 0x1p39,
                                   0x1p63,
                                   0x1p63 + 2048,
                                   0x1p63 + 0x1p40,
                                   -0x1p63,
                                   -0x1p63 - 2048,
                                   -0x1p63 - 0x1p40,
                                   0x1p64,
                                   0x1p64 + 4096,
                                   0x1p64 + 0x1p41,
                                   -0x1p64 - 4096,
                                   1e20,
                                   -1e20,
                                   1e30,
                                   -1e30,
                                   0x1p115,
                                   0x1p116,
                                   3e38,
                                   -3e38,
                                   1e300,
                                   -1e300,
                                   infinity,
                                   -infinity,
                                   not_a_number,
                                   -not_a_number,
                                   -1e-40,
                                   -5e-324};
inline constexpr int ordinary_count = static_cast<int>(std::size(ordinary));
inline constexpr int edge_count = static_cast<int>(std::size(edges));

/// expected - the number x as an element of dtype d.
inline std::int64_t expected(DType d, double x) {
  if (d == DType::boolean) return std::fpclassify(x) == FP_ZERO ? 0 : 1;
  if (!std::isfinite(x)) return 0;
  int const bits = d == DType::i64 ? 64 : d == DType::i32 ? 32 : 8;
  long double const modulus = std::ldexp(1.0L, bits);
  long double r = std::fmod(std::trunc(static_cast<long double>(x)), modulus);  // with the sign of x
  if (r < 0) r += modulus;
  if (d != DType::u8 && r >= modulus / 2) r -= modulus;
  return static_cast<std::int64_t>(r);
}

/// How many elements of y are not what x has to become; both are walked in their own order.
inline int wrong(Array const& x, Array const& y) {
  int r = x.shape() == y.shape() ? 0 : 1;
  std::vector<index_t> at[2];
  for (int k = 0; k < 2; ++k) {
    Array const& a = k == 0 ? x : y;
    Strides const strides[1] = {a.strides()};
    walk<1>(a.shape(), strides, [&](index_t const(&o)[1]) { at[k].push_back(o[0]); });
  }
  for (std::size_t i = 0; r == 0 && i < at[0].size(); ++i) {
    double const v = read_real(x.operand(), at[0][i]);
    std::int64_t const made = read_integer(y.operand(), at[1][i]), want = expected(y.dtype(), v);
    if (made == want) continue;
    UNSCOPED_INFO(name_of(x.dtype()) << " " << v << " as " << name_of(y.dtype()) << " is " << made
                                     << " and not " << want << ", element " << i << " of " << at[0].size());
    ++r;
  }
  return r;
}

/// numbers - of a dtype: all edges in turn, or ordinary ones with one edge at a place (none at -1).
inline Array numbers(DType d, Shape const& s, int first, index_t place = -2) {
  Array r(Meta{d, s});
  for (index_t i = 0; i < r.size(); ++i) {
    auto const k = static_cast<int>(i) + first;
    double const v = place == -2 || place == i ? edges[k % edge_count] : ordinary[k % ordinary_count];
    write_real(r.operand(), i, v);
  }
  return r;
}

template <class To>
inline constexpr auto cast_as = [](auto const& x) { return cast<To>(x); };
template <class To>
inline constexpr auto cast_across = [](auto const& x) { return cast<To>(transpose(x)); };
/// All at once, elements of all sizes beside each other.
inline constexpr auto cast_to_all = [](auto const& x) {
  return std::tuple(cast<std::int32_t>(transpose(x)), cast<std::int64_t>(transpose(x)),
                    cast<std::uint8_t>(transpose(x)), cast<std::int8_t>(transpose(x)),
                    cast<bool>(transpose(x)));
};
/// One number for each row.
template <class To>
inline constexpr auto cast_rows = [](auto const& x, auto const& zeros) { return cast<To>(x) + zeros; };

/// check_compiled - programs whose loops cast. On(program, x...) is what runs one.
template <class From, class On>
void check_compiled(On const& on) {
  constexpr DType d = dtype_v<From>;
  auto const each_length = [&]<class To>(std::type_identity<To>) {
    auto const program = compile(cast_as<To>);
    for (index_t n : {1, 2, 3, 5, 8, 15, 17, 33, 64, 83, 211})
      for (index_t place : {index_t{-2}, index_t{-1}, index_t{0}, n / 2, n - 1}) {
        Tensor<From, dyn> const x(numbers(d, make_shape(n), static_cast<int>(n), place));
        CHECK(wrong(x, on(program, x)) == 0);
      }
  };
  each_length(std::type_identity<std::int32_t>{});
  each_length(std::type_identity<std::int64_t>{});
  each_length(std::type_identity<std::uint8_t>{});
  each_length(std::type_identity<std::int8_t>{});
  each_length(std::type_identity<bool>{});
  for (index_t place : {-2, -1, 40}) {
    Tensor<From, 83, 2> const x(numbers(d, make_shape(83, 2), 3, place));
    auto const [i32, i64, u8, i8, truth] = on(compile(cast_to_all), x);
    Array const across = transpose(x);
    CHECK(wrong(across, i32) == 0);
    CHECK(wrong(across, i64) == 0);
    CHECK(wrong(across, u8) == 0);
    CHECK(wrong(across, i8) == 0);
    CHECK(wrong(across, truth) == 0);
    using Beside = std::conditional_t<sizeof(From) == 8, std::int64_t, std::int32_t>;
    CHECK(wrong(across, on(compile(cast_across<Beside>), x)) == 0);
    CHECK(wrong(across, on(compile(cast_across<std::uint8_t>), x)) == 0);
  }
  Tensor<From, edge_count, 1> const rows(numbers(d, make_shape(edge_count, 1), 0));
  auto const each_row = [&]<class To>(std::type_identity<To>) {
    CHECK(wrong(broadcast_to<Array>(rows, make_shape(edge_count, 3)),
                on(compile(cast_rows<To>), rows, zeros<To, edge_count, 3>())) == 0);
  };
  each_row(std::type_identity<std::int32_t>{});
  each_row(std::type_identity<std::int64_t>{});
}

}  // namespace casts
