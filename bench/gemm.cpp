// SPDX-License-Identifier: BSL-1.0
// Matrix products: checked against the reference, then timed. The roof is what a loop of independent multiply-adds
// reaches here (roof.hpp). With -DDFDX_BENCH_BLAS a BLAS stands beside it (OPENBLAS_NUM_THREADS=1), with
// -DDFDX_BENCH_DNNL oneDNN (OMP_NUM_THREADS=1). Every round times all contenders in turn; a row is the best of its
// rounds, since noise only adds. "+" marks the update C += scale A B; --quick stops after the training step.
#include <dfdx/kernels/simd/gemm.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "roof.hpp"

#if defined(DFDX_BENCH_BLAS)
#include <cblas.h>
#endif
#if defined(DFDX_BENCH_DNNL)
#include <oneapi/dnnl/dnnl.h>
#endif

namespace {

using namespace dfdx::kernels;
using Size = std::int64_t;

constexpr int rounds = 41;
double roof_f32 = 0;

// What a product is multiplied with; for an update large enough that the check of C sees a mistake in A B.
template <class T>
constexpr T scale_of(bool update) {
  return update ? T(-0.25) : T(1);
}

template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) : count_(count) {
    at_ = static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 127) / 64 * 64));
    for (std::size_t i = 0; i < count; ++i)
      at_[i] = static_cast<T>(static_cast<double>(i * 7919 % 1009) / 1009 - 0.5);
  }
  Buffer(Buffer const&) = delete;
  Buffer& operator=(Buffer const&) = delete;
  ~Buffer() { std::free(at_); }
  T* data() { return at_; }
  std::size_t size() const { return count_; }

 private:
  std::size_t count_;
  T* at_;
};

#if defined(DFDX_BENCH_BLAS)
void blas(float const* a, float const* b, float* c, Size m, Size n, Size k, bool ta, bool tb, bool add) {
  cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
              static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), scale_of<float>(add), a,
              static_cast<int>(ta ? m : k), b, static_cast<int>(tb ? k : n), add ? 1.0f : 0.0f, c,
              static_cast<int>(n));
}
void blas(double const* a, double const* b, double* c, Size m, Size n, Size k, bool ta, bool tb, bool add) {
  cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
              static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), scale_of<double>(add), a,
              static_cast<int>(ta ? m : k), b, static_cast<int>(tb ? k : n), add ? 1.0 : 0.0, c,
              static_cast<int>(n));
}
#endif

#if defined(DFDX_BENCH_DNNL)
void dnnl(float const* a, float const* b, float* c, Size m, Size n, Size k, bool ta, bool tb, bool add) {
  dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, scale_of<float>(add), a, ta ? m : k, b, tb ? k : n,
             add ? 1.0f : 0.0f, c, n);
}
#endif

// A peer's total stands in the table when it took part in every row.
struct Total {
  double time = 0;
  int rows = 0;
  void add(double t) { time += t, ++rows; }
};
Total our_total;
std::map<std::string, Total> totals;

// One row a peer, or one that says there is none.
void print_rows(bench::Row row, std::map<std::string, double> const& peers) {
  if (peers.empty()) bench::print(row);
  for (auto const& [name, time] : peers) {
    row.peer = name, row.peer_ms = time * 1e3;
    bench::print(row);
  }
}

template <class Shape, bool Add = false>
void row(char const* layout, gemm_sizes s = {}) {
  using T = typename Shape::type;
  auto pick = [](Size fixed, Size given) { return fixed >= 0 ? fixed : given; };
  Size const m = pick(Shape::m, s.m), n = pick(Shape::n, s.n), k = pick(Shape::k, s.k);
  Buffer<T> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
      c(static_cast<std::size_t>(m * n));
  Buffer<double> want(c.size());
  Buffer<char> room(workspace_bytes<Shape, add_scaled<T>>(s));
  auto ours = [&] {
    if constexpr (Add)
      gemm<Shape>(a.data(), b.data(), c.data(), room.data(), add_scaled<T>{scale_of<T>(Add), c.data(), n}, s);
    else gemm<Shape>(a.data(), b.data(), c.data(), room.data(), store_sum{}, s);
  };
  reference::gemm<double>(m, n, k, a.data(), pick(Shape::a_row, s.a_row), pick(Shape::a_col, s.a_col),
                          b.data(), pick(Shape::b_row, s.b_row), pick(Shape::b_col, s.b_col), want.data(), n);
  if constexpr (Add)
    for (std::size_t i = 0; i < c.size(); ++i)
      want.data()[i] = static_cast<double>(c.data()[i]) + scale_of<double>(Add) * want.data()[i];
  ours();
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    worst = std::max(worst, std::fabs(static_cast<double>(c.data()[i]) - want.data()[i]));
    largest = std::max(largest, std::fabs(want.data()[i]));
  }
  if (!(worst <= (sizeof(T) == 4 ? 1e-6 : 1e-14) * std::sqrt(static_cast<double>(k)) * 8)) {
    std::fprintf(stderr, "gemm: %s %ld %ld %ld is off by %g\n", layout, long(m), long(n), long(k), worst);
    std::exit(1);
  }

  double const flops = 2.0 * static_cast<double>(m * n * k), roof = roof_f32 * 4 / sizeof(T);
  std::vector<double> mine;
  [[maybe_unused]] std::map<std::string, std::vector<double>> theirs;
  [[maybe_unused]] bool const ta = layout[0] == 'T', tb = layout[1] == 'T';
  long const calls = bench::calls_for(ours, 1e-4);
  for (int round = 0; round < rounds; ++round) {
    mine.push_back(bench::time_of(ours, calls));
#if defined(DFDX_BENCH_BLAS)
    theirs["OpenBLAS"].push_back(
        bench::time_of([&] { blas(a.data(), b.data(), c.data(), m, n, k, ta, tb, Add); }, calls));
#endif
#if defined(DFDX_BENCH_DNNL)
    if constexpr (std::is_same_v<T, float>)
      theirs["oneDNN"].push_back(
          bench::time_of([&] { dnnl(a.data(), b.data(), c.data(), m, n, k, ta, tb, Add); }, calls));
#endif
  }
  double const time = bench::best(mine);
  our_total.add(time);
  std::map<std::string, double> peers;
  for (auto const& [name, times] : theirs) totals[name].add(peers[name] = bench::best(times));
  char text[80];
  std::snprintf(text, sizeof text, "%s %s%s %ldx%ldx%ld%s", sizeof(T) == 4 ? "f32" : "f64", layout,
                Add ? "+" : "", long(m), long(n), long(k), Shape::m < 0 ? " run-time" : "");
  bench::Row row{.bench = "gemm",
                 .name = text,
                 .ours_ms = time * 1e3,
                 .roof = flops / time / roof,
                 .error = worst / largest};
  std::snprintf(text, sizeof text, "%.1f GFLOP/s", flops / time / 1e9);
  row.note = text;
  print_rows(row, peers);
}

