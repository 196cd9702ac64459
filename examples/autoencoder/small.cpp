// SPDX-License-Identifier: BSL-1.0
#include "run.hpp"

void autoencoder::run_on(common::PictureOptions const& options, Data<8> const& data) {
  run_model<8, 2>(options, data);
}
