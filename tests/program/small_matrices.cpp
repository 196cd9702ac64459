// SPDX-License-Identifier: BSL-1.0
// Linear algebra of matrices whose size a program knows has kernels of its own: they agree with those for any size, the
// derivatives too, and refuse the same.
#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>

namespace tests::program_small_matrices {

namespace {

using namespace dfdx;

auto const everything = [](auto const& a, auto const& b) {
  auto const [sign, log] = slogdet(a);
  auto const positive = matmul(a, transpose(a)) + a * 0.0 + 0.5 * inverse(matmul(a, transpose(a)));
  auto const l = cholesky(positive);
  return std::tuple(solve(a, b), inverse(a), det(a), sign, log, l, solve_triangular(l, b),
                    solve_triangular(transpose(l), b, true));
};
auto const size_of_all = [](auto const& a, auto const& b) {
  auto const [x, inv, d, sign, log, l, low, high] = everything(a, b);
  return sum(square(x)) + sum(square(inv)) + sum(d) + sum(sign * log) + sum(square(l)) + sum(low * high);
};

// Rows in an order that asks for exchanges, but far from singular.
template <class M>
M matrices(std::uint64_t key) {
  M const noise = uniform<M>(Key{key}, -0.5, 0.5);
  constexpr auto n = static_cast<index_t>(M::static_shape[M::static_rank - 1]);
  return M(noise + flip(eye(n, noise.dtype()), {0}) * 3.0);
}

template <class T, std::size_t N, std::size_t K, std::size_t... B>
void agrees() {
  INFO(N << " x " << N << ", " << K << " right sides, " << sizeof(T) << " bytes");
  using M = Tensor<T, B..., N, N>;
  auto const a = matrices<M>(N);
  auto const b = uniform<Tensor<T, B..., N, K>>(Key{K + 100}, -1, 1);
  double const near = sizeof(T) == 8 ? 1e-11 : 2e-4;
  auto const same = [&](auto const& x, auto const& y) {
    CHECK(testing::error_ratio(Array(x), Array(y), near, near) <= 1);
  };
  auto const compiled = compile(everything)(a, b);
  auto const called = everything(a, b);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (same(std::get<I>(compiled), std::get<I>(called)), ...);
  }(std::make_index_sequence<std::tuple_size_v<decltype(compiled)>>{});
  // On the tape they are those for any size.
  auto const [da, db] = grad(size_of_all, Wrt<0, 1>{})(a, b);
  Array x = Array(a).clone(), y = Array(b).clone();
  x.requires_grad(true), y.requires_grad(true);
  auto const taped = gradients(size_of_all(M(x), Tensor<T, B..., N, K>(y)), {x, y});
  same(da, taped[0]);
  same(db, taped[1]);
}

}  // namespace

TEST_CASE("small matrices in programs", "[program]") {
  agrees<double, 1, 1>();
  agrees<double, 2, 1>();
  agrees<double, 3, 3>();
  agrees<double, 4, 1, 3>();
  agrees<double, 5, 2>();
  agrees<double, 8, 1>();
  agrees<double, 11, 16>();
  agrees<double, 16, 1>();
  agrees<float, 3, 1, 2, 2>();
  agrees<float, 6, 4>();
  // For any size: matrices or right sides beyond those.
  agrees<double, 17, 1>();
  agrees<double, 4, 17>();
}

namespace {

// How many steps of a program are ops of that size class, and how many of these have kernels for known sizes.
struct Steps {
  int all = 0, sized = 0;
  constexpr bool operator==(Steps const&) const = default;
};
template <class P, int S>
constexpr void count(Steps& r, Sized what) {
  if constexpr (P::plan.steps[static_cast<std::size_t>(S)].kind == graph::Step::Kind::opaque) {
    using Step = dfdx::detail::SizedStep<P, S>;
    if (Step::own.sized != what) return;
    ++r.all;
    // By what runs: not that for any size.
    if (dfdx::detail::own_kernel<P, S>() != &dfdx::detail::run_opaque<P, S>) ++r.sized;
  }
}
template <class P>
Steps steps_of(Sized what) {
  Steps r;
  [&]<int... S>(std::integer_sequence<int, S...>) {
    (count<P, S>(r, what), ...);
  }(std::make_integer_sequence<int, static_cast<int>(P::plan.steps.size())>{});
  return r;
}
// Of `everything`, with one solve: with cofactors, up to four rows, nothing but it needs factors of a.
template <class T, std::size_t N, std::size_t K, std::size_t... B>
void chooses(bool sized) {
  INFO(N << " x " << N << ", " << K << " right sides");
  using P = typename decltype(compile(
      everything))::template program_for<Tensor<T, B..., N, N>, Tensor<T, B..., N, K>>;
  auto const is = [&](Sized what, int all) { return steps_of<P>(what) == Steps{all, sized ? all : 0}; };
  CHECK(is(Sized::solve, 1));
  CHECK(is(Sized::inverse, 2));
  CHECK(is(Sized::determinant, 3));
  CHECK(is(Sized::cholesky, 1));
  // (Not of the transpose, which is a view.)
  CHECK(steps_of<P>(Sized::solve_triangular) == Steps{2, !sized ? 0 : N == 1 ? 2 : 1});
  CHECK(steps_of<P>(Sized::lu).sized == (sized ? steps_of<P>(Sized::lu).all : 0));
  CHECK(steps_of<P>(Sized::lu).all > 0);
}

}  // namespace

