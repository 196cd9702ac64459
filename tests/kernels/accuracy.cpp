// SPDX-License-Identifier: BSL-1.0
// The elementary functions on vectors, in units in the last place, over everything that the type can hold; f32 against
// the platform's double, f64 against its long double. Special values as the platform's (C99, annex F). Prints a table.
#include <dfdx/core/special_math.hpp>
#include <dfdx/kernels/lanes.hpp>
#include <dfdx/ops/rounding.hpp>
#include <dfdx/ops/unary.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tests::kernels_accuracy {

namespace {

using namespace dfdx;

template <class T>
using Wider = std::conditional_t<sizeof(T) == 4, double, long double>;

// A function of one or two operands: on vectors, and wider.
template <class T>
struct Function {
  using Lane = kernels::lane<T>;
  using W = Wider<T>;
  char const* name;
  Lane (*got)(Lane const&, Lane const&);
  W (*want)(W, W);
  double bound;
  // Where it is not the error in ulp of the result that is bounded (near zeros that no short formula knows), the
  // size of what the result is the difference of.
  W (*scale)(W, W) = nullptr;
};

// The spacing of numbers of type T around x.
template <class T>
Wider<T> ulp(Wider<T> x) {
  using L = std::numeric_limits<T>;
  int e = 0;
  if (x == 0 || !std::isfinite(x)) e = L::min_exponent;
  else std::frexp(x, &e);
  return std::ldexp(Wider<T>(1), std::max(e, L::min_exponent) - L::digits);
}

template <class T>
Wider<T> error_in_ulp(T got, Wider<T> want, Wider<T> scale) {
  using L = std::numeric_limits<T>;
  if (std::isnan(want)) return std::isnan(got) ? 0 : L::infinity();
  if (std::isnan(got)) return L::infinity();
  // What rounds to infinity is as right as infinity, and the largest number next to it.
  Wider<T> const beyond = std::ldexp(Wider<T>(1), L::max_exponent);
  auto const finite = [&](Wider<T> v) { return std::clamp(v, -beyond, beyond); };
  Wider<T> const w = finite(want);
  return std::abs(finite(got) - w) / ulp<T>(std::max(std::abs(w), scale));
}

// psi in double or wider: recurrence, then Stirling's series; near its zero a Taylor series.
template <class W>
W digamma_of(W x) {
  W const near = (x - W(0x1.762d86356be3fp+0)) - W(9.5499954299656977152e-17L);
  if (std::abs(near) < W(0.05)) {
    W sum = 0;
    for (W c : {W(-0.003369801655439328082792857L), W(0.004926781395729853446354266L),
                W(-0.007204534386356868240970474L), W(0.01053879161661217538812405L),
                W(-0.01542476590494895913880032L), W(0.02259764823221810465962483L),
                W(-0.0331611264748473592922584L), W(0.04880428816414310722509253L),
                W(-0.07219956125645471092612178L), W(0.1078240506912623657571829L),
                W(-0.1639427054424065275042513L), W(0.2584997609556510106244014L),
                W(-0.4427631689835921060928653L), W(0.9676722454476211704274448L)})
      sum = sum * near + c;
    return sum * near;
  }
  if (x == 0) return -std::copysign(std::numeric_limits<W>::infinity(), x);
  if (x < 0) {
    W const r = x - std::nearbyint(x), pi = 3.14159265358979323846264338327950288L;
    if (r == 0) return std::numeric_limits<W>::quiet_NaN();
    return digamma_of(1 - x) - pi / std::tan(pi * r);
  }
  W sum = 0;
  for (; x < 30; x += 1) sum -= 1 / x;
  W const z = 1 / (x * x);
  W const series =
      z * (W(1) / 12 - z * (W(1) / 120 - z * (W(1) / 252 - z * (W(1) / 240 - z * (W(1) / 132)))));
  return sum + (std::log(x) - 1 / (2 * x) - series);
}

// digamma of negative numbers is a difference: near its zeros there the wider type has places enough for some of the
// result's only. Those are checked against numbers from elsewhere, below.
template <class W>
W reflected_digamma(W x, W) {
  W const mirrored = digamma_of(1 - x);
  return x < 0 && std::isfinite(x) ? (std::abs(mirrored) + std::abs(digamma_of(x) - mirrored)) / 256 : 0;
}

template <int N, class W>
W power_of(W x) {
  if constexpr (N == 0) return 1;
  else return x * power_of<N - 1>(x);
}

// n! times Hurwitz' zeta of n + 1, for n = 1, 2, 3, by its series up to 40 and Euler and Maclaurin's formula; of
// negative numbers by the derivatives of pi cot(pi x).
template <int N, class W>
W polygamma_of(W x) {
  W const pi = 3.14159265358979323846264338327950288L, sign = N % 2 == 0 ? -1 : 1;
  if (x == 0) return N % 2 == 0 ? std::numeric_limits<W>::quiet_NaN() : std::numeric_limits<W>::infinity();
  if (x < 0) {
    W const r = x - std::nearbyint(x), turned = std::copysign(std::tan(pi * (W(0.5) - std::abs(r))), r);
    W const c = std::abs(r) < W(0.25) ? 1 / std::tan(pi * r) : turned, d = 1 + c * c;
    if (r == 0) return polygamma_of<N>(W(0));
    W const derivative = N == 1   ? -pi * d
                         : N == 2 ? 2 * pi * pi * c * d
                                  : -2 * pi * pi * pi * d * (1 + 3 * c * c);
    return -sign * polygamma_of<N>(1 - x) - pi * derivative;
  }
  W const factorial = N == 3 ? 2 : 1;  // (n - 1)!
  W sum = 0;
  for (; x < 40; x += 1) sum += N / power_of<N + 1>(x);
  W const z = 1 / (x * x);
  W series = 0, coefficient = W(N) * (N + 1);  // n (n + 1) ... (n + 2 k - 1) / (2 k)!
  W const bernoulli[] = {W(1) / 6, -W(1) / 30, W(1) / 42, -W(1) / 30, W(5) / 66, -W(691) / 2730};
  W power = z;
  for (int k = 1; k <= 6; ++k) {
    coefficient = k == 1 ? W(N) * (N + 1) / 2
                         : coefficient * (N + 2 * k - 2) * (N + 2 * k - 1) / ((2 * k - 1) * (2 * k));
    series += bernoulli[k - 1] * coefficient * power;
    power *= z;
  }
  return sign * factorial * (sum + (1 + N / (2 * x) + series) / power_of<N>(x));
}
// The size of the two sums, on either side of a pole, whose difference it is for even n.
template <int N, class W>
W reflected_polygamma(W x, W) {
  return x < 0 && x != std::nearbyint(x) ? std::abs(polygamma_of<N>(std::abs(x - std::nearbyint(x)))) : 0;
}

// As Python's //, from the exact quotient.
template <class W>
W floor_quotient(W x, W y) {
  if (y == 0 || !std::isfinite(x) || std::isnan(y)) return std::isinf(x) && y != 0 ? x - x : x / y;
  W const r = std::fmod(x, y), q = std::nearbyint((x - r) / y);
  if (r != 0 && (r < 0) != (y < 0)) return q - 1;
  return q == 0 ? std::copysign(W(0), x / y) : q;
}

// As Python's %.
template <class W>
W remainder_of(W x, W y) {
  W const r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
template <class W>
W logaddexp_of(W x, W y) {
  if (x == y) return x + std::log(W(2));  // also of infinities
  return std::max(x, y) + std::log1p(std::exp(-std::abs(x - y)));
}
// Two terms cancel where e^x + e^y is about 1.
template <class W>
W cancelled_logaddexp(W x, W y) {
  W const m = std::max(x, y);
  return m < 0 && m > -1 ? std::max(-m, std::log1p(std::exp(-std::abs(x - y)))) : 0;
}

template <class T>
std::vector<Function<T>> functions() {
  using Lane = kernels::lane<T>;
  using L = Lane const&;
  using W = Wider<T>;
  return {
      {"exp", [](L x, L) { return math::exp(x); }, [](W x, W) { return std::exp(x); }, 2},
      {"exp2", [](L x, L) { return math::exp2(x); }, [](W x, W) { return std::exp2(x); }, 2},
      {"expm1", [](L x, L) { return math::expm1(x); }, [](W x, W) { return std::expm1(x); }, 2},
      {"log", [](L x, L) { return math::log(x); }, [](W x, W) { return std::log(x); }, 2},
      {"log2", [](L x, L) { return math::log2(x); }, [](W x, W) { return std::log2(x); }, 2},
      {"log10", [](L x, L) { return math::log10(x); }, [](W x, W) { return std::log10(x); }, 2},
      {"log1p", [](L x, L) { return math::log1p(x); }, [](W x, W) { return std::log1p(x); }, 2},
      {"sqrt", [](L x, L) { return math::sqrt(x); }, [](W x, W) { return std::sqrt(x); }, 0.5},
      {"cbrt", [](L x, L) { return math::cbrt(x); }, [](W x, W) { return std::cbrt(x); }, 2},
      {"sin", [](L x, L) { return math::sin(x); }, [](W x, W) { return std::sin(x); }, 2},
      {"cos", [](L x, L) { return math::cos(x); }, [](W x, W) { return std::cos(x); }, 2},
      {"tan", [](L x, L) { return math::tan(x); }, [](W x, W) { return std::tan(x); }, 2},
      {"asin", [](L x, L) { return math::asin(x); }, [](W x, W) { return std::asin(x); }, 2},
      {"acos", [](L x, L) { return math::acos(x); }, [](W x, W) { return std::acos(x); }, 2},
      {"atan", [](L x, L) { return math::atan(x); }, [](W x, W) { return std::atan(x); }, 2},
      {"sinh", [](L x, L) { return math::sinh(x); }, [](W x, W) { return std::sinh(x); }, 2},
      {"cosh", [](L x, L) { return math::cosh(x); }, [](W x, W) { return std::cosh(x); }, 2},
      {"tanh", [](L x, L) { return math::tanh(x); }, [](W x, W) { return std::tanh(x); }, 2},
      {"asinh", [](L x, L) { return math::asinh(x); }, [](W x, W) { return std::asinh(x); }, 2},
      {"acosh", [](L x, L) { return math::acosh(x); }, [](W x, W) { return std::acosh(x); }, 2},
      {"atanh", [](L x, L) { return math::atanh(x); }, [](W x, W) { return std::atanh(x); }, 2},
      {"erf", [](L x, L) { return math::erf(x); }, [](W x, W) { return std::erf(x); }, 2},
      {"sigmoid", [](L x, L) { return math::sigmoid(x); },
       [](W x, W) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }, 2},
      {"floor", [](L x, L) { return math::floor(x); }, [](W x, W) { return std::floor(x); }, 0},
      {"ceil", [](L x, L) { return math::ceil(x); }, [](W x, W) { return std::ceil(x); }, 0},
      {"round", [](L x, L) { return math::round(x); }, [](W x, W) { return std::nearbyint(x); }, 0},
      {"trunc", [](L x, L) { return math::trunc(x); }, [](W x, W) { return std::trunc(x); }, 0},
      {"erfc", [](L x, L) { return math::erfc(x); }, [](W x, W) { return std::erfc(x); }, 4},
      {"lgamma", [](L x, L) { return math::lgamma(x); }, [](W x, W) { return std::lgamma(x); }, 4},
      {"digamma", [](L x, L) { return math::digamma(x); }, [](W x, W) { return digamma_of(x); }, 4,
       sizeof(T) == 8 ? &reflected_digamma<W> : nullptr},
      {"pow", [](L x, L y) { return math::pow(x, y); }, [](W x, W y) { return std::pow(x, y); }, 4},
      {"atan2", [](L x, L y) { return math::atan2(x, y); }, [](W x, W y) { return std::atan2(x, y); }, 2},
      {"hypot", [](L x, L y) { return math::hypot(x, y); }, [](W x, W y) { return std::hypot(x, y); }, 2},
      {"fmod", [](L x, L y) { return math::fmod(x, y); }, [](W x, W y) { return std::fmod(x, y); }, 0},
      {"remainder", [](L x, L y) { return math::remainder(x, y); }, &remainder_of<W>, 0.5},
      {"logaddexp", [](L x, L y) { return math::logaddexp(x, y); }, &logaddexp_of<W>, 2,
       &cancelled_logaddexp<W>},
      {"floor_divide", [](L x, L y) { return math::floor_divide(x, y); }, &floor_quotient<W>, 2},
      {"trigamma", [](L x, L) { return math::polygamma(Lane(T(1)), x); },
       [](W x, W) { return polygamma_of<1>(x); }, 4},
      {"polygamma 2", [](L x, L) { return math::polygamma(Lane(T(2)), x); },
       [](W x, W) { return polygamma_of<2>(x); }, 4, sizeof(T) == 8 ? &reflected_polygamma<2, W> : nullptr},
      {"polygamma 3", [](L x, L) { return math::polygamma(Lane(T(3)), x); },
       [](W x, W) { return polygamma_of<3>(x); }, 4},
      {"rsqrt", [](L x, L) { return Lane(op::rsqrt::eval(x)); }, [](W x, W) { return 1 / std::sqrt(x); }, 2},
      {"square", [](L x, L) { return Lane(op::square::eval(x)); }, [](W x, W) { return x * x; }, 0.5},
      {"abs", [](L x, L) { return Lane(op::abs::eval(x)); }, [](W x, W) { return std::abs(x); }, 0},
      {"relu", [](L x, L) { return Lane(op::relu::eval(x)); }, [](W x, W) { return x < 0 ? W(0) : x; }, 0},
      {"sign", [](L x, L) { return Lane(op::sign::eval(x)); },
       [](W x, W) { return std::isnan(x) ? W(0) : W((x > 0) - (x < 0)); }, 0},
  };
}

bool has_two_operands(std::string const& name) {
  return name == "pow" || name == "atan2" || name == "hypot" || name == "fmod" || name == "remainder" ||
         name == "logaddexp" || name == "floor_divide";
}

template <class T>
std::vector<T> specials() {
  using L = std::numeric_limits<T>;
  std::vector<T> r = {0, L::infinity(), L::quiet_NaN(), L::denorm_min(), L::min(), L::max(), L::epsilon()};
  for (T x : {T(0.5), T(1), T(1.5), T(2), T(2.5), T(3), T(4), T(7), T(10), T(100), T(1000), T(1e10)})
    r.insert(r.end(), {x, std::nextafter(x, T(0)), std::nextafter(x, L::infinity())});
  for (std::size_t i = 0, n = r.size(); i < n; ++i) r.push_back(-r[i]);
  return r;
}

#if defined(DFDX_EMULATED)
constexpr int fewer = 50;
#else
constexpr int fewer = 1;
#endif

// Where formulas end or are exact: eighths, and what is next to them.
template <class T>
void add_eighths(std::vector<T>& to) {
  for (int k = -256; k <= 256; ++k) {
    T const x = static_cast<T>(k) / 8;
    to.insert(to.end(), {std::nextafter(x, T(-100)), x, std::nextafter(x, T(100))});
  }
}

// Everything that a float may be, in steps; of doubles random bits, random exponents, and numbers of everyday sizes.
std::vector<float> samples(float) {
  std::vector<float> r = specials<float>();
  add_eighths(r);
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 6007 * fewer)
    r.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (float centre : {1.0f, -1.0f, 1.4616321f, 2.0f, 3.1415927f, 0.5f, -2.4570247f, -2.7476826f, 1.5707964f})
    for (int k = -300; k <= 300; ++k)
      r.push_back(std::bit_cast<float>(std::bit_cast<std::int32_t>(centre) + k));
  return r;
}
std::vector<double> samples(double) {
  std::vector<double> r = specials<double>();
  add_eighths(r);
  std::mt19937_64 random(1);
  auto const uniform = [&](double low, double high) {
    return low + (high - low) * (static_cast<double>(random() >> 11) * 0x1p-53);
  };
  for (int i = 0; i < 40000 / fewer; ++i) {
    r.push_back(std::bit_cast<double>(random()));
    r.push_back(std::ldexp(uniform(1, 2), static_cast<int>(random() % 80) - 60) * (i % 2 == 0 ? 1 : -1));
    r.push_back(uniform(-2, 2));
    r.push_back(uniform(-30, 30));
    r.push_back(uniform(-750, 750));
  }
  double const pi = 3.14159265358979323846;
  for (int k = 1; k < 400; ++k) {
    double const centres[] = {k * pi / 4,      -k * pi / 2,      1 + k * 0x1p-52,
                              1 - k * 0x1p-53, -1 + k * 0x1p-50, 1.4616321449683623 + k * 0x1p-52,
                              2 + k * 0x1p-45, 2 - k * 0x1p-40};
    r.insert(r.end(), std::begin(centres), std::end(centres));
  }
  return r;
}

