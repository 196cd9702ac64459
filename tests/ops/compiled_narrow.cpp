// SPDX-License-Identifier: BSL-1.0
// Compiled reductions of 16-bit numbers against sums in double, and numbers beside 16 bits.
#include "ops/compiled.hpp"

#include <dfdx/tape/backward.hpp>

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

constexpr auto with_numbers = [](auto const& x) {
  return std::tuple(x * 0.1, 0.1 - x, x / 3, x * 2, maximum(x, 0.3), pow(x, 0.3), x + 70001.0);
};
constexpr auto compared = [](auto const& x) {
  return std::tuple(x == 0.1, x > 0.1, x <= 0.1, x != 257, x != 257l);
};

// What f gives of x in memory, of arrays, on the tape and as a program: all the same, to the last bit.
template <class F, class X>
std::vector<Array> agreed(F const& f, X const& x) {
  Array on_tape = x.detach();
  on_tape.requires_grad(true);
  std::vector<Array> const r = leaves(compile(f)(x));
  for (std::vector<Array> const& other : {leaves(f(x)), leaves(f(Array(x))), leaves(f(on_tape))}) {
    REQUIRE(other.size() == r.size());
    for (std::size_t i = 0; i < r.size(); ++i) {
      INFO("result " << i << ", " << name_of(x.dtype()));
      CHECK(other[i].dtype() == r[i].dtype());
      CHECK(array_equal(other[i].detach(), r[i]));
    }
  }
  check_on_device(compile(f), r, x);
  return r;
}
template <class T>
void check_numbers() {
  auto const x = uniform<T, 67>(Key{1}, 0.25, 4);
  std::vector<Array> const r = agreed(with_numbers, x);
  for (index_t i = 0; i < x.size(); ++i) {
    auto const v = static_cast<float>(x.data()[i]);
    float const want[] = {v * 0.1f, 0.1f - v, v / 3, v * 2, std::max(v, 0.3f)};
    for (std::size_t k = 0; k < std::size(want); ++k)
      CHECK(r[k].template data<T>()[i].bits == T(want[k]).bits);
    CHECK(static_cast<float>(r[6].template data<T>()[i]) == static_cast<float>(T(v + 70001.0f)));
  }
  // As the element that is set to it: 257 is none of bf16's numbers.
  auto const set = Tensor<T, 4>::from({T(0.1f), T(0.2f), T(0.05f), T(257.0f)});
  std::vector<Array> const truths = agreed(compared, set);
  bool const want[5][4] = {{true, false, false, false},
                           {false, true, false, true},
                           {true, false, true, false},
                           {true, true, true, false},
                           {true, true, true, false}};
  for (std::size_t k = 0; k < 5; ++k)
    for (index_t i = 0; i < 4; ++i) CHECK(truths[k].template data<bool>()[i] == want[k][i]);
  // Gradients of a factor that is none of T's numbers.
  Array y = x.detach();
  y.requires_grad(true);
  sum(y * 0.1).backward();
  for (index_t i = 0; i < y.size(); ++i) CHECK(y.grad().template data<T>()[i].bits == T(0.1f).bits);
}

// Sums of what is at equal places come to no halt either: gradients of rows and elements, and what is added to zeros.
template <class T>
void check_places() {
  constexpr std::size_t n = 2048;
  auto const row = zeros<std::int64_t, n>();
  auto const column = zeros<std::int64_t, n, 1>();
  auto const ones_there = ones<T, n, 3>();
  auto const table = ones<T, 2, 3>();
  auto const line = ones<T, 2, 1>();
  auto const sums_of = [&](auto const& grad_of_table, auto const& grad_of_line, auto const& added,
                           auto const& put) {
    for (Array const& x : {Array(grad_of_table), Array(grad_of_line), Array(added), Array(put)}) {
      Array const sums = cast_to(x, DType::f64);
      for (index_t i = 0; i < sums.size(); ++i)
        CHECK(sums.template data<double>()[i] == (i < sums.size() / 2 ? n : 0));
    }
  };
  constexpr auto of_table = [](auto const& w, auto const& i) { return sum(take(w, i)); };
  constexpr auto of_line = [](auto const& w, auto const& i) { return sum(gather<0>(w, i)); };
  constexpr auto of_rows = [](auto const& w, auto const& i, auto const& x) {
    return index_add<0>(zeros_like(w), i, x);
  };
  constexpr auto of_places = [](auto const& w, auto const& i, auto const& x) {
    return scatter_add<0>(zeros_like(w), i, x);
  };
  auto const thin = ones<T, n, 1>();
  sums_of(grad(of_table)(table, row), grad(of_line)(line, column), compile(of_rows)(table, row, ones_there),
          compile(of_places)(line, column, thin));
  Array w = table, l = line;
  w.requires_grad(true), l.requires_grad(true);
  of_table(w, Array(row)).backward();
  of_line(l, Array(column)).backward();
  sums_of(w.grad(), l.grad(), of_rows(Array(table), Array(row), Array(ones_there)),
          of_places(Array(line), Array(column), transpose(Array(ones<T, 1, n>()))));
}

}  // namespace

TEST_CASE("numbers beside 16 bits are computed with as floats, and compared as 16 bits hold them", "[ops]") {
  check_numbers<float16>();
  check_numbers<bfloat16>();
}

TEST_CASE("compiled sums over leading axes in 16 bits are made in f32", "[ops]") {
  check_long_sums<float16>(0x1p-11);
  check_long_sums<bfloat16>(0x1p-8);
}

TEST_CASE("16-bit numbers at equal places are added in f32", "[ops]") {
  check_places<float16>();
  check_places<bfloat16>();
}

}  // namespace tests::ops_compiled_narrow
