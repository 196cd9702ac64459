// SPDX-License-Identifier: BSL-1.0
// Tables that examples know by name.
#pragma once

#include <dfdx/io/csv.hpp>

#include <string>

namespace common {

/// Where a table is and how it is written.
struct Table {
  std::string path;
  dfdx::data::CsvOptions how;
};

/// A name of ours, breast_cancer, iris, wine or digits, which is looked for in some folders, or a file.
///
/// Errors    "data: there is no iris.csv in any of ...; cmake/install_dependencies.sh test fetches it"
Table find_table(std::string const& name, dfdx::data::CsvOptions const& how);

}  // namespace common
