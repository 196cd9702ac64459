// SPDX-License-Identifier: BSL-1.0
// Elementary functions that run in a constant expression (double precision, a few ulp). At run time core/math.hpp
// calls the platform's library instead; these also serve where the same bits are wanted on every platform.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace dfdx::constant_math {

inline constexpr double ln2_high = 6.93147180369123816490e-01;
inline constexpr double ln2_low = 1.90821492927058770002e-10;
inline constexpr double pi = 3.14159265358979323846;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

constexpr bool is_nan(double x) { return x != x; }
constexpr double abs(double x) { return x < 0 ? -x : x == 0 ? 0.0 : x; }

constexpr double floor(double x) {
  if (!(abs(x) < 4503599627370496.0)) return x;
  auto const n = static_cast<double>(static_cast<std::int64_t>(x));
  return n > x ? n - 1 : n;
}

constexpr double scale_by_power_of_two(double x, int k) {
  for (; k > 1000; k -= 1000) x *= 0x1p1000;
  for (; k < -1000; k += 1000) x *= 0x1p-1000;
  return x * std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52);
}

constexpr double expm1_series(double r) {
  double term = r, sum = r;
  for (int n = 2; n < 22; ++n) sum += term *= r / n;
  return sum;
}

constexpr double exp(double x) {
  if (is_nan(x)) return x;
  if (x > 709.79) return infinity;
  if (x < -745.2) return 0;
  double const k = floor(x / (ln2_high + ln2_low) + 0.5);
  double const r = (x - k * ln2_high) - k * ln2_low;
  return scale_by_power_of_two(1.0 + expm1_series(r), static_cast<int>(k));
}

constexpr double expm1(double x) { return abs(x) < 0.4 ? expm1_series(x) : exp(x) - 1.0; }

// log((1 + s) / (1 - s)) = 2 artanh(s)
constexpr double twice_artanh(double s) {
  double const z = s * s;
  double power = s, sum = 0;
  for (int n = 1; n < 40; n += 2, power *= z) sum += power / n;
  return 2 * sum;
}

constexpr double log(double x) {
  if (is_nan(x) || x < 0) return nan;
  if (x == 0) return -infinity;
  if (x == infinity) return x;
  int e = 0;
  if (x < 0x1p-1000) x *= 0x1p100, e -= 100;
  auto bits = std::bit_cast<std::uint64_t>(x);
  e += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffull) | (std::uint64_t{1023} << 52));
  if (m > 1.4142135623730951) m *= 0.5, ++e;
  return e * ln2_high + (e * ln2_low + twice_artanh((m - 1) / (m + 1)));
}

constexpr double log1p(double x) { return abs(x) < 0.3 ? twice_artanh(x / (2 + x)) : log(1 + x); }

constexpr double sqrt(double x) {
  if (is_nan(x) || x < 0) return nan;
  if (x == 0 || x == infinity) return x;
  int k = 0;
  for (; x >= 4; x *= 0.25) ++k;
  for (; x < 1; x *= 4) --k;
  double r = 0.5 * (1 + x);
  for (int i = 0; i < 7; ++i) r = 0.5 * (r + x / r);
  return scale_by_power_of_two(r, k);
}

constexpr double sin_series(double x) {
  double term = x, sum = x;
  for (int n = 2; n < 26; n += 2) sum += term *= -x * x / (n * (n + 1));
  return sum;
}
constexpr double cos_series(double x) {
  double term = 1, sum = 1;
  for (int n = 1; n < 25; n += 2) sum += term *= -x * x / (n * (n + 1));
  return sum;
}

