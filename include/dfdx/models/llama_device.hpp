// SPDX-License-Identifier: BSL-1.0
// A Llama moved to a device, with the matrices that are as they are stored.
#pragma once

#include <dfdx/models/llama.hpp>
#include <dfdx/vocabulary/to_device.hpp>

namespace dfdx {

/// to(device, model) - a Llama on a device: its leaves, and its stored matrices for decoders.
///
/// Errors    those of to for any value
template <int = 0>
models::Llama to(Device device, models::Llama const& model) {
  models::Llama r = to<models::Llama>(device, model);
  auto const move = [&](auto& part) {
    if (part.stored) part.stored = part.stored->moved(device);
  };
  move(r.model.embed_tokens);
  models::visit_projections(r, [&](std::string const&, models::Projection& p) { move(p); });
  return r;
}

}  // namespace dfdx