template <class T>
struct Worst {
  Wider<T> error = 0;
  T x = 0, y = 0;
};

template <class T>
Worst<T> worst_of(Function<T> const& f, std::vector<T> const& x, std::vector<T> const& y) {
  Worst<T> r;
  constexpr std::size_t n = kernels::lane<T>::size;
  for (std::size_t i = 0; i + n <= x.size(); i += n) {
    T got[n];
    f.got(kernels::lane<T>::load_unaligned(&x[i]), kernels::lane<T>::load_unaligned(&y[i]))
        .store_unaligned(got);
    kernels::leave_vectors();
    for (std::size_t k = 0; k < n; ++k) {
      T const a = x[i + k], b = y[i + k];
      Wider<T> const e = error_in_ulp<T>(got[k], f.want(a, b), f.scale != nullptr ? f.scale(a, b) : 0);
      if (e > r.error || std::isnan(e)) r = {e, a, b};
    }
  }
  return r;
}

// Zeros with their signs, infinities and NaNs.
template <class T>
bool same_special(T got, T want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want);
  return !std::isinf(want) || got == want;
}

template <class T>
void check() {
  std::vector<T> const all = samples(T{}), special = specials<T>();
  std::vector<T> turned = all;
  std::shuffle(turned.begin(), turned.end(), std::mt19937(7));
  std::vector<T> everyday, exponents;  // for pow: most pairs of random bits overflow
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000 / fewer; ++i) {
    everyday.push_back(
        std::ldexp(T(1) + T(random() % 100000) / 100000, static_cast<int>(random() % 40) - 20));
    exponents.push_back((T(random() % 200001) - 100000) / 2500);
    if (i % 4 == 0) everyday.back() = T(1) + (everyday.back() - T(1)) * T(1e-3), exponents.back() *= 100;
  }
  for (Function<T> const& f : functions<T>()) {
    Worst<T> worst = worst_of(f, all, has_two_operands(f.name) ? turned : all);
    if (has_two_operands(f.name))
      if (Worst<T> const w = worst_of(f, everyday, exponents); w.error > worst.error) worst = w;
    std::printf("%-8s f%d %8.3f ulp at %.17g %.17g\n", f.name, static_cast<int>(8 * sizeof(T)),
                static_cast<double>(worst.error), static_cast<double>(worst.x), static_cast<double>(worst.y));
    std::fflush(stdout);
    INFO(f.name << " of " << worst.x << " " << worst.y);
    CHECK(static_cast<double>(worst.error) <= f.bound);
    for (T x : special)
      for (T y : special) {
        T got[kernels::lane<T>::size];
        f.got(kernels::lane<T>(x), kernels::lane<T>(y)).store_unaligned(got);
        T const want = static_cast<T>(f.want(x, y));
        if (!same_special(got[0], want)) {
          CAPTURE(f.name, x, y, got[0], want);
          CHECK(false);
        }
        if (!has_two_operands(f.name)) break;
      }
  }
  std::fflush(stdout);
}

}  // namespace

