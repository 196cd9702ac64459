// SPDX-License-Identifier: BSL-1.0
// The methods of Array that are functions of the vocabulary by another name.
#pragma once

#include <dfdx/vocabulary/composite.hpp>
#include <dfdx/vocabulary/contract.hpp>
#include <dfdx/vocabulary/indexing.hpp>

namespace dfdx {

template <int Lazy>
Array Array::T() const {
  Axes reversed;
  for (int i = ndim() - 1; i >= 0; --i) reversed.push(i);
  return dfdx::permute(detail::lazy<Lazy>(*this), reversed);
}
template <int Lazy>
Array Array::reshape(Extents const& to) const {
  return dfdx::reshape(detail::lazy<Lazy>(*this), to);
}
template <int Lazy>
Array Array::flatten(int start, int end) const {
  return dfdx::flatten(detail::lazy<Lazy>(*this), start, end);
}
template <int Lazy>
Array Array::transpose(int a, int b) const {
  return dfdx::transpose(detail::lazy<Lazy>(*this), a, b);
}
template <int Lazy>
Array Array::permute(Axes const& axes) const {
  return dfdx::permute(detail::lazy<Lazy>(*this), axes);
}
template <int Lazy>
Array Array::squeeze() const {
  return dfdx::squeeze(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::squeeze(Axes const& axes) const {
  return dfdx::squeeze(detail::lazy<Lazy>(*this), axes);
}
template <int Lazy>
Array Array::unsqueeze(int axis) const {
  return dfdx::unsqueeze(detail::lazy<Lazy>(*this), axis);
}
template <int Lazy>
Array Array::expand(Extents const& to) const {
  return dfdx::expand(detail::lazy<Lazy>(*this), to);
}
template <int Lazy>
Array Array::sum(Axes const& axes, bool keep) const {
  return dfdx::sum(detail::lazy<Lazy>(*this), axes, keep);
}
template <int Lazy>
Array Array::mean(Axes const& axes, bool keep) const {
  return dfdx::mean(detail::lazy<Lazy>(*this), axes, keep);
}
template <int Lazy>
Array Array::prod(Axes const& axes, bool keep) const {
  return dfdx::prod(detail::lazy<Lazy>(*this), axes, keep);
}
template <int Lazy>
Array Array::max(Axes const& axes, bool keep) const {
  return dfdx::max(detail::lazy<Lazy>(*this), axes, keep);
}
template <int Lazy>
Array Array::min(Axes const& axes, bool keep) const {
  return dfdx::min(detail::lazy<Lazy>(*this), axes, keep);
}
template <int Lazy>
Array Array::var(Axes const& axes, int correction, bool keep) const {
  return dfdx::var(detail::lazy<Lazy>(*this), axes, correction, keep);
}
template <int Lazy>
Array Array::std(Axes const& axes, int correction, bool keep) const {
  return dfdx::std(detail::lazy<Lazy>(*this), axes, correction, keep);
}
template <int Lazy>
Array Array::argmax(Axes const& axes, bool keep) const {
  return dfdx::argmax(detail::lazy<Lazy>(*this), axes, keep);
}
template <int Lazy>
Array Array::argmin(Axes const& axes, bool keep) const {
  return dfdx::argmin(detail::lazy<Lazy>(*this), axes, keep);
}
template <int Lazy>
Array Array::matmul(Array const& x) const {
  return dfdx::matmul(detail::lazy<Lazy>(*this), x);
}
template <int Lazy>
Array Array::to(DType d) const {
  return cast_to(detail::lazy<Lazy>(*this), d);
}
template <int Lazy>
Array Array::clone() const {
  return apply<op::copy>(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::contiguous() const {
  return contiguous_memory() ? *this : clone<Lazy>();
}
template <class X>
Array Array::pow(X const& exponent) const {
  return dfdx::pow(*this, exponent);
}
template <int Lazy>
Array Array::exp() const {
  return dfdx::exp(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::log() const {
  return dfdx::log(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::sqrt() const {
  return dfdx::sqrt(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::abs() const {
  return dfdx::abs(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::tanh() const {
  return dfdx::tanh(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::sigmoid() const {
  return dfdx::sigmoid(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::relu() const {
  return dfdx::relu(detail::lazy<Lazy>(*this));
}
template <int Lazy>
Array Array::softmax(int axis) const {
  return dfdx::softmax(detail::lazy<Lazy>(*this), axis);
}

}  // namespace dfdx
