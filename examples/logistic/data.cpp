// SPDX-License-Identifier: BSL-1.0
#include "data.hpp"

#include <cmath>

namespace logistic {

Data read_data(common::Table const& source, std::string const& target, double test_part, dfdx::Key key) {
  auto const table = dfdx::data::read_csv(source.path, source.how);
  auto const fail = [&](std::string const& what) { throw dfdx::error("data: " + source.path + what); };
  dfdx::index_t const last = target.empty() ? table.size() - 1 : table.column(target);
  std::vector<dfdx::index_t> columns;
  Data r;
  for (dfdx::index_t c = 0; c < table.size(); ++c)
    if (c != last) {
      columns.push_back(c);
      r.features.push_back(table.columns()[static_cast<std::size_t>(c)]);
    }
  if (columns.empty()) fail(" has no column but the classes");
  auto const labels = table.labels(last);
  r.classes = labels.classes;
  if (r.classes.size() < 2)
    fail(" has one class, " + r.classes[0] + ", in column " +
         table.columns()[static_cast<std::size_t>(last)]);

  auto [train, test] = dfdx::data::train_test_split(
      key, test_part, table.numbers<double>(std::span<dfdx::index_t const>(columns)), labels.numbers);
  r.train_y = std::get<1>(train), r.test_y = std::get<1>(test);
  std::vector<bool> seen(r.classes.size());
  for (std::int32_t y : r.train_y) seen[static_cast<std::size_t>(y)] = true;
  for (std::size_t k = 0; k < seen.size(); ++k)
    if (!seen[k]) fail(": no row of class " + r.classes[k] + " is among those to train on");

  dfdx::Array const x = std::get<0>(train);
  dfdx::Array const middle = x.mean(0), spread = sqrt(x.var(0, 0));
  for (dfdx::index_t c = 0; c < middle.size(); ++c)
    if (!std::isfinite(middle.at<double>({c})) || !std::isfinite(spread.at<double>({c})))
      fail(": column " + r.features[static_cast<std::size_t>(c)] +
           " has a number that is not finite or too large");
  dfdx::Array const scale = where(spread > 1e-12 * abs(middle), 1.0 / spread, 0.0);
  auto const prepared = [&](dfdx::Array const& rows) {
    return Matrix(concat(
        std::vector<dfdx::Array>{(rows - middle) * scale, dfdx::ones({rows.len(), 1}, dfdx::DType::f64)}, 1));
  };
  r.train_x = prepared(x), r.test_x = prepared(std::get<0>(test));
  return r;
}

}  // namespace logistic
