// SPDX-License-Identifier: BSL-1.0
// Integers of 64 bits whose values are known to be small are numbers of f32 in programs (graph/narrow.hpp).
#include <limits>

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::program_narrow {

namespace {

using namespace dfdx;
using Places = Tensor<std::int64_t, 12>;

// Numbers at places, beside them, and as far away as there are.
Places far_places() {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return Places::from({0, 6, 5, -1, 7, 4294967296, 4294967299, -4294967293, most, -most - 1, 16777217, 3});
}

// Whether loops of a program compute anything in i64 for each element of a row.
template <class P>
constexpr bool has_wide_lanes() {
  auto const& nodes = dfdx::detail::program_graph<P>.nodes;
  for (auto const& node : nodes)
    for (int k = 0; k < node.op->arity; ++k)
      if (nodes[static_cast<std::size_t>(node.in[k])].meta.dtype == DType::i64 && node.op->elementwise &&
          node.meta.shape.numel() > 12)
        return true;
  return false;
}

constexpr auto compared = [](auto const& x) {
  auto const row = unsqueeze<1>(x);
  auto const place = positions<1, 7>(row);
  return std::tuple(row == place, row != place, row<place, row <= place, row> place, row >= place,
                    place < row, place >= row);
};
constexpr auto reckoned = [](auto const& x) {
  auto const row = unsqueeze<1>(x);
  auto const place = positions<1, 7>(row);
  auto const line = positions<0, 12>(row);
  // From -18 to 46, and 0 to 66.
  auto const sum = place * 7 - line * 2 + 4, product = place * line;
  return std::tuple(sum == row, product > row, sum - product <= row, row < place * 3 + line,
                    place + line >= 9, cast<float>(sum), cast<std::int32_t>(product),
                    cast<bool>(place - line));
};
// A window of a matrix, and numbers at places, by literals.
constexpr auto windowed = [](auto const& x) {
  auto const i = arange<std::int64_t, 12>();
  auto const j = Tensor<std::int64_t, 7>::from({0, 3, -16777215, 16777215, 3, -4, 11});
  auto const apart = unsqueeze<1>(i) - unsqueeze<0>(i);
  return std::tuple(apart >= 0 && apart<4, unsqueeze<1>(x)> j, unsqueeze<1>(i) == j,
                    cast<float>(unsqueeze<1>(i) * 3 - unsqueeze<0>(i)));
};
// Products beyond what f32 has stay what they are.
constexpr auto large = [](auto const& x) {
  auto const row = unsqueeze<1>(x);
  auto const place = positions<1, 7>(row) * 4194304;
  auto const bound = Tensor<std::int64_t, 7>::from({0, 1, 2, 3, 4, 5, 16777216});
  return std::tuple(row == bound, place == row, cast<float>(place), cast<std::int32_t>(place));
};

template <class F>
void check_same(F const& f, Places const& x) {
  auto const program = compile(f)(x), called = f(x);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto const check = [](auto const& y, auto const& expected) { CHECK(array_equal(y, expected)); };
    (check(std::get<I>(program), std::get<I>(called)), ...);
  }(std::make_index_sequence<std::tuple_size_v<decltype(called)>>{});
}

}  // namespace

TEST_CASE("positions are compared with numbers that are no positions", "[program]") {
  check_same(compared, far_places());
  check_same(reckoned, far_places());
  check_same(reckoned, far_places() % 50);
  check_same(windowed, far_places());
  check_same(large, far_places());
}

TEST_CASE("positions of programs are not computed in 64 bits", "[program]") {
  STATIC_REQUIRE(!has_wide_lanes<program<decltype(compared), Places>>());
  STATIC_REQUIRE(!has_wide_lanes<program<decltype(reckoned), Places>>());
  STATIC_REQUIRE(!has_wide_lanes<program<decltype(windowed), Places>>());
  STATIC_REQUIRE(has_wide_lanes<program<decltype(large), Places>>());
}

TEST_CASE("one_hot of numbers out of range has no 1", "[program]") {
  auto const f = compile([](Places const& x) { return one_hot<7>(x); });
  auto const ones = Tensor<float, 12>::from({1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(array_equal(sum<1>(f(far_places())), ones));
  auto const good = Places::from({0, 6, 5, 1, 2, 3, 4, 4, 0, 1, 6, 2});
  CHECK(array_equal(f(good), one_hot<7>(good)));
}

}  // namespace tests::program_narrow
