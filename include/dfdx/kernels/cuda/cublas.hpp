// SPDX-License-Identifier: BSL-1.0
// Matrix products by cuBLASLt: what of it a product can be handed to, and the choice of its algorithm, which is made
// once for each kind of product. DFDX_NO_CUBLAS leaves it out, for programs that do not link cublasLt.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>

#if !defined(DFDX_NO_CUBLAS)
#include <cublasLt.h>
#endif

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/cuda/options.hpp>
#include <dfdx/kernels/cuda/runtime.hpp>

namespace dfdx::inline DFDX_TARGET::cuda_runtime {

/// Factor - a matrix as cuBLASLt sees it, by columns: `rows` next to each other, columns `step` apart.
struct Factor {
  std::int64_t rows = 0, columns = 0, step = 0, batch_step = 0;
  bool transposed = false;
};

/// as_factor - a matrix whose rows are `by_row` apart, and columns `by_column`, as a factor; `taken` is false if
/// neither is 1, or what lies beside each other overlaps.
struct FactorOf {
  Factor factor;
  bool taken = false;
};
constexpr FactorOf as_factor(std::int64_t rows, std::int64_t columns, std::int64_t by_row,
                             std::int64_t by_column) {
  if ((by_row == 1 || rows == 1) && (by_column >= rows || columns == 1))
    return {{rows, columns, columns == 1 ? rows : by_column, 0, false}, true};
  if ((by_column == 1 || columns == 1) && (by_row >= columns || rows == 1))
    return {{columns, rows, rows == 1 ? columns : by_row, 0, true}, true};
  return {};
}

/// cublas_bytes - memory that products may use besides their operands.
inline constexpr std::int64_t cublas_bytes = std::int64_t{32} << 20;

/// Memory - where a product's operands lie; a bias and an addend only if the product has them.
struct Memory {
  void const *a = nullptr, *b = nullptr;
  void* c = nullptr;
  void const *bias = nullptr, *addend = nullptr;
  /// What the product is multiplied with; or that, and 1 or 0 for the addend, on the device, if the product has them
  /// there.
  float factor = 1;
  float const *factor_there = nullptr, *addend_there = nullptr;
};

/// Product - c = a b, all by columns: what of it decides how it is computed.
struct Product {
  DType dtype = DType::f32;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  Factor a, b;
  std::int64_t c_step = 0, c_batch_step = 0;
  /// Whether a column of m numbers is added to all columns, and how far those of a matrix are apart that is added to
  /// the product (0 if there is none).
  bool has_bias = false;
  std::int64_t addend_step = 0;
  /// Whether the result, a bias and an addend are of f32, whatever the factors are; and whether what the product is
  /// multiplied with lies on the device.
  bool into_f32 = false, factor_there = false;

  using Key = std::array<std::int64_t, 21>;
  Key key(int device, std::int64_t alignment, std::int64_t workspace) const {
    return {static_cast<std::int64_t>(dtype),
            m,
            n,
            k,
            batch,
            a.step,
            a.batch_step,
            a.transposed,
            b.step,
            b.batch_step,
            b.transposed,
            c_step,
            c_batch_step,
            has_bias,
            addend_step,
            into_f32,
            factor_there,
            device,
            alignment,
            workspace,
            cuda_options.tf32};
  }
};

#if defined(DFDX_NO_CUBLAS)

inline constexpr bool has_cublas = false;

/// Cublas - takes no product.
struct Cublas {
  static bool multiply(Product const&, Memory const&, void*, std::size_t, Device, cudaStream_t) {
    return false;
  }
};

#else

inline constexpr bool has_cublas = true;

/// refused - throws what cuBLASLt said.
inline void require(cublasStatus_t said, char const* what) {
  if (said != CUBLAS_STATUS_SUCCESS)
    raise(std::string("cuda: cuBLASLt, ") + what + ": " + cublasLtGetStatusString(said));
}

/// Chosen - descriptors, which it owns, and the algorithm of a kind of product.
struct Chosen {
  cublasLtMatmulDesc_t product{};
  cublasLtMatrixLayout_t a{}, b{}, c{}, addend{};
  cublasLtMatmulAlgo_t algorithm{};
  bool found = false;

