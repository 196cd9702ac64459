// SPDX-License-Identifier: BSL-1.0
// A Llama of random numbers, for benchmarks of decoders.
#pragma once

#include <dfdx/models/llama_load.hpp>

namespace bench {

/// Numbers between -most and most; norms scale by 1.
inline dfdx::models::Llama random_model(dfdx::models::LlamaConfig const& c, float most) {
  dfdx::models::Llama m = dfdx::models::detail::outline_of(c);
  std::uint64_t state = 88172645463325252u;
  dfdx::visit_named(m, [&](std::string const& name, dfdx::Array& leaf) {
    dfdx::Array const x(leaf.meta());
    bool const norm = name.ends_with("norm.weight");
    float* const p = x.data<float>();
    for (dfdx::index_t i = 0; i < x.size(); ++i) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;
      p[i] = norm ? 1.0f : (static_cast<float>(state >> 40) / 8388608.0f - 1.0f) * most;
    }
    leaf = x;
  });
  return m;
}

}  // namespace bench
