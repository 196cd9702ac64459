// SPDX-License-Identifier: BSL-1.0
// The methods of Array that are functions of the vocabulary by another name: a.sum(1), x.exp(). What they do
// stands with those functions; here they are declared, vocabulary/methods.hpp defines them.
#pragma once

#include <dfdx/value/lists.hpp>

namespace dfdx {

class Array;

/// ArrayMethods - of Array.
class ArrayMethods {
 public:
  /// T - the axes in reverse order.
  template <int = 0>
  Array T() const;
  template <int = 0>
  Array reshape(Extents const& to) const;
  template <int = 0>
  Array view(Extents const& to) const;
  template <int = 0>
  Array flatten(int start = 0, int end = -1) const;
  template <int = 0>
  Array transpose(int a, int b) const;
  template <int = 0>
  Array permute(Axes const& axes) const;
  template <int = 0>
  Array squeeze() const;
  template <int = 0>
  Array squeeze(Axes const& axes) const;
  template <int = 0>
  Array unsqueeze(int axis) const;
  template <int = 0>
  Array expand(Extents const& to) const;
  template <int = 0>
  Array sum(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array mean(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array prod(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array max(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array min(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array any(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array all(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array argmax(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array argmin(Axes const& axes = {}, bool keep = false) const;
  template <int = 0>
  Array var(Axes const& axes = {}, int correction = 1, bool keep = false) const;
  template <int = 0>
  Array std(Axes const& axes = {}, int correction = 1, bool keep = false) const;
  template <int = 0>
  Array cumsum(int axis) const;
  /// sort - the elements in order along an axis, and where they were; topk - the k largest (or smallest), and
  /// where they are.
  template <int = 0>
  auto sort(int axis = -1, bool descending = false) const;
  template <int = 0>
  auto topk(index_t k, int axis = -1, bool largest = true) const;
  template <int = 0>
  Array matmul(Array const& x) const;
  template <int = 0>
  Array dot(Array const& x) const;
  /// to - the numbers in another dtype; clone - in memory of its own; contiguous - that, unless it is dense already.
  template <int = 0>
  Array to(DType dtype) const;
  template <int = 0>
  Array clone() const;
  template <int = 0>
  Array contiguous() const;
  /// to_vector<T>() - the elements in row-major order, as numbers of type T.
  template <class T>
  auto to_vector() const;
  template <class X>
  Array pow(X const& exponent) const;
  template <class L, class H>
  Array clamp(L const& low, H const& high) const;
  template <int = 0>
  Array exp() const;
  template <int = 0>
  Array log() const;
  template <int = 0>
  Array sqrt() const;
  template <int = 0>
  Array square() const;
  template <int = 0>
  Array abs() const;
  template <int = 0>
  Array sin() const;
  template <int = 0>
  Array cos() const;
  template <int = 0>
  Array tanh() const;
  template <int = 0>
  Array sigmoid() const;
  template <int = 0>
  Array relu() const;
  template <int = 0>
  Array floor() const;
  template <int = 0>
  Array ceil() const;
  template <int = 0>
  Array round() const;
  template <int = 0>
  Array softmax(int axis = -1) const;
  template <int = 0>
  Array log_softmax(int axis = -1) const;

 private:
  Array const& self() const;
};

}  // namespace dfdx
