// SPDX-License-Identifier: BSL-1.0
// The gamma functions over lane values: lgamma, digamma and its derivatives. One definition for numbers, vectors and
// constant expressions, without branches but near the zeros of negative numbers; floats are computed in double.
#pragma once

#include <dfdx/core/gamma_zeros.hpp>
#include <dfdx/core/math.hpp>

namespace dfdx::math {

namespace detail::inline DFDX_TARGET {

/// horner - a polynomial; the coefficient of the highest power comes first.
template <class X, class... C>
DFDX_INLINE constexpr X horner(X const& x, double first, C... rest) {
  X r(first);
  ((r = r * x + X(rest)), ...);
  return r;
}

/// sin_pi_over_pi, sin_pi - sin(pi r) / pi and sin(pi r) for |r| <= 1/2.
template <class X>
DFDX_INLINE constexpr X sin_pi_over_pi(X const& r) {
  X const z = r * r;
  return r + r * z *
                 horner(z, 2.45918038481593938e-7, -6.9729605555642203764e-6, 0.0001484281781669361754,
                        -0.0023460809634923996102, 0.026147847813078807228, -0.19075182412194127915,
                        0.81174242528335194244, -1.6449340668482264331);
}
template <class X>
DFDX_INLINE constexpr X sin_pi(X const& r) {
  return X(constant_math::pi) * sin_pi_over_pi(r);
}

/// pi_cot_pi - pi cot(pi r) for |r| <= 1/2, as the tangent of the complement from 1/4 on.
template <class X>
DFDX_INLINE constexpr X pi_cot_pi(X const& r) {
  X const a = math::abs(r);
  auto const near = a < X(0.25);
  X const u = math::select(near, a, X(0.5) - a), s = sin_pi_over_pi(u);
  X const c = horner(static_cast<X>(u * u), 4.1495643539425855122e-6, -0.00010456655338748738169,
                     0.0019295562724817131482, -0.02580688873700220327, 0.23533063012953285391,
                     -1.3352627688434470934, 4.0587121264164969995, -4.9348022005446767673, 1.0);
  X const size = math::divide(static_cast<X>(math::select(near, c, s * X(9.8696044010893586188))),
                              static_cast<X>(math::select(near, s, c)));
  return math::select(r < X(0.0), -size, size);
}

// f in double for numbers and vectors of float, f itself for double.
template <class F, class X>
DFDX_INLINE constexpr X in_double(F const& f, X const& x) {
  if constexpr (!is_number<X>) return lane_functions<X>::wide(f, x);
  else return static_cast<X>(f(static_cast<double>(x)));
}

/// ln Gamma(2 + t) = sum of c_k t^k for t from -3/4 to 1/2: the coefficients from that of t^22 to that of t.
inline constexpr double gamma_coefficients[] = {
    6.9831058308318306169e-8,   3.76781782935127954e-8,     5.6162037994946085412e-9,
    -1.7689778112780795171e-7,  2.1448154519472361879e-7,   -4.1021012348196501463e-7,
    9.6179946805550603527e-7,   -2.0500183244559100141e-6,  4.3720027749883856037e-6,
    -9.4377082024539249012e-6,  0.000020507768789269462191, -0.000044926416140578634753,
    0.000099457454259939830315, -0.00022315474756387118932, 0.00050966952808272436549,
    -0.0011927539120766218869,  0.0028905103306479670221,   -0.0073855510286678116887,
    0.02058080842778554028,     -0.067352301053198127231,   0.32246703342411321654,
    0.42278433509846713939};

/// ln Gamma(2 + t) / t, less its value at 0.
template <class X>
DFDX_INLINE constexpr X gamma_series(X const& t) {
  constexpr std::size_t last = std::size(gamma_coefficients) - 1;
  X r(gamma_coefficients[0]);
  for (std::size_t k = 1; k < last; ++k) r = r * t + X(gamma_coefficients[k]);
  return t * r;
}

/// replaced - f(x) where c holds, which is seldom, y elsewhere. f is of one number.
template <class F, class X, class C>
DFDX_INLINE constexpr X replaced(F const& f, X const& x, X const& y, C const& c) {
  if constexpr (!is_number<X>) return lane_functions<X>::replaced(+f, x, y, c);
  else return c ? f(x) : y;
}

/// lgamma in double. a = |x| is brought to 2 + t by Gamma(a) = (a - 1) Gamma(a - 1), or goes through Stirling's series;
/// negative x by Gamma(x) Gamma(-x) = -pi / (x sin(pi x)).
template <class X>
constexpr X lgamma_double(X const& x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  X const one(1.0), half(0.5), a = math::abs(x);
  auto const tiny = a < half;      // then all is about Gamma(1 + a) = a Gamma(a)
  auto const small = a < X(1.25);  // about 1
  auto const large = a >= X(8.0);
  X const steps = math::select(large || a < X(1.5), X(0.0), math::floor(a - X(1.5)));
  X product = one;
  for (int i = 1; i < 7; ++i)
    product = math::select(steps >= X(double(i)), product * (a - X(double(i))), product);
  X const t =
      math::select(small, math::select(tiny, a, a - one), math::select(large, half, a - steps - X(2.0)));
  X const series = gamma_series(t);
  // ln Gamma(1 + t) = ln Gamma(2 + t) - ln(1 + t), with the terms in t alone added first, for they nearly cancel.
  X const log_near = math::log1p(t), near = t * series + (t - log_near) - t * X(0.57721566490153286061);
  X const middle = t * (series + X(0.42278433509846713939)) + math::log(product);
  X const b = math::select(large, a, X(8.0)), log_b = math::log(b), z = math::divide(one, b);
  X const stirling = horner(static_cast<X>(z * z), -0.001652600445559512183, 0.00083728345120713358489,
                            -0.00059520259518027127519, 0.00079365066494882517095, -0.0027777777776062440985,
                            0.083333333333333296143);
  X const far = (b - half) * (log_b - one) + (X(0.41893853320467274178) + z * stirling);
  X const of_size = math::select(large, far, math::select(small, near, middle));
  X const r = a - math::round(a), sine = math::abs(sin_pi(r));
  auto const mirrors = a > X(0x1p-60);  // a quotient by the sine of less may overflow
  X const mirrored =
      math::log(math::divide(X(constant_math::pi),
                             static_cast<X>(math::select(tiny, one, a) * math::select(mirrors, sine, one)))) -
      of_size;
  X const positive = math::select(tiny, of_size - math::log(a), of_size);
  X const y = math::select(x < X(0.0) && mirrors, mirrored, positive);
  X const all =
      math::select(a == X(infinity) || a == X(0.0) || (x < X(0.0) && sine == X(0.0)), X(infinity), y);
  return replaced([](double v) { return lgamma_near_zero(v, gamma_coefficients); }, x, all,
                  x < X(-2.0) && a < X(50.0) && math::abs(all) < X(0.5) + X(0.5) * of_size);
}

/// lgamma in double of numbers that were floats, for a result that is rounded to one: as above, but the products of the
/// recurrence and of the mirror image are one number, whose logarithm is all that is added.
template <class X>
constexpr X lgamma_single(X const& x) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  X const one(1.0), a = math::abs(x);
  auto const negative = x < X(0.0), large = a >= X(8.0);
  // a = 2 + t + steps with |t| <= 1/2
  X const steps = math::select(large, X(0.0), math::floor(a + X(0.5)) - X(2.0));
  X const t = math::select(large, X(0.0), a - steps - X(2.0));
  X above = one;
  for (int i = 1; i < 7; ++i) above = math::select(steps >= X(double(i)), above * (a - X(double(i))), above);
  X below = math::select(steps < X(0.0), a, one);
  below = math::select(steps < X(-1.0), below * (a + one), below);
  X const series =
      t * horner(t, -5.72865310850801e-07, 1.2159620602745015e-06, -1.982565620739196e-06,
                 4.2553702843110484e-06, -9.452938473714576e-06, 2.0535581020500523e-05,
                 -4.492443535898787e-05, 9.945371368841632e-05, -0.00022315489463809116,
                 0.0005096698119432116, -0.0011927539062598581, 0.0028905103192621994, -0.0073855510287714685,
                 0.02058080842799012, -0.06735230105319759, 0.32246703342411215, 0.42278433509846713);
  X const r = a - math::round(a), sine = math::abs(sin_pi_over_pi(r));
  X const mirror = math::select(negative, math::select(large, one, a) * sine, one);
  X const b = math::select(large, a, X(8.0)), z = math::divide(one, b);
  X const log_b = math::log(b);
  X const stirling = z * horner(static_cast<X>(z * z), -1.0 / 1680, 1.0 / 1260, -1.0 / 360, 1.0 / 12);
  X const far = (b - X(0.5)) * (log_b - one) + (X(0.41893853320467274178) + stirling);
  X const rest = math::log(static_cast<X>(math::divide(static_cast<X>(above * mirror), below)));
  X const far_rest = math::select(negative, rest + log_b, X(0.0));
  X const size = math::select(large, far + far_rest, series + rest);
  X const y = math::select(negative, -size, size);
  return math::select(a == X(infinity) || a == X(0.0) || (negative && sine == X(0.0)), X(infinity), y);
}

/// digamma in double: near its zero by a polynomial that has that zero, above by recurrence and then asymptotically;
/// negative x by psi(-a) = psi(a) + 1/a + pi cot(pi a).
template <bool near_zeros, class X>
constexpr X digamma_double(X const& x) {
  X const zero(0.0), one(1.0), a = math::abs(x);
  auto const small = a < one, large = a >= X(6.0);
  X const steps = math::select(large || small, zero, math::floor(a) - one);
  // The sum of 1 / (a - i) as one fraction.
  X top = zero, below = one;
  for (int i = 1; i < 5; ++i) {
    auto const more = steps >= X(double(i));
    X const d = a - X(double(i));
    top = math::select(more, top * d + below, top);
    below = math::select(more, below * d, below);
  }
  X const u = math::select(small, a + one, math::select(large, X(1.5), a - steps));
  X const p = horner(static_cast<X>(u - X(1.5)), -0.00017312261802727393258, 0.00025968482126430746555,
                     -0.00015148586836773365902, 0.00022723316609873758807, -0.00048219905305667888755,
                     0.00072332662792875541556, -0.001037637409841860467, 0.0015566317474486839277,
                     -0.002345267632540769041, 0.0035190064015022760473, -0.0052799648732574042082,
                     0.0079269446464037960374, -0.011908218001568644751, 0.017907252439451199397,
                     -0.026975796756138248795, 0.040760833812420736017, -0.06192213327306453169,
                     0.094988724454941213253, -0.14840492305390885721, 0.24054248424077421856,
                     -0.42362742128146050498, 0.95105587603183289283);
  X const u_low = math::select(small, a - (u - one), zero);
  X const near = ((u - X(0x1.762d86356be3fp+0)) + (u_low - X(9.5499954299656977152e-17))) * p + top / below;
  X const b = math::select(large, a, X(6.0)), z = math::divide(one, b), w = z * z;
  X const asymptotic = horner(w, -0.2297854245497471986, 0.075183587669636107321, -0.020916085217393374331,
                              0.0075735577568517301156, -0.0041666515229511703667, 0.00396825391649681816,
                              -0.0083333333332654243771, 0.08333333333333331862);
  X const of_size =
      math::select(large, math::log(b) - (X(0.5) * z + w * asymptotic), near);  // of 1 + a where a is small
  X const inverse = math::divide(one, a), r = a - math::round(a), cotangent = pi_cot_pi(r);
  X const pole(std::numeric_limits<double>::infinity()), none(std::numeric_limits<double>::quiet_NaN());
  X const positive = math::select(small, of_size - inverse, of_size);
  X const mirrored = math::select(small, of_size, of_size + inverse);
  X sum = mirrored + cotangent;
  if constexpr (near_zeros)
    sum = replaced([](double v) { return digamma_near_zero(v); }, x, sum,
                   x < zero && r != zero &&
                       math::abs(sum) < X(0.75) * math::maximum(math::abs(mirrored), math::abs(cotangent)));
  X const negative = math::select(r == zero, none, sum);
  return math::select(a == zero, math::divide(-one, x),
                      math::select(x < zero, negative, math::select(a == pole, a, positive)));
}

// n! zeta(n + 1, x), the sum of n! / (x + i)^(n + 1): term by term up to x + i = 20 + n, then by the formula of Euler
// and Maclaurin; the smallest terms are summed first.
constexpr double scaled_zeta(int n, double x) {
  double factorial = 1;
  for (int k = 2; k < n; ++k) factorial *= k;  // (n - 1)!
  int const steps = x < 20 + n ? static_cast<int>(math::ceil(20 + n - x)) : 0;
  double const end = x + steps, power = math::pow(end, static_cast<double>(-n));
  // B_2k / (2k)! (n + 2k - 1)! / (n - 1)! end^-(n + 2k)
  constexpr double bernoulli[] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6};
  double terms[7] = {power / end * n / end * (n + 1) / 2};
  for (int k = 2; k <= 7; ++k)
    terms[k - 1] = terms[k - 2] / end * (n + 2 * k - 2) / end * (n + 2 * k - 1) / ((2 * k - 1) * (2.0 * k));
  double sum = 0;
  for (int k = 7; k >= 1; --k) sum += bernoulli[k - 1] * terms[k - 1];
  sum += power / end * n * 0.5;
  sum += power;
  for (int k = steps - 1; k >= 0; --k) sum += n * math::pow(x + k, static_cast<double>(-n - 1));
  return factorial * sum;
}

