// SPDX-License-Identifier: BSL-1.0
// What people see of a training run: progress bars, logs, charts. Needs a JSON library (nlohmann-json). CMake target:
// dfdx::io.
#pragma once

#include <dfdx/report/chart.hpp>
#include <dfdx/report/log.hpp>
#include <dfdx/report/progress.hpp>
#include <dfdx/report/svg.hpp>