  Chosen() = default;
  Chosen(Chosen const&) = delete;
  Chosen& operator=(Chosen const&) = delete;
  ~Chosen() {
    if (product != nullptr) static_cast<void>(cublasLtMatmulDescDestroy(product));
    for (cublasLtMatrixLayout_t const l : {a, b, c, addend})
      if (l != nullptr) static_cast<void>(cublasLtMatrixLayoutDestroy(l));
  }
};

class Cublas {
 public:
  /// As many kinds of products are remembered; then all are forgotten, so that a program whose extents always change
  /// does not grow.
  static constexpr std::size_t most_kinds = 1024;

  /// multiply - asks for a product; false if cuBLASLt has no algorithm for it.
  ///
  /// Errors    "cuda: cuBLASLt, product: ...", with what it says
  static bool multiply(Product const& x, Memory const& at, void* workspace, std::size_t workspace_bytes,
                       Device device, cudaStream_t stream) {
    std::uintptr_t aligned = 256;
    for (void const* const p : {at.a, at.b, static_cast<void const*>(at.c), at.bias, at.addend})
      aligned = aligned_to(p, aligned);
    auto const alignment = static_cast<std::int64_t>(aligned);
    std::shared_ptr<Chosen const> const chosen = find(x, device, alignment, workspace_bytes);
    if (!chosen->found) return false;
    bool const adds = x.addend_step != 0, wide = x.dtype == DType::f64;
    double const factor64 = at.factor, beta64 = adds;
    float const beta32 = adds;
    void const* alpha = wide ? static_cast<void const*>(&factor64) : &at.factor;
    void const* beta = wide ? static_cast<void const*>(&beta64) : &beta32;
    if (x.factor_there) alpha = at.factor_there, beta = at.addend_there;
    auto description = *chosen->product;  // a copy, for others may use it with another bias
    if (x.has_bias) set(&description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, at.bias);
    require(cublasLtMatmul(handle(device), &description, alpha, at.a, chosen->a, at.b, chosen->b, beta,
                           adds ? at.addend : at.c, adds ? chosen->addend : chosen->c, at.c, chosen->c,
                           &chosen->algorithm, workspace, workspace_bytes, stream),
            "product");
    return true;
  }

 private:
  static std::uintptr_t aligned_to(void const* p, std::uintptr_t most) {
    auto const at = reinterpret_cast<std::uintptr_t>(p);
    while (at % most != 0) most /= 2;
    return most;
  }
  static cublasLtHandle_t handle(Device device) {
    static std::array<cublasLtHandle_t, 64> made{};
    static std::mutex mutex;
    std::lock_guard const lock(mutex);
    cublasLtHandle_t& h = made[static_cast<std::size_t>(device.index)];
    if (h == nullptr) require(cublasLtCreate(&h), "handle");
    return h;
  }
  // Another thread may forget a kind while this one uses it.
  static std::shared_ptr<Chosen const> find(Product const& x, Device device, std::int64_t alignment,
                                            std::size_t workspace_bytes) {
    // Never destroyed: at the program's end cuBLASLt may have gone before it.
    static auto& known = *new std::map<Product::Key, std::shared_ptr<Chosen const>>;
    static std::mutex mutex;
    std::lock_guard const lock(mutex);
    Product::Key const key = x.key(device.index, alignment, static_cast<std::int64_t>(workspace_bytes));
    if (auto const i = known.find(key); i != known.end()) return i->second;
    auto const fresh = std::make_shared<Chosen>();
    choose(*fresh, x, device, alignment, workspace_bytes);
    if (known.size() >= most_kinds) known.clear();
    known.emplace(key, fresh);
    return fresh;
  }

