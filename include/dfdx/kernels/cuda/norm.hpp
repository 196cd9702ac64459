// SPDX-License-Identifier: BSL-1.0
// Norms that are called one by one, on a device: a block for each row, of short rows a warp. What gradients of
// parameters sum up is written beside the gradient of x, and added up by any_reduce.hpp.
#pragma once

#include <dfdx/core/loop_code.hpp>
#include <dfdx/kernels/cuda/lanes.hpp>
#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/value/norm_options.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// NormArguments - dense operands of op::standardize, of INT32_MAX elements at most, or of its gradient, which has
/// cotangents for a bias; what is missing is null. `products`, of the gradient, are cotangents times what weights were
/// multiplied with.
template <class T>
struct NormArguments {
  T const *x, *weight, *third;
  T *to, *products;
  op::NormRows rows;
  double of_each = 1.0 / static_cast<double>(rows.length());  // in a mean
};

/// CalledNorm - the op, or its gradient with respect to x: `Together` threads for a row.
template <class T, bool Back, int Together>
struct CalledNorm {
  static constexpr int threads = own_threads;

  static DFDX_INLINE void run(NormArguments<T> const& a) {
    auto const rows = static_cast<Index>(a.rows.number());
    constexpr Index by = threads / Together;
    auto const step = static_cast<Index>(blocks()) * by;
    for (Index row = static_cast<Index>(block()) * by + static_cast<Index>(thread() / Together); row < rows;
         row += step)
      one(a, row);
  }

 private:
  // Places fit in 32 bits, which GPUs divide several times faster.
  using Index = std::uint32_t;
  struct Rows {
    Index samples, groups, channels, inner;
    DFDX_INLINE explicit Rows(op::NormRows const& r)
        : samples(static_cast<Index>(r.samples)),
          groups(static_cast<Index>(r.groups)),
          channels(static_cast<Index>(r.channels)),
          inner(static_cast<Index>(r.inner)) {}
  };
  static DFDX_INLINE double total(double x) { return block_reduce<loop_code::reduce_sum, Together>(x); }

  // f(place, parameter) for this thread's elements of a row.
  template <class F>
  static DFDX_INLINE void each(op::NormRows const& all, Index row, F const& f) {
    Rows const r(all);
    Index const group = all.across ? row : row % r.groups, first = group * r.channels;
    Index const n = (all.across ? r.samples : r.channels) * r.inner;
    for (Index i = static_cast<Index>(thread() % Together); i < n; i += Together) {
      if (all.across) f((i / r.inner * r.groups + row) * r.inner + i % r.inner, first);
      else f(row * n + i, first + i / r.inner);
    }
  }
  static DFDX_INLINE void one(NormArguments<T> const& a, Index row) {
    op::NormRows const& r = a.rows;
    T mean(0), part(0), squares(0);
    if (r.centred) {
      each(r, row, [&](Index i, Index) { part += a.x[i]; });
      mean = static_cast<T>(total(static_cast<double>(part)) * a.of_each);
      part = T(0);
    }
    each(r, row, [&](Index i, Index) {
      T const apart = a.x[i] - mean;
      part += apart;
      squares += apart * apart;
    });
    double spread = total(static_cast<double>(squares));
    if (r.centred) {
      // As vocabulary/moments.hpp has it.
      double const sum = total(static_cast<double>(part)), rest = sum * a.of_each;
      mean = static_cast<T>(static_cast<double>(mean) + rest);
      spread = sum * rest < spread ? spread - sum * rest : 0x1p-23 * spread;
    }
    auto const scale = static_cast<T>(r.scale(spread * a.of_each));
    if constexpr (Back) {
      T h(0), along(0);
      each(r, row, [&](Index i, Index c) {
        T const own = a.weight == nullptr ? a.third[i] : a.third[i] * a.weight[c];
        h += own;
        along += own * ((a.x[i] - mean) * scale);
      });
      T const less = r.centred ? static_cast<T>(total(static_cast<double>(h)) * a.of_each) : T(0);
      auto const turn = static_cast<T>(total(static_cast<double>(along)) * a.of_each);
      each(r, row, [&](Index i, Index c) {
        T const ct = a.third[i], z = (a.x[i] - mean) * scale;
        if (a.products != nullptr) a.products[i] = ct * z;
        a.to[i] = ((a.weight == nullptr ? ct : ct * a.weight[c]) - less - z * turn) * scale;
      });
    } else {
      each(r, row, [&](Index i, Index c) {
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
