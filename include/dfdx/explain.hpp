// SPDX-License-Identifier: BSL-1.0
// explain(program) and dot(program): programs as text. Apart from <dfdx/dfdx.hpp>, which would take longer to
// compile for what few files ask.
#pragma once

#include <dfdx/dfdx.hpp>
#include <dfdx/program/explain.hpp>
