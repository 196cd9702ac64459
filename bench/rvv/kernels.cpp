// SPDX-License-Identifier: BSL-1.0
// One kernel, run a number of times, for the instructions it takes to be counted: rvv_kernels CASE HOW TIMES, where HOW
// is `library` or `plain`, loops as one writes them by hand. The library is built for vectors of any length and, with
// xsimd, for vectors of one length; plain loops are built without vectors. The result is compared with that of plain
// loops in double; status 1 if it is wrong, 3 if there is no such kernel.
#include <dfdx/dfdx.hpp>
#include <dfdx/kernels/quantized.hpp>
#include <dfdx/models/decoder_kernels.hpp>

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
int run(char const* how, int times, int size, Library const& library, Plain const& plain, Truth const& truth,
        float tolerance = 2e-5f) {
  std::vector<double> want(static_cast<std::size_t>(size));
  truth(want.data());
  std::vector<float> out(want.size());
  for (int t = 0; t < times; ++t) {
    if (std::strcmp(how, "plain") == 0) plain(out.data());
    else library(out.data(), t + 1 == times);
    asm volatile("" ::"r"(out.data()) : "memory");
  }
  float const error = difference(out, want);
  if (error < tolerance) return 0;
  std::printf("wrong by %g\n", static_cast<double>(error));
  return 1;
}

double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x * 0.70710678118654752440)); }

// Of numbers T; the plain loops multiply them as floats.
template <class T, int N>
int product(char const* how, int times) {
  auto const numbers = [](Key key) {
    auto const x = randn<float, N, N>(key);
    return std::is_integral_v<T> ? round(x * 25.0f) : x;
  };
  auto const wide_a = numbers(Key{1}), wide_b = numbers(Key{2});
  auto const a = cast<T>(wide_a), b = cast<T>(wide_b);
  auto const multiply =
      compile([](Tensor<T, N, N> const& x, Tensor<T, N, N> const& y) { return matmul(x, y); });
  float const *x = wide_a.data(), *y = wide_b.data();
  return run(
      how, times, N * N,
      [&](float* out, bool last) {
        auto const c = multiply(a, b);
        if (last)
          for (int i = 0; i < N * N; ++i) out[i] = static_cast<float>(c.data()[i]);
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
      },
      std::is_same_v<T, bfloat16> ? 1e-2f
      : sizeof(T) == 2            ? 2e-3f
                                  : 2e-5f);
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

// The places of the largest numbers in windows of 2 x 2, of 16 samples.
int pooled(char const* how, int times) {
  constexpr int samples = 16, line = 32, half = line / 2;
  auto const x = randn<float, samples, line, line>(Key{1});
  Window const one{1, 1, 1, 0}, two{2, 2, 1, 0};
  index_t const n[] = {1, line, line}, m[] = {1, half, half},
                windows[] = {one.packed(), two.packed(), two.packed()};
  std::vector<std::int32_t> places(samples * half * half);
  auto const plain = [&](auto* out) {
    for (int b = 0; b < samples; ++b) {
      float const* const p = x.data() + b * line * line;
      for (int i = 0; i < half; ++i)
        for (int j = 0; j < half; ++j) {
          int const first = 2 * i * line + 2 * j;
          int best = first;
          for (int const at : {first + 1, first + line, first + line + 1})
            if (p[at] > p[best] || (p[at] != p[at] && p[best] == p[best])) best = at;
          out[(b * half + i) * half + j] = static_cast<std::remove_pointer_t<decltype(out)>>(best);
        }
    }
  };
  return run(
      how, times, samples * half * half,
      [&](float* out, bool last) {
        kernels::window_argmax(x.data(), places.data(), static_cast<int>(sizeof places[0]), samples, n, m,
                               windows);
        if (last)
          for (std::size_t i = 0; i < places.size(); ++i) out[i] = static_cast<float>(places[i]);
      },
      plain, plain);
}

// From each column the number in the row that an index says.
int picked(char const* how, int times) {
#if !defined(DFDX_RVV)
  if (std::strcmp(how, "library") == 0) return 3;
#endif
  auto const x = randn<float, 64, columns>(Key{1});
  float const* p = x.data();
  std::vector<std::int64_t> places(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int64_t>(i * i * 7 % 64);
  auto const plain = [&](auto* out) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        index_t const at = places[static_cast<std::size_t>(i * columns + j)];
        if (at < 0 || at >= 64) std::abort();
        out[i * columns + j] = p[at * columns + j];
      }
  };
  return run(
      how, times, rows * columns,
      [&](float* out, bool) {
#if defined(DFDX_RVV)
        for (int i = 0; i < rows; ++i)
          if (kernels::rvv::gather_row(p, index_t{columns}, index_t{1}, places.data() + i * columns,
                                       index_t{1}, index_t{64}, out + i * columns, index_t{1},
                                       index_t{columns}) != columns)
            std::abort();
#else
        static_cast<void>(out);
#endif
      },
      plain, plain);
}

