// SPDX-License-Identifier: BSL-1.0
// Blocks that run together and write to each other's shared memory (clusters, of 2, 4 or 8 blocks, in code for sm_90a),
// whose threads are the lanes of one vector: a row is as wide as all of them, and what it has in common all find. Code
// for other devices has none, which the host can ask.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include <dfdx/kernels/cuda/packs.hpp>
#include <dfdx/kernels/cuda/warpgroups.hpp>
#include <dfdx/kernels/loop_values.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace cuda {

/// has_clusters - what is being read is code that can have them.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(DFDX_CUDA_EMULATED)
inline constexpr bool has_clusters = true;
#else
inline constexpr bool has_clusters = false;
#endif

/// cluster_barrier - all threads of the cluster have come here; what they wrote before, to any block's memory, all see
/// after it. (PTX ISA, barrier.cluster; not aligned, as a warp need not come to it as one.)
DFDX_INLINE void cluster_barrier() {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::fibers().cluster_barrier();
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" : : : "memory");
#endif
}

/// put_in_block - x, of 8 bytes, to where block `to` of the cluster has number i of shared<Use, T, N>(). That block has
/// to run: all have begun when they have met, and none ends before they meet once more. (PTX ISA, mapa,
/// st.shared::cluster.)
template <class Use, int N, class T>
DFDX_INLINE void put_in_block([[maybe_unused]] int to, int i, T x) {
  static_assert(sizeof(T) == 8);
  T* const here = shared<Use, T, N>() + i;
#if defined(DFDX_CUDA_EMULATED)
  *cuda_fake::of_block(here, N, static_cast<unsigned>(to)) = x;
#elif defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; st.shared::cluster.b64 [there], %2; }"
      :
      : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(here))), "r"(to),
        "l"(std::bit_cast<std::uint64_t>(x))
      : "memory");
#else
  *here = x;
#endif
}

/// ClusterTurn - which of two sets of places the values of blocks come to next. As the sets take turns one barrier
/// does for a reduction: who is at the next one has read what the one before left, when he comes to its barrier.
struct ClusterTurn {
  static DFDX_INLINE int* place() { return shared<ClusterTurn, int, 1>(); }
  /// To be called by all threads, before they reduce anything. The blocks of the cluster have begun then.
  static DFDX_INLINE void begin() {
    if (thread() == 0) *place() = 0;
    cluster_barrier();
  }
};
/// cluster_reduce - the combination of the values of all threads of a cluster, in every thread; the order of the
/// combinations is fixed, and the same in all threads.
template <index_t Do, int Blocks, int Threads, class T>
DFDX_INLINE T cluster_reduce(T x) {
  x = block_reduce<Do, Threads>(x);
  if constexpr (Threads <= warp_size)
    barrier();  // as there are above: the turn has changed since the last call
  using Cell = kernels::detail::Cell;
  constexpr int places = 2 * Blocks;
  int const first = *ClusterTurn::place() * Blocks;
  if (thread() < Blocks) {
    Cell mine{};
    mine.template set<T>(x);
    put_in_block<ClusterTurn, places>(thread(), first + static_cast<int>(block() % Blocks), mine);
  }
  cluster_barrier();
  if (thread() == 0) *ClusterTurn::place() = first == 0 ? 1 : 0;
  Cell const* const of_block = shared<ClusterTurn, Cell, places>() + first;
  T r = of_block[0].template get<T>();
  for (int b = 1; b < Blocks; ++b) r = Combination<Do>::apply(r, of_block[b].template get<T>());
  return r;
}

/// ClusterLanes - the threads of Blocks blocks, N elements each. What a block loads and stores is its part of a row;
/// one thread of the first writes what all have in common.
template <int Blocks, int Threads, int N>
struct ClusterLanes : PackLanes<Threads, N> {
  using Own = PackLanes<Threads, N>;
  static DFDX_INLINE bool is_first() { return block() % Blocks == 0; }
  template <class M>
  static DFDX_INLINE void store_row(M* p, compute_t<M> x) {
    cluster_barrier();
    if (is_first() && thread() == 0) *p = static_cast<M>(x);
  }
  template <index_t Do, class M>
  static DFDX_INLINE void combine_row(M* p, compute_t<M> x) {
    if (is_first()) Own::template combine_row<Do>(p, x);
  }
  template <index_t Do, class T>
  static DFDX_INLINE T horizontal(typename Own::template type<T> const& x) {
    return cluster_reduce<Do, Blocks, Threads>(PackLanes<1, N>::template horizontal<Do, T>(x));
  }
};

/// clustered_width - the width of lanes that are the threads of `blocks` blocks, with packs of N.
constexpr index_t clustered_width(int blocks, int threads, int n) {
  return 65536 * blocks + packed_width(threads, n);
}

/// StartOfClusters - how kernel K is started, whose blocks run K::blocks_of_cluster together.
template <class K>
class StartOfClusters {
 public:
  StartOfClusters(index_t clusters, cudaStream_t stream) {
    shape_.id = cudaLaunchAttributeClusterDimension;
    shape_.val.clusterDim.x = K::blocks_of_cluster;
    shape_.val.clusterDim.y = shape_.val.clusterDim.z = 1;
    how_.gridDim = dim3(static_cast<unsigned>(clusters * K::blocks_of_cluster));
    how_.blockDim = dim3(K::threads);
    how_.dynamicSmemBytes = dynamic_bytes<K>;
    how_.stream = stream;
    how_.attrs = &shape_;
    how_.numAttrs = 1;
  }
  StartOfClusters(StartOfClusters const&) = delete;
  cudaLaunchConfig_t const* how() const { return &how_; }

 private:
  cudaLaunchAttribute shape_{};
  cudaLaunchConfig_t how_{};
};
/// start_clusters - a kernel of clusters on `stream`; returns what the runtime says. None: nothing is started.
template <class K, class Arguments>
cudaError_t start_clusters(Arguments const& arguments, index_t clusters, cudaStream_t stream) {
  if (clusters == 0) return cudaSuccess;
  StartOfClusters<K> const start(clusters, stream);
  Arguments copy = arguments;
  void* list[] = {&copy};
  auto const kernel = entry_of<K, Arguments>();
#if defined(DFDX_CUDA_EMULATED)
  return cudaLaunchKernelExC(start.how(), kernel, list);
#else
  return cudaLaunchKernelExC(start.how(), reinterpret_cast<void const*>(kernel), list);
#endif
}
/// clusters_at_once - how many clusters of a kernel a device runs at once; 0 if there is no code of it for the device,
/// or it has too little memory.
template <class K, class Arguments>
index_t clusters_at_once(Device device) {
  if (!is_there<K, Arguments>(device)) return 0;
  static std::array<std::atomic<int>, 64> known{};  // and one more
  auto& n = known[static_cast<std::size_t>(device.index)];
  if (n == 0) {
    cuda_runtime::Current const current(device);
    StartOfClusters<K> const start(1, nullptr);
    int found = 0;
    cudaError_t const said = cudaOccupancyMaxActiveClusters(
        &found, reinterpret_cast<void const*>(entry_of<K, Arguments>()), start.how());
    if (said != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      return 0;
    }
    n = 1 + found;
  }
  return n - 1;
}

}  // namespace cuda

/// Lanes - clusters: more than 65536 is a number of blocks, and the packs that each is.
template <index_t Width>
  requires(Width > 65536)
struct Lanes<Width> : cuda::ClusterLanes<static_cast<int>(Width / 65536), static_cast<int>(Width % 4096),
                                         Width % 65536 < 4096 ? 1 : static_cast<int>(Width % 65536 / 4096)> {
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
