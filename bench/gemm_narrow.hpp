// SPDX-License-Identifier: BSL-1.0
// Products of bf16 (where the processor multiplies them itself) and of numbers of eight bits, against oneDNN's: checked
// against sums in double, and timed in turns. The roof is twice and four times that of f32.
#pragma once

#include <dfdx/kernels/gemm.hpp>

#include <cstdlib>

#include "gemm_peers.hpp"
#include "roof.hpp"

namespace bench {

#if defined(DFDX_BENCH_DNNL)
template <class T>
constexpr dnnl::memory::data_type dnnl_type() {
  using type = dnnl::memory::data_type;
  if constexpr (std::is_same_v<T, dfdx::bfloat16>) return type::bf16;
  else if constexpr (std::is_same_v<T, std::int8_t>) return type::s8;
  else if constexpr (std::is_same_v<T, std::uint8_t>) return type::u8;
  else return type::s32;
}

/// oneDNN's matmul of dense matrices.
template <class A, class B, class C>
auto dnnl_narrow(A* a, B* b, C* c, std::int64_t m, std::int64_t n, std::int64_t k, bool b_turned) {
  using namespace dnnl;
  static engine const cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  auto const desc = [](std::int64_t rows, std::int64_t columns, bool turned, memory::data_type type) {
    return memory::desc({rows, columns}, type, turned ? memory::dims{1, rows} : memory::dims{columns, 1});
  };
  auto const x = desc(m, k, false, dnnl_type<A>()), y = desc(k, n, b_turned, dnnl_type<B>()),
             z = desc(m, n, false, dnnl_type<C>());
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

/// One product of A and B, stored as C: bf16 all three, or bytes summed in i32.
template <class A, class B, class C>
void narrow_row(char const* types, char const* layout, std::int64_t m, std::int64_t n, std::int64_t k,
                double roof) {
  constexpr bool is_bf16 = std::is_same_v<A, dfdx::bfloat16>;
  bool const turned = layout[1] == 'T';
  // Where programs have their numbers: at the beginning of a cache line.
  std::vector<A, xsimd::aligned_allocator<A, 64>> a(static_cast<std::size_t>(m * k));
  std::vector<B, xsimd::aligned_allocator<B, 64>> b(static_cast<std::size_t>(k * n));
  std::vector<C, xsimd::aligned_allocator<C, 64>> c(static_cast<std::size_t>(m * n));
  auto const fill = [](auto& v) {
    using T = std::remove_reference_t<decltype(v[0])>;
    for (std::size_t i = 0; i < v.size(); ++i) {
      double const x = static_cast<double>(i * 7919 % 1009) / 1009 - 0.5;
      if constexpr (is_bf16) v[i] = T(static_cast<float>(x));
      else v[i] = static_cast<T>(static_cast<int>(x * 255));
    }
  };
  fill(a), fill(b);
  std::size_t const bytes =
      is_bf16 ? dfdx::kernels::gemm_bf16_workspace(m, n, k) : dfdx::kernels::multiply_int8_workspace(m, n, k);
  dfdx::kernels::Scratch<std::byte> const room(bytes);
  std::int64_t const b_row = turned ? 1 : n, b_col = turned ? k : 1;
  dfdx::kernels::detail::strided<A> const x{a.data(), k, 1};
  dfdx::kernels::detail::strided<B> const y{b.data(), b_row, b_col};
  auto const ours = [&] {
    if constexpr (is_bf16) dfdx::kernels::multiply_bf16(m, n, k, x, y, c.data(), n, room.get());
    else dfdx::kernels::multiply_int8(m, n, k, x, y, c.data(), n, room.get());
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
          .name = std::string(types) + " " + layout + " " + std::to_string(m) + "x" + std::to_string(n) +
                  "x" + std::to_string(k)};
  row.error = worst / largest;
  if (!(row.error < (is_bf16 ? 0x1p-8 : 1e-300))) {
    std::fprintf(stderr, "gemm: %s is off by %g of the largest\n", row.name.c_str(), row.error);
    std::exit(1);
  }
  std::vector<double> mine, theirs;
  long const calls = calls_for(ours, 1e-3);
#if defined(DFDX_BENCH_DNNL)
  auto const its = dnnl_narrow(a.data(), b.data(), c.data(), m, n, k, turned);
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
  row.bytes = static_cast<double>(a.size() * sizeof(A) + b.size() * sizeof(B) + c.size() * sizeof(C));
  row.roof = row.flops / best(mine) / roof;
  char text[40];
  std::snprintf(text, sizeof text, "%.1f G%s/s", row.flops / best(mine) / 1e9, is_bf16 ? "FLOP" : "OP");
  row.note = text;
  print(row);
}

/// All of them. By tiles of AMX a core multiplies 16 times as many numbers of bf16 as of f32, and 32 times as many
/// bytes; else 2 and 4 times.
inline void narrow_rows(double roof_f32) {
#if defined(DFDX_AMX)
  double const more = dfdx::kernels::amx_is_permitted() ? 8 : 1;
#else
  double const more = 1;
#endif
  auto const each = [&](auto const& product) {
    for (std::int64_t const n : {128, 256, 512, 1024, 2048}) product("NN", n, n, n);
    for (std::int64_t const n : {256, 1024}) product("NT", n, n, n);
    product("NT", 128, 3072, 768);
    product("NN", 128, 768, 3072);
  };
#if defined(__AVX512BF16__)
  each([&](char const* layout, std::int64_t m, std::int64_t n, std::int64_t k) {
    using dfdx::bfloat16;
    narrow_row<bfloat16, bfloat16, bfloat16>("bf16", layout, m, n, k, 2 * more * roof_f32);
  });
#endif
  auto const signed_bytes = [&](char const* layout, std::int64_t m, std::int64_t n, std::int64_t k) {
    narrow_row<std::int8_t, std::int8_t, std::int32_t>("i8", layout, m, n, k, 4 * more * roof_f32);
  };
  each(signed_bytes);
  signed_bytes("NN", 127, 131, 137);
  signed_bytes("NT", 32, 128, 784);
  signed_bytes("NT", 1, 4096, 4096);
  signed_bytes("NT", 4, 4096, 4096);
  narrow_row<std::uint8_t, std::int8_t, std::int32_t>("u8 i8", "NN", 256, 256, 256, 4 * more * roof_f32);
  narrow_row<std::uint8_t, std::int8_t, std::int32_t>("u8 i8", "NT", 128, 3072, 768, 4 * more * roof_f32);
}

}  // namespace bench