namespace {

// Quotients and remainders of integers, for what doubles hold and what they do not, as those of numbers are.
template <class T>
void check_integers() {
  using Lane = kernels::lane<T>;
  std::vector<T> some;
  for (int shift : {0, 1, 2, 5, 15, 26, 30, 31, 40, 51, 52, 53, 54, 62, 63})
    if (shift < static_cast<int>(8 * sizeof(T)))
      for (int by : {-2, -1, 0, 1, 3}) {
        auto const v = static_cast<T>((std::uint64_t{1} << shift) + static_cast<std::uint64_t>(by));
        some.push_back(v), some.push_back(math::minus(T(0), v));
      }
  std::mt19937_64 random(5);
  for (int i = 0; i < 200 / fewer; ++i) {
    auto const v = static_cast<T>(random() >> random() % 64);
    some.push_back(v), some.push_back(math::minus(T(0), v));
  }
  // With another number in the vector the way of small ones is not taken for all.
  for (T other : {T(7), std::numeric_limits<T>::max()})
    for (T x : some)
      for (T y : some) {
        T a[Lane::size], b[Lane::size], got[4][Lane::size];
        std::fill_n(a, Lane::size, other), std::fill_n(b, Lane::size, T(3));
        a[Lane::size - 1] = x, b[Lane::size - 1] = y;
        Lane const u = Lane::load_unaligned(a), v = Lane::load_unaligned(b);
        math::divide(u, v).store_unaligned(got[0]);
        math::floor_divide(u, v).store_unaligned(got[1]);
        math::fmod(u, v).store_unaligned(got[2]);
        math::remainder(u, v).store_unaligned(got[3]);
        for (std::size_t k : {std::size_t{0}, Lane::size - 1}) {
          bool const right = got[0][k] == math::divide(a[k], b[k]) &&
                             got[1][k] == math::floor_divide(a[k], b[k]) &&
                             got[2][k] == math::fmod(a[k], b[k]) && got[3][k] == math::remainder(a[k], b[k]);
          if (right) continue;
          CAPTURE(a[k], b[k], got[0][k], got[1][k], got[2][k], got[3][k]);
          CHECK(false);
        }
      }
}

}  // namespace

