// SPDX-License-Identifier: BSL-1.0
// Where memory lies.
#pragma once

namespace dfdx {

/// Device - the CPU or a GPU. The CPU is the only device with kernels in a build without CUDA.
struct Device {
  enum class Kind : unsigned char { cpu, cuda } kind = Kind::cpu;
  short index = 0;
  constexpr bool operator==(Device const&) const = default;
  constexpr bool is_cpu() const { return kind == Kind::cpu; }
};

/// cuda(i) - the i-th GPU.
constexpr Device cuda(short index = 0) { return {Device::Kind::cuda, index}; }

}  // namespace dfdx
