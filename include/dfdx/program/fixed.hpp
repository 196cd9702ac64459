// SPDX-License-Identifier: BSL-1.0
// fixed(x): an argument that a program is bound to and that does not change while it is. What depends on such arguments
// alone is computed once, when the program is bound.
#pragma once

#include <cstring>

#include <dfdx/graph/keep.hpp>
#include <dfdx/program/inputs.hpp>

namespace dfdx {

/// FixedArgument - an argument of `bind` that stays the same as long as the program is bound to it: see fixed.
template <tree T>
struct FixedArgument {
  T value;
  DFDX_FIELDS(value)
};

/// fixed(model) - for `bind`: the promise that these values do not change as long as the program is bound to them.
/// What is computed from them alone (sums of biases, weights in another dtype, folded norms) is computed when bind is
/// called and kept; small matrices that are multiplied with single vectors are laid out for that.
///
///     auto run = compile(f).bind(fixed(model), x);   // f(model, x): reads x at each call
///
/// Math      none: results are those without it, but for the order of sums in products
/// Cost      memory for what is kept: each no larger than the largest of the values it is made from; while bind runs,
///           that of the steps which make it
/// Errors    changed values are not noticed: some of them are read at each call, others not
template <tree T>
constexpr FixedArgument<T> fixed(T const& value) {
  return {value};
}
template <class T>
  requires std::is_arithmetic_v<T>
FixedArgument<Tensor<T>> fixed(T number) {
  return {Tensor<T>(number)};
}

template <class T>
inline constexpr bool is_fixed_argument = false;
template <class T>
inline constexpr bool is_fixed_argument<FixedArgument<T>> = true;

}  // namespace dfdx

namespace dfdx::detail::inline DFDX_TARGET {

template <class A>
constexpr A const& unfixed(A const& a) {
  return a;
}
template <class T>
constexpr T const& unfixed(dfdx::FixedArgument<T> const& a) {
  return a.value;
}
template <class A>
using unfixed_t = std::remove_cvref_t<decltype(unfixed(std::declval<A const&>()))>;

// For each leaf of the arguments whether it is fixed.
template <class A>
constexpr void add_leaves(Vec<char>& to, A const& arg) {
  visit(arg, [&](auto const&) { to.push_back(is_fixed_argument<A> ? 1 : 0); });
}
template <class... A>
constexpr Vec<char> fixed_leaves(A const&... args) {
  Vec<char> r;
  (add_leaves(r, args), ...);
  return r;
}

/// Rest - F on arguments of which some are fixed: what has to be computed at each call.
template <class F>
struct Rest {
  template <class... A>
  static constexpr auto record(A const&... args) {
    return record_call<F>(unfixed(args)...);
  }
  template <class... A>
  static constexpr graph::Parts parts() {
    Graph g = graph::simplify(trace<Rest, A...>());
    Vec<char> fixed = fixed_leaves(argument_t<A>{}...);
    for (int k = 0; k < g.literal_inputs.count; ++k) fixed.push_back(1);
    return graph::keep(std::move(g), fixed);
  }
  template <class... A>
  static constexpr Graph graph() {
    return parts<A...>().rest;
  }
  template <class... A>
    requires requires { F::template aliases<unfixed_t<A>...>(); }
  static constexpr graph::Aliases aliases() {
    return F::template aliases<unfixed_t<A>...>();
  }
  static std::string argument_name(std::size_t i) {
    if constexpr (requires { F::argument_name(i); }) return F::argument_name(i);
    else return "arg" + std::to_string(i);
  }
};
/// Once - what has to be computed when such a program is bound.
template <class F>
struct Once {
  template <class... A>
  static constexpr std::tuple<> record(A const&...) {
    return {};
  }
  template <class... A>
  static constexpr Graph graph() {
    return Rest<F>::template parts<A...>().once;
  }
  template <class... A>
  static constexpr Graph recorded() {
    return trace<Rest<F>, A...>();
  }
};

/// Kept - the memory of what a bound program keeps; nothing for most.
template <class P>
struct Kept {
  template <class... A>
  void add_to(Inputs<P>&, A const&...) {}
};
template <class F, class... A>
class Kept<program<Rest<F>, A...>> {
 public:
  Kept() = default;
  Kept(Kept&& o) noexcept : storage_(std::exchange(o.storage_, nullptr)) {}
  Kept& operator=(Kept&& o) noexcept {
    std::swap(storage_, o.storage_);
    return *this;
  }
  ~Kept() {
    if (storage_ != nullptr) storage_->release();
  }

  /// Computes what is kept, and adds it to the program's inputs behind those that are there.
  void add_to(Inputs<program<Rest<F>, A...>>& inputs, argument_t<A> const&... args) {
    using P = program<Once<F>, A...>;
    if constexpr (P::outputs > 0) {
      Inputs<P> own;
      (own.add(args), ...);
      own.complete();
      typename P::Frame frame;
      frame.inputs = own.data;
      frame.device = own.device;
      // In memory that is left again: only the results are kept.
      auto const device = own.device;
      Array const work(Meta{DType::u8, make_shape(P::arena_on(device, nullptr, nullptr))}, device);
      frame.arena = work.bytes();
      P::run(frame);
      auto const bytes_of = [](graph::Result const& r) {
        return static_cast<std::size_t>(r.meta.shape.numel()) * size_of(r.meta.dtype);
      };
      auto const room = [&](graph::Result const& r) { return (bytes_of(r) + 63) / 64 * 64; };
      std::size_t all = 0;
      for (auto const& r : P::plan.results) all += room(r);
      storage_ = Storage::allocate(all, device);
      std::byte* to = storage_->data();
      for (auto const& r : P::plan.results) {
        std::byte const* const from = P::address(r.memory, frame);
        if (device.is_cpu()) std::memcpy(to, from, bytes_of(r));
        else if constexpr (has_devices) device_memory->copy(to, device, from, device, bytes_of(r));
        inputs.data[inputs.count++] = to;
        to += room(r);
      }
    }
  }

 private:
  Storage* storage_ = nullptr;
};

// The function that is compiled for arguments A... that a program is bound to.
template <class F, class... A>
using bound_function = std::conditional_t<(is_fixed_argument<A> || ...), Rest<F>, F>;

}  // namespace dfdx::detail::inline DFDX_TARGET
