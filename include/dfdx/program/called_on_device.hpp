// SPDX-License-Identifier: BSL-1.0
// The kernels of a device for ops that are called one by one, by name: so that files without CUDA find them too. Ops
// that have none run on the CPU, on copies (vocabulary/bind.hpp).
#pragma once

#include <string_view>
#include <unordered_map>

#include <dfdx/program/called_attention.hpp>
#include <dfdx/program/called_grid.hpp>
#include <dfdx/program/called_kernels.hpp>
#include <dfdx/program/called_norm.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

using CalledKernel = bool (*)(CalledOp const&);

class CalledKernels {
 public:
  static CalledKernel find(char const* name, ShapeRule rule) {
    static CalledKernels const all;
    auto const at = all.by_name_.find(name);
    bool const is_known = at != all.by_name_.end() && (rule == nullptr || rule == at->second.rule);
    return is_known ? at->second.run : nullptr;
  }

 private:
  CalledKernels() {
    add_maps(std::make_index_sequence<256>{});
    add<op::copy>(&copy_on_device);
    add<op::cast>(&cast_on_device);
    add<op::sum>(&reduce_on_device<loop_code::reduce_sum>);
    add<op::prod>(&reduce_on_device<loop_code::reduce_prod>);
    add<op::max>(&reduce_on_device<loop_code::reduce_max>);
    add<op::min>(&reduce_on_device<loop_code::reduce_min>);
    add<op::matmul>(&matmul_on_device);
    add<op::attend>(
        &attention_on_device<dfdx::kernels::cuda::AttendKernel, dfdx::kernels::cuda::TensorAttend>);
    add<op::attend_sums>(
        &attention_on_device<dfdx::kernels::cuda::AttendKernel, dfdx::kernels::cuda::TensorAttend>);
    add<op::attend_back>(
        &attention_on_device<dfdx::kernels::cuda::AttendBackKernel, dfdx::kernels::cuda::TensorAttendBack>);
    add<op::take>(&take_on_device);
    add<op::rows_add>(&rows_add_on_device);
    add<op::gather>(&gather_on_device);
    add<op::scatter>(&scatter_on_device);
    add<op::scatter_onto>(&scatter_onto_on_device);
    add<op::rows_onto>(&rows_onto_on_device);
    add<op::check_label>(&check_label_on_device);
    add<op::conv>(&conv_on_device<dfdx::kernels::cuda::ConvDoes::result>);
    add<op::conv_input>(&conv_on_device<dfdx::kernels::cuda::ConvDoes::input>);
    add<op::conv_weight>(&conv_on_device<dfdx::kernels::cuda::ConvDoes::weight>);
    add<op::window_argmax>(&window_argmax_on_device);
    add<op::pad>(&pad_on_device);
    add<op::flip>(&flip_on_device);
    add<op::concat>(&concat_on_device);
    add<op::cumsum>(&cumsum_on_device);
    add<op::recurrence>(&recurrence_on_device);
    add<op::argcummax>(&places_in_lines<CalledLargest, float, double, std::int32_t, std::int64_t>);
    add<op::argmax>(
        &places_in_lines<CalledArgmax, float, double, float16, bfloat16, std::int32_t, std::int64_t>);
    add<op::argsort>(&places_in_lines<CalledSort, float, double, std::int32_t, std::int64_t>);
    add<op::searchsorted>(&searchsorted_on_device);
    add<op::index_copy>(&index_copy_on_device);
    add<op::resample>(&resample_on_device);
    add<op::draw>(&draw_on_device);
    add<op::standardize>(&norm_on_device<false>);
    add<op::standardize_back>(&norm_on_device<true>);
    add<op::grid_sample>(&grid_on_device<dfdx::kernels::cuda::GridSampleKernel, 2>);
    add<op::grid_sample_images>(&grid_on_device<dfdx::kernels::cuda::GridImagesKernel, 2>);
    add<op::grid_sample_places>(&grid_on_device<dfdx::kernels::cuda::GridPlacesKernel, 3>);
  }
  struct Entry {
    ShapeRule rule;
    CalledKernel run;
  };
  template <class Op>
  void add(CalledKernel run) {
    by_name_[Op::name] = {&Op::infer, run};
  }
  // Elementwise ops of the library, which are numbered.
  template <std::size_t N>
  void add_map() {
    if constexpr (requires { typename op::fused<static_cast<int>(N)>::type; }) {
      using Op = typename op::fused<static_cast<int>(N)>::type;
      add<Op>(&map_on_device<Op>);
    }
  }
  template <std::size_t... N>
  void add_maps(std::index_sequence<N...>) {
    (add_map<N>(), ...);
  }

  std::unordered_map<std::string_view, Entry> by_name_;
};

inline bool run_called(char const* name, ShapeRule rule, Attrs const& attrs, Array const* const* x, int n,
                       Array const& out) {
  CalledKernel const kernel = CalledKernels::find(name, rule);
  if (kernel == nullptr || device_among(name, x, n) != out.device()) return false;
  cuda_runtime::Current const current(out.device());
  cuda_runtime::Range const range(name);
  return kernel({attrs, x, n, out, name});
}
inline constexpr DeviceOps called_ops{&run_called};
/// Says at the start of the process that there are such kernels.
inline bool const called_ops_registered = (device_ops = &called_ops, true);

}  // namespace dfdx::detail::inline DFDX_TARGET
