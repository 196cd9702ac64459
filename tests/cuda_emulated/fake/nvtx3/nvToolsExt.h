// SPDX-License-Identifier: BSL-1.0
// NVTX as tests see it: which ranges were opened, and how many are open.
#pragma once

#include <string>
#include <vector>

namespace cuda_fake {

struct Ranges {
  std::vector<std::string> names;
  int open = 0;
};
inline Ranges ranges;

}  // namespace cuda_fake

inline int nvtxRangePushA(char const* name) {
  cuda_fake::ranges.names.emplace_back(name);
  return cuda_fake::ranges.open++;
}
inline int nvtxRangePop() { return --cuda_fake::ranges.open; }
