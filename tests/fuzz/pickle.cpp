// SPDX-License-Identifier: BSL-1.0
// Fuzzes pickles by themselves, which in a PyTorch file stand behind a checksum.
#include "fuzz/fuzz.hpp"

#include <dfdx/io/pickle.hpp>

static fuzz::Reader const pickle("pickle", fuzz::weights([](auto bytes) {
                                   dfdx::detail::Pickle const p(bytes, "pt: f");
                                   (void)p.root();
                                   return dfdx::Weights();
                                 }));
