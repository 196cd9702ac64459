// SPDX-License-Identifier: BSL-1.0
// What dfdx uses of cuBLASLt, on the CPU: products as their descriptions say, so that a description that is wrong gives
// results that are.
#pragma once

#include <cstdint>

#include <dfdx/core/dtype.hpp>

#include "cuda_runtime.h"

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_NOT_SUPPORTED = 15
};
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum cublasComputeType_t {
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };
enum cublasLtPointerMode_t { CUBLASLT_POINTER_MODE_HOST, CUBLASLT_POINTER_MODE_DEVICE };
enum cublasLtMatmulDescAttributes_t {
  CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8
};
enum cublasLtEpilogue_t { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_BIAS = 4 };
enum cublasLtMatrixLayoutAttribute_t {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
};
enum cublasLtMatmulPreferenceAttributes_t {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
  CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
};

namespace cuda_fake {

struct Description {
  cublasComputeType_t compute;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void const* bias = nullptr;
  cublasLtPointerMode_t pointers = CUBLASLT_POINTER_MODE_HOST;
};
struct Layout {
  cudaDataType_t type;
  std::int64_t rows, columns, step, batch = 1, batch_step = 0;
};
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};
struct Products {
  int choices = 0, products = 0;
  int descriptors = 0;          // that are alive
  int biases = 0, addends = 0;  // that products did add
  int into_f32 = 0;             // products of 16 bits with results that are wider
  bool refuse = false, refuse_bias = false;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;  // of the last one
};
inline Products products;

template <class T, class Sum, class R>
void multiply(Description const& d, Sum alpha, void const* pa, Layout const& la, void const* pb,
              Layout const& lb, void const* addend, Layout const& ladd, void* pc, Layout const& lc) {
  auto const* const a = static_cast<T const*>(pa);
  auto const* const b = static_cast<T const*>(pb);
  auto* const c = static_cast<R*>(pc);
  std::int64_t const depth = d.a == CUBLAS_OP_N ? la.columns : la.rows;
  for (std::int64_t i = 0; i < lc.batch; ++i)
    for (std::int64_t m = 0; m < lc.rows; ++m)
      for (std::int64_t n = 0; n < lc.columns; ++n) {
        Sum sum = 0;
        for (std::int64_t k = 0; k < depth; ++k)
          sum += static_cast<Sum>(
                     a[i * la.batch_step + (d.a == CUBLAS_OP_N ? k * la.step + m : m * la.step + k)]) *
                 static_cast<Sum>(
                     b[i * lb.batch_step + (d.b == CUBLAS_OP_N ? n * lb.step + k : k * lb.step + n)]);
        sum *= alpha;
        if (addend != nullptr)
          sum += static_cast<Sum>(static_cast<R const*>(addend)[i * ladd.batch_step + n * ladd.step + m]);
        if (d.epilogue == CUBLASLT_EPILOGUE_BIAS) sum += static_cast<Sum>(static_cast<R const*>(d.bias)[m]);
        c[i * lc.batch_step + n * lc.step + m] = static_cast<R>(sum);
      }
}

}  // namespace cuda_fake

struct cublasLtMatmulAlgo_t {
  std::uint64_t workspace = 0;
  std::uint32_t alignment = 0;
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  cublasStatus_t state = CUBLAS_STATUS_SUCCESS;
};
using cublasLtHandle_t = int*;
using cublasLtMatmulDesc_t = cuda_fake::Description*;
using cublasLtMatrixLayout_t = cuda_fake::Layout*;
using cublasLtMatmulPreference_t = cuda_fake::Preference*;

