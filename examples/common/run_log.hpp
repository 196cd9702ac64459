// SPDX-License-Identifier: BSL-1.0
// The file of --log: what a run says of itself as it goes, for other programs.
#pragma once

#include <dfdx/report/log.hpp>

#include <optional>
#include <string>

namespace common {

/// Adds --log to a CLI::App.
template <class App>
void add_log_option(App& app, std::string& file) {
  app.add_option("--log", file,
                 "File for the figures of the run as it goes, a table (.csv) or JSON lines (.jsonl)");
}

/// A report::Log, or nothing if there is no name of a file.
class RunLog {
 public:
  explicit RunLog(std::string const& file) {
    if (!file.empty()) log_.emplace(file);
  }
  void row(dfdx::report::Log::Row const& figures) {
    if (log_) log_->row(figures);
  }

 private:
  std::optional<dfdx::report::Log> log_;
};

}  // namespace common
