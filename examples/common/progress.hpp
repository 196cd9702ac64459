// SPDX-License-Identifier: BSL-1.0
// A progress bar on standard error: redrawn in place in a terminal, a line now and then elsewhere.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace common {

class Progress {
 public:
  explicit Progress(std::int64_t total) : total_(total), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (terminal_ && drawn_) std::fputc('\n', stderr);
  }

  void show(std::int64_t done, double loss) {
    using namespace std::chrono;
    auto const now = steady_clock::now();
    if (from_ < 0) {  // not 0 in a run that was resumed
      from_ = done - 1;
      tenths_ = from_ * 10 / total_;
    }
    bool const last = done == total_;
    // Ten times a second for people, ten times in all for a log.
    if (!last && (terminal_ ? now - shown_ < milliseconds(100) : done * 10 / total_ == tenths_)) return;
    shown_ = now;
    tenths_ = done * 10 / total_;
    double const seconds = duration<double>(now - start_).count();
    double const rate = static_cast<double>(done - from_) / std::max(seconds, 1e-9);
    constexpr std::int64_t width = 30;
    auto const full = static_cast<std::size_t>(done * width / total_);
    std::string const bar = std::string(full, '#') + std::string(static_cast<std::size_t>(width) - full, '.');
    std::fprintf(stderr, "%s  [%s] %3d%%  loss %.3f  %.0f steps/s  %s%s", terminal_ ? "\r" : "", bar.c_str(),
                 static_cast<int>(done * 100 / total_), loss, rate,
                 last ? ("took " + time(seconds)).c_str()
                      : (time(static_cast<double>(total_ - done) / rate) + " left").c_str(),
                 terminal_ ? "\x1b[K" : "\n");
    std::fflush(stderr);
    drawn_ = true;
  }

 private:
  static std::string time(double seconds) {
    char text[32];
    auto const s = static_cast<long>(seconds + 0.5);
    std::snprintf(text, sizeof text, "%ld:%02ld", s / 60, s % 60);
    return text;
  }

  std::int64_t total_, tenths_ = 0, from_ = -1;
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), shown_ = start_;
};

}  // namespace common
