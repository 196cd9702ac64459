// SPDX-License-Identifier: BSL-1.0
// The threads of a CUDA block as the lanes of one wide vector: each thread holds its lane's value as a number, so
// that fused loops (kernels/loop.hpp) run on them as they are. All threads of the block take every step together.
#pragma once

#include <dfdx/kernels/cuda/threads.hpp>
#include <dfdx/kernels/lanes.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

namespace cuda {

/// block_reduce - the combination of the values of all threads of a block, in every thread; the order of the
/// combinations is fixed, and the same in all threads.
template <index_t Do, int Threads, class T>
DFDX_INLINE T block_reduce(T x) {
  for (int lane = warp_size / 2; lane > 0; lane /= 2) x = Combination<Do>::apply(x, exchanged(x, lane));
  if constexpr (Threads > warp_size) {
    constexpr int warps = Threads / warp_size;
    T* const of_warp = shared<Combination<Do>, T, warps>();
    barrier();  // until all have read what the last call left there
    if (thread() % warp_size == 0) of_warp[thread() / warp_size] = x;
    barrier();
    x = of_warp[0];
    for (int w = 1; w < warps; ++w) x = Combination<Do>::apply(x, of_warp[w]);
  }
  return x;
}

}  // namespace cuda

/// Lanes - a width of 32 or more is a block of that many threads.
template <index_t Width>
  requires(Width >= cuda::warp_size && Width <= 1024)
struct Lanes<Width> {
  static_assert(Width % cuda::warp_size == 0 && Width <= 1024, "lanes: a block is 1 to 32 warps");
  static constexpr int size = static_cast<int>(Width);
  /// One thread writes what all threads have in common.
  static constexpr bool is_block = true;
  template <class T>
  using type = T;

  template <class T>
  static DFDX_INLINE T splat(T x) {
    return x;
  }
  template <bool Tail, class M>
  static DFDX_INLINE compute_t<M> load(M const* p, index_t stride, int count) {
    if (Tail && cuda::thread() >= count) return compute_t<M>();
    return static_cast<compute_t<M>>(p[cuda::thread() * stride]);
  }
  template <bool Tail, class M>
  static DFDX_INLINE void store(M* p, index_t stride, compute_t<M> x, int count) {
    if (!Tail || cuda::thread() < count) p[cuda::thread() * stride] = static_cast<M>(x);
  }
  /// One thread stores, when all have loaded what may lie there: parameters are updated in place.
  template <class M>
  static DFDX_INLINE void store_row(M* p, compute_t<M> x) {
    cuda::barrier();
    if (cuda::thread() == 0) *p = static_cast<M>(x);
  }
  /// One thread adds to what lies there; it is the same one each time.
  template <index_t Do, class M>
  static DFDX_INLINE void combine_row(M* p, compute_t<M> x) {
    if (cuda::thread() == 0) *p = static_cast<M>(Combination<Do>::apply(static_cast<compute_t<M>>(*p), x));
  }
  template <class To, class From>
  static DFDX_INLINE compute_t<To> convert(From const& x) {
    return math::computed_number<To>(x);
  }
  template <class T>
  static DFDX_INLINE T positions(index_t first, index_t step) {
    return static_cast<T>(first + cuda::thread() * step);
  }
  template <class T>
  static DFDX_INLINE T only_first(T x, int count, T identity) {
    return cuda::thread() < count ? x : identity;
  }
  template <index_t Do, class T>
  static DFDX_INLINE T horizontal(T x) {
    return cuda::block_reduce<Do, size>(x);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
