// SPDX-License-Identifier: BSL-1.0
// What the emulated cuDNN (cudnn_graph.h) does: descriptors, which of them it refuses, and the convolution that one
// says.
#pragma once

#include <dfdx/core/dtype.hpp>

#include <map>
#include <memory>
#include <vector>

namespace cuda_fake {

struct CudnnPart;
using Part = std::shared_ptr<CudnnPart>;

/// CudnnPart - a descriptor: the values of its attributes, widened, and the descriptors among them.
struct CudnnPart {
  cudnnBackendDescriptorType_t type{};
  bool finished = false;
  int engine = -1;
  std::map<int, std::vector<std::int64_t>> numbers;
  std::map<int, Part> parts;

  std::vector<std::int64_t> const& all(int name) const { return numbers.at(name); }
  std::int64_t one(int name) const { return all(name).at(0); }
  CudnnPart const& part(int name) const { return *parts.at(name); }
};
struct Convolutions {
  bool refuse = false, fail = false, is_missing = false;
  int choices = 0, convolutions = 0;
  int parts = 0;    // that are alive
  int engine = -1;  // of the last one
};
inline Convolutions convolutions;

inline constexpr int strange_engine = 0, rounding_engine = 1, greedy_engine = 2, plain_engine = 3;

/// The kind of convolution that an op is: the names of its attributes are those of the first, and so many behind.
inline int first_name(CudnnPart const& op) {
  return op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR         ? 700
         : op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ? 706
                                                                                   : 712;
}
inline CudnnPart const& operand(CudnnPart const& op, char which) {
  int const first = first_name(op);
  if (first == 712) return op.part(which == 'x' ? 716 : which == 'w' ? 715 : 717);
  return op.part(first + (which == 'w' ? 3 : which == 'x' ? 4 : 5));
}

/// CudnnOperand - its values, wherever they lie.
struct CudnnOperand {
  void* at;
  std::int64_t type;
  std::vector<std::int64_t> extent, step;

