// SPDX-License-Identifier: BSL-1.0
// One kernel, run a number of times, for the instructions it takes to be counted: rvv_kernels CASE HOW TIMES, where HOW
// is `library` or `plain`, loops as one writes them by hand. The library is built for vectors of any length and, with
// xsimd, for vectors of one length; plain loops are built without vectors. The result is compared with that of plain
// loops in double; status 1 if it is wrong.
#include <dfdx/dfdx.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#if !defined(DFDX_RVV)
#include <dfdx/kernels/simd/transpose.hpp>
#endif

namespace {

using namespace dfdx;

constexpr int elements = 16384, rows = 8, columns = 512, side = 128;

template <class T>
float difference(T const& got, std::vector<double> const& want) {
  double most = 0, size = 1e-30;
  auto const* x = got.data();
  for (std::size_t i = 0; i < want.size(); ++i) {
    most = std::fmax(most, std::abs(static_cast<double>(x[i]) - want[i]));
    size = std::fmax(size, std::abs(want[i]));
  }
  return static_cast<float>(most / size);
}

// Runs one of two ways, and compares the last result with the truth. What the library gives is copied once.
template <class Library, class Plain, class Truth>
int run(char const* how, int times, int size, Library const& library, Plain const& plain,
        Truth const& truth) {
  std::vector<double> want(static_cast<std::size_t>(size));
  truth(want.data());
  std::vector<float> out(want.size());
  for (int t = 0; t < times; ++t) {
    if (std::strcmp(how, "plain") == 0) plain(out.data());
    else library(out.data(), t + 1 == times);
    asm volatile("" ::"r"(out.data()) : "memory");
  }
  float const error = difference(out, want);
  if (error < 2e-5f) return 0;
  std::printf("wrong by %g\n", static_cast<double>(error));
  return 1;
}

double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); }

template <int N>
int product(char const* how, int times) {
  auto const a = randn<float, N, N>(Key{1}), b = randn<float, N, N>(Key{2});
  auto const multiply =
      compile([](Tensor<float, N, N> const& x, Tensor<float, N, N> const& y) { return matmul(x, y); });
  float const *x = a.data(), *y = b.data();
  return run(
      how, times, N * N,
      [&](float* out, bool last) {
        auto const c = multiply(a, b);
        if (last) std::memcpy(out, c.data(), sizeof(float) * N * N);
      },
      [&](float* out) {
        // Rows of the second factor in the inner loop, four rows of the first at a time.
        for (int i = 0; i < N; i += 4)
          for (int j = 0; j < N; j += 4) {
            float sum[4][4] = {};
            for (int p = 0; p < N; ++p)
              for (int r = 0; r < 4; ++r)
                for (int c = 0; c < 4; ++c) sum[r][c] += x[(i + r) * N + p] * y[p * N + j + c];
            for (int r = 0; r < 4; ++r)
              for (int c = 0; c < 4; ++c) out[(i + r) * N + j + c] = sum[r][c];
          }
      },
      [&](double* out) {
        for (int i = 0; i < N; ++i)
          for (int j = 0; j < N; ++j) out[i * N + j] = 0;
        for (int i = 0; i < N; ++i)
          for (int p = 0; p < N; ++p)
            for (int j = 0; j < N; ++j)
              out[i * N + j] += static_cast<double>(x[i * N + p]) * static_cast<double>(y[p * N + j]);
      });
}

