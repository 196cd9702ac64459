// SPDX-License-Identifier: BSL-1.0
// What a kernel knows of the threads it runs in: where it is, barriers, shuffles, memory that a block shares, and how
// it is started. All other code of kernels is ordinary C++ that nvcc compiles for the host as well, where it is never
// called; only here one asks which of the two is being read.
//
// With DFDX_CUDA_EMULATED, which tests define together with a runtime of their own, the same words mean a block that
// runs on the CPU (tests/cuda_emulated).
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <type_traits>

#include <dfdx/core/dtype.hpp>
#include <dfdx/core/shape.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

inline constexpr int warp_size = 32;

#if defined(__CUDA_ARCH__) || defined(DFDX_CUDA_EMULATED)

/// thread, block, blocks - which thread of its block, which block, and of how many, this is.
DFDX_INLINE int thread() { return static_cast<int>(threadIdx.x); }
DFDX_INLINE index_t block() { return static_cast<index_t>(blockIdx.x); }
DFDX_INLINE index_t blocks() { return static_cast<index_t>(gridDim.x); }
/// barrier - all threads of the block have come here; what they wrote before, all see after it.
DFDX_INLINE void barrier() { __syncthreads(); }
/// exchanged - the value that the thread has whose number differs in the bits of `mask`, which stay inside of a warp.
template <class T>
DFDX_INLINE T exchanged(T x, int mask) {
  using Wire = std::conditional_t<(sizeof(T) < 4), int, T>;  // shuffles move 4 or 8 bytes
  return static_cast<T>(__shfl_xor_sync(0xffffffffu, static_cast<Wire>(x), mask));
}
/// warp_barrier - all threads of the warp have come here.
DFDX_INLINE void warp_barrier() { __syncwarp(); }
/// counted - adds 1 to a number in the device's memory; what was there. Whoever is last sees what the blocks before
/// have written, whose threads came to a barrier before one of them counted.
DFDX_INLINE int counted(int* at) {
#if defined(DFDX_CUDA_EMULATED)
  return (*at)++;
#else
  __threadfence();
  int const before = atomicAdd(at, 1);
  __threadfence();
  return before;
#endif
}
/// votes - a bit for each thread of the warp, whether it said yes.
DFDX_INLINE unsigned votes(bool yes) { return __ballot_sync(0xffffffffu, yes); }
/// alike - a bit for each thread of the warp, whether its number of Bits bits is this one's. (PTX ISA,
/// vote.sync.ballot, for each bit. The emulation compares, as its threads change at each vote.)
template <int Bits>
DFDX_INLINE unsigned alike(int x) {
  unsigned r = 0;
#if defined(DFDX_CUDA_EMULATED)
  int all[warp_size];
  cuda_fake::machine().fibers.all(x, all);
  for (int i = 0; i < warp_size; ++i) r |= (all[i] == x ? 1u : 0u) << i;
#else
  r = ~r;
  DFDX_UNROLL for (int bit = 0; bit < Bits; ++bit) {
    unsigned same;  // (From `votes` nvcc makes twice the instructions.)
    asm volatile(
        "{ .reg .pred p; and.b32 %0, %1, %2; setp.ne.u32 p, %0, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; "
        "@!p not.b32 %0, %0; }"
        : "=r"(same)
        : "r"(x), "r"(1 << bit));
    r &= same;
  }
#endif
  return r;
}
/// count_one - adds 1 to a number that the block shares, also where several threads do at once.
DFDX_INLINE void count_one(std::uint32_t* p) {
#if defined(DFDX_CUDA_EMULATED)
  ++*p;
#else
  atomicAdd(p, 1u);
#endif
}
/// raise_to - the larger of two numbers where the first was in the device's memory, also where several threads do at
/// once.
DFDX_INLINE void raise_to(int* p, int x) {
#if defined(DFDX_CUDA_EMULATED)
  *p = *p < x ? x : *p;
#else
  atomicMax(p, x);
#endif
}
/// multiply_add - c += a b of a warp, 16 x 16 by 16 x 8 numbers T of 16 bits (f16 or bf16) with sums in f32, by tensor
/// cores (sm_80 and later). With g = lane / 4, t = 2 (lane % 4) a thread has of a rows g and g + 8 (a[0], a[2]; a[1],
/// a[3]) at columns t, t + 1 and (a[2], a[3]) t + 8, t + 9; of b column g, rows t, t + 1 (b[0]) and t + 8, t + 9; of c
/// rows g and g + 8 at columns t, t + 1. (PTX ISA, mma.m16n8k16.)
template <class T>
DFDX_INLINE void multiply_add(float (&c)[4], std::uint32_t const (&a)[4], std::uint32_t const (&b)[2]) {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::multiply_add<T>(c, a, b);
#else
  if constexpr (std::is_same_v<T, bfloat16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
/// fast_exp2 - 2^x within 2 ulp, and 0 below 2^-126. (PTX ISA, ex2.approx.)
DFDX_INLINE float fast_exp2(float x) {
#if defined(DFDX_CUDA_EMULATED)
  return std::exp2(x);
#else
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#endif
}
/// fast_reciprocal, fast_inverse_root - 1 / x and 1 / sqrt(x) of normal x > 0, to 20 bits. (PTX ISA,
/// rcp.approx.ftz.f64, rsqrt.approx.ftz.f64.)
DFDX_INLINE double fast_reciprocal(double x) {
#if defined(DFDX_CUDA_EMULATED)
  return static_cast<double>(1 / static_cast<float>(x));
#else
  double r;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  return r;
#endif
}
DFDX_INLINE double fast_inverse_root(double x) {
#if defined(DFDX_CUDA_EMULATED)
  return static_cast<double>(1 / std::sqrt(static_cast<float>(x)));
#else
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  return r;
#endif
}
/// larger, smaller - of two; the other if one is no number.
DFDX_INLINE float larger(float x, float y) { return fmaxf(x, y); }
DFDX_INLINE float smaller(float x, float y) { return fminf(x, y); }
/// dot4 - c + the sum of the products of four integers of 8 bits with four others.
DFDX_INLINE std::int32_t dot4(std::uint32_t a, std::uint32_t b, std::int32_t c) {
#if defined(DFDX_CUDA_EMULATED)
  for (int i = 0; i < 32; i += 8) c += static_cast<std::int8_t>(a >> i) * static_cast<std::int8_t>(b >> i);
  return c;
#else
  return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
#endif
}
/// load_matrices - four matrices of 8 x 8 numbers of 16 bits from shared memory, by a warp: lane i says where row i % 8
/// of matrix i / 8 is, 16 bytes that are aligned. With g = lane / 4, t = 2 (lane % 4) a thread is given row g, columns
/// t and t + 1 of each; Turned: rows t and t + 1 of column g. (PTX ISA, ldmatrix.)
template <bool Turned>
DFDX_INLINE void load_matrices(std::uint32_t (&to)[4], void const* row) {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::load_matrices(to, row, Turned);
#else
  auto const at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  if constexpr (Turned)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
#endif
}
/// pair_of - two numbers T of 16 bits, the first in the lower half.
template <class T>
DFDX_INLINE std::uint32_t pair_of(float first, float second) {
#if defined(DFDX_CUDA_EMULATED)
  return static_cast<std::uint32_t>(T(first).bits) | static_cast<std::uint32_t>(T(second).bits) << 16;
#else
  std::uint32_t r;
  if constexpr (std::is_same_v<T, bfloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(second), "f"(first));
  return r;
#endif
}
/// copy_later - 4 or 16 bytes, both aligned, from memory of the device to memory of the block, which has them when this
/// thread has called copies_made. (PTX ISA, cp.async.)
template <int Bytes>
DFDX_INLINE void copy_later(void* to, void const* from) {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::copy_later(to, from, Bytes);
#else
  auto const at = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(at), "l"(from) : "memory");
  else asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"(at), "l"(from) : "memory");
#endif
}
DFDX_INLINE void copies_made() {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::copies_made();
#else
  asm volatile("cp.async.wait_all;" : : : "memory");
#endif
}
/// shared - N numbers that the threads of a block have in common; one place for each Use.
template <class Use, class T, int N>
DFDX_INLINE T* shared() {
#if defined(DFDX_CUDA_EMULATED)
  static T of_all[cuda_fake::Fibers::most_blocks][N];
  return cuda_fake::own(of_all);
#else
  __shared__ T memory[N];
  return memory;
#endif
}
/// dynamic_memory - what a kernel with `dynamic_bytes` has, aligned to 16.
DFDX_INLINE std::byte* dynamic_memory() {
#if defined(DFDX_CUDA_EMULATED)
  return cuda_fake::machine().dynamic_memory();
#else
  extern __shared__ uint4 dynamic[];
  return reinterpret_cast<std::byte*>(dynamic);
#endif
}

#else

DFDX_INLINE int thread() { return 0; }
DFDX_INLINE index_t block() { return 0; }
DFDX_INLINE index_t blocks() { return 1; }
DFDX_INLINE void barrier() {}
DFDX_INLINE void warp_barrier() {}
DFDX_INLINE int counted(int*) { return 0; }
template <class T>
DFDX_INLINE T exchanged(T x, int) {
  return x;
}
DFDX_INLINE unsigned votes(bool yes) { return yes ? 1u : 0u; }
template <class T>
DFDX_INLINE void multiply_add(float (&)[4], std::uint32_t const (&)[4], std::uint32_t const (&)[2]) {}
DFDX_INLINE float fast_exp2(float x) { return x; }
template <int Bits>
DFDX_INLINE unsigned alike(int) {
  return 1;
}
DFDX_INLINE void count_one(std::uint32_t*) {}
DFDX_INLINE void raise_to(int*, int) {}
DFDX_INLINE double fast_reciprocal(double x) { return 1 / x; }
DFDX_INLINE double fast_inverse_root(double x) { return 1 / std::sqrt(x); }
DFDX_INLINE float larger(float x, float) { return x; }
DFDX_INLINE float smaller(float x, float) { return x; }
DFDX_INLINE std::int32_t dot4(std::uint32_t, std::uint32_t, std::int32_t c) { return c; }
template <bool Turned>
DFDX_INLINE void load_matrices(std::uint32_t (&)[4], void const*) {}
template <class T>
DFDX_INLINE std::uint32_t pair_of(float, float) {
  return 0;
}
template <int Bytes>
DFDX_INLINE void copy_later(void*, void const*) {}
DFDX_INLINE void copies_made() {}
template <class Use, class T, int N>
DFDX_INLINE T* shared() {
  return nullptr;
}
DFDX_INLINE std::byte* dynamic_memory() { return nullptr; }

#endif

/// least_blocks - how many blocks of a kernel a multiprocessor has to hold at once; 0 if the compiler may choose. Its
/// choice may be a few registers too few.
template <class K>
inline constexpr int least_blocks = [] {
  if constexpr (requires { K::least_blocks; }) return K::least_blocks;
  else return 0;
}();
/// dynamic_bytes - of memory that the blocks of a kernel share, besides what it names.
template <class K>
inline constexpr std::size_t dynamic_bytes = [] {
  if constexpr (requires { K::dynamic_bytes; }) return static_cast<std::size_t>(K::dynamic_bytes);
  else return std::size_t{0};
}();
/// entry - kernel K, which is a struct: `threads` of a block, and `run(arguments)`.
template <class K, class Arguments>
__global__ void __launch_bounds__(K::threads, least_blocks<K>) entry(Arguments const arguments) {
  K::run(arguments);
}
/// entry_in_place - the same of a kernel that hands on where its arguments lie. (Others need more registers so.)
template <class K, class Arguments>
__global__ void __launch_bounds__(K::threads, least_blocks<K>)
    entry_in_place(__grid_constant__ Arguments const arguments) {
  K::run(arguments);
}
template <class K, class Arguments>
constexpr auto entry_of() {
  if constexpr (requires { K::arguments_in_place; }) return &entry_in_place<K, Arguments>;
  else return &entry<K, Arguments>;
}

/// start - a kernel on `stream`; returns what the runtime says. No blocks: nothing is started.
template <class K, class Arguments>
cudaError_t start(Arguments const& arguments, index_t blocks, cudaStream_t stream) {
  static_assert(std::is_trivially_copyable_v<Arguments> && sizeof(Arguments) <= 4096,
                "cuda: a kernel takes 4 KiB of arguments at most");
  if (blocks == 0) return cudaSuccess;
  Arguments copy = arguments;
  void* list[] = {&copy};
  auto const kernel = entry_of<K, Arguments>();
#if defined(DFDX_CUDA_EMULATED)
  return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(K::threads), list,
                          dynamic_bytes<K>, stream);
#else
  return cudaLaunchKernel(reinterpret_cast<void const*>(kernel), dim3(static_cast<unsigned>(blocks)),
                          dim3(K::threads), list, dynamic_bytes<K>, stream);
#endif
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
