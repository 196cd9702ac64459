// SPDX-License-Identifier: BSL-1.0
// Models with memory of their own, and their numbers written into others. (A copy of a Tensor, or of a struct of them,
// shares its memory, as in PyTorch and NumPy.)
#pragma once

#include <dfdx/vocabulary/in_place.hpp>
#include <dfdx/vocabulary/to_device.hpp>

namespace dfdx {

namespace detail {

template <class = void>
constexpr Array cloned(Array const& x) {
  if (x.recorded() && !is_floating(x.dtype())) return x;
  if (x.recorded()) return stop_gradient(x);
  if (x.bytes() == nullptr) return x;
  Array const d = x.detach();
  return d.device().is_cpu() ? d.clone() : moved(d.device(), d);
}

// f(leaf of a, leaf of b) for each pair, in memory that the two have already.
template <class T, class F>
void each_pair(char const* name, T& a, T const& b, F const& f) {
  Vec<Array> from;
  visit(b, [&](auto const& leaf) { from.push_back(leaf.detach()); });
  std::size_t i = 0;
  visit(a, [&](auto& leaf) {
    if (i == from.size()) raise(name, ": models of as many tensors required");
    Array to = leaf.detach();
    f(to, from[i++]);
  });
  if (i != from.size()) raise(name, ": models of as many tensors required");
}

}  // namespace detail

/// clone(value) - a value, or a model leaf by leaf, in memory of its own, where the other lies; not watched by a tape.
/// `auto best = clone(model);` keeps what `auto best = model;` would see changed by the next step.
/// In a compiled function, where nothing shares memory, it is the value without a gradient.
///
/// Shapes    x: [S...] -> [S...]
/// Dtypes    any
/// Cost      one allocation and one copy for each leaf
/// Errors    those of an allocation
/// Source    PyTorch's clone; copy.deepcopy of a module
template <tree T>
constexpr T clone(T const& value) {
  Vec<Array> copies;
  visit(value, [&](auto const& leaf) { copies.push_back(detail::cloned(leaf)); });
  std::size_t i = 0;
  return detail::filled(value, [&] { return copies[i++]; });
}

/// copy_(target, source) - the numbers of a model written into another of its type, in place: nothing else shares them
/// then. Tapes do not see it.
///
/// Shapes    each leaf that of its peer
/// Dtypes    any
/// Cost      one copy for each leaf
/// Errors    "copy_: a value of shape [3] does not fit the target of shape [2]"
/// Source    PyTorch's copy_ and load_state_dict
template <tree T>
void copy_(T& target, T const& source) {
  detail::each_pair("copy_", target, source, [](Array& to, Array const& from) { to.copy_(from); });
}

/// lerp_(target, source, t) - a model moved towards another of its type, in place: a running average of weights, or the
/// soft update of a target network. Integers and truths are copied. Tapes do not see it.
///
/// Math      target += t (source - target)
/// Shapes    each leaf that of its peer
/// Dtypes    any
/// Cost      three passes over each leaf
/// Errors    those of copy_
/// Source    PyTorch's lerp_; Lillicrap et al., ICLR 2016 (soft updates)
template <tree T>
void lerp_(T& target, T const& source, double t) {
  detail::each_pair("lerp_", target, source, [&](auto& to, auto const& from) {
    if (is_floating(to.dtype())) to.copy_(to + (from - to) * t);
    else to.copy_(from);
  });
}

}  // namespace dfdx
