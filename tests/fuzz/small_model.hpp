// SPDX-License-Identifier: BSL-1.0
// A model for the readers of files that belong to one.
#pragma once

#include <dfdx/models/llama_load.hpp>

namespace fuzz {

/// A Llama of a few numbers, always the same.
inline dfdx::models::Llama small_model() {
  dfdx::models::LlamaConfig c;
  c.vocabulary = 5, c.width = 8, c.hidden = 6, c.layers = 2, c.heads = 2, c.kv_heads = 1, c.head_size = 4;
  c.context = 16, c.tied = true;
  dfdx::models::Llama m = dfdx::models::detail::outline_of(c);
  for (auto const& [name, leaf] : dfdx::models::detail::named_leaves(m)) {
    dfdx::Array x(leaf->meta());
    for (dfdx::index_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(i % 7 - 3) * 0.25f;
    *leaf = x;
  }
  return m;
}

}  // namespace fuzz