template <class F, class Plain, class Truth>
int map_case(char const* how, int times, F const& f, Plain const& plain, Truth const& truth) {
  using Row = Tensor<float, elements>;
  Row const a = randn<float, elements>(Key{1}), b = randn<float, elements>(Key{2});
  Row const x = randn<float, elements>(Key{3}), r = randn<float, elements>(Key{4});
  auto const g = compile(f);
  float const *pa = a.data(), *pb = b.data(), *px = x.data(), *pr = r.data();
  return run(
      how, times, elements,
      [&](float* out, bool last) {
        auto const y = g(a, b, x, r);
        if (last) std::memcpy(out, y.data(), sizeof(float) * elements);
      },
      [&](float* out) {
        for (int i = 0; i < elements; ++i) out[i] = plain(pa[i], pb[i], px[i], pr[i]);
      },
      [&](double* out) {
        for (int i = 0; i < elements; ++i)
          out[i] = truth(static_cast<double>(pa[i]), static_cast<double>(pb[i]), static_cast<double>(px[i]),
                         static_cast<double>(pr[i]));
      });
}

using Row = Tensor<float, elements>;

struct GeluMap {
  constexpr auto operator()(Row const& a, Row const& b, Row const& x, Row const& r) const {
    return gelu(a * x + b) + r;
  }
};
struct Axpy {
  constexpr auto operator()(Row const& a, Row const& b, Row const& x, Row const&) const { return a * x + b; }
};

int softmax_rows(char const* how, int times) {
  auto const x = randn<float, rows, columns>(Key{1});
  auto const f = compile([](Tensor<float, rows, columns> const& v) { return softmax<1>(v); });
  float const* p = x.data();
  auto const plain = [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    for (int i = 0; i < rows; ++i) {
      float const* row = p + i * columns;
      T most = row[0], sum = 0;
      for (int j = 1; j < columns; ++j) most = row[j] > most ? static_cast<T>(row[j]) : most;
      for (int j = 0; j < columns; ++j) sum += out[i * columns + j] = std::exp(static_cast<T>(row[j]) - most);
      for (int j = 0; j < columns; ++j) out[i * columns + j] /= sum;
    }
  };
  return run(
      how, times, rows * columns,
      [&](float* out, bool last) {
        auto const y = f(x);
        if (last) std::memcpy(out, y.data(), sizeof(float) * rows * columns);
      },
      plain, plain);
}

int sum_of(char const* how, int times) {
  auto const x = abs(randn<float, elements>(Key{1}));
  auto const f = compile([](Row const& v) { return sum(v); });
  float const* p = x.data();
  auto const plain = [&](auto* out) {
    std::remove_pointer_t<decltype(out)> s = 0;
    for (int i = 0; i < elements; ++i) s += p[i];
    *out = s;
  };
  return run(how, times, 1, [&](float* out, bool) { *out = f(x).item(); }, plain, plain);
}

int transposed(char const* how, int times) {
  auto const x = randn<float, side, side>(Key{1});
  float const* p = x.data();
  auto const plain = [&](auto* out) {
    for (int i = 0; i < side; ++i)
      for (int j = 0; j < side; ++j) out[i * side + j] = p[j * side + i];
  };
  return run(
      how, times, side * side,
      [&](float* out, bool) {
#if defined(DFDX_RVV)
        kernels::rvv::transpose(p, index_t{1}, index_t{side}, index_t{side}, index_t{side}, out,
                                index_t{side});
#else
        kernels::transpose(p, side, side, side, out, side);
#endif
      },
      plain, plain);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  std::string const name = arguments[1];
  char const* how = arguments[2];
  int const times = std::atoi(arguments[3]);
  if (name == "gelu")
    return map_case(
        how, times, GeluMap{},
        [](float a, float b, float x, float r) {
          float const v = a * x + b;
          return 0.5f * v * (1 + std::erf(v * 0.70710678f)) + r;
        },
        [](double a, double b, double x, double r) { return gelu_of(a * x + b) + r; });
  if (name == "axpy")
    return map_case(
        how, times, Axpy{}, [](float a, float b, float x, float) { return a * x + b; },
        [](double a, double b, double x, double) { return a * x + b; });
  if (name == "softmax") return softmax_rows(how, times);
  if (name == "sum") return sum_of(how, times);
  if (name == "transpose") return transposed(how, times);
  if (name == "gemm64") return product<64>(how, times);
  if (name == "gemm256") return product<256>(how, times);
  return 2;
}
