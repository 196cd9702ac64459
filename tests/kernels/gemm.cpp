// SPDX-License-Identifier: BSL-1.0
// Matrix products against the definition summed in a wider type. Every operand ends flush with a page that
// cannot be touched, so a read or write past an end is a crash.
#include <dfdx/kernels/simd/gemm.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "flush.hpp"

namespace tests::kernels_gemm {

namespace {

using namespace dfdx::kernels;
using Index = std::int64_t;

template <class T>
void fill(Flush<T>& x, std::uint32_t seed) {
  for (Index i = 0; i < x.count(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = static_cast<T>(static_cast<double>(seed >> 8) / (1 << 23) - 1.0);
  }
}

constexpr Index span(Index rows, Index row, Index columns, Index column) {
  return rows > 0 && columns > 0 ? (rows - 1) * row + (columns - 1) * column + 1 : 0;
}

/// An epilogue that adds a bias per column and a residual, then relu; it knows no partial lanes.
template <class T, bool Heavy>
struct bias_residual_relu {
  static constexpr bool reads_c = false, heavy = Heavy;
  T const *bias, *residual;
  Index residual_row;
  template <class V>
  V operator()(V sum, Index m, Index n) const {
    V const x = sum + load_as<V>(bias + n) + load_as<V>(residual + m * residual_row + n);
    if constexpr (std::is_same_v<V, T>) return x > T(0) ? x : T(0);
    else return xsimd::max(x, V(T(0)));
  }
};

/// One product and its neighbourhood. Epilogues: 0 none, 1 in-place update, 2 bias + residual + relu.
template <class Shape, bool Heavy = false>
bool agrees(int epilogue, gemm_sizes s = {}) {
  using T = typename Shape::type;
  auto pick = [](Index fixed, Index given) { return fixed >= 0 ? fixed : given; };
  Index const m = pick(Shape::m, s.m), n = pick(Shape::n, s.n), k = pick(Shape::k, s.k);
  Index const ar = pick(Shape::a_row, s.a_row), ac = pick(Shape::a_col, s.a_col);
  Index const br = pick(Shape::b_row, s.b_row), bc = pick(Shape::b_col, s.b_col);
  Index const cr = pick(Shape::c_row, s.c_row);
  Flush<T> a(span(m, ar, k, ac)), b(span(k, br, n, bc)), c(span(m, cr, n, 1)), bias(n), residual(m * n);
  fill(a, 1), fill(b, 2), fill(c, 3), fill(bias, 4), fill(residual, 5);
  std::vector<T> const before(c.data, c.data + c.count());
  T const scale = T(-0.25);

  add_scaled<T> const update{scale, c.data, cr};
  bias_residual_relu<T, Heavy> const fused{bias.data, residual.data, n};
  std::size_t bytes = 0;
  if (epilogue == 0) bytes = workspace_bytes<Shape>(s);
  if (epilogue == 1) bytes = workspace_bytes<Shape, add_scaled<T>>(s);
  if (epilogue == 2) bytes = workspace_bytes<Shape, bias_residual_relu<T, Heavy>>(s);
  Flush<char> room(static_cast<Index>((bytes + 63) / 64 * 64));
  if (epilogue == 0) gemm<Shape>(a.data, b.data, c.data, room.data, store_sum{}, s);
  if (epilogue == 1) gemm<Shape>(a.data, b.data, c.data, room.data, update, s);
  if (epilogue == 2) gemm<Shape>(a.data, b.data, c.data, room.data, fused, s);

  double const eps = std::numeric_limits<T>::epsilon() / 2;
  double const gamma = static_cast<double>(k + 4) * eps / (1 - static_cast<double>(k + 4) * eps);
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < cr && i * cr + j < c.count(); ++j) {
      T const old = before[static_cast<std::size_t>(i * cr + j)], got = c[i * cr + j];
      if (j >= n) {  // between two rows of C
        if (got != old) return false;
        continue;
      }
      long double sum = 0, size = 0;
      for (Index p = 0; p < k; ++p) {
        long double const product = static_cast<long double>(a[i * ar + p * ac]) * b[p * br + j * bc];
        sum += product;
        size += std::fabs(product);
      }
      long double want = sum;
      if (epilogue == 1) want = old + scale * sum, size += std::fabs(old);
      if (epilogue == 2) {
        want = sum + bias[j] + residual[i * n + j];
        size += std::fabs(bias[j]) + std::fabs(residual[i * n + j]);
        want = want > 0 ? want : 0;
      }
      if (!(std::fabs(got - want) <= gamma * size)) return false;
    }
  }
  return true;
}

/// All four layouts of one static size; returns what failed, as 100 * epilogue + layout, or -1.
template <class T, Index M, Index N, Index K>
int first_failure() {
  for (int epilogue : {0, 1, 2}) {
    if (!agrees<gemm_nn<T, M, N, K>>(epilogue)) return 100 * epilogue;
    if (!agrees<gemm_nt<T, M, N, K>>(epilogue)) return 100 * epilogue + 1;
    if (!agrees<gemm_tn<T, M, N, K>>(epilogue)) return 100 * epilogue + 2;
    if (!agrees<gemm_tt<T, M, N, K>>(epilogue)) return 100 * epilogue + 3;
  }
  return -1;
}

using run_time_shape =
    gemm_shape<float, run_time, run_time, run_time, run_time, run_time, run_time, run_time, run_time>;
using run_time_shape_f64 =
    gemm_shape<double, run_time, run_time, run_time, run_time, run_time, run_time, run_time, run_time>;

/// Sizes of a run-time product in layout 0..3 (NN, NT, TN, TT), every row `gap` elements longer than it must
/// be.
gemm_sizes sizes(Index m, Index n, Index k, int layout, Index gap) {
  gemm_sizes s{
      .m = m, .n = n, .k = k, .a_row = k + gap, .a_col = 1, .b_row = n + gap, .b_col = 1, .c_row = n + gap};
  if (layout & 2) s.a_row = 1, s.a_col = m + gap;
  if (layout & 1) s.b_row = 1, s.b_col = k + gap;
  return s;
}

}  // namespace

