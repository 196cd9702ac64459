// SPDX-License-Identifier: BSL-1.0
// Where memory lies.
#pragma once

#include <cstddef>

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

/// DeviceMemory - what a backend does with memory on its devices. `take` throws where there is none left; `copy` is
/// done with host memory when it returns, and follows what was asked of the device before.
struct DeviceMemory {
  void* (*take)(std::size_t bytes, Device device);
  void (*give)(void* p, Device device);
  void (*copy)(void* to, Device to_device, void const* from, Device from_device, std::size_t bytes);
  void (*zero)(void* p, std::size_t bytes, Device device);
};

namespace detail {
/// Of the CUDA backend; null in a program without it.
inline constinit DeviceMemory const* device_memory = nullptr;
}  // namespace detail

}  // namespace dfdx
