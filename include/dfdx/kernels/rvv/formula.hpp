// SPDX-License-Identifier: BSL-1.0
// Formulas: what a function of lane values computes, written down when the file is compiled. Vectors of RISC-V have no
// size, so no class can hold one, and none can have operators; but the code of an op is written with operators. It is
// run once in a constant expression, on symbols that record each operation; what they recorded is carried out on
// vectors step by step (evaluate.hpp). So one definition of an op, and of each polynomial, serves every processor.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include <dfdx/core/config.hpp>
#include <dfdx/core/constant_math.hpp>

#if defined(__riscv_v_intrinsic) && !defined(__riscv_v_fixed_vlen)
#define DFDX_RVV 1
#endif

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// Do - what a step does. Comparisons are those that have an instruction for two vectors each.
enum class Do : std::uint8_t {
  argument,
  constant,
  add,
  sub,
  mul,
  div,
  neg,
  fma,   ///< a b + c
  fms,   ///< a b - c
  fnma,  ///< c - a b
  abs,
  sqrt,
  nearest,  ///< to the nearest integer, to even
  truncate,
  copysign,
  select,
  equal,
  differs,
  less,
  at_most,
  both,
  either,
  opposite,
  shift_left,
  shift_right,
  bit_and,
  reinterpret,
  convert,
  call,        ///< a C++ function of the numbers one by one
  call_where,  ///< the same where a truth says so, which it rarely does
};

/// Kind - the type of a step's value.
enum class Kind : std::uint8_t { f32, f64, i32, i64, truth };

template <class T>
inline constexpr Kind kind_of = std::is_same_v<T, float>          ? Kind::f32
                                : std::is_same_v<T, double>       ? Kind::f64
                                : std::is_same_v<T, std::int32_t> ? Kind::i32
                                : std::is_same_v<T, std::int64_t> ? Kind::i64
                                                                  : Kind::truth;

/// Functions - the C++ functions that a step may call.
struct Functions {
  float (*f32)(float) = nullptr;
  double (*f64)(double) = nullptr;
  float (*two_f32)(float, float) = nullptr;
  double (*two_f64)(double, double) = nullptr;
  std::int32_t (*two_i32)(std::int32_t, std::int32_t) = nullptr;
  std::int64_t (*two_i64)(std::int64_t, std::int64_t) = nullptr;
};

/// Step - operands are earlier steps, -1 for none. `from` is the kind of operand a; a constant's bits are those of its
/// number, an argument's its position.
struct Step {
  Do what{};
  Kind kind{}, from{};
  int a = -1, b = -1, c = -1;
  std::uint64_t bits = 0;
  Functions functions{};
};

/// Formula - the steps. One that has more than `most` is too long to be worth it.
struct Formula {
  static constexpr int most = 400;
  Step steps[most] = {};
  int count = 0;
  bool is_too_long = false;

  constexpr int add(Step const& s) {
    is_too_long = is_too_long || count == most;
    if (is_too_long) return 0;
    steps[count] = s;
    return count++;
  }
};

template <class T>
constexpr std::uint64_t bits_of(T x) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<std::uint32_t>(x);
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<std::uint64_t>(x);
  else return static_cast<std::uint64_t>(x);
}
template <class T>
constexpr T number_of(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  else if constexpr (std::is_same_v<T, double>) return std::bit_cast<double>(bits);
  else return static_cast<T>(bits);
}

/// Symbol - stands for a lane value of numbers of type T (truth values for bool): a step of a formula, or a number that
/// no formula knows yet.
template <class T>
struct Symbol {
  using value_type = T;
  Formula* formula = nullptr;
  int step = -1;
  T value{};

  constexpr Symbol() = default;
  constexpr Symbol(T x) : value(x) {}
  constexpr Symbol(Formula* f, int s) : formula(f), step(s) {}
};
using Truth = Symbol<bool>;

/// place - the step of a symbol in a formula; a number becomes one.
template <class T>
constexpr int place(Formula* f, Symbol<T> const& x) {
  if (x.formula != nullptr) return x.step;
  return f->add({.what = Do::constant, .kind = kind_of<T>, .bits = bits_of(x.value)});
}

