// SPDX-License-Identifier: BSL-1.0
// Where a model is trained or run: an option of the examples.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/vocabulary/to_device.hpp>

#include <cstdlib>
#include <string>

namespace common {

/// on(device, x) - a value or a model on a device; itself if it lies there.
template <class T>
T on(dfdx::Device device, T const& x) {
  bool there = true;
  dfdx::visit(x, [&](auto const& leaf) { there = there && leaf.device() == device; });
  return there ? x : dfdx::to(device, x);
}

/// bring_back - the model as it is on the device, after an error that is worth more than one of the device: then it
/// stays as it was.
template <class Model>
void bring_back(Model& model, Model const& there) {
  try {
    model = on({}, there);
  } catch (dfdx::error const&) {
  }
}

/// Adds --device to a CLI::App.
template <class App>
void add_device_option(App& app, dfdx::Device& device) {
  auto const number = [](std::string const& name) {
    if (name == "cuda") return 0L;
    char* end = nullptr;
    long const n =
        name.size() > 5 && name.compare(0, 5, "cuda:") == 0 ? std::strtol(name.c_str() + 5, &end, 10) : -1;
    return end != nullptr && *end == '\0' && n < 64 ? n : -1;
  };
  app.template add_option_function<std::string>(
         "--device",
         [&device, number](std::string const& name) {
           device = name == "cpu" ? dfdx::Device{} : dfdx::cuda(static_cast<short>(number(name)));
         },
         "Where to compute: cpu, or in a build for GPUs (cmake -DDFDX_CUDA_EXAMPLES=ON) cuda, cuda:1, ...")
      ->check([number](std::string const& name) {
        return name == "cpu" || number(name) >= 0 ? std::string()
                                                  : "cpu, cuda or cuda:N required, got " + name;
      })
      ->default_str("cpu");
}

}  // namespace common
