// SPDX-License-Identifier: BSL-1.0
// Norms that are called one by one, on a device: a block for each row, of short rows a warp. What gradients of
// parameters sum up is written beside the gradient of x, and added up by any_reduce.hpp.
#pragma once

#include <dfdx/core/loop_code.hpp>
#include <dfdx/kernels/cuda/lanes.hpp>
#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/value/norm_options.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// NormArguments - dense operands of op::standardize or of its gradient, which has cotangents for a bias; what is
/// missing is null. `products`, of the gradient, are cotangents times what weights were multiplied with.
template <class T>
struct NormArguments {
  T const *x, *weight, *third;
  T *to, *products;
  op::NormRows rows;
};

/// CalledNorm - the op, or its gradient with respect to x: `Together` threads for a row.
template <class T, bool Back, int Together>
struct CalledNorm {
  static constexpr int threads = own_threads;

  static DFDX_INLINE void run(NormArguments<T> const& a) {
    index_t const rows = a.rows.number();
    index_t const by = threads / Together;
    for (index_t row = block() * by + thread() / Together; row < rows; row += blocks() * by) one(a, row);
  }

 private:
  static DFDX_INLINE double total(double x) { return block_reduce<loop_code::reduce_sum, Together>(x); }

  // f(place, parameter) for this thread's elements of a row.
  template <class F>
  static DFDX_INLINE void each(op::NormRows const& r, index_t row, F const& f) {
    index_t const group = r.across ? row : row % r.groups, first = group * r.channels;
    if (r.across) {
      for (index_t i = thread() % Together; i < r.samples * r.inner; i += Together)
        f((i / r.inner * r.groups + row) * r.inner + i % r.inner, first);
    } else {
      index_t const n = r.channels * r.inner, from = row * n;
      for (index_t i = thread() % Together; i < n; i += Together)
        f(from + i, first + (r.inner == 1 ? i : i / r.inner));
    }
  }
  static DFDX_INLINE void one(NormArguments<T> const& a, index_t row) {
    op::NormRows const& r = a.rows;
    auto const count = static_cast<double>(r.length());
    T mean(0), part(0);
    if (r.centred) {
      each(r, row, [&](index_t i, index_t) { part += a.x[i]; });
      mean = static_cast<T>(total(static_cast<double>(part)) / count);
      part = T(0);
    }
    each(r, row, [&](index_t i, index_t) { part += (a.x[i] - mean) * (a.x[i] - mean); });
    auto const scale = static_cast<T>(1 / std::sqrt(total(static_cast<double>(part)) / count + r.eps));
    if constexpr (Back) {
      T h(0), along(0);
      each(r, row, [&](index_t i, index_t c) {
        T const own = a.weight == nullptr ? a.third[i] : a.third[i] * a.weight[c];
        h += own;
        along += own * ((a.x[i] - mean) * scale);
      });
      T const less = r.centred ? static_cast<T>(total(static_cast<double>(h)) / count) : T(0);
      auto const turn = static_cast<T>(total(static_cast<double>(along)) / count);
      each(r, row, [&](index_t i, index_t c) {
        T const ct = a.third[i], z = (a.x[i] - mean) * scale;
        if (a.products != nullptr) a.products[i] = ct * z;
        a.to[i] = ((a.weight == nullptr ? ct : ct * a.weight[c]) - less - z * turn) * scale;
      });
    } else {
      each(r, row, [&](index_t i, index_t c) {
        T y = (a.x[i] - mean) * scale;
        if (a.weight != nullptr) y *= a.weight[c];
        if (a.third != nullptr) y += a.third[c];
        a.to[i] = y;
      });
    }
  }
};

/// start_norm - such a kernel; there are rows.
template <class T, bool Back>
cudaError_t start_norm(NormArguments<T> const& a, cudaStream_t stream) {
  constexpr index_t short_row = 1024;
  index_t const rows = a.rows.number();
  if (a.rows.length() > short_row)
    return start<CalledNorm<T, Back, own_threads>>(a, blocks_for(rows * own_threads, own_threads), stream);
  return start<CalledNorm<T, Back, warp_size>>(a, blocks_for(rows * warp_size, own_threads), stream);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
