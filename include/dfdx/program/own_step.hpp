// SPDX-License-Identifier: BSL-1.0
// A step of a program on a device that is an op with a kernel of its own: the device's kernel where there is one, else
// the CPU's (program/host_step.hpp).
#pragma once

#include <dfdx/kernels/cuda/index.hpp>
#include <dfdx/ops/index.hpp>
#include <dfdx/program/host_step.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

/// OwnStep - step S of program P.
template <class P, int S>
class OwnStep {
  static constexpr graph::Step step = P::steps[static_cast<std::size_t>(S)];
  static constexpr graph::OwnKernel own = P::plan.own_kernels[static_cast<std::size_t>(step.own_kernel)];
  static constexpr DType dtype_of_operand(int k) {
    return P::plan.arguments[static_cast<std::size_t>(step.argument + k)].dtype;
  }
  template <int K>
  using element_of = element_t<dtype_of_operand(K)>;
  // The dtype of what is only moved matters for its size.
  template <class T>
  using bits_of = std::conditional_t<
      sizeof(T) == 1, std::uint8_t,
      std::conditional_t<sizeof(T) == 2, std::uint16_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  template <class Op>
  static constexpr bool is = is_op<Op>(*program_graph<P>.nodes[static_cast<std::size_t>(step.node)].op);
  using Code = step_code_t<P, S>;
  static constexpr int axis = static_cast<int>(own.attrs.i[0]);

  // The device's kernel, and whether it adds to zeros.
  struct OnHost {};
  static constexpr auto choose() {
    namespace k = dfdx::kernels::cuda;
    if constexpr (is<op::take>)
      return std::type_identity<k::TakeKernel<Code, bits_of<element_of<0>>, element_of<1>>>{};
    else if constexpr (is<op::rows_add>)
      return std::type_identity<k::RowsAddKernel<Code, element_of<0>, element_of<1>>>{};
    else if constexpr (is<op::gather>)
      return std::type_identity<k::GatherKernel<Code, bits_of<element_of<0>>, element_of<1>, axis>>{};
    else if constexpr (is<op::scatter>)
      return std::type_identity<k::ScatterKernel<Code, element_of<0>, element_of<1>, axis>>{};
    else if constexpr (is<op::check_label>) return std::type_identity<k::LabelKernel<Code, element_of<0>>>{};
    else return std::type_identity<OnHost>{};
  }
  using Kernel = typename decltype(choose())::type;

 public:
  static constexpr bool is_on_device = !std::is_same_v<Kernel, OnHost>;
  static constexpr index_t workspace(index_t const*) { return 0; }

  static cudaError_t run(void* const* base, void*, index_t const* symbols, [[maybe_unused]] Device device,
                         cudaStream_t stream) {
    constexpr auto arguments = static_cast<std::size_t>(step.arguments);
    if constexpr (!is_on_device) {
      return HostStep<arguments>::run(own, P::plan.arguments.data() + static_cast<std::size_t>(step.argument),
                                      P::plan.code.data() + static_cast<std::size_t>(step.code), base,
                                      symbols, stream);
    } else {
      dfdx::kernels::cuda::IndexArguments x;
      for (std::size_t i = 0; i < arguments; ++i) x.base[i] = base[i];
      if (symbols != nullptr)
        for (int i = 0; i < max_symbols; ++i) x.symbols[i] = symbols[i];
      x.by = program_graph<P>.nodes[static_cast<std::size_t>(step.node)].op->name;
      x.fault = cuda_runtime::fault(device);
      if constexpr (is<op::take>) x.by = op::detail::called(own.attrs, op::take::name);
      if constexpr (is<op::rows_add>) x.by = op::detail::called(own.attrs, op::take::name);
      if constexpr (is<op::gather> || is<op::scatter>) x.by = op::detail::called(own.attrs, op::gather::name);
      if constexpr (is<op::scatter>) x.extra[0] = own.attrs.i[1];
      if constexpr (is<op::check_label>) {
        x.by = op::detail::called(own.attrs, op::check_label::name);
        x.extra[0] = own.attrs.i[0], x.extra[1] = own.attrs.i[1];
      }
      if constexpr (is<op::rows_add> || is<op::scatter>) {
        constexpr int result = static_cast<int>(arguments) - 1;
        index_t const n = dfdx::kernels::cuda::Walks<Code>::template count<result>(x.symbols);
        auto const bytes = static_cast<std::size_t>(n) * sizeof(element_of<result>);
        if (bytes != 0)
          if (auto const said = cudaMemsetAsync(base[result], 0, bytes, stream); said != cudaSuccess)
            return said;
      }
      return dfdx::kernels::cuda::start_index<Kernel>(x, stream);
    }
  }
};

}  // namespace dfdx::detail::inline DFDX_TARGET
