// SPDX-License-Identifier: BSL-1.0
// The elementary functions on vectors, ours and xsimd's: time for 1024 numbers from the first cache, and the largest
// error of each in units in the last place of the result, against the C library's in a wider type.
#include <dfdx/kernels/lanes.hpp>
#include <dfdx/ops/binary.hpp>
#include <dfdx/ops/exponential.hpp>
#include <dfdx/ops/special.hpp>
#include <dfdx/ops/trigonometric.hpp>
#include <dfdx/ops/unary.hpp>

#include <random>

#include "row.hpp"

namespace {

using namespace dfdx;

template <class T>
using Wider = std::conditional_t<sizeof(T) == 4, double, long double>;
template <class T>
using Lane = xsimd::batch<T>;

// Numbers of a range; of a wide one of positive numbers all exponents alike.
template <class T>
std::vector<T> numbers(std::size_t n, double low, double high, unsigned seed) {
  std::mt19937_64 random(seed);
  bool const by_exponents = low > 0 && high > 1e3 * low;
  std::uniform_real_distribution<double> uniform(by_exponents ? std::log(low) : low,
                                                 by_exponents ? std::log(high) : high);
  std::vector<T> x(n);
  for (T& v : x) v = static_cast<T>(by_exponents ? std::exp(uniform(random)) : uniform(random));
  return x;
}

template <class T>
double error_in_ulp(T got, Wider<T> want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  using L = std::numeric_limits<T>;
  int e = 0;
  std::frexp(want, &e);
  Wider<T> const ulp = std::ldexp(Wider<T>(1), std::max(e, L::min_exponent) - L::digits);
  return static_cast<double>(std::abs(static_cast<Wider<T>>(got) - want) / ulp);
}

// The largest error of f on so many numbers.
template <class T, class F, class Want>
double largest_error(F const& f, Want const& want, double low, double high) {
  constexpr std::size_t n = std::size_t{1} << 18;
  auto const x = numbers<T>(n, low, high, 1), y = numbers<T>(n, low, high, 2);
  double worst = 0;
  alignas(64) T out[Lane<T>::size];
  for (std::size_t i = 0; i < n; i += Lane<T>::size) {
    f(Lane<T>::load_unaligned(&x[i]), Lane<T>::load_unaligned(&y[i])).store_aligned(out);
    for (std::size_t k = 0; k < Lane<T>::size; ++k)
      worst = std::max(worst, error_in_ulp<T>(out[k], want(static_cast<Wider<T>>(x[i + k]),
                                                           static_cast<Wider<T>>(y[i + k]))));
  }
  return worst;
}

// A row of one function; each is called with two operands, of which it may leave one.
template <class T, class Ours, class Theirs, class Want>
void compare(char const* name, double low, double high, Ours const& ours, Theirs const& theirs,
             Want const& want) {
  constexpr std::size_t n = 1024;
  auto const x = numbers<T>(n, low, high, 3), y = numbers<T>(n, low, high, 4);
  std::vector<T> to(n);
  auto const all = [&](auto const& f) {
    return [&] {
      for (std::size_t i = 0; i < n; i += Lane<T>::size)
        f(Lane<T>::load_unaligned(&x[i]), Lane<T>::load_unaligned(&y[i])).store_unaligned(&to[i]);
    };
  };
  double const mine = largest_error<T>(ours, want, low, high),
               its = largest_error<T>(theirs, want, low, high);
  if (!(mine <= 4)) {
    std::fprintf(stderr, "maths: %s is off by %g units in the last place\n", name, mine);
    std::exit(1);
  }
  long const calls = bench::calls_for(all(ours), 1e-3), its_calls = bench::calls_for(all(theirs), 1e-3);
  std::vector<double> a, b;
  for (int round = 0; round < 15; ++round) {
    a.push_back(bench::time_of(all(ours), calls));
    b.push_back(bench::time_of(all(theirs), its_calls));
  }
  char note[60];
  std::snprintf(note, sizeof note, "%.2f ulp; xsimd's %.2f", mine, its);
  bench::Row row{.bench = "maths", .name = std::string(name) + (sizeof(T) == 4 ? " f32" : " f64")};
  row.ours_ms = bench::median(a) * 1e3, row.peer_ms = bench::median(b) * 1e3, row.peer = "xsimd",
  row.note = note;
  row.bytes = 2 * n * sizeof(T);
  bench::print(row);
}

#define DFDX_UNARY(op_name, low, high)                                                      \
  compare<T>(                                                                               \
      #op_name, low, high, [](auto const& x, auto const&) { return op::op_name::eval(x); }, \
      [](auto const& x, auto const&) { return xsimd::op_name(x); },                         \
      [](auto const& x, auto const&) { return std::op_name(x); })
#define DFDX_BINARY(op_name, low, high)                                                          \
  compare<T>(                                                                                    \
      #op_name, low, high, [](auto const& x, auto const& y) { return op::op_name::eval(x, y); }, \
      [](auto const& x, auto const& y) { return xsimd::op_name(x, y); },                         \
      [](auto const& x, auto const& y) { return std::op_name(x, y); })

template <class T>
void all() {
  DFDX_UNARY(exp, -20, 20);
  DFDX_UNARY(exp2, -20, 20);
  DFDX_UNARY(expm1, -5, 5);
  DFDX_UNARY(log, 1e-20, 1e20);
  DFDX_UNARY(log2, 1e-20, 1e20);
  DFDX_UNARY(log10, 1e-20, 1e20);
  DFDX_UNARY(log1p, -0.9, 10);
  DFDX_UNARY(sin, -30, 30);
  DFDX_UNARY(cos, -30, 30);
  DFDX_UNARY(tan, -1.5, 1.5);
  DFDX_UNARY(asin, -1, 1);
  DFDX_UNARY(acos, -1, 1);
  DFDX_UNARY(atan, -10, 10);
  DFDX_UNARY(sinh, -10, 10);
  DFDX_UNARY(cosh, -10, 10);
  DFDX_UNARY(tanh, -5, 5);
  DFDX_UNARY(erf, -4, 4);
  DFDX_UNARY(erfc, -4, 4);
  DFDX_UNARY(lgamma, 0.1, 50);
  DFDX_UNARY(cbrt, -100, 100);
  DFDX_BINARY(pow, 0.1, 10);
  DFDX_BINARY(atan2, -10, 10);
  DFDX_BINARY(hypot, -10, 10);
}

}  // namespace

int main() {
  all<float>();
  all<double>();
}
