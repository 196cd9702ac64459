// SPDX-License-Identifier: BSL-1.0
// What dfdx uses of cuDNN's graph API, on the CPU: convolutions as their descriptors say, so that a description that is
// wrong gives results that are. Of engines there are four, in the order in which its heuristics name them: one whose
// sums are not the same twice, one that rounds f32 for tensor cores, one that takes more memory than a call has, and
// one that any convolution may use.
#pragma once

#include <cstdint>

#include "cuda_runtime.h"

#define DFDX_LINK_CUDNN
#define CUDNN_MAJOR 9

enum cudnnStatus_t {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,
  CUDNN_STATUS_BAD_PARAM = 2000,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,
  CUDNN_STATUS_EXECUTION_FAILED = 5000
};
enum cudnnDataType_t { CUDNN_DATA_FLOAT, CUDNN_DATA_DOUBLE, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16 = 9 };
enum cudnnConvolutionMode_t { CUDNN_CONVOLUTION, CUDNN_CROSS_CORRELATION };
enum cudnnBackendHeurMode_t { CUDNN_HEUR_MODE_FALLBACK = 2, CUDNN_HEUR_MODE_A };
enum cudnnBackendNumericalNote_t {
  CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,
  CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,
  CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2,
  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,
  CUDNN_NUMERICAL_NOTE_TYPE_COUNT = 10
};
enum cudnnBackendAttributeType_t {
  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_DATA_TYPE = 1,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_FLOAT = 4,
  CUDNN_TYPE_DOUBLE = 5,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_CONVOLUTION_MODE = 7,
  CUDNN_TYPE_HEUR_MODE = 8,
  CUDNN_TYPE_NUMERICAL_NOTE = 11,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15
};
enum cudnnBackendDescriptorType_t {
  CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR = 1,
  CUDNN_BACKEND_ENGINE_DESCRIPTOR = 2,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR = 10,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR = 11,
  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR = 12,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17
};
enum cudnnBackendAttributeName_t {
  CUDNN_ATTR_CONVOLUTION_COMP_TYPE = 100,
  CUDNN_ATTR_CONVOLUTION_CONV_MODE = 101,
  CUDNN_ATTR_CONVOLUTION_DILATIONS = 102,
  CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES = 103,
  CUDNN_ATTR_CONVOLUTION_POST_PADDINGS = 104,
  CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS = 105,
  CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS = 106,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_ENGINEHEUR_DEVICEPROP = 204,
  CUDNN_ATTR_ENGINECFG_ENGINE = 300,
  CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP = 407,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA = 700,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA = 701,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W = 703,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X = 704,
  CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y = 705,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA = 707,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W = 709,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX = 710,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY = 711,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW = 715,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X = 716,
  CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY = 717,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
  CUDNN_ATTR_ENGINE_NUMERICAL_NOTE = 1303,
  CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION = 2702
};

#include "cudnn_parts.hpp"

using cudnnHandle_t = int*;
using cudnnBackendDescriptor_t = void*;

inline std::size_t cudnnGetVersion() { return cuda_fake::convolutions.is_missing ? 0 : 91900; }
inline char const* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_STATUS_EXECUTION_FAILED"; }
inline cudaStream_t& cudnn_stream() {
  static cudaStream_t one{};
  return one;
}
inline cudnnStatus_t cudnnCreate(cudnnHandle_t* h) {
  static int one;
  *h = &one;
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t s) {
  cudnn_stream() = s;
  return CUDNN_STATUS_SUCCESS;
}
inline cuda_fake::Part& part_of(cudnnBackendDescriptor_t d) { return *static_cast<cuda_fake::Part*>(d); }
inline cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                                  cudnnBackendDescriptor_t* d) {
  auto* const made = new cuda_fake::Part(std::make_shared<cuda_fake::CudnnPart>());
  (*made)->type = type;
  *d = made;
  ++cuda_fake::convolutions.parts;
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete static_cast<cuda_fake::Part*>(d);
  --cuda_fake::convolutions.parts;
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, std::int64_t n,
                                              void const* values) {
  cuda_fake::CudnnPart& to = *part_of(d);
  if (to.finished || n < 1 || values == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto const from = part_of(*static_cast<cudnnBackendDescriptor_t const*>(values));
    if (n != 1 || !from->finished) return CUDNN_STATUS_BAD_PARAM;
    to.parts[name] = from;
    return CUDNN_STATUS_SUCCESS;
  }
  auto& numbers = to.numbers[name];
  numbers.clear();
  for (std::int64_t i = 0; i < n; ++i) switch (type) {
      case CUDNN_TYPE_INT64: numbers.push_back(static_cast<std::int64_t const*>(values)[i]); break;
      case CUDNN_TYPE_FLOAT:
        numbers.push_back(static_cast<std::int64_t>(static_cast<float const*>(values)[i]));
        break;
      case CUDNN_TYPE_DOUBLE:
        numbers.push_back(static_cast<std::int64_t>(static_cast<double const*>(values)[i]));
        break;
      case CUDNN_TYPE_HANDLE:
      case CUDNN_TYPE_VOID_PTR:
        numbers.push_back(reinterpret_cast<std::int64_t>(static_cast<void* const*>(values)[i]));
        break;
      default: numbers.push_back(static_cast<std::int32_t const*>(values)[i]); break;  // of the enumerations
    }
  return CUDNN_STATUS_SUCCESS;
}

