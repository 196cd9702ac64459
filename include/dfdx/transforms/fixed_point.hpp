// SPDX-License-Identifier: BSL-1.0
// fixed_point: where a function leaves its argument as it is, differentiated by what it is there and not by how it was
// reached.
#pragma once

#include <dfdx/transforms/custom_jvp.hpp>
#include <dfdx/vocabulary/control.hpp>

namespace dfdx {

namespace detail {

template <class F, std::size_t Max>
struct FixedPointSearch {
  template <class X, class... T>
  constexpr X operator()(X const& start, T const&... theta) const {
    double const near = start.dtype() == DType::f64 ? 1e-13 : 1e-6;
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
    auto const once = [&](X const& u) { return X(ct + std::get<0>(pull(y, theta..., u).second)); };
    auto cts = pull(y, theta..., scan<Max>(once, ct)).second;
    std::get<0>(cts) = zeros_like(start);
    return cts;
  }
};

// u = (df/dx) u + (df/dtheta) dtheta.
template <class F, std::size_t Max>
struct FixedPointTangent {
  template <class X, class... A>
  constexpr X operator()(X const& y, A const&... operands_and_tangents) const {
    auto const all = std::tie(operands_and_tangents...);
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      constexpr std::size_t n = sizeof...(K) + 1;
      constexpr auto push = jvp(F{});
      auto const once = [&](X const& u) {
        return X(push(y, std::get<K + 1>(all)..., u, std::get<n + K + 1>(all)...).second);
      };
      return scan<Max>(once, X(zeros_like(y)));
    }(std::make_index_sequence<sizeof...(A) / 2 - 1>{});
  }
};

// The rules for Arrays, whose derivatives are the tape's.
template <class R>
struct RuleOfArrays {
  template <class V, class... X>
  constexpr auto operator()(V const& first, X const&... rest) const {
    if constexpr (std::is_same_v<V, Array>) return R{}(first, rest...);
    else return raise("fixed_point: Tensors required in programs"), std::tuple<X...>{};
  }
};
struct NoTangentOfArrays {
  template <class V>
  constexpr V operator()(V const&, auto const&...) const {
    raise("fixed_point: Tensors required in programs");
  }
};

}  // namespace detail

/// FixedPoint - what fixed_point<Max>(f) returns.
template <class F, std::size_t Max>
struct FixedPoint {
  template <class X, class... T>
  constexpr auto operator()(X const& start, T const&... theta) const {
    static_assert((leaf<X> && ... && leaf<T>), "fixed_point: Tensors or Arrays required");
    if constexpr ((typed<X> && ... && typed<T>)) {
      using Back = detail::TypedRule<detail::FixedPointRule<F, Max>, X, X, X, T...>;
      using Ahead = detail::TypedRule<detail::FixedPointTangent<F, Max>, X, X, T..., X, T...>;
      return solved<detail::RulesOfBothModes<Back, Ahead>>(start, theta...);
    } else {
      if ((start.recorded() || ... || theta.recorded())) raise("fixed_point: Tensors required in programs");
      using Back = detail::RuleOfArrays<detail::FixedPointRule<F, Max>>;
      return solved<detail::RulesOfBothModes<Back, detail::NoTangentOfArrays>>(detail::untyped(start),
                                                                               detail::untyped(theta)...);
    }
  }

 private:
  template <class Rules, class X, class... T>
  static constexpr X solved(X const& start, T const&... theta) {
    X const y = detail::FixedPointSearch<F, Max>{}(stop_gradient(start), stop_gradient(theta)...);
    return detail::ruled<Rules>(y, start, theta...);
  }
};

/// fixed_point<Max>(f)(start, theta...) - the x with f(x, theta...) = x that f, a contraction, leads to from `start` in
/// at most Max rounds; its gradient by theta is that of the equation, so that nothing of the search is kept. By `start`
/// it is zero. At most two parameters theta.
///
/// Math      x = f(x, theta); dtheta = (df/dtheta)' u with u = dx + (df/dx)' u
/// Shapes    x: that of start, which f returns
/// Dtypes    floating
/// Cost      Max rounds in a compiled program, and Max vector-Jacobian products backward, or Jacobian-vector forward
/// Errors    those of the function; "fixed_point: Tensors required in programs" of Arrays there
/// Source    Christianson, Reverse accumulation and attractive fixed points, 1994
template <std::size_t Max, class F>
constexpr FixedPoint<F, Max> fixed_point(F const&) {
  static_assert(
      std::is_empty_v<F>,
      "fixed_point: a lambda or function object without captures required; pass values as arguments");
  return {};
}

}  // namespace dfdx