/// record - appends a step with result of type R; one operand at least is of a formula.
template <class R, class A, class... Rest>
constexpr Symbol<R> record(Do what, Step s, Symbol<A> const& a, Rest const&... rest) {
  Formula* f = a.formula;
  ((f = f != nullptr ? f : rest.formula), ...);
  int places[3] = {place(f, a), -1, -1}, n = 1;
  ((places[n++] = place(f, rest)), ...);
  s.what = what, s.kind = kind_of<R>, s.from = kind_of<A>;
  s.a = places[0], s.b = places[1], s.c = places[2];
  return {f, f->add(s)};
}

template <class... X>
constexpr bool are_numbers(X const&... x) {
  return ((x.formula == nullptr) && ...);
}

// Arithmetic. What two numbers give is a number.
#define DFDX_RVV_ARITHMETIC(sign, what)                                                     \
  template <class T>                                                                        \
  constexpr Symbol<T> operator sign(Symbol<T> const& x, Symbol<T> const& y) {               \
    if (are_numbers(x, y)) return static_cast<T>(x.value sign y.value);                     \
    return record<T>(Do::what, {}, x, y);                                                   \
  }                                                                                         \
  template <class T>                                                                        \
  constexpr Symbol<T> operator sign(Symbol<T> const& x, std::type_identity_t<T> const& y) { \
    return x sign Symbol<T>(y);                                                             \
  }                                                                                         \
  template <class T>                                                                        \
  constexpr Symbol<T> operator sign(std::type_identity_t<T> const& x, Symbol<T> const& y) { \
    return Symbol<T>(x) sign y;                                                             \
  }                                                                                         \
  template <class T>                                                                        \
  constexpr Symbol<T>& operator sign##=(Symbol<T>& x, Symbol<T> const& y) {                 \
    return x = x sign y;                                                                    \
  }
DFDX_RVV_ARITHMETIC(+, add)
DFDX_RVV_ARITHMETIC(-, sub)
DFDX_RVV_ARITHMETIC(*, mul)
DFDX_RVV_ARITHMETIC(/, div)
#undef DFDX_RVV_ARITHMETIC

// Comparisons, with their operands in the order that leaves four kinds of steps.
#define DFDX_RVV_COMPARISON(sign, what, first, second)                    \
  template <class T>                                                      \
  constexpr Truth operator sign(Symbol<T> const& x, Symbol<T> const& y) { \
    if (are_numbers(x, y)) return x.value sign y.value;                   \
    return record<bool>(Do::what, {}, first, second);                     \
  }
DFDX_RVV_COMPARISON(==, equal, x, y)
DFDX_RVV_COMPARISON(!=, differs, x, y)
DFDX_RVV_COMPARISON(<, less, x, y)
DFDX_RVV_COMPARISON(<=, at_most, x, y)
DFDX_RVV_COMPARISON(>, less, y, x)
DFDX_RVV_COMPARISON(>=, at_most, y, x)
#undef DFDX_RVV_COMPARISON

constexpr Truth operator&&(Truth const& x, Truth const& y) {
  if (are_numbers(x, y)) return x.value && y.value;
  return record<bool>(Do::both, {}, x, y);
}
constexpr Truth operator||(Truth const& x, Truth const& y) {
  if (are_numbers(x, y)) return x.value || y.value;
  return record<bool>(Do::either, {}, x, y);
}
constexpr Truth operator!(Truth const& x) {
  if (are_numbers(x)) return !x.value;
  return record<bool>(Do::opposite, {}, x);
}

template <class T>
constexpr Symbol<T> operator-(Symbol<T> const& x) {
  if (are_numbers(x)) return static_cast<T>(-x.value);
  return record<T>(Do::neg, {}, x);
}
template <class T>
constexpr Symbol<T> operator&(Symbol<T> const& x, Symbol<T> const& y) {
  return record<T>(Do::bit_and, {}, x, y);
}
template <class T>
constexpr Symbol<T> operator<<(Symbol<T> const& x, int places) {
  return record<T>(Do::shift_left, {.bits = static_cast<std::uint64_t>(places)}, x);
}
template <class T>
constexpr Symbol<T> operator>>(Symbol<T> const& x, int places) {
  return record<T>(Do::shift_right, {.bits = static_cast<std::uint64_t>(places)}, x);
}

