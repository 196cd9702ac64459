// SPDX-License-Identifier: BSL-1.0
// Tensors from lists of numbers: flat, as rows, as matrices.
#include <dfdx/vocabulary/shape.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include <vector>

namespace tests::value_tensor {

using namespace dfdx;

namespace {

template <class T>
std::vector<double> elements(Array const& x) {
  std::vector<double> r;
  for (index_t i = 0; i < x.size(); ++i) r.push_back(static_cast<double>(x.data<T>()[i]));
  return r;
}
using Numbers = std::vector<double>;

// Columns, and one number, in braces: each element could be a row or a number.
template <class T>
void check_columns() {
  CHECK(elements<T>(Tensor<T, 2, 1>::from({{1}, {2}})) == Numbers{1, 2});
  CHECK(elements<T>(Tensor<T, 1, 1>::from({{1}})) == Numbers{1});
  CHECK(elements<T>(Tensor<T, 2, 1>::from({1, 2})) == Numbers{1, 2});
  CHECK(elements<T>(Tensor<T, 3>::from({1, 2, 3})) == Numbers{1, 2, 3});
  CHECK(elements<T>(Tensor<T, 1, 1, 1>::from({{{1}}})) == Numbers{1});
  CHECK(elements<T>(Tensor<T, 2, 1, 1>::from({{{1}}, {{2}}})) == Numbers{1, 2});
  CHECK(elements<T>(Tensor<T, 1, 2, 1>::from({{{1}, {2}}})) == Numbers{1, 2});
  CHECK(elements<T>(Tensor<T, 1, 1, 2>::from({{{1, 2}}})) == Numbers{1, 2});
}

}  // namespace

TEST_CASE("nested lists are rows, however few", "[value]") {
  check_columns<float>();
  check_columns<double>();
  check_columns<float16>();
  check_columns<bfloat16>();
  check_columns<std::int32_t>();
  check_columns<std::int64_t>();
  check_columns<std::uint8_t>();
  CHECK(elements<bool>(Tensor<bool, 2, 1>::from({{true}, {false}})) == Numbers{1, 0});
  CHECK(elements<float>(Tensor<float, 2, 3>::from({{1, 2, 3}, {4, 5, 6}})) == Numbers{1, 2, 3, 4, 5, 6});
  CHECK(elements<double>(Tensor<double, 2, 2, 2>::from({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}})) ==
        Numbers{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(elements<double>(Tensor<double, 2, 1, 2>::from({1, 2, 3, 4})) == Numbers{1, 2, 3, 4});
}

TEST_CASE("nested lists give dyn dims their extents", "[value]") {
  CHECK(Tensor<float, dyn, 1>::from({{1}, {2}, {3}}).shape() == make_shape(3, 1));
  CHECK(Tensor<float, dyn, dyn>::from({{1}, {2}}).shape() == make_shape(2, 1));
  CHECK(Tensor<float, dyn, dyn, dyn>::from({{{1, 2}}}).shape() == make_shape(1, 1, 2));
  CHECK(Tensor<float, dyn, dyn>::from({}).shape() == make_shape(0, 0));
  CHECK(Tensor<float, dyn, 2>::from({1, 2, 3, 4}).shape() == make_shape(2, 2));
}

TEST_CASE("lists that are not the tensor's shape are refused", "[value]") {
  CHECK_THROWS_WITH((Tensor<float, 2, 1>::from({{1}, {2}, {3}})),
                    "tensor: f32 [2, 1] required, got f32 [3, 1]");
  CHECK_THROWS_WITH((Tensor<float, 2, 2>::from({{1, 2}, {3}})), "from: rows of different lengths");
  CHECK_THROWS_WITH((Tensor<float, 2, 2, 1>::from({{{1}, {2}}, {{3}}})),
                    "from: matrices of different numbers of rows");
  CHECK_THROWS_WITH((Tensor<float, 2, 1, 2>::from({{{1, 2}}, {{3}}})), "from: rows of different lengths");
  CHECK_THROWS_WITH((Tensor<float, 2, 1, 2>::from({{{1, 2}}})),
                    "tensor: f32 [2, 1, 2] required, got f32 [1, 1, 2]");
  CHECK_THROWS_WITH((Tensor<float, 2, 1>::from({1, 2, 3})), "from: 3 elements for shape [2, 1]");
}

TEST_CASE("indices out of range are named as they were given", "[value]") {
  auto const x = Tensor<float, 3, 2>::from({1, 2, 3, 4, 5, 6});
  using Catch::Matchers::Message;
  CHECK_THROWS_MATCHES(static_cast<void>(x[-1]), error,
                       Message("at: index -1 out of range for axis 0 of [3, 2]"));
  CHECK_THROWS_MATCHES(x(1, -2), error, Message("at: index -2 out of range for axis 1 of [3, 2]"));
  CHECK_THROWS_MATCHES(x(1, 2), error, Message("at: index 2 out of range for axis 1 of [3, 2]"));
}

}  // namespace tests::value_tensor