  double get(std::int64_t i) const {
    switch (type) {
      case CUDNN_DATA_FLOAT: return static_cast<float const*>(at)[i];
      case CUDNN_DATA_DOUBLE: return static_cast<double const*>(at)[i];
      case CUDNN_DATA_HALF: return static_cast<double>(static_cast<dfdx::float16 const*>(at)[i]);
      default: return static_cast<double>(static_cast<dfdx::bfloat16 const*>(at)[i]);
    }
  }
  void put(std::int64_t i, double v) const {
    switch (type) {
      case CUDNN_DATA_FLOAT: static_cast<float*>(at)[i] = static_cast<float>(v); break;
      case CUDNN_DATA_DOUBLE: static_cast<double*>(at)[i] = v; break;
      case CUDNN_DATA_HALF: static_cast<dfdx::float16*>(at)[i] = static_cast<dfdx::float16>(v); break;
      default: static_cast<dfdx::bfloat16*>(at)[i] = static_cast<dfdx::bfloat16>(v); break;
    }
  }
};

/// convolve - y = x * w, or what of x or w its gradient is, with every product added where it belongs.
inline void convolve(CudnnPart const& op, CudnnOperand const& x, CudnnOperand const& w,
                     CudnnOperand const& y) {
  CudnnPart const& windows = op.part(first_name(op) + 2);
  auto const& stride = windows.all(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  auto const& dilation = windows.all(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  auto const& before = windows.all(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  std::size_t const axes = stride.size();
  int const first = first_name(op);
  CudnnOperand const& to = first == 700 ? y : first == 706 ? x : w;
  std::map<std::int64_t, double> sums;
  auto const each = [&](auto const& self, std::size_t d, std::vector<std::int64_t>& at,
                        auto const& f) -> void {
    if (d == at.size()) return f();
    std::int64_t const n = d < y.extent.size() ? y.extent[d] : w.extent[d - y.extent.size() + 1];
    for (at[d] = 0; at[d] < n; ++at[d]) self(self, d + 1, at, f);
  };
  // Every element of y, and behind it every weight of its channel.
  std::vector<std::int64_t> at(y.extent.size() + w.extent.size() - 1);
  std::int64_t const out = w.extent[0] / (x.extent[1] / w.extent[1]);
  each(each, 0, at, [&] {
    std::int64_t const channel = at[axes + 2];
    std::int64_t in_x = at[0] * x.step[0] + (at[1] / out * w.extent[1] + channel) * x.step[1],
                 in_w = at[1] * w.step[0] + channel * w.step[1], in_y = at[0] * y.step[0] + at[1] * y.step[1];
    bool inside = true;
    for (std::size_t a = 0; a < axes; ++a) {
      std::int64_t const p = at[2 + a], k = at[axes + 3 + a], i = p * stride[a] + k * dilation[a] - before[a];
      inside = inside && i >= 0 && i < x.extent[2 + a];
      in_x += i * x.step[2 + a], in_w += k * w.step[2 + a], in_y += p * y.step[2 + a];
    }
    double& sum = sums[first == 700 ? in_y : first == 706 ? in_x : in_w];
    if (!inside) return;
    sum += first == 700   ? x.get(in_x) * w.get(in_w)
           : first == 706 ? y.get(in_y) * w.get(in_w)
                          : x.get(in_x) * y.get(in_y);
  });
  std::vector<std::int64_t> all(to.extent.size());
  auto const store = [&](auto const& self, std::size_t d, std::int64_t i) -> void {
    if (d == all.size()) return to.put(i, sums.count(i) != 0 ? sums[i] : 0);
    for (std::int64_t k = 0; k < to.extent[d]; ++k) self(self, d + 1, i + k * to.step[d]);
  };
  store(store, 0, 0);
}

/// What of a descriptor cuDNN refuses.
inline bool is_fine(CudnnPart const& p) {
  auto const has = [&](std::initializer_list<int> names, std::size_t n) {
    bool r = true;
    for (int const name : names) r = r && p.numbers.count(name) != 0 && p.all(name).size() == n;
    return r;
  };
  auto const has_parts = [&](std::initializer_list<int> names) {
    bool r = true;
    for (int const name : names) r = r && p.parts.count(name) != 0;
    return r;
  };
  switch (p.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: {
      if (!has({CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT},
               1))
        return false;
      std::size_t const n = p.all(CUDNN_ATTR_TENSOR_DIMENSIONS).size();
      bool r = (n == 4 || n == 5) && has({CUDNN_ATTR_TENSOR_STRIDES}, n);
      for (std::size_t i = 0; r && i < n; ++i)
        r = p.all(CUDNN_ATTR_TENSOR_DIMENSIONS)[i] > 0 && p.all(CUDNN_ATTR_TENSOR_STRIDES)[i] > 0;
      return r;
    }
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return has({CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_ATTR_CONVOLUTION_COMP_TYPE}, 1) &&
             p.one(CUDNN_ATTR_CONVOLUTION_CONV_MODE) == CUDNN_CROSS_CORRELATION &&
             has({CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                  CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS},
                 static_cast<std::size_t>(p.one(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS)));
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return has({CUDNN_ATTR_OPERATIONGRAPH_HANDLE}, 1) && has_parts({CUDNN_ATTR_OPERATIONGRAPH_OPS});
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return has({CUDNN_ATTR_ENGINEHEUR_MODE}, 1) && has_parts({CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH});
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return has({CUDNN_ATTR_EXECUTION_PLAN_HANDLE}, 1) &&
             has_parts({CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG});
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return has({CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS}, 3) &&
             has({CUDNN_ATTR_VARIANT_PACK_WORKSPACE}, 1);
    default: break;
  }
  // An op: the windows have to lead from x to y, and sums are not scaled.
  int const first = first_name(p);
  if (!has({first, first + 1}, 1) || !has_parts({first + 2, first + 3, first + 4, first + 5})) return false;
  if (p.one(first) != 1 || p.one(first + 1) != 0) return false;
  CudnnPart const& windows = p.part(first + 2);
  auto const extents = [&](char which) { return operand(p, which).all(CUDNN_ATTR_TENSOR_DIMENSIONS); };
  auto const x = extents('x'), w = extents('w'), y = extents('y');
  bool const wide = operand(p, 'x').one(CUDNN_ATTR_TENSOR_DATA_TYPE) == CUDNN_DATA_DOUBLE;
  bool r = (windows.one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_DOUBLE) == wide && x[0] == y[0] &&
           w[0] == y[1] && x[1] % w[1] == 0 && w[0] % (x[1] / w[1]) == 0;
  for (std::size_t a = 0; a + 2 < x.size(); ++a) {
    auto const of = [&](int name) { return windows.all(name)[a]; };
    std::int64_t const room = x[a + 2] + of(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) +
                              of(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) -
                              of(CUDNN_ATTR_CONVOLUTION_DILATIONS) * (w[a + 2] - 1) - 1;
    r = r && room >= 0 && room / of(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES) + 1 == y[a + 2] &&
        of(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) >= 0;
  }
  return r;
}

}  // namespace cuda_fake
