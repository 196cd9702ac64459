// SPDX-License-Identifier: BSL-1.0
// What matrix products and convolutions are computed in while training: an option of the examples.
#pragma once

#include <string>

namespace common {

enum class Precision { f32, bf16, f16 };
inline constexpr char const* precision_names[] = {"f32", "bf16", "f16"};

/// Adds --precision to a CLI::App.
template <class App>
void add_precision_option(App& app, Precision& precision) {
  auto const find = [](std::string const& name) {
    int k = 0;
    while (k < 3 && name != precision_names[k]) ++k;
    return k;
  };
  app.template add_option_function<std::string>(
         "--precision", [&precision, find](std::string const& name) { precision = Precision{find(name)}; },
         "What products are computed in while training: f32, bf16, or f16 with a scaled loss; all else is "
         "f32")
      ->check([find](std::string const& name) {
        return find(name) < 3 ? std::string() : "f32, bf16 or f16 required, got " + name;
      })
      ->default_str("f32");
}

}  // namespace common
