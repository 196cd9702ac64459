// SPDX-License-Identifier: BSL-1.0
// What Hopper GPUs add to kernels/cuda/threads.hpp: barriers that count bytes which the bulk copy engine brings, and
// products that four warps, a warpgroup, ask of the tensor cores, whose factors lie in memory of the block. Only code
// for sm_90a has them; kernels for others are empty, which the host can ask (is_there).
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include <dfdx/core/device.hpp>
#include <dfdx/kernels/cuda/runtime.hpp>
#include <dfdx/kernels/cuda/threads.hpp>

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(DFDX_CUDA_EMULATED)
#define DFDX_HAS_WARPGROUPS 1
#endif

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

inline constexpr int warpgroup_size = 128;

/// WarpgroupKernel - what kernels of warpgroups have in common: one brings, two multiply, a multiprocessor has a block,
/// and the copy engine reads maps among the arguments.
struct WarpgroupKernel {
  static constexpr int groups = 2, threads = (1 + groups) * warpgroup_size, least_blocks = 1;
  static constexpr bool arguments_in_place = true;
};

#if defined(DFDX_HAS_WARPGROUPS)

/// shared_address - as the instructions take it.
DFDX_INLINE std::uint32_t shared_address(void const* p) {
#if defined(DFDX_CUDA_EMULATED)
  return cuda_fake::shared_address(p);
#else
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
#endif
}

/// aligned_memory - dynamic_memory from the first address on that is aligned to 1024.
DFDX_INLINE std::byte* aligned_memory() {
  std::byte* const memory = dynamic_memory();
  return memory + (1024 - shared_address(memory) % 1024) % 1024;
}

/// TransferBarrier - a place in memory of the block where threads wait until some have arrived and the bytes have that
/// those expect. It goes through phases, each of which ends so. (PTX ISA, mbarrier.)
struct TransferBarrier {
  std::uint64_t state;

  /// To be called by one thread, before all meet at a barrier.
  DFDX_INLINE void begin(int arrivals) {
#if defined(DFDX_CUDA_EMULATED)
    cuda_fake::begin(state, arrivals);
#else
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :
                 : "r"(shared_address(&state)), "r"(arrivals)
                 : "memory");
#endif
  }
  DFDX_INLINE void arrive() {
#if defined(DFDX_CUDA_EMULATED)
    cuda_fake::arrive(state, 0);
#else
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(shared_address(&state)) : "memory");
#endif
  }
  DFDX_INLINE void arrive_and_expect(int bytes) {
#if defined(DFDX_CUDA_EMULATED)
    cuda_fake::arrive(state, bytes);
#else
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :
                 : "r"(shared_address(&state)), "r"(bytes)
                 : "memory");
#endif
  }
  /// Until the phase has ended that has this parity; the first has 0.
  DFDX_INLINE void wait(std::uint32_t parity) {
#if defined(DFDX_CUDA_EMULATED)
    while (!cuda_fake::has_ended(state, parity)) cuda_fake::fibers().pause();
#else
    std::uint32_t ended;
    do
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
          : "=r"(ended)
          : "r"(shared_address(&state)), "r"(parity)
          : "memory");
    while (ended == 0);
#endif
  }
};
/// barriers_begun - makes them known to the copy engine, before all threads meet.
DFDX_INLINE void barriers_begun() {
#if !defined(DFDX_CUDA_EMULATED)
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
#endif
}

/// BulkPlace - which matrix of those that a map describes.
struct BulkPlace {
  int x = 0, y = 0, z = 0;
};
/// bulk_copy - what a map (kernels/cuda/tensor_map.hpp) says lies from (inner, outer) of a matrix on, to memory of the
/// block that is aligned to 1024; `done` is told of its bytes, also of the zeros. By one thread. (PTX ISA,
/// cp.async.bulk.tensor.)
DFDX_INLINE void bulk_copy(void* to, CUtensorMap const& map, int inner, int outer, BulkPlace matrix,
                           TransferBarrier& done) {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::bulk_copy(to, map, {inner, outer, matrix.x, matrix.y, matrix.z}, done.state);
#else
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, "
      "%5, %6}], "
      "[%7];"
      :
      : "r"(shared_address(to)), "l"(reinterpret_cast<std::uint64_t>(&map)), "r"(inner), "r"(outer),
        "r"(matrix.x), "r"(matrix.y), "r"(matrix.z), "r"(shared_address(&done.state))
      : "memory");