TEST_CASE("programs take the kernels for known sizes where there are such", "[program]") {
  chooses<double, 1, 1>(true);
  chooses<double, 4, 4>(true);
  chooses<float, 3, 2, 5>(true);
  chooses<double, 16, 16>(true);
  chooses<double, 17, 17>(false);
  chooses<float, 20, 20, 2>(false);
  // Right sides that are many take those for any size, the factors do not.
  using Wide = typename decltype(compile([](auto const& a, auto const& b) {
    return solve(a, b);
  }))::template program_for<Tensor<double, 4, 4>, Tensor<double, 4, 17>>;
  CHECK(steps_of<Wide>(Sized::solve) == Steps{1, 0});
  CHECK(steps_of<Wide>(Sized::lu) == Steps{1, 1});
  // Of gradients: cofactors, and solve again.
  using Back = typename decltype(value_and_grad(
      [](auto const& a) { return sum(square(det(a))); }))::template program_for<Tensor<double, 3, 6, 6>>;
  CHECK(steps_of<Back>(Sized::cofactors) == Steps{1, 1});
  CHECK(steps_of<Back>(Sized::lu) == Steps{1, 1});
  // Rows whose number the program learns later.
  using Many = typename decltype(compile(
      [](auto const& a) { return cholesky(a); }))::template program_for<Tensor<double, dyn, 4, 4>>;
  CHECK(steps_of<Many>(Sized::cholesky) == Steps{1, 0});
}

TEST_CASE("small matrices that have no inverse, in programs", "[program]") {
  Tensor<double, 3, 3> const none{{1, 2, 3}, {2, 4, 6}, {1, 0, 1}};
  Tensor<double, 3> const one{1, 1, 1};
  CHECK_THROWS_WITH(compile([](auto const& a, auto const& b) { return solve(a, b); })(none, one),
                    "solve: the matrix is singular");
  CHECK_THROWS_WITH(compile([](auto const& a) { return inverse(a); })(none),
                    "inverse: the matrix is singular");
  CHECK_THROWS_WITH(compile([](auto const& a) { return inv(a); })(none), "inv: the matrix is singular");
  CHECK_THROWS_WITH(compile([](auto const& a) { return cholesky(a); })(none),
                    "cholesky: the matrix is not positive definite");
  auto const [value, sign, log] = compile([](auto const& a) {
    auto const [s, l] = slogdet(a);
    return std::tuple(det(a), s, l);
  })(none);
  CHECK(value.item() == 0);
  CHECK(sign.item() == 0);
  CHECK(log.item() == -HUGE_VAL);
}

TEST_CASE("inverses of very large and very small matrices", "[program]") {
  // Beyond what cofactors can do; and rows of which one is small.
  auto inverted = compile([](Tensor<double, 4, 4> const& a) { return std::pair(inverse(a), det(a)); });
  auto const a = matrices<Tensor<double, 4, 4>>(4);
  for (double const scale : {1e-300, 1e-150, 1e-60, 1e-40, 1.0, 1e40, 1e75, 1e150, 1e300}) {
    INFO(scale);
    auto const scaled = Tensor<double, 4, 4>(a * scale);
    for (Array const& x : {Array(inverse(scaled)), Array(inverted(scaled).first)})
      CHECK(testing::error_ratio(x * scale, inverse(Array(a)), 1e-12, 1e-12) <= 1);
  }
  auto const one_small = Tensor<double, 4, 4>(a * Tensor<double, 4, 1>{{1}, {1e-155}, {1}, {1}} *
                                              Tensor<double, 4, 1>{{1}, {1e-60}, {1}, {1}});
  CHECK(testing::error_ratio(matmul(inverse(one_small), one_small), eye(4, DType::f64), 1e-10, 1e-10) <= 1);
  double const scale = 1e-70, wanted = det(a).item() * 1e-280;
  for (double const d :
       {det(Tensor<double, 4, 4>(a * scale)).item(), inverted(Tensor<double, 4, 4>(a * scale)).second.item()})
    CHECK(std::abs(d - wanted) <= 1e-12 * std::abs(wanted));
}

TEST_CASE("a determinant is exact where its factors are", "[program]") {
  Tensor<double, 2, 2> const a{{1, 2}, {3, 4}};
  CHECK(det(a).item() == -2);
  CHECK(compile([](auto const& x) { return det(x); })(a).item() == -2);
}

}  // namespace tests::program_small_matrices