TEST_CASE("quotients and remainders of integers on vectors", "[kernels]") {
  check_integers<std::int32_t>();
  check_integers<std::int64_t>();
  CHECK(math::floor_divide(std::int64_t{-7}, std::int64_t{2}) == -4);
  CHECK(math::remainder(std::int64_t{-7}, std::int64_t{2}) == 1);
}

TEST_CASE("elementary functions on vectors of f32", "[kernels]") { check<float>(); }
TEST_CASE("elementary functions on vectors of f64", "[kernels]") { check<double>(); }

// There all but the last places of the angle are taken away.
TEST_CASE("sine, cosine and tangent of doubles next to multiples of a quarter turn", "[kernels]") {
  using L = kernels::lane<double>;
  double worst = 0, at = 0;
  for (int k = 1; k < 630000; k += k < 2000 ? 1 : 97) {
    auto const near = static_cast<double>(k * 1.57079632679489661923132169163975144L);
    for (double const x : {std::nextafter(near, 0.0), near, -near, std::nextafter(near, 1e9)}) {
      using F = math::lane_functions<L>;
      long double const s = std::sin(static_cast<long double>(x)), c = std::cos(static_cast<long double>(x));
      double const error = static_cast<double>(
          std::max({error_in_ulp(F::sin(L(x)).get(0), s, 0.0L), error_in_ulp(F::cos(L(x)).get(0), c, 0.0L),
                    error_in_ulp(F::tan(L(x)).get(0), s / c, 0.0L)}));
      if (error > worst) worst = error, at = x;
    }
  }
  CAPTURE(at);
  CHECK(worst <= 1);
}

