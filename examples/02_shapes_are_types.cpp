// SPDX-License-Identifier: BSL-1.0
// Lesson 2: shapes are types. Every op works out the shape of its result when the file is compiled, and
// refuses operands that do not fit with one message that names the op and both shapes.
#include <cassert>
#include <iostream>
#include <type_traits>

#include <dfdx/dfdx.hpp>

using namespace dfdx;

// The types below are what the compiler knows; nothing runs.
using Images = Tensor<float, 32, 784>;
using Weights = Tensor<float, 784, 10>;

static_assert(std::is_same_v<decltype(matmul(Images{}, Weights{})), Tensor<float, 32, 10>>);
static_assert(std::is_same_v<decltype(Images{} + Tensor<float, 784>{}), Images>);  // broadcast
static_assert(std::is_same_v<decltype(Tensor<float, 3, 1>{} * Tensor<float, 4>{}), Tensor<float, 3, 4>>);
static_assert(std::is_same_v<decltype(sum<0>(Images{})), Tensor<float, 784>>);
static_assert(std::is_same_v<decltype(reshape<32, 28, -1>(Images{})), Tensor<float, 32, 28, 28>>);
static_assert(std::is_same_v<decltype(transpose(Weights{})), Tensor<float, 10, 784>>);
static_assert(std::is_same_v<decltype(Images{} > 0), Tensor<bool, 32, 784>>);
static_assert(
    std::is_same_v<decltype(Tensor<int, 2>{} + Tensor<double, 2>{}), Tensor<double, 2>>);  // promoted

// This does not compile (tests/compile_fail/matmul_inner.cpp):
//
//     matmul(Tensor<float, 32, 784>{}, Tensor<float, 128, 10>{});
//     error: ... "matmul: inner dimensions differ: [32, 784] x [128, 10]"

// A function says what it takes in the ordinary way, with template arguments for sizes that vary.
template <std::size_t N, std::size_t D>
auto normalised(Tensor<float, N, D> const& x) {
  return x / sqrt(sum<1>(square(x), keepdim));  // [N, D] / [N, 1]
}

// `dyn` is a size that only the running program knows. What is known besides is still checked.
Tensor<float, dyn, 10> scores(Tensor<float, dyn, 784> const& images, Weights const& w) {
  return matmul(images, w);
}

int main() {
  auto x = normalised(randn<float, 5, 3>(Key{1}));
  for (auto const& row : x) assert(std::abs(sum(square(row)).item() - 1) < 1e-5f);

  auto w = zeros<Weights>();
  auto images = Tensor<float, dyn, 784>(ones({7, 784}));
  assert(scores(images, w).shape()[0] == 7);

  // Where a dyn size turns out wrong, the same words come as an exception.
  try {
    auto a = Tensor<float, 2, dyn>(ones({2, 3}));
    auto b = Tensor<float, dyn, 2>(ones({4, 2}));
    static_cast<void>(matmul(a, b));
    assert(!"a wrong size was not refused");
  } catch (error const& refusal) {
    std::cout << refusal.what() << "\n";
    assert(std::string(refusal.what()) == "matmul: inner dimensions differ: [2, 3] x [4, 2]");
  }
}
