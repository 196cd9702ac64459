// SPDX-License-Identifier: BSL-1.0
// Maps that read an operand across its rows, against the same in eager arithmetic: every element stands alone, so the
// numbers are the same whatever order they are computed in.
#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstring>

namespace tests::program_crossing {

using namespace dfdx;

namespace {

// The numbers of two arrays, in order, as the compiled program's result and the eager one's.
template <class T>
bool equal_numbers(T const& a, Array const& b) {
  Array const x = Array(a).contiguous(), y = b.contiguous();
  return x.shape() == y.shape() && x.dtype() == y.dtype() &&
         std::memcmp(x.bytes(), y.bytes(), static_cast<std::size_t>(x.size()) * size_of(x.dtype())) == 0;
}

template <class E, std::size_t... N>
Tensor<E, N...> counted(int factor) {
  auto r = Tensor<E, N...>::uninitialized();
  for (index_t i = 0; i < r.size(); ++i) r.data()[i] = static_cast<E>(i * factor % 8191 % 201);
  return r;
}

constexpr auto with_bias = [](auto const& x, auto const& y, auto const& row, auto const& column) {
  return (x + transpose(y)) * row + column;
};

template <class E, std::size_t M, std::size_t N>
bool two_axes() {
  auto const x = counted<E, M, N>(1);
  auto const y = counted<E, N, M>(7);
  auto const row = counted<E, M, 1>(3);
  auto const column = counted<E, N>(5);
  return equal_numbers(compile(with_bias)(x, y, row, column),
                       with_bias(Array(x), Array(y), Array(row), Array(column)));
}

}  // namespace

TEST_CASE("maps across the rows of an operand", "[program]") {
  CHECK(two_axes<float, 128, 256>());
  CHECK(two_axes<float, 65, 127>());
  CHECK(two_axes<float, 9000, 1>());
  CHECK(two_axes<float, 3, 3001>());
  CHECK(two_axes<float, 3001, 3>());
  CHECK(two_axes<double, 100, 130>());
  CHECK(two_axes<std::int32_t, 67, 131>());
  CHECK(two_axes<std::uint8_t, 96, 97>());
}

TEST_CASE("maps across the rows of an operand, with axes around", "[program]") {
  auto const x = counted<float, 5, 40, 3, 33>(11);
  auto const last = [](auto const& v) { return permute<0, 2, 3, 1>(v) * 2.0f; };  // channels to the end
  auto const first = [](auto const& v) {
    return permute<3, 1, 2, 0>(v) * 2.0f;
  };  // the outermost runs in lanes
  auto const inner = [](auto const& v) { return abs(permute<0, 1, 3, 2>(v) - 90.0f); };
  CHECK(equal_numbers(compile(last)(x), last(Array(x))));
  CHECK(equal_numbers(compile(first)(x), first(Array(x))));
  CHECK(equal_numbers(compile(inner)(x), inner(Array(x))));
  auto const grow = [](auto const& v) { return permute<1, 0>(flip<1>(v)) + 1.0f; };  // backwards
  auto const y = counted<float, 140, 90>(13);
  CHECK(equal_numbers(compile(grow)(y), grow(Array(y))));
}

// Lanes run along another axis than a short last one, and write it with gaps.
template <class E, std::size_t C>
bool channels_last() {
  auto const x = counted<E, 3, C, 5, 37>(11);
  auto const row = counted<E, C>(3);
  auto const f = [](auto const& v, auto const& w) { return permute<0, 2, 3, 1>(v) * w + w; };
  using P = typename decltype(compile(f))::template program_for<Tensor<E, 3, C, 5, 37>, Tensor<E, C>>;
  // The last dim of the loop is that of the lanes.
  auto const& code = P::plan.code;
  index_t const lanes = code[static_cast<std::size_t>(loop_code::header_size) +
                             static_cast<std::size_t>(code[loop_code::dims]) - 1];
  return lanes == 185 && equal_numbers(compile(f)(x, row), f(Array(x), Array(row)));
}
TEST_CASE("channels that become the last axis", "[program]") {
  CHECK(channels_last<float, 2>());
  CHECK(channels_last<float, 3>());
  CHECK(channels_last<double, 4>());
  CHECK(channels_last<std::int32_t, 3>());
  CHECK(channels_last<std::uint8_t, 3>());
  auto const pixels = [](auto const& v) { return pixel_shuffle<2>(v) + pixel_shuffle<2>(v * v); };
  auto const x = counted<float, 2, 8, 19, 21>(7);
  CHECK(equal_numbers(compile(pixels)(x), pixels(Array(x))));
  Array const planes = Array(counted<float, 3, 777>(5));
  auto const turn = [](auto const& v) { return permute<1, 0>(v) * 2.0f; };
  for (index_t n : {777, 16, 5, 1, 0}) {
    Tensor<float, 3, dyn> const some(slice(planes, 1, 0, n).contiguous());
    CHECK(equal_numbers(compile(turn)(some), turn(Array(some))));
  }
}

TEST_CASE("maps across the rows of an operand of dynamic extents", "[program]") {
  Array const x = Array(counted<float, 130, 90>(3)), y = Array(counted<float, 90, 130>(17));
  auto const f = [](auto const& a, auto const& b) { return exp(-abs(a)) + permute<1, 0>(b); };
  using A = Tensor<float, dyn, dyn>;
  CHECK(max(abs(Array(compile(f)(A(x), A(y))) - f(x, y))).item<float>() < 1e-5f);
}

// What is stored past the caches is 32 MB and more. Elements are checked against the definition, for eager copies of
// that size go past them too.
template <class E, std::size_t M, std::size_t N>
bool large() {
  auto const x = counted<E, M, N>(7);
  auto const turned = compile([](auto const& v) { return abs(transpose(v)); })(x);
  auto const copied = transpose(x).contiguous();
  auto const mapped = compile([](auto const& v) { return v + v; })(x);
  for (std::size_t i = 0; i < M; ++i)
    for (std::size_t k = 0; k < N; ++k) {
      E const e = x.data()[i * N + k];
      if (turned.data()[k * M + i] != e || copied.data()[k * M + i] != e || mapped.data()[i * N + k] != e + e)
        return false;
    }
  return true;
}

TEST_CASE("results too large for caches", "[program]") {
  CHECK(large<float, 2944, 2880>());
  CHECK(large<float, 2897, 2903>());
  CHECK(large<double, 1999, 2112>());
  CHECK(large<std::int32_t, 2912, 2903>());
  // In place: what is written lies where it was read.
  auto x = counted<float, 2944, 2880>(7);
  auto step = stateful([](auto const& s, auto const& by) { return std::pair(sum(s), s + by); });
  float const before = x.data()[12345];
  for (int i = 0; i < 3; ++i) step(x, Tensor<float>(2.0f));
  CHECK(x.data()[12345] == before + 6);
  CHECK(x.data()[x.size() - 1] == counted<float, 2944, 2880>(7).data()[x.size() - 1] + 6);
}

}  // namespace tests::program_crossing