  template <class T>
  static void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t what, T value) {
    require(cublasLtMatmulDescSetAttribute(d, what, &value, sizeof value), "description");
  }
  static void describe(cublasLtMatrixLayout_t& r, cudaDataType_t type, std::int64_t rows,
                       std::int64_t columns, std::int64_t step, std::int64_t batch, std::int64_t batch_step) {
    require(cublasLtMatrixLayoutCreate(&r, type, static_cast<std::uint64_t>(rows),
                                       static_cast<std::uint64_t>(columns), step),
            "layout");
    auto const count = static_cast<std::int32_t>(batch);
    require(cublasLtMatrixLayoutSetAttribute(r, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
            "layout");
    require(cublasLtMatrixLayoutSetAttribute(r, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &batch_step,
                                             sizeof batch_step),
            "layout");
  }
  static void choose(Chosen& c, Product const& x, Device device, std::int64_t alignment,
                     std::size_t workspace) {
    cudaDataType_t const type = x.dtype == DType::f64   ? CUDA_R_64F
                                : x.dtype == DType::f32 ? CUDA_R_32F
                                : x.dtype == DType::f16 ? CUDA_R_16F
                                                        : CUDA_R_16BF;
    cublasComputeType_t const compute = x.dtype == DType::f64 ? CUBLAS_COMPUTE_64F
                                        : x.dtype == DType::f32 && cuda_options.tf32
                                            ? CUBLAS_COMPUTE_32F_FAST_TF32
                                            : CUBLAS_COMPUTE_32F;
    require(cublasLtMatmulDescCreate(&c.product, compute, x.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F),
            "description");
    set(c.product, CUBLASLT_MATMUL_DESC_TRANSA, x.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(c.product, CUBLASLT_MATMUL_DESC_TRANSB, x.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    describe(c.a, type, x.a.rows, x.a.columns, x.a.step, x.batch, x.a.batch_step);
    describe(c.b, type, x.b.rows, x.b.columns, x.b.step, x.batch, x.b.batch_step);
    cudaDataType_t const of_c = x.into_f32 ? CUDA_R_32F : type;
    describe(c.c, of_c, x.m, x.n, x.c_step, x.batch, x.c_batch_step);
    if (x.addend_step != 0) describe(c.addend, of_c, x.m, x.n, x.addend_step, x.batch, 0);
    if (x.factor_there) set(c.product, CUBLASLT_MATMUL_DESC_POINTER_MODE, CUBLASLT_POINTER_MODE_DEVICE);
    if (x.has_bias) {
      set(c.product, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
      // Of the address it is only asked here how well it is aligned.
      set(c.product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, reinterpret_cast<void const*>(alignment));
    }
    cublasLtMatmulPreference_t wish{};
    require(cublasLtMatmulPreferenceCreate(&wish), "preference");
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, decltype([](auto* p) {
                      static_cast<void>(cublasLtMatmulPreferenceDestroy(p));
                    })> const owned(wish);
    auto const prefer = [&](cublasLtMatmulPreferenceAttributes_t what, auto value) {
      require(cublasLtMatmulPreferenceSetAttribute(wish, what, &value, sizeof value), "preference");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(workspace));
    for (auto const what :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
      prefer(what, static_cast<std::uint32_t>(alignment));
    cublasLtMatmulHeuristicResult_t best{};
    int n = 0;
    cublasStatus_t const said = cublasLtMatmulAlgoGetHeuristic(
        handle(device), c.product, c.a, c.b, c.addend != nullptr ? c.addend : c.c, c.c, wish, 1, &best, &n);
    if (said != CUBLAS_STATUS_NOT_SUPPORTED) require(said, "choice of an algorithm");
    c.found = n != 0 && best.state == CUBLAS_STATUS_SUCCESS;
    c.algorithm = best.algo;
  }
};

#endif

}  // namespace dfdx::inline DFDX_TARGET::cuda_runtime
