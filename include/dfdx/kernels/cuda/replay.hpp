// SPDX-License-Identifier: BSL-1.0
// Work that is asked of a device again and again, as one launch.
#pragma once

#include <vector>

#include <dfdx/kernels/cuda/runtime.hpp>

namespace dfdx::inline DFDX_TARGET::cuda_runtime {

/// Replay - work with certain memory, a program's for one, as a graph of the CUDA runtime.
class Replay {
 public:
  Replay() = default;
  Replay(Replay const&) = delete;
  Replay& operator=(Replay const&) = delete;
  ~Replay() { forget(); }

  /// forget - what was captured is never launched again.
  void forget() {
    if (graph_ != nullptr) static_cast<void>(cudaGraphExecDestroy(graph_));
    graph_ = nullptr;
    key_.clear();
  }

  /// run - does `work` on the stream. `key` says with which memory: the second time in a row that it is the same, the
  /// work is captured.
  template <class Work>
  void run(std::vector<std::uintptr_t> const& key, cudaStream_t stream, Work const& work) {
    if (key != key_) {
      // What failed half way has not been done once: it may still have to take memory, which a graph cannot.
      forget();
      work();
      key_ = key;
      return;
    }
    if (graph_ == nullptr) capture(stream, work);
    check("launch of a captured program", cudaGraphLaunch(graph_, stream));
  }

 private:
  template <class Work>
  void capture(cudaStream_t stream, Work const& work) {
    check("capture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t captured{};
    try {
      work();
    } catch (...) {
      if (cudaStreamEndCapture(stream, &captured) == cudaSuccess && captured != nullptr)
        static_cast<void>(cudaGraphDestroy(captured));
      static_cast<void>(cudaGetLastError());
      throw;
    }
    check("capture", cudaStreamEndCapture(stream, &captured));
    cudaError_t const made = cudaGraphInstantiate(&graph_, captured, 0);
    static_cast<void>(cudaGraphDestroy(captured));
    check("instantiation of a captured program", made);
  }
  std::vector<std::uintptr_t> key_;
  cudaGraphExec_t graph_ = nullptr;
};

}  // namespace dfdx::inline DFDX_TARGET::cuda_runtime
