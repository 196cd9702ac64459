// SPDX-License-Identifier: BSL-1.0
// CUDA kernels of fused loop groups, from the descriptions that the CPU's kernels are made of
// (core/loop_code.hpp). A map takes a thread for each element; any other group takes a block for each row, whose
// threads are the lanes that the phases run on (kernels/cuda/lanes.hpp).
//
// There is no interpreter of descriptions here: the body of both is kernels/loop.hpp. Not offered yet: groups that
// accumulate into memory that rows share, products of matrices, and a program that runs on a device.
#pragma once

#include <cuda_runtime.h>

#include <dfdx/kernels/cuda/lanes.hpp>
#include <dfdx/kernels/loop.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// LoopArguments - what a kernel is called with: addresses of the operands on the device, and the values of
/// symbolic extents. Scratch must be as large as scratch_size says for the number of blocks.
template <class Code>
struct LoopArguments {
  void* base[static_cast<std::size_t>(Code::value[loop_code::operands])] = {};
  index_t symbols[max_symbols] = {};
};

/// row_threads - threads of a block for one row: as many warps as the dim that runs in lanes keeps busy, 8 at most.
template <class Code>
constexpr int row_threads() {
  constexpr int most = 8 * warp_size;
  constexpr index_t n = LoopFacts<Code>::lane_extent();
  if (n < 0 || n >= most) return most;
  return n <= warp_size ? warp_size : static_cast<int>((n + warp_size - 1) / warp_size) * warp_size;
}

inline constexpr int map_threads = 256;

template <class Code>
__global__ void __launch_bounds__(map_threads) run_map(LoopArguments<Code> const arguments) {
  using Body = Loop<Code, loop_code::scalar>;
  index_t const n = Body::rows(arguments.symbols) * Body::row_size(arguments.symbols);
  index_t const threads = static_cast<index_t>(gridDim.x) * map_threads;
  for (index_t i = static_cast<index_t>(blockIdx.x) * map_threads + threadIdx.x; i < n; i += threads)
    Body::element(arguments.base, arguments.symbols, i);
}

template <class Code>
__global__ void __launch_bounds__(row_threads<Code>()) run_rows(LoopArguments<Code> const arguments) {
  using Body = Loop<Code, row_threads<Code>()>;
  index_t const n = Body::rows(arguments.symbols);
  for (index_t i = blockIdx.x; i < n; i += gridDim.x)
    Body::row(arguments.base, arguments.symbols, i, static_cast<index_t>(blockIdx.x));
}

/// launch - starts the kernel of a loop group on `stream` with at most `most_blocks` blocks; returns what the
/// runtime says. Blocks beyond the work there is are not started.
///
/// Cost      asynchronous; no allocation
template <class Code>
cudaError_t launch(LoopArguments<Code> const& arguments, index_t most_blocks, cudaStream_t stream = nullptr) {
  using Body = Loop<Code, loop_code::scalar>;
  static_assert(
      !LoopFacts<Code>::is_sequential(),
      "cuda: this loop hands values from row to row, which is not offered on devices yet: run the program "
      "on the CPU");
  static_assert(
      !LoopFacts<Code>::accumulates(),
      "cuda: this loop adds to memory that its rows share, which is not offered on devices yet: run the "
      "program on the CPU");
  index_t const rows = Body::rows(arguments.symbols);
  index_t const blocks = LoopFacts<Code>::is_map()
                             ? (rows * Body::row_size(arguments.symbols) + map_threads - 1) / map_threads
                             : rows;
  if (blocks == 0) return cudaSuccess;
  auto const grid = static_cast<unsigned>(blocks < most_blocks ? blocks : most_blocks);
  if constexpr (LoopFacts<Code>::is_map()) run_map<Code><<<grid, map_threads, 0, stream>>>(arguments);
  else run_rows<Code><<<grid, row_threads<Code>(), 0, stream>>>(arguments);
  return cudaGetLastError();
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
