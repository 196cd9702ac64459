// SPDX-License-Identifier: BSL-1.0
// Printed arrays.
#include <dfdx/value/print.hpp>
#include <dfdx/vocabulary/create.hpp>
#include <dfdx/vocabulary/shape.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <sstream>

namespace tests::value_print {

using namespace dfdx;

TEST_CASE("columns are aligned and whole numbers stay whole", "[print]") {
  CHECK(to_string(Tensor<float, 2, 3>::from({{1, 2, 3}, {4, 5, 60}})) ==
        "[[ 1.,  2.,  3.],\n [ 4.,  5., 60.]]");
  CHECK(to_string(Tensor<float, 3>::from({0.5f, -1, 10})) == "[ 0.5000, -1.0000, 10.0000]");
  CHECK(to_string(from({1.0f, NAN, -INFINITY})) == "[  1.,  nan, -inf]");
  CHECK(to_string(Tensor<float>(2.5f)) == "2.5000");
  CHECK(to_string(make_shape(2, 3)) == "[2, 3]");
  CHECK(to_string(DType::bf16) == "bf16");
  std::ostringstream out;
  out << transpose(Tensor<float, 2, 2>::from({{1, 2}, {3, 4}}));
  CHECK(out.str() == "[[1., 3.],\n [2., 4.]]");
  std::ostringstream facts;
  facts << make_shape(2, 3) << " " << DType::bf16 << " " << Shape{};
  CHECK(facts.str() == "[2, 3] bf16 []");
}

TEST_CASE("a wide range of sizes is written with exponents", "[print]") {
  CHECK(to_string(from({1e-6f, 1.0f})) == "[1.0000e-06, 1.0000e+00]");
  CHECK(to_string(from({0.25f, 1000.0f})) == "[2.5000e-01, 1.0000e+03]");
  CHECK(to_string(from({0.5f, 500.0f})) == "[  0.5000, 500.0000]");
  CHECK(to_string(from({1.0f, 5000.0f})) == "[   1., 5000.]");
}

TEST_CASE("other dtypes say so", "[print]") {
  CHECK(to_string(arange(3)) == "[0, 1, 2] i64");
  CHECK(to_string(Tensor<bool, 2>::from({true, false})) == "[ true, false] bool");
  CHECK(to_string(full({2}, 1.5, DType::bf16)) == "[1.5000, 1.5000] bf16");
  CHECK(to_string(from({std::int64_t{9007199254740993}})) == "[9007199254740993] i64");
}

TEST_CASE("matrices of a stack are set apart", "[print]") {
  CHECK(to_string(reshape(arange(8), {2, 2, 2})) == "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]] i64");
}

TEST_CASE("long rows are wrapped, long arrays summarised", "[print]") {
  CHECK(to_string(arange(1001)) == "[   0,    1,    2, ...,  998,  999, 1000] i64");
  std::string const row = to_string(arange(100));
  CHECK(row.find("...") == std::string::npos);
  std::istringstream lines(row);
  int n = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    CHECK(line.size() <= 84);
    CHECK(line.back() != ' ');
  }
  CHECK(n == 6);
  std::string const matrix = to_string(reshape(arange(10000), {100, 100}));
  CHECK(matrix.find("[[   0,    1,    2, ...,   97,   98,   99],\n") == 0);
  CHECK(matrix.find("\n ...,\n [9700, 9701, 9702, ..., 9797, 9798, 9799],\n") != std::string::npos);
}

TEST_CASE("values without elements or memory say what they are", "[print]") {
  CHECK(to_string(zeros({0, 3})) == "[] f32 [0, 3]");
  CHECK(to_string(Tensor<float, dyn, 3>{}) == "<no memory, f32 [dyn, 3]>");
  Graph g;
  Array const recorded(&g, 0, Meta{DType::f64, make_shape(2)});
  CHECK(to_string(recorded) == "<recorded f64 [2]>");
}

}  // namespace tests::value_print
