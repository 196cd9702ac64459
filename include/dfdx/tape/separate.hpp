// SPDX-License-Identifier: BSL-1.0
//
// separate - ops compiled once for all source files of a program.
//
// The library is made of headers, so each file that calls an op compiles its loops, its rule, and the ops of that rule
// again. A program of several files may define DFDX_SEPARATE for all of them, and DFDX_IMPLEMENTATION too for one: what
// ops do in memory, on untyped values and on Tensors of float and of double, is then compiled in that one alone. The
// others compile in less time and memory. What runs is the same, but that ops are not inlined into what calls them.
// Compiled functions (program/) stay in the files that call them. All are compiled for one instruction set.
#pragma once

#include <dfdx/ops/each_op.hpp>
#include <dfdx/tape/backward.hpp>
#include <dfdx/vocabulary/attention_rules.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/conv.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/grid_rules.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/linalg.hpp>
#include <dfdx/vocabulary/loss.hpp>
#include <dfdx/vocabulary/mathematics.hpp>
#include <dfdx/vocabulary/norm.hpp>
#include <dfdx/vocabulary/order.hpp>
#include <dfdx/vocabulary/pool.hpp>
#include <dfdx/vocabulary/random.hpp>
#include <dfdx/vocabulary/scan.hpp>
#include <dfdx/vocabulary/scatter_reduce.hpp>
#include <dfdx/vocabulary/split.hpp>
#include <dfdx/vocabulary/svd.hpp>

#if defined(DFDX_SEPARATE)

namespace dfdx::detail {

#if defined(DFDX_IMPLEMENTATION)
#define DFDX_EXTERN template
#else
#define DFDX_EXTERN extern template
#endif
#define DFDX_ONE(name)                                                                                  \
  DFDX_EXTERN Array run_now<op::name, void>(Meta const&, Attrs const&, Array const* const*);            \
  DFDX_EXTERN Array run_now<op::name, float>(Meta const&, Attrs const&, Array const* const*);           \
  DFDX_EXTERN Array run_now<op::name, double>(Meta const&, Attrs const&, Array const* const*);          \
  DFDX_EXTERN Array apply_to_dense<op::name, float>(Array const&, Array const* const*, double const*);  \
  DFDX_EXTERN Array apply_to_dense<op::name, double>(Array const&, Array const* const*, double const*); \
  DFDX_EXTERN TapeRule const& tape_rule<op::name>();
DFDX_EACH_OP(DFDX_ONE, DFDX_ONE)
#undef DFDX_ONE

#define DFDX_ONE(name)                                      \
  DFDX_EXTERN TapeRule const& tape_rule<op::name, float>(); \
  DFDX_EXTERN TapeRule const& tape_rule<op::name, double>();
DFDX_ONE(matmul)
DFDX_ONE(conv)
DFDX_ONE(conv_input)
DFDX_ONE(conv_weight)
DFDX_ONE(resample)
#undef DFDX_ONE

#define DFDX_ONE(name)                                                        \
  DFDX_EXTERN Array reduce_in_memory<op::name, void>(Array const&, index_t);  \
  DFDX_EXTERN Array reduce_in_memory<op::name, float>(Array const&, index_t); \
  DFDX_EXTERN Array reduce_in_memory<op::name, double>(Array const&, index_t);
DFDX_ONE(sum)
DFDX_ONE(prod)
DFDX_ONE(max)
DFDX_ONE(min)
#undef DFDX_ONE

DFDX_EXTERN void copy_values<0>(Array const&, Array const&);
DFDX_EXTERN Array uniform_array<0>(char const*, Shape const&, DType, Key, double, double);
DFDX_EXTERN Array normal_array<0>(char const*, Shape const&, DType, Key);
DFDX_EXTERN Array integers_array<0>(Shape const&, DType, Key, std::int64_t, std::int64_t);

}  // namespace dfdx::detail

namespace dfdx {

DFDX_EXTERN void kernels::convert<0>(Operand const&, Operand const&);
DFDX_EXTERN bool kernels::copy_transposed<0>(Operand const&, Operand const&);
DFDX_EXTERN void Array::backward<0>(BackwardOptions) const;
DFDX_EXTERN void Array::backward<0>(Array const&, BackwardOptions) const;

}  // namespace dfdx

#undef DFDX_EXTERN

#endif  // DFDX_SEPARATE
