// SPDX-License-Identifier: BSL-1.0
// Compiled matrix products: all transpositions, vectors, batches, epilogues, element types.
#include "ops/compiled.hpp"

#include <limits>

#include <dfdx/vocabulary/margin_loss.hpp>
#include <dfdx/vocabulary/svd.hpp>

namespace tests::ops_compiled_matmul {

namespace {

using namespace compiled;

template <class T>
void check_products() {
  auto const a = uniform<T, 7, 5>(Key{1}, -1, 1);
  auto const b = uniform<T, 5, 9>(Key{2}, -1, 1);
  auto const v = uniform<T, 5>(Key{3}, -1, 1);
  auto const row = uniform<T, 9>(Key{4}, -1, 1);
  constexpr auto f = [](auto const& a, auto const& b, auto const& v, auto const& row) {
    return std::tuple(matmul(a, b), matmul(transpose(b), transpose(a)), matmul(a, v), matmul(v, b),
                      matmul(v, v), tanh(matmul(a, b) + row), matmul(a, b) * 2.0 + matmul(a, b * 0.5),
                      matmul(transpose(a), a));
  };
  check(f, a, b, v, row);
  if constexpr (is_floating(dtype_v<T>)) check_vjp(f, a, b, v, row);
}

}  // namespace

TEST_CASE("compiled products in f32", "[ops]") { check_products<float>(); }
TEST_CASE("compiled products in f64", "[ops]") { check_products<double>(); }
TEST_CASE("compiled products of other dtypes", "[ops]") {
  constexpr auto f = [](auto const& a, auto const& b) {
    return std::tuple(matmul(a, b), matmul(transpose(b), transpose(a)));
  };
  check(f, uniform<float16, 4, 7>(Key{1}, -1, 1), uniform<float16, 7, 3>(Key{2}, -1, 1));
  check(f, uniform<bfloat16, 4, 7>(Key{1}, -1, 1), uniform<bfloat16, 7, 3>(Key{2}, -1, 1));
  check(f, randint<std::int32_t, 4, 7>(Key{1}, -5, 5), randint<std::int32_t, 7, 3>(Key{2}, -5, 5));
  check(f, uniform<float, 3, 0>(Key{1}), uniform<float, 0, 2>(Key{2}));
}

TEST_CASE("compiled batched products", "[ops]") {
  constexpr auto f = [](auto const& a, auto const& b, auto const& m) {
    return std::tuple(matmul(a, b), matmul(a, m), matmul(transpose(a), a), matmul(transpose(m), b));
  };
  check(f, uniform<float, 2, 3, 6, 5>(Key{1}, -1, 1), uniform<float, 3, 5, 4>(Key{2}, -1, 1),
        uniform<float, 5, 4>(Key{3}, -1, 1));
  check_vjp(f, uniform<double, 2, 3, 6, 5>(Key{1}, -1, 1), uniform<double, 3, 5, 4>(Key{2}, -1, 1),
            uniform<double, 5, 4>(Key{3}, -1, 1));
}

TEST_CASE("compiled products by name", "[ops]") {
  constexpr auto f = [](auto const& a, auto const& b, auto const& w) {
    return std::tuple(einsum<"bij,bjk->bik">(a, b), einsum<"bij,bij->jb">(a, a), einsum<"bii->b">(w),
                      einsum<"bij,bjk,bkl->il">(a, b, transpose(b)),
                      bilinear(select<1, 0>(a), select<1, 1>(a), w), kron(select<0, 0>(a), select<0, 1>(b)),
                      outer(select<0, 0>(select<0, 0>(b)), select<0, 0>(select<1, 0>(w))),
                      baddbmm(select<0, 0>(w), a, transpose(b), 0.5),
                      addmm(select<0, 0>(b), transpose(select<0, 0>(a)), select<0, 0>(a), 2, 3),
                      dot(select<0, 0>(select<0, 0>(a)), select<0, 1>(select<0, 1>(b))),
                      cross<1>(slice<1, 0, 3>(a), select<0, 1>(slice<1, 1, 4>(b))));
  };
  check(f, uniform<float, 2, 4, 4>(Key{1}, -1, 1), uniform<float, 2, 4, 4>(Key{2}, -1, 1),
        uniform<float, 4, 4, 4>(Key{3}, -1, 1));
  check_vjp(f, uniform<double, 2, 4, 4>(Key{1}, -1, 1), uniform<double, 2, 4, 4>(Key{2}, -1, 1),
            uniform<double, 4, 4, 4>(Key{3}, -1, 1));
}

TEST_CASE("compiled linear algebra", "[ops]") {
  constexpr auto f = [](auto const& a, auto const& b) {
    auto const definite = matmul(a, transpose(a)) + 1.0;
    auto const [q, r] = qr(a);
    return std::tuple(solve(a, b), solve_triangular(a, b, true), solve_triangular(a, b), cholesky(definite),
                      q, r, inverse(a), det(a), logdet(definite), solve(a, select<1, 0>(b)));
  };
  check(f, uniform<double, 3, 3>(Key{1}, -1, 1), uniform<double, 3, 2>(Key{2}, -1, 1));
  check_vjp(f, uniform<double, 3, 3>(Key{1}, -1, 1), uniform<double, 3, 2>(Key{2}, -1, 1));
  check([](auto const& a, auto const& b) { return std::tuple(solve(a, b), det(a), std::get<1>(qr(a))); },
        uniform<float, 2, 3, 3>(Key{4}, -1, 1), uniform<float, 3, 2>(Key{5}, -1, 1));
}

TEST_CASE("compiled eigenvalues and eigenvectors", "[ops]") {
  constexpr auto f = [](auto const& a) {
    auto const [values, vectors] = eigh(a + transpose(a));
    return std::tuple(values, square(vectors), eigvalsh(a));
  };
  check(f, uniform<float, 2, 4, 4>(Key{3}, -1, 1));
  check_vjp(f, uniform<double, 4, 4>(Key{3}, -1, 1));
}

TEST_CASE("compiled singular values and pseudoinverses", "[ops]") {
  constexpr auto f = [](auto const& a) {
    auto const [u, s, vt] = svd(a);
    return std::tuple(square(u), s, square(vt), svdvals(a), pinv(a), matrix_norm(a, 2), matrix_norm(a, "nuc"),
                      cond(a));
  };
  check(f, uniform<float, 2, 4, 3>(Key{3}, -1, 1));
  check([](auto const& a) { return std::tuple(matrix_rank(a), std::get<1>(svd(a)), pinv(a)); },
        uniform<float, 2, 4, 3>(Key{3}, -1, 1));
  check_vjp(f, uniform<double, 3, 4>(Key{3}, -1, 1));
}

TEST_CASE("compiled exponentials of matrices", "[ops]") {
  constexpr auto f = [](auto const& a) { return std::tuple(matrix_exp(a), matrix_exp(transpose(a) * 3.0)); };
  check(f, uniform<float, 2, 3, 3>(Key{3}, -1, 1));
  check_vjp(f, uniform<double, 4, 4>(Key{3}, -1, 1));
}

TEST_CASE("compiled distances of all pairs", "[ops]") {
  constexpr auto f = [](auto const& a, auto const& b) {
    return std::tuple(cdist(a, b), cdist(a, b, 1), cdist(a, b, std::numeric_limits<double>::infinity()),
                      cdist(a, a, 3));
  };
  check(f, uniform<float, 2, 5, 3>(Key{3}, -1, 1), uniform<float, 4, 3>(Key{4}, -1, 1));
  check_vjp(f, uniform<double, 2, 5, 3>(Key{3}, -1, 1), uniform<double, 4, 3>(Key{4}, -1, 1));
}

TEST_CASE("compiled second derivatives of determinants", "[ops]") {
  constexpr auto cofactors = [](auto const& a) {
    return std::tuple(dfdx::detail::by_factors<"det">(a, [&](auto const& factors) {
      return dfdx::detail::call(dfdx::detail::Fixed<dfdx::detail::Plain<op::cofactors>{}>{}, a, factors);
    }));
  };
  check_vjp(cofactors, uniform<double, 3, 3>(Key{1}, -1, 1));
  check_vjp(cofactors, uniform<double, 2, 5, 5>(Key{2}, -1, 1));
}

}  // namespace tests::ops_compiled_matmul
