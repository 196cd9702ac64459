// SPDX-License-Identifier: BSL-1.0
// explain(program), dot(program), profile(f, args...): programs as text, and how long their kernels take. Apart from
// <dfdx/dfdx.hpp>, which would take longer to compile for what few files ask.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/program/explain.hpp>
#include <dfdx/program/profile.hpp>
