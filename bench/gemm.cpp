// SPDX-License-Identifier: BSL-1.0
// Matrix products: checked against the reference, then timed; peers are those of gemm_peers.hpp, one thread each
// (OPENBLAS_NUM_THREADS=1, OMP_NUM_THREADS=1). Every round times all contenders in turn; a row is the best of its
// rounds, since noise only adds. Sizes are rows x columns x depth. The roof is what a loop of independent multiply-adds
// reaches here, or for a large matrix times a vector what reading 64 MiB takes (roof.hpp). "+" marks the update
// C += scale A B; "with" an epilogue, whose peer "without" is the same product of ours alone. --quick stops after the
// training step.
#include <dfdx/kernels/exponential.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "gemm_narrow.hpp"
#include "gemm_peers.hpp"
#include "roof.hpp"

namespace {

using namespace dfdx::kernels;
using Size = std::int64_t;

constexpr int rounds = 41;
double roof_f32 = 0, memory_roof = 0;

using bench::Product;

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

// Operands, their product by the reference, and the row of one case.
template <class Shape>
class Case {
 public:
  using T = typename Shape::type;
  gemm_sizes const sizes;
  Size const m = pick(Shape::m, sizes.m), n = pick(Shape::n, sizes.n), k = pick(Shape::k, sizes.k), batch;
  Buffer<T> a{count(m, k)}, b{count(k, n)}, c{count(m, n)};

  explicit Case(char const* layout, gemm_sizes s, Size how_many = 1)
      : sizes(s), batch(how_many), layout_(layout) {}

  Product<T> product(bool add = false) {
    return {a.data(),          b.data(), c.data(),         m,    n, k, layout_[0] == 'T',
            layout_[1] == 'T', add,      scale_of<T>(add), batch};
  }

  // Runs ours once: then C is `then(sum, i, n)` for number i of C, which the peers' answers are not asked for. Of large
  // products some rows are compared.
  template <class Ours, class Then>
  void check(Ours const& ours, Then const& then) {
    Size const rows = batch * m, step = rows * n * k > (Size{1} << 27) ? std::max<Size>(rows / 7, 1) : 1;
    std::vector<double> want;
    std::vector<double> sums(static_cast<std::size_t>(n));
    for (Size i = 0; i < rows; i += step) {
      reference::gemm<double>(
          Size{1}, n, k, a.data() + i / m * m * k + i % m * pick(Shape::a_row, sizes.a_row), Size{0},
          pick(Shape::a_col, sizes.a_col), b.data() + i / m * k * n, pick(Shape::b_row, sizes.b_row),
          pick(Shape::b_col, sizes.b_col), sums.data(), n);
      for (Size j = 0; j < n; ++j) want.push_back(then(sums[static_cast<std::size_t>(j)], i * n + j, j));
    }
    ours();
    double worst = 0, largest = 0;
    for (Size i = 0, at = 0; i < rows; i += step)
      for (Size j = 0; j < n; ++j, ++at) {
        double const right = want[static_cast<std::size_t>(at)];
        worst = std::max(worst, std::fabs(static_cast<double>(c.data()[i * n + j]) - right));
        largest = std::max(largest, std::fabs(right));
      }
    if (!(worst <= (sizeof(T) == 4 ? 1e-6 : 1e-14) * std::sqrt(static_cast<double>(k)) * 8)) {
      std::fprintf(stderr, "gemm: %s %ld %ld %ld is off by %g\n", layout_, long(m), long(n), long(k), worst);
      std::exit(1);
    }
    error_ = worst / largest;
  }

