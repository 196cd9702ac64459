// SPDX-License-Identifier: BSL-1.0
// Matrix products by the processor's own kernel: the packed ones of simd/, or those of rvv/ where vectors have no size.
#pragma once

#include <dfdx/kernels/rvv/gemm.hpp>
#include <dfdx/kernels/simd/gemm.hpp>

#if !defined(__CUDACC__)

namespace dfdx::kernels::inline DFDX_TARGET {

/// multiply - C = epilogue(A B), as gemm (simd/gemm.hpp). multiply_workspace - the bytes it needs.
template <class Shape, class Epilogue = store_sum>
constexpr std::size_t multiply_workspace(gemm_sizes const& s = {}) {
#if defined(DFDX_RVV)
  using detail::known_or;
  bool const may_read_columns = known_or(Shape::b_col, s.b_col) != 1;
  return rvv::gemm_workspace<typename Shape::type>(known_or(Shape::n, s.n), known_or(Shape::k, s.k),
                                                   may_read_columns);
#else
  return workspace_bytes<Shape, Epilogue>(s);
#endif
}

template <class Shape, class Epilogue = store_sum>
void multiply(typename Shape::type const* a, typename Shape::type const* b, typename Shape::type* c,
              void* workspace = nullptr, Epilogue const& epilogue = {}, gemm_sizes const& s = {}) {
#if defined(DFDX_RVV)
  using T = typename Shape::type;
  using detail::known_or;
  std::int64_t const m = known_or(Shape::m, s.m), n = known_or(Shape::n, s.n), k = known_or(Shape::k, s.k);
  std::int64_t const a_row = known_or(Shape::a_row, s.a_row), a_col = known_or(Shape::a_col, s.a_col);
  std::int64_t const b_row = known_or(Shape::b_row, s.b_row), b_col = known_or(Shape::b_col, s.b_col);
  std::int64_t const c_row = known_or(Shape::c_row, s.c_row);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>)
    rvv::gemm<T>(m, n, k, {a, a_row, a_col}, {b, b_row, b_col}, c, c_row, workspace, epilogue);
  else reference::gemm(m, n, k, a, a_row, a_col, b, b_row, b_col, c, c_row, std::int64_t{1}, epilogue);
#else
  gemm<Shape>(a, b, c, workspace, epilogue, s);
#endif
}

}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // !__CUDACC__
