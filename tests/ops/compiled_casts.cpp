// SPDX-License-Identifier: BSL-1.0
// Casts in programs. To integers of numbers that they do not hold: on a device, of constants, and in constant
// expressions (tests/kernels/casts.cpp has those on the CPU). To 16 bits: rounded, whoever reads them.
#include "casts.hpp"
#include "ops/compiled.hpp"

namespace tests::ops_compiled_casts {

namespace {

using namespace casts;

// A program of one number, interpreted while this file is compiled.
template <class To>
constexpr auto one = compile(cast_as<To>);
static_assert(one<std::uint8_t>(300.9f) == 44 && one<std::uint8_t>(-1.0f) == 255);
static_assert(one<std::int8_t>(-129.5) == 127 && one<std::int32_t>(0x1p32 + 5) == 5);
static_assert(one<std::int64_t>(0x1p63) == INT64_MIN && one<std::int32_t>(not_a_number) == 0);
static_assert(one<bool>(not_a_number) && one<bool>(0.25) && !one<bool>(-0.0));
// Also on the way to something else.
constexpr auto there_and_back =
    compile([](auto const& x) { return cast<float>(cast<std::uint8_t>(x)) * 0.5f; });
static_assert(there_and_back(300.9f) == 22.0f && there_and_back(-1.0f) == 127.5f);

// Constants, which are cast while the program is made.
constexpr double chosen[] = {-0.5,   127.9,       128,        -129,  255.9, 300,  65536,    70000,
                             2049.5, -0x1p31 - 1, 0x1p32 + 5, -1e10, 1e20,  1e30, infinity, not_a_number};
template <class To, std::size_t... I>
constexpr auto folded_as(std::index_sequence<I...>) {
  return [](auto const& x) { return std::tuple(cast<To>(full_like(x, chosen[I]))...); };
}
template <class To>
constexpr auto folded = folded_as<To>(std::make_index_sequence<std::size(chosen)>{});

template <class To, class From>
void check_folded() {
  auto const x = zeros<From, 3>();
  auto const eager = compiled::leaves(folded<To>(x)), made = compiled::leaves(compile(folded<To>)(x));
  REQUIRE(made.size() == std::size(chosen));
  for (std::size_t i = 0; i < made.size(); ++i) {
    auto const stored = static_cast<double>(
        static_cast<compute_t<From>>(static_cast<From>(static_cast<compute_t<From>>(chosen[i]))));
    INFO(name_of(dtype_v<From>) << " " << chosen[i] << " as " << name_of(dtype_v<To>));
    CHECK(read_integer(made[i].operand(), 0) == expected(dtype_v<To>, stored));
    CHECK(read_integer(eager[i].operand(), 0) == expected(dtype_v<To>, stored));
  }
}
template <class From>
void check_folded_as_all() {
  check_folded<std::int32_t, From>();
  check_folded<std::int64_t, From>();
  check_folded<std::uint8_t, From>();
  check_folded<bool, From>();
}

}  // namespace

TEST_CASE("constants cast to integers", "[ops]") {
  check_folded_as_all<double>();
  check_folded_as_all<float>();
  check_folded_as_all<float16>();
  check_folded_as_all<bfloat16>();
}

namespace {

// What casts to H lose, and what is made of what they leave, in one loop each.
template <class H>
struct Halves {
  static constexpr auto lost = [](auto const& x) { return x - cast<float>(cast<H>(x)); };
  static constexpr auto stored_too = [](auto const& x) {
    auto const h = cast<H>(x);
    return std::tuple(h, cast<float>(h) * 2.0f, cast<std::int32_t>(h));
  };
  static constexpr auto along_rows = [](auto const& x) {
    auto const row = cast<H>(sum<1>(x, keepdim));  // one number for each row, computed once for it
    auto const h = cast<H>(x * x);
    return std::tuple(cast<float>(row) - x, max<1>(cast<float>(h)), sum(cast<float>(h) * 0.5f));
  };
  static constexpr auto after_product = [](auto const& x) {
    auto const y = matmul(x, transpose(x));
    return y - cast<float>(cast<H>(y));
  };
  static constexpr auto from_double = [](auto const& x) {
    return cast<double>(cast<H>(cast<double>(x))) + 0.0;
  };
  static constexpr auto of_constants = [](auto const& x) {
    auto const h = cast<H>(full_like(x, 2049));  // 2048
    return std::tuple(cast<float>(cast<H>(full_like(x, 0.1))), cast<float>(cast<H>(full_like(x, 1e5))),
                      h - full_like(h, 2048));
  };
};

// By hand, interpreted while this file is compiled.
static_assert(compile(Halves<bfloat16>::lost)(257.0f) == 1 && compile(Halves<bfloat16>::lost)(259.0f) == -1);
static_assert(compile(Halves<float16>::lost)(2049.0f) == 1 &&
              compile(Halves<float16>::lost)(0x1p-25f) == 0x1p-25f);

template <class H>
void check_halves() {
  using P = Halves<H>;
  auto const x = randn<float, 5, 67>(Key{5});
  compiled::check(P::lost, x);
  compiled::check(P::stored_too, x);
  compiled::check(P::along_rows, round(x * 256.0f) / 256.0f);   // whose sums are exact,
  compiled::check(P::after_product, round(x * 16.0f) / 16.0f);  // whatever their order
  compiled::check(P::from_double, x);
  compiled::check(P::of_constants, x);
}

}  // namespace

// tests/kernels/half.cpp has numbers of all kinds.
TEST_CASE("casts to 16 bits are rounded where they are read", "[ops]") {
  check_halves<float16>();
  check_halves<bfloat16>();
}

#if defined(DFDX_WITH_CUDA)
TEST_CASE("programs on a device that cast to integers", "[ops]") {
  auto const there = [](auto program, auto const&... x) {
    auto const y = program(to(cuda(), x)...);
    return to(Device{}, y);
  };
  check_compiled<double>(there);
  check_compiled<float>(there);
  check_compiled<float16>(there);
  check_compiled<bfloat16>(there);
}
#endif

// Stored, read in the same loop, and as constants.
template <class H>
void check_one_rounding(double v, double want) {
  auto const f = compile([](auto const& x) {
    auto const h = cast<H>(x * 1.0);
    return std::tuple(h, cast<double>(h) + x, cast<float>(h) * 2.0f,
                      cast<float>(cast<H>(full_like(x, 1 + 0x1p-11 + 0x1p-40))));
  });
  auto const [stored, wide, read, constant] = f(full<double, 67>(v));
  CHECK(array_equal(cast<double>(stored), full<double, 67>(want)));
  CHECK(array_equal(wide, full<double, 67>(want + v)));
  CHECK(array_equal(read, full<float, 67>(2 * want)));
  CHECK(constant(66) == (std::is_same_v<H, float16> ? 1 + 0x1p-10f : 1.0f));
}

TEST_CASE("doubles become numbers of 16 bits by one rounding", "[ops]") {
  check_one_rounding<float16>(1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10);
  check_one_rounding<float16>(1 + 0x3p-11 - 0x1p-40, 1 + 0x1p-10);
  check_one_rounding<bfloat16>(1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7);
  auto const equals = compile([](auto const& x) { return x == (1 + 0x1p-11 + 0x1p-40); });
  CHECK(array_equal(equals(full<float16, 67>(1 + 0x1p-10)), full<bool, 67>(1)));
}

}  // namespace tests::ops_compiled_casts
