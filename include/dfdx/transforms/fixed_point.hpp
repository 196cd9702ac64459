// SPDX-License-Identifier: BSL-1.0
// fixed_point: where a function leaves its argument as it is, differentiated by what it is there and not by how it was
// reached.
#pragma once

#include <dfdx/program/transforms.hpp>
#include <dfdx/vocabulary/control.hpp>
#include <dfdx/vocabulary/custom_vjp.hpp>

namespace dfdx {

namespace detail {

template <class F, std::size_t Max>
struct FixedPointSearch {
  template <class X, class... T>
  constexpr X operator()(X const& start, T const&... theta) const {
    double const near = X::static_meta.dtype == DType::f64 ? 1e-13 : 1e-6;
    auto const moves = [&](X const& x) {
      X const y = F{}(x, theta...);
      return max(abs(y - x)) > near * (1.0 + max(abs(x)));
    };
    return while_loop<Max>(moves, [&](X const& x) { return X(F{}(x, theta...)); }, start);
  }
};

// u = ct + (df/dx)' u, solved like the fixed point itself; then (df/dtheta)' u.
template <class F, std::size_t Max>
struct FixedPointRule {
  template <class X, class... T>
  constexpr auto operator()(X const& ct, X const& y, X const& start, T const&... theta) const {
    constexpr auto pull = vjp(F{});
    auto const once = [&](X const& u, auto const&) {
      return X(ct + std::get<0>(pull(y, theta..., u).second));
    };
    X u = ct;
    if (ct.recorded()) u = scan(once, u, rounds<Max>(*ct.graph()));
    else
      for (std::size_t i = 0; i < Max; ++i) u = once(u, 0);
    auto cts = pull(y, theta..., u).second;
    std::get<0>(cts) = zeros_like(start);
    return cts;
  }
};

}  // namespace detail

/// FixedPoint - what fixed_point<Max>(f) returns.
template <class F, std::size_t Max>
struct FixedPoint {
  template <class X, class... T>
  constexpr X operator()(X const& start, T const&... theta) const {
    static_assert((typed<X> && ... && typed<T>), "fixed_point: Tensors required");
    return CustomVjp<detail::FixedPointSearch<F, Max>, detail::FixedPointRule<F, Max>>{}(start, theta...);
  }
};

/// fixed_point<Max>(f)(start, theta...) - the x with f(x, theta...) = x that f, a contraction, leads to from `start` in
/// at most Max rounds; its gradient by theta is that of the equation, so that nothing of the search is kept. By `start`
/// it is zero. At most two parameters theta.
///
/// Math      x = f(x, theta); dtheta = (df/dtheta)' u with u = dx + (df/dx)' u
/// Shapes    x: that of start, which f returns
/// Dtypes    floating
/// Cost      Max rounds in a compiled program, and Max vector-Jacobian products backward
/// Errors    "custom_vjp: has no rule for forward mode"
/// Source    Christianson, Reverse accumulation and attractive fixed points, 1994
template <std::size_t Max, class F>
constexpr FixedPoint<F, Max> fixed_point(F const&) {
  static_assert(std::is_empty_v<F>,
                "fixed_point: the function must have no captures; pass values as arguments");
  return {};
}

}  // namespace dfdx
