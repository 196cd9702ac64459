// SPDX-License-Identifier: BSL-1.0
// The kernels of a device for ops that are called one by one, by name: so that files without CUDA find them too. Ops
// that have none run on the CPU, on copies (vocabulary/bind.hpp).
#pragma once

#include <string_view>
#include <unordered_map>

#include <dfdx/program/called_kernels.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

using CalledKernel = bool (*)(CalledOp const&);

class CalledKernels {
 public:
  static CalledKernel find(char const* name) {
    static CalledKernels const all;
    auto const at = all.by_name_.find(name);
    return at == all.by_name_.end() ? nullptr : at->second;
  }

 private:
  CalledKernels() {
    add_maps(std::make_index_sequence<256>{});
    by_name_["copy"] = &copy_on_device;
    by_name_["cast"] = &cast_on_device;
    by_name_["sum"] = &reduce_on_device<loop_code::reduce_sum>;
    by_name_["prod"] = &reduce_on_device<loop_code::reduce_prod>;
    by_name_["max"] = &reduce_on_device<loop_code::reduce_max>;
    by_name_["min"] = &reduce_on_device<loop_code::reduce_min>;
    by_name_["matmul"] = &matmul_on_device;
    by_name_["take"] = &take_on_device;
    by_name_["rows_add"] = &rows_add_on_device;
    by_name_["gather"] = &gather_on_device;
    by_name_["scatter"] = &scatter_on_device;
    by_name_["check_label"] = &check_label_on_device;
    by_name_["conv"] = &conv_on_device<dfdx::kernels::cuda::ConvDoes::result>;
    by_name_["conv_input"] = &conv_on_device<dfdx::kernels::cuda::ConvDoes::input>;
    by_name_["conv_weight"] = &conv_on_device<dfdx::kernels::cuda::ConvDoes::weight>;
    by_name_["window_argmax"] = &window_argmax_on_device;
    by_name_["pad"] = &pad_on_device;
    by_name_["flip"] = &flip_on_device;
    by_name_["concat"] = &concat_on_device;
    by_name_["cumsum"] = &cumsum_on_device;
    by_name_["argmax"] = &argmax_on_device;
    by_name_["argsort"] = &argsort_on_device;
    by_name_["draw"] = &draw_on_device;
  }
  // Elementwise ops of the library, which are numbered.
  template <std::size_t N>
  void add_map() {
    if constexpr (requires { typename op::fused<static_cast<int>(N)>::type; }) {
      using Op = typename op::fused<static_cast<int>(N)>::type;
      by_name_[Op::name] = &map_on_device<Op>;
    }
  }
  template <std::size_t... N>
  void add_maps(std::index_sequence<N...>) {
    (add_map<N>(), ...);
  }

  std::unordered_map<std::string_view, CalledKernel> by_name_;
};

inline bool run_called(char const* name, Attrs const& attrs, Array const* const* x, int n, Array const& out) {
  CalledKernel const kernel = CalledKernels::find(name);
  if (kernel == nullptr) return false;
  cuda_runtime::Current const current(out.device());
  cuda_runtime::Range const range(name);
  return kernel({attrs, x, n, out, name});
}
inline constexpr DeviceOps called_ops{&run_called};
/// Says at the start of the process that there are such kernels.
inline bool const called_ops_registered = (device_ops = &called_ops, true);

}  // namespace dfdx::detail::inline DFDX_TARGET
