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

template <std::size_t>
struct Vocabulary {
  template <class Self>
  static constexpr auto exp(Self const& self) {
    return dfdx::exp(self);
  }
  template <class Self>
  static constexpr auto log(Self const& self) {
    return dfdx::log(self);
  }
  template <class Self>
  static constexpr auto sqrt(Self const& self) {
    return dfdx::sqrt(self);
  }
  template <class Self>
  static constexpr auto square(Self const& self) {
    return dfdx::square(self);
  }
  template <class Self>
  static constexpr auto abs(Self const& self) {
    return dfdx::abs(self);
  }
  template <class Self>
  static constexpr auto sin(Self const& self) {
    return dfdx::sin(self);
  }
  template <class Self>
  static constexpr auto cos(Self const& self) {
    return dfdx::cos(self);
  }
  template <class Self>
  static constexpr auto tanh(Self const& self) {
    return dfdx::tanh(self);
  }
  template <class Self>
  static constexpr auto sigmoid(Self const& self) {
    return dfdx::sigmoid(self);
  }
  template <class Self>
  static constexpr auto relu(Self const& self) {
    return dfdx::relu(self);
  }
  template <class Self>
  static constexpr auto floor(Self const& self) {
    return dfdx::floor(self);
  }
  template <class Self>
  static constexpr auto ceil(Self const& self) {
    return dfdx::ceil(self);
  }
  template <class Self>
  static constexpr auto round(Self const& self) {
    return dfdx::round(self);
  }
  template <class Self>
  static constexpr auto T(Self const& self) {
    return detail::axes_reversed(self, std::make_integer_sequence<int, Self::static_rank>{});
  }
  template <int... A, class Self>
  static constexpr auto transpose(Self const& self) {
    return dfdx::transpose<A...>(self);
  }
  template <class Self>
  static constexpr auto transpose(Self const& self, int a, int b) {
    return dfdx::transpose(lazy<sizeof(Self)>(self), a, b);
  }
  template <int... A, class Self>
  static constexpr auto permute(Self const& self) {
    return dfdx::permute<A...>(self);
  }
  template <class Self>
  static constexpr auto permute(Self const& self, Axes const& axes) {
    return dfdx::permute(lazy<sizeof(Self)>(self), axes);
  }
  template <index_t... Dims, class Self>
  static constexpr auto reshape(Self const& self) {
    return dfdx::reshape<Dims...>(self);
  }
  template <class Self>
  static constexpr auto reshape(Self const& self, Extents const& to) {
    return dfdx::reshape(lazy<sizeof(Self)>(self), to);
  }
  template <index_t... Dims, class Self>
  static constexpr auto view(Self const& self) {
    return dfdx::view<Dims...>(self);
  }
  template <class Self>
  static constexpr auto view(Self const& self, Extents const& to) {
    return dfdx::view(lazy<sizeof(Self)>(self), to);
  }
  template <index_t... Dims, class Self>
  static constexpr auto expand(Self const& self) {
    return dfdx::expand<Dims...>(self);
  }
  template <class Self>
  static constexpr auto expand(Self const& self, Extents const& to) {
    return dfdx::expand(lazy<sizeof(Self)>(self), to);
  }
  template <int Start, int End, class Self>
  static constexpr auto flatten(Self const& self) {
    return dfdx::flatten<Start, End>(self);
  }
  template <class Self>
  static constexpr auto flatten(Self const& self, int start, int end) {
    return dfdx::flatten(lazy<sizeof(Self)>(self), start, end);
  }
  template <int... A, class Self>
  static constexpr auto squeeze(Self const& self) {
    return dfdx::squeeze<A...>(self);
  }
  template <class Self>
  static constexpr auto squeeze(Self const& self, Axes const& axes) {
    return dfdx::squeeze(lazy<sizeof(Self)>(self), axes);
  }
  template <int Axis, class Self>
  static constexpr auto unsqueeze(Self const& self) {
    return dfdx::unsqueeze<Axis>(self);
  }
  template <class Self>
  static constexpr auto unsqueeze(Self const& self, int axis) {
    return dfdx::unsqueeze(lazy<sizeof(Self)>(self), axis);
  }
  template <int... A, class Self>
  static constexpr auto sum(Self const& self) {
    return dfdx::sum<A...>(self);
  }
  template <class Self>
  static constexpr auto sum(Self const& self, Axes const& axes, bool keep) {
    return dfdx::sum(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto mean(Self const& self) {
    return dfdx::mean<A...>(self);
  }
  template <class Self>
  static constexpr auto mean(Self const& self, Axes const& axes, bool keep) {
    return dfdx::mean(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto prod(Self const& self) {
    return dfdx::prod<A...>(self);
  }
  template <class Self>
  static constexpr auto prod(Self const& self, Axes const& axes, bool keep) {
    return dfdx::prod(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto max(Self const& self) {
    return dfdx::max<A...>(self);
  }
  template <class Self>
  static constexpr auto max(Self const& self, Axes const& axes, bool keep) {
    return dfdx::max(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto min(Self const& self) {
    return dfdx::min<A...>(self);
  }
  template <class Self>
  static constexpr auto min(Self const& self, Axes const& axes, bool keep) {
    return dfdx::min(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto any(Self const& self) {
    return dfdx::any<A...>(self);
  }
  template <class Self>
  static constexpr auto any(Self const& self, Axes const& axes, bool keep) {
    return dfdx::any(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto all(Self const& self) {
    return dfdx::all<A...>(self);
  }
  template <class Self>
  static constexpr auto all(Self const& self, Axes const& axes, bool keep) {
    return dfdx::all(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto argmax(Self const& self) {
    return dfdx::argmax<A...>(self);
  }
  template <class Self>
  static constexpr auto argmax(Self const& self, Axes const& axes, bool keep) {
    return dfdx::argmax(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto argmin(Self const& self) {
    return dfdx::argmin<A...>(self);
  }
  template <class Self>
  static constexpr auto argmin(Self const& self, Axes const& axes, bool keep) {
    return dfdx::argmin(lazy<sizeof(Self)>(self), axes, keep);
  }
  template <int... A, class Self>
  static constexpr auto var(Self const& self) {
    return dfdx::var<A...>(self);
  }
  template <class Self>
  static constexpr auto var(Self const& self, Axes const& axes, int correction, bool keep) {
    return dfdx::var(lazy<sizeof(Self)>(self), axes, correction, keep);
  }
  template <int... A, class Self>
  static constexpr auto std(Self const& self) {
    return dfdx::std<A...>(self);
  }
  template <class Self>
  static constexpr auto std(Self const& self, Axes const& axes, int correction, bool keep) {
    return dfdx::std(lazy<sizeof(Self)>(self), axes, correction, keep);
  }
  template <int Axis, class Self>
  static constexpr auto softmax(Self const& self) {
    return dfdx::softmax<Axis>(self);
  }
  template <class Self>
  static constexpr auto softmax(Self const& self, int axis) {
    return dfdx::softmax(lazy<sizeof(Self)>(self), axis);
  }
  template <int Axis, class Self>
  static constexpr auto log_softmax(Self const& self) {
    return dfdx::log_softmax<Axis>(self);
  }
  template <class Self>
  static constexpr auto log_softmax(Self const& self, int axis) {
    return dfdx::log_softmax(lazy<sizeof(Self)>(self), axis);
  }
  template <int Axis, class Self>
  static constexpr auto sort(Self const& self) {
    return dfdx::sort<Axis>(self);
  }
  template <class Self>
  static constexpr auto sort(Self const& self, int axis, bool descending) {
    return dfdx::sort(lazy<sizeof(Self)>(self), axis, descending);
  }
  template <int Axis, class Self>
  static constexpr auto cumsum(Self const& self) {
    return dfdx::cumsum<Axis>(self);
  }
  template <class Self>
  static constexpr auto cumsum(Self const& self, int axis) {
    return dfdx::cumsum(lazy<sizeof(Self)>(self), axis);
  }
  template <index_t K, int Axis, class Self>
  static constexpr auto topk(Self const& self) {
    return dfdx::topk<K, Axis>(self);
  }
  template <class Self>
  static constexpr auto topk(Self const& self, index_t k, int axis, bool largest) {
    return dfdx::topk(lazy<sizeof(Self)>(self), k, axis, largest);
  }
  template <class Self, class Y>
  static constexpr auto matmul(Self const& self, Y const& x) {
    return dfdx::matmul(self, x);
  }
  template <class Self, class Y>
  static constexpr auto dot(Self const& self, Y const& x) {
    return dfdx::dot(self, x);
  }
  template <class Self, class Y>
  static constexpr auto pow(Self const& self, Y const& x) {
    return dfdx::pow(self, x);
  }
  template <class Self, class L, class H>
  static constexpr auto clamp(Self const& self, L const& low, H const& high) {
    return dfdx::clamp(self, low, high);
  }
  template <class E, class Self>
  static constexpr auto to(Self const& self) {
    return dfdx::cast<E>(self);
  }
  template <class Self>
  static constexpr auto to(Self const& self, DType dtype) {
    return cast_to(lazy<sizeof(Self)>(self), dtype);
  }
  template <class Self>
  static constexpr auto clone(Self const& self) {
    return dfdx::apply<op::copy>(self);
  }
};

}  // namespace detail

}  // namespace dfdx