int attention(char const* how, int times) {
  constexpr int n = 64;
  auto const q = randn<float, n, n>(Key{1}), k = randn<float, n, n>(Key{2}), v = randn<float, n, n>(Key{3});
  float const *qs = q.data(), *ks = k.data(), *vs = v.data();
  auto const plain = [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    for (int i = 0; i < n; ++i) {
      T scores[n], most = -1e30f, sum = 0;
      for (int j = 0; j < n; ++j) {
        T s = 0;
        for (int c = 0; c < n; ++c) s += static_cast<T>(qs[i * n + c]) * static_cast<T>(ks[j * n + c]);
        scores[j] = s * T(0.125f);
        most = scores[j] > most ? scores[j] : most;
      }
      for (T& s : scores) sum += s = std::exp(s - most);
      for (int c = 0; c < n; ++c) out[i * n + c] = 0;
      for (int j = 0; j < n; ++j) {
        T const weight = scores[j] / sum;
        for (int c = 0; c < n; ++c) out[i * n + c] += weight * static_cast<T>(vs[j * n + c]);
      }
    }
  };
  kernels::BlockedAttention<float> const blocks({n, n, n, n, 0.125});
  std::vector<float> sums(n);
  return run(
      how, times, n * n,
      [&](float* out, bool) { blocks.forward({qs, n}, {ks, n}, {vs, n}, {out, n}, sums.data()); }, plain,
      plain);
}

// 64 rows of 512 numbers in a block format with a vector; the plain loop is the library's own.
template <Quant F>
int quantized(char const* how, int times) {
  constexpr int n = 64, k = 512, length = q8_length(F), group = static_cast<int>(group_length(F));
  constexpr std::size_t block = block_bytes(F), row = k / length * block;
  std::vector<std::byte> w(n * row);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = static_cast<std::byte>(i * i * 31 % 251);
  for (std::size_t i = 0; i < w.size(); i += block) {
    float16 const scale(0.01f + 0.001f * static_cast<float>(i % 7));
    for (std::size_t at : {0, F == Quant::q6_k ? 208 : 0, F == Quant::q4_k ? 2 : 0})
      std::memcpy(&w[i + at], &scale.bits, 2);
  }
  std::vector<Q8Block<length>> q(k / length);
  for (std::size_t b = 0; b < q.size(); ++b) {
    q[b].scale = 0.01f + 0.003f * static_cast<float>(b % 5);
    for (std::size_t j = 0; j < length; ++j)
      q[b].q[j] = static_cast<std::int8_t>((b * 37 + j * j * 29) % 255 - 127);
    for (int g = 0; g < length / 16; ++g) {
      q[b].sums[g] = 0;
      for (int j = 0; j < 16; ++j)
        q[b].sums[g] = static_cast<std::int16_t>(q[b].sums[g] + q[b].q[g * 16 + j]);
    }
  }
  return run(
      how, times, n,
      [&](float* out, bool) { kernels::multiply_quantized<F>(1, n, k, q.data(), w.data(), row, out, n); },
      [&](float* out) {
        for (std::size_t i = 0; i < n; ++i) out[i] = dfdx::quantized_dot<F>(w.data() + i * row, q.data(), k);
      },
      [&](double* out) {
        for (std::size_t i = 0; i < n; ++i) {
          out[i] = 0;
          for (std::size_t b = 0; b < k / length; ++b) {
            UnpackedBlock<F> const u(w.data() + i * row + b * block);
            for (int j = 0; j < length; ++j)
              out[i] +=
                  (static_cast<double>(u.scale[j / group]) * u.q[j] + static_cast<double>(u.low[j / group])) *
                  static_cast<double>(q[b].scale) * q[b].q[j];
          }
        }
      });
}

// One by one the plain loop computes them.
int drawn(char const* how, int times, bool normal) {
  Key const key{5};
  auto const one = [&](std::uint64_t i) { return normal ? normal_at(key, i) : uniform_at(key, i); };
  auto const plain = [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    for (std::uint64_t i = 0; i < elements; ++i) out[i] = static_cast<T>(one(i));
  };
  return run(
      how, times, elements,
      [&](float* out, bool) {
        if (normal) kernels::draw_normal(key, 0, out, index_t{elements});
        else kernels::draw_uniform(key, 0, out, index_t{elements});
      },
      plain, plain);
}

