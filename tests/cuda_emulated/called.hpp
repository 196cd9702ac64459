// SPDX-License-Identifier: BSL-1.0
// What tests of ops that are called one by one on the emulated device have in common: what is compared with the CPU's
// result, and which ops had a kernel there.
#pragma once

#include <dfdx/cuda_ops.hpp>

#include "emulated.hpp"

#include <dfdx/vocabulary/random.hpp>

namespace emulated {

inline Array drawn(Shape const& s, std::uint64_t key, DType d = DType::f32) {
  return cast_to(randn(Extents(s), Key{key}), d);
}
inline Array there(Array const& x) { return to(cuda(), x); }

/// Missed - names of ops that the device has had no kernel for, while one lives; and of those that it has done.
class Missed {
 public:
  Missed() : before_(dfdx::detail::device_ops) {
    names().clear();
    done().clear();
    real() = before_;
    dfdx::detail::device_ops = before_ != nullptr ? &watching : nullptr;
  }
  Missed(Missed const&) = delete;
  ~Missed() { dfdx::detail::device_ops = before_; }
  static std::vector<std::string>& names() {
    static std::vector<std::string> all;
    return all;
  }
  static std::vector<std::string>& done() {
    static std::vector<std::string> all;
    return all;
  }

 private:
  static DeviceOps const*& real() {
    static DeviceOps const* ops;
    return ops;
  }
  static bool run(char const* name, ShapeRule rule, Attrs const& attrs, Array const* const* x, int n,
                  Array const& out) {
    bool const has_kernel = real()->run(name, rule, attrs, x, n, out);
    (has_kernel ? done() : names()).push_back(name);
    return has_kernel;
  }
  static constexpr DeviceOps watching{&run};
  DeviceOps const* before_;
};

/// Without the kernels of ops, as in a program that has only <dfdx/cuda.hpp>.
struct NoKernels {
  DeviceOps const* before = std::exchange(dfdx::detail::device_ops, nullptr);
  NoKernels() = default;
  NoKernels(NoKernels const&) = delete;
  ~NoKernels() { dfdx::detail::device_ops = before; }
};

/// How far f on a device is from f on the CPU; infinite if the order of threads shows, or it does not lie there.
template <class F, class... A>
double called(F const& f, A const&... x) {
  Array const expected = f(x...);
  std::vector<double> first;
  for (auto const turns :
       {cuda_fake::Turns::forward, cuda_fake::Turns::backward, cuda_fake::Turns::shuffled}) {
    InTurns const order(turns);
    Array const y = f(there(x)...);
    if (y.device() != cuda() || !(y.meta() == expected.meta())) return INFINITY;
    auto const found = y.template to_vector<double>();
    if (first.empty()) first = found;
    if (first.size() != found.size() ||
        std::memcmp(first.data(), found.data(), first.size() * sizeof(double)) != 0)
      return INFINITY;
  }
  return difference(first, expected.to_vector<double>());
}

}  // namespace emulated