  // Times ours, and what visit_peers(visit) visits, round by round.
  template <class Ours, class Peers>
  void time(char const* what, Ours const& ours, Peers const& visit_peers) {
    double const flops = 2.0 * static_cast<double>(batch * m * n * k);
    std::vector<double> mine;
    std::map<std::string, std::vector<double>> theirs;
    long const calls = bench::calls_for(ours, 1e-4);
    auto const often = std::clamp(
        static_cast<int>(1.5 / (static_cast<double>(calls) * bench::time_of(ours, calls))), 11, rounds);
    for (int round = 0; round < often; ++round) {
      mine.push_back(bench::time_of(ours, calls));
      visit_peers([&](char const* name, auto const& f) { theirs[name].push_back(bench::time_of(f, calls)); });
    }
    double const time = bench::best(mine);
    our_total.add(time);
    std::map<std::string, double> peers;
    for (auto const& [name, times] : theirs) totals[name].add(peers[name] = bench::best(times));
    char text[80];
    std::string how_many = batch > 1 ? std::to_string(batch) + " of " : "";
    std::snprintf(text, sizeof text, "%s %s%s %s%ldx%ldx%ld%s", sizeof(T) == 4 ? "f32" : "f64", layout_, what,
                  how_many.c_str(), long(m), long(n), long(k), Shape::m < 0 ? " run-time" : "");
    bool const is_read = (m == 1 || n == 1) && m * n * k >= Size{1} << 23;
    double const share =
        is_read ? static_cast<double>(m * n * k * static_cast<Size>(sizeof(T))) / time / memory_roof
                : flops / time / (roof_f32 * 4 / sizeof(T));
    bench::Row row{.bench = "gemm", .name = text, .ours_ms = time * 1e3, .roof = share, .error = error_};
    row.flops = flops;
    row.bytes = static_cast<double>(batch * (m * k + k * n + m * n)) * sizeof(T);
    std::snprintf(text, sizeof text, "%.1f GFLOP/s%s", flops / time / 1e9,
                  is_read ? "; roof of reading" : "");
    row.note = text;
    print_rows(row, peers);
  }

 private:
  static Size pick(Size fixed, Size given) { return fixed >= 0 ? fixed : given; }
  std::size_t count(Size rows, Size columns) const {
    return static_cast<std::size_t>(batch * rows * columns);
  }

