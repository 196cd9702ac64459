// SPDX-License-Identifier: BSL-1.0
// A table as numbers: features, standardised, and classes.
#pragma once

#include <dfdx/data/split.hpp>
#include <dfdx/dfdx.hpp>
#include <dfdx/io/csv.hpp>

#include <string>
#include <vector>

namespace logistic {

/// Where a table is and how it is written.
struct Source {
  std::string path;
  dfdx::data::CsvOptions how;
};
/// A name of ours, "iris", which is looked for in some folders, or a file.
///
/// Errors    "data: there is no iris.csv in any of ...; cmake/install_dependencies.sh test fetches it"
Source find_source(std::string const& name, dfdx::data::CsvOptions const& how);

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
Data read_data(Source const& source, std::string const& target, double test_part, dfdx::Key key);

}  // namespace logistic
