// SPDX-License-Identifier: BSL-1.0
// What the benchmarks of a GPU share: inputs that are drawn there, the device's clock, its copy bandwidth as the roof
// of what is bound by memory, and results compared before they are timed: some elements with sums of `double`, or all
// with the same program's on the CPU. DFDX_BENCH_SMALL: sizes for a dry run;
// DFDX_BENCH_WARPGROUPS: rows of the kernel that sm_90a alone has.
#pragma once

#include <dfdx/cuda.hpp>

#include <dfdx/vocabulary/random.hpp>

#include "../row.hpp"
#include "error.hpp"

#include <concepts>
#include <functional>

namespace bench {

using namespace dfdx;

#if defined(DFDX_BENCH_SMALL)
inline constexpr bool small = true;
#else
inline constexpr bool small = false;
#endif
/// Whether the program is compiled for sm_90a.
#if defined(DFDX_BENCH_WARPGROUPS) || defined(DFDX_CUDA_EMULATED)
inline constexpr bool has_warpgroups = true;
#else
inline constexpr bool has_warpgroups = false;
#endif
/// An extent, or a small one.
constexpr std::size_t size_or(std::size_t n, std::size_t few) { return small ? few : n; }

/// Milliseconds of `work` on the device: the median of rounds that each take some of them.
inline double milliseconds(std::function<void()> const& work) {
  cuda_runtime::Stopwatch watch(cuda_runtime::stream(cuda()));
  for (int k = 0; k < 3; ++k) work();  // captured the second time
  double const once = watch.seconds(work);
  int const calls = small ? 1 : static_cast<int>(std::clamp(0.02 / once, 1.0, 1000.0));
  std::vector<double> rounds;
  for (int r = 0; r < (small ? 1 : 7); ++r)
    rounds.push_back(watch.seconds([&] {
      for (int k = 0; k < calls; ++k) work();
    }) / calls);
  std::nth_element(rounds.begin(), rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2),
                   rounds.end());
  return rounds[rounds.size() / 2] * 1e3;
}

/// Bytes a second that a copy on the device reads and writes.
inline double copy_bandwidth() {
  constexpr index_t bytes = small ? 1 << 20 : index_t{1} << 30;
  Array const from(Meta{DType::u8, make_shape(bytes)}, cuda()),
      to(Meta{DType::u8, make_shape(bytes)}, cuda());
  double const ms = milliseconds([&] {
    cuda_runtime::memory.copy(to.bytes(), cuda(), from.bytes(), cuda(), static_cast<std::size_t>(bytes));
  });
  return 2 * static_cast<double>(bytes) / (ms * 1e-3);
}

template <class E>
struct Normals {
  constexpr auto operator()(auto const& like, auto const& key) const {
    return cast<E>(randn_like(like, key));
  }
};
/// Normal numbers, drawn on the device. (f16 and bf16 are rounded there too.)
template <class T>
T normals(std::int64_t seed) {
  using E = typename T::value_type;
  auto draw = compile(Normals<E>{});
  return draw(T(Array(T::static_meta, cuda())), to(cuda(), Tensor<std::int64_t>(seed)));
}

/// Numbers of a result on the CPU.
template <class T>
std::vector<double> numbers(T const& x) {
  auto const here = to(Device{}, x).contiguous();
  using E = typename T::value_type;
  auto const* const p = reinterpret_cast<E const*>(here.bytes());
  std::vector<double> r(static_cast<std::size_t>(here.size()));
  for (std::size_t i = 0; i < r.size(); ++i) r[i] = static_cast<double>(p[i]);
  return r;
}
/// Of some elements of y, and want(i).
template <class T, class Want>
double error_of(T const& y, Want const& want) {
  auto const got = numbers(y);
  Error e;
  for (std::size_t k = 0; k < 257; ++k) {
    std::size_t const i = k * 7919 * 1009 % got.size();
    e.add(got[i], want(i));
  }
  return e.value();
}
/// Of all elements of a program's results on the device, and of what it gives on the CPU; the worst of the results.
template <class F, class... X>
double error_beside_cpu(F& f, X const&... x) {
  auto const there = to(Device{}, f(x...)), here = f(to(Device{}, x)...);
  std::vector<Array> wanted;
  visit(here, [&](auto const& leaf) { wanted.push_back(leaf.contiguous()); });
  std::size_t at = 0;
  double worst = 0;
  visit(there, [&](auto const& leaf) {
    using E = typename std::remove_cvref_t<decltype(leaf)>::value_type;
    Array const dense = leaf.contiguous();
    auto const *got = reinterpret_cast<E const*>(dense.bytes()),
               *want = reinterpret_cast<E const*>(wanted[at++].bytes());
    Error e;
    for (index_t i = 0; i < dense.size(); ++i)
      e.add(static_cast<double>(got[i]), static_cast<double>(want[i]));
    worst = worse(worst, e.value());
  });
  return worst;
}

/// Checked - how wrong a result is, and may be.
struct Checked {
  double error = unknown, most = std::numeric_limits<double>::infinity();
};
/// An error that sums of many numbers T may have; results of 16 bits are rounded.
template <class T>
Checked checked(double error) {
  return {error, sizeof(T) == 2 ? 2e-2 : 1e-4};
}

/// Rows whose results were wrong.
inline int wrong = 0;

/// Prints a row; `bytes` are what has to be read and written once, `flops` the operations, 0 if that is not its roof.
inline void row(char const* bench, std::string const& name, double ms, Checked result, double bandwidth,
                double bytes, double flops = 0, std::string const& note = {}) {
  Row r{.bench = bench,
        .name = name,
        .ours_ms = ms,
        .error = result.error,
        .note = small ? "dry run, small sizes" : note};
  if (bytes > 0) r.bytes = bytes, r.roof = bytes / (ms * 1e-3) / bandwidth;
  if (flops > 0) r.flops = flops;
  if (std::isinf(result.most) || result.error <= result.most) return print(r);
  ++wrong;
  std::fprintf(stderr, "%s, %s: WRONG, %g where %g is allowed\n", bench, name.c_str(), result.error,
               result.most);
  r.note = "WRONG";
  print(r);
}

/// The same of work that is timed now, when its result has been compared.
template <std::invocable Work>
void row(char const* bench, std::string const& name, Work const& work, Checked result, double bandwidth,
         double bytes, double flops = 0, std::string const& note = {}) {
  row(bench, name, milliseconds(work), result, bandwidth, bytes, flops, note);
}

/// Runs the rows, or says that there is no device. Status 1 if a result was wrong.
template <class F>
int run(F const& rows) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "SKIPPED: no CUDA device\n");
    return 77;
  }
  rows(copy_bandwidth());
  return wrong == 0 ? 0 : 1;
}

}  // namespace bench
