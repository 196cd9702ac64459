// SPDX-License-Identifier: BSL-1.0
// The CUDA backend's kernels of real programs: traced, fused and planned by nvcc's front end, then generated from the
// descriptions that the CPU's kernels are made of. Compiled only; main runs where there is a device.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include <dfdx/cuda.hpp>

using namespace dfdx;

namespace {

constexpr std::size_t rows = 64, columns = 200;
using Matrix = Tensor<float, rows, columns>;
using Row = Tensor<float, columns>;

struct Activate {
  constexpr auto operator()(auto const& x, auto const& y) const { return gelu(x) * 2.0f + y; }
};
struct Softmax {
  constexpr auto operator()(auto const& x) const { return softmax(x); }
};
struct Normalise {
  constexpr auto operator()(auto const& x, auto const& weight, auto const& bias) const {
    return layer_norm(x, weight, bias, 1e-5f);
  }
};
// Extents that are known when it is called, and memory of 16 bits.
struct Halves {
  constexpr auto operator()(auto const& x) const { return softmax(x) * x; }
};
struct RowSums {
  constexpr auto operator()(auto const& x) const { return sum<-1>(exp(x)); }
};

using Map = program<Activate, Matrix, Row>;
using Rows = program<Softmax, Matrix>;
using Norm = program<Normalise, Matrix, Row, Row>;
using Dynamic = program<Halves, Tensor<float16, dyn, dyn>>;
using Sums = program<RowSums, Tensor<double, rows, 3, columns>>;

template <class Program>
using Body = kernels::Loop<step_code_t<Program, 0>, loop_code::scalar>;
template <class Program>
using Facts = kernels::LoopFacts<step_code_t<Program, 0>>;

// The facts that choose the kernel.
template <class Program>
constexpr bool is_one_loop = Program::kernels == 1 && Program::steps[0].kind == graph::Step::Kind::loop;
static_assert(is_one_loop<Map> && is_one_loop<Rows> && is_one_loop<Norm> && is_one_loop<Dynamic> &&
              is_one_loop<Sums>);
static_assert(Facts<Map>::is_map() && Facts<Map>::phases == 1);
static_assert(!Facts<Rows>::is_map() && Facts<Rows>::phases == 3);  // largest, sum of exponentials, quotients
static_assert(!Facts<Norm>::is_map() && Facts<Norm>::phases == 3);  // mean, variance, result
static_assert(Body<Rows>::rows(nullptr) == rows && Body<Rows>::row_size(nullptr) == columns);
static_assert(kernels::cuda::row_threads<step_code_t<Rows, 0>>() == 224);
static_assert(!Map::is_static || Map::arena_bytes >= static_cast<index_t>(rows * columns * sizeof(float)));
static_assert(!Dynamic::is_static && kernels::cuda::row_threads<step_code_t<Dynamic, 0>>() == 256);
// The exponentials of softmax wait for their sum in a row of scratch, one for each block; those of a map need none.
static_assert([] {
  index_t scratch = 0;
  for (int k = 0; k < Facts<Rows>::operands; ++k) scratch += Body<Rows>::scratch_size(k, 8, nullptr);
  return scratch;
}() == 8 * columns);

bool ok(cudaError_t e) {
  if (e != cudaSuccess) std::printf("%s\n", cudaGetErrorString(e));
  return e == cudaSuccess;
}

std::byte* managed(std::size_t bytes) {
  void* p = nullptr;
  return ok(cudaMallocManaged(&p, bytes == 0 ? 1 : bytes)) ? static_cast<std::byte*>(p) : nullptr;
}

// Runs the only step of a program on the CPU and on the device, on the same memory, and compares the results.
template <class P, class T>
bool agrees(char const* name, std::vector<index_t> const& elements, std::vector<index_t> symbols,
            index_t outputs) {
  using Code = step_code_t<P, 0>;
  constexpr index_t blocks = 8;  // fewer than rows, so that blocks take several
  constexpr graph::Step step = P::steps[0];
  symbols.resize(max_symbols);
  std::vector<std::byte*> inputs;
  for (index_t n : elements) {
    inputs.push_back(managed(static_cast<std::size_t>(n) * sizeof(T)));
    if (inputs.back() == nullptr) return false;
    for (index_t i = 0; i < n; ++i)
      reinterpret_cast<T*>(inputs.back())[i] = static_cast<T>(static_cast<float>(i * 37 % 101) / 50.f - 1.f);
  }
  auto const layout = P::layout(symbols.data());
  std::byte* const arena = managed(static_cast<std::size_t>(layout.buffers + layout.workspace));
  if (arena == nullptr) return false;
  typename P::Frame const frame{arena, inputs.data(), symbols.data(), &layout};
  T const* const result = reinterpret_cast<T const*>(P::address(P::plan.results[0].memory, frame));

  P::run(frame);
  std::vector<T> const expected(result, result + outputs);
  std::memset(arena, 0, static_cast<std::size_t>(layout.buffers));

  kernels::cuda::LoopArguments<Code> arguments;
  for (int i = 0; i < max_symbols; ++i) arguments.symbols[i] = symbols[static_cast<std::size_t>(i)];
  for (int k = 0; k < step.arguments; ++k) {
    graph::Argument const& a = P::plan.arguments[static_cast<std::size_t>(step.argument + k)];
    index_t const scratch = Body<P>::scratch_size(k, blocks, symbols.data());
    arguments.base[k] =
        scratch == 0 ? P::address(a, frame) : managed(static_cast<std::size_t>(scratch) * size_of(a.dtype));
  }
  if (!ok(kernels::cuda::launch(arguments, blocks)) || !ok(cudaDeviceSynchronize())) return false;
  double worst = 0;
  for (index_t i = 0; i < outputs; ++i) {
    double const a = static_cast<double>(result[i]),
                 b = static_cast<double>(expected[static_cast<std::size_t>(i)]);
    worst = std::fmax(worst, std::fabs(a - b) / (1 + std::fabs(b)));
  }
  double const allowed = sizeof(T) == 2 ? 2e-3 : 1e-5;
  std::printf("%s: %g, %g is allowed\n", name, worst, allowed);
  return worst <= allowed;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("SKIPPED: no CUDA device\n");
    return 77;
  }
  constexpr index_t n = rows * columns;
  bool good = agrees<Map, float>("gelu(x) * 2 + y", {n, columns}, {}, n);
  good = agrees<Rows, float>("softmax", {n}, {}, n) && good;
  good = agrees<Norm, float>("layer_norm", {n, columns, columns}, {}, n) && good;
  good = agrees<Dynamic, float16>("softmax of dyn extents", {7 * 300}, {7, 300}, 7 * 300) && good;
  good = agrees<Sums, double>("sums of rows", {3 * n}, {}, 3 * rows) && good;
  return good ? 0 : 1;
}