#endif
}

/// bulk_copy - bytes that follow each other; their number, and both addresses, are multiples of 16.
DFDX_INLINE void bulk_copy(void* to, void const* from, int bytes, TransferBarrier& done) {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::bulk_copy(to, from, bytes, done.state);
#else
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(shared_address(to)), "l"(from), "r"(bytes), "r"(shared_address(&done.state))
               : "memory");
#endif
}
/// prefetch_map - so that the copy engine need not wait for it.
DFDX_INLINE void prefetch_map([[maybe_unused]] CUtensorMap const& map) {
#if !defined(DFDX_CUDA_EMULATED)
  asm volatile("prefetch.tensormap [%0];" : : "l"(reinterpret_cast<std::uint64_t>(&map)) : "memory");
#endif
}

/// fewer_registers, more_registers - of the threads of this warpgroup, all of which say so.
template <int Registers>
DFDX_INLINE void fewer_registers() {
#if !defined(DFDX_CUDA_EMULATED)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(Registers));
#endif
}
template <int Registers>
DFDX_INLINE void more_registers() {
#if !defined(DFDX_CUDA_EMULATED)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(Registers));
#endif
}

/// along_k, across_k - a factor in memory of the block as bulk copies leave it, for products: lines of 128 bytes, of
/// the 16 numbers along k that are multiplied at once. Lines that go along k stand one below the other; of those that
/// go across, 64 rows (or columns) each, blocks are `block` bytes apart. (PTX ISA, wgmma, matrix descriptor: eight
/// lines are 1024 bytes apart from the next eight; bits 62 and 63 say that pieces are swapped.)
DFDX_INLINE std::uint64_t across_k(void const* first, int block) {
  auto const sixteenths = [](std::uint32_t bytes) {
    return static_cast<std::uint64_t>(bytes & 0x3ffff) >> 4;
  };
  return sixteenths(shared_address(first)) | sixteenths(static_cast<std::uint32_t>(block)) << 16 |
         sixteenths(1024) << 32 | std::uint64_t{1} << 62;
}
DFDX_INLINE std::uint64_t along_k(void const* first) { return across_k(first, 16); }

// What is done to these registers before is not moved behind, nor the other way round.
template <int N>
DFDX_INLINE void hold([[maybe_unused]] float (&x)[N][4]) {
#if !defined(DFDX_CUDA_EMULATED)
  DFDX_UNROLL for (int i = 0; i < N; ++i) {
    DFDX_UNROLL for (int j = 0; j < 4; ++j) asm volatile("" : "+f"(x[i][j]) : : "memory");
  }
#endif
}
template <int N>
DFDX_INLINE void hold([[maybe_unused]] std::uint32_t (&x)[N][4]) {
#if !defined(DFDX_CUDA_EMULATED)
  DFDX_UNROLL for (int i = 0; i < N; ++i) {
    DFDX_UNROLL for (int j = 0; j < 4; ++j) asm volatile("" : "+r"(x[i][j]) : : "memory");
  }
#endif
}
/// products_begin - sums, and factors in registers, that this thread has written are not written again until
/// products_made has been called.
template <class... Registers>
DFDX_INLINE void products_begin([[maybe_unused]] Registers&... used) {
  (hold(used), ...);
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::products_begin();
#else
  asm volatile("wgmma.fence.sync.aligned;" : : : "memory");
#endif
}
/// products_asked - what was asked for until now is a group.
DFDX_INLINE void products_asked() {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::products_asked();
#else
  asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory");
#endif
}
/// products_made - waits until no more than so many of the last groups are still to be made.
template <int Groups, class... Registers>
DFDX_INLINE void products_made([[maybe_unused]] Registers&... used) {
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::products_made(Groups);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(Groups) : "memory");
#endif
  (hold(used), ...);
}