TEST_CASE("static products: four layouts, tails and epilogues, f32", "[kernels]") {
  CHECK(first_failure<float, 1, 1, 1>() == -1);
  CHECK(first_failure<float, 3, 5, 7>() == -1);
  CHECK(first_failure<float, 1, 37, 19>() == -1);
  CHECK(first_failure<float, 37, 1, 19>() == -1);
  CHECK(first_failure<float, 16, 16, 16>() == -1);
  CHECK(first_failure<float, 47, 53, 31>() == -1);
  CHECK(first_failure<float, 32, 200, 30>() == -1);
  CHECK(first_failure<float, 32, 27, 200>() == -1);
  CHECK(first_failure<float, 200, 67, 32>() == -1);
}

TEST_CASE("epilogues that are too much code to be written out for each register", "[kernels]") {
  CHECK(agrees<gemm_nn<float, 19, 33, 23>, true>(2));
  CHECK(agrees<gemm_nn<float, 64, 128, 40>, true>(2));
  CHECK(agrees<gemm_tt<float, 50, 40, 20>, true>(2));
  CHECK(agrees<gemm_nt<double, 33, 48, 70>, true>(2));
  CHECK(agrees<gemm_nn<float, 1, 40, 70>, true>(2));
}

TEST_CASE("static products: four layouts, tails and epilogues, f64", "[kernels]") {
  CHECK(first_failure<double, 3, 5, 7>() == -1);
  CHECK(first_failure<double, 1, 37, 19>() == -1);
  CHECK(first_failure<double, 29, 1, 19>() == -1);
  CHECK(first_failure<double, 23, 41, 31>() == -1);
}

