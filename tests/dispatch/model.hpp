// SPDX-License-Identifier: BSL-1.0
// What the program sees of the model.
#pragma once

extern "C" {
int vector_bytes();
double trained_loss();
void refuse();
}
