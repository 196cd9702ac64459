// SPDX-License-Identifier: BSL-1.0
// The libraries that bench/gemm.cpp compares with, each there if the build has found it: OpenBLAS (DFDX_BENCH_BLAS),
// oneDNN (DFDX_BENCH_DNNL), Eigen's matrices of fixed size (DFDX_BENCH_EIGEN), libxsmm (DFDX_BENCH_XSMM).
#pragma once

#include <dfdx/kernels/simd/gemm.hpp>

#include <cstdint>
#include <type_traits>

#if defined(DFDX_BENCH_BLAS)
#include <cblas.h>
#endif
#if defined(DFDX_BENCH_DNNL)
#include <oneapi/dnnl/dnnl.h>

#include <oneapi/dnnl/dnnl.hpp>
#endif
#if defined(DFDX_BENCH_EIGEN)
#include <Eigen/Core>
#endif
#if defined(DFDX_BENCH_XSMM)
#include <libxsmm.h>
#endif

namespace bench {

/// A product as peers see it: C = A B, or C += scale A B; t where an operand is stored transposed. All are dense.
template <class T>
struct Product {
  T const *a, *b;
  T* c;
  std::int64_t m, n, k;
  bool a_t, b_t, add;
  T scale;
  std::int64_t batch = 1;
};

#if defined(DFDX_BENCH_BLAS)
template <class T>
void blas(Product<T> const& p) {
  auto const at = p.a_t ? CblasTrans : CblasNoTrans, bt = p.b_t ? CblasTrans : CblasNoTrans;
  auto const m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  int const a_row = p.a_t ? m : k, b_row = p.b_t ? k : n;
  for (std::int64_t i = 0; i < p.batch; ++i) {
    T const *const a = p.a + i * p.m * p.k, *const b = p.b + i * p.k * p.n;
    T* const c = p.c + i * p.m * p.n;
    T const keep = p.add ? T(1) : T(0);
    if constexpr (sizeof(T) == 4)
      cblas_sgemm(CblasRowMajor, at, bt, m, n, k, p.scale, a, a_row, b, b_row, keep, c, n);
    else cblas_dgemm(CblasRowMajor, at, bt, m, n, k, p.scale, a, a_row, b, b_row, keep, c, n);
  }
}
#endif

#if defined(DFDX_BENCH_DNNL)
inline void dnnl_product(Product<float> const& p) {
  for (std::int64_t i = 0; i < p.batch; ++i)
    dnnl_sgemm(p.a_t ? 'T' : 'N', p.b_t ? 'T' : 'N', p.m, p.n, p.k, p.scale, p.a + i * p.m * p.k,
               p.a_t ? p.m : p.k, p.b + i * p.k * p.n, p.b_t ? p.k : p.n, p.add ? 1.0f : 0.0f,
               p.c + i * p.m * p.n, p.n);
}

/// oneDNN's matmul with what follows it in the same primitive: a bias along rows and gelu, or an addend.
class DnnlMatmul {
 public:
  enum class Then { nothing, bias_gelu, add };