inline cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  cuda_fake::CudnnPart& p = *part_of(d);
  if (!cuda_fake::is_fine(p)) return CUDNN_STATUS_BAD_PARAM;
  p.finished = true;
  return CUDNN_STATUS_SUCCESS;
}
inline cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t, std::int64_t most, std::int64_t* n,
                                              void* values) {
  using namespace cuda_fake;
  CudnnPart const& p = *part_of(d);
  auto const descriptor = [&](std::int64_t i) -> CudnnPart& {
    return *part_of(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
  };
  *n = 0;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      if (!p.finished) return CUDNN_STATUS_BAD_PARAM;
      ++convolutions.choices;
      int const first = p.one(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A ? 0 : plain_engine;
      if (!convolutions.refuse)
        for (int engine = first; engine <= plain_engine && *n < most; ++engine, ++*n) {
          descriptor(*n).engine = engine;
          descriptor(*n).finished = true;
          descriptor(*n).parts = p.parts;
        }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *n = 1;
      descriptor(0).engine = p.engine;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      auto* const notes = static_cast<cudnnBackendNumericalNote_t*>(values);
      if (p.engine == strange_engine) notes[(*n)++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
      if (p.engine == rounding_engine) notes[(*n)++] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      int const engine = p.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG).engine;
      *n = 1;
      *static_cast<std::int64_t*>(values) = engine == greedy_engine ? INT64_MAX : 1 << 20;
      return CUDNN_STATUS_SUCCESS;
    }
    default: return CUDNN_STATUS_BAD_PARAM;
  }
}
inline cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t variant) {
  using namespace cuda_fake;
  CudnnPart const& how = part_of(plan)->part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  CudnnPart const& pack = *part_of(variant);
  Part const op = how.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  auto const there = [&](char which) {
    CudnnPart const& t = operand(*op, which);
    CudnnOperand r{nullptr, t.one(CUDNN_ATTR_TENSOR_DATA_TYPE), t.all(CUDNN_ATTR_TENSOR_DIMENSIONS),
                   t.all(CUDNN_ATTR_TENSOR_STRIDES)};
    for (std::size_t i = 0; i < 3; ++i)
      if (pack.all(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)[i] == t.one(CUDNN_ATTR_TENSOR_UNIQUE_ID)) {
        std::int64_t const at = pack.all(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)[i];
        if (at % t.one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) == 0) r.at = reinterpret_cast<void*>(at);
      }
    return r;
  };
  CudnnOperand const x = there('x'), w = there('w'), y = there('y');
  void* const workspace = reinterpret_cast<void*>(pack.one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  if (x.at == nullptr || w.at == nullptr || y.at == nullptr || workspace == nullptr ||
      reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0)
    return CUDNN_STATUS_EXECUTION_FAILED;
  if (convolutions.fail) return CUDNN_STATUS_EXECUTION_FAILED;
  ++convolutions.convolutions;
  convolutions.engine = how.engine;
  submit(cudnn_stream(), [=] {
    std::memset(workspace, 0xff, 1 << 20);  // it may write there
    convolve(*op, x, w, y);
  });
  return CUDNN_STATUS_SUCCESS;
}
