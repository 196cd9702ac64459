// SPDX-License-Identifier: BSL-1.0
// Fuzzes the files of --session: whatever it is, it is refused, or the text in it goes on.
#include "fuzz/fuzz.hpp"
#include "fuzz/small_model.hpp"

#include <dfdx/models/session.hpp>

namespace {

bool is_session(fuzz::Bytes bytes) {
  using namespace dfdx;
  static models::Llama const model = fuzz::small_model();
  try {
    models::Context context = models::load_session(safetensors_from(bytes), model);
    if (!context.full()) context.step(3);
    return true;
  } catch (error const&) {
    return false;
  }
}

}  // namespace

static fuzz::Reader const session("session", is_session);
