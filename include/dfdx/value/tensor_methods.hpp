// SPDX-License-Identifier: BSL-1.0
// The methods of Tensor that are functions of the vocabulary by another name. Defined in
// vocabulary/tensor_methods.hpp, where those functions are; what they do stands there.
#pragma once

#include <cstddef>
#include <utility>

#include <dfdx/value/lists.hpp>

namespace dfdx {

/// TensorMethods - of Tensor, over what it is otherwise: their results are Tensors. Axes and extents stand in angle
/// brackets, x.sum<0>(), x.reshape<2, 3>(); as arguments they are known at run time, and so is the result's shape.
template <class Self, class Base>
class TensorMethods : public Base {
 public:
  using Base::Base;
  constexpr TensorMethods() = default;
  constexpr explicit TensorMethods(Base&& b) : Base(std::move(b)) {}

  template <int Lazy = 0>
  constexpr auto exp() const;
  template <int Lazy = 0>
  constexpr auto log() const;
  template <int Lazy = 0>
  constexpr auto sqrt() const;
  template <int Lazy = 0>
  constexpr auto square() const;
  template <int Lazy = 0>
  constexpr auto abs() const;
  template <int Lazy = 0>
  constexpr auto sin() const;
  template <int Lazy = 0>
  constexpr auto cos() const;
  template <int Lazy = 0>
  constexpr auto tanh() const;
  template <int Lazy = 0>
  constexpr auto sigmoid() const;
  template <int Lazy = 0>
  constexpr auto relu() const;
  template <int Lazy = 0>
  constexpr auto floor() const;
  template <int Lazy = 0>
  constexpr auto ceil() const;
  template <int Lazy = 0>
  constexpr auto round() const;
  template <int Lazy = 0>
  constexpr auto T() const;
  template <int... A>
  constexpr auto transpose() const;
  template <int Lazy = 0>
  constexpr auto transpose(int a, int b) const;
  template <int... A>
  constexpr auto permute() const;
  template <int Lazy = 0>
  constexpr auto permute(Axes const& axes) const;
  template <index_t... Dims>
  constexpr auto reshape() const;
  template <int Lazy = 0>
  constexpr auto reshape(Extents const& to) const;
  template <index_t... Dims>
  constexpr auto view() const;
  template <int Lazy = 0>
  constexpr auto view(Extents const& to) const;
  template <index_t... Dims>
  constexpr auto expand() const;
  template <int Lazy = 0>
  constexpr auto expand(Extents const& to) const;
  template <int Start = 0, int End = -1>
  constexpr auto flatten() const;
  template <int Lazy = 0>
  constexpr auto flatten(int start, int end = -1) const;
  template <int... A>
  constexpr auto squeeze() const;
  template <int Lazy = 0>
  constexpr auto squeeze(Axes const& axes) const;
  template <int Axis>
  constexpr auto unsqueeze() const;
  template <int Lazy = 0>
  constexpr auto unsqueeze(int axis) const;
  template <int... A>
  constexpr auto sum() const;
  template <int Lazy = 0>
  constexpr auto sum(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto mean() const;
  template <int Lazy = 0>
  constexpr auto mean(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto prod() const;
  template <int Lazy = 0>
  constexpr auto prod(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto max() const;
  template <int Lazy = 0>
  constexpr auto max(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto min() const;
  template <int Lazy = 0>
  constexpr auto min(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto any() const;
  template <int Lazy = 0>
  constexpr auto any(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto all() const;
  template <int Lazy = 0>
  constexpr auto all(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto argmax() const;
  template <int Lazy = 0>
  constexpr auto argmax(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto argmin() const;
  template <int Lazy = 0>
  constexpr auto argmin(Axes const& axes, bool keep = false) const;
  template <int... A>
  constexpr auto var() const;
  template <int Lazy = 0>
  constexpr auto var(Axes const& axes, int correction = 1, bool keep = false) const;
  template <int... A>
  constexpr auto std() const;
  template <int Lazy = 0>
  constexpr auto std(Axes const& axes, int correction = 1, bool keep = false) const;
  template <int Axis = -1>
  constexpr auto softmax() const;
  template <int Lazy = 0>
  constexpr auto softmax(int axis) const;
  template <int Axis = -1>
  constexpr auto log_softmax() const;
  template <int Lazy = 0>
  constexpr auto log_softmax(int axis) const;
  template <int Axis = -1>
  constexpr auto sort() const;
  template <int Lazy = 0>
  constexpr auto sort(int axis, bool descending = false) const;
  template <int Axis>
  constexpr auto cumsum() const;
  template <int Lazy = 0>
  constexpr auto cumsum(int axis) const;
  template <index_t K, int Axis = -1>
  constexpr auto topk() const;
  template <int Lazy = 0>
  constexpr auto topk(index_t k, int axis = -1, bool largest = true) const;
  template <class X>
  constexpr auto matmul(X const& x) const;
  template <class X>
  constexpr auto dot(X const& x) const;
  template <class X>
  constexpr auto pow(X const& x) const;
  template <class L, class H>
  constexpr auto clamp(L const& low, H const& high) const;
  template <class E>
  constexpr auto to() const;
  template <int Lazy = 0>
  constexpr auto to(DType dtype) const;
  template <int Lazy = 0>
  constexpr auto clone() const;

  /// detach - the same memory, unknown to the tape.
  Self detach() const { return Self(typename Self::Unchecked{}, Base::detach()); }
  /// contiguous - dense: itself, or a copy.
  template <int = 0>
  Self contiguous() const {
    return Base::contiguous_memory() ? self() : clone();
  }

 private:
  constexpr Self const& self() const { return static_cast<Self const&>(*this); }
};

}  // namespace dfdx