// sin(x + quarter_turns * pi / 2)
constexpr double turned_sin(double x, int quarter_turns) {
  if (is_nan(x) || abs(x) == infinity) return nan;
  double const k = floor(x / (pi / 2) + 0.5);
  double const r = (x - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11;
  auto const q = static_cast<int>((static_cast<std::int64_t>(k) + quarter_turns) & 3);
  double const s = (q & 1) != 0 ? cos_series(r) : sin_series(r);
  return q >= 2 ? -s : s;
}
constexpr double sin(double x) { return turned_sin(x, 0); }
constexpr double cos(double x) { return turned_sin(x, 1); }

constexpr double tanh(double x) {
  if (is_nan(x)) return x;
  if (abs(x) > 20) return x < 0 ? -1.0 : 1.0;
  double const e = expm1(2 * x);
  return e / (e + 2);
}

constexpr double erf(double x) {
  if (is_nan(x)) return x;
  double const a = abs(x);
  if (a > 6) return x < 0 ? -1.0 : 1.0;
  if (a < 2.5) {
    double term = x, sum = x;
    for (int n = 1; n < 70; ++n) sum += (term *= -x * x / n) / (2 * n + 1);
    return 1.12837916709551257390 * sum;
  }
  double fraction = a;  // Legendre's continued fraction of erfc
  for (int n = 60; n > 0; --n) fraction = a + (n * 0.5) / fraction;
  double const tail = exp(-a * a) / (1.77245385090551602730 * fraction);
  return x < 0 ? tail - 1 : 1 - tail;
}

// As C99. Compilers refuse a constant that overflows on the way, hence the detours.
constexpr double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (is_nan(x) || is_nan(y) || y == 1) return is_nan(y) ? y : x;
  double const m = abs(x);
  bool const integer = floor(y) == y, odd = integer && floor(y / 2) != y / 2;
  double const sign = odd && std::bit_cast<std::uint64_t>(x) >> 63 != 0 ? -1 : 1;
  if (m == 1 && integer) return sign;
  if (x < 0 && !integer && m != infinity) return nan;
  bool const limit = m == 0 || m == infinity || abs(y) > 1e20;
  double const size = limit ? ((m > 1) == (y > 0) ? infinity : -infinity) : y * log(m);
  if (size > 709.78) return sign * infinity;
  if (size < -745.2) return sign * 0.0;
  if (!integer || abs(y) >= 1024 || abs(size) > 700) return sign * exp(size);
  double r = 1, b = m;
  for (auto n = static_cast<std::int64_t>(abs(y)); n > 0; n >>= 1) {
    if ((n & 1) != 0) r *= b;
    if (n > 1) b *= b;
  }
  return sign * (y < 0 ? 1 / r : r);
}

constexpr bool is_negative(double x) { return std::bit_cast<std::uint64_t>(x) >> 63 != 0; }
constexpr double with_sign(double size, double sign) {
  return is_negative(sign) != is_negative(size) ? -size : size;
}

constexpr double trunc(double x) { return abs(x) < 4503599627370496.0 ? with_sign(floor(abs(x)), x) : x; }
constexpr double ceil(double x) { return -floor(-x); }
constexpr double round(double x) {
  if (!(abs(x) < 4503599627370496.0)) return x;
  double const low = floor(abs(x)), rest = abs(x) - low;
  bool const up = rest > 0.5 || (rest == 0.5 && floor(low / 2) != low / 2);
  return with_sign(up ? low + 1 : low, x);
}

constexpr double fmod(double x, double y) {
  double const b = abs(y);
  double a = abs(x);
  if (is_nan(x) || is_nan(y) || a == infinity || b == 0) return nan;
  while (a >= b) {  // less the largest b 2^k that fits
    double part = b;
    for (double step = 0x1p512; step > 1; step = step > 2 ? sqrt(step) : 1)
      while (part <= a / step) part *= step;
    a -= part;
  }
  return with_sign(a, x);
}

constexpr double exp2(double x) {
  if (is_nan(x) || x >= 1024) return is_nan(x) ? x : infinity;
  if (x < -1075) return 0;
  double const k = floor(x + 0.5);
  return scale_by_power_of_two(1.0 + expm1_series((x - k) * (ln2_high + ln2_low)), static_cast<int>(k));
}
constexpr double log2(double x) {
  if (!(x > 0) || x == infinity) return log(x);
  int k = 0;
  for (; x >= 1.5; x *= 0.5) ++k;
  for (; x < 0.75; x *= 2) --k;
  return k + log(x) * 1.44269504088896340736;
}
constexpr double log10(double x) { return log2(x) * 0.30102999566398119521; }

