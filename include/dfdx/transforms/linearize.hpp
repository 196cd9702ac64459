// SPDX-License-Identifier: BSL-1.0
// linearize: a function at one point and its derivative there, a linear function of directions.
#pragma once

#include <dfdx/transforms/eager.hpp>

namespace dfdx {

/// Linearized - the derivative of a function at a point: called with directions like the arguments it gives that of the
/// result. What the function computed at the point is kept, not computed again.
template <class Y, class... X>
class Linearized {
 public:
  /// Recorded arguments and the result recorded from them.
  constexpr Linearized(Y const& y, X const&... x) : y_(y), x_(x...) {}
  /// Leaves that are on the tape, the result's and the arguments'; `nested` if the derivatives shall be too.
  Linearized(Y const& y, std::vector<Array> const& ends, std::vector<Array> const& from, bool nested,
             X const&... x)
      : y_(y), x_(x...), pull_(detail::zeros_to_watch(ends)), nested_(nested) {
    pulled_ = detail::slopes(detail::paired(ends, pull_), from, {true, true});
  }

  constexpr Y operator()(X const&... directions) const {
    if (DFDX_IN_CONSTANT_EXPRESSION) {
      Vec<Sym> const ends = detail::syms_of(y_);
      Vec<Sym> const found = graph::push_forward(*ends[0].graph, detail::ids_of(detail::syms_of(x_)),
                                                 detail::syms_of(std::tie(directions...)), ends);
      Sym const* next = found.data();
      return detail::with_leaves(y_, next);
    }
    return on_tape(directions...);
  }

 private:
  Y on_tape(X const&... directions) const {
    // The pass backwards is linear in what it starts from: its own gradient is the derivative.
    std::vector<Array> const along = detail::arrays_of(std::tie(directions...));
    bool nested = nested_;
    for (std::size_t k = 0; k < along.size(); ++k) {
      if (!(along[k].shape() == pulled_[k].shape()))
        raise("linearize: a direction of shape ", along[k].shape(), " for a value of shape ",
              pulled_[k].shape());
      nested = nested || along[k].requires_grad();
    }
    enable_grad const recording;
    return detail::with_arrays(y_, detail::slopes(detail::paired(pulled_, along), pull_, {true, nested}));
  }

  Y y_;
  std::tuple<X...> x_;
  std::vector<Array> pull_, pulled_;
  bool nested_ = false;
};

namespace detail::inline DFDX_TARGET {

template <class F, class... A>
constexpr auto linearized_apart(A const&... args) {
  auto const y = record_call<F>(args...);
  return std::pair(y, Linearized<std::remove_const_t<decltype(y)>, A...>(y, args...));
}

template <class F, class... A>
auto linearized_on_tape(A const&... args) {
  auto const s = started<every_argument<std::tuple<A...>>>(std::tie(args...));
  auto const y = s.template run<F>();
  using Y = std::remove_const_t<decltype(y)>;
  return std::pair(finished(y, s.nested),
                   Linearized<Y, A...>(finished(y, s.nested), arrays_of(y), s.wrt, s.nested, args...));
}

}  // namespace detail::inline DFDX_TARGET

/// linearize(f)(args...) - the pair of f(args...) and its derivative there, a function of directions (one for each
/// argument, like it) that may be called many times and does not run f again: for conjugate gradients, say. Within a
/// compiled function it is recorded, in loops too; elsewhere it keeps a tape.
///
/// Math      (f(x), t -> (df/dx) t)
/// Example   auto const [y, along] = linearize(f)(x); auto const dy = along(t);
/// Cost      a direction: that of forward mode without f
/// Errors    "linearize: a direction of shape [2] for a value of shape [3]"
/// Source    jax.linearize
template <class F>
constexpr auto linearize(F const&) {
  static_assert(detail::captures_nothing<F>,
                "linearize: a lambda or function object without captures required; pass values as arguments");
  return []<class... A>(A const&... args) {
    if constexpr ((detail::has_static_leaves<A>() && ...))
      if (DFDX_IN_CONSTANT_EXPRESSION) {
        Graph* const g = detail::graph_of(args...);
        return detail::linearized_apart<F>(detail::apart(g, args)...);
      }
    return detail::linearized_on_tape<F>(args...);
  };
}

}  // namespace dfdx
