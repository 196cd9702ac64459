// SPDX-License-Identifier: BSL-1.0
// The work of the rows in eager libtorch, behind a door that needs no header of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace torch_works {

/// Given - an input: numbers of type float, or integers of type std::int32_t; whether its gradient is asked for.
struct Given {
  std::vector<std::int64_t> shape;
  void const* data;
  bool integers = false, wants_gradient = false;
};

/// Work - one piece of work by name: calling it computes its results, those of the function first, then the gradients
/// that were asked for. On one thread, with tensors from the pool of the benchmarks.
class Work {
 public:
  Work(std::string const& name, std::vector<Given> const& inputs);
  ~Work();
  void operator()() const;
  std::size_t results() const;
  /// The numbers of a result, row-major.
  std::vector<float> result(std::size_t k) const;
  /// The most that its tensors took at any time since it was made, in MB.
  double peak_mb() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Such as "libtorch 1.13.1".
std::string version();

}  // namespace torch_works
