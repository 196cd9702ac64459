// SPDX-License-Identifier: BSL-1.0
// DecoderStep - tokens that a decoder computes at once; DecoderRunner - who computes them, where the model lies.
#pragma once

#include <memory>
#include <vector>

#include <dfdx/models/cache.hpp>
#include <dfdx/models/decoder_model.hpp>

namespace dfdx::models::detail {

/// DecoderRow - a token that is computed, the cache of its text and its place there.
struct DecoderRow {
  std::int32_t token;
  KvCache* cache;
  index_t position;
};

/// DecoderStep - tokens, all of them of what their models and caches have, and what comes of them: numbers for what
/// comes after each, or after the last alone.
///
/// Shapes    cos, sin: [rows, head_size / 2], of models with turns; logits: [results, vocabulary], results 1 or rows
struct DecoderStep {
  std::vector<DecoderRow> rows;
  std::vector<float> cos, sin;
  index_t results = 0;
  std::vector<float> logits;
};

/// DecoderRunner - computes steps of one model, and adds keys and values to the caches.
class DecoderRunner {
 public:
  DecoderRunner() = default;
  DecoderRunner(DecoderRunner const&) = delete;
  virtual ~DecoderRunner() = default;
  /// Room for so many rows at once, so that `run` takes no memory for fewer.
  virtual void reserve(index_t rows, index_t results) = 0;
  virtual void run(DecoderStep& step) = 0;
};

/// Makes one for a model on a device, with caches of `capacity` positions; null in a program without
/// <dfdx/cuda_models.hpp>. The model outlives it.
using MakeDeviceRunner = std::unique_ptr<DecoderRunner> (*)(DecoderModel const& model, index_t capacity);
inline constinit MakeDeviceRunner make_device_runner = nullptr;

}  // namespace dfdx::models::detail
