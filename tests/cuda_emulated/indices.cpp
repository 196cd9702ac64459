// SPDX-License-Identifier: BSL-1.0
// Ops that move elements to computed places, on the emulated device.
#include "emulated.hpp"
#include "support.hpp"

#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/linalg.hpp>

namespace tests::cuda_emulated_indices {

using namespace emulated;
using tests::error_of;

namespace {

constexpr auto rows_of = [](auto const& table, auto const& index) { return take(table, index); };
constexpr auto embedding_loss = [](auto const& table, auto const& index, auto const& w) {
  return sum(take(table, index) * w);
};
constexpr auto chosen = [](auto const& x, auto const& index) { return gather<1>(x, index); };
constexpr auto chosen_loss = [](auto const& x, auto const& index) {
  return sum(square(gather<1>(x, index)));
};
constexpr auto chosen_first = [](auto const& x, auto const& index) { return sum(exp(gather<0>(x, index))); };
constexpr auto chosen_sum = [](auto const& x, auto const& index) { return sum(gather<0>(x, index)); };
constexpr auto entropy = [](auto const& x, auto const& labels) { return cross_entropy(x, labels); };
// Has no kernel for devices.
constexpr auto factor = [](auto const& x) { return cholesky(x) * 2.0; };

template <class T, class... N>
T indices(index_t below, N... n) {
  T x = filled<T>(1, n...);
  using E = typename T::value_type;
  auto* const p = reinterpret_cast<E*>(x.bytes());
  for (index_t i = 0; i < x.size(); ++i) p[i] = static_cast<E>(i * i * 7 % below);
  return x;
}

}  // namespace

TEST_CASE("rows by index, and their gradients in order", "[cuda]") {
  using Table = Tensor<float, 11, 35>;
  auto const w = filled<Tensor<float, 300, 35>>(2);
  REQUIRE(apart(rows_of, filled<Table>(1), indices<Tensor<std::int32_t, 300>>(11)) == 0);
  REQUIRE(apart(rows_of, filled<Tensor<float16, 11, 3, 4>>(1), indices<Tensor<std::int64_t, 5, 6>>(11)) == 0);
  REQUIRE(apart(rows_of, filled<Tensor<double, dyn>>(1, 9), indices<Tensor<std::uint8_t, dyn>>(9, 40)) == 0);
  REQUIRE(apart(rows_of, filled<Tensor<double, dyn>>(1, 9), indices<Tensor<std::uint8_t, dyn>>(9, 0)) == 0);
  REQUIRE(apart(grad(embedding_loss), filled<Table>(1), indices<Tensor<std::int32_t, 300>>(11), w) == 0);
  REQUIRE(apart(grad(embedding_loss), filled<Tensor<float, dyn, 35>>(1, 11, 35),
                indices<Tensor<std::int64_t, 300>>(11), w) == 0);
  // In 16 bits as on the CPU, which adds in f32: 600 ones, which come to 256 in bf16.
  REQUIRE(apart(grad(embedding_loss), filled<Tensor<bfloat16, 2, 35>>(1),
                indices<Tensor<std::int32_t, 1200>>(2), ones<bfloat16, 1200, 35>()) == 0);
}
TEST_CASE("rows of many indices, few indices and none", "[cuda]") {
  // In the order of the indices: in f32 these sums depend on it.
  auto const loss = [](auto const& table, auto const& index, auto const& w) {
    return sum(take(table, index) * w);
  };
  using Rows = Tensor<float, dyn, 3>;
  using Index = Tensor<std::int64_t, dyn>;
  for (index_t const n : {0, 1, 7, 8, 9, 1024, 1025, 5000})
    for (index_t const rows : {1, 3, 4000}) {
      CAPTURE(n, rows);
      auto const table = filled<Rows>(1, rows, 3);
      auto const w = filled<Rows>(5, n, 3);
      REQUIRE(apart(grad(loss), table, indices<Index>(rows, n), w) == 0);
    }
  // More keys than 16 bits have, and one row for all.
  auto far = indices<Index>(100000, 3000);
  REQUIRE(apart(grad(loss), filled<Rows>(1, 100000, 3), far, filled<Rows>(2, 3000, 3)) == 0);
}
TEST_CASE("of parts for one place the last is copied, of many too", "[cuda]") {
  constexpr auto put = [](auto const& x, auto const& at, auto const& src) {
    return index_copy<0>(x, at, src);
  };
  using Rows = Tensor<float, dyn, 3>;
  using Index = Tensor<std::int64_t, dyn>;
  for (index_t const n : {0, 1, 255, 256, 257, 3000})
    for (index_t const rows : {1, 5, 2000}) {
      CAPTURE(n, rows);
      REQUIRE(apart(put, filled<Rows>(1, rows, 3), indices<Index>(rows, n), filled<Rows>(9, n, 3)) == 0);
    }
}
TEST_CASE("elements along an axis, and their gradients in order", "[cuda]") {
  auto const x = filled<Tensor<float, 6, 13>>(1);
  REQUIRE(apart(chosen, x, indices<Tensor<std::int32_t, 6, 20>>(13)) == 0);
  REQUIRE(apart(chosen, x, indices<Tensor<std::int64_t, 4, 1>>(13)) == 0);
  REQUIRE(apart(grad(chosen_loss), x, indices<Tensor<std::int32_t, 6, 20>>(13)) < 1e-6);
  REQUIRE(apart(grad(chosen_first), x, indices<Tensor<std::int32_t, 9, 13>>(6)) < 1e-5);
  REQUIRE(apart(grad(chosen_sum), filled<Tensor<float16, 2, 3>>(1),
                indices<Tensor<std::int32_t, 5000, 3>>(2)) == 0);
  REQUIRE(apart(grad(entropy), x, indices<Tensor<std::int32_t, 6>>(13)) < 1e-6);
}
// Rows and elements added to a value, or put there: by a program, and in the place of a state.
template <class F, class X, class I, class S>
bool same_onto(F const& f, X const& x, I const& at, S const& src, double bound) {
  bool same = apart(f, x, at, src) <= bound;
  for (auto const turns : {cuda_fake::Turns::forward, cuda_fake::Turns::shuffled}) {
    InTurns const order(turns);
    auto here = x.clone();
    auto there = to(cuda(), here);
    auto on_cpu = stateful(f), on_gpu = stateful(f);
    for (int k = 0; k < 3; ++k) {
      on_cpu(here, at, src);
      on_gpu(there, to(cuda(), at), to(cuda(), src));
      same = same && difference(numbers(there), numbers(here)) <= 3 * bound;
    }
  }
  return same;
}
TEST_CASE("elements and rows are added to a value", "[cuda]") {
  auto const add_rows = [](auto const& x, auto const& i, auto const& src) { return index_add<0>(x, i, src); };
  auto const add_columns = [](auto const& x, auto const& i, auto const& src) {
    return index_add<1>(x, i, src, 0.5);
  };
  auto const add = [](auto const& x, auto const& i, auto const& src) { return scatter_add<1>(x, i, src); };
  auto const put = [](auto const& x, auto const& i, auto const& src) { return scatter<0>(x, i, src); };
  auto const x = filled<Tensor<float, 40, 13>>(1);
  CHECK(same_onto(add_rows, x, indices<Tensor<std::int32_t, 300>>(40), filled<Tensor<float, 300, 13>>(2),
                  1e-6));
  CHECK(same_onto(add_columns, x, indices<Tensor<std::int64_t, 30>>(13), filled<Tensor<float, 40, 30>>(2),
                  1e-6));
  CHECK(same_onto(add, x, indices<Tensor<std::int64_t, 21, 30>>(13), filled<Tensor<float, 21, 30>>(2), 1e-6));
  CHECK(same_onto(put, x, indices<Tensor<std::uint8_t, 5, 11>>(40), filled<Tensor<float, 5, 11>>(2), 0));
  CHECK(same_onto(add_rows, filled<Tensor<bfloat16, 2, 13>>(1), indices<Tensor<std::int32_t, 900>>(2),
                  ones<bfloat16, 900, 13>(), 0));
  // Derivatives of what is kept, and of what replaces it.
  constexpr auto loss = [](auto const& x_, auto const& src, auto const& i) {
    return sum(square(scatter<0>(x_, i, src))) + sum(exp(index_add<1>(x_, i[0], transpose(src))));
  };
  auto const at = Tensor<std::int64_t, 1, 3>::from({{2, 0, 1}});
  CHECK(apart(grad(loss, wrt<0, 1>), filled<Tensor<double, 3, 3>>(1), filled<Tensor<double, 3, 3>>(3), at) <
        1e-12);
}
TEST_CASE("an index out of range is said when a result is read", "[cuda]") {
  auto const table = to(cuda(), filled<Tensor<float, 11, 35>>(1));
  auto index = indices<Tensor<std::int32_t, 300>>(11);
  auto f = compile(rows_of);
  index(7) = 11;
  auto const wrong = f(table, to(cuda(), index));
  REQUIRE(error_of([&] { static_cast<void>(numbers(wrong)); }) ==
          "take: index 11 out of range for 11 on cuda:0: what was computed since is void");
  index(7) = -1;
  auto g = compile(grad(embedding_loss));
  auto const w = to(cuda(), filled<Tensor<float, 300, 35>>(2));
  auto const also = g(table, to(cuda(), index), w);
  REQUIRE(
      error_of([&] { static_cast<void>(numbers(also)); }).starts_with("take: index -1 out of range for 11"));
  index(7) = 0;
  REQUIRE(numbers(f(table, to(cuda(), index))).size() == 300 * 35);
  auto labels = indices<Tensor<std::int32_t, 6>>(13);
  labels(2) = 13;
  auto h = compile(entropy);
  auto const x = to(cuda(), filled<Tensor<float, 6, 13>>(1));
  REQUIRE(error_of([&] { static_cast<void>(numbers(h(x, to(cuda(), labels)))); }) ==
          "cross_entropy: label 13 out of range for 13 classes on cuda:0: what was computed since is void");
}
TEST_CASE("ops without a kernel for devices run on the CPU, on copies", "[cuda]") {
  auto a = filled<Tensor<double, 5, 5>>(1);
  for (index_t i = 0; i < 5; ++i)
    for (index_t j = 0; j < 5; ++j) a(i, j) = i == j ? 6.0 : 0.1 * static_cast<double>(i + j);
  REQUIRE(apart(factor, a) < 1e-14);
  auto const x = to(cuda(), a);
  auto f = compile(factor);
  int const replays = machine().replays;
  for (int k = 0; k < 3; ++k) static_cast<void>(numbers(f(x)));
  REQUIRE(machine().replays == replays);
}

}  // namespace tests::cuda_emulated_indices
