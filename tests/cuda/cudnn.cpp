// SPDX-License-Identifier: BSL-1.0
// What the cuDNN of this machine says to convolutions as dfdx describes them: nothing is computed, so no GPU is needed
// but the properties of one, an H200.
#include <dfdx/kernels/cuda/cudnn.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace tests::cuda_cudnn {

using namespace dfdx;
using namespace dfdx::cuda_runtime;

namespace {

// Of an H200, as cudaGetDeviceProperties has them.
constexpr char h200[] = R"({
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
  "multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,
  "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
  "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32,
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1,
  "deviceVer": 900, "driverVer": 13000, "totalGlobalMem": 150000000000, "cudaDeviceId": 0,
  "deviceName": "NVIDIA H200"})";

CudnnPart const& properties() {
  static CudnnPart const p = [] {
    CudnnPart r(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    r.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, h200, std::size(h200) - 1);
    return std::move(r.finish());
  }();
  return p;
}

struct Layer {
  std::int64_t batch, in, out, groups;
  int axes;
  std::array<std::int64_t, 3> extent;
  Window window;
  bool channels_last = false;
};
Convolution::Operand dense(std::int64_t n, std::int64_t channels, int axes,
                           std::array<std::int64_t, 3> const& extent, bool channels_last) {
  Convolution::Operand r;
  r.extent = {n, channels};
  std::int64_t apart = channels_last ? channels : 1;
  for (int a = axes; a-- > 0;) {
    auto const i = static_cast<std::size_t>(a);
    r.extent[i + 2] = extent[i], r.step[i + 2] = apart, apart *= extent[i];
  }
  r.step[1] = channels_last ? 1 : apart;
  r.step[0] = channels_last ? apart : apart * channels;
  return r;
}
Convolution described(ConvDoes does, DType dtype, Layer const& s) {
  std::array<std::int64_t, 3> weights{}, result{};
  std::array<Window, 3> windows{};
  for (std::size_t a = 0; a < static_cast<std::size_t>(s.axes); ++a) {
    windows[a] = s.window;
    weights[a] = s.window.size;
    result[a] = (s.extent[a] + 2 * s.window.before - s.window.reach()) / s.window.stride + 1;
  }
  auto const x = dense(s.batch, s.in, s.axes, s.extent, s.channels_last);
  auto const w = dense(s.out, s.in / s.groups, s.axes, weights, false);
  auto const y = dense(s.batch, s.out, s.axes, result, false);
  if (does == ConvDoes::result) return Convolution::of(does, dtype, s.axes + 2, {x, w, y}, windows);
  if (does == ConvDoes::input) return Convolution::of(does, dtype, s.axes + 2, {y, w, x}, windows);
  return Convolution::of(does, dtype, s.axes + 2, {x, y, w}, windows);
}
CudnnPlan plan(Convolution const& c, std::int64_t alignment = 16) {
  return CudnnPlan::make(c, alignment, {nullptr, &properties()});
}

constexpr Window three{3, 1, 1, 1};

}  // namespace

TEST_CASE("the installed cuDNN has plans for convolutions and their gradients") {
  if (Cudnn::version() == 0) SKIP("SKIPPED: no cuDNN 9 found");
  if (!properties().fine()) SKIP("SKIPPED: this cuDNN takes no described device");
  for (Layer const& s :
       {Layer{32, 64, 64, 1, 2, {56, 56}, three}, Layer{128, 1, 32, 1, 2, {28, 28}, {3, 1, 1, 0}},
        Layer{8, 64, 256, 1, 2, {56, 56}, {1, 1, 1, 0}}, Layer{8, 3, 64, 1, 2, {224, 224}, {7, 2, 1, 3}},
        Layer{8, 32, 32, 4, 2, {28, 28}, three}, Layer{8, 128, 128, 128, 2, {28, 28}, three},
        Layer{4, 16, 24, 1, 2, {17, 19}, {3, 2, 2, 1}}, Layer{16, 64, 64, 1, 1, {500}, {5, 1, 1, 2}},
        Layer{2, 16, 32, 1, 3, {16, 20, 24}, three}, Layer{4, 64, 64, 1, 2, {30, 30}, three, true}})
    for (DType const dtype : {DType::f32, DType::f16, DType::bf16})
      for (ConvDoes const does : {ConvDoes::result, ConvDoes::input, ConvDoes::weight}) {
        CAPTURE(s.in, s.out, s.groups, s.axes, s.window.size, s.channels_last, static_cast<int>(dtype),
                static_cast<int>(does));
        Convolution const c = described(does, dtype, s);
        REQUIRE(c.axes == (s.axes == 3 ? 3 : 2));
        CudnnPlan const p = plan(c);
        CHECK(p.found());
        CHECK(p.workspace() <= c.workspace());
      }
  Convolution const c = described(ConvDoes::result, DType::f64, {2, 8, 8, 1, 2, {12, 12}, three});
  CHECK(plan(c).found());
  CHECK(plan(described(ConvDoes::result, DType::bf16, {2, 8, 8, 1, 2, {12, 12}, three}), 2).found());
  Convolution one_sided = described(ConvDoes::input, DType::bf16, {2, 8, 8, 1, 2, {12, 12}, three});
  one_sided.after = {0, 0, 0};
  one_sided.y.extent[2] = one_sided.y.extent[3] = 11;
  one_sided.y.step = {8 * 121, 121, 11, 1, 1};
  CHECK(plan(one_sided).found());
}

TEST_CASE("what cuDNN is not asked for") {
  Layer const s{2, 8, 8, 1, 2, {12, 12}, three};
  Convolution const c = described(ConvDoes::result, DType::f32, s);
  std::array<Window, 3> const windows{three, three};
  CHECK(Convolution::of(ConvDoes::result, DType::f32, 4, {c.x, c.w, c.y}, windows).axes == 2);
  Convolution::Operand twice = c.x, backwards = c.x, empty = c.x, large = c.x, ends = c.y;
  twice.step[0] = 0, backwards.step[3] = -1, empty.extent[0] = 0, large.step[0] = std::int64_t{1} << 31;
  for (Convolution::Operand const& x : {twice, backwards, empty, large})
    CHECK(Convolution::of(ConvDoes::result, DType::f32, 4, {x, c.w, c.y}, windows).axes == 0);
  ends.extent[3] = 10;  // windows that end before the input does
  CHECK(Convolution::of(ConvDoes::result, DType::f32, 4, {c.x, c.w, ends}, windows).axes == 0);
  CHECK(c.work() == 2 * 8 * 144 * 72);
  CHECK(described(ConvDoes::weight, DType::f32, {2, 8, 8, 1, 1, {12}, three}).x.extent ==
        std::array<std::int64_t, 5>{2, 8, 1, 12, 1});
}

}  // namespace tests::cuda_cudnn
