// SPDX-License-Identifier: BSL-1.0
// How cuDNN 9 computes a convolution, by its graph API (NVIDIA, cuDNN Backend API): it is described once, cuDNN's
// heuristics say by which of its engines, and a plan is made of that. The library is looked for when the program runs,
// so that one program runs with and without it; DFDX_LINK_CUDNN takes it as linked instead, and DFDX_NO_CUDNN leaves
// it out. Of what cuDNN may choose, dfdx refuses sums whose order differs from run to run, and for f32 tensor cores
// unless cuda_options.tf32.
#pragma once

#include <cuda_runtime.h>

#if !defined(DFDX_NO_CUDNN) && __has_include(<cudnn_graph.h>) && \
    (__has_include(<dlfcn.h>) || defined(DFDX_LINK_CUDNN))
#include <cudnn_graph.h>
#define DFDX_HAS_CUDNN 1
#if !defined(DFDX_LINK_CUDNN)
#include <dlfcn.h>
#endif
#else
#define DFDX_HAS_CUDNN 0
#endif

#if DFDX_HAS_CUDNN

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <dfdx/kernels/cuda/convolution.hpp>
#include <dfdx/kernels/cuda/options.hpp>

namespace dfdx::inline DFDX_TARGET::cuda_runtime {

/// CudnnApi - the functions of cuDNN that are used; all null if it is not installed.
struct CudnnApi {
  decltype(&cudnnGetVersion) version = nullptr;
  decltype(&cudnnGetErrorString) error = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) make = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy = nullptr;
  decltype(&cudnnBackendSetAttribute) set = nullptr;
  decltype(&cudnnBackendGetAttribute) get = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

  bool found() const { return execute != nullptr; }

  static CudnnApi const& it() {
    static CudnnApi const api = load();
    return api;
  }

 private:
  static CudnnApi load() {
#if defined(DFDX_LINK_CUDNN)
    return {&cudnnGetVersion,          &cudnnGetErrorString,          &cudnnCreate,
            &cudnnSetStream,           &cudnnBackendCreateDescriptor, &cudnnBackendDestroyDescriptor,
            &cudnnBackendSetAttribute, &cudnnBackendGetAttribute,     &cudnnBackendFinalize,
            &cudnnBackendExecute};
#else
    // Never closed: kernels of it may still run when the program ends.
    void* const library =
        dlopen(("libcudnn.so." + std::to_string(CUDNN_MAJOR)).c_str(), RTLD_NOW | RTLD_LOCAL);
    CudnnApi api, none;
    if (library == nullptr) return none;
    bool all = true;
    auto const find = [&]<class F>(char const* name, F& to) {
      to = reinterpret_cast<F>(dlsym(library, name));
      all = all && to != nullptr;
    };
    find("cudnnGetVersion", api.version);
    find("cudnnGetErrorString", api.error);
    find("cudnnCreate", api.create);
    find("cudnnSetStream", api.set_stream);
    find("cudnnBackendCreateDescriptor", api.make);
    find("cudnnBackendDestroyDescriptor", api.destroy);
    find("cudnnBackendSetAttribute", api.set);
    find("cudnnBackendGetAttribute", api.get);
    find("cudnnBackendFinalize", api.finalize);
    find("cudnnBackendExecute", api.execute);
    return all ? api : none;
#endif
  }
};

/// CudnnPart - a descriptor of cuDNN's, which it owns. What cuDNN first refused it remembers, and sets nothing more.
class CudnnPart {
 public:
  CudnnPart() = default;
  explicit CudnnPart(cudnnBackendDescriptorType_t type) { said_ = CudnnApi::it().make(type, &part_); }
  CudnnPart(CudnnPart&& other) noexcept : part_(std::exchange(other.part_, nullptr)), said_(other.said_) {}
  CudnnPart& operator=(CudnnPart&& other) noexcept {
    std::swap(part_, other.part_), std::swap(said_, other.said_);
    return *this;
  }
  ~CudnnPart() {
    if (part_ != nullptr) static_cast<void>(CudnnApi::it().destroy(part_));
  }

  template <class T>
  CudnnPart& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T const* values,
                 std::int64_t count) {
    if (said_ == CUDNN_STATUS_SUCCESS) said_ = CudnnApi::it().set(part_, name, type, count, values);
    return *this;
  }
  template <class T>
  CudnnPart& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    return set(name, type, &value, 1);
  }
  CudnnPart& set(cudnnBackendAttributeName_t name, CudnnPart const& part) {
    if (said_ == CUDNN_STATUS_SUCCESS) said_ = part.said_;
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &part.part_, 1);
  }
  CudnnPart& finish() {
    if (said_ == CUDNN_STATUS_SUCCESS) said_ = CudnnApi::it().finalize(part_);
    return *this;
  }
  /// How many values of an attribute there are, of which at most `count` are stored.
  template <class T>
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T* values,
                   std::int64_t count) const {
    std::int64_t n = 0;
    if (said_ != CUDNN_STATUS_SUCCESS ||
        CudnnApi::it().get(part_, name, type, count, &n, values) != CUDNN_STATUS_SUCCESS)
      return 0;
    return n < count ? n : count;
  }
  bool fine() const { return part_ != nullptr && said_ == CUDNN_STATUS_SUCCESS; }
  cudnnStatus_t said() const { return said_; }
  cudnnBackendDescriptor_t const& raw() const { return part_; }

 private:
  cudnnBackendDescriptor_t part_{};
  cudnnStatus_t said_ = CUDNN_STATUS_SUCCESS;
};

