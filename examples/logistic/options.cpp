// SPDX-License-Identifier: BSL-1.0
#include "../common/options.hpp"
#include "options.hpp"

#include <CLI/CLI.hpp>

namespace logistic {

std::optional<Options> parse_options(int argc, char** argv) {
  Options o;
  bool no_header = false;
  CLI::App app(
      "Logistic regression (two classes) or softmax regression (more) by Newton's method and by L-BFGS, "
      "which must find "
      "the same weights.",
      "logistic");
  app.add_option(
         "--data", o.data,
         "breast_cancer, iris, wine or digits (scikit-learn's), or a CSV file, which may be packed by gzip")
      ->capture_default_str();
  app.add_option("--target", o.target,
                 "Column of the classes, by default the last; all others must be numbers");
  app.add_option("--separator", o.how.separator, "What stands between fields")->capture_default_str();
  app.add_option("--skip", o.how.skip, "Lines before the header")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  app.add_flag("--no-header", no_header, "There is no line of names; columns are called 0, 1, ...");
  app.add_option("--l2", o.l2,
                 "Penalty: half of this times the sum of the squared weights, without intercepts")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--test", o.test, "Part of the rows that is kept to test on")
      ->check(CLI::Range(1e-6, 1 - 1e-6))
      ->capture_default_str();
  app.add_option("--tolerance", o.tolerance, "Norm of the gradient to reach")
      ->check(CLI::Range(1e-15, 1.0))
      ->capture_default_str();
  app.add_option("--max-steps", o.max_steps, "Newton's steps at most; L-BFGS may take 100 times as many")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_flag(
      "--products", o.by_products,
      "Newton's method by products with the Hessian (conjugate gradients), not by the Hessian itself");
  app.add_option("--seed", o.seed, "Seed of the choice of rows to test on")->capture_default_str();
  if (!common::parse(app, argc, argv)) return {};
  o.how.header = !no_header;
  return o;
}

}  // namespace logistic
