// SPDX-License-Identifier: BSL-1.0
// Compiled reductions of 16-bit numbers against sums in double.
#include "ops/compiled.hpp"

#include <algorithm>

namespace tests::ops_compiled_narrow {

namespace {

using namespace compiled;

constexpr auto columns_reduced = [](auto const& x) {
  return std::tuple(sum<0>(x), prod<0>(x), max<0>(x), min<0>(x));
};

// Long columns, whose sums in 16 bits would come to a halt. `unit` is half the distance of 1 to the next number.
template <class T>
void check_long_sums(double unit) {
  constexpr std::size_t rows = 4096, columns = 8;
  using Matrix = Tensor<T, rows, columns>;
  auto reduce = compile(columns_reduced);
  auto const all_are_4096 = [](auto const& x) {
    for (index_t i = 0; i < x.size(); ++i) CHECK(static_cast<float>(x.data()[i]) == 4096);
  };
  all_are_4096(std::get<0>(reduce(ones<T, rows, columns>())));
  auto const scaled = [](auto const& b, auto const& x) { return sum(x * b); };
  all_are_4096(grad(scaled)(ones<T, columns>(), ones<T, rows, columns>()));
  for (Matrix const& x :
       {uniform<T, rows, columns>(Key{1}, -1, 1), uniform<T, rows, columns>(Key{2}, 0.99, 1.01)}) {
    auto const [sums, products, largest, least] = reduce(x);
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0, size = 0, product = 1, high = -2, low = 2;
      for (std::size_t r = 0; r < rows; ++r) {
        auto const v = static_cast<double>(static_cast<float>(x.data()[r * columns + c]));
        sum += v, size += std::abs(v), product *= v, high = std::max(high, v), low = std::min(low, v);
      }
      auto const at = [c](auto const& of) { return static_cast<double>(static_cast<float>(of.data()[c])); };
      double const adding = rows * 0x1p-24;  // of f32
      CHECK(std::abs(at(sums) - sum) <= unit * std::abs(sum) + adding * size);
      CHECK(std::abs(at(products) - product) <= (unit + adding) * std::abs(product) + 1e-7);
      CHECK(at(largest) == high);
      CHECK(at(least) == low);
    }
  }
}

}  // namespace

TEST_CASE("compiled sums over leading axes in 16 bits are made in f32", "[ops]") {
  check_long_sums<float16>(0x1p-11);
  check_long_sums<bfloat16>(0x1p-8);
}

}  // namespace tests::ops_compiled_narrow
