// SPDX-License-Identifier: BSL-1.0
// Convolutions and their gradients by cuDNN 9, where the program finds it (kernels/cuda/cudnn_plan.hpp). Plans are made
// once for each kind of convolution.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include <dfdx/kernels/cuda/convolution.hpp>
#include <dfdx/kernels/cuda/cudnn_plan.hpp>
#include <dfdx/kernels/cuda/options.hpp>
#include <dfdx/kernels/cuda/runtime.hpp>

namespace dfdx::inline DFDX_TARGET::cuda_runtime {

#if !DFDX_HAS_CUDNN

/// Cudnn - takes no convolution.
struct Cudnn {
  static std::int64_t version() { return 0; }
  static std::int64_t needed(Convolution const&, void* const*, Device) { return -1; }
  static bool convolve(Convolution const&, void* const*, void*, cudaStream_t) { return false; }
};

#else

/// Cudnn - convolutions by cuDNN, where it is installed.
class Cudnn {
 public:
  /// As many kinds of convolutions are remembered; then all are forgotten, so that a program whose extents always
  /// change does not grow.
  static constexpr std::size_t most_kinds = 1024;

  /// version - of the library, 91900 for 9.19.0; 0 if it was not found.
  static std::int64_t version() {
    return CudnnApi::it().found() ? static_cast<std::int64_t>(CudnnApi::it().version()) : 0;
  }

  /// needed - bytes of workspace that a large convolution of the operands' addresses takes, which are in the order of
  /// the op; -1 if it is small (cuda_options.cudnn_from) or cuDNN does not compute it.
  static std::int64_t needed(Convolution const& c, void* const* operands, Device device) {
    if (!is_large(c)) return -1;
    Known const plan = find(c, alignment_of(operands), device);
    return plan->found() ? plan->workspace() : -1;
  }

  /// convolve - asks the current device for it; false if it is small or cuDNN does not compute it. The workspace has
  /// as many bytes as are needed, or as a convolution may use (Convolution::workspace).
  ///
  /// Errors    "cuda: cuDNN, convolution: ...", with what it says
  static bool convolve(Convolution const& c, void* const* operands, void* workspace, cudaStream_t stream) {
    if (!is_large(c)) return false;
    Device const device = current_device();
    Known const plan = find(c, alignment_of(operands), device);
    if (!plan->found()) return false;
    Handle& handle = handle_of(device);
    std::lock_guard const lock(handle.mutex);
    cudnnStatus_t said = CudnnApi::it().set_stream(handle.cudnn, stream);
    if (said == CUDNN_STATUS_SUCCESS) said = plan->run(handle.cudnn, c.does, operands, workspace);
    if (said != CUDNN_STATUS_SUCCESS)
      raise(std::string("cuda: cuDNN, convolution: ") + CudnnApi::it().error(said));
    return true;
  }

 private:
  using Known = std::shared_ptr<CudnnPlan const>;
  static std::int64_t alignment_of(void* const* operands) {
    std::uintptr_t any = 16;
    for (int i = 0; i < 3; ++i) any |= reinterpret_cast<std::uintptr_t>(operands[i]);
    return static_cast<std::int64_t>(any & (~any + 1));
  }
  struct Handle {
    cudnnHandle_t cudnn{};
    std::mutex mutex;  // what a handle is asked goes to the stream that it was given last
  };
  static Handle& handle_of(Device device) {
    static std::array<Handle, 64> all;
    return all[static_cast<std::size_t>(device.index)];
  }

  static bool is_large(Convolution const& c) { return c.axes != 0 && c.work() >= cuda_options.cudnn_from; }

  // Another thread may forget a kind while this one uses it.
  static Known find(Convolution const& c, std::int64_t alignment, Device device) {
    using Key = std::tuple<Convolution, std::int64_t, int, bool>;
    // Never destroyed: at the program's end cuDNN may have gone before it.
    static auto& known = *new std::map<Key, Known>;
    static std::mutex mutex;
    std::lock_guard const lock(mutex);
    Key const key{c, alignment, device.index, cuda_options.tf32};
    if (auto const i = known.find(key); i != known.end()) return i->second;
    auto const fresh = std::make_shared<CudnnPlan>();
    if (is_there(device)) *fresh = CudnnPlan::make(c, alignment, {handle_of(device).cudnn});
    if (known.size() >= most_kinds) known.clear();
    known.emplace(key, fresh);
    return fresh;
  }
  static bool is_there(Device device) {
    if (!CudnnApi::it().found()) return false;
    Handle& handle = handle_of(device);
    return handle.cudnn != nullptr || CudnnApi::it().create(&handle.cudnn) == CUDNN_STATUS_SUCCESS;
  }
};

#endif

}  // namespace dfdx::inline DFDX_TARGET::cuda_runtime