void total(char const* what) {
  std::map<std::string, double> peers;
  for (auto const& [name, t] : totals)
    if (t.rows == our_total.rows) peers[name] = t.time;
  print_rows({.bench = "gemm", .name = std::string("total: ") + what, .ours_ms = our_total.time * 1e3},
             peers);
  our_total = {};
  totals.clear();
}

template <class T>
using run_time_shape =
    gemm_shape<T, run_time, run_time, run_time, run_time, run_time, run_time, run_time, run_time>;

template <class T>
void run_time_row(char const* layout, Size m, Size n, Size k) {
  gemm_sizes s{.m = m, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = n, .b_col = 1, .c_row = n};
  if (layout[0] == 'T') s.a_row = 1, s.a_col = m;
  if (layout[1] == 'T') s.b_row = 1, s.b_col = k;
  row<run_time_shape<T>>(layout, s);
}

}  // namespace

int main(int argc, char** argv) {
  bool const quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  roof_f32 = bench::measure_roof(rounds);
  std::fprintf(stderr, "roof: %.1f GFLOP/s f32, lanes of %d\n", roof_f32 / 1e9, lane_size<float>);

  row<gemm_nt<float, 32, 200, 30>>("NT");  // y = x W^T, three layers
  row<gemm_nt<float, 32, 200, 200>>("NT");
  row<gemm_nt<float, 32, 27, 200>>("NT");
  row<gemm_nn<float, 32, 200, 27>>("NN");  // dx = dy W
  row<gemm_nn<float, 32, 200, 200>>("NN");
  row<gemm_nn<float, 32, 30, 200>>("NN");
  row<gemm_tn<float, 27, 200, 32>, true>("TN");  // W += -lr dy^T x
  row<gemm_tn<float, 200, 200, 32>, true>("TN");
  row<gemm_tn<float, 200, 30, 32>, true>("TN");
  total("products of a words training step");
  if (quick) return 0;

  row<gemm_nn<float, 2, 2, 2>>("NN");
  row<gemm_nn<float, 8, 8, 8>>("NN");
  row<gemm_nn<float, 16, 16, 16>>("NN");
  row<gemm_nt<float, 16, 16, 16>>("NT");
  row<gemm_nn<float, 24, 24, 24>>("NN");
  row<gemm_nt<float, 31, 31, 31>>("NT");
  row<gemm_nn<float, 48, 48, 48>>("NN");
  row<gemm_nt<float, 48, 48, 48>>("NT");
  row<gemm_tn<float, 48, 48, 48>>("TN");
  row<gemm_tt<float, 48, 48, 48>>("TT");
  row<gemm_nn<float, 128, 128, 128>>("NN");
  row<gemm_nt<float, 128, 128, 128>>("NT");
  row<gemm_nn<float, 200, 200, 200>>("NN");
  row<gemm_nt<float, 64, 128, 784>>("NT");
  row<gemm_nn<float, 256, 256, 256>>("NN");
  row<gemm_nn<double, 48, 48, 48>>("NN");
  row<gemm_nt<double, 48, 48, 48>>("NT");
  total("small static sizes");

  row<gemm_nt<float, 1, 200, 200>>("NT");
  row<gemm_nn<float, 1, 200, 200>>("NN");
  row<gemm_nn<float, 200, 1, 200>>("NN");
  row<gemm_tn<float, 200, 1, 200>>("TN");
  run_time_row<float>("NT", 1, 4096, 4096);
  run_time_row<float>("NN", 1, 4096, 4096);
  run_time_row<float>("NN", 4096, 1, 4096);
  run_time_row<float>("TN", 4096, 1, 4096);
  total("matrix times vector");

  for (Size n : {64, 128, 200, 256, 384, 512, 768, 1024, 1536}) run_time_row<float>("NN", n, n, n);
  for (char const* layout : {"NT", "TN", "TT"}) run_time_row<float>(layout, 512, 512, 512);
  run_time_row<float>("NT", 64, 4096, 1024);
  run_time_row<float>("NT", 1000, 1000, 1000);
  for (Size n : {256, 512, 1024}) run_time_row<double>("NN", n, n, n);
  total("run-time sizes, both dtypes");
}
