// SPDX-License-Identifier: BSL-1.0
// An op with a kernel of its own that has none for devices: it runs on the CPU, on copies of what lies on the device,
// which waits for it. Right, and slow; a kernel for the device takes its place where there is one.
#pragma once

#include <memory>

#include <dfdx/kernels/cuda/runtime.hpp>
#include <dfdx/program/program.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

/// HostStep - a step with N operands, of which the last are its results.
template <std::size_t N, std::size_t Results>
class HostStep {
  // The bytes that an operand reaches.
  struct Span {
    std::byte *begin = nullptr, *end = nullptr;
    bool meets(Span const& o) const { return begin < o.end && o.begin < end; }
    void add(Span const& o) {
      begin = o.begin < begin ? o.begin : begin;
      end = o.end > end ? o.end : end;
    }
  };
  // What the operand of an own kernel is described by (program/program.hpp): rank, extents, strides.
  static Span span_of(void* base, DType dtype, index_t const*& code, index_t const* symbols) {
    auto const rank = static_cast<int>(*code++);
    index_t low = 0, high = 0;
    bool empty = base == nullptr;
    for (int d = 0; d < rank; ++d) {
      index_t const n = extent::resolve(code[d], symbols), by = extent::resolve(code[rank + d], symbols);
      empty = empty || n == 0;
      (by < 0 ? low : high) += (n - 1) * by;
    }
    code += 2 * rank;
    if (empty) return {};
    auto const size = static_cast<index_t>(size_of(dtype));
    auto* const p = static_cast<std::byte*>(base);
    return {p + low * size, p + (high + 1) * size};
  }

 public:
  static cudaError_t run(graph::OwnKernel const& own, graph::Argument const* arguments, index_t const* code,
                         void* const* base, index_t const* symbols, cudaStream_t stream) {
    Span spans[N], whole[N];
    index_t const* at = code;
    for (std::size_t i = 0; i < N; ++i)
      spans[i] = whole[i] = span_of(base[i], arguments[i].dtype, at, symbols);
    // Operands that share memory share a copy.
    for (std::size_t i = 0; i < N; ++i)
      for (std::size_t j = 0; j < N; ++j)
        if (whole[i].meets(whole[j])) {
          whole[i].add(whole[j]);
          for (std::size_t k = 0; k < N; ++k)
            if (whole[k].meets(whole[i])) whole[k].add(whole[i]), whole[i].add(whole[k]);
        }
    std::unique_ptr<std::byte[]> memory[N];
    std::byte* copies[N] = {};
    void* here[N] = {};
    for (std::size_t i = 0; i < N; ++i) {
      if (spans[i].begin == nullptr) continue;
      for (std::size_t j = 0; j < i && copies[i] == nullptr; ++j)
        if (whole[j].begin == whole[i].begin && whole[j].end == whole[i].end) copies[i] = copies[j];
      if (copies[i] == nullptr) {
        auto const bytes = static_cast<std::size_t>(whole[i].end - whole[i].begin);
        memory[i].reset(new std::byte[bytes]);
        copies[i] = memory[i].get();
        cudaError_t const e =
            cudaMemcpyAsync(copies[i], whole[i].begin, bytes, cudaMemcpyDeviceToHost, stream);
        if (e != cudaSuccess) return e;
      }
      here[i] = copies[i] + (static_cast<std::byte*>(base[i]) - whole[i].begin);
    }
    if (cudaError_t const e = cudaStreamSynchronize(stream); e != cudaSuccess) return e;
    run_own<N>(own, arguments, code, here, symbols);
    for (std::size_t i = N - Results; i < N; ++i) {
      Span const& result = spans[i];
      if (result.begin == nullptr) continue;
      std::byte const* const from = copies[i] + (result.begin - whole[i].begin);
      cudaError_t const e =
          cudaMemcpyAsync(result.begin, from, static_cast<std::size_t>(result.end - result.begin),
                          cudaMemcpyHostToDevice, stream);
      if (e != cudaSuccess) return e;
    }
    return cudaStreamSynchronize(stream);
  }
};

}  // namespace dfdx::detail::inline DFDX_TARGET