TEST_CASE("a vector times a small matrix: lanes, tails and rows that are far apart", "[kernels]") {
  for (int epilogue : {0, 1, 2}) {
    CHECK(agrees<gemm_nn<float, 1, 16, 16>>(epilogue));  // one lane, two, part of one: factors four at a time
    CHECK(agrees<gemm_nn<float, 1, 32, 21>>(epilogue));
    CHECK(agrees<gemm_nn<float, 1, 7, 18>>(epilogue));
    CHECK(agrees<gemm_nn<double, 1, 8, 23>>(epilogue));
    CHECK(agrees<gemm_nt<float, 1, 48, 16>>(epilogue));
    CHECK(agrees<gemm_nt<float, 1, 33, 100>>(epilogue));
    CHECK(agrees<gemm_nt<float, 50, 1, 70>>(epilogue));
    CHECK(agrees<gemm_nt<double, 1, 17, 41>>(epilogue));
    CHECK(agrees<gemm_nt<float, 1, 211, 199>>(epilogue));  // which asks for the rows after the next
    CHECK(agrees<gemm_nt<double, 1, 131, 130>>(epilogue));
    CHECK(agrees<gemm_nt<float, 205, 1, 200>>(epilogue));
    CHECK(agrees<gemm_tn<float, 50, 1, 70>>(epilogue));
    CHECK(agrees<gemm_tn<double, 37, 1, 3>>(epilogue));
    CHECK(agrees<gemm_shape<float, 1, 40, 64, 64, 1, 1, 75, 40>>(epilogue));
  }
}

TEST_CASE("static products with rows longer than the matrix", "[kernels]") {
  for (int epilogue : {0, 1, 2}) {
    CHECK(agrees<gemm_shape<float, 19, 21, 23, 29, 1, 31, 1, 37>>(epilogue));
    CHECK(agrees<gemm_shape<float, 19, 21, 23, 1, 29, 1, 31, 37>>(epilogue));
    CHECK(agrees<gemm_shape<float, 7, 70, 23, 29, 1, 1, 31, 75>>(epilogue));
  }
}

TEST_CASE("static products of many panels", "[kernels]") {
  CHECK(agrees<gemm_nn<float, 129, 301, 517>>(0));
  CHECK(agrees<gemm_nt<float, 129, 301, 517>>(1));
  CHECK(agrees<gemm_tn<float, 129, 301, 517>>(2));
  CHECK(agrees<gemm_tt<double, 100, 130, 300>>(1));
}

TEST_CASE("static products whose rows compete for the same cache lines", "[kernels]") {
  CHECK(agrees<gemm_nt<float, 8, 50, 1024>>(2));
  CHECK(agrees<gemm_nn<float, 50, 8, 1024>>(1));
}

TEST_CASE("static products too deep or too large to stay unpacked", "[kernels]") {
  static_assert(detail::gemm_choice<gemm_nn<float, 20, 70, 20000>>::value == detail::gemm_kernel::blocked);
  CHECK(agrees<gemm_nn<float, 20, 70, 20000>>(0));
  CHECK(agrees<gemm_nt<float, 20, 70, 20000>>(1));
}

TEST_CASE("the workspace of unknown sizes is enough for any", "[kernels]") {
  using shape = gemm_shape<float, run_time, run_time, run_time>;
  constexpr std::size_t most = workspace_bytes<shape>();
  for (Index m : {1, 200, 5000})
    for (Index n : {1, 1000, 5000})
      for (Index k : {1, 300, 5000}) CHECK(workspace_bytes<shape>({.m = m, .n = n, .k = k}) <= most);
}

// A smaller product may have deeper blocks, or be written along rows, which takes more.
TEST_CASE("the workspace of the largest sizes is enough for all up to them", "[kernels]") {
  using shape = gemm_shape<float, -1, -1, -1, -1, -1, -1, -1, -1>;
  Index const sizes[]{0, 1, 7, 44, 64, 128, 257, 300, 512, 513, 1025, 3072, 4096};
  bool more = false;
  for (Index m : sizes)
    for (Index n : sizes)
      for (Index k : sizes) {
        CAPTURE(m, n, k);
        std::size_t most = 0, most_added = 0;
        for (Index a : sizes)
          for (Index b : sizes)
            for (Index c : sizes) {
              if (a > m || b > n || c > k) continue;
              gemm_sizes const s{.m = a, .n = b, .k = c};
              most = std::max(most, workspace_bytes<shape>(s));
              most_added = std::max(most_added, workspace_bytes<shape, add_scaled<float>>(s));
            }
        more = more || most > workspace_bytes<shape>({.m = m, .n = n, .k = k});
        REQUIRE(most <= workspace_bytes_up_to<float>(m, n, k));
        REQUIRE(most_added <= workspace_bytes_up_to<float, add_scaled<float>>(m, n, k));
      }
  CHECK(more);
}

