// SPDX-License-Identifier: BSL-1.0
#include "run.hpp"

void autoencoder::run_on(common::PictureOptions const& options, Data<28> const& data) {
  run_model<28, 32>(options, data);
}
