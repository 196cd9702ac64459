// SPDX-License-Identifier: BSL-1.0
// The names of all ops that run eagerly, for what is said of each of them.
#pragma once

/// DFDX_EACH_OP - `first(neg) next(exp)` and so on: two macros, so that the names can make a list.
// clang-format off
#define DFDX_EACH_OP(first, next) \
  first(neg) next(exp) next(expm1) next(log) next(log1p) next(sqrt) next(rsqrt) next(square) next(abs) \
  next(sign) next(exp2) next(log2) next(log10) next(cbrt) next(tan) next(asin) next(acos) next(atan) \
  next(sinh) next(cosh) next(asinh) next(acosh) next(atanh) next(erfc) next(lgamma) next(digamma) \
  next(polygamma) next(floor) next(ceil) next(round) next(trunc) next(atan2) next(hypot) next(fmod) \
  next(remainder) next(floor_divide) next(logaddexp) next(sin) next(cos) next(tanh) next(sigmoid) \
  next(erf) next(relu) next(add) next(sub) next(mul) next(div) next(pow) next(maximum) next(minimum) \
  next(equal) next(not_equal) next(less) next(less_equal) next(greater) next(greater_equal) \
  next(logical_and) next(logical_or) next(logical_not) next(where) next(stop_gradient) next(vanishing) \
  next(copy) next(cast) next(sum) next(prod) next(max) next(min) next(reshape) next(permute) \
  next(expand) next(slice) next(matmul) next(take) next(rows_add) next(check_label) next(gather) \
  next(scatter) next(scatter_onto) next(rows_onto) next(index_copy) next(scatter_reduce) next(argmax) \
  next(pad) next(concat) next(flip) next(cumsum) next(recurrence) next(argcummax) next(argsort) \
  next(searchsorted) next(lu) next(solve) next(inverse) next(determinant) next(cofactors) \
  next(cofactors_slope) next(solve_triangular) next(cholesky) next(qr) next(eigh) next(svd) next(pinv) \
  next(matrix_exp) next(conv) next(conv_input) next(conv_weight) next(window_argmax) next(resample) \
  next(grid_sample) next(grid_sample_images) next(grid_sample_places) next(draw) next(standardize) \
  next(standardize_back) next(windows) next(attend) next(attend_sums) next(attend_back)
// clang-format on
