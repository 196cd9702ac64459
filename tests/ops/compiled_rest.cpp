// SPDX-License-Identifier: BSL-1.0
// Compiled programs of ops that no other file has two of: random numbers, copies, parts put in, weights of
// convolutions.
#include "ops/compiled.hpp"

#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/random.hpp>
#include <dfdx/vocabulary/scatter_reduce.hpp>
#include <dfdx/vocabulary/tensor_methods.hpp>

namespace tests::ops_compiled_rest {

namespace {

using namespace compiled;

constexpr auto noise = [](auto const& x, auto const& key) {
  return std::tuple(uniform_like(x, key), randn_like(x, key) + x, dropout(x * 2.0, 0.5, key));
};
constexpr auto copies = [](auto const& x) {
  auto const y = x.clone();
  return std::tuple(y * 2.0, tanh(transpose(x).clone()));
};
constexpr auto parts = [](auto const& x, auto const& at, auto const& columns) {
  return std::tuple(index_copy<1>(x, at, columns), tanh(index_copy<0>(transpose(x), at, transpose(columns))));
};
constexpr auto joined = [](auto const& x, auto const& at, auto const& list, auto const& src) {
  return std::tuple(scatter_reduce<1, Reduce::amax>(x, at, src),
                    scatter_reduce<1, Reduce::mean, false>(x, at, src),
                    index_reduce<1, Reduce::prod>(x, list, src));
};
constexpr auto joined_turned = [](auto const& x, auto const& at, auto const& list, auto const& src) {
  auto const columns = transpose(x);
  auto const added = transpose(src);
  return std::tuple(scatter_reduce<0, Reduce::prod, false>(columns, transpose(at), added),
                    index_reduce<0, Reduce::amin, false>(columns, list, added),
                    scatter_reduce<0, Reduce::mean>(columns, transpose(at), added) * 2.0);
};
// Of any direction: cumprod and its gradient are made of it.
template <index_t Axis, index_t From>
struct Recurrence {
  constexpr Meta infer(Meta const* in, Text* why) const { return op::recurrence::infer(attrs(), in, why); }
  template <class, class V>
  constexpr V run(Meta const&, V const& a, V const& b) const {
    return dfdx::bind<op::recurrence>(attrs(), a, b);
  }
  static constexpr Attrs attrs() { return {{Axis, From}}; }
};
template <index_t Axis, index_t From>
constexpr auto recurrence(auto const& a, auto const& b) {
  return detail::call(detail::named<"recurrence">(detail::Fixed<Recurrence<Axis, From>{}>{}), a, b);
}
constexpr auto recurrences = [](auto const& a, auto const& b) {
  return std::tuple(recurrence<0, 0>(a, b), recurrence<1, 0>(a, b) * 2.0, tanh(recurrence<1, 3>(a, b)));
};
// Programs have norms as the ops that they are made of: as one op they are in memory.
template <op::NormOptions O>
struct Standardize {
  constexpr Meta infer(Meta const* in, Text* why) const { return op::standardize::infer(O.attrs(), in, why); }
  template <class, class V>
  constexpr V run(Meta const&, V const& x, V const& weight, V const& bias) const {
    return dfdx::bind<op::standardize>(O.attrs(), x, weight, bias);
  }
};
template <op::NormOptions O>
constexpr auto standardized(auto const& x, auto const& weight, auto const& bias) {
  return detail::call(detail::named<"standardize">(detail::Fixed<Standardize<O>{}>{}), x, weight, bias);
}
constexpr auto norms = [](auto const& x, auto const& weight, auto const& bias) {
  return std::tuple(
      standardized<op::NormOptions{.axis = 1}>(x, weight, bias),
      tanh(standardized<op::NormOptions{.axis = 1, .groups = 2, .centred = false}>(x, weight, bias)) * 2.0);
};
constexpr auto filtered = [](auto const& x, auto const& w) { return conv1d(x, w); };

}  // namespace

TEST_CASE("compiled random numbers", "[ops]") {
  check(noise, uniform<float, 3, 5>(Key{1}, -1, 1), Tensor<std::int64_t>(7));
  check(noise, uniform<double, 17>(Key{1}, -1, 1), Tensor<std::int64_t>(8));
}

TEST_CASE("compiled copies", "[ops]") {
  check(copies, uniform<float, 3, 5>(Key{1}, -1, 1));
  check_vjp(copies, uniform<double, 3, 5>(Key{1}, -1, 1));
}

TEST_CASE("compiled parts put in", "[ops]") {
  auto const at = Tensor<std::int64_t, 2>::from({4, 1});
  check(parts, uniform<float, 3, 5>(Key{1}, -1, 1), at, uniform<float, 3, 2>(Key{2}, -1, 1));
  check(parts, randint<std::int32_t, 2, 6>(Key{1}, -9, 9), at, randint<std::int32_t, 2, 2>(Key{2}, -9, 9));
  check_vjp(parts, uniform<double, 3, 5>(Key{1}, -1, 1), at, uniform<double, 3, 2>(Key{2}, -1, 1));
}

TEST_CASE("compiled scatter_reduce and index_reduce", "[ops]") {
  Tensor<std::int64_t, 3, 4> const at{{0, 4, 4, 2}, {1, 1, 1, 1}, {3, 0, 2, 0}};
  Tensor<std::int32_t, 4> const list{4, 0, 4, 1};
  auto const x = uniform<double, 3, 5>(Key{1}, -2, 2);
  auto const src = uniform<double, 3, 4>(Key{2}, -2, 2);
  check(joined, x, at, list, src);
  check_vjp(joined, x, at, list, src);
  check(joined, cast<bfloat16>(x), at, list, cast<bfloat16>(src));
  check(joined_turned, x, at, list, src);
}

TEST_CASE("compiled recurrences", "[ops]") {
  check(recurrences, uniform<float, 3, 5>(Key{1}, -1, 1), uniform<float, 3, 5>(Key{2}, -1, 1));
  check(recurrences, uniform<double, 4, 2, 3>(Key{1}, -1, 1), uniform<double, 4, 2, 3>(Key{2}, -1, 1));
  check_vjp(recurrences, uniform<double, 3, 5>(Key{1}, -1, 1), uniform<double, 3, 5>(Key{2}, -1, 1));
}

TEST_CASE("compiled norms of one step", "[ops]") {
  auto const w = uniform<double, 6>(Key{2}, -1, 1), b = uniform<double, 6>(Key{3}, -1, 1);
  check(norms, uniform<double, 3, 6>(Key{1}, -1, 1), w, b);
  check(norms, uniform<float, 4, 6>(Key{1}, -1, 1), uniform<float, 6>(Key{2}, -1, 1),
        uniform<float, 6>(Key{3}, -1, 1));
  check_vjp(norms, uniform<double, 3, 6>(Key{1}, -1, 1), w, b);
  check_vjp(norms, uniform<double, 2, 6>(Key{1}, -1, 1), w, b);
}

TEST_CASE("a compiled convolution with one window is a product", "[ops]") {
  using P = program<std::remove_const_t<decltype(filtered)>, Tensor<float, 2, 3, 5>, Tensor<float, 4, 3, 5>>;
  int products = 0;
  for (auto const& n : P::graph().graph.nodes) products += n.op != nullptr && n.op->code == Code::matmul;
  CHECK(products == 1);
  check(filtered, uniform<float, 2, 3, 5>(Key{1}, -1, 1), uniform<float, 4, 3, 5>(Key{2}, -1, 1));
  check_vjp(filtered, uniform<double, 3, 5>(Key{1}, -1, 1), uniform<double, 4, 3, 5>(Key{2}, -1, 1));
}

TEST_CASE("compiled gradients of the weights of a convolution", "[ops]") {
  check_vjp(filtered, uniform<double, 2, 2, 9>(Key{1}, -1, 1), uniform<double, 3, 2, 4>(Key{2}, -1, 1));
}

}  // namespace tests::ops_compiled_rest
