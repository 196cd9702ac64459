// SPDX-License-Identifier: BSL-1.0
// What nearly every test program includes, read once for all of them (CMakeLists.txt). Sources name what they use as if
// it were not there.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <dfdx/dfdx.hpp>
#include <dfdx/testing/interpret.hpp>
