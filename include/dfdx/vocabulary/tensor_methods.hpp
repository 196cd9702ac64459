// SPDX-License-Identifier: BSL-1.0
// The methods of Tensor that are functions of the vocabulary by another name.
#pragma once

#include <utility>

#include <dfdx/vocabulary/composite.hpp>
#include <dfdx/vocabulary/linear.hpp>
#include <dfdx/vocabulary/mathematics.hpp>
#include <dfdx/vocabulary/measure.hpp>
#include <dfdx/vocabulary/order.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx {

namespace detail {
template <class X, int... I>
constexpr auto axes_reversed(X const& x, std::integer_sequence<int, I...>) {
  return dfdx::permute<(static_cast<int>(sizeof...(I)) - 1 - I)...>(x);
}
}  // namespace detail

template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::exp() const {
  return dfdx::exp(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::log() const {
  return dfdx::log(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::sqrt() const {
  return dfdx::sqrt(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::square() const {
  return dfdx::square(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::abs() const {
  return dfdx::abs(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::sin() const {
  return dfdx::sin(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::cos() const {
  return dfdx::cos(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::tanh() const {
  return dfdx::tanh(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::sigmoid() const {
  return dfdx::sigmoid(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::relu() const {
  return dfdx::relu(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::floor() const {
  return dfdx::floor(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::ceil() const {
  return dfdx::ceil(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::round() const {
  return dfdx::round(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::T() const {
  return detail::axes_reversed(self(), std::make_integer_sequence<int, Self::static_rank>{});
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::transpose() const {
  return dfdx::transpose<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::transpose(int a, int b) const {
  return dfdx::transpose(detail::lazy<sizeof(Self)>(self()), a, b);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::permute() const {
  return dfdx::permute<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::permute(Axes const& axes) const {
  return dfdx::permute(detail::lazy<sizeof(Self)>(self()), axes);
}
template <class Self, class Base>
template <index_t... Dims>
constexpr auto TensorMethods<Self, Base>::reshape() const {
  return dfdx::reshape<Dims...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::reshape(Extents const& to) const {
  return dfdx::reshape(detail::lazy<sizeof(Self)>(self()), to);
}
template <class Self, class Base>
template <index_t... Dims>
constexpr auto TensorMethods<Self, Base>::view() const {
  return dfdx::view<Dims...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::view(Extents const& to) const {
  return dfdx::view(detail::lazy<sizeof(Self)>(self()), to);
}
template <class Self, class Base>
template <index_t... Dims>
constexpr auto TensorMethods<Self, Base>::expand() const {
  return dfdx::expand<Dims...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::expand(Extents const& to) const {
  return dfdx::expand(detail::lazy<sizeof(Self)>(self()), to);
}
template <class Self, class Base>
template <int Start, int End>
constexpr auto TensorMethods<Self, Base>::flatten() const {
  return dfdx::flatten<Start, End>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::flatten(int start, int end) const {
  return dfdx::flatten(detail::lazy<sizeof(Self)>(self()), start, end);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::squeeze() const {
  return dfdx::squeeze<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::squeeze(Axes const& axes) const {
  return dfdx::squeeze(detail::lazy<sizeof(Self)>(self()), axes);
}
template <class Self, class Base>
template <int Axis>
constexpr auto TensorMethods<Self, Base>::unsqueeze() const {
  return dfdx::unsqueeze<Axis>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::unsqueeze(int axis) const {
  return dfdx::unsqueeze(detail::lazy<sizeof(Self)>(self()), axis);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::sum() const {
  return dfdx::sum<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::sum(Axes const& axes, bool keep) const {
  return dfdx::sum(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::mean() const {
  return dfdx::mean<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::mean(Axes const& axes, bool keep) const {
  return dfdx::mean(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::prod() const {
  return dfdx::prod<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::prod(Axes const& axes, bool keep) const {
  return dfdx::prod(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::max() const {
  return dfdx::max<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::max(Axes const& axes, bool keep) const {
  return dfdx::max(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::min() const {
  return dfdx::min<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::min(Axes const& axes, bool keep) const {
  return dfdx::min(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::any() const {
  return dfdx::any<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::any(Axes const& axes, bool keep) const {
  return dfdx::any(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::all() const {
  return dfdx::all<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::all(Axes const& axes, bool keep) const {
  return dfdx::all(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::argmax() const {
  return dfdx::argmax<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::argmax(Axes const& axes, bool keep) const {
  return dfdx::argmax(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::argmin() const {
  return dfdx::argmin<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::argmin(Axes const& axes, bool keep) const {
  return dfdx::argmin(detail::lazy<sizeof(Self)>(self()), axes, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::var() const {
  return dfdx::var<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::var(Axes const& axes, int correction, bool keep) const {
  return dfdx::var(detail::lazy<sizeof(Self)>(self()), axes, correction, keep);
}
template <class Self, class Base>
template <int... A>
constexpr auto TensorMethods<Self, Base>::std() const {
  return dfdx::std<A...>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::std(Axes const& axes, int correction, bool keep) const {
  return dfdx::std(detail::lazy<sizeof(Self)>(self()), axes, correction, keep);
}
template <class Self, class Base>
template <int Axis>
constexpr auto TensorMethods<Self, Base>::softmax() const {
  return dfdx::softmax<Axis>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::softmax(int axis) const {
  return dfdx::softmax(detail::lazy<sizeof(Self)>(self()), axis);
}
template <class Self, class Base>
template <int Axis>
constexpr auto TensorMethods<Self, Base>::log_softmax() const {
  return dfdx::log_softmax<Axis>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::log_softmax(int axis) const {
  return dfdx::log_softmax(detail::lazy<sizeof(Self)>(self()), axis);
}
template <class Self, class Base>
template <int Axis>
constexpr auto TensorMethods<Self, Base>::sort() const {
  return dfdx::sort<Axis>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::sort(int axis, bool descending) const {
  return dfdx::sort(detail::lazy<sizeof(Self)>(self()), axis, descending);
}
template <class Self, class Base>
template <int Axis>
constexpr auto TensorMethods<Self, Base>::cumsum() const {
  return dfdx::cumsum<Axis>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::cumsum(int axis) const {
  return dfdx::cumsum(detail::lazy<sizeof(Self)>(self()), axis);
}
template <class Self, class Base>
template <index_t K, int Axis>
constexpr auto TensorMethods<Self, Base>::topk() const {
  return dfdx::topk<K, Axis>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::topk(index_t k, int axis, bool largest) const {
  return dfdx::topk(detail::lazy<sizeof(Self)>(self()), k, axis, largest);
}
template <class Self, class Base>
template <class X>
constexpr auto TensorMethods<Self, Base>::matmul(X const& x) const {
  return dfdx::matmul(self(), x);
}
template <class Self, class Base>
template <class X>
constexpr auto TensorMethods<Self, Base>::dot(X const& x) const {
  return dfdx::dot(self(), x);
}
template <class Self, class Base>
template <class X>
constexpr auto TensorMethods<Self, Base>::pow(X const& x) const {
  return dfdx::pow(self(), x);
}
template <class Self, class Base>
template <class L, class H>
constexpr auto TensorMethods<Self, Base>::clamp(L const& low, H const& high) const {
  return dfdx::clamp(self(), low, high);
}
template <class Self, class Base>
template <class E>
constexpr auto TensorMethods<Self, Base>::to() const {
  return dfdx::cast<E>(self());
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::to(DType dtype) const {
  return cast_to(detail::lazy<sizeof(Self)>(self()), dtype);
}
template <class Self, class Base>
template <int>
constexpr auto TensorMethods<Self, Base>::clone() const {
  return dfdx::apply<op::copy>(self());
}

}  // namespace dfdx