TEST_CASE("the gamma functions at doubles next to their zeros", "[kernels]") {
  // x and the function's value, from mpmath with 70 digits
  using L = kernels::lane<double>;
  struct Known {
    double x, y;
  };
  Known const lgammas[] = {
      {-0x1.200005c7768fcp+3, -0x1.4f71c192ae437p-31}, {-0x1.000034028b3fcp+3, -0x1.b1efb124e80c1p-33},
      {-0x1.000034028b3f6p+3, 0x1.ff29fea3958d7p-33},  {-0x1.ffff97f8159cdp+2, -0x1.444bd10b90582p-34},
      {-0x1.c0033fdedfe1fp+2, -0x1.638f6c2b4fb95p-40}, {-0x1.bffcbf76b86f3p+2, 0x1.d9fdc53d27290p-37},
      {-0x1.bffcbf76b86edp+2, -0x1.d640a9d998c35p-37}, {-0x1.8016b25897c8dp+2, -0x1.a23d2367ff1e9p-45},
      {-0x1.7fe92f591f43fp+2, 0x1.15b26465ac8c8p-35},  {-0x1.7fe92f591f40bp+2, -0x1.a8e43e2ba38c9p-40},
      {-0x1.4086a57f0b6dcp+2, -0x1.6bfc47c1fce58p-42}, {-0x1.4086a57f0b6d6p+2, 0x1.78300901eb6efp-42},
      {-0x1.3f7577a6eeaffp+2, 0x1.f9f68d8a2a56fp-43},  {-0x1.3f7577a6eead8p+2, -0x1.0c3e9f79b0dc6p-38},
      {-0x1.0284e78599582p+2, -0x1.09588858ef393p-45}, {-0x1.0284e78599199p+2, 0x1.a280699d23bdfp-36},
      {-0x1.fa471547c2fe5p+1, -0x1.ddc0336980b58p-52}, {-0x1.fa471547aa945p+1, -0x1.f9fbb043de6a1p-31},
      {-0x1.9260dbc9e59afp+1, 0x1.e9605e3ae7a62p-50},  {-0x1.9260dbc9cd30fp+1, 0x1.7bfa0940f914bp-32},
      {-0x1.5fb410a1bd902p+1, 0x1.270077a99a7a5p-50},  {-0x1.5fb410a1bd519p+1, -0x1.de7d6debb40b6p-41},
  };
  Known const digammas[] = {
      {-0x1.81cf2e2ce1139p+13, -0x1.29622ba67cff7p-31}, {-0x1.933d4aa395436p+6, -0x1.e741d3771b99ep-31},
      {-0x1.9648fb2201e13p+5, 0x1.21370ec70c63cp-47},   {-0x1.dc356112ae341p+4, 0x1.4f6d282cb421fp-34},
      {-0x1.bc28304f0b1abp+4, -0x1.456729e521766p-44},  {-0x1.ac211f160c18fp+4, 0x1.7cb92e35d3219p-39},
      {-0x1.8c11e68c26cbep+4, -0x1.080a3c4fe53d2p-43},  {-0x1.7c09adb82cab4p+4, 0x1.bb29c977f3947p-43},
      {-0x1.5bf7cd8e6df47p+4, -0x1.9d25863810c31p-43},  {-0x1.4bee0bf2c8a57p+4, 0x1.0a2d43abe50bdp-43},
      {-0x1.2bd89365e9beep+4, -0x1.d2150157fee6ap-39},  {-0x1.1bccb2c0db752p+4, 0x1.4e0ce6dfe5254p-44},
      {-0x1.f76442d8ce858p+3, -0x1.12a168c500adcp-34},  {-0x1.d74652d341c14p+3, 0x1.6b806e3129347p-51},
      {-0x1.b725a9912078fp+3, 0x1.07322630653dep-35},   {-0x1.76da2d93df104p+3, -0x1.7d26f0c32b86ep-45},
      {-0x1.56ae014434823p+3, 0x1.23c7b8a2aa28dp-40},   {-0x1.1643b3352a3f7p+3, -0x1.aa7bec973f047p-45},
      {-0x1.ec04b952a5365p+2, 0x1.655d33ca475adp-45},   {-0x1.6ab2ca18e6ce6p+2, -0x1.3822faf3df0e3p-45},
      {-0x1.29cea5c1ccbcep+2, 0x1.c4a2592fca6b4p-46},   {-0x1.4e2c19f67a62ap+1, -0x1.530c494ee2028p-37},
  };
  auto const check_all = [](Known const(&known)[22], L (*f)(L const&), double (*of_number)(double)) {
    for (Known const& k : known) {
      double got[L::size];
      f(L(k.x)).store_unaligned(got);
      CAPTURE(k.x, k.y, got[0], of_number(k.x));
      CHECK(std::abs(got[0] - k.y) <= 4 * 0x1p-53 * std::abs(k.y));
      CHECK(std::abs(of_number(k.x) - k.y) <= 4 * 0x1p-53 * std::abs(k.y));
    }
  };
  check_all(lgammas, [](L const& x) { return math::lgamma(x); }, [](double x) { return math::lgamma(x); });
  check_all(digammas, [](L const& x) { return math::digamma(x); }, [](double x) { return math::digamma(x); });
}

}  // namespace tests::kernels_accuracy
