// SPDX-License-Identifier: BSL-1.0
// Compiled programs of functions that other files have none of: other names, parts of matrices, sequences.
#include "ops/compiled.hpp"

#include <dfdx/vocabulary/activation.hpp>
#include <dfdx/vocabulary/attention.hpp>
#include <dfdx/vocabulary/ctc_loss.hpp>
#include <dfdx/vocabulary/linalg.hpp>
#include <dfdx/vocabulary/linear.hpp>
#include <dfdx/vocabulary/parts.hpp>
#include <dfdx/vocabulary/split.hpp>

namespace tests::ops_compiled_aliases {

namespace {

using namespace compiled;

constexpr auto matrices = [](auto const& a, auto const& b) {
  auto const square = matmul(a, transpose(a));
  auto const [sign, log_size] = slogdet(square + 1.0);
  auto const [rows, columns] = meshgrid(select<0, 0>(a), select<1, 0>(a));
  auto const [first, second] = chunk<2, 1>(a * 2.0);
  auto const [low, high] = split<3, 1>(tanh(b));
  return std::tuple(mm(a, b), clip(a * 2.0, -1, 1), linear(a, transpose(b)),
                    linear(a, transpose(b), select<0, 0>(b)), linear(a, select<1, 0>(b)), diag(square),
                    diag<1>(select<1, 0>(a) * 3.0), sign, log_size, rows * 2.0, columns, first * 0.5, second,
                    low, high, swapaxes<0, 1>(exp(a)), triu(square), tril(square, -1), trace(square),
                    outer(select<1, 0>(a), select<0, 1>(b)), cat<1>(a * 2.0, a, square));
};
constexpr auto batches = [](auto const& a, auto const& b) {
  auto const scores = bmm(a, b);
  return std::tuple(scores, scores + alibi_bias(scores), swapaxes<0, -1>(tanh(a)));
};

}  // namespace

TEST_CASE("compiled parts and products of matrices", "[ops]") {
  check(matrices, uniform<float, 3, 4>(Key{1}, -1, 1), uniform<float, 4, 5>(Key{2}, -1, 1));
  check_vjp(matrices, uniform<double, 3, 4>(Key{1}, -1, 1), uniform<double, 4, 5>(Key{2}, -1, 1));
}

TEST_CASE("compiled products of batches", "[ops]") {
  check(batches, uniform<float, 2, 3, 4>(Key{1}, -1, 1), uniform<float, 2, 4, 3>(Key{2}, -1, 1));
  check_vjp(batches, uniform<double, 2, 3, 4>(Key{1}, -1, 1), uniform<double, 2, 4, 3>(Key{2}, -1, 1));
}

TEST_CASE("compiled alignment of sequences", "[ops]") {
  auto const labels = Tensor<std::int32_t, 2, 2>::from({1, 2, 3, 0});
  auto const frames = Tensor<std::int32_t, 2>::from({4, 3}), sizes = Tensor<std::int32_t, 2>::from({2, 1});
  constexpr auto f = [](auto const& x, auto const& y, auto const& n, auto const& m) {
    return std::tuple(ctc_loss(log_softmax<2>(x), y, n, m));
  };
  check(f, uniform<float, 4, 2, 4>(Key{1}, -1, 1), labels, frames, sizes);
  check_vjp(f, uniform<double, 4, 2, 4>(Key{1}, -1, 1), labels, frames, sizes);
  // The same labels one after another.
  auto const line = Tensor<std::int32_t, 3>::from({1, 2, 3});
  check(f, uniform<float, 4, 2, 4>(Key{1}, -1, 1), line, frames, sizes);
  check_vjp(f, uniform<double, 4, 2, 4>(Key{1}, -1, 1), line, frames, sizes);
  auto const x = uniform<double, 4, 2, 4>(Key{1}, -1, 1);
  auto const [of_line] = compile(f)(x, line, frames, sizes);
  auto const [of_rows] = compile(f)(x, labels, frames, sizes);
  CHECK(allclose(of_line, of_rows));
}

}  // namespace tests::ops_compiled_aliases
