// SPDX-License-Identifier: BSL-1.0
// Products of bf16 where the processor multiplies them itself, against oneDNN's: checked against sums in double, and
// timed in turns. The roof is twice that of f32.
#pragma once

#include <dfdx/kernels/gemm.hpp>

#include <cstdlib>

#include "gemm_peers.hpp"
#include "roof.hpp"

namespace bench {

#if defined(DFDX_BENCH_DNNL)
/// oneDNN's matmul of dense matrices of bf16.
inline auto dnnl_bf16(void* a, void* b, void* c, std::int64_t m, std::int64_t n, std::int64_t k,
                      bool b_turned) {
  using namespace dnnl;
  static engine const cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  auto const desc = [](std::int64_t rows, std::int64_t columns, bool turned) {
    return memory::desc({rows, columns}, memory::data_type::bf16,
                        turned ? memory::dims{1, rows} : memory::dims{columns, 1});
  };
  auto const x = desc(m, k, false), y = desc(k, n, b_turned), z = desc(m, n, false);
#if DNNL_VERSION_MAJOR >= 3
  matmul::primitive_desc const how(cpu, x, y, z);
#else
  matmul::primitive_desc const how(matmul::desc(x, y, z), cpu);
#endif
  return [product = matmul(how),
          arguments = std::unordered_map<int, memory>{{DNNL_ARG_SRC, memory(x, cpu, a)},
                                                      {DNNL_ARG_WEIGHTS, memory(y, cpu, b)},
                                                      {DNNL_ARG_DST, memory(z, cpu, c)}}] {
    product.execute(queue, arguments);
    queue.wait();
  };
}
#endif

inline void bf16_row([[maybe_unused]] char const* layout, [[maybe_unused]] std::int64_t m,
                     [[maybe_unused]] std::int64_t n, [[maybe_unused]] std::int64_t k,
                     [[maybe_unused]] double roof_f32) {
#if defined(__AVX512BF16__)
  using dfdx::bfloat16;
  bool const turned = layout[1] == 'T';
  std::vector<bfloat16> a(static_cast<std::size_t>(m * k)), b(static_cast<std::size_t>(k * n)),
      c(static_cast<std::size_t>(m * n));
  for (auto* const v : {&a, &b})
    for (std::size_t i = 0; i < v->size(); ++i)
      (*v)[i] = bfloat16(static_cast<float>(static_cast<double>(i * 7919 % 1009) / 1009 - 0.5));
  dfdx::kernels::Scratch<std::byte> const room(dfdx::kernels::gemm_bf16_workspace(m, n, k));
  std::int64_t const b_row = turned ? 1 : n, b_col = turned ? k : 1;
  auto const ours = [&] {
    dfdx::kernels::multiply_bf16(m, n, k, {a.data(), k, 1}, {b.data(), b_row, b_col}, c.data(), n,
                                 room.get());
  };
  ours();
  double worst = 0, largest = 0;
  for (std::int64_t i = 0; i < m; i += m / 7 + 1)
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += static_cast<double>(a[static_cast<std::size_t>(i * k + p)]) *
               static_cast<double>(b[static_cast<std::size_t>(p * b_row + j * b_col)]);
      worst = std::max(worst, std::fabs(static_cast<double>(c[static_cast<std::size_t>(i * n + j)]) - sum));
      largest = std::max(largest, std::fabs(sum));
    }
  Row row{.bench = "gemm",
          .name = std::string("bf16 ") + layout + " " + std::to_string(m) + "x" + std::to_string(n) + "x" +
                  std::to_string(k)};
  row.error = worst / largest;
  if (!(row.error < 0x1p-8)) {
    std::fprintf(stderr, "gemm: %s is off by %g of the largest\n", row.name.c_str(), row.error);
    std::exit(1);
  }
  std::vector<double> mine, theirs;
  long const calls = calls_for(ours, 1e-3);
#if defined(DFDX_BENCH_DNNL)
  auto const its = dnnl_bf16(a.data(), b.data(), c.data(), m, n, k, turned);
  its();
#endif
  for (int round = 0; round < 21; ++round) {
    mine.push_back(time_of(ours, calls));
#if defined(DFDX_BENCH_DNNL)
    theirs.push_back(time_of(its, calls));
#endif
  }
  row.ours_ms = best(mine) * 1e3;
  if (!theirs.empty()) row.peer = "oneDNN", row.peer_ms = best(theirs) * 1e3;
  row.flops = 2.0 * static_cast<double>(m * n * k);
  row.bytes = 2.0 * static_cast<double>(m * k + k * n + m * n);
  row.roof = row.flops / best(mine) / (2 * roof_f32);
  char text[40];
  std::snprintf(text, sizeof text, "%.1f GFLOP/s", row.flops / best(mine) / 1e9);
  row.note = text;
  print(row);
#endif
}

/// All of them.
inline void bf16_rows(double roof_f32) {
  for (std::int64_t const n : {128, 256, 512, 1024, 2048}) bf16_row("NN", n, n, n, roof_f32);
  for (std::int64_t const n : {256, 1024}) bf16_row("NT", n, n, n, roof_f32);
  bf16_row("NT", 128, 3072, 768, roof_f32);
  bf16_row("NN", 128, 768, 3072, roof_f32);
}

}  // namespace bench
