// SPDX-License-Identifier: BSL-1.0
// Norms of dense arrays and their gradients, in one step.
#pragma once

#include <dfdx/kernels/norm_columns.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace detail {

// The layout, and parameters in it.
template <class T>
class Repeated {
 public:
  op::NormRows rows;

  Repeated(op::NormRows const& r, bool has_parameters)
      : rows(r),
        own_(static_cast<std::size_t>(is_repeated(r, has_parameters) ? 2 * r.parameters() * r.inner : 0)) {
    if (!has_parameters && !r.across) rows.inner *= rows.channels, rows.channels = 1;
    else if (own_.get() != nullptr) rows.channels *= rows.inner, rows.inner = 1;
  }
  /// Parameter k, the weight or the bias, as it was given.
  T const* operator()(int k, T const* p, op::NormRows const& given) const {
    if (p == nullptr || own_.get() == nullptr) return p;
    T* const to = own_.get() + k * rows.parameters();
    for (index_t c = 0; c < given.parameters(); ++c) std::fill_n(to + c * given.inner, given.inner, p[c]);
    return to;
  }
  bool repeats() const { return own_.get() != nullptr; }

 private:
  static bool is_repeated(op::NormRows const& r, bool has_parameters) {
    return has_parameters && !r.across && r.inner > 1 && r.inner < few_in_piece;
  }
  Scratch<T> own_;
};

}  // namespace detail

/// standardize - op::standardize of dense arrays; parameters that are missing are null. What is found of the rows on
/// the way is left in `moments`, if asked for.
template <class T>
void standardize(op::NormRows const& r, T const* x, T const* weight, T const* bias, T* y,
                 RowMoments<T> moments = {}) {
  if (detail::ColumnsOf<T>::fits(r)) return detail::ColumnsOf<T>(r, x).forward(weight, bias, y, moments);
  detail::Repeated<T> const as(r, weight != nullptr || bias != nullptr);
  detail::RowsOf<T>(as.rows, x).forward(as(0, weight, r), as(1, bias, r), y, moments);
}

/// standardize_back - op::standardize_back likewise; gradients of parameters that are missing are null.
template <class T>
void standardize_back(op::NormRows const& r, T const* x, T const* weight, T const* ct, T* dx, T* d_weight,
                      T* d_bias) {
  if (detail::ColumnsOf<T>::fits(r))
    return detail::ColumnsOf<T>(r, x).backward(weight, ct, dx, d_weight, d_bias);
  detail::Repeated<T> const as(r, weight != nullptr);
  detail::RowsOf<T> const rows(as.rows, x);
  if (!as.repeats()) return rows.backward(weight, ct, dx, d_weight, d_bias);
  Scratch<T> sums(static_cast<std::size_t>(2 * as.rows.parameters()));
  T *const dw = sums.get(), *const db = dw + as.rows.parameters();
  rows.backward(as(0, weight, r), ct, dx, dw, d_bias == nullptr ? nullptr : db);
  for (index_t c = 0; c < r.parameters(); ++c) {
    d_weight[c] = static_cast<T>(fold_line<Code::reduce_sum>(0.0, dw + c * r.inner, r.inner));
    if (d_bias != nullptr)
      d_bias[c] = static_cast<T>(fold_line<Code::reduce_sum>(0.0, db + c * r.inner, r.inner));
  }
}

}  // namespace dfdx::kernels::inline DFDX_TARGET