// The n-th derivative of digamma. For negative x the sum goes on both sides of the pole next to it: to infinity on the
// right, to the last pole before 0 on the left.
constexpr double polygamma_double(double order, double x) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  if (order == 0) return digamma_double<true>(x);
  if (!(order >= 1 && order <= 30) || math::floor(order) != order || x != x) return nan;
  auto const n = static_cast<int>(order);
  double const odd = n % 2 == 0 ? -1 : 1;
  if (x > 0) return odd * scaled_zeta(n, x);
  double r = x - math::round(x);
  if (r == -0.5) r = 0.5;  // where both sides are the same number, for even n nothing is left of them
  if (r == 0) return odd < 0 ? nan : std::numeric_limits<double>::infinity();
  return (odd * scaled_zeta(n, r) + scaled_zeta(n, 1 - r)) - scaled_zeta(n, 1 - x);
}

}  // namespace detail::inline DFDX_TARGET

/// lgamma - ln |Gamma(x)|. (The C library's also writes a global.)
template <class X>
DFDX_INLINE constexpr X lgamma(X const& x) {
#if defined(__CUDA_ARCH__)  // where tables of coefficients cannot be read
  if constexpr (is_number<X>) return static_cast<X>(::lgamma(static_cast<double>(x)));
  else
#endif
      if constexpr (sizeof(scalar_of<X>) == 8)
    return detail::lgamma_double(x);
  else return detail::in_double([](auto const& v) { return detail::lgamma_single(v); }, x);
}

/// digamma - the derivative of lgamma.
template <class X>
DFDX_INLINE constexpr X digamma(X const& x) {
  return detail::in_double(
      [](auto const& v) { return detail::digamma_double < sizeof(scalar_of<X>) == 8 > (v); }, x);
}

/// polygamma - the n-th derivative of digamma, n up to 30.
template <class X>
DFDX_INLINE constexpr X polygamma(X const& n, X const& x) {
  if constexpr (is_number<X>)
    return static_cast<X>(detail::polygamma_double(static_cast<double>(n), static_cast<double>(x)));
  else return lane_functions<X>::polygamma(n, x);
}

}  // namespace dfdx::math
