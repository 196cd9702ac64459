// SPDX-License-Identifier: BSL-1.0
// A table as numbers: features, standardised, and classes.
#pragma once

#include <dfdx/data/split.hpp>
#include <dfdx/dfdx.hpp>

#include <string>
#include <vector>

#include "../common/tables.hpp"

namespace logistic {

using Matrix = dfdx::Tensor<double, dfdx::dyn, dfdx::dyn>;
using Classes = dfdx::Tensor<std::int32_t, dfdx::dyn>;

struct Data {
  Matrix train_x, test_x;  // a column of ones at the end
  Classes train_y, test_y;
  std::vector<std::string> features, classes;
};

/// Of each feature its mean is taken away and the rest divided by its deviation, both those of the rows to train on; a
/// feature that does not vary is 0.
///
/// Errors    those of read_csv; "data: x.csv has one class, cat, in column species"; "data: x.csv: no row of class cat
///           is among those to train on"
Data read_data(common::Table const& source, std::string const& target, double test_part, dfdx::Key key);

}  // namespace logistic
