// SPDX-License-Identifier: BSL-1.0
// error: take: integer index required, got f32
// error[clang]: take: integer index required, .*got f32
// max-lines: 14
#include <dfdx/dfdx.hpp>

using namespace dfdx;

#if DFDX_FAIL
auto rows(nn::Embedding<27, 10> const& table, Tensor<float, 3> const& index) { return table(index); }
#else
auto rows(nn::Embedding<27, 10> const& table, Tensor<std::int32_t, 3> const& index) { return table(index); }
#endif
