// SPDX-License-Identifier: BSL-1.0
// The methods of Array that are functions of the vocabulary by another name.
#pragma once

#include <dfdx/vocabulary/composite.hpp>
#include <dfdx/vocabulary/contract.hpp>
#include <dfdx/vocabulary/indexing.hpp>

namespace dfdx {

template <int>
Array Array::T() const {
  Axes reversed;
  for (int i = ndim() - 1; i >= 0; --i) reversed.push(i);
  return dfdx::permute(*this, reversed);
}
template <int>
Array Array::reshape(Extents const& to) const {
  return dfdx::reshape(*this, to);
}
template <int>
Array Array::flatten(int start, int end) const {
  return dfdx::flatten(*this, start, end);
}
template <int>
Array Array::transpose(int a, int b) const {
  return dfdx::transpose(*this, a, b);
}
template <int>
Array Array::permute(Axes const& axes) const {
  return dfdx::permute(*this, axes);
}
template <int>
Array Array::squeeze() const {
  return dfdx::squeeze(*this);
}
template <int>
Array Array::squeeze(Axes const& axes) const {
  return dfdx::squeeze(*this, axes);
}
template <int>
Array Array::unsqueeze(int axis) const {
  return dfdx::unsqueeze(*this, axis);
}
template <int>
Array Array::expand(Extents const& to) const {
  return dfdx::expand(*this, to);
}
template <int>
Array Array::sum(Axes const& axes, bool keep) const {
  return dfdx::sum(*this, axes, keep);
}
template <int>
Array Array::mean(Axes const& axes, bool keep) const {
  return dfdx::mean(*this, axes, keep);
}
template <int>
Array Array::prod(Axes const& axes, bool keep) const {
  return dfdx::prod(*this, axes, keep);
}
template <int>
Array Array::max(Axes const& axes, bool keep) const {
  return dfdx::max(*this, axes, keep);
}
template <int>
Array Array::min(Axes const& axes, bool keep) const {
  return dfdx::min(*this, axes, keep);
}
template <int>
Array Array::var(Axes const& axes, int correction, bool keep) const {
  return dfdx::var(*this, axes, correction, keep);
}
template <int>
Array Array::argmax(Axes const& axes, bool keep) const {
  return dfdx::argmax(*this, axes, keep);
}
template <int>
Array Array::argmin(Axes const& axes, bool keep) const {
  return dfdx::argmin(*this, axes, keep);
}
template <int>
Array Array::matmul(Array const& x) const {
  return dfdx::matmul(*this, x);
}
template <int>
Array Array::to(DType d) const {
  return cast_to(*this, d);
}
template <int>
Array Array::clone() const {
  return apply<op::copy>(*this);
}
template <int>
Array Array::contiguous() const {
  return contiguous_memory() ? *this : clone();
}
template <class X>
Array Array::pow(X const& exponent) const {
  return dfdx::pow(*this, exponent);
}
template <int>
Array Array::exp() const {
  return dfdx::exp(*this);
}
template <int>
Array Array::log() const {
  return dfdx::log(*this);
}
template <int>
Array Array::sqrt() const {
  return dfdx::sqrt(*this);
}
template <int>
Array Array::abs() const {
  return dfdx::abs(*this);
}
template <int>
Array Array::tanh() const {
  return dfdx::tanh(*this);
}
template <int>
Array Array::sigmoid() const {
  return dfdx::sigmoid(*this);
}
template <int>
Array Array::relu() const {
  return dfdx::relu(*this);
}
template <int>
Array Array::softmax(int axis) const {
  return dfdx::softmax(*this, axis);
}

}  // namespace dfdx