constexpr double cbrt(double x) {
  if (is_nan(x) || x == 0 || abs(x) == infinity) return x;
  double a = abs(x), scale = 1;
  for (; a >= 8; a *= 0.125) scale *= 2;
  for (; a < 1; a *= 8) scale *= 0.5;
  double r = 1 + (a - 1) / 7;
  for (int i = 0; i < 7; ++i) r -= (r - a / (r * r)) / 3;
  return with_sign(r * scale, x);
}

constexpr double tan(double x) {
  double const s = sin(x), c = cos(x);
  return s / c;
}

constexpr double atan_series(double x) {
  double power = x, sum = 0;
  for (int n = 1; n < 42; n += 2, power *= -x * x) sum += power / n;
  return sum;
}
// Halving the angle brings it below 0.2.
constexpr double atan(double x) {
  if (is_nan(x) || x == 0) return x;
  if (abs(x) > 1) return with_sign(pi / 2, x) - atan(1 / x);
  double t = x;
  for (int i = 0; i < 2; ++i) t /= 1 + sqrt(1 + t * t);
  return 4 * atan_series(t);
}
constexpr double atan2(double y, double x) {
  if (is_nan(x) || is_nan(y)) return nan;
  double const a = abs(y), b = abs(x);
  double r = 0;  // the angle in the first quadrant
  if (a == infinity) r = b == infinity ? pi / 4 : pi / 2;
  else if (a != 0 && b != infinity) r = b == 0 || a / 1e100 > b ? pi / 2 : atan(a / b);
  return with_sign(is_negative(x) ? pi - r : r, y);
}
constexpr double asin(double x) {
  if (!(abs(x) <= 1)) return nan;
  return abs(x) == 1 ? x * (pi / 2) : x == 0 ? x : atan(x / sqrt((1 - x) * (1 + x)));
}
constexpr double acos(double x) {
  if (!(abs(x) <= 1)) return nan;
  return x == -1 ? pi : 2 * atan(sqrt((1 - x) / (1 + x)));
}

constexpr double sinh(double x) {
  if (is_nan(x) || x == 0) return x;
  if (abs(x) > 20) {
    double const half = exp(abs(x) / 2);
    return with_sign(half > 1.5e154 ? infinity : half / 2 * half, x);
  }
  double const e = expm1(abs(x));
  return with_sign((e + e / (e + 1)) / 2, x);
}
constexpr double cosh(double x) {
  double const half = exp(abs(x) / 2);
  return half > 1.5e154 ? infinity : half / 2 * half + 0.5 / half / half;
}
constexpr double asinh(double x) {
  if (is_nan(x) || x == 0 || abs(x) == infinity) return x;
  double const a = abs(x);
  return with_sign(a > 1e8 ? log(a) + ln2_high + ln2_low : log1p(a + a * a / (1 + sqrt(1 + a * a))), x);
}
constexpr double acosh(double x) {
  if (!(x >= 1)) return nan;
  double const t = x - 1;
  return x > 1e8 ? log(x) + ln2_high + ln2_low : log1p(t + sqrt(t * (x + 1)));
}
constexpr double atanh(double x) {
  if (!(abs(x) <= 1)) return nan;
  if (abs(x) == 1) return with_sign(infinity, x);
  return x == 0 ? x : with_sign(log1p(2 * abs(x) / (1 - abs(x))) / 2, x);
}

constexpr double hypot(double x, double y) {
  double a = abs(x), b = abs(y);
  if (a == infinity || b == infinity) return infinity;
  if (is_nan(x) || is_nan(y)) return nan;
  if (a < b) {
    double const t = a;
    a = b;
    b = t;
  }
  if (a == 0) return 0;
  double const ratio = b < a * 1e-200 ? 0 : b / a, factor = sqrt(1 + ratio * ratio);
  return a > std::numeric_limits<double>::max() / factor ? infinity : a * factor;
}

// In the tail by Legendre's continued fraction.
constexpr double erfc(double x) {
  if (is_nan(x) || x < 1) return 1 - erf(x);
  if (x > 27.3) return 0;
  double fraction = x;
  for (int n = x < 2 ? 400 : 120; n > 0; --n) fraction = x + (n * 0.5) / fraction;
  return exp(-x * x) / (1.77245385090551602730 * fraction);
}

}  // namespace dfdx::constant_math
