// SPDX-License-Identifier: BSL-1.0
// Array, and what its members need of the tape.
#pragma once

#include <dfdx/value/array_type.hpp>
#include <dfdx/value/tape_saved.hpp>
