// SPDX-License-Identifier: BSL-1.0
// Compiler switches: every macro of the library except DFDX_FIELDS, and nothing else.
#pragma once

#define DFDX_VERSION_MAJOR 0
#define DFDX_VERSION_MINOR 1
#define DFDX_VERSION_PATCH 0

#if defined(__CUDACC__)
#define DFDX_DEVICE __host__ __device__
#else
#define DFDX_DEVICE
#endif

// Steps of a fused loop must melt into it: a call per lane value would cost more than the arithmetic. Without
// optimisation (-O0) they stay calls: copies of unoptimised code run no faster, and cost up to a third of the time to
// compile and half of the memory. nvcc optimises device code whatever the host's is.
#if (defined(__GNUC__) || defined(__clang__)) && (defined(__OPTIMIZE__) || defined(__CUDACC__))
#define DFDX_INLINE DFDX_DEVICE inline __attribute__((always_inline))
#define DFDX_INLINE_LAMBDA __attribute__((always_inline))
#else
#define DFDX_INLINE DFDX_DEVICE inline
#define DFDX_INLINE_LAMBDA
#endif
#if defined(__GNUC__) || defined(__clang__)
#define DFDX_RESTRICT __restrict__
#else
#define DFDX_RESTRICT
#endif

// Complete unrolling of a loop over registers: without it -O2 leaves an array of accumulators in memory. Not
// under the address sanitizer, whose checks of every unrolled access take minutes to compile.
#if defined(__CUDA_ARCH__)
#define DFDX_UNROLL _Pragma("unroll")
#elif defined(__SANITIZE_ADDRESS__) || defined(__CUDACC__)
#define DFDX_UNROLL
#elif defined(__clang__)
#if __has_feature(address_sanitizer)
#define DFDX_UNROLL
#else
#define DFDX_UNROLL _Pragma("clang loop unroll(full)")
#endif
#elif defined(__GNUC__)
#define DFDX_UNROLL _Pragma("GCC unroll 64")
#else
#define DFDX_UNROLL
#endif

// A loop of which kernels for devices have a few iterations beside each other, and no more than registers hold.
#if defined(__CUDA_ARCH__)
#define DFDX_UNROLL_FEW _Pragma("unroll 2")
#else
#define DFDX_UNROLL_FEW
#endif

// std::is_constant_evaluated() is a call, and until a compiler has inlined it both branches of an `if` are code that it
// reads, checks and optimizes, with all that they call: g++ 12 worked on 1,300 functions of a program of 40. The
// compiler's own word for it is a constant from the start.
#define DFDX_IN_CONSTANT_EXPRESSION __builtin_is_constant_evaluated()

// WebAssembly without threads has one of everything; some of its C++ libraries cannot destroy a thread's own.
#if defined(__wasm__) && !defined(__wasm_atomics__)
#define DFDX_THREAD_LOCAL
#else
#define DFDX_THREAD_LOCAL thread_local
#endif

// <dfdx/cuda.hpp> defines DFDX_WITH_CUDA: programs can run on devices then.

// DFDX_AMX: products of bf16 and of bytes are compiled for matrix tiles (kernels/simd/amx.hpp), for processors that
// have them and the instructions that take their place. Only Linux is asked for them.
#if defined(__AMX_TILE__) && defined(__AMX_BF16__) && defined(__AMX_INT8__) && defined(__AVX512BF16__) && \
    defined(__AVX512VNNI__) && defined(__AVX512VBMI__) && defined(__linux__) && !defined(__CUDACC__)
#define DFDX_AMX 1
#endif

