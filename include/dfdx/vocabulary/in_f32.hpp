// SPDX-License-Identifier: BSL-1.0
// Values of 16 bits computed with in f32: what functions made of several ops do with them in memory, so that only the
// result is rounded. Programs are told nothing of it, for their loops do so with all that lies between what they read
// and store.
#pragma once

#include <dfdx/vocabulary/call.hpp>

namespace dfdx {

namespace detail {

// x in f32 if it has 16 bits, in which what leads to a result may overflow.
template <operand X>
constexpr auto in_f32(X const& x) {
  if constexpr (refused<X>) return Refused{};
  else if constexpr (!typed<X>)
    return either(
        is_floating(x.dtype()), [&] { return cast_to(x, promote(x.dtype(), DType::f32)); },
        [&] { return x; });
  else if constexpr (promote(X::static_meta.dtype, DType::f32) != DType::f32) return x;
  else if constexpr (is_floating(X::static_meta.dtype)) return cast<float>(x);
  else return x;
}
// y in the dtype of x, or that which several have together, if that has 16 bits.
template <operand Y, operand A, operand... B>
constexpr auto rounded_as(Y const& y, A const& a, B const&... b) {
  auto const common = [](DType d, auto... others) {
    ((d = promote(d, others)), ...);
    return d;
  };
  if constexpr (refused<Y, A, B...>) return Refused{};
  else if constexpr (typed<Y> && typed<A> && (typed<B> && ...)) {
    constexpr DType d = common(A::static_meta.dtype, B::static_meta.dtype...);
    if constexpr (size_of(d) == 2) return cast<element_t<d>>(y);
    else return y;
  } else {
    DType const d = common(a.dtype(), b.dtype()...);
    return either(size_of(d) == 2, [&] { return cast_to(untyped(y), d); }, [&] { return untyped(y); });
  }
}
/// computed_in_f32(x, f) - f of real numbers: of integers as f32, of 16 bits in f32 and rounded once, at the end.
template <class X, class F>
constexpr auto computed_in_f32(X const& x, F const& f) {
  if constexpr (refused<X>) return Refused{};
  else if constexpr (sym<X>) return f(real(x));
  else if (DFDX_IN_CONSTANT_EXPRESSION || x.recorded()) return f(real(x));
  else return rounded_as(f(in_f32(real(x))), x);
}
/// computed_in_f32(f, x...) - the same of several operands, whose integers f takes as they are.
template <class F, operand A, operand... B>
  requires(sizeof...(B) > 0)
constexpr auto computed_in_f32(F const& f, A const& a, B const&... b) {
  if constexpr (refused<A, B...>) {
    return Refused{};
  } else if constexpr (sym<A> || (sym<B> || ...)) {
    return f(a, b...);
  } else {
    using Y = std::remove_cvref_t<decltype(f(a, b...))>;
    auto const is_apart = [&] {
      return DFDX_IN_CONSTANT_EXPRESSION || a.recorded() || (b.recorded() || ...);
    };
    if constexpr (refused<Y>) return Refused{};
    else if constexpr (!typed<Y>) {
      if (is_apart()) return Array(f(a, b...));
      return Array(rounded_as(f(in_f32(a), in_f32(b)...), a, b...));
    } else if constexpr (size_of(Y::static_meta.dtype) != 2) {
      return f(a, b...);
    } else {
      if (is_apart()) return Y(f(a, b...));
      return cast<typename Y::value_type>(f(in_f32(a), in_f32(b)...));
    }
  }
}

}  // namespace detail

}  // namespace dfdx
