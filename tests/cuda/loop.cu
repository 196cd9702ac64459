// SPDX-License-Identifier: BSL-1.0
// The CUDA backend's kernels of real programs: traced, fused and planned by nvcc's front end, then generated from the
// descriptions that the CPU's kernels are made of. main compares the device with the CPU, where there is a device.
#include <cmath>
#include <cstdio>
#include <tuple>

#include <dfdx/cuda.hpp>
#include <dfdx/optim/adam.hpp>
#include <dfdx/vocabulary/scatter_reduce.hpp>

using namespace dfdx;

namespace {

constexpr std::size_t rows = 64, columns = 200;
using Matrix = Tensor<float, rows, columns>;
using Row = Tensor<float, columns>;
using Matrix2 = Tensor<float, columns, rows>;

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
constexpr kernels::LoopFacts facts(step_code_t<Program, 0>::value);

// The facts that choose the kernel.
template <class Program>
constexpr bool is_one_loop = Program::kernels == 1 && Program::steps[0].kind == graph::Step::Kind::loop;
static_assert(is_one_loop<Map> && is_one_loop<Rows> && is_one_loop<Norm> && is_one_loop<Dynamic> &&
              is_one_loop<Sums>);
static_assert(facts<Map>.is_map() && facts<Map>.phases == 1);
static_assert(!facts<Rows>.is_map() && facts<Rows>.phases == 3);  // largest, sum of exponentials, quotients
static_assert(!facts<Norm>.is_map() && facts<Norm>.phases == 3);  // mean, variance, result
static_assert(Body<Rows>::rows(nullptr) == rows && Body<Rows>::row_size(nullptr) == columns);
static_assert(kernels::cuda::RowsKernel<step_code_t<Rows, 0>>::threads == 224);
static_assert(!Map::is_static || Map::arena_bytes >= static_cast<index_t>(rows * columns * sizeof(float)));
static_assert(!Dynamic::is_static && kernels::cuda::RowsKernel<step_code_t<Dynamic, 0>>::threads == 256);
// The exponentials of softmax wait for their sum in shared memory, or where that is too small in a row of scratch, one
// for each block; those of a map need none.
using LongRows = program<Softmax, Tensor<float, rows, 20000>>;
static_assert(kernels::cuda::LoopStep<step_code_t<Rows, 0>>::workspace(nullptr) == 0);
static_assert(kernels::cuda::LoopStep<step_code_t<LongRows, 0>>::workspace(nullptr) ==
              rows * 20000 * static_cast<index_t>(sizeof(float)));
static_assert(kernels::cuda::LoopStep<step_code_t<Map, 0>>::workspace(nullptr) == 0);

// Four elements a thread, and a sum over everything that blocks share.
using Large = Tensor<float, 256, 1024>;
struct Everything {
  constexpr auto operator()(auto const& x) const { return sum(square(x)); }
};
static_assert(kernels::cuda::MapKernel<step_code_t<program<Activate, Large, Tensor<float, 1024>>, 0>>::pack ==
              4);
static_assert(kernels::cuda::RowsKernel<step_code_t<program<Softmax, Large>, 0>>::threads == 256);
static_assert(kernels::cuda::WholeLoop<step_code_t<program<Everything, Large>, 0>>::parts(nullptr) == 32);
static_assert(!kernels::cuda::WholeLoop<step_code_t<program<Activate, Large, Large>, 0>>::pays());

template <class T>
T filled(T x) {
  using E = typename T::value_type;
  auto* const p = reinterpret_cast<E*>(x.bytes());
  for (index_t i = 0; i < x.size(); ++i) p[i] = static_cast<E>(static_cast<float>(i * 37 % 101) / 50.f - 1.f);
  return x;
}
template <class T>
T made() {
  return filled(T(Array(T::static_meta)));
}

// The same program on the CPU and on the device, there twice: the second time as a captured graph.
template <class F, class... A>
bool agrees(char const* name, F, A const&... args) {
  auto f = compile(F{});
  auto const expected = f(args...);
  using E = typename decltype(expected)::value_type;
  double worst = 0;
  std::tuple const there(to(cuda(), args)...);
  for (int k = 0; k < 3; ++k) {
    auto const found = to(Device{}, std::apply([&](auto const&... a) { return f(a...); }, there));
    for (index_t i = 0; i < expected.size(); ++i) {
      double const a = static_cast<double>(reinterpret_cast<E const*>(found.bytes())[i]),
                   b = static_cast<double>(reinterpret_cast<E const*>(expected.bytes())[i]);
      double const d = std::fabs(a - b) / (1 + std::fabs(b));
      if (!(d <= worst) && !std::isnan(worst)) worst = d;  // NaN stays
    }
  }
  double const allowed = sizeof(E) == 2 ? 1e-2 : 1e-4;
  std::printf("%s: %g, %g is allowed\n", name, worst, allowed);
  return worst <= allowed;
}

struct ColumnSums {
  constexpr auto operator()(auto const& x) const { return sum<0>(square(x)); }
};
struct Running {
  constexpr auto operator()(auto const& first, auto const& x) const {
    return scan(
               [](auto const& carry, auto const& v) {
                 auto const next = carry * 0.5f + v;
                 return std::pair(next, next * carry);
               },
               first, x)
        .second;
  }
};
// Stacks a struct of each step; what comes to one place is joined.
struct Noted {
  Tensor<float> before, after;
  DFDX_FIELDS(before, after)
};
struct Notes {
  constexpr auto operator()(Tensor<float> const& first, Tensor<float, 40> const& x) const {
    auto const all = scan(
        [](Tensor<float> const& carry, Tensor<float> const& v) {
          auto const next = carry * 0.5f + v;
          return std::pair(next, Noted{carry, next});
        },
        first, x);
    return all.second[&Noted::before] * all.second[&Noted::after];
  }
};
struct Joined {
  constexpr auto operator()(auto const& x, auto const& index, auto const& src) const {
    return tanh(index_reduce<0, Reduce::amax, false>(x, index, src)) +
           index_reduce<0, Reduce::mean>(x, index, src);
  }
};
struct Dense {
  constexpr auto operator()(auto const& x, auto const& w, auto const& b) const {
    return gelu(matmul(x, w) + b);
  }
};
struct Product {
  constexpr auto operator()(auto const& x, auto const& y) const { return matmul(transpose(x), y); }
};

struct Entropy {
  constexpr auto operator()(auto const& table, auto const& index, auto const& labels) const {
    return cross_entropy(take(table, index), labels);
  }
};
template <class T>
T indices(index_t below) {
  T x = T(Array(T::static_meta));
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<std::int32_t>(i * 7 % below);
  return x;
}
using Places = Tensor<std::int32_t, 50>;
using Labels = Tensor<std::int32_t, 24>;

struct Mlp {
  nn::Linear<32, 48> fc1;
  nn::Linear<48, 10> fc2;
  DFDX_FIELDS(fc1, fc2)
  constexpr auto operator()(auto const& x) const { return fc2(relu(fc1(x))); }
};
constexpr auto loss = [](auto const& model, auto const& x, auto const& labels) {
  return cross_entropy(model(x), labels);
};
// The last of some losses of a training run.
double trained(Device device) {
  auto model = to(device, init<Mlp>(1));
  auto step = train_step(loss, optim::AdamW{.lr = 1e-2f});
  auto const x = to(device, made<Tensor<float, 24, 32>>());
  auto const y = to(device, indices<Labels>(10));
  double last = 0;
  for (int k = 0; k < 10; ++k) last = static_cast<double>(step(model, x, y));
  return last;
}

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("SKIPPED: no CUDA device\n");
    return 77;
  }
  bool good = agrees("gelu(x) * 2 + y", Activate{}, made<Matrix>(), made<Row>());
  good = agrees("the same, large", Activate{}, made<Large>(), made<Tensor<float, 1024>>()) && good;
  good = agrees("softmax", Softmax{}, made<Matrix>()) && good;
  good = agrees("softmax of long rows", Softmax{}, made<Large>()) && good;
  good = agrees("a sum over everything", Everything{}, made<Large>()) && good;
  good = agrees("layer_norm", Normalise{}, made<Matrix>(), made<Row>(), made<Row>()) && good;
  using Half = Tensor<float16, dyn, dyn>;
  good =
      agrees("softmax of dyn extents", Halves{}, filled(Half(Array(Meta{DType::f16, make_shape(7, 300)})))) &&
      good;
  good = agrees("sums of rows", RowSums{}, made<Tensor<double, rows, 3, columns>>()) && good;
  good = agrees("sums over rows", ColumnSums{}, made<Matrix>()) && good;
  good = agrees("a scan", Running{}, made<Tensor<float>>(), made<Tensor<float, 40>>()) && good;
  good = agrees("a scan of structs", Notes{}, made<Tensor<float>>(), made<Tensor<float, 40>>()) && good;
  good = agrees("parts joined at places", Joined{}, made<Tensor<float, 12, 20>>(), indices<Places>(12),
                made<Tensor<float, 50, 20>>()) &&
         good;
  good = agrees("a dense layer", Dense{}, made<Tensor<float, 33, 200>>(), made<Matrix2>(),
                made<Tensor<float, 64>>()) &&
         good;
  good = agrees("a product of halves", Product{}, made<Tensor<bfloat16, 70, 65>>(),
                made<Tensor<bfloat16, 70, 9>>()) &&
         good;
  good = agrees("gradients of rows by index", grad(Entropy{}), made<Tensor<float, 30, 12>>(),
                indices<Places>(30), indices<Places>(12)) &&
         good;
  double const here = trained(Device{}), there = trained(cuda());
  std::printf("training: %g on the CPU, %g on the device\n", here, there);
  return good && std::fabs(here - there) <= 1e-3 ? 0 : 1;
}
