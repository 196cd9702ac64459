// SPDX-License-Identifier: BSL-1.0
// lgamma and digamma of negative numbers near their zeros. What is short elsewhere is there a difference of two nearly
// equal numbers: lgamma is computed as the difference to its value 0 at the zero, digamma in pairs of doubles.
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>

#include <dfdx/core/math.hpp>

namespace dfdx::math::detail::inline DFDX_TARGET {

/// DoubleDouble - a number as the sum of two doubles, the second below the rounding of the first: about 104 bits.
/// Source     Dekker, A floating-point technique for extending the available precision (1971).
struct DoubleDouble {
  double high = 0, low = 0;
  constexpr DoubleDouble() = default;
  constexpr DoubleDouble(double h, double l = 0) : high(h), low(l) {}
};

constexpr DoubleDouble exact_sum(double a, double b) {
  double const s = a + b, of_b = s - a;
  return {s, (a - (s - of_b)) + (b - of_b)};
}
/// Not inlined: a compiler that fuses the product and a later sum would not round the product.
[[gnu::noinline]] constexpr DoubleDouble exact_product(double a, double b) {
  double const p = a * b;
  if (!DFDX_IN_CONSTANT_EXPRESSION) return {p, std::fma(a, b, -p)};
  double const ca = 134217729.0 * a, a1 = ca - (ca - a), a2 = a - a1;
  double const cb = 134217729.0 * b, b1 = cb - (cb - b), b2 = b - b1;
  return {p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}
constexpr DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }
constexpr DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  DoubleDouble const s = exact_sum(a.high, b.high), t = exact_sum(a.low, b.low);
  DoubleDouble const u = exact_sum(s.high, s.low + t.high);
  return exact_sum(u.high, u.low + t.low);
}
constexpr DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + -b; }
constexpr DoubleDouble operator*(DoubleDouble a, DoubleDouble b) {
  DoubleDouble const p = exact_product(a.high, b.high);
  return exact_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
constexpr DoubleDouble operator/(DoubleDouble a, DoubleDouble b) {
  double const first = a.high / b.high;
  DoubleDouble const rest = a - b * DoubleDouble(first);
  double const second = rest.high / b.high;
  DoubleDouble const last = rest - b * DoubleDouble(second);
  return exact_sum(first, second) + DoubleDouble(last.high / b.high);
}

/// ln x for normal x, by the series of artanh((m - 1) / (m + 1)).
constexpr DoubleDouble log_of(DoubleDouble x) {
  int exponent = 0;
  double scale = 1;
  for (; x.high * scale >= 1.4142135623730951; scale *= 0.5) ++exponent;
  DoubleDouble const m{x.high * scale, x.low * scale};
  DoubleDouble const s = (m - 1.0) / (m + 1.0), z = s * s;
  DoubleDouble sum = 0.0;
  for (int k = 23; k >= 0; --k) sum = sum * z + DoubleDouble(1.0) / DoubleDouble(2.0 * k + 1);
  return DoubleDouble(double(exponent)) * DoubleDouble(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56) +
         s * sum * 2.0;
}

/// pi cot(pi r) for |r| <= 1/2.
constexpr DoubleDouble exact_pi_cot_pi(double r) {
  constexpr DoubleDouble pi(0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53);
  double const a = r < 0 ? -r : r;
  bool const near = a < 0.25;
  DoubleDouble const angle = pi * DoubleDouble(near ? a : 0.5 - a), square = angle * angle;
  DoubleDouble sine = 0.0, cosine = 0.0;
  for (int k = 14; k >= 1; --k) {  // 1 - z / (1 2) (1 - z / (3 4) ...), and one further
    cosine = -square / DoubleDouble(2.0 * k * (2 * k - 1)) * (cosine + 1.0);
    sine = -square / DoubleDouble(2.0 * k * (2 * k + 1)) * (sine + 1.0);
  }
  sine = angle * (sine + 1.0), cosine = cosine + 1.0;
  DoubleDouble const y = pi * (near ? cosine / sine : sine / cosine);
  return r < 0 ? -y : y;
}

/// digamma of x < 0 as psi(1 + a) + pi cot(pi a), a = -x, where these two cancel.
/// Math       psi(w) = ln w - 1 / (2 w) - sum of B_2k / (2k w^2k), after psi(w) = psi(w + 1) - 1 / w up to 32
constexpr double digamma_near_zero(double x) {
  constexpr double top[] = {1, -1, 1, -1, 1, -691, 1, -3617, 43867, -174611, 77683, -236364091, 657931};
  constexpr double below[] = {12, 120, 252, 240, 132, 32760, 12, 8160, 14364, 6600, 276, 65520, 12};
  double const a = -x;
  DoubleDouble w = exact_sum(a, 1), sum = exact_pi_cot_pi(a - math::round(a));
  for (; w.high < 32; w = w + 1.0) sum = sum - DoubleDouble(1.0) / w;
  DoubleDouble const z = DoubleDouble(1.0) / w, zz = z * z;
  DoubleDouble series = 0.0;
  for (int k = 12; k >= 0; --k) series = (series + DoubleDouble(top[k]) / DoubleDouble(below[k])) * zz;
  sum = sum + ((log_of(w) - z * 0.5) - series);
  return sum.high;
}

/// The zeros of lgamma by whole numbers -n from -2 to -17: less -n, left and right of it. (There is none right of -2.)
/// Source     computed with 80 digits.
inline constexpr DoubleDouble lgamma_zeros[][2] = {
    {{-0x1.d3fe4b007c361p-2, 0x1.541360cea0e60p-56}, {1.0}},
    {{-0x1.260dbc9e59af8p-3, 0x1.1d065994b0991p-58}, {0x1.025f7af2137fap-2, -0x1.7995a4b4641ebp-56}},
    {{-0x1.4273c2ccac062p-5, 0x1.e307a790f3f77p-59}, {0x1.6e3aae0f406bdp-5, 0x1.e5753daddb926p-61}},
    {{-0x1.0d4afe16db219p-7, -0x1.498adcb2a729cp-61}, {0x1.1510b222a0657p-7, 0x1.e5eab7f12cef6p-61}},
    {{-0x1.6b25897c8ced8p-10, -0x1.f0b65b458e173p-66}, {0x1.6d0a6e0bf2a09p-10, -0x1.4ed62cbd31ee0p-64}},
    {{-0x1.9fef6ff0f5be9p-13, 0x1.be919233c3eaap-67}, {0x1.a044a3c880185p-13, 0x1.d949a3dc02de1p-68}},
    {{-0x1.a01459fc9f60dp-16, 0x1.30c4f8c4dea26p-70}, {0x1.a01fa98c3c356p-16, 0x1.7d4add4f3562dp-72}},
    {{-0x1.71dda3ec36b6cp-19, -0x1.0ffb70d477adfp-74}, {0x1.71ded0bf801bdp-19, -0x1.3a55d249679f9p-74}},
    {{-0x1.27e4eee649ed1p-22, -0x1.d95e15441e031p-76}, {0x1.27e50808cbe75p-22, 0x1.1885afab83963p-76}},
    {{-0x1.ae6454c576597p-26, 0x1.90015bf1b415cp-80}, {0x1.ae64583932495p-26, -0x1.a55b7a31a0b4ap-81}},
    {{-0x1.1eed8ee62acf8p-29, -0x1.e04a1e70f241cp-85}, {0x1.1eed8f18f0438p-29, -0x1.acc3d3c978bd8p-84}},
    {{-0x1.612461380cd08p-33, 0x1.17237e0e47fbdp-87}, {0x1.6124613d00d0bp-33, 0x1.001c54155b96cp-87}},
    {{-0x1.93974a8bd29cfp-37, 0x1.09d47384560edp-91}, {0x1.93974a8c3cf6cp-37, -0x1.f04e88bb6e247p-91}},
    {{-0x1.ae7f3e7337a1dp-41, 0x1.ef83d0b08e728p-95}, {0x1.ae7f3e733f622p-41, -0x1.81b8fc4e9b9acp-95}},
    {{-0x1.ae7f3e733b428p-45, -0x1.25fc9dc8f8bbep-99}, {0x1.ae7f3e733bc16p-45, -0x1.2e72e4d113627p-100}},
    {{-0x1.952c77030ad11p-49, -0x1.db2968e993b05p-106}, {0x1.952c77030ad84p-49, -0x1.c46a08a2e008bp-104}},
};

/// Product less 1 of (1 + d / (1 + r0)) (1 + d / r0) (1 + d / (r0 - 1)) .. (1 + d / (r0 - n)), d = r - r0.
template <class X>
constexpr X gamma_ratio(X const& d, X const& r0, int n) {
  X rest = d / (X(1.0) + r0);
  for (int i = n; i >= 0; --i) {
    X const t = d / (r0 - X(double(i)));
    rest = t + rest * (X(1.0) + t);
  }
  return rest;
}

/// lgamma of x from -50 to -2, with coefficients c of ln Gamma(2 + t) = sum of c_k t^k, the highest power first.
/// Math       x = r - n: Gamma(2 + r) = Gamma(x) (1 + r) r (r - 1) .. (r - n), and the same at the zero r0, so that
///            lgamma(x) = [ln Gamma(2 + r) - ln Gamma(2 + r0)] - ln [(1 + d / (1 + r0)) (1 + d / r0) (1 - d / (1 - r0))
///            ..], d = r - r0: nothing cancels by the zero. Between two zeros that are near something does: there the
///            product has more places. Beyond -17 the zeros are at 1 / n! within rounding.
template <std::size_t N>
constexpr double lgamma_near_zero(double x, double const (&c)[N]) {
  double const whole = x > -2.61 ? 2 : math::round(-x), r = x + whole;  // two zeros are between -2 and -3
  auto const n = static_cast<int>(whole);
  bool const right = r > 0;
  DoubleDouble zero = right ? 1.0 : -1.0;
  for (int i = 1; i <= n; ++i) zero.high /= i;
  if (n - 2 < int(std::size(lgamma_zeros))) zero = lgamma_zeros[n - 2][right];
  double const r0 = zero.high, d = (r - r0) - zero.low, ratio = r / r0;
  double logarithm = 0;
  if (n <= 3) {
    DoubleDouble const q = gamma_ratio(DoubleDouble(r) - zero, zero, n);
    logarithm = math::log1p(q.high) + q.low / (1 + q.high);
  } else if (ratio > 0.5 && ratio < 2) {
    logarithm = math::log1p(gamma_ratio(d, r0, n));
  } else {
    double rest = d / (1 + r0);
    for (int i = n; i > 0; --i) rest += d / (r0 - i) * (1 + rest);
    logarithm = math::log(ratio * (1 + rest));
  }
  double of_zero = 0, slope = 0;
  for (double const coefficient : c) {
    of_zero = coefficient + r0 * of_zero;
    slope = of_zero + r * slope;
  }
  return d * slope - logarithm;
}

}  // namespace dfdx::math::detail::inline DFDX_TARGET
