// SPDX-License-Identifier: BSL-1.0
// What users call on the run-time tape besides the members of Array: backward, gradients, and the same for models.
#pragma once

#include <array>

#include <dfdx/tape/pass.hpp>
#include <dfdx/value/fields.hpp>

namespace dfdx {

namespace tape::detail {

template <int Lazy>
void check_root(Array const& root, Array const& ct) {
  static_assert(Lazy == 0);
  if (!root.requires_grad()) dfdx::detail::refuse_untaped("backward", root.shape());
  if (!(root.meta() == ct.meta()))
    raise("backward: gradient of ", ct.dtype(), " ", ct.shape(), " for a value of ", root.dtype(), " ",
          root.shape());
}

inline Array ones_for(Array const& root) {
  bool const is_here = root.device().is_cpu();
  if (is_here && root.ndim() == 0 && root.dtype() == DType::f64) return Array::number(1.0);
  if (is_here && root.ndim() == 0 && root.dtype() == DType::f32) return Array::number(1.0f);
  return full_as(root.detach(), root.meta(), 1.0);
}

}  // namespace tape::detail

/// backward - the gradients of a value with respect to all leaves (requires_grad) that it was made of, added to their
/// `grad`. The value need not be a number: `end_gradient` (ones if not given) says what its elements count.
///
/// Math      x.grad += (dy/dx)' end_gradient
/// Errors    "backward: the value of shape [] does not require a gradient"; a second pass over the same values
template <int Lazy>
void Array::backward(BackwardOptions options) const {
  backward<Lazy>(tape::detail::ones_for(*this), options);
}
template <int Lazy>
void Array::backward(Array const& end_gradient, BackwardOptions options) const {
  tape::detail::check_root<Lazy>(*this, end_gradient);
  tape::Pass<Lazy>(*this, end_gradient, options).run();
}

/// gradients - those of y with respect to some values, leaves or not, returned and not added to anything; zeros where y
/// does not depend on one.
template <int Lazy = 0>
std::vector<Array> gradients(Array const& y, std::span<Array const> x, BackwardOptions options = {}) {
  Array const ones = tape::detail::ones_for(y);
  tape::detail::check_root<Lazy>(y, ones);
  std::vector<Array> r = tape::Pass<Lazy>(y, ones, options).run(x);
  for (std::size_t i = 0; i < r.size(); ++i) {
    if (r[i].empty()) r[i] = zeros_like(x[i].detach());
    // The caller's own, to be changed in place: no number that several elements are, as rules of sums make it.
    else if (!options.create_graph && dfdx::detail::overlaps_itself(r[i].shape(), r[i].strides()))
      r[i] = dfdx::detail::packed(r[i]);
  }
  return r;
}
template <int Lazy = 0>
std::vector<Array> gradients(Array const& y, std::initializer_list<Array> x, BackwardOptions options = {}) {
  return gradients<Lazy>(y, std::span<Array const>(x.begin(), x.size()), options);
}

/// watch - makes all floating parameters of a model leaves of the tape, not its buffers. The model is changed; a copy
/// made before is not.
template <tree Model>
Model& watch(Model& model) {
  visit(model, [](auto& leaf) {
    if (!is_buffer<decltype(leaf)> && is_floating(leaf.dtype())) leaf.requires_grad(true);
  });
  return model;
}
/// unwatch - ends that.
template <tree Model>
Model& unwatch(Model& model) {
  visit(model, [](auto& leaf) {
    if (leaf.tape() != nullptr) leaf.requires_grad(false);
  });
  return model;
}
/// zero_grad - forgets the gradients of a model's parameters.
template <tree Model>
void zero_grad(Model const& model) {
  visit(model, [](auto const& leaf) { leaf.zero_grad(); });
}
/// grads - a model whose parameters are the gradients of this model's; zeros where there are none.
template <tree Model>
Model grads(Model const& model) {
  Model r = model;
  visit(r, [](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    Array g = leaf.grad();
    if (g.empty()) g = zeros_like(dfdx::detail::untyped(leaf).detach());
    leaf = Leaf(typename Leaf::Unchecked{}, g);
  });
  return r;
}

}  // namespace dfdx