TEST_CASE("run-time products of every layout", "[kernels]") {
  for (int layout : {0, 1, 2, 3}) {
    for (Index m : {1, 2, 5, 6, 13}) {
      for (Index n : {1, 15, 16, 17, 64, 67, 131}) {
        for (Index k : {1, 8, 37}) {
          for (int epilogue : {0, 1, 2}) {
            INFO(layout << " m " << m << " n " << n << " k " << k << " epilogue " << epilogue);
            CHECK(agrees<run_time_shape>(epilogue, sizes(m, n, k, layout, 0)));
            CHECK(agrees<run_time_shape_f64>(epilogue, sizes(m, n, k, layout, 3)));
          }
        }
      }
    }
  }
}

TEST_CASE("run-time products that cross every block boundary", "[kernels]") {
  for (int layout : {0, 1, 2, 3}) {
    for (int epilogue : {0, 1, 2}) {
      CHECK(agrees<run_time_shape>(epilogue, sizes(571, 150, 530, layout, 1)));
      CHECK(agrees<run_time_shape_f64>(epilogue, sizes(270, 70, 570, layout, 0)));
    }
  }
  CHECK(agrees<run_time_shape>(0, sizes(7, 1601, 300, 0, 0)));
  CHECK(agrees<run_time_shape>(1, sizes(7, 1601, 600, 1, 0)));
}

// B is too large to be read in place. All rows are one block, which two packed panels serve in turn; the last panels
// are narrower, or end within a lane.
TEST_CASE("run-time products whose panels are packed during the one before", "[kernels]") {
  for (int layout = 0; layout < 4; ++layout)
    for (int epilogue = 0; epilogue < 2; ++epilogue)
      for (Index n : {304, 331}) {
        CHECK(agrees<run_time_shape>(epilogue, sizes(41, n, 301, layout, 0)));
        CHECK(agrees<run_time_shape>(epilogue, sizes(44, n, 301, layout, 0)));
        CHECK(agrees<run_time_shape_f64>(epilogue, sizes(47, n, 145, layout, 1)));
      }
  CHECK(agrees<run_time_shape>(0, sizes(64, 700, 1100, 0, 0)));   // three blocks of k
  CHECK(agrees<run_time_shape>(0, sizes(1200, 170, 520, 0, 0)));  // A is not read in place either
}

// Two rows more than tiles of six.
TEST_CASE("run-time products whose last rows are taken by four", "[kernels]") {
  for (int layout = 0; layout < 4; ++layout)
    for (int epilogue = 0; epilogue < 2; ++epilogue)
      for (Index m : {8, 14, 32}) {
        CHECK(agrees<run_time_shape>(epilogue, sizes(m, 131, 61, layout, 1)));
        CHECK(agrees<run_time_shape_f64>(epilogue, sizes(m, 35, 600, layout, 0)));
      }
  CHECK(agrees<run_time_shape>(1, sizes(512, 1031, 7, 0, 0)));  // along rows
}

TEST_CASE("run-time products whose result no cache holds", "[kernels]") {
  // Written along rows, a block of columns at a time.
  for (int epilogue : {0, 1, 2})
    for (int layout : {0, 1, 2, 3})
      for (Index gap : {0, 3}) {
        CHECK(agrees<run_time_shape>(epilogue, sizes(509, 1031, 7, layout, gap)));
        CHECK(agrees<run_time_shape_f64>(epilogue, sizes(130, 1031, 5, layout, gap)));
      }
}

