// SPDX-License-Identifier: BSL-1.0
// Attention of one head as it is defined, and its gradients: what files are compiled with that cannot have vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include <dfdx/core/scratch.hpp>
#include <dfdx/core/shape.hpp>

namespace dfdx::kernels {

/// MatrixRows - a matrix whose rows are contiguous and `step` apart.
template <class T>
struct MatrixRows {
  T* at;
  index_t step;
  T* row(index_t i) const { return at + i * step; }
};

/// AttentionHead - extents of one head: queries, keys, their size, that of the values; and which keys count.
struct AttentionHead {
  index_t queries, keys, size, width;
  double scale = 1;
  bool causal = false;
  index_t offset = 0;

  /// How many keys from `first` on query i sees.
  index_t seen(index_t i, index_t first, index_t count) const {
    return causal ? std::clamp(i + offset + 1 - first, index_t{0}, count) : count;
  }
};

namespace reference {

/// Attention - the two passes over one head, each query by itself. Sums are made in T.
template <class T>
class Attention {
 public:
  explicit Attention(AttentionHead const& head) : h(head), weights_(static_cast<std::size_t>(head.keys)) {}

  /// y = the attention, log_sums[i] = the logarithm of the sum of query i's exponentials.
  void forward(MatrixRows<T const> q, MatrixRows<T const> k, MatrixRows<T const> v, MatrixRows<T> y,
               T* log_sums) const {
    for (index_t i = 0; i < h.queries; ++i) {
      index_t const n = h.seen(i, 0, h.keys);
      T most = -std::numeric_limits<T>::infinity(), sum(0);
      for (index_t j = 0; j < n; ++j) most = std::max(most, weight(j) = score(q.row(i), k.row(j)));
      for (index_t j = 0; j < n; ++j) sum += weight(j) = std::exp(weight(j) - most);
      std::fill_n(y.row(i), h.width, T(0));
      for (index_t j = 0; j < n; ++j) add(y.row(i), weight(j) / sum, v.row(j), h.width);
      log_sums[i] = most + std::log(sum);
    }
  }

  /// Adds the gradients with respect to q, k and v to dq, dk and dv, from the cotangents of y, the log_sums, and d.
  void backward(MatrixRows<T const> q, MatrixRows<T const> k, MatrixRows<T const> v, MatrixRows<T const> ct,
                T const* log_sums, T const* d, MatrixRows<T> dq, MatrixRows<T> dk, MatrixRows<T> dv) const {
    for (index_t i = 0; i < h.queries; ++i)
      for (index_t j = 0; j < h.seen(i, 0, h.keys); ++j) {
        T const p = std::exp(score(q.row(i), k.row(j)) - log_sums[i]);
        T const r = p * (dot(ct.row(i), v.row(j), h.width) - d[i]) * static_cast<T>(h.scale);
        add(dv.row(j), p, ct.row(i), h.width);
        add(dq.row(i), r, k.row(j), h.size);
        add(dk.row(j), r, q.row(i), h.size);
      }
  }

 private:
  T& weight(index_t j) const { return weights_[static_cast<std::size_t>(j)]; }
  static T dot(T const* a, T const* b, index_t n) {
    T sum(0);
    for (index_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
  }
  static void add(T* to, T factor, T const* x, index_t n) {
    for (index_t i = 0; i < n; ++i) to[i] += factor * x[i];
  }
  T score(T const* q, T const* k) const { return dot(q, k, h.size) * static_cast<T>(h.scale); }

  AttentionHead const h;
  mutable ScratchVector<T> weights_;  // of one query
};

}  // namespace reference

}  // namespace dfdx::kernels