// Windows of three by three over 16 single channels of 32 x 32, or what the weights' gradient is.
int depthwise(char const* how, int times, bool weights) {
  constexpr int channels = 16, line = 32;
  auto const x = randn<float, channels, line, line>(Key{1}), y = randn<float, channels, line, line>(Key{2});
  auto const w = randn<float, channels, 9>(Key{3});
  ConvGeometry g{};
  g.batch = 1, g.groups = channels, g.in = 1, g.out = 1;
  for (int i = 1; i < 3; ++i) g.x[i] = line, g.y[i] = line, g.w[i] = Window{3, 1, 1, 1};
  kernels::Conv<float> const conv(g);
  float const *px = x.data(), *py = y.data(), *pw = w.data();
  auto const plain = [&](auto* out) {
    for (int c = 0; c < channels; ++c)
      for (int k = 0; k < 9 && weights; ++k) out[c * 9 + k] = 0;
    for (int c = 0; c < channels; ++c)
      for (int i = 0; i < line; ++i)
        for (int j = 0; j < line; ++j) {
          int const at = (c * line + i) * line + j;
          std::remove_pointer_t<decltype(out)> sum = 0;
          for (int a = i == 0 ? 1 : 0; a < (i + 1 == line ? 2 : 3); ++a)
            for (int b = j == 0 ? 1 : 0; b < (j + 1 == line ? 2 : 3); ++b) {
              float const v = px[at + (a - 1) * line + b - 1];
              if (weights) out[c * 9 + a * 3 + b] += v * py[at];
              else sum += v * pw[c * 9 + a * 3 + b];
            }
          if (!weights) out[at] = sum;
        }
  };
  return run(
      how, times, weights ? channels * 9 : channels * line * line,
      [&](float* out, bool) {
        if (weights) conv.weight(px, out, py);
        else conv.forward(px, pw, out);
      },
      plain, plain);
}

// One position's attention: 4 heads of 64 that share keys and values, 128 places.
int decoded(char const* how, int times) {
  constexpr int heads = 4, size = 64, n = 128;
  auto const q = randn<float, heads, size>(Key{1});
  auto const keys = randn<float, n, size>(Key{2}), values = randn<float, n, size>(Key{3});
  float const *pq = q.data(), *pk = keys.data(), *pv = values.data();
  std::vector<float> scores(heads * n);
  auto const plain = [&](auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    for (int h = 0; h < heads; ++h) {
      T p[n], most = T(-1e30f), sum = 0;
      for (int i = 0; i < n; ++i) {
        p[i] = 0;
        for (int j = 0; j < size; ++j)
          p[i] += static_cast<T>(pq[h * size + j]) * static_cast<T>(pk[i * size + j]);
        p[i] *= T(0.125f);
        most = p[i] > most ? p[i] : most;
      }
      for (T& e : p) sum += e = std::exp(e - most);
      for (int j = 0; j < size; ++j) out[h * size + j] = 0;
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < size; ++j) out[h * size + j] += p[i] / sum * static_cast<T>(pv[i * size + j]);
    }
  };
  return run(
      how, times, heads * size,
      [&](float* out, bool) {
        models::detail::attend_one(pq, pk, pv, heads, n, size, 0.125f, scores.data(), out);
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
  if (name == "gemm64") return product<float, 64>(how, times);
  if (name == "gemm256") return product<float, 256>(how, times);
  if (name == "bytes64") return product<std::int8_t, 64>(how, times);
  if (name == "half64") return product<float16, 64>(how, times);
  if (name == "bfloat64") return product<bfloat16, 64>(how, times);
  if (name == "attention") return attention(how, times);
  if (name == "gather") return picked(how, times);
  if (name == "pool") return pooled(how, times);
  if (name == "quantized") return quantized<Quant::q8_0>(how, times);
  if (name == "q4_k") return quantized<Quant::q4_k>(how, times);
  if (name == "q6_k") return quantized<Quant::q6_k>(how, times);
  if (name == "depthwise") return depthwise(how, times, false);
  if (name == "weights") return depthwise(how, times, true);
  if (name == "decode") return decoded(how, times);
  if (name == "uniform") return drawn(how, times, false);
  if (name == "normal") return drawn(how, times, true);
  return 2;
}