inline char const* cublasLtGetStatusString(cublasStatus_t) { return "CUBLAS_STATUS_INVALID_VALUE"; }
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) {
  static int one;
  *h = &one;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  if ((compute == CUBLAS_COMPUTE_64F) != (scale == CUDA_R_64F)) return CUBLAS_STATUS_INVALID_VALUE;
  *d = new cuda_fake::Description{compute};
  ++cuda_fake::products.descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  delete d;
  --cuda_fake::products.descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                                     cublasLtMatmulDescAttributes_t what, void const* value,
                                                     std::size_t bytes) {
  auto const take = [&](auto& to) {
    if (bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&to, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (what) {
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return take(d->pointers);
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(d->a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(d->b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(d->epilogue);
    default: return take(d->bias);
  }
}
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* l, cudaDataType_t type,
                                                 std::uint64_t rows, std::uint64_t columns,
                                                 std::int64_t step) {
  if (rows == 0 || columns == 0 || step < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *l = new cuda_fake::Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), step};
  ++cuda_fake::products.descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
  delete l;
  --cuda_fake::products.descriptors;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                       cublasLtMatrixLayoutAttribute_t what,
                                                       void const* value, std::size_t bytes) {
  if (bytes != (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? 4 : 8)) return CUBLAS_STATUS_INVALID_VALUE;
  if (what == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) l->batch = *static_cast<std::int32_t const*>(value);
  else l->batch_step = *static_cast<std::int64_t const*>(value);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) {
  *p = new cuda_fake::Preference;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
  delete p;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                           cublasLtMatmulPreferenceAttributes_t what,
                                                           void const* value, std::size_t bytes) {
  bool const workspace = what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
  if (bytes != (workspace ? 8 : 4)) return CUBLAS_STATUS_INVALID_VALUE;
  if (workspace) p->workspace = *static_cast<std::uint64_t const*>(value);
  else
    p->alignment[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES] =
        *static_cast<std::uint32_t const*>(value);
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
                                                     cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                     cublasLtMatrixLayout_t add, cublasLtMatrixLayout_t c,
                                                     cublasLtMatmulPreference_t p, int most,
                                                     cublasLtMatmulHeuristicResult_t* r, int* n) {
  ++cuda_fake::products.choices;
  *n = 0;
  if (cuda_fake::products.refuse) return CUBLAS_STATUS_NOT_SUPPORTED;
  auto const op = [](cuda_fake::Layout const& l, cublasOperation_t o, bool rows) {
    return (o == CUBLAS_OP_N) == rows ? l.rows : l.columns;
  };
  if (op(*a, d->a, true) != c->rows || op(*b, d->b, false) != c->columns ||
      op(*a, d->a, false) != op(*b, d->b, true) || a->batch != c->batch || b->batch != c->batch ||
      a->type != b->type || (a->type != c->type && (a->type == CUDA_R_64F || c->type != CUDA_R_32F)))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (add->rows != c->rows || add->columns != c->columns || add->batch != c->batch || add->type != c->type)
    return CUBLAS_STATUS_INVALID_VALUE;
  if ((d->compute == CUBLAS_COMPUTE_64F) != (c->type == CUDA_R_64F)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (d->epilogue == CUBLASLT_EPILOGUE_BIAS) {
    if (cuda_fake::products.refuse_bias || c->type == CUDA_R_64F) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (d->bias == nullptr || reinterpret_cast<std::uintptr_t>(d->bias) % p->alignment[2] != 0)
      return CUBLAS_STATUS_INVALID_VALUE;
  }
  *n = most;
  r->algo = {p->workspace, p->alignment[0]};
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, void const* alpha,
                                     void const* a, cublasLtMatrixLayout_t la, void const* b,
                                     cublasLtMatrixLayout_t lb, void const* beta, void const* c,
                                     cublasLtMatrixLayout_t ladd, void* to, cublasLtMatrixLayout_t lc,
                                     cublasLtMatmulAlgo_t const* how, void* workspace, std::size_t bytes,
                                     cudaStream_t stream) {
  auto const aligned = [](void const* p, std::uintptr_t n) {
    return reinterpret_cast<std::uintptr_t>(p) % n == 0;
  };
  auto const number = [wide = lc->type == CUDA_R_64F](void const* p) {
    return wide ? *static_cast<double const*>(p) : static_cast<double>(*static_cast<float const*>(p));
  };
  bool const there = d->pointers == CUBLASLT_POINTER_MODE_DEVICE;
  // What lies on the device the host only knows when all before has been done; an addend's place says whether it is 1.
  bool const adds = there ? ladd != lc : number(beta) == 1;
  bool const biased = d->epilogue == CUBLASLT_EPILOGUE_BIAS;
  if (bytes < how->workspace || !aligned(workspace, 256)) return CUBLAS_STATUS_INVALID_VALUE;
  if (adds ? c == to && ladd->step != lc->step : c != to) return CUBLAS_STATUS_INVALID_VALUE;
  if (biased && d->bias == to) return CUBLAS_STATUS_INVALID_VALUE;  // read by tiles after others are stored
  for (void const* p : {a, b, c, static_cast<void const*>(to), biased ? d->bias : c})
    if (!aligned(p, how->alignment)) return CUBLAS_STATUS_INVALID_VALUE;
  ++cuda_fake::products.products;
  cuda_fake::products.compute = d->compute;
  cuda_fake::products.biases += biased;
  cuda_fake::products.addends += adds;
  void const* const addend = adds ? c : nullptr;
  cuda_fake::products.into_f32 += la->type != lc->type;
  double const factor = there ? 0 : number(alpha);
  cuda_fake::submit(stream, [=, d = *d, la = *la, lb = *lb, ladd = *ladd, lc = *lc] {
    std::memset(workspace, 0xff, bytes);  // it may write there
    auto const multiply = [&]<class T, class Sum, class R>() {
      auto const by = static_cast<Sum>(there ? number(alpha) : factor);
      void const* const added = there && number(beta) == 0 ? nullptr : addend;
      cuda_fake::multiply<T, Sum, R>(d, by, a, la, b, lb, added, ladd, to, lc);
    };
    bool const same = la.type == lc.type;
    switch (la.type) {
      case CUDA_R_64F: return multiply.template operator()<double, double, double>();
      case CUDA_R_32F: return multiply.template operator()<float, float, float>();
      case CUDA_R_16F:
        return same ? multiply.template operator()<dfdx::float16, float, dfdx::float16>()
                    : multiply.template operator()<dfdx::float16, float, float>();
      default:
        return same ? multiply.template operator()<dfdx::bfloat16, float, dfdx::bfloat16>()
                    : multiply.template operator()<dfdx::bfloat16, float, float>();
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}
