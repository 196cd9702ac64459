// SPDX-License-Identifier: BSL-1.0
// A folder for a test's files, removed at the end, and the text of what is thrown.
#pragma once

#include <dfdx/core/error.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace tests {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dfdx-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  TemporaryFolder(TemporaryFolder const&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::filesystem::path operator/(std::string const& name) const { return path_ / name; }
  std::filesystem::path write(std::string const& name, std::string const& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return path_ / name;
  }
  int files() const {
    int n = 0;
    for (auto const& entry : std::filesystem::directory_iterator(path_)) n += entry.is_regular_file();
    return n;
  }

 private:
  std::filesystem::path path_;
};

/// The text of the dfdx::error that f throws; empty if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (dfdx::error const& e) {
    return e.what();
  }
  return {};
}

}  // namespace tests
