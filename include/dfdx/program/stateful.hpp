// SPDX-License-Identifier: BSL-1.0
// stateful: a program with a state that it changes in place, call after call.
#pragma once

#include <dfdx/program/transforms.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

template <class State, class R>
inline constexpr bool returns_state = false;
template <class State, class Y>
inline constexpr bool returns_state<State, std::pair<Y, State>> = true;

}  // namespace dfdx::detail::inline DFDX_TARGET

namespace dfdx::inline DFDX_TARGET {

/// WithState - what stateful(f) compiles: the result and the next state from (state, arguments...); no result, an empty
/// tuple, where f returns the next state alone.
template <class F>
struct WithState {
  template <class State, class... A>
  static constexpr auto record(State const& state, A const&... args) {
    auto r = detail::record_call<F>(state, args...);
    if constexpr (std::is_same_v<decltype(r), State>) {
      return std::pair(std::tuple<>{}, std::move(r));
    } else {
      static_assert(refused<decltype(r)> || detail::returns_state<State, decltype(r)>,
                    "stateful: the function must return the next state, of the state's type, or a pair of a "
                    "result and it");
      return r;
    }
  }

  /// What explain calls the arguments.
  static std::string argument_name(std::size_t i) { return i == 0 ? "state" : "arg" + std::to_string(i - 1); }

  /// The state is written where it is read.
  template <class State, class... A>
  static constexpr graph::Aliases aliases() {
    using Result = typename result_t<WithState, State, A...>::first_type;
    graph::Aliases r(static_cast<std::size_t>(leaf_count<Result>), -1);
    for (int i = 0; i < leaf_count<State>; ++i) r.push_back(i);
    return r;
  }
};

/// BoundStep - a program with a state, tied to it, to its other arguments and to its arena: see Bound.
template <class P, class... A>
class BoundStep : Bound<P, A...> {
 public:
  using Bound<P, A...>::Bound;
  decltype(auto) operator()() {
    auto const& all = Bound<P, A...>::operator()();
    if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(all.first)>, std::tuple<>>) return (all.first);
  }
};

/// Stateful - a compiled function of a state and other arguments that writes the state's next value in its place.
///
/// Cost      after the first calls no allocation, unless earlier results are still held
/// Errors    "stateful: a state must be contiguous"
/// Threading one object, one thread
template <class F>
class Stateful {
 public:
  /// The program for a state and arguments; its facts are constants.
  template <class State, class... A>
  using program_for = program<detail::bound_function<WithState<F>, std::remove_cvref_t<A>...>, State,
                              std::remove_cvref_t<A>...>;

  template <class State, class... A>
  auto operator()(State& state, A const&... args) {
    static_assert(!(is_fixed_argument<A> || ...), "fixed: only for arguments of bind");
    using P = program_for<State, A...>;
    using R = typename detail::Recorded<P>::result;
    if constexpr (refused<R>) return Refused{};
    else if constexpr (!detail::is_recorded<P>) return Refused{};
    else if constexpr (std::is_same_v<typename R::first_type, std::tuple<>>)
      static_cast<void>(run<P, std::tuple<>>(state, args...));
    else return run<P, typename R::first_type>(state, args...);
  }

  /// bind(state, args...) - this function tied to a state and other arguments, whose memory it reads and writes as it
  /// is at each call, but for arguments given as fixed(x): the call returns the result, and costs no more than its
  /// kernels.
  template <class State, class... A>
  auto bind(State& state, A const&... args) const {
    check(state);
    return BoundStep<program_for<State, A...>, State, argument_t<A>...>(state, detail::as_argument(args)...);
  }

 private:
  template <class P, class Result, class State, class... A>
  Result run(State& state, A const&... args) {
    check(state);
    if (is_grad_enabled()) (detail::require_off_tape(args), ...);
    auto const views = [](Storage* storage, typename P::Frame const& frame) {
      Result out{};
      detail::view_results<P>(out, storage, frame);
      return out;
    };
    return detail::run_and_take<P>(arenas_.get(), views, state, detail::as_argument(args)...);
  }
  template <class State>
  static void check(State const& state) {
    visit(state, [](auto const& leaf) {
      if (!leaf.empty() && !leaf.contiguous_memory()) raise("stateful: a state must be contiguous");
    });
  }
  detail::OwnArenas arenas_;
};

/// stateful(f) - f(state, args...), which returns std::pair(result, next state), as a function object that is called
/// with a state of the caller's and changes it: step(state, args...) returns the result. f may return the next state
/// alone, as a step of a simulation does; the call returns nothing then. Parts of the state that index_copy, index_add,
/// scatter and scatter_add change are written and nothing else of it; what is read of a state is as it was before the
/// call.
///
/// Math      (y, state) = f(state, args...)
/// Errors    "stateful: the function must return the next state, of the state's type, or a pair of a result and it" at
///           compile time; "stateful: a state must be contiguous"
template <class F>
constexpr auto stateful(F) {
  static_assert(detail::captures_nothing<F>, "stateful: the function must not capture");
  return Stateful<F>{};
}

}  // namespace dfdx::inline DFDX_TARGET
