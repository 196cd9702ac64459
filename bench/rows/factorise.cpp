// SPDX-License-Identifier: BSL-1.0
// Linear algebra called on Tensors: matrices of some hundred rows, and many small ones at a time; with gradients too.
#include "works.hpp"

namespace {

using namespace dfdx;

template <class T>
constexpr index_t rows_of = T::static_shape[T::static_rank - 1];

template <class T>
T regular(std::uint64_t seed) {
  return T(bench::numbers<T>(seed) + eye(rows_of<T>) * std::sqrt(static_cast<double>(rows_of<T>)));
}
template <class T>
T symmetric(std::uint64_t seed) {
  T const x = bench::numbers<T>(seed);
  return T((x + transpose<-2, -1>(x)) * 0.5f);
}
template <class T>
T positive(std::uint64_t seed) {
  T const x = bench::numbers<T>(seed);
  return T(matmul(x, transpose<-2, -1>(x)) / static_cast<float>(rows_of<T>) + eye(rows_of<T>));
}

// f of inputs, and its gradients with the cotangent `ct`, as called on the tape.
template <class F, class Ct, class... X>
auto with_gradients(F const& f, Ct const& ct, X const&... x) {
  return [&f, &ct, leaves = std::tuple(X(x.clone())...)]() mutable {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      (std::get<I>(leaves).requires_grad(true), ...);
      auto const y = f(std::get<I>(leaves)...);
      auto const g = gradients(sum(y * ct), {std::get<I>(leaves)...});
      return std::tuple<Ct, X...>(y.detach(), X(g[I])...);
    }(std::index_sequence_for<X...>{});
  };
}

template <class T, class F>
void of_one(std::string const& what, char const* work, T const& a, F const& f, double tolerance = 1e-4) {
  auto const ct = bench::numbers<std::remove_cvref_t<decltype(f(a))>>(9);
  bench::compare_works({"factorise", what, work, tolerance}, [&] { return f(a); }, bench::plain(a));
  bench::compare_works({"factorise", what + ", with gradient", work, 10 * tolerance},
                       with_gradients(f, ct, a), bench::wanted(a), bench::plain(ct));
}
template <class T, class B>
void systems(std::string const& size, T const& a, B const& b) {
  auto const f = [](auto const& m, auto const& right) { return solve(m, right); };
  auto const ct = bench::numbers<B>(9);
  bench::compare_works(
      {"factorise", "solve " + size, "solve", 1e-4}, [&] { return f(a, b); }, bench::plain(a),
      bench::plain(b));
  bench::compare_works({"factorise", "solve " + size + ", with gradients", "solve", 1e-3},
                       with_gradients(f, ct, a, b), bench::wanted(a), bench::wanted(b), bench::plain(ct));
}

constexpr auto factor = [](auto const& m) { return cholesky(m); };
constexpr auto inverted = [](auto const& m) { return inverse(m); };
constexpr auto both_of_qr = [](auto const& m) {
  auto const [q, r] = qr(m);
  return concat<-2>(q, r);
};
constexpr auto eigenvalues = [](auto const& m) { return std::get<0>(eigh(m)); };
constexpr auto orthogonal = [](auto const& m) {
  auto const [u, s, vt] = svd(m);
  return matmul(u, vt);
};
constexpr auto singular = [](auto const& m) { return svdvals(m); };
constexpr auto pseudoinverse = [](auto const& m) { return pinv(m); };
constexpr auto to_exponential = [](auto const& m) { return matrix_exp(m); };

}  // namespace

int main() {
  of_one("cholesky 256", "cholesky", positive<Tensor<float, 256, 256>>(1), factor);
  of_one("cholesky 200 of 16", "cholesky", positive<Tensor<float, 200, 16, 16>>(2), factor);
  of_one("qr 256", "qr", regular<Tensor<float, 256, 256>>(3), both_of_qr, 1e-3);
  of_one("inverse 256", "inverse", regular<Tensor<float, 256, 256>>(4), inverted);
  of_one("inverse 1000 of 3", "inverse", regular<Tensor<float, 1000, 3, 3>>(5), inverted, 1e-3);
  systems("256, 8 right sides", regular<Tensor<float, 256, 256>>(6),
          bench::numbers<Tensor<float, 256, 8>>(7));
  systems("200 of 16, 4 right sides", regular<Tensor<float, 200, 16, 16>>(8),
          bench::numbers<Tensor<float, 200, 16, 4>>(10));
  of_one("eigenvalues 64", "eigenvalues", symmetric<Tensor<float, 64, 64>>(11), eigenvalues);
  of_one("eigenvalues 1000 of 3", "eigenvalues", symmetric<Tensor<float, 1000, 3, 3>>(12), eigenvalues);
  of_one("eigenvalues 256", "eigenvalues", symmetric<Tensor<float, 256, 256>>(13), eigenvalues, 1e-3);
  of_one("u v^T of svd 64", "orthogonal", regular<Tensor<float, 64, 64>>(14), orthogonal, 1e-3);
  of_one("u v^T of svd 256", "orthogonal", regular<Tensor<float, 256, 256>>(15), orthogonal, 1e-3);
  of_one("u v^T of svd 1000 of 3", "orthogonal", regular<Tensor<float, 1000, 3, 3>>(16), orthogonal, 1e-3);
  of_one("singular values 64", "singular values", regular<Tensor<float, 64, 64>>(14), singular);
  of_one("pinv 200 x 30", "pseudoinverse", bench::numbers<Tensor<float, 200, 30>>(17), pseudoinverse, 1e-3);
  of_one("exponential 64", "exponential", bench::numbers<Tensor<float, 64, 64>>(18), to_exponential);
  of_one("exponential 1000 of 3", "exponential", bench::numbers<Tensor<float, 1000, 3, 3>>(19),
         to_exponential);
}
