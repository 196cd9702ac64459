// SPDX-License-Identifier: BSL-1.0
// See targets.cpp; compiled for the instruction set of its name.
#include "targets.hpp"

Outcome in_sse2() { return outcome(); }
