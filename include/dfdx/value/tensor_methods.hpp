// SPDX-License-Identifier: BSL-1.0
// The methods of Tensor that are functions of the vocabulary by another name. What they do stands with those functions.
#pragma once

#include <cstddef>
#include <utility>

#include <dfdx/value/lists.hpp>

namespace dfdx {

namespace detail {
// The functions of the vocabulary for Tensors; defined in vocabulary/tensor_methods.hpp.
template <std::size_t>
struct Vocabulary;
}  // namespace detail

/// TensorMethods - of Tensor, over what it is otherwise: their results are Tensors. Axes and extents stand in angle
/// brackets, x.sum<0>(), x.reshape<2, 3>(); as arguments they are known at run time, and so is the result's shape.
template <class Self, class Base>
class TensorMethods : public Base {
 public:
  using Base::Base;
  constexpr TensorMethods() = default;
  constexpr explicit TensorMethods(Base&& b) : Base(std::move(b)) {}

  template <int Lazy = 0>
  constexpr auto exp() const {
    return detail::Vocabulary<Lazy>::exp(self());
  }
  template <int Lazy = 0>
  constexpr auto log() const {
    return detail::Vocabulary<Lazy>::log(self());
  }
  template <int Lazy = 0>
  constexpr auto sqrt() const {
    return detail::Vocabulary<Lazy>::sqrt(self());
  }
  template <int Lazy = 0>
  constexpr auto square() const {
    return detail::Vocabulary<Lazy>::square(self());
  }
  template <int Lazy = 0>
  constexpr auto abs() const {
    return detail::Vocabulary<Lazy>::abs(self());
  }
  template <int Lazy = 0>
  constexpr auto sin() const {
    return detail::Vocabulary<Lazy>::sin(self());
  }
  template <int Lazy = 0>
  constexpr auto cos() const {
    return detail::Vocabulary<Lazy>::cos(self());
  }
  template <int Lazy = 0>
  constexpr auto tanh() const {
    return detail::Vocabulary<Lazy>::tanh(self());
  }
  template <int Lazy = 0>
  constexpr auto sigmoid() const {
    return detail::Vocabulary<Lazy>::sigmoid(self());
  }
  template <int Lazy = 0>
  constexpr auto relu() const {
    return detail::Vocabulary<Lazy>::relu(self());
  }
  template <int Lazy = 0>
  constexpr auto floor() const {
    return detail::Vocabulary<Lazy>::floor(self());
  }
  template <int Lazy = 0>
  constexpr auto ceil() const {
    return detail::Vocabulary<Lazy>::ceil(self());
  }
  template <int Lazy = 0>
  constexpr auto round() const {
    return detail::Vocabulary<Lazy>::round(self());
  }
  template <int Lazy = 0>
  constexpr auto T() const {
    return detail::Vocabulary<Lazy>::T(self());
  }
  template <int... A>
  constexpr auto transpose() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template transpose<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto transpose(int a, int b) const {
    return detail::Vocabulary<Lazy>::transpose(self(), a, b);
  }
  template <int... A>
  constexpr auto permute() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template permute<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto permute(Axes const& axes) const {
    return detail::Vocabulary<Lazy>::permute(self(), axes);
  }
  template <index_t... Dims>
  constexpr auto reshape() const {
    return detail::Vocabulary<sizeof...(Dims) * 0>::template reshape<Dims...>(self());
  }
  template <int Lazy = 0>
  constexpr auto reshape(Extents const& to) const {
    return detail::Vocabulary<Lazy>::reshape(self(), to);
  }
  template <index_t... Dims>
  constexpr auto view() const {
    return detail::Vocabulary<sizeof...(Dims) * 0>::template view<Dims...>(self());
  }
  template <int Lazy = 0>
  constexpr auto view(Extents const& to) const {
    return detail::Vocabulary<Lazy>::view(self(), to);
  }
  template <index_t... Dims>
  constexpr auto expand() const {
    return detail::Vocabulary<sizeof...(Dims) * 0>::template expand<Dims...>(self());
  }
  template <int Lazy = 0>
  constexpr auto expand(Extents const& to) const {
    return detail::Vocabulary<Lazy>::expand(self(), to);
  }
  template <int Start = 0, int End = -1>
  constexpr auto flatten() const {
    return detail::Vocabulary<End * 0>::template flatten<Start, End>(self());
  }
  template <int Lazy = 0>
  constexpr auto flatten(int start, int end = -1) const {
    return detail::Vocabulary<Lazy>::flatten(self(), start, end);
  }
  template <int... A>
  constexpr auto squeeze() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template squeeze<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto squeeze(Axes const& axes) const {
    return detail::Vocabulary<Lazy>::squeeze(self(), axes);
  }
  template <int Axis>
  constexpr auto unsqueeze() const {
    return detail::Vocabulary<Axis * 0>::template unsqueeze<Axis>(self());
  }
  template <int Lazy = 0>
  constexpr auto unsqueeze(int axis) const {
    return detail::Vocabulary<Lazy>::unsqueeze(self(), axis);
  }
  template <int... A>
  constexpr auto sum() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template sum<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto sum(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::sum(self(), axes, keep);
  }
  template <int... A>
  constexpr auto mean() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template mean<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto mean(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::mean(self(), axes, keep);
  }
  template <int... A>
  constexpr auto prod() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template prod<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto prod(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::prod(self(), axes, keep);
  }
  template <int... A>
  constexpr auto max() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template max<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto max(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::max(self(), axes, keep);
  }
  template <int... A>
  constexpr auto min() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template min<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto min(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::min(self(), axes, keep);
  }
  template <int... A>
  constexpr auto any() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template any<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto any(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::any(self(), axes, keep);
  }
  template <int... A>
  constexpr auto all() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template all<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto all(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::all(self(), axes, keep);
  }
  template <int... A>
  constexpr auto argmax() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template argmax<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto argmax(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::argmax(self(), axes, keep);
  }
  template <int... A>
  constexpr auto argmin() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template argmin<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto argmin(Axes const& axes, bool keep = false) const {
    return detail::Vocabulary<Lazy>::argmin(self(), axes, keep);
  }
  template <int... A>
  constexpr auto var() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template var<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto var(Axes const& axes, int correction = 1, bool keep = false) const {
    return detail::Vocabulary<Lazy>::var(self(), axes, correction, keep);
  }
  template <int... A>
  constexpr auto std() const {
    return detail::Vocabulary<sizeof...(A) * 0>::template std<A...>(self());
  }
  template <int Lazy = 0>
  constexpr auto std(Axes const& axes, int correction = 1, bool keep = false) const {
    return detail::Vocabulary<Lazy>::std(self(), axes, correction, keep);
  }
  template <int Axis = -1>
  constexpr auto softmax() const {
    return detail::Vocabulary<Axis * 0>::template softmax<Axis>(self());
  }
  template <int Lazy = 0>
  constexpr auto softmax(int axis) const {
    return detail::Vocabulary<Lazy>::softmax(self(), axis);
  }
  template <int Axis = -1>
  constexpr auto log_softmax() const {
    return detail::Vocabulary<Axis * 0>::template log_softmax<Axis>(self());
  }
  template <int Lazy = 0>
  constexpr auto log_softmax(int axis) const {
    return detail::Vocabulary<Lazy>::log_softmax(self(), axis);
  }
  template <int Axis = -1>
  constexpr auto sort() const {
    return detail::Vocabulary<Axis * 0>::template sort<Axis>(self());
  }
  template <int Lazy = 0>
  constexpr auto sort(int axis, bool descending = false) const {
    return detail::Vocabulary<Lazy>::sort(self(), axis, descending);
  }
  template <int Axis>
  constexpr auto cumsum() const {
    return detail::Vocabulary<Axis * 0>::template cumsum<Axis>(self());
  }
  template <int Lazy = 0>
  constexpr auto cumsum(int axis) const {
    return detail::Vocabulary<Lazy>::cumsum(self(), axis);
  }
  template <index_t K, int Axis = -1>
  constexpr auto topk() const {
    return detail::Vocabulary<Axis * 0>::template topk<K, Axis>(self());
  }
  template <int Lazy = 0>
  constexpr auto topk(index_t k, int axis = -1, bool largest = true) const {
    return detail::Vocabulary<Lazy>::topk(self(), k, axis, largest);
  }
  template <class X>
  constexpr auto matmul(X const& x) const {
    return detail::Vocabulary<sizeof(X) * 0>::matmul(self(), x);
  }
  template <class X>
  constexpr auto dot(X const& x) const {
    return detail::Vocabulary<sizeof(X) * 0>::dot(self(), x);
  }
  template <class X>
  constexpr auto pow(X const& x) const {
    return detail::Vocabulary<sizeof(X) * 0>::pow(self(), x);
  }
  template <class L, class H>
  constexpr auto clamp(L const& low, H const& high) const {
    return detail::Vocabulary<sizeof(H) * 0>::clamp(self(), low, high);
  }
  template <class E>
  constexpr auto to() const {
    return detail::Vocabulary<sizeof(E) * 0>::template to<E>(self());
  }
  template <int Lazy = 0>
  constexpr auto to(DType dtype) const {
    return detail::Vocabulary<Lazy>::to(self(), dtype);
  }
  template <int Lazy = 0>
  constexpr auto clone() const {
    return detail::Vocabulary<Lazy>::clone(self());
  }

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