template <class T>
constexpr Symbol<T> select(Truth const& c, Symbol<T> const& x, Symbol<T> const& y) {
  if (are_numbers(c)) return c.value ? x : y;
  if constexpr (std::is_same_v<T, bool>) return (c && x) || (!c && y);
  else return record<T>(Do::select, {}, c, x, y);
}

// The functions of vectors, by their names in xsimd.
template <class T>
constexpr Symbol<T> abs(Symbol<T> const& x) {
  if (are_numbers(x)) return x.value < T(0) ? static_cast<T>(-x.value) : x.value;
  return record<T>(Do::abs, {}, x);
}
template <class T>
constexpr Symbol<T> sqrt(Symbol<T> const& x) {
  return record<T>(Do::sqrt, {}, x);
}
template <class T>
constexpr Symbol<T> fma(Symbol<T> const& x, Symbol<T> const& y, Symbol<T> const& z) {
  return are_numbers(x, y) ? x * y + z : record<T>(Do::fma, {}, x, y, z);
}
template <class T>
constexpr Symbol<T> fms(Symbol<T> const& x, Symbol<T> const& y, Symbol<T> const& z) {
  return are_numbers(x, y) ? x * y - z : record<T>(Do::fms, {}, x, y, z);
}
template <class T>
constexpr Symbol<T> fnma(Symbol<T> const& x, Symbol<T> const& y, Symbol<T> const& z) {
  return are_numbers(x, y) ? z - x * y : record<T>(Do::fnma, {}, x, y, z);
}
/// min, max - the second operand where one is NaN.
template <class T>
constexpr Symbol<T> min(Symbol<T> const& x, Symbol<T> const& y) {
  return select(x < y, x, y);
}
template <class T>
constexpr Symbol<T> max(Symbol<T> const& x, Symbol<T> const& y) {
  return select(x > y, x, y);
}
template <class T>
constexpr Symbol<T> copysign(Symbol<T> const& x, Symbol<T> const& y) {
  return record<T>(Do::copysign, {}, x, y);
}
template <class T>
constexpr Symbol<T> nearbyint(Symbol<T> const& x) {
  return record<T>(Do::nearest, {}, x);
}
template <class T>
constexpr Symbol<T> trunc(Symbol<T> const& x) {
  return record<T>(Do::truncate, {}, x);
}
// From the nearest integer: the other roundings would change a mode of the processor.
template <class T>
constexpr Symbol<T> floor(Symbol<T> const& x) {
  Symbol<T> const n = nearbyint(x);
  return select(n > x, n - Symbol<T>(T(1)), n);
}
template <class T>
constexpr Symbol<T> ceil(Symbol<T> const& x) {
  Symbol<T> const n = nearbyint(x);
  return select(n < x, n + Symbol<T>(T(1)), n);
}
template <class To, class T>
constexpr Symbol<To> bitwise_cast(Symbol<T> const& x) {
  return record<To>(Do::reinterpret, {}, x);
}
template <class To, class T>
constexpr Symbol<To> batch_cast(Symbol<T> const& x) {
  if constexpr (std::is_same_v<To, T>) return x;
  else return record<To>(Do::convert, {}, x);
}

/// called - f of the numbers one by one.
template <class T>
constexpr Functions function_of(T (*f)(T)) {
  if constexpr (std::is_same_v<T, float>) return {.f32 = f};
  else return {.f64 = f};
}
template <class T>
constexpr Functions function_of(T (*f)(T, T)) {
  if constexpr (std::is_same_v<T, float>) return {.two_f32 = f};
  else if constexpr (std::is_same_v<T, double>) return {.two_f64 = f};
  else if constexpr (std::is_same_v<T, std::int32_t>) return {.two_i32 = f};
  else return {.two_i64 = f};
}
template <class T>
constexpr Symbol<T> called(T (*f)(T), Symbol<T> const& x) {
  return record<T>(Do::call, {.functions = function_of(f)}, x);
}
template <class T>
constexpr Symbol<T> called(T (*f)(T, T), Symbol<T> const& x, Symbol<T> const& y) {
  return record<T>(Do::call, {.functions = function_of(f)}, x, y);
}
/// called_where - f(x) where c holds, y elsewhere.
template <class T>
constexpr Symbol<T> called_where(T (*f)(T), Symbol<T> const& x, Symbol<T> const& y, Truth const& c) {
  return record<T>(Do::call_where, {.functions = function_of(f)}, x, y, c);
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