// What the instructions below name: sums, eight of two blocks from block i on, and their numbers.
#define DFDX_SUMS_8(i)                                                                              \
  "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3]), "+f"(c[i + 1][0]), "+f"(c[i + 1][1]), \
      "+f"(c[i + 1][2]), "+f"(c[i + 1][3])
#define DFDX_SUMS_32(i) DFDX_SUMS_8(i), DFDX_SUMS_8(i + 2), DFDX_SUMS_8(i + 4), DFDX_SUMS_8(i + 6)
#define DFDX_SUMS_64(i) DFDX_SUMS_32(i), DFDX_SUMS_32(i + 8)
#define DFDX_TO_31                                                                                          \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%" \
  "28,%29,"                                                                                                 \
  "%30,%31"
#define DFDX_TO_63                                                                                    \
  DFDX_TO_31                                                                                          \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55," \
  "%56,%57,%58,%59,%60,%61,%62,%63"
#define DFDX_TO_127                                                                                    \
  DFDX_TO_63                                                                                           \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,"  \
  "%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109," \
  "%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define DFDX_MULTIPLY(columns, type, sums, factors, adds, orders)                                        \
  "{.reg .pred p; setp.ne.b32 p, " adds ", 0; wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type \
  "." type " {" sums "}, " factors ", p, 1, 1, " orders ";}"
#define DFDX_BOTH_IN_MEMORY(type)                                                            \
  if constexpr (N == 8)                                                                      \
    asm volatile(DFDX_MULTIPLY("64", type, DFDX_TO_31, "%32, %33", "%34", "%35, %36")        \
                 : DFDX_SUMS_32(0)                                                           \
                 : DFDX_GIVEN);                                                              \
  else if constexpr (N == 16)                                                                \
    asm volatile(DFDX_MULTIPLY("128", type, DFDX_TO_63, "%64, %65", "%66", "%67, %68")       \
                 : DFDX_SUMS_64(0)                                                           \
                 : DFDX_GIVEN);                                                              \
  else                                                                                       \
    asm volatile(DFDX_MULTIPLY("256", type, DFDX_TO_127, "%128, %129", "%130", "%131, %132") \
                 : DFDX_SUMS_64(0), DFDX_SUMS_64(16)                                         \
                 : DFDX_GIVEN)
#define DFDX_LEFT_IN_REGISTERS(type)                                                               \
  if constexpr (N == 8)                                                                            \
    asm volatile(DFDX_MULTIPLY("64", type, DFDX_TO_31, "{%32, %33, %34, %35}, %36", "%37", "%38")  \
                 : DFDX_SUMS_32(0)                                                                 \
                 : DFDX_GIVEN);                                                                    \
  else                                                                                             \
    asm volatile(DFDX_MULTIPLY("128", type, DFDX_TO_63, "{%64, %65, %66, %67}, %68", "%69", "%70") \
                 : DFDX_SUMS_64(0)                                                                 \
                 : DFDX_GIVEN)

/// multiply_add_later - c = a b of a warpgroup, 64 x 16 by 16 x 8 N numbers T of 16 bits with sums in f32, or where it
/// `adds` c += a b, of what along_k, or if it is Across across_k describes. Of the four warps w each has
/// rows 16 w to 16 w + 15; with g = lane / 4 and t = 2 (lane % 4) a thread has in c[j][0] and c[j][1] row g, columns
/// 8 j + t and 8 j + t + 1; in c[j][2] and c[j][3] the same of row g + 8. (PTX ISA, wgmma.mma_async.)
template <class T, bool AcrossA, bool AcrossB, int N>
DFDX_INLINE void multiply_add_later(float (&c)[N][4], std::uint64_t a, std::uint64_t b, bool adds = true) {
  static_assert(N == 8 || N == 16 || N == 32);
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::multiply_add_later<T, AcrossA, AcrossB>(c[0], N, a, b, adds);
#else
#define DFDX_GIVEN "l"(a), "l"(b), "r"(adds ? 1 : 0), "n"(AcrossA ? 1 : 0), "n"(AcrossB ? 1 : 0)
  if constexpr (std::is_same_v<T, bfloat16>) {
    DFDX_BOTH_IN_MEMORY("bf16");
  } else {
    DFDX_BOTH_IN_MEMORY("f16");
  }
#undef DFDX_GIVEN
#endif
}
/// The same with a in registers, as multiply_add (kernels/cuda/threads.hpp) has it in each warp.
template <class T, bool AcrossB, int N>
DFDX_INLINE void multiply_add_later(float (&c)[N][4], std::uint32_t const (&a)[4], std::uint64_t b,
                                    bool adds = true) {
  static_assert(N == 8 || N == 16);
#if defined(DFDX_CUDA_EMULATED)
  cuda_fake::multiply_add_later<T, AcrossB>(c[0], N, a, b, adds);
#else
#define DFDX_GIVEN "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds ? 1 : 0), "n"(AcrossB ? 1 : 0)
  if constexpr (std::is_same_v<T, bfloat16>) {
    DFDX_LEFT_IN_REGISTERS("bf16");
  } else {
    DFDX_LEFT_IN_REGISTERS("f16");
  }
#undef DFDX_GIVEN
#endif
}

