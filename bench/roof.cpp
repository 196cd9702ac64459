// SPDX-License-Identifier: BSL-1.0
// The machine's roofs, one line of JSON for report.py: FLOP/s of float, and for each level of memory its size and how
// fast one thread reads from it.
#include <unistd.h>

#include "roof.hpp"

int main() {
  struct Level {
    char const* name;
    long bytes;
  };
  long const second = sysconf(_SC_LEVEL2_CACHE_SIZE), last = sysconf(_SC_LEVEL3_CACHE_SIZE);
  // Of the last cache a core has a part, whatever the system tells: others use it too.
  Level const levels[] = {{"L1", sysconf(_SC_LEVEL1_DCACHE_SIZE)},
                          {"L2", second},
                          {"L3", second > 0 ? std::min(last, 16 * second) : last},
                          {"DRAM", std::clamp(4 * last, 1L << 27, 1L << 29)}};
  std::printf("{\"roofs\": {\"flops\": %.6g, \"levels\": [", bench::measure_roof(41));
  bool first = true;
  for (Level const& level : levels) {
    if (level.bytes <= 0) continue;           // not told, or not there
    bool const cache = level.name[0] == 'L';  // of which half fits in for sure
    auto const read = static_cast<std::size_t>(cache ? level.bytes / 2 : level.bytes);
    std::printf("%s{\"name\": \"%s\", \"bytes\": %ld, \"bandwidth\": %.6g}", first ? "" : ", ", level.name,
                level.bytes, bench::measure_memory(read));
    first = false;
  }
  std::printf("]}}\n");
}
