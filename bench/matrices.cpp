// SPDX-License-Identifier: BSL-1.0
// Linear algebra of matrices whose size is known, one at a time as controllers and filters need it, against Eigen's
// matrices of fixed size (-DDFDX_BENCH_EIGEN). In double, memory prepared on both sides.
#include <dfdx/dfdx.hpp>

#if defined(DFDX_BENCH_EIGEN)
#include <Eigen/Dense>
#endif

#include "ad/compare.hpp"

namespace {

using namespace dfdx;

#if defined(DFDX_BENCH_EIGEN)

template <int R, int C>
using Their = Eigen::Matrix<double, R, C, C == 1 ? Eigen::ColMajor : Eigen::RowMajor>;
template <int R, int C, class T>
Eigen::Map<Their<R, C> const> their(T const& x) {
  return Eigen::Map<Their<R, C> const>(x.data());
}

// The largest difference of results, as a share of the largest number.
template <class Y, class Z>
double difference(Y const& y, Z const& z) {
  double error = 0, most = 1e-300;
  for (index_t i = 0; i < y.size(); ++i) {
    most = std::max(most, std::abs(z.data()[i]));
    error = std::max(error, std::abs(y.data()[i] - z.data()[i]));
  }
  return error / most;
}
template <class Ours, class Theirs>
void row(char const* name, int n, Ours&& ours, Theirs&& theirs) {
  double const error = difference(ours(), theirs());
  bench::compare("matrices", name, n, ours, theirs, error, "Eigen");
}

template <std::size_t N>
void of_size() {
  constexpr int n = static_cast<int>(N);
  using M = Tensor<double, N, N>;
  M const a = uniform<M>(Key{N}, -1, 1);
  auto const b = uniform<Tensor<double, N, 1>>(Key{N + 50}, -1, 1);
  M const positive = matmul(a, transpose(a)) + eye<double, N, N>();
  Their<n, n> const ea = their<n, n>(a), ep = their<n, n>(positive);
  Their<n, 1> const eb = their<n, 1>(b);
  Their<n, n> y;
  Their<n, 1> x;
  Their<1, 1> number;
  auto keep = [](auto const& result) -> auto const& {
    asm volatile("" : : "r"(result.data()) : "memory");
    return result;
  };
  auto solved = compile([](auto const& m, auto const& v) { return solve(m, v); }).bind(a, b);
  row(
      "solve", n, [&]() -> auto const& { return solved(); },
      [&]() -> auto const& { return keep(x = ea.partialPivLu().solve(eb)); });
  auto inverted = compile([](auto const& m) { return inverse(m); }).bind(a);
  row(
      "inverse", n, [&]() -> auto const& { return inverted(); },
      [&]() -> auto const& { return keep(y = ea.inverse()); });
  auto determined = compile([](auto const& m) { return det(m); }).bind(a);
  row(
      "determinant", n, [&]() -> auto const& { return determined(); },
      [&]() -> auto const& { return number(0) = ea.determinant(), keep(number); });
  auto rooted = compile([](auto const& m) { return cholesky(m); }).bind(positive);
  row(
      "cholesky", n, [&]() -> auto const& { return rooted(); },
      [&]() -> auto const& { return keep(y = ep.llt().matrixL()); });
}

// A measurement of a Kalman filter of N states and two measured numbers: x, p -> the state after it.
template <std::size_t N>
void kalman() {
  constexpr int n = static_cast<int>(N);
  using P = Tensor<double, N, N>;
  auto const f = uniform<P>(Key{1}, -0.3, 0.3);
  auto const h = uniform<Tensor<double, 2, N>>(Key{2}, -1, 1);
  auto const p = P(eye<double, N, N>()), q = P(eye<double, N, N>() * 0.1);
  auto const r = Tensor<double, 2, 2>(eye<double, 2, 2>() * 0.2);
  auto const x = uniform<Tensor<double, N, 1>>(Key{3}, -1, 1);
  auto const z = uniform<Tensor<double, 2, 1>>(Key{4}, -1, 1);
  auto run = compile([](auto const& f_, auto const& h_, auto const& q_, auto const& r_, auto const& p_,
                        auto const& x_, auto const& z_) {
               auto const mean = matmul(f_, x_);
               auto const covariance = matmul(matmul(f_, p_), transpose(f_)) + q_;
               auto const seen = matmul(h_, covariance);
               auto const spread = matmul(seen, transpose(h_)) + r_;
               auto const gain = transpose(solve(spread, seen));
               return std::pair(mean + matmul(gain, z_ - matmul(h_, mean)), covariance - matmul(gain, seen));
             }).bind(f, h, q, r, p, x, z);
  Their<n, n> const ef = their<n, n>(f), eq = their<n, n>(q), ep = their<n, n>(p);
  Their<2, n> const eh = their<2, n>(h);
  Their<2, 2> const er = their<2, 2>(r);
  Their<n, 1> const ex = their<n, 1>(x);
  Their<2, 1> const ez = their<2, 1>(z);
  Their<n, 1> their_mean;
  Their<n, n> their_covariance;
  auto const theirs = [&] {
    Their<n, 1> const mean = ef * ex;
    Their<n, n> const covariance = ef * ep * ef.transpose() + eq;
    Their<2, n> const seen = eh * covariance;
    Their<2, 2> const spread = seen * eh.transpose() + er;
    Their<n, 2> const gain = spread.partialPivLu().solve(seen).transpose();
    their_mean = mean + gain * (ez - eh * mean);
    their_covariance = covariance - gain * seen;
    asm volatile("" : : "r"(their_mean.data()), "r"(their_covariance.data()) : "memory");
  };
  auto const& [mean, covariance] = run();
  theirs();
  double const error = std::max(difference(mean, their_mean), difference(covariance, their_covariance));
  bench::compare("matrices", "Kalman filter, states", n, [&] { run(); }, theirs, error, "Eigen");
}

#endif

}  // namespace

int main() {
#if defined(DFDX_BENCH_EIGEN)
  of_size<3>();
  of_size<4>();
  of_size<6>();
  of_size<12>();
  of_size<16>();
  of_size<32>();
  kalman<4>();
  kalman<6>();
  kalman<9>();
#endif
}
