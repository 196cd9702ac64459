// SPDX-License-Identifier: BSL-1.0
// A step of a program on a device that is an op with a kernel of its own: the device's kernel where there is one, else
// the CPU's (program/host_step.hpp).
#pragma once

#include <dfdx/kernels/cuda/attention.hpp>
#include <dfdx/kernels/cuda/conv.hpp>
#include <dfdx/kernels/cuda/grid.hpp>
#include <dfdx/kernels/cuda/half_attention.hpp>
#include <dfdx/kernels/cuda/index.hpp>
#include <dfdx/kernels/cuda/move.hpp>
#include <dfdx/kernels/cuda/order.hpp>
#include <dfdx/kernels/cuda/random.hpp>
#include <dfdx/kernels/cuda/recurrence.hpp>
#include <dfdx/kernels/cuda/scan.hpp>
#include <dfdx/kernels/cuda/sort.hpp>
#include <dfdx/kernels/cuda/window.hpp>
#include <dfdx/ops/attention.hpp>
#include <dfdx/ops/conv.hpp>
#include <dfdx/ops/grid_sample.hpp>
#include <dfdx/ops/index.hpp>
#include <dfdx/ops/index_copy.hpp>
#include <dfdx/ops/join.hpp>
#include <dfdx/ops/onto.hpp>
#include <dfdx/ops/order.hpp>
#include <dfdx/ops/pool.hpp>
#include <dfdx/ops/random.hpp>
#include <dfdx/ops/resample.hpp>
#include <dfdx/ops/slide.hpp>
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
  template <class Op>
  static constexpr bool is = is_op<Op>(*program_graph<P>.nodes[static_cast<std::size_t>(step.node)].op);
  using Code = step_code_t<P, S>;
  static constexpr int axis = static_cast<int>(own.attrs.i[0]);

  // The device's kernel.
  struct OnHost {};
  template <class Kernel>
  static constexpr auto by = std::type_identity<Kernel>{};
  static constexpr auto choose() {
    namespace k = dfdx::kernels::cuda;
    constexpr index_t first = own.attrs.i[0], second = own.attrs.i[1], third = own.attrs.i[2];
    using E = element_of<0>;
    using Bits = bits_of<E>;
    using Second = element_of<1>;
    using Windows = dfdx::kernels::Numbers<first, second, third>;
    using k::ConvDoes;
    if constexpr (is<op::take>) return by<k::TakeKernel<Code, Bits, Second>>;
    else if constexpr (is<op::rows_add>) return by<k::RowsAddKernel<Code, E, Second>>;
    else if constexpr (is<op::gather>) return by<k::GatherKernel<Code, Bits, Second, axis>>;
    else if constexpr (is<op::scatter>) return by<k::ScatterKernel<Code, E, Second, axis>>;
    else if constexpr (is<op::scatter_onto>) return by<k::ScatterKernel<Code, E, Second, axis, true>>;
    else if constexpr (is<op::rows_onto>) return by<k::RowsAddKernel<Code, E, Second, true>>;
    else if constexpr (is<op::check_label>) return by<k::LabelKernel<Code, E>>;
    else if constexpr (is<op::index_copy>) return by<k::IndexCopyKernel<Code, Bits, Second, axis>>;
    else if constexpr (is<op::pad>) return by<k::PadKernel<Code, E, axis & 15, (first >> 4)>>;
    else if constexpr (is<op::concat>) return by<k::ConcatKernel<Code, Bits, axis>>;
    else if constexpr (is<op::flip>) return by<k::FlipKernel<Code, Bits, first>>;
    else if constexpr (is<op::slide>) return by<k::SlideKernel<Code, Bits, axis, second != 0>>;
    else if constexpr (is<op::draw>) return by<k::DrawKernel<Code, element_of<2>, third != 0>>;
    else if constexpr (is<op::cumsum>) return by<k::ScanKernel<Code, k::SumRule<E>, axis, second != 0>>;
    else if constexpr (is<op::recurrence>) return by<k::RecurrenceKernel<Code, E, axis>>;
    else if constexpr (is<op::argcummax>)
      return by<k::ScanKernel<Code, k::LargestRule<E, second != 0>, axis, false>>;
    else if constexpr (is<op::argmax>) return by<k::ArgmaxKernel<Code, E, axis, second != 0>>;
    else if constexpr (is<op::argsort>) return by<k::SortKernel<Code, E, axis, second != 0>>;
    else if constexpr (is<op::searchsorted>) return by<k::SearchKernel<Code, E, first != 0>>;
    else if constexpr (is<op::conv>) return by<k::ConvKernel<ConvDoes::result, Code, E, Windows>>;
    else if constexpr (is<op::conv_input>) return by<k::ConvKernel<ConvDoes::input, Code, E, Windows>>;
    else if constexpr (is<op::conv_weight>) return by<k::ConvKernel<ConvDoes::weight, Code, E, Windows>>;
    else if constexpr (is<op::window_argmax>) return by<k::WindowArgmaxKernel<Code, E, Second, Windows>>;
    else if constexpr (is<op::resample>)
      return by<k::ResampleKernel<Code, E, axis & 15, (first & 16) != 0,
                                  k::FixedSampling<static_cast<op::Sampling>(second), third>>>;
    else if constexpr (is<op::grid_sample>) return by<k::GridSampleKernel<Code, E, grid_terms>>;
    else if constexpr (is<op::grid_sample_images>) return by<k::GridImagesKernel<Code, E, grid_terms>>;
    else if constexpr (is<op::grid_sample_places>) return by<k::GridPlacesKernel<Code, E, grid_terms>>;
    else return choose_attention();
  }
  static constexpr int grid_terms = op::detail::grid_terms(op::detail::grid_options(own.attrs.i[0]).mode);
  static constexpr auto choose_attention() {
    namespace k = dfdx::kernels::cuda;
    using E = element_of<0>;
    // Whether the sums are asked for too, or nothing else, the kernel sees from its arguments.
    if constexpr (is<op::attend> || is<op::attend_sums>) {
      if constexpr (k::TensorAttend<Code, E>::fits) return by<k::TensorAttend<Code, E>>;
      else if constexpr (k::AttentionFacts<Code, E, 2>::tile != 0) return by<k::AttendKernel<Code, E>>;
      else return by<OnHost>;
    } else if constexpr (is<op::attend_back>) {
      if constexpr (k::TensorAttendBack<Code, E>::fits) return by<k::TensorAttendBack<Code, E>>;
      else if constexpr (k::AttentionFacts<Code, E, 4>::tile != 0) return by<k::AttendBackKernel<Code, E>>;
      else return by<OnHost>;
    } else {
      return by<OnHost>;
    }
  }
  using Kernel = typename decltype(choose())::type;

 public:
  static constexpr bool is_on_device = !std::is_same_v<Kernel, OnHost>;
  static constexpr index_t workspace([[maybe_unused]] index_t const* symbols) {
    if constexpr (is_on_device) return dfdx::kernels::cuda::workspace_of<Kernel>(symbols);
    else return 0;
  }

  static cudaError_t run(void* const* base, [[maybe_unused]] void* workspace, index_t const* symbols,
                         [[maybe_unused]] Device device, cudaStream_t stream) {
    constexpr auto arguments = static_cast<std::size_t>(step.arguments);
    if constexpr (!is_on_device) {
      constexpr auto arity =
          static_cast<std::size_t>(program_graph<P>.nodes[static_cast<std::size_t>(step.node)].op->arity);
      return HostStep<arguments, arguments - arity>::run(
          own, P::plan.arguments.data() + static_cast<std::size_t>(step.argument),
          P::plan.code.data() + static_cast<std::size_t>(step.code), base, symbols, stream);
    } else {
      dfdx::kernels::cuda::OwnArguments x;
      for (std::size_t i = 0; i < arguments; ++i) x.base[i] = base[i];
      if constexpr (is<op::attend_sums>) x.base[3] = nullptr;
      if (symbols != nullptr)
        for (int i = 0; i < max_symbols; ++i) x.symbols[i] = symbols[i];
      x.attrs = own.attrs;
      x.workspace = workspace;
      x.by = program_graph<P>.nodes[static_cast<std::size_t>(step.node)].op->name;
      x.fault = cuda_runtime::fault(device);
      if constexpr (is<op::take> || is<op::rows_add>) x.by = op::detail::called(own.attrs, op::take::name);
      if constexpr (is<op::gather> || is<op::scatter>) x.by = op::detail::called(own.attrs, op::gather::name);
      if constexpr (is<op::scatter_onto> || is<op::rows_onto>)
        x.by = op::detail::called(own.attrs,
                                  program_graph<P>.nodes[static_cast<std::size_t>(step.node)].op->name);
      if constexpr (is<op::check_label>) x.by = op::detail::called(own.attrs, op::check_label::name);
      if constexpr (dfdx::kernels::cuda::into_zeros<Kernel>()) {
        constexpr int result = static_cast<int>(arguments) - 1;
        index_t const n = dfdx::kernels::cuda::Walks<Code>::template count<result>(x.symbols);
        auto const bytes = static_cast<std::size_t>(n) * sizeof(element_of<result>);
        if (bytes != 0)
          if (auto const said = cudaMemsetAsync(base[result], 0, bytes, stream); said != cudaSuccess)
            return said;
      }
      return dfdx::kernels::cuda::start_own<Kernel>(x, stream);
    }
  }
};

}  // namespace dfdx::detail::inline DFDX_TARGET
