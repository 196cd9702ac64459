// SPDX-License-Identifier: BSL-1.0
// The methods of Array that are functions of the vocabulary by another name.
#pragma once

#include <vector>

#include <dfdx/core/convert.hpp>
#include <dfdx/value/device_ops.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/vocabulary/indexing.hpp>
#include <dfdx/vocabulary/tensor_methods.hpp>

namespace dfdx {

namespace detail {
template <int = 0>
constexpr Axes reversed_axes(int rank) {
  Axes r;
  for (int i = rank - 1; i >= 0; --i) r.push(i);
  return r;
}
}  // namespace detail

template <int Lazy>
Array ArrayMethods::T() const {
  return dfdx::permute(detail::lazy<Lazy>(self()), detail::reversed_axes(self().ndim()));
}
template <int Lazy>
Array ArrayMethods::reshape(Extents const& to) const {
  return dfdx::reshape(detail::lazy<Lazy>(self()), to);
}
template <int Lazy>
Array ArrayMethods::view(Extents const& to) const {
  return dfdx::view(detail::lazy<Lazy>(self()), to);
}
template <int Lazy>
Array ArrayMethods::flatten(int start, int end) const {
  return dfdx::flatten(detail::lazy<Lazy>(self()), start, end);
}
template <int Lazy>
Array ArrayMethods::transpose(int a, int b) const {
  return dfdx::transpose(detail::lazy<Lazy>(self()), a, b);
}
template <int Lazy>
Array ArrayMethods::permute(Axes const& axes) const {
  return dfdx::permute(detail::lazy<Lazy>(self()), axes);
}
template <int Lazy>
Array ArrayMethods::squeeze() const {
  return dfdx::squeeze(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::squeeze(Axes const& axes) const {
  return dfdx::squeeze(detail::lazy<Lazy>(self()), axes);
}
template <int Lazy>
Array ArrayMethods::unsqueeze(int axis) const {
  return dfdx::unsqueeze(detail::lazy<Lazy>(self()), axis);
}
template <int Lazy>
Array ArrayMethods::expand(Extents const& to) const {
  return dfdx::expand(detail::lazy<Lazy>(self()), to);
}
template <int Lazy>
Array ArrayMethods::sum(Axes const& axes, bool keep) const {
  return dfdx::sum(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::mean(Axes const& axes, bool keep) const {
  return dfdx::mean(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::prod(Axes const& axes, bool keep) const {
  return dfdx::prod(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::max(Axes const& axes, bool keep) const {
  return dfdx::max(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::min(Axes const& axes, bool keep) const {
  return dfdx::min(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::any(Axes const& axes, bool keep) const {
  return dfdx::any(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::all(Axes const& axes, bool keep) const {
  return dfdx::all(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::argmax(Axes const& axes, bool keep) const {
  return dfdx::argmax(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::argmin(Axes const& axes, bool keep) const {
  return dfdx::argmin(detail::lazy<Lazy>(self()), axes, keep);
}
template <int Lazy>
Array ArrayMethods::var(Axes const& axes, int correction, bool keep) const {
  return dfdx::var(detail::lazy<Lazy>(self()), axes, correction, keep);
}
template <int Lazy>
Array ArrayMethods::std(Axes const& axes, int correction, bool keep) const {
  return dfdx::std(detail::lazy<Lazy>(self()), axes, correction, keep);
}
template <int Lazy>
Array ArrayMethods::cumsum(int axis) const {
  return dfdx::cumsum(detail::lazy<Lazy>(self()), axis);
}
template <int Lazy>
auto ArrayMethods::sort(int axis, bool descending) const {
  return dfdx::sort(detail::lazy<Lazy>(self()), axis, descending);
}
template <int Lazy>
auto ArrayMethods::topk(index_t k, int axis, bool largest) const {
  return dfdx::topk(detail::lazy<Lazy>(self()), k, axis, largest);
}
template <int Lazy>
Array ArrayMethods::matmul(Array const& x) const {
  return dfdx::matmul(detail::lazy<Lazy>(self()), x);
}
template <int Lazy>
Array ArrayMethods::dot(Array const& x) const {
  return dfdx::dot(detail::lazy<Lazy>(self()), x);
}
template <int Lazy>
Array ArrayMethods::to(DType dtype) const {
  return cast_to(detail::lazy<Lazy>(self()), dtype);
}
template <int Lazy>
Array ArrayMethods::clone() const {
  return apply<op::copy>(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::contiguous() const {
  return self().contiguous_memory() ? self() : clone<Lazy>();
}
template <class T>
auto ArrayMethods::to_vector() const {
  Array const dense = detail::packed(detail::here(detail::lazy<sizeof(T)>(self())));
  std::vector<T> r;
  if constexpr (element<T>)
    if (dense.dtype() == dtype_v<T> && dense.size() != 0) {
      r.assign(dense.template data<T>(), dense.template data<T>() + dense.size());
      return r;
    }
  r.reserve(static_cast<std::size_t>(dense.size()));
  for (index_t i = 0; i < dense.size(); ++i) {
    if constexpr (std::is_integral_v<T>)
      if (!is_floating(dense.dtype())) {
        r.push_back(static_cast<T>(read_integer(dense.operand(), i)));
        continue;
      }
    r.push_back(math::convert_number<T>(read_real(dense.operand(), i)));
  }
  return r;
}
template <class X>
Array ArrayMethods::pow(X const& exponent) const {
  return dfdx::pow(self(), exponent);
}
template <class L, class H>
Array ArrayMethods::clamp(L const& low, H const& high) const {
  return dfdx::clamp(self(), low, high);
}
template <int Lazy>
Array ArrayMethods::exp() const {
  return dfdx::exp(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::log() const {
  return dfdx::log(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::sqrt() const {
  return dfdx::sqrt(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::square() const {
  return dfdx::square(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::abs() const {
  return dfdx::abs(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::sin() const {
  return dfdx::sin(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::cos() const {
  return dfdx::cos(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::tanh() const {
  return dfdx::tanh(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::sigmoid() const {
  return dfdx::sigmoid(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::relu() const {
  return dfdx::relu(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::floor() const {
  return dfdx::floor(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::ceil() const {
  return dfdx::ceil(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::round() const {
  return dfdx::round(detail::lazy<Lazy>(self()));
}
template <int Lazy>
Array ArrayMethods::softmax(int axis) const {
  return dfdx::softmax(detail::lazy<Lazy>(self()), axis);
}
template <int Lazy>
Array ArrayMethods::log_softmax(int axis) const {
  return dfdx::log_softmax(detail::lazy<Lazy>(self()), axis);
}

}  // namespace dfdx