  DnnlMatmul(Product<float> const& p, Then then, float* extra)
      : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    using namespace dnnl;
    auto const dense = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
      return memory::desc(
          {p.batch, rows, columns}, memory::data_type::f32,
          transposed ? memory::dims{rows * columns, 1, rows} : memory::dims{rows * columns, columns, 1});
    };
    auto const a = dense(p.m, p.k, p.a_t), b = dense(p.k, p.n, p.b_t), c = dense(p.m, p.n, false);
    auto const bias = then == Then::bias_gelu
                          ? memory::desc({1, 1, p.n}, memory::data_type::f32, memory::dims{p.n, p.n, 1})
                          : memory::desc();
    primitive_attr with;
    post_ops after;
    if (then == Then::add) after.append_binary(algorithm::binary_add, c);
#if DNNL_VERSION_MAJOR >= 3
    if (then == Then::bias_gelu) after.append_eltwise(algorithm::eltwise_gelu_erf, 0, 0);
    with.set_post_ops(after);
    matmul::primitive_desc const how(engine, a, b, bias, c, with);
#else
    if (then == Then::bias_gelu) after.append_eltwise(1.0f, algorithm::eltwise_gelu_erf, 0, 0);
    with.set_post_ops(after);
    matmul::primitive_desc const how(matmul::desc(a, b, bias, c), with, engine);
#endif
    primitive = matmul(how);
    arguments = {{DNNL_ARG_SRC, memory(a, engine, const_cast<float*>(p.a))},
                 {DNNL_ARG_WEIGHTS, memory(b, engine, const_cast<float*>(p.b))},
                 {DNNL_ARG_DST, memory(c, engine, p.c)}};
    if (then == Then::bias_gelu) arguments.emplace(DNNL_ARG_BIAS, memory(bias, engine, extra));
    if (then == Then::add)
      arguments.emplace(DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, memory(c, engine, extra));
  }
  void operator()() const {
    primitive.execute(stream, arguments);
    stream.wait();
  }

 private:
  dnnl::engine engine;
  mutable dnnl::stream stream;
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};
#endif

/// visit(name, f) for each peer that has such a product; f() runs it. Shape tells those of fixed size the extents.
template <class Shape, class Visit>
void for_peers([[maybe_unused]] Product<typename Shape::type> const& p, [[maybe_unused]] Visit const& visit) {
  using T = typename Shape::type;
  [[maybe_unused]] constexpr bool is_small =
      Shape::m > 1 && Shape::m <= 48 && Shape::n <= 48 && Shape::k <= 48;
#if defined(DFDX_BENCH_BLAS)
  visit("OpenBLAS", [&] { blas(p); });
#endif
#if defined(DFDX_BENCH_DNNL)
  if constexpr (std::is_same_v<T, float>) {
    if (p.batch == 1) {
      visit("oneDNN", [&] { dnnl_product(p); });
    } else {
      static DnnlMatmul const* made = nullptr;
      static float* made_for = nullptr;
      if (made_for != p.c) made = new DnnlMatmul(p, DnnlMatmul::Then::nothing, nullptr), made_for = p.c;
      visit("oneDNN", *made);
    }
  }
#endif
#if defined(DFDX_BENCH_EIGEN)
  if constexpr (is_small && Shape::a_col == 1 && Shape::b_col == 1) {
    using namespace Eigen;
    if (p.batch == 1)
      visit("Eigen", [&] {
        Map<Matrix<T, Shape::m, Shape::k, RowMajor> const> const a(p.a);
        Map<Matrix<T, Shape::k, Shape::n, RowMajor> const> const b(p.b);
        Map<Matrix<T, Shape::m, Shape::n, RowMajor>> c(p.c);
        if (p.add) c.noalias() += p.scale * (a * b);
        else c.noalias() = a * b;
      });
  }
#endif
#if defined(DFDX_BENCH_XSMM)
  if constexpr (is_small && Shape::a_col == 1 && Shape::b_col == 1) {
    if (p.add || p.batch > 1) return;
    // Columns there are rows here, so the factors change places.
    auto const m = static_cast<libxsmm_blasint>(p.m), n = static_cast<libxsmm_blasint>(p.n),
               k = static_cast<libxsmm_blasint>(p.k);
    T const one = 1, zero = 0;
    if constexpr (sizeof(T) == 4) {
      static auto const f =
          libxsmm_smmdispatch(n, m, k, nullptr, nullptr, nullptr, &one, &zero, nullptr, nullptr);
      if (f != nullptr) visit("libxsmm", [&] { f(p.b, p.a, p.c); });
    } else {
      static auto const f =
          libxsmm_dmmdispatch(n, m, k, nullptr, nullptr, nullptr, &one, &zero, nullptr, nullptr);
      if (f != nullptr) visit("libxsmm", [&] { f(p.b, p.a, p.c); });
    }
  }
#endif
}

}  // namespace bench