// The name of the inline namespace that all code lives in which depends on the instruction set: kernels, and what
// is built on them. Functions and constants of one name are merged when translation units are linked, and if two
// units are compiled for different sets (or one by nvcc), a program of the one would run with kernels of the other,
// in workspaces of the wrong size. So where xsimd has different vectors, names differ, and so do they with and without
// OpenMP. Builds that differ in other ways and have to be kept apart too can define it themselves.
#if defined(DFDX_TARGET)
#elif defined(__CUDACC__) && defined(DFDX_WITH_CUDA)
#define DFDX_INSTRUCTION_SET for_cuda_devices
#elif defined(__CUDACC__)
#define DFDX_INSTRUCTION_SET for_cuda
#elif defined(DFDX_AMX)
#define DFDX_INSTRUCTION_SET for_amx
#elif defined(__AVX512BF16__) && defined(__AVX512VBMI__)
#define DFDX_INSTRUCTION_SET for_avx512_bf16_vbmi
#elif defined(__AVX512BF16__)
#define DFDX_INSTRUCTION_SET for_avx512_bf16
#elif defined(__AVX512VNNI__) && defined(__AVX512VBMI__)
#define DFDX_INSTRUCTION_SET for_avx512_vnni_vbmi
#elif defined(__AVX512VBMI__)
#define DFDX_INSTRUCTION_SET for_avx512_vbmi
#elif defined(__AVX512IFMA__)
#define DFDX_INSTRUCTION_SET for_avx512_ifma
#elif defined(__AVX512VNNI__)
#define DFDX_INSTRUCTION_SET for_avx512_vnni
#elif defined(__AVX512BW__)
#define DFDX_INSTRUCTION_SET for_avx512
#elif defined(__AVX512DQ__)
#define DFDX_INSTRUCTION_SET for_avx512_dq
#elif defined(__AVX512CD__)
#define DFDX_INSTRUCTION_SET for_avx512_cd
#elif defined(__AVX512F__)
#define DFDX_INSTRUCTION_SET for_avx512_f
#elif defined(__AVXVNNI__)
#define DFDX_INSTRUCTION_SET for_avx2_vnni
#elif defined(__AVX2__) && defined(__FMA__)
#define DFDX_INSTRUCTION_SET for_avx2_fma
#elif defined(__AVX2__)
#define DFDX_INSTRUCTION_SET for_avx2
#elif defined(__AVX__) && defined(__FMA__)
#define DFDX_INSTRUCTION_SET for_avx_fma
#elif defined(__AVX__)
#define DFDX_INSTRUCTION_SET for_avx
#elif defined(__SSE4_2__)
#define DFDX_INSTRUCTION_SET for_sse4_2
#elif defined(__SSE4_1__)
#define DFDX_INSTRUCTION_SET for_sse4_1
#elif defined(__SSSE3__)
#define DFDX_INSTRUCTION_SET for_ssse3
#elif defined(__SSE3__)
#define DFDX_INSTRUCTION_SET for_sse3
#elif defined(__SSE2__)
#define DFDX_INSTRUCTION_SET for_sse2
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS >= 512
#define DFDX_INSTRUCTION_SET for_sve512
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS >= 256
#define DFDX_INSTRUCTION_SET for_sve256
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS >= 128
#define DFDX_INSTRUCTION_SET for_sve128
#elif defined(__ARM_FEATURE_MATMUL_INT8) && defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#define DFDX_INSTRUCTION_SET for_neon_i8mm_fp16
#elif defined(__ARM_FEATURE_MATMUL_INT8)
#define DFDX_INSTRUCTION_SET for_neon_i8mm
#elif defined(__ARM_NEON) && defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#define DFDX_INSTRUCTION_SET for_neon_fp16
#elif defined(__ARM_NEON)
#define DFDX_INSTRUCTION_SET for_neon
#elif defined(__riscv_v_fixed_vlen) && __riscv_v_fixed_vlen >= 512
#define DFDX_INSTRUCTION_SET for_rvv512
#elif defined(__riscv_v_fixed_vlen) && __riscv_v_fixed_vlen >= 256
#define DFDX_INSTRUCTION_SET for_rvv256
#elif defined(__riscv_v_fixed_vlen)
#define DFDX_INSTRUCTION_SET for_rvv128
#elif defined(__riscv_vector) && defined(__riscv_zvfh)
#define DFDX_INSTRUCTION_SET for_rvv_zvfh
#elif defined(__riscv_vector) && defined(__riscv_zvfhmin)
#define DFDX_INSTRUCTION_SET for_rvv_zvfhmin
#elif defined(__riscv_vector)
#define DFDX_INSTRUCTION_SET for_rvv
#elif defined(__wasm_simd128__)
#define DFDX_INSTRUCTION_SET for_wasm
#else
#define DFDX_INSTRUCTION_SET for_scalar
#endif

// Kernels on several threads (core/parallel.hpp) are other functions than those on one.
#if defined(_OPENMP) && !defined(__CUDACC__)
#define DFDX_THREADED 1
#define DFDX_NAME_THREADED_(name) name##_threaded
#define DFDX_NAME_THREADED(name) DFDX_NAME_THREADED_(name)
#endif
#if defined(DFDX_TARGET)
#elif defined(DFDX_THREADED)
#define DFDX_TARGET DFDX_NAME_THREADED(DFDX_INSTRUCTION_SET)
#else
#define DFDX_TARGET DFDX_INSTRUCTION_SET
#endif