#undef DFDX_LEFT_IN_REGISTERS
#undef DFDX_BOTH_IN_MEMORY
#undef DFDX_MULTIPLY
#undef DFDX_TO_127
#undef DFDX_TO_63
#undef DFDX_TO_31
#undef DFDX_SUMS_64
#undef DFDX_SUMS_32
#undef DFDX_SUMS_8

/// Pipe - places in memory of the block that one thread has filled and warps use, again and again: the barriers of
/// each, for those that wait until it is full, and for the one that waits until it has been used.
template <int Places>
struct Pipe {
  TransferBarrier full[Places], used[Places];
  DFDX_INLINE void begin(int warps) {
    for (int i = 0; i < Places; ++i) full[i].begin(1), used[i].begin(warps);
  }
};
/// Turn - the place of a Pipe whose turn it is, and the parity with which those wait that use it; who fills it waits
/// with the other.
template <int Places>
struct Turn {
  int place = 0;
  std::uint32_t parity = 0;
  DFDX_INLINE void next() {
    if (++place == Places) place = 0, parity ^= 1;
  }
};
/// divided - what the warpgroups of a kernel do: one thread of the first has the copy engine `bring`, the others, of
/// which there are `groups`, `multiply`. The first leaves its registers to them, as many as there are in all.
template <class Kernel, class Given>
DFDX_INLINE void divided(Given const& given) {
  using Barriers = typename Kernel::Barriers;
  Barriers* const barriers = shared<Kernel, Barriers, 1>();
  if (thread() == 0) {
    barriers->begin(Kernel::groups * warpgroup_size / warp_size);
    barriers_begun();
  }
  barrier();
  std::byte* const memory = aligned_memory();
  if (thread() < warpgroup_size) {
    fewer_registers<24>();
    if (thread() == 0) Kernel::bring(given, memory, *barriers);
  } else {
    more_registers<240>();
    Kernel::multiply(given, memory, *barriers);
  }
}

#endif

/// is_there - whether the program has kernel K of warpgroups for a device, which is then told how much memory its
/// blocks share: code for others than sm_90a is empty, and has no barriers.
template <class K, class Arguments>
bool is_there(Device device) {
  static std::array<std::atomic<signed char>, 64> known{};
  auto& is = known[static_cast<std::size_t>(device.index)];
  if (is == 0) {
    cuda_runtime::Current const current(device);
    auto const kernel = reinterpret_cast<void const*>(entry_of<K, Arguments>());
    cudaFuncAttributes facts{};
    cudaError_t said = cudaFuncGetAttributes(&facts, kernel);
    bool const has_code = said == cudaSuccess && facts.sharedSizeBytes != 0;
    bool const has_none = said == cudaSuccess || said == cudaErrorInvalidDeviceFunction;
    if (has_code)
      said = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, K::dynamic_bytes);
    if (said != cudaSuccess) static_cast<void>(cudaGetLastError());
    // Other errors are of earlier work, and say nothing of the kernel.
    if (has_code && said == cudaSuccess) is = 1;
    else if (!has_code && has_none) is = -1;
  }
  return is > 0;
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