TEST_CASE("vectors longer than one run of the row kernel", "[kernels]") {
  for (int layout : {0, 1, 2, 3}) {
    for (int epilogue : {0, 1, 2}) {
      CHECK(agrees<run_time_shape>(epilogue, sizes(1, 1061, 21, layout, 0)));
      CHECK(agrees<run_time_shape>(epilogue, sizes(1061, 1, 21, layout, 0)));
      CHECK(agrees<run_time_shape_f64>(epilogue, sizes(3, 521, 23, layout, 1)));
    }
  }
}

TEST_CASE("few rows times rows, short and long", "[kernels]") {
  for (Index m : {1, 2, 3, 4, 7, 8, 9})
    for (Index n : {1, 5, 16, 35})
      for (Index k : {5, 511, 512, 601}) {
        INFO("m " << m << " n " << n << " k " << k);
        CHECK(agrees<run_time_shape>(m % 3, sizes(m, n, k, 1, 2)));
        CHECK(agrees<run_time_shape_f64>(n % 3, sizes(m, n, k, 1, 0)));
      }
}

TEST_CASE("few rows: what is no number stays in its row, and columns do not depend on each other",
          "[kernels]") {
  Index const n = 37, k = 530;
  Flush<float> a(8 * k), b(n * k), c(8 * n), part(8 * 9);
  fill(a, 1), fill(b, 2);
  a[k + 3] = std::numeric_limits<float>::quiet_NaN();
  a[6 * k] = std::numeric_limits<float>::infinity();
  for (Index m : {8, 1}) {
    gemm<run_time_shape>(a.data, b.data, c.data, nullptr, store_sum{}, sizes(m, n, k, 1, 0));
    int wrong = 0;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j)
        wrong += std::isnan(c[i * n + j]) != (i == 1) || std::isinf(c[i * n + j]) != (i == 6);
    for (Index first = 0; first + 9 <= n; first += 7) {
      gemm<run_time_shape>(a.data, b.data + first * k, part.data, nullptr, store_sum{}, sizes(m, 9, k, 1, 0));
      for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < 9; ++j)
          wrong += std::memcmp(&part[i * 9 + j], &c[i * n + first + j], sizeof(float)) != 0;
    }
    CAPTURE(m);
    CHECK(wrong == 0);
  }
}

TEST_CASE("an operand none of whose strides is 1", "[kernels]") {
  gemm_sizes s = sizes(11, 70, 21, 0, 0);
  s.a_row = 50, s.a_col = 2, s.b_row = 213, s.b_col = 3;
  CHECK(agrees<run_time_shape>(1, s));
}

TEST_CASE("empty products", "[kernels]") {
  CHECK(agrees<run_time_shape>(0, sizes(5, 20, 0, 0, 0)));
  CHECK(agrees<run_time_shape>(1, sizes(5, 20, 0, 0, 0)));
  CHECK(agrees<run_time_shape>(0, sizes(0, 20, 4, 0, 0)));
  CHECK(agrees<run_time_shape>(0, sizes(5, 0, 4, 0, 0)));
}

TEST_CASE("a batch that is only known at run time", "[kernels]") {
  using layer = gemm_shape<float, run_time, 30, 50, 50, 1, 1, 50>;
  for (Index m : {1, 3, 4, 5, 33}) CHECK(agrees<layer>(2, {.m = m}));
}

TEST_CASE("other element types take the definition", "[kernels]") {
  std::int32_t const a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
  std::int32_t c[4] = {};
  gemm<gemm_nn<std::int32_t, 2, 2, 3>>(a, b, c);
  CHECK(c[0] == 58);
  CHECK(c[1] == 64);
  CHECK(c[2] == 139);
  CHECK(c[3] == 154);
}

TEST_CASE("the reference is a constant expression", "[kernels]") {
  constexpr int trace = [] {
    int const a[] = {1, 2, 3, 4};
    int c[4] = {};
    reference::gemm(2, 2, 2, a, 2, 1, a, 1, 2, c, 2);  // A A^T
    return c[0] + c[3];
  }();
  STATIC_CHECK(trace == 30);
}

}  // namespace tests::kernels_gemm
