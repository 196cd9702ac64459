// SPDX-License-Identifier: BSL-1.0
// A step of a program on the CPU that is an op with a kernel of its own.
#pragma once

#include <dfdx/graph/layout.hpp>
#include <dfdx/ops/sized.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

// An op with a kernel of its own: operands as the run-time kernel takes them. `code` holds their ranks, shapes and
// strides. All programs share it: one step of them says no more than where its numbers are.
template <std::size_t N>
[[gnu::noinline]] void run_own(graph::OwnKernel const& own, graph::Argument const* arguments,
                               index_t const* code, void* const* base, index_t const* symbols) {
  Operand operands[N];
  for (std::size_t i = 0; i < N; ++i) {
    Operand& o = operands[i];
    o.data = base[i];
    o.meta.dtype = arguments[i].dtype;
    o.meta.shape.rank = o.strides.rank = static_cast<int>(*code++);
    for (int d = 0; d < o.meta.shape.rank; ++d) o.meta.shape[d] = extent::resolve(*code++, symbols);
    for (int d = 0; d < o.meta.shape.rank; ++d) o.strides[d] = extent::resolve(*code++, symbols);
  }
  own.run(own.attrs, operands, operands[N - 1]);
}
template <class P, int S>
void run_opaque(void* const* base, void*, index_t const* symbols) {
  constexpr graph::Step step = P::plan.steps[static_cast<std::size_t>(S)];
  auto const& plan = P::plan;
  run_own<static_cast<std::size_t>(step.arguments)>(
      plan.own_kernels[static_cast<std::size_t>(step.own_kernel)],
      plan.arguments.data() + static_cast<std::size_t>(step.argument),
      plan.code.data() + static_cast<std::size_t>(step.code), base, symbols);
}

// The kernel of an op for matrices of known sizes, where the step has such.
template <class P, int S>
struct SizedStep {
  static constexpr graph::Step step = P::plan.steps[static_cast<std::size_t>(S)];
  static constexpr graph::OwnKernel own = P::plan.own_kernels[static_cast<std::size_t>(step.own_kernel)];
  static constexpr Attrs attrs = own.attrs;
  static constexpr op::SizedOperands operands = op::sized_operands(
      P::plan.arguments.data() + step.argument, step.arguments, P::plan.code.data() + step.code);
  static void run(void* const* base, void*, index_t const*) {
    op::sized_t<own.sized>::template run_sized<SizedStep>(base);
  }
};
template <class P, int S>
constexpr auto own_kernel() {
  if constexpr (SizedStep<P, S>::own.sized != Sized::none)
    if constexpr (SizedStep<P, S>::operands.matrices > 0) return &SizedStep<P, S>::run;
  return &run_opaque<P, S>;
}

}  // namespace dfdx::detail::inline DFDX_TARGET