  char const* layout_;
  double error_ = 0;
};

template <class Shape, bool Add = false>
void row(char const* layout, gemm_sizes s = {}, Size batch = 1) {
  using T = typename Shape::type;
  Case<Shape> here(layout, s, batch);
  Size const m = here.m, n = here.n, k = here.k;
  T *const a = here.a.data(), *const b = here.b.data(), *const c = here.c.data();
  Buffer<char> room(workspace_bytes<Shape, add_scaled<T>>(s));
  auto const ours = [&] {
    if constexpr (Add) gemm<Shape>(a, b, c, room.data(), add_scaled<T>{scale_of<T>(Add), c, n}, s);
    else
      for (Size i = 0; i < batch; ++i)
        gemm<Shape>(a + i * m * k, b + i * k * n, c + i * m * n, room.data(), store_sum{}, s);
  };
  here.check(ours, [&](double sum, Size i, Size) {
    return Add ? static_cast<double>(c[i]) + scale_of<double>(Add) * sum : sum;
  });
  here.time(Add ? "+" : "", ours,
            [&](auto const& visit) { bench::for_peers<Shape>(here.product(Add), visit); });
}

// gelu(C + bias), and C + addend: epilogues as a program's fused loops are.
struct bias_gelu {
  static constexpr bool reads_c = false, heavy = true;
  float const* bias;
  lane<float> gelu(lane<float> const& x) const {
    return lane<float>(0.5f) * x * (lane<float>(1.0f) + lane_erf(x * lane<float>(0.70710678f)));
  }
  lane<float> operator()(lane<float> sum, Size, Size n) const {
    return gelu(sum + lane<float>::load_unaligned(bias + n));
  }
  lane<float> operator()(lane<float> sum, Size, Size n, int count) const {
    return gelu(sum + dfdx::kernels::load_n(bias + n, count));
  }
  float operator()(float sum, Size, Size n) const {
    float const x = sum + bias[n];
    return 0.5f * x * (1.0f + std::erf(x * 0.70710678f));
  }
};
struct add_other {
  static constexpr bool reads_c = false;
  float const* other;
  Size row;
  lane<float> operator()(lane<float> sum, Size m, Size n) const {
    return sum + lane<float>::load_unaligned(other + m * row + n);
  }
  lane<float> operator()(lane<float> sum, Size m, Size n, int count) const {
    return sum + dfdx::kernels::load_n(other + m * row + n, count);
  }
  float operator()(float sum, Size m, Size n) const { return sum + other[m * row + n]; }
};

// Rows of the same product with an epilogue and without.
template <class Shape>
void epilogue_rows(char const* layout, gemm_sizes s = {}) {
  Case<Shape> here(layout, s);
  Size const n = here.n;
  float *const a = here.a.data(), *const b = here.b.data(), *const c = here.c.data();
  Buffer<float> extra(here.c.size());
  Buffer<char> room(workspace_bytes<Shape>(s));
  auto const plain = [&] { gemm<Shape>(a, b, c, room.data(), store_sum{}, s); };
  auto const gelu = [&] { gemm<Shape>(a, b, c, room.data(), bias_gelu{extra.data()}, s); };
  auto const added = [&] { gemm<Shape>(a, b, c, room.data(), add_other{extra.data(), n}, s); };
#if defined(DFDX_BENCH_DNNL)
  using Dnnl = bench::DnnlMatmul;
  Dnnl const their_gelu(here.product(), Dnnl::Then::bias_gelu, extra.data());
  Dnnl const their_sum(here.product(), Dnnl::Then::add, extra.data());
#endif
  here.check(gelu, [&](double sum, Size, Size j) {
    double const x = sum + static_cast<double>(extra.data()[j]);
    return 0.5 * x * (1 + std::erf(x * std::sqrt(0.5)));
  });
  here.time(" with bias and gelu", gelu, [&](auto const& visit) {
    visit("without", plain);
#if defined(DFDX_BENCH_DNNL)
    visit("oneDNN", their_gelu);
#endif
  });
  here.check(added, [&](double sum, Size i, Size) { return sum + static_cast<double>(extra.data()[i]); });
  here.time(" with an addend", added, [&](auto const& visit) {
    visit("without", plain);
#if defined(DFDX_BENCH_DNNL)
    visit("oneDNN", their_sum);
#endif
  });
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

gemm_sizes sizes_of(char const* layout, Size m, Size n, Size k) {
  gemm_sizes s{.m = m, .n = n, .k = k, .a_row = k, .a_col = 1, .b_row = n, .b_col = 1, .c_row = n};
  if (layout[0] == 'T') s.a_row = 1, s.a_col = m;
  if (layout[1] == 'T') s.b_row = 1, s.b_col = k;
  return s;
}
template <class T>
void run_time_row(char const* layout, Size m, Size n, Size k, Size batch = 1) {
  row<run_time_shape<T>>(layout, sizes_of(layout, m, n, k), batch);
}

}  // namespace

int main(int argc, char** argv) {
  bool const quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  roof_f32 = bench::measure_roof(rounds);
  memory_roof = bench::measure_memory(std::size_t{1} << 26);  // of a matrix of 4096 x 4096
  std::fprintf(stderr, "roof: %.1f GFLOP/s f32, lanes of %d; reads 64 MiB at %.1f GB/s\n", roof_f32 / 1e9,
               lane_size<float>, memory_roof / 1e9);
#if defined(DFDX_BENCH_DNNL)
  dnnl_version_t const* const version = dnnl_version();
  std::fprintf(stderr, "oneDNN %d.%d.%d\n", version->major, version->minor, version->patch);
#endif
#if defined(DFDX_BENCH_BLAS)
  std::fprintf(stderr, "%s\n", openblas_get_config());
#endif

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
  row<gemm_nn<float, 4, 4, 4>>("NN");
  row<gemm_nn<float, 8, 8, 8>>("NN");
  row<gemm_nn<float, 12, 12, 12>>("NN");
  row<gemm_nn<float, 16, 16, 16>>("NN");
  row<gemm_nt<float, 16, 16, 16>>("NT");
  row<gemm_nn<float, 24, 24, 24>>("NN");
  row<gemm_nt<float, 31, 31, 31>>("NT");
  row<gemm_nn<float, 32, 32, 32>>("NN");
  row<gemm_nn<float, 48, 48, 48>>("NN");
  row<gemm_nt<float, 48, 48, 48>>("NT");
  row<gemm_tn<float, 48, 48, 48>>("TN");
  row<gemm_tt<float, 48, 48, 48>>("TT");
  row<gemm_nn<float, 128, 128, 128>>("NN");
  row<gemm_nt<float, 128, 128, 128>>("NT");
  row<gemm_nn<float, 200, 200, 200>>("NN");
  row<gemm_nt<float, 64, 128, 784>>("NT");
  row<gemm_nn<float, 256, 256, 256>>("NN");
  row<gemm_nn<double, 8, 8, 8>>("NN");
  row<gemm_nn<double, 24, 24, 24>>("NN");
  row<gemm_nn<double, 48, 48, 48>>("NN");
  row<gemm_nt<double, 48, 48, 48>>("NT");
  total("small static sizes");

  row<gemm_nn<float, 32, 128, 784>>("NN");  // of layers
  row<gemm_nt<float, 32, 128, 784>>("NT");
  row<gemm_nn<float, 32, 784, 128>>("NN");
  row<gemm_nn<float, 128, 768, 3072>>("NN");
  row<gemm_nt<float, 128, 768, 3072>>("NT");
  row<gemm_nn<float, 128, 3072, 768>>("NN");
  row<gemm_nt<float, 128, 3072, 768>>("NT");
  run_time_row<float>("NN", 32, 128, 784);
  run_time_row<float>("NN", 32, 784, 128);
  run_time_row<float>("NN", 128, 768, 3072);
  run_time_row<float>("NT", 128, 768, 3072);
  run_time_row<float>("NN", 128, 3072, 768);
  run_time_row<float>("NT", 128, 3072, 768);
  run_time_row<float>("NT", 64, 4096, 1024);
  total("few rows");

  row<gemm_nt<float, 1, 200, 200>>("NT");
  row<gemm_nn<float, 1, 200, 200>>("NN");
  row<gemm_nn<float, 200, 1, 200>>("NN");
  row<gemm_tn<float, 200, 1, 200>>("TN");
  run_time_row<float>("NT", 1, 4096, 4096);
  run_time_row<float>("NN", 1, 4096, 4096);
  run_time_row<float>("NN", 4096, 1, 4096);
  run_time_row<float>("TN", 4096, 1, 4096);
  total("matrix times vector");

  for (Size n : {64, 128, 200, 256, 384, 512, 768, 1000, 1024, 1536, 2048})
    run_time_row<float>("NN", n, n, n);
  for (char const* layout : {"NT", "TN", "TT"})
    for (Size n : {512, 1024}) run_time_row<float>(layout, n, n, n);
  run_time_row<float>("NT", 1000, 1000, 1000);
  for (Size n : {256, 512, 1024}) run_time_row<double>("NN", n, n, n);
  total("run-time sizes, both dtypes");

  run_time_row<float>("NT", 256, 256, 64, 12);  // of attention
  run_time_row<float>("NN", 256, 64, 256, 12);
  row<gemm_nt<float, 256, 256, 64>>("NT", {}, 12);
  row<gemm_nn<float, 256, 64, 256>>("NN", {}, 12);
  row<gemm_nn<float, 16, 16, 16>>("NN", {}, 256);
  total("batches");

  epilogue_rows<gemm_nn<float, 128, 128, 128>>("NN");
  epilogue_rows<gemm_nt<float, 128, 3072, 768>>("NT");
  epilogue_rows<run_time_shape<float>>("NN", sizes_of("NN", 512, 512, 512));
  epilogue_rows<run_time_shape<float>>("NN", sizes_of("NN", 1024, 1024, 1024));

  bench::narrow_rows(roof_f32);
}