/// CudnnTarget - for which device plans are made: that of a handle, or one that is described, which need not be there.
struct CudnnTarget {
  cudnnHandle_t handle{};
  CudnnPart const* properties = nullptr;
};

/// CudnnPlan - how cuDNN computes a convolution, in how many bytes of workspace; empty if it does not.
class CudnnPlan {
 public:
  /// make - the first that cuDNN's heuristics name of those allowed here, for operands whose addresses are multiples of
  /// `alignment`, and memory of the pool as workspace.
  static CudnnPlan make(Convolution const& c, std::int64_t alignment, CudnnTarget to) {
    CudnnPart const graph = described(c, alignment, to);
    CudnnPlan plan;
    for (cudnnBackendHeurMode_t const mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      CudnnPart choice(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      choice.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
      choice.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
      if (to.properties != nullptr) choice.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *to.properties);
      choice.finish();
      std::array<CudnnPart, most_choices> ways;
      std::array<cudnnBackendDescriptor_t, most_choices> raw{};
      for (std::size_t i = 0; i < most_choices; ++i) {
        ways[i] = CudnnPart(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
        raw[i] = ways[i].raw();
      }
      auto const n = static_cast<std::size_t>(
          choice.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.data(), most_choices));
      for (std::size_t i = 0; i < n; ++i)
        if (is_allowed(c, ways[i]) && plan.take(ways[i], c.workspace(), to)) return plan;
    }
    return {};
  }

  bool found() const { return plan_.fine(); }
  std::int64_t workspace() const { return workspace_; }

  /// run - asks for it, with the addresses in the order of the op's operands.
  cudnnStatus_t run(cudnnHandle_t handle, ConvDoes does, void* const* operands, void* workspace) const {
    std::array<std::int64_t, 3> const ids = Convolution::in_order(does, id_of_x, id_of_w, id_of_y);
    CudnnPart pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), 3);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, operands, 3);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    if (!pack.finish().fine()) return pack.said();
    return CudnnApi::it().execute(handle, plan_.raw(), pack.raw());
  }

 private:
  static constexpr std::size_t most_choices = 16;
  static constexpr std::int64_t id_of_x = 'x', id_of_w = 'w', id_of_y = 'y';

  static cudnnDataType_t type_of(DType d) {
    return d == DType::f64   ? CUDNN_DATA_DOUBLE
           : d == DType::f32 ? CUDNN_DATA_FLOAT
           : d == DType::f16 ? CUDNN_DATA_HALF
                             : CUDNN_DATA_BFLOAT16;
  }
  static CudnnPart tensor(Convolution const& c, Convolution::Operand const& o, std::int64_t id,
                          std::int64_t alignment) {
    CudnnPart t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type_of(c.dtype));
    t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, o.extent.data(), c.axes + 2);
    t.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, o.step.data(), c.axes + 2);
    t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
    t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
    return std::move(t.finish());
  }
  static CudnnPart described(Convolution const& c, std::int64_t alignment, CudnnTarget to) {
    CudnnPart const x = tensor(c, c.x, id_of_x, alignment), w = tensor(c, c.w, id_of_w, alignment),
                    y = tensor(c, c.y, id_of_y, alignment);
    CudnnPart windows(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    windows.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, c.axes);
    windows.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                c.dtype == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    windows.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
    windows.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, c.before.data(), c.axes);
    windows.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, c.after.data(), c.axes);
    windows.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, c.stride.data(), c.axes);
    windows.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, c.dilation.data(), c.axes);
    windows.finish();

    struct Names {
      cudnnBackendDescriptorType_t op;
      cudnnBackendAttributeName_t windows, x, w, y, alpha, beta;
    };
    constexpr std::array<Names, 3> all{
        {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
         {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
         {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}}};
    Names const& name = all[static_cast<std::size_t>(c.does)];
    CudnnPart op(name.op);
    op.set(name.windows, windows).set(name.x, x).set(name.w, w).set(name.y, y);
    if (c.dtype == DType::f64)
      op.set(name.alpha, CUDNN_TYPE_DOUBLE, 1.0).set(name.beta, CUDNN_TYPE_DOUBLE, 0.0);
    else op.set(name.alpha, CUDNN_TYPE_FLOAT, 1.0F).set(name.beta, CUDNN_TYPE_FLOAT, 0.0F);
    op.finish();

    CudnnPart graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (to.properties == nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, to.handle);
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, op);
    return std::move(graph.finish());
  }

  static bool is_allowed(Convolution const& c, CudnnPart const& way) {
    CudnnPart const engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = engine.raw();
    if (way.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, &raw, 1) != 1) return false;
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
    auto const n =
        static_cast<std::size_t>(engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                            notes.data(), CUDNN_NUMERICAL_NOTE_TYPE_COUNT));
    bool const exact = c.dtype == DType::f32 && !cuda_options.tf32;
    for (std::size_t i = 0; i < n; ++i) {
      if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return false;
      if (notes[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) return false;
      if (exact && (notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                    notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))
        return false;
    }
    return true;
  }

  bool take(CudnnPart const& way, std::int64_t limit, CudnnTarget to) {
    CudnnPart plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (to.properties != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *to.properties);
    else plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, to.handle);
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, way);
    if (!plan.finish().fine()) return false;
    std::int64_t bytes = 0;
    if (plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, &bytes, 1) != 1 || bytes > limit)
      return false;
    plan_ = std::move(plan), workspace_ = bytes;
    return true;
  }

  CudnnPart plan_;
  std::int64_t workspace_ = 0;
};

}  // namespace dfdx::inline DFDX_TARGET::cuda_runtime

#endif
